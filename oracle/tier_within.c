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
#include "oracle/tier.h"
#include "oracle/tier_impl.h"

static struct softmax_terms terms_of(const struct numerics *nu, double max) {
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
    };
}

static struct softmax_limits limits_of(const struct numerics *nu, const struct division *division,
                                       const struct softmax_terms *t, const struct shifted *s,
                                       double sigma, size_t cols) {
    const struct exp_facts facts = exp_facts_of(nu);
    const struct dtype *out = nu->out;
    const double flushed = dtype_min_normal(nu->acc);
    return (struct softmax_limits){
        .lo = s->lo,
        .hi = s->hi,
        .max = t->max,
        .floor = facts.floor,
        .floor_below = -87 + t->shift,
        .division = division->rel,
        .sum = sigma / (1 - sigma),
        .lost = s->lo * (1 + division->rel) / (1 - sigma),
        .smallest_step = ldexp(1, nu->acc->emin - (int)nu->acc->prec),
        .tiny = nu->flush           ? flushed
                : division->nearest ? 0
                                    : 2.5 * 0x1p-149,
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
           scan->plus_inf == 0 && scan->max > -INFINITY && cols <= TIER_MAX_COLS &&
           (nu->exp != EXP_EX2_FOLDED || fabs(scan->max) < 250);
}

static status_t look(struct tier_extremes *out, const struct oracle_row *row, const double *got,
                     const struct numerics *nu, const struct division *division,
                     const struct row_scan *scan) {
    const struct row_simd *simd = row_simd();
    struct shifted s = {0};
    double *alpha = NULL;
    size_t n = row->cols, bytes;
    status_t st = OK;
    TRY(shifted_init(&s, row, scan->max));
    if (!size_mul(&bytes, n, sizeof *alpha) || !(alpha = malloc(bytes)))
        TRY(FAIL(ERR_NOMEM, "oracle: no memory for a row of %zu", n));
    struct softmax_terms t = terms_of(nu, scan->max);
    double errors = simd->terms(alpha, row->x, s.e, n, &t) * s.lo;
    double gamma = grown(effective_height(nu, n - scan->minus_inf), U32);
    double sigma = compound(gamma, errors) * (1 - 0x1p-40 - (double)n * 0x1p-51);
    if (sigma < 0.5) { /* else the budget may be infinite */
        struct softmax_limits l = limits_of(nu, division, &t, &s, sigma, n);
        struct softmax_extremes e = simd->within(got, row->x, s.e, alpha, n, &l);
        *out = (struct tier_extremes){.within = e.within,
                                      .sharp = !t.online,
                                      .earned = e.earned && !t.online,
                                      .ulps = e.ulps,
                                      .rel = e.rel,
                                      .rho = e.rho,
                                      .worst = e.worst,
                                      .budget = e.budget,
                                      .want = e.want};
    }
done:
    free(alpha);
    shifted_clear(&s);
    return st;
}

status_t tier_within(struct tier_extremes *out, const struct op *op, const struct oracle_row *row,
                     const double *got, const struct numerics *numerics) {
    struct division division = {0};
    *out = (struct tier_extremes){.within = false};
    if (op->budget != softmax_budget || op->enclose != softmax_enclose)
        return OK;
    struct row_scan scan = row_simd()->scan(row->x, row->cols);
    if (!covered(&division, numerics, &scan, row->cols))
        return OK;
    return look(out, row, got, numerics, &division, &scan);
}
