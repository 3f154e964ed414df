/* Planted fault: stores of four entries run over the end of a row into what lies between rows. */
#include "kernels/masked/softmax.cuh"

extern "C" __global__ void softmax_faulty_padding_f32(const float *x, float *y, int cols, int ld) {
    const size_t first = (size_t)blockIdx.x * ld;
    softmax(x + first, y + first, cols, [](int) { return true; });
    for (int i = cols + threadIdx.x; i < (cols + 3) / 4 * 4; i += BLOCK)
        y[first + i] = 0.0f;
}
