/*
 * Rung 7.  For rows of at most 256: a warp per row with the row in registers, 8 entries per lane.
 * As rung 5, but no shared memory and no barrier, and a short row no longer idles most of a block.
 */
#include "kernels/softmax/row.cuh"

#define ITEMS 8

template <class T>
__device__ void warp(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) {
    const int lane = threadIdx.x;
    const int r = blockIdx.x * blockDim.y + threadIdx.y;
    const T *row = x + (size_t)r * cols;
    T *out = y + (size_t)r * cols;
    float v[ITEMS];

    if (r >= rows)
        return;
    float max = NEG_INF;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * WARP + lane;
        v[k] = i < cols ? get(row[i]) : NEG_INF;
        max = fmaxf(max, v[k]);
    }
    max = warp_butterfly<RowMax>(max);

    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (k * WARP + lane < cols) {
            v[k] = expf(v[k] - max);
            sum += v[k];
        }
    sum = warp_butterfly<RowSum>(sum);

#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (k * WARP + lane < cols)
            put(&out[k * WARP + lane], v[k] / sum);
}

#define SOFTMAX_WARP(dtype, T, name)                                                             \
    extern "C" __global__ void softmax_##name##_##dtype(const T *__restrict__ x,                 \
                                                        T *__restrict__ y, int rows, int cols) { \
        name(x, y, rows, cols);                                                                  \
    }

FOR_EACH_DTYPE(SOFTMAX_WARP, warp)
