/*
 * mbarrier.c - mbarrier objects: 8 bytes of shared memory that count arrivals and bytes of
 * asynchronous copies.  PTX ISA 9.7.13.15.
 *
 * The ISA leaves the object's bits to the implementation.  Here, from bit 0: pending arrivals (20),
 * expected arrivals of each phase (20), outstanding bytes (21, two's complement), the phase's parity
 * (1), and 2 bits that tell an object from other bytes: poison and zeros are none.  Whatever the
 * ISA calls undefined is a fault: another use of the bytes, a count out of its range, more arrivals
 * than are pending.
 */
#include <string.h>

#include "device/ptx/exec.h"

#define COUNT_MAX 0xfffffu
#define MARK 2u

struct object {
    uint32_t pending, expected;
    int32_t tx;
    bool parity;
};

static bool unpack(struct object *o, uint64_t bits) {
    *o = (struct object){
        .pending = (uint32_t)bits & COUNT_MAX,
        .expected = (uint32_t)(bits >> 20) & COUNT_MAX,
        .tx = (int32_t)((uint32_t)(bits >> 40 & 0x1fffff) << 11) >> 11,
        .parity = bits >> 61 & 1,
    };
    return bits >> 62 == MARK;
}

static uint64_t pack(const struct object *o) {
    return (uint64_t)MARK << 62 | (uint64_t)o->parity << 61 |
           (uint64_t)((uint32_t)o->tx & 0x1fffff) << 40 | (uint64_t)o->expected << 20 | o->pending;
}

static bool wrong(struct warp *w, const struct xinsn *x, unsigned lane, const char *what) {
    fault_record(w, x, lane, FAULT_DIVERGENT_BARRIER, 0, "%s %s", ptx_opcodes[x->insn->op].name,
                 what);
    return false;
}

/* ---- what happens to an object --------------------------------------------------------------- */

static bool is_over(const struct object *o) {
    return o->pending == 0 && o->tx == 0;
}

static void next_phase(struct object *o) {
    o->parity = !o->parity;
    o->pending = o->expected;
}

/* Expect `bytes` more (less, if negative); a phase may end only when something is completed. */
static const char *move_tx(struct object *o, int64_t bytes) {
    int64_t tx = o->tx + bytes;
    if (bytes > COUNT_MAX || tx > COUNT_MAX || tx < -(int64_t)COUNT_MAX)
        return "moves the byte count out of its range of 2^20 - 1";
    o->tx = (int32_t)tx;
    return NULL;
}

static const char *complete_tx(struct object *o, uint32_t bytes) {
    const char *problem = move_tx(o, -(int64_t)bytes);
    if (!problem && is_over(o))
        next_phase(o);
    return problem;
}

static const char *arrive(struct object *o, uint32_t count, bool drop, bool may_complete) {
    if (count == 0 || count > o->pending)
        return "arrives more often than is pending in this phase";
    if (drop) {
        if (count > o->expected)
            return "drops more arrivals than are expected";
        o->expected -= count;
    }
    o->pending -= count;
    if (!is_over(o))
        return NULL;
    if (!may_complete)
        return "completes the phase, which .noComplete rules out";
    next_phase(o);
    return NULL;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The operand after the address, or `otherwise`. */
static uint32_t count_of(const struct warp *w, const struct xinsn *x, unsigned lane,
                         unsigned groups, uint32_t otherwise) {
    return x->insn->group_count > groups ? row32(w, x->b)[lane] : otherwise;
}

static const char *change(struct object *o, struct warp *w, const struct xinsn *x, unsigned lane) {
    const char *problem = NULL;
    switch (x->insn->op) {
    case PTX_OP_MBAR_EXPECT:
        return move_tx(o, row32(w, x->b)[lane]);
    case PTX_OP_MBAR_COMPLETE:
        return complete_tx(o, row32(w, x->b)[lane]);
    case PTX_OP_MBAR_ARRIVE:
        return arrive(o, count_of(w, x, lane, 2, 1), false, true);
    case PTX_OP_MBAR_ARRIVE_NO:
        return arrive(o, count_of(w, x, lane, 2, 1), false, false);
    case PTX_OP_MBAR_DROP:
        return arrive(o, count_of(w, x, lane, 2, 1), true, true);
    case PTX_OP_MBAR_DROP_NO:
        return arrive(o, count_of(w, x, lane, 2, 1), true, false);
    case PTX_OP_MBAR_ARRIVE_EXPECT:
    case PTX_OP_MBAR_DROP_EXPECT:
        problem = move_tx(o, row32(w, x->b)[lane]);
        return problem ? problem : arrive(o, 1, x->insn->op == PTX_OP_MBAR_DROP_EXPECT, true);
    case PTX_OP_CP_ASYNC_MBAR:
        /* The copies before it are done: it arrives at once.  Without .noinc the arrival is added
         * to what is pending first. */
        if (!x->insn->mods.noinc) {
            if (o->pending == COUNT_MAX)
                return "has more than 2^20 - 1 pending arrivals";
            o->pending++;
        }
        return arrive(o, 1, false, true);
    default:
        return NULL;
    }
}

/* Is the phase that a test names over?  parity: of that phase. */
static bool phase_is_over(const struct object *o, const struct warp *w, const struct xinsn *x,
                          unsigned lane) {
    enum ptx_op op = x->insn->op;
    struct object then;
    bool parity = (op == PTX_OP_MBAR_TEST_PARITY || op == PTX_OP_MBAR_TRY_PARITY)
                      ? row32(w, x->b)[lane] & 1
                      : (unpack(&then, row64(w, x->b)[lane]), then.parity);
    return o->parity != parity;
}

static bool is_test(enum ptx_op op) {
    return op == PTX_OP_MBAR_TEST || op == PTX_OP_MBAR_TEST_PARITY || op == PTX_OP_MBAR_TRY ||
           op == PTX_OP_MBAR_TRY_PARITY;
}

/* Every use but init and inval is a message: an arrival releases, a test acquires. */
static void message(struct warp *w, const struct xinsn *x) {
    if (!is_test(x->insn->op) && x->insn->mods.order != ORDER_RELAXED)
        shadow_fence(w);
    shadow_strong(w);
}

static bool load(struct object *o, uint64_t *bits, struct warp *w, const struct xinsn *x,
                 unsigned lane, struct place at) {
    if (w->launch->shadow && at.region->written &&
        !shadow_access(w, x, lane, at.region, at.at, 8, ACCESS_ATOMIC, NULL))
        return false;
    memcpy(bits, at.region->host + at.at, 8);
    return unpack(o, *bits) || wrong(w, x, lane, "finds no initialised mbarrier object there");
}

static void store(const struct object *o, struct place at) {
    uint64_t bits = pack(o);
    memcpy(at.region->host + at.at, &bits, 8);
}

static bool in_shared(const struct place *at, struct warp *w, const struct xinsn *x,
                      unsigned lane) {
    return (at->region->owner && at->region == &at->region->owner->shared) ||
           wrong(w, x, lane, "names an address outside shared memory");
}

static bool init(struct warp *w, const struct xinsn *x, unsigned lane, struct place at) {
    struct object o = {0};
    uint64_t bits = 0;
    if (x->insn->op == PTX_OP_MBAR_INIT) {
        o.pending = o.expected = row32(w, x->b)[lane];
        if (o.pending == 0 || o.pending > COUNT_MAX)
            return wrong(w, x, lane, "with a count outside 1 to 2^20 - 1");
        bits = pack(&o);
    }
    if (w->launch->shadow && at.region->written &&
        !shadow_access(w, x, lane, at.region, at.at, 8, ACCESS_WRITE, NULL))
        return false;
    memcpy(at.region->host + at.at, &bits, 8);
    return true;
}

static bool run_lane(struct warp *w, const struct xinsn *x, unsigned lane, uint32_t *over) {
    struct place at;
    struct object o;
    uint64_t before;
    enum ptx_op op = x->insn->op;
    if (!mem_locate(&at, w, x, lane, 8, true) || !in_shared(&at, w, x, lane))
        return false;
    if (op == PTX_OP_MBAR_INIT || op == PTX_OP_MBAR_INVAL)
        return init(w, x, lane, at);
    if (!load(&o, &before, w, x, lane, at))
        return false;
    if (is_test(op)) {
        *over |= (uint32_t)phase_is_over(&o, w, x, lane) << lane;
        return true;
    }
    const char *problem = change(&o, w, x, lane);
    if (problem)
        return wrong(w, x, lane, problem);
    store(&o, at);
    if (x->flags & X_RESULT)
        row64(w, x->d)[lane] = before;
    return true;
}

bool mbar_run(struct warp *w, const struct xinsn *x, uint32_t lanes) {
    uint32_t over = 0;
    bool plain = x->insn->op == PTX_OP_MBAR_INIT || x->insn->op == PTX_OP_MBAR_INVAL;
    FOR_LANES(lane, lanes)
    if (!run_lane(w, x, lane, &over))
        return false;
    if (w->launch->shadow && !plain) /* after the access: what is released here does not order it */
        message(w, x);
    if (is_test(x->insn->op))
        w->pred[x->d] = (w->pred[x->d] & ~lanes) | over;
    return true;
}

bool mbar_complete(struct warp *w, const struct xinsn *x, unsigned lane,
                   const struct ptx_operand *object, uint32_t bytes) {
    struct xinsn at_object = *x;
    struct place at;
    struct object o;
    uint64_t before;
    at_object.space = SPACE_CLUSTER;
    at_object.a = x->e;
    at_object.imm = (uint64_t)object->offset;
    at_object.flags &= (uint16_t) ~(X_ADDR64 | X_UNIFORM);
    at_object.flags |= x->flags & X_OBJECT64 ? X_ADDR64 : 0;
    if (!mem_locate(&at, w, &at_object, lane, 8, true) || !in_shared(&at, w, x, lane))
        return false;
    if (!load(&o, &before, w, x, lane, at))
        return false;
    const char *problem = complete_tx(&o, bytes);
    if (problem)
        return wrong(w, x, lane, problem);
    store(&o, at);
    if (w->launch->shadow) {
        shadow_fence(w);
        shadow_strong(w);
    }
    return true;
}

uint32_t mbar_pending(uint64_t state) {
    struct object o;
    unpack(&o, state);
    return o.pending;
}
