/*
 * kernels/expr.h - the small expressions of a manifest, over a case's dimensions.
 *
 * Variables are the op's dimensions and the kernel's own numbers (options); the operators and
 * functions of muParser, and ceil, floor.  Arithmetic is that of double, exact for whole numbers up
 * to 2^53.  Any thread may evaluate any expression.
 */
#ifndef KERNELS_EXPR_H
#define KERNELS_EXPR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/catalogue.h"

struct expr;

/* A number that other expressions may use by its name. */
struct expr_name {
    const char *name;
    struct expr *value; /* of dimensions only */
};

#define EXPR_MAX_NAMES 16

struct expr_scope {
    enum dim dims[MAX_DIMS]; /* ended by DIM_NONE */
    size_t name_count;
    struct expr_name names[EXPR_MAX_NAMES];
};

/* Compile text; the scope outlives the expression.  ERR_SYNTAX with the offending part, ERR_NOMEM. */
MUST_CHECK status_t expr_new(struct expr **out, const char *text, const struct expr_scope *scope);
void expr_free(struct expr *e); /* NULL is fine */

/* "rows = 4, cols = 33": dims as this expression sees them. */
void expr_at(char *out, size_t size, const struct expr *e, struct case_dims dims);

/* The value as a finite number; ERR_SYNTAX if it is none at these dimensions. */
MUST_CHECK status_t expr_real(double *out, struct expr *e, struct case_dims dims);
/* The same, and >= 0. */
MUST_CHECK status_t expr_number(double *out, struct expr *e, struct case_dims dims);
/* The value as a whole number of magnitude at most 2^53; ERR_SYNTAX if it is none. */
MUST_CHECK status_t expr_integer(int64_t *out, struct expr *e, struct case_dims dims);
/* The same, and >= 0. */
MUST_CHECK status_t expr_size(size_t *out, struct expr *e, struct case_dims dims);

#endif
