/*
 * One query row per warp, in tiles of 32 keys, local maximum first: a tile's weights are taken against
 * the tile's own maximum, and then both the running state and the tile's are brought to the common
 * maximum, by alpha = e^(m_old - m) and beta = e^(m_tile - m).
 */
#include "kernels/flash/row.cuh"

#define ROWS 4 /* warps of a block */

template <int HD, bool CAUSAL>
static __device__ __forceinline__ void
one_row(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
        float *__restrict__ o, float *__restrict__ lse, Shape shape, float scale) {
    __shared__ float q_rows[ROWS][HD];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int query = blockIdx.x * ROWS + warp;
    if (query >= shape.queries)
        return;
    const size_t row = shape.row(blockIdx.y) + query, keys = shape.key(blockIdx.y);
    const int seen = shape.seen(query, CAUSAL);
    float out[HD / WARP] = {}, m = NEG_INF, l = 0.0f;

    for (int d = lane; d < HD; d += WARP)
        q_rows[warp][d] = q[row * HD + d];
    __syncwarp();
    for (int j = 0; j < seen; j += WARP) {
        const int count = min(WARP, seen - j);
        float s = NEG_INF;
        if (lane < count) {
            const float4 *k_row = (const float4 *)(k + (keys + j + lane) * HD);
            s = 0.0f;
            for (int d = 0; d < HD / 4; d++) {
                const float4 kd = k_row[d];
                s = fmaf(q_rows[warp][4 * d], kd.x, s);
                s = fmaf(q_rows[warp][4 * d + 1], kd.y, s);
                s = fmaf(q_rows[warp][4 * d + 2], kd.z, s);
                s = fmaf(q_rows[warp][4 * d + 3], kd.w, s);
            }
            s *= scale;
        }
        const float m_tile = warp_max(s);
        const float p = lane < count ? weight(s, m_tile) : 0.0f;
        const float l_tile = warp_sum(p);
        const float m_new = fmaxf(m, m_tile);
        const float alpha = weight(m, m_new), beta = weight(m_tile, m_new);

        for (int d = 0; d < HD / WARP; d++) {
            float pv = 0.0f;
            for (int c = 0; c < count; c++)
                pv = fmaf(__shfl_sync(FULL_WARP, p, c), v[(keys + j + c) * HD + d * WARP + lane],
                          pv);
            out[d] = fmaf(out[d], alpha, pv * beta);
        }
        l = fmaf(l, alpha, l_tile * beta);
        m = m_new;
    }
    for (int d = 0; d < HD / WARP; d++)
        o[row * HD + d * WARP + lane] = l == 0.0f ? 0.0f : out[d] / l;
    if (lane == 0)
        lse[row] = l == 0.0f ? NEG_INF : reference(m) + logf(l);
}

#define ENTRY(NAME, HD, CAUSAL)                                                               \
    extern "C" __global__ void __launch_bounds__(ROWS *WARP)                                  \
        NAME(const float *q, const float *k, const float *v, float *o, float *lse, int heads, \
             int kv_heads, int queries, int keys, float scale) {                              \
        one_row<HD, CAUSAL>(q, k, v, o, lse, Shape{heads, kv_heads, queries, keys}, scale);   \
    }

ENTRY(attention_one_row_hd64_f32, 64, false)
ENTRY(attention_one_row_hd64_causal_f32, 64, true)
ENTRY(attention_one_row_hd128_f32, 128, false)
ENTRY(attention_one_row_hd128_causal_f32, 128, true)
