/*
 * Rung 1.  The definition, one kernel per step: row maxima, row sums of exp(x - max), quotients; m
 * and l travel through global memory.  x is read three times and expf taken twice per entry, but
 * each kernel is trivial, the last one has a thread per entry, and the sum knows its final maximum,
 * so no term is ever rescaled: numerically the cleanest rung.
 */
#include "kernels/softmax/row.cuh"

template <class T>
__device__ void max_step(const T *__restrict__ x, float *__restrict__ m, int cols) {
    __shared__ float part[BLOCK];
    const T *row = x + (size_t)blockIdx.x * cols;

    const float max = block_combine<RowMax>(cols, part, [=](int i) { return get(row[i]); });
    if (threadIdx.x == 0)
        m[blockIdx.x] = max;
}

template <class T>
__device__ void sum_step(const T *__restrict__ x, const float *__restrict__ m,
                         float *__restrict__ l, int cols) {
    __shared__ float part[BLOCK];
    const T *row = x + (size_t)blockIdx.x * cols;
    const float max = m[blockIdx.x];

    const float sum =
        block_combine<RowSum>(cols, part, [=](int i) { return expf(get(row[i]) - max); });
    if (threadIdx.x == 0)
        l[blockIdx.x] = sum;
}

template <class T>
__device__ void write_step(const T *__restrict__ x, const float *__restrict__ m,
                           const float *__restrict__ l, T *__restrict__ y, int cols) {
    const int i = blockIdx.y * BLOCK + threadIdx.x;

    if (i < cols) {
        const size_t at = (size_t)blockIdx.x * cols + i;
        put(&y[at], expf(get(x[at]) - m[blockIdx.x]) / l[blockIdx.x]);
    }
}

#define SOFTMAX_THREE_KERNELS(dtype, T, name)                                                    \
    extern "C" __global__ void softmax_##name##_max_##dtype(const T *__restrict__ x,             \
                                                            float *__restrict__ m, int cols) {   \
        max_step(x, m, cols);                                                                    \
    }                                                                                            \
    extern "C" __global__ void softmax_##name##_sum_##dtype(                                     \
        const T *__restrict__ x, const float *__restrict__ m, float *__restrict__ l, int cols) { \
        sum_step(x, m, l, cols);                                                                 \
    }                                                                                            \
    extern "C" __global__ void softmax_##name##_write_##dtype(                                   \
        const T *__restrict__ x, const float *__restrict__ m, const float *__restrict__ l,       \
        T *__restrict__ y, int cols) {                                                           \
        write_step(x, m, l, y, cols);                                                            \
    }

FOR_EACH_DTYPE(SOFTMAX_THREE_KERNELS, three_kernels)
