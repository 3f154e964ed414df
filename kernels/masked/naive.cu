/*
 * Softmax of the entries that a mask of bytes, or the causal triangle, leaves in view; the others are
 * 0 and not looked at.  Three passes, a block per row.  A row with nothing in view is all 0.
 */
#include "kernels/softmax/row.cuh"

template <class See>
__device__ void softmax(const float *x, float *y, int cols, const See &see) {
    __shared__ float part[BLOCK];

    float max = NEG_INF;
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        if (see(i))
            max = fmaxf(max, x[i]);
    max = block_tree<RowMax>(max, part);
    const float reference = max == NEG_INF ? 0.0f : max; /* -Inf - -Inf would be NaN */

    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        if (see(i))
            sum += expf(x[i] - reference);
    sum = block_tree<RowSum>(sum, part);

    const float divisor = sum == 0.0f ? 1.0f : sum;
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        y[i] = (see(i) ? expf(x[i] - reference) : 0.0f) / divisor;
}

extern "C" __global__ void softmax_masked_naive_f32(const float *x, const unsigned char *mask,
                                                    float *y, int cols) {
    const size_t first = (size_t)blockIdx.x * cols;
    softmax(x + first, y + first, cols, [=](int i) { return mask[first + i] != 0; });
}

/* The last row sees the last column. */
extern "C" __global__ void softmax_causal_naive_f32(const float *x, float *y, int cols) {
    const size_t first = (size_t)blockIdx.x * cols;
    const int last = blockIdx.x + cols - gridDim.x;
    softmax(x + first, y + first, cols, [=](int i) { return i <= last; });
}
