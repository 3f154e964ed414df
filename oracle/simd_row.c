/*
 * oracle/simd_row.c - tier 0's loops: as many doubles side by side as the level has.
 *
 * ISA is the suffix of this compilation, v2, v3 or v4.  Entries beyond the row's end are -Inf, which
 * adds nothing anywhere.
 */
#include "oracle/simd_row.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "oracle/bounds.h"
#include "oracle/outward.h"

#define CAT2(a, b) a##_##b
#define CAT(a, b) CAT2(a, b)
#define STRING2(x) #x
#define STRING(x) STRING2(x)

#define INLINE static inline __attribute__((always_inline))

#if defined __AVX512F__
#    define LANES 8
#    define EACH(v) \
        { v, v, v, v, v, v, v, v }
#    define ZIP_LOW 0, 8, 1, 9, 2, 10, 3, 11
#    define ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif defined __AVX2__
#    define LANES 4
#    define EACH(v) \
        { v, v, v, v }
#    define ZIP_LOW 0, 4, 1, 5
#    define ZIP_HIGH 2, 6, 3, 7
#else
#    define LANES 2
#    define EACH(v) \
        { v, v }
#    define ZIP_LOW 0, 2
#    define ZIP_HIGH 1, 3
#endif

typedef double vd __attribute__((vector_size(8 * LANES)));
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int64_t vi __attribute__((vector_size(8 * LANES)));

INLINE vd all(double v) {
    return (vd)EACH(v);
}

INLINE vi all_bits(int64_t v) {
    return (vi)EACH(v);
}

/* a b + c, rounded once where the level can, else twice: the proof allows for both. */
INLINE vd mul_add(vd a, vd b, vd c) {
#if defined __AVX512F__
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined __FMA__
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

INLINE vd pick(vi mask, vd yes, vd no) {
    return (vd)((mask & (vi)yes) | (~mask & (vi)no));
}

INLINE vd only(vi mask, vd v) {
    return (vd)(mask & (vi)v);
}

INLINE vd larger(vd a, vd b) {
    return pick(a > b, a, b);
}

INLINE vd magnitude(vd v) {
    return (vd)((vi)v & all_bits(INT64_MAX));
}

/* The power of two at or below a positive normal number. */
INLINE vd binade(vd v) {
    return (vd)((vi)v & all_bits(INT64_C(0x7ff) << 52));
}

INLINE vd round_f32(vd v) {
    return __builtin_convertvector(__builtin_convertvector(v, vf), vd);
}

/* Up to LANES entries; missing ones are `fill`. */
INLINE vd load(const double *p, size_t left, double fill) {
    vd v, padded = all(fill);
    if (left < LANES) {
        memcpy(&padded, p, left * sizeof *p);
        return padded;
    }
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(double *p, size_t left, vd v) {
    if (left < LANES) {
        vd copy = v; /* so that v itself need not live in memory */
        memcpy(p, &copy, left * sizeof *p);
        return;
    }
    memcpy(p, &v, sizeof v);
}

INLINE void store_pairs(struct enclosure *p, size_t left, vd lo, vd hi) {
    vd first = __builtin_shufflevector(lo, hi, ZIP_LOW);
    vd second = __builtin_shufflevector(lo, hi, ZIP_HIGH);
    if (left < LANES) {
        vd both[2] = {first, second};
        memcpy(p, both, left * sizeof *p);
        return;
    }
    memcpy(p, &first, sizeof first);
    memcpy(p + LANES / 2, &second, sizeof second);
}

INLINE bool any(vi mask) {
#if defined __AVX512F__
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined __AVX2__
    return _mm256_movemask_pd((__m256d)mask) != 0;
#else
    return (mask[0] | mask[1]) != 0;
#endif
}

INLINE double largest(vd v) {
    double max = v[0];
    for (int l = 1; l < LANES; l++)
        max = v[l] > max ? v[l] : max;
    return max;
}

INLINE size_t count(vi masks) { /* each lane holds minus its number */
    int64_t n = 0;
    for (int l = 0; l < LANES; l++)
        n -= masks[l];
    return (size_t)n;
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct lanes {
    vd s, c, lost;
};

/* Knuth's TwoSum, and the error into c. */
INLINE void add(struct lanes *a, vd v) {
    vd s = a->s + v, part = s - a->s;
    vd error = (a->s - (s - part)) + (v - part);
    a->s = s;
    a->c += error;
    a->lost += magnitude(error);
}

INLINE struct row_sum total(const struct lanes *a) {
    struct row_sum r = {a->s[0], a->c[0], a->lost[0]};
    for (int l = 1; l < LANES; l++) {
        double s = r.s + a->s[l], error = two_sum_error(r.s, a->s[l], s);
        r.s = s;
        r.c += a->c[l] + error;
        r.lost += a->lost[l] + fabs(error);
    }
    return r;
}

static struct row_sum row_sum_of(const double *x, size_t n, double start) {
    struct lanes a = {{start}, {0}, {0}};
    for (size_t i = 0; i < n; i += LANES)
        add(&a, load(x + i, n - i, 0));
    return total(&a);
}

static void widen(double *out, const void *floats, size_t n) {
    const unsigned char *from = floats;
    for (size_t i = 0; i < n; i += LANES, from += sizeof(vf)) {
        vf v = EACH(0);
        memcpy(&v, from, n - i >= LANES ? sizeof v : (n - i) * sizeof(float));
        store(out + i, n - i, __builtin_convertvector(v, vd));
    }
}

static struct row_scan scan(const double *x, size_t n) {
    vd max = all(-INFINITY);
    vi nan = all_bits(0), plus = nan, minus = nan;
    for (size_t i = 0; i < n; i += LANES) {
        vd v = load(x + i, n - i, 0);
        nan += v != v;
        plus += v == all(INFINITY);
        minus += v == all(-INFINITY);
        max = larger(load(x + i, n - i, -INFINITY), max);
    }
    return (struct row_scan){largest(max), count(nan), count(plus), count(minus)};
}

/* ---- exp ------------------------------------------------------------------------------------- */

/* ln 2 in two parts: 42 bits, so that k times it is exact for |k| < 2^11, and the rest. */
#define LN2_HI 0x1.62e42fefa38p-1
#define LN2_LO 0x1.ef35793c7673p-45
#define LOG2E 0x1.71547652b82fep+0
#define MAGIC 0x1.8p52 /* adding it rounds to an integer, in the low bits */

/* e^(x - max) for x <= max, 0 below FAR. */
INLINE vd exp_shifted(vd x, vd max, vi *far) {
    vd z = x - max, part = z - x;
    vd tail = (x - (z - part)) + (-max - part); /* z + tail = x - max exactly */
    *far = z < all(FAR);

    vd shifted = mul_add(z, all(LOG2E), all(MAGIC)), k = shifted - all(MAGIC);
    vd high = mul_add(k, all(-LN2_HI), z); /* exact */
    vd low = mul_add(k, all(-LN2_LO), tail);
    vd r = high + low, rest = (high - r) + low;

    /* Taylor to r^13, |r| < 0.3466 */
    vd q = all(1.0 / 6227020800);
    q = mul_add(r, q, all(1.0 / 479001600));
    q = mul_add(r, q, all(1.0 / 39916800));
    q = mul_add(r, q, all(1.0 / 3628800));
    q = mul_add(r, q, all(1.0 / 362880));
    q = mul_add(r, q, all(1.0 / 40320));
    q = mul_add(r, q, all(1.0 / 5040));
    q = mul_add(r, q, all(1.0 / 720));
    q = mul_add(r, q, all(1.0 / 120));
    q = mul_add(r, q, all(1.0 / 24));
    q = mul_add(r, q, all(1.0 / 6));
    q = mul_add(r, q, all(0.5));
    vd e = all(1) + (r + mul_add(r * r, q, rest));
    vd scaled = (vd)((vi)e + ((vi)shifted << 52));
    return only(~*far, scaled);
}

static struct row_sum exps(double *e, size_t *far, const double *x, size_t n, double max) {
    struct lanes a = {{-1}, {0}, {0}};
    vi beyond = all_bits(0);
    for (size_t i = 0; i < n; i += LANES) {
        vi here;
        vd v = load(x + i, n - i, -INFINITY), term = exp_shifted(v, all(max), &here);
        beyond += here & (v > all(-INFINITY));
        store(e + i, n - i, term);
        add(&a, term);
    }
    *far = count(beyond);
    return total(&a);
}

/* ---- enclosures ------------------------------------------------------------------------------ */

static void shares(struct enclosure *out, const double *e, const double *x, size_t n, double lo,
                   double hi) {
    for (size_t i = 0; i < n; i += LANES) {
        vd term = load(e + i, n - i, 0), v = load(x + i, n - i, 0);
        vi far = (term == all(0)) & (v > all(-INFINITY));
        store_pairs(out + i, n - i, term * all(lo), pick(far, all(FAR_SIZE), term * all(hi)));
    }
}

static void logs(struct enclosure *out, const double *x, size_t n, double max, double lo,
                 double hi) {
    for (size_t i = 0; i < n; i += LANES) {
        vd v = load(x + i, n - i, 0), z = v - all(max);
        vd low = z - all(hi), high = z - all(lo);
        /* z and the difference are off by 2^-53 each at most, and z is no larger than the result */
        vi masked = v == all(-INFINITY);
        low = pick(masked, v, low + low * all(0x1p-51));
        high = pick(masked, v, high - high * all(0x1p-51));
        store_pairs(out + i, n - i, low, high);
    }
}

/* ---- budgets of softmax from below, and the verdict ------------------------------------------- */

#define LOG2E_F32 0x1.715476p0

/* The error of ex2's argument as direct_argument_error (bounds_exp.c) has it. */
INLINE vd argument_error(vd x, vd z, int exp, const struct softmax_terms *t) {
    vd size = magnitude(z);
    if (exp == EXP_EXPF)
        return magnitude(round_f32(z) - z) + all(0x1p-53) * size + all(t->argument);
    if (exp == EXP_FAST) {
        vd q = round_f32(round_f32(z) * all(LOG2E_F32));
        return magnitude(q * all(M_LN2) - z) + all(0x1p-51) * size + all(t->argument);
    }
    vd q = x * all(LOG2E_F32) - all(t->folded);
    vd rounding = (magnitude(round_f32(q) - q) + all(0x1p-53) * magnitude(q)) * all(M_LN2);
    return rounding + all(t->log2e_error) * (size + all(t->shift)) + all(t->argument);
}

INLINE double terms_for(double *alpha, const double *x, const double *e, size_t n,
                        const struct softmax_terms *t, int exp, bool online) {
    vd sum = all(0);
    const vd worst = all(t->worst_eps), one = all(1);
    for (size_t i = 0; i < n; i += LANES) {
        vd v = load(x + i, n - i, -INFINITY), z = v - all(t->max);
        vd term = load(e + i, n - i, 0);
        vi counts = z >= all(-128);
        if (exp != EXP_EX2_FOLDED)
            counts &= z != all(0);

        /* worst / significand of e^z, never above what bounds_exp.c takes */
        vd m = (vd)(((vi)term & all_bits((INT64_C(1) << 52) - 1)) | (vi)one) * all(1 - 0x1p-15);
        vi inside = (m > one) & (m < all(2 * (1 - 0x1p-14) * (1 + 0x1p-39)));
        /* Two roundings to float: 1/m is off by less than 2^-22. */
        vd reciprocal =
            __builtin_convertvector((vf)EACH(1.0f) / __builtin_convertvector(m, vf), vd);
        vd eps = worst * pick(inside, reciprocal * all(1 - 0x1p-22), all(1 - 0x1p-22));

        vd d = argument_error(v, z, exp, t);
        d += d * d;
        vd own = only(counts, d + eps + d * eps), in_sum = own;
        if (online) {
            d = all(t->slope) * magnitude(z);
            d += d * d;
            in_sum = only(counts, d + worst + d * worst);
        }
        store(alpha + i, n - i, own);
        sum += term * in_sum;
    }
    double result = 0;
    for (int l = 0; l < LANES; l++)
        result += sum[l];
    return result;
}

static double terms(double *alpha, const double *x, const double *e, size_t n,
                    const struct softmax_terms *t) {
    switch (t->exp) { /* one loop for each, without the choice in it */
    case EXP_EXPF:
        return t->online ? terms_for(alpha, x, e, n, t, EXP_EXPF, true)
                         : terms_for(alpha, x, e, n, t, EXP_EXPF, false);
    case EXP_FAST:
        return t->online ? terms_for(alpha, x, e, n, t, EXP_FAST, true)
                         : terms_for(alpha, x, e, n, t, EXP_FAST, false);
    default:
        return t->online ? terms_for(alpha, x, e, n, t, EXP_EX2_FOLDED, true)
                         : terms_for(alpha, x, e, n, t, EXP_EX2_FOLDED, false);
    }
}

/* No more than the budget of softmax_budget for a result of at least g. */
INLINE vd budget_from_below(vd g, vd z, vd alpha, const struct softmax_limits *l) {
    vd rel = alpha + all(l->division) + alpha * all(l->division);
    rel = rel + all(l->sum) + rel * all(l->sum);
    vd floor = pick(z < all(l->floor_below), all(l->floor), all(0));
    vd err = g * rel + floor * all(l->lost);
    vd quotient = g + err;
    vd step = larger(binade(quotient) * all(0x1p-24), all(l->smallest_step));
    if (!l->nearest)
        step = all(0);
    vi tiny = quotient * all(1 + 0x1p-20) < all(0x1p-125);
    step = pick(tiny, larger(all(l->tiny), step), step);
    err += step;
    if (l->out_unit > 0)
        err += larger(binade(g + err) * all(l->out_unit), all(l->out_smallest_step)) +
               all(l->out_flush);
    return err * all(l->keep);
}

/* The error of each entry in units of the smallest ulp its enclosure holds. */
INLINE vd in_ulps(vd err, vd lo, const struct softmax_limits *l) {
    /* At a power of two the smallest is that of the binade below. */
    vd under = (vd)((vi)larger(lo, all(0x1p-1000)) - all_bits(1));
    vd power = larger(binade(under), all(l->out_min_normal));
    vd inverse = (vd)(all_bits(INT64_C(2046) << 52) - (vi)power);
    return err * inverse * all(l->out_prec_scale);
}

/* Entries i ... that raise one of the extremes: rare, so divisions are affordable here. */
static void raise_extremes(struct softmax_extremes *r, const struct softmax_limits *l, size_t i,
                           vd err, vd budget, vd lo, vd hi, vd ulps) {
    for (size_t k = 0; k < LANES; k++) {
        r->earned |= budget[k] * 4 < hi[k];
        r->ulps = ulps[k] > r->ulps ? ulps[k] : r->ulps;
        if (lo[k] >= l->out_min_normal && err[k] / lo[k] > r->rel)
            r->rel = err[k] / lo[k];
        if (budget[k] > 0 && err[k] / budget[k] > r->rho) {
            r->rho = err[k] / budget[k];
            r->worst = i + k;
            r->budget = budget[k];
            r->want = (struct enclosure){lo[k], hi[k]};
        }
    }
}

static struct softmax_extremes within(const double *got, const double *x, const double *e,
                                      const double *alpha, size_t n,
                                      const struct softmax_limits *l) {
    struct softmax_extremes r = {.within = true};
    vi beyond = all_bits(0);
    for (size_t i = 0; i < n; i += LANES) {
        vd v = load(x + i, n - i, -INFINITY), z = v - all(l->max), term = load(e + i, n - i, 0);
        vd y = load(got + i, n - i, 0), a = load(alpha + i, n - i, 0);
        vd lo = term * all(l->lo), hi = term * all(l->hi);
        hi = pick((term == all(0)) & (v > all(-INFINITY)), all(FAR_SIZE), hi);
        vd budget = only(v > all(-INFINITY), budget_from_below(lo, z, a, l));
        vd above = y - lo, below = hi - y, err = larger(above, below);
        beyond |= ~((above <= budget) & (below <= budget));

        vd ulps = in_ulps(err, lo, l);
        vi raises = ((err > all(r.rho) * budget) & (budget > all(0))) | (ulps > all(r.ulps)) |
                    ((err > all(r.rel) * lo) & (lo >= all(l->out_min_normal)));
        if (any(raises))
            raise_extremes(&r, l, i, err, budget, lo, hi, ulps);
    }
    r.within = !any(beyond);
    return r;
}

const struct row_simd CAT(row_simd, ISA) = {
    STRING(ISA), widen, scan, row_sum_of, exps, shares, logs, terms, within,
};
