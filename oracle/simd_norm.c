/* oracle/simd_norm.c - see simd_norm.h. */
#include "oracle/simd_norm.h"

#include "oracle/simd_dd.h"

/* Larger than any rounding of a result that underflowed. */
#define UNDERFLOW 0x1p-1000

static struct norm_scan scan(const double *x, size_t n) {
    vd largest_of = all(0), sum = all(0);
    for (size_t i = 0; i < n; i += LANES) {
        vd v = magnitude(load(x + i, n - i, 0));
        largest_of = larger(v, largest_of);
        sum += v; /* a NaN or an infinity stays */
    }
    double total = added(sum);
    return (struct norm_scan){isfinite(total) ? largest(largest_of) : (double)NAN, total};
}

static struct pair total(const double *x, size_t n) {
    struct dd sum = dd_of(0, 0);
    for (size_t i = 0; i < n; i += LANES)
        sum = dd_add_d(sum, load(x + i, n - i, 0));
    return dd_total(sum);
}

/* ---- double ------------------------------------------------------------------------------------ */

INLINE vd deviation(vd x, struct pair mean) {
    return (x - all(mean.hi)) - all(mean.lo);
}

static double squares(double *chain, const double *x, size_t n, struct pair mean) {
    vd sum = all(0);
    for (size_t i = 0; i < n; i += LANES) {
        vd d = deviation(load(x + i, n - i, mean.hi), mean);
        if (n - i < LANES) /* what the fill leaves is mean.lo */
            d = load((const double *)&d, n - i, 0);
        sum = mul_add(d, d, sum);
    }
    *chain = (double)(n / LANES + 1 + LANES);
    return added(sum);
}

INLINE vd factor_at(const double *p, size_t i, size_t n, double none) {
    return p ? load(p + i, n - i, none) : all(none);
}

static void results(struct enclosure *out, const double *x, size_t n, const struct norm_terms *t) {
    for (size_t i = 0; i < n; i += LANES) {
        vd w = factor_at(t->weight, i, n, 1), b = factor_at(t->bias, i, n, 0);
        vd d = deviation(load(x + i, n - i, 0), t->mean);
        vd scale = all(t->inverse.hi) * w, product = d * all(t->inverse.hi) * w, y = product + b;
        vd half = magnitude(product) * all(t->rel) + magnitude(scale) * all(t->off) +
                  magnitude(y) * all(0x1p-51) + all(UNDERFLOW);
        store_pairs(out + i, n - i, y - half, y + half);
    }
}

/* ---- double-double ----------------------------------------------------------------------------- */

INLINE struct dd wide_deviation(vd x, struct pair mean) {
    return dd_add_d(dd_of(-mean.hi, -mean.lo), x);
}

static struct pair wide_squares(const double *x, size_t n, struct pair mean) {
    struct dd sum = dd_of(0, 0);
    for (size_t i = 0; i < n; i += LANES) {
        struct dd d = wide_deviation(load(x + i, n - i, 0), mean);
        if (n - i < LANES)
            d = (struct dd){load((const double *)&d.hi, n - i, 0),
                            load((const double *)&d.lo, n - i, 0)};
        sum = dd_add(sum, dd_mul(d, d));
    }
    return dd_total(sum);
}

static void wide_results(struct enclosure *out, const double *x, size_t n,
                         const struct norm_terms *t) {
    for (size_t i = 0; i < n; i += LANES) {
        vd w = factor_at(t->weight, i, n, 1), b = factor_at(t->bias, i, n, 0);
        struct dd d = wide_deviation(load(x + i, n - i, 0), t->mean);
        struct dd product = dd_mul_d(dd_mul(d, dd_of(t->inverse.hi, t->inverse.lo)), w);
        struct dd y = dd_add_d(product, b);
        vd half = magnitude(product.hi) * all(t->rel) +
                  magnitude(all(t->inverse.hi) * w) * all(t->off) +
                  magnitude(y.hi) * all(0x1p-103) + all(UNDERFLOW);
        store_pairs(out + i, n - i, dd_below(y, half), dd_above(y, half));
    }
}

/* ---- rotations --------------------------------------------------------------------------------- */

/* pi/2 in three parts: 31 bits, 30 bits, a double; the rest is below 2^-114. */
#define HALF_PI_HI 0x1.921fb544p+0
#define HALF_PI_MID 0x1.0b46118p-34
#define HALF_PI_LO 0x1.313198a2e0370p-61
#define TWO_OVER_PI 0x1.45f306dc9c883p-1

static void turn(double *y, double *z, const double *a, const double *b, const double *hi,
                 const double *lo, double position, size_t n) {
    for (size_t i = 0; i < n; i += LANES) {
        struct dd freq = {load(hi + i, n - i, 0), load(lo + i, n - i, 0)};
        struct dd r = dd_mul_d(freq, all(position));
        vd shifted = mul_add(r.hi, all(TWO_OVER_PI), all(MAGIC)), k = shifted - all(MAGIC);
        r = dd_add_d(r, k * all(-HALF_PI_HI)); /* these products are exact */
        r = dd_add_d(r, k * all(-HALF_PI_MID));
        r = dd_add_d(r, k * all(-HALF_PI_LO));

        /* Taylor to r^17 and r^16, |r| < 0.7855 */
        vd t = r.hi * r.hi, p = all(0x1.952c77030ad4ap-49), q = all(0x1.ae7f3e733b81fp-45);
        p = mul_add(t, p, all(-0x1.ae7f3e733b81fp-41));
        q = mul_add(t, q, all(-0x1.93974a8c07c9dp-37));
        p = mul_add(t, p, all(0x1.6124613a86d09p-33));
        q = mul_add(t, q, all(0x1.1eed8eff8d898p-29));
        p = mul_add(t, p, all(-0x1.ae64567f544e4p-26));
        q = mul_add(t, q, all(-0x1.27e4fb7789f5cp-22));
        p = mul_add(t, p, all(0x1.71de3a556c734p-19));
        q = mul_add(t, q, all(0x1.a01a01a01a01ap-16));
        p = mul_add(t, p, all(-0x1.a01a01a01a01ap-13));
        q = mul_add(t, q, all(-0x1.6c16c16c16c17p-10));
        p = mul_add(t, p, all(0x1.1111111111111p-7));
        q = mul_add(t, q, all(0x1.5555555555555p-5));
        p = mul_add(t, p, all(-0x1.5555555555555p-3));
        vd small = all(1) - all(0.5) * t;
        vd sine = r.hi + mul_add(r.hi * t, p, r.lo * small);
        vd cosine = small + mul_add(t * t, q, all(0) - r.hi * r.lo);

        /* quarter turns */
        vi odd = ((vi)shifted & all_bits(1)) != 0, back = ((vi)shifted & all_bits(2)) != 0;
        vd s = pick(odd, cosine, sine), c = pick(odd, all(0) - sine, cosine);
        s = pick(back, all(0) - s, s);
        c = pick(back, all(0) - c, c);
        vd first = load(a + i, n - i, 0), second = load(b + i, n - i, 0);
        store(y + i, n - i, first * c - second * s);
        store(z + i, n - i, first * s + second * c);
    }
}

const struct norm_simd CAT(norm_simd, ISA) = {
    scan, total, squares, wide_squares, results, wide_results, turn,
};
