/* oracle/log_softmax.c - (x_j - m) - log sum_i e^(x_i - m), m = max_i x_i. */
#include <math.h>

#include "oracle/oracle_impl.h"

status_t log_softmax_attempt(struct enclosure *out, const struct oracle_row *row,
                             const struct row_facts *facts, mpfr_prec_t prec) {
    struct exp_row e;
    status_t st = exp_row_init(&e, row, facts, prec);
    if (st != OK)
        return st;
    mpfr_t log_lo, log_hi, lo, hi, t;
    mpfr_inits2(prec, log_lo, log_hi, lo, hi, (mpfr_ptr)0);
    mpfr_init2(t, DIFFERENCE_BITS);
    exp_row_log_sum(log_lo, log_hi, &e);
    for (size_t j = 0; j < row->cols; j++) {
        if (isinf(row->x[j])) {
            out[j] = enclosure_exact(-INFINITY);
            continue;
        }
        /* t <= 0 is exact and log S >= 0, so nothing cancels. */
        exp_row_argument(t, row, facts, j);
        mpfr_sub(lo, t, log_hi, MPFR_RNDD);
        mpfr_sub(hi, t, log_lo, MPFR_RNDU);
        out[j] = enclosure_from_mpfr(lo, hi);
    }
    mpfr_clears(log_lo, log_hi, lo, hi, t, (mpfr_ptr)0);
    exp_row_clear(&e);
    return OK;
}

status_t log_softmax_enclose(struct enclosure *out, const struct oracle_row *row) {
    struct row_facts facts = row_examine(row);
    if (facts.nan > 0 || facts.plus_inf > 0 || facts.finite == 0) {
        enclosure_fill(out, row->cols, enclosure_exact(NAN));
        return OK;
    }
    return row_refine(out, row->cols, row, &facts, log_softmax_attempt);
}
