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

struct logit_terms; /* simd_attention.h */
struct logits_found;

/* Of a row's weights in double-double. */
struct wide_weights {
    struct pair size; /* sum e_j */
    double own;       /* sum e_j eps_j */
    double worst;     /* as in struct weight_sums */
};

/* Attention of one row over panels of `width` columns (simd_attention.h). */
struct wide_attention_simd {
    /* Logits hi + lo, each off by off[j] at most; -Inf where invisible. */
    struct logits_found (*logits)(double *hi, double *lo, double *off, const double *q,
                                  const double *k, size_t padded, size_t dim,
                                  const struct logit_terms *t);
    /* They become weights; off[j] the weight's own relative error eps_j. */
    struct wide_weights (*weights)(double *hi, double *lo, double *off, size_t padded, double top);
    /* sum_j e_j v[j][.] as hi + lo for one panel, and in size sum_j e_j (eps_j + gamma) |v[j][.]|. */
    void (*values)(double *hi, double *lo, double *size, const double *e_hi, const double *e_lo,
                   const double *eps, const double *v, size_t padded, double gamma);
    /* (hi + lo) / sum, off by half[c]; one panel. */
    void (*quotients)(struct enclosure *out, const double *hi, const double *lo, const double *half,
                      struct pair sum, size_t n);
};

extern const struct wide_attention_simd wide_attention_simd_v2, wide_attention_simd_v3,
    wide_attention_simd_v4;

const struct wide_attention_simd *wide_attention_simd(void); /* of row_simd()'s level */

extern const struct wide_simd wide_simd_v2, wide_simd_v3, wide_simd_v4;

const struct wide_simd *wide_simd(void); /* of row_simd()'s level */

#endif
