/*
 * Rung 10.  A row for a warp, for an eighth to a half of one or for a block, whatever suits its length, with
 * up to eight 16-byte loads under way in each thread.
 *
 * `block_row`: rows of some thousands; one batch of loads, one barrier.
 * `warp_row`: rows of hundreds; no barrier, and while one warp folds its row others load.
 * `short_row`: 4 to 16 lanes per row, as many as it fills with two loads each: a fold takes 2
 * shuffles for eight rows, or 4 for two, where a warp takes 5 for one, which is what limits rows of
 * 256 and less.  Of whole vectors, as rows of 32 or 64 mostly are, nothing is ragged, and so the
 * instructions for that are spared.
 *
 * y is f32 (NAME_DTYPE) or of x's type (NAME_to_DTYPE, rounded once in the end).
 */
#include "kernels/reduce/block.cuh"
#include "kernels/reduce/stream.cuh"

template <class Op, class In, class Out>
__device__ void block_row(const In *x, Out *y, unsigned, int cols) {
    const float v = block_reduce<Op>(stream<Op, 4>(row_of(x, cols), cols, threadIdx.x, BLOCK));
    if (threadIdx.x == 0)
        put(&y[blockIdx.x], v);
}

/* The values of every `lanes` neighbours, a power of two and at most MOST, for their first one. */
template <class Op, int MOST> __device__ float fold(float v, unsigned lanes) {
#pragma unroll
    for (unsigned offset = MOST / 2; offset > 0; offset /= 2)
        if (offset < lanes)
            v = Op::combine(v, __shfl_down_sync(0xffffffff, v, offset, lanes));
    return v;
}

template <class Op, class In, class Out>
__device__ void warp_row(const In *x, Out *y, unsigned rows, int cols) {
    const unsigned r = blockIdx.x * (BLOCK / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float v = Op::identity();

    if (r < rows)
        v = stream<Op, 8>(x + (size_t)r * cols, cols, lane, 32);
    v = fold<Op, 32>(v, 32);
    if (r < rows && lane == 0)
        put(&y[r], v);
}

/* A row for blockDim.x lanes, 4, 8 or 16. */
template <class Op, class In, class Out>
__device__ void short_row(const In *x, Out *y, unsigned rows, int cols) {
    const unsigned r = blockIdx.x * blockDim.y + threadIdx.y, lanes = blockDim.x;
    const In *row = x + (size_t)r * cols;
    float v = Op::identity();

    if (r < rows)
        v = all_whole(x, cols) ? stream_cut<Op, 4, 4>(row, Whole<In>(row, cols), threadIdx.x, lanes)
                               : stream_cut<Op, 4, 4>(row, Cut<In>(row, cols), threadIdx.x, lanes);
    v = fold<Op, 16>(v, lanes);
    if (r < rows && threadIdx.x == 0)
        put(&y[r], v);
}

#define ROW_KERNEL(dtype, T, Out, op, name, body)                                                 \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                           \
        op##_##name##_##dtype(const T *__restrict__ x, Out *__restrict__ y, int rows, int cols) { \
        body(x, y, rows, cols);                                                                   \
    }
#define ROW_KERNELS(op, Op, name)                              \
    ROW_KERNEL(f32, float, float, op, name, name<Op>)          \
    ROW_KERNEL(f16, __half, float, op, name, name<Op>)         \
    ROW_KERNEL(bf16, __nv_bfloat16, float, op, name, name<Op>) \
    ROW_KERNEL(f16, __half, __half, op, name##_to, name<Op>)   \
    ROW_KERNEL(bf16, __nv_bfloat16, __nv_bfloat16, op, name##_to, name<Op>)

ROW_KERNELS(sum, Sum, block_row)
ROW_KERNELS(max, Max, block_row)
ROW_KERNELS(sum, Sum, warp_row)
ROW_KERNELS(max, Max, warp_row)
ROW_KERNELS(sum, Sum, short_row)
ROW_KERNELS(max, Max, short_row)
