/*
 * A chunk of a softmax row in shared memory, for rows that do not fit the registers.
 */
#ifndef KERNELS_SOFTMAX_SHARED_ROW_CUH
#define KERNELS_SOFTMAX_SHARED_ROW_CUH

#include "kernels/softmax/on_chip.cuh"

/*
 * A chunk in shared memory: thread t reads only vectors t, t + blockDim.x ..., which it copied itself, so
 * that waiting for its own copies is enough.
 */
template <class T> struct SharedRow {
    uint4 *slots;
    float ragged;
    Cut<T> cut;

    __device__ SharedRow(uint4 *slots, const T *row, unsigned n) : slots(slots), cut(row, n) {
        ragged = threadIdx.x < cut.head + cut.tail ? get(row[cut.ragged(threadIdx.x)]) : NEG_INF;
    }

    /* Starts the copies of this thread's vectors. */
    __device__ void copy(const T *row) const {
        const uint4 *body = (const uint4 *)(row + cut.head);
        for (unsigned i = threadIdx.x; i < cut.vectors; i += blockDim.x)
            copy16(&slots[i], &body[i]);
    }

    /* The same in PIECES groups of DEPTH vectors, the last ones maybe empty. */
    template <int PIECES, int DEPTH> __device__ void copy_pieces(const T *row) const {
        const uint4 *body = (const uint4 *)(row + cut.head);
        unsigned i = threadIdx.x;
        for (int piece = 0; piece < PIECES; piece++) {
#pragma unroll
            for (int k = 0; k < DEPTH; k++, i += blockDim.x)
                if (i < cut.vectors)
                    copy16(&slots[i], &body[i]);
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
    }

    template <class F> __device__ void for_each_vector(const F &f) const {
#pragma unroll 2
        for (unsigned i = threadIdx.x; i < cut.vectors; i += blockDim.x) {
            float v[VEC<T>];
            unpack<T>(v, slots[i]);
            f(i, v);
        }
    }

    __device__ float max() const {
        float max = ragged;
        for_each_vector([&](unsigned, const float *v) {
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                max = fmaxf(max, v[j]);
        });
        return max;
    }

    template <class Exp> __device__ float exp_sum(const Exp &exp) const {
        float sums[VEC<T>];
#pragma unroll
        for (int j = 0; j < VEC<T>; j++)
            sums[j] = 0.0f;
        for_each_vector([&](unsigned, const float *v) {
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                sums[j] += exp(v[j]);
        });
        return join_sums<VEC<T>>(sums) + exp(ragged);
    }

    /* out = result(entry). */
    template <class F> __device__ void write(T *out, const F &result) const {
        if (threadIdx.x < cut.head + cut.tail)
            put(&out[cut.ragged(threadIdx.x)], result(ragged));
        for_each_vector([&](unsigned i, float *v) {
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                v[j] = result(v[j]);
            ((uint4 *)(out + cut.head))[i] = pack<T>(v);
        });
    }
};

#endif
