/*
 * Short rows.  As many lanes take a row as it fills with two vectors each, blockDim.x of them, a
 * power of two: none idles because a row is short, and fewer shuffles reduce it.
 *
 * Rows of whole vectors go from memory to registers and back, vector k of lane t being number
 * k * lanes + t.  Of other short rows many entries would be ragged, but a block's rows are one piece
 * of memory: this tile goes to shared memory and back in 16-byte vectors, and there each lane takes
 * the entries that it would have of a row on a boundary, so a row's bits do not depend on where it
 * lies.
 *
 * softmax, log_softmax and log-sum-exp: the same with other results.
 */
#include "kernels/softmax/results.cuh"

constexpr int VECTORS = 2; /* of a lane */

/* This lane's entries of a row of n in shared memory. */
template <class T> struct TileRow : Entries<T, VECTORS> {
    using Entries<T, VECTORS>::v;
    T *row;
    int n;

    __device__ TileRow(T *row, int n) : row(row), n(n) {
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                v[k][j] = place(k, j) < n ? get(row[place(k, j)]) : NEG_INF;
    }

    /* An int, which cannot wrap: that spares a comparison's addition. */
    __device__ int place(int k, int j) const {
        return VEC<T> * (k * blockDim.x + threadIdx.x) + j;
    }

    /* The entries there become result(entry), wherever they go from there. */
    template <class F> __device__ void write(const T *, const F &result) const {
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                if (place(k, j) < n)
                    put(&row[place(k, j)], result(v[k][j]));
    }

    __device__ void write_scaled(const T *out, float scale) const {
        write(out, [=](float v) { return v * scale; });
    }
};

/* A block's rows, cut alike on both sides. */
template <class T>
__device__ void copy_tile(T *to, const T *from, const Cut<T> &cut, unsigned thread) {
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
        if (k * BLOCK + thread < cut.vectors)
            ((uint4 *)(to + cut.head))[k * BLOCK + thread] =
                ((const uint4 *)(from + cut.head))[k * BLOCK + thread];
    if (thread < cut.head + cut.tail)
        to[cut.ragged(thread)] = from[cut.ragged(thread)];
}

/* A row beyond the last has lanes too, for the shuffles; a 0 among their -Inf spares them NaNs. */
template <class Result, class Row, class Out>
__device__ void finish(Row &row, Out *y, unsigned r, int cols, bool mine) {
    if (!mine)
        row.v[0][0] = 0.0f;
    Result::template finish<Lanes>(row, y, r, cols, mine && threadIdx.x == 0);
}

template <class Result, class T>
__device__ void lanes_rows(const T *__restrict__ x, typename Result::Out *__restrict__ y,
                           unsigned rows, int cols) {
    __shared__ uint4 tile[VECTORS * BLOCK + 1];
    const unsigned top = blockIdx.x * blockDim.y, r = top + threadIdx.y;
    const size_t start = (size_t)top * cols;
    const bool mine = r < rows;
    const int n = mine ? cols : 0;

    if (all_whole(x, cols)) {
        RegisterRow<T, VECTORS, Whole<T>> row(x + (size_t)r * cols, n, threadIdx.x, blockDim.x);
        finish<Result>(row, y, r, cols, mine);
        return;
    }
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    const Cut<T> cut(x + start, min(blockDim.y, rows - top) * cols);
    T *entries = (T *)tile + (VEC<T> - cut.head) % VEC<T>;

    copy_tile(entries, x + start, cut, thread);
    __syncthreads();
    TileRow<T> row(entries + threadIdx.y * cols, n);
    finish<Result>(row, y, r, cols, mine);
    if constexpr (Result::PER_ENTRY) {
        __syncthreads();
        copy_tile<T>(y + start, entries, cut, thread);
    }
}

#define LANES_ROWS(dtype, T, name, Result)                                             \
    extern "C" __global__ void __launch_bounds__(BLOCK) name##_##dtype(                \
        const T *__restrict__ x, Result<T>::Out *__restrict__ y, int rows, int cols) { \
        lanes_rows<Result<T>>(x, y, rows, cols);                                       \
    }

FOR_EACH_DTYPE(LANES_ROWS, softmax_lanes, Softmax)
FOR_EACH_DTYPE(LANES_ROWS, log_softmax_lanes, LogSoftmax)
FOR_EACH_DTYPE(LANES_ROWS, lse_lanes, Lse)
