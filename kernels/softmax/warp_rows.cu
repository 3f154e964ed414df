/*
 * Rung 8.  A warp per row, the row in its registers in 16-byte vectors: no shared memory, no barrier.
 * `warp_rows` takes up to 1024 entries, 32 per lane; `warp_half` and `warp_short` take 512 and 256, and
 * with a half and a quarter of the registers more warps are resident, hence more bytes under way.
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

#define SOFTMAX_WARP_ROWS(dtype, T, name, VALUES)                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) { \
        warp_rows<VALUES, ExpOf<T>>(x, y, rows, cols);                                             \
    }

FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_rows, 32)
FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_half, 16)
FOR_EACH_DTYPE(SOFTMAX_WARP_ROWS, warp_short, 8)
