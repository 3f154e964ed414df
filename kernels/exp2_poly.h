/*
 * 2^x on the FMA units, for CUDA and, operation by operation, for C: tests/oracle/test_gpu_exp.c runs
 * over every argument and so certifies what docs/bounds.md grants to `exp: ex2_poly`.
 *
 * x = i + f, i = floor(x); 2^f ~ 1 + f q(f) on [0, 1], q of degree 4 by Remez's algorithm, coefficients
 * rounded to f32; then i is added to the exponent.  2^0 = 1 exactly.  0 below -126, infinity from 128
 * on; NaN stays NaN.  Relative error at most 1.3864 x 2^-23, where x <= -1/2 at most 1.2132 x 2^-23: between
 * -1/2 and 0 the difference f = x - i is rounded.
 */
#ifndef KERNELS_EXP2_POLY_H
#define KERNELS_EXP2_POLY_H

#ifdef __CUDACC__
#define EXP2_POLY static __device__ __forceinline__ float
#define ADD_DOWN(x, y) __fadd_rd(x, y)
#define BITS_OF(x) __float_as_int(x)
#define OF_BITS(x) __int_as_float(x)
#else
#include <math.h>
#include <string.h>
#define EXP2_POLY static inline float
/* x below 2^22 in magnitude, y = 1.5 x 2^23: the sum's unit is 1. */
#define ADD_DOWN(x, y) (floorf(x) + (y))
static inline int exp2_poly_bits(float x) {
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float exp2_poly_of(int bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
#define BITS_OF(x) exp2_poly_bits(x)
#define OF_BITS(x) exp2_poly_of(x)
#endif

EXP2_POLY exp2_poly(float x) {
    x = x < -127.0f ? -127.0f : x > 128.0f ? 128.0f : x; /* fmaxf would drop a NaN */
    const float shifted = ADD_DOWN(x, 0x1.8p23f);        /* its low bits are i */
    const float f = x - (shifted - 0x1.8p23f);
    float p = 0x1.e974fap-10f;
    p = fmaf(p, f, 0x1.277856p-7f);
    p = fmaf(p, f, 0x1.c91ce6p-5f);
    p = fmaf(p, f, 0x1.ebdb56p-3f);
    p = fmaf(p, f, 0x1.62e4bap-1f);
    p = fmaf(p, f, 1.0f);
    return p * OF_BITS((int)((unsigned)BITS_OF(shifted) << 23) + 0x3f800000);
}

#undef EXP2_POLY
#undef ADD_DOWN
#undef BITS_OF
#undef OF_BITS

#endif
