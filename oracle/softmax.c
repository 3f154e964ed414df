/* oracle/softmax.c - e^(x_j - m) / sum_i e^(x_i - m), m = max_i x_i. */
#include <math.h>

#include "oracle/oracle_impl.h"

status_t softmax_attempt(struct enclosure *out, const struct oracle_row *row,
                         const struct row_facts *facts, mpfr_prec_t prec) {
    struct exp_row e;
    status_t st = exp_row_init(&e, row, facts, prec);
    if (st != OK)
        return st;
    mpfr_t lo, hi;
    mpfr_inits2(prec, lo, hi, (mpfr_ptr)0);
    for (size_t j = 0; j < row->cols; j++) {
        /* Non-negative over positive: the least numerator over the largest sum, and the reverse. */
        mpfr_div(lo, e.lo[j], e.sum_hi, MPFR_RNDD);
        mpfr_div(hi, e.hi[j], e.sum_lo, MPFR_RNDU);
        out[j] = enclosure_from_mpfr(lo, hi);
    }
    mpfr_clears(lo, hi, (mpfr_ptr)0);
    exp_row_clear(&e);
    return OK;
}

static struct enclosure empty_value(const struct oracle_row *row) {
    switch (row->empty_row) {
    case EMPTY_NAN:
        return enclosure_exact(NAN);
    case EMPTY_ZERO:
        return enclosure_exact(0);
    case EMPTY_UNIFORM:
        break;
    }
    /* 1/cols; the quotient of the nearest doubles is off by less than one spacing, if at all. */
    double cols = (double)row->cols, share = 1 / cols;
    double rest = fma(-share, cols, 1); /* exact: sign of 1/cols - share */
    return (struct enclosure){rest < 0 ? nextafter(share, 0) : share,
                              rest > 0 ? nextafter(share, 1) : share};
}

status_t softmax_enclose(struct enclosure *out, const struct oracle_row *row) {
    struct row_facts facts = row_examine(row);
    if (facts.nan > 0 || facts.plus_inf > 0) {
        enclosure_fill(out, row->cols, enclosure_exact(NAN));
        return OK;
    }
    if (facts.finite == 0) {
        enclosure_fill(out, row->cols, empty_value(row));
        return OK;
    }
    return row_refine(out, row->cols, row, &facts, softmax_attempt);
}
