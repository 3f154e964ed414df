/*
 * One thread's share of a row, read at the speed of memory: thread `thread` of `team` takes every
 * team'th 16-byte vector, DEPTH loads under way before the first is used, and at most one of the
 * ragged elements.  VEC<T> chains, one per place in the vector, joined by a tree in the end: of n
 * elements a chain takes ceil(n / (VEC<T> team)).
 */
#ifndef KERNELS_REDUCE_STREAM_CUH
#define KERNELS_REDUCE_STREAM_CUH

#include "kernels/io.cuh"
#include "kernels/reduce/op.cuh"

/* An accumulator for each place in a vector. */
template <class Op, class T> struct Chains {
    float chain[VEC<T>];

    __device__ Chains() {
#pragma unroll
        for (int j = 0; j < VEC<T>; j++)
            chain[j] = Op::identity();
    }

    __device__ void take(uint4 raw) {
        float v[VEC<T>];
        unpack<T>(v, raw);
#pragma unroll
        for (int j = 0; j < VEC<T>; j++)
            chain[j] = Op::combine(chain[j], v[j]);
    }

    __device__ float join() {
#pragma unroll
        for (int width = VEC<T> / 2; width > 0; width /= 2)
#pragma unroll
            for (int j = 0; j < width; j++)
                chain[j] = Op::combine(chain[j], chain[j + width]);
        return chain[0];
    }
};

template <class Op, int DEPTH, class T>
__device__ float stream(const T *__restrict__ row, unsigned n, unsigned thread, unsigned team) {
    const Cut<T> cut(row, n);
    const uint4 *body = (const uint4 *)(row + cut.head);
    Chains<Op, T> chains;

    unsigned i = thread;
    for (; i + (DEPTH - 1) * team < cut.vectors; i += DEPTH * team) {
        uint4 raw[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
            raw[k] = __ldg(&body[i + k * team]);
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
            chains.take(raw[k]);
    }
    for (; i < cut.vectors; i += team)
        chains.take(__ldg(&body[i]));
    const float v = chains.join();
    return thread < cut.head + cut.tail ? Op::combine(v, get(row[cut.ragged(thread)])) : v;
}

#endif
