/* oracle/simd_wide_attention.c - attention in double-double: see simd_wide.h. */
#include <float.h>

#include "oracle/simd_dd.h"
#include "oracle/simd_mask.h"

#define WIDTH (2 * (size_t)LANES)

/* ---- logits ------------------------------------------------------------------------------------ */

/* Ogita, Rump and Oishi's Dot2 for LANES keys; size: the sum of magnitudes. */
INLINE struct dd dot(vd *size, const double *q, const double *k, size_t dim) {
    vd s = all(0), c = all(0);
    *size = all(0);
    for (size_t i = 0; i < dim; i++) {
        struct dd p = two_product(all(q[i]), load(k + i * WIDTH, LANES, 0));
        struct dd sum = two_sum(s, p.hi);
        s = sum.hi;
        c += sum.lo + p.lo;
        *size += magnitude(p.hi);
    }
    return fast_two_sum(s, c);
}

/* tanh, absolute error 2^-96. */
INLINE struct dd hyperbolic_tangent(struct dd x) {
    vi negative = x.hi < all(0);
    struct dd size = {magnitude(x.hi), pick(negative, all(0) - x.lo, x.lo)};
    struct dd t = dd_exp((struct dd){all(-2) * size.hi, all(-2) * size.lo});
    struct dd y = dd_div(dd_add_d(dd_negative(t), all(1)), dd_add_d(t, all(1)));
    return (struct dd){pick(negative, all(0) - y.hi, y.hi), pick(negative, all(0) - y.lo, y.lo)};
}

static struct logits_found logits(double *hi, double *lo, double *off, const double *q,
                                  const double *k, size_t padded, size_t dim,
                                  const struct logit_terms *t) {
    struct logits_found found = {-INFINITY, 0};
    vd j = counting();
    bool bad = false;
    for (size_t i = 0; i < padded; i += LANES, j += all(LANES)) {
        vd size;
        struct dd z = dot(&size, q, k + i / WIDTH * WIDTH * dim + i % WIDTH, dim);
        z = dd_mul_d(z, all(t->scale));
        vd error =
            size * magnitude(all(t->scale)) * all(t->dot_error) + magnitude(z.hi) * all(0x1p-104);
        vm shown = visible(j, t);
        if (t->softcap > 0) {
            struct dd x = dd_div(z, dd_of(t->softcap, 0));
            z = dd_mul_d(hyperbolic_tangent(x), all(t->softcap));
            error += all(0x1p-95 * t->softcap);
        }
        if (t->bias) {
            vd bias = load(t->bias + i, i < t->keys ? t->keys - i : 0, 0);
            shown &= is_other(bias, all(-INFINITY));
            z = dd_add_d(z, where(is_other(bias, all(-INFINITY)), bias));
            error += magnitude(z.hi) * all(0x1p-104);
        }
        if (t->alibi_slope != 0) {
            struct dd slant = two_product(magnitude(j - all(t->at)), all(-t->alibi_slope));
            z = dd_add(z, slant);
            error += magnitude(z.hi) * all(0x1p-104);
        }
        store(hi + i, LANES, hidden(shown, z.hi));
        store(lo + i, LANES, z.lo);
        store(off + i, LANES, error);
    }
    for (size_t n = 0; n < padded; n++) {
        if (t->mask && n < t->keys && !t->mask[n])
            hi[n] = -INFINITY;
        bad |= !(hi[n] <= DBL_MAX);
        found.visible += hi[n] > -INFINITY;
        found.top = hi[n] > found.top ? hi[n] : found.top;
    }
    if (bad)
        found.top = NAN;
    return found;
}

/* ---- weights and values ------------------------------------------------------------------------ */

static struct wide_weights weights(double *hi, double *lo, double *off, size_t padded, double top) {
    struct dd size = dd_of(0, 0);
    vd own = all(0), worst = all(0);
    for (size_t i = 0; i < padded; i += LANES) {
        vd z = load(hi + i, LANES, 0), real = z - all(top), error = load(off + i, LANES, 0);
        vm near = is_least(real, all(FAR));
        struct dd t = dd_add_d((struct dd){where(near, z), where(near, load(lo + i, LANES, 0))},
                               where(near, all(-top)));
        struct dd e = dd_exp(t);
        e = (struct dd){where(near, e.hi), where(near, e.lo)};
        vm weighs = is_above(e.hi, all(0)), lost = is_above(error, real * all(-0x1p-4)) & ~weighs;
        /* e^x - 1 <= x + x^2 on [0, 1] */
        vd eps = where(weighs, mul_add(error, error, error) + all(2 * DD_EXP_ERROR));
        worst = larger(larger(where(lost, all(INFINITY)), eps), worst);
        size = dd_add(size, e);
        own += e.hi * eps;
        store(hi + i, LANES, e.hi);
        store(lo + i, LANES, e.lo);
        store(off + i, LANES, eps);
    }
    return (struct wide_weights){dd_total(size), added(own), largest(worst)};
}

static void values(double *hi, double *lo, double *size, const double *e_hi, const double *e_lo,
                   const double *eps, const double *v, size_t padded, double gamma) {
    for (size_t h = 0; h < WIDTH; h += LANES) {
        struct dd sum = dd_of(0, 0);
        vd own = all(0);
        for (size_t j = 0; j < padded; j++) {
            vd value = load(v + j * WIDTH + h, LANES, 0);
            sum = dd_add(sum, dd_mul_d(dd_of(e_hi[j], e_lo[j]), value));
            own = mul_add(all(e_hi[j] * (eps[j] + gamma)), magnitude(value), own);
        }
        store(hi + h, LANES, sum.hi);
        store(lo + h, LANES, sum.lo);
        store(size + h, LANES, own);
    }
}

static void quotients(struct enclosure *out, const double *hi, const double *lo, const double *half,
                      struct pair sum, size_t n) {
    for (size_t c = 0; c < n; c += LANES) {
        struct dd x = {load(hi + c, LANES, 0), load(lo + c, LANES, 0)};
        struct dd q = dd_div(x, dd_of(sum.hi, sum.lo));
        vd off = load(half + c, LANES, 0);
        store_pairs(out + c, n - c, dd_below(q, off), dd_above(q, off));
    }
}

const struct wide_attention_simd CAT(wide_attention_simd, ISA) = {
    logits,
    weights,
    values,
    quotients,
};
