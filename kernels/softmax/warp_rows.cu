/*
 * Rung 8.  A warp per row, the row in its registers in 16-byte vectors: no shared memory, no barrier.
 * `warp_rows` takes up to 1024 entries, 32 per lane; `warp_half` and `warp_short` take 512 and 256, and
 * with a half and a quarter of the registers more warps are resident, hence more bytes under way.
 *
 * `lanes`: rows of at most 128 (256 in 16 bits) would give a lane a single vector.  Here 8 lanes take a row (16
 * in 16 bits, which have more ragged entries), so a warp has four (two) rows and each lane four (two) vectors
 * under way, and a reduction takes 3 (4) shuffles for all of them.
 *
 * log_softmax and log-sum-exp of short rows as well: the same with another result.
 */
#include "kernels/softmax/results.cuh"

/* LANES neighbouring lanes per row; blockDim.x = LANES.  All lanes of a warp stay for its shuffles. */
template <int LANES, class Result, int ENTRIES, class T>
__device__ void lanes(const T *__restrict__ x, typename Result::Out *__restrict__ y, int rows,
                      int cols) {
    const int r = blockIdx.x * blockDim.y + threadIdx.y;
    if (LANES == WARP && r >= rows)
        return;
    RegisterRow<T, ENTRIES / VEC<T>> row(x + (size_t)r * cols, r < rows ? cols : 0, threadIdx.x,
                                         LANES);
    Result::template finish<Lanes<LANES>>(row, y, r, cols, threadIdx.x == 0 && r < rows);
}

#define SHORT_ROWS(dtype, T, name, LANES, ENTRIES, Result)                             \
    extern "C" __global__ void __launch_bounds__(256) name##_##dtype(                  \
        const T *__restrict__ x, Result<T>::Out *__restrict__ y, int rows, int cols) { \
        lanes<LANES, Result<T>, ENTRIES>(x, y, rows, cols);                            \
    }

#define LANES_ROWS(dtype, T, name, Result) SHORT_ROWS(dtype, T, name, 2 * VEC<T>, 16, Result)

FOR_EACH_DTYPE(SHORT_ROWS, softmax_warp_rows, WARP, 32, Softmax)
FOR_EACH_DTYPE(SHORT_ROWS, softmax_warp_half, WARP, 16, Softmax)
FOR_EACH_DTYPE(SHORT_ROWS, softmax_warp_short, WARP, 8, Softmax)
FOR_EACH_DTYPE(LANES_ROWS, softmax_lanes, Softmax)
FOR_EACH_DTYPE(SHORT_ROWS, log_softmax_warp_half, WARP, 16, LogSoftmax)
FOR_EACH_DTYPE(LANES_ROWS, log_softmax_lanes, LogSoftmax)
FOR_EACH_DTYPE(SHORT_ROWS, lse_warp_half, WARP, 16, Lse)
FOR_EACH_DTYPE(LANES_ROWS, lse_lanes, Lse)
