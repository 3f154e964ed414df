/*
 * What a row is reduced by.  Every rung of this ladder is one template over these two, so that sum
 * and max of a rung differ in nothing but the combine.
 */
#ifndef KERNELS_REDUCE_OP_CUH
#define KERNELS_REDUCE_OP_CUH

#include "kernels/io.cuh"

#define BLOCK 256 /* threads of a block, in every rung */

struct Sum {
    static __device__ float identity() { return 0.0f; }
    static __device__ float combine(float a, float b) { return a + b; }
};

/* NaN if either is NaN, as PyTorch's amax; fmaxf would drop it.  One instruction since sm_80. */
struct Max {
    static __device__ float identity() { return __int_as_float(0xff800000); } /* -Inf */
    static __device__ float combine(float a, float b) {
        float max;
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(max) : "f"(a), "f"(b));
        return max;
    }
};

/*
 * A rung's kernels, for each dtype of x: OP_NAME_DTYPE reduces x to y by BODY<Op>(x, y, cols).  All
 * arithmetic is f32, and so is y: the parts that a second launch (NAME_f32) reduces keep every bit.
 */
#define REDUCE_KERNEL(dtype, T, op, name, body)                                         \
    extern "C" __global__ void op##_##name##_##dtype(const T *__restrict__ x,           \
                                                     float *__restrict__ y, int cols) { \
        body(x, y, cols);                                                               \
    }
#define REDUCE_KERNELS(name, body)                      \
    FOR_EACH_DTYPE(REDUCE_KERNEL, sum, name, body<Sum>) \
    FOR_EACH_DTYPE(REDUCE_KERNEL, max, name, body<Max>)

/*
 * Rungs 1 to 7 cut each row among gridDim.y blocks.  Block (r, b) leaves its part of row r in
 * y[r * gridDim.y + b]; a second launch of the same kernel with one block per row reduces those
 * parts.  (Rows run along x because y and z of a grid end at 65535.)
 */
template <class T> __device__ const T *row_of(const T *x, int cols) {
    return x + (size_t)blockIdx.x * cols;
}

inline __device__ float *part_of(float *y) {
    return y + (size_t)blockIdx.x * gridDim.y + blockIdx.y;
}

#endif
