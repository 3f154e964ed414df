/* tests/oracle/ball.h - Arb's ball arithmetic, the tests' second opinion, beside enclosures. */
#ifndef TESTS_ORACLE_BALL_H
#define TESTS_ORACLE_BALL_H

#if __has_include(<flint/arb.h>) /* FLINT 3 took Arb in */
#    include <flint/arb.h>
#else
#    include <arb.h>
#endif
#include <stdbool.h>

#include "oracle/enclosure.h"

/* Neither end excludes the whole ball. */
static inline bool meets(struct enclosure e, const arb_t ball) {
    arb_t lo, hi;
    arb_init(lo);
    arb_init(hi);
    arb_set_d(lo, e.lo);
    arb_set_d(hi, e.hi);
    bool ok = !arb_gt(lo, ball) && !arb_lt(hi, ball);
    arb_clear(hi);
    arb_clear(lo);
    return ok;
}

#endif
