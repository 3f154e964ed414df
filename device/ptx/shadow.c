/*
 * shadow.c - what the bytes of a kernel's memory know: ever written, and by whom touched last.
 *
 * Time is a count of synchronisation events of the device.  Every 4 bytes keep the time and thread
 * of the last write and of two readers.  An access A of another thread comes before this one when
 *   - both are lanes of one warp and a bar.warp.sync or block barrier with both lies between;
 *   - both are warps of one block and block barriers order them (also through third warps);
 *   - a barrier of the cluster lies between: A's warp arrived after A, this one has waited;
 *   - A's block executed a fence after A and then an atomic or volatile access (a release), and
 *     this block has made an atomic or volatile access since (an acquire).  Which location carried
 *     the message is not asked, so this errs on the side of silence.
 * Otherwise two accesses of which one writes, unless both are atomic or volatile, are a race.
 * Volatile counts in global memory only (spin flags).  In shared memory it keeps the compiler from
 * holding a value in a register, but no lane waits for another: a warp reduction over volatile
 * shared memory needs its bar.warp.sync like any other.
 * Not reported: a write of the value that is already there after an unordered write (any order
 * gives the same memory).  shfl, vote, match and redux order no memory (PTX ISA 9.7.9.6).
 */
#include <stdlib.h>
#include <string.h>

#include "device/ptx/exec.h"

#define FAULT_LIMIT 65536 /* lanes at fault before a launch is stopped */

struct cell {
    uint32_t write_time, write_who;
    uint32_t read_time[2], read_who[2]; /* the latest reader, and another one before it */
    uint8_t write_mask, read_mask[2];   /* bytes of the word */
    uint8_t strong; /* bit 0: the write, 1 and 2: the reads are atomic or volatile */
};

/* ---- regions --------------------------------------------------------------------------------- */

size_t shadow_bytes(uint64_t size) {
    return (size_t)((size + 3) / 4 * (1 + sizeof(struct cell)));
}

status_t shadow_attach(struct region *r, bool races) {
    size_t words = (size_t)((r->size + 3) / 4);
    r->written = calloc(words + 1, 1);
    r->cells = races ? calloc(words + 1, sizeof *r->cells) : NULL;
    if (r->written && (r->cells || !races))
        return OK;
    shadow_detach(r);
    return FAIL(ERR_NOMEM, "no memory for the shadow of %llu bytes", (unsigned long long)r->size);
}

void shadow_detach(struct region *r) {
    free(r->written);
    free(r->cells);
    r->written = NULL;
    r->cells = NULL;
}

void shadow_forget(struct region *r) {
    if (r->cells)
        memset(r->cells, 0, (size_t)((r->size + 3) / 4) * sizeof *r->cells);
}

static uint8_t byte_mask(uint64_t at, uint64_t end) { /* bytes of at's word that lie before end */
    unsigned first = (unsigned)(at & 3);
    unsigned last = end - (at & ~(uint64_t)3) < 4 ? (unsigned)(end & 3) : 4;
    return (uint8_t)((0xfu >> (4 - last)) & (0xfu << first));
}

void shadow_mark(struct region *r, uint64_t at, uint64_t size, bool written) {
    uint64_t end = at + size;
    if (!r->written || !size)
        return;
    for (; at < end && ((at & 3) || end - at < 4); at = (at | 3) + 1) {
        uint8_t mask = byte_mask(at, end);
        r->written[at / 4] =
            written ? r->written[at / 4] | mask : r->written[at / 4] & (uint8_t)~mask;
    }
    if (at >= end)
        return;
    memset(r->written + at / 4, written ? 0xf : 0, (size_t)((end - at) / 4));
    if (end & 3)
        shadow_mark(r, end & ~(uint64_t)3, end & 3, written);
}

/* ---- releases -------------------------------------------------------------------------------- */

#define LOG_PER_BLOCK 1024
#define LOG_TOTAL (1u << 22)

struct release { /* accesses before `fence` are visible to who acquires at or after `time` */
    uint32_t fence, time, next;
};

struct release_head {
    uint64_t block; /* linear index + 1; 0: free */
    uint32_t last, count;
};

struct release_log {
    struct release *entry; /* entry 0 is the end of every list */
    size_t count, room;
    struct release_head *head; /* open addressing */
    size_t heads, head_room;
    bool full; /* something could not be kept: everything counts as ordered */
};

struct release_log *release_log_new(void) {
    struct release_log *log = calloc(1, sizeof *log);
    if (log)
        log->count = 1;
    return log;
}

void release_log_free(struct release_log *log) {
    if (!log)
        return;
    free(log->entry);
    free(log->head);
    free(log);
}

static struct release_head *find_head(const struct release_log *log, uint64_t block) {
    if (!log->head_room)
        return NULL;
    size_t i = (size_t)((block + 1) * 0x9e3779b97f4a7c15u >> 20) & (log->head_room - 1);
    while (log->head[i].block && log->head[i].block != block + 1)
        i = (i + 1) & (log->head_room - 1);
    return &log->head[i];
}

static bool grow_heads(struct release_log *log) {
    if (log->heads * 2 < log->head_room)
        return true;
    struct release_log bigger = *log;
    bigger.head_room = log->head_room ? log->head_room * 2 : 64;
    bigger.head = calloc(bigger.head_room, sizeof *bigger.head);
    if (!bigger.head)
        return false;
    for (size_t i = 0; i < log->head_room; i++)
        if (log->head[i].block)
            *find_head(&bigger, log->head[i].block - 1) = log->head[i];
    free(log->head);
    *log = bigger;
    return true;
}

static bool grow_entries(struct release_log *log) {
    if (log->count < log->room)
        return true;
    size_t room = log->room ? log->room * 2 : 256;
    struct release *entry = room <= LOG_TOTAL ? realloc(log->entry, room * sizeof *entry) : NULL;
    if (!entry)
        return false;
    log->entry = entry;
    log->room = room;
    return true;
}

static void log_release(struct release_log *log, uint64_t block, uint32_t fence, uint32_t time) {
    if (!grow_heads(log) || !grow_entries(log)) {
        log->full = true;
        return;
    }
    struct release_head *h = find_head(log, block);
    if (h->block && h->count >= LOG_PER_BLOCK) { /* an earlier time only silences */
        log->entry[h->last].fence = fence;
        return;
    }
    log->heads += !h->block;
    h->block = block + 1;
    log->entry[log->count] = (struct release){fence, time, h->last};
    h->last = (uint32_t)log->count++;
    h->count++;
}

/* Did `block` release accesses of time `at` no later than `acquired`? */
static bool was_released(const struct release_log *log, uint64_t block, uint32_t at,
                         uint32_t acquired) {
    if (log->full)
        return true;
    const struct release_head *h = acquired > at ? find_head(log, block) : NULL;
    if (!h || !h->block)
        return false;
    for (uint32_t i = h->last; i; i = log->entry[i].next)
        if (log->entry[i].fence >= at && log->entry[i].time <= acquired)
            return true;
    return false;
}

/* ---- synchronisation ------------------------------------------------------------------------- */

void shadow_warp_begin(struct warp *w) {
    memset(w->shadow, 0, sizeof *w->shadow);
}

/* What no access of the block up to then can race with: for the common case, one comparison. */
static void find_floor(struct warp *w) {
    struct warp_shadow *s = w->shadow;
    s->floor = s->sync_all;
    for (unsigned v = 0; v < w->block->warps; v++)
        if (v != w->index && s->knows[v] < s->floor)
            s->floor = s->knows[v];
}

/* The lanes join what they know of each other. */
void shadow_warp_sync(struct warp *w, uint32_t lanes) {
    struct warp_shadow *s = w->shadow;
    uint32_t now = (*w->launch->now)++;
    if (lanes == w->alive) {
        s->sync_all = now;
        find_floor(w);
        return;
    }
    for (unsigned j = 0; j < LANES; j++) {
        uint32_t joint = 0;
        FOR_LANES(i, lanes)
        joint = s->pair[i][j] > joint ? s->pair[i][j] : joint;
        if (lanes >> j & 1)
            joint = now;
        FOR_LANES(i, lanes)
        s->pair[i][j] = joint;
    }
}

void shadow_fence(struct warp *w) {
    w->shadow->fenced = (*w->launch->now)++;
}

void shadow_strong(struct warp *w) {
    struct warp_shadow *s = w->shadow;
    uint32_t now = (*w->launch->now)++;
    if (s->fenced) {
        log_release(w->launch->log, w->block->linear, s->fenced, now);
        s->fenced = 0;
    }
    s->acquired = now;
}

void shadow_barrier_arrive(struct barrier *bar, struct warp *w) {
    for (unsigned v = 0; v < w->block->warps; v++)
        if (w->shadow->knows[v] > bar->knows[v])
            bar->knows[v] = w->shadow->knows[v];
    if (w->shadow->acquired > bar->acquired)
        bar->acquired = w->shadow->acquired;
    if (w->shadow->cluster_phase > bar->cluster_phase)
        bar->cluster_phase = w->shadow->cluster_phase;
    bar->knows[w->index] = (*w->launch->now)++;
}

void shadow_barrier_leave(const struct barrier *bar, struct warp *w, uint32_t lanes) {
    for (unsigned v = 0; v < w->block->warps; v++)
        if (bar->knows[v] > w->shadow->knows[v])
            w->shadow->knows[v] = bar->knows[v];
    if (bar->acquired > w->shadow->acquired)
        w->shadow->acquired = bar->acquired;
    if (bar->cluster_phase > w->shadow->cluster_phase)
        w->shadow->cluster_phase = bar->cluster_phase;
    shadow_warp_sync(w, lanes);
}

void shadow_cluster_leave(struct warp *w, uint32_t lanes) {
    struct cluster *c = w->block->cluster;
    const uint32_t *knows = c->knows[(c->phase - 1) % 3] + w->block->rank * MAX_WARPS;
    w->shadow->cluster_phase = c->phase;
    for (unsigned v = 0; v < w->block->warps; v++)
        if (knows[v] > w->shadow->knows[v])
            w->shadow->knows[v] = knows[v];
    shadow_warp_sync(w, lanes);
}

/* ---- accesses -------------------------------------------------------------------------------- */

/* What all lanes of one instruction have in common. */
struct visit {
    struct warp *w;
    const struct xinsn *x;
    struct region *r;
    unsigned size;      /* bytes of one lane's access */
    uint32_t block_who; /* `who` of the block's thread 0 */
    uint32_t began, now;
    bool strong, writes, reads;
    const uint64_t
        *off; /* every lane's offset, when a store checks all lanes before it stores; or NULL */
    uint32_t lanes;
};

static struct visit visit_begin(struct warp *w, const struct xinsn *x, struct region *r,
                                unsigned size, enum access kind) {
    bool is_volatile = kind == ACCESS_STRONG_READ || kind == ACCESS_STRONG_WRITE;
    return (struct visit){
        .w = w,
        .x = x,
        .r = r,
        .size = size,
        .block_who = (uint32_t)(w->block->linear * w->block->threads),
        .began = r->owner ? r->owner->began : w->launch->began,
        .now = *w->launch->now,
        .strong = kind == ACCESS_ATOMIC || (is_volatile && (!r->owner || (x->flags & X_ORDERED))),
        .writes = kind == ACCESS_WRITE || kind == ACCESS_ATOMIC || kind == ACCESS_STRONG_WRITE,
        .reads = kind == ACCESS_READ || kind == ACCESS_ATOMIC || kind == ACCESS_STRONG_READ,
    };
}

/* Does a cluster barrier that this warp has waited for lie between? */
static bool before_cluster_barrier(const struct warp *w, uint32_t who, uint32_t at) {
    const struct cluster *c = w->block->cluster;
    uint32_t threads = w->block->threads, phase = w->shadow->cluster_phase;
    if (!phase)
        return false;
    for (unsigned i = 0; i < c->size; i++)
        if ((uint32_t)(c->block[i]->linear * threads) / threads == who / threads)
            return c->knows[(phase - 1) % 3][i * MAX_WARPS + who % threads / LANES] >= at;
    return false;
}

/* Does the access of another thread come before this one?  The cheap answers come first. */
static bool is_ordered_slow(const struct visit *v, unsigned lane, uint32_t who, uint32_t at) {
    const struct warp_shadow *s = v->w->shadow;
    uint32_t thread = who - v->block_who, threads = v->w->block->threads;
    if (thread < threads) {
        if (thread / LANES == v->w->index) {
            if (s->sync_all >= at || s->pair[lane][thread % LANES] >= at)
                return true;
        } else if (s->knows[thread / LANES] >= at) {
            return true;
        }
    }
    if (before_cluster_barrier(v->w, who, at))
        return true;
    return was_released(v->w->launch->log, who / threads, at, s->acquired);
}

static inline bool is_ordered(const struct visit *v, unsigned lane, uint32_t me, uint32_t who,
                              uint32_t at) {
    if (who == me || at < v->began)
        return true;
    if (at <= v->w->shadow->floor && who - v->block_who < v->w->block->threads)
        return true;
    return is_ordered_slow(v, lane, who, at);
}

static const char *region_name(const struct region *r) {
    return !r->owner ? "buffer" : r == &r->owner->local ? "local" : "shared";
}

static void report_race(const struct visit *v, unsigned lane, uint64_t at, uint32_t who,
                        bool other_wrote) {
    uint32_t threads = v->w->block->threads;
    fault_record(v->w, v->x, lane, FAULT_RACE, v->r->lo + at,
                 "%s %s offset %llu, which thread %u of block %u %s with no barrier between",
                 v->writes ? "writes" : "reads", region_name(v->r), (unsigned long long)at,
                 who % threads, who / threads, other_wrote ? "wrote" : "read");
}

/* 4 bytes of what a lane's store instruction writes. */
static uint32_t stored_word(const struct visit *v, unsigned lane, unsigned word) {
    const struct xinsn *x = v->x;
    return x->esize == 8 ? (uint32_t)(row64(v->w, x->list[word / 2])[lane] >> (32 * (word & 1)))
                         : row32(v->w, x->list[word])[lane];
}

/*
 * Does the store leave memory as the other thread's write made it?  When all lanes are checked
 * before any stores, an earlier lane of this very instruction has not stored yet: compare with its
 * value.
 */
static bool same_value(const struct visit *v, unsigned lane, uint32_t who, uint64_t at,
                       const uint8_t *value, unsigned bytes) {
    uint32_t other = who - v->block_who - v->w->index * LANES;
    if (v->off && other < lane && (v->lanes >> other & 1) && at - v->off[other] < v->size) {
        uint32_t theirs = stored_word(v, other, (unsigned)(at - v->off[other]) / 4);
        return memcmp(&theirs, value, 4) == 0;
    }
    return memcmp(v->r->host + at, value, bytes) == 0;
}

static void visit_write(const struct visit *v, unsigned lane, struct cell *c, uint32_t me,
                        uint64_t at, uint8_t mask, const uint8_t *value) {
    if ((c->write_mask & mask) && !(v->strong && (c->strong & 1)) &&
        !is_ordered(v, lane, me, c->write_who, c->write_time) &&
        !(value &&
          same_value(v, lane, c->write_who, at, value, (unsigned)__builtin_popcount(mask))))
        report_race(v, lane, at, c->write_who, true);
    for (int k = 0; k < 2; k++)
        if ((c->read_mask[k] & mask) && !(v->strong && (c->strong >> (k + 1) & 1)) &&
            !is_ordered(v, lane, me, c->read_who[k], c->read_time[k])) {
            report_race(v, lane, at, c->read_who[k], false);
            break;
        }
    *c = (struct cell){
        .write_time = v->now, .write_who = me, .write_mask = mask, .strong = v->strong};
}

static void visit_read(const struct visit *v, unsigned lane, struct cell *c, uint32_t me,
                       uint64_t at, uint8_t mask) {
    if ((c->write_mask & mask) && !(v->strong && (c->strong & 1)) &&
        !is_ordered(v, lane, me, c->write_who, c->write_time))
        report_race(v, lane, at, c->write_who, true);
    if (c->read_mask[0] && c->read_who[0] != me) {
        c->read_time[1] = c->read_time[0];
        c->read_who[1] = c->read_who[0];
        c->read_mask[1] = c->read_mask[0];
        c->strong = (uint8_t)((c->strong & 1) | (c->strong & 2) << 1);
        c->read_mask[0] = 0;
    }
    c->read_time[0] = v->now;
    c->read_who[0] = me;
    c->read_mask[0] |= mask;
    c->strong = (uint8_t)((c->strong & ~2) | v->strong << 1);
}

static void report_unwritten(const struct visit *v, unsigned lane, uint64_t at) {
    fault_record(v->w, v->x, lane, FAULT_UNWRITTEN, v->r->lo + at,
                 "reads %u bytes at %s offset %llu, which nothing has written", v->size,
                 region_name(v->r), (unsigned long long)at);
}

bool shadow_access(struct warp *w, const struct xinsn *x, unsigned lane, struct region *r,
                   uint64_t at, unsigned size, enum access kind, const uint8_t *value) {
    struct visit v = visit_begin(w, x, r, size, kind);
    uint32_t me = v.block_who + w->index * LANES + lane;
    uint64_t end = at + size;
    bool told = false;
    for (uint64_t word = at; word < end; word = (word | 3) + 1) {
        uint8_t mask = byte_mask(word, end);
        if (v.reads && (r->written[word / 4] & mask) != mask && !told) {
            told = true;
            report_unwritten(&v, lane, at);
        }
        if (r->cells && v.writes)
            visit_write(&v, lane, &r->cells[word / 4], me, word, mask,
                        value ? value + (word - at) : NULL);
        else if (r->cells)
            visit_read(&v, lane, &r->cells[word / 4], me, word, mask);
        if (v.writes)
            r->written[word / 4] |= mask;
    }
    return w->launch->run->fault_total < FAULT_LIMIT;
}

bool shadow_load_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes, struct region *r,
                       const uint64_t off[LANES], unsigned size) {
    struct visit v = visit_begin(w, x, r, size, ACCESS_READ);
    FOR_LANES(lane, lanes) {
        uint32_t me = v.block_who + w->index * LANES + lane;
        uint64_t first = off[lane] / 4;
        for (uint64_t word = first; word < first + size / 4; word++) {
            if (r->written[word] != 0xf) {
                report_unwritten(&v, lane, off[lane]);
                break;
            }
        }
        for (uint64_t word = first; word < first + size / 4; word++)
            visit_read(&v, lane, &r->cells[word], me, word * 4, 0xf);
    }
    return w->launch->run->fault_total < FAULT_LIMIT;
}

bool shadow_store_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes, struct region *r,
                        const uint64_t off[LANES], unsigned size) {
    struct visit v = visit_begin(w, x, r, size, ACCESS_WRITE);
    v.off = off;
    v.lanes = lanes;
    FOR_LANES(lane, lanes) {
        uint32_t me = v.block_who + w->index * LANES + lane;
        for (unsigned k = 0; k < size / 4; k++) {
            uint64_t word = off[lane] / 4 + k;
            uint32_t value = stored_word(&v, lane, k);
            visit_write(&v, lane, &r->cells[word], me, word * 4, 0xf, (const uint8_t *)&value);
            r->written[word] = 0xf;
        }
    }
    return w->launch->run->fault_total < FAULT_LIMIT;
}
