/* tests/oracle/judge.h - rho of one result, and enclosures compared with exact rationals. */
#ifndef TESTS_ORACLE_JUDGE_H
#define TESTS_ORACLE_JUDGE_H

#include <gmp.h>
#include <math.h>
#include <string.h>

#include "oracle/ulp.h"

static inline double round_to(const struct dtype *dt, double x) {
    return dtype_to_double(dt, dtype_from_double(dt, x, ROUND_NEAREST));
}

/* error / budget of a value of the format (an f32 result is rounded to it once); +Inf for a wrong
 * class, 0 for the right one. */
static inline double rho_of(const struct dtype *dt, float got, struct enclosure want,
                            double budget) {
    struct ulp_error err = ulp_error(dt, dtype_from_double(dt, got, ROUND_NEAREST), want);
    if (err.outcome == ULP_CLASS_MATCH || err.abs_hi == 0)
        return 0;
    return err.outcome == ULP_CLASS_MISMATCH ? INFINITY : err.abs_hi / budget;
}

/* The same, but certain: by the end of the enclosure that is nearer. */
static inline double rho_at_least(const struct dtype *dt, float got, struct enclosure want,
                                  double budget) {
    struct ulp_error err = ulp_error(dt, dtype_from_double(dt, got, ROUND_NEAREST), want);
    if (err.outcome == ULP_CLASS_MATCH || err.abs_lo == 0)
        return 0;
    return err.outcome == ULP_CLASS_MISMATCH ? INFINITY : err.abs_lo / budget;
}

static inline bool is_exactly(struct enclosure e, double x) {
    return isnan(x) ? enclosure_is_nan(e) : e.lo == x && e.hi == x;
}

static inline bool overlap(struct enclosure a, struct enclosure b) {
    return a.lo <= b.hi && b.lo <= a.hi;
}

#endif
