/* tests/kernels/rows.h - rows that have broken reductions and softmaxes. */
#ifndef TESTS_KERNELS_ROWS_H
#define TESTS_KERNELS_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum row_kind {
    ROW_NORMAL,
    ROW_HUGE, /* logits around +-200: exp alone overflows */
    ROW_ALL_NINF,
    ROW_ONE_FINITE,  /* one finite entry, the rest -Inf */
    ROW_MASKED_HEAD, /* -Inf, then numbers: a thread's first entries are masked */
    ROW_MASKED_TAIL,
    ROW_NAN,         /* one NaN among numbers */
    ROW_NAN_IN_NINF, /* one NaN, the rest -Inf: a guard on the maximum may swallow it */
    ROW_PLUS_INF,    /* one +Inf among numbers */
    ROW_BOTH_INF,    /* one +Inf, one -Inf */
    ROW_TIES,        /* all equal */
    ROW_RAMP_UP,     /* every entry a new maximum */
    ROW_RAMP_DOWN,
    ROW_INTEGERS, /* small whole numbers: every partial sum is exact */
    ROW_CANCEL,   /* large terms of both signs, small sum */
    ROW_SUBNORMAL,
    ROW_NEAR_OVERFLOW, /* largest finite magnitudes of both signs */
    ROW_NEGATIVE_ZERO,
    ROW_KINDS,
};

extern const char *const row_kind_names[ROW_KINDS];

/* x[0 .. cols-1]; the same for the same kind, cols and seed. */
void row_fill(float *x, size_t cols, enum row_kind kind, uint64_t seed);

#endif
