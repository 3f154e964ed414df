/*
 * Planted fault: exp(x) / sum exp(x) without subtracting the row maximum.  Right in real numbers
 * and on small logits.  Above x = 88.73 expf overflows and a row becomes Inf / Inf (fills `huge`,
 * `near_overflow`); if all of a row lies below -104 every term is 0 and it becomes 0 / 0
 * (`ramp_down`, `huge` with negative sign); between -104 and -87 terms lose bits as subnormals.
 */
#include "kernels/softmax/row.cuh"

extern "C" __global__ void softmax_faulty_no_max_f32(const float *__restrict__ x,
                                                     float *__restrict__ y, int cols) {
    __shared__ float part[BLOCK];
    const float *row = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        sum += expf(row[i]);
    sum = block_tree<RowSum>(sum, part);

    for (int i = threadIdx.x; i < cols; i += BLOCK)
        out[i] = expf(row[i]) / sum;
}
