/* device/worker.c - the child's side: see worker.h. */
#include "device/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

/* ---- both sides ---------------------------------------------------------------------------------- */

status_t window_fit(struct window *window, size_t size) {
    struct stat info;
    if (size <= window->size)
        return OK;
    size = size_align(size, (size_t)1 << 20);
    if (fstat(window->fd, &info) != 0 ||
        ((size_t)info.st_size < size && ftruncate(window->fd, (off_t)size) != 0))
        return FAIL(ERR_NOMEM, "cuda: no memory for a window of %zu bytes: %s", size,
                    strerror(errno));
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, window->fd, 0);
    if (bytes == MAP_FAILED)
        return FAIL(ERR_NOMEM, "cuda: no memory for a window of %zu bytes: %s", size,
                    strerror(errno));
    if (window->bytes)
        munmap(window->bytes, window->size);
    window->bytes = bytes;
    window->size = size;
    return OK;
}

void window_close(struct window *window) {
    if (window->bytes)
        munmap(window->bytes, window->size);
    if (window->fd >= 0)
        close(window->fd);
    *window = (struct window){.fd = -1};
}

bool message_send(int socket, const void *message, size_t size) {
    const char *at = message;
    while (size) {
        ssize_t n = send(socket, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

bool message_receive(int socket, void *message, size_t size) {
    char *at = message;
    while (size) {
        ssize_t n = recv(socket, at, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* ---- requests ------------------------------------------------------------------------------------ */

struct server {
    const struct backend_ops *ops;
    struct backend *backend;
    struct module **modules; /* by id; NULL: unloaded */
    size_t module_count;
    struct window window;
};

static status_t serve_open(struct server *s) {
    static const struct device_options defaults;
    struct device_info info = {0};
    char rest[64];
    snprintf(rest, sizeof rest, "%s", (const char *)s->window.bytes);
    status_t st = s->ops->open(&s->backend, &info, rest, &defaults);
    memcpy(s->window.bytes, &info, sizeof info);
    return st;
}

static status_t put_entries(struct server *s, const struct module *m) {
    status_t st = OK;
    size_t at = sizeof(size_t), count = s->ops->entry_count(m);
    TRY(window_fit(&s->window, at));
    memcpy(s->window.bytes, &count, sizeof count);
    for (size_t i = 0; i < count; i++) {
        const struct dev_entry *e = s->ops->entry(m, i);
        const struct worker_entry head = {
            .name_size = strlen(e->name) + 1,
            .param_count = e->param_count,
            .static_shared = e->static_shared,
            .max_threads = e->max_threads,
            .ambiguous = e->ambiguous,
            .ambiguous_line = e->ambiguous_line,
            .cluster = {e->cluster[0], e->cluster[1], e->cluster[2]},
            .needs_cluster = e->needs_cluster,
        };
        size_t params = head.param_count * sizeof *e->params;
        TRY(window_fit(&s->window, at + sizeof head + head.name_size + params));
        memcpy(s->window.bytes + at, &head, sizeof head);
        at += sizeof head;
        memcpy(s->window.bytes + at, e->name, head.name_size);
        at += head.name_size;
        if (params)
            memcpy(s->window.bytes + at, e->params, params);
        at += params;
    }
done:
    return st;
}

static status_t serve_load(uint64_t *id, struct server *s, size_t label_size, size_t text_size) {
    status_t st = OK;
    struct module *m = NULL, **modules;
    char *label = malloc(label_size + 1);
    modules = realloc(s->modules, (s->module_count + 1) * sizeof(struct module *));
    if (modules)
        s->modules = modules;
    if (!label || !modules)
        TRY(FAIL(ERR_NOMEM, "no memory for an image"));
    memcpy(label, s->window.bytes, label_size);
    label[label_size] = '\0';
    TRY(s->ops->load(&m, s->backend, label, s->window.bytes + label_size, text_size));
    s->modules[s->module_count] = m;
    *id = s->module_count++;
    TRY(put_entries(s, m));
done:
    free(label);
    return st;
}

/* One launch out of the window; its arguments stay there. */
struct taken {
    const struct module *m;
    const struct dev_entry *e;
    struct dev_launch launch;
};

/* *at: where it begins in the window, then where it ends.  The caller frees launch.args. */
static status_t take_launch(struct taken *out, size_t *at, const struct server *s) {
    struct worker_launch head;
    memcpy(&head, s->window.bytes + *at, sizeof head);
    *at = size_align(*at + sizeof head, WORKER_ARG_ALIGN);
    out->m = s->modules[head.id];
    out->e = s->ops->entry(out->m, head.index);
    const void **args = calloc(out->e->param_count + 1, sizeof *args);
    if (!args)
        return FAIL(ERR_NOMEM, "no memory for a launch");
    for (size_t i = 0; i < out->e->param_count; i++) {
        args[i] = s->window.bytes + *at;
        *at = size_align(*at + out->e->params[i].size, WORKER_ARG_ALIGN);
    }
    out->launch = (struct dev_launch){
        .entry = out->e->name,
        .dynamic_shared = head.dynamic_shared,
        .args = args,
        .arg_count = out->e->param_count,
    };
    memcpy(out->launch.grid, head.grid, sizeof head.grid);
    memcpy(out->launch.block, head.block, sizeof head.block);
    memcpy(out->launch.cluster, head.cluster, sizeof head.cluster);
    return OK;
}

static status_t serve_launch(struct server *s) {
    status_t st = OK;
    size_t at = 0;
    struct taken t = {0};
    struct dev_run *run = calloc(1, sizeof *run);
    if (!run)
        TRY(FAIL(ERR_NOMEM, "no memory for a launch"));
    TRY(take_launch(&t, &at, s));
    TRY(s->ops->launch(run, s->backend, t.m, t.e, &t.launch));
    TRY(window_fit(&s->window, sizeof *run));
    memcpy(s->window.bytes, run, sizeof *run);
done:
    free((void *)t.launch.args);
    free(run);
    return st;
}

static status_t serve_time(struct server *s, size_t count, size_t group) {
    status_t st = OK;
    size_t at = 0, taken = 0;
    const struct module **modules = calloc(count + 1, sizeof *modules);
    const struct dev_entry **entries = calloc(count + 1, sizeof *entries);
    struct dev_launch *launches = calloc(count + 1, sizeof *launches);
    double *seconds = calloc(count / group + 1, sizeof *seconds);
    if (!modules || !entries || !launches || !seconds)
        TRY(FAIL(ERR_NOMEM, "no memory to time %zu launches", count));
    for (; taken < count; taken++) {
        struct taken t;
        TRY(take_launch(&t, &at, s));
        modules[taken] = t.m;
        entries[taken] = t.e;
        launches[taken] = t.launch;
    }
    TRY(s->ops->time(seconds, s->backend, modules, entries, launches, count, group));
    TRY(window_fit(&s->window, count / group * sizeof *seconds));
    memcpy(s->window.bytes, seconds, count / group * sizeof *seconds);
done:
    for (size_t i = 0; i < taken; i++)
        free((void *)launches[i].args);
    free(seconds);
    free(launches);
    free(entries);
    free(modules);
    return st;
}

static status_t serve(struct worker_reply *reply, struct server *s,
                      const struct worker_request *q) {
    status_t st = OK;
    TRY(window_fit(&s->window, q->window));
    switch (q->op) {
    case WORKER_OPEN:
        return serve_open(s);
    case WORKER_LOAD:
        return serve_load(&reply->value, s, q->a, q->b);
    case WORKER_UNLOAD:
        s->ops->unload(s->modules[q->a]);
        s->modules[q->a] = NULL;
        return OK;
    case WORKER_ALLOC:
        return s->ops->alloc(&reply->value, s->backend, q->a);
    case WORKER_RELEASE:
        s->ops->release(s->backend, q->a);
        return OK;
    case WORKER_WRITE:
        return s->ops->write(s->backend, q->a, s->window.bytes, q->b);
    case WORKER_READ:
        return s->ops->read(s->window.bytes, s->backend, q->a, q->b);
    case WORKER_SET:
        return s->ops->set(s->backend, q->a, s->window.bytes[0], q->b);
    case WORKER_TENSOR_MAP: {
        struct dev_tensor_map map;
        memcpy(&map, s->window.bytes, sizeof map);
        return s->ops->tensor_map(s->window.bytes, s->backend, &map);
    }
    case WORKER_LAUNCH:
        return serve_launch(s);
    case WORKER_TIME:
        return serve_time(s, q->a, q->b);
    }
    st = FAIL(ERR_SELF, "a request that no worker knows: %d", (int)q->op);
done:
    return st;
}

/* The parent may be gone while a kernel runs that never ends: nobody would be left to kill this. */
static void *watch_parent(void *socket) {
    struct pollfd p = {.fd = *(const int *)socket, .events = POLLRDHUP};
    while (poll(&p, 1, -1) <= 0)
        ;
    _exit(0);
}

/* Answer requests until the other side is gone. */
static void worker_serve(int socket, int window, const struct backend_ops *ops) {
    struct server s = {.ops = ops, .window = {.fd = window}};
    struct worker_request request;
    pthread_t watch;
    if (pthread_create(&watch, NULL, watch_parent, &socket) != 0)
        return;
    while (message_receive(socket, &request, sizeof request)) {
        struct worker_reply reply = {0};
        reply.status = serve(&reply, &s, &request);
        reply.window = s.window.size;
        if (reply.status != OK)
            snprintf(reply.message, sizeof reply.message, "%s", status_message());
        if (!message_send(socket, &reply, sizeof reply))
            break;
    }
}

/* ---- start ---------------------------------------------------------------------------------------- */

/*
 * Before main, in every program with a cuda device: no program has to know of it, and fork alone
 * would hand the child the locks that its parent's other threads hold.
 */
__attribute__((constructor)) static void worker_start(void) {
    const char *fds = getenv(WORKER_VARIABLE);
    int socket, window;
    struct stat info;
    if (!fds || sscanf(fds, "%d,%d", &socket, &window) != 2 || fstat(socket, &info) != 0 ||
        !S_ISSOCK(info.st_mode))
        return;
    unsetenv(WORKER_VARIABLE);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is the parent's to answer; its end is seen on the socket */
    worker_serve(socket, window, &backend_driver);
    _exit(0);
}
