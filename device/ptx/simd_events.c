/*
 * simd_events.c - counts NaN and infinity born and subnormals flushed, around the handlers that
 * compute.
 *
 * Only a device with the shadow wraps its instructions; the handlers themselves know nothing of it.
 */
#include <math.h>
#include <string.h>

#include "device/ptx/half.h"
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
    case PTX_OP_DIV_F64:
    case PTX_OP_ADD_F16:
    case PTX_OP_ADD_BF16:
    case PTX_OP_SUB_F16:
    case PTX_OP_SUB_BF16:
    case PTX_OP_MUL_F16:
    case PTX_OP_MUL_BF16:
    case PTX_OP_CVT_PAIR_F32:
        return 2;
    case PTX_OP_FMA_F32:
    case PTX_OP_MAD_F32:
    case PTX_OP_FMA_F64:
    case PTX_OP_FMA_F16:
    case PTX_OP_FMA_F16_RELU:
    case PTX_OP_FMA_BF16:
        return 3;
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
    case PTX_OP_SQRT_F64:
    case PTX_OP_EX2_F16:
    case PTX_OP_EX2_BF16:
    case PTX_OP_CVT_F16_F32:
    case PTX_OP_CVT_BF16_F32:
    case PTX_OP_CVT_HALF_F32:
        return 1;
    default:
        return 0;
    }
}

/* The operands before the instruction: its destination may be one of them. */
struct operands {
    uint8_t row[3][LANES * 8] __attribute__((aligned(64)));
};

/* How a row holds numbers: one in a lane, or two (f16x2, bf16x2). */
struct format {
    enum ptx_type type; /* PTX_F32, F64, F16, BF16 */
    unsigned parts;
};

static struct format format_of(enum ptx_type type) {
    switch (type) {
    case PTX_F64:
        return (struct format){PTX_F64, 1};
    case PTX_F16:
        return (struct format){PTX_F16, 1};
    case PTX_F16X2:
        return (struct format){PTX_F16, 2};
    case PTX_BF16:
        return (struct format){PTX_BF16, 1};
    case PTX_BF16X2:
        return (struct format){PTX_BF16, 2};
    default:
        return (struct format){PTX_F32, 1};
    }
}

static bool is_half(struct format f) {
    return f.type == PTX_F16 || f.type == PTX_BF16;
}

static double value_at(const uint8_t *row, unsigned lane, struct format format, unsigned part) {
    uint32_t bits;
    double d;
    if (format.type == PTX_F64) {
        memcpy(&d, row + lane * 8, 8);
        return d;
    }
    memcpy(&bits, row + lane * 4, 4);
    if (is_half(format)) {
        bits = bits >> 16 * part & 0xffff;
        bits = format.type == PTX_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    }
    return (double)half_as_f32(bits);
}

/* Is the exact result of the operation other than zero?  Binary64 cannot underflow here. */
static bool is_nonzero(enum ptx_op op, double a, double b, double c) {
    switch (op) {
    case PTX_OP_ADD_F16:
    case PTX_OP_ADD_F32:
        return a + b != 0;
    case PTX_OP_SUB_F16:
    case PTX_OP_SUB_F32:
        return a - b != 0;
    case PTX_OP_MUL_F16:
    case PTX_OP_MUL_F32:
        return a != 0 && b != 0;
    case PTX_OP_FMA_F16:
    case PTX_OP_FMA_F32:
    case PTX_OP_MAD_F32:
        return a * b + c != 0;
    case PTX_OP_DIV_APPROX_F32:
    case PTX_OP_DIV_FULL_F32:
    case PTX_OP_DIV_F32:
        return a != 0 && isfinite(b);
    case PTX_OP_RCP_F32:
    case PTX_OP_RCPA_F32:
    case PTX_OP_EX2_BF16:
    case PTX_OP_EX2_F32:
        return isfinite(a);
    default:
        return false;
    }
}

static double flushed(double v, bool ftz, double normal, uint64_t *count) {
    if (!ftz || v == 0 || !(fabs(v) < normal))
        return v;
    ++*count;
    return copysign(0, v);
}

/* normal: the smallest normal number of the format. */
static void classify(struct dev_events *e, const struct xinsn *x, unsigned n, const double v[3],
                     double r, double normal) {
    bool nan = false, inf = false;
    double in[3] = {0, 0, 0};
    uint64_t lost = 0;
    for (unsigned k = 0; k < n; k++) {
        nan |= isnan(v[k]) != 0;
        inf |= isinf(v[k]) != 0;
        in[k] = flushed(v[k], x->inner->ftz, normal, &lost);
    }
    e->nan_born += isnan(r) && !nan;
    e->inf_born += isinf(r) && !nan && !inf;
    if (x->inner->ftz && r == 0 && !nan && !inf && lost == 0)
        lost = is_nonzero(x->insn->op, in[0], in[1], in[2]);
    e->subnormal_flushed += lost > 0;
}

/* The bits of a lane that are its exponent, and its significand's, in all parts. */
static uint32_t exponents(struct format f) {
    uint32_t mask = f.type == PTX_F16 ? 0x7c00 : f.type == PTX_BF16 ? 0x7f80 : 0x7f800000u;
    return f.parts == 2 ? mask << 16 | mask : mask;
}

/* Is one of the parts of `bits` all ones (all zeros) under the mask? */
static bool has_full(uint32_t bits, uint32_t mask, unsigned parts) {
    uint32_t low = parts == 2 ? mask & 0xffff : mask, high = mask & 0xffff0000u;
    return (bits & low) == low || (parts == 2 && (bits & high) == high);
}

/*
 * Could anything have happened?  NaN or Inf in the result; with .ftz, a zero result or a
 * subnormal.
 */
static bool is_remarkable(const struct xinsn *x, const struct operands *before,
                          const uint8_t *result, struct format to) {
    if (to.type == PTX_F64) {
        const u64a *r = (const u64a *)result;
        uint64_t special = 0;
        LANE_LOOP(i) special |= (r[i] & 0x7ff0000000000000u) == 0x7ff0000000000000u;
        return special != 0;
    }
    const u32a *r = (const u32a *)result;
    uint32_t special = 0, mask = exponents(to);
    if (is_half(to)) {
        LANE_LOOP(i) special |= has_full(r[i], mask, to.parts);
        if (!x->inner->ftz)
            return special != 0;
        LANE_LOOP(i) special |= has_full(~r[i], mask, to.parts);
        for (unsigned k = 0; k < x->inner->sources; k++) {
            const u32a *v = (const u32a *)before->row[k];
            LANE_LOOP(i) special |= has_full(~v[i], mask, to.parts);
        }
        return special != 0;
    }
    LANE_LOOP(i) special |= (r[i] & mask) == mask;
    if (!x->inner->ftz)
        return special != 0;
    LANE_LOOP(i) special |= (r[i] & mask) == 0;
    for (unsigned k = 0; k < x->inner->sources; k++) {
        const u32a *v = (const u32a *)before->row[k];
        LANE_LOOP(i) special |= (v[i] & mask) == 0 && (v[i] & 0x7fffffu);
    }
    return special != 0;
}

static const struct xinsn *count_lanes(struct warp *w, const struct xinsn *x, exec_fn run) {
    struct format to = format_of(x->insn->type), from = to;
    bool pack = x->insn->op == PTX_OP_CVT_PAIR_F32; /* the first source is the high part */
    if (x->insn->type2 != PTX_NOTYPE)
        from = format_of(x->insn->type2);
    double normal = to.type == PTX_F16 ? 0x1p-14 : 0x1p-126;
    uint32_t lanes = active(w, x);
    const uint32_t rows[3] = {x->a, x->b, x->c};
    struct operands before;
    for (unsigned k = 0; k < x->inner->sources; k++)
        memcpy(before.row[k], w->file + rows[k], from.type == PTX_F64 ? ROW64 : ROW32);
    const struct xinsn *next = run(w, x);
    const uint8_t *result = w->file + x->d;
    if (!is_remarkable(x, &before, result, to))
        return next;
    FOR_LANES(i, lanes) {
        for (unsigned part = 0; part < to.parts; part++) {
            double v[3] = {0, 0, 0};
            unsigned sources = pack ? 1 : x->inner->sources;
            for (unsigned k = 0; k < sources; k++)
                v[k] = value_at(before.row[pack ? 1 - part : k], i, from, pack ? 0 : part);
            classify(&w->launch->run->events, x, sources, v, value_at(result, i, to, part), normal);
        }
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
    const bool ftz = x->insn->mods.ftz && x->insn->type2 == PTX_NOTYPE && /* a cvt's is not counted */
                     ptx_type_bits(x->insn->type) <= 32;              /* f64's is always on */
    *inner = (struct inner){x->full, x->masked, (uint8_t)sources, ftz};
    x->inner = inner;
    x->full = count_full;
    x->masked = count_masked;
    return true;
}
