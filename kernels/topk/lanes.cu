/*
 * Softmax and its k <= 16 largest of short rows, as a mixture of experts picks them: a few lanes to a row
 * (kernels/softmax/lanes.cuh), whose entries each lane sorts once.  Rank after rank the lanes compare the heads
 * of their lists in a butterfly, and the one whose head it was drops it.  The chosen of all rows of a
 * block go to shared memory, and as one piece from there.
 *
 * `renormalised` divides by the sum of the chosen in place of the row's.
 *
 * Larger entries first, and of equal ones (-0 and +0 are) the smaller index: also a -Inf before the slots without
 * an entry, which hold one.  A NaN comes before all and makes all probabilities NaN.
 */
#include "kernels/softmax/lanes.cuh"
#include "kernels/softmax/results.cuh"
#include "kernels/topk/key.cuh"

#define MAX_K 16
#define LEAST_LANES \
    4 /* of a row, even a shorter one: so many rows' chosen have room in shared memory */

/*
 * An entry and its place in the row as one number: the greater comes first, 0 after all.  19 bits hold the key of
 * any f16 or bf16, 13 a place in a row of 64 vectors.
 */
template <class T> struct Rank {
    typedef unsigned Bits;
    static constexpr unsigned PLACES = 0x1fff;
    static __device__ Bits of(float x, unsigned place) {
        return (key_of(x) & ~PLACES) | (PLACES - place);
    }
    static __device__ float value(Bits rank) {
        return __uint_as_float(__float_as_uint(value_of(rank & ~PLACES)) & ~PLACES);
    }
    static __device__ unsigned place(Bits rank) { return PLACES - (rank & PLACES); }
};

template <> struct Rank<float> {
    typedef unsigned long long Bits;
    static __device__ Bits of(float x, unsigned place) { return (Bits)key_of(x) << 32 | ~place; }
    static __device__ float value(Bits rank) { return value_of(rank >> 32); }
    static __device__ unsigned place(Bits rank) { return ~(unsigned)rank; }
};

struct Greatest {
    template <class Bits> static __device__ Bits combine(Bits a, Bits b) { return max(a, b); }
};

/*
 * Descending, by Batcher's odd-even merge sort; N is a power of two.  RUN and APART are template
 * arguments since nvcc does not unroll loops over them.
 */
template <int RUN = 1, int APART = 1, int N, class Bits> __device__ void sort(Bits (&v)[N]) {
#pragma unroll
    for (int i = APART % RUN; i + APART < N; i++)
        if ((i - APART % RUN) / APART % 2 == 0 && i / (2 * RUN) == (i + APART) / (2 * RUN)) {
            const Bits a = v[i], b = v[i + APART];
            v[i] = max(a, b);
            v[i + APART] = min(a, b);
        }
    if constexpr (APART > 1)
        sort<RUN, APART / 2>(v);
    else if constexpr (2 * RUN < N)
        sort<2 * RUN, 2 * RUN>(v);
}

template <class T, bool RENORMALISE>
__device__ void topk(const T *__restrict__ x, float *__restrict__ p, int *__restrict__ index,
                     unsigned rows, int cols, int k) {
    typedef typename Rank<T>::Bits Bits;
    typedef ExpOf<T> Exp;
    constexpr int N = LANE_VECTORS * VEC<T>;
    __shared__ Bits chosen[BLOCK / LEAST_LANES * MAX_K];
    __shared__ float2 states[BLOCK / LEAST_LANES]; /* maximum and 1 / sum */

    with_lanes(x, (T *)NULL, rows, cols, [=](auto &row, unsigned, bool) {
        Bits ranks[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            ranks[i] =
                Rank<T>::of(row.v[i / VEC<T>][i % VEC<T>], lane_place<T>(i / VEC<T>, i % VEC<T>));
        const Exp exp(Lanes::reduce<RowMax>(row.max()));
        float sum = RENORMALISE ? 0.0f : Lanes::reduce<RowSum>(row.to_exps(exp));
        sort(ranks);
        for (int r = 0; r < k; r++) {
            const Bits best = Lanes::reduce<Greatest>(ranks[0]);
            if (RENORMALISE)
                sum += exp(Rank<T>::value(best));
            if (threadIdx.x == 0)
                chosen[threadIdx.y * k + r] = best;
            if (ranks[0] == best) {
#pragma unroll
                for (int i = 1; i < N; i++)
                    ranks[i - 1] = ranks[i];
                ranks[N - 1] = 0;
            }
        }
        if (threadIdx.x == 0)
            states[threadIdx.y] = make_float2(exp.m, 1.0f / sum);
    });
    __syncthreads();

    const unsigned top = blockIdx.x * blockDim.y, count = min(blockDim.y, rows - top) * k;
    for (unsigned i = threadIdx.y * blockDim.x + threadIdx.x; i < count; i += BLOCK) {
        const float2 state = states[i / k];
        const size_t at = (size_t)top * k + i;
        p[at] = Exp(state.x)(Rank<T>::value(chosen[i])) * state.y;
        index[at] = (int)Rank<T>::place(chosen[i]);
    }
}

#define TOPK(dtype, T, name, RENORMALISE)                                                   \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                     \
        softmax_topk_##name##_##dtype(const T *__restrict__ x, float *__restrict__ p,       \
                                      int *__restrict__ index, int rows, int cols, int k) { \
        topk<T, RENORMALISE>(x, p, index, rows, cols, k);                                   \
    }

FOR_EACH_DTYPE(TOPK, lanes, false)
FOR_EACH_DTYPE(TOPK, lanes_renormalised, true)
