/* oracle/ulp.c - the error of one datum against an enclosure: classes first, then values. */
#include "oracle/ulp.h"

#include <math.h>

#include "oracle/outward.h"

double ulp_size(const struct dtype *dt, double x) {
    int e = dt->emin;
    if (x != 0) {
        int exponent; /* |x| = f 2^exponent, f in [1/2, 1) */
        double f = frexp(fabs(x), &exponent);
        e = f == 0.5 ? exponent - 2 : exponent - 1; /* at a power of two the spacing below it */
    }
    return ldexp(1.0, (e > dt->emin ? e : dt->emin) - (int)dt->prec + 1);
}

/* ---- outcomes -------------------------------------------------------------------------------- */

static struct ulp_error matched(void) {
    return (struct ulp_error){.outcome = ULP_CLASS_MATCH};
}

static struct ulp_error mismatched(void) {
    return (struct ulp_error){.outcome = ULP_CLASS_MISMATCH,
                              .abs_lo = INFINITY,
                              .abs_hi = INFINITY,
                              .ulps = INFINITY,
                              .rel = INFINITY};
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Keep the (y - x) / ulp(x) that is largest in magnitude. */
static void consider(double *worst, const struct dtype *dt, double y, double x) {
    double ulps = (y - x) / ulp_size(dt, x);
    if (fabs(ulps) > fabs(*worst))
        *worst = ulps;
}

/*
 * y against every x in [lo, hi], all finite.  |y - x| / ulp(x) is convex in x between powers of
 * two, so the ends decide, and where the enclosure holds a power of two or 0 that point as well,
 * since the ulp is smaller there than beside it.  An enclosure is narrow: it holds at most one.
 */
static struct ulp_error against(const struct dtype *dt, double y, double lo, double hi) {
    struct ulp_error err = {.outcome = ULP_VALUE};
    double below = add_down(y, -hi), above = add_down(lo, -y); /* distance if y is outside */
    err.abs_lo = fmax(0, fmax(below, above));
    err.abs_hi = fmax(add_up(y, -lo), add_up(hi, -y));

    consider(&err.ulps, dt, y, lo);
    consider(&err.ulps, dt, y, hi);
    double outer = fmax(fabs(lo), fabs(hi));
    if (lo < 0 && hi > 0) {
        consider(&err.ulps, dt, y, 0);
    } else if (outer > 0) {
        double power = copysign(ldexp(1.0, ilogb(outer)), hi > 0 ? 1.0 : -1.0);
        if (power > lo && power < hi)
            consider(&err.ulps, dt, y, power);
    }

    bool may_be_zero = lo <= 0 && hi >= 0;
    if (err.abs_hi > 0)
        err.rel = may_be_zero ? INFINITY : err.abs_hi / fmin(fabs(lo), fabs(hi));
    return err;
}

/* Does the real number x round (to nearest) to an infinity of the format? */
static bool overflows(const struct dtype *dt, double x) {
    return dtype_classify(dt, dtype_from_double(dt, x, ROUND_NEAREST)) == CLASS_INF;
}

struct ulp_error ulp_error(const struct dtype *dt, uint32_t got, struct enclosure want) {
    enum dtype_class got_class = dtype_classify(dt, got);
    if (enclosure_is_nan(want))
        return got_class == CLASS_NAN ? matched() : mismatched();
    if (got_class == CLASS_NAN)
        return mismatched();

    double y = dtype_to_double(dt, got);
    if (isinf(want.lo) && want.lo == want.hi) /* an infinity by an infinite input */
        return y == want.lo ? matched() : mismatched();

    double beyond = ldexp(1.0, dt->emax + 1);
    bool lo_overflows = overflows(dt, want.lo), hi_overflows = overflows(dt, want.hi);
    /* Certain overflow: both ends on the same side.  (They cannot be on opposite sides.) */
    bool overflow = lo_overflows && hi_overflows && (want.lo > 0) == (want.hi > 0);

    if (got_class == CLASS_INF) {
        if (overflow)
            return (y > 0) == (want.lo > 0) ? matched() : mismatched();
        /* Where an end overflows, got may be right: its substitute meets that end. */
        struct ulp_error err = against(dt, copysign(beyond, y), lo_overflows ? -beyond : want.lo,
                                       hi_overflows ? beyond : want.hi);
        err.outcome = ULP_OVERFLOW_EARLY;
        return err;
    }
    if (overflow) {
        double due = copysign(beyond, want.lo);
        struct ulp_error err = against(dt, y, due, due);
        err.outcome = ULP_OVERFLOW_MISSED;
        return err;
    }
    /* Across the threshold a finite datum is right for part of the enclosure. */
    return against(dt, y, fmax(want.lo, -beyond), fmin(want.hi, beyond));
}
