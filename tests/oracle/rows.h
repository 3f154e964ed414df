/* tests/oracle/rows.h - rows of f32 values, by families that stress different steps. */
#ifndef TESTS_ORACLE_ROWS_H
#define TESTS_ORACLE_ROWS_H

#include <stddef.h>

#include "base/rng.h"

enum row_kind {
    ROW_NORMAL,    /* like logits: a few units around 0 */
    ROW_WIDE,      /* within +-60 */
    ROW_TIES,      /* few distinct values, the largest often twice */
    ROW_SUBNORMAL, /* |x| < 2^-126, and an occasional 1 */
    ROW_PEAK,      /* one entry ahead of the others by up to 30 */
    ROW_MASKED,    /* half of it -Inf, never all */
    ROW_RAMP_UP,   /* ascending: every entry is a new maximum */
    ROW_RAMP_DOWN, /* descending */
    ROW_LSE_ZERO,  /* around -log(cols): lse cancels */
    ROW_FAR,       /* down to 130 below the maximum: underflow in f32 */
    ROW_CANCEL,    /* pairs that cancel but for small rests: sums */
    ROW_BITS,      /* any finite f32 */
    ROW_KINDS
};

const char *row_kind_name(enum row_kind kind);

/* x[0 .. cols-1]: values that f32 holds, the same for the same rng state. */
void row_make(double *x, size_t cols, enum row_kind kind, struct rng *rng);

/* The entries in a random order. */
void row_shuffle(double *x, size_t cols, struct rng *rng);

#endif
