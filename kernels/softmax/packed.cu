/*
 * Rung 10.  Rows of 16K and more in 16-bit formats: the row stays packed in registers, 64 entries in 32
 * of them per thread, so that two blocks share a multiprocessor where rung 9 has room for one, and
 * one of them loads while the other computes.  The price is a second exp per entry.
 */
#include "kernels/softmax/on_chip.cuh"

template <class Exp, class T>
__device__ void packed(const T *__restrict__ x, T *__restrict__ y, int cols) {
    __shared__ float part[2 * WARP];
    PackedRow<T, 64 / VEC<T>> row(x + (size_t)blockIdx.x * cols, cols, threadIdx.x, blockDim.x);
    const Exp exp(team_reduce<RowMax>(row.max(), part));
    row.keep_packed();
    const float sum = team_reduce<RowSum>(row.exp_sum(exp), part + WARP);
    row.keep_packed();
    const float scale = 1.0f / sum;
    row.write(y + (size_t)blockIdx.x * cols, [&](float v) { return exp(v) * scale; });
}

#define SOFTMAX_PACKED(dtype, T, name)                                                   \
    extern "C" __global__ void __launch_bounds__(512, 2)                                 \
        softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int cols) { \
        packed<ExpFast>(x, y, cols);                                                     \
    }

SOFTMAX_PACKED(f16, __half, packed)
SOFTMAX_PACKED(bf16, __nv_bfloat16, packed)
