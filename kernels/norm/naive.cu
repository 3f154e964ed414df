/*
 * The norms as they are defined, a block per row: layernorm takes the mean first and then the mean
 * square of what is left, so a large mean costs nothing; rmsnorm takes one sum of squares.
 */
#include "kernels/io.cuh"
#include "kernels/softmax/row.cuh"

template <class F> __device__ float row_sum(F term, int cols, float *part) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        sum += term(i);
    return block_tree<RowSum>(sum, part);
}

template <class T>
__device__ void layernorm(const T *x, const T *w, const T *b, T *y, int cols, float eps) {
    __shared__ float part[BLOCK];
    x += (size_t)blockIdx.x * cols;
    y += (size_t)blockIdx.x * cols;

    const float mean = row_sum([=](int i) { return get(x[i]); }, cols, part) / cols;
    const float variance = row_sum(
                               [=](int i) {
                                   const float d = get(x[i]) - mean;
                                   return d * d;
                               },
                               cols, part) /
                           cols;
    const float scale = 1.0f / sqrtf(variance + eps);
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        put(&y[i], (get(x[i]) - mean) * scale * get(w[i]) + get(b[i]));
}

template <class T> __device__ void rmsnorm(const T *x, const T *w, T *y, int cols, float eps) {
    __shared__ float part[BLOCK];
    x += (size_t)blockIdx.x * cols;
    y += (size_t)blockIdx.x * cols;

    const float square =
        row_sum([=](int i) { return get(x[i]) * get(x[i]); }, cols, part) / cols;
    const float scale = 1.0f / sqrtf(square + eps);
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        put(&y[i], get(x[i]) * scale * get(w[i]));
}

#define NORMS(suffix, T)                                                                         \
    extern "C" __global__ void layernorm_naive_##suffix(const T *x, const T *w, const T *b,      \
                                                        T *y, int cols, float eps) {             \
        layernorm(x, w, b, y, cols, eps);                                                        \
    }                                                                                            \
    extern "C" __global__ void rmsnorm_naive_##suffix(const T *x, const T *w, T *y, int cols,    \
                                                      float eps) {                               \
        rmsnorm(x, w, y, cols, eps);                                                             \
    }

NORMS(f32, float)
NORMS(f16, __half)
NORMS(bf16, __nv_bfloat16)
