/*
 * mufu_half.c - ex2 and tanh of f16 and bf16, to the bit: the unit's f32 result, cut to 16 bits.
 *
 * That holds for all 65536 results of each that an H200 gave; docs/emulator.md.
 */
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

uint32_t mufu_tanh_f16(uint32_t h) {
    return cut_to_f16(mufu_tanh(f16_to_f32(h)));
}
uint32_t mufu_tanh_bf16(uint32_t h) {
    return cut_to_bf16(mufu_tanh(bf16_to_f32(h)));
}
