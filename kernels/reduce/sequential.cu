/*
 * Rung 3.  Halves are combined: distance 128, 64 .. 1, thread t always on slot t, so the lanes of
 * a warp touch consecutive banks.  The tree is another one (t with t + 128, not with its
 * neighbour) of the same height: other bits, same bound.
 */
#include "kernels/reduce/op.cuh"

template <class Op, class T> __device__ void sequential(const T *x, float *y, int cols) {
    __shared__ float part[BLOCK];
    const int tid = threadIdx.x;
    const int i = blockIdx.y * BLOCK + tid;

    part[tid] = i < cols ? get(row_of(x, cols)[i]) : Op::identity();
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            part[tid] = Op::combine(part[tid], part[tid + half]);
        __syncthreads();
    }
    if (tid == 0)
        *part_of(y) = part[0];
}

REDUCE_KERNELS(sequential, sequential)
