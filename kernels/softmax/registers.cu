/*
 * Rung 9.  The row in registers of a block, 32 entries per thread, in 16-byte vectors: one read, one
 * write and one exp per entry, with nothing rescaled.  The block has as many threads as the row
 * needs (ceil(cols / 32), rounded up to whole warps), so none idles and a row of up to 32768 fits.
 * `registers` takes expf in f32 and ex2 in 16-bit formats; `folded`, for f16, folds log2(e) into one
 * fma; `poly` has a polynomial of degree 5 on the FMA units in the place of ex2, so that the special
 * function unit, of which an SM has an eighth as many lanes, sees one reciprocal a row.
 */
#include "kernels/softmax/on_chip.cuh"

template <class Exp, class T>
__device__ void registers(const T *__restrict__ x, T *__restrict__ y, int cols) {
    __shared__ float part[2 * WARP];
    RegisterRow<T, 32 / VEC<T>> row(x + (size_t)blockIdx.x * cols, cols, threadIdx.x, blockDim.x);
    const float max = team_reduce<RowMax>(row.max(), part);
    const float sum = team_reduce<RowSum>(row.exp_sum(Exp(max)), part + WARP);
    row.write(y + (size_t)blockIdx.x * cols, 1.0f / sum);
}

#define SOFTMAX_REGISTERS(dtype, T, name, Exp)                                           \
    extern "C" __global__ void __launch_bounds__(1024)                                   \
        softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int cols) { \
        registers<Exp<T>>(x, y, cols);                                                   \
    }

template <class T> using Folded = ExpFolded;
template <class T> using Poly = ExpPoly;

FOR_EACH_DTYPE(SOFTMAX_REGISTERS, registers, ExpOf)
FOR_EACH_DTYPE(SOFTMAX_REGISTERS, poly, Poly)
SOFTMAX_REGISTERS(f16, __half, folded, Folded)
