/* oracle/bounds_softmax.c - budgets of softmax: a term over the sum.  docs/bounds.md. */
#include <math.h>
#include <stdlib.h>

#include "oracle/bounds_impl.h"

status_t division_of(struct division *out, const struct numerics *nu) {
    switch (nu->divide) {
    case DIVIDE_NONE:
        break;
    case DIVIDE_IEEE:
        *out = (struct division){0, true};
        return OK;
    case DIVIDE_RECIPROCAL: /* of 1/S; S is in [1, 2^126), so 1/S is normal */
        *out = (struct division){U32, true};
        return OK;
    case DIVIDE_APPROX: /* 2 ulp off the correctly rounded: 2.5; 1.5 and a product are less */
        *out = (struct division){2.5 * 0x1p-23, false};
        return OK;
    }
    return FAIL(ERR_UNSUPPORTED, "bounds: the kernel's numerics do not say how it divides");
}

double last_rounding(const struct division *division, double quotient, const struct numerics *nu) {
    if (division->nearest)
        return rounding_error(nu->acc, quotient, nu->flush && quotient < 0x1p-125);
    /* approximate: `rel` has it but for subnormal quotients */
    if (quotient >= 0x1p-125)
        return 0;
    return nu->flush ? dtype_min_normal(nu->acc) : 2.5 * 0x1p-149;
}

/* g, a real softmax, is upper; x its entry. */
static double quotient_bound(const struct exp_budget *b, double x, double g,
                             const struct division *division, int orders) {
    bool online = b->nu->rescale == RESCALE_ONLINE;
    double rel = compound(compound(direct_alpha(b, x), division->rel), b->sigma / (1 - b->sigma));
    if (online) /* sigma refers to m, the numerator to m folded in */
        rel = compound(rel, expm1(b->shift) * (1 + 0x1p-50));
    double lost =
        direct_floor(b, x) * b->share * exp(b->shift) * (1 + division->rel) / (1 - b->sigma);
    double err = g * rel + lost;
    double rounded = last_rounding(division, g + err, b->nu);
    double output = with_output(err + rounded, g, b->nu) - (err + rounded);
    double budget = err + rounded + output;
    if (orders == 1)
        return budget;
    if (online)
        return 2 * budget;
    /* Numerator and terms are the same bits in both orders; only trees and quotients differ. */
    double ratio = compound((1 + b->gamma) / (1 - b->gamma) - 1,
                            (1 + division->rel) / (1 - division->rel) - 1);
    return fmin((g + err) * ratio + 2 * (rounded + output), 2 * budget);
}

/* Softmax as exp(x - lse), without a division. */
static bool divides(const struct numerics *nu) {
    return nu->divide != DIVIDE_NONE || nu->log == LOG_NONE;
}

/* g as above; L, the kernel's lse, is wrong by at most off. */
static double exponential_bound(const struct exp_budget *b, double x, double g, double off,
                                int orders) {
    double err = g * shifted_alpha(b, x, off) + shifted_floor(b, x);
    return orders * with_output(err, g, b->nu);
}

/* Where only the class counts, but for 1/cols, which is one division. */
static double special_bound(const struct oracle_row *row, const struct row_facts *facts,
                            const struct division *division, const struct numerics *nu,
                            int orders) {
    if (facts->nan > 0 || facts->plus_inf > 0 || row->empty_row != EMPTY_UNIFORM)
        return 0;
    double share = 1 / (double)row->cols, err = share * division->rel;
    err += last_rounding(division, share + err, nu);
    return orders * with_output(err, share, nu);
}

/* Budgets if `orders` is 1, spreads if it is 2. */
static status_t softmax_bound(double *bound, const struct oracle_row *real,
                              const struct enclosure *want, const struct numerics *nu, int orders) {
    struct oracle_row kernels, *row = &kernels;
    double *memory = NULL;
    struct exp_budget b = {0};
    struct division division = {0};
    double off = 0; /* of lse */
    status_t st = OK;
    TRY(row_as_added(row, &memory, real, nu));
    const struct row_facts facts = row_examine(row);
    if (divides(nu))
        TRY(division_of(&division, nu));
    else if (nu->exp == EXP_EX2_FOLDED) /* how such a kernel forms x - lse is not derived */
        TRY(FAIL(ERR_UNSUPPORTED, "bounds: exp(x - lse) with log2(e) folded"));
    else if (row->empty_row == EMPTY_UNIFORM)
        TRY(FAIL(ERR_UNSUPPORTED, "bounds: exp(x - lse) has no uniform empty row"));
    bool special = facts.nan > 0 || facts.plus_inf > 0 || facts.finite == 0;
    if (!special)
        TRY(exp_budget_init(&b, row, &facts, nu));
    if (!special && !divides(nu) && !exp_budget_void(&b))
        TRY(lse_error(&off, &b));
    for (size_t j = 0; j < row->cols; j++) {
        if (special)
            bound[j] = outward(special_bound(row, &facts, &division, nu, orders), row->cols);
        else if (isinf(row->x[j])) /* e^-Inf = 0 exactly */
            bound[j] = 0;
        else if (exp_budget_void(&b))
            bound[j] = INFINITY;
        else if (!divides(nu))
            bound[j] =
                outward(exponential_bound(&b, row->x[j], want[j].hi, off, orders), row->cols);
        else
            bound[j] =
                outward(quotient_bound(&b, row->x[j], want[j].hi, &division, orders), row->cols);
    }
done:
    exp_budget_clear(&b);
    free(memory);
    return st;
}

status_t softmax_budget(double *budget, const struct oracle_row *row, const struct enclosure *want,
                        const struct numerics *numerics) {
    return softmax_bound(budget, row, want, numerics, 1);
}

status_t softmax_spread(double *spread, const struct oracle_row *row, const struct enclosure *want,
                        const struct numerics *numerics) {
    return softmax_bound(spread, row, want, numerics, 2);
}
