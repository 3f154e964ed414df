/*
 * oracle/oracle_impl.h - what the op files share.  One banner per file that defines it.
 */
#ifndef ORACLE_ORACLE_IMPL_H
#define ORACLE_ORACLE_IMPL_H

#include <mpfr.h>
#include <stddef.h>

#include "oracle/oracle.h"

/* ---- row.c: what a row holds, and enclosures made ready -------------------------------------- */

struct row_facts {
    size_t nan, plus_inf, minus_inf, finite; /* how many entries of each kind */
    size_t argmax;                           /* of the finite entries: the first largest */
    double max; /* x[argmax], of which low[argmax] is not a part; -Inf if none is finite */
};

struct row_facts row_examine(const struct oracle_row *row);

static inline double row_low(const struct oracle_row *row, size_t j) {
    return row->low ? row->low[j] : 0;
}

static inline struct enclosure enclosure_exact(double x) {
    return (struct enclosure){x, x};
}

/* The doubles around [lo, hi]. */
static inline struct enclosure enclosure_from_mpfr(const mpfr_t lo, const mpfr_t hi) {
    return (struct enclosure){mpfr_get_d(lo, MPFR_RNDD), mpfr_get_d(hi, MPFR_RNDU)};
}

void enclosure_fill(struct enclosure *out, size_t n, struct enclosure value);

/*
 * One try at a row whose special values are dealt with: out[0 .. n-1] at this working precision.
 * Right at every precision; only the width depends on it.
 */
typedef status_t attempt_fn(struct enclosure *out, const struct oracle_row *row,
                            const struct row_facts *facts, mpfr_prec_t prec);

/* Tries at 96, 192, ... bits until every enclosure is tight (oracle.h); else ERR_UNDECIDED. */
MUST_CHECK status_t row_refine(struct enclosure *out, size_t n, const struct oracle_row *row,
                               const struct row_facts *facts, attempt_fn *attempt);

/* ---- exp_row.c: the exponentials of a row, shifted by its maximum ---------------------------- */

/* Bits that hold the difference of any two sums of doubles: multiples of 2^-1074 below 2^1026. */
#define DIFFERENCE_BITS 2100

/* t, of DIFFERENCE_BITS: entry i less the largest, exactly. */
void exp_row_argument(mpfr_t t, const struct oracle_row *row, const struct row_facts *facts,
                      size_t i);

struct exp_row {
    mpfr_t *lo, *hi;         /* e^(x_i - max) in [lo_i, hi_i]; equal where exact: 0 and 1 */
    mpfr_t rest_lo, rest_hi; /* the sum of all of them but one maximum's (which is exactly 1) */
    mpfr_t sum_lo, sum_hi;   /* 1 + rest */
    void *memory;
};

/*
 * At least one finite entry, no NaN and no +Inf.  `e` is zeroed on failure.
 * The enclosures do not depend on the order of the entries.  ERR_NOMEM.
 */
MUST_CHECK status_t exp_row_init(struct exp_row *e, const struct oracle_row *row,
                                 const struct row_facts *facts, mpfr_prec_t prec);
void exp_row_clear(struct exp_row *e); /* safe on a zeroed struct, and twice */

/* log S = log1p(rest), rounded down from rest_lo and up from rest_hi: log1p is increasing. */
void exp_row_log_sum(mpfr_t lo, mpfr_t hi, const struct exp_row *e);

/* ---- one per op ------------------------------------------------------------------------------ */

typedef status_t enclose_fn(struct enclosure *out, const struct oracle_row *row);
enclose_fn sum_enclose, max_enclose, softmax_enclose, log_softmax_enclose, lse_enclose;
attempt_fn softmax_attempt, log_softmax_attempt, lse_attempt;

/* ---- bounds.c -------------------------------------------------------------------------------- */

typedef status_t budget_fn(double *budget, const struct oracle_row *row,
                           const struct enclosure *want, const struct numerics *numerics);
budget_fn sum_budget, max_budget, softmax_budget, log_softmax_budget, lse_budget;
budget_fn sum_spread, max_spread, softmax_spread, log_softmax_spread, lse_spread;

#endif
