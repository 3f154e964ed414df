/* oracle/tier_impl.h - what the tier files share: a row's exponentials in double. */
#ifndef ORACLE_TIER_IMPL_H
#define ORACLE_TIER_IMPL_H

#include "oracle/oracle_impl.h"
#include "oracle/simd_row.h"

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

#endif
