/*
 * Rung 5.  Once 64 values are left, one warp finishes: five block barriers become warp barriers.
 * The classic form of this rung (`volatile`, no barrier) lived on lanes running in lockstep,
 * which no GPU since Volta promises.  Each step here loads, waits, stores, waits: without the
 * first wait a lane may overwrite a value that another has yet to read.  Same tree and bits as
 * rung 4.
 */
#include "kernels/reduce/op.cuh"

template <class Op, class T> __device__ void last_warp(const T *x, float *y, int cols) {
    __shared__ float part[BLOCK];
    const T *row = row_of(x, cols);
    const int tid = threadIdx.x;
    const int i = blockIdx.y * 2 * BLOCK + tid;

    float v = i < cols ? get(row[i]) : Op::identity();
    if (i + BLOCK < cols)
        v = Op::combine(v, get(row[i + BLOCK]));
    part[tid] = v;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 32; half /= 2) {
        if (tid < half)
            part[tid] = Op::combine(part[tid], part[tid + half]);
        __syncthreads();
    }
    if (tid >= 32)
        return;
    for (int half = 32; half > 0; half /= 2) {
        v = Op::combine(part[tid], part[tid + half]);
        __syncwarp();
        part[tid] = v;
        __syncwarp();
    }
    if (tid == 0)
        *part_of(y) = v;
}

REDUCE_KERNELS(last_warp, last_warp)
