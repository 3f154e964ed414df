/*
 * oracle/tier.h - the ladder of verdicts: enclosures that are as tight as a verdict needs.
 *
 * Every tier encloses the real result; a higher one is tighter and slower.  A caller asks the lowest
 * tier first and hands up what its enclosure leaves undecided.  Conventions (NaN, infinities, empty
 * rows) are those of op->enclose: docs/numerics.md.  Proofs: docs/oracle.md.
 */
#ifndef ORACLE_TIER_H
#define ORACLE_TIER_H

#include "oracle/oracle.h"

enum tier {
    TIER_F64,  /* double, side by side, compensated: relative width about 2^-49 */
    TIER_DD,   /* double-double, side by side: a step of double, as MPFR's */
    TIER_MPFR, /* op->enclose */
    TIER_COUNT
};

const char *tier_name(enum tier tier); /* "f64" */

/*
 * out[0 .. n-1], n = 1 or cols, by *tier or, where that has no answer (an op without it, a range it
 * is not proven for), by the next one that has; *tier becomes the one that answered.  Enclosures of
 * the lower tiers contain those of TIER_MPFR.  ERR_NOMEM; ERR_UNDECIDED from TIER_MPFR.
 */
MUST_CHECK status_t tier_enclose(struct enclosure *out, enum tier *tier, const struct op *op,
                                 const struct oracle_row *row);

/*
 * tier_enclose for `count` rows of one part (struct op_units), each with n results: out[r n ..] by
 * tier[r].  Rows of attention go side by side.
 */
MUST_CHECK status_t tier_enclose_rows(struct enclosure *out, enum tier *tier, const struct op *op,
                                      const struct oracle_row *const *rows, size_t count, size_t n);

/* softmax_topk_enclose, likewise. */
MUST_CHECK status_t softmax_topk_tier_enclose(size_t *index, struct enclosure *p, enum tier *tier,
                                              const struct topk_row *row);

/*
 * An interval that contains every budget (rounded outward by 2^-40) that op->budget gives for an
 * enclosure within want: budgets depend on it through the size of the result.  lo[0 .. n-1],
 * hi[0 .. n-1].  Errors of op->budget.
 */
MUST_CHECK status_t tier_budgets(double *lo, double *hi, const struct op *op,
                                 const struct oracle_row *row, const struct enclosure *want,
                                 const struct numerics *numerics);

/* What tier_within found in a row; only `within` means anything where it is false. */
struct tier_extremes {
    bool within;           /* false: look closer */
    bool sharp;            /* the lower bounds are op->budget to 2^-16, but for rare elements */
    bool earned;           /* some budget is below a result: a wrong one would have failed */
    double ulps, rel, rho; /* the largest of the row; each no less than by op->budget and MPFR */
    size_t worst;          /* the element of rho, and the lower bound on its budget */
    double budget;
    struct enclosure want; /* there, by TIER_F64 */
};

/*
 * out[r].within: are all results of row r within their budgets, for certain?  The common case of a
 * check at the speed of double precision, without enclosures kept, against a lower bound of
 * op->budget.  The rows are of one part (struct op_units).  got: count x n exact values, of data of
 * numerics->out (attention's lse: of acc); n: the first results of a row, those that the kernel has.
 * ulps and rel are on the scale of op->scale's `plain` where that is larger than the result.
 * Only for softmax and attention; within = false for the other ops.  ERR_NOMEM.
 */
MUST_CHECK status_t tier_within(struct tier_extremes *out, const struct op *op,
                                const struct oracle_row *const *rows, size_t count,
                                const double *got, size_t n, const struct numerics *numerics);

#endif
