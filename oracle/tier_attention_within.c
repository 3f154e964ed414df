/*
 * oracle/tier_attention_within.c - the common case of a check: all outputs of attention rows are
 * within.
 *
 * Every ingredient of attention_budget is replaced by something no larger; docs/oracle.md,
 * "Attention", goes through them one by one.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "oracle/attention_impl.h"
#include "oracle/tier_attention_impl.h"
#include "oracle/ulp.h"

#define KEEP (1 - 0x1p-18) /* pays for roundings: ours, and those of the budget's own computation */

/* In ulps: wider results, of logits in the millions, say too little of errors that are reported. */
#define FIGURES_WIDTH 0x1p-6

static double tensor_blocks(const struct accumulation *a, double n) {
    return a->block == 0 ? 0 : ceil(n / a->block);
}

void weight_terms_logits(struct weight_terms *w, const struct attention_row *row,
                         const struct numerics *nu) {
    const double n = (double)row->head_dim;
    const bool folded_scale = nu->exp == EXP_EX2_FOLDED && row->softcap == 0 && row->bias == NULL &&
                              row->alibi_slope == 0;
    w->qk = accumulation_error(&nu->qk, n, tensor_blocks(&nu->qk, n)) * KEEP;
    w->scale_rounds = !folded_scale;
    w->tanh = (nu->tanh == TANH_FAST ? TANH_FAST_ERROR : 5 * 0x1p-25) * KEEP;
}

void weight_terms_sums(struct weight_terms *w, const struct attention_row *row,
                       const struct numerics *nu, double visible) {
    const struct exp_facts exp = exp_facts_of(nu);
    struct division division = {0};
    (void)row;
    w->slope = exp.slope * KEEP;
    w->ulps = exp.ulps * 0x1p-23 * KEEP;
    w->maximum_rounds = nu->exp == EXP_EX2_FOLDED || nu->lazy_threshold > 0;
    w->sum_rounded = nu->sum_rounded;
    w->p_rounding = nu->p_type ? unit_roundoff(nu->p_type) * KEEP : 0;
    w->alone = accumulation_error(&nu->pv, visible, tensor_blocks(&nu->pv, visible)) * KEEP;
    if (nu->divide_first && division_of(&division, nu) == OK)
        w->alone += (division.rel + (division.nearest ? U32 : 0)) * KEEP;
}

/* Half a step of dt at x, or less. */
static double half_step(const struct dtype *dt, double x) {
    return x > dtype_min_normal(dt) ? rounding_error(dt, x * KEEP, false) : 0;
}

/* What the row's results have in common. */
struct row_limits {
    const struct numerics *nu;
    struct division division;
    double ours, denominator, eta; /* relative: of our own |o|, of a kernel's sum */
    double share;                  /* 1/S */
    double ratio;                  /* our own error of a numerator to a kernel's, at most */
};

static struct row_limits limits_of(const struct found *f, const struct numerics *nu, double gamma) {
    struct row_limits l = {.nu = nu, .share = 1 / f->sums.size};
    if (division_of(&l.division, nu) != OK) /* `covered` has asked */
        l.division = (struct division){0};
    l.ours = f->off / f->low * (1 + 0x1p-18) + 4 * U;
    l.denominator = f->gamma * KEEP;
    l.eta = f->sums.eta / f->low * (1 + 0x1p-18);
    l.ratio = (f->sums.worst + gamma) / f->alone * (1 + 0x1p-18);
    return l;
}

/* scale: op->scale's `plain`.  `earned` needs an upper bound of the budget: not from here. */
static void raise(struct tier_extremes *e, size_t at, double want, double err, double budget,
                  double half_width, double scale, const struct dtype *dt) {
    const double size = fmax(scale, fabs(want) - half_width), ulp = ulp_size(dt, size);
    e->within &= err <= budget && half_width <= FIGURES_WIDTH * ulp;
    e->ulps = fmax(e->ulps, err / ulp);
    if (size >= dtype_min_normal(dt))
        e->rel = fmax(e->rel, err / size);
    if (budget > 0 && err > e->rho * budget) {
        e->rho = err / budget;
        e->worst = at;
        e->budget = budget;
        e->want = (struct enclosure){want - half_width, want + half_width};
    }
}

/* kernel: sum of P_j (eta_j + alone_j) |v_j| from below, unnormalised. */
static void column_within(struct tier_extremes *e, const struct row_limits *l, size_t c,
                          double numerator, double kernel, double lost, double scale, double got) {
    const double o = numerator * l->share, size = fabs(o), spread = kernel * l->share;
    const double half_width = spread * l->ratio + size * l->ours + lost;
    const double low = fmax(0, size - half_width); /* of |real o| */
    double err = spread * KEEP + low * l->denominator - (size + half_width) * l->eta;
    err = fmax(err, 0);
    if (!l->nu->divide_first) {
        err += (low + err) * l->division.rel * KEEP;
        if (l->division.nearest)
            err += half_step(l->nu->acc, low + err);
    }
    if (l->nu->out != l->nu->acc)
        err += half_step(l->nu->out, low + err);
    raise(e, c, o, fabs(got - o) * (1 + 0x1p-50) + half_width, err * KEEP, half_width, scale,
          l->nu->out);
}

static void lse_within(struct tier_extremes *e, const struct row_limits *l, const struct found *f,
                       size_t at, double got) {
    const struct enclosure lse = attention_lse_of(f);
    const double want = lse.lo / 2 + lse.hi / 2, half_width = (lse.hi - lse.lo) * (1 + 0x1p-50);
    const double eta = f->sums.eta / (f->sums.size + f->off) + l->denominator;
    double err = eta * KEEP;
    err += half_step(l->nu->acc, fabs(want) + err - half_width);
    raise(e, at, want, fabs(got - want) * (1 + 0x1p-50) + half_width, err * KEEP, half_width, 1,
          l->nu->acc);
}

/* The largest |v| of each column among the keys that a row sees, as attention_scale has it. */
struct column_sizes {
    double *size;
    size_t first; /* keys 0 .. first-1 are in, and no others; SIZE_MAX: not such a row */
};

/* A row that sees keys 0 .. n-1: one follows from the last; false: it sees others. */
static bool sees_first(size_t *n, const struct attention_row *row) {
    *n = row->keys_used;
    if (row->causal) {
        const size_t end = row->query + row->keys_used + 1;
        *n = end > row->queries ? end - row->queries : 0;
        *n = *n < row->keys_used ? *n : row->keys_used;
    }
    return !row->windowed && !row->mask && !row->bias;
}

static void add_key(double *size, const struct attention_row *row, size_t j) {
    const double *v = row->v + j * row->v_stride;
    for (size_t c = 0; c < row->value_dim; c++)
        size[c] = fabs(v[c]) > size[c] ? fabs(v[c]) : size[c];
}

static void look_at_columns(struct column_sizes *s, const struct attention_row *row) {
    size_t n;
    const bool first = sees_first(&n, row);
    if (!first || s->first > n) {
        memset(s->size, 0, row->value_dim * sizeof *s->size);
        s->first = 0;
    }
    for (size_t j = s->first; j < n; j++)
        if (first || attention_visible(row, j))
            add_key(s->size, row, j);
    s->first = first ? n : SIZE_MAX;
}

/* An empty row: o is 0, lse -Inf. */
static bool empty_within(const double *o, const double *lse, size_t n) {
    for (size_t c = 0; c < n; c++)
        if (o[c] != 0)
            return false;
    return lse == NULL || *lse == -INFINITY;
}

/* Kernels that the proof covers. */
static bool covered(const struct attention_row *rows, const struct numerics *nu) {
    const double n = (double)rows->head_dim;
    struct division division;
    if (nu->acc->id != DT_F32 || nu->exp == EXP_NONE || nu->divide == DIVIDE_NONE ||
        check_types(nu) != OK || division_of(&division, nu) != OK || n == 0)
        return false;
    return accumulation_error(&nu->qk, n, tensor_blocks(&nu->qk, n)) >= 0x1p-24 &&
           accumulation_error(&nu->pv, 1, tensor_blocks(&nu->pv, 1)) >= 0x1p-24;
}

static void row_within(struct tier_extremes *e, const struct batch *b, size_t r,
                       const struct found *f, const double *scale, const double *o,
                       const double *lse, const struct numerics *nu) {
    *e = (struct tier_extremes){.within = f->taken};
    if (!f->taken)
        return;
    if (f->empty) {
        e->within = empty_within(o, lse, b->value_dim);
        return;
    }
    const struct row_limits l = limits_of(f, nu, batch_gamma(b));
    const double lost = (double)b->padded * b->largest * LOST_WEIGHT;
    for (size_t c = 0; c < b->value_dim; c++)
        column_within(e, &l, c, b->o[r * b->columns + c], b->size[r * b->columns + c], lost,
                      scale[c], o[c]);
    if (lse)
        lse_within(e, &l, f, b->value_dim, *lse);
}

status_t attention_within(struct tier_extremes *out, const struct attention_row *rows, size_t count,
                          const double *got_o, const double *got_lse,
                          const struct numerics *numerics) {
    struct batch b = {0};
    struct column_sizes sizes = {.first = SIZE_MAX};
    status_t st = OK;
    for (size_t r = 0; r < count; r++) {
        TRY(attention_check(&rows[r]));
        out[r] = (struct tier_extremes){.within = false};
    }
    if (count == 0 || !covered(rows, numerics))
        goto done;
    sizes.size = calloc(rows->value_dim + 1, sizeof *sizes.size);
    if (!sizes.size)
        TRY(FAIL(ERR_NOMEM, "attention: no memory for a head of %zu", rows->value_dim));
    TRY(batch_init(&b, rows, count));
    struct found found[GROUP];
    for (size_t first = 0; first < count; first += GROUP) {
        size_t n = count - first < GROUP ? count - first : GROUP;
        batch_group(found, &b, first, n, numerics);
        for (size_t r = 0; r < n; r++) {
            size_t row = first + r;
            if (rows[row].softcap > 0 && numerics->tanh == TANH_NONE)
                continue; /* attention_budget refuses it */
            look_at_columns(&sizes, &rows[row]);
            row_within(&out[row], &b, r, &found[r], sizes.size, got_o + row * b.value_dim,
                       got_lse ? got_lse + row : NULL, numerics);
        }
    }
    batch_clear(&b);
done:
    free(sizes.size);
    return st;
}

/* ---- budgets of a tier's enclosures ------------------------------------------------------------- */

/* slope: of a budget in its result, beside steps, which show at its ends. */
static void around(double *lo, double *hi, struct enclosure want, double slope) {
    double least = fmin(*lo, *hi), most = fmax(*lo, *hi);
    bool exact = want.lo == want.hi || enclosure_is_nan(want);
    double slack = exact ? 0 : slope * (want.hi - want.lo);
    *lo = exact ? least : fmax(0, (least - slack) * (1 - 0x1p-40));
    *hi = exact ? most : (most + slack) * (1 + 0x1p-40);
}

status_t attention_tier_budgets(double *o_lo, double *o_hi, double *lse_lo, double *lse_hi,
                                const struct attention_row *row, const struct enclosure *o,
                                const struct enclosure *lse, const struct numerics *numerics) {
    const size_t n = row->value_dim;
    struct enclosure *lo = calloc(2 * n + 1, sizeof *lo), *hi = lo + n;
    struct enclosure lse_ends[] = {enclosure_exact(lse->lo), enclosure_exact(lse->hi)};
    status_t st = OK;
    if (!lo)
        return FAIL(ERR_NOMEM, "attention: no memory for a head of %zu", n);
    for (size_t c = 0; c < n; c++) {
        lo[c] = enclosure_exact(o[c].lo);
        hi[c] = enclosure_exact(o[c].hi);
    }
    const struct attention_bound at[] = {{o_lo, lse_lo, lo, &lse_ends[0]},
                                         {o_hi, lse_hi, hi, &lse_ends[1]}};
    TRY(attention_budgets(at, 2, row, numerics));
    /* (sum p eta + the denominator's noise) / (1 - den), of which lse's budget is no less than den;
     * and the division's. */
    const double slope = 4 * fmax(*lse_lo, *lse_hi) + 0x1p-20;
    for (size_t c = 0; c < n; c++)
        around(&o_lo[c], &o_hi[c], o[c], slope);
    around(lse_lo, lse_hi, *lse, 0);
done:
    free(lo);
    return st;
}
