/*
 * FlashAttention-2's form in f32, without tensor cores: O stays in registers, is rescaled only where
 * the maximum rises, and is divided once at the end; the log of the sum goes with it.
 *
 * A block takes 32 query rows and walks over the keys in tiles of 32.  Four threads share a row:
 * thread t of them holds columns 4i + t of q and O, and its part of a dot product; a butterfly adds
 * the parts, so all four have the same logits, maximum and sum.
 *
 * batch x heads x rows x HD, row-major; head h reads key-value head h / (heads / kv_heads).
 */
#ifndef KERNELS_FLASH_FA2_F32_CUH
#define KERNELS_FLASH_FA2_F32_CUH

#include "kernels/softmax/row.cuh"

#define ROWS 32
#define KEYS 32
#define QUAD 4

template <int HD> __device__ void load_tile(float tile[KEYS][HD], const float *from, int count) {
    for (int i = threadIdx.x; i < KEYS * HD; i += ROWS * QUAD)
        tile[i / HD][i % HD] = i < count * HD ? from[i] : 0.0f;
}

/* RESCALE is false in a planted fault only. */
template <int HD, bool CAUSAL, bool RESCALE = true>
__device__ void attention(const float *q, const float *k, const float *v, float *o, float *lse,
                          int heads, int kv_heads, int queries, int keys, float scale) {
    constexpr int COLS = HD / QUAD;
    __shared__ float k_tile[KEYS][HD], v_tile[KEYS][HD];
    const int t = threadIdx.x % QUAD, head = blockIdx.y;
    const int row = blockIdx.x * ROWS + threadIdx.x / QUAD;
    const int kv_head = head / heads * kv_heads + head % heads / (heads / kv_heads);
    const bool there = row < queries;
    /* Bottom right: the last query sees the last key. */
    const int seen = !there ? 0 : CAUSAL ? max(0, min(keys, row + 1 + keys - queries)) : keys;
    const int last = min(queries, (blockIdx.x + 1) * ROWS);
    const int end = CAUSAL ? max(0, min(keys, last + keys - queries)) : keys;
    const size_t at = (size_t)head * queries + row;
    k += (size_t)kv_head * keys * HD;
    v += (size_t)kv_head * keys * HD;

    float q_row[COLS], sums[COLS], max = NEG_INF, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < COLS; i++) {
        q_row[i] = there ? q[at * HD + QUAD * i + t] : 0.0f;
        sums[i] = 0.0f;
    }
    for (int first = 0; first < end; first += KEYS) {
        const int here = seen - first; /* keys of this tile that the row sees: those before */
        float s[KEYS], tile_max = NEG_INF, tile_sum = 0.0f;
        __syncthreads();
        load_tile<HD>(k_tile, k + (size_t)first * HD, keys - first);
        load_tile<HD>(v_tile, v + (size_t)first * HD, keys - first);
        __syncthreads();
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
            float dot = 0.0f;
#pragma unroll
            for (int i = 0; i < COLS; i++)
                dot = fmaf(q_row[i], k_tile[j][QUAD * i + t], dot);
            dot += __shfl_xor_sync(FULL_WARP, dot, 1);
            dot += __shfl_xor_sync(FULL_WARP, dot, 2);
            s[j] = j < here ? dot * scale : NEG_INF;
            tile_max = fmaxf(tile_max, s[j]);
        }
        /* The largest so far; a maximum that is infinite is no reference: Inf - Inf is NaN. */
        const float new_max = fmaxf(max, tile_max), reference = isinf(new_max) ? 0.0f : new_max;
        const float factor = max == new_max ? 1.0f : expf(max - new_max);
        max = new_max;
#pragma unroll
        for (int i = 0; i < COLS; i++)
            sums[i] *= RESCALE ? factor : 1.0f;
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
            if (j >= here) /* its value may be NaN, which times 0 is NaN */
                continue;
            const float p = expf(s[j] - reference);
            tile_sum += p;
#pragma unroll
            for (int i = 0; i < COLS; i++)
                sums[i] = fmaf(p, v_tile[j][QUAD * i + t], sums[i]);
        }
        sum = sum * factor + tile_sum;
    }
    if (!there)
        return;
#pragma unroll
    for (int i = 0; i < COLS; i++)
        o[at * HD + QUAD * i + t] = sum == 0.0f ? 0.0f : sums[i] / sum;
    if (t == 0)
        lse[at] = (isinf(max) ? 0.0f : max) + logf(sum);
}

#endif
