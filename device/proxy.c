/*
 * device/proxy.c - device cuda:N: every call is done by a child process (worker.h).
 *
 * A child that crashes, whose context a kernel's fault has ended, or that is not done in time is
 * killed; the launch that it was at reports it as the kernel's fault.  The next use starts another
 * child, and images are loaded into it anew when they are launched.  What the buffers held is lost:
 * they can only be freed, and nothing is allocated before they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/size.h"
#include "device/worker.h"

#define OPEN_SECONDS 120.0      /* a driver's start with many GPUs */
#define COPY_SECONDS 60.0       /* and the time that its bytes take */
#define LAUNCH_SECONDS 10.0     /* likewise */
#define SLOW_BYTES 1e8          /* per second: a copy or a pass over all buffers is never slower */
#define COMPILE_BYTES 1e4       /* of PTX per second, likewise; ptxas takes over 1e5 */
#define END_SECONDS 10.0        /* until a killed child is given up as one more zombie */
#define HANGS 3                 /* after so many, an entry is not launched any more */
#define CHUNK ((size_t)8 << 20) /* bytes copied at a time */

extern char **environ;

struct region {
    uint64_t address;
    size_t size;
};

struct backend {
    char rest[64];
    double launch_seconds;
    pid_t child; /* 0: none */
    int socket;
    struct window window;
    unsigned generation; /* of children; 0: none so far */
    struct region *regions;
    size_t region_count, bytes; /* live ones; bytes in all */
    size_t lost;                /* regions that died with a child and are still held */
};

struct module {
    struct backend *backend;
    char *label, *text;
    size_t size;
    unsigned generation; /* of the child that has it */
    uint64_t id;
    size_t count;
    struct dev_entry *entries;
    unsigned *hangs;
};

/* ---- the child ------------------------------------------------------------------------------------ */

static double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Wait for the child's end; false after `seconds`.  *how: as waitpid says. */
static bool wait_end(int *how, pid_t child, double seconds) {
    double limit = now_seconds() + seconds;
    struct timespec pause = {.tv_nsec = 50000};
    *how = 0;
    for (;;) {
        pid_t pid = waitpid(child, how, WNOHANG);
        if (pid == child || (pid < 0 && errno != EINTR))
            return true;
        if (now_seconds() >= limit)
            return false;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 10000000)
            pause.tv_nsec *= 2;
    }
}

/* End the child: by itself within `seconds` (how it went: *how), else killed (*how is 0). */
static void end_child(int *how, struct backend *b, double seconds) {
    int killed;
    *how = 0;
    if (!b->child)
        return;
    close(b->socket); /* a child at rest ends by itself */
    if (!wait_end(how, b->child, seconds)) {
        *how = 0;
        kill(b->child, SIGKILL);
        wait_end(&killed, b->child, END_SECONDS);
    }
    b->child = 0;
    b->socket = -1;
    b->lost += b->region_count;
    b->region_count = b->bytes = 0;
    window_close(&b->window);
}

static void kill_child(struct backend *b) {
    int how;
    end_child(&how, b, 0);
}

/* The environment with one more variable; free it. */
static char **environment_with(char *variable) {
    size_t n = 0;
    while (environ[n])
        n++;
    char **out = calloc(n + 2, sizeof *out);
    if (!out)
        return NULL;
    memcpy(out, environ, n * sizeof *out);
    out[n] = variable;
    return out;
}

static status_t spawn(struct backend *b) {
    status_t st = OK;
    int ends[2] = {-1, -1}, error = 0;
    char variable[64], program[] = "assay-cuda-worker";
    char *argv[] = {program, NULL}, **environment = NULL;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    b->window = (struct window){.fd = memfd_create("assay-cuda-window", MFD_CLOEXEC)};
    if (b->window.fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        TRY(FAIL(ERR_DEVICE, "cuda: no connection to a child process: %s", strerror(errno)));
    snprintf(variable, sizeof variable, WORKER_VARIABLE "=%d,%d", ends[1], b->window.fd);
    environment = environment_with(variable);
    if (!environment)
        TRY(FAIL(ERR_NOMEM, "no memory for a child process"));
    /* A descriptor put onto itself stays open in the child (posix_spawn, POSIX.1-2024). */
    error = posix_spawn_file_actions_adddup2(&actions, ends[1], ends[1]);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, b->window.fd, b->window.fd);
    if (!error)
        error = posix_spawn(&b->child, "/proc/self/exe", &actions, NULL, argv, environment);
    if (error) {
        b->child = 0;
        TRY(FAIL(ERR_DEVICE, "cuda: no child process: %s", strerror(error)));
    }
    b->socket = ends[0];
    ends[0] = -1;
    b->generation++;
done:
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    if (st != OK)
        window_close(&b->window);
    free(environment);
    posix_spawn_file_actions_destroy(&actions);
    return st;
}

/* A child that could not answer. */
struct loss {
    bool lost, late;
    char text[96]; /* what became of it */
};

static void lose(struct loss *loss, struct backend *b, double seconds) {
    int how;
    size_t size = sizeof loss->text;
    loss->lost = true;
    end_child(&how, b, loss->late ? 0 : 1);
    if (loss->late)
        snprintf(loss->text, size, "not done after %.3g s", seconds);
    else if (how && WIFSIGNALED(how))
        snprintf(loss->text, size, "the driver's process died of signal %d", WTERMSIG(how));
    else if (how && WIFEXITED(how))
        snprintf(loss->text, size, "the driver's process ended with code %d", WEXITSTATUS(how));
    else
        snprintf(loss->text, size, "the driver's process went silent");
}

/*
 * One request and its reply.  ERR_DEVICE, and no child any more, when it is not done after `seconds`
 * or is gone (*loss), or when the driver reports what it does not recover from.
 */
static status_t ask(struct worker_reply *reply, struct loss *loss, struct backend *b,
                    struct worker_request request, double seconds) {
    double limit = now_seconds() + seconds;
    bool ready = false;
    *loss = (struct loss){0};
    request.window = b->window.size;
    bool sent = message_send(b->socket, &request, sizeof request);
    while (sent && !ready && !loss->late) {
        struct pollfd p = {.fd = b->socket, .events = POLLIN};
        double left = limit - now_seconds();
        ready = poll(&p, 1, left > 0 ? (int)(left < 1e6 ? left * 1e3 + 1 : 1e9) : 0) > 0;
        loss->late = !ready && left <= 0;
    }
    if (!ready || !message_receive(b->socket, reply, sizeof *reply)) {
        lose(loss, b, seconds);
        return FAIL(ERR_DEVICE, "cuda: %s", loss->text);
    }
    if (reply->status == OK)
        return window_fit(&b->window, reply->window);
    if (reply->status == ERR_DEVICE) /* in what state it is, nobody knows */
        kill_child(b);
    reply->message[sizeof reply->message - 1] = '\0';
    return FAIL(reply->status, "%s", reply->message);
}

static status_t ask_simply(struct worker_reply *reply, struct backend *b,
                           struct worker_request request, size_t bytes) {
    struct loss loss;
    return ask(reply, &loss, b, request, COPY_SECONDS + (double)bytes / SLOW_BYTES);
}

/* A child that has opened the device. */
static status_t start(struct backend *b, struct device_info *info) {
    status_t st = OK;
    struct worker_reply reply;
    struct loss loss;
    TRY(spawn(b));
    TRY(window_fit(&b->window, sizeof *info > sizeof b->rest ? sizeof *info : sizeof b->rest));
    memcpy(b->window.bytes, b->rest, sizeof b->rest);
    TRY(ask(&reply, &loss, b, (struct worker_request){.op = WORKER_OPEN}, OPEN_SECONDS));
    memcpy(info, b->window.bytes, sizeof *info);
done:
    if (st != OK)
        kill_child(b);
    return st;
}

static status_t ensure(struct backend *b) {
    struct device_info info;
    if (b->child)
        return OK;
    return start(b, &info);
}

static void proxy_close(struct backend *b) {
    if (!b)
        return;
    int how;
    end_child(&how, b, END_SECONDS);
    free(b->regions);
    free(b);
}

static status_t proxy_open(struct backend **out, struct device_info *info, const char *rest,
                           const struct device_options *opt) {
    status_t st = OK;
    const char *variable = getenv("ASSAY_LAUNCH_SECONDS");
    *out = NULL;
    struct backend *b = calloc(1, sizeof *b);
    if (!b)
        return FAIL(ERR_NOMEM, "no memory for a device");
    b->socket = b->window.fd = -1;
    snprintf(b->rest, sizeof b->rest, "%s", rest);
    b->launch_seconds = opt->launch_seconds;
    if (b->launch_seconds == 0 && variable) {
        char *end;
        b->launch_seconds = strtod(variable, &end);
        if (end == variable || *end || !(b->launch_seconds > 0) || b->launch_seconds > 1e6)
            TRY(FAIL(ERR_USAGE,
                     "ASSAY_LAUNCH_SECONDS is '%s': seconds, over 0 to 1e6, were expected",
                     variable));
    }
    if (b->launch_seconds == 0)
        b->launch_seconds = LAUNCH_SECONDS;
    TRY(start(b, info));
    *out = b;
    b = NULL;
done:
    proxy_close(b);
    return st;
}

/* ---- images --------------------------------------------------------------------------------------- */

static void free_entries(struct dev_entry *entries, size_t count) {
    for (size_t i = 0; entries && i < count; i++) {
        free((char *)entries[i].name);
        free((void *)entries[i].params);
    }
    free(entries);
}

static void proxy_unload(struct module *m) {
    struct worker_reply reply;
    if (!m)
        return;
    struct backend *b = m->backend;
    if (b->child && m->generation == b->generation &&
        ask_simply(&reply, b, (struct worker_request){.op = WORKER_UNLOAD, .a = m->id}, 0) != OK)
        kill_child(b);
    free_entries(m->entries, m->count);
    free(m->hangs);
    free(m->label);
    free(m->text);
    free(m);
}

static status_t take_entries(struct module *m) {
    const unsigned char *at = m->backend->window.bytes;
    memcpy(&m->count, at, sizeof m->count);
    at += sizeof m->count;
    m->entries = calloc(m->count + 1, sizeof *m->entries);
    m->hangs = calloc(m->count + 1, sizeof *m->hangs);
    if (!m->entries || !m->hangs)
        return FAIL(ERR_NOMEM, "no memory for an image");
    for (size_t i = 0; i < m->count; i++) {
        struct dev_entry *e = &m->entries[i];
        struct worker_entry head;
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        size_t params = head.param_count * sizeof *e->params;
        e->name = strdup((const char *)at);
        e->params = malloc(params + 1);
        if (!e->name || !e->params)
            return FAIL(ERR_NOMEM, "no memory for an image");
        at += head.name_size;
        memcpy((void *)e->params, at, params);
        at += params;
        e->param_count = head.param_count;
        e->static_shared = head.static_shared;
        e->max_threads = head.max_threads;
        e->ambiguous = head.ambiguous;
        e->ambiguous_line = head.ambiguous_line;
        memcpy(e->cluster, head.cluster, sizeof e->cluster);
        e->needs_cluster = head.needs_cluster;
    }
    return OK;
}

/* Load m's text into the child of today. */
static status_t load_text(struct module *m) {
    status_t st = OK;
    struct backend *b = m->backend;
    struct worker_reply reply;
    struct loss loss;
    size_t label_size = strlen(m->label);
    TRY(ensure(b));
    TRY(window_fit(&b->window, label_size + m->size));
    memcpy(b->window.bytes, m->label, label_size);
    memcpy(b->window.bytes + label_size, m->text, m->size);
    TRY(ask(&reply, &loss, b,
            (struct worker_request){.op = WORKER_LOAD, .a = label_size, .b = m->size},
            COPY_SECONDS + (double)m->size / COMPILE_BYTES));
    m->id = reply.value;
    m->generation = b->generation;
done:
    return st;
}

static status_t proxy_load(struct module **out, struct backend *b, const char *label,
                           const void *text, size_t size) {
    status_t st = OK;
    *out = NULL;
    struct module *m = calloc(1, sizeof *m);
    if (!m)
        return FAIL(ERR_NOMEM, "no memory for an image");
    m->backend = b;
    m->size = size;
    m->label = strdup(label);
    m->text = malloc(size + 1);
    if (!m->label || !m->text)
        TRY(FAIL(ERR_NOMEM, "no memory for an image"));
    memcpy(m->text, text, size);
    TRY(load_text(m));
    TRY(take_entries(m));
    *out = m;
    m = NULL;
done:
    proxy_unload(m);
    return st;
}

static size_t proxy_entry_count(const struct module *m) {
    return m->count;
}

static const struct dev_entry *proxy_entry(const struct module *m, size_t i) {
    return &m->entries[i];
}

/* ---- memory --------------------------------------------------------------------------------------- */

static status_t proxy_alloc(uint64_t *address, struct backend *b, size_t size) {
    status_t st = OK;
    struct worker_reply reply;
    if (b->lost)
        return FAIL(ERR_DEVICE, "cuda: %zu buffers that an earlier fault ended are still held",
                    b->lost);
    struct region *regions = realloc(b->regions, (b->region_count + 1) * sizeof *regions);
    if (!regions)
        return FAIL(ERR_NOMEM, "no memory for a buffer");
    b->regions = regions;
    TRY(ensure(b));
    TRY(ask_simply(&reply, b, (struct worker_request){.op = WORKER_ALLOC, .a = size}, size));
    *address = reply.value;
    b->regions[b->region_count++] = (struct region){*address, size};
    b->bytes += size;
done:
    return st;
}

static void proxy_release(struct backend *b, uint64_t address) {
    struct worker_reply reply;
    size_t i = 0;
    if (b->lost) { /* nothing was allocated since: it is one of them */
        b->lost--;
        return;
    }
    while (i < b->region_count && b->regions[i].address != address)
        i++;
    if (i == b->region_count)
        return;
    b->bytes -= b->regions[i].size;
    b->regions[i] = b->regions[--b->region_count];
    if (ask_simply(&reply, b, (struct worker_request){.op = WORKER_RELEASE, .a = address}, 0) != OK)
        kill_child(b);
}

static void proxy_declare(struct backend *b, uint64_t address, size_t size) {
    (void)b; /* the hardware checks pages, not buffers: guards are compared instead */
    (void)address;
    (void)size;
}

static status_t copy(struct backend *b, enum worker_op op, uint64_t address, void *to,
                     const void *from, size_t size) {
    status_t st = OK;
    struct worker_reply reply;
    for (size_t done = 0, n; done < size; done += n) {
        n = size - done < CHUNK ? size - done : CHUNK;
        if (!b->child)
            return FAIL(ERR_DEVICE, "cuda: an earlier fault ended this buffer");
        TRY(window_fit(&b->window, n));
        if (from)
            memcpy(b->window.bytes, (const char *)from + done, n);
        TRY(ask_simply(&reply, b, (struct worker_request){op, address + done, n, 0}, n));
        if (to)
            memcpy((char *)to + done, b->window.bytes, n);
    }
done:
    return st;
}

static status_t proxy_write(struct backend *b, uint64_t address, const void *src, size_t size) {
    return copy(b, WORKER_WRITE, address, NULL, src, size);
}

static status_t proxy_read(void *dst, struct backend *b, uint64_t address, size_t size) {
    return copy(b, WORKER_READ, address, dst, NULL, size);
}

static status_t proxy_set(struct backend *b, uint64_t address, uint8_t byte, size_t size) {
    status_t st = OK;
    struct worker_reply reply;
    if (!b->child)
        return FAIL(ERR_DEVICE, "cuda: an earlier fault ended this buffer");
    TRY(window_fit(&b->window, 1));
    b->window.bytes[0] = byte;
    TRY(ask_simply(&reply, b, (struct worker_request){WORKER_SET, address, size, 0}, size));
done:
    return st;
}

static status_t proxy_tensor_map(uint8_t out[DEV_TENSOR_MAP_BYTES], struct backend *b,
                                 const struct dev_tensor_map *map) {
    status_t st = OK;
    struct worker_reply reply;
    size_t size = sizeof *map > DEV_TENSOR_MAP_BYTES ? sizeof *map : DEV_TENSOR_MAP_BYTES;
    TRY(ensure(b));
    TRY(window_fit(&b->window, size));
    memcpy(b->window.bytes, map, sizeof *map);
    TRY(ask_simply(&reply, b, (struct worker_request){.op = WORKER_TENSOR_MAP}, 0));
    memcpy(out, b->window.bytes, DEV_TENSOR_MAP_BYTES);
done:
    return st;
}

/* ---- launches ------------------------------------------------------------------------------------- */

static void record_fault(struct dev_run *run, const struct dev_entry *entry, const char *text) {
    struct dev_fault *f = &run->faults[0];
    *run = (struct dev_run){.fault_count = 1, .fault_total = 1};
    f->kind = FAULT_DEVICE;
    snprintf(f->kernel, sizeof f->kernel, "%s", entry->name);
    snprintf(f->text, sizeof f->text, "%.100s: %.100s", entry->name, text);
}

/* A launch as it stands in the window from *at on; then *at is where it ends. */
static status_t put_launch(struct backend *b, size_t *at, const struct module *m,
                           const struct dev_entry *entry, const struct dev_launch *l) {
    struct worker_launch head = {
        .id = m->id,
        .index = (uint64_t)(entry - m->entries),
        .dynamic_shared = l->dynamic_shared,
    };
    size_t end = size_align(*at + sizeof head, WORKER_ARG_ALIGN);
    for (size_t i = 0; i < entry->param_count; i++)
        end = size_align(end + entry->params[i].size, WORKER_ARG_ALIGN);
    status_t st = window_fit(&b->window, end);
    if (st != OK)
        return st;
    memcpy(head.grid, l->grid, sizeof head.grid);
    memcpy(head.block, l->block, sizeof head.block);
    memcpy(head.cluster, l->cluster, sizeof head.cluster);
    memcpy(b->window.bytes + *at, &head, sizeof head);
    *at = size_align(*at + sizeof head, WORKER_ARG_ALIGN);
    for (size_t i = 0; i < entry->param_count; i++) {
        memcpy(b->window.bytes + *at, l->args[i], entry->params[i].size);
        *at = size_align(*at + entry->params[i].size, WORKER_ARG_ALIGN);
    }
    return OK;
}

/* A child that has the image. */
static status_t ready(struct backend *b, const struct module *m) {
    status_t st = OK;
    if (b->lost)
        return FAIL(ERR_DEVICE, "cuda: an earlier fault ended the buffers of this launch");
    TRY(ensure(b));
    if (m->generation != b->generation) /* loaded anew, it is the same image */
        TRY(load_text((struct module *)(uintptr_t)m));
done:
    return st;
}

static status_t proxy_launch(struct dev_run *run, struct backend *b, const struct module *m,
                             const struct dev_entry *entry, const struct dev_launch *l) {
    status_t st = OK;
    unsigned *hangs = &m->hangs[entry - m->entries];
    size_t at = 0;
    struct worker_reply reply;
    struct loss loss;
    if (*hangs == HANGS) {
        record_fault(run, entry, "not launched again: it has hung too often");
        return OK;
    }
    TRY(ready(b, m));
    TRY(put_launch(b, &at, m, entry, l));
    double seconds = b->launch_seconds + (double)b->bytes / SLOW_BYTES;
    st = ask(&reply, &loss, b, (struct worker_request){.op = WORKER_LAUNCH}, seconds);
    if (loss.lost) {
        *hangs += loss.late;
        record_fault(run, entry, loss.text);
        return OK;
    }
    TRY(st);
    memcpy(run, b->window.bytes, sizeof *run);
    if (!run->completed) /* the fault ended its context */
        kill_child(b);
done:
    return st;
}

static status_t proxy_time(double *seconds, struct backend *b, const struct module *const *modules,
                           const struct dev_entry *const *entries,
                           const struct dev_launch *launches, size_t count, size_t group) {
    status_t st = OK;
    size_t at = 0;
    struct worker_reply reply;
    struct loss loss;
    for (size_t i = 0; i < count; i++) /* which needs the window for itself */
        TRY(ready(b, modules[i]));
    for (size_t i = 0; i < count; i++)
        TRY(put_launch(b, &at, modules[i], entries[i], &launches[i]));
    TRY(ask(&reply, &loss, b, (struct worker_request){.op = WORKER_TIME, .a = count, .b = group},
            b->launch_seconds + (double)count * (double)b->bytes / SLOW_BYTES));
    memcpy(seconds, b->window.bytes, count / group * sizeof *seconds);
done:
    return st;
}

const struct backend_ops backend_cuda = {
    .scheme = "cuda",
    .open = proxy_open,
    .close = proxy_close,
    .load = proxy_load,
    .unload = proxy_unload,
    .entry_count = proxy_entry_count,
    .entry = proxy_entry,
    .alloc = proxy_alloc,
    .release = proxy_release,
    .declare = proxy_declare,
    .write = proxy_write,
    .read = proxy_read,
    .set = proxy_set,
    .launch = proxy_launch,
    .tensor_map = proxy_tensor_map,
    .time = proxy_time,
};
