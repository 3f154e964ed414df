/*
 * cluster.c - the blocks of a cluster and their barrier.  PTX ISA 9.7.13.4.
 *
 * The blocks take turns, so that they can wait for each other.  The cluster's barrier is split:
 * arrive, then wait; it is complete when every thread of the cluster that has not exited has
 * arrived.  A lane that arrived notes the parity of the phase: one that waits later, when the phase
 * is over, goes on.
 */
#include <stdlib.h>
#include <string.h>

#include "device/ptx/exec.h"

status_t cluster_new(struct cluster **out, struct launch *l, const struct block_plan *plan) {
    status_t st = OK;
    const unsigned *dim = l->call->cluster;
    struct cluster *c = calloc(1, sizeof *c);
    if (!c)
        return FAIL(ERR_NOMEM, "no memory for a cluster");
    c->launch = l;
    c->size = dim[0] * dim[1] * dim[2];
    for (unsigned i = 0; i < c->size; i++) {
        TRY(block_new(&c->block[i], l, plan));
        c->block[i]->cluster = c;
        c->block[i]->rank = i;
        c->block[i]->shared.lo = (uint64_t)i << CLUSTER_SHIFT;
    }
    *out = c;
    c = NULL;
done:
    cluster_free(c);
    return st;
}

void cluster_free(struct cluster *c) {
    for (unsigned i = 0; c && i < c->size; i++)
        block_free(c->block[i]);
    free(c);
}

void cluster_begin(struct cluster *c, uint64_t linear) {
    const unsigned *grid = c->launch->call->grid, *dim = c->launch->call->cluster;
    uint64_t across = grid[0] / dim[0], down = grid[1] / dim[1];
    c->blocks_left = c->size;
    c->live = c->size * c->block[0]->threads;
    c->arrived = 0;
    c->phase = 0;
    c->changed = false;
    memset(c->done, 0, sizeof c->done);
    memset(c->knows, 0, sizeof c->knows);
    for (unsigned i = 0; i < c->size; i++) {
        unsigned index[3] = {
            (unsigned)(linear % across) * dim[0] + i % dim[0],
            (unsigned)(linear / across % down) * dim[1] + i / dim[0] % dim[1],
            (unsigned)(linear / across / down) * dim[2] + i / dim[0] / dim[1],
        };
        block_begin(c->block[i], index);
    }
}

enum block_end cluster_run(struct cluster *c, uint64_t slice) {
    bool stuck = true;
    unsigned first =
        c->launch->seed && c->size > 1 ? (unsigned)rng_below(&c->launch->rng, c->size) : 0;
    for (unsigned k = 0; k < c->size; k++) {
        unsigned i = (first + k) % c->size;
        if (c->done[i])
            continue;
        enum block_end end = block_run(c->block[i], slice);
        if (end == BLOCK_FAULT)
            return BLOCK_FAULT;
        stuck &= end == BLOCK_WAITS;
        if (end == BLOCK_DONE) {
            c->done[i] = true;
            c->blocks_left--;
        }
    }
    if (c->blocks_left == 0)
        return BLOCK_DONE;
    if (!stuck)
        return BLOCK_MORE;
    unsigned i = 0;
    while (c->done[i])
        i++;
    block_report_deadlock(c->block[i]);
    return BLOCK_FAULT;
}

/* ---- the barrier ----------------------------------------------------------------------------- */

bool cluster_arrive(struct warp *w, const struct xinsn *x, uint32_t lanes, bool relaxed) {
    struct cluster *c = w->block->cluster;
    uint32_t twice = (w->cluster_arrived[0] | w->cluster_arrived[1]) & lanes;
    if (twice) {
        fault_record(w, x, lowest(twice), FAULT_DIVERGENT_BARRIER, 0,
                     "arrives at the cluster barrier again without having waited");
        return false;
    }
    w->cluster_arrived[c->phase & 1] |= lanes;
    c->arrived += (unsigned)__builtin_popcount(lanes);
    c->changed = true;
    if (w->shadow && !relaxed)
        c->knows[c->phase % 3][w->block->rank * MAX_WARPS + w->index] = (*w->launch->now)++;
    return true;
}

bool cluster_wait(uint32_t *waiting, struct warp *w, const struct xinsn *x, uint32_t m) {
    struct cluster *c = w->block->cluster;
    uint32_t *open = &w->cluster_arrived[c->phase & 1], *over = &w->cluster_arrived[~c->phase & 1];
    uint32_t absent = m & ~(*open | *over), past = m & *over;
    if (absent) {
        fault_record(w, x, lowest(absent), FAULT_DIVERGENT_BARRIER, 0,
                     "waits at the cluster barrier without having arrived");
        return false;
    }
    *over &= ~past;
    if (past && w->shadow)
        shadow_cluster_leave(w, past);
    *waiting = m & *open;
    return true;
}

void cluster_exit(struct warp *w, uint32_t lanes) {
    struct cluster *c = w->block->cluster;
    c->live -= (unsigned)__builtin_popcount(lanes);
    c->arrived -= (unsigned)__builtin_popcount(w->cluster_arrived[c->phase & 1] & lanes);
    w->cluster_arrived[0] &= ~lanes;
    w->cluster_arrived[1] &= ~lanes;
    c->changed = true;
}

static void let_go(struct cluster *c, struct warp *w) {
    for (unsigned i = 0; i < w->path_count; i++) {
        struct path *p = &w->path[i];
        if (p->state != PATH_CLUSTER)
            continue;
        p->state = PATH_READY;
        p->pc++;
        w->cluster_arrived[~c->phase & 1] &= ~p->mask;
        if (w->shadow)
            shadow_cluster_leave(w, p->mask);
    }
}

void cluster_check_barrier(struct cluster *c) {
    if (!c->changed)
        return;
    c->changed = false;
    if (!c->arrived || c->arrived < c->live)
        return;
    c->phase++;
    c->arrived = 0;
    if (c->launch->shadow) /* who arrives relaxed the next time knows what was known before */
        memcpy(c->knows[c->phase % 3], c->knows[(c->phase - 1) % 3], sizeof c->knows[0]);
    for (unsigned i = 0; i < c->size; i++)
        for (unsigned k = 0; !c->done[i] && k < c->block[i]->warps; k++)
            let_go(c, &c->block[i]->warp[k]);
}

/* ---- distributed shared memory --------------------------------------------------------------- */

struct region *cluster_shared(const struct cluster *c, uint64_t address) {
    uint64_t rank = address >> CLUSTER_SHIFT;
    return rank < c->size ? &c->block[rank]->shared : NULL;
}
