/*
 * Rung 4.  The states are joined by shuffles, within and then across warps: one block barrier
 * instead of nine.  And an entry is pushed by joining the state {x, 1}, which takes one expf
 * instead of two, because whichever of the two has the larger maximum has the factor 1.  That
 * shortcut takes the term of a +Inf for 1, where it is exp(Inf - Inf); `m - m`, NaN for an
 * infinite maximum and 0 for any other, puts it right once per row.
 */
#include "kernels/softmax/online.cuh"

template <class T>
__device__ void online_shuffle(const T *__restrict__ x, T *__restrict__ y, int cols) {
    __shared__ Online part[WARPS];
    const T *row = x + (size_t)blockIdx.x * cols;
    T *out = y + (size_t)blockIdx.x * cols;
    const int tid = threadIdx.x;

    Online s = online_empty();
    for (int i = tid; i < cols; i += BLOCK)
        s = online_join(s, Online{get(row[i]), 1.0f});
    s = online_warp(s);
    if (tid % WARP == 0)
        part[tid / WARP] = s;
    __syncthreads();
    s = part[tid % WARPS];
    for (int offset = WARPS / 2; offset > 0; offset /= 2)
        s = online_join(s, online_shuffle_xor(s, offset));
    s.l += s.m - s.m;

    for (int i = tid; i < cols; i += BLOCK)
        put(&out[i], expf(get(row[i]) - s.m) / s.l);
}

#define SOFTMAX_ONLINE_SHUFFLE(dtype, T, name)                                         \
    extern "C" __global__ void softmax_##name##_##dtype(const T *__restrict__ x,       \
                                                        T *__restrict__ y, int cols) { \
        name(x, y, cols);                                                              \
    }

FOR_EACH_DTYPE(SOFTMAX_ONLINE_SHUFFLE, online_shuffle)
