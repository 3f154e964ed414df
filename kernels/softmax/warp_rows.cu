/*
 * Rung 8.  A warp per row, the row in its registers in 16-byte vectors: no shared memory, no barrier.
 * `warp_rows` takes up to 1024 entries, 32 per lane; `warp_half` and `warp_short` take 512 and 256, and
 * with a half and a quarter of the registers more warps are resident, hence more bytes under way.
 *
 * `lanes`: rows of at most 128 (256 in 16 bits) would give a lane a single vector.  Here 8 lanes take a row (16
 * in 16 bits, which have more ragged entries), so a warp has four (two) rows and each lane four (two) vectors
 * under way, and a reduction takes 3 (4) shuffles for all of them.
 */
#include "kernels/softmax/on_chip.cuh"

template <int VALUES, class Exp, class T>
__device__ void warp_rows(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) {
    const int r = blockIdx.x * blockDim.y + threadIdx.y;
    if (r >= rows)
        return;
    RegisterRow<T, VALUES / VEC<T>> row(x + (size_t)r * cols, cols, threadIdx.x, WARP);
    const float max = warp_butterfly<RowMax>(row.max());
    const float sum = warp_butterfly<RowSum>(row.exp_sum(Exp(max)));
    row.write(y + (size_t)r * cols, 1.0f / sum);
}

/* LANES neighbouring lanes per row; blockDim.x = LANES.  All lanes of a warp stay for its shuffles. */
template <int LANES, class Exp, class T>
__device__ void lanes(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) {
    const int r = blockIdx.x * blockDim.y + threadIdx.y;
    const size_t at = (size_t)r * cols;
    RegisterRow<T, 16 / VEC<T>> row(x + at, r < rows ? cols : 0, threadIdx.x, LANES);
    const float max = warp_butterfly<RowMax, LANES>(row.max());
    const float sum = warp_butterfly<RowSum, LANES>(row.exp_sum(Exp(max)));
    row.write(y + at, 1.0f / sum);
}

#define SOFTMAX_LANES(dtype, T, name)                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) { \
        lanes<2 * VEC<T>, ExpOf<T>>(x, y, rows, cols);                                             \
    }

FOR_EACH_DTYPE(SOFTMAX_LANES, lanes)

#define SOFTMAX_WARP_ROWS(dtype, T, name, VALUES)                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) { \
        warp_rows<VALUES, ExpOf<T>>(x, y, rows, cols);                                             \
    }

FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_rows, 32)
FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_half, 16)
FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_short, 8)
