/*
 * Rung 2.  The same tree, hence the same bits, but thread t works on slot 2 * step * t: the
 * working threads are the first ones, whole warps go idle together and nothing divergent is left
 * above one warp.  New cost: at distance `step` the lanes of a warp hit every (2 * step)th bank,
 * up to 32 ways.
 */
#include "kernels/reduce/op.cuh"

template <class Op, class T> __device__ void interleaved_stride(const T *x, float *y, int cols) {
    __shared__ float part[BLOCK];
    const int tid = threadIdx.x;
    const int i = blockIdx.y * BLOCK + tid;

    part[tid] = i < cols ? get(row_of(x, cols)[i]) : Op::identity();
    __syncthreads();
    for (int step = 1; step < (int)blockDim.x; step *= 2) {
        const int slot = 2 * step * tid;
        if (slot < (int)blockDim.x)
            part[slot] = Op::combine(part[slot], part[slot + step]);
        __syncthreads();
    }
    if (tid == 0)
        *part_of(y) = part[0];
}

REDUCE_KERNELS(interleaved_stride, interleaved_stride)
