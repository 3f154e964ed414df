/*
 * oracle/bounds.c - budgets of sum and max, and the pieces that all budgets are made of.
 *
 * A budget is a sum of products of non-negative numbers.  It is computed in double to nearest,
 * where each operation loses at most 2^-53 relative and nothing cancels; `outward` pays for all of
 * them at the end.  Derivations: docs/bounds.md, whose names are used here.
 */
#include <math.h>

#include "oracle/bounds_impl.h"
#include "oracle/outward.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

double unit_roundoff(const struct dtype *dt) {
    return ldexp(1.0, -(int)dt->prec);
}

double grown(double k, double e) {
    return k * e < 1 ? k * e / (1 - k * e) : INFINITY;
}

double compound(double a, double b) {
    return a + b + a * b;
}

double rounding_error(const struct dtype *dt, double magnitude, bool flush) {
    if (magnitude == 0)
        return 0;
    if (!isfinite(magnitude))
        return INFINITY;
    int e = ilogb(magnitude) > dt->emin ? ilogb(magnitude) : dt->emin;
    double half_step = ldexp(1.0, e - (int)dt->prec);
    return flush ? fmax(half_step, dtype_min_normal(dt)) : half_step;
}

double outward(double b, size_t cols) {
    return b * (1 + ((double)cols + 100) * 0x1p-52);
}

double with_output(double err, double magnitude, const struct numerics *nu) {
    const struct dtype *out = nu->out;
    double bound = err;
    if (out != nu->acc) /* a conversion keeps out's subnormals; .ftz flushes those of acc */
        bound += rounding_error(out, magnitude + err, false) +
                 (nu->flush ? dtype_min_normal(nu->acc) : 0);
    /* Across the overflow threshold a finite datum counts as one step off, not half: ulp.h. */
    double half_step = ldexp(1.0, out->emax - (int)out->prec);
    if (magnitude + err >= dtype_max(out) + half_step)
        bound += half_step;
    return bound;
}

status_t check_types(const struct numerics *nu) {
    if (nu->in->prec > nu->acc->prec || nu->in->emin < nu->acc->emin)
        return FAIL(ERR_UNSUPPORTED, "bounds: acc %s cannot hold every %s", nu->acc->name,
                    nu->in->name);
    return OK;
}

static void target(struct accumulation *a, unsigned arch) {
    /* Fasi, Higham, Mikaitis and Pranesh 2021, and MMA-Sim 2025, for what each architecture does. */
    bool tf32 = a->tensor_core != TENSOR_CORE_16BIT;
    if (a->tensor_core == TENSOR_CORE_NONE)
        return;
    if (arch >= 90) {
        a->block = tf32 ? 8 : 16;
        a->bits = 25;
    } else {
        a->block = tf32 || arch < 75 ? 4 : 8;
        a->bits = arch < 75 ? 23 : 24;
    }
}

void numerics_target(struct numerics *numerics, unsigned arch) {
    target(&numerics->qk, arch);
    target(&numerics->pv, arch);
}

double bounds_two_orders(double budget_a, double budget_b) {
    return add_up(budget_a, budget_b);
}

/* ---- sum ------------------------------------------------------------------------------------- */

struct sum_terms {
    double magnitude;  /* sum |x_i| of the finite ones */
    double subnormals; /* of those that the accumulator's format calls subnormal */
    size_t nonzero;    /* finite ones */
};

static struct sum_terms sum_examine(const struct oracle_row *row, const struct dtype *acc) {
    struct sum_terms terms = {0};
    for (size_t i = 0; i < row->cols; i++) {
        double x = fabs(row->x[i]);
        if (!isfinite(x))
            continue;
        terms.magnitude += x;
        terms.nonzero += x != 0;
        if (x < dtype_min_normal(acc))
            terms.subnormals += x;
    }
    return terms;
}

double effective_height(const struct numerics *nu, size_t nonzero) {
    return nonzero > 0 ? fmin(nu->sum_height, (double)nonzero - 1) : 0;
}

/* `orders` = 1: the distance to the real sum; 2: the distance of two results. */
static status_t sum_bound(double *bound, const struct oracle_row *row, const struct enclosure *want,
                          const struct numerics *nu, double orders) {
    status_t st = check_types(nu);
    if (st != OK)
        return st;
    *bound = 0;
    if (enclosure_is_nan(*want)) /* a NaN among the terms, or both infinities: NaN in any order */
        return OK;
    struct sum_terms terms = sum_examine(row, nu->acc);
    double rel = grown(effective_height(nu, terms.nonzero), unit_roundoff(nu->acc));
    double err = rel * terms.magnitude;
    if (nu->flush && terms.nonzero > 0) /* a term on its way in, or a partial sum */
        err += (1 + rel) *
               (terms.subnormals + ((double)terms.nonzero - 1) * dtype_min_normal(nu->acc));
    /* No partial sum of finite terms exceeds this; if one may overflow, nothing holds: it may turn
     * up as an infinity of the other sign, and Inf - Inf is NaN. */
    if (!(outward(terms.magnitude + err, row->cols) <= dtype_max(nu->acc))) {
        *bound = INFINITY;
        return OK;
    }
    double magnitude = fmax(fabs(want->lo), fabs(want->hi));
    if (isfinite(magnitude)) /* else an infinite term, which no finite partial sum can move */
        *bound = outward(orders * with_output(err, magnitude, nu), row->cols);
    return OK;
}

status_t sum_budget(double *budget, const struct oracle_row *row, const struct enclosure *want,
                    const struct numerics *numerics) {
    return sum_bound(budget, row, want, numerics, 1);
}

status_t sum_spread(double *spread, const struct oracle_row *row, const struct enclosure *want,
                    const struct numerics *numerics) {
    return sum_bound(spread, row, want, numerics, 2);
}

/* ---- max ------------------------------------------------------------------------------------- */

/* Exact, but for a rounding to out and for a result that may be flushed. */
status_t max_budget(double *budget, const struct oracle_row *row, const struct enclosure *want,
                    const struct numerics *nu) {
    status_t st = check_types(nu);
    if (st != OK)
        return st;
    double magnitude = fabs(want->lo);
    *budget = 0;
    if (!isfinite(magnitude))
        return OK;
    double err = nu->flush && magnitude < dtype_min_normal(nu->acc) ? magnitude : 0;
    *budget = outward(with_output(err, magnitude, nu), row->cols);
    return OK;
}

/* The real maximum does not depend on the order, nor does its rounding. */
status_t max_spread(double *spread, const struct oracle_row *row, const struct enclosure *want,
                    const struct numerics *numerics) {
    (void)row, (void)want, (void)numerics;
    *spread = 0;
    return OK;
}
