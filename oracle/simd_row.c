/*
 * oracle/simd_row.c - tier 0's loops: as many doubles side by side as the level has.
 *
 * ISA is the suffix of this compilation, v2, v3 or v4.  Entries beyond the row's end are -Inf, which
 * adds nothing anywhere.
 */
#include "oracle/simd_row.h"

#include <float.h>

#include "oracle/outward.h"
#include "oracle/simd.h"

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
    vf v = EACH(0);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES, from += sizeof v) {
        __builtin_prefetch(from + 1024);
        memcpy(&v, from, sizeof v);
        store(out + i, LANES, from_f32(v));
    }
    if (i < n) {
        memcpy(&v, from, (n - i) * sizeof(float));
        store(out + i, n - i, from_f32(v));
    }
}

static struct row_scan count_kinds(const double *x, size_t n, double max) {
    vi nan = all_bits(0), plus = nan, minus = nan;
    for (size_t i = 0; i < n; i += LANES) {
        vd v = load(x + i, n - i, 0);
        nan += v != v;
        plus += v == all(INFINITY);
        minus += v == all(-INFINITY);
    }
    return (struct row_scan){max, count(nan), count(plus), count(minus)};
}

static struct row_scan scan(const double *x, size_t n) {
    vd max = all(-INFINITY);
    vm special = none_of();
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vd v = load(x + i, LANES, 0);
        special |= is_beyond(magnitude(v), all(DBL_MAX));
        max = larger(v, max);
    }
    if (i < n) {
        vd v = load(x + i, n - i, -INFINITY);
        special |= is_beyond(magnitude(load(x + i, n - i, 0)), all(DBL_MAX));
        max = larger(v, max);
    }
    if (some(special))
        return count_kinds(x, n, largest(max));
    return (struct row_scan){largest(max), 0, 0, 0};
}

/* ---- exp ------------------------------------------------------------------------------------- */

/* ln 2 in two parts: 42 bits, so that k times it is exact for |k| < 2^11, and the rest. */
#define LN2_HI 0x1.62e42fefa38p-1
#define LN2_LO 0x1.ef35793c7673p-45

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
    return only(~*far, scale_by(e, shifted));
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

const struct row_simd CAT(row_simd, ISA) = {
    STRING(ISA), widen, scan, row_sum_of, exps, shares, logs,
};
