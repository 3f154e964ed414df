/*
 * Rung 3.  Maximum and sum in one read: each thread keeps an online state (online.cuh) and the
 * states are joined in a shared-memory tree.  Two reads of x instead of three.  The cost is
 * numeric: a term is rescaled, with an expf's error, every time the maximum moves.
 */
#include "kernels/softmax/online.cuh"

extern "C" __global__ void softmax_online_f32(const float *__restrict__ x, float *__restrict__ y,
                                              int cols) {
    __shared__ Online part[BLOCK];
    const float *row = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;
    const int tid = threadIdx.x;

    Online s = online_empty();
    for (int i = tid; i < cols; i += BLOCK)
        s = online_push(s, row[i]);
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
