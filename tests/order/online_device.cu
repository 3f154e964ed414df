/*
 * online_device.cu - online_join and online_push of kernels/softmax/online.cuh, and expf, one
 * element per thread: what test_online_device.c compares online.c with.
 */
#include "kernels/softmax/online.cuh"

static __device__ unsigned index_of_thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

extern "C" __global__ void join_each(const Online *a, const Online *b, Online *out, unsigned n) {
    const unsigned i = index_of_thread();
    if (i < n)
        out[i] = online_join(a[i], b[i]);
}

extern "C" __global__ void push_each(const Online *s, const float *x, Online *out, unsigned n) {
    const unsigned i = index_of_thread();
    if (i < n)
        out[i] = online_push(s[i], x[i]);
}

extern "C" __global__ void expf_each(const float *x, float *out, unsigned n) {
    const unsigned i = index_of_thread();
    if (i < n)
        out[i] = expf(x[i]);
}
