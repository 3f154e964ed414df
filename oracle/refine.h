/*
 * oracle/refine.h - the precision loop and interval pieces of the ops that take several inputs.
 *
 * An interval is a pair of MPFR numbers lo <= hi of one precision; every function here rounds lo
 * down and hi up, so what it encloses before it encloses after.
 */
#ifndef ORACLE_REFINE_H
#define ORACLE_REFINE_H

#include <gmp.h>
#include <mpfr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "oracle/enclosure.h"

/* One try at this working precision.  Right at every precision; only the width depends on it. */
typedef status_t refine_fn(struct enclosure *out, const void *problem, mpfr_prec_t prec);

/*
 * out[0 .. n-1] by tries at 128, 256, ... bits until each enclosure is no wider than 2^-40
 * relative to the result, or floor[i] (NULL: none), or two steps of 2^-1074.  ERR_UNDECIDED at
 * 8192 bits; `what` names the op in the message.
 */
MUST_CHECK status_t refine(struct enclosure *out, size_t n, const void *problem,
                           const double *floor, refine_fn *attempt, const char *what);

struct interval {
    mpfr_t lo, hi;
};

void interval_init(struct interval *x, mpfr_prec_t prec);
void interval_clear(struct interval *x);
void interval_set_d(struct interval *x, double value); /* a precision of 53 bits at least */
void interval_neg(struct interval *x);
void interval_add(struct interval *x, const struct interval *y);
void interval_add_d(struct interval *x, double y);
void interval_mul_d(struct interval *x, double y);

/* The doubles around it. */
struct enclosure interval_enclosure(const struct interval *x);

/* x = m 2^unit exactly, m odd, or 0 with unit LONG_MAX for x = 0.  x is finite. */
void double_split(double x, int64_t *m, long *unit);

/* The least unit of the x_i: all are integers times 2^unit; 0 if none is non-zero. */
long double_unit(const double *x, size_t n);

/* out = x / 2^unit, an integer. */
void double_to_mpz(mpz_t out, double x, long unit);

#endif
