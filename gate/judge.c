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

#include "base/rng.h"
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

/* Not cleared. */
static void *new_array(size_t count, size_t size) {
    size_t bytes;
    return size_mul(&bytes, count, size) ? malloc(bytes ? bytes : 1) : NULL;
}

static status_t count_results(struct truth *t) {
    t->step = results_per_row(t->op, t->c->dims);
    if (op_unit_count(&t->units, t->op, &t->c->dims) && size_mul(&t->count, t->units, t->step))
        return OK;
    char shape[SHAPE_SIZE];
    dims_shape(shape, sizeof shape, t->op->dims, &t->c->dims);
    return FAIL(ERR_USAGE, "shape %s is larger than any memory", shape);
}

status_t truth_init(struct truth *out, const struct op *op, const struct test_case *c,
                    enum empty_row empty_row) {
    *out = (struct truth){.op = op, .c = c, .empty_row = empty_row, .arch = DEFAULT_ARCH};
    const struct op_case oc = case_for_op(c, empty_row);
    status_t st = OK;
    TRY(count_results(out));
    TRY(op_unit_init(&out->unit, op, &oc));
    out->want = new_array(out->count, sizeof *out->want);
    out->tier = new_array(out->units, 1);
    if (!out->want || !out->tier)
        TRY(FAIL(ERR_NOMEM, "no memory for the truth of %zu results", out->count));
    memset(out->tier, TIER_COUNT, out->units);
done:
    if (st != OK)
        truth_clear(out);
    return st;
}

status_t truth_row(struct truth *t, size_t row) {
    if (t->tier[row] != TIER_COUNT)
        return OK;
    enum tier tier = t->first;
    op_unit_at(&t->unit, row);
    status_t st = tier_enclose(t->want + row * t->step, &tier, t->op, &t->unit.row);
    if (st == OK)
        t->tier[row] = (unsigned char)tier;
    return st;
}

status_t truth_fill(struct truth *t) {
    for (size_t row = 0; row < t->units; row++) {
        status_t st = truth_row(t, row);
        if (st != OK)
            return st;
    }
    return OK;
}

void truth_clear(struct truth *t) {
    free(t->want);
    free(t->tier);
    op_unit_clear(&t->unit);
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
                            struct truth *truth) {
    const struct op_case oc = case_for_op(c, kernel->empty_row);
    struct op_unit unit = {0};
    double *out = NULL;
    status_t st = OK;
    TRY(truth_fill(truth));
    TRY(op_unit_init(&unit, kernel->op, &oc));
    out = new_array(truth->count, sizeof *out);
    if (!out)
        TRY(FAIL(ERR_NOMEM, "no memory for %zu bounds", truth->count));
    for (size_t i = 0; i < truth->count; i++)
        out[i] = 0;
    for (size_t row = 0; row < truth->units && !sums_exactly(kernel, c); row++) {
        op_unit_at(&unit, row);
        TRY(bound(out + row * truth->step, &unit.row, truth->want + row * truth->step, numerics));
    }
    *bounds = out;
    out = NULL;
done:
    op_unit_clear(&unit);
    free(out);
    if (st == ERR_UNSUPPORTED) /* its numerics do not say enough */
        st = FAIL(st, "%s: %s: %s", kernel->manifest, kernel->name, status_message());
    return st;
}

status_t budgets_declared(double **bounds, const struct kernel *kernel,
                          const struct numerics *numerics, const struct test_case *c,
                          struct truth *truth) {
    return bounds_make(bounds, kernel->op->budget, kernel, numerics, c, truth);
}

status_t budgets_make(double **bounds, const struct kernel *kernel, const struct test_case *c,
                      struct truth *truth) {
    struct numerics numerics;
    status_t st = kernel_numerics(&numerics, kernel, c->dims);
    return st != OK ? st : budgets_declared(bounds, kernel, &numerics, c, truth);
}

status_t spreads_make(double **bounds, const struct kernel *kernel, const struct test_case *c,
                      struct truth *truth) {
    struct numerics numerics;
    status_t st = kernel_numerics(&numerics, kernel, c->dims);
    return st != OK ? st : bounds_make(bounds, kernel->op->spread, kernel, &numerics, c, truth);
}

/* ---- one element ----------------------------------------------------------------------------- */

enum state { WITHIN, UNCLAIMED, BEYOND, UNDECIDED, WRONG_CLASS, WRONG_PLACE, NEVER_WRITTEN };

struct element {
    enum state state;
    double rho;
    struct ulp_error error;
};

static uint32_t poison_of(const struct dtype *dt) {
    return dt->bits == 32 ? UINT32_MAX : (UINT32_C(1) << dt->bits) - 1;
}

/* An interval: of what the budget may be for an enclosure within this one. */
struct budget {
    double lo, hi;
};

/*
 * An enclosure across the overflow threshold, or one too wide to say how many ulps: the class or the
 * figures may depend on where in it the result lies.
 */
static bool too_loose(const struct dtype *dt, struct enclosure want) {
    if (want.lo == want.hi || enclosure_is_nan(want))
        return false;
    double outer = fmax(fabs(want.lo), fabs(want.hi)), inner = fmin(fabs(want.lo), fabs(want.hi));
    if (want.lo < 0 && want.hi > 0)
        inner = 0;
    return !(outer < dtype_max(dt)) || !(want.hi - want.lo <= 0x1p-20 * ulp_size(dt, inner));
}

/* final: there is no tighter enclosure. */
static struct element compare(const struct dtype *dt, uint32_t got, struct enclosure want,
                              struct budget budget, bool never_written, bool final) {
    struct element e = {.state = WITHIN, .error = ulp_error(dt, got, want)};
    if (never_written) {
        e.state = NEVER_WRITTEN;
        e.rho = INFINITY;
    } else if (budget.lo == INFINITY) {
        e.state =
            UNCLAIMED; /* a correct kernel may overflow on the way: any class may come of it */
    } else if (!final && (!(budget.hi <= budget.lo * (1 + 0x1p-30)) || too_loose(dt, want))) {
        e.state = UNDECIDED; /* the budget steps within the enclosure, or the ulp may */
    } else if (e.error.outcome == ULP_CLASS_MISMATCH) {
        e.state = WRONG_CLASS;
        e.rho = INFINITY;
    } else if (e.error.outcome != ULP_CLASS_MATCH) {
        if (!(e.error.abs_lo <= budget.hi))
            e.state = BEYOND;
        else if (!(e.error.abs_hi <= budget.lo))
            e.state = UNDECIDED;
        e.rho = e.error.abs_hi == 0 ? 0 : e.error.abs_hi / budget.lo;
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
    if (want.lo <= 0 && want.hi >= 0) /* which only its tier keeps from being exactly 0 */
        size = row_scale;
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

void worst_place(char *out, size_t size, const struct op *op, const struct worst *w) {
    const char *name = op_output_count(op) > 1 ? op->outputs[w->output].name : "";
    if (w->per_row)
        snprintf(out, size, "row %zu", w->row);
    else
        snprintf(out, size, "%s%selement [%zu][%zu]", name, *name ? ", " : "", w->row, w->col);
}

static void explain(struct judgement *j, const struct op *op, const struct tensor_type *type,
                    const struct element *e) {
    char where[64];
    worst_place(where, sizeof where, op, &j->worst);
    const struct dtype *dt = type->dtype;
    const char *got = dt ? class_words(dtype_to_double(dt, j->worst.got)) : "";
    switch (e->state) {
    case NEVER_WRITTEN:
        snprintf(j->reason, sizeof j->reason, "%s was never written: it holds the poison 0x%0*x",
                 where, (int)type->size * 2, (unsigned)j->worst.got);
        break;
    case WRONG_CLASS:
        snprintf(j->reason, sizeof j->reason, "%s is %s where %s is due", where, got,
                 class_words(enclosure_is_nan(j->worst.want) ? (double)NAN : j->worst.want.lo));
        break;
    case WRONG_PLACE:
        snprintf(j->reason, sizeof j->reason, "%s is %d, which cannot stand there", where,
                 (int)j->worst.got);
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

static void account(struct judgement *j, const struct op *op, const struct tensor_type *type,
                    const struct element *e, struct worst here, double scale) {
    bool compared = e->state == WITHIN || e->state == UNDECIDED || e->state == BEYOND;
    if (compared && type->kind == TENSOR_REAL)
        account_plain(j, type->dtype, &e->error, here.want, scale);
    enum verdict v = state_verdict(e->state);
    bool worse = !j->worst.known || v > j->verdict || (v == j->verdict && e->rho > j->max_rho);
    if (worse) {
        j->worst = here;
        explain(j, op, type, e);
    }
    j->verdict = verdict_worse(j->verdict, v);
    j->max_rho = max_keep(j->max_rho, e->rho);
}

/* Does an input itself hold the poison pattern?  Then finding it in the output proves nothing. */
static bool holds_poison(const struct test_case *c) {
    for (size_t k = 0; k < OP_MAX_INPUTS; k++) {
        const struct tensor *t = &c->in[k];
        const struct dtype *dt = t->type ? t->type->dtype : NULL;
        for (size_t i = 0; dt && i < t->count; i++)
            if (dtype_load(dt, t->data, i) == poison_of(dt))
                return true;
    }
    return false;
}

/* ---- the ladder, row by row ------------------------------------------------------------------- */

/* A judgement under way, and scratch for one row of it. */
struct judge {
    const struct kernel *kernel;
    const struct test_case *c;
    struct truth *truth;
    struct tensor_block y;
    struct numerics numerics;
    size_t step; /* results per unit */
    bool exact;  /* budgets are 0 throughout */
    bool poison_known, poison_is_news;
    struct op_unit unit;    /* the one being judged */
    double *got, *lo, *hi;  /* step: values, budgets */
    struct enclosure *want; /* step */
    struct result_scale *scale;
    struct element *elements, *again;
};

static status_t judge_init(struct judge *g, const struct kernel *kernel, const struct test_case *c,
                           struct truth *truth, const void *y) {
    const struct op_case oc = case_for_op(c, kernel->empty_row);
    status_t st = OK;
    *g = (struct judge){.kernel = kernel,
                        .c = c,
                        .truth = truth,
                        .step = truth->step,
                        .exact = sums_exactly(kernel, c)};
    TRY(kernel_outputs(&g->y, kernel, c->dims, (void *)y)); /* only read */
    TRY(kernel_numerics(&g->numerics, kernel, c->dims));
    numerics_target(&g->numerics, truth->arch);
    TRY(op_unit_init(&g->unit, kernel->op, &oc));
    g->got = new_array(g->step, sizeof *g->got);
    g->lo = new_array(g->step, sizeof *g->lo);
    g->hi = new_array(g->step, sizeof *g->hi);
    g->want = new_array(g->step, sizeof *g->want);
    g->scale = new_array(g->step, sizeof *g->scale);
    g->elements = new_array(g->step, sizeof *g->elements);
    g->again = new_array(g->step, sizeof *g->again);
    if (!g->got || !g->lo || !g->hi || !g->want || !g->scale || !g->elements || !g->again)
        TRY(FAIL(ERR_NOMEM, "no memory to judge %zu results at a time", g->step));
done:
    return st;
}

static void judge_clear(struct judge *g) {
    op_unit_clear(&g->unit);
    free(g->got);
    free(g->lo);
    free(g->hi);
    free(g->want);
    free(g->scale);
    free(g->elements);
    free(g->again);
}

/* The output that result `col` of a unit stands in, and its format. */
static const struct tensor *output_of(const struct judge *g, size_t row, size_t col,
                                      size_t *element) {
    const struct op_place at = op_place_of(g->kernel->op, &g->c->dims, row, col);
    *element = at.element;
    return &g->y.tensors[at.output];
}

/* Its type; NULL: the kernel does without this output. */
static const struct tensor_type *got_type(const struct judge *g, size_t col) {
    size_t element;
    return output_of(g, 0, col, &element)->type;
}

static uint32_t got_bits(const struct judge *g, size_t row, size_t col) {
    size_t element;
    const struct tensor *t = output_of(g, row, col, &element);
    if (t->type->kind != TENSOR_REAL)
        return (uint32_t)(int64_t)tensor_get(t, element);
    return dtype_load(t->type->dtype, t->data, element);
}

/* The input is searched only once some output looks like poison. */
static bool never_written(struct judge *g, const struct dtype *dt, uint32_t bits) {
    if (bits != poison_of(dt))
        return false;
    if (!g->poison_known)
        g->poison_is_news = !holds_poison(g->c);
    g->poison_known = true;
    return g->poison_is_news;
}

static status_t row_budgets(struct judge *g, const struct oracle_row *row, enum tier tier) {
    const struct op *op = g->kernel->op;
    status_t st = OK;
    if (g->exact) {
        memset(g->lo, 0, g->step * sizeof *g->lo);
        memset(g->hi, 0, g->step * sizeof *g->hi);
        return OK;
    }
    if (tier < TIER_MPFR) {
        st = tier_budgets(g->lo, g->hi, op, row, g->want, &g->numerics);
    } else {
        st = op->budget(g->lo, row, g->want, &g->numerics);
        memcpy(g->hi, g->lo, g->step * sizeof *g->lo);
    }
    if (st == ERR_UNSUPPORTED) /* its numerics do not say enough */
        st = FAIL(st, "%s: %s: %s", g->kernel->manifest, g->kernel->name, status_message());
    return st;
}

/*
 * Every element of a row compared, with the enclosures g->want of this tier; as long as one is
 * undecided, all are again with those of the next tier.  g->want and g->lo are the last ones used.
 */
static status_t climb(struct judge *g, struct element *elements, struct tally *tally,
                      const struct oracle_row *x, size_t row, enum tier tier) {
    size_t decided = 0;
    status_t st = OK;
    for (;;) {
        bool final = tier == TIER_MPFR;
        size_t open = 0;
        TRY(row_budgets(g, x, tier));
        for (size_t col = 0; col < g->step; col++) {
            const struct tensor_type *type = got_type(g, col);
            if (!type || type->kind != TENSOR_REAL) { /* not there, or see judge_whole */
                elements[col] = (struct element){.state = WITHIN};
                continue;
            }
            const struct dtype *dt = type->dtype;
            uint32_t bits = got_bits(g, row, col);
            elements[col] = compare(dt, bits, g->want[col], (struct budget){g->lo[col], g->hi[col]},
                                    never_written(g, dt, bits), final);
            open += elements[col].state == UNDECIDED;
        }
        size_t now = g->step - open;
        tally->decided[tier] += now > decided ? now - decided : 0;
        decided = now > decided ? now : decided;
        if (open == 0 || final)
            break;
        tier++;
        TRY(tier_enclose(g->want, &tier, g->kernel->op, x));
    }
done:
    return st;
}

/* Outputs of whole numbers are right or wrong, all of a unit at once. */
static status_t judge_whole(struct judge *g, struct element *elements, const struct oracle_row *x,
                            size_t row) {
    size_t n = 0, wrong = 0, first = 0;
    status_t st = OK;
    if (!g->kernel->op->judge_whole)
        return OK;
    size_t *got = new_array(g->step, sizeof *got);
    if (!got)
        return FAIL(ERR_NOMEM, "no memory to judge %zu results at a time", g->step);
    for (size_t col = 0; col < g->step; col++) {
        size_t element;
        const struct tensor *t = output_of(g, row, col, &element);
        if (!t->type || t->type->kind == TENSOR_REAL)
            continue;
        first = n ? first : col; /* they follow one another */
        double value = tensor_get(t, element);
        got[n++] = value < 0 ? SIZE_MAX : (size_t)value;
    }
    st = g->kernel->op->judge_whole(&wrong, x, got, &g->numerics);
    if (st == OK && wrong < n)
        elements[first + wrong] = (struct element){.state = WRONG_PLACE, .rho = INFINITY};
    free(got);
    return st;
}

/* ---- the audit -------------------------------------------------------------------------------- */

static bool picked(const struct audit *audit, size_t row) {
    struct rng rng = rng_from_seed(audit->seed ^ (row + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return rng_unit(&rng) < audit->share;
}

/* Do the tiers and MPFR alone agree on every element of the row, and do their enclosures? */
static status_t audit_row(struct judge *g, struct tally *tally, size_t row) {
    const struct oracle_row *x = &g->unit.row;
    const struct enclosure *first = g->truth->want + row * g->step;
    struct tally ignored = {0};
    char where[64];
    status_t st = OK;
    TRY(truth_row(g->truth, row));
    op_unit_at(&g->unit, row);
    memcpy(g->want, first, g->step * sizeof *first);
    TRY(climb(g, g->elements, &ignored, x, row, (enum tier)g->truth->tier[row]));
    TRY(g->kernel->op->enclose(g->want, x));
    TRY(climb(g, g->again, &ignored, x, row, TIER_MPFR));
    tally->audited += g->step;
    for (size_t col = 0; col < g->step; col++) {
        const struct worst at = {
            .per_row = g->kernel->op->result == OP_PER_ROW, .row = row, .col = col};
        struct enclosure slow = g->want[col];
        worst_place(where, sizeof where, g->kernel->op, &at);
        if (g->elements[col].state != g->again[col].state)
            TRY(FAIL(ERR_SELF,
                     "Assay contradicts itself on %s, %s: its tiers say %s, MPFR alone says %s; "
                     "this is a fault of Assay, not of the kernel",
                     g->kernel->name, where, verdict_name(state_verdict(g->elements[col].state)),
                     verdict_name(state_verdict(g->again[col].state))));
        if (!enclosure_is_nan(slow) && !(first[col].lo <= slow.lo && slow.hi <= first[col].hi))
            TRY(FAIL(ERR_SELF,
                     "Assay contradicts itself on %s, %s: tier %s has [%a, %a], MPFR [%a, %a]; "
                     "this is a fault of Assay, not of the kernel",
                     g->kernel->name, where, tier_name((enum tier)g->truth->tier[row]),
                     first[col].lo, first[col].hi, slow.lo, slow.hi));
    }
done:
    return st;
}

static status_t audit(struct judge *g, struct judgement *j) {
    const struct audit *a = &g->truth->audit;
    status_t st = OK;
    for (size_t row = 0; a->share > 0 && row < g->truth->units; row++)
        if (picked(a, row) && g->truth->tier[row] != TIER_MPFR)
            TRY(audit_row(g, &j->tally, row));
    if (a->worst && j->worst.known && g->truth->tier[j->worst.row] != TIER_MPFR &&
        !(a->share > 0 && picked(a, j->worst.row)))
        TRY(audit_row(g, &j->tally, j->worst.row));
done:
    return st;
}

/* ---- one row ---------------------------------------------------------------------------------- */

/*
 * The common case: the whole row is within for certain.  What a lower bound on budgets cannot say, a
 * closer look must: whether the case is to be trusted, and an online kernel's largest rho.
 */
static status_t judge_quickly(bool *done, struct judge *g, struct judgement *j, struct trust *trust,
                              const struct oracle_row *x, size_t row) {
    unsigned char tier = g->truth->tier[row];
    *done = false;
    if (g->exact || !op_is_matrix(g->kernel->op) || g->truth->first != TIER_F64 ||
        (tier != TIER_F64 && tier != TIER_COUNT))
        return OK;
    dtype_row(g->got, g->kernel->out, g->y.tensors[0].data, row * g->step, g->step);
    struct tier_extremes e;
    status_t st = tier_within(&e, g->kernel->op, x, g->got, &g->numerics);
    if (st != OK || !e.within)
        return st;
    bool record = !j->worst.known || e.rho > j->max_rho;
    if (!(trust->earned || e.earned) || (record && !e.sharp))
        return OK;
    if (record && j->verdict == VERDICT_PASS)
        j->worst = (struct worst){.known = true,
                                  .row = row,
                                  .col = e.worst,
                                  .got = got_bits(g, row, e.worst),
                                  .want = e.want,
                                  .budget = e.budget};
    j->max_rho = max_keep(j->max_rho, e.rho);
    j->max_ulp = max_keep(j->max_ulp, e.ulps);
    j->max_rel = max_keep(j->max_rel, e.rel);
    j->tally.decided[TIER_F64] += g->step;
    trust->earned = true;
    *done = true;
    return OK;
}

/* One row of y: every element compared, the worst kept. */
static status_t judge_row(struct judge *g, struct judgement *j, struct trust *trust, size_t row) {
    const struct oracle_row *x = &g->unit.row;
    const struct op *op = g->kernel->op;
    bool done;
    status_t st = OK;
    op_unit_at(&g->unit, row);
    TRY(judge_quickly(&done, g, j, trust, x, row));
    if (done)
        return OK;
    TRY(truth_row(g->truth, row));
    memcpy(g->want, g->truth->want + row * g->step, g->step * sizeof *g->want);
    TRY(climb(g, g->elements, &j->tally, x, row, (enum tier)g->truth->tier[row]));
    TRY(judge_whole(g, g->elements, x, row));
    memset(g->scale, 0, g->step * sizeof *g->scale);
    if (op->scale)
        op->scale(g->scale, x);
    for (size_t col = 0; col < g->step; col++) {
        const struct tensor_type *type = got_type(g, col);
        if (!type)
            continue;
        const struct worst here = {
            .known = true,
            .per_row = op->result == OP_PER_ROW,
            .output = op_place_of(op, &g->c->dims, row, col).output,
            .row = row,
            .col = col,
            .got = got_bits(g, row, col),
            .want = g->want[col],
            .budget = g->lo[col],
        };
        account(j, op, type, &g->elements[col], here, g->scale[col].plain);
        if (type->kind == TENSOR_REAL)
            trust_add(trust, here.want, here.budget, g->scale[col].term);
    }
done:
    return st;
}

status_t judge_output(struct judgement *out, const struct kernel *kernel, const struct test_case *c,
                      struct truth *truth, const void *y) {
    *out = (struct judgement){.verdict = VERDICT_PASS};
    struct trust trust = {0};
    struct judge g;
    status_t st = OK;
    TRY(judge_init(&g, kernel, c, truth, y));
    for (size_t row = 0; row < truth->units; row++)
        TRY(judge_row(&g, out, &trust, row));
    TRY(audit(&g, out));
    if (out->verdict == VERDICT_PASS && !trusted(&trust)) {
        out->verdict = VERDICT_MISTRUSTED;
        snprintf(out->reason, sizeof out->reason,
                 truth->count ? "no element of the case could have failed: every budget is wider "
                                "than its result"
                              : "the case has no results to compare");
    }
done:
    judge_clear(&g);
    return st;
}

void tally_add(struct tally *to, const struct tally *from) {
    for (int tier = 0; tier < TIER_COUNT; tier++)
        to->decided[tier] += from->decided[tier];
    to->audited += from->audited;
}

static void add_fault(struct judgement *j, const struct kernel_result *result) {
    const struct dev_fault *fault = kernel_result_fault(result);
    j->verdict = VERDICT_FAIL;
    j->max_rho = INFINITY; /* no results, however good, make up for it */
    snprintf(j->reason, sizeof j->reason, "%s",
             fault ? fault->text : "a launch did not complete, without a fault on record");
}

status_t judge_run(struct judgement *out, struct kernel_result *result, struct loaded_kernel *lk,
                   const struct test_case *c, struct truth *truth, judge_fn *judge) {
    const struct kernel *kernel = loaded_kernel_of(lk);
    *result = (struct kernel_result){0};
    const char *refusal = kernel_refuses(kernel, c->dims);
    if (refusal) {
        *out = judgement_of(VERDICT_SKIP, "%s", refusal);
        return OK;
    }
    struct tensor_block layout;
    void *y = NULL;
    status_t st = OK;
    TRY(kernel_outputs(&layout, kernel, c->dims, NULL));
    y = calloc(layout.bytes ? layout.bytes : 1, 1);
    if (!y)
        TRY(FAIL(ERR_NOMEM, "no memory for the output of %s", kernel->name));
    const struct kernel_io io = {.dims = c->dims, .x = c->x, .y = y, .schedule_seed = 0};
    truth->arch = kernel_arch(lk);
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
                      const struct test_case *c, struct truth *truth) {
    return judge_run(out, result, lk, c, truth, judge_output);
}
