/*
 * Planted fault: softmax_online_f32 whose push has lost its guard.  While a thread has seen
 * nothing but -Inf, s.m - m is -Inf minus -Inf: its l becomes NaN and the whole row with it.  The
 * join still has its guard, so idle threads do no harm and rows without -Inf come out right to
 * the bit.  Fill `one_finite` and every masked row with a -Inf among its first 256 entries show
 * it.
 */
#include "kernels/softmax/online.cuh"

static __device__ Online push_unguarded(Online s, float x) {
    const float m = fmaxf(s.m, x);
    return Online{m, fmaf(s.l, expf(s.m - m), expf(x - m))};
}

extern "C" __global__ void softmax_faulty_no_guard_f32(const float *__restrict__ x,
                                                       float *__restrict__ y, int cols) {
    __shared__ Online part[BLOCK];
    const float *row = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;
    const int tid = threadIdx.x;

    Online s = online_empty();
    for (int i = tid; i < cols; i += BLOCK)
        s = push_unguarded(s, row[i]);
    part[tid] = s;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (tid < half)
            part[tid] = online_join(part[tid], part[tid + half]);
        __syncthreads();
    }
    s = part[0];

    for (int i = tid; i < cols; i += BLOCK)
        out[i] = expf(row[i] - s.m) / s.l;
}
