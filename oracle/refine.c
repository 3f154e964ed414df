/* oracle/refine.c - see refine.h. */
#include "oracle/refine.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>

static bool tight(struct enclosure e, double floor) {
    if (e.lo == e.hi || enclosure_is_nan(e) || e.lo == DBL_MAX || e.hi == -DBL_MAX)
        return true;
    double width = e.hi - e.lo;
    /* A real 0 that arithmetic cannot see is enclosed by one step of double on either side. */
    return width <= 0x1p-40 * fmin(fabs(e.lo), fabs(e.hi)) || width <= floor || width <= 0x1p-1073;
}

status_t refine(struct enclosure *out, size_t n, const void *problem, const double *floor,
                refine_fn *attempt, const char *what) {
    const mpfr_prec_t first = 128, limit = 8192;
    for (mpfr_prec_t prec = first; prec <= limit; prec *= 2) {
        status_t st = attempt(out, problem, prec);
        if (st != OK)
            return st;
        size_t i = 0;
        while (i < n && tight(out[i], floor != NULL ? floor[i] : 0))
            i++;
        if (i == n)
            return OK;
    }
    return FAIL(ERR_UNDECIDED, "oracle: %s is still undecided at %ld bits", what, (long)limit);
}

/* ---- intervals ------------------------------------------------------------------------------- */

void interval_init(struct interval *x, mpfr_prec_t prec) {
    mpfr_init2(x->lo, prec);
    mpfr_init2(x->hi, prec);
}

void interval_clear(struct interval *x) {
    mpfr_clear(x->lo);
    mpfr_clear(x->hi);
}

void interval_set_d(struct interval *x, double value) {
    mpfr_set_d(x->lo, value, MPFR_RNDD);
    mpfr_set_d(x->hi, value, MPFR_RNDU);
}

void interval_neg(struct interval *x) {
    mpfr_swap(x->lo, x->hi);
    mpfr_neg(x->lo, x->lo, MPFR_RNDN);
    mpfr_neg(x->hi, x->hi, MPFR_RNDN);
}

void interval_add(struct interval *x, const struct interval *y) {
    mpfr_add(x->lo, x->lo, y->lo, MPFR_RNDD);
    mpfr_add(x->hi, x->hi, y->hi, MPFR_RNDU);
}

void interval_add_d(struct interval *x, double y) {
    mpfr_add_d(x->lo, x->lo, y, MPFR_RNDD);
    mpfr_add_d(x->hi, x->hi, y, MPFR_RNDU);
}

void interval_mul_d(struct interval *x, double y) {
    if (y < 0)
        mpfr_swap(x->lo, x->hi);
    mpfr_mul_d(x->lo, x->lo, y, MPFR_RNDD);
    mpfr_mul_d(x->hi, x->hi, y, MPFR_RNDU);
}

struct enclosure interval_enclosure(const struct interval *x) {
    return (struct enclosure){mpfr_get_d(x->lo, MPFR_RNDD), mpfr_get_d(x->hi, MPFR_RNDU)};
}

/* ---- doubles as integers --------------------------------------------------------------------- */

void double_split(double x, int64_t *m, long *unit) {
    assert(isfinite(x));
    *m = 0;
    *unit = LONG_MAX;
    if (x == 0)
        return;
    int exponent;
    *m = (int64_t)ldexp(frexp(x, &exponent), 53);
    int zeros = __builtin_ctzll((uint64_t)*m);
    *m /= (int64_t)1 << zeros;
    *unit = (long)exponent - 53 + zeros;
}

long double_unit(const double *x, size_t n) {
    long least = LONG_MAX;
    for (size_t i = 0; i < n; i++) {
        int64_t m;
        long unit;
        double_split(x[i], &m, &unit);
        least = unit < least ? unit : least;
    }
    return least == LONG_MAX ? 0 : least;
}

void double_to_mpz(mpz_t out, double x, long unit) {
    int64_t m;
    long own;
    double_split(x, &m, &own);
    mpz_set_si(out, m);
    if (m != 0)
        mpz_mul_2exp(out, out, (mp_bitcnt_t)(own - unit));
}
