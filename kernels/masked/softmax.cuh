/*
 * Softmax of the entries of a row that `see` leaves in view, in three passes by a block; the others are
 * 0 and not looked at.  A row with nothing in view is all 0.
 */
#ifndef KERNELS_MASKED_SOFTMAX_CUH
#define KERNELS_MASKED_SOFTMAX_CUH

#include "kernels/softmax/row.cuh"

/* x: a pointer, or what is indexed like one. */
template <class Row, class See>
__device__ void softmax(const Row &x, float *y, int cols, const See &see) {
    __shared__ float part[BLOCK];

    const float max =
        block_combine<RowMax>(cols, part, [=](int i) { return see(i) ? x[i] : NEG_INF; });
    const float reference = max == NEG_INF ? 0.0f : max; /* -Inf - -Inf would be NaN */
    const float sum = block_combine<RowSum>(
        cols, part, [=](int i) { return see(i) ? expf(x[i] - reference) : 0.0f; });

    const float divisor = sum == 0.0f ? 1.0f : sum;
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        y[i] = (see(i) ? expf(x[i] - reference) : 0.0f) / divisor;
}

#endif
