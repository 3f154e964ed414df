/*
 * Rung 8.  A warp per row, the row in its registers in 16-byte vectors: no shared memory, no barrier.
 * `warp_rows` takes up to 1024 entries, 32 per lane; `warp_half` and `warp_short` take 512 and 256, and
 * with a half and a quarter of the registers more warps are resident, hence more bytes under way.
 * log_softmax and log-sum-exp of 512 as well: the same with another result.
 */
#include "kernels/softmax/results.cuh"

template <class Result, int ENTRIES, class T>
__device__ void warp_row(const T *__restrict__ x, typename Result::Out *__restrict__ y, int rows,
                         int cols) {
    const int r = blockIdx.x * blockDim.y + threadIdx.y;
    if (r >= rows)
        return;
    RegisterRow<T, ENTRIES / VEC<T>> row(x + (size_t)r * cols, cols, threadIdx.x, WARP);
    Result::template finish<Warp>(row, y, r, cols, threadIdx.x == 0);
}

#define WARP_ROWS(dtype, T, name, ENTRIES, Result)                                     \
    extern "C" __global__ void __launch_bounds__(256) name##_##dtype(                  \
        const T *__restrict__ x, Result<T>::Out *__restrict__ y, int rows, int cols) { \
        warp_row<Result<T>, ENTRIES>(x, y, rows, cols);                                \
    }

FOR_EACH_DTYPE(WARP_ROWS, softmax_warp_rows, 32, Softmax)
FOR_EACH_DTYPE(WARP_ROWS, softmax_warp_half, 16, Softmax)
FOR_EACH_DTYPE(WARP_ROWS, softmax_warp_short, 8, Softmax)
FOR_EACH_DTYPE(WARP_ROWS, log_softmax_warp_half, 16, LogSoftmax)
FOR_EACH_DTYPE(WARP_ROWS, lse_warp_half, 16, Lse)
