/*
 * kernels/expr.h - the small expressions of a manifest, over a case's dimensions.
 *
 * Variables rows and cols; the operators and functions of muParser, and ceil, floor.  Arithmetic is
 * that of double, exact for whole numbers up to 2^53.  Any thread may evaluate any expression.
 */
#ifndef KERNELS_EXPR_H
#define KERNELS_EXPR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/catalogue.h"

struct expr;

/* Compile text.  ERR_SYNTAX with the offending part, ERR_NOMEM. */
MUST_CHECK status_t expr_new(struct expr **out, const char *text);
void expr_free(struct expr *e); /* NULL is fine */

/* The value as a finite number; ERR_SYNTAX if it is none at these dimensions. */
MUST_CHECK status_t expr_real(double *out, struct expr *e, struct case_dims dims);
/* The same, and >= 0. */
MUST_CHECK status_t expr_number(double *out, struct expr *e, struct case_dims dims);
/* The value as a whole number of magnitude at most 2^53; ERR_SYNTAX if it is none. */
MUST_CHECK status_t expr_integer(int64_t *out, struct expr *e, struct case_dims dims);
/* The same, and >= 0. */
MUST_CHECK status_t expr_size(size_t *out, struct expr *e, struct case_dims dims);

#endif
