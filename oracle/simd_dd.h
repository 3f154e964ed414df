/*
 * oracle/simd_dd.h - double-double arithmetic, side by side: a number is hi + lo, |lo| <= ulp(hi)/2.
 *
 * The algorithms and their bounds are those of Joldes, Muller and Popescu, "Tight and rigorous error
 * bounds for basic building blocks of double-word arithmetic" (ACM TOMS 44, 2017); u = 2^-53.
 */
#ifndef ORACLE_SIMD_DD_H
#define ORACLE_SIMD_DD_H

#include "oracle/simd_exp.h"
#include "oracle/simd_wide.h"

struct dd {
    vd hi, lo;
};

/* a + b exactly (Knuth), and for |a| >= |b| or a = 0 (Dekker). */
INLINE struct dd two_sum(vd a, vd b) {
    vd s = a + b, part = s - a;
    return (struct dd){s, (a - (s - part)) + (b - part)};
}

INLINE struct dd fast_two_sum(vd a, vd b) {
    vd s = a + b;
    return (struct dd){s, b - (s - a)};
}

/* a b exactly, as long as its parts neither overflow nor underflow. */
INLINE struct dd two_product(vd a, vd b) {
    vd p = a * b;
#if defined __FMA__
    return (struct dd){p, mul_add(a, b, all(0) - p)};
#else /* Veltkamp's halves, Dekker's product */
    const vd split = all(0x1p27 + 1);
    vd c = split * a, ah = c - (c - a), al = a - ah;
    vd d = split * b, bh = d - (d - b), bl = b - bh;
    return (struct dd){p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)};
#endif
}

/* Relative error 2 u^2. */
INLINE struct dd dd_add_d(struct dd x, vd y) {
    struct dd s = two_sum(x.hi, y);
    return fast_two_sum(s.hi, x.lo + s.lo);
}

/* AccurateDWPlusDW: 3 u^2 + 13 u^3. */
INLINE struct dd dd_add(struct dd x, struct dd y) {
    struct dd s = two_sum(x.hi, y.hi), t = two_sum(x.lo, y.lo);
    struct dd v = fast_two_sum(s.hi, s.lo + t.hi);
    return fast_two_sum(v.hi, t.lo + v.lo);
}

/* DWTimesFP1: 2 u^2. */
INLINE struct dd dd_mul_d(struct dd x, vd y) {
    struct dd c = two_product(x.hi, y);
    struct dd t = fast_two_sum(c.hi, x.lo * y);
    return fast_two_sum(t.hi, t.lo + c.lo);
}

/* DWTimesDW1: 5 u^2 (less with fma). */
INLINE struct dd dd_mul(struct dd x, struct dd y) {
    struct dd c = two_product(x.hi, y.hi);
    vd cross = mul_add(x.hi, y.lo, x.lo * y.hi);
    return fast_two_sum(c.hi, c.lo + cross);
}

/* DWDivDW2: 15 u^2. */
INLINE struct dd dd_div(struct dd x, struct dd y) {
    vd q = x.hi / y.hi;
    struct dd r = dd_mul_d(y, q);
    vd rest = (x.hi - r.hi) + (x.lo - r.lo);
    return fast_two_sum(q, rest / y.hi);
}

INLINE struct dd dd_of(double hi, double lo) {
    return (struct dd){all(hi), all(lo)};
}

INLINE struct dd dd_negative(struct dd x) {
    return (struct dd){all(0) - x.hi, all(0) - x.lo};
}

/* The lanes of a sum: LANES times 3 u^2 of their magnitudes. */
INLINE struct pair dd_total(struct dd v) {
    struct dd sum = {all(v.hi[0]), all(v.lo[0])};
    for (int l = 1; l < LANES; l++)
        sum = dd_add(sum, (struct dd){all(v.hi[l]), all(v.lo[l])});
    return (struct pair){sum.hi[0], sum.lo[0]};
}

/* ---- exp --------------------------------------------------------------------------------------- */

/* ln 2 in three parts: 42 bits, 42 bits, a double; the rest is below 2^-140. */
#define DD_LN2_HI 0x1.62e42fefa38p-1
#define DD_LN2_MID 0x1.ef35793c76p-45
#define DD_LN2_LO 0x1.cc01f97b57a08p-87

/* 1/n! for n = 12 ... 3, where a double is not enough. */
#define DD_TERMS 10
static const double dd_inverse_factorial[DD_TERMS][2] = {
    {0x1.1eed8eff8d898p-29, -0x1.2aec959e14c06p-83},
    {0x1.ae64567f544e4p-26, -0x1.c062e06d1f209p-80},
    {0x1.27e4fb7789f5cp-22, 0x1.cbbc05b4fa99ap-76},
    {0x1.71de3a556c734p-19, -0x1.c154f8ddc6c00p-73},
    {0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-76},
    {0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73},
    {0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65},
    {0x1.1111111111111p-7, 0x1.1111111111111p-63},
    {0x1.5555555555555p-5, 0x1.5555555555555p-59},
    {0x1.5555555555555p-3, 0x1.5555555555555p-57},
};

/* e^(hi + lo) for FAR <= hi <= 0, 0 below: DD_EXP_ERROR. */
INLINE struct dd dd_exp(struct dd x) {
    vd shifted = mul_add(x.hi, all(LOG2E), all(MAGIC)), k = shifted - all(MAGIC);
    struct dd r = two_sum(x.hi - k * all(DD_LN2_HI), x.lo); /* the difference is exact */
    r = dd_add_d(r, k * all(-DD_LN2_MID));                  /* this product, too */
    r = dd_add_d(r, k * all(-DD_LN2_LO));

    /* Taylor to r^21, the terms from r^13 on in double */
    vd q = all(0x1.71b8ef6dcf572p-66);
    q = mul_add(r.hi, q, all(0x1.e542ba4020225p-62));
    q = mul_add(r.hi, q, all(0x1.2f49b46814157p-57));
    q = mul_add(r.hi, q, all(0x1.6827863b97d97p-53));
    q = mul_add(r.hi, q, all(0x1.952c77030ad4ap-49));
    q = mul_add(r.hi, q, all(0x1.ae7f3e733b81fp-45));
    q = mul_add(r.hi, q, all(0x1.ae7f3e733b81fp-41));
    q = mul_add(r.hi, q, all(0x1.93974a8c07c9dp-37));
    q = mul_add(r.hi, q, all(0x1.6124613a86d09p-33));
    struct dd e = dd_mul_d(r, q);
    for (int n = 0; n < DD_TERMS; n++)
        e = dd_mul(r, dd_add(dd_of(dd_inverse_factorial[n][0], dd_inverse_factorial[n][1]), e));
    e = dd_mul(r, dd_add_d(e, all(0.5)));
    e = dd_mul(r, dd_add_d(e, all(1)));
    e = dd_add_d(e, all(1));
    vm near = is_least(x.hi, all(FAR));
    /* lo of a power of two may be 0: no exponent to add to */
    vd scale = scale_by(all(1), shifted);
    return (struct dd){where(near, e.hi * scale), where(near, e.lo * scale)};
}

/* ---- enclosures -------------------------------------------------------------------------------- */

/* The double below or above where rounding went the other way. */
INLINE vd step_down(struct dd s) {
    vi step = (s.hi > all(0)) | all_bits(1); /* -1 or 1 */
    vd stepped = (vd)((vi)s.hi + step);
    return pick(s.lo < all(0), pick(s.hi == all(0), all(-0x1p-1074), stepped), s.hi);
}

INLINE vd dd_below(struct dd x, vd half) {
    return step_down(two_sum(x.hi, x.lo - half));
}

INLINE vd dd_above(struct dd x, vd half) {
    return all(0) - dd_below(dd_negative(x), half);
}

#endif
