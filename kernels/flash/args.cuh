/*
 * What the tensor-core forms are told, and one query row in plain f32.
 *
 * The options, in the order in which a logit meets them: scale, SOFTCAP, BIAS, ALIBI, then the masks
 * LENGTHS, CAUSAL (the last query sees the last key) and WINDOW, then the SINK, a logit that counts in
 * the sum alone.
 */
#ifndef KERNELS_FLASH_ARGS_CUH
#define KERNELS_FLASH_ARGS_CUH

#include "kernels/flash/row.cuh"
#include "kernels/io.cuh"

#define LOG2E 0x1.715476p0f

enum option : unsigned {
    CAUSAL = 1,
    WINDOW = 2,  /* with CAUSAL: window_left keys before the query's own */
    LENGTHS = 4, /* keys from lengths[batch] on are not there */
    SOFTCAP = 8,
    BIAS = 16,
    ALIBI = 32,
    SINK = 64,
    LAZY = 128, /* of fa2_mma.cuh */
    POLY = 256, /* likewise */
};

template <class T> struct Args {
    const T *__restrict__ q, *__restrict__ k, *__restrict__ v;
    T *__restrict__ o;
    float *__restrict__ lse;
    int heads, kv_heads, queries, keys;
    float scale, scale_log2; /* scale_log2 = scale log2(e) */
    const int *lengths;      /* LENGTHS: [batch], keys that are real */
    const T *bias;           /* BIAS: [batch][heads][queries][keys] */
    const float *slopes; /* ALIBI: [heads]; a logit loses slope |distance to the query's own key| */
    const float *sinks;  /* SINK: [heads] */
    int window_left;
    float softcap;
};

/* 2^x by the special function unit, subnormals flushed. */
static __device__ __forceinline__ float exp2_sfu(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* A logit that is more than a product is kept as it is; else its scale goes into the exponent. */
template <unsigned OPTIONS> constexpr bool PLAIN = !(OPTIONS & (SOFTCAP | BIAS | ALIBI | SINK));

/* Of a ballot in which four lanes hold a row: a bit for each of the 8 rows. */
static __device__ __forceinline__ unsigned rows_of(unsigned ballot) {
    unsigned rows = 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
        rows |= (ballot >> 4 * i & 15 ? 1u : 0u) << i;
    return rows;
}

/* The logit of what `s` = q k is for row (of all batches and heads) and key. */
template <unsigned OPTIONS, class T>
static __device__ __forceinline__ float logit(const Args<T> &args, float s, size_t row, int head,
                                              int own, int key) {
    if (PLAIN<OPTIONS>)
        return s;
    float z = s * args.scale;
    if (OPTIONS & SOFTCAP)
        z = args.softcap * tanhf(z / args.softcap);
    if (OPTIONS & BIAS)
        z += get(args.bias[row * args.keys + key]);
    if (OPTIONS & ALIBI)
        z = fmaf(-args.slopes[head], (float)abs(own - key), z);
    return z;
}

/*
 * One query row by a warp: the maximum first, then weights, sum and O, each lane a key of 32 and then
 * HD / 32 dimensions, sums in four chains.  It looks at no key that the row does not see.  In a tile on
 * tensor cores a weight of 0 still meets the v of such a key, and a split infinity meets 0: what
 * comes out as NaN there is done again here.
 */
template <unsigned OPTIONS, class T, int HD>
static __device__ __forceinline__ void plain_row(const Args<T> &args, int index, int query) {
    constexpr int DIMS = HD / WARP;
    const int lane = threadIdx.x % WARP, head = index % args.heads, batch = index / args.heads;
    const size_t row = (size_t)index * args.queries + query;
    const size_t first =
        ((size_t)batch * args.kv_heads + head / (args.heads / args.kv_heads)) * args.keys;
    const int keys = OPTIONS & LENGTHS ? min(args.keys, args.lengths[batch]) : args.keys;
    const int own = query + keys - args.queries;
    const int begin = OPTIONS & WINDOW ? max(0, own - args.window_left) : 0;
    const int end = OPTIONS & CAUSAL ? max(0, min(keys, own + 1)) : keys;
    const float multiplier = PLAIN<OPTIONS> ? args.scale_log2 : LOG2E;

    auto score = [&](int key) {
        const T *q = args.q + row * HD, *k = args.k + (first + key) * HD;
        float s[4] = {};
        for (int d = 0; d < HD; d += 4)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[i] = fmaf(get(q[d + i]), get(k[d + i]), s[i]);
        return logit<OPTIONS>(args, (s[0] + s[1]) + (s[2] + s[3]), row, head, own, key);
    };

    float top = OPTIONS & SINK ? args.sinks[head] : NEG_INF;
    for (int key = begin + lane; key < end; key += WARP)
        top = fmaxf(top, score(key));
    top = warp_max(top);
    const float at = reference(top) * multiplier;
    float sum = 0.0f;
    if (OPTIONS & SINK && lane == 0)
        sum = exp2_sfu(fmaf(args.sinks[head], multiplier, -at));
    float out[4][DIMS] = {};
    for (int base = begin; base < end; base += WARP) {
        const int key = base + lane;
        const float p = key < end ? exp2_sfu(fmaf(score(key), multiplier, -at)) : 0.0f;
        sum += p;
        const int count = min(WARP, end - base);
        for (int i = 0; i < count; i += 4)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float weight = __shfl_sync(FULL_WARP, p, i + c);
                if (i + c >= count)
                    continue;
#pragma unroll
                for (int d = 0; d < DIMS; d++)
                    out[c][d] =
                        fmaf(weight, get(args.v[(first + base + i + c) * HD + d * WARP + lane]),
                             out[c][d]);
            }
    }
    sum = warp_sum(sum);
    const float inverse = sum == 0.0f ? 0.0f : __frcp_rn(sum);
#pragma unroll
    for (int d = 0; d < DIMS; d++)
        put(&args.o[row * HD + d * WARP + lane],
            ((out[0][d] + out[1][d]) + (out[2][d] + out[3][d])) * inverse);
    if (lane == 0)
        args.lse[row] = sum == 0.0f
                            ? NEG_INF
                            : fmaf(reference(top), PLAIN<OPTIONS> ? args.scale : 1.0f, logf(sum));
}

#endif
