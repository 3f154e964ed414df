/*
 * oracle/simd_row.c - tier 0's loops: as many doubles side by side as the level has.
 *
 * ISA is the suffix of this compilation, v2, v3 or v4.  Entries beyond the row's end are -Inf, which
 * adds nothing anywhere.
 */
#include "oracle/simd_row.h"

#include <float.h>

#include "oracle/outward.h"
#include "oracle/simd_exp.h"

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

/* ---- exponentials ----------------------------------------------------------------------------- */

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
