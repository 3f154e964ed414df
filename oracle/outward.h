/*
 * oracle/outward.h - sums in double rounded outward, without touching the host's rounding mode.
 *
 * The host rounds to nearest; TwoSum (Knuth) gives the exact rounding error of an addition, and its
 * sign says whether the neighbour is the bound.  Exact even for subnormals; infinities pass
 * through.
 */
#ifndef ORACLE_OUTWARD_H
#define ORACLE_OUTWARD_H

#include <float.h>
#include <math.h>

/* The error of a + b: (a + b) exactly = RN(a + b) + the result.  0 if RN(a + b) is not finite. */
static inline double two_sum_error(double a, double b, double sum) {
    if (!isfinite(sum))
        return 0;
    double b_part = sum - a;
    return (a - (sum - b_part)) + (b - b_part);
}

/* An upper bound on a + b, the least double that is one. */
static inline double add_up(double a, double b) {
    double sum = a + b;
    if (isinf(sum) && sum < 0 && isfinite(a) && isfinite(b))
        return -DBL_MAX;
    return two_sum_error(a, b, sum) > 0 ? nextafter(sum, INFINITY) : sum;
}

/* A lower bound on a + b, the greatest double that is one. */
static inline double add_down(double a, double b) {
    return -add_up(-a, -b);
}

#endif
