/*
 * A warp per row, eight rows in a block, no barrier, 16-byte accesses, any row length; the row is
 * read twice, the second time from a cache if it is short.
 *
 * layernorm takes the moments of each vector in two passes, which cost nothing on 4 or 8 registers,
 * and joins them to the lane's: a division per vector, not per entry as in welford.cu.
 */
#include "kernels/norm/moments.cuh"

template <class T> __device__ Moments vector_moments(uint4 raw) {
    float v[VEC<T>];
    unpack<T>(v, raw);
    const float mean = tree_sum<T>(v) * (1.0f / VEC<T>); /* a power of two: exact */
    unpack<T>(v, raw);
#pragma unroll
    for (int i = 0; i < VEC<T>; i++)
        v[i] = (v[i] - mean) * (v[i] - mean);
    return Moments{(float)VEC<T>, mean, tree_sum<T>(v)};
}

/* y_j = result(x_j, w_j, b_j) for a row of a warp; b may be NULL. */
template <class T, class F>
__device__ void write_row(T *out, const T *row, const T *w, const T *b, const Cut<T> &cut,
                          const F &result) {
    const unsigned lane = threadIdx.x;
    const bool aligned = (size_t)(out + cut.head) % 16 == 0;
    for (unsigned i = lane; i < cut.vectors; i += WARP) {
        const unsigned j = cut.head + VEC<T> * i;
        float v[VEC<T>], wj[VEC<T>], bj[VEC<T>];
        unpack<T>(v, *(const uint4 *)(row + j));
        weights(wj, w, j);
        if (b)
            weights(bj, b, j);
#pragma unroll
        for (int k = 0; k < VEC<T>; k++)
            v[k] = result(v[k], wj[k], b ? bj[k] : 0.0f);
        store(out + j, v, aligned);
    }
    if (lane < cut.head + cut.tail) {
        const unsigned j = cut.ragged(lane);
        put(&out[j], result(get(row[j]), get(w[j]), b ? get(b[j]) : 0.0f));
    }
}

template <class T>
__device__ void layernorm(const T *__restrict__ x, const T *__restrict__ w,
                          const T *__restrict__ b, T *__restrict__ y, int rows, int cols,
                          float eps) {
    const unsigned lane = threadIdx.x, r = blockIdx.x * blockDim.y + threadIdx.y;
    if (r >= (unsigned)rows)
        return;
    const T *row = x + (size_t)r * cols;
    const Cut<T> cut(row, cols);

    Moments own = no_moments();
    if (lane < cut.head + cut.tail)
        own = push(own, get(row[cut.ragged(lane)]));
    for (unsigned i = lane; i < cut.vectors; i += WARP)
        own = join(own, vector_moments<T>(((const uint4 *)(row + cut.head))[i]));
    const Moments all = warp_join(own);

    const float mean = all.mean, scale = rsqrtf(all.squares / (float)cols + eps);
    write_row(y + (size_t)r * cols, row, w, b, cut, [mean, scale](float v, float wj, float bj) {
        return fmaf((v - mean) * scale, wj, bj);
    });
}

template <class T>
__device__ void rmsnorm(const T *__restrict__ x, const T *__restrict__ w, T *__restrict__ y,
                        int rows, int cols, float eps) {
    const unsigned lane = threadIdx.x, r = blockIdx.x * blockDim.y + threadIdx.y;
    if (r >= (unsigned)rows)
        return;
    const T *row = x + (size_t)r * cols;
    const Cut<T> cut(row, cols);

    float sum = 0.0f;
    if (lane < cut.head + cut.tail) {
        const float v = get(row[cut.ragged(lane)]);
        sum = v * v;
    }
    for (unsigned i = lane; i < cut.vectors; i += WARP) {
        float v[VEC<T>];
        unpack<T>(v, ((const uint4 *)(row + cut.head))[i]);
#pragma unroll
        for (int k = 0; k < VEC<T>; k++)
            v[k] *= v[k];
        sum += tree_sum<T>(v);
    }
    const float scale = rsqrtf(warp_sum(sum) / (float)cols + eps);
    write_row(y + (size_t)r * cols, row, w, (const T *)nullptr, cut,
              [scale](float v, float wj, float) { return v * scale * wj; });
}

#define NORMS(dtype, T, ...)                                                                 \
    extern "C" __global__ void layernorm_warp_##dtype(                                       \
        const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ b,           \
        T *__restrict__ y, int rows, int cols, float eps) {                                  \
        layernorm(x, w, b, y, rows, cols, eps);                                              \
    }                                                                                        \
    extern "C" __global__ void rmsnorm_warp_##dtype(                                         \
        const T *__restrict__ x, const T *__restrict__ w, T *__restrict__ y, int rows,       \
        int cols, float eps) {                                                               \
        rmsnorm(x, w, y, rows, cols, eps);                                                   \
    }

FOR_EACH_DTYPE(NORMS, )
