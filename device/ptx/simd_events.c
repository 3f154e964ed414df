/*
 * simd_events.c - counts NaN and infinity born and subnormals flushed, around the handlers that
 * compute.
 *
 * Only a device with the shadow wraps its instructions; the handlers themselves know nothing of it.
 */
#include <math.h>
#include <string.h>

#include "device/ptx/simd.h"

/* How many sources; 0: not counted. */
static unsigned source_count(enum ptx_op op) {
    switch (op) {
    case PTX_OP_ADD_F32:
    case PTX_OP_SUB_F32:
    case PTX_OP_MUL_F32:
    case PTX_OP_DIV_F32:
    case PTX_OP_DIV_APPROX_F32:
    case PTX_OP_DIV_FULL_F32:
    case PTX_OP_ADD_F64:
    case PTX_OP_SUB_F64:
    case PTX_OP_MUL_F64:
    case PTX_OP_DIV_F64: return 2;
    case PTX_OP_FMA_F32:
    case PTX_OP_MAD_F32:
    case PTX_OP_FMA_F64: return 3;
    case PTX_OP_RCP_F32:
    case PTX_OP_SQRT_F32:
    case PTX_OP_EX2_F32:
    case PTX_OP_LG2_F32:
    case PTX_OP_RCPA_F32:
    case PTX_OP_RSQRT_F32:
    case PTX_OP_SQRTA_F32:
    case PTX_OP_SIN_F32:
    case PTX_OP_COS_F32:
    case PTX_OP_TANH_F32:
    case PTX_OP_RCPA_F64:
    case PTX_OP_RSQRTA_F64:
    case PTX_OP_SQRT_F64: return 1;
    default: return 0;
    }
}

/* The operands before the instruction: its destination may be one of them. */
struct operands {
    uint8_t row[3][LANES * 8] __attribute__((aligned(64)));
};

static double value_at(const uint8_t *row, unsigned lane, bool wide) {
    float f;
    double d;
    if (wide) {
        memcpy(&d, row + lane * 8, 8);
        return d;
    }
    memcpy(&f, row + lane * 4, 4);
    return (double)f;
}

/* Is the exact result of the f32 operation other than zero?  Binary64 cannot underflow here. */
static bool is_nonzero(enum ptx_op op, double a, double b, double c) {
    switch (op) {
    case PTX_OP_ADD_F32: return a + b != 0;
    case PTX_OP_SUB_F32: return a - b != 0;
    case PTX_OP_MUL_F32: return a != 0 && b != 0;
    case PTX_OP_FMA_F32:
    case PTX_OP_MAD_F32: return a * b + c != 0;
    case PTX_OP_DIV_APPROX_F32:
    case PTX_OP_DIV_FULL_F32:
    case PTX_OP_DIV_F32: return a != 0 && isfinite(b);
    case PTX_OP_RCP_F32:
    case PTX_OP_RCPA_F32:
    case PTX_OP_EX2_F32: return isfinite(a);
    default: return false;
    }
}

static double flushed(double v, bool ftz, uint64_t *count) {
    if (!ftz || v == 0 || !(fabs(v) < 0x1p-126))
        return v;
    ++*count;
    return copysign(0, v);
}

static void classify(struct dev_events *e, const struct xinsn *x, const double v[3], double r) {
    unsigned n = x->inner->sources;
    bool nan = false, inf = false;
    double in[3] = {0, 0, 0};
    uint64_t lost = 0;
    for (unsigned k = 0; k < n; k++) {
        nan |= isnan(v[k]) != 0;
        inf |= isinf(v[k]) != 0;
        in[k] = flushed(v[k], x->inner->ftz, &lost);
    }
    e->nan_born += isnan(r) && !nan;
    e->inf_born += isinf(r) && !nan && !inf;
    if (x->inner->ftz && r == 0 && !nan && !inf && lost == 0)
        lost = is_nonzero(x->insn->op, in[0], in[1], in[2]);
    e->subnormal_flushed += lost > 0;
}

/*
 * Could anything have happened?  NaN or Inf in the result; with .ftz, a zero result or a
 * subnormal.
 */
static bool is_remarkable(const struct xinsn *x, const struct operands *before,
                          const uint8_t *result, bool wide) {
    if (wide) {
        const u64a *r = (const u64a *)result;
        uint64_t special = 0;
        LANE_LOOP(i) special |= (r[i] & 0x7ff0000000000000u) == 0x7ff0000000000000u;
        return special != 0;
    }
    const u32a *r = (const u32a *)result;
    uint32_t special = 0;
    LANE_LOOP(i) special |= (r[i] & 0x7f800000u) == 0x7f800000u;
    if (!x->inner->ftz)
        return special != 0;
    LANE_LOOP(i) special |= (r[i] & 0x7f800000u) == 0;
    for (unsigned k = 0; k < x->inner->sources; k++) {
        const u32a *v = (const u32a *)before->row[k];
        LANE_LOOP(i) special |= (v[i] & 0x7f800000u) == 0 && (v[i] & 0x7fffffu);
    }
    return special != 0;
}

static const struct xinsn *count_lanes(struct warp *w, const struct xinsn *x, exec_fn run) {
    bool wide = ptx_type_bits(x->insn->type) > 32;
    uint32_t lanes = active(w, x);
    const uint32_t rows[3] = {x->a, x->b, x->c};
    struct operands before;
    for (unsigned k = 0; k < x->inner->sources; k++)
        memcpy(before.row[k], w->file + rows[k], wide ? ROW64 : ROW32);
    const struct xinsn *next = run(w, x);
    const uint8_t *result = w->file + x->d;
    if (!is_remarkable(x, &before, result, wide))
        return next;
    FOR_LANES(i, lanes) {
        double v[3] = {0, 0, 0};
        for (unsigned k = 0; k < x->inner->sources; k++)
            v[k] = value_at(before.row[k], i, wide);
        classify(&w->launch->run->events, x, v, value_at(result, i, wide));
    }
    return next;
}

static const struct xinsn *count_full(struct warp *w, const struct xinsn *x) {
    return count_lanes(w, x, x->inner->full);
}

static const struct xinsn *count_masked(struct warp *w, const struct xinsn *x) {
    return count_lanes(w, x, x->inner->masked);
}

bool ISA_NAME(count_events)(struct xinsn *x, struct inner *inner) {
    unsigned sources = source_count(x->insn->op);
    if (!sources)
        return false;
    bool ftz = x->insn->mods.ftz && ptx_type_bits(x->insn->type) <= 32; /* f64's is always on */
    *inner = (struct inner){x->full, x->masked, (uint8_t)sources, ftz};
    x->inner = inner;
    x->full = count_full;
    x->masked = count_masked;
    return true;
}
