/*
 * One thread's share of a row, read at the speed of memory: thread `thread` of `team` takes every
 * team'th 16-byte vector, DEPTH loads under way before the first is used, and every team'th of the
 * ragged elements, at most one in a team of 2 VEC<T> or more.  VEC<T> chains, one for each place in
 * the vector, are joined by a tree in the end: of n elements a chain takes ceil(n / (VEC<T> team)).
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

/* take(vector) for this thread's vectors of body, in batches whose loads are all under way at once. */
template <int DEPTH, class F>
__device__ void for_each_vector(const uint4 *body, unsigned vectors, unsigned thread, unsigned team,
                                const F &take) {
    unsigned i = thread;
    uint4 raw[DEPTH];
    for (; i + (DEPTH - 1) * team < vectors; i += DEPTH * team) {
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
            raw[k] = __ldg(&body[i + k * team]);
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
            take(raw[k]);
    }
#pragma unroll
    for (int k = 0; k < DEPTH - 1; k++)
        if (i + k * team < vectors)
            raw[k] = __ldg(&body[i + k * team]);
#pragma unroll
    for (int k = 0; k < DEPTH - 1; k++)
        if (i + k * team < vectors)
            take(raw[k]);
}

/* cut: a Cut<T>, or a Whole<T> where the row is one.  team >= LEAST. */
template <class Op, int DEPTH, int LEAST = 32, class How, class T>
__device__ float stream_cut(const T *__restrict__ row, const How &cut, unsigned thread,
                            unsigned team) {
    Chains<Op, T> chains;

    for_each_vector<DEPTH>((const uint4 *)(row + cut.head), cut.vectors, thread, team,
                           [&](uint4 raw) { chains.take(raw); });
    float v = chains.join();
    if constexpr (How::RAGGED) {
        const unsigned ragged = cut.head + cut.tail; /* below 2 VEC<T> */
        if constexpr (LEAST >= 2 * VEC<T>)
            v = thread < ragged ? Op::combine(v, get(row[cut.ragged(thread)])) : v;
        else
            for (unsigned k = thread; k < ragged; k += team)
                v = Op::combine(v, get(row[cut.ragged(k)]));
    }
    return v;
}

template <class Op, int DEPTH, class T>
__device__ float stream(const T *__restrict__ row, unsigned n, unsigned thread, unsigned team) {
    return stream_cut<Op, DEPTH>(row, Cut<T>(row, n), thread, team);
}

#endif
