/* oracle/simd_wide.c - see simd_wide.h. */
#include "oracle/simd_wide.h"

#include "oracle/outward.h"
#include "oracle/simd_dd.h"

/* ---- sums -------------------------------------------------------------------------------------- */

/* Ogita, Rump and Oishi's SumK for K = 3, in a cascade: the errors of the errors are added plainly. */
struct cascade {
    vd s, c, d, lost;
};

INLINE void cascade_add(struct cascade *a, vd v) {
    struct dd s = two_sum(a->s, v), c = two_sum(a->c, s.lo);
    a->s = s.hi;
    a->c = c.hi;
    a->d += c.lo;
    a->lost += magnitude(c.lo);
}

static struct wide_sum sum(const double *x, size_t n) {
    struct cascade a = {all(0), all(0), all(0), all(0)};
    for (size_t i = 0; i < n; i += LANES)
        cascade_add(&a, load(x + i, n - i, 0));
    struct wide_sum r = {a.s[0], a.c[0], a.d[0], a.lost[0]};
    for (int l = 1; l < LANES; l++) {
        double s = r.s + a.s[l], error = two_sum_error(r.s, a.s[l], s);
        double c = r.c + a.c[l], first = two_sum_error(r.c, a.c[l], c);
        double e = c + error, second = two_sum_error(c, error, e);
        r = (struct wide_sum){s, e, r.d + a.d[l] + first + second,
                              r.lost + a.lost[l] + fabs(first) + fabs(second)};
    }
    return r;
}

/* ---- exponentials ------------------------------------------------------------------------------ */

static struct pair exps(double *hi, double *lo, size_t *far, const double *x, size_t n, double max,
                        size_t skip) {
    struct dd sum = dd_of(0, 0);
    vd j = counting();
    vi beyond = all_bits(0);
    for (size_t i = 0; i < n; i += LANES, j += all(LANES)) {
        vd v = load(x + i, n - i, -INFINITY);
        struct dd z = two_sum(v, all(-max)), e = dd_exp(z);
        beyond += (z.hi < all(FAR)) & (v > all(-INFINITY));
        store(hi + i, n - i, e.hi);
        store(lo + i, n - i, e.lo);
        vm counts = is_other(j, all((double)skip));
        sum = dd_add(sum, (struct dd){where(counts, e.hi), where(counts, e.lo)});
    }
    *far = count(beyond);
    return dd_total(sum);
}

/* ---- enclosures -------------------------------------------------------------------------------- */

static void shares(struct enclosure *out, const double *hi, const double *lo, const double *x,
                   size_t n, struct pair sum, double rel) {
    struct dd share = dd_div(dd_of(1, 0), dd_of(sum.hi, sum.lo));
    for (size_t i = 0; i < n; i += LANES) {
        struct dd e = {load(hi + i, n - i, 0), load(lo + i, n - i, 0)}, p = dd_mul(e, share);
        vd v = load(x + i, n - i, 0), half = p.hi * all(rel);
        vi none = e.hi == all(0), far = none & (v > all(-INFINITY));
        vd below = pick(none, all(0), dd_below(p, half)), above = dd_above(p, half);
        store_pairs(out + i, n - i, below, pick(far, all(FAR_SIZE), pick(none, all(0), above)));
    }
}

static void logs(struct enclosure *out, const double *x, size_t n, double max, struct pair log,
                 double half, double rel) {
    const struct dd minus = dd_of(-log.hi, -log.lo);
    for (size_t i = 0; i < n; i += LANES) {
        vd v = load(x + i, n - i, 0);
        struct dd z = two_sum(v, all(-max)), y = dd_add(z, minus);
        vd off = all(half) + (magnitude(z.hi) + magnitude(minus.hi)) * all(rel);
        vi masked = v == all(-INFINITY);
        store_pairs(out + i, n - i, pick(masked, v, dd_below(y, off)),
                    pick(masked, v, dd_above(y, off)));
    }
}

const struct wide_simd CAT(wide_simd, ISA) = {sum, exps, shares, logs};
