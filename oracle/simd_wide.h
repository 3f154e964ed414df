/*
 * oracle/simd_wide.h - the loops of the double-double tier.  Compiled once per x86-64 level.
 * Bounds: docs/oracle.md, "Double-double".
 */
#ifndef ORACLE_SIMD_WIDE_H
#define ORACLE_SIMD_WIDE_H

#include <stddef.h>

#include "oracle/enclosure.h"

/* Of e^t for FAR <= t <= 0, relative; exact at 0. */
#define DD_EXP_ERROR 0x1p-98

struct pair {
    double hi, lo;
};

/* s + c + d is the sum but for the roundings of d, which are at most n 2^-53 lost. */
struct wide_sum {
    double s, c, d, lost;
};

struct wide_simd {
    struct wide_sum (*sum)(const double *x, size_t n);
    /*
     * hi[j] + lo[j] ~ e^(x[j] - max), 0 below FAR; their sum but for entry `skip`, off by
     * (n + 16) 2^-104 relative beside the terms' errors; *far: finite entries below FAR.
     */
    struct pair (*exps)(double *hi, double *lo, size_t *far, const double *x, size_t n, double max,
                        size_t skip);
    /* (hi[j] + lo[j]) / sum, off by `rel`; [0, FAR_SIZE] where a finite x has 0. */
    void (*shares)(struct enclosure *out, const double *hi, const double *lo, const double *x,
                   size_t n, struct pair sum, double rel);
    /* (x - max) - log, off by half + rel (|x - max| + |log|) */
    void (*logs)(struct enclosure *out, const double *x, size_t n, double max, struct pair log,
                 double half, double rel);
};

extern const struct wide_simd wide_simd_v2, wide_simd_v3, wide_simd_v4;

const struct wide_simd *wide_simd(void); /* of row_simd()'s level */

#endif
