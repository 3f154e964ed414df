/* oracle/tier_impl.h - what the tier files share: a row's exponentials in double. */
#ifndef ORACLE_TIER_IMPL_H
#define ORACLE_TIER_IMPL_H

#include "oracle/oracle_impl.h"
#include "oracle/simd_row.h"
#include "oracle/tier.h"

/* Beyond this a step of the proofs does not hold: hand up. */
#define TIER_MAX_COLS ((size_t)1 << 30)

/* e_j ~ e^(x_j - m), each within EXP_ERROR (0 below FAR), and their sum but for one maximum's 1. */
struct shifted {
    double *e; /* owned */
    struct enclosure rest;
    /* softmax_j is in [e_j lo, e_j hi], or in [0, FAR_SIZE] where e_j = 0 and x_j is finite. */
    double lo, hi;
};

/* A row of finite entries and -Inf, not all -Inf.  ERR_NOMEM. */
MUST_CHECK status_t shifted_init(struct shifted *s, const struct oracle_row *row, double max);
void shifted_clear(struct shifted *s); /* safe on a zeroed struct, and twice */

/* ---- tier_unit.c: ops whose rows are their own; false: this one is not ------------------------- */

bool unit_tier_enclose(status_t *st, struct enclosure *out, enum tier *tier, const struct op *op,
                       const struct oracle_row *row);
bool unit_tier_enclose_rows(status_t *st, struct enclosure *out, enum tier *tier,
                            const struct op *op, const struct oracle_row *const *rows, size_t count,
                            size_t n);
bool unit_tier_within(status_t *st, struct tier_extremes *out, const struct op *op,
                      const struct oracle_row *const *rows, size_t count, const double *got,
                      size_t n, const struct numerics *numerics);
bool unit_tier_budgets(status_t *st, double *lo, double *hi, const struct op *op,
                       const struct oracle_row *row, const struct enclosure *want,
                       const struct numerics *numerics);

#endif
