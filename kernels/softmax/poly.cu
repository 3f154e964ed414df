/*
 * The exponential on the FMA units: `registers` with a polynomial of degree 5 in the place of ex2, so
 * that the special function unit, of which an SM has an eighth as many lanes, sees one reciprocal a row.
 */
#include "kernels/softmax/on_chip.cuh"

template <class T>
__device__ void poly(const T *__restrict__ x, T *__restrict__ y, int cols) {
    __shared__ float part[2 * WARP];
    RegisterRow<T, 32 / VEC<T>> row(x + (size_t)blockIdx.x * cols, cols, threadIdx.x, blockDim.x);
    const float max = team_reduce<RowMax>(row.max(), part);
    const float sum = team_reduce<RowSum>(row.exp_sum(ExpPoly(max)), part + WARP);
    row.write(y + (size_t)blockIdx.x * cols, 1.0f / sum);
}

#define SOFTMAX_POLY(dtype, T, UNUSED)                                                 \
    extern "C" __global__ void __launch_bounds__(1024)                                 \
        softmax_poly_##dtype(const T *__restrict__ x, T *__restrict__ y, int cols) {   \
        poly<T>(x, y, cols);                                                           \
    }

FOR_EACH_DTYPE(SOFTMAX_POLY, )
