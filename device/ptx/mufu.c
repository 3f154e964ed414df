/*
 * mufu.c - quadratic interpolation as the hardware does it (structure: envytools nvhw/sfu.c and
 * Oberman, Siu 2005; rows: mufu_sm90.def).
 *
 * The high fraction bits choose a row (A, B, C), the low ones are r; the result is
 * A + B r + C r^2 in fixed point, where r^2 comes from a squarer that drops low partial products.
 * What it drops is visible in the results, so it is modelled bit by bit.
 */
#include "device/ptx/mufu.h"

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
    const struct row *t = &lg2_rows[(x & 0x7fffffu) >> 17];
    int64_t r = x & 0x1ffffu;
    int64_t sum = (int64_t)t->a * 4096 + t->b * r + 2 * (int64_t)t->c * mufu_square((uint32_t)r);
    int64_t value = ((sum + 0x7345) >> 2) + ((int64_t)exponent - 127) * ((int64_t)1 << 36);
    uint32_t sign = value < 0 ? SIGN : 0;
    uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
    if (magnitude == 0)
        return 0;
    int top = 63 - __builtin_clzll(magnitude);
    uint32_t significand =
        (uint32_t)(top >= 23 ? magnitude >> (top - 23) : magnitude << (23 - top));
    return pack(sign, top - 36 + 127, significand);
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
    const struct row *t = &rcp_rows[(x & 0x7fffffu) >> 16];
    int64_t r = x & 0xffffu;
    int64_t sum =
        (int64_t)t->a * 8192 + t->b * r + (int64_t)t->c * mufu_square((uint32_t)(2 * r)) + 0x47e7;
    return pack(sign, 253 - (int)exponent, (uint32_t)(sum >> 15));
}

/* The row is chosen by the exponent's parity and 6 fraction bits; powers of 4 are exact. */
uint32_t mufu_rsqrt(uint32_t x) {
    unsigned exponent = exponent_of(x);
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
    uint32_t significand = 1u << 24;
    if (odd || (x & 0x7fffffu)) {
        const struct row *t = &rsqrt_rows[(odd ? 64 : 0) + ((x & 0x7fffffu) >> 17)];
        int64_t r = x & 0x1ffffu;
        int64_t sum = (int64_t)t->a * 16384 + t->b * r +
                      4 * (int64_t)t->c * mufu_square((uint32_t)r) + 0x7fff;
        significand = (uint32_t)(sum >> 16);
    }
    return pack(0, 126 - half, significand);
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
    if (is_subnormal(x))
        return as_bits(as_float(mufu_rcp(as_bits(as_float(x) * 0x1p24f))) * 0x1p24f);
    if (exponent_of(x) >= 253 && exponent_of(x) < 255)
        return as_bits(as_float(mufu_rcp(as_bits(as_float(x) * 0x1p-24f))) * 0x1p-24f);
    return mufu_rcp(x);
}

uint32_t mufu_rsqrt_subnormal(uint32_t x) {
    if (!is_subnormal(x))
        return mufu_rsqrt(x);
    return as_bits(as_float(mufu_rsqrt(as_bits(as_float(x) * 0x1p24f))) * 0x1p12f);
}
