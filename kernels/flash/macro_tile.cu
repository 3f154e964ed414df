/*
 * Macro tiles: a block of 256 threads holds 128 query rows and walks over 32 keys at a time, all in
 * shared memory, all global accesses float4.  Threads form 16 x 16: thread (y, x) holds rows
 * y + 16 i (i < 8) and keys x + 16 j (j < 2) of S, the same rows and HD / 16 dimensions of O.
 */
#include "kernels/flash/row.cuh"

#define ROWS 128
#define KEYS 32
#define SIDE 16
#define MY_ROWS (ROWS / SIDE)
#define MY_KEYS (KEYS / SIDE)

/* `count` rows of HD floats into shared memory, rows STRIDE words apart, the rest of TILE zeros. */
template <int HD, int TILE, int STRIDE>
static __device__ __forceinline__ void load_tile(float *tile, const float *from, int count) {
    for (int i = threadIdx.x; i < TILE * (HD / 4); i += SIDE * SIDE) {
        const int r = i / (HD / 4), c = i % (HD / 4);
        const float4 x =
            r < count ? ((const float4 *)from)[(size_t)r * (HD / 4) + c] : make_float4(0, 0, 0, 0);
        *(float4 *)(tile + r * STRIDE + 4 * c) = x;
    }
}

template <int HD, bool CAUSAL>
static __device__ __forceinline__ void
macro_tile(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
           float *__restrict__ o, float *__restrict__ lse, Shape shape, float scale) {
    extern __shared__ float4 shared4[];
    constexpr int STRIDE = HD + 4, MY_DIMS = HD / SIDE, P_STRIDE = KEYS + 1;
    float *const q_tile = (float *)shared4, *const k_tile = q_tile + ROWS * STRIDE;
    float *const v_tile = k_tile + KEYS * STRIDE, *const p_tile = v_tile + KEYS * STRIDE;
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE, first = blockIdx.x * ROWS;
    const size_t row = shape.row(blockIdx.y) + first, keys = shape.key(blockIdx.y);
    const int rows = min(ROWS, shape.queries - first);
    const int end = shape.seen(first + rows - 1, CAUSAL);
    float out[MY_ROWS][MY_DIMS] = {}, m[MY_ROWS], l[MY_ROWS] = {};

    for (int i = 0; i < MY_ROWS; i++)
        m[i] = NEG_INF;
    load_tile<HD, ROWS, STRIDE>(q_tile, q + row * HD, rows);
    for (int j = 0; j < end; j += KEYS) {
        __syncthreads();
        load_tile<HD, KEYS, STRIDE>(k_tile, k + (keys + j) * HD, shape.keys - j);
        load_tile<HD, KEYS, STRIDE>(v_tile, v + (keys + j) * HD, shape.keys - j);
        __syncthreads();

        float s[MY_ROWS][MY_KEYS] = {};
#pragma unroll 4
        for (int d = 0; d < HD; d += 4) {
            float4 kd[MY_KEYS];
#pragma unroll
            for (int c = 0; c < MY_KEYS; c++)
                kd[c] = *(const float4 *)(k_tile + (x + c * SIDE) * STRIDE + d);
#pragma unroll
            for (int i = 0; i < MY_ROWS; i++) {
                const float4 qd = *(const float4 *)(q_tile + (y + i * SIDE) * STRIDE + d);
#pragma unroll
                for (int c = 0; c < MY_KEYS; c++) {
                    s[i][c] = fmaf(qd.x, kd[c].x, s[i][c]);
                    s[i][c] = fmaf(qd.y, kd[c].y, s[i][c]);
                    s[i][c] = fmaf(qd.z, kd[c].z, s[i][c]);
                    s[i][c] = fmaf(qd.w, kd[c].w, s[i][c]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < MY_ROWS; i++) {
            const int seen = shape.seen(first + y + i * SIDE, CAUSAL) - j;
            float t = NEG_INF, sum = 0.0f;
#pragma unroll
            for (int c = 0; c < MY_KEYS; c++) {
                s[i][c] = x + c * SIDE < seen ? s[i][c] * scale : NEG_INF;
                t = fmaxf(t, s[i][c]);
            }
            for (int mask = SIDE / 2; mask > 0; mask /= 2)
                t = fmaxf(t, __shfl_xor_sync(FULL_WARP, t, mask));
            t = fmaxf(t, m[i]);
            const float alpha = weight(m[i], t);
            m[i] = t;
#pragma unroll
            for (int c = 0; c < MY_KEYS; c++) {
                const float p = weight(s[i][c], t);
                p_tile[(y + i * SIDE) * P_STRIDE + x + c * SIDE] = p;
                sum += p;
            }
            for (int mask = SIDE / 2; mask > 0; mask /= 2)
                sum += __shfl_xor_sync(FULL_WARP, sum, mask);
            l[i] = fmaf(l[i], alpha, sum);
#pragma unroll
            for (int d = 0; d < MY_DIMS; d++)
                out[i][d] *= alpha;
        }
        __syncwarp(); /* a row's 16 threads are of one warp */
        const int count = min(KEYS, shape.keys - j);
        const bool masked = CAUSAL && shape.seen(first, true) < j + count;
        for (int c = 0; c < count; c++) {
            float4 vd[MY_DIMS / 4];
#pragma unroll
            for (int d = 0; d < MY_DIMS / 4; d++)
                vd[d] = *(const float4 *)(v_tile + c * STRIDE + (x + d * SIDE) * 4);
#pragma unroll
            for (int i = 0; i < MY_ROWS; i++) {
                const float p = p_tile[(y + i * SIDE) * P_STRIDE + c];
                if (masked && j + c >= shape.seen(first + y + i * SIDE, true))
                    continue; /* 0 NaN is NaN */
#pragma unroll
                for (int d = 0; d < MY_DIMS / 4; d++) {
                    out[i][4 * d] = fmaf(p, vd[d].x, out[i][4 * d]);
                    out[i][4 * d + 1] = fmaf(p, vd[d].y, out[i][4 * d + 1]);
                    out[i][4 * d + 2] = fmaf(p, vd[d].z, out[i][4 * d + 2]);
                    out[i][4 * d + 3] = fmaf(p, vd[d].w, out[i][4 * d + 3]);
                }
            }
        }
    }
    for (int i = 0; i < MY_ROWS; i++) {
        const int r = y + i * SIDE;
        if (r >= rows)
            continue;
        for (int d = 0; d < MY_DIMS / 4; d++) {
            const float *part = out[i] + 4 * d;
            float4 value = make_float4(0, 0, 0, 0);
            if (l[i] != 0.0f)
                value = make_float4(part[0] / l[i], part[1] / l[i], part[2] / l[i], part[3] / l[i]);
            *(float4 *)(o + (row + r) * HD + (x + d * SIDE) * 4) = value;
        }
        if (x == 0)
            lse[row + r] = l[i] == 0.0f ? NEG_INF : reference(m[i]) + logf(l[i]);
    }
}

#define ENTRY(NAME, HD, CAUSAL)                                                                \
    extern "C" __global__ void __launch_bounds__(SIDE *SIDE)                                   \
        NAME(const float *q, const float *k, const float *v, float *o, float *lse, int heads,  \
             int kv_heads, int queries, int keys, float scale) {                               \
        macro_tile<HD, CAUSAL>(q, k, v, o, lse, Shape{heads, kv_heads, queries, keys}, scale); \
    }

ENTRY(attention_macro_tile_hd64_f32, 64, false)
ENTRY(attention_macro_tile_hd64_causal_f32, 64, true)
ENTRY(attention_macro_tile_hd128_f32, 128, false)
ENTRY(attention_macro_tile_hd128_causal_f32, 128, true)
