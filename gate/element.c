/*
 * gate/element.c - one element of an output: compared, put into words, and what a judgement keeps of it.
 *
 * Checkers fail in known ways (docs/cases.md, "What the judge is tested with"): a NaN that compares
 * false and passes, a maximum that drops NaN, a NaN in the reference taken for a wildcard, a
 * tolerance that accepts all zeros.  Each of them has a test in tests/gate/test_judge.c.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gate/judge_impl.h"

struct judgement judgement_of(enum verdict verdict, const char *format, ...) {
    struct judgement j = {.verdict = verdict};
    va_list args;
    va_start(args, format);
    vsnprintf(j.reason, sizeof j.reason, format, args);
    va_end(args);
    return j;
}

/* ---- one element ----------------------------------------------------------------------------- */

uint32_t poison_of(const struct dtype *dt) {
    return dt->bits == 32 ? UINT32_MAX : (UINT32_C(1) << dt->bits) - 1;
}

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

struct element compare(const struct dtype *dt, uint32_t got, struct enclosure want,
                       struct budget budget, bool never_written, enum looseness looseness) {
    struct element e = {.state = WITHIN, .error = ulp_error(dt, got, want)};
    if (never_written) {
        e.state = NEVER_WRITTEN;
        e.rho = INFINITY;
    } else if (budget.lo == INFINITY) {
        e.state =
            UNCLAIMED; /* a correct kernel may overflow on the way: any class may come of it */
    } else if ((looseness <= LOOSE_IF_STEPS && !(budget.hi <= budget.lo * (1 + 0x1p-30))) ||
               (looseness <= LOOSE_IF_WIDE && too_loose(dt, want))) {
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

enum verdict state_verdict(enum state s) {
    return s == WITHIN || s == UNCLAIMED ? VERDICT_PASS
           : s == UNDECIDED              ? VERDICT_UNSURE
                                         : VERDICT_FAIL;
}

void trust_add(struct trust *t, struct enclosure want, double budget, double row_scale) {
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

bool trusted(const struct trust *t) {
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

/* ---- what a judgement keeps ------------------------------------------------------------------ */

double max_keep(double a, double b) {
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

void account(struct judgement *j, const struct op *op, const struct tensor_type *type,
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

void trust_join(struct trust *t, const struct trust *more) {
    t->earned |= more->earned;
    t->other_than_zero |= more->other_than_zero;
    t->zero_earned |= more->zero_earned;
}

void tally_add(struct tally *to, const struct tally *from) {
    for (int tier = 0; tier < TIER_COUNT; tier++)
        to->decided[tier] += from->decided[tier];
    to->audited += from->audited;
}

void judgement_join(struct judgement *j, const struct judgement *more) {
    bool worse = more->worst.known &&
                 (!j->worst.known || more->verdict > j->verdict ||
                  (more->verdict == j->verdict && more->max_rho > j->max_rho));
    if (worse) {
        j->worst = more->worst;
        memcpy(j->reason, more->reason, sizeof j->reason);
    }
    j->verdict = verdict_worse(j->verdict, more->verdict);
    j->max_rho = max_keep(j->max_rho, more->max_rho);
    j->max_ulp = max_keep(j->max_ulp, more->max_ulp);
    j->max_rel = max_keep(j->max_rel, more->max_rel);
    tally_add(&j->tally, &more->tally);
}
