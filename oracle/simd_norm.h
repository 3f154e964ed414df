/*
 * oracle/simd_norm.h - the loops of the norms' tiers, and of rope's.  Compiled once per x86-64 level.
 * d_j is x_j - mean, or x_j.  Bounds: docs/oracle.md, "Norms" and "Rope".
 */
#ifndef ORACLE_SIMD_NORM_H
#define ORACLE_SIMD_NORM_H

#include <stddef.h>

#include "oracle/enclosure.h"
#include "oracle/simd_wide.h"

struct norm_scan {
    double largest;   /* |x_j|; NaN or +Inf if one is */
    double magnitude; /* sum |x_j|, to 2^-20 */
};

struct norm_terms {
    struct pair mean, inverse;   /* inverse: 1/sqrt(variance + eps); lo is not read by tier f64 */
    const double *weight, *bias; /* or NULL: 1 and 0 */
    double rel;                  /* of d_j inverse w_j: what half the width is made of ... */
    double off;                  /* ... and of d_j, absolute */
};

struct norm_simd {
    struct norm_scan (*scan)(const double *x, size_t n);
    /* sum x_j, off by (n + 32) 2^-104 sum |x_j|. */
    struct pair (*total)(const double *x, size_t n);
    /* sum d_j^2 of the d_j as computed: relative (chain + 2) 2^-53, or (n + 64) 2^-104. */
    double (*squares)(double *chain, const double *x, size_t n, struct pair mean);
    struct pair (*wide_squares)(const double *x, size_t n, struct pair mean);
    void (*results)(struct enclosure *out, const double *x, size_t n, const struct norm_terms *t);
    void (*wide_results)(struct enclosure *out, const double *x, size_t n,
                         const struct norm_terms *t);
    /*
     * Pairs (a_i, b_i) turned by position (hi_i + lo_i), an angle of at most TURN_LIMIT:
     * y_i, z_i, each off by TURN_ERROR (|a_i| + |b_i|).
     */
    void (*turn)(double *y, double *z, const double *a, const double *b, const double *hi,
                 const double *lo, double position, size_t n);
};

#define TURN_LIMIT 0x1p22
#define TURN_ERROR 0x1p-50

extern const struct norm_simd norm_simd_v2, norm_simd_v3, norm_simd_v4;

const struct norm_simd *norm_simd(void); /* of row_simd()'s level */

#endif
