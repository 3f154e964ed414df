/*
 * The row in registers of a team of threads: one read, one write, and still the variance of two
 * passes.  The second pass costs no memory traffic, and has none of the cancellation of E[x^2] -
 * E[x]^2 nor the divisions of Welford's update.  Teams are as large as their row needs, and short
 * rows share a block.
 *
 * rmsnorm comes in both of the conventions that models use: the normalised value times w in f32
 * (rmsnorm_registers), or rounded to 16 bits first (rmsnorm_registers_cast: Llama in Hugging Face's
 * transformers); they differ in the last bit of half the results.
 */
#include "kernels/norm/row.cuh"

#define ENTRIES 32  /* of a thread */
#define THREADS 512 /* of a team at most */
#define HELD (ENTRIES / VEC<T>)
/* So few registers that 16 warps per quarter of an SM fit, or 12 (f32, which needs more). */
#define BLOCKS(T) (sizeof(T) == 4 ? 2 : 3)

template <class T>
__device__ void layernorm(const T *__restrict__ x, const T *__restrict__ w,
                          const T *__restrict__ b, T *__restrict__ y, int rows, int cols,
                          float eps) {
    __shared__ float part[2 * WARP];
    const unsigned r = blockIdx.x * blockDim.y + threadIdx.y;
    const bool there = r < (unsigned)rows; /* else it only meets the barriers */
    const size_t start = there ? (size_t)r * cols : 0;
    const HeldRow<T, HELD> row(x + start, there ? cols : 0);

    const float n = (float)cols;
    const float mean = team_sum(row.sum([](float v) { return v; }), part) / n;
    const float variance = team_sum(row.sum([mean](float v) { return (v - mean) * (v - mean); }),
                                    part + WARP) / n;
    const float scale = rsqrtf(variance + eps);
    row.write<true>(
        y + start, x + start, there ? cols : 0, w, b,
        [mean, scale](float v, float wj, float bj) { return fmaf((v - mean) * scale, wj, bj); });
}

template <class T, bool CAST>
__device__ void rmsnorm(const T *__restrict__ x, const T *__restrict__ w, T *__restrict__ y,
                        int rows, int cols, float eps) {
    __shared__ float part[WARP];
    const unsigned r = blockIdx.x * blockDim.y + threadIdx.y;
    const bool there = r < (unsigned)rows;
    const size_t start = there ? (size_t)r * cols : 0;
    const HeldRow<T, HELD> row(x + start, there ? cols : 0);

    const float square = team_sum(row.sum([](float v) { return v * v; }), part) / (float)cols;
    const float scale = rsqrtf(square + eps);
    row.write<false>(y + start, x + start, there ? cols : 0, w, (const T *)nullptr,
                     [scale](float v, float wj, float) {
                         return (CAST ? rounded<T>(v * scale) : v * scale) * wj;
                     });
}

#define LAYERNORM(dtype, T, ...)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS(T)) layernorm_registers_##dtype(           \
        const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b,            \
        T *__restrict__ y, int rows, int cols, float eps) {                                   \
        layernorm(x, w, b, y, rows, cols, eps);                                               \
    }

#define RMSNORM(dtype, T, name, cast)                                                         \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS(T)) rmsnorm_##name##_##dtype(              \
        const T *__restrict__ x, const T *__restrict__ w, T *__restrict__ y, int rows,        \
        int cols, float eps) {                                                                \
        rmsnorm<T, cast>(x, w, y, rows, cols, eps);                                           \
    }

FOR_EACH_DTYPE(LAYERNORM, )
FOR_EACH_DTYPE(RMSNORM, registers, false)
RMSNORM(f16, __half, registers_cast, true)
RMSNORM(bf16, __nv_bfloat16, registers_cast, true)
