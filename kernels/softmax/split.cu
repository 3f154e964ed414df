/*
 * Rung 13.  Rows of any length over several blocks, in two launches and without waiting: first each
 * block leaves the (max, sum) of its chunk, then each joins its row's states and writes its chunk.  x is
 * read twice, the second time from L2 if the row is still there.  lse needs the first reading only.
 */
#include "kernels/softmax/results.cuh"

/*
 * An infinite maximum is shifted by 0: a +Inf makes a sum +Inf, which is what lse wants, and -Inf adds
 * nothing.  A NaN reaches the sum either way.
 */
static __device__ float shift_of(float m) {
    return isinf(m) ? 0.0f : m;
}

static __device__ Online join(Online a, Online b) {
    const Online low = a.m < b.m ? a : b;
    const Online high = a.m < b.m ? b : a;
    return Online{high.m, fmaf(low.l, expf(low.m - shift_of(high.m)), high.l)};
}

template <class Exp, class T>
__device__ void split_states(const T *__restrict__ x, float2 *states, int cols, int chunk_cols) {
    __shared__ float part[2 * WARP];
    const Chunk chunk(blockIdx.y, blockIdx.x, cols, chunk_cols);
    PackedRow<T, 8> row(x + chunk.at, chunk.n, threadIdx.x, blockDim.x);
    const float m = team_reduce<RowMax>(row.max(), part);
    row.keep_packed();
    const float l = team_reduce<RowSum>(row.exp_sum(Exp(shift_of(m))), part + WARP);
    if (threadIdx.x == 0)
        states[(size_t)blockIdx.y * gridDim.x + blockIdx.x] = make_float2(m, l);
}

/* Softmax and log_softmax of a row with an infinite maximum are NaN. */
static __device__ Online or_nan(Online s) {
    return Online{s.m, s.l + (s.m - s.m)};
}

/* A row's states joined, by every warp for itself. */
static __device__ Online join_row(const float2 *states, size_t row, unsigned chunks) {
    Online s = online_empty();
    for (unsigned c = threadIdx.x % WARP; c < chunks; c += WARP) {
        const float2 chunk = states[row * chunks + c];
        s = join(s, Online{chunk.x, chunk.y});
    }
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        s = join(s, online_shuffle_xor(s, offset));
    return s;
}

template <class T, class F>
__device__ void write_chunk(const T *x, T *y, int cols, int chunk_cols, const F &result) {
    const Chunk chunk(blockIdx.y, blockIdx.x, cols, chunk_cols);
    const PackedRow<T, 8> row(x + chunk.at, chunk.n, threadIdx.x, blockDim.x);
    row.write(y + chunk.at, result);
}

#define SPLIT(dtype, T, name)                                                                    \
    extern "C" __global__ void __launch_bounds__(512) softmax_states_##dtype(                    \
        const T *__restrict__ x, float2 *__restrict__ states, int cols, int chunk_cols) {        \
        split_states<ExpOf<T>>(x, states, cols, chunk_cols);                                     \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(512)                                            \
        softmax_##name##_##dtype(const T *__restrict__ x, const float2 *__restrict__ states,     \
                                 T *__restrict__ y, int cols, int chunk_cols) {                  \
        const Online s = or_nan(join_row(states, blockIdx.y, gridDim.x));                        \
        write_chunk(x, y, cols, chunk_cols, SoftmaxOf<ExpOf<T>>(s));                             \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(512)                                            \
        log_softmax_##name##_##dtype(const T *__restrict__ x, const float2 *__restrict__ states, \
                                     T *__restrict__ y, int cols, int chunk_cols) {              \
        const Online s = or_nan(join_row(states, blockIdx.y, gridDim.x));                        \
        write_chunk(x, y, cols, chunk_cols, LogSoftmaxOf<ExpOf<T>>(s));                          \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(512)                                            \
        softmax_lse_##name##_##dtype(const T *__restrict__ x, const float2 *__restrict__ states, \
                                     T *__restrict__ y, int cols, int chunk_cols) {              \
        const Online s = or_nan(join_row(states, blockIdx.y, gridDim.x));                        \
        write_chunk(x, y, cols, chunk_cols, ExpOf<T>(s.m + logf(s.l)));                          \
    }

FOR_EACH_DTYPE(SPLIT, split)

/* A warp per row. */
extern "C" __global__ void lse_split(const float2 *__restrict__ states, float *__restrict__ y,
                                     int rows, int chunks) {
    const int r = blockIdx.x * blockDim.y + threadIdx.y;
    if (r >= rows)
        return;
    const Online s = join_row(states, r, chunks);
    if (threadIdx.x == 0)
        y[r] = s.m + logf(s.l);
}
