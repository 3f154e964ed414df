/*
 * Rung 11.  Rows of a million and more: several blocks per row leave a part each, and a second launch
 * reduces the parts, in their order.  Deterministic, and the launch costs what a barrier over the whole
 * grid would.
 */
#include "kernels/reduce/split.cuh"

template <class Op, class T> __device__ void parts(const T *x, float *y, int cols, int chunk_cols) {
    const float v = reduce_chunk<Op>(x, cols, chunk_cols);
    if (threadIdx.x == 0)
        y[(size_t)blockIdx.y * gridDim.x + blockIdx.x] = v;
}

#define TWO_STAGE(dtype, T, op, Op)                                                 \
    extern "C" __global__ void __launch_bounds__(BLOCK) op##_two_stage_##dtype(     \
        const T *__restrict__ x, float *__restrict__ y, int cols, int chunk_cols) { \
        parts<Op>(x, y, cols, chunk_cols);                                          \
    }

FOR_EACH_DTYPE(TWO_STAGE, sum, Sum)
FOR_EACH_DTYPE(TWO_STAGE, max, Max)

/* The second launch: a row's parts to its result. */
#define LAST_STAGE(dtype, T, op, Op)                                                         \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                      \
        op##_last_stage_##dtype(const float *__restrict__ x, T *__restrict__ y, int count) { \
        const float v =                                                                      \
            block_reduce<Op>(stream<Op, 4>(row_of(x, count), count, threadIdx.x, BLOCK));    \
        if (threadIdx.x == 0)                                                                \
            put(&y[blockIdx.x], v);                                                          \
    }

FOR_EACH_DTYPE(LAST_STAGE, sum, Sum)
FOR_EACH_DTYPE(LAST_STAGE, max, Max)
