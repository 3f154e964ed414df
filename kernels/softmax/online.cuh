/*
 * The online state of a softmax row (Milakov and Gimelshein 2018): after any set of entries,
 *     m = their maximum,   l = sum of exp(x - m).
 * The empty set is m = -Inf, l = 0, and a set of nothing but -Inf must stay like it: there x - m is
 * NaN, so a maximum of -Inf is shifted by 0 instead (`finite_or_zero`), and exp(-Inf - 0) = 0 adds
 * nothing.  The guard looks at m and never at x, so that a NaN still reaches l: fmaxf keeps it out
 * of m, expf(NaN - shift) puts it into l, and nothing takes it out of a sum again.  With an entry
 * +Inf, m = +Inf and expf(Inf - Inf) makes l NaN.
 */
#ifndef KERNELS_SOFTMAX_ONLINE_CUH
#define KERNELS_SOFTMAX_ONLINE_CUH

#include "kernels/softmax/row.cuh"

struct Online {
    float m, l;
};

inline __device__ Online online_empty() {
    return Online{NEG_INF, 0.0f};
}

inline __device__ float finite_or_zero(float m) {
    return m == NEG_INF ? 0.0f : m;
}

/* One entry more: l is rescaled from the old maximum to the new one, and the entry's term added. */
inline __device__ Online online_push(Online s, float x) {
    const float m = fmaxf(s.m, x);
    const float shift = finite_or_zero(m);
    return Online{m, fmaf(s.l, expf(s.m - shift), expf(x - shift))};
}

/*
 * Two sets joined.  Only the one with the smaller maximum is rescaled (the other's factor is
 * exactly 1), which saves an expf and makes the combine commute bit for bit; of maxima -0 and +0
 * fmaxf takes +0, whichever comes first.
 */
inline __device__ Online online_join(Online a, Online b) {
    const Online low = a.m < b.m ? a : b;
    const Online high = a.m < b.m ? b : a;
    const float m = fmaxf(a.m, b.m);
    return Online{m, fmaf(low.l, expf(low.m - finite_or_zero(m)), high.l)};
}

inline __device__ Online online_shuffle_xor(Online s, int offset) {
    return Online{__shfl_xor_sync(FULL_WARP, s.m, offset), __shfl_xor_sync(FULL_WARP, s.l, offset)};
}

/* A warp's states joined; every lane gets the result. */
inline __device__ Online online_warp(Online s) {
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        s = online_join(s, online_shuffle_xor(s, offset));
    return s;
}

#endif
