/* oracle/rope.c - pairs rotated by an angle that MPFR reduces exactly. */
#include "oracle/rope.h"

#include <math.h>

#include "oracle/refine.h"
#include "oracle/rope_impl.h"

struct rope_pair rope_pair_at(const struct rope_row *row, size_t i) {
    if (row->layout == ROPE_INTERLEAVED)
        return (struct rope_pair){2 * i, 2 * i + 1};
    return (struct rope_pair){i, i + row->rotary_dim / 2};
}

/* freq_i = e^(-(2i / rotary_dim) log base), or as given. */
static void frequency(struct interval *out, const struct rope_row *row, size_t i) {
    if (row->freq != NULL || i == 0) {
        interval_set_d(out, row->freq != NULL ? row->freq[i] : 1);
        return;
    }
    mpfr_set_d(out->lo, row->base, MPFR_RNDN); /* exact */
    mpfr_log(out->hi, out->lo, MPFR_RNDU);
    mpfr_log(out->lo, out->lo, MPFR_RNDD);
    interval_mul_d(out, (double)(2 * i));
    mpfr_div_ui(out->lo, out->lo, row->rotary_dim, MPFR_RNDD);
    mpfr_div_ui(out->hi, out->hi, row->rotary_dim, MPFR_RNDU);
    interval_neg(out);
    mpfr_exp(out->lo, out->lo, MPFR_RNDD);
    mpfr_exp(out->hi, out->hi, MPFR_RNDU);
}

/* Widen [lo, hi] by w on both sides, but not beyond [-1, 1]. */
static void widen(struct interval *x, const mpfr_t w) {
    mpfr_sub(x->lo, x->lo, w, MPFR_RNDD);
    mpfr_add(x->hi, x->hi, w, MPFR_RNDU);
    if (mpfr_cmp_si(x->lo, -1) < 0)
        mpfr_set_si(x->lo, -1, MPFR_RNDN);
    if (mpfr_cmp_si(x->hi, 1) > 0)
        mpfr_set_si(x->hi, 1, MPFR_RNDN);
}

/* Sine and cosine over the angle's interval: at its lower end, widened by its width (|f'| <= 1). */
static void rotation(struct interval *sine, struct interval *cosine, const struct rope_row *row,
                     size_t i, mpfr_prec_t prec) {
    struct interval angle;
    interval_init(&angle, prec);
    frequency(&angle, row, i);
    interval_mul_d(&angle, row->position);
    mpfr_sin_cos(sine->lo, cosine->lo, angle.lo, MPFR_RNDD);
    mpfr_sin_cos(sine->hi, cosine->hi, angle.lo, MPFR_RNDU);
    mpfr_sub(angle.hi, angle.hi, angle.lo, MPFR_RNDU);
    widen(sine, angle.hi);
    widen(cosine, angle.hi);
    interval_clear(&angle);
}

struct rope_problem {
    const struct rope_row *row;
    size_t i;
};

/* out[0], out[1]: the pair. */
static status_t rope_attempt(struct enclosure *out, const void *problem, mpfr_prec_t prec) {
    const struct rope_problem *p = problem;
    struct rope_pair at = rope_pair_at(p->row, p->i);
    double a = p->row->x[at.first], b = p->row->x[at.second];
    struct interval sine, cosine, y, t;
    interval_init(&sine, prec);
    interval_init(&cosine, prec);
    interval_init(&y, prec);
    interval_init(&t, prec);
    rotation(&sine, &cosine, p->row, p->i, prec);
    for (size_t half = 0; half < 2; half++) { /* a cos - b sin, then a sin + b cos */
        const struct interval *f = half == 0 ? &cosine : &sine, *g = half == 0 ? &sine : &cosine;
        mpfr_set(y.lo, f->lo, MPFR_RNDN);
        mpfr_set(y.hi, f->hi, MPFR_RNDN);
        mpfr_set(t.lo, g->lo, MPFR_RNDN);
        mpfr_set(t.hi, g->hi, MPFR_RNDN);
        interval_mul_d(&y, a);
        interval_mul_d(&t, half == 0 ? -b : b);
        interval_add(&y, &t);
        out[half] = interval_enclosure(&y);
    }
    interval_clear(&sine);
    interval_clear(&cosine);
    interval_clear(&y);
    interval_clear(&t);
    return OK;
}

/*
 * A pair with a NaN or an infinity, by IEEE rules on the real sine and cosine.  The sine is 0 only
 * at the angle 0, the cosine never (Lindemann: the angle is algebraic), so their signs are all that
 * matters; 1280 bits hold the integer part of the widest angle and 200 more.
 */
static void special_pair(struct enclosure *out, const struct rope_row *row, size_t i, double a,
                         double b) {
    struct interval sine, cosine;
    interval_init(&sine, 1280);
    interval_init(&cosine, 1280);
    rotation(&sine, &cosine, row, i, 1280);
    double s = mpfr_get_d(sine.lo, MPFR_RNDN), c = mpfr_get_d(cosine.lo, MPFR_RNDN);
    double first = a * c - b * s, second = a * s + b * c;
    out[0] = (struct enclosure){first, first};
    out[1] = (struct enclosure){second, second};
    interval_clear(&sine);
    interval_clear(&cosine);
}

static status_t rope_check(const struct rope_row *row) {
    if (row->rotary_dim % 2 != 0 || row->rotary_dim > row->head_dim)
        return FAIL(ERR_USAGE, "rope: rotary_dim is %zu, expected an even number up to %zu",
                    row->rotary_dim, row->head_dim);
    if (!isfinite(row->position))
        return FAIL(ERR_USAGE, "rope: the position is %g, expected a finite number", row->position);
    if (row->freq == NULL && !(row->base > 0 && isfinite(row->base)))
        return FAIL(ERR_USAGE, "rope: the base is %g, expected a finite number > 0", row->base);
    for (size_t i = 0; row->freq != NULL && i < row->rotary_dim / 2; i++)
        if (!isfinite(row->freq[i]))
            return FAIL(ERR_USAGE, "rope: frequency %zu is %g, expected a finite number", i,
                        row->freq[i]);
    return OK;
}

status_t rope_enclose(struct enclosure *out, const struct rope_row *row) {
    status_t st = rope_check(row);
    for (size_t i = 0; st == OK && i < row->rotary_dim / 2; i++) {
        struct rope_pair at = rope_pair_at(row, i);
        double a = row->x[at.first], b = row->x[at.second];
        struct enclosure pair[2];
        if (isfinite(a) && isfinite(b)) {
            struct rope_problem problem = {row, i};
            st = refine(pair, 2, &problem, NULL, rope_attempt, "rope");
        } else {
            special_pair(pair, row, i, a, b);
        }
        if (st == OK) {
            out[at.first] = pair[0];
            out[at.second] = pair[1];
        }
    }
    for (size_t j = row->rotary_dim; st == OK && j < row->head_dim; j++)
        out[j] = (struct enclosure){row->x[j], row->x[j]};
    return st;
}
