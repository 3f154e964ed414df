/*
 * Rung 8.  One block per row, and lanes exchange registers by shuffle: shared memory holds 8 values
 * instead of 256, and one block barrier is left of nine.  One launch, no scratch; a long row now
 * hangs on a single block, so it wants many rows.
 */
#include "kernels/reduce/block.cuh"

template <class Op, class T> __device__ void warp_shuffle(const T *x, float *y, int cols) {
    const T *row = row_of(x, cols);

    float v = Op::identity();
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        v = Op::combine(v, get(row[i]));
    v = block_reduce<Op>(v);
    if (threadIdx.x == 0)
        y[blockIdx.x] = v;
}

REDUCE_KERNELS(warp_shuffle, warp_shuffle)
