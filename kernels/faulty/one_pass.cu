/* Planted fault: the variance as the mean of squares less the square of the mean, in one pass. */
#include "kernels/softmax/row.cuh"

extern "C" __global__ void layernorm_faulty_one_pass_f32(const float *x, const float *w,
                                                         const float *b, float *y, int cols,
                                                         float eps) {
    __shared__ float part[BLOCK];
    x += (size_t)blockIdx.x * cols;
    y += (size_t)blockIdx.x * cols;

    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < cols; i += BLOCK) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    const float mean = block_tree<RowSum>(sum, part) / cols;
    const float variance = block_tree<RowSum>(squares, part) / cols - mean * mean;
    const float scale = 1.0f / sqrtf(fmaxf(variance, 0.0f) + eps);
    for (int i = threadIdx.x; i < cols; i += BLOCK)
        y[i] = (x[i] - mean) * scale * w[i] + b[i];
}
