/*
 * oracle/norm.h - layernorm and rmsnorm of one row: enclosures and budgets.
 *
 *   layernorm: y_j = (x_j - mean) / sqrt(variance + eps) w_j + b_j,
 *              mean = sum_i x_i / n, variance = sum_i (x_i - mean)^2 / n
 *   rmsnorm:   y_j = x_j / sqrt(sum_i x_i^2 / n + eps) w_j + b_j
 *
 * Special values (docs/numerics.md#norms): a NaN in x makes the row NaN.  An infinity in x makes a
 * layernorm row NaN; in rmsnorm its own result is NaN and the finite entries' normalised values are
 * 0.  eps = 0 and no spread: 0/0, NaN.  A NaN or infinite weight or bias acts on its own column, as
 * IEEE arithmetic has it.
 */
#ifndef ORACLE_NORM_H
#define ORACLE_NORM_H

#include "base/status.h"
#include "oracle/bounds.h"
#include "oracle/enclosure.h"

/*
 * Where the result is rounded is part of what a norm *is*, so it is part of the
 * function that is enclosed.
 */
enum norm_contract {
    NORM_ROUND_LAST,  /* the real function above; one rounding, to out */
    NORM_ROUND_FIRST, /* the normalised value rounded to `rounded` (nearest even), times w */
};

/* One row.  The caller owns the arrays; all values are exact. */
struct norm_row {
    const double *x;             /* cols */
    size_t cols;                 /* may be 0 */
    const double *weight, *bias; /* cols each; NULL: 1 and 0 */
    double eps;                  /* finite, >= 0; added to the variance, or to the mean square */
    enum norm_contract contract;
    const struct dtype *rounded; /* NORM_ROUND_FIRST only */
};

/*
 * out[0 .. cols-1]: no wider than 2^-40 relative, or two steps of 2^-1074.  ERR_USAGE for eps < 0
 * or not finite and for a contract without its format; ERR_UNDECIDED at the precision limit.
 */
MUST_CHECK status_t layernorm_enclose(struct enclosure *out, const struct norm_row *row);
MUST_CHECK status_t rmsnorm_enclose(struct enclosure *out, const struct norm_row *row);

/*
 * budget[0 .. cols-1]: upper bounds on |got - real result| of a correct kernel with these numerics
 * (acc f32; sum_height, variance, rsqrt, flush, out), +Inf where a correct kernel may overflow or
 * its variance is worth nothing, 0 where only the class counts.  want: what enclose gave.
 * ERR_UNSUPPORTED if the numerics lack what the op needs.  Derivation: docs/bounds.md, "Norms".
 */
MUST_CHECK status_t layernorm_budget(double *budget, const struct norm_row *row,
                                     const struct enclosure *want, const struct numerics *numerics);
MUST_CHECK status_t rmsnorm_budget(double *budget, const struct norm_row *row,
                                   const struct enclosure *want, const struct numerics *numerics);

#endif
