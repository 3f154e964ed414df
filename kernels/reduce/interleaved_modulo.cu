/*
 * Rung 1.  One element per thread into shared memory; then neighbours at distance 1, 2, 4 .. 128
 * are combined by the threads whose index divides by twice the distance.  The pairwise tree as
 * textbooks draw it, height ceil(log2 cols), and the slowest: the working threads are scattered
 * over all warps (every warp diverges until the last step) and `%` by a variable is a division.
 */
#include "kernels/reduce/op.cuh"

template <class Op, class T> __device__ void interleaved_modulo(const T *x, float *y, int cols) {
    __shared__ float part[BLOCK];
    const int tid = threadIdx.x;
    const int i = blockIdx.y * BLOCK + tid;

    part[tid] = i < cols ? get(row_of(x, cols)[i]) : Op::identity();
    __syncthreads();
    for (int step = 1; step < (int)blockDim.x; step *= 2) {
        if (tid % (2 * step) == 0)
            part[tid] = Op::combine(part[tid], part[tid + step]);
        __syncthreads();
    }
    if (tid == 0)
        *part_of(y) = part[0];
}

REDUCE_KERNELS(interleaved_modulo, interleaved_modulo)
