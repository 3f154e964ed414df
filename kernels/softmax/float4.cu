/*
 * Rung 6.  A warp per row, eight rows in a block, and warps stride over the rows: no block
 * barrier at all, a fixed grid, and any row length.  16-byte loads and stores (a float4, or eight
 * 16-bit entries); the state is rescaled once per vector; one division per row and a multiply per
 * entry (an extra rounding each).  The entries before the first 16-byte boundary of a row and after
 * the last go one per lane.  x and y must start at the same distance from such a boundary.
 */
#include "kernels/softmax/online.cuh"

template <class T> __device__ Online push_vector(Online s, uint4 raw) {
    float v[VEC<T>], m = s.m;
    unpack<T>(v, raw);
#pragma unroll
    for (int j = 0; j < VEC<T>; j++)
        m = fmaxf(m, v[j]);
    const float shift = finite_or_zero(m);
#pragma unroll
    for (int j = 0; j < VEC<T>; j++)
        v[j] = expf(v[j] - shift);
#pragma unroll
    for (int width = VEC<T> / 2; width > 0; width /= 2)
#pragma unroll
        for (int j = 0; j < width; j++)
            v[j] += v[j + width];
    return Online{m, fmaf(s.l, expf(s.m - shift), v[0])};
}

template <class T>
__device__ void vectors(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) {
    const unsigned lane = threadIdx.x;
    const unsigned first_row = blockIdx.x * blockDim.y + threadIdx.y;

    for (unsigned r = first_row; r < rows; r += gridDim.x * blockDim.y) {
        const T *row = x + (size_t)r * cols;
        T *out = y + (size_t)r * cols;
        const Cut<T> cut(row, cols);
        const uint4 *body = (const uint4 *)(row + cut.head);
        /* The ragged entry of this lane, if it has one: a head entry or a tail entry. */
        const bool has_ragged = lane < cut.head + cut.tail;
        const unsigned ragged = cut.ragged(lane);

        Online s = online_empty();
        if (has_ragged)
            s = online_push(s, get(row[ragged]));
        for (unsigned i = lane; i < cut.vectors; i += WARP)
            s = push_vector<T>(s, body[i]);
        s = online_warp(s);

        const float scale = 1.0f / s.l;
        if (has_ragged)
            put(&out[ragged], expf(get(row[ragged]) - s.m) * scale);
        for (unsigned i = lane; i < cut.vectors; i += WARP) {
            float v[VEC<T>];
            unpack<T>(v, body[i]);
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                v[j] = expf(v[j] - s.m) * scale;
            ((uint4 *)(out + cut.head))[i] = pack<T>(v);
        }
    }
}

#define SOFTMAX_FLOAT4(dtype, T, name)                                                           \
    extern "C" __global__ void softmax_##name##_##dtype(const T *__restrict__ x,                 \
                                                        T *__restrict__ y, int rows, int cols) { \
        vectors(x, y, rows, cols);                                                               \
    }

FOR_EACH_DTYPE(SOFTMAX_FLOAT4, float4)
