/*
 * `biased` for long rows of 16-bit entries: x stays packed in registers as in kernels/softmax/packed.cu, 64
 * entries per thread, and what is added to it in shared memory, where each thread copies and reads its own
 * vectors only.  So two blocks share a multiprocessor, and all loads of a row are under way at once.
 */
#include "kernels/softmax/on_chip.cuh"

template <class T> struct AddShared {
    const uint4 *slots;
    __device__ void operator()(float *x, unsigned i) const {
        float bias[VEC<T>];
        unpack<T>(bias, slots[i]);
#pragma unroll
        for (int j = 0; j < VEC<T>; j++)
            x[j] += bias[j];
    }
};

template <class T>
__device__ void biased(const T *__restrict__ x, const T *__restrict__ bias, T *__restrict__ y,
                       int cols) {
    extern __shared__ uint4 slots[];
    __shared__ float part[2 * WARP];
    const size_t at = (size_t)blockIdx.x * cols;
    const float ragged =
        start_copies<8>(slots, bias + at, Cut<T>(x + at, cols), threadIdx.x, blockDim.x);
    PackedRow<T, 8, AddShared<T>> row(x + at, cols, threadIdx.x, blockDim.x, AddShared<T>{slots});
    row.ragged += ragged; /* none and none: -Inf */
    wait_copies();

    const ExpFast exp(finite_or_zero(team_reduce<RowMax>(row.max(), part)));
    row.keep_packed((unsigned)cols >> 31);
    const float sum = team_reduce<RowSum>(row.exp_sum(exp), part + WARP);
    row.keep_packed((unsigned)cols >> 31);
    const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
    row.write(y + at, [&](float v) { return exp(v) * scale; });
}

#define BIASED(dtype, T, name)                                                              \
    extern "C" __global__ void __launch_bounds__(512, 2) softmax_biased_##name##_##dtype(   \
        const T *__restrict__ x, const T *__restrict__ bias, T *__restrict__ y, int cols) { \
        biased(x, bias, y, cols);                                                           \
    }

BIASED(f16, __half, packed)
BIASED(bf16, __nv_bfloat16, packed)
