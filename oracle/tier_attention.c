/*
 * oracle/tier_attention.c - see tier_attention.h.
 *
 * k and v are laid out in panels once per call.  Then GROUP rows at a time: dot products, logits and
 * weights row by row, products with v, each beside the sum of magnitudes that bounds its error.
 */
#include "oracle/tier_attention.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "oracle/attention_impl.h"
#include "oracle/outward.h"
#include "oracle/simd_wide.h"
#include "oracle/tier_attention_impl.h"

#define KEYS_AT_ONCE ((size_t)256)
#define MAX_SIZE 0x1p200 /* of an entry: no product overflows */
#define MOST_WIDTH 16    /* of a panel, at any level */

static size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

static bool taken(double x) {
    return fabs(x) <= MAX_SIZE; /* not NaN */
}

/* The largest of n entries that are all taken; else a number that is not. */
static double largest_of(const double *x, size_t n) {
    double largest = 0;
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
        all &= taken(x[i]);
    }
    return all ? largest : INFINITY;
}

/*
 * Keys j .. j + n - 1 of one panel, side by side.  An odd one, with an entry that is not taken, leaves
 * its column of k's panel and row of v's 0.
 */
static void lay_out(struct batch *b, size_t j, size_t n) {
    const struct attention_row *row = b->rows;
    const size_t width = b->simd->width;
    const double *k[MOST_WIDTH], *v[MOST_WIDTH];
    size_t lane[MOST_WIDTH], kept = 0;
    for (size_t l = 0; l < n; l++) {
        k[kept] = row->k + (j + l) * row->k_stride;
        v[kept] = row->v + (j + l) * row->v_stride;
        lane[kept] = l;
        double of_v = largest_of(v[kept], b->value_dim);
        if (!taken(of_v) || !taken(largest_of(k[kept], b->dim))) {
            b->odd[b->odd_count++] = j + l;
            continue;
        }
        b->largest = of_v > b->largest ? of_v : b->largest;
        kept++;
    }
    double *to = b->k + j * b->dim;
    for (size_t i = 0; i < b->dim; i++, to += width)
        for (size_t l = 0; l < kept; l++)
            to[lane[l]] = k[l][i];
    for (size_t c = 0; c < b->value_dim; c += width) {
        const size_t columns = b->value_dim - c < width ? b->value_dim - c : width;
        for (size_t l = 0; l < kept; l++)
            memcpy(b->v + (c / width * b->padded + j + lane[l]) * width, v[l] + c,
                   columns * sizeof(double));
    }
}

status_t batch_init(struct batch *b, const struct attention_row *rows, size_t count) {
    *b = (struct batch){.simd = attention_simd(), .rows = rows, .count = count};
    assert(b->simd->width <= MOST_WIDTH);
    b->dim = rows->head_dim;
    b->value_dim = rows->value_dim;
    for (size_t r = 0; r < count; r++)
        b->keys = rows[r].keys_used > b->keys ? rows[r].keys_used : b->keys;
    b->padded = round_up(b->keys + 1, b->simd->width);
    b->columns = round_up(b->value_dim, b->simd->width);
    size_t a, c, d, e, total;
    if (!size_mul(&a, b->padded, b->dim) || !size_mul(&c, b->padded, b->columns) ||
        !size_mul(&d, GROUP, 2 * (b->dim + b->padded + 2 * b->columns)) ||
        !size_mul(&e, 2, b->padded) || a > SIZE_MAX / 64 || c > SIZE_MAX / 64 ||
        d > SIZE_MAX / 64 || !size_mul(&total, a + c + d + e, sizeof(double)) ||
        !(b->memory = calloc(total + 1, 1)) || !(b->odd = malloc((b->keys + 1) * sizeof *b->odd))) {
        free(b->memory);
        return FAIL(ERR_NOMEM, "attention: no memory for %zu keys", b->keys);
    }
    b->k = b->memory;
    b->v = b->k + a;
    b->q = b->v + c;
    b->q_size = b->q + GROUP * b->dim;
    b->z = b->q_size + GROUP * b->dim;
    b->error = b->z + GROUP * b->padded;
    b->o = b->error + GROUP * b->padded;
    b->size = b->o + GROUP * b->columns;
    b->o_part = b->size + GROUP * b->columns;
    b->size_part = b->o_part + GROUP * b->columns;
    b->own = b->size_part + GROUP * b->columns;
    for (size_t j = 0; j < b->keys; j += b->simd->width)
        lay_out(b, j, b->keys - j < b->simd->width ? b->keys - j : b->simd->width);
    return OK;
}

void batch_clear(struct batch *b) {
    free(b->memory);
    free(b->odd);
}

/* ---- one group ---------------------------------------------------------------------------------- */

static bool row_taken(const struct batch *b, const struct attention_row *row) {
    for (size_t i = 0; i < b->dim; i++)
        if (!taken(row->q[i]))
            return false;
    for (size_t i = 0; i < b->odd_count; i++)
        if (attention_visible(row, b->odd[i]))
            return false;
    return taken(row->scale) && taken(row->alibi_slope) && b->keys <= TIER_MAX_COLS &&
           (row->softcap == 0 || (taken(row->softcap) && row->softcap > 1 / MAX_SIZE)) &&
           (row->sink == NULL || taken(*row->sink));
}

static struct logit_terms logit_terms_of(const struct batch *b, const struct attention_row *row) {
    return (struct logit_terms){
        .scale = row->scale,
        .softcap = row->softcap,
        .alibi_slope = row->alibi_slope,
        .bias = row->bias,
        .keys = b->keys < row->keys ? b->keys : row->keys,
        .used = (double)row->keys_used,
        .at = (double)row->query + (double)row->keys_used - (double)row->queries,
        .left = (double)row->window_left,
        .right = (double)row->window_right,
        .sinks = (double)row->window_sinks,
        .causal = row->causal,
        .windowed = row->windowed,
        .mask = row->mask,
        .dot_error = ((double)b->dim + 2) * U * (1 + 0x1p-20),
    };
}

/* The dot products of rows first ... of the batch. */
static void multiply_keys(struct batch *b, size_t first, size_t rows) {
    const size_t width = b->simd->width;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < b->dim; i++) {
            double q = b->rows[first + r].q[i];
            b->q[r * b->dim + i] = taken(q) ? q : 0;
            b->q_size[r * b->dim + i] = taken(q) ? fabs(q) : 0;
        }
    for (size_t j = 0; j < b->padded; j += width)
        b->simd->products(b->z + j, b->error + j, b->padded, b->q, b->q_size, b->dim,
                          b->k + j * b->dim, rows, b->dim, true);
}

/* KEYS_AT_ONCE: part by part, so that no chain of roundings is long. */
static void multiply_values(struct batch *b, size_t rows) {
    const size_t width = b->simd->width, results = rows * b->columns;
    for (size_t j = 0; j < b->padded; j += KEYS_AT_ONCE) {
        size_t n = b->padded - j < KEYS_AT_ONCE ? b->padded - j : KEYS_AT_ONCE;
        for (size_t c = 0; c < b->columns; c += width)
            b->simd->products(b->o_part + c, b->size_part + c, b->columns, b->z + j, b->error + j,
                              b->padded, b->v + c * b->padded + j * width, rows, n, true);
        for (size_t i = 0; i < results; i++) {
            b->o[i] = (j == 0 ? 0 : b->o[i]) + b->o_part[i];
            b->size[i] = (j == 0 ? 0 : b->size[i]) + b->size_part[i];
        }
    }
}

double batch_gamma(const struct batch *b) {
    return ((double)(KEYS_AT_ONCE + b->padded / KEYS_AT_ONCE) + 8) * U;
}

/* Row r of the group: dot products to weights.  nu == NULL: errors of our own, else of a kernel's. */
static void weigh(struct found *f, struct batch *b, const struct attention_row *row, size_t r,
                  const struct numerics *nu) {
    double *z = b->z + r * b->padded, *error = b->error + r * b->padded;
    struct logit_terms t = logit_terms_of(b, row);
    struct weight_terms w = {0};
    *f = (struct found){.taken = row_taken(b, row)};
    if (nu)
        weight_terms_logits(&w, row, nu);
    struct logits_found logits =
        b->simd->logits(z, error, nu ? b->own : NULL, b->padded, &t, nu ? &w : NULL);
    f->top = logits.top;
    f->visible = logits.visible;
    if (row->sink) {
        z[b->keys] = *row->sink;
        error[b->keys] = b->own[b->keys] = 0;
        f->top = f->top < *row->sink ? *row->sink : f->top; /* keeps a NaN */
    }
    f->empty = f->top == -INFINITY;
    f->taken &= !isnan(f->top);
    if (!f->taken || f->empty) {
        memset(z, 0, b->padded * sizeof *z);
        memset(error, 0, b->padded * sizeof *error);
        return;
    }
    if (nu) {
        weight_terms_sums(&w, row, nu, (double)f->visible);
        f->gamma = grown(fmin(nu->sum_height, (double)f->visible - (row->sink == NULL)), U32);
        f->alone = w.alone;
    }
    f->sums = b->simd->weights(z, error, b->own, b->padded, f->top, batch_gamma(b), nu ? &w : NULL);
    f->off = (f->sums.own + f->sums.chain * U * f->sums.size) * (1 + 0x1p-18) +
             (double)b->padded * LOST_WEIGHT;
    f->low = f->sums.size - f->off;
    f->taken &= f->sums.worst <= 0x1p-24 && f->low > f->sums.size / 2;
}

/* lse of a row that is taken and not empty. */
struct enclosure attention_lse_of(const struct found *f) {
    mpfr_t lo, hi;
    mpfr_inits2(96, lo, hi, (mpfr_ptr)0);
    mpfr_set_d(lo, nextafter(f->low, 0), MPFR_RNDD);
    mpfr_set_d(hi, nextafter(f->sums.size + f->off, INFINITY), MPFR_RNDU);
    mpfr_log(lo, lo, MPFR_RNDD);
    mpfr_log(hi, hi, MPFR_RNDU);
    mpfr_add_d(lo, lo, f->top, MPFR_RNDD);
    mpfr_add_d(hi, hi, f->top, MPFR_RNDU);
    struct enclosure e = enclosure_from_mpfr(lo, hi);
    mpfr_clears(lo, hi, (mpfr_ptr)0);
    return (struct enclosure){nextafter(e.lo, -INFINITY), nextafter(e.hi, INFINITY)};
}

void batch_group(struct found *found, struct batch *b, size_t first, size_t n,
                 const struct numerics *nu) {
    multiply_keys(b, first, n);
    for (size_t r = 0; r < n; r++)
        weigh(&found[r], b, &b->rows[first + r], r, nu);
    multiply_values(b, n);
}

/* ---- enclosures --------------------------------------------------------------------------------- */

static void enclose_row(struct enclosure *o, struct enclosure *lse, const struct batch *b, size_t r,
                        const struct found *f) {
    if (f->empty) {
        for (size_t c = 0; c < b->value_dim; c++)
            o[c] = enclosure_exact(0);
        *lse = enclosure_exact(-INFINITY);
        return;
    }
    const double lost = (double)b->padded * b->largest * LOST_WEIGHT;
    for (size_t c = 0; c < b->value_dim; c++) {
        double q = b->o[r * b->columns + c] / f->sums.size;
        double off = (b->size[r * b->columns + c] + fabs(q) * f->off) / f->low * (1 + 0x1p-18) +
                     4 * U * fabs(q) + lost;
        o[c] = (struct enclosure){nextafter(add_down(q, -off), -INFINITY),
                                  nextafter(add_up(q, off), INFINITY)};
        if (off == 0 || f->visible == 0) /* no key but a sink */
            o[c] = enclosure_exact(0);
    }
    *lse = attention_lse_of(f);
}

static status_t enclose_f64(struct enclosure *o, struct enclosure *lse, bool *given,
                            const struct attention_row *rows, size_t count) {
    struct batch b;
    status_t st = batch_init(&b, rows, count);
    if (st != OK)
        return st;
    struct found found[GROUP];
    for (size_t first = 0; first < count; first += GROUP) {
        size_t n = count - first < GROUP ? count - first : GROUP;
        batch_group(found, &b, first, n, NULL);
        for (size_t r = 0; r < n; r++) {
            given[first + r] = found[r].taken;
            if (found[r].taken)
                enclose_row(o + (first + r) * b.value_dim, lse + first + r, &b, r, &found[r]);
        }
    }
    batch_clear(&b);
    return OK;
}

/* ---- double-double ----------------------------------------------------------------------------- */

/* o of a row whose weights are hi + lo, each off by eps. */
static void columns_dd(struct enclosure *o, struct batch *b, const double *hi, const double *lo,
                       const double *eps, const struct wide_weights *w, double off, double low) {
    const struct wide_attention_simd *simd = wide_attention_simd();
    const size_t width = b->simd->width;
    const double gamma = ((double)b->padded + 4) * 0x1p-104;
    const double lost = (double)b->padded * b->largest * LOST_WEIGHT;
    double *sum = b->o, *rest = b->o + b->columns; /* rows 0 and 1 of the group */
    for (size_t c = 0; c < b->columns; c += width) {
        double *half = b->size + c;
        simd->values(sum + c, rest + c, half, hi, lo, eps, b->v + c * b->padded, b->padded, gamma);
        for (size_t i = 0; i < width; i++) {
            double q = fabs(sum[c + i] / w->size.hi);
            half[i] = (half[i] + q * off) / low * (1 + 0x1p-18) + 0x1p-100 * q + lost;
        }
        size_t n = b->value_dim - c < width ? b->value_dim - c : width;
        simd->quotients(o + c, sum + c, rest + c, half, w->size, n);
    }
}

/* log of size +- off, plus top. */
static struct enclosure lse_dd(struct pair size, double off, double top) {
    mpfr_t lo, hi;
    mpfr_inits2(128, lo, hi, (mpfr_ptr)0);
    mpfr_set_d(lo, size.hi, MPFR_RNDN);
    mpfr_set(hi, lo, MPFR_RNDN);
    mpfr_add_d(lo, lo, add_down(size.lo, -off), MPFR_RNDD);
    mpfr_add_d(hi, hi, add_up(size.lo, off), MPFR_RNDU);
    mpfr_log(lo, lo, MPFR_RNDD);
    mpfr_log(hi, hi, MPFR_RNDU);
    mpfr_add_d(lo, lo, top, MPFR_RNDD);
    mpfr_add_d(hi, hi, top, MPFR_RNDU);
    struct enclosure e = enclosure_from_mpfr(lo, hi);
    mpfr_clears(lo, hi, (mpfr_ptr)0);
    return e;
}

/* One row; false: no answer. */
static bool enclose_dd(struct enclosure *o, struct enclosure *lse, struct batch *b,
                       const struct attention_row *row) {
    const struct wide_attention_simd *simd = wide_attention_simd();
    double *hi = b->z, *lo = b->z + b->padded, *eps = b->error; /* rows of the group */
    const double dim = (double)b->dim;
    if (!row_taken(b, row))
        return false;
    struct logit_terms t = logit_terms_of(b, row);
    t.dot_error = (dim + 4) * (dim + 4) * 0x1p-104;
    struct logits_found found = simd->logits(hi, lo, eps, row->q, b->k, b->padded, b->dim, &t);
    double top = found.top;
    if (row->sink) {
        hi[b->keys] = *row->sink;
        lo[b->keys] = eps[b->keys] = 0;
        top = top < *row->sink ? *row->sink : top;
    }
    if (isnan(top))
        return false;
    if (top == -INFINITY) {
        enclose_row(o, lse, b, 0, &(struct found){.taken = true, .empty = true});
        return true;
    }
    struct wide_weights w = simd->weights(hi, lo, eps, b->padded, top);
    double off = (w.own + ((double)b->padded + 16) * 0x1p-104 * w.size.hi) * (1 + 0x1p-18) +
                 (double)b->padded * LOST_WEIGHT;
    double low = w.size.hi - off;
    if (!(w.worst <= 0x1p-24 && low > w.size.hi / 2))
        return false;
    columns_dd(o, b, hi, lo, eps, &w, off, low);
    for (size_t c = 0; c < b->value_dim && found.visible == 0; c++) /* no key but a sink */
        o[c] = enclosure_exact(0);
    *lse = lse_dd(w.size, off, top);
    return true;
}

/* ---- the ladder --------------------------------------------------------------------------------- */

static status_t enclose_each_dd(struct enclosure *o, struct enclosure *lse, enum tier *tier,
                                const struct attention_row *rows, size_t count) {
    struct batch b;
    status_t st = batch_init(&b, rows, count);
    if (st != OK)
        return st;
    for (size_t r = 0; r < count; r++)
        if (tier[r] == TIER_DD && !enclose_dd(o + r * b.value_dim, lse + r, &b, &rows[r]))
            tier[r] = TIER_MPFR;
    batch_clear(&b);
    return OK;
}

static size_t asked(const enum tier *tier, size_t count, enum tier which) {
    size_t n = 0;
    for (size_t r = 0; r < count; r++)
        n += tier[r] == which;
    return n;
}

status_t attention_tier_enclose(struct enclosure *o, struct enclosure *lse, enum tier *tier,
                                const struct attention_row *rows, size_t count) {
    bool *given = calloc(count + 1, sizeof *given);
    status_t st = OK;
    if (!given)
        return FAIL(ERR_NOMEM, "attention: no memory for %zu rows", count);
    for (size_t r = 0; r < count; r++)
        TRY(attention_check(&rows[r]));
    if (asked(tier, count, TIER_F64) > 0)
        TRY(enclose_f64(o, lse, given, rows, count));
    for (size_t r = 0; r < count; r++)
        if (tier[r] == TIER_F64 && !given[r])
            tier[r] = TIER_DD;
    if (asked(tier, count, TIER_DD) > 0)
        TRY(enclose_each_dd(o, lse, tier, rows, count));
    for (size_t r = 0; r < count; r++)
        if (tier[r] == TIER_MPFR)
            TRY(attention_enclose(o + r * rows->value_dim, lse + r, &rows[r]));
done:
    free(given);
    return st;
}
