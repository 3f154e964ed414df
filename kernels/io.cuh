/*
 * kernels/io.cuh - elements of f32, f16 or bf16 in memory, f32 in registers.
 *
 * A kernel template over the element type T reads with get() and unpack() and writes with put() and
 * pack(): widening is exact, narrowing rounds once to nearest even.  A vector is 16 bytes, the widest
 * access there is: VEC<T> elements, in the order of memory.
 *
 * Rows start anywhere.  Of a row of n elements, `head` lie before the first 16-byte boundary and
 * `tail` after the last; the `vectors` between them are accessed whole.
 */
#ifndef KERNELS_IO_CUH
#define KERNELS_IO_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T> constexpr int VEC = 16 / (int)sizeof(T);

inline __device__ float get(float v) {
    return v;
}
inline __device__ float get(__half v) {
    return __half2float(v);
}
inline __device__ float get(__nv_bfloat16 v) {
    return __uint_as_float((unsigned)__bfloat16_as_ushort(v) << 16);
}

inline __device__ void put(float *to, float v) {
    *to = v;
}
inline __device__ void put(__half *to, float v) {
    *to = __float2half_rn(v);
}
inline __device__ void put(__nv_bfloat16 *to, float v) {
    *to = __float2bfloat16_rn(v);
}

/* Two elements of one 32-bit word; the first is the low half. */
template <class T> __device__ float2 widen(unsigned word);
template <> inline __device__ float2 widen<__half>(unsigned word) {
    return __half22float2(*(const __half2 *)&word);
}
template <> inline __device__ float2 widen<__nv_bfloat16>(unsigned word) {
    return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000));
}

template <class T> __device__ unsigned narrow(float low, float high);
template <> inline __device__ unsigned narrow<__half>(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *(const unsigned *)&pair;
}
template <> inline __device__ unsigned narrow<__nv_bfloat16>(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *(const unsigned *)&pair;
}

template <class T> inline __device__ void unpack(float *v, uint4 raw) {
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if constexpr (sizeof(T) == 4) {
            v[k] = __uint_as_float(words[k]);
        } else {
            const float2 pair = widen<T>(words[k]);
            v[2 * k] = pair.x;
            v[2 * k + 1] = pair.y;
        }
    }
}

template <class T> inline __device__ uint4 pack(const float *v) {
    unsigned words[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if constexpr (sizeof(T) == 4)
            words[k] = __float_as_uint(v[k]);
        else
            words[k] = narrow<T>(v[2 * k], v[2 * k + 1]);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/*
 * A row's entries from index * chunk_cols on, chunk_cols of them or what is left: n, from entry `at` of
 * the matrix on.
 */
struct Chunk {
    size_t at;
    unsigned n;

    __device__ Chunk(unsigned row, unsigned index, int cols, int chunk_cols) {
        const unsigned start = min(index * (unsigned)chunk_cols, (unsigned)cols);
        at = (size_t)row * cols + start;
        n = min((unsigned)chunk_cols, cols - start);
    }
};

/* How 16-byte boundaries cut a row. */
template <class T> struct Cut {
    static constexpr bool RAGGED = true;
    unsigned head, vectors, tail;

    __device__ Cut(const T *row, unsigned n) {
        const unsigned to_boundary = -((size_t)row / sizeof(T)) % VEC<T>;
        head = min(to_boundary, n);
        vectors = (n - head) / VEC<T>;
        tail = (n - head) % VEC<T>;
    }
    /* Of the head + tail < 2 VEC<T> ragged elements, the place in the row of number k. */
    __device__ unsigned ragged(unsigned k) const { return k < head ? k : k + VEC<T> * vectors; }
};

/* The same of a row of whole vectors on a 16-byte boundary. */
template <class T> struct Whole {
    static constexpr bool RAGGED = false;
    static constexpr unsigned head = 0;
    unsigned vectors;

    __device__ Whole(const T *, unsigned n) : vectors(n / VEC<T>) {}
    __device__ unsigned ragged(unsigned k) const { return k; } /* never asked for one */
};

/* Are all rows of cols elements, the first one at x, such rows? */
template <class T> __device__ bool all_whole(const T *x, int cols) {
    return ((size_t)x | cols * sizeof(T)) % 16 == 0;
}

/* Three kernels from one template: NAME_f32, NAME_f16, NAME_bf16. */
#define FOR_EACH_DTYPE(define, ...)                                  \
    define(f32, float, __VA_ARGS__) define(f16, __half, __VA_ARGS__) \
        define(bf16, __nv_bfloat16, __VA_ARGS__)

#endif
