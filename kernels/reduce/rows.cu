/*
 * Rung 10.  Eight or four 16-byte loads under way per thread.  `block_row` gives a row to a block;
 * `warp_row` to a warp, which strides over the rows: no barrier, and while one warp folds its row
 * the others load.
 */
#include "kernels/reduce/block.cuh"
#include "kernels/reduce/stream.cuh"

template <class Op> __device__ float warp_reduce(float v) {
    for (int offset = 16; offset > 0; offset /= 2)
        v = Op::combine(v, __shfl_down_sync(0xffffffff, v, offset));
    return v;
}

template <class Op, int DEPTH, class In, class Out>
__device__ void block_row(const In *__restrict__ x, Out *__restrict__ y, int cols) {
    const In *row = x + (size_t)blockIdx.x * cols;
    const float v = block_reduce<Op>(stream<Op, DEPTH>(row, cols, threadIdx.x, BLOCK));
    if (threadIdx.x == 0)
        put(&y[blockIdx.x], v);
}

template <class Op, int DEPTH, class In, class Out>
__device__ void warp_row(const In *__restrict__ x, Out *__restrict__ y, unsigned rows, int cols) {
    const unsigned warps = gridDim.x * blockDim.y;
    for (unsigned r = blockIdx.x * blockDim.y + threadIdx.y; r < rows; r += warps) {
        const float v =
            warp_reduce<Op>(stream<Op, DEPTH>(x + (size_t)r * cols, cols, threadIdx.x, 32));
        if (threadIdx.x == 0)
            put(&y[r], v);
    }
}

#define B(dtype, T, op, Op, DEPTH)                                                       \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                    \
        op##_block_row##DEPTH##_##dtype(const T *__restrict__ x, float *__restrict__ y, int cols) { \
        block_row<Op, DEPTH>(x, y, cols);                                                           \
    }
#define W(dtype, T, op, Op, DEPTH)                                                       \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                    \
        op##_warp_row##DEPTH##_##dtype(const T *__restrict__ x, float *__restrict__ y, int rows, int cols) { \
        warp_row<Op, DEPTH>(x, y, rows, cols);                                                           \
    }
FOR_EACH_DTYPE(B, sum, Sum, 4)
FOR_EACH_DTYPE(B, sum, Sum, 8)
FOR_EACH_DTYPE(W, sum, Sum, 4)
FOR_EACH_DTYPE(W, sum, Sum, 8)

/* A row's chunks: blockIdx.y takes chunk_cols of it; part y[row * gridDim.y + blockIdx.y]. */
template <class Op, int DEPTH, class In>
__device__ void chunk(const In *__restrict__ x, float *__restrict__ y, int cols, int chunk_cols) {
    const unsigned start = min(blockIdx.x * chunk_cols, cols), end = min(start + chunk_cols, cols);
    const In *row = x + (size_t)blockIdx.y * cols + start;
    const float v = block_reduce<Op>(stream<Op, DEPTH>(row, end - start, threadIdx.x, BLOCK));
    if (threadIdx.x == 0)
        y[blockIdx.y * gridDim.x + blockIdx.x] = v;
}
#define C(dtype, T, op, Op, DEPTH)                                                       \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                    \
        op##_chunk##DEPTH##_##dtype(const T *__restrict__ x, float *__restrict__ y, int cols, int chunk_cols) { \
        chunk<Op, DEPTH>(x, y, cols, chunk_cols);                                                           \
    }
FOR_EACH_DTYPE(C, sum, Sum, 4)
FOR_EACH_DTYPE(C, sum, Sum, 8)
