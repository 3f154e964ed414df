/* oracle/simd_attention.c - see simd_attention.h. */
#include "oracle/simd_attention.h"

#include <float.h>

#include "oracle/simd_exp.h"
#include "oracle/simd_mask.h"

#define U 0x1p-53

/* ---- products ---------------------------------------------------------------------------------- */

#if defined __AVX512F__
#    define BLOCK 4
#else
#    define BLOCK 2 /* 16 registers */
#endif
#define WIDTH (2 * (size_t)LANES)

INLINE void block(double *c1, double *c2, size_t c_stride, const double *a1, const double *a2,
                  size_t a_stride, const double *b, size_t inner, bool fresh, int rows) {
    vd s[BLOCK][2], t[BLOCK][2];
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < 2; h++) {
            s[r][h] = fresh ? all(0) : load(c1 + (size_t)r * c_stride + h * LANES, LANES, 0);
            t[r][h] = fresh ? all(0) : load(c2 + (size_t)r * c_stride + h * LANES, LANES, 0);
        }
    for (size_t i = 0; i < inner; i++, b += WIDTH) {
        __builtin_prefetch(b + 8 * WIDTH);
        __builtin_prefetch(b + 8 * WIDTH + LANES);
        vd left = load(b, LANES, 0), right = load(b + LANES, LANES, 0);
        vd left_size = magnitude(left), right_size = magnitude(right);
        for (int r = 0; r < rows; r++) {
            vd x = all(a1[(size_t)r * a_stride + i]), y = all(a2[(size_t)r * a_stride + i]);
            s[r][0] = mul_add(x, left, s[r][0]);
            s[r][1] = mul_add(x, right, s[r][1]);
            t[r][0] = mul_add(y, left_size, t[r][0]);
            t[r][1] = mul_add(y, right_size, t[r][1]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < 2; h++) {
            store(c1 + (size_t)r * c_stride + h * LANES, LANES, s[r][h]);
            store(c2 + (size_t)r * c_stride + h * LANES, LANES, t[r][h]);
        }
}

static void products(double *c1, double *c2, size_t c_stride, const double *a1, const double *a2,
                     size_t a_stride, const double *b, size_t rows, size_t inner, bool fresh) {
    for (; rows >= BLOCK; rows -= BLOCK) {
        block(c1, c2, c_stride, a1, a2, a_stride, b, inner, fresh, BLOCK);
        c1 += BLOCK * c_stride;
        c2 += BLOCK * c_stride;
        a1 += BLOCK * a_stride;
        a2 += BLOCK * a_stride;
    }
    for (; rows > 0; rows--) {
        block(c1, c2, c_stride, a1, a2, a_stride, b, inner, fresh, 1);
        c1 += c_stride;
        c2 += c_stride;
        a1 += a_stride;
        a2 += a_stride;
    }
}

/* ---- logits ------------------------------------------------------------------------------------ */

/* Half a step of f32 at |v|, or less. */
INLINE vd half_step(vd v) {
    return binade(magnitude(v) * all(1 - 0x1p-20)) * all(0x1p-24);
}

INLINE vd hyperbolic_tangent(vd x) {
    vi far;
    vd t = exp_shifted(all(-2) * magnitude(x), all(0), &far);
    vd size = (all(1) - t) / (all(1) + t);
    return (vd)((vi)size | ((vi)x & all_bits(INT64_MIN)));
}

INLINE struct logits_found logits_as(double *z, double *size, double *own, size_t n,
                                     const struct logit_terms *t, const struct weight_terms *w,
                                     bool budget) {
    vd top = all(-INFINITY), j = counting(), shown = all(0);
    vm bad = none_of();
    const double factor = magnitude(all(t->scale))[0];
    for (size_t i = 0; i < n; i += LANES, j += all(LANES)) {
        vd v = load(z + i, LANES, 0) * all(t->scale), magnitudes = load(size + i, LANES, 0);
        vd off = magnitudes * all(t->dot_error * factor) + magnitude(v) * all(U);
        vd d = all(0);
        if (budget) {
            d = magnitudes * all(w->qk * factor);
            d += w->scale_rounds ? half_step(v) : all(0);
        }
        if (t->softcap > 0) {
            vd x = v / all(t->softcap), h = hyperbolic_tangent(x);
            v = h * all(t->softcap);
            off += all(0x1p-49 * t->softcap);
            if (budget) /* tanh' = 1 - tanh^2 */
                d = d * (all(1 - 0x1p-20) - h * h) + magnitude(v) * all(w->tanh) + half_step(v);
        }
        if (t->bias) {
            vd bias = load(t->bias + i, i < t->keys ? t->keys - i : 0, 0);
            v += bias;
            off += magnitude(v) * all(U);
            if (budget)
                d += half_step(v);
        }
        if (t->alibi_slope != 0) {
            vd slant = magnitude(j - all(t->at)) * all(t->alibi_slope);
            v -= slant;
            off += (magnitude(slant) + magnitude(v)) * all(U);
            if (budget)
                d += half_step(slant) + half_step(v);
        }
        v = hidden(visible(j, t), v);
        bad |= is_beyond(v, all(DBL_MAX));
        top = larger(v, top);
        shown += where(is_above(v, all(-INFINITY)), all(1));
        store(z + i, LANES, v);
        store(size + i, LANES, off);
        if (budget)
            store(own + i, LANES, d);
    }
    return (struct logits_found){some(bad) ? (double)NAN : largest(top), (size_t)added(shown)};
}

/* By flags, not side by side: rare. */
static struct logits_found hide_masked(double *z, const struct logit_terms *t) {
    struct logits_found found = {-INFINITY, 0};
    bool bad = false;
    for (size_t j = 0; j < t->keys; j++) {
        if (!t->mask[j])
            z[j] = -INFINITY;
        bad |= !(z[j] <= DBL_MAX);
        found.visible += z[j] > -INFINITY;
        found.top = z[j] > found.top ? z[j] : found.top;
    }
    if (bad)
        found.top = NAN;
    return found;
}

static struct logits_found logits(double *z, double *size, double *own, size_t n,
                                  const struct logit_terms *t, const struct weight_terms *w) {
    struct logits_found found =
        own ? logits_as(z, size, own, n, t, w, true) : logits_as(z, size, own, n, t, w, false);
    return t->mask ? hide_masked(z, t) : found;
}

/* ---- weights ----------------------------------------------------------------------------------- */

INLINE struct weight_sums weights_as(double *z, double *error, const double *own, size_t n,
                                     double top, double gamma, const struct weight_terms *w,
                                     bool budget) {
    vd size = all(0), ours = all(0), theirs = all(0), worst = all(0);
    for (size_t i = 0; i < n; i += LANES) {
        vd logit = load(z + i, LANES, 0), real = logit - all(top), t = larger(real, all(2 * FAR));
        vi far;
        vd e = budget ? exp_quick(t) : exp_shifted(logit, all(top), &far);
        vd off = load(error + i, LANES, 0);
        vm weighs = is_above(e, all(0));
        /* e^x - 1 <= x + x^2 on [0, 1]; and the exponential itself */
        const double of_exp = (budget ? QUICK_ERROR : EXP_ERROR) * (1 + 0x1p-19);
        vd eps = where(weighs, mul_add(off, off, off) + all(of_exp));
        vm lost = is_above(off, real * all(-0x1p-4)) & ~weighs;
        worst = larger(larger(where(lost, all(INFINITY)), eps), worst);
        size += e;
        ours += e * eps;
        if (budget) {
            /* Those that a kernel may take for the maximum get less: `worst` is below 2^-24. */
            vm below = is_above(all(w->maximum_rounds ? 1 : -0x1p-22), t);
            vd eta = load(own + i, LANES, 0) - all(w->slope) * t + where(below, all(w->ulps));
            vd rounding = where(below, all(w->p_rounding)), alone = all(w->alone);
            if (w->sum_rounded)
                eta += rounding;
            else
                alone += rounding;
            eta = smaller(eta, all(1));
            theirs += e * eta;
            store(error + i, LANES, e * (eta + alone));
        } else {
            store(error + i, LANES, e * (eps + all(gamma)));
        }
        store(z + i, LANES, e);
    }
    return (struct weight_sums){added(size), added(ours), added(theirs), largest(worst),
                                (double)(n / LANES + LANES + 4)};
}

static struct weight_sums weights(double *z, double *error, const double *own, size_t n, double top,
                                  double gamma, const struct weight_terms *w) {
    return w ? weights_as(z, error, own, n, top, gamma, w, true)
             : weights_as(z, error, own, n, top, gamma, w, false);
}

/* ---- budgets ------------------------------------------------------------------------------------- */

static void grant(const struct column_terms *t, const double *v, size_t n, double common,
                  double weight, double alone, double floor) {
    for (size_t i = 0; i < n; i += LANES) {
        vd x = load(v + i, n - i, 0), size = magnitude(x);
        vm counts = ~is_beyond(size, all(DBL_MAX));
        vd apart = larger(magnitude(x - load(t->lo + i, n - i, 0)),
                          magnitude(x - load(t->hi + i, n - i, 0)));
        vd noise = all(weight) * size * all(alone) +
                   all(floor) * (size + load(t->size + i, n - i, 0));
        store(t->moved + i, n - i,
              load(t->moved + i, n - i, 0) + where(counts, all(common) * apart));
        store(t->noise + i, n - i, load(t->noise + i, n - i, 0) + where(counts, noise));
        store(t->largest + i, n - i,
              larger(load(t->largest + i, n - i, 0), where(counts, size)));
    }
}

const struct attention_simd CAT(attention_simd, ISA) = {
    WIDTH, BLOCK, products, logits, weights, grant,
};
