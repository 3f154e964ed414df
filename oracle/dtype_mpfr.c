/*
 * oracle/dtype_mpfr.c - MPFR does the rounding, at the precision that the format has around x.
 *
 * Going through double would round twice (0x1.000001p0 + 2^-80 to f32 is a tie in double).
 */
#include "oracle/dtype_mpfr.h"

#include <assert.h>
#include <math.h>

void dtype_to_mpfr(mpfr_t out, const struct dtype *dt, uint32_t bits) {
    assert(mpfr_get_prec(out) >= (mpfr_prec_t)dt->prec);
    mpfr_set_d(out, dtype_to_double(dt, bits), MPFR_RNDN);
}

static mpfr_rnd_t mpfr_rounding(enum rounding rounding) {
    switch (rounding) {
    case ROUND_NEAREST:
        return MPFR_RNDN;
    case ROUND_ZERO:
        return MPFR_RNDZ;
    case ROUND_UP:
        return MPFR_RNDU;
    case ROUND_DOWN:
        return MPFR_RNDD;
    }
    return MPFR_RNDN;
}

uint32_t dtype_from_mpfr(const struct dtype *dt, const mpfr_t x, enum rounding rounding) {
    if (!mpfr_regular_p(x)) /* zero, infinity, NaN */
        return dtype_from_double(dt, mpfr_get_d(x, MPFR_RNDN), rounding);

    mpfr_rnd_t rnd = mpfr_rounding(rounding);
    mpfr_exp_t binade = mpfr_get_exp(x) - 1;
    if (binade > dt->emax) /* beyond every finite datum, and perhaps every double: keep the sign */
        return dtype_from_double(dt, mpfr_signbit(x) ? -0x1p1023 : 0x1p1023, rounding);

    mpfr_t rounded, scaled;
    mpfr_init2(rounded, (mpfr_prec_t)dt->prec);
    mpfr_init2(scaled, mpfr_get_prec(x));
    if (binade >= dt->emin) {
        mpfr_set(rounded, x, rnd);
    } else {
        /* The spacing is 2^least: scaled to 1, exactly, x rounds to an integer of <= p bits. */
        long least = dt->emin - (long)dt->prec + 1;
        mpfr_mul_2si(scaled, x, -least, MPFR_RNDN);
        mpfr_rint(rounded, scaled, rnd);
        mpfr_mul_2si(rounded, rounded, least, MPFR_RNDN);
    }
    /* A datum, or 2^(emax+1) after a carry: the last step is exact, or overflows as asked. */
    uint32_t bits = dtype_from_double(dt, mpfr_get_d(rounded, MPFR_RNDN), rounding);
    mpfr_clear(scaled);
    mpfr_clear(rounded);
    return bits;
}
