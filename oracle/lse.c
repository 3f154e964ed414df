/* oracle/lse.c - log sum_i e^(x_i) = m + log sum_i e^(x_i - m), base e. */
#include <math.h>

#include "oracle/oracle_impl.h"

/*
 * m and log S may cancel; then a higher precision decides.  It always can: the result is rational
 * only for a row with one finite entry (Lindemann-Weierstrass), where rest = 0 and the sum is
 * exact.
 */
status_t lse_attempt(struct enclosure *out, const struct oracle_row *row,
                     const struct row_facts *facts, mpfr_prec_t prec) {
    struct exp_row e;
    status_t st = exp_row_init(&e, row, facts, prec);
    if (st != OK)
        return st;
    mpfr_t lo, hi;
    mpfr_inits2(prec, lo, hi, (mpfr_ptr)0);
    exp_row_log_sum(lo, hi, &e);
    mpfr_add_d(lo, lo, facts->max, MPFR_RNDD);
    mpfr_add_d(hi, hi, facts->max, MPFR_RNDU);
    mpfr_add_d(lo, lo, row_low(row, facts->argmax), MPFR_RNDD);
    mpfr_add_d(hi, hi, row_low(row, facts->argmax), MPFR_RNDU);
    *out = enclosure_from_mpfr(lo, hi);
    mpfr_clears(lo, hi, (mpfr_ptr)0);
    exp_row_clear(&e);
    return OK;
}

status_t lse_enclose(struct enclosure *out, const struct oracle_row *row) {
    struct row_facts facts = row_examine(row);
    if (facts.nan > 0) {
        *out = enclosure_exact(NAN);
        return OK;
    }
    if (facts.plus_inf > 0 || facts.finite == 0) {
        *out = enclosure_exact(facts.plus_inf > 0 ? INFINITY : -INFINITY);
        return OK;
    }
    return row_refine(out, 1, row, &facts, lse_attempt);
}
