/*
 * gate/ensemble.c - the bias test and the spread test.
 *
 * The sample is the row: errors within a row share the row's sum and maximum, so they are averaged
 * first, and only the averages are taken for independent.  No normal distribution is assumed.
 */
#include "gate/ensemble.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * For independent symmetric S_r, P(|sum S_r| >= x sqrt(sum S_r^2)) <= 2 exp(-x^2/2): given the
 * magnitudes the signs are fair coins (Hoeffding 1963).  x = 8: 2.6e-14.  The spread test's Chernoff
 * exponent is the same.
 */
#define DEVIATIONS 8.0
#define EXPONENT (DEVIATIONS * DEVIATIONS / 2)

/* The mean error of CUDA's expf over any sixteenth of a binade is below 0.5 u (test_ensemble). */
#define EXPF_BIAS (0.5 * 0x1p-24)

const char *ensemble_refuses(const struct fill *fill) {
    static const char *const random[] = {"normal", "near_overflow"};
    if (!fill)
        return "an ensemble needs the rows of a random fill";
    for (size_t i = 0; i < sizeof random / sizeof random[0]; i++)
        if (strcmp(fill->name, random[i]) == 0)
            return NULL;
    return "the rows of this fill are not random throughout: an ensemble needs normal or "
           "near_overflow";
}

/* ---- what the declared arithmetic promises on average ---------------------------------------- */

struct promise {
    struct numerics nu;
    bool narrow;        /* one rounding to a format below acc comes last, and outweighs the rest */
    bool mean_known;    /* `relative` holds */
    double relative;    /* bound on the mean relative error of all that is not rounding */
    double *budget;     /* owned, as are the others; by element */
    double *systematic; /* narrow: bound on the error before the last rounding; else NULL */
    double *spread;     /* budget with sqrt(height) */
};

static void promise_clear(struct promise *p) {
    free(p->budget);
    free(p->systematic);
    free(p->spread);
}

/*
 * Roundings to nearest of random data err to both sides alike; the approximations of functions do
 * not, and for each of them a bound on its mean is needed.  There is one for expf only.
 */
static void promise_mean(struct promise *p, const struct op *op) {
    bool sums = strcmp(op->name, "sum") == 0 || strcmp(op->name, "max") == 0;
    bool rounds = p->nu.divide == DIVIDE_IEEE || p->nu.divide == DIVIDE_RECIPROCAL;
    bool softmax = strcmp(op->name, "softmax") == 0 && p->nu.exp == EXP_EXPF && rounds;
    p->mean_known = p->narrow || sums || softmax;
    /* one exp in the numerator, one in each term of the sum, and one at each rescaling of it */
    p->relative = softmax ? (2 + p->nu.rescales) * EXPF_BIAS : 0;
}

static status_t promise_init(struct promise *p, const struct kernel *kernel,
                             const struct test_case *c, struct truth *truth) {
    *p = (struct promise){0};
    status_t st = OK;
    TRY(kernel_numerics(&p->nu, kernel, c->dims));
    p->narrow = p->nu.out->prec < p->nu.acc->prec;
    promise_mean(p, kernel->op);
    TRY(budgets_make(&p->budget, kernel, c, truth));
    struct numerics changed = p->nu;
    changed.sum_height = sqrt(p->nu.sum_height);
    TRY(budgets_declared(&p->spread, kernel, &changed, c, truth));
    changed = p->nu;
    changed.out = p->nu.acc;
    if (p->narrow)
        TRY(budgets_declared(&p->systematic, kernel, &changed, c, truth));
done:
    if (st != OK)
        promise_clear(p);
    return st;
}

/* What one element says: an error in budgets, and how far its mean may lie from 0. */
struct bias_term {
    double e, allowed;
};

static double nearest(const struct dtype *dt, double v) {
    return dtype_to_double(dt, dtype_from_double(dt, v, ROUND_NEAREST));
}

static bool is_tie(const struct dtype *dt, double v) {
    double down = dtype_to_double(dt, dtype_from_double(dt, v, ROUND_DOWN));
    double up = dtype_to_double(dt, dtype_from_double(dt, v, ROUND_UP));
    return down < up && v - down == up - v;
}

/*
 * The term 2^(1-p): where the results' density has the slope -s/x, more of them lie on one side of a
 * datum's cell than on the other, which moves the mean of a correct rounding by s ulp(1)/12 ulps.
 */
static struct bias_term plain_error(const struct promise *p, size_t i, struct enclosure want,
                                    double got) {
    double middle = want.lo + (want.hi - want.lo) / 2, width = want.hi - want.lo;
    double known = p->narrow ? p->systematic[i] : p->relative * fabs(middle);
    double allowed = (known + width) / p->budget[i] + ldexp(1, 1 - (int)p->nu.out->prec);
    return (struct bias_term){(got - middle) / p->budget[i], fmin(1, allowed)};
}

/*
 * With a last rounding to a format below acc, the result is a datum between those nearest to the ends
 * of what goes before it: mostly one datum alone, and then no error has to average out.  A tie whose
 * result is known exactly may go either way, for its neighbours are as near: that is for chance.
 */
static struct bias_term bias_term_of(const struct promise *p, size_t i, struct enclosure want,
                                     double got) {
    const struct dtype *out = p->nu.out;
    if (!p->narrow || (want.lo == want.hi && is_tie(out, want.lo)))
        return plain_error(p, i, want, got);
    double least = nearest(out, want.lo - p->systematic[i]);
    double most = nearest(out, want.hi + p->systematic[i]);
    double ideal = nearest(out, want.lo + (want.hi - want.lo) / 2);
    if (!isfinite(least) || !isfinite(most))
        return plain_error(p, i, want, got);
    return (struct bias_term){(got - ideal) / p->budget[i],
                              fmax(most - ideal, ideal - least) / p->budget[i]};
}

/* ---- samples --------------------------------------------------------------------------------- */

enum { SIGNED, TOWARD_ZERO, BIAS_TESTS };

struct ensemble {
    size_t rows;            /* with at least one element that counts */
    double sum[BIAS_TESTS]; /* of the rows' mean E */
    double sum2[BIAS_TESTS];
    double allowed, allowed2; /* sums of the rows' allowed means and of their squares */
    double square, reach;     /* sums of the rows' mean square of err/S; of budget/S */
    double largest;           /* of (budget/S)^2 */
};

/* Normal with room below: there an exponential may be flushed, and a budget is mostly floor. */
static bool counts(const struct promise *p, double got, struct enclosure want, double budget) {
    double least = 2 * fmax(dtype_min_normal(p->nu.out), dtype_min_normal(p->nu.acc));
    return isfinite(got) && isfinite(want.lo) && isfinite(want.hi) && budget > 0 &&
           budget < INFINITY && (want.lo >= least || want.hi <= -least);
}

static void add_row(struct ensemble *e, const struct promise *p, const struct dtype *out,
                    struct truth *truth, const void *y, size_t first, size_t count) {
    double mean[BIAS_TESTS] = {0}, allowed = 0, square = 0, reach = 0, n = 0;
    for (size_t i = first; i < first + count; i++) {
        struct enclosure want = truth->want[i];
        double got = dtype_to_double(out, dtype_load(out, y, i)), budget = p->budget[i];
        if (!counts(p, got, want, budget))
            continue;
        double middle = want.lo + (want.hi - want.lo) / 2, width = want.hi - want.lo;
        double err = got - middle, ratio = budget / p->spread[i];
        struct bias_term term = bias_term_of(p, i, want, got);
        n++;
        mean[SIGNED] += term.e;
        mean[TOWARD_ZERO] += copysign(1, middle) * term.e;
        allowed += term.allowed;
        double beyond = fmax(0, fabs(err) - width) / p->spread[i];
        square += beyond * beyond;
        reach += ratio * ratio;
        e->largest = fmax(e->largest, ratio * ratio);
    }
    if (n == 0)
        return;
    e->rows++;
    for (int k = 0; k < BIAS_TESTS; k++) {
        e->sum[k] += mean[k] / n;
        e->sum2[k] += mean[k] / n * (mean[k] / n);
    }
    e->allowed += allowed / n;
    e->allowed2 += allowed / n * (allowed / n);
    e->square += square / n;
    e->reach += reach / n;
}

/* ---- the tests ------------------------------------------------------------------------------- */

/* How far the sum of the rows' means may lie from 0 by chance, given the sum of their squares. */
static double bias_limit(const struct ensemble *e, double sum2) {
    return e->allowed + DEVIATIONS * (sqrt(sum2) + sqrt(e->allowed2));
}

/* Would errors of the whole budget, all to one side, exceed the limit? */
static bool bias_can_fail(const struct ensemble *e) {
    double n = (double)e->rows;
    return n > bias_limit(e, n);
}

/*
 * Independent Q_r in [0, c] with mean at most 1 have a mean above q with probability at most
 * exp(-(n/c) (q log q - q + 1)) (Chernoff): the q at which that is exp(-EXPONENT).
 */
static double spread_limit(const struct ensemble *e) {
    double n = (double)e->rows, low = 1, high = 2;
    double needed = EXPONENT * e->largest / n;
    while (high * log(high) - high + 1 < needed)
        high *= 2;
    for (int i = 0; i < 60; i++) {
        double q = low + (high - low) / 2;
        *(q * log(q) - q + 1 < needed ? &low : &high) = q;
    }
    return high;
}

static void decide(struct judgement *out, const struct ensemble *e, const struct promise *p) {
    static const char *const toward[BIAS_TESTS][2] = {{"downwards", "upwards"},
                                                      {"toward zero", "away from zero"}};
    double n = (double)e->rows, limit = spread_limit(e);
    bool bias_counts = p->mean_known && bias_can_fail(e), spread_counts = e->reach / n > limit;
    *out = (struct judgement){.verdict = VERDICT_PASS};
    for (int k = 0; k < BIAS_TESTS && bias_counts; k++) {
        double allowed = bias_limit(e, e->sum2[k]);
        if (fabs(e->sum[k]) <= allowed)
            continue;
        *out = judgement_of(VERDICT_FAIL,
                            "bias %s: the mean error over %zu rows is %.3g budgets, and rounding "
                            "to nearest explains %.3g",
                            toward[k][e->sum[k] > 0], e->rows, e->sum[k] / n, allowed / n);
        return;
    }
    if (spread_counts && !(e->square / n <= limit)) {
        *out = judgement_of(VERDICT_FAIL,
                            "spread: the root mean square error over %zu rows is %.3g times the "
                            "statistical bound, and chance explains %.3g",
                            e->rows, sqrt(e->square / n), sqrt(limit));
        return;
    }
    if (bias_counts || spread_counts)
        return;
    if (!p->mean_known) /* and the height is too small a part of the budget for the other test */
        *out = judgement_of(VERDICT_SKIP,
                            "ensemble: no bound on the mean error of its functions is known");
    else
        *out = judgement_of(VERDICT_MISTRUSTED,
                            "ensemble: errors of the whole budget would not have shown in %zu rows",
                            e->rows);
}

/* Is there a test at all, or do the budgets leave no room between them and their average? */
static bool nothing_promised(const struct promise *p, struct truth *truth) {
    bool exact = true;
    for (size_t i = 0; i < truth->count; i++)
        exact &= p->budget[i] == 0;
    return exact && truth->count > 0;
}

status_t ensemble_output(struct judgement *out, const struct kernel *kernel,
                         const struct test_case *c, struct truth *truth, const void *y) {
    struct promise p;
    struct ensemble e = {0};
    size_t step = results_per_row(kernel->op, c->dims);
    status_t st = promise_init(&p, kernel, c, truth);
    if (st != OK)
        return st;
    for (size_t row = 0; row < c->dims.rows; row++)
        add_row(&e, &p, kernel->out, truth, y, row * step, step);
    if (nothing_promised(&p, truth))
        *out = judgement_of(VERDICT_SKIP, "ensemble: every budget is 0, no error is left to test");
    else if (e.rows == 0)
        *out = judgement_of(VERDICT_MISTRUSTED, "ensemble: no result is a number with a budget");
    else
        decide(out, &e, &p);
    promise_clear(&p);
    return OK;
}

status_t ensemble_kernel(struct judgement *out, struct kernel_result *result,
                         struct loaded_kernel *lk, const struct test_case *c, struct truth *truth) {
    const struct kernel *kernel = loaded_kernel_of(lk);
    if (!case_permutes(kernel)) {
        *result = (struct kernel_result){0};
        *out = judgement_of(VERDICT_SKIP, "ensemble: for a dense matrix alone, not for op %s here",
                            kernel->op->name);
        return OK;
    }
    return judge_run(out, result, lk, c, truth, ensemble_output);
}
