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

size_t worker_launch_size(const struct dev_entry *entry) {
    size_t size = size_align(sizeof(struct worker_launch), WORKER_ARG_ALIGN);
    for (size_t i = 0; i < entry->param_count; i++)
        size = size_align(size + entry->params[i].size, WORKER_ARG_ALIGN);
    return size;
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

/* The launch of e that stands at `from`; args has room for its arguments, which stay there. */
static struct dev_launch take_launch(const void **args, const struct dev_entry *e,
                                     const unsigned char *from) {
    struct worker_launch head;
    memcpy(&head, from, sizeof head);
    size_t at = size_align(sizeof head, WORKER_ARG_ALIGN);
    for (size_t i = 0; i < e->param_count; i++) {
        args[i] = from + at;
        at = size_align(at + e->params[i].size, WORKER_ARG_ALIGN);
    }
    struct dev_launch launch = {
        .entry = e->name,
        .dynamic_shared = head.dynamic_shared,
        .args = args,
        .arg_count = e->param_count,
    };
    memcpy(launch.grid, head.grid, sizeof launch.grid);
    memcpy(launch.block, head.block, sizeof launch.block);
    memcpy(launch.cluster, head.cluster, sizeof launch.cluster);
    return launch;
}

static status_t serve_launch(struct server *s, uint64_t id, uint64_t index) {
    status_t st = OK;
    const struct module *m = s->modules[id];
    const struct dev_entry *e = s->ops->entry(m, index);
    struct dev_run *run = calloc(1, sizeof *run);
    const void **args = calloc(e->param_count + 1, sizeof *args);
    if (!run || !args)
        TRY(FAIL(ERR_NOMEM, "no memory for a launch"));
    struct dev_launch launch = take_launch(args, e, s->window.bytes);
    TRY(s->ops->launch(run, s->backend, m, e, &launch));
    TRY(window_fit(&s->window, sizeof *run));
    memcpy(s->window.bytes, run, sizeof *run);
done:
    free(args);
    free(run);
    return st;
}

/* What serve_time unpacks. */
struct timed_launches {
    const struct module **modules;
    const struct dev_entry **entries;
    struct dev_launch *launches;
    const void **args;
    double *seconds;
};

static status_t take_launches(struct timed_launches *t, const struct server *s, size_t count) {
    size_t at = 0, arg_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct worker_timed which;
        memcpy(&which, s->window.bytes + at, sizeof which);
        t->modules[i] = s->modules[which.id];
        t->entries[i] = s->ops->entry(t->modules[i], which.index);
        arg_count += t->entries[i]->param_count;
        at += sizeof which + worker_launch_size(t->entries[i]);
    }
    t->args = calloc(arg_count + 1, sizeof *t->args);
    if (!t->args)
        return FAIL(ERR_NOMEM, "no memory for launches");
    at = arg_count = 0;
    for (size_t i = 0; i < count; i++) {
        at += sizeof(struct worker_timed);
        t->launches[i] = take_launch(t->args + arg_count, t->entries[i], s->window.bytes + at);
        arg_count += t->entries[i]->param_count;
        at += worker_launch_size(t->entries[i]);
    }
    return OK;
}

static status_t serve_time(struct server *s, size_t count, size_t group) {
    status_t st = OK;
    struct timed_launches t = {
        .modules = calloc(count + 1, sizeof *t.modules),
        .entries = calloc(count + 1, sizeof *t.entries),
        .launches = calloc(count + 1, sizeof *t.launches),
        .seconds = calloc(count + 1, sizeof *t.seconds),
    };
    if (!t.modules || !t.entries || !t.launches || !t.seconds)
        TRY(FAIL(ERR_NOMEM, "no memory for launches"));
    TRY(take_launches(&t, s, count));
    TRY(s->ops->time(t.seconds, s->backend, t.modules, t.entries, t.launches, count, group));
    TRY(window_fit(&s->window, count / group * sizeof *t.seconds));
    memcpy(s->window.bytes, t.seconds, count / group * sizeof *t.seconds);
done:
    free(t.modules);
    free(t.entries);
    free(t.launches);
    free(t.args);
    free(t.seconds);
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
    case WORKER_LAUNCH:
        return serve_launch(s, q->a, q->b);
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
