/*
 * Rope at the speed of memory.  A block turns all heads of a few tokens: it computes their cosines
 * and sines once, into shared memory, then loads, turns and stores 16 bytes at a time.  Angles are
 * reduced exactly (turn.cuh), so position 10^6 is as good as position 1.
 *
 * Where the halves or the pointers do not lie on 16-byte boundaries, pairs go one by one.
 */
#include "kernels/io.cuh"
#include "kernels/rope/turn.cuh"

/*
 * The step of each pair's angle per position, for all rows that follow; a model would keep them.
 * log2_base is a sum of two: an f32 knows freq to 2^-20 only, and f64 is no argument of a manifest.
 */
extern "C" __global__ void rope_vector_steps(unsigned long long *steps, float log2_base,
                                             float log2_base_rest, int rotary_dim) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const double log2_freq = ((double)log2_base + log2_base_rest) * (-2.0 * i / rotary_dim);
    if (i < rotary_dim / 2)
        steps[i] = (unsigned long long)(exp2(log2_freq) / TWO_PI * TURN_UNITS);
}

/* (a, b) turned by t = (cosine, sine). */
inline __device__ void turn(float &a, float &b, float2 t) {
    const float first = a * t.x - b * t.y;
    b = a * t.y + b * t.x;
    a = first;
}

/* Pairs of neighbours: a vector holds whole pairs. */
struct Interleaved {
    static const bool APART = false;
    static __device__ unsigned first(unsigned i, unsigned) { return 2 * i; }
    static __device__ unsigned second(unsigned i, unsigned) { return 2 * i + 1; }
    /* Vectors that a thread turns at once, from 0 to `count` in a head. */
    template <class T> static __device__ unsigned count(unsigned half) { return half * 2 / VEC<T>; }

    template <class T>
    static __device__ void turn_vector(const T *x, T *y, const float2 *t, unsigned v, unsigned) {
        float p[VEC<T>];
        unpack<T>(p, __ldcs((const uint4 *)x + v));
#pragma unroll
        for (int k = 0; k < VEC<T>; k += 2)
            turn(p[k], p[k + 1], t[(v * VEC<T> + k) / 2]);
        __stcs((uint4 *)y + v, pack<T>(p));
    }
};

/* Pairs a half apart: a vector of first entries and the vector of their partners. */
struct HalfSplit {
    static const bool APART = true;
    static __device__ unsigned first(unsigned i, unsigned) { return i; }
    static __device__ unsigned second(unsigned i, unsigned half) { return i + half; }
    template <class T> static __device__ unsigned count(unsigned half) { return half / VEC<T>; }

    template <class T>
    static __device__ void turn_vector(const T *x, T *y, const float2 *t, unsigned v,
                                       unsigned half) {
        float a[VEC<T>], b[VEC<T>];
        unpack<T>(a, __ldcs((const uint4 *)x + v));
        unpack<T>(b, __ldcs((const uint4 *)(x + half) + v));
#pragma unroll
        for (int k = 0; k < VEC<T>; k++)
            turn(a[k], b[k], t[v * VEC<T> + k]);
        __stcs((uint4 *)y + v, pack<T>(a));
        __stcs((uint4 *)(y + half) + v, pack<T>(b));
    }
};

/* The heads of a block's tokens, in 16-byte vectors. */
template <class Layout, class T>
__device__ void turn_vectors(const T *x, T *y, const float2 *table, unsigned all_heads,
                             unsigned heads, unsigned head_dim, unsigned half) {
    const unsigned turned = Layout::template count<T>(half);
    const unsigned per_head = turned + (head_dim - 2 * half) / VEC<T>;
#pragma unroll 2
    for (unsigned i = threadIdx.x; i < all_heads * per_head; i += blockDim.x) {
        const unsigned h = i / per_head, v = i % per_head;
        const T *from = x + (size_t)h * head_dim;
        T *to = y + (size_t)h * head_dim;
        if (v < turned) {
            Layout::turn_vector(from, to, table + h / heads * half, v, half);
        } else { /* passes through */
            const unsigned k = v - turned + 2 * half / VEC<T>;
            __stcs((uint4 *)to + k, __ldcs((const uint4 *)from + k));
        }
    }
}

/*
 * The same where entries pass through and pairs lie a half apart.  Those two kinds of vectors side by side
 * would make a warp go through each in turn, with half of its lanes idle and their loads one after the other.
 * So here every thread takes one vector after the other in the order of memory, and its partner, if it has one,
 * from the cache, as the lane that owns that asks for the same line; and there is no branch between loads.
 */
template <class T>
__device__ void turn_partly(const T *x, T *y, const float2 *table, unsigned all_heads,
                            unsigned heads, unsigned head_dim, unsigned half) {
    const unsigned per_head = head_dim / VEC<T>, apart = half / VEC<T>;
    const unsigned per_token = heads * per_head, step = blockDim.x % per_head;
    unsigned v = threadIdx.x % per_head; /* place in the head */
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < all_heads * per_head; i += blockDim.x) {
        const bool first = v < apart, second = v - apart < apart, turns = v < 2 * apart;
        const uint4 raw = ((const uint4 *)x)[i];
        const uint4 partner = ((const uint4 *)x)[first ? i + apart : second ? i - apart : i];
        const unsigned pair = first ? v : second ? v - apart : 0;
        const float2 *t = table + i / per_token * half + pair * VEC<T>;
        float own[VEC<T>], other[VEC<T>];
        unpack<T>(own, raw);
        unpack<T>(other, partner);
#pragma unroll
        for (int k = 0; k < VEC<T>; k++) {
            const float sine = other[k] * t[k].y;
            own[k] = own[k] * t[k].x + (first ? -sine : sine);
        }
        const uint4 turned = pack<T>(own);
        __stcs((uint4 *)y + i, turns ? turned : raw);
        v += step;
        v -= v >= per_head ? per_head : 0;
    }
}

template <class Layout, class T>
__device__ void turn_pairs(const T *x, T *y, const float2 *table, unsigned all_heads,
                           unsigned heads, unsigned head_dim, unsigned half) {
    const unsigned per_head = head_dim - half; /* pairs, and entries that pass through */
    for (unsigned i = threadIdx.x; i < all_heads * per_head; i += blockDim.x) {
        const unsigned h = i / per_head, k = i % per_head;
        const T *from = x + (size_t)h * head_dim;
        T *to = y + (size_t)h * head_dim;
        if (k < half) {
            const unsigned first = Layout::first(k, half), second = Layout::second(k, half);
            float a = get(from[first]), b = get(from[second]);
            turn(a, b, table[h / heads * half + k]);
            put(&to[first], a);
            put(&to[second], b);
        } else {
            to[k + half] = from[k + half];
        }
    }
}

/* table[token][pair], without a division for each. */
inline __device__ void fill_table(float2 *table, const int *positions,
                                  const unsigned long long *steps, unsigned tokens, unsigned half) {
    const unsigned tokens_on = blockDim.x / half, pairs_on = blockDim.x % half;
    unsigned token = threadIdx.x / half, pair = threadIdx.x % half;
    while (token < tokens) {
        const long long position = positions[token];
        table[token * half + pair] = turn_cos_sin(steps[pair] * (unsigned long long)position);
        token += tokens_on;
        pair += pairs_on;
        if (pair >= half) {
            pair -= half;
            token++;
        }
    }
}

/* Tokens blockIdx.x * tokens and on; steps of rotary_dim / 2 pairs. */
template <class Layout, class T>
__device__ void rope(const T *__restrict__ x, const int *__restrict__ positions,
                     const unsigned long long *__restrict__ steps, T *__restrict__ y, int rows,
                     int heads, int head_dim, int rotary_dim, int tokens) {
    extern __shared__ float2 table[]; /* tokens x half */
    const unsigned half = rotary_dim / 2, first = blockIdx.x * tokens;
    const unsigned here = min((unsigned)tokens, rows - first);
    const size_t start = (size_t)first * heads * head_dim;

    fill_table(table, positions + first, steps, here, half);
    __syncthreads();
    const size_t places = (size_t)x | (size_t)y | (head_dim | half) * sizeof(T);
    if (places % 16 == 0 && Layout::APART && 2 * half < head_dim)
        turn_partly(x + start, y + start, table, here * heads, heads, head_dim, half);
    else if (places % 16 == 0)
        turn_vectors<Layout>(x + start, y + start, table, here * heads, heads, head_dim, half);
    else
        turn_pairs<Layout>(x + start, y + start, table, here * heads, heads, head_dim, half);
}

#define ROPE(dtype, T, name, Layout)                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                          \
        rope_##name##_##dtype(const T *__restrict__ x, const int *__restrict__ positions,      \
                              const unsigned long long *__restrict__ steps, T *__restrict__ y, \
                              int rows, int heads, int head_dim, int rotary_dim, int tokens) { \
        rope<Layout>(x, positions, steps, y, rows, heads, head_dim, rotary_dim, tokens);       \
    }

FOR_EACH_DTYPE(ROPE, vector, HalfSplit)
FOR_EACH_DTYPE(ROPE, vector_interleaved, Interleaved)
