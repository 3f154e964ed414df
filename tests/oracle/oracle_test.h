/* tests/oracle/oracle_test.h - what the tests of the oracle share. */
#ifndef TESTS_ORACLE_ORACLE_TEST_H
#define TESTS_ORACLE_ORACLE_TEST_H

#include <math.h>

#include "base/rng.h"
#include "tests/check.h"
#include "tests/times.h"

/* Uniform on [offset, offset + 1) times a power of two from 2^lowest on.  (One call per statement:
 * C leaves the order of a call's arguments to the compiler, and the seed would not name the data.) */
static inline double scaled_unit(struct rng *rng, double offset, int lowest, unsigned exponents) {
    double unit = rng_unit(rng) + offset;
    return ldexp(unit, lowest + (int)rng_below(rng, exponents));
}

#endif
