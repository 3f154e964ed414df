/*
 * How a softmax takes e^(x - m), with m known; docs/bounds.md gives each one's error.  An entry of
 * -Inf gives 0, unless m is -Inf too: then it is NaN, as is the whole row.
 */
#ifndef KERNELS_SOFTMAX_EXP_CUH
#define KERNELS_SOFTMAX_EXP_CUH

#include "kernels/io.cuh"
#include "kernels/exp2_poly.h"

#define LOG2E 0x1.715476p0f

inline __device__ float ex2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* CUDA's expf: about eight instructions, 2 ulp and the rounding of x - m. */
struct ExpF {
    float m;
    __device__ explicit ExpF(float m) : m(m) {}
    __device__ float operator()(float x) const { return expf(x - m); }
};

/* Three instructions; the product's rounding grows with |x - m|, far below a 16-bit result's. */
struct ExpFast {
    float m;
    __device__ explicit ExpFast(float m) : m(m) {}
    __device__ float operator()(float x) const { return ex2((x - m) * LOG2E); }
};

/*
 * Two: log2(e) is folded into the scale of an fma, m log2(e) into its shift.  The shift's rounding is
 * common to the row and cancels in a quotient, but it must not overflow: |m| <= 65504, as in f16.
 */
struct ExpFolded {
    float shift;
    __device__ explicit ExpFolded(float m) : shift(m * LOG2E) {}
    __device__ float operator()(float x) const { return ex2(fmaf(x, LOG2E, -shift)); }
};

/* The same argument as ExpFast's, and 2^x on the FMA units: some 14 instructions, none of them ex2. */
struct ExpPoly {
    float m;
    __device__ explicit ExpPoly(float m) : m(m) {}
    __device__ float operator()(float x) const { return exp2_poly((x - m) * LOG2E); }
};

/* What a format deserves: an f32 result shows every ulp of the exponential, a 16-bit one none. */
template <class T> struct ExpChoice { typedef ExpFast Exp; };
template <> struct ExpChoice<float> { typedef ExpF Exp; };
template <class T> using ExpOf = typename ExpChoice<T>::Exp;

#endif
