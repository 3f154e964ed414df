/*
 * simd_half.c - f16, f16x2, bf16, bf16x2: arithmetic, extremes, ex2, tanh.  PTX ISA 9.7.4.
 *
 * Everything is rounded once, to nearest.
 *  - f16: sums and products are computed in binary32.  A product is exact there; a sum is rounded
 *    to 24 >= 2 * 11 + 2 bits first, which cannot change what 11 bits make of it, and is exact where
 *    the result is subnormal.  fma adds the exact product and c with rounding to odd (Boldo and
 *    Melquiond 2008), after which rounding to 11 <= 24 - 2 bits is right.
 *  - bf16 has binary32's exponents, so products need binary64: exact there, at least 2^-266.  Sums
 *    are rounded to odd, then once to 8 bits.
 * What the PTX ISA leaves open is as an H200 has it: docs/emulator.md.
 */
#include "device/ptx/half.h"
#include "device/ptx/mufu.h"
#include "device/ptx/simd.h"

enum half_kind { H_ADD, H_SUB, H_MUL, H_FMA };

enum { H_FTZ = 1, H_SAT = 2, H_RELU = 4, H_NAN = 8, H_XORSIGN = 16 };

static unsigned half_flags(const struct ptx_mods *m) {
    return (m->ftz ? H_FTZ : 0u) | (m->sat ? H_SAT : 0u) | (m->relu ? H_RELU : 0u) |
           (m->nan ? H_NAN : 0u) | (m->xorsign ? H_XORSIGN : 0u);
}

/* ---- f16 ------------------------------------------------------------------------------------- */

ALWAYS uint32_t flush_f16(uint32_t h) {
    return (h & 0x7c00) == 0 ? h & 0x8000 : h;
}

/* p + c with the last bit set when something was lost. */
ALWAYS float sum_to_odd(float p, float c) {
    float s = p + c, back = s - p;
    float error = (p - (s - back)) + (c - back); /* TwoSum: exact; NaN when s is not finite */
    uint32_t bits = half_f32_bits(s);
    uint32_t toward = (error > 0) == (s > 0) ? 1u : ~0u;
    bool fix = (error > 0 || error < 0) && !(bits & 1);
    return half_as_f32(fix ? bits + toward : bits);
}

/*
 * .ftz flushes what is below 2^-14 after rounding to 11 bits with any exponent, as in f32: all
 * below (1 - 2^-12) * 2^-14.
 */
ALWAYS uint32_t finish_f16(float v, unsigned flags) {
    uint32_t bits = half_f32_bits(v), r = f32_to_f16(bits), one = 0x3c00;
    r = (flags & H_FTZ) && (bits & 0x7fffffffu) < 0x387ff000u ? r & 0x8000 : r;
    bool positive = v > 0;
    uint32_t clamped = !positive ? 0 : r > one ? one : r;
    r = flags & H_SAT ? clamped : r;
    return (flags & H_RELU) && !positive && v <= 0 ? 0 : r;
}

ALWAYS uint32_t arith_f16(enum half_kind kind, uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    if (flags & H_FTZ) {
        a = flush_f16(a);
        b = flush_f16(b);
        c = flush_f16(c);
    }
    float fa = half_as_f32(f16_to_f32(a)), fb = half_as_f32(f16_to_f32(b));
    switch (kind) {
    case H_ADD:
        return finish_f16(fa + fb, flags);
    case H_SUB:
        return finish_f16(fa - fb, flags);
    case H_MUL:
        return finish_f16(fa * fb, flags);
    case H_FMA:
        return finish_f16(sum_to_odd(fa * fb, half_as_f32(f16_to_f32(c))), flags);
    }
    return 0;
}

/* ---- bf16 ------------------------------------------------------------------------------------ */

ALWAYS double sum_to_odd_wide(double p, double c) {
    double s = p + c, back = s - p;
    double error = (p - (s - back)) + (c - back);
    uint64_t bits;
    memcpy(&bits, &s, 8);
    uint64_t toward = (error > 0) == (s > 0) ? 1 : ~(uint64_t)0;
    bool fix = (error > 0 || error < 0) && !(bits & 1);
    bits = fix ? bits + toward : bits;
    memcpy(&s, &bits, 8);
    return s;
}

/*
 * Round to 8 bits or to a multiple of 2^-133: adding and subtracting 1.5 * 2^52 units of the last
 * place rounds to nearest even.  Infinity and NaN pass; the sign of a zero is v's.
 */
ALWAYS uint32_t finish_bf16(double v, unsigned flags) {
    uint64_t bits, unit;
    memcpy(&bits, &v, 8);
    uint64_t exponent = bits >> 52 & 0x7ff;
    unit = exponent < 897 ? 897 : exponent > 1500 ? 1500 : exponent;
    unit = (unit + 45) << 52 | (uint64_t)1 << 51;
    double magic;
    memcpy(&magic, &unit, 8);
    double rounded = (v + magic) - magic;
    uint32_t sign = (uint32_t)(bits >> 48) & 0x8000;
    uint32_t r = (half_f32_bits((float)rounded) >> 16 & 0x7fff) | sign; /* exact, or infinity */
    r = v != v ? HALF_NAN : r;
    return (flags & H_RELU) && v <= 0 ? 0 : r;
}

ALWAYS uint32_t arith_bf16(enum half_kind kind, uint32_t a, uint32_t b, uint32_t c,
                           unsigned flags) {
    double fa = (double)half_as_f32(bf16_to_f32(a)), fb = (double)half_as_f32(bf16_to_f32(b));
    switch (kind) {
    case H_ADD:
        return finish_bf16(sum_to_odd_wide(fa, fb), flags);
    case H_SUB:
        return finish_bf16(sum_to_odd_wide(fa, -fb), flags);
    case H_MUL:
        return finish_bf16(fa * fb, flags);
    case H_FMA:
        return finish_bf16(sum_to_odd_wide(fa * fb, (double)half_as_f32(bf16_to_f32(c))), flags);
    }
    return 0;
}

/* ---- extremes and signs ---------------------------------------------------------------------- */

/* An integer in the order of the values, -0 below +0. */
ALWAYS int32_t order_of(uint32_t h) {
    int32_t m = (int32_t)(h & 0x7fff);
    return h & 0x8000 ? ~m : m;
}

ALWAYS uint32_t extreme(bool max, uint32_t infinity, uint32_t a, uint32_t b, unsigned flags) {
    uint32_t sign = (a ^ b) & 0x8000;
    a = flags & H_XORSIGN ? a & 0x7fff : a;
    b = flags & H_XORSIGN ? b & 0x7fff : b;
    bool nan_a = (a & 0x7fff) > infinity, nan_b = (b & 0x7fff) > infinity;
    uint32_t r = (order_of(a) < order_of(b)) == max ? b : a;
    r = nan_a ? b : nan_b ? a : r;
    r = flags & H_XORSIGN ? r | sign : r;
    bool nan = flags & H_NAN ? nan_a || nan_b : nan_a && nan_b;
    return nan ? HALF_NAN : r;
}
ALWAYS uint32_t min_f16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)c;
    a = flags & H_FTZ ? flush_f16(a) : a;
    b = flags & H_FTZ ? flush_f16(b) : b;
    return extreme(false, 0x7c00, a, b, flags);
}
ALWAYS uint32_t max_f16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)c;
    a = flags & H_FTZ ? flush_f16(a) : a;
    b = flags & H_FTZ ? flush_f16(b) : b;
    return extreme(true, 0x7c00, a, b, flags);
}
ALWAYS uint32_t min_bf16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)c;
    return extreme(false, 0x7f80, a, b, flags);
}
ALWAYS uint32_t max_bf16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)c;
    return extreme(true, 0x7f80, a, b, flags);
}

ALWAYS uint32_t signed_f16(uint32_t a, uint32_t r, unsigned flags) {
    r = flags & H_FTZ ? flush_f16(r) : r;
    return (a & 0x7fff) > 0x7c00 ? HALF_NAN : r;
}
ALWAYS uint32_t abs_f16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)b, (void)c;
    return signed_f16(a, a & 0x7fff, flags);
}
ALWAYS uint32_t neg_f16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)b, (void)c;
    return signed_f16(a, a ^ 0x8000, flags);
}
ALWAYS uint32_t abs_bf16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)b, (void)c, (void)flags;
    return (a & 0x7fff) > 0x7f80 ? HALF_NAN : a & 0x7fff;
}
ALWAYS uint32_t neg_bf16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)b, (void)c, (void)flags;
    return (a & 0x7fff) > 0x7f80 ? HALF_NAN : a ^ 0x8000;
}

/* ---- handlers: one value, or a pair in a register -------------------------------------------- */

/* f(a, b, c, flags) of 16-bit patterns.  x->imm: the flags. */
#define HALF_HANDLER(name, f)                                                                 \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) {     \
        const u32a *pa = ROW(u32a, x->a), *pb = ROW(u32a, x->b), *pc = ROW(u32a, x->c);       \
        unsigned flags = (unsigned)x->imm;                                                    \
        LANE_RESULT(u32a, x->d, f(pa[i], pb[i], pc[i], flags));                               \
        return x + 1;                                                                         \
    }                                                                                         \
    VARIANTS(name, )                                                                          \
    ALWAYS const struct xinsn *name##x2(struct warp *w, const struct xinsn *x, bool masked) { \
        const u32a *pa = ROW(u32a, x->a), *pb = ROW(u32a, x->b), *pc = ROW(u32a, x->c);       \
        unsigned flags = (unsigned)x->imm;                                                    \
        LANE_RESULT(u32a, x->d, ({                                                            \
                        uint32_t a = pa[i], b = pb[i], c = pc[i];                             \
                        uint32_t low = f(a & 0xffff, b & 0xffff, c & 0xffff, flags);          \
                        low | f(a >> 16, b >> 16, c >> 16, flags) << 16;                      \
                    }));                                                                      \
        return x + 1;                                                                         \
    }                                                                                         \
    VARIANTS(name##x2, )

#define USE_HALF(name)                           \
    do {                                         \
        x->imm = half_flags(&in->mods);          \
        switch (in->type) {                      \
        case PTX_F16:                            \
            return USE(x, half_##name##_f16);    \
        case PTX_F16X2:                          \
            return USE(x, half_##name##_f16x2);  \
        case PTX_BF16:                           \
            return USE(x, half_##name##_bf16);   \
        case PTX_BF16X2:                         \
            return USE(x, half_##name##_bf16x2); \
        default:                                 \
            return false;                        \
        }                                        \
    } while (0)

#define ARITH(name, kind)                                                             \
    ALWAYS uint32_t name##_f16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {  \
        return arith_f16(kind, a, b, c, flags);                                       \
    }                                                                                 \
    ALWAYS uint32_t name##_bf16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) { \
        return arith_bf16(kind, a, b, c, flags);                                      \
    }
ARITH(add, H_ADD)
ARITH(sub, H_SUB)
ARITH(mul, H_MUL)
ARITH(fma, H_FMA)

static uint32_t ex2_f16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)b, (void)c, (void)flags;
    return mufu_ex2_f16(a);
}
static uint32_t ex2_bf16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)b, (void)c, (void)flags;
    return mufu_ex2_bf16(a);
}
static uint32_t tanh_f16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)b, (void)c, (void)flags;
    return mufu_tanh_f16(a);
}
static uint32_t tanh_bf16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    (void)b, (void)c, (void)flags;
    return mufu_tanh_bf16(a);
}

#define OPERATION(name)                           \
    HALF_HANDLER(half_##name##_f16, name##_f16)   \
    HALF_HANDLER(half_##name##_bf16, name##_bf16) \
    DECLARE_BIND(name##_half) {                   \
        USE_HALF(name);                           \
    }
OPERATION(add)
OPERATION(sub)
OPERATION(mul)
OPERATION(fma)
OPERATION(min)
OPERATION(max)
OPERATION(abs)
OPERATION(neg)
OPERATION(ex2)
OPERATION(tanh)

/* ---- comparisons ----------------------------------------------------------------------------- */

/* Bit 0 of the masks: less, equal, greater, unordered; what the comparison accepts. */
static unsigned accepted(enum ptx_cmp cmp) {
    enum { LT = 1, EQ = 2, GT = 4, UN = 8 };
    switch (cmp) {
    case CMP_EQ:
        return EQ;
    case CMP_NE:
        return LT | GT;
    case CMP_LT:
        return LT;
    case CMP_LE:
        return LT | EQ;
    case CMP_GT:
        return GT;
    case CMP_GE:
        return GT | EQ;
    case CMP_EQU:
        return EQ | UN;
    case CMP_NEU:
        return LT | GT | UN;
    case CMP_LTU:
        return LT | UN;
    case CMP_LEU:
        return LT | EQ | UN;
    case CMP_GTU:
        return GT | UN;
    case CMP_GEU:
        return GT | EQ | UN;
    case CMP_NUM:
        return LT | EQ | GT;
    case CMP_NAN:
        return UN;
    default:
        return 0; /* lo, ls, hi, hs compare integers */
    }
}

/* x->imm: what is accepted, then enum ptx_bool from bit 4, then .ftz in bit 8. */
ALWAYS bool compare(uint32_t a, uint32_t b, uint32_t infinity, uint64_t how) {
    if (how & 256) {
        a = flush_f16(a);
        b = flush_f16(b);
    }
    uint32_t ma = a & 0x7fff, mb = b & 0x7fff;
    int32_t va = a & 0x8000 ? -(int32_t)ma : (int32_t)ma;
    int32_t vb = b & 0x8000 ? -(int32_t)mb : (int32_t)mb;
    uint64_t hit = va < vb ? 1 : va == vb ? 2 : 4;
    hit = ma > infinity || mb > infinity ? 8 : hit;
    return (how & hit) != 0;
}

ALWAYS uint32_t logic(uint32_t p, uint32_t c, uint64_t how) {
    switch ((enum ptx_bool)(how >> 4 & 3)) {
    case BOOL_NONE:
        break;
    case BOOL_AND:
        return p & c;
    case BOOL_OR:
        return p | c;
    case BOOL_XOR:
        return p ^ c;
    }
    return p;
}

static bool compare_how(struct xinsn *x, const struct ptx_insn *in) {
    unsigned cmp = accepted(in->mods.cmp);
    x->imm = cmp | (unsigned)in->mods.boolop << 4 | (in->mods.ftz ? 256 : 0);
    return cmp != 0;
}

ALWAYS const struct xinsn *setp_half(struct warp *w, const struct xinsn *x, bool masked,
                                     uint32_t infinity, bool pair) {
    const u32a *pa = ROW(u32a, x->a), *pb = ROW(u32a, x->b);
    u32a low[LANES] __attribute__((aligned(64))), high[LANES] __attribute__((aligned(64)));
    uint64_t how = x->imm;
    uint32_t m = MASK_OF(w, x, masked), c = pred_p(w, x);
    LANE_LOOP(i) low[i] = compare(pa[i] & 0xffff, pb[i] & 0xffff, infinity, how) ? ~0u : 0;
    uint32_t p = pack_row(low), q = ~p;
    if (pair) { /* p of the low halves, q of the high ones */
        LANE_LOOP(i) high[i] = compare(pa[i] >> 16, pb[i] >> 16, infinity, how) ? ~0u : 0;
        q = pack_row(high);
    }
    put_pred(w, x->d, logic(p, c, how), m);
    put_pred(w, x->d2, logic(q, c, how), m);
    return x + 1;
}
VARIANTS(setp_half, _f16, 0x7c00, false)
VARIANTS(setp_half, _f16x2, 0x7c00, true)
VARIANTS(setp_half, _bf16, 0x7f80, false)
VARIANTS(setp_half, _bf16x2, 0x7f80, true)

DECLARE_BIND(setp_half) {
    if (!compare_how(x, in))
        return false;
    switch (in->type) {
    case PTX_F16:
        return USE(x, setp_half_f16);
    case PTX_F16X2:
        return USE(x, setp_half_f16x2);
    case PTX_BF16:
        return USE(x, setp_half_bf16);
    case PTX_BF16X2:
        return USE(x, setp_half_bf16x2);
    default:
        return false;
    }
}

/* What set writes for true: 1.0 or all ones, of the destination's width. */
static uint32_t set_yes(enum ptx_type t) {
    switch (t) {
    case PTX_F16:
    case PTX_F16X2:
        return 0x3c00;
    case PTX_BF16:
    case PTX_BF16X2:
        return 0x3f80;
    case PTX_U16:
    case PTX_S16:
        return 0xffff;
    default:
        return ~0u;
    }
}

ALWAYS const struct xinsn *set_half(struct warp *w, const struct xinsn *x, bool masked) {
    const struct ptx_insn *in = x->insn;
    bool pair = ptx_type_bits(in->type2) == 32;
    uint32_t infinity = in->type2 == PTX_F16 || in->type2 == PTX_F16X2 ? 0x7c00 : 0x7f80;
    uint32_t yes = set_yes(in->type), c = pred_p(w, x);
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint32_t a = row32(w, x->a)[i], b = row32(w, x->b)[i], third = c >> i & 1;
        uint32_t r = compare(a & 0xffff, b & 0xffff, infinity, x->imm);
        r = logic(r, third, x->imm) & 1 ? yes : 0;
        if (pair) {
            uint32_t high = compare(a >> 16, b >> 16, infinity, x->imm);
            r = (r & 0xffff) | (logic(high, third, x->imm) & 1 ? yes << 16 : 0);
        }
        row32(w, x->d)[i] = r;
    }
    return x + 1;
}
VARIANTS(set_half, )
DECLARE_BIND(set_half) {
    return compare_how(x, in) && USE(x, set_half);
}
