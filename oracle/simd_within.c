/* oracle/simd_within.c - see simd_within.h. */
#include "oracle/simd_within.h"

#include "oracle/bounds.h"
#include "oracle/simd_exp.h"

/* ---- what a kernel's exponentials may be off ------------------------------------------------------ */

#define LOG2E_F32 0x1.715476p0

/* The error of ex2's argument, no more than direct_argument_error (bounds_exp.c) has it. */
INLINE vd argument_error(vd x, vd z, int exp, const struct softmax_terms *t) {
    if (exp == EXP_EXPF)
        return magnitude(round_f32(z) - z);
    if (exp == EXP_FAST) {
        vd q = round_f32(round_f32(z) * all(LOG2E_F32));
        return magnitude(q * all(M_LN2) - z);
    }
    vd q = x * all(LOG2E_F32) - all(t->folded);
    vd rounding = magnitude(round_f32(q) - q) * all(M_LN2);
    return rounding + all(t->log2e_error) * (magnitude(z) + all(t->shift));
}

INLINE struct softmax_sums weigh_as(double *e, double *errors, const double *x, size_t n,
                                    const struct softmax_terms *t, int exp, bool online) {
    vd size = all(0), sum = all(0);
    const vd worst = all(t->worst_eps), least = all(2 * FAR);
    for (size_t i = 0; i < n; i += LANES) {
        vd v = load(x + i, n - i, -INFINITY), z = larger(v - all(t->max), least);
        vd term = exp_quick(z);
        vd d = argument_error(v, z, exp, t);
        if (exp == EXP_EX2_FOLDED)
            d = where(is_above(term, all(0)), d); /* x may be -Inf */
        /* A significand's share of the ulps: worst / significand of e, times e */
        vd ulps = binade(term) * worst;
        vd moved = term * mul_add(d, d, d);
        vd counts = z;
        if (exp != EXP_EX2_FOLDED) /* e^0 = 1 exactly */
            ulps = where(is_other(counts, all(0)), ulps);
        vd own = moved + ulps;
        size += term;
        if (online) {
            d = all(t->slope) * magnitude(z);
            vd in_sum = term * (mul_add(d, d, d) + worst);
            sum += exp != EXP_EX2_FOLDED ? where(is_other(counts, all(0)), in_sum) : in_sum;
        } else {
            sum += own;
        }
        own += where(is_above(all(t->floor_below), z), all(t->floor));
        store(e + i, n - i, term);
        store(errors + i, n - i, own);
    }
    return (struct softmax_sums){added(size), added(sum), (double)(n / LANES + 1 + LANES)};
}

static struct softmax_sums weigh(double *e, double *errors, const double *x, size_t n,
                                 const struct softmax_terms *t) {
    switch (t->exp) { /* one loop for each, without the choice in it */
    case EXP_EXPF:
        return t->online ? weigh_as(e, errors, x, n, t, EXP_EXPF, true)
                         : weigh_as(e, errors, x, n, t, EXP_EXPF, false);
    case EXP_FAST:
        return t->online ? weigh_as(e, errors, x, n, t, EXP_FAST, true)
                         : weigh_as(e, errors, x, n, t, EXP_FAST, false);
    default:
        return t->online ? weigh_as(e, errors, x, n, t, EXP_EX2_FOLDED, true)
                         : weigh_as(e, errors, x, n, t, EXP_EX2_FOLDED, false);
    }
}

/* ---- the comparison ------------------------------------------------------------------------------- */

/* No more than softmax_budget's for a result of at least g; all but the factor `keep`. */
INLINE vd budget_from_below(vd g, vd e, vd errors, const struct softmax_limits *l, bool plain) {
    vd err = mul_add(errors, all(l->own), e * all(l->every)), quotient = g + err;
    vd step = larger(binade(quotient) * all(l->step), all(l->smallest_step));
    if (plain)
        return err + step;
    if (l->step == 0)
        step = all(0);
    vi tiny = quotient * all(1 + 0x1p-20) < all(0x1p-125);
    err += pick(tiny, larger(all(l->tiny), step), step);
    if (l->out_unit > 0)
        err += larger(binade(g + err) * all(l->out_unit), all(l->out_smallest_step)) +
               all(l->out_flush);
    return err;
}

/* The smallest ulp there is in an enclosure from lo on. */
INLINE vd least_ulp(vd lo, const struct softmax_limits *l) {
    /* At a power of two the smallest is that of the binade below. */
    vd under = (vd)((vi)larger(lo, all(0x1p-1000)) - all_bits(1));
    return larger(binade(under), all(l->out_min_normal)) * all(1 / l->out_prec_scale);
}

/* Entries i ... raise one of the extremes: rare, so divisions are affordable here. */
static void raise_extremes(struct softmax_extremes *r, const struct softmax_limits *l, size_t i,
                           vd err, vd budget, vd lo, vd hi) {
    vd ulps = err / least_ulp(lo, l), rel = err / lo, rho = err / budget;
    for (size_t k = 0; k < LANES; k++) {
        r->earned |= budget[k] * 4 < hi[k];
        r->ulps = ulps[k] > r->ulps ? ulps[k] : r->ulps;
        if (lo[k] >= l->out_min_normal && rel[k] > r->rel)
            r->rel = rel[k];
        if (budget[k] > 0 && rho[k] > r->rho) {
            r->rho = rho[k];
            r->worst = i + k;
            r->budget = budget[k];
            r->want = (struct enclosure){lo[k], hi[k]};
        }
    }
}

INLINE struct softmax_extremes within_as(const double *got, const double *x, const double *e,
                                         const double *errors, size_t n,
                                         const struct softmax_limits *l, bool plain) {
    struct softmax_extremes r = {.within = true};
    vm beyond = none_of();
    for (size_t i = 0; i < n; i += LANES) {
        vd term = load(e + i, n - i, 0), own = load(errors + i, n - i, 0);
        vd y = load(got + i, n - i, 0), lo = term * all(l->lo);
        vd budget = budget_from_below(lo, term, own, l, plain) * all(l->keep);
        if (!plain && l->masked)
            budget = where(is_above(load(x + i, n - i, -INFINITY), all(-INFINITY)), budget);
        vd off = magnitude(mul_add(term, all(-l->share), y));
        vd err = mul_add(term, all(l->width), off);
        beyond |= is_beyond(err, budget);

        vm raises = is_above(err, all(r.rho) * budget);
        raises |= is_above(err, all(r.ulps) * least_ulp(lo, l));
        raises |= is_above(err, all(r.rel) * larger(lo, all(l->out_min_normal)));
        if (some(raises)) {
            vd hi = pick(term == all(0), pick(budget > all(0), all(FAR_SIZE), all(0)),
                         term * all(l->hi));
            raise_extremes(&r, l, i, err, budget, lo, hi);
        }
    }
    r.within = !some(beyond);
    return r;
}

static struct softmax_extremes within(const double *got, const double *x, const double *e,
                                      const double *errors, size_t n,
                                      const struct softmax_limits *l) {
    bool plain = l->step > 0 && l->tiny == 0 && l->out_unit == 0 && !l->masked;
    return plain ? within_as(got, x, e, errors, n, l, true)
                 : within_as(got, x, e, errors, n, l, false);
}

const struct within_simd CAT(within_simd, ISA) = {weigh, within};
