/*
 * FlashAttention's first form: the keys in the outer loop, the query rows in the inner one, 32 by 32.
 * O, the maximum and the sum of every row live in global memory; each pair of tiles reads them,
 * rescales O by the old and the new sum, and writes them back.  So O is divided once per tile of keys.
 * One block of 32 warps per head: warp r holds query row r of the tile, lane c key c.
 */
#include "kernels/flash/row.cuh"

#define TILE 32

template <int HD, bool CAUSAL>
static __device__ __forceinline__ void
tiled(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
      float *o, float *lse, float *top, float *sum, Shape shape, float scale) {
    extern __shared__ float shared[];
    constexpr int ROW = HD + 1; /* words apart: lanes reading a column meet different banks */
    float *const k_tile = shared, *const v_tile = k_tile + TILE * ROW;
    float *const q_tile = v_tile + TILE * ROW;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const size_t rows = shape.row(blockIdx.x), keys = shape.key(blockIdx.x);

    for (int j = 0; j < shape.keys; j += TILE) {
        __syncthreads();
        if (j + warp < shape.keys)
            for (int d = lane; d < HD; d += WARP) {
                k_tile[warp * ROW + d] = k[(keys + j + warp) * HD + d];
                v_tile[warp * ROW + d] = v[(keys + j + warp) * HD + d];
            }
        __syncthreads();
        for (int i = warp; i < shape.queries; i += TILE) {
            const size_t row = rows + i;
            const int seen = shape.seen(i, CAUSAL) - j; /* of this tile */
            float s = NEG_INF;

            __syncwarp();
            for (int d = lane; d < HD; d += WARP)
                q_tile[warp * ROW + d] = q[row * HD + d];
            __syncwarp();
            if (lane < seen) {
                s = 0.0f;
                for (int d = 0; d < HD; d++)
                    s = fmaf(q_tile[warp * ROW + d], k_tile[lane * ROW + d], s);
                s *= scale;
            }
            const float m_tile = warp_max(s);
            const float p = lane < seen ? weight(s, m_tile) : 0.0f;
            const float l_tile = warp_sum(p);
            const float m_old = j ? top[row] : NEG_INF, l_old = j ? sum[row] : 0.0f;
            const float m = fmaxf(m_old, m_tile);
            const float alpha = weight(m_old, m), beta = weight(m_tile, m);
            const float l = fmaf(l_old, alpha, l_tile * beta);
            const float old_share = l == 0.0f ? 0.0f : l_old * alpha / l;
            const float tile_share = l == 0.0f ? 0.0f : beta / l;

            for (int d = lane; d < HD; d += WARP) {
                float pv = 0.0f;
                for (int c = 0; c < min(seen, TILE); c++)
                    pv = fmaf(__shfl_sync(FULL_WARP, p, c), v_tile[c * ROW + d], pv);
                o[row * HD + d] = fmaf(j ? o[row * HD + d] : 0.0f, old_share, pv * tile_share);
            }
            __syncwarp(); /* every lane has read what stands there */
            if (lane == 0) {
                top[row] = m;
                sum[row] = l;
                if (j + TILE >= shape.keys)
                    lse[row] = l == 0.0f ? NEG_INF : reference(m) + logf(l);
            }
        }
    }
}

#define ENTRY(NAME, HD, CAUSAL)                                                                \
    extern "C" __global__ void __launch_bounds__(TILE *WARP)                                   \
        NAME(const float *q, const float *k, const float *v, float *o, float *lse, float *top, \
             float *sum, int heads, int kv_heads, int queries, int keys, float scale) {        \
        tiled<HD, CAUSAL>(q, k, v, o, lse, top, sum, Shape{heads, kv_heads, queries, keys},    \
                          scale);                                                              \
    }

ENTRY(attention_tiled_hd64_f32, 64, false)
ENTRY(attention_tiled_hd64_causal_f32, 64, true)
ENTRY(attention_tiled_hd128_f32, 128, false)
ENTRY(attention_tiled_hd128_causal_f32, 128, true)
