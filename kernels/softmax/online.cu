/*
 * Rung 3.  Maximum and sum in one read: each thread keeps an online state (online.cuh) and the
 * states are joined in a shared-memory tree.  Two reads of x instead of three.  The cost is
 * numeric: a term is rescaled, with an expf's error, every time the maximum moves.
 */
#include "kernels/softmax/online.cuh"

template <class T> __device__ void online(const T *__restrict__ x, T *__restrict__ y, int cols) {
    __shared__ Online part[BLOCK];
    const T *row = x + (size_t)blockIdx.x * cols;
    T *out = y + (size_t)blockIdx.x * cols;
    const int tid = threadIdx.x;

    Online s = online_empty();
    for (int i = tid; i < cols; i += BLOCK)
        s = online_push(s, get(row[i]));
    part[tid] = s;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (tid < half)
            part[tid] = online_join(part[tid], part[tid + half]);
        __syncthreads();
    }
    s = part[0];

    for (int i = tid; i < cols; i += BLOCK)
        put(&out[i], expf(get(row[i]) - s.m) / s.l);
}

#define SOFTMAX_ONLINE(dtype, T, name)                                                 \
    extern "C" __global__ void softmax_##name##_##dtype(const T *__restrict__ x,       \
                                                        T *__restrict__ y, int cols) { \
        name(x, y, cols);                                                              \
    }

FOR_EACH_DTYPE(SOFTMAX_ONLINE, online)
