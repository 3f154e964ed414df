/*
 * log_softmax and log-sum-exp of rows of up to 32768: the row packed in the registers of a block, 128
 * bytes per thread.  One exp per entry, for the sum; log_softmax is (x - m) - log(sum), the smaller
 * terms first, so that a large maximum costs no bits.
 *
 * softmax_lse is a softmax without a division, exp(x - lse), as kernels that keep lse for later have it.
 * There a large maximum does cost bits: what lse loses in its rounding is the exponent of every result.
 */
#include "kernels/softmax/on_chip.cuh"

/*
 * m and log(sum of exp(x - m)) of the row, in every thread.  An infinite maximum is shifted by 0: a
 * +Inf makes the sum +Inf, and in a row of nothing but -Inf it is 0.
 */
template <class Exp, class Row> __device__ float2 max_and_log(Row &row) {
    __shared__ float part[2 * WARP];
    const float m = team_reduce<RowMax>(row.max(), part);
    row.keep_packed();
    const float sum = team_reduce<RowSum>(row.exp_sum(Exp(isinf(m) ? 0.0f : m)), part + WARP);
    row.keep_packed();
    return make_float2(m, logf(sum));
}

#define LOG_ROWS(dtype, T, name)                                                             \
    extern "C" __global__ void __launch_bounds__(256 * sizeof(T))                            \
        log_softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int cols) { \
        const size_t at = (size_t)blockIdx.x * cols;                                         \
        PackedRow<T, 8> row(x + at, cols, threadIdx.x, blockDim.x);                          \
        float2 s = max_and_log<ExpOf<T>>(row);                                               \
        s.y += s.x - s.x; /* NaN if the maximum is infinite */                               \
        row.write(y + at, [&](float v) { return (v - s.x) - s.y; });                         \
    }                                                                                        \
    extern "C" __global__ void __launch_bounds__(256 * sizeof(T))                            \
        lse_##name##_##dtype(const T *__restrict__ x, float *__restrict__ y, int cols) {     \
        PackedRow<T, 8> row(x + (size_t)blockIdx.x * cols, cols, threadIdx.x, blockDim.x);   \
        const float2 s = max_and_log<ExpOf<T>>(row);                                         \
        if (threadIdx.x == 0)                                                                \
            y[blockIdx.x] = s.x + s.y;                                                       \
    }                                                                                        \
    extern "C" __global__ void __launch_bounds__(256 * sizeof(T))                            \
        softmax_lse_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int cols) { \
        const size_t at = (size_t)blockIdx.x * cols;                                         \
        PackedRow<T, 8> row(x + at, cols, threadIdx.x, blockDim.x);                          \
        const float2 s = max_and_log<ExpOf<T>>(row);                                         \
        const ExpOf<T> exp(s.x + (s.y + (s.x - s.x))); /* as above */                        \
        row.write(y + at, exp);                                                              \
    }

FOR_EACH_DTYPE(LOG_ROWS, rows)
