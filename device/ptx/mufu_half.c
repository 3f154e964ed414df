/*
 * mufu_half.c - ex2 and tanh of f16 and bf16, to the bit.
 *
 * From tables of all 65536 results that an H200 (driver 580.159.04) gave on 2026-11-30; every entry
 * follows from what stands here, and docs/emulator.md says how that was checked.
 */
#include <math.h>
#include <stddef.h>

#include "device/ptx/half.h"
#include "device/ptx/mufu.h"

/* Cut toward zero; infinity from 2^16 on, where truncation alone would leave 65504. */
static uint32_t cut_to_f16(uint32_t f) {
    uint32_t m = f & 0x7fffffffu, sign = f >> 16 & 0x8000;
    if (m > 0x7f800000u)
        return HALF_NAN;
    if (m >= 0x47800000u)
        return sign | 0x7c00;
    if (m >= 0x38800000u)
        return sign | (m - 0x38000000u) >> 13;
    unsigned shift = 126 - (m >> 23); /* 2^-14 has exponent 113 and would be shifted by 13 */
    return sign | (shift > 31 ? 0 : ((m & 0x7fffffu) | 0x800000u) >> shift);
}

static uint32_t cut_to_bf16(uint32_t f) {
    return (f & 0x7fffffffu) > 0x7f800000u ? HALF_NAN : f >> 16;
}

uint32_t mufu_ex2_f16(uint32_t h) {
    return cut_to_f16(mufu_ex2(f16_to_f32(h)));
}
uint32_t mufu_ex2_bf16(uint32_t h) {
    return cut_to_bf16(mufu_ex2(bf16_to_f32(h)));
}

/* Largest f32 below the double, in magnitude; the argument is positive. */
static uint32_t cut_to_f32(double v) {
    float f = (float)v;
    return half_f32_bits((double)f > v ? nextafterf(f, 0) : f);
}

/*
 * Up to about 2^-8 the unit returns x itself, from 8 on 1.  In between its approximation, cut to 16
 * bits, is the true value cut to 16 bits, except where the two lie on different sides of a 16-bit
 * number.  The error of libm's tanh does not matter: no true value is within 2^-40 of its size of
 * such a number (the test asks MPFR).
 */
struct exception {
    uint16_t x, result;
};

static const struct exception tanh_f16[] = {
    {0x29c6, 0x29c5}, {0x2c95, 0x2c93}, {0x2c96, 0x2c94}, {0x2d3f, 0x2d3b}, {0x2e39, 0x2e34},
    {0x2e9d, 0x2e97}, {0x3064, 0x305d}, {0x323f, 0x322b}, {0x32ff, 0x32e3}, {0x355b, 0x352a},
    {0x372d, 0x36bb}, {0x3824, 0x379d}, {0x399a, 0x38d6}, {0x39f8, 0x390f}, {0x3c8e, 0x3a82},
    {0x3c9d, 0x3a8c}, {0x3cc9, 0x3aa9}, {0x3db8, 0x3b21}, {0x3de3, 0x3b33}, {0x3e23, 0x3b49},
    {0x3eab, 0x3b72}, {0x3ed6, 0x3b7e}, {0x4080, 0x3bd3}, {0x4429, 0x3bfe},
};
static const struct exception tanh_bf16[] = {{0x3f3f, 0x3f21}};

static uint32_t look_up(uint32_t otherwise, uint32_t x, const struct exception *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (list[i].x == x)
            return list[i].result;
    return otherwise;
}

uint32_t mufu_tanh_f16(uint32_t h) {
    uint32_t m = h & 0x7fff, sign = h & 0x8000;
    if (m > 0x7c00)
        return HALF_NAN;
    if (m <= 0x1c07)
        return h;
    if (m >= 0x4800)
        return sign | 0x3c00;
    uint32_t r = cut_to_f16(cut_to_f32(tanh((double)half_as_f32(f16_to_f32(m)))));
    return sign | look_up(r, m, tanh_f16, sizeof tanh_f16 / sizeof *tanh_f16);
}

uint32_t mufu_tanh_bf16(uint32_t h) {
    uint32_t m = h & 0x7fff, sign = h & 0x8000;
    if (m > 0x7f80)
        return HALF_NAN;
    if (m <= 0x3b80)
        return h;
    if (m >= 0x4100)
        return sign | 0x3f80;
    uint32_t r = cut_to_bf16(cut_to_f32(tanh((double)half_as_f32(bf16_to_f32(m)))));
    return sign | look_up(r, m, tanh_bf16, sizeof tanh_bf16 / sizeof *tanh_bf16);
}
