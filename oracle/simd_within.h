/*
 * oracle/simd_within.h - the common look at a softmax row, in two passes: exponentials with their
 * share of the budget, and the comparison.  Compiled once per x86-64 level like simd_row.c.
 * Step by step, with every constant: docs/oracle.md, "The common look".
 */
#ifndef ORACLE_SIMD_WITHIN_H
#define ORACLE_SIMD_WITHIN_H

#include <stdbool.h>
#include <stddef.h>

#include "oracle/enclosure.h"

/* What the lower bound on softmax's budgets needs of the kernel's numerics and of the row. */
struct softmax_terms {
    double max, folded; /* folded: RN(max * log2(e) in f32) */
    int exp;            /* enum exp_variant */
    bool online;
    double worst_eps, slope;
    double log2e_error, shift;
    double floor, floor_below; /* an exp's floor counts below this argument */
};

/* Of a row: sums of e_j, and of e_j times the relative errors that a kernel's may have. */
struct softmax_sums {
    double size, errors;
    double chain; /* size is off by this many roundings at most */
};

struct softmax_limits {
    double share, lo, hi; /* 1/S, and a lower and an upper bound on it */
    double width;         /* of a result: |e_j share - softmax_j| <= e_j width + FAR_SIZE */
    double own, every;    /* budget: errors_j own + e_j every + roundings */
    double smallest_step; /* 2^(emin - p) of acc */
    double step;          /* 2^-p of acc, or 0: the last rounding is in `every` */
    double tiny;          /* a last rounding below 2^-125; 0: as above it */
    double out_smallest_step, out_unit, out_flush; /* out_unit 0: out is acc */
    double keep;                                   /* just below 1: pays for all roundings */
    double out_prec_scale, out_min_normal;         /* 2^(p-1), 2^emin of the output format */
    bool masked;                                   /* the row has entries of -Inf */
};

struct softmax_extremes {
    bool within;           /* every element is within its budget for certain */
    bool earned;           /* some budget is far below its result: this row could have failed */
    double ulps, rel, rho; /* the largest, to 2^-15; rho: of the lower bound */
    size_t worst;          /* where rho is largest */
    double budget;         /* the lower bound there */
    struct enclosure want; /* the result there */
};

struct within_simd {
    /* e[j] ~ e^(x[j] - max), 0 below FAR; errors[j]: no more than e[j] direct_alpha + floor. */
    struct softmax_sums (*weigh)(double *e, double *errors, const double *x, size_t n,
                                 const struct softmax_terms *t);
    /* x is read only where masked. */
    struct softmax_extremes (*within)(const double *got, const double *x, const double *e,
                                      const double *errors, size_t n,
                                      const struct softmax_limits *l);
};

extern const struct within_simd within_simd_v2, within_simd_v3, within_simd_v4;

const struct within_simd *within_simd(void); /* of row_simd()'s level */

#endif
