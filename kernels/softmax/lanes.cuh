/*
 * Short rows.  As many lanes take a row as it fills with two vectors each, blockDim.x of them, a
 * power of two: none idles because a row is short (but softmax_topk takes 4 or more), and fewer
 * shuffles reduce it.  A block of BLOCK threads takes blockDim.y rows.
 *
 * Rows of whole vectors go from memory to registers and back, vector k of lane t being number
 * k * lanes + t.  Of other short rows many entries would be ragged, but a block's rows are one piece
 * of memory: this tile goes to shared memory and back in 16-byte vectors, and there each lane takes
 * the entries that it would have of a row on a boundary, so a row's bits do not depend on where it
 * lies.
 *
 * A row beyond the last has lanes too, for the shuffles; a 0 among their -Inf spares them NaNs.
 */
#ifndef KERNELS_SOFTMAX_LANES_CUH
#define KERNELS_SOFTMAX_LANES_CUH

#include "kernels/softmax/on_chip.cuh"

constexpr int LANE_VECTORS = 2;

/* The place in its row of this lane's entry v[k][j]. */
template <class T> __device__ int lane_place(int k, int j) {
    return VEC<T> * (k * blockDim.x + threadIdx.x) + j;
}

/* This lane's entries of a row of n in shared memory. */
template <class T> struct TileRow : Entries<T, LANE_VECTORS> {
    using Entries<T, LANE_VECTORS>::v;
    T *row;
    int n;

    __device__ TileRow(T *row, int n) : row(row), n(n) {
#pragma unroll
        for (int k = 0; k < LANE_VECTORS; k++)
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                v[k][j] = lane_place<T>(k, j) < n ? get(row[lane_place<T>(k, j)]) : NEG_INF;
    }

    /* The entries there become result(entry), wherever they go from there. */
    template <class F> __device__ void write(const T *, const F &result) const {
#pragma unroll
        for (int k = 0; k < LANE_VECTORS; k++)
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                if (lane_place<T>(k, j) < n)
                    put(&row[lane_place<T>(k, j)], result(v[k][j]));
    }

    __device__ void write_scaled(const T *out, float scale) const {
        write(out, [=](float v) { return v * scale; });
    }
};

template <class T> using WholeRow = RegisterRow<T, LANE_VECTORS, Whole<T>>;

/* A block's rows, cut alike on both sides. */
template <class T>
__device__ void copy_tile(T *to, const T *from, const Cut<T> &cut, unsigned thread) {
#pragma unroll
    for (int k = 0; k < LANE_VECTORS; k++)
        if (k * BLOCK + thread < cut.vectors)
            ((uint4 *)(to + cut.head))[k * BLOCK + thread] =
                ((const uint4 *)(from + cut.head))[k * BLOCK + thread];
    if (thread < cut.head + cut.tail)
        to[cut.ragged(thread)] = from[cut.ragged(thread)];
}

/*
 * use(row, r, mine): this lane's share of row number r, a WholeRow or a TileRow; mine: there is such a row.
 * y: what TileRows have become goes there, if it is not NULL.
 */
template <class T, class F>
__device__ void with_lanes(const T *__restrict__ x, T *__restrict__ y, unsigned rows, int cols,
                           const F &use) {
    __shared__ uint4 tile[LANE_VECTORS * BLOCK + 1];
    const unsigned top = blockIdx.x * blockDim.y, r = top + threadIdx.y;
    const size_t start = (size_t)top * cols;
    const bool mine = r < rows;
    const int n = mine ? cols : 0;

    if (all_whole(x, cols)) {
        WholeRow<T> row(x + (size_t)r * cols, n, threadIdx.x, blockDim.x);
        if (!mine)
            row.v[0][0] = 0.0f;
        use(row, r, mine);
        return;
    }
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    const Cut<T> cut(x + start, min(blockDim.y, rows - top) * cols);
    T *entries = (T *)tile + (VEC<T> - cut.head) % VEC<T>;

    copy_tile(entries, x + start, cut, thread);
    __syncthreads();
    TileRow<T> row(entries + threadIdx.y * cols, n);
    if (!mine)
        row.v[0][0] = 0.0f;
    use(row, r, mine);
    if (y != NULL) {
        __syncthreads();
        copy_tile<T>(y + start, entries, cut, thread);
    }
}

#endif
