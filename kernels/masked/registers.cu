/*
 * The masked forms with one read and one write: the row in registers of a block as in
 * kernels/softmax/registers.cu, and what hides entries applied on the way there, so that x and the mask are read
 * once and y is written once.
 *
 * `masked`: the mask's bytes of a vector's entries are one access of 4 or 8 bytes, side by side in a warp.
 * For that the mask must lie as far from a boundary of VEC bytes as x from one of 16.
 * `biased`: a mask that is added, of x's type and as far from a boundary; the sum is rounded to f32 once.
 * `causal`: what a row does not see is not read either.
 * `strided`: rows ld entries apart.
 *
 * A row with nothing in view is all 0.  One with NaN or +Inf in view is all NaN, hidden entries too.
 */
#include "kernels/softmax/on_chip.cuh"

#define ENTRIES 32 /* per thread */

/* The bytes of a row's mask that belong to the entries of a RegisterRow. */
template <class T, int VECTORS> struct MaskBytes {
    unsigned v[VECTORS][VEC<T> / 4]; /* of entry j: byte j % 4 of word j / 4 */
    bool ragged;

    __device__ MaskBytes(const unsigned char *mask, const Cut<T> &cut) {
        const unsigned thread = threadIdx.x, team = blockDim.x;
        ragged = thread < cut.head + cut.tail && mask[cut.ragged(thread)] != 0;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const unsigned i = k * team + thread;
            const unsigned *words = (const unsigned *)(mask + cut.head) + i * (VEC<T> / 4);
            if constexpr (VEC<T> == 8) {
                const uint2 both = i < cut.vectors ? *(const uint2 *)words : make_uint2(0, 0);
                v[k][0] = both.x;
                v[k][1] = both.y;
            } else {
                v[k][0] = i < cut.vectors ? *words : 0;
            }
        }
    }

    __device__ void hide(RegisterRow<T, VECTORS> &row) const {
        row.ragged = ragged ? row.ragged : NEG_INF;
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                row.v[k][j] = v[k][j / 4] & 0xffu << j % 4 * 8 ? row.v[k][j] : NEG_INF;
    }
};

/* Every entry becomes its exp; gives what it is to be multiplied by. */
template <class T, int VECTORS> __device__ float scale_of(RegisterRow<T, VECTORS> &row) {
    __shared__ float part[2 * WARP];
    const float max = finite_or_zero(team_reduce<RowMax>(row.max(), part));
    const float sum = team_reduce<RowSum>(row.to_exps(ExpOf<T>(max)), part + WARP);
    return sum == 0.0f ? 0.0f : 1.0f / sum;
}

/* out[0 .. n-1] = v */
template <class T> __device__ void fill(T *out, unsigned n, float v) {
    const Cut<T> cut(out, n);
    float copies[VEC<T>];
#pragma unroll
    for (int j = 0; j < VEC<T>; j++)
        copies[j] = v;
    if (threadIdx.x < cut.head + cut.tail)
        put(&out[cut.ragged(threadIdx.x)], v);
    for (unsigned i = threadIdx.x; i < cut.vectors; i += blockDim.x)
        ((uint4 *)(out + cut.head))[i] = pack<T>(copies);
}

template <class T>
__device__ void masked(const T *__restrict__ x, const unsigned char *__restrict__ mask,
                       T *__restrict__ y, int cols) {
    const size_t at = (size_t)blockIdx.x * cols;
    const MaskBytes<T, ENTRIES / VEC<T>> seen(mask + at, Cut<T>(x + at, cols));
    RegisterRow<T, ENTRIES / VEC<T>> row(x + at, cols, threadIdx.x, blockDim.x);
    seen.hide(row);
    row.write_scaled(y + at, scale_of(row));
}

template <class T>
__device__ void biased(const T *__restrict__ x, const T *__restrict__ bias, T *__restrict__ y,
                       int cols) {
    const size_t at = (size_t)blockIdx.x * cols;
    const PackedRow<T, ENTRIES / VEC<T>> more(bias + at, Cut<T>(x + at, cols), threadIdx.x,
                                              blockDim.x);
    RegisterRow<T, ENTRIES / VEC<T>> row(x + at, cols, threadIdx.x, blockDim.x);
    row.ragged += more.ragged; /* nothing and nothing: -Inf, here and below */
#pragma unroll
    for (int k = 0; k < ENTRIES / VEC<T>; k++) {
        float add[VEC<T>];
        unpack<T>(add, more.v[k]);
#pragma unroll
        for (int j = 0; j < VEC<T>; j++)
            row.v[k][j] += add[j];
    }
    row.write_scaled(y + at, scale_of(row));
}

/* The last row sees the last column. */
template <class T> __device__ void causal(const T *__restrict__ x, T *__restrict__ y, int cols) {
    const size_t at = (size_t)blockIdx.x * cols;
    const long long last = (long long)blockIdx.x + cols - gridDim.x;
    const unsigned seen = last < 0 ? 0 : (unsigned)min(last + 1, (long long)cols);
    RegisterRow<T, ENTRIES / VEC<T>> row(x + at, seen, threadIdx.x, blockDim.x);
    const float scale = scale_of(row);
    row.write_scaled(y + at, scale);
    fill(y + at + seen, cols - seen, 0.0f * scale);
}

template <class T>
__device__ void strided(const T *__restrict__ x, T *__restrict__ y, int cols, int ld) {
    const size_t at = (size_t)blockIdx.x * ld;
    RegisterRow<T, ENTRIES / VEC<T>> row(x + at, cols, threadIdx.x, blockDim.x);
    row.write_scaled(y + at, scale_of(row));
}

#define MASKED_REGISTERS(dtype, T, name)                                                        \
    extern "C" __global__ void __launch_bounds__(1024) softmax_masked_##name##_##dtype(         \
        const T *__restrict__ x, const unsigned char *__restrict__ mask, T *__restrict__ y,     \
        int cols) {                                                                             \
        masked(x, mask, y, cols);                                                               \
    }                                                                                           \
    extern "C" __global__ void __launch_bounds__(1024) softmax_biased_##name##_##dtype(         \
        const T *__restrict__ x, const T *__restrict__ bias, T *__restrict__ y, int cols) {     \
        biased(x, bias, y, cols);                                                               \
    }                                                                                           \
    extern "C" __global__ void __launch_bounds__(1024)                                          \
        softmax_causal_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int cols) { \
        causal(x, y, cols);                                                                     \
    }                                                                                           \
    extern "C" __global__ void __launch_bounds__(1024) softmax_strided_##name##_##dtype(        \
        const T *__restrict__ x, T *__restrict__ y, int cols, int ld) {                         \
        strided(x, y, cols, ld);                                                                \
    }

FOR_EACH_DTYPE(MASKED_REGISTERS, registers)
