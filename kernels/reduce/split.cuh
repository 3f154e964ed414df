/*
 * Long rows: gridDim.x blocks cut each of gridDim.y rows into chunks of chunk_cols elements (the last
 * one shorter, or empty).
 */
#ifndef KERNELS_REDUCE_SPLIT_CUH
#define KERNELS_REDUCE_SPLIT_CUH

#include "kernels/reduce/block.cuh"
#include "kernels/reduce/stream.cuh"

/* Where this block's chunk begins; *n elements. */
template <class T> __device__ const T *chunk_of(const T *x, int cols, int chunk_cols, unsigned *n) {
    const size_t start = min((size_t)blockIdx.x * chunk_cols, (size_t)cols);
    *n = (unsigned)min((size_t)chunk_cols, cols - start);
    return x + (size_t)blockIdx.y * cols + start;
}

/* This block's chunk reduced; valid in thread 0. */
template <class Op, class T> __device__ float reduce_chunk(const T *x, int cols, int chunk_cols) {
    unsigned n;
    const T *chunk = chunk_of(x, cols, chunk_cols, &n);
    return block_reduce<Op>(stream<Op, 8>(chunk, n, threadIdx.x, BLOCK));
}

#endif
