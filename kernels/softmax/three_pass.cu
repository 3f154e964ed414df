/*
 * Rung 2.  The same three steps inside one block per row: one launch, m and l stay in registers,
 * and a row that fits the L2 cache comes from DRAM once.  Same sums in the same order, so the
 * same bits as rung 1.
 */
#include "kernels/softmax/row.cuh"

extern "C" __global__ void softmax_three_pass_f32(const float *__restrict__ x,
                                                  float *__restrict__ y, int cols) {
    __shared__ float part[BLOCK];
    const float *row = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;

    float max = NEG_INF;
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        max = fmaxf(max, row[i]);
    max = block_tree<RowMax>(max, part);

    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        sum += expf(row[i] - max);
    sum = block_tree<RowSum>(sum, part);

    for (int i = threadIdx.x; i < cols; i += BLOCK)
        out[i] = expf(row[i] - max) / sum;
}
