/*
 * oracle/rope.h - rotary position embedding of one head's row: enclosures and budgets.
 *
 *   For the pair (a, b) number i of rotary_dim / 2 and the angle t_i = position * freq_i,
 *     a' = a cos t_i - b sin t_i,   b' = a sin t_i + b cos t_i,
 *   freq_i = base^(-2i / rotary_dim), or freq[i] exactly as given (scaled and learned variants).
 *   ROPE_INTERLEAVED: the pair is x[2i], x[2i+1].  ROPE_HALF_SPLIT: x[i], x[i + rotary_dim/2].
 *   Entries from rotary_dim on pass through.  Radians.
 *
 * The angle is a real number: powers, products and the reduction by 2 pi are done at rising
 * precision, so positions are as good at 10^6 as at 1.  A NaN or infinity in a pair makes it what
 * IEEE arithmetic on the formula gives: NaN, except that a single infinity times a non-zero sine or
 * cosine is that infinity.
 */
#ifndef ORACLE_ROPE_H
#define ORACLE_ROPE_H

#include "base/status.h"
#include "oracle/bounds.h"
#include "oracle/enclosure.h"

enum rope_layout { ROPE_INTERLEAVED, ROPE_HALF_SPLIT };

/* One row of one head.  The caller owns the arrays; all values are exact. */
struct rope_row {
    const double *x; /* head_dim */
    size_t head_dim;
    size_t rotary_dim; /* even, <= head_dim */
    enum rope_layout layout;
    double position;    /* finite; usually a token's index */
    double base;        /* > 0; unused with freq */
    const double *freq; /* rotary_dim / 2, or NULL */
};

/*
 * out[0 .. head_dim-1]: no wider than 2^-40 relative, or two steps of 2^-1074.
 * ERR_USAGE for an odd or too long rotary_dim, a bad base, position or frequency; ERR_UNDECIDED.
 */
MUST_CHECK status_t rope_enclose(struct enclosure *out, const struct rope_row *row);

/*
 * budget[0 .. head_dim-1]: upper bounds on |got - real result| for a correct kernel with these
 * numerics (trig, angle_rel, angle_abs, table, acc, out, flush).  0 where only the class counts or
 * the entry passes through unrounded.  ERR_UNSUPPORTED if trig is not declared.  docs/bounds.md,
 * "Rope".
 */
MUST_CHECK status_t rope_budget(double *budget, const struct rope_row *row,
                                const struct enclosure *want, const struct numerics *numerics);

#endif
