/*
 * Rung 6.  The block size is a template parameter and every step of the tree its own instantiation:
 * no loop, no induction variable, and steps that a smaller block would not need are not compiled.
 * Buys the loop overhead of rung 5, nothing else; same tree and bits as rungs 4 and 5.
 */
#include "kernels/reduce/op.cuh"

template <class Op, int half> __device__ void halve(float *part, int tid) {
    if constexpr (half > 32) {
        if (tid < half)
            part[tid] = Op::combine(part[tid], part[tid + half]);
        __syncthreads();
    } else {
        const float v = Op::combine(part[tid], part[tid + half]);
        __syncwarp();
        part[tid] = v;
        __syncwarp();
    }
}

template <class Op, int block, class T>
__device__ void unrolled_tree(const T *x, float *y, int cols) {
    __shared__ float part[block];
    const T *row = row_of(x, cols);
    const int tid = threadIdx.x;
    const int i = blockIdx.y * 2 * block + tid;

    float v = i < cols ? get(row[i]) : Op::identity();
    if (i + block < cols)
        v = Op::combine(v, get(row[i + block]));
    part[tid] = v;
    __syncthreads();
    if constexpr (block >= 1024)
        halve<Op, 512>(part, tid);
    if constexpr (block >= 512)
        halve<Op, 256>(part, tid);
    if constexpr (block >= 256)
        halve<Op, 128>(part, tid);
    if constexpr (block >= 128)
        halve<Op, 64>(part, tid);
    if (tid >= 32)
        return;
    halve<Op, 32>(part, tid);
    halve<Op, 16>(part, tid);
    halve<Op, 8>(part, tid);
    halve<Op, 4>(part, tid);
    halve<Op, 2>(part, tid);
    halve<Op, 1>(part, tid);
    if (tid == 0)
        *part_of(y) = part[0];
}

template <class Op, class T> __device__ void unrolled(const T *x, float *y, int cols) {
    unrolled_tree<Op, BLOCK>(x, y, cols);
}

REDUCE_KERNELS(unrolled, unrolled)
