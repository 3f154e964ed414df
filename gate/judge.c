/*
 * gate/judge.c - truth, budgets, and the comparison.
 *
 * Checkers fail in known ways (docs/cases.md, "What the judge is tested with"): a NaN that compares
 * false and passes, a maximum that drops NaN, a NaN in the reference taken for a wildcard, a
 * tolerance that accepts all zeros.  Each of them has a test in tests/gate/test_judge.c.
 */
#include "gate/judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "oracle/ulp.h"

struct judgement judgement_of(enum verdict verdict, const char *format, ...) {
    struct judgement j = {.verdict = verdict};
    va_list args;
    va_start(args, format);
    vsnprintf(j.reason, sizeof j.reason, format, args);
    va_end(args);
    return j;
}

/* ---- truth and budgets ----------------------------------------------------------------------- */

static void *new_array(size_t count, size_t size) {
    return calloc(count ? count : 1, size);
}

static status_t result_count(size_t *out, const struct op *op, struct case_dims dims) {
    if (size_mul(out, dims.rows, results_per_row(op, dims)))
        return OK;
    return FAIL(ERR_USAGE, "shape %zux%zu is larger than any memory", dims.rows, dims.cols);
}

status_t truth_init(struct truth *out, const struct op *op, const struct test_case *c,
                    enum empty_row empty_row) {
    *out = (struct truth){0};
    size_t step = results_per_row(op, c->dims);
    double *x = NULL;
    status_t st = OK;
    TRY(result_count(&out->count, op, c->dims));
    x = new_array(c->dims.cols, sizeof *x);
    out->want = new_array(out->count, sizeof *out->want);
    if (!x || !out->want)
        TRY(FAIL(ERR_NOMEM, "no memory for the truth of %zux%zu", c->dims.rows, c->dims.cols));
    for (size_t row = 0; row < c->dims.rows; row++) {
        case_row(x, c, row);
        const struct oracle_row r = {.x = x, .cols = c->dims.cols, .empty_row = empty_row};
        TRY(op->enclose(out->want + row * step, &r));
    }
done:
    free(x);
    if (st != OK)
        truth_clear(out);
    return st;
}

void truth_clear(struct truth *t) {
    free(t->want);
    *t = (struct truth){0};
}

/* Every partial sum of this case is representable in every format the kernel sums in. */
static bool sums_exactly(const struct kernel *kernel, const struct test_case *c) {
    return c->fill && c->fill->exact && strcmp(kernel->op->name, "sum") == 0 &&
           kernel->acc->prec >= c->dtype->prec && kernel->acc->emax >= c->dtype->emax &&
           kernel->out->prec >= c->dtype->prec && kernel->out->emax >= c->dtype->emax;
}

/* op->budget or op->spread */
typedef status_t bound_fn(double *, const struct oracle_row *, const struct enclosure *,
                          const struct numerics *);

static status_t bounds_make(double **bounds, bound_fn *bound, const struct kernel *kernel,
                            const struct numerics *numerics, const struct test_case *c,
                            const struct truth *truth) {
    size_t step = results_per_row(kernel->op, c->dims);
    double *x = NULL, *out = NULL;
    status_t st = OK;
    x = new_array(c->dims.cols, sizeof *x);
    out = new_array(truth->count, sizeof *out);
    if (!x || !out)
        TRY(FAIL(ERR_NOMEM, "no memory for the bounds of %zux%zu", c->dims.rows, c->dims.cols));
    for (size_t row = 0; row < c->dims.rows && !sums_exactly(kernel, c); row++) {
        case_row(x, c, row);
        const struct oracle_row r = {.x = x, .cols = c->dims.cols, .empty_row = kernel->empty_row};
        TRY(bound(out + row * step, &r, truth->want + row * step, numerics));
    }
    *bounds = out;
    out = NULL;
done:
    free(x);
    free(out);
    if (st == ERR_UNSUPPORTED) /* its numerics do not say enough */
        st = FAIL(st, "%s: %s: %s", kernel->manifest, kernel->name, status_message());
    return st;
}

status_t budgets_declared(double **bounds, const struct kernel *kernel,
                          const struct numerics *numerics, const struct test_case *c,
                          const struct truth *truth) {
    return bounds_make(bounds, kernel->op->budget, kernel, numerics, c, truth);
}

status_t budgets_make(double **bounds, const struct kernel *kernel, const struct test_case *c,
                      const struct truth *truth) {
    struct numerics numerics;
    status_t st = kernel_numerics(&numerics, kernel, c->dims);
    return st != OK ? st : budgets_declared(bounds, kernel, &numerics, c, truth);
}

status_t spreads_make(double **bounds, const struct kernel *kernel, const struct test_case *c,
                      const struct truth *truth) {
    struct numerics numerics;
    status_t st = kernel_numerics(&numerics, kernel, c->dims);
    return st != OK ? st : bounds_make(bounds, kernel->op->spread, kernel, &numerics, c, truth);
}

/* ---- one element ----------------------------------------------------------------------------- */

enum state { WITHIN, UNCLAIMED, BEYOND, UNDECIDED, WRONG_CLASS, NEVER_WRITTEN };

struct element {
    enum state state;
    double rho;
    struct ulp_error error;
};

static uint32_t poison_of(const struct dtype *dt) {
    return dt->bits == 32 ? UINT32_MAX : (UINT32_C(1) << dt->bits) - 1;
}

static struct element compare(const struct dtype *dt, uint32_t got, struct enclosure want,
                              double budget, bool poison_is_news) {
    struct element e = {.state = WITHIN, .error = ulp_error(dt, got, want)};
    if (poison_is_news && got == poison_of(dt)) {
        e.state = NEVER_WRITTEN;
        e.rho = INFINITY;
    } else if (budget == INFINITY) {
        e.state =
            UNCLAIMED; /* a correct kernel may overflow on the way: any class may come of it */
    } else if (e.error.outcome == ULP_CLASS_MISMATCH) {
        e.state = WRONG_CLASS;
        e.rho = INFINITY;
    } else if (e.error.outcome != ULP_CLASS_MATCH) {
        if (!(e.error.abs_lo <= budget))
            e.state = BEYOND;
        else if (!(e.error.abs_hi <= budget))
            e.state = UNDECIDED;
        e.rho = e.error.abs_hi == 0 ? 0 : e.error.abs_hi / budget;
        if (isnan(e.rho)) /* a NaN budget allows nothing */
            e.rho = INFINITY;
    }
    return e;
}

static enum verdict state_verdict(enum state s) {
    return s == WITHIN || s == UNCLAIMED ? VERDICT_PASS
           : s == UNDECIDED              ? VERDICT_UNSURE
                                         : VERDICT_FAIL;
}

/*
 * Could a wrong result have failed?  A result shows it if its class counts (NaN, an infinity), or if
 * it is a number larger than its budget.  A sum may cancel to far less than its terms, and losing
 * one of them would still show: there the row's largest term counts as the size of the result.
 * Results of 0 are asked only where there are no others: their budgets are small for free.
 */
struct trust {
    bool earned; /* by some result */
    bool other_than_zero;
    bool zero_earned; /* by some result of 0, against the size 1 */
};

static void trust_add(struct trust *t, struct enclosure want, double budget, double row_scale) {
    if (budget == INFINITY)
        return;
    if (enclosure_is_nan(want) || isinf(want.lo) || isinf(want.hi)) {
        t->earned = true;
        return;
    }
    double size = fmax(fmax(fabs(want.lo), fabs(want.hi)), row_scale);
    if (size == 0) {
        t->zero_earned |= budget < 1;
        return;
    }
    t->other_than_zero = true;
    t->earned |= budget < size;
}

static bool trusted(const struct trust *t) {
    return t->earned || (!t->other_than_zero && t->zero_earned);
}

/* ---- words ----------------------------------------------------------------------------------- */

static const char *class_words(double v) {
    return isnan(v) ? "NaN" : isinf(v) ? (v > 0 ? "+Inf" : "-Inf") : "a number";
}

void worst_place(char *out, size_t size, const struct worst *w) {
    if (w->per_row)
        snprintf(out, size, "row %zu", w->row);
    else
        snprintf(out, size, "element [%zu][%zu]", w->row, w->col);
}

static void explain(struct judgement *j, const struct dtype *dt, const struct element *e) {
    char where[64];
    worst_place(where, sizeof where, &j->worst);
    const char *got = class_words(dtype_to_double(dt, j->worst.got));
    switch (e->state) {
    case NEVER_WRITTEN:
        snprintf(j->reason, sizeof j->reason, "%s was never written: it holds the poison 0x%0*x",
                 where, (int)(dt->bits / 4), (unsigned)j->worst.got);
        break;
    case WRONG_CLASS:
        snprintf(j->reason, sizeof j->reason, "%s is %s where %s is due", where, got,
                 class_words(enclosure_is_nan(j->worst.want) ? (double)NAN : j->worst.want.lo));
        break;
    case BEYOND:
        snprintf(j->reason, sizeof j->reason, "%s is off by %.3g budgets (%.3g ulp)%s", where,
                 e->rho, fabs(e->error.ulps),
                 e->error.outcome == ULP_OVERFLOW_EARLY    ? ": early overflow"
                 : e->error.outcome == ULP_OVERFLOW_MISSED ? ": missed overflow"
                                                           : "");
        break;
    case UNDECIDED:
        snprintf(j->reason, sizeof j->reason, "%s: the enclosure is too wide to decide", where);
        break;
    case WITHIN:
    case UNCLAIMED:
        j->reason[0] = '\0';
        break;
    }
}

/* ---- a whole output -------------------------------------------------------------------------- */

/* max(a, b) that keeps a NaN instead of dropping it. */
static double max_keep(double a, double b) {
    return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b;
}

/* Below the normal numbers a relative error says nothing: 0 for the smallest result is off by 1. */
static bool is_normal(const struct dtype *dt, struct enclosure want) {
    return want.lo >= dtype_min_normal(dt) || want.hi <= -dtype_min_normal(dt);
}

/* scale: what may stand for the result (judge.h), or 0. */
static void account_plain(struct judgement *j, const struct dtype *dt,
                          const struct ulp_error *error, struct enclosure want, double scale) {
    if (scale > fmax(fabs(want.lo), fabs(want.hi))) {
        j->max_ulp = max_keep(j->max_ulp, error->abs_hi / ulp_size(dt, scale));
        if (scale >= dtype_min_normal(dt))
            j->max_rel = max_keep(j->max_rel, error->abs_hi / scale);
        return;
    }
    j->max_ulp = max_keep(j->max_ulp, fabs(error->ulps));
    if (is_normal(dt, want))
        j->max_rel = max_keep(j->max_rel, error->rel);
}

static void account(struct judgement *j, const struct dtype *dt, const struct element *e,
                    struct worst here, double scale) {
    if (e->state == WITHIN || e->state == UNDECIDED || e->state == BEYOND)
        account_plain(j, dt, &e->error, here.want, scale);
    enum verdict v = state_verdict(e->state);
    bool worse = !j->worst.known || v > j->verdict || (v == j->verdict && e->rho > j->max_rho);
    if (worse) {
        j->worst = here;
        explain(j, dt, e);
    }
    j->verdict = verdict_worse(j->verdict, v);
    j->max_rho = max_keep(j->max_rho, e->rho);
}

/* Does the input itself hold the poison pattern?  Then finding it in the output proves nothing. */
static bool holds_poison(const struct test_case *c) {
    for (size_t i = 0; i < c->dims.rows * c->dims.cols; i++)
        if (dtype_load(c->dtype, c->x, i) == poison_of(c->dtype))
            return true;
    return false;
}

/* The sizes that may stand for a result which cancelled: 0 for ops with a result per element. */
struct row_scale {
    double term;  /* the row's largest, for trust */
    double plain; /* for plain errors (judge.h) */
};

static struct row_scale row_scale(const struct op *op, const struct test_case *c, size_t row) {
    double max = 0, sum = 0;
    if (op->result != OP_PER_ROW)
        return (struct row_scale){0};
    for (size_t j = 0; j < c->dims.cols; j++) {
        double x = dtype_to_double(c->dtype, dtype_load(c->dtype, c->x, row * c->dims.cols + j));
        if (isfinite(x)) {
            max = fmax(max, fabs(x));
            sum += fabs(x);
        }
    }
    return (struct row_scale){max, strcmp(op->name, "sum") == 0 ? sum : max};
}

/* One row of y: every element compared, the worst kept. */
static void judge_row(struct judgement *j, struct trust *trust, const struct kernel *kernel,
                      const struct test_case *c, const struct truth *truth, const double *budget,
                      const void *y, size_t row, bool poison_is_news) {
    size_t step = results_per_row(kernel->op, c->dims);
    struct row_scale scale = row_scale(kernel->op, c, row);
    for (size_t col = 0; col < step; col++) {
        size_t i = row * step + col;
        const struct worst here = {
            .known = true,
            .per_row = kernel->op->result == OP_PER_ROW,
            .row = row,
            .col = col,
            .got = dtype_load(kernel->out, y, i),
            .want = truth->want[i],
            .budget = budget[i],
        };
        const struct element e =
            compare(kernel->out, here.got, here.want, here.budget, poison_is_news);
        account(j, kernel->out, &e, here, scale.plain);
        trust_add(trust, here.want, here.budget, scale.term);
    }
}

status_t judge_output(struct judgement *out, const struct kernel *kernel, const struct test_case *c,
                      const struct truth *truth, const void *y) {
    *out = (struct judgement){.verdict = VERDICT_PASS};
    struct trust trust = {0};
    double *budget = NULL;
    status_t st = budgets_make(&budget, kernel, c, truth);
    if (st != OK)
        return st;
    bool poison_is_news = !holds_poison(c);
    for (size_t row = 0; row < c->dims.rows; row++)
        judge_row(out, &trust, kernel, c, truth, budget, y, row, poison_is_news);
    free(budget);
    if (out->verdict == VERDICT_PASS && !trusted(&trust)) {
        out->verdict = VERDICT_MISTRUSTED;
        snprintf(out->reason, sizeof out->reason,
                 truth->count ? "no element of the case could have failed: every budget is wider "
                                "than its result"
                              : "the case has no results to compare");
    }
    return OK;
}

static void add_fault(struct judgement *j, const struct kernel_result *result) {
    const struct dev_fault *fault = kernel_result_fault(result);
    j->verdict = VERDICT_FAIL;
    j->max_rho = INFINITY; /* no results, however good, make up for it */
    snprintf(j->reason, sizeof j->reason, "%s",
             fault ? fault->text : "a launch did not complete, without a fault on record");
}

status_t judge_run(struct judgement *out, struct kernel_result *result, struct loaded_kernel *lk,
                   const struct test_case *c, const struct truth *truth, judge_fn *judge) {
    const struct kernel *kernel = loaded_kernel_of(lk);
    *result = (struct kernel_result){0};
    const char *refusal = kernel_refuses(kernel, c->dims);
    if (refusal) {
        *out = judgement_of(VERDICT_SKIP, "%s", refusal);
        return OK;
    }
    void *y = new_array(truth->count, dtype_size(kernel->out));
    if (!y)
        return FAIL(ERR_NOMEM, "no memory for the output of %s", kernel->name);
    const struct kernel_io io = {.dims = c->dims, .x = c->x, .y = y, .schedule_seed = 0};
    status_t st = OK;
    TRY(kernel_run(result, lk, &io));
    if (kernel_result_clean(result)) {
        TRY(judge(out, kernel, c, truth, y));
    } else {
        *out = (struct judgement){0};
        add_fault(out, result);
    }
done:
    free(y);
    return st;
}

status_t judge_kernel(struct judgement *out, struct kernel_result *result, struct loaded_kernel *lk,
                      const struct test_case *c, const struct truth *truth) {
    return judge_run(out, result, lk, c, truth, judge_output);
}
