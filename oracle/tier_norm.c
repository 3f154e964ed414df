/* oracle/tier_norm.c - layernorm and rmsnorm in double and in double-double. */
#include <math.h>
#include <stdlib.h>

#include "oracle/outward.h"
#include "oracle/simd_norm.h"
#include "oracle/tier_impl.h"
#include "oracle/tier_norm.h"

#define U 0x1p-53
#define MORE (1 + 0x1p-20) /* pays for the roundings of bounds */

/* Between these nothing overflows, and what underflows is below the enclosures' UNDERFLOW. */
#define LEAST_SQUARE 0x1p-700
#define MAX_ENTRY 0x1p300

/* Mean (0 for rmsnorm) and how far d_j = x_j - mean is off for it. */
struct centre {
    struct pair mean;
    double off;
};

static struct pair pair_of(const mpfr_t x) {
    struct pair p = {mpfr_get_d(x, MPFR_RNDN), 0};
    mpfr_t rest;
    mpfr_init2(rest, mpfr_get_prec(x));
    mpfr_sub_d(rest, x, p.hi, MPFR_RNDN);
    p.lo = mpfr_get_d(rest, MPFR_RNDN);
    mpfr_clear(rest);
    return p;
}

static void set_pair(mpfr_t x, struct pair p) {
    mpfr_set_d(x, p.hi, MPFR_RNDN);
    mpfr_add_d(x, x, p.lo, MPFR_RNDN);
}

static struct centre centre_of(const struct norm_row *row, const struct norm_scan *scan) {
    struct centre c;
    const double n = (double)row->cols;
    mpfr_t mean;
    mpfr_init2(mean, 128);
    set_pair(mean, norm_simd()->total(row->x, row->cols));
    mpfr_div_ui(mean, mean, row->cols, MPFR_RNDN);
    c.mean = pair_of(mean);
    mpfr_clear(mean);
    c.off = scan->magnitude / n * ((n + 32) * 0x1p-104 + 0x1p-101) * MORE;
    return c;
}

/* 1/sqrt(squares/n + eps), and its relative error; squares is off by squares_off. */
static bool inverse_of(struct pair *inverse, double *rel, struct pair squares, double squares_off,
                       const struct norm_row *row) {
    mpfr_t q;
    mpfr_init2(q, 128);
    set_pair(q, squares);
    mpfr_div_ui(q, q, row->cols, MPFR_RNDN);
    mpfr_add_d(q, q, row->eps, MPFR_RNDN);
    const double radicand = mpfr_get_d(q, MPFR_RNDD);
    mpfr_rec_sqrt(q, q, MPFR_RNDN);
    *inverse = pair_of(q);
    mpfr_clear(q);
    /* 1/sqrt(1 + d) - 1 is below (1 + 2 d) d / 2 for |d| < 2^-10 */
    double off = squares_off / (double)row->cols / radicand + 0x1p-120;
    *rel = off * (0.5 + off) * MORE + 0x1p-104;
    return radicand >= LEAST_SQUARE && off < 0x1p-10;
}

/* Each d_j is off by `off` and by `rel` of itself: what the sum of their squares is off. */
static double squares_error(double squares, double n, double off, double rel) {
    return (squares * rel * (2 + rel) + 2 * off * sqrt(squares * n) * (1 + rel) + n * off * off) *
           MORE;
}

static bool terms_f64(struct norm_terms *t, const struct norm_row *row, const struct centre *c,
                      double magnitude) {
    const double n = (double)row->cols;
    double chain, of_inverse;
    /* x - hi rounds, and - lo: 2 u d_j and, as |lo| <= u |hi|, u^2 |hi| */
    t->off = c->off + 2 * U * U * magnitude / n * MORE;
    double squares = norm_simd()->squares(&chain, row->x, row->cols, c->mean);
    double off = squares_error(squares, n, t->off, 2.01 * U) + squares * (chain + 2) * U * MORE;
    if (!inverse_of(&t->inverse, &of_inverse, (struct pair){squares, 0}, off, row))
        return false;
    /* d_j, 1/sqrt and its rounding to double, two products */
    t->rel = (2.01 * U + of_inverse + U + 2 * U) * MORE + 2 * U;
    return true;
}

static bool terms_dd(struct norm_terms *t, const struct norm_row *row, const struct centre *c) {
    const double n = (double)row->cols;
    double of_inverse;
    t->off = c->off;
    struct pair squares = norm_simd()->wide_squares(row->x, row->cols, c->mean);
    double off =
        squares_error(squares.hi, n, t->off, 0x1p-104) + squares.hi * (n + 64) * 0x1p-104 * MORE;
    if (!inverse_of(&t->inverse, &of_inverse, squares, off, row))
        return false;
    t->rel = (of_inverse + 0x1p-102) * MORE;
    return true;
}

/* The contract's rounding of [lo, hi], times w, plus b. */
static struct enclosure rounded_first(struct enclosure e, const struct norm_row *row, size_t j) {
    const struct dtype *dt = row->rounded;
    const double w = row->weight ? row->weight[j] : 1, b = row->bias ? row->bias[j] : 0;
    double one = dtype_to_double(dt, dtype_from_double(dt, e.lo, ROUND_NEAREST));
    double other = dtype_to_double(dt, dtype_from_double(dt, e.hi, ROUND_NEAREST));
    double y = fma(one, w, b), z = fma(other, w, b);
    return (struct enclosure){nextafter(fmin(y, z), -INFINITY), nextafter(fmax(y, z), INFINITY)};
}

static bool all_within(const double *p, size_t n, double limit) {
    for (size_t j = 0; p && j < n; j++)
        if (!(fabs(p[j]) <= limit))
            return false;
    return true;
}

static bool enclose(struct enclosure *out, enum tier tier, const struct norm_row *row,
                    bool centred) {
    const bool first = row->contract == NORM_ROUND_FIRST;
    struct norm_scan scan = norm_simd()->scan(row->x, row->cols);
    if (!(scan.largest <= MAX_ENTRY) || row->cols == 0 || row->cols > TIER_MAX_COLS ||
        !(row->eps >= 0 && row->eps <= MAX_ENTRY) || (first && !row->rounded) ||
        !all_within(row->weight, row->cols, MAX_ENTRY) ||
        !all_within(row->bias, row->cols, MAX_ENTRY))
        return false;
    struct centre c = {0};
    if (centred)
        c = centre_of(row, &scan);
    struct norm_terms t = {.mean = c.mean};
    if (!first) {
        t.weight = row->weight;
        t.bias = row->bias;
    }
    bool f64 = tier == TIER_F64;
    if (!(f64 ? terms_f64(&t, row, &c, centred ? scan.magnitude : 0) : terms_dd(&t, row, &c)))
        return false;
    (f64 ? norm_simd()->results : norm_simd()->wide_results)(out, row->x, row->cols, &t);
    for (size_t j = 0; first && j < row->cols; j++)
        out[j] = rounded_first(out[j], row, j);
    return true;
}

static status_t climb(struct enclosure *out, enum tier *tier, const struct norm_row *row,
                      bool centred) {
    for (; *tier < TIER_MPFR; ++*tier)
        if (enclose(out, *tier, row, centred))
            return OK;
    return centred ? layernorm_enclose(out, row) : rmsnorm_enclose(out, row);
}

status_t layernorm_tier_enclose(struct enclosure *out, enum tier *tier,
                                const struct norm_row *row) {
    return climb(out, tier, row, true);
}

status_t rmsnorm_tier_enclose(struct enclosure *out, enum tier *tier, const struct norm_row *row) {
    return climb(out, tier, row, false);
}
