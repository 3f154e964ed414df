/*
 * warp.c - the paths of a warp: which runs next, who waits for whom, when lanes meet again.
 *
 * A path is a set of lanes at one pc.  The ready path with the lowest pc in layout order runs, up
 * to the pc of the next one, where they merge (stackless reconvergence: Collange 2011).  A path
 * that keeps jumping back while others are ready is set aside after PATH_SLICE instructions, so a
 * lane that spins on memory lets the lane it waits for go on.
 */
#include <assert.h>

#include "device/ptx/exec.h"

#define PATH_SLICE 2048 /* instructions of one path while another is ready */
#define SEEDED_SLICE 48 /* with a schedule seed: at most so many at a time */

void warp_count(struct warp *w, const struct xinsn *end) {
    uint64_t n = (uint64_t)(end - w->run_start);
    w->insns += n;
    w->launch->run->lane_insns += n * (unsigned)__builtin_popcount(w->mask);
}

/* What leave() returns: no instruction lies above it. */
#define OUTSIDE ((const struct xinsn *)UINTPTR_MAX)

const struct xinsn *leave(struct warp *w, enum leave why, const struct xinsn *pc,
                          const struct xinsn *counted) {
    warp_count(w, counted);
    w->pc = pc;
    w->why = why;
    return OUTSIDE;
}

struct path *warp_split(struct warp *w, uint32_t lanes, const struct xinsn *pc) {
    struct path *from = &w->path[w->current], *to = &w->path[w->path_count++];
    assert(w->path_count <= LANES && lanes && !(lanes & ~from->mask));
    *to = (struct path){.pc = pc,
                        .mask = lanes,
                        .state = PATH_READY,
                        .last_run = w->turn,
                        .depth = from->depth};
    from->mask &= ~lanes;
    return to;
}

void warp_exit(struct warp *w, uint32_t lanes) {
    w->alive &= ~lanes;
    w->path[w->current].mask &= ~lanes;
    w->block->live -= (unsigned)__builtin_popcount(lanes);
    w->block->changed = true;
    cluster_exit(w, lanes);
    call_exit(w, lanes);
}

bool warp_done(const struct warp *w) {
    return w->alive == 0;
}

/* ---- paths that wait for the lanes of a member mask ------------------------------------------ */

static void drop_path(struct warp *w, unsigned i) {
    w->path[i] = w->path[--w->path_count];
}

/* Lanes that wait with path p's member mask at its instruction, or (bar.warp.sync) at any. */
static uint32_t gathered(const struct warp *w, const struct path *p) {
    uint32_t lanes = 0;
    bool anywhere = p->pc->insn->op == PTX_OP_BAR_WARP;
    for (unsigned i = 0; i < w->path_count; i++) {
        const struct path *q = &w->path[i];
        bool meets = q->pc == p->pc || (anywhere && q->pc->insn->op == PTX_OP_BAR_WARP);
        if (q->state == PATH_SYNC && q->member == p->member && meets)
            lanes |= q->mask;
    }
    return lanes;
}

/* All lanes are there: they become one ready path, or step over their bar.warp.sync. */
static void release(struct warp *w, struct path head, uint32_t lanes) {
    bool together = true;
    for (unsigned i = 0; i < w->path_count; i++)
        together &= !(w->path[i].mask & lanes) || w->path[i].pc == head.pc;
    if (!together && w->launch->shadow)
        shadow_warp_sync(w, lanes);
    for (unsigned i = w->path_count; i-- > 0;) {
        struct path *p = &w->path[i];
        if (!(p->mask & lanes))
            continue;
        if (together) {
            drop_path(w, i);
        } else {
            p->state = PATH_READY;
            p->pc++;
        }
    }
    if (together) {
        head.mask = lanes;
        head.state = PATH_READY;
        w->path[w->path_count++] = head;
    }
}

/* Let go what is complete.  false: a fault. */
static bool release_synced(struct warp *w) {
    for (unsigned i = 0; i < w->path_count; i++) {
        struct path p = w->path[i];
        if (p.state != PATH_SYNC)
            continue;
        if (p.member & ~w->alive) {
            fault_record(w, p.pc, lowest(p.mask), FAULT_BAD_SHUFFLE, 0,
                         "%s with member mask 0x%08x waits for a lane that has exited",
                         ptx_opcodes[p.pc->insn->op].name, p.member);
            return false;
        }
        uint32_t lanes = gathered(w, &p);
        if (lanes == p.member) {
            release(w, p, lanes);
            i = UINT32_MAX; /* the list changed: begin again */
        }
    }
    return true;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static uint64_t warp_time(const struct warp *w) {
    return w->clock + w->insns;
}

static uint64_t path_slice(const struct warp *w) {
    return w->launch->seed ? SEEDED_SLICE : PATH_SLICE;
}

/* The ready path to run: a favoured one, else the deepest call, the lowest pc.  -1: none is ready. */
static int choose(struct warp *w) {
    int best = -1;
    for (unsigned i = 0; i < w->path_count; i++) {
        const struct path *p = &w->path[i];
        if (p->state != PATH_READY)
            continue;
        if (p->favour > warp_time(w))
            return (int)i;
        const struct path *b = &w->path[best < 0 ? (int)i : best];
        if (best < 0 || p->depth > b->depth || (p->depth == b->depth && p->pc < b->pc))
            best = (int)i;
    }
    return best;
}

/* Ready paths at the pc of path `into` join it. */
static unsigned merge(struct warp *w, unsigned into) {
    for (unsigned i = w->path_count; i-- > 0;) {
        if (i == into || w->path[i].state != PATH_READY || w->path[i].pc != w->path[into].pc ||
            w->path[i].depth != w->path[into].depth)
            continue;
        w->path[into].mask |= w->path[i].mask;
        drop_path(w, i);
        if (into == w->path_count)
            into = i;
    }
    return into;
}

/* The first instruction above the running path's pc where another ready path waits. */
static uintptr_t next_meeting(const struct warp *w) {
    uintptr_t stop = (uintptr_t)OUTSIDE, here = (uintptr_t)w->path[w->current].pc;
    for (unsigned i = 0; i < w->path_count; i++) {
        uintptr_t pc = (uintptr_t)w->path[i].pc;
        if (w->path[i].state == PATH_READY && pc > here && pc < stop)
            stop = pc;
    }
    return stop;
}

/* Prefer the ready path that has waited longest for a while. */
static void favour_oldest(struct warp *w) {
    int oldest = -1;
    for (unsigned i = 0; i < w->path_count; i++)
        if (i != w->current && w->path[i].state == PATH_READY &&
            (oldest < 0 || w->path[i].last_run < w->path[oldest].last_run))
            oldest = (int)i;
    if (oldest < 0)
        return;
    w->path[w->current].favour = 0;
    w->path[oldest].favour = warp_time(w) + path_slice(w);
    w->turn_began = warp_time(w);
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_path(struct warp *w) {
    struct path *p = &w->path[w->current];
    const struct xinsn *x = p->pc;
    uintptr_t stop = next_meeting(w);
    if (w->launch->seed) {
        uintptr_t quantum = (uintptr_t)(x + 1 + rng_below(&w->launch->rng, SEEDED_SLICE));
        stop = quantum < stop ? quantum : stop;
    }
    p->last_run = ++w->turn;
    w->mask = p->mask;
    w->run_start = x;
    if (w->mask == ~0u)
        do
            x = x->full(w, x);
        while ((uintptr_t)x < stop);
    else
        do
            x = x->masked(w, x);
        while ((uintptr_t)x < stop);
    if (x != OUTSIDE)
        leave(w, LEAVE_STOP, x, x);
    p->pc = w->pc;
}

bool warp_run(struct warp *w, uint64_t slice) {
    bool ok = true, yielded = false;
    w->slice = slice;
    w->insns = 0;
    w->gave_way = false;
    while (ok && !yielded && w->insns < slice) {
        int next = choose(w);
        if (next < 0)
            break;
        w->current = merge(w, (unsigned)next);
        run_path(w);
        if (w->path[w->current].mask == 0)
            drop_path(w, w->current);
        switch (w->why) {
        case LEAVE_FAULT: ok = false; break;
        case LEAVE_YIELD:
            favour_oldest(w);
            yielded = true;
            break;
        case LEAVE_BAR:
        case LEAVE_SYNC: break;
        case LEAVE_STOP:
        case LEAVE_AGAIN:
            yielded = w->launch->seed && w->why == LEAVE_STOP;
            if (w->path_count > 1 && warp_time(w) - w->turn_began > path_slice(w))
                favour_oldest(w);
            break;
        }
        ok = ok && release_synced(w) && block_check_barriers(w->block);
        cluster_check_barrier(w->block->cluster);
    }
    w->clock += w->insns;
    w->launch->run->warp_insns += w->insns;
    return ok;
}
