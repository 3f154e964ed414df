/*
 * block.c - one block: its state, its barriers, its warps in turn.
 *
 * A barrier counts threads.  Without a thread count it is complete when every thread of the block
 * that has not exited has arrived (PTX ISA 9.7.13.1).  When nothing in a cluster can run and not all
 * have exited, the wait can never end: FAULT_DIVERGENT_BARRIER.
 */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/ptx/exec.h"

/* A predicate that is read before it is written: true in every other lane, so no test goes one way. */
#define PRED_START 0x55555555u

#define WARP_SLICE 16384 /* instructions of one warp before the next has its turn */
#define IDLE_ROUNDS 16   /* turns in which all warps gave way before the next block has its turn */

/* ---- state ----------------------------------------------------------------------------------- */

/* Reserve `size` bytes; false when the total does not fit. */
static bool reserve(size_t *offset, size_t *total, size_t count, size_t size) {
    size_t bytes;
    if (!size_mul(&bytes, count, size) || bytes > SIZE_MAX / 2 - *total - 64)
        return false;
    *offset = *total;
    *total += size_align(bytes, 64);
    return true;
}

status_t block_plan(struct block_plan *plan, const struct launch *l) {
    const struct dev_launch *call = l->call;
    const struct program *p = l->program;
    *plan = (struct block_plan){.threads = call->block[0] * call->block[1] * call->block[2]};
    plan->warp_count = (plan->threads + LANES - 1) / LANES;
    plan->shared_bytes = size_align(p->static_shared, 16) + call->dynamic_shared;
    size_t n = plan->warp_count;
    bool fits =
        reserve(&plan->warps, &plan->total, n, sizeof(struct warp)) &&
        reserve(&plan->files, &plan->total, n, size_align(p->file_bytes, 64)) &&
        reserve(&plan->preds, &plan->total, n, size_align(p->pred_count * 4, 64)) &&
        reserve(&plan->shared, &plan->total, 1, plan->shared_bytes) &&
        size_mul(&plan->local_bytes, n * LANES, p->local_bytes) &&
        reserve(&plan->local, &plan->total, 1, plan->local_bytes) &&
        reserve(&plan->shadows, &plan->total, l->shadow ? n : 0, sizeof(struct warp_shadow));
    return fits ? OK : FAIL(ERR_NOMEM, "'%s' needs more memory than there is", p->func->name);
}

static void fill_row(struct warp *w, uint32_t row, bool wide, uint64_t value) {
    for (int i = 0; i < LANES; i++) {
        if (wide)
            row64(w, row)[i] = value;
        else
            row32(w, row)[i] = (uint32_t)value;
    }
}

status_t block_new(struct block **out, struct launch *l, const struct block_plan *plan) {
    status_t st = OK;
    struct block *b = calloc(1, sizeof *b);
    if (!b)
        return FAIL(ERR_NOMEM, "no memory for a block");
    uint8_t *memory = aligned_alloc(64, size_align(plan->total, 64) + 64);
    b->memory = memory;
    if (!memory)
        TRY(FAIL(ERR_NOMEM, "no memory for a block of '%s'", l->program->func->name));
    memset(memory, 0, plan->shared);
    b->launch = l;
    b->threads = plan->threads;
    b->warps = plan->warp_count;
    b->warp = (struct warp *)(memory + plan->warps);
    b->shared = (struct region){.size = plan->shared_bytes, .host = memory + plan->shared};
    b->local = (struct region){.size = plan->local_bytes, .host = memory + plan->local};
    b->shared.owner = b->local.owner = b;
    if (l->shadow) {
        TRY(shadow_attach(&b->shared, true));
        TRY(shadow_attach(&b->local, false));
    }
    const struct program *p = l->program;
    for (unsigned i = 0; i < b->warps; i++) {
        struct warp *w = &b->warp[i];
        w->file = memory + plan->files + i * size_align(p->file_bytes, 64);
        w->pred = (uint32_t *)(memory + plan->preds + i * size_align(p->pred_count * 4, 64));
        w->shadow = l->shadow ? (struct warp_shadow *)(memory + plan->shadows) + i : NULL;
        w->hits = l->hits;
        w->block = b;
        w->launch = l;
        w->index = i;
        for (size_t k = 0; k < p->const_count; k++)
            fill_row(w, p->consts[k].row, p->consts[k].wide, p->consts[k].value);
    }
    *out = b;
    b = NULL;
done:
    block_free(b);
    return st;
}

void block_free(struct block *b) {
    if (!b)
        return;
    for (unsigned i = 0; i < b->warps; i++)
        call_end(&b->warp[i]);
    shadow_detach(&b->shared);
    shadow_detach(&b->local);
    free(b->memory);
    free(b);
}

/* ---- special registers: PTX ISA 10 ----------------------------------------------------------- */

static uint64_t sreg_value(const struct warp *w, enum ptx_sreg sreg, unsigned lane) {
    const struct dev_launch *call = w->launch->call;
    const struct block *b = w->block;
    unsigned thread = w->index * LANES + lane;
    switch (sreg) {
    case SREG_TID_X: return thread % call->block[0];
    case SREG_TID_Y: return thread / call->block[0] % call->block[1];
    case SREG_TID_Z: return thread / call->block[0] / call->block[1];
    case SREG_NTID_X:
    case SREG_NTID_Y:
    case SREG_NTID_Z: return call->block[sreg - SREG_NTID_X];
    case SREG_CTAID_X:
    case SREG_CTAID_Y:
    case SREG_CTAID_Z: return b->index[sreg - SREG_CTAID_X];
    case SREG_NCTAID_X:
    case SREG_NCTAID_Y:
    case SREG_NCTAID_Z: return call->grid[sreg - SREG_NCTAID_X];
    case SREG_CLUSTERID_X:
    case SREG_CLUSTERID_Y:
    case SREG_CLUSTERID_Z:
        return b->index[sreg - SREG_CLUSTERID_X] / call->cluster[sreg - SREG_CLUSTERID_X];
    case SREG_NCLUSTERID_X:
    case SREG_NCLUSTERID_Y:
    case SREG_NCLUSTERID_Z:
        return call->grid[sreg - SREG_NCLUSTERID_X] / call->cluster[sreg - SREG_NCLUSTERID_X];
    case SREG_CLUSTER_CTAID_X:
    case SREG_CLUSTER_CTAID_Y:
    case SREG_CLUSTER_CTAID_Z:
        return b->index[sreg - SREG_CLUSTER_CTAID_X] % call->cluster[sreg - SREG_CLUSTER_CTAID_X];
    case SREG_CLUSTER_NCTAID_X:
    case SREG_CLUSTER_NCTAID_Y:
    case SREG_CLUSTER_NCTAID_Z: return call->cluster[sreg - SREG_CLUSTER_NCTAID_X];
    case SREG_CLUSTER_CTARANK: return b->rank;
    case SREG_CLUSTER_NCTARANK: return b->cluster->size;
    case SREG_LANEID: return lane;
    case SREG_WARPID: return w->index;
    case SREG_NWARPID: return b->warps;
    case SREG_SMID: return 0;
    case SREG_NSMID: return 1;
    case SREG_GRIDID: return 1;
    case SREG_LANEMASK_EQ: return 1u << lane;
    case SREG_LANEMASK_LE: return 0xffffffffu >> (31 - lane);
    case SREG_LANEMASK_LT: return (1u << lane) - 1;
    case SREG_LANEMASK_GE: return 0xffffffffu << lane;
    case SREG_LANEMASK_GT: return 0xfffffffeu << lane;
    case SREG_DYNAMIC_SMEM_SIZE: return call->dynamic_shared;
    case SREG_TOTAL_SMEM_SIZE: return b->shared.size;
    case SREG_CLOCK:
    case SREG_CLOCK64:
    case SREG_CLOCK_HI:
    case SREG_GLOBALTIMER: /* see mov */
    case SREG_GLOBALTIMER_LO:
    case SREG_GLOBALTIMER_HI:
    case SREG_ENVREG: /* a driver's: 0 */
    case SREG_COUNT: break;
    }
    return 0;
}

static void fill_sreg(struct warp *w, const struct row_sreg *s) {
    for (unsigned i = 0; i < LANES; i++) {
        uint64_t v = sreg_value(w, s->sreg, i);
        if (s->wide)
            row64(w, s->row)[i] = v;
        else
            row32(w, s->row)[i] = s->bits == 16 ? (uint16_t)v : (uint32_t)v;
    }
}

static void begin_warp(struct warp *w) {
    const struct program *p = w->launch->program;
    unsigned threads = w->block->threads - w->index * LANES;
    w->alive = threads >= LANES ? ~0u : (1u << threads) - 1;
    w->path_count = 1;
    w->path[0] = (struct path){.pc = p->code, .mask = w->alive, .state = PATH_READY};
    w->turn = w->turn_began = w->clock = 0;
    w->cluster_arrived[0] = w->cluster_arrived[1] = 0;
    w->carry = 0;
    for (size_t i = 0; w->block->shared.lo && i < p->const_count; i++)
        if (p->consts[i].shared)
            fill_row(w, p->consts[i].row, p->consts[i].wide,
                     p->consts[i].value + w->block->shared.lo);
    w->wgmma_trace = 0;
    for (size_t i = 0; i < p->pred_count; i++)
        w->pred[i] = PRED_START;
    w->pred[PRED_TRUE] = ~0u;
    for (size_t i = 0; i < p->start_count; i++) {
        const struct row_start *s = &p->starts[i];
        memset(w->file + s->row, 0xff, s->bytes);
        if (s->narrow)
            fill_row(w, s->row, false, 0xffff);
    }
    for (size_t i = 0; i < p->sreg_count; i++)
        fill_sreg(w, &p->sregs[i]);
    if (w->shadow)
        shadow_warp_begin(w);
    call_begin(w);
}

void block_begin(struct block *b, const unsigned index[3]) {
    const unsigned *grid = b->launch->call->grid;
    b->linear = ((uint64_t)index[2] * grid[1] + index[1]) * grid[0] + index[0];
    memcpy(b->index, index, sizeof b->index);
    b->live = b->threads;
    b->changed = false;
    memset(b->barrier, 0, sizeof b->barrier);
    memset(b->shared.host, 0xff, b->shared.size); /* poison, as in every buffer */
    if (b->local.size)
        memset(b->local.host, 0xff, b->local.size);
    if (b->launch->shadow) {
        b->began = ++*b->launch->now;
        shadow_mark(&b->shared, 0, b->shared.size, false);
        shadow_mark(&b->local, 0, b->local.size, false);
    }
    for (unsigned i = 0; i < b->warps; i++)
        begin_warp(&b->warp[i]);
}

/* ---- barriers -------------------------------------------------------------------------------- */

void block_arrive(struct warp *w, unsigned id, unsigned expected, uint32_t lanes, bool wait) {
    struct barrier *bar = &w->block->barrier[id];
    unsigned count = (unsigned)__builtin_popcount(lanes);
    if (bar->arrived == 0)
        *bar = (struct barrier){.all = true};
    bar->arrived += count;
    bar->waiting += wait ? count : 0;
    bar->expected = expected;
    if (wait) {
        struct path *p = &w->path[w->current];
        p->state = PATH_BAR;
        p->barrier = id;
    }
    if (w->shadow)
        shadow_barrier_arrive(bar, w);
    w->block->changed = true;
}

static bool is_popc(enum ptx_op op) {
    return op == PTX_OP_BAR_RED_POPC || op == PTX_OP_BARRIER_RED_POPC;
}

static bool is_any_all(enum ptx_op op) {
    return op == PTX_OP_BAR_RED_PRED || op == PTX_OP_BARRIER_RED_PRED;
}

/* barrier without .aligned: lanes of a warp may come by different ways. */
static bool is_unaligned(enum ptx_op op) {
    return op == PTX_OP_BARRIER || op == PTX_OP_BARRIER_RED_POPC || op == PTX_OP_BARRIER_RED_PRED;
}

/* Results of bar.red for the lanes that waited at x. */
static void reduce_result(struct warp *w, const struct xinsn *x, uint32_t lanes,
                          const struct barrier *bar) {
    if (is_popc(x->insn->op)) {
        FOR_LANES(i, lanes)
        row32(w, x->d)[i] = bar->popc;
    } else if (is_any_all(x->insn->op)) {
        bool yes = x->insn->mods.boolop == BOOL_AND ? bar->all : bar->any;
        w->pred[x->d] = (w->pred[x->d] & ~lanes) | (yes ? lanes : 0);
    }
}

static void collect(struct barrier *bar, const struct warp *w, const struct path *p) {
    enum ptx_op op = p->pc->insn->op;
    if (!is_popc(op) && !is_any_all(op))
        return;
    uint32_t yes = (w->pred[p->pc->p] ^ p->pc->pneg) & p->mask;
    bar->popc += (unsigned)__builtin_popcount(yes);
    bar->any |= yes != 0;
    bar->all &= yes == p->mask;
}

/*
 * bar.sync is barrier.sync.aligned: all threads of a warp must execute the same one (PTX ISA
 * 9.7.13.1).  Hardware may let it pass; it is undefined, and a classic fault.
 */
static bool is_divergent(const struct warp *w, unsigned id) {
    const struct xinsn *at = NULL;
    for (unsigned i = 0; i < w->path_count; i++) {
        const struct path *p = &w->path[i];
        if (p->state != PATH_BAR || p->barrier != id || is_unaligned(p->pc->insn->op))
            continue;
        if (at && at != p->pc)
            return true;
        at = p->pc;
    }
    return false;
}

static bool complete(struct block *b, unsigned id) {
    struct barrier *bar = &b->barrier[id];
    for (unsigned k = 0; k < b->warps; k++) {
        struct warp *w = &b->warp[k];
        for (unsigned i = 0; i < w->path_count; i++)
            if (w->path[i].state == PATH_BAR && w->path[i].barrier == id)
                collect(bar, w, &w->path[i]);
        if (is_divergent(w, id)) {
            const struct path *p = &w->path[0];
            fault_record(w, p->pc, lowest(p->mask), FAULT_DIVERGENT_BARRIER, 0,
                         "lanes of one warp wait at different bar.sync instructions");
            return false;
        }
    }
    for (unsigned k = 0; k < b->warps; k++) {
        struct warp *w = &b->warp[k];
        uint32_t released = 0;
        for (unsigned i = 0; i < w->path_count; i++) {
            struct path *p = &w->path[i];
            if (p->state != PATH_BAR || p->barrier != id)
                continue;
            reduce_result(w, p->pc, p->mask, bar);
            p->state = PATH_READY;
            p->pc++;
            released |= p->mask;
        }
        if (released && w->shadow)
            shadow_barrier_leave(bar, w, released);
    }
    *bar = (struct barrier){0};
    return true;
}

bool block_check_barriers(struct block *b) {
    if (!b->changed)
        return true;
    b->changed = false;
    for (unsigned id = 0; id < BARRIERS; id++) {
        const struct barrier *bar = &b->barrier[id];
        unsigned need = bar->expected ? bar->expected : b->live;
        if (bar->arrived && bar->arrived >= need && !complete(b, id))
            return false;
    }
    return true;
}

/* ---- running --------------------------------------------------------------------------------- */

static bool is_ready(const struct warp *w) {
    for (unsigned i = 0; i < w->path_count; i++)
        if (w->path[i].state == PATH_READY)
            return true;
    return false;
}

void block_report_deadlock(struct block *b) {
    for (unsigned k = 0; k < b->warps; k++) {
        struct warp *w = &b->warp[k];
        if (!w->path_count)
            continue;
        const struct path *p = &w->path[0];
        if (p->state == PATH_BAR) {
            const struct barrier *bar = &b->barrier[p->barrier];
            fault_record(w, p->pc, lowest(p->mask), FAULT_DIVERGENT_BARRIER, 0,
                         "waits for ever at barrier %u: %u of %u threads arrived", p->barrier,
                         bar->arrived, bar->expected ? bar->expected : b->live);
        } else if (p->state == PATH_CLUSTER) {
            fault_record(w, p->pc, lowest(p->mask), FAULT_DIVERGENT_BARRIER, 0,
                         "waits for ever at the cluster barrier: %u of %u threads arrived",
                         b->cluster->arrived, b->cluster->live);
        } else {
            fault_record(w, p->pc, lowest(p->mask), FAULT_DIVERGENT_BARRIER, 0,
                         "%s waits for ever: lanes 0x%08x of its mask 0x%08x arrived",
                         ptx_opcodes[p->pc->insn->op].name, p->mask, p->member);
        }
        return;
    }
}

/*
 * The warps of a warpgroup must have executed the same wgmma instructions; where they did not,
 * hardware waits for ever or computes anything.
 */
static bool warpgroups_agree(struct block *b) {
    for (unsigned k = 0; k < b->warps; k++) {
        struct warp *w = &b->warp[k];
        if (w->wgmma_trace == b->warp[k & ~3u].wgmma_trace)
            continue;
        fault_record(w, &w->launch->program->code[0], 0, FAULT_DIVERGENT_BARRIER, 0,
                     "warp %u executed other wgmma instructions than warp %u of its warpgroup", k,
                     k & ~3u);
        return false;
    }
    return true;
}

static bool out_of_budget(struct block *b, struct warp *w) {
    if (b->launch->budget_left)
        return false;
    for (unsigned i = 0; i < w->path_count; i++)
        if (w->path[i].state == PATH_READY) {
            fault_record(w, w->path[i].pc, lowest(w->path[i].mask), FAULT_INSN_BUDGET, 0,
                         "the launch has used its instruction budget");
            break;
        }
    return true;
}

/* Give warp k its turn.  false: the launch stops. */
static bool turn(struct block *b, struct warp *w, uint64_t *used) {
    struct launch *l = b->launch;
    if (out_of_budget(b, w))
        return false;
    bool ok = warp_run(w, l->budget_left < WARP_SLICE ? l->budget_left : WARP_SLICE);
    l->budget_left -= w->insns < l->budget_left ? w->insns : l->budget_left;
    *used += w->insns;
    return ok;
}

enum block_end block_run(struct block *b, uint64_t slice) {
    uint64_t used = 0;
    while (used < slice) {
        bool progress = false, done = true, idle = true;
        unsigned first = b->launch->seed ? (unsigned)rng_below(&b->launch->rng, b->warps) : 0;
        for (unsigned k = 0; k < b->warps; k++) {
            struct warp *w = &b->warp[(first + k) % b->warps];
            if (warp_done(w))
                continue;
            done = false;
            if (!is_ready(w))
                continue;
            progress = true;
            if (!turn(b, w, &used))
                return BLOCK_FAULT;
            idle &= w->why == LEAVE_YIELD && w->gave_way;
        }
        if (done)
            return warpgroups_agree(b) ? BLOCK_DONE : BLOCK_FAULT;
        if (!progress)
            return used ? BLOCK_MORE : BLOCK_WAITS;
        if (idle) /* whoever could run gave way: what they wait for may be in another block */
            used += slice / IDLE_ROUNDS + 1;
    }
    return BLOCK_MORE;
}
