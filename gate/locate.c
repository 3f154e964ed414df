/* gate/locate.c - see locate.h. */
#include "gate/locate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/judge.h"

#define NOTES_BYTES ((size_t)64 << 20)
#define MAX_RECORDS ((uint64_t)1 << 16) /* of a thread in one run */
#define MAX_RUNS 64
#define UNWRITTEN UINT32_MAX

/* Run all launches; what they give is the watch's to see.  false: a launch did not end well. */
static status_t run_all(bool *completed, struct loaded_kernel *lk, const struct test_case *c) {
    const struct kernel *kernel = loaded_kernel_of(lk);
    struct kernel_result *result = calloc(1, sizeof *result);
    struct tensor_block outputs;
    struct kernel_io io = {.dims = c->dims, .x = c->x};
    status_t st = OK;
    *completed = true;
    TRY(kernel_outputs(&outputs, kernel, c->dims, NULL));
    io.y = calloc(outputs.bytes + 1, 1);
    if (!result || !io.y)
        TRY(FAIL(ERR_NOMEM, "no memory to run %s again", kernel->name));
    TRY(kernel_run(result, lk, &io));
    for (size_t i = 0; i < result->run_count; i++)
        *completed = *completed && result->runs[i].completed;
done:
    free(io.y);
    free(result);
    return st;
}

static status_t run_watched(bool *completed, struct device *dev, const struct kernel *kernel,
                            const struct test_case *c, const char *text, size_t size,
                            const struct dev_watch *watch) {
    struct loaded_kernel *lk = NULL;
    status_t st = kernel_load_text(&lk, dev, kernel, text, size);
    if (st != OK)
        return st;
    device_watch(dev, watch);
    st = run_all(completed, lk, c);
    device_watch(dev, NULL);
    kernel_unload(lk);
    return st;
}

/* ---- the launch and the element ---------------------------------------------------------------- */

struct snapshot {
    uint8_t *bytes;
    size_t size;
};

struct launched {
    char entry[128];
    unsigned block[3];
    size_t count; /* of its buffers */
    struct snapshot *buffers;
};

struct history {
    size_t count;
    struct launched launches[KERNEL_MAX_LAUNCHES];
};

static void history_clear(struct history *h) {
    for (size_t i = 0; i < h->count; i++) {
        for (size_t k = 0; k < h->launches[i].count; k++)
            free(h->launches[i].buffers[k].bytes);
        free(h->launches[i].buffers);
    }
    *h = (struct history){0};
}

static status_t keep_buffers(void *context, bool done, const struct dev_launch *launch,
                             struct dev_buf *const *buffers, size_t count) {
    struct history *h = context;
    status_t st = OK;
    if (!done || h->count == KERNEL_MAX_LAUNCHES)
        return OK;
    struct launched *l = &h->launches[h->count];
    l->buffers = calloc(count + 1, sizeof *l->buffers);
    if (!l->buffers)
        return FAIL(ERR_NOMEM, "no memory for a launch's buffers");
    h->count++;
    snprintf(l->entry, sizeof l->entry, "%s", launch->entry);
    memcpy(l->block, launch->block, sizeof l->block);
    for (; l->count < count; l->count++) {
        struct snapshot *s = &l->buffers[l->count];
        s->size = buffer_size(buffers[l->count]);
        s->bytes = malloc(s->size + 1);
        if (!s->bytes)
            return FAIL(ERR_NOMEM, "no memory for a launch's buffers");
        st = buffer_read(s->bytes, buffers[l->count], s->size);
        if (st != OK) {
            free(s->bytes);
            return st;
        }
    }
    return st;
}

static void compare_histories(struct difference *out, const struct history *a,
                              const struct history *b) {
    out->launch_count = a->count;
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const struct launched *l = &a->launches[i], *m = &b->launches[i];
        for (size_t k = 0; k < l->count && k < m->count; k++) {
            const struct snapshot *s = &l->buffers[k], *t = &m->buffers[k];
            if (s->size != t->size || memcmp(s->bytes, t->bytes, s->size) == 0)
                continue;
            out->launch_known = true;
            out->launch = i;
            snprintf(out->entry, sizeof out->entry, "%s", l->entry);
            out->buffer = k;
            while (s->bytes[out->offset] == t->bytes[out->offset])
                out->offset++;
            return;
        }
    }
}

/* ---- probes ---------------------------------------------------------------------------------------- */

/* One run of a probe: its buffer is the oldest, so the kernel's own begin at buffers[1]. */
struct probing {
    const struct difference *at;
    struct dev_buf *notes;
    size_t launch;                /* number of the next one */
    bool trace;                   /* else: who writes */
    struct probe_writer writer;   /* result; line UNWRITTEN: nobody */
    struct probe_record *records; /* result of a trace; owned */
};

static status_t probe_step(void *context, bool done, const struct dev_launch *launch,
                           struct dev_buf *const *buffers, size_t count) {
    struct probing *p = context;
    status_t st = OK;
    bool mine = p->launch == p->at->launch;
    (void)launch;
    p->launch += done;
    if (p->trace && mine)
        return done ? buffer_read(p->records, p->notes, buffer_size(p->notes))
                    : buffer_poison(p->notes);
    if (p->trace)
        return OK;
    if (!done) {
        uint64_t head[4] = {0, 0, UINT64_MAX, UINT64_MAX};
        if (mine && p->at->buffer + 1 < count)
            head[0] = buffer_address(buffers[p->at->buffer + 1]) + p->at->offset;
        return buffer_write(p->notes, head, sizeof head);
    }
    if (mine) {
        uint8_t head[PROBE_WRITER_OFFSET + sizeof p->writer];
        TRY(buffer_read(head, p->notes, sizeof head));
        memcpy(&p->writer, head + PROBE_WRITER_OFFSET, sizeof p->writer);
    }
done:
    return st;
}

struct subject {
    const struct kernel *kernel;
    const struct test_case *c;
    const char *text;
    size_t size;
};

static status_t probe_run(struct probing *p, bool *completed, const struct subject *s,
                          struct device *dev, struct probe *probe, size_t notes_bytes) {
    status_t st = OK;
    char *text = NULL;
    size_t size;
    const struct dev_watch watch = {probe_step, p};
    TRY(device_alloc(&p->notes, dev, notes_bytes));
    probe->notes = buffer_address(p->notes);
    TRY(p->trace ? ptx_probe_trace(&text, &size, s->text, s->size, probe)
                 : ptx_probe_writers(&text, &size, s->text, s->size, probe));
    TRY(run_watched(completed, dev, s->kernel, s->c, text, size, &watch));
done:
    free(text);
    buffer_free(p->notes);
    p->notes = NULL;
    return st;
}

static status_t find_writer(struct difference *d, const struct subject *s, struct device *dev,
                            bool *found) {
    struct probe probe = {.entry = d->entry};
    struct probing p = {.at = d, .writer = {.line = UNWRITTEN}};
    bool completed;
    status_t st = probe_run(&p, &completed, s, dev, &probe, PROBE_WRITER_OFFSET + sizeof p.writer);
    *found = st == OK && completed && p.writer.line != UNWRITTEN;
    if (*found)
        memcpy(d->block, p.writer.block, sizeof d->block);
    return st;
}

/* ---- the instruction --------------------------------------------------------------------------------- */

static bool same_result(const struct probe_record *a, const struct probe_record *b) {
    uint64_t mask = a->width < 64 ? ((uint64_t)1 << a->width) - 1 : UINT64_MAX;
    return a->line == b->line && (a->line == UNWRITTEN || ((a->bits ^ b->bits) & mask) == 0);
}

/* 0: the instruction's own doing; 1: it comes from elsewhere; 2: the threads went other ways. */
static int rank_of(const struct probe_record *a, const struct probe_record *b,
                   const struct ptx_place *place) {
    return a->line != b->line ? 2 : place->foreign ? 1 : 0;
}

/* The best first difference of all threads in this window; *more: some thread went on beyond it. */
static void compare_records(struct difference *d, bool *more, const struct probe_record *a,
                            const struct probe_record *b, const struct probe *probe,
                            const unsigned shape[3], const struct subject *s) {
    size_t threads = (size_t)shape[0] * shape[1] * shape[2];
    int best = 3;
    struct ptx_place place = {0};
    unsigned place_line = 0;
    *more = false;
    for (size_t t = 0; t < threads; t++, a += probe->count, b += probe->count) {
        uint64_t k = 0;
        while (k < probe->count && a[k].line != UNWRITTEN && same_result(&a[k], &b[k]))
            k++;
        *more = *more || k == probe->count;
        if (k == probe->count || same_result(&a[k], &b[k]))
            continue;
        unsigned line = a[k].line != UNWRITTEN ? a[k].line : b[k].line;
        if (line != place_line)
            ptx_place(&place, s->text, s->size, place_line = line);
        int rank = rank_of(&a[k], &b[k], &place);
        if (rank > best || (rank == best && probe->first + k >= d->before))
            continue;
        best = rank;
        d->insn_known = true;
        d->thread[0] = (unsigned)(t % shape[0]);
        d->thread[1] = (unsigned)(t / shape[0] % shape[1]);
        d->thread[2] = (unsigned)(t / shape[0] / shape[1]);
        d->line = line;
        d->there_line = b[k].line;
        d->place = place;
        d->before = probe->first + k;
        d->width = a[k].line != UNWRITTEN ? a[k].width : b[k].width;
        d->here = a[k].bits;
        d->there = b[k].bits;
    }
}

static status_t find_insn(struct difference *d, const struct subject *s, struct device *here,
                          struct device *there, const unsigned shape[3]) {
    size_t threads = (size_t)shape[0] * shape[1] * shape[2];
    uint64_t room = NOTES_BYTES / (threads * sizeof(struct probe_record));
    struct probe probe = {.entry = d->entry, .count = room < MAX_RECORDS ? room : MAX_RECORDS};
    size_t bytes = threads * probe.count * sizeof(struct probe_record);
    struct probing a = {.at = d, .trace = true}, b = a;
    bool more = true, completed;
    status_t st = OK;
    memcpy(probe.block, d->block, sizeof probe.block);
    a.records = malloc(bytes);
    b.records = malloc(bytes);
    if (!a.records || !b.records)
        TRY(FAIL(ERR_NOMEM, "no memory for the results of %zu threads", threads));
    for (int run = 0; more && !d->insn_known && run < MAX_RUNS; run++) {
        a.launch = b.launch = 0;
        TRY(probe_run(&a, &completed, s, here, &probe, bytes));
        if (completed)
            TRY(probe_run(&b, &completed, s, there, &probe, bytes));
        if (!completed) {
            snprintf(d->reason, sizeof d->reason, "a run that noted down results did not complete");
            goto done;
        }
        compare_records(d, &more, a.records, b.records, &probe, shape, s);
        probe.first += probe.count;
    }
    if (!d->insn_known)
        snprintf(d->reason, sizeof d->reason,
                 "no result that is noted down differs in block %u,%u,%u%s", d->block[0],
                 d->block[1], d->block[2], more ? ", as far as was looked" : "");
done:
    free(a.records);
    free(b.records);
    return st;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

status_t twin_locate(struct difference *out, const struct kernel *kernel, struct device *here,
                     struct device *there, const struct test_case *c) {
    struct subject s = {.kernel = kernel, .c = c};
    char *text = NULL;
    struct history a = {0}, b = {0};
    const struct dev_watch watch_a = {keep_buffers, &a}, watch_b = {keep_buffers, &b};
    bool completed, found = false;
    status_t st = OK;
    *out = (struct difference){0};
    TRY(kernel_text(&text, &s.size, kernel));
    s.text = text;
    TRY(run_watched(&completed, here, kernel, c, s.text, s.size, &watch_a));
    TRY(run_watched(&completed, there, kernel, c, s.text, s.size, &watch_b));
    compare_histories(out, &a, &b);
    if (!out->launch_known) {
        snprintf(out->reason, sizeof out->reason, "no buffer differs when the case runs again");
        goto done;
    }
    if (memchr(s.text, '\0', s.size)) {
        snprintf(out->reason, sizeof out->reason, "the image is no PTX text");
        goto done;
    }
    TRY(find_writer(out, &s, here, &found));
    if (!found)
        TRY(find_writer(out, &s, there, &found));
    if (found)
        TRY(find_insn(out, &s, here, there, a.launches[out->launch].block));
    else
        snprintf(out->reason, sizeof out->reason, "no store to that place was seen");
done:
    history_clear(&a);
    history_clear(&b);
    free(text);
    return st;
}

/* ---- words ------------------------------------------------------------------------------------------------ */

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void text_of_result(char *out, size_t size, uint64_t bits, unsigned width) {
    uint64_t mask = width < 64 ? ((uint64_t)1 << width) - 1 : UINT64_MAX;
    snprintf(out, size, "0x%0*" PRIx64, width < 4 ? 1 : (int)(width / 4), bits & mask);
}

void text_of_difference(char *out, size_t size, const struct difference *d,
                        const struct kernel *kernel, const char *here, const char *there) {
    char a[32], b[32], source[128] = "";
    size_t n = 0;
    out[0] = '\0';
    if (d->launch_known)
        n = (size_t)snprintf(out, size,
                             "first differing launch: %zu of %zu, entry %s, byte %" PRIu64
                             " of buffer %zu\n",
                             d->launch + 1, d->launch_count, d->entry, d->offset, d->buffer);
    if (n >= size)
        return;
    if (!d->insn_known) {
        snprintf(out + n, size - n, "first differing instruction: not found: %s\n", d->reason);
        return;
    }
    if (d->place.source[0])
        snprintf(source, sizeof source, " (%s:%u)", last_part(d->place.source),
                 d->place.source_line);
    n += (size_t)snprintf(
        out + n, size - n,
        "first differing instruction: %s:%u%s `%s` block %u,%u,%u thread %u,%u,%u, "
        "after %" PRIu64 " results: ",
        last_part(kernel->image), d->line, source, d->place.text, d->block[0], d->block[1],
        d->block[2], d->thread[0], d->thread[1], d->thread[2], d->before);
    if (n >= size)
        return;
    text_of_result(a, sizeof a, d->here, d->width);
    text_of_result(b, sizeof b, d->there, d->width);
    if (d->line == d->there_line)
        snprintf(out + n, size - n, "%s=%s %s=%s\n", here, a, there, b);
    else
        snprintf(out + n, size - n, "%s is elsewhere by then\n", there);
}
