/*
 * oracle/tier_within.c - the common case of a check: every element of a softmax row is within.
 *
 * All ingredients of softmax_budget are replaced by something no larger, and nothing else about the
 * row is computed.  docs/oracle.md, step 5, goes through them one by one.
 */
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "oracle/bounds_impl.h"
#include "oracle/simd_row.h"
#include "oracle/tier.h"

static struct softmax_terms terms_of(const struct numerics *nu, double max, double share) {
    const struct exp_facts facts = exp_facts_of(nu);
    const bool folded = nu->exp == EXP_EX2_FOLDED;
    const double flushed = nu->flush ? dtype_min_normal(nu->acc) : 0;
    return (struct softmax_terms){
        .max = max,
        .folded = (float)(max * LOG2E_F32),
        .exp = (int)nu->exp,
        .online = nu->rescale == RESCALE_ONLINE,
        .worst_eps = facts.ulps * 0x1p-23,
        .slope = facts.slope,
        .argument = 2 * flushed,
        .log2e_error = LOG2E_ERROR,
        .shift = folded ? U32 * fabs(max) * (1 + U32) : 0,
        .unscale = 1 / share,
    };
}

static struct softmax_limits limits_of(const struct numerics *nu, const struct division *division,
                                       const struct softmax_terms *t, double sigma, double share,
                                       size_t cols) {
    const struct exp_facts facts = exp_facts_of(nu);
    const struct dtype *out = nu->out;
    const double flushed = dtype_min_normal(nu->acc);
    return (struct softmax_limits){
        .max = t->max,
        .floor = facts.floor,
        .floor_below = -87 + t->shift,
        .division = division->rel,
        .sum = sigma / (1 - sigma),
        .lost = share * (1 + division->rel) / (1 - sigma),
        .smallest_step = ldexp(1, nu->acc->emin - (int)nu->acc->prec),
        .tiny = nu->flush ? flushed : division->nearest ? 0 : 2.5 * 0x1p-149,
        .nearest = division->nearest,
        .out_smallest_step = ldexp(1, out->emin - (int)out->prec),
        .out_unit = out == nu->acc ? 0 : unit_roundoff(out),
        .out_flush = out != nu->acc && nu->flush ? flushed : 0,
        .keep = 1 - 0x1p-40 - (double)cols * 0x1p-51,
        .out_prec_scale = ldexp(1, (int)out->prec - 1),
        .out_min_normal = dtype_min_normal(out),
    };
}

/* Kernels and rows that the proof covers; what op->budget refuses, it is to refuse itself. */
static bool covered(struct division *division, const struct numerics *nu,
                    const struct row_scan *scan, size_t cols) {
    return nu->acc->id == DT_F32 && nu->exp != EXP_NONE && nu->divide != DIVIDE_NONE &&
           check_types(nu) == OK && division_of(division, nu) == OK && scan->nan == 0 &&
           scan->plus_inf == 0 && scan->max > -INFINITY && cols < (size_t)1 << 30 &&
           (nu->exp != EXP_EX2_FOLDED || fabs(scan->max) < 250);
}

status_t tier_within(struct tier_extremes *out, const struct op *op, const struct oracle_row *row,
                     const struct enclosure *want, const double *got,
                     const struct numerics *numerics) {
    *out = (struct tier_extremes){.within = false};
    if (op->budget != softmax_budget)
        return OK;
    const struct row_simd *simd = row_simd();
    struct row_scan scan = simd->scan(row->x, row->cols);
    struct division division = {0};
    if (!covered(&division, numerics, &scan, row->cols))
        return OK;
    size_t bytes;
    double *alpha;
    if (!size_mul(&bytes, row->cols, sizeof *alpha) || !(alpha = malloc(bytes)))
        return FAIL(ERR_NOMEM, "oracle: no memory for a row of %zu", row->cols);

    double share = simd->greatest(want, row->cols);
    struct softmax_terms t = terms_of(numerics, scan.max, share);
    double errors = simd->terms(alpha, row->x, want, row->cols, &t);
    double gamma = grown(effective_height(numerics, row->cols - scan.minus_inf), U32);
    double sigma = compound(gamma, errors) * (1 - 0x1p-40 - (double)row->cols * 0x1p-51);
    if (sigma < 0.5) { /* else the budget may be infinite */
        struct softmax_limits l = limits_of(numerics, &division, &t, sigma, share, row->cols);
        struct softmax_extremes e = simd->within(got, row->x, alpha, want, row->cols, &l);
        *out = (struct tier_extremes){.within = e.within,
                                      .sharp = !t.online,
                                      .earned = e.earned && !t.online,
                                      .ulps = e.ulps,
                                      .rel = e.rel,
                                      .rho = e.rho,
                                      .worst = e.worst,
                                      .budget = e.budget};
    }
    free(alpha);
    return OK;
}
