/*
 * Rung 9.  16-byte loads, four of them in flight, four accumulators: a quarter of the load
 * instructions, and enough bytes under way to hide the latency of memory (which is what limits rung
 * 8).  Rows start anywhere, so up to 3 elements before the first 16-byte boundary and up to 3 after
 * the last are taken one by one.  Four chains of a quarter of the length: the height shrinks too.
 */
#include "kernels/reduce/block.cuh"

template <class Op> __device__ void vector4(const float *x, float *y, int cols) {
    const float *row = row_of(x, cols);
    const unsigned end = cols, tid = threadIdx.x;
    const unsigned to_boundary = -((size_t)row / sizeof(float)) % 4;
    const unsigned head = min(to_boundary, end);
    const unsigned vectors = (end - head) / 4, tail = (end - head) % 4;
    const float4 *body = (const float4 *)(row + head);

    float a = Op::identity(), b = a, c = a, d = a;
    if (tid < head)
        a = row[tid];
#pragma unroll 4
    for (unsigned i = tid; i < vectors; i += BLOCK) {
        const float4 v = body[i];
        a = Op::combine(a, v.x);
        b = Op::combine(b, v.y);
        c = Op::combine(c, v.z);
        d = Op::combine(d, v.w);
    }
    if (tid < tail)
        d = Op::combine(d, row[end - tail + tid]);
    const float v = block_reduce<Op>(Op::combine(Op::combine(a, b), Op::combine(c, d)));
    if (tid == 0)
        y[blockIdx.x] = v;
}

REDUCE_KERNELS(float4, vector4)
