/*
 * oracle/dtype.h - number formats: one row of a table each, and exact ways in and out.
 *
 * A datum is its bit pattern in the low bits of a uint32_t.  Every finite datum of every format
 * here is exactly representable as a double, so `double` is the exchange type for exact values.
 * Definitions of ulp, ordinal and class: docs/numerics.md.
 */
#ifndef ORACLE_DTYPE_H
#define ORACLE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype_id { DT_F32, DT_F16, DT_BF16, DT_COUNT };

struct dtype {
    const char *name; /* "f32", as in manifests and file names */
    enum dtype_id id;
    unsigned bits;  /* storage width */
    unsigned prec;  /* significand bits p, hidden bit included; unit roundoff u = 2^-p */
    int emin, emax; /* exponents of the smallest and the largest normal binade */
    uint32_t nan;   /* the canonical quiet NaN that Assay writes */
};

extern const struct dtype dtypes[DT_COUNT];

/* The row called `name`, or NULL. */
const struct dtype *dtype_find(const char *name);

/* Storage size in bytes. */
static inline size_t dtype_size(const struct dtype *dt) {
    return dt->bits / 8;
}

enum rounding { ROUND_NEAREST, ROUND_ZERO, ROUND_UP, ROUND_DOWN }; /* NEAREST: ties to even */

enum dtype_class {
    CLASS_NAN,
    CLASS_INF,
    CLASS_NORMAL,
    CLASS_SUBNORMAL,
    CLASS_ZERO,
};

enum dtype_class dtype_classify(const struct dtype *dt, uint32_t bits);
bool dtype_sign(const struct dtype *dt, uint32_t bits);

/* The exact value; NaN for every NaN pattern (payload and sign are not kept). */
double dtype_to_double(const struct dtype *dt, uint32_t bits);

/*
 * x rounded into the format.  Overflow goes to infinity or to the largest finite datum as the
 * rounding says; subnormals are kept (gradual underflow); the sign of a zero result is x's; NaN
 * gives dt->nan.
 */
uint32_t dtype_from_double(const struct dtype *dt, double x, enum rounding rounding);

/*
 * Ordinal: an order-preserving integer; neighbouring data differ by 1 and +0, -0 are both 0.
 * The infinities are one past the largest finite datum.  NaN has none (assert).
 */
int64_t dtype_ordinal(const struct dtype *dt, uint32_t bits);

/* Inverse of dtype_ordinal; ordinal 0 gives +0. */
uint32_t dtype_from_ordinal(const struct dtype *dt, int64_t ordinal);

/* Read element i of an array stored in this format, and write it. */
uint32_t dtype_load(const struct dtype *dt, const void *data, size_t i);
/* Elements first .. first + n - 1 as exact values: out[0 .. n-1]. */
void dtype_row(double *out, const struct dtype *dt, const void *data, size_t first, size_t n);
void dtype_store(const struct dtype *dt, void *data, size_t i, uint32_t bits);

/* The largest finite datum's value, and 2^emin (the smallest normal). */
double dtype_max(const struct dtype *dt);
double dtype_min_normal(const struct dtype *dt);

#endif
