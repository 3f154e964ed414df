/*
 * simd_extra.c - the rarer integer instructions, lane by lane: carries, dot products, 24-bit
 * products, masks, pairs of 16 bits.  PTX ISA 9.7.1, 9.7.2, 9.7.8.
 */
#include "device/ptx/simd.h"

/* ---- shape of a handler: result(x, a, b, c) of each lane ------------------------------------- */

ALWAYS uint64_t source(const struct warp *w, uint32_t row, bool wide, uint32_t lane) {
    return wide ? row64(w, row)[lane] : row32(w, row)[lane];
}

#define LANES32(name, expression)                                                         \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) { \
        const struct ptx_insn *in = x->insn;                                              \
        FOR_LANES(i, MASK_OF(w, x, masked)) {                                             \
            uint32_t a = row32(w, x->a)[i], b = row32(w, x->b)[i], c = row32(w, x->c)[i]; \
            (void)in, (void)a, (void)b, (void)c;                                          \
            row32(w, x->d)[i] = (uint32_t)(expression);                                   \
        }                                                                                 \
        return x + 1;                                                                     \
    }                                                                                     \
    VARIANTS(name, )
#define BIND_ANY(name)       \
    DECLARE_BIND(name) {     \
        (void)in;            \
        return USE(x, name); \
    }

/* ---- extended precision: the carry of each lane is a bit of w->carry ------------------------- */

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

/* The high or low half of a * b as the type has it. */
static uint64_t half_product(const struct ptx_insn *in, uint64_t a, uint64_t b) {
    unsigned bits = ptx_type_bits(in->type);
    bool is_signed = in->type == PTX_S32 || in->type == PTX_S64;
    u128 p = (u128)a * b;
    if (is_signed)
        p = bits == 32 ? (u128)((s128)(int32_t)a * (int32_t)b)
                       : (u128)((s128)(int64_t)a * (int64_t)b);
    p = in->mods.half == HALF_HI ? p >> bits : p;
    return bits == 32 ? (uint32_t)p : (uint64_t)p;
}

ALWAYS const struct xinsn *carry(struct warp *w, const struct xinsn *x, bool masked) {
    const struct ptx_insn *in = x->insn;
    enum ptx_op op = in->op;
    bool wide = ptx_type_bits(in->type) == 64, product = op == PTX_OP_MAD_CC || op == PTX_OP_MADC;
    bool minus = op == PTX_OP_SUB_CC || op == PTX_OP_SUBC;
    bool takes = op == PTX_OP_ADDC || op == PTX_OP_SUBC || op == PTX_OP_MADC;
    uint32_t m = MASK_OF(w, x, masked), out = 0;
    FOR_LANES(i, m) {
        uint64_t a = source(w, x->a, wide, i), b = source(w, x->b, wide, i);
        uint64_t in_carry = takes ? w->carry >> i & 1 : 0;
        if (product) {
            a = half_product(in, a, b);
            b = source(w, x->c, wide, i);
        }
        u128 r = minus ? (u128)a - b - in_carry : (u128)a + b + in_carry;
        out |= (uint32_t)(r >> (wide ? 64 : 32) & 1) << i;
        if (wide)
            row64(w, x->d)[i] = (uint64_t)r;
        else
            row32(w, x->d)[i] = (uint32_t)r;
    }
    if (in->mods.cc)
        w->carry = (w->carry & ~m) | out;
    return x + 1;
}
VARIANTS(carry, )
BIND_ANY(carry)

/* ---- 24-bit products ------------------------------------------------------------------------- */

static int64_t of_24(const struct ptx_insn *in, uint32_t v) {
    return in->type == PTX_S32 ? (int32_t)(v << 8) >> 8 : (int64_t)(v & 0xffffff);
}
static uint32_t product_24(const struct ptx_insn *in, uint32_t a, uint32_t b) {
    int64_t p = of_24(in, a) * of_24(in, b);
    return in->mods.half == HALF_HI ? (uint32_t)(p >> 16) : (uint32_t)p;
}
static uint32_t saturated(int64_t v) {
    return (uint32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}
LANES32(mul24, product_24(in, a, b))
BIND_ANY(mul24)
LANES32(mad24, product_24(in, a, b) + c)
BIND_ANY(mad24)
LANES32(mad24_sat, saturated((int64_t)(int32_t)product_24(in, a, b) + (int32_t)c))
DECLARE_BIND(mad24_sat) {
    return in->mods.half == HALF_HI && USE(x, mad24_sat);
}

/* ---- dot products: PTX ISA 9.7.1.23, 24 ------------------------------------------------------ */

static int64_t part(uint32_t v, unsigned at, unsigned bits, bool is_signed) {
    uint32_t field = v >> at & (bits == 32 ? ~0u : (1u << bits) - 1);
    return is_signed ? (int32_t)(field << (32 - bits)) >> (32 - bits) : (int64_t)field;
}
static uint32_t dot(const struct ptx_insn *in, uint32_t a, uint32_t b, uint32_t c) {
    bool sa = in->type == PTX_S32, sb = in->type2 == PTX_S32, two = in->op == PTX_OP_DP2A;
    unsigned bits = two ? 16 : 8, first = two && in->mods.half == HALF_HI ? 16 : 0;
    uint64_t sum = c;
    for (unsigned k = 0; k < (two ? 2u : 4u); k++)
        sum += (uint64_t)(part(a, k * bits, bits, sa) * part(b, first + k * 8, 8, sb));
    return (uint32_t)sum;
}
LANES32(dot_product, dot(in, a, b, c))
BIND_ANY(dot_product)

/*
 * PTX ISA 9.7.17: the results are the low 8 bits of the differences (with .sat clamped to the
 * result's type), or their sum and c.
 */
static uint32_t byte_differences(const struct ptx_insn *in, uint32_t a, uint32_t b, uint32_t c) {
    bool sources = in->op != PTX_OP_VABSDIFF4_UU, result = in->op == PTX_OP_VABSDIFF4_SS;
    uint32_t bytes = 0, sum = c;
    for (unsigned at = 0; at < 32; at += 8) {
        int64_t d = part(a, at, 8, sources) - part(b, at, 8, sources);
        d = d < 0 ? -d : d;
        if (in->mods.sat && result && d > 127)
            d = 127;
        bytes |= (uint32_t)(d & 0xff) << at;
        sum += (uint32_t)d;
    }
    return in->mods.atom == ATOM_ADD ? sum : bytes;
}
LANES32(vabsdiff4, byte_differences(in, a, b, c))
DECLARE_BIND(vabsdiff4) {
    bool plain = in->mods.atom == ATOM_NONE, add = in->mods.atom == ATOM_ADD;
    return (plain || (add && !in->mods.sat)) && USE(x, vabsdiff4);
}

/* ---- bits ------------------------------------------------------------------------------------ */

ALWAYS const struct xinsn *bfind_shift(struct warp *w, const struct xinsn *x, bool masked) {
    enum ptx_type t = x->insn->type;
    bool wide = ptx_type_bits(t) == 64;
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint64_t a = source(w, x->a, wide, i);
        if (t == PTX_S32)
            a = (uint32_t)((int32_t)a < 0 ? ~a : a);
        if (t == PTX_S64)
            a = (int64_t)a < 0 ? ~a : a;
        row32(w, x->d)[i] = a ? (uint32_t)__builtin_clzll(a) - (wide ? 0 : 32) : ~0u;
    }
    return x + 1;
}
VARIANTS(bfind_shift, )
BIND_ANY(bfind_shift)

/* PTX ISA 9.7.1.22: the n-th set bit from `base` on, upwards or (n < 0) downwards; n = 0: itself. */
static uint32_t find_nth(uint32_t mask, uint32_t base, int32_t n) {
    int step = n < 0 ? -1 : 1;
    int64_t left = n < 0 ? -(int64_t)n : n;
    if (base > 31)
        return ~0u;
    if (n == 0)
        return mask >> base & 1 ? base : ~0u;
    for (int at = (int)base; at >= 0 && at < 32; at += step)
        if ((mask >> at & 1) && --left == 0)
            return (uint32_t)at;
    return ~0u;
}
LANES32(fns, find_nth(a, b, (int32_t)c))
BIND_ANY(fns)

/* PTX ISA 9.7.8.11: the low n bits of a, the rest 0 or their sign. */
static uint32_t extend(const struct ptx_insn *in, uint32_t a, uint32_t n) {
    if (in->mods.wrap)
        n &= 31;
    if (n == 0)
        return 0;
    if (n >= 32)
        return a;
    a <<= 32 - n;
    return in->type == PTX_S32 ? (uint32_t)((int32_t)a >> (32 - n)) : a >> (32 - n);
}
LANES32(szext, extend(in, a, b))
BIND_ANY(szext)

/* PTX ISA 9.7.8.12: n ones from bit `at` on. */
static uint32_t bit_mask(const struct ptx_insn *in, uint32_t at, uint32_t n) {
    if (in->mods.wrap) {
        at &= 31;
        n &= 31;
    }
    if (at > 31)
        return 0;
    return (n > 31 ? ~0u : (1u << n) - 1) << at;
}
LANES32(bmsk, bit_mask(in, a, b))
BIND_ANY(bmsk)

/* PTX ISA 9.7.8.7: prmt's other modes; the selector's two low bits. */
static uint32_t permuted(const struct ptx_insn *in, uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t s = selector & 3, r = 0;
    uint64_t both = (uint64_t)b << 32 | a;
    for (unsigned i = 0; i < 4; i++) {
        unsigned byte;
        switch (in->mods.mode) {
        case MODE_F4E:
            byte = s + i;
            break;
        case MODE_B4E:
            byte = (s + 8 - i) & 7;
            break;
        case MODE_RC8:
            byte = s;
            break;
        case MODE_ECL:
            byte = i > s ? i : s;
            break;
        case MODE_ECR:
            byte = i < s ? i : s;
            break;
        default:
            byte = (s & 1) * 2 + (i & 1);
            break; /* MODE_RC16 */
        }
        r |= (uint32_t)(both >> (8 * byte) & 0xff) << (8 * i);
    }
    return r;
}
LANES32(prmt_mode, permuted(in, a, b, c))
BIND_ANY(prmt_mode)

/* lop3 with a predicate: whether the result is not 0, and or or with another predicate. */
ALWAYS const struct xinsn *lop3_bool(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked), set = 0;
    FOR_LANES(i, m) {
        uint32_t a = row32(w, x->a)[i], b = row32(w, x->b)[i], c = row32(w, x->c)[i], r = 0;
        for (unsigned k = 0; k < 8; k++)
            if (x->imm >> k & 1)
                r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
        row32(w, x->d)[i] = r;
        set |= (r != 0) ? 1u << i : 0;
    }
    uint32_t q = pred_p(w, x);
    put_pred(w, x->d2, x->insn->mods.boolop == BOOL_AND ? set & q : set | q, m);
    return x + 1;
}
VARIANTS(lop3_bool, )
DECLARE_BIND(lop3_bool) {
    const struct ptx_operand *table = &in->opnd[in->first[4]];
    x->imm = table->imm;
    return table->kind == OPND_IMM && table->imm < 256 && in->mods.boolop != BOOL_XOR &&
           USE(x, lop3_bool);
}

/* ---- pairs of 16-bit integers, and extremes that stop at 0 ----------------------------------- */

static uint32_t pair_half(const struct ptx_insn *in, uint32_t a, uint32_t b) {
    bool is_signed = in->type == PTX_S16X2;
    int32_t x = is_signed ? (int16_t)a : (int32_t)(a & 0xffff);
    int32_t y = is_signed ? (int16_t)b : (int32_t)(b & 0xffff), r;
    switch (in->op) {
    case PTX_OP_ADD_PAIR:
        r = x + y;
        break;
    case PTX_OP_MIN_PAIR:
    case PTX_OP_MIN_RELU:
        r = x < y ? x : y;
        break;
    default:
        r = x > y ? x : y;
        break;
    }
    return (uint32_t)(in->mods.relu && r < 0 ? 0 : r) & 0xffff;
}
LANES32(pair, pair_half(in, a, b) | pair_half(in, a >> 16, b >> 16) << 16)
BIND_ANY(pair)

static uint32_t extreme_relu(const struct ptx_insn *in, int32_t a, int32_t b) {
    int32_t r = in->op == PTX_OP_MIN_RELU ? (a < b ? a : b) : a > b ? a : b;
    return (uint32_t)(r < 0 ? 0 : r);
}
LANES32(relu_s32, extreme_relu(in, (int32_t)a, (int32_t)b))
DECLARE_BIND(relu) {
    return in->type == PTX_S32 ? USE(x, relu_s32) : USE(x, pair);
}

/* ---- double precision: classes and signs ----------------------------------------------------- */

static bool class_test(uint64_t bits, enum ptx_mode mode) {
    uint64_t magnitude = bits & 0x7fffffffffffffffu, infinity = 0x7ff0000000000000u;
    bool tiny = magnitude < 0x0010000000000000u;
    switch (mode) {
    case MODE_FINITE:
        return magnitude < infinity;
    case MODE_INFINITE:
        return magnitude == infinity;
    case MODE_NUMBER:
        return magnitude <= infinity;
    case MODE_NOTANUMBER:
        return magnitude > infinity;
    case MODE_NORMAL:
        return magnitude < infinity && (!tiny || !magnitude);
    default:
        return tiny && magnitude;
    }
}
ALWAYS const struct xinsn *testp_wide(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked), result = 0;
    FOR_LANES(i, m)
    result |= (uint32_t)class_test(row64(w, x->a)[i], (enum ptx_mode)x->imm) << i;
    put_pred(w, x->d, result, m);
    return x + 1;
}
VARIANTS(testp_wide, )
DECLARE_BIND(testp_f64) {
    x->imm = in->mods.mode;
    return in->mods.mode >= MODE_FINITE && in->mods.mode <= MODE_SUBNORMAL && USE(x, testp_wide);
}

#define SIGN64 0x8000000000000000u
LANE_HANDLER(copysign_f64, u64, uint64_t, uint64_t, u64a, uint64_t, u64a,
             (a & SIGN64) | (b & ~SIGN64))
DECLARE_BIND(copysign_f64) {
    (void)in;
    return USE(x, copysign_f64_u64);
}
