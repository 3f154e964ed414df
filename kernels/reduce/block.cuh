/*
 * A block's values combined by shuffles: 32 lanes in 5 register steps, the 8 warps' results through
 * shared memory, then 3 steps more.  One block barrier in all.  The result is valid in thread 0.
 */
#ifndef KERNELS_REDUCE_BLOCK_CUH
#define KERNELS_REDUCE_BLOCK_CUH

#include "kernels/reduce/op.cuh"

#define WARPS (BLOCK / 32)

template <class Op> __device__ float block_reduce(float v) {
    __shared__ float part[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    for (int offset = 16; offset > 0; offset /= 2)
        v = Op::combine(v, __shfl_down_sync(0xffffffff, v, offset));
    if (lane == 0)
        part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < WARPS ? part[lane] : Op::identity();
        for (int offset = WARPS / 2; offset > 0; offset /= 2)
            v = Op::combine(v, __shfl_down_sync(0xffffffff, v, offset));
    }
    return v;
}

#endif
