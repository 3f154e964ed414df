/*
 * mufu.c - quadratic interpolation as the hardware does it (structure: envytools nvhw/sfu.c and
 * Oberman, Siu 2005; rows: mufu_sm90.def).
 *
 * The high fraction bits choose a row (A, B, C), the low ones are r; the result is
 * A + B r + C r^2 in fixed point, where r^2 comes from a squarer that drops low partial products.
 * What it drops is visible in the results, so it is modelled bit by bit.
 */
#include "device/ptx/mufu.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define CANONICAL_NAN 0x7fffffffu
#define INFINITY_BITS 0x7f800000u
#define SIGN 0x80000000u

struct row {
    int32_t a, b, c;
};

static const struct row lg2_rows[] = {
#define MUFU_LG2(a, b, c) {a, b, c},
#include "device/ptx/mufu_sm90.def"
};
static const struct row rcp_rows[] = {
#define MUFU_RCP(a, b, c) {a, b, c},
#include "device/ptx/mufu_sm90.def"
};
static const struct row rsqrt_rows[] = {
#define MUFU_RSQRT(a, b, c) {a, b, c},
#include "device/ptx/mufu_sm90.def"
};
static const struct row sin_rows[] = {
#define MUFU_SIN(a, b, c) {a, b, c},
#include "device/ptx/mufu_sm90.def"
};
static const struct row sqrt_rows[] = {
#define MUFU_SQRT(a, b, c) {a, b, c},
#include "device/ptx/mufu_sm90.def"
};
static const struct row tanh_rows[] = {
#define MUFU_TANH(a, b, c) {a, b, c},
#include "device/ptx/mufu_sm90.def"
};
const uint32_t mufu_ex2_a[64] = {
#define MUFU_EX2(a, b, c) a,
#include "device/ptx/mufu_sm90.def"
};
const uint32_t mufu_ex2_bc[64] = {
#define MUFU_EX2(a, b, c) (uint32_t)(b) << 10 | (c),
#include "device/ptx/mufu_sm90.def"
};

/*
 * For each set bit i of r the squarer adds r >> (18 - i), then halves the total.  With r = 2^9 h +
 * l that is h^2 / 2 plus, for each set bit j of h, l >> (9 - j): all pairs inside l fall away.
 */
uint32_t mufu_square(uint32_t r) {
    uint32_t high = r >> 9, low = r & 0x1ff, sum = high * high >> 1;
    for (unsigned j = 1; j < 8; j++)
        if (high >> j & 1)
            sum += low >> (9 - j);
    return sum;
}

static bool is_nan(uint32_t x) {
    return (x & ~SIGN) > INFINITY_BITS;
}

static unsigned exponent_of(uint32_t x) {
    return x >> 23 & 0xff;
}

/* significand in [2^23, 2^24] with the exponent field of its 2^23 bit; 2^24 carries; ftz. */
static uint32_t pack(uint32_t sign, int exponent, uint32_t significand) {
    exponent += (int)(significand >> 24);
    if (exponent <= 0)
        return sign;
    if (exponent >= 255)
        return sign | INFINITY_BITS;
    return sign | (uint32_t)exponent << 23 | (significand & 0x7fffffu);
}

/* A fixed-point number with `point` fraction bits, cut to 24 significant bits. */
static uint32_t pack_fixed(uint32_t sign, uint64_t magnitude, int point) {
    if (magnitude == 0)
        return sign;
    int top = 63 - __builtin_clzll(magnitude);
    uint64_t significand = top >= 23 ? magnitude >> (top - 23) : magnitude << (23 - top);
    return pack(sign, top - point + 127, (uint32_t)significand);
}

/* A 2^shift + B r + scale C r^2 */
static int64_t interpolate(const struct row *t, int shift, uint32_t r, int scale, uint32_t square) {
    return (int64_t)t->a * ((int64_t)1 << shift) + (int64_t)t->b * r +
           scale * (int64_t)t->c * square;
}

/*
 * |x| is cut to 7.23 fixed point.  For a negative x with a fraction, 2^x = 2^(-int - 1) * 2^(1 -
 * frac), and the unit takes the one's complement of the fraction for 1 - frac.
 */
uint32_t mufu_ex2(uint32_t x) {
    unsigned exponent = exponent_of(x);
    bool negative = x >> 31;
    if (is_nan(x))
        return CANONICAL_NAN;
    if (exponent >= 127 + 7)
        return negative ? 0 : INFINITY_BITS;
    uint32_t significand = (x & 0x7fffffu) | 0x800000u, fixed = 0;
    if (exponent >= 127)
        fixed = significand << (exponent - 127);
    else if (exponent >= 127 - 23)
        fixed = significand >> (127 - exponent);
    uint32_t fraction = fixed & 0x7fffffu;
    int scale = (int)(fixed >> 23);
    if (negative)
        scale = -scale;
    if (negative && fraction) {
        scale--;
        fraction ^= 0x7fffffu;
    }
    uint32_t row = fraction >> 17, r = fraction & 0x1ffffu;
    uint64_t a = mufu_ex2_a[row], b = mufu_ex2_bc[row] >> 10, c = mufu_ex2_bc[row] & 0x3ffu;
    uint64_t sum = (a << 13) + b * r + c * mufu_square(r) + 0x77e2u;
    return pack(0, scale + 127, (uint32_t)(sum >> 15));
}

/* x = 2^e m: log2 x = e + log2 m with 36 fraction bits; negative values as one's complement. */
uint32_t mufu_lg2(uint32_t x) {
    unsigned exponent = exponent_of(x);
    if (is_nan(x))
        return CANONICAL_NAN;
    if (exponent == 0)
        return SIGN | INFINITY_BITS;
    if (x >> 31)
        return CANONICAL_NAN;
    if (exponent == 255)
        return INFINITY_BITS;
    if (x == 0x3f800000u)
        return 0;
    uint32_t r = x & 0x1ffffu;
    int64_t sum = interpolate(&lg2_rows[(x & 0x7fffffu) >> 17], 12, r, 2, mufu_square(r));
    int64_t value = ((sum + 0x7345) >> 2) + ((int64_t)exponent - 127) * ((int64_t)1 << 36);
    uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
    return magnitude ? pack_fixed(value < 0 ? SIGN : 0, magnitude, 36) : 0;
}

/* 1 / 1.fraction with 38 fraction bits, to be cut: 23 bits of fraction, 2^38 = 1. */
static uint64_t rcp_sum(uint32_t fraction) {
    uint32_t r = fraction & 0xffffu;
    return (uint64_t)(interpolate(&rcp_rows[fraction >> 16], 13, r, 1, mufu_square(2 * r)) +
                      0x47e7);
}

/* (2^odd 1.fraction)^(-1/2), not for 1: the row is chosen by the exponent's parity and 6 bits. */
static uint64_t rsqrt_sum(bool odd, uint32_t fraction) {
    uint32_t r = fraction & 0x1ffffu;
    const struct row *t = &rsqrt_rows[(odd ? 64 : 0) + (fraction >> 17)];
    return (uint64_t)(interpolate(t, 14, r, 4, mufu_square(r)) + 0x7fff);
}

uint32_t mufu_rcp(uint32_t x) {
    unsigned exponent = exponent_of(x);
    uint32_t sign = x & SIGN;
    if (is_nan(x))
        return CANONICAL_NAN;
    if (exponent == 0)
        return sign | INFINITY_BITS;
    if (exponent == 255)
        return sign;
    return pack(sign, 253 - (int)exponent, (uint32_t)(rcp_sum(x & 0x7fffffu) >> 15));
}

/* Powers of 4 are exact. */
uint32_t mufu_rsqrt(uint32_t x) {
    unsigned exponent = exponent_of(x);
    uint32_t fraction = x & 0x7fffffu;
    if (is_nan(x))
        return CANONICAL_NAN;
    if (exponent == 0)
        return (x & SIGN) | INFINITY_BITS;
    if (x >> 31)
        return CANONICAL_NAN;
    if (exponent == 255)
        return 0;
    bool odd = !(exponent & 1); /* the bias is odd */
    int half = ((int)exponent - 127 - odd) / 2;
    uint64_t significand = odd || fraction ? rsqrt_sum(odd, fraction) >> 16 : 1u << 24;
    return pack(0, 126 - half, (uint32_t)significand);
}

uint32_t mufu_sqrt(uint32_t x) {
    unsigned exponent = exponent_of(x);
    if (is_nan(x))
        return CANONICAL_NAN;
    if (exponent == 0)
        return x & SIGN;
    if (x >> 31)
        return CANONICAL_NAN;
    if (exponent == 255)
        return INFINITY_BITS;
    bool odd = !(exponent & 1);
    int half = ((int)exponent - 127 - odd) / 2;
    uint32_t r = x & 0x1ffffu;
    const struct row *t = &sqrt_rows[(odd ? 64 : 0) + ((x & 0x7fffffu) >> 17)];
    int64_t sum = interpolate(t, 15, r, 2, mufu_square(r)) + 0x7fff;
    return pack(0, 127 + half, (uint32_t)(sum >> 17));
}

/*
 * The sine of turns / 2^25 of a turn: two bits of quadrant, 23 of fraction.  In odd quadrants the
 * unit takes the one's complement of the fraction for 1 - fraction.
 */
static uint32_t sine(uint32_t sign, uint32_t turns) {
    if (turns >> 23 & 1)
        turns ^= 0x7fffffu;
    uint32_t r = turns & 0x1ffffu;
    int64_t sum = interpolate(&sin_rows[turns >> 17 & 0x3f], 11, r, 1, mufu_square(r));
    return pack_fixed(sign ^ (turns >> 24 & 1) << 31, (uint64_t)sum, 37);
}

/* |x| cut to 25 fraction bits, the whole part dropped. */
static uint32_t fixed_turns(uint32_t x) {
    int shift = (int)exponent_of(x) - 127 + 2;
    uint32_t significand = (x & 0x7fffffu) | 0x800000u;
    if (exponent_of(x) == 0 || shift < -23 || shift > 24)
        return 0;
    return (shift < 0 ? significand >> -shift : significand << shift) & 0x1ffffffu;
}

/* The unit's own operations: x in turns. */
static uint32_t sin_turns(uint32_t x) {
    return exponent_of(x) == 255 ? CANONICAL_NAN : sine(x & SIGN, fixed_turns(x));
}
static uint32_t cos_turns(uint32_t x) {
    return exponent_of(x) == 255 ? CANONICAL_NAN : sine(0, fixed_turns(x) + 0x800000u);
}

/* x * 0x3e22f983, about x / 2 pi, toward zero; what is subnormal becomes 0. */
static uint32_t to_turns(uint32_t x) {
    unsigned exponent = exponent_of(x);
    if (exponent == 255)
        return CANONICAL_NAN;
    if (exponent == 0)
        return x & SIGN;
    uint64_t product = (uint64_t)((x & 0x7fffffu) | 0x800000u) * 0xa2f983u;
    int carry = (int)(product >> 47);
    return pack(x & SIGN, (int)exponent - 3 + carry, (uint32_t)(product >> (23 + carry)));
}

uint32_t mufu_sin(uint32_t x) {
    return sin_turns(to_turns(x));
}
uint32_t mufu_cos(uint32_t x) {
    return cos_turns(to_turns(x));
}

/*
 * Below 2^-8 the result is x, from 8 on 1.  In between each binade has 1 to 16 rows, chosen by the
 * leading fraction bits; the next 17 bits are r, and what is left of x is dropped.
 */
uint32_t mufu_tanh(uint32_t x) {
    static const uint8_t index_bits[] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3};
    static const uint8_t first_row[] = {0, 1, 2, 3, 5, 7, 11, 15, 19, 27, 43};
    unsigned exponent = exponent_of(x);
    if (is_nan(x))
        return CANONICAL_NAN;
    if (exponent < 127 - 8)
        return x;
    if (exponent >= 127 + 3)
        return (x & SIGN) | 0x3f800000u;
    unsigned binade = exponent - (127 - 8), bits = index_bits[binade];
    uint32_t fraction = x & 0x7fffffu, r = fraction >> (6 - bits) & 0x1ffffu;
    const struct row *t = &tanh_rows[first_row[binade] + (fraction >> (23 - bits))];
    return pack_fixed(x & SIGN, (uint64_t)interpolate(t, 15, r, 1, mufu_square(r)), 39);
}

/* ---- f64: the high word goes in and comes out, on the rows of f32 ---------------------------- */

static bool is_nan_high(uint32_t x) {
    return (x & ~SIGN) > 0x7ff00000u;
}

/* significand in [2^20, 2^21], as in pack(). */
static uint32_t pack_high(uint32_t sign, int exponent, uint32_t significand) {
    exponent += (int)(significand >> 21);
    return exponent <= 0 ? sign : sign | (uint32_t)exponent << 20 | (significand & 0xfffffu);
}

uint32_t mufu_rcp64h(uint32_t x) {
    unsigned exponent = x >> 20 & 0x7ff;
    if (is_nan_high(x))
        return CANONICAL_NAN;
    if (exponent == 0)
        return (x & SIGN) | 0x7ff00000u;
    if (exponent == 0x7ff)
        return x & SIGN;
    return pack_high(x & SIGN, 2045 - (int)exponent,
                     (uint32_t)(rcp_sum((x & 0xfffffu) << 3) >> 18));
}

uint32_t mufu_rsqrt64h(uint32_t x) {
    unsigned exponent = x >> 20 & 0x7ff;
    uint32_t fraction = (x & 0xfffffu) << 3;
    if (is_nan_high(x))
        return CANONICAL_NAN;
    if (exponent == 0)
        return (x & SIGN) | 0x7ff00000u;
    if (x >> 31)
        return CANONICAL_NAN;
    if (exponent == 0x7ff)
        return 0;
    bool odd = !(exponent & 1);
    int half = ((int)exponent - 1023 - odd) / 2;
    uint64_t significand = odd || fraction ? rsqrt_sum(odd, fraction) >> 19 : 1u << 21;
    return pack_high(0, 1022 - half, (uint32_t)significand);
}

/* ---- the forms without .ftz ------------------------------------------------------------------ */

static float as_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t as_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return f != f ? CANONICAL_NAN : bits;
}

static bool is_subnormal(uint32_t x) {
    return exponent_of(x) == 0 && (x & 0x7fffffu);
}

/* Below -126: halve, and square the result (Juffa, NVIDIA developer forum 243209). */
uint32_t mufu_ex2_subnormal(uint32_t x) {
    if (!(as_float(x) < -126.0f))
        return mufu_ex2(x);
    float root = as_float(mufu_ex2(as_bits(as_float(x) * 0.5f)));
    return as_bits(root * root);
}

/* A subnormal is scaled by 2^24, and 24 taken off the logarithm. */
uint32_t mufu_lg2_subnormal(uint32_t x) {
    if (!is_subnormal(x))
        return mufu_lg2(x);
    return as_bits(as_float(mufu_lg2(as_bits(as_float(x) * 0x1p24f))) - 24.0f);
}

/* Scaled at both ends: a subnormal operand up, an operand with a subnormal result down. */
uint32_t mufu_rcp_subnormal(uint32_t x) {
    float scale = is_subnormal(x) ? 0x1p24f : fabsf(as_float(x)) > 0x1p126f ? 0.25f : 1;
    return as_bits(as_float(mufu_rcp(as_bits(as_float(x) * scale))) * scale);
}

uint32_t mufu_rsqrt_subnormal(uint32_t x) {
    if (!is_subnormal(x))
        return mufu_rsqrt(x);
    return as_bits(as_float(mufu_rsqrt(as_bits(as_float(x) * 0x1p24f))) * 0x1p12f);
}

uint32_t mufu_sqrt_subnormal(uint32_t x) {
    if (!is_subnormal(x))
        return mufu_sqrt(x);
    return as_bits(as_float(mufu_sqrt(as_bits(as_float(x) * 0x1p24f))) * 0x1p-12f);
}
