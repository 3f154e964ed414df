/*
 * Rung 10.  A row for a warp, for a quarter of one or for a block, whatever suits its length, with
 * up to eight 16-byte loads under way in each thread.
 *
 * `block_row`: rows of some thousands; one batch of loads, one barrier.
 * `warp_row`: rows of hundreds; no barrier, and while one warp folds its row others load.
 * `short_row`: sixteen lanes per row: a fold takes 4 shuffles for two rows where a warp takes 5 for
 * one, which is what limits rows of 256 and less.
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

/* LANES neighbouring lanes per row; blockDim.x = LANES, BLOCK threads in all. */
template <class Op, int LANES, int DEPTH, class In, class Out>
__device__ void lanes_row(const In *x, Out *y, unsigned rows, int cols) {
    const unsigned r = blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
    const unsigned lane = threadIdx.x % LANES;
    float v = Op::identity();

    if (r < rows)
        v = stream<Op, DEPTH>(x + (size_t)r * cols, cols, lane, LANES);
    for (int offset = LANES / 2; offset > 0; offset /= 2)
        v = Op::combine(v, __shfl_down_sync(0xffffffff, v, offset, LANES));
    if (r < rows && lane == 0)
        put(&y[r], v);
}

template <class Op, class In, class Out>
__device__ void warp_row(const In *x, Out *y, unsigned rows, int cols) {
    lanes_row<Op, 32, 8>(x, y, rows, cols);
}

template <class Op, class In, class Out>
__device__ void short_row(const In *x, Out *y, unsigned rows, int cols) {
    lanes_row<Op, 16, 4>(x, y, rows, cols);
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
