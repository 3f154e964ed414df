/* oracle/dtype_mpfr.h - data to and from MPFR: exact one way, one correct rounding the other. */
#ifndef ORACLE_DTYPE_MPFR_H
#define ORACLE_DTYPE_MPFR_H

#include <mpfr.h>

#include "oracle/dtype.h"

/*
 * out = the exact value of the datum; NaN for every NaN, zeros keep their sign.
 * out's precision is at least dt->prec (assert).
 */
void dtype_to_mpfr(mpfr_t out, const struct dtype *dt, uint32_t bits);

/*
 * x rounded once into the format, with the conventions of dtype_from_double; x may have any
 * precision.
 */
uint32_t dtype_from_mpfr(const struct dtype *dt, const mpfr_t x, enum rounding rounding);

#endif
