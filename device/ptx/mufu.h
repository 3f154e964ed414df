/*
 * device/ptx/mufu.h - the special function unit of sm_90, to the bit.
 *
 * Arguments and results are f32 bit patterns.  The plain functions are the .approx.ftz forms, which
 * are the unit's own operation; *_subnormal are the forms without .ftz, which ptxas expands around
 * it.  sin and cos are a product with 1 / 2 pi and the unit's operation, with .ftz and without;
 * tanh has no .ftz form.  All of them equal an H200 over all 2^32 inputs: docs/emulator.md.
 */
#ifndef DEVICE_PTX_MUFU_H
#define DEVICE_PTX_MUFU_H

#include <stdint.h>

uint32_t mufu_ex2(uint32_t x);
uint32_t mufu_lg2(uint32_t x);
uint32_t mufu_rcp(uint32_t x);
uint32_t mufu_rsqrt(uint32_t x);

uint32_t mufu_ex2_subnormal(uint32_t x);
uint32_t mufu_lg2_subnormal(uint32_t x);
uint32_t mufu_rcp_subnormal(uint32_t x);
uint32_t mufu_rsqrt_subnormal(uint32_t x);

uint32_t mufu_sqrt(uint32_t x);
uint32_t mufu_sqrt_subnormal(uint32_t x);
uint32_t mufu_sin(uint32_t x); /* x in radians */
uint32_t mufu_cos(uint32_t x);
uint32_t mufu_tanh(uint32_t x);

/* The high words of rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64; the low ones are 0. */
uint32_t mufu_rcp64h(uint32_t x);
uint32_t mufu_rsqrt64h(uint32_t x);

/* f16 and bf16 bit patterns: ex2.approx.f16, ex2.approx.ftz.bf16, tanh.approx. */
uint32_t mufu_ex2_f16(uint32_t h);
uint32_t mufu_ex2_bf16(uint32_t h);
uint32_t mufu_tanh_f16(uint32_t h);
uint32_t mufu_tanh_bf16(uint32_t h);

/* The unit's truncated squarer: about r^2 / 2^19 for a 17-bit r. */
uint32_t mufu_square(uint32_t r);

/* Rows of ex2 for the vector form: A, and B << 10 | C. */
extern const uint32_t mufu_ex2_a[64], mufu_ex2_bc[64];

#endif
