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
#include "oracle/simd_within.h"
#include "oracle/tier.h"
#include "oracle/tier_impl.h"

static struct softmax_terms terms_of(const struct numerics *nu, double max) {
    const struct exp_facts facts = exp_facts_of(nu);
    const bool folded = nu->exp == EXP_EX2_FOLDED;
    const double shift = folded ? U32 * fabs(max) * (1 + U32) : 0;
    return (struct softmax_terms){
        .max = max,
        .folded = (float)(max * LOG2E_F32),
        .exp = (int)nu->exp,
        .online = nu->rescale == RESCALE_ONLINE,
        .worst_eps = facts.ulps * 0x1p-23,
        .slope = facts.slope,
        .log2e_error = LOG2E_ERROR,
        .shift = shift,
        .floor = facts.floor,
        .floor_below = -87 + shift,
    };
}

/* 1/S from the row's sum, and how far e_j / S may be off. */
static void share_of(struct softmax_limits *l, const struct softmax_sums *sums, size_t finite) {
    /* e_j and their sum: QUICK_ERROR each, the sum's roundings; 1/S and three products */
    double off = (2 * QUICK_ERROR + (sums->chain + 8) * 0x1p-53) * (1 + 0x1p-20);
    if (finite == 1) /* 1 and zeros: nothing rounds */
        off = 0;
    l->share = 1 / sums->size;
    l->width = l->share * off;
    l->lo = l->share * (1 - off);
    l->hi = l->share * (1 + off);
}

static void limits_of(struct softmax_limits *l, const struct numerics *nu,
                      const struct division *division, double sigma, size_t cols) {
    const struct dtype *out = nu->out;
    const double flushed = dtype_min_normal(nu->acc);
    l->own = l->lo * (1 + division->rel) / (1 - sigma);
    l->every = l->lo * compound(division->rel, sigma / (1 - sigma));
    l->smallest_step = ldexp(1, nu->acc->emin - (int)nu->acc->prec);
    l->step = division->nearest ? unit_roundoff(nu->acc) : 0;
    l->tiny = nu->flush ? flushed : division->nearest ? 0 : 2.5 * 0x1p-149;
    l->out_smallest_step = ldexp(1, out->emin - (int)out->prec);
    l->out_unit = out == nu->acc ? 0 : unit_roundoff(out);
    l->out_flush = out != nu->acc && nu->flush ? flushed : 0;
    l->keep = 1 - 0x1p-39 - (double)cols * 0x1p-51;
    l->out_prec_scale = ldexp(1, (int)out->prec - 1);
    l->out_min_normal = dtype_min_normal(out);
}

/* Kernels and rows that the proof covers; what op->budget refuses, it is to refuse itself. */
static bool covered(struct division *division, const struct numerics *nu,
                    const struct row_scan *scan, size_t cols) {
    return nu->acc->id == DT_F32 && nu->exp != EXP_NONE && nu->divide != DIVIDE_NONE &&
           check_types(nu) == OK && division_of(division, nu) == OK && scan->nan == 0 &&
           scan->plus_inf == 0 && scan->max > -INFINITY && cols <= TIER_MAX_COLS &&
           nu->exp != EXP_EX2_POLY && (nu->exp != EXP_EX2_FOLDED || fabs(scan->max) < 250);
}

/* What a kernel has of x + bias is x + bias, or far below the maximum. */
static bool sums_are_data(const struct oracle_row *row, double max) {
    for (size_t j = 0; row->added && j < row->cols; j++) {
        const double x = row->x[j];
        if (((double)(float)x != x || row_low(row, j) != 0) && !(x - max < 2 * FAR))
            return false;
    }
    return true;
}

static status_t look(struct tier_extremes *out, const struct oracle_row *row, const double *got,
                     const struct numerics *nu, const struct division *division,
                     const struct row_scan *scan) {
    const struct within_simd *simd = within_simd();
    size_t n = row->cols, bytes;
    double *e = NULL;
    if (!size_mul(&bytes, n, 2 * sizeof *e) || !(e = malloc(bytes)))
        return FAIL(ERR_NOMEM, "oracle: no memory for a row of %zu", n);
    struct softmax_terms t = terms_of(nu, scan->max);
    struct softmax_limits l = {.masked = scan->minus_inf > 0};
    struct softmax_sums sums = simd->weigh(e, e + n, row->x, n, &t);
    share_of(&l, &sums, n - scan->minus_inf);
    double gamma = grown(effective_height(nu, n - scan->minus_inf), U32);
    double sigma = compound(gamma, sums.errors * l.lo) * (1 - 0x1p-40 - (double)n * 0x1p-51);
    if (sigma < 0.5) { /* else the budget may be infinite */
        limits_of(&l, nu, division, sigma, n);
        struct softmax_extremes x = simd->within(got, row->x, e, e + n, n, &l);
        *out = (struct tier_extremes){.within = x.within,
                                      .sharp = !t.online,
                                      .earned = x.earned && !t.online,
                                      .ulps = x.ulps,
                                      .rel = x.rel,
                                      .rho = x.rho,
                                      .worst = x.worst,
                                      .budget = x.budget,
                                      .want = x.want};
    }
    free(e);
    return OK;
}

static status_t softmax_within(struct tier_extremes *out, const struct oracle_row *row,
                               const double *got, const struct numerics *numerics) {
    struct division division = {0};
    *out = (struct tier_extremes){.within = false};
    struct row_scan scan = row_simd()->scan(row->x, row->cols);
    if (!covered(&division, numerics, &scan, row->cols) || !sums_are_data(row, scan.max))
        return OK;
    return look(out, row, got, numerics, &division, &scan);
}

status_t tier_within(struct tier_extremes *out, const struct op *op,
                     const struct oracle_row *const *rows, size_t count, const double *got,
                     size_t n, const struct numerics *numerics) {
    const bool softmax = op->budget == softmax_budget && op->enclose == softmax_enclose;
    status_t st = OK;
    if (unit_tier_within(&st, out, op, rows, count, got, n, numerics))
        return st;
    for (size_t r = 0; r < count; r++) {
        out[r] = (struct tier_extremes){.within = false};
        if (softmax && n == rows[r]->cols)
            TRY(softmax_within(&out[r], rows[r], got + r * n, numerics));
    }
done:
    return st;
}
