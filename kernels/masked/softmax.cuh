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

#endif
