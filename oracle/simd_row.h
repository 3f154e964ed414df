/*
 * oracle/simd_row.h - tier 0's loops over a row, compiled once per x86-64 level.
 *
 * Only +, -, *, /, fma and conversions, no library function.  The levels' bits differ (fma, the order
 * of a sum); the proofs hold for each.  Step by step, with every constant: docs/oracle.md.
 */
#ifndef ORACLE_SIMD_ROW_H
#define ORACLE_SIMD_ROW_H

#include <stdbool.h>
#include <stddef.h>

#include "oracle/enclosure.h"

/* |computed e^t - e^t| <= EXP_ERROR e^t for FAR <= t <= 0; exact at 0. */
#define EXP_ERROR 0x1.cp-53
/* Of the short one, for the common look and for attention; exact at 0, too. */
#define QUICK_ERROR 0x1p-42
/* Below this argument tier 0 does not compute e^t: it is in [0, FAR_SIZE]. */
#define FAR (-600.0)
#define FAR_SIZE 0x1p-860

struct row_scan {
    double max;                      /* of all entries, -Inf if there are none */
    size_t nan, plus_inf, minus_inf; /* how many */
};

/* s + c is the sum but for the roundings of c, which are at most n 2^-53 lost. */
struct row_sum {
    double s, c, lost;
};

struct row_simd {
    const char *name;
    void (*widen)(double *out, const void *floats, size_t n); /* at any address */
    struct row_scan (*scan)(const double *x, size_t n);
    struct row_sum (*sum)(const double *x, size_t n, double start);
    /* e[j] ~ e^(x[j] - max); adds the e[j] to -1; *far: finite entries below FAR. */
    struct row_sum (*exps)(double *e, size_t *far, const double *x, size_t n, double max);
    /* [e[j] lo, e[j] hi]; FAR_SIZE where a finite x has e = 0. */
    void (*shares)(struct enclosure *out, const double *e, const double *x, size_t n, double lo,
                   double hi);
    /* (x - max) - [lo, hi] */
    void (*logs)(struct enclosure *out, const double *x, size_t n, double max, double lo,
                 double hi);
};

extern const struct row_simd row_simd_v2, row_simd_v3, row_simd_v4;

/* The best this machine runs; ASSAY_ISA=v2, v3 or v4 asks for less. */
const struct row_simd *row_simd(void);

#endif
