/*
 * simd_warp.c - jumps, exits, barriers and exchanges between lanes.  PTX ISA 9.7.12, 9.7.13.
 *
 * Reading a lane outside the member mask is undefined in PTX; here it is a fault.
 */
#include "device/ptx/simd_await.h"

/* ---- control --------------------------------------------------------------------------------- */

/* The whole path goes to target. */
ALWAYS const struct xinsn *jump(struct warp *w, const struct xinsn *x) {
    const struct xinsn *target = x->target;
    if (w->path_count > 1)
        return leave(w, LEAVE_AGAIN, target, x + 1);
    if (target <= x && w->insns + (uint64_t)(x - w->run_start) >= w->slice)
        return leave(w, LEAVE_YIELD, target, x + 1);
    warp_count(w, x + 1);
    w->run_start = target;
    return target;
}

ALWAYS const struct xinsn *bra(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t taken = MASK_OF(w, x, masked);
    if (!masked || taken == w->mask)
        return jump(w, x);
    if (!taken)
        return x + 1;
    warp_split(w, taken, x->target);
    return leave(w, LEAVE_AGAIN, x + 1, x + 1);
}
VARIANTS(bra, )
DECLARE_BIND(bra) {
    (void)in;
    return USE(x, bra);
}

ALWAYS const struct xinsn *leave_function(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked);
    if (!m)
        return x + 1;
    warp_count(w, x + 1);
    w->run_start = x + 1;
    warp_exit(w, m);
    return leave(w, LEAVE_AGAIN, x + 1, x + 1);
}
VARIANTS(leave_function, )
DECLARE_BIND(exit) {
    (void)in;
    return USE(x, leave_function);
}

/* Lanes that execute this together are in the same function. */
ALWAYS const struct xinsn *ret(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked);
    if (!m)
        return x + 1;
    return w->in_frame[lowest(m)] ? call_return(w, x, m) : leave_function(w, x, masked);
}
VARIANTS(ret, )
DECLARE_BIND(ret) {
    (void)in;
    return USE(x, ret);
}

ALWAYS const struct xinsn *call(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked);
    return m ? call_enter(w, x, m) : x + 1;
}
VARIANTS(call, )
DECLARE_BIND(call) {
    (void)in;
    return USE(x, call);
}

/* x->target: what the table's elements are relative to. */
ALWAYS const struct xinsn *brx(struct warp *w, const struct xinsn *x, bool masked) {
    const struct ptx_table *t = x->insn->opnd[x->insn->first[1]].table;
    const u32a *index = row32(w, x->a);
    uint32_t m = MASK_OF(w, x, masked);
    if (!m)
        return x + 1;
    FOR_LANES(i, m)
    if (index[i] >= t->count) {
        fault_record(w, x, i, FAULT_OUT_OF_BOUNDS, 0, "jumps to element %u of a table of %zu",
                     index[i], t->count);
        return leave(w, LEAVE_FAULT, x, x + 1);
    }
    if (w->mask & ~m)
        warp_split(w, w->mask & ~m, x + 1);
    const struct xinsn *target = x->target;
    for (uint32_t left = m, lanes; left; left &= ~lanes) {
        uint32_t chosen = index[lowest(left)];
        lanes = 0;
        FOR_LANES(i, left)
        lanes |= index[i] == chosen ? 1u << i : 0;
        target = x->target + t->targets[chosen];
        if (lanes != left)
            warp_split(w, lanes, target);
    }
    return leave(w, LEAVE_AGAIN, target, x + 1);
}
VARIANTS(brx, )
DECLARE_BIND(brx) {
    (void)in;
    return USE(x, brx);
}

ALWAYS const struct xinsn *trap(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked);
    if (!m)
        return x + 1;
    fault_record(w, x, lowest(m), FAULT_TRAP, 0, "executes %s", ptx_opcodes[x->insn->op].name);
    return leave(w, LEAVE_FAULT, x, x + 1);
}
VARIANTS(trap, )
DECLARE_BIND(trap) {
    (void)in;
    return USE(x, trap);
}

/* ---- alloca: PTX ISA 9.7.17.3 ---------------------------------------------------------------- */

#define ALLOCA_ALIGN 8u /* the least, whatever immAlign says */

ALWAYS const struct xinsn *stack_alloca(struct warp *w, const struct xinsn *x, bool masked) {
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint64_t bytes = x->dbits == 64 ? row64(w, x->a)[i] : row32(w, x->a)[i], at = 0;
        if (!call_alloca(&at, w, i, bytes, x->imm)) {
            fault_record(w, x, i, FAULT_OUT_OF_BOUNDS, 0,
                         "asks for %llu bytes at a multiple of %llu of a stack that has not so much "
                         "left",
                         (unsigned long long)bytes, (unsigned long long)x->imm);
            return leave(w, LEAVE_FAULT, x, x + 1);
        }
        if (x->dbits == 64)
            row64(w, x->d)[i] = at;
        else
            row32(w, x->d)[i] = (uint32_t)at;
    }
    return x + 1;
}
VARIANTS(stack_alloca, )
DECLARE_BIND(alloca) {
    uint64_t align = in->group_count > 2 ? in->opnd[in->first[2]].imm : ALLOCA_ALIGN;
    x->imm = align > ALLOCA_ALIGN ? align : ALLOCA_ALIGN;
    x->dbits = (uint8_t)ptx_type_bits(in->type);
    return align >= 1 && align <= 1 << 23 && (align & (align - 1)) == 0 && USE(x, stack_alloca);
}

ALWAYS const struct xinsn *stack_top(struct warp *w, const struct xinsn *x, bool masked) {
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        if (x->dbits == 64)
            row64(w, x->d)[i] = w->alloca_top[i];
        else
            row32(w, x->d)[i] = w->alloca_top[i];
    }
    return x + 1;
}
VARIANTS(stack_top, )
DECLARE_BIND(stacksave) {
    x->dbits = (uint8_t)ptx_type_bits(in->type);
    return USE(x, stack_top);
}

ALWAYS const struct xinsn *stack_back(struct warp *w, const struct xinsn *x, bool masked) {
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint64_t at = x->dbits == 64 ? row64(w, x->a)[i] : row32(w, x->a)[i];
        if (call_alloca_restore(w, i, at))
            continue;
        fault_record(w, x, i, FAULT_OUT_OF_BOUNDS, at,
                     "of 0x%llx, which no stacksave of this function gave",
                     (unsigned long long)at);
        return leave(w, LEAVE_FAULT, x, x + 1);
    }
    return x + 1;
}
VARIANTS(stack_back, )
DECLARE_BIND(stackrestore) {
    x->dbits = (uint8_t)ptx_type_bits(in->type);
    return USE(x, stack_back);
}

ALWAYS const struct xinsn *yield(struct warp *w, const struct xinsn *x, bool masked) {
    if (!MASK_OF(w, x, masked))
        return x + 1;
    w->gave_way = true;
    return leave(w, LEAVE_YIELD, x + 1, x + 1);
}
VARIANTS(yield, )
DECLARE_BIND(yield) {
    (void)in;
    return USE(x, yield);
}

ALWAYS const struct xinsn *fence(struct warp *w, const struct xinsn *x, bool masked) {
    if (w->launch->shadow && MASK_OF(w, x, masked))
        shadow_fence(w);
    return x + 1;
}
VARIANTS(fence, )
DECLARE_BIND(fence) {
    (void)in;
    return USE(x, fence);
}

/* ---- shfl: PTX ISA 9.7.9.6 ------------------------------------------------------------------- */

ALWAYS const struct xinsn *shfl(struct warp *w, const struct xinsn *x, bool masked,
                                enum ptx_mode mode) {
    AWAIT(x->e);
    const u32a *a = row32(w, x->a), *b = row32(w, x->b), *c = row32(w, x->c);
    uint32_t from[LANES] __attribute__((aligned(64))), in_range[LANES] __attribute__((aligned(64)));
    uint32_t value[LANES] __attribute__((aligned(64))), outside = 0;
    LANE_LOOP(i) {
        int32_t lane = i, n = (int32_t)(b[i] & 31);
        int32_t clamp = (int32_t)(c[i] & 31), segment = (int32_t)(c[i] >> 8 & 31);
        int32_t last = (lane & segment) | (clamp & ~segment);
        int32_t j = mode == MODE_UP     ? lane - n
                    : mode == MODE_DOWN ? lane + n
                    : mode == MODE_BFLY ? lane ^ n
                                        : (lane & segment) | (n & ~segment);
        bool valid = mode == MODE_UP ? j >= last : j <= last;
        from[i] = (uint32_t)(valid ? j : lane) & 31;
        in_range[i] = valid ? ~0u : 0;
    }
    for (int i = 0; i < LANES; i++)
        value[i] = a[from[i]];
    if (masked) { /* a full warp cannot read a lane that is not there */
        FOR_LANES(i, m)
        outside |= (member[i] >> from[i] & 1) ? 0 : 1u << i;
        if (outside) {
            unsigned lane = lowest(outside);
            fault_record(w, x, lane, FAULT_BAD_SHUFFLE, 0,
                         "shfl reads lane %u, which its member mask 0x%08x does not name",
                         from[lane], member[lane]);
            return leave(w, LEAVE_FAULT, x, x + 1);
        }
    }
    LANE_RESULT(u32a, x->d, value[i]);
    put_pred(w, x->d2, pack_row(in_range), m);
    return x + 1;
}
VARIANTS(shfl, _up, MODE_UP)
VARIANTS(shfl, _down, MODE_DOWN)
VARIANTS(shfl, _bfly, MODE_BFLY)
VARIANTS(shfl, _idx, MODE_IDX)
DECLARE_BIND(shfl) {
    switch (in->mods.mode) {
    case MODE_UP: return USE(x, shfl_up);
    case MODE_DOWN: return USE(x, shfl_down);
    case MODE_BFLY: return USE(x, shfl_bfly);
    case MODE_IDX: return USE(x, shfl_idx);
    default: return false;
    }
}

/* ---- vote, match, redux ---------------------------------------------------------------------- */

ALWAYS const struct xinsn *vote_ballot(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->a);
    uint32_t p = pred_p(w, x);
    LANE_RESULT(u32a, x->d, p & member[i] & m);
    return x + 1;
}
VARIANTS(vote_ballot, )
DECLARE_BIND(vote_ballot) {
    return in->mods.mode == MODE_BALLOT && USE(x, vote_ballot);
}

ALWAYS const struct xinsn *vote(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->a);
    uint32_t p = pred_p(w, x), result = 0;
    FOR_LANES(i, m) {
        uint32_t yes = p & member[i];
        bool all = yes == member[i], any = yes != 0;
        bool r = x->imm == MODE_ALL ? all : x->imm == MODE_ANY ? any : all || !any;
        result |= (uint32_t)r << i;
    }
    put_pred(w, x->d, result, m);
    return x + 1;
}
VARIANTS(vote, )
DECLARE_BIND(vote) {
    x->imm = in->mods.mode;
    return x->imm >= MODE_ALL && x->imm <= MODE_UNI && USE(x, vote);
}

ALWAYS const struct xinsn *match(struct warp *w, const struct xinsn *x, bool masked, bool wide,
                                 bool all) {
    AWAIT(x->b);
    uint32_t same[LANES], every = 0;
    FOR_LANES(i, m) {
        uint32_t equal = 0;
        FOR_LANES(j, member[i]) {
            bool eq = wide ? row64(w, x->a)[i] == row64(w, x->a)[j]
                           : row32(w, x->a)[i] == row32(w, x->a)[j];
            equal |= (uint32_t)eq << j;
        }
        bool complete = equal == member[i];
        same[i] = all ? (complete ? equal : 0) : equal;
        every |= (uint32_t)complete << i;
    }
    FOR_LANES(i, m)
    row32(w, x->d)[i] = same[i];
    put_pred(w, x->d2, every, m);
    return x + 1;
}
VARIANTS(match, _any32, false, false)
VARIANTS(match, _any64, true, false)
VARIANTS(match, _all32, false, true)
VARIANTS(match, _all64, true, true)
DECLARE_BIND(match) {
    bool wide = ptx_type_bits(in->type) > 32;
    if (in->op == PTX_OP_MATCH_ANY)
        return wide ? USE(x, match_any64) : USE(x, match_any32);
    return wide ? USE(x, match_all64) : USE(x, match_all32);
}

/* ---- 8x8 matrices of 16-bit elements: PTX ISA 9.7.14.5 --------------------------------------- */

/*
 * Lane t holds elements 2 (t % 4) and the next of row t / 4, or of column t / 4 with .trans.  Row r
 * of matrix k lies at the address of lane 8 k + r.
 */
static uint8_t *element(uint8_t rows[LANES][16], unsigned matrix, unsigned lane, unsigned which,
                        bool trans) {
    unsigned major = lane / 4, minor = lane % 4 * 2 + which;
    return trans ? &rows[matrix * 8 + minor][major * 2] : &rows[matrix * 8 + major][minor * 2];
}

static void get_fragment(u32a *row, uint8_t rows[LANES][16], unsigned matrix, bool trans) {
    for (unsigned lane = 0; lane < LANES; lane++) {
        uint16_t low, high;
        memcpy(&low, element(rows, matrix, lane, 0, trans), 2);
        memcpy(&high, element(rows, matrix, lane, 1, trans), 2);
        row[lane] = low | (uint32_t)high << 16;
    }
}

static void put_fragment(uint8_t rows[LANES][16], const u32a *row, unsigned matrix, bool trans) {
    for (unsigned lane = 0; lane < LANES; lane++) {
        uint16_t low = (uint16_t)row[lane], high = (uint16_t)(row[lane] >> 16);
        memcpy(element(rows, matrix, lane, 0, trans), &low, 2);
        memcpy(element(rows, matrix, lane, 1, trans), &high, 2);
    }
}

static const unsigned row_bytes_all[LANES] = {16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
                                              16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
                                              16, 16, 16, 16, 16, 16, 16, 16, 16, 16};

ALWAYS const struct xinsn *ldmatrix(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->e);
    uint8_t rows[LANES][16];
    if (!mem_read_rows(w, x, ~0u >> (LANES - 8 * x->vec), row_bytes_all, rows))
        return leave(w, LEAVE_FAULT, x, x + 1);
    for (unsigned k = 0; k < x->vec; k++)
        get_fragment(row32(w, x->list[k]), rows, k, x->insn->mods.trans);
    return x + 1;
}
VARIANTS(ldmatrix, )
DECLARE_BIND(ldmatrix) {
    (void)in;
    return USE(x, ldmatrix);
}

ALWAYS const struct xinsn *stmatrix(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->e);
    uint8_t rows[LANES][16];
    for (unsigned k = 0; k < x->vec; k++)
        put_fragment(rows, row32(w, x->list[k]), k, x->insn->mods.trans);
    if (!mem_write_rows(w, x, ~0u >> (LANES - 8 * x->vec), row_bytes_all, rows))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return x + 1;
}
VARIANTS(stmatrix, )
DECLARE_BIND(stmatrix) {
    (void)in;
    return USE(x, stmatrix);
}

ALWAYS const struct xinsn *movmatrix(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->e);
    uint8_t rows[LANES][16];
    put_fragment(rows, row32(w, x->a), 0, false);
    get_fragment(row32(w, x->d), rows, 0, true);
    return x + 1;
}
VARIANTS(movmatrix, )
DECLARE_BIND(movmatrix) {
    (void)in;
    return USE(x, movmatrix);
}

static uint32_t combine(enum ptx_atom op, bool is_signed, uint32_t a, uint32_t b) {
    switch (op) {
    case ATOM_ADD: return a + b;
    case ATOM_AND: return a & b;
    case ATOM_OR: return a | b;
    case ATOM_XOR: return a ^ b;
    case ATOM_MIN: return (is_signed ? (int32_t)a < (int32_t)b : a < b) ? a : b;
    default: return (is_signed ? (int32_t)a > (int32_t)b : a > b) ? a : b;
    }
}

ALWAYS const struct xinsn *redux(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->b);
    uint32_t result[LANES];
    enum ptx_atom op = (enum ptx_atom)x->imm;
    bool is_signed = x->insn->type == PTX_S32;
    FOR_LANES(i, m) {
        uint32_t first = lowest(member[i]), r = row32(w, x->a)[first];
        FOR_LANES(j, member[i] & (member[i] - 1))
        r = combine(op, is_signed, r, row32(w, x->a)[j]);
        result[i] = r;
    }
    FOR_LANES(i, m)
    row32(w, x->d)[i] = result[i];
    return x + 1;
}
VARIANTS(redux, )
DECLARE_BIND(redux) {
    x->imm = in->mods.atom;
    switch (in->mods.atom) {
    case ATOM_ADD:
    case ATOM_MIN:
    case ATOM_MAX:
    case ATOM_AND:
    case ATOM_OR:
    case ATOM_XOR: return USE(x, redux);
    default: return false;
    }
}

/* As min and max take two lanes, from the lowest on. */
static uint32_t extreme_f32_lanes(uint32_t a, uint32_t b, const struct ptx_mods *m) {
    uint32_t keep = m->abs ? 0x7fffffffu : ~0u;
    a &= keep;
    b &= keep;
    bool nan_a = (a & 0x7fffffffu) > 0x7f800000u, nan_b = (b & 0x7fffffffu) > 0x7f800000u;
    if (m->nan ? nan_a || nan_b : nan_a && nan_b)
        return 0x7fffffffu;
    if (nan_a || nan_b)
        return nan_a ? b : a;
    int32_t ka = (int32_t)(a ^ (a >> 31 ? 0x7fffffffu : 0));
    int32_t kb = (int32_t)(b ^ (b >> 31 ? 0x7fffffffu : 0));
    return (ka < kb) == (m->atom == ATOM_MIN) ? a : b;
}

ALWAYS const struct xinsn *redux_f32(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->b);
    uint32_t result[LANES];
    FOR_LANES(i, m) {
        uint32_t r = row32(w, x->a)[lowest(member[i])];
        FOR_LANES(j, member[i])
        r = extreme_f32_lanes(r, row32(w, x->a)[j], &x->insn->mods);
        result[i] = r;
    }
    FOR_LANES(i, m)
    row32(w, x->d)[i] = result[i];
    return x + 1;
}
VARIANTS(redux_f32, )
DECLARE_BIND(redux_f32) {
    return (in->mods.atom == ATOM_MIN || in->mods.atom == ATOM_MAX) && USE(x, redux_f32);
}

ALWAYS const struct xinsn *activemask(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked);
    LANE_RESULT(u32a, x->d, m);
    return x + 1;
}
VARIANTS(activemask, )
DECLARE_BIND(activemask) {
    (void)in;
    return USE(x, activemask);
}

ALWAYS const struct xinsn *elect(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->a);
    uint32_t chosen = 0;
    FOR_LANES(i, m) {
        row32(w, x->d)[i] = lowest(member[i]);
        chosen |= lowest(member[i]) == i ? 1u << i : 0;
    }
    put_pred(w, x->d2, chosen, m);
    return x + 1;
}
VARIANTS(elect, )
DECLARE_BIND(elect) {
    (void)in;
    return USE(x, elect);
}

ALWAYS const struct xinsn *bar_warp(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->a);
    for (uint32_t left = w->launch->shadow ? m : 0; left;) { /* each mask orders its own lanes */
        uint32_t lanes = member[lowest(left)];
        shadow_warp_sync(w, lanes);
        left &= ~lanes;
    }
    return x + 1;
}
VARIANTS(bar_warp, )
DECLARE_BIND(bar_warp) {
    (void)in;
    return USE(x, bar_warp);
}

/* ---- block barriers -------------------------------------------------------------------------- */

/* x->imm: 1 when there is a thread count (source b). */
ALWAYS const struct xinsn *bar_at(struct warp *w, const struct xinsn *x, bool masked, bool wait) {
    uint32_t m = MASK_OF(w, x, masked);
    if (!m)
        return x + 1;
    unsigned lane = lowest(m);
    uint32_t id = row32(w, x->a)[lane], count = x->imm ? row32(w, x->b)[lane] : 0;
    if (id >= BARRIERS || count % LANES || (x->imm && !count) || count > w->block->warps * LANES) {
        fault_record(w, x, lane, FAULT_DIVERGENT_BARRIER, 0,
                     "barrier %u for %u threads: barriers are 0 to 15, counts multiples of 32 "
                     "within the block",
                     id, count);
        return leave(w, LEAVE_FAULT, x, x + 1);
    }
    uint32_t here = 0; /* lanes may name different barriers */
    FOR_LANES(i, m)
    here |= row32(w, x->a)[i] == id && (!x->imm || row32(w, x->b)[i] == count) ? 1u << i : 0;
    if (w->mask & ~m)
        warp_split(w, w->mask & ~m, x + 1);
    if (m & ~here)
        warp_split(w, m & ~here, x);
    block_arrive(w, id, count, here, wait);
    return leave(w, wait ? LEAVE_BAR : LEAVE_AGAIN, wait ? x : x + 1, x + 1);
}
ALWAYS const struct xinsn *bar_sync(struct warp *w, const struct xinsn *x, bool masked) {
    return bar_at(w, x, masked, true);
}
VARIANTS(bar_sync, )
ALWAYS const struct xinsn *bar_arrive(struct warp *w, const struct xinsn *x, bool masked) {
    return bar_at(w, x, masked, false);
}
VARIANTS(bar_arrive, )

DECLARE_BIND(bar) {
    x->imm = in->group_count > 1 && in->first[2] > in->first[1];
    if (in->mods.bar == BAR_ARRIVE)
        return x->imm && USE(x, bar_arrive);
    return in->mods.bar == BAR_SYNC && USE(x, bar_sync);
}
DECLARE_BIND(bar_red_popc) {
    x->imm = in->first[3] > in->first[2];
    return in->mods.atom == ATOM_POPC && USE(x, bar_sync);
}
DECLARE_BIND(bar_red_pred) {
    x->imm = in->first[3] > in->first[2];
    return (in->mods.boolop == BOOL_AND || in->mods.boolop == BOOL_OR) && USE(x, bar_sync);
}
