/* oracle/sum.c - sum_i x_i: mpfr_sum adds exactly and rounds once. */
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "oracle/oracle_impl.h"

/* Doubles as MPFR numbers over one block of memory; *out is to be freed. */
static status_t doubles_to_mpfr(mpfr_ptr **out, const double *x, size_t n) {
    size_t limb_bytes = mpfr_custom_get_size(53), bytes;
    size_t each = sizeof(mpfr_ptr) + sizeof(mpfr_t) + limb_bytes;
    if (!size_mul(&bytes, each, n) || !(*out = malloc(bytes)))
        return FAIL(ERR_NOMEM, "oracle: no memory for a row of %zu", n);
    mpfr_ptr *pointers = *out;
    mpfr_t *numbers = (mpfr_t *)(pointers + n);
    unsigned char *limbs = (unsigned char *)(numbers + n);
    for (size_t i = 0; i < n; i++) {
        void *significand = limbs + i * limb_bytes;
        mpfr_custom_init(significand, 53);
        mpfr_custom_init_set(numbers[i], MPFR_ZERO_KIND, 0, 53, significand);
        mpfr_set_d(numbers[i], x[i], MPFR_RNDN);
        pointers[i] = numbers[i];
    }
    return OK;
}

status_t sum_enclose(struct enclosure *out, const struct oracle_row *row) {
    struct row_facts facts = row_examine(row);
    if (facts.nan > 0 || (facts.plus_inf > 0 && facts.minus_inf > 0)) {
        *out = enclosure_exact(NAN);
        return OK;
    }
    if (facts.plus_inf > 0 || facts.minus_inf > 0) {
        *out = enclosure_exact(facts.plus_inf > 0 ? INFINITY : -INFINITY);
        return OK;
    }
    if (row->cols == 0) {
        *out = enclosure_exact(0);
        return OK;
    }

    mpfr_ptr *pointers = NULL;
    status_t st = doubles_to_mpfr(&pointers, row->x, row->cols);
    if (st != OK)
        return st;
    mpfr_t lo, hi;
    mpfr_init2(lo, 53);
    mpfr_init2(hi, 53);
    /* Rounded down once; where that was not exact the real sum lies below the next number. */
    int inexact = mpfr_sum(lo, pointers, row->cols, MPFR_RNDD);
    mpfr_set(hi, lo, MPFR_RNDN);
    if (inexact != 0)
        mpfr_nextabove(hi);
    *out = enclosure_from_mpfr(lo, hi);
    mpfr_clear(hi);
    mpfr_clear(lo);
    free(pointers);
    return OK;
}
