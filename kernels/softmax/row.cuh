/* What the softmax rungs share: a block's threads combining one value each. */
#ifndef KERNELS_SOFTMAX_ROW_CUH
#define KERNELS_SOFTMAX_ROW_CUH

#include "kernels/io.cuh"

#define BLOCK 256 /* threads of a block */
#define WARP 32
#define WARPS (BLOCK / WARP)
#define FULL_WARP 0xffffffffu
#define NEG_INF __int_as_float(0xff800000)

/*
 * fmaxf drops a NaN, so a row maximum is never NaN.  That is safe in a softmax: the NaN comes back
 * as expf(NaN - m) in the row sum and from there makes the whole row NaN, as it should.
 */
struct RowMax {
    static __device__ float identity() { return NEG_INF; }
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct RowSum {
    static __device__ float identity() { return 0.0f; }
    static __device__ float combine(float a, float b) { return a + b; }
};

/* All BLOCK threads' values combined by halving in shared memory; every thread gets the result. */
template <class Op> __device__ float block_tree(float v, float *part) {
    const int tid = threadIdx.x;

    part[tid] = v;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (tid < half)
            part[tid] = Op::combine(part[tid], part[tid + half]);
        __syncthreads();
    }
    v = part[0];
    __syncthreads(); /* part may be reused at once */
    return v;
}

/* entry(i) of all i < n combined, BLOCK chains and a tree; every thread gets the result. */
template <class Op, class F> __device__ float block_combine(int n, float *part, const F &entry) {
    float v = Op::identity();
    for (int i = threadIdx.x; i < n; i += BLOCK)
        v = Op::combine(v, entry(i));
    return block_tree<Op>(v, part);
}

/* A warp's values combined in a butterfly: every lane gets the same bits, as combine commutes. */
template <class Op> __device__ float warp_butterfly(float v) {
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        v = Op::combine(v, __shfl_xor_sync(FULL_WARP, v, offset));
    return v;
}

/* All BLOCK threads' values, by butterflies within and across warps; part holds WARPS values. */
template <class Op> __device__ float block_butterfly(float v, float *part) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;

    v = warp_butterfly<Op>(v);
    if (lane == 0)
        part[warp] = v;
    __syncthreads();
    v = part[lane % WARPS];
    for (int offset = WARPS / 2; offset > 0; offset /= 2)
        v = Op::combine(v, __shfl_xor_sync(FULL_WARP, v, offset));
    __syncthreads(); /* part may be reused at once */
    return v;
}

#endif
