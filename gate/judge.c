/*
 * gate/judge.c - a whole output: pieces of it side by side, then the record, the trust, the audit.
 *
 * The pieces and what is made of them do not depend on the number of threads, nor does the outcome.
 */
#include "gate/judge.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/judge_impl.h"

#define PIECE_RESULTS ((size_t)16384) /* of a piece of work, about */
#define MOST_LOOKS ((size_t)16)       /* closer looks at a time, for the record and for trust */

/* A row that has passed at the common look alone; rho: no less than its largest. */
struct passed {
    size_t row;
    double rho;
};

/* Neighbouring rows, and what came of them. */
struct piece {
    struct judgement j;
    struct trust trust;
    struct passed *passed; /* what may still have to be said of them: owned */
    size_t count;
};

struct judging {
    const struct kernel *kernel;
    const struct test_case *c;
    struct truth *truth;
    const void *y;
    size_t part, per_piece; /* units: that share something, and of a piece, none in two parts */
    size_t piece_count;
    struct piece *pieces;
    struct judge *judges; /* by worker */
    size_t *audited, audited_count; /* rows that the audit picks */
    pthread_mutex_t lock;
    size_t done, total; /* pieces of work; under the lock */
    /* Closer looks under way. */
    const struct passed *looked_at;
    struct piece looks[MOST_LOOKS];
};

/* ---- pieces ----------------------------------------------------------------------------------- */

static size_t ceil_div(size_t a, size_t b) {
    return a / b + (a % b != 0);
}

static status_t judging_init(struct judging *all) {
    const struct truth *t = all->truth;
    const size_t rows = PIECE_RESULTS / (t->step ? t->step : 1) + 1;
    all->part = op_sharers(t->op, &all->c->dims);
    all->per_piece = units_together(t->op, &all->c->dims);
    if (all->part == 1)
        all->part = all->per_piece = rows;
    size_t parts = ceil_div(t->units, all->part), per_part = ceil_div(all->part, all->per_piece);
    all->piece_count = parts * per_part;
    for (size_t row = 0; t->audit.share > 0 && row < t->units; row++)
        all->audited_count += audit_picks(t, row);
    all->total = all->piece_count + all->audited_count;
    all->audited = new_array(all->audited_count, sizeof *all->audited);
    all->pieces = calloc(all->piece_count + 1, sizeof *all->pieces);
    unsigned workers = t->work.threads ? t->work.threads->count : 1;
    all->judges = calloc(workers, sizeof *all->judges);
    if (!all->audited || !all->pieces || !all->judges)
        return FAIL(ERR_NOMEM, "no memory to judge %zu rows", t->units);
    for (size_t row = 0, n = 0; n < all->audited_count; row++)
        if (audit_picks(t, row))
            all->audited[n++] = row;
    return OK;
}

static void judging_clear(struct judging *all) {
    unsigned workers = all->truth->work.threads ? all->truth->work.threads->count : 1;
    for (size_t i = 0; all->pieces && i < all->piece_count; i++)
        free(all->pieces[i].passed);
    for (unsigned i = 0; all->judges && i < workers; i++)
        judge_clear(&all->judges[i]);
    free(all->audited);
    free(all->pieces);
    free(all->judges);
    pthread_mutex_destroy(&all->lock);
}

/* Rows *first .. *first + n - 1; the last piece of a part, and of all, may have fewer. */
static size_t rows_of_piece(const struct judging *all, size_t piece, size_t *first) {
    const size_t per_part = ceil_div(all->part, all->per_piece);
    const size_t begin = piece / per_part * all->part, end = begin + all->part;
    *first = begin + piece % per_part * all->per_piece;
    size_t stop = end < all->truth->units ? end : all->truth->units;
    if (*first >= stop)
        return 0;
    return stop - *first < all->per_piece ? stop - *first : all->per_piece;
}

/* The worker's own scratch. */
static status_t judge_of(struct judge **out, struct judging *all, unsigned worker) {
    *out = &all->judges[worker];
    return (*out)->kernel ? OK : judge_init(*out, all->kernel, all->c, all->truth, all->y);
}

static void one_more_done(struct judging *all) {
    const struct work_options *work = &all->truth->work;
    pthread_mutex_lock(&all->lock);
    all->done++;
    if (work->progress)
        work->progress(work->context, all->done, all->total);
    pthread_mutex_unlock(&all->lock);
}

/* ---- the first look at everything ---------------------------------------------------------------- */

/* What a common look says of a row that is within; what it leaves to be said is in p->passed. */
static void take_look(struct piece *p, const struct judge *g, const struct tier_extremes *e,
                      size_t row) {
    struct judgement *j = &p->j;
    if (e->sharp) {
        if (j->verdict == VERDICT_PASS && (!j->worst.known || e->rho > j->max_rho))
            j->worst = (struct worst){.known = true,
                                      .row = row,
                                      .col = e->worst,
                                      .got = judge_got(g, row, e->worst),
                                      .want = e->want,
                                      .budget = e->budget};
        j->max_rho = max_keep(j->max_rho, e->rho);
    }
    j->max_ulp = max_keep(j->max_ulp, e->ulps);
    j->max_rel = max_keep(j->max_rel, e->rel);
    j->tally.decided[TIER_F64] += g->step;
    p->trust.earned |= e->earned;
    if (!e->sharp || !p->trust.earned)
        p->passed[p->count++] = (struct passed){row, e->sharp ? -1 : e->rho};
}

static status_t judge_rows(struct judge *g, struct piece *p, size_t first, size_t n) {
    size_t open = 0;
    status_t st = OK;
    judge_load(g, first, n);
    TRY(judge_look(g, first, n));
    for (size_t i = 0; i < n; i++)
        if (!g->looks[i].within) {
            g->open_rows[open] = first + i;
            g->open[open++] = i;
        }
    TRY(truth_rows(g->truth, &g->units, g->open, g->open_rows, open));
    for (size_t i = 0; i < n; i++) {
        if (g->looks[i].within)
            take_look(p, g, &g->looks[i], first + i);
        else
            TRY(judge_row(g, &p->j, &p->trust, first + i, i));
    }
done:
    return st;
}

static status_t judge_piece(void *context, unsigned worker, size_t item) {
    struct judging *all = context;
    struct piece *p = &all->pieces[item];
    struct judge *g;
    size_t first, n = rows_of_piece(all, item, &first);
    status_t st = OK;
    TRY(judge_of(&g, all, worker));
    p->j.verdict = VERDICT_PASS;
    p->passed = new_array(n, sizeof *p->passed);
    if (!p->passed)
        TRY(FAIL(ERR_NOMEM, "no memory to judge %zu rows", n));
    for (size_t row = first; row < first + n; row += g->together) {
        size_t left = first + n - row;
        TRY(judge_rows(g, p, row, left < g->together ? left : g->together));
    }
    one_more_done(all);
done:
    return st;
}

/* ---- closer looks at rows that have passed ------------------------------------------------------- */

static status_t look_closer(void *context, unsigned worker, size_t item) {
    struct judging *all = context;
    struct piece *p = &all->looks[item];
    const size_t row = all->looked_at[item].row, at = 0;
    struct judge *g;
    status_t st = OK;
    *p = (struct piece){.j = {.verdict = VERDICT_PASS}};
    TRY(judge_of(&g, all, worker));
    judge_load(g, row, 1);
    TRY(truth_rows(g->truth, &g->units, &at, &row, 1)); /* known, but for ops that share nothing */
    g->passed = true;
    st = judge_row(g, &p->j, &p->trust, row, 0);
    g->passed = false;
    TRY(st);
    if (p->j.verdict != VERDICT_PASS)
        TRY(FAIL(ERR_SELF,
                 "Assay contradicts itself on %s, row %zu: its common look says PASS, a closer one "
                 "%s (%s); this is a fault of Assay, not of the kernel",
                 all->kernel->name, row, verdict_name(p->j.verdict), p->j.reason));
done:
    return st;
}

/* Where rows share a part, those of each part side by side. */
static status_t know_together(struct judging *all, const struct passed *rows, size_t n) {
    bool taken[MOST_LOOKS] = {false};
    struct judge *g;
    status_t st = OK;
    TRY(judge_of(&g, all, 0));
    for (size_t i = 0; i < n && g->together > 1; i++) {
        size_t count = 0;
        for (size_t k = i; k < n && count < g->together; k++) {
            if (taken[k] || rows[k].row / all->part != rows[i].row / all->part)
                continue;
            taken[k] = true;
            op_unit_at(&g->units.unit[count], rows[k].row);
            g->open_rows[count] = rows[k].row;
            g->open[count] = count;
            count++;
        }
        TRY(truth_rows(all->truth, &g->units, g->open, g->open_rows, count));
    }
done:
    return st;
}

/* n <= MOST_LOOKS rows; their errors are in j already. */
static status_t look_at(struct judging *all, struct judgement *j, struct trust *trust,
                        const struct passed *rows, size_t n) {
    all->looked_at = rows;
    status_t st = know_together(all, rows, n);
    if (st == OK)
        st = parallel_for(all->truth->work.threads, n, look_closer, all);
    for (size_t i = 0; st == OK && i < n; i++) {
        struct judgement found = all->looks[i].j;
        found.max_ulp = found.max_rel = 0;
        found.tally = (struct tally){0};
        judgement_join(j, &found);
        trust_join(trust, &all->looks[i].trust);
    }
    return st;
}

static int by_rho(const void *a, const void *b) {
    const struct passed *x = a, *y = b;
    return x->rho != y->rho ? (x->rho < y->rho) - (x->rho > y->rho)
                            : (x->row > y->row) - (x->row < y->row);
}

/*
 * The largest rho of the case: of rows that have it from below only, those that may reach further
 * than the record are looked at, the most promising first.
 */
static status_t settle_record(struct judging *all, struct judgement *j, struct trust *trust,
                              struct passed *rows, size_t count) {
    status_t st = OK;
    qsort(rows, count, sizeof *rows, by_rho);
    for (size_t at = 0, n = 1; at < count && j->verdict == VERDICT_PASS; at += n) {
        size_t most = at == 0 ? 1 : 2 * n;
        most = most < MOST_LOOKS ? most : MOST_LOOKS;
        for (n = 0; n < most && at + n < count; n++)
            if (rows[at + n].rho < 0 || (j->worst.known && rows[at + n].rho <= j->max_rho))
                break;
        if (n == 0)
            break;
        TRY(look_at(all, j, trust, rows + at, n));
    }
done:
    return st;
}

/* Could any result have failed?  Rows are asked until one says yes. */
static status_t settle_trust(struct judging *all, struct judgement *j, struct trust *trust,
                             const struct passed *rows, size_t count) {
    status_t st = OK;
    for (size_t at = 0, n; at < count && j->verdict == VERDICT_PASS && !trust->earned; at += n) {
        n = count - at < MOST_LOOKS ? count - at : MOST_LOOKS;
        TRY(look_at(all, j, trust, rows + at, n));
    }
done:
    return st;
}

/* The pieces together, and what they left to be said of rows that have passed. */
static status_t settle(struct judging *all, struct judgement *j, struct trust *trust) {
    size_t count = 0;
    status_t st = OK;
    for (size_t i = 0; i < all->piece_count; i++) {
        judgement_join(j, &all->pieces[i].j);
        trust_join(trust, &all->pieces[i].trust);
        count += all->pieces[i].count;
    }
    struct passed *rows = new_array(count, sizeof *rows);
    if (!rows)
        return FAIL(ERR_NOMEM, "no memory to judge %zu rows", count);
    count = 0;
    for (size_t i = 0; i < all->piece_count; i++) {
        memcpy(rows + count, all->pieces[i].passed, all->pieces[i].count * sizeof *rows);
        count += all->pieces[i].count;
    }
    TRY(settle_record(all, j, trust, rows, count));
    TRY(settle_trust(all, j, trust, rows, count));
done:
    free(rows);
    return st;
}

/* ---- the audit -------------------------------------------------------------------------------- */

static status_t audit_item(void *context, unsigned worker, size_t item) {
    struct judging *all = context;
    const size_t row = all->audited[item];
    struct tally ignored = {0};
    struct judge *g;
    status_t st = OK;
    TRY(judge_of(&g, all, worker));
    if (all->truth->tier[row] != TIER_MPFR)
        TRY(audit_row(g, &ignored, row));
    one_more_done(all);
done:
    return st;
}

static status_t audit(struct judging *all, struct judgement *j) {
    const struct truth *t = all->truth;
    struct judge *g;
    status_t st = OK;
    TRY(parallel_for(t->work.threads, all->audited_count, audit_item, all));
    for (size_t i = 0; i < all->audited_count; i++)
        j->tally.audited += t->tier[all->audited[i]] != TIER_MPFR ? t->step : 0;
    if (t->audit.worst && j->worst.known && t->tier[j->worst.row] != TIER_MPFR &&
        !(t->audit.share > 0 && audit_picks(t, j->worst.row))) {
        TRY(judge_of(&g, all, 0));
        TRY(audit_row(g, &j->tally, j->worst.row));
    }
done:
    return st;
}

/* ---- all of it -------------------------------------------------------------------------------- */

status_t judge_output(struct judgement *out, const struct kernel *kernel, const struct test_case *c,
                      struct truth *truth, const void *y) {
    struct judging all = {.kernel = kernel,
                          .c = c,
                          .truth = truth,
                          .y = y,
                          .lock = PTHREAD_MUTEX_INITIALIZER};
    struct trust trust = {0};
    status_t st = OK;
    *out = (struct judgement){.verdict = VERDICT_PASS};
    TRY(judging_init(&all));
    TRY(parallel_for(truth->work.threads, all.piece_count, judge_piece, &all));
    TRY(settle(&all, out, &trust));
    TRY(audit(&all, out));
    if (out->verdict == VERDICT_PASS && !trusted(&trust)) {
        out->verdict = VERDICT_MISTRUSTED;
        snprintf(out->reason, sizeof out->reason,
                 truth->count ? "no element of the case could have failed: every budget is wider "
                                "than its result"
                              : "the case has no results to compare");
    }
done:
    judging_clear(&all);
    return st;
}
