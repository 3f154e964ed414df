/*
 * device/ptx/half.h - f16 and bf16 values in the low 16 bits of 32-bit lanes, to and from f32.
 *
 * No branches that depend on a value, so that loops over the lanes vectorise on every level.
 */
#ifndef DEVICE_PTX_HALF_H
#define DEVICE_PTX_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HALF_NAN 0x7fffu /* H200: what arithmetic and conversions make of every NaN, f16 or bf16 */
#define F32_NAN 0x7fffffffu

static inline float half_as_f32(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static inline uint32_t half_f32_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

/* Every f16 is an f32.  Subnormals get their exponent from a subtraction that is exact. */
static inline uint32_t f16_to_f32(uint32_t h) {
    uint32_t m = h & 0x7fff, sign = (h & 0x8000) << 16;
    uint32_t r = (m << 13) + 0x38000000u;
    uint32_t tiny = half_f32_bits(half_as_f32((m << 13) + 0x38800000u) - 0x1p-14f);
    r = m < 0x400 ? tiny : r;
    r = m >= 0x7c00 ? r + 0x38000000u : r;
    return m > 0x7c00 ? F32_NAN : r | sign;
}

static inline uint32_t bf16_to_f32(uint32_t b) {
    return (b & 0x7fff) > 0x7f80 ? F32_NAN : b << 16;
}

/*
 * Round to nearest, ties to even.  Adding 0.5 leaves a subnormal's multiple of 2^-24 in the low
 * bits, rounded; a carry out of a normal significand moves into the exponent, up to infinity.
 */
static inline uint32_t f32_to_f16(uint32_t f) {
    uint32_t m = f & 0x7fffffffu, sign = f >> 16 & 0x8000;
    uint32_t tiny = half_f32_bits(half_as_f32(m) + 0.5f) - 0x3f000000u;
    uint32_t r = (m - 0x38000000u + 0xfff + (m >> 13 & 1)) >> 13;
    r = m < 0x38800000u ? tiny : r;
    r = m >= 0x477ff000u ? 0x7c00 : r; /* 65520 and more */
    return m > 0x7f800000u ? HALF_NAN : r | sign;
}

static inline uint32_t f32_to_bf16(uint32_t f) {
    uint32_t r = (f + 0x7fff + (f >> 16 & 1)) >> 16;
    return (f & 0x7fffffffu) > 0x7f800000u ? HALF_NAN : r;
}

#endif
