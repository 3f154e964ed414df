/*
 * cvt.c - conversions among integers and floats, in integer arithmetic where they round.
 *
 * A float is unpacked to sign, exponent and a 64-bit significand; rounding cuts it to the precision
 * that the destination has at that exponent.  So one function serves every pair and every mode.
 */
#include "device/ptx/cvt.h"

#include "device/ptx/half.h"

struct number { /* (-1)^negative * significand * 2^exponent */
    bool negative, nan, infinite;
    uint64_t significand;
    int exponent;
};

struct format {
    int bits, fraction_bits, min_exponent; /* of the last place of subnormals */
    uint64_t infinity;
};

static const struct format binary32 = {32, 23, -149, 0x7f800000u};
static const struct format binary64 = {64, 52, -1074, 0x7ff0000000000000u};

static const struct format binary16 = {16, 10, -24, 0x7c00};
static const struct format bfloat16 = {16, 7, -133, 0x7f80};
static const struct format tensor32 = {19, 10, -136, 0x3fc00}; /* the high bits of an f32 */

/* e4m3 has no infinity: the code that would be it is the only NaN. */
static const struct format float8_e4m3 = {8, 3, -9, 0x7f};
static const struct format float8_e5m2 = {8, 2, -16, 0x7c};

static bool is_float(enum ptx_type t) {
    return t == PTX_F32 || t == PTX_F64 || t == PTX_F16 || t == PTX_BF16 || t == PTX_F16X2 ||
           t == PTX_BF16X2 || t == PTX_TF32;
}

static bool is_narrow(enum ptx_type t) {
    return is_float(t) && t != PTX_F32 && t != PTX_F64;
}

static const struct format *format_of(enum ptx_type t) {
    switch (t) {
    case PTX_F16:
    case PTX_F16X2:
        return &binary16;
    case PTX_BF16:
    case PTX_BF16X2:
        return &bfloat16;
    case PTX_TF32:
        return &tensor32;
    case PTX_F64:
        return &binary64;
    default:
        return &binary32;
    }
}

static bool is_signed(enum ptx_type t) {
    return t == PTX_S8 || t == PTX_S16 || t == PTX_S32 || t == PTX_S64;
}

static struct number unpack_float(uint64_t bits, const struct format *f) {
    uint64_t magnitude = bits & ~((uint64_t)1 << (f->bits - 1));
    int exponent = (int)(magnitude >> f->fraction_bits);
    struct number n = {.negative = bits >> (f->bits - 1) & 1,
                       .nan = magnitude > f->infinity,
                       .infinite = magnitude == f->infinity,
                       .significand = magnitude & (((uint64_t)1 << f->fraction_bits) - 1),
                       .exponent = f->min_exponent};
    if (exponent) {
        n.significand |= (uint64_t)1 << f->fraction_bits;
        n.exponent += exponent - 1;
    }
    return n;
}

/* Drop `shift` low bits of v, rounding the magnitude in the given mode. */
static uint64_t round_shift(uint64_t v, int shift, bool negative, enum ptx_rnd rnd) {
    if (shift <= 0)
        return v << -shift;
    uint64_t kept = shift >= 64 ? 0 : v >> shift;
    uint64_t rest = shift >= 64 ? v : v & (((uint64_t)1 << shift) - 1);
    uint64_t half = shift > 64 ? 0 : (uint64_t)1 << (shift - 1); /* shift > 64: below half */
    bool up = false;
    switch (rnd) {
    case RND_NONE:
    case RND_RN:
    case RND_RNI: up = half && (rest > half || (rest == half && (kept & 1))); break;
    case RND_RNA: up = half && rest >= half; break;
    case RND_RZ:
    case RND_RZI: break;
    case RND_RM:
    case RND_RMI: up = negative && rest; break;
    case RND_RP:
    case RND_RPI: up = !negative && rest; break;
    }
    return kept + up;
}

static bool away(bool negative, enum ptx_rnd rnd) { /* overflow gives infinity, not the largest */
    return rnd == RND_NONE || rnd == RND_RN || rnd == RND_RNA || (rnd == RND_RP && !negative) ||
           (rnd == RND_RM && negative);
}

static uint64_t pack_float(struct number n, const struct format *f, enum ptx_rnd rnd) {
    uint64_t sign = (uint64_t)n.negative << (f->bits - 1);
    if (n.infinite)
        return sign | f->infinity;
    if (!n.significand)
        return sign;
    int top = 63 - __builtin_clzll(n.significand) + n.exponent; /* 2^top <= |n| */
    int last = top - f->fraction_bits > f->min_exponent ? top - f->fraction_bits : f->min_exponent;
    uint64_t v = round_shift(n.significand, last - n.exponent, n.negative, rnd);
    /* v counts units of 2^last; a carry out of the significand moves into the exponent field. */
    uint64_t bits = ((uint64_t)(last - f->min_exponent) << f->fraction_bits) + v;
    if (bits >= f->infinity)
        bits = away(n.negative, rnd) ? f->infinity : f->infinity - 1;
    return sign | bits;
}

/* ---- integers -------------------------------------------------------------------------------- */

static struct number unpack_int(uint64_t bits, enum ptx_type t) {
    unsigned unused = 64 - ptx_type_bits(t);
    if (!is_signed(t))
        return (struct number){.significand = bits << unused >> unused};
    int64_t v = (int64_t)(bits << unused) >> unused;
    return (struct number){.negative = v < 0, .significand = v < 0 ? 0 - (uint64_t)v : (uint64_t)v};
}

/* Extend to 64 bits as the type says. */
static uint64_t extend(uint64_t bits, enum ptx_type t) {
    unsigned unused = 64 - ptx_type_bits(t);
    return is_signed(t) ? (uint64_t)((int64_t)(bits << unused) >> unused)
                        : bits << unused >> unused;
}

/* Clamp the magnitude to what t holds. */
static uint64_t pack_int(bool negative, uint64_t magnitude, enum ptx_type t) {
    unsigned bits = ptx_type_bits(t);
    uint64_t largest = is_signed(t) ? ((uint64_t)1 << (bits - 1)) - 1
                       : bits == 64 ? ~(uint64_t)0
                                    : ((uint64_t)1 << bits) - 1;
    if (negative) {
        uint64_t lowest = is_signed(t) ? largest + 1 : 0;
        return 0 - (magnitude < lowest ? magnitude : lowest);
    }
    return magnitude < largest ? magnitude : largest;
}

/*
 * PTX ISA 9.7.9.22: out of range clamps; NaN becomes 0, but 1 << (width - 1) when the source is f64
 * or the destination has 64 bits.
 */
static uint64_t float_to_int(struct number n, const struct ptx_insn *in) {
    unsigned bits = ptx_type_bits(in->type);
    if (n.nan)
        return in->type2 == PTX_F64 || bits == 64 ? extend((uint64_t)1 << (bits - 1), in->type) : 0;
    if (n.infinite || (n.significand && 63 - __builtin_clzll(n.significand) + n.exponent > 64))
        return pack_int(n.negative, UINT64_MAX, in->type);
    enum ptx_rnd rnd = in->mods.rnd == RND_NONE ? RND_RZI : in->mods.rnd;
    if (n.exponent <= 0)
        return pack_int(n.negative, round_shift(n.significand, -n.exponent, n.negative, rnd),
                        in->type);
    bool lost = n.significand && __builtin_clzll(n.significand) < n.exponent;
    return pack_int(n.negative, lost ? UINT64_MAX : n.significand << n.exponent, in->type);
}

/* ---- floats ---------------------------------------------------------------------------------- */

static bool to_integral(enum ptx_rnd rnd) {
    return rnd == RND_RNI || rnd == RND_RZI || rnd == RND_RMI || rnd == RND_RPI;
}

static uint64_t flush_f32(uint64_t bits) {
    return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}

/*
 * H200: f32 to f32 gives the canonical NaN, and .ftz makes an f32 source canonical; with f64 on
 * either side sign and leading payload bits stay, quieted.
 */
static uint64_t nan_to_nan(uint64_t bits, const struct ptx_insn *in) {
    if (in->type2 == PTX_F32) {
        if (in->mods.ftz || in->type == PTX_F32)
            bits = 0x7fffffffu;
        return in->type == PTX_F32
                   ? bits
                   : (bits & 0x80000000u) << 32 | 0x7ff8000000000000u | (bits & 0x7fffffu) << 29;
    }
    bits |= 0x0008000000000000u;
    return in->type == PTX_F64
               ? bits
               : (bits >> 32 & 0x80000000u) | 0x7f800000u | (bits >> 29 & 0x7fffffu);
}

static uint64_t float_to_float(struct number n, const struct ptx_insn *in) {
    const struct format *to = format_of(in->type);
    if (to_integral(in->mods.rnd) && n.exponent < 0 && !n.nan && !n.infinite) {
        n.significand = round_shift(n.significand, -n.exponent, n.negative, in->mods.rnd);
        n.exponent = 0;
    }
    if (in->mods.sat) { /* [0, 1]; NaN and -0 become +0 */
        uint64_t one = (uint64_t) - (to->min_exponent + to->fraction_bits - 1) << to->fraction_bits;
        if (n.nan || n.negative)
            return 0;
        uint64_t bits = pack_float(n, to, in->mods.rnd);
        return bits > one ? one : bits;
    }
    if (in->mods.relu && n.negative)
        return 0;
    uint64_t bits = pack_float(n, to, in->mods.rnd);
    uint64_t sign = (uint64_t)1 << (to->bits - 1);
    return in->mods.satfinite && (bits & ~sign) == to->infinity ? bits - 1 : bits;
}

/*
 * H200: NaN in 16 bits or tf32 is canonical, except that sign and leading payload bits stay
 *  - with f64 on either side, quieted;
 *  - from bf16 to f32, which is a shift unless .ftz makes it a multiplication;
 *  - in .rna.tf32, which ptxas makes of integer instructions; there .satfinite takes a unit off NaN
 *    as off infinity.
 */
static uint64_t narrow_nan(uint64_t bits, const struct ptx_insn *in) {
    const struct format *from = format_of(in->type2), *to = format_of(in->type);
    if (in->mods.rnd == RND_RNA)
        return (bits & 0xffffe000u) - (in->mods.satfinite ? 0x2000 : 0);
    if (in->type2 == PTX_BF16 && in->type == PTX_F32 && !in->mods.ftz)
        return bits << 16;
    if (in->type != PTX_F64 && in->type2 != PTX_F64)
        return in->type == PTX_F32 ? F32_NAN : in->type == PTX_TF32 ? 0x7fffe000u : HALF_NAN;
    uint64_t payload = bits & (((uint64_t)1 << from->fraction_bits) - 1);
    int widen = to->fraction_bits - from->fraction_bits;
    payload = widen > 0 ? payload << widen : payload >> -widen;
    return (bits >> (from->bits - 1) & 1) << (to->bits - 1) | to->infinity | payload |
           (uint64_t)1 << (to->fraction_bits - 1);
}

uint64_t cvt_lane(uint64_t bits, const struct ptx_insn *in) {
    if (!is_float(in->type2)) {
        struct number n = unpack_int(bits, in->type2);
        if (is_narrow(in->type))
            return float_to_float(n, in);
        if (is_float(in->type))
            return pack_float(n, format_of(in->type), in->mods.rnd);
        return extend(in->mods.sat ? pack_int(n.negative, n.significand, in->type)
                                   : extend(bits, in->type2),
                      in->type);
    }
    if (in->type2 == PTX_F32 && in->mods.ftz && in->type != PTX_F16) /* H200: f16 sees them */
        bits = flush_f32(bits);
    struct number n = unpack_float(bits, format_of(in->type2));
    if (!is_float(in->type))
        return float_to_int(n, in);
    if (n.nan && !in->mods.sat)
        return is_narrow(in->type) || is_narrow(in->type2) ? narrow_nan(bits, in)
                                                           : nan_to_nan(bits, in);
    uint64_t r = float_to_float(n, in);
    if (in->type == PTX_TF32)
        return r << 13;
    return in->type == PTX_F32 && in->mods.ftz ? flush_f32(r) : r;
}

/* ---- 8-bit floats ---------------------------------------------------------------------------- */

static uint32_t to_eight(uint32_t bits, const struct ptx_insn *in) {
    const struct format *from = in->type2 == PTX_F32 ? &binary32 : &binary16;
    const struct format *to = in->type == PTX_E4M3X2 ? &float8_e4m3 : &float8_e5m2;
    struct number n = unpack_float(bits, from);
    if (n.nan)
        return 0x7f;
    if (in->mods.relu && n.negative)
        return 0;
    uint32_t r = (uint32_t)pack_float(n, to, RND_RN);
    return (r & 0x7f) == to->infinity ? r - 1 : r;
}

uint32_t cvt_to_eight(uint32_t a, uint32_t b, const struct ptx_insn *in) {
    return to_eight(a, in) << 8 | to_eight(b, in);
}

static uint32_t from_eight(uint32_t bits, const struct ptx_insn *in) {
    bool e4m3 = in->type2 == PTX_E4M3X2;
    struct number n = unpack_float(bits, e4m3 ? &float8_e4m3 : &float8_e5m2);
    if (n.nan || (e4m3 && n.infinite))
        return HALF_NAN;
    return in->mods.relu && n.negative ? 0 : (uint32_t)pack_float(n, &binary16, RND_RN);
}

uint32_t cvt_from_eight(uint32_t pair, const struct ptx_insn *in) {
    return from_eight(pair >> 8 & 0xff, in) << 16 | from_eight(pair & 0xff, in);
}
