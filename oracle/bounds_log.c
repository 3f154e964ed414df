/* oracle/bounds_log.c - budgets of lse and log_softmax: log of the sum.  docs/bounds.md. */
#include <math.h>
#include <stdlib.h>

#include "oracle/bounds_impl.h"

/* ---- log of the sum -------------------------------------------------------------------------- */

struct log_error {
    double budget; /* |computed log S - log S| */
    double spread; /* of two orders */
};

status_t log_rounding(double *out, const struct numerics *nu, double log_sum, double moved) {
    double rel = 0, near_one = 0; /* near_one: absolute, for sums in [1, 2] */
    switch (nu->log) {
    case LOG_NONE:
        return FAIL(ERR_UNSUPPORTED,
                    "bounds: the kernel's numerics do not say how it computes log");
    case LOG_LOGF: /* 1 ulp off the correctly rounded: 1.5 */
        rel = 1.5 * 0x1p-23;
        break;
    case LOG_FAST: /* 2^-21.41 on [0.5, 2], else 3 ulp off the correctly rounded: 3.5 */
        rel = 3.5 * 0x1p-23;
        near_one = 0x1p-25 + 0x1.816p-22; /* half an ulp of log 2, and 2^-21.41 rounded up */
        break;
    }
    *out = rel * (log_sum + moved);
    if (near_one > 0 && log_sum - moved <= M_LN2)
        *out = fmax(*out, near_one);
    return OK;
}

static status_t log_sum_error(struct log_error *out, const struct exp_budget *b) {
    double moved = b->sigma / (1 - b->sigma); /* |log(1 + sigma)| at most */
    double of_log = 0;
    status_t st = log_rounding(&of_log, b->nu, b->log_sum, moved + 2 * b->moved);
    if (st != OK)
        return st;
    if (b->facts.finite == 1 && b->nu->exp != EXP_EX2_FOLDED) {
        /* e^0 = 1 and zeros: S is 1 exactly, in every order, and its log exactly 0. */
        out->budget = b->moved;
        out->spread = 0;
        return OK;
    }
    out->budget = moved + of_log;
    out->spread = 2 * out->budget;
    if (b->nu->rescale != RESCALE_ONLINE) {
        out->budget += b->shift; /* online, sigma has it already */
        /* the same terms in two trees */
        out->spread = fmin(out->spread, 2 * b->gamma / (1 - b->gamma) + 2 * of_log);
    }
    return OK;
}

status_t lse_error(double *out, const struct exp_budget *b) {
    struct log_error log_error = {0};
    status_t st = log_sum_error(&log_error, b);
    /* lse lies between m and m + log S */
    double size = fmax(fabs(b->facts.max), fabs(b->facts.max + b->log_sum));
    *out = log_error.budget + rounding_error(b->nu->acc, size + log_error.budget, b->nu->flush);
    if (b->facts.finite == 1 && log_error.budget == 0)
        *out = 0; /* m + log 1 is m */
    return st;
}

/* ---- log_softmax ----------------------------------------------------------------------------- */

static status_t log_softmax_bound(double *bound, const struct oracle_row *row,
                                  const struct enclosure *want, const struct numerics *nu,
                                  int orders) {
    const struct row_facts facts = row_examine(row);
    if (nu->exp == EXP_EX2_FOLDED) /* how such a kernel forms x - m - log S is not derived */
        return FAIL(ERR_UNSUPPORTED, "bounds: log_softmax with log2(e) folded");
    for (size_t j = 0; j < row->cols; j++)
        bound[j] = 0;
    if (facts.nan > 0 || facts.plus_inf > 0 || facts.finite == 0)
        return OK;

    struct exp_budget b;
    struct log_error log_error = {0};
    status_t st = exp_budget_init(&b, row, &facts, nu);
    if (st == OK)
        st = log_sum_error(&log_error, &b);
    for (size_t j = 0; st == OK && j < row->cols; j++) {
        if (isinf(row->x[j]))
            continue;
        if (exp_budget_void(&b)) {
            bound[j] = INFINITY;
            continue;
        }
        double size = fabs(want[j].lo);
        double argument = rounding_distance(nu->acc, row->x[j] - facts.max) +
                          (nu->flush ? dtype_min_normal(nu->acc) : 0) +
                          added_error(&b, row->x[j]);
        double err = argument + log_error.budget;
        double last = rounding_error(nu->acc, size + err, nu->flush);
        if (!(size + err + last <= dtype_max(nu->acc))) { /* x - m overflows */
            bound[j] = INFINITY;
            continue;
        }
        double rounding = with_output(err + last, size, nu) - (err + last);
        bound[j] =
            outward(orders == 1 ? err + last + rounding : log_error.spread + 2 * (last + rounding),
                    row->cols);
    }
    exp_budget_clear(&b);
    return st;
}

/* One of the two on the row that the kernel has. */
static status_t on_added(double *bound, const struct oracle_row *row, const struct enclosure *want,
                         const struct numerics *nu, int orders,
                         status_t of(double *, const struct oracle_row *, const struct enclosure *,
                                     const struct numerics *, int)) {
    struct oracle_row kernels;
    double *memory;
    status_t st = row_as_added(&kernels, &memory, row, nu);
    if (st == OK)
        st = of(bound, &kernels, want, nu, orders);
    free(memory);
    return st;
}

status_t log_softmax_budget(double *budget, const struct oracle_row *row,
                            const struct enclosure *want, const struct numerics *numerics) {
    return on_added(budget, row, want, numerics, 1, log_softmax_bound);
}

status_t log_softmax_spread(double *spread, const struct oracle_row *row,
                            const struct enclosure *want, const struct numerics *numerics) {
    return on_added(spread, row, want, numerics, 2, log_softmax_bound);
}

/* ---- lse ------------------------------------------------------------------------------------- */

static status_t lse_bound(double *bound, const struct oracle_row *row, const struct enclosure *want,
                          const struct numerics *nu, int orders) {
    struct row_facts facts = row_examine(row);
    *bound = 0;
    if (facts.nan > 0 || facts.plus_inf > 0 || facts.finite == 0)
        return OK;

    struct exp_budget b;
    struct log_error log_error = {0};
    status_t st = exp_budget_init(&b, row, &facts, nu);
    if (st == OK)
        st = log_sum_error(&log_error, &b);
    if (st == OK) {
        double size = fmax(fabs(want->lo), fabs(want->hi));
        double last = rounding_error(nu->acc, size + log_error.budget, nu->flush);
        double err = (orders == 1 ? log_error.budget : log_error.spread) + orders * last;
        double rounding =
            with_output(log_error.budget + last, size, nu) - (log_error.budget + last);
        *bound = exp_budget_void(&b) ? INFINITY : outward(err + orders * rounding, row->cols);
    }
    exp_budget_clear(&b);
    return st;
}

status_t lse_budget(double *budget, const struct oracle_row *row, const struct enclosure *want,
                    const struct numerics *numerics) {
    return on_added(budget, row, want, numerics, 1, lse_bound);
}

status_t lse_spread(double *spread, const struct oracle_row *row, const struct enclosure *want,
                    const struct numerics *numerics) {
    return on_added(spread, row, want, numerics, 2, lse_bound);
}
