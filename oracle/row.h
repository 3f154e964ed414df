/* oracle/row.h - one unit of an op: an output row and all that it depends on, as exact values. */
#ifndef ORACLE_ROW_H
#define ORACLE_ROW_H

#include <stdbool.h>
#include <stddef.h>

/* What a row without any finite or +Inf entry gives: the manifest's `empty_row`. */
enum empty_row { EMPTY_NAN, EMPTY_ZERO, EMPTY_UNIFORM };

/*
 * Ops of a matrix read x: cols exact values of the input dtype; cols may be 0.  The others read the
 * row of their own (norm.h, rope.h, attention.h, topk.h), and cols is how many results it has.
 */
struct oracle_row {
    const double *x;
    const double *low; /* entry j is x[j] + low[j], |low[j]| <= 2^-53 |x[j]|; NULL: all 0 */
    bool added;        /* entries are sums of two inputs, which a kernel rounds to acc */
    size_t cols;
    enum empty_row empty_row;
    union {
        const struct norm_row *norm;
        const struct rope_row *rope;
        const struct attention_row *attention;
        const struct topk_row *topk;
    };
};

#endif
