/*
 * Softmax under a mask of bytes, under one that is added, under the causal triangle, and of rows that do
 * not touch.  A block per row.
 */
#include "kernels/masked/softmax.cuh"

extern "C" __global__ void softmax_masked_naive_f32(const float *x, const unsigned char *mask,
                                                    float *y, int cols) {
    const size_t first = (size_t)blockIdx.x * cols;
    softmax(x + first, y + first, cols, [=](int i) { return mask[first + i] != 0; });
}

/* x + bias, rounded to f32 each time it is read; -Inf hides. */
struct Sum {
    const float *x, *bias;
    __device__ float operator[](int i) const { return x[i] + bias[i]; }
};

extern "C" __global__ void softmax_biased_naive_f32(const float *x, const float *bias, float *y,
                                                    int cols) {
    const size_t first = (size_t)blockIdx.x * cols;
    softmax(Sum{x + first, bias + first}, y + first, cols, [](int) { return true; });
}

/* The last row sees the last column. */
extern "C" __global__ void softmax_causal_naive_f32(const float *x, float *y, int cols) {
    const size_t first = (size_t)blockIdx.x * cols;
    const int last = blockIdx.x + cols - gridDim.x;
    softmax(x + first, y + first, cols, [=](int i) { return i <= last; });
}

/* Rows that lie ld >= cols entries apart; what stands between them is not touched. */
extern "C" __global__ void softmax_strided_naive_f32(const float *x, float *y, int cols, int ld) {
    const size_t first = (size_t)blockIdx.x * ld;
    softmax(x + first, y + first, cols, [](int) { return true; });
}
