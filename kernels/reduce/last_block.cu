/*
 * Rung 12.  One launch: the block that finishes a row last reduces the row's parts.  Which one that is
 * depends on timing, but the parts and their order do not: the same bits in every run.
 *
 * Each block writes its part, then a fence, then counts itself; the last to count sees all parts,
 * through L2 (ld.cg), as its L1 may hold old lines.  It leaves its counter at 0 for the next launch;
 * reduce_clear zeroes the counters before the first.
 */
#include "kernels/reduce/split.cuh"

extern "C" __global__ void reduce_clear(unsigned *words, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        words[i] = 0;
}

template <class Op, class In, class Out>
__device__ void last_block(const In *x, Out *y, float *parts, unsigned *counters, int cols,
                           int chunk_cols) {
    __shared__ bool is_last;
    const unsigned blocks = gridDim.x;

    float v = reduce_chunk<Op>(x, cols, chunk_cols);
    parts += (size_t)blockIdx.y * blocks;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = v;
        __threadfence();
        is_last = atomicAdd(&counters[blockIdx.y], 1) == blocks - 1;
    }
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    v = Op::identity();
    for (unsigned i = threadIdx.x; i < blocks; i += BLOCK)
        v = Op::combine(v, __ldcg(&parts[i]));
    v = block_reduce<Op>(v);
    if (threadIdx.x == 0) {
        put(&y[blockIdx.y], v);
        counters[blockIdx.y] = 0;
    }
}

#define LAST_BLOCK(dtype, T, op, Op)                                                          \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                       \
        op##_last_block_##dtype(const T *__restrict__ x, float *__restrict__ y, float *parts, \
                                unsigned *counters, int cols, int chunk_cols) {               \
        last_block<Op>(x, y, parts, counters, cols, chunk_cols);                              \
    }

FOR_EACH_DTYPE(LAST_BLOCK, sum, Sum)
FOR_EACH_DTYPE(LAST_BLOCK, max, Max)
