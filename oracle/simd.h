/*
 * oracle/simd.h - as many doubles side by side as this compilation's level has, for simd_*.c.
 *
 * ISA is the level's suffix, v2, v3 or v4.  GCC and clang vectors, and intrinsics where those say
 * less than the machine can.
 */
#ifndef ORACLE_SIMD_H
#define ORACLE_SIMD_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "oracle/enclosure.h"

#define CAT2(a, b) a##_##b
#define CAT(a, b) CAT2(a, b)
#define STRING2(x) #x
#define STRING(x) STRING2(x)

#define INLINE static inline __attribute__((always_inline))

#if defined __AVX512F__
#    define LANES 8
#    define EACH(v) \
        { v, v, v, v, v, v, v, v }
#    define ZIP_LOW 0, 8, 1, 9, 2, 10, 3, 11
#    define ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif defined __AVX2__
#    define LANES 4
#    define EACH(v) \
        { v, v, v, v }
#    define ZIP_LOW 0, 4, 1, 5
#    define ZIP_HIGH 2, 6, 3, 7
#else
#    define LANES 2
#    define EACH(v) \
        { v, v }
#    define ZIP_LOW 0, 2
#    define ZIP_HIGH 1, 3
#endif

typedef double vd __attribute__((vector_size(8 * LANES)));
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int64_t vi __attribute__((vector_size(8 * LANES)));

INLINE vd all(double v) {
    return (vd)EACH(v);
}

INLINE vi all_bits(int64_t v) {
    return (vi)EACH(v);
}

/* a b + c, rounded once where the level can, else twice: the proof allows for both. */
INLINE vd mul_add(vd a, vd b, vd c) {
#if defined __AVX512F__
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined __FMA__
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

INLINE vd pick(vi mask, vd yes, vd no) {
    return (vd)((mask & (vi)yes) | (~mask & (vi)no));
}

INLINE vd only(vi mask, vd v) {
    return (vd)(mask & (vi)v);
}

/* a > b ? a : b */
INLINE vd larger(vd a, vd b) {
#if defined __AVX512F__
    return (vd)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif defined __AVX2__
    return (vd)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
    return (vd)_mm_max_pd((__m128d)a, (__m128d)b);
#endif
}

/* a < b ? a : b */
INLINE vd smaller(vd a, vd b) {
#if defined __AVX512F__
    return (vd)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif defined __AVX2__
    return (vd)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
    return (vd)_mm_min_pd((__m128d)a, (__m128d)b);
#endif
}

INLINE vd magnitude(vd v) {
    return (vd)((vi)v & all_bits(INT64_MAX));
}

/* The power of two at or below a positive normal number. */
INLINE vd binade(vd v) {
    return (vd)((vi)v & all_bits(INT64_C(0x7ff) << 52));
}

INLINE vd from_f32(vf v) {
#if defined __AVX512F__
    return (vd)_mm512_cvtps_pd((__m256)v);
#elif defined __AVX2__
    return (vd)_mm256_cvtps_pd((__m128)v);
#else
    return __builtin_convertvector(v, vd);
#endif
}

INLINE vd round_f32(vd v) {
#if defined __AVX512F__
    return from_f32((vf)_mm512_cvtpd_ps((__m512d)v));
#elif defined __AVX2__
    return from_f32((vf)_mm256_cvtpd_ps((__m256d)v));
#else
    return from_f32(__builtin_convertvector(v, vf));
#endif
}

/* Up to LANES entries; missing ones are `fill`. */
INLINE vd load(const double *p, size_t left, double fill) {
    vd v, padded = all(fill);
    if (left < LANES) {
        memcpy(&padded, p, left * sizeof *p);
        return padded;
    }
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(double *p, size_t left, vd v) {
    if (left < LANES) {
        vd copy = v; /* so that v itself need not live in memory */
        memcpy(p, &copy, left * sizeof *p);
        return;
    }
    memcpy(p, &v, sizeof v);
}

INLINE void store_pairs(struct enclosure *p, size_t left, vd lo, vd hi) {
    vd first = __builtin_shufflevector(lo, hi, ZIP_LOW);
    vd second = __builtin_shufflevector(lo, hi, ZIP_HIGH);
    if (left < LANES) {
        vd both[2] = {first, second};
        memcpy(p, both, left * sizeof *p);
        return;
    }
    memcpy(p, &first, sizeof first);
    memcpy(p + LANES / 2, &second, sizeof second);
}

INLINE bool any(vi mask) {
#if defined __AVX512F__
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined __AVX2__
    return _mm256_movemask_pd((__m256d)mask) != 0;
#else
    return (mask[0] | mask[1]) != 0;
#endif
}

INLINE double largest(vd v) {
    double max = v[0];
    for (int l = 1; l < LANES; l++)
        max = v[l] > max ? v[l] : max;
    return max;
}

INLINE size_t count(vi masks) { /* each lane holds minus its number */
    int64_t n = 0;
    for (int l = 0; l < LANES; l++)
        n -= masks[l];
    return (size_t)n;
}

/* ---- masks: a bit or a word per lane ----------------------------------------------------------- */

#if defined __AVX512F__
typedef __mmask8 vm;
#    define COMPARE(a, b, how, plain) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), how)
#else
typedef vi vm;
#    define COMPARE(a, b, how, plain) (plain)
#endif

INLINE vm is_above(vd a, vd b) {
    return COMPARE(a, b, _CMP_GT_OQ, a > b);
}

INLINE vm is_least(vd a, vd b) { /* a >= b */
    return COMPARE(a, b, _CMP_GE_OQ, a >= b);
}

INLINE vm is_other(vd a, vd b) {
    return COMPARE(a, b, _CMP_NEQ_UQ, a != b);
}

/* !(a <= b): also where one is NaN. */
INLINE vm is_beyond(vd a, vd b) {
    return COMPARE(a, b, _CMP_NLE_UQ, ~(a <= b));
}

/* v where the mask is set, else 0. */
INLINE vd where(vm mask, vd v) {
#if defined __AVX512F__
    return (vd)_mm512_maskz_mov_pd(mask, (__m512d)v);
#else
    return only(mask, v);
#endif
}

INLINE bool some(vm mask) {
#if defined __AVX512F__
    return mask != 0;
#else
    return any(mask);
#endif
}

INLINE vm none_of(void) {
#if defined __AVX512F__
    return 0;
#else
    return all_bits(0);
#endif
}

/* 0, 1, 2, ... */
INLINE vd counting(void) {
    vd v;
    for (int l = 0; l < LANES; l++)
        v[l] = l;
    return v;
}

INLINE double added(vd v) {
    double sum = v[0];
    for (int l = 1; l < LANES; l++)
        sum += v[l];
    return sum;
}

/* ---- 2^k ----------------------------------------------------------------------------------------- */

#define LOG2E 0x1.71547652b82fep+0
#define MAGIC 0x1.8p52 /* adding it rounds to an integer, in the low bits */

/* v 2^k for k = shifted - MAGIC, as long as that is normal. */
INLINE vd scale_by(vd v, vd shifted) {
    return (vd)((vi)v + ((vi)shifted << 52));
}

#endif
