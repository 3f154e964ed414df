/* oracle/simd_exp.h - the two exponentials in double, with the bounds of simd_row.h. */
#ifndef ORACLE_SIMD_EXP_H
#define ORACLE_SIMD_EXP_H

#include "oracle/simd.h"
#include "oracle/simd_row.h"

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

#define LN2 0x1.62e42fefa39efp-1

/* e^z for z <= 0, 0 below FAR.  One part of ln 2, Taylor to r^11: QUICK_ERROR. */
INLINE vd exp_quick(vd z) {
    vd shifted = mul_add(z, all(LOG2E), all(MAGIC)), k = shifted - all(MAGIC);
    vd r = mul_add(k, all(-LN2), z);
    vd q = all(1.0 / 39916800);
    q = mul_add(r, q, all(1.0 / 3628800));
    q = mul_add(r, q, all(1.0 / 362880));
    q = mul_add(r, q, all(1.0 / 40320));
    q = mul_add(r, q, all(1.0 / 5040));
    q = mul_add(r, q, all(1.0 / 720));
    q = mul_add(r, q, all(1.0 / 120));
    q = mul_add(r, q, all(1.0 / 24));
    q = mul_add(r, q, all(1.0 / 6));
    q = mul_add(r, q, all(0.5));
    q = mul_add(r, q, all(1));
    return where(is_least(z, all(FAR)), scale_by(mul_add(r, q, all(1)), shifted));
}

#endif
