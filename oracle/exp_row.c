/*
 * oracle/exp_row.c - e^(x_i - max) for a row, and the sum, each enclosed.
 *
 * The argument t = x_i - max is formed exactly (DIFFERENCE_BITS).  For rational t != 0 the number
 * e^t is irrational (Lindemann), so it is never representable: rounding it down gives the lower end
 * and the next number above that is the upper end.  One exponential per element gives both.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/size.h"
#include "oracle/oracle_impl.h"

/* e^t for exact t <= 0. */
static void exp_enclosed(mpfr_t lo, mpfr_t hi, const mpfr_t t) {
    if (mpfr_zero_p(t)) {
        mpfr_set_ui(lo, 1, MPFR_RNDN);
        mpfr_set_ui(hi, 1, MPFR_RNDN);
        return;
    }
    /* Underflow (t < -2^61) gives lo = 0, and then hi is MPFR's least positive number: right. */
    mpfr_exp(lo, t, MPFR_RNDD);
    mpfr_set(hi, lo, MPFR_RNDN);
    mpfr_nextabove(hi);
}

/* An array of n variables of this precision over memory that the caller owns. */
static void init_array(mpfr_t *x, size_t n, mpfr_prec_t prec, unsigned char *limbs) {
    size_t size = mpfr_custom_get_size(prec);
    for (size_t i = 0; i < n; i++) {
        void *significand = limbs + i * size;
        mpfr_custom_init(significand, prec);
        mpfr_custom_init_set(x[i], MPFR_ZERO_KIND, 0, prec, significand);
    }
}

/* The sum of all but entry `skip`, rounded once: mpfr_sum is exact before it rounds. */
static void sum_rest(mpfr_t out, mpfr_ptr *pointers, mpfr_t *x, size_t n, size_t skip,
                     mpfr_rnd_t rnd) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (i != skip)
            pointers[count++] = x[i];
    mpfr_sum(out, pointers, count, rnd);
}

void exp_row_argument(mpfr_t t, const struct oracle_row *row, const struct row_facts *facts,
                      size_t i) {
    mpfr_set_d(t, row->x[i], MPFR_RNDN);
    mpfr_sub_d(t, t, facts->max, MPFR_RNDN);
    if (row->low) {
        mpfr_add_d(t, t, row->low[i], MPFR_RNDN);
        mpfr_sub_d(t, t, row->low[facts->argmax], MPFR_RNDN);
    }
}

status_t exp_row_init(struct exp_row *e, const struct oracle_row *row,
                      const struct row_facts *facts, mpfr_prec_t prec) {
    *e = (struct exp_row){0};

    /* One block: lo, hi, pointers for mpfr_sum, then the limbs of both arrays. */
    size_t each = 2 * sizeof(mpfr_t) + sizeof(mpfr_ptr) + 2 * mpfr_custom_get_size(prec);
    size_t bytes;
    if (!size_mul(&bytes, each, row->cols) || !(e->memory = malloc(bytes)))
        return FAIL(ERR_NOMEM, "oracle: no memory for a row of %zu", row->cols);
    e->lo = e->memory;
    e->hi = e->lo + row->cols;
    mpfr_ptr *pointers = (mpfr_ptr *)(e->hi + row->cols);
    unsigned char *limbs = (unsigned char *)(pointers + row->cols);
    init_array(e->lo, row->cols, prec, limbs);
    init_array(e->hi, row->cols, prec, limbs + row->cols * mpfr_custom_get_size(prec));
    mpfr_inits2(prec, e->rest_lo, e->rest_hi, e->sum_lo, e->sum_hi, (mpfr_ptr)0);

    mpfr_t t;
    mpfr_init2(t, DIFFERENCE_BITS);
    for (size_t i = 0; i < row->cols; i++) {
        if (isinf(row->x[i])) /* -Inf: weight exactly 0, as the arrays start */
            continue;
        exp_row_argument(t, row, facts, i);
        exp_enclosed(e->lo[i], e->hi[i], t);
    }
    mpfr_clear(t);

    /* A sum of lower ends rounded down is a lower end; likewise up. */
    sum_rest(e->rest_lo, pointers, e->lo, row->cols, facts->argmax, MPFR_RNDD);
    sum_rest(e->rest_hi, pointers, e->hi, row->cols, facts->argmax, MPFR_RNDU);
    mpfr_add_ui(e->sum_lo, e->rest_lo, 1, MPFR_RNDD);
    mpfr_add_ui(e->sum_hi, e->rest_hi, 1, MPFR_RNDU);
    return OK;
}

void exp_row_clear(struct exp_row *e) {
    if (e->memory != NULL)
        mpfr_clears(e->rest_lo, e->rest_hi, e->sum_lo, e->sum_hi, (mpfr_ptr)0);
    free(e->memory);
    *e = (struct exp_row){0};
}

void exp_row_log_sum(mpfr_t lo, mpfr_t hi, const struct exp_row *e) {
    mpfr_log1p(lo, e->rest_lo, MPFR_RNDD);
    mpfr_log1p(hi, e->rest_hi, MPFR_RNDU);
}
