/*
 * Rung 9.  A warp per row, the row in its registers in 16-byte vectors: no shared memory, no barrier.
 * `warp_rows` takes up to 1024 entries, 32 per lane.  `warp_short` takes up to 256, and as such a row
 * is one or two loads per lane, a warp holds four rows at once to have as many bytes under way.
 */
#include "kernels/softmax/on_chip.cuh"

template <int ROWS, int VALUES, class Exp, class T>
__device__ void warp_rows(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) {
    typedef RegisterRow<T, VALUES / VEC<T>> Row;
    const int first = (blockIdx.x * blockDim.y + threadIdx.y) * ROWS;
    Row r[ROWS];

#pragma unroll
    for (int k = 0; k < ROWS; k++)
        if (first + k < rows)
            r[k] = Row(x + (size_t)(first + k) * cols, cols, threadIdx.x, WARP);
#pragma unroll
    for (int k = 0; k < ROWS; k++)
        if (first + k < rows) {
            const float max = warp_butterfly<RowMax>(r[k].max());
            const float sum = warp_butterfly<RowSum>(r[k].exp_sum(Exp(max)));
            r[k].write(y + (size_t)(first + k) * cols, 1.0f / sum);
        }
}

#define SOFTMAX_WARP_ROWS(dtype, T, name, ROWS, VALUES)                                     \
    extern "C" __global__ void __launch_bounds__(256)                                       \
        softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int rows,      \
                                 int cols) {                                                \
        warp_rows<ROWS, VALUES, ExpOf<T>>(x, y, rows, cols);                                \
    }

FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_rows, 1, 32)
FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_half, 1, 16)
FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_short, 1, 8)
#ifdef BENCH_VARIANTS
FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_short2, 2, 8)
#endif
