/*
 * Rung 9.  16-byte loads, four of them in flight, an accumulator for each place in the vector: a
 * quarter of the load instructions (an eighth in 16-bit formats), and enough bytes under way to hide
 * the latency of memory (which is what limits rung 8).  Rows start anywhere, so the elements before
 * the first 16-byte boundary and after the last are taken one by one.  Four or eight chains of a
 * quarter or an eighth of the length: the height shrinks too.
 */
#include "kernels/reduce/block.cuh"
#include "kernels/reduce/stream.cuh"

template <class Op, class T> __device__ void vectors(const T *x, float *y, int cols) {
    const T *row = row_of(x, cols);
    const Cut<T> cut(row, cols);
    const uint4 *body = (const uint4 *)(row + cut.head);

    Chains<Op, T> chains;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < cut.vectors; i += BLOCK)
        chains.take(body[i]);
    float v = chains.join();
    if (threadIdx.x < cut.head + cut.tail)
        v = Op::combine(v, get(row[cut.ragged(threadIdx.x)]));
    v = block_reduce<Op>(v);
    if (threadIdx.x == 0)
        y[blockIdx.x] = v;
}

REDUCE_KERNELS(float4, vectors)
