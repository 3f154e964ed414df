/*
 * oracle/attention.c - attention of one query row: exact dot products, one exponential per key.
 *
 * A logit is an interval (one point where nothing rounds).  All exponentials are taken relative to
 * one reference, an exact number at most one rounding below the largest logit, and it cancels in o.
 */
#include "oracle/attention.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "oracle/attention_impl.h"
#include "oracle/refine.h"

static size_t distance(size_t a, size_t b) {
    return a > b ? a - b : b - a;
}

bool attention_visible(const struct attention_row *row, size_t j) {
    if (j >= row->keys_used)
        return false;
    if ((row->mask != NULL && row->mask[j] == 0) ||
        (row->bias != NULL && row->bias[j] == -INFINITY))
        return false;
    /* at = query + keys_used - queries may be negative: compare both sides shifted by `queries` */
    size_t at = row->query + row->keys_used, key = j + row->queries;
    if (row->causal && key > at)
        return false;
    if (row->windowed && j >= row->window_sinks)
        return key <= at ? at - key <= row->window_left : key - at <= row->window_right;
    return true;
}

/* ---- dot products ---------------------------------------------------------------------------- */

/* A vector as integers times 2^unit, if they have at most 62 bits. */
struct integers {
    int64_t *m;
    long *units, unit;
    int bits; /* |m_i| < 2^bits; -1 if they do not fit, or an entry is not finite */
};

static void to_integers(struct integers *out, const double *x, size_t n) {
    long top = LONG_MIN;
    out->unit = LONG_MAX;
    out->bits = -1;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return;
        double_split(x[i], &out->m[i], &out->units[i]);
        if (x[i] == 0)
            continue;
        out->unit = out->units[i] < out->unit ? out->units[i] : out->unit;
        top = ilogb(x[i]) + 1 > top ? ilogb(x[i]) + 1 : top;
    }
    if (top == LONG_MIN) { /* all 0 */
        out->unit = 0;
        out->bits = 0;
        return;
    }
    if (top - out->unit > 62)
        return;
    out->bits = (int)(top - out->unit);
    for (size_t i = 0; i < n; i++)
        if (out->m[i] != 0)
            out->m[i] *= (int64_t)1 << (out->units[i] - out->unit);
}

static int log2_ceil(size_t n) {
    int k = 0;
    while (((size_t)1 << k) < n)
        k++;
    return k;
}

/* q and one k as integers: two arrays of each kind in one block. */
struct dot_space {
    struct integers q, k;
    void *memory;
};

static status_t dot_space_init(struct dot_space *s, const struct attention_row *row) {
    size_t n = row->head_dim;
    s->memory = calloc(2 * n + 1, sizeof(int64_t) + sizeof(long));
    if (s->memory == NULL)
        return FAIL(ERR_NOMEM, "attention: no memory for a head of %zu", n);
    s->q.m = s->memory;
    s->k.m = s->q.m + n;
    s->q.units = (long *)(s->k.m + n);
    s->k.units = s->q.units + n;
    to_integers(&s->q, row->q, n);
    return OK;
}

/* IEEE's answer where an entry is not finite: NaN or an infinity. */
static double special_dot(const double *q, const double *k, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(q[i]) || !isfinite(k[i]))
            sum += q[i] * k[i];
    return sum;
}

static bool all_finite(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* Outside the integers' range: exact products, one rounding of their sum. */
static void wide_dot(struct interval *out, const double *q, const double *k, size_t n) {
    mpfr_t sum, product;
    mpfr_init2(product, 106);
    mpfr_init2(sum, 4300); /* all products of doubles are multiples of 2^-2148 below 2^2048 */
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < n; i++) {
        mpfr_set_d(product, q[i], MPFR_RNDN);
        mpfr_mul_d(product, product, k[i], MPFR_RNDN);
        mpfr_add(sum, sum, product, MPFR_RNDN);
    }
    mpfr_set(out->lo, sum, MPFR_RNDD);
    mpfr_set(out->hi, sum, MPFR_RNDU);
    mpfr_clear(sum);
    mpfr_clear(product);
}

static void dot(struct interval *out, struct dot_space *s, const double *q, const double *k,
                size_t n) {
    to_integers(&s->k, k, n);
    if (s->q.bits < 0 || s->k.bits < 0 || s->q.bits + s->k.bits + log2_ceil(n) > 126) {
        if (all_finite(q, n) && all_finite(k, n))
            wide_dot(out, q, k, n);
        else
            interval_set_d(out, special_dot(q, k, n));
        return;
    }
    __int128 sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (__int128)s->q.m[i] * s->k.m[i];
    /* At most 127 bits and a sign, and the precision is at least 128: exact. */
    mpfr_set_si(out->lo, (long)(sum >> 64), MPFR_RNDN);
    mpfr_mul_2ui(out->lo, out->lo, 64, MPFR_RNDN);
    mpfr_add_ui(out->lo, out->lo, (unsigned long)sum, MPFR_RNDN);
    mpfr_mul_2si(out->lo, out->lo, s->q.unit + s->k.unit, MPFR_RNDN);
    mpfr_set(out->hi, out->lo, MPFR_RNDN);
}

/* ---- logits ---------------------------------------------------------------------------------- */

static void logit(struct interval *z, struct dot_space *s, const struct attention_row *row,
                  size_t j) {
    dot(z, s, row->q, row->k + j * row->k_stride, row->head_dim);
    interval_mul_d(z, row->scale);
    if (row->softcap > 0) { /* tanh(+-Inf) = +-1 */
        mpfr_div_d(z->lo, z->lo, row->softcap, MPFR_RNDD);
        mpfr_div_d(z->hi, z->hi, row->softcap, MPFR_RNDU);
        mpfr_tanh(z->lo, z->lo, MPFR_RNDD);
        mpfr_tanh(z->hi, z->hi, MPFR_RNDU);
        interval_mul_d(z, row->softcap);
    }
    if (row->bias != NULL)
        interval_add_d(z, row->bias[j]);
    if (row->alibi_slope != 0) {
        struct interval t;
        interval_init(&t, 128);
        interval_set_d(&t, row->alibi_slope);
        interval_mul_d(&t, -(double)distance(row->query + row->keys_used, j + row->queries));
        interval_add(z, &t);
        interval_clear(&t);
    }
}

/* What one attempt works on. */
struct attention {
    const struct attention_row *row;
    size_t *visible, count; /* indices of the visible keys */
    struct dot_space space;
    double *floor; /* value_dim + 1: how wide a result may be */
};

struct weights {
    struct interval *w; /* count: first the logits, then e^(logit - reference) */
    mpfr_t reference;
    struct interval sum;
    size_t made;
    bool nan, infinite; /* a logit is NaN, or +Inf */
    bool empty;         /* no logit above -Inf */
};

static void weights_clear(struct weights *w) {
    for (size_t i = 0; i < w->made; i++)
        interval_clear(&w->w[i]);
    interval_clear(&w->sum);
    mpfr_clear(w->reference);
    free(w->w);
}

/* [e^(lo - reference), e^(hi - reference)] by one exponential. */
static void exponential(struct interval *z, const mpfr_t reference) {
    mpfr_sub(z->lo, z->lo, reference, MPFR_RNDD);
    mpfr_sub(z->hi, z->hi, reference, MPFR_RNDU);
    bool point = mpfr_equal_p(z->lo, z->hi);
    if (point && (mpfr_zero_p(z->lo) || mpfr_inf_p(z->lo))) {
        mpfr_set_ui(z->lo, mpfr_zero_p(z->lo) ? 1 : 0, MPFR_RNDN); /* an infinity here is -Inf */
        mpfr_set(z->hi, z->lo, MPFR_RNDN);
        return;
    }
    mpfr_t width;
    mpfr_init2(width, 64);
    mpfr_sub(width, z->hi, z->lo, MPFR_RNDU);
    if (mpfr_cmp_ui(width, 1) > 0) {
        mpfr_exp(z->hi, z->hi, MPFR_RNDU);
        mpfr_exp(z->lo, z->lo, MPFR_RNDD);
    } else { /* e^w <= 1 + 2 w on [0, 1] */
        mpfr_exp(z->lo, z->lo, MPFR_RNDD);
        mpfr_set(z->hi, z->lo, MPFR_RNDN);
        mpfr_nextabove(z->hi);
        mpfr_mul_ui(width, width, 2, MPFR_RNDU);
        mpfr_fma(z->hi, z->hi, width, z->hi, MPFR_RNDU);
    }
    mpfr_clear(width);
}

static status_t weights_init(struct weights *w, struct attention *a, mpfr_prec_t prec) {
    const struct attention_row *row = a->row;
    *w = (struct weights){.empty = true};
    mpfr_init2(w->reference, prec);
    mpfr_set_inf(w->reference, -1);
    interval_init(&w->sum, prec);
    interval_set_d(&w->sum, 0);
    w->w = malloc((a->count + 1) * sizeof *w->w);
    if (w->w == NULL)
        return FAIL(ERR_NOMEM, "attention: no memory for %zu keys", a->count);
    for (; w->made < a->count; w->made++) {
        struct interval *z = &w->w[w->made];
        interval_init(z, prec);
        logit(z, &a->space, row, a->visible[w->made]);
        w->nan = w->nan || mpfr_nan_p(z->lo) || mpfr_nan_p(z->hi);
        w->infinite = w->infinite || (mpfr_inf_p(z->lo) && mpfr_sgn(z->lo) > 0);
        mpfr_max(w->reference, w->reference, z->lo, MPFR_RNDN); /* drops a NaN: flagged above */
    }
    w->empty = mpfr_inf_p(w->reference) && mpfr_sgn(w->reference) < 0;
    if (w->nan || w->infinite || (w->empty && row->sink == NULL))
        return OK;
    if (row->sink != NULL && mpfr_cmp_d(w->reference, *row->sink) < 0)
        mpfr_set_d(w->reference, *row->sink, MPFR_RNDN);
    for (size_t i = 0; i < w->made; i++) {
        exponential(&w->w[i], w->reference);
        interval_add(&w->sum, &w->w[i]);
    }
    if (row->sink != NULL) {
        struct interval z;
        interval_init(&z, prec);
        interval_set_d(&z, *row->sink);
        exponential(&z, w->reference);
        interval_add(&w->sum, &z);
        interval_clear(&z);
    }
    return OK;
}

/* ---- o and lse ------------------------------------------------------------------------------- */

/* numerator += w v: the end of w that makes it least below, and most above. */
static void add_product(struct interval *numerator, const struct interval *w, double v,
                        mpfr_t product) {
    mpfr_mul_d(product, v < 0 ? w->hi : w->lo, v, MPFR_RNDD);
    mpfr_add(numerator->lo, numerator->lo, product, MPFR_RNDD);
    mpfr_mul_d(product, v < 0 ? w->lo : w->hi, v, MPFR_RNDU);
    mpfr_add(numerator->hi, numerator->hi, product, MPFR_RNDU);
}

/* numerator / sum, sum > 0. */
static struct enclosure quotient(struct interval *numerator, const struct interval *sum) {
    bool negative_lo = mpfr_sgn(numerator->lo) < 0, negative_hi = mpfr_sgn(numerator->hi) < 0;
    mpfr_div(numerator->lo, numerator->lo, negative_lo ? sum->lo : sum->hi, MPFR_RNDD);
    mpfr_div(numerator->hi, numerator->hi, negative_hi ? sum->hi : sum->lo, MPFR_RNDU);
    return interval_enclosure(numerator);
}

/* Column c: its sum, or what a value that is not finite makes of it. */
static void combine(struct enclosure *out, struct attention *a, const struct weights *w, size_t c,
                    struct interval *numerator, mpfr_t product) {
    double special = 0, magnitude = 0;
    interval_set_d(numerator, 0);
    for (size_t i = 0; i < a->count; i++) {
        double v = a->row->v[a->visible[i] * a->row->v_stride + c];
        if (!isfinite(v)) {
            special += mpfr_zero_p(w->w[i].hi) ? NAN : v;
        } else if (v != 0) {
            add_product(numerator, &w->w[i], v, product);
            magnitude += mpfr_get_d(w->w[i].lo, MPFR_RNDD) * fabs(v);
        }
    }
    *out = special != 0 ? (struct enclosure){special, special} : quotient(numerator, &w->sum);
    a->floor[c] = 0x1p-81 * magnitude / mpfr_get_d(w->sum.hi, MPFR_RNDU);
}

static void fill(struct enclosure *out, size_t n, double value) {
    for (size_t i = 0; i < n; i++)
        out[i] = (struct enclosure){value, value};
}

/* out: o, then lse. */
static status_t attention_attempt(struct enclosure *out, const void *problem, mpfr_prec_t prec) {
    struct attention *a = *(struct attention *const *)problem;
    const size_t dim = a->row->value_dim;
    struct weights w;
    status_t st = weights_init(&w, a, prec);
    if (st != OK)
        goto done;
    if (w.nan || w.infinite) {
        fill(out, dim, NAN);
        fill(out + dim, 1, w.nan ? NAN : INFINITY);
    } else if (w.empty) {
        fill(out, dim, 0);
        fill(out + dim, 1, a->row->sink != NULL ? *a->row->sink : -INFINITY);
    } else {
        struct interval t;
        mpfr_t product;
        interval_init(&t, prec);
        mpfr_init2(product, prec);
        for (size_t c = 0; c < dim; c++)
            combine(&out[c], a, &w, c, &t, product);
        mpfr_log(t.lo, w.sum.lo, MPFR_RNDD);
        mpfr_log(t.hi, w.sum.hi, MPFR_RNDU);
        mpfr_add(t.lo, t.lo, w.reference, MPFR_RNDD);
        mpfr_add(t.hi, t.hi, w.reference, MPFR_RNDU);
        out[dim] = interval_enclosure(&t);
        mpfr_clear(product);
        interval_clear(&t);
    }
done:
    weights_clear(&w);
    return st;
}

status_t attention_check(const struct attention_row *row) {
    if (row->keys_used > row->keys || row->query >= row->queries)
        return FAIL(ERR_USAGE, "attention: %zu of %zu keys used, query %zu of %zu", row->keys_used,
                    row->keys, row->query, row->queries);
    if (!isfinite(row->scale) || !isfinite(row->alibi_slope) ||
        !(row->softcap >= 0 && isfinite(row->softcap)))
        return FAIL(ERR_USAGE,
                    "attention: scale %g, ALiBi slope %g, softcap %g: expected finite numbers",
                    row->scale, row->alibi_slope, row->softcap);
    if (row->sink != NULL && !isfinite(*row->sink))
        return FAIL(ERR_USAGE, "attention: the sink is %g, expected a finite number", *row->sink);
    return OK;
}

status_t attention_enclose(struct enclosure *o, struct enclosure *lse,
                           const struct attention_row *row) {
    struct attention a = {.row = row}, *problem = &a;
    struct enclosure *out = NULL;
    status_t st = attention_check(row);
    if (st != OK)
        return st;
    TRY(dot_space_init(&a.space, row));
    a.visible = malloc((row->keys + 1) * sizeof *a.visible);
    a.floor = calloc(row->value_dim + 1, sizeof *a.floor);
    out = calloc(row->value_dim + 1, sizeof *out);
    if (a.visible == NULL || a.floor == NULL || out == NULL)
        TRY(FAIL(ERR_NOMEM, "attention: no memory for %zu keys", row->keys));
    for (size_t j = 0; j < row->keys_used; j++)
        if (attention_visible(row, j))
            a.visible[a.count++] = j;
    TRY(refine(out, row->value_dim + 1, &problem, a.floor, attention_attempt, "attention"));
    for (size_t c = 0; c < row->value_dim; c++)
        o[c] = out[c];
    *lse = out[row->value_dim];
done:
    free(out);
    free(a.floor);
    free(a.visible);
    free(a.space.memory);
    return st;
}
