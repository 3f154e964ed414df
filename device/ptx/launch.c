/*
 * launch.c - the clusters of a launch; without clusters, its blocks.
 *
 * They run one after another.  One that does not finish within BLOCK_SLICE may be waiting for
 * another, so more become resident and take turns, as on a GPU - up to MAX_RESIDENT blocks and to
 * what the memory budget allows.  With a schedule seed the order is a permutation and several are
 * interleaved from the start.
 */
#include <stdlib.h>

#include "device/ptx/exec.h"

#define BLOCK_SLICE ((uint64_t)1 << 17) /* warp instructions */
#define SEEDED_BLOCK_SLICE 2048
#define MAX_RESIDENT 1024

struct
    order { /* i -> (i * step + start) mod count: a permutation when step and count are coprime */
    uint64_t count, step, start;
};

static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static struct order order_make(uint64_t count, uint64_t seed, struct rng *rng) {
    struct order o = {count, 1, 0};
    if (seed && count > 1) {
        o.start = rng_below(rng, count);
        do
            o.step = 1 + rng_below(rng, count - 1);
        while (gcd(o.step, count) != 1);
    }
    return o;
}

static uint64_t order_at(const struct order *o, uint64_t i) {
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)(((u128)i * o->step + o->start) % o->count);
}

struct residents {
    struct cluster *active[MAX_RESIDENT], *idle[MAX_RESIDENT];
    unsigned active_count, idle_count, limit;
    struct block_plan plan;
};

/* Start the next cluster.  More than the first one is a favour: no memory for it is no failure. */
static status_t admit(struct residents *r, struct launch *l, const struct order *order,
                      uint64_t *next) {
    struct cluster *c;
    if (r->idle_count) {
        c = r->idle[--r->idle_count];
    } else {
        status_t st = cluster_new(&c, l, &r->plan);
        if (st != OK && r->active_count == 0)
            return st;
        if (st != OK) {
            r->limit = r->active_count;
            return OK;
        }
    }
    cluster_begin(c, order_at(order, (*next)++));
    r->active[r->active_count++] = c;
    return OK;
}

static status_t run_all(struct residents *r, struct launch *l) {
    status_t st = OK;
    struct order order = order_make(l->clusters, l->seed, &l->rng);
    uint64_t next = 0, slice = l->seed ? SEEDED_BLOCK_SLICE : BLOCK_SLICE;
    unsigned want = l->seed ? 1 + (unsigned)rng_below(&l->rng, 4) : 1;
    for (;;) {
        while (r->active_count < want && r->active_count < r->limit && next < l->clusters)
            TRY(admit(r, l, &order, &next));
        if (r->active_count == 0)
            break;
        bool finished = false;
        for (unsigned i = 0; i < r->active_count; i++) {
            enum block_end end = cluster_run(r->active[i], slice);
            if (end == BLOCK_FAULT)
                return OK;
            if (end == BLOCK_DONE) {
                finished = true;
                r->idle[r->idle_count++] = r->active[i];
                r->active[i--] = r->active[--r->active_count];
            }
        }
        if (!finished && want < r->limit)
            want *= 2;
    }
    l->run->completed = true;
done:
    return st;
}

status_t launch_run(struct launch *l, uint64_t memory_left) {
    status_t st = OK;
    struct residents *r = calloc(1, sizeof *r);
    l->hits = malloc((l->program->slot_count + 1) * sizeof *l->hits);
    l->log = l->shadow ? release_log_new() : NULL;
    if (!r || !l->hits || (l->shadow && !l->log))
        TRY(FAIL(ERR_NOMEM, "no memory for a launch"));
    static struct region nowhere; /* size 0: nothing lies inside, and nothing writes to it */
    for (size_t i = 0; i < l->program->slot_count; i++)
        l->hits[i] = &nowhere;
    TRY(block_plan(&r->plan, l));
    uint64_t each =
        r->plan.total +
        (l->shadow ? shadow_bytes(r->plan.shared_bytes) + shadow_bytes(r->plan.local_bytes) : 0);
    unsigned size = l->call->cluster[0] * l->call->cluster[1] * l->call->cluster[2];
    if (each > memory_left / size)
        TRY(FAIL(
            ERR_NOMEM,
            "a block of '%s' needs %zu bytes, %u run together; the memory budget has %llu left",
            l->program->func->name, (size_t)each, size, (unsigned long long)memory_left));
    uint64_t fit = memory_left / each / size;
    r->limit = fit < MAX_RESIDENT / size ? (unsigned)fit : MAX_RESIDENT / size;
    TRY(run_all(r, l));
done:
    if (r) {
        for (unsigned i = 0; i < r->active_count; i++)
            cluster_free(r->active[i]);
        for (unsigned i = 0; i < r->idle_count; i++)
            cluster_free(r->idle[i]);
    }
    free(r);
    free(l->hits);
    release_log_free(l->log);
    return st;
}
