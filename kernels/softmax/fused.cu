/*
 * Rung 5.  One read, one write, one expf per entry: the block holds its row in registers, 16
 * entries per thread, so the maximum is known before the first expf and nothing is rescaled.  The
 * price is the row's length: at most 4096.
 */
#include "kernels/softmax/row.cuh"

#define ITEMS 16

template <class T> __device__ void fused(const T *__restrict__ x, T *__restrict__ y, int cols) {
    __shared__ float part[WARPS];
    const T *row = x + (size_t)blockIdx.x * cols;
    T *out = y + (size_t)blockIdx.x * cols;
    const int tid = threadIdx.x;
    float v[ITEMS];

    float max = NEG_INF;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * BLOCK + tid;
        v[k] = i < cols ? get(row[i]) : NEG_INF;
        max = fmaxf(max, v[k]);
    }
    max = block_butterfly<RowMax>(max, part);

    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (k * BLOCK + tid < cols) {
            v[k] = expf(v[k] - max);
            sum += v[k];
        }
    sum = block_butterfly<RowSum>(sum, part);

#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (k * BLOCK + tid < cols)
            put(&out[k * BLOCK + tid], v[k] / sum);
}

#define SOFTMAX_FUSED(dtype, T, name)                                                    \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                  \
        softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int cols) { \
        name(x, y, cols);                                                                \
    }

FOR_EACH_DTYPE(SOFTMAX_FUSED, fused)
