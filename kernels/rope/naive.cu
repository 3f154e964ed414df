/*
 * Rotary position embedding as it is defined, a thread per pair: the angle in f32, its sine and
 * cosine by sincosf with its full range reduction.  Entries from rotary_dim on pass through.
 */
#include "kernels/io.cuh"

/* log2_step = -2 log2(base) / rotary_dim: the frequency of pair i is 2^(i log2_step). */
template <class T, bool INTERLEAVED>
__device__ void rope(const T *x, const int *positions, T *y, int heads, int head_dim,
                     int rotary_dim, float log2_step) {
    const int half = rotary_dim / 2;
    const float position = (float)positions[blockIdx.x / heads];
    x += (size_t)blockIdx.x * head_dim;
    y += (size_t)blockIdx.x * head_dim;

    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        const int first = INTERLEAVED ? 2 * i : i, second = INTERLEAVED ? 2 * i + 1 : i + half;
        const float a = get(x[first]), b = get(x[second]);
        float sine, cosine;
        sincosf(position * exp2f(i * log2_step), &sine, &cosine);
        put(&y[first], a * cosine - b * sine);
        put(&y[second], a * sine + b * cosine);
    }
    for (int i = rotary_dim + threadIdx.x; i < head_dim; i += blockDim.x)
        y[i] = x[i];
}

#define ROPE(name, T, interleaved)                                                               \
    extern "C" __global__ void name(const T *x, const int *positions, T *y, int heads,           \
                                    int head_dim, int rotary_dim, float log2_step) {             \
        rope<T, interleaved>(x, positions, y, heads, head_dim, rotary_dim, log2_step);           \
    }

ROPE(rope_naive_f32, float, false)
ROPE(rope_naive_interleaved_f32, float, true)
ROPE(rope_naive_bf16, __nv_bfloat16, false)
