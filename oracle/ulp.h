/*
 * oracle/ulp.h - fractional error in units in the last place (Kahan/Muller, halved at powers of
 * two).
 *
 * ulp(x) = 2^(max(e, emin) - p + 1) with e = floor(log2 |x|); if |x| is exactly 2^e with e > emin
 * it is 2^(e - p); ulp(0) = 2^(emin - p + 1).  docs/numerics.md has the reasons.
 */
#ifndef ORACLE_ULP_H
#define ORACLE_ULP_H

#include "oracle/dtype.h"
#include "oracle/enclosure.h"

/* ulp of the format at the real number x (finite). */
double ulp_size(const struct dtype *dt, double x);

enum ulp_outcome {
    ULP_VALUE,          /* numbers on both sides: the error is meaningful */
    ULP_CLASS_MATCH,    /* NaN for NaN, or the same infinity: error 0 */
    ULP_CLASS_MISMATCH, /* NaN against a number, wrong infinity: error +Inf, whatever the budget */
    ULP_OVERFLOW_EARLY, /* got +-Inf where a finite datum was due: got counts as +-2^(emax+1) */
    ULP_OVERFLOW_MISSED /* got finite where +-Inf was due: want counts as +-2^(emax+1) */
};

/*
 * Bounds on the error of the datum `got` against the real number enclosed by `want`:
 *   |got - x| <= abs_hi and >= abs_lo for every x in want (after the substitutions above)
 *   ulps: signed (got - x) / ulp(x) of the midpoint side that is largest in magnitude
 *   rel:  |got - x| / |x|, +Inf when x may be 0 and got is not x
 */
struct ulp_error {
    enum ulp_outcome outcome;
    double abs_lo, abs_hi;
    double ulps;
    double rel;
};

struct ulp_error ulp_error(const struct dtype *dt, uint32_t got, struct enclosure want);

#endif
