/* oracle/enclosure.h - the oracle's answer: an interval that contains the real result. */
#ifndef ORACLE_ENCLOSURE_H
#define ORACLE_ENCLOSURE_H

#include <math.h>
#include <stdbool.h>

/*
 * lo <= result <= hi, ends included; lo == hi says the result is exactly that double.
 * lo = hi = +-Inf: the result is that infinity (by an infinite input, never by overflow: a finite
 * real beyond every double has the end DBL_MAX on the near side).  Both NaN: the result is NaN.
 */
struct enclosure {
    double lo, hi;
};

static inline bool enclosure_is_nan(struct enclosure e) {
    return isnan(e.lo) || isnan(e.hi);
}

#endif
