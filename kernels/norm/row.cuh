/*
 * What the norms share: rows in registers, and sums over a team of threads.
 *
 * A team is blockDim.x threads, whole warps; blockDim.y teams of a block each have a row.
 */
#ifndef KERNELS_NORM_ROW_CUH
#define KERNELS_NORM_ROW_CUH

#include "kernels/io.cuh"

#define WARP 32
#define FULL_WARP 0xffffffffu

/* Every lane gets the same bits: addition commutes. */
inline __device__ float warp_sum(float v) {
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        v += __shfl_xor_sync(FULL_WARP, v, offset);
    return v;
}

/* The sum over a team; part holds WARP values, and is not used again before the next barrier. */
inline __device__ float team_sum(float v, float *part) {
    const unsigned lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    float *own = part + threadIdx.y * warps;

    v = warp_sum(v);
    if (warps == 1)
        return v;
    if (lane == 0)
        own[threadIdx.x / WARP] = v;
    __syncthreads();
    return warp_sum(lane < warps ? own[lane] : 0.0f);
}

/* The sum of v[0 .. VEC<T>-1] in a tree; v is lost. */
template <class T> __device__ float tree_sum(float *v) {
#pragma unroll
    for (int width = VEC<T> / 2; width > 0; width /= 2)
#pragma unroll
        for (int i = 0; i < width; i++)
            v[i] += v[i + width];
    return v[0];
}

/* VEC<T> weights or biases from column j on, wherever that lies. */
template <class T> __device__ void weights(float *v, const T *w, unsigned j) {
    if ((size_t)(w + j) % 16 == 0) {
        unpack<T>(v, *(const uint4 *)(w + j));
    } else {
#pragma unroll
        for (int i = 0; i < VEC<T>; i++)
            v[i] = get(w[j + i]);
    }
}

/* One vector to where it belongs; `aligned`: that is a 16-byte boundary. */
template <class T> __device__ void store(T *to, const float *v, bool aligned) {
    if (aligned) {
        __stcs((uint4 *)to, pack<T>(v));
    } else {
#pragma unroll
        for (int i = 0; i < VEC<T>; i++)
            put(&to[i], v[i]);
    }
}

/* Rounded to T and back. */
template <class T> __device__ float rounded(float v) {
    T t;
    put(&t, v);
    return get(t);
}

/*
 * A row as its bytes in registers: each thread holds up to VECTORS 16-byte vectors, number k * team
 * + thread, and at most one of the ragged entries before the first and after the last 16-byte
 * boundary.  x is read past the cache that the weights live in.
 */
template <class T, int VECTORS> struct HeldRow {
    uint4 raw[VECTORS];
    float ragged;
    Cut<T> cut;

    __device__ HeldRow(const T *row, unsigned n) : ragged(0.0f), cut(row, n) {
        const uint4 *body = (const uint4 *)(row + cut.head);
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (holds(k))
                raw[k] = __ldcs(body + place(k));
        if (has_ragged())
            ragged = get(row[cut.ragged(threadIdx.x)]);
    }

    __device__ bool has_ragged() const { return threadIdx.x < cut.head + cut.tail; }
    __device__ unsigned place(int k) const { return k * blockDim.x + threadIdx.x; }
    __device__ bool holds(int k) const { return place(k) < cut.vectors; }

    /* The sum of term(entry) over this thread's entries: a tree in each vector, then a chain. */
    template <class F> __device__ float sum(const F &term) const {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            if (!holds(k))
                continue;
            float v[VEC<T>];
            unpack<T>(v, raw[k]);
#pragma unroll
            for (int i = 0; i < VEC<T>; i++)
                v[i] = term(v[i]);
            sum += tree_sum<T>(v);
        }
        return has_ragged() ? sum + term(ragged) : sum;
    }

    /*
     * y_j = result(x_j, w_j, b_j); without BIAS, b_j = 0 and b is not read.  `row` is where x stands:
     * a row that begins, or whose results or weights begin, off a 16-byte boundary is read again
     * entry by entry.  That costs time there and registers nowhere.
     */
    template <bool BIAS, class F>
    __device__ void write(T *out, const T *row, unsigned n, const T *w, const T *b,
                          const F &result) const {
        if (((size_t)row | (size_t)out | (size_t)w | (size_t)b) % 16 != 0) {
#pragma unroll 1
            for (unsigned j = threadIdx.x; j < n; j += blockDim.x)
                put(&out[j], result(get(row[j]), get(w[j]), BIAS ? get(b[j]) : 0.0f));
            return;
        }
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            if (!holds(k))
                continue;
            float v[VEC<T>], wj[VEC<T>], bj[VEC<T>];
            unpack<T>(v, raw[k]);
            unpack<T>(wj, ((const uint4 *)w)[place(k)]);
            if (BIAS)
                unpack<T>(bj, ((const uint4 *)b)[place(k)]);
#pragma unroll
            for (int i = 0; i < VEC<T>; i++)
                v[i] = result(v[i], wj[i], BIAS ? bj[i] : 0.0f);
            __stcs((uint4 *)out + place(k), pack<T>(v));
        }
        if (has_ragged()) { /* behind the last vector: the row begins on a boundary */
            const unsigned j = cut.ragged(threadIdx.x);
            put(&out[j], result(ragged, get(w[j]), BIAS ? get(b[j]) : 0.0f));
        }
    }
};

#endif
