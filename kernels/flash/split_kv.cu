/*
 * Flash decoding: one query row per head, the keys of a sequence split over blocks, a second kernel
 * that combines the parts.
 *
 * `combine` is a subject of its own, too.
 *
 * A block takes one split of one key-value head and all query heads of its group, at most 16: they
 * are the 16 rows of the mma.  Its 4 warps take 16 keys each of every 64, and each warp runs on its
 * own: its keys come through its own ring of cp.async stages, its maximum, sum and O are its own until
 * the end, when the four states are joined in shared memory.  A part is normalised, and carries its
 * lse; a part without keys has o = 0 and lse = -Inf.
 *
 * Keys from lengths[batch] on are not read.  paged: key j of a sequence is row j % PAGE of page
 * table[batch][j / PAGE], each page PAGE rows of kv_heads x HD.
 */
#include "kernels/flash/mma.cuh"

#define WARPS 4
#define KEYS 16 /* keys of a warp's tile */
#define STEP (WARPS * KEYS)
#define STAGES 3
#define PAGE 16 /* a warp's tile lies in one page */
#define GROUP 16

template <class T, int HD, bool PAGED>
static __device__ __forceinline__ void
split(const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v,
      const int *__restrict__ table, const int *__restrict__ lengths, float *__restrict__ o_part,
      float *__restrict__ lse_part, int heads, int kv_heads, int keys, int max_pages,
      int split_keys, float scale, float scale_log2) {
    constexpr int ROW = HD * 2, TILE = KEYS * ROW, CHUNKS = HD / 8;
    extern __shared__ __align__(256) unsigned char shared[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int part = blockIdx.x, kv_head = blockIdx.y, batch = blockIdx.z;
    const int group = heads / kv_heads;
    const int used = min(lengths ? lengths[batch] : keys, keys);
    const int begin = part * split_keys, end = min(used, begin + split_keys);
    const int tiles = end > begin ? (end - begin + STEP - 1) / STEP : 0;
    const uint32_t ring = (uint32_t)__cvta_generic_to_shared(shared) + warp * (STAGES * 2 * TILE);
    const size_t head0 = (size_t)batch * heads + kv_head * group;
    constexpr int LOAD_ROWS = WARP / CHUNKS; /* rows that the warp copies at once */
    const int my_row = lane / CHUNKS, my_chunk = lane % CHUNKS;

    auto load = [&](int tile) {
        const int first = begin + tile * STEP + warp * KEYS;
        const uint32_t to = ring + tile % STAGES * (2 * TILE);
        size_t row0, step;
        if (PAGED) {
            const int page = first < end ? table[(size_t)batch * max_pages + first / PAGE] : 0;
            row0 = (size_t)page * PAGE * kv_heads + kv_head;
            step = kv_heads;
        } else {
            row0 = ((size_t)batch * kv_heads + kv_head) * keys + first;
            step = 1;
        }
#pragma unroll
        for (int r = my_row; r < KEYS; r += LOAD_ROWS) {
            const bool there = first + r < end;
            const size_t at = there ? (row0 + r * step) * HD + my_chunk * 8 : 0;
            copy_async(to + chunk_at<HD>(r, my_chunk), k + at, there);
            copy_async(to + TILE + chunk_at<HD>(r, my_chunk), v + at, there);
        }
    };

#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < tiles)
            load(i);
        copy_commit();
    }

    uint32_t a[HD / 16][4];
#pragma unroll
    for (int kk = 0; kk < HD / 16; kk++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = lane / 4 + i % 2 * 8, c = kk * 16 + i / 2 * 8 + lane % 4 * 2;
            a[kk][i] = r < group ? *(const uint32_t *)(q + (head0 + r) * HD + c) : 0;
        }

    float out[HD / 8][4], top[2] = {NEG_INF, NEG_INF}, sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            out[n][i] = 0.0f;

    for (int j = 0; j < tiles; j++) {
        copy_wait<STAGES - 2>();
        __syncwarp(); /* every lane's copies of this tile are here, every lane is done with the last */
        if (j + STAGES - 1 < tiles)
            load(j + STAGES - 1);
        copy_commit();
        const uint32_t k_tile = ring + j % STAGES * (2 * TILE), v_tile = k_tile + TILE;
        const uint32_t k_lane = k_tile + chunk_at<HD>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
        const uint32_t v_lane = v_tile + chunk_at<HD>(lane % 16, lane / 16);

        float s[2][4] = {};
#pragma unroll
        for (int kk = 0; kk < HD / 16; kk++) {
            uint32_t b[4];
            ldmatrix(b, k_lane ^ kk * 32);
            Half<T>::mma(s[0], a[kk], b[0], b[1]);
            Half<T>::mma(s[1], a[kk], b[2], b[3]);
        }
        const int first = begin + j * STEP + warp * KEYS;
        if (first + KEYS > end) {
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (first + n * 8 + lane % 4 * 2 + i % 2 >= end)
                        s[n][i] = NEG_INF;
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float t =
                fmaxf(fmaxf(s[0][2 * h], s[0][2 * h + 1]), fmaxf(s[1][2 * h], s[1][2 * h + 1]));
            t = fmaxf(t, __shfl_xor_sync(FULL_WARP, t, 1));
            t = fmaxf(t, __shfl_xor_sync(FULL_WARP, t, 2));
            t = fmaxf(t, top[h]);
            const float at = isinf(t) ? 0.0f : t * scale_log2;
            const float factor = exp2_sfu(fmaf(top[h], scale_log2, -at));
            top[h] = t;
            sum[h] *= factor;
#pragma unroll
            for (int n = 0; n < HD / 8; n++) {
                out[n][2 * h] *= factor;
                out[n][2 * h + 1] *= factor;
            }
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int i = 2 * h; i < 2 * h + 2; i++) {
                    s[n][i] = exp2_sfu(fmaf(s[n][i], scale_log2, -at));
                    sum[h] += s[n][i];
                }
        }
        const uint32_t p[4] = {Half<T>::pack(s[0][0], s[0][1]), Half<T>::pack(s[0][2], s[0][3]),
                               Half<T>::pack(s[1][0], s[1][1]), Half<T>::pack(s[1][2], s[1][3])};
#pragma unroll
        for (int n = 0; n < HD / 8; n += 2) {
            uint32_t b[4];
            ldmatrix_trans(b, v_lane ^ n * 16);
            Half<T>::mma(out[n], p, b[0], b[1]);
            Half<T>::mma(out[n + 1], p, b[2], b[3]);
        }
    }

    /* Join the warps: O of each at its own maximum, then everything at the block's. */
    copy_wait<0>();
    __syncthreads();
    float *o_all = (float *)shared;            /* WARPS x GROUP x HD */
    float *m_all = o_all + WARPS * GROUP * HD; /* WARPS x GROUP */
    float *l_all = m_all + WARPS * GROUP;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int r = lane / 4 + h * 8;
        float l = sum[h];
        l += __shfl_xor_sync(FULL_WARP, l, 1);
        l += __shfl_xor_sync(FULL_WARP, l, 2);
        if (lane % 4 == 0) {
            m_all[warp * GROUP + r] = top[h];
            l_all[warp * GROUP + r] = l;
        }
#pragma unroll
        for (int n = 0; n < HD / 8; n++)
            *(float2 *)&o_all[(warp * GROUP + r) * HD + n * 8 + lane % 4 * 2] =
                make_float2(out[n][2 * h], out[n][2 * h + 1]);
    }
    __syncthreads();
    const size_t rows = (size_t)gridDim.z * heads;
    for (int r = warp; r < group; r += WARPS) {
        float t = NEG_INF, l = 0.0f, factor[WARPS];
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            t = fmaxf(t, m_all[w * GROUP + r]);
        const float at = isinf(t) ? 0.0f : t * scale_log2;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            factor[w] = exp2_sfu(fmaf(m_all[w * GROUP + r], scale_log2, -at));
            l = fmaf(l_all[w * GROUP + r], factor[w], l);
        }
        const float inverse = l == 0.0f ? 0.0f : __frcp_rn(l);
        for (int d = lane; d < HD; d += WARP) {
            float o = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS; w++)
                o = fmaf(o_all[(w * GROUP + r) * HD + d], factor[w], o);
            o_part[(part * rows + head0 + r) * HD + d] = o * inverse;
        }
        if (lane == 0)
            lse_part[part * rows + head0 + r] =
                l == 0.0f ? NEG_INF : fmaf(reference(t), scale, logf(l));
    }
}

/* N floats from `from`, or zeros if they are not `there`. */
template <int N>
static __device__ __forceinline__ void load_floats(float *v, const float *from, bool there) {
    if constexpr (N == 4) {
        const float4 all = there ? *(const float4 *)from : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        v[0] = all.x, v[1] = all.y, v[2] = all.z, v[3] = all.w;
    } else {
        v[0] = there ? *from : 0.0f;
    }
}

template <int N, class T> static __device__ __forceinline__ void put_all(T *to, const float *v) {
    if constexpr (N == 1)
        put(to, v[0]);
    else if constexpr (sizeof(T) == 4)
        *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
    else
        *(uint2 *)to = make_uint2(narrow<T>(v[0], v[1]), narrow<T>(v[2], v[3]));
}

/*
 * Parts of one row joined by their lse: lse = m + log(sum_i e^(lse_i - m)), o = sum_i e^(lse_i - lse)
 * o_i.  o_part: [parts][rows][head_dim], lse_part: [parts][rows]; a warp per row, a lane takes N
 * dimensions side by side, parts one after another.
 *
 * It waits for memory alone, so AHEAD parts are under way at once, the first ones while the weights are
 * still unknown.  A lane takes the weight of every 32nd part and hands it to the others.
 *
 * Two parts either way give the same bits: a product is rounded before it is added, where an fma would
 * round one product of two.  A part of lse -Inf changes none, whatever its o: it is passed over, and the
 * sum starts at -0, as +0 would change a -0.
 */
template <int N, class T>
static __device__ __forceinline__ void
combine(const float *__restrict__ o_part, const float *__restrict__ lse_part, T *__restrict__ o,
        float *__restrict__ lse, size_t row, size_t rows, int head_dim, int parts) {
    constexpr int AHEAD = 8;
    const int lane = threadIdx.x;

    for (int first_d = 0; first_d < head_dim; first_d += WARP * N) {
        const int d = first_d + lane * N;
        float v[AHEAD][N];
        auto load = [&](int part) {
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                load_floats<N>(v[k], o_part + ((part + k) * rows + row) * head_dim + d,
                               part + k < parts && d < head_dim);
        };
        load(0);

        float own = lane < parts ? lse_part[lane * rows + row] : NEG_INF, m = own;
        for (int i = WARP + lane; i < parts; i += WARP)
            m = fmaxf(m, lse_part[i * rows + row]);
        const float at = reference(warp_max(m));

        float weight = expf(own - at), l = 0.0f, sum[N];
        unsigned there = __ballot_sync(FULL_WARP, own != NEG_INF);
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[j] = -0.0f;
        for (int part = 0; part < parts; part += AHEAD) {
            if (part % WARP == 0 && part > 0) {
                own = part + lane < parts ? lse_part[(part + lane) * rows + row] : NEG_INF;
                weight = expf(own - at);
                there = __ballot_sync(FULL_WARP, own != NEG_INF);
            }
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                const int owner = part % WARP + k;
                const float w = __shfl_sync(FULL_WARP, weight, owner);
                if (there >> owner & 1) {
                    l += w;
#pragma unroll
                    for (int j = 0; j < N; j++)
                        sum[j] += w * v[k][j];
                }
            }
            load(part + AHEAD);
        }
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[j] = l == 0.0f ? 0.0f : sum[j] / l;
        if (d < head_dim)
            put_all<N>(&o[row * head_dim + d], sum);
        if (d == 0)
            lse[row] = l == 0.0f ? NEG_INF : at + logf(l);
    }
}

#define SPLIT(NAME, T, HD)                                                                         \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP, 2) attention_split_kv_##NAME(        \
        const T *q, const T *k, const T *v, const int *lengths, float *o_part, float *lse_part,    \
        int heads, int kv_heads, int keys, int split_keys, float scale, float scale_log2) {        \
        split<T, HD, false>(q, k, v, nullptr, lengths, o_part, lse_part, heads, kv_heads, keys, 0, \
                            split_keys, scale, scale_log2);                                        \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP, 2) attention_paged_##NAME(           \
        const T *q, const T *k, const T *v, const int *table, const int *lengths, float *o_part,   \
        float *lse_part, int heads, int kv_heads, int keys, int max_pages, int split_keys,         \
        float scale, float scale_log2) {                                                           \
        split<T, HD, true>(q, k, v, table, lengths, o_part, lse_part, heads, kv_heads, keys,       \
                           max_pages, split_keys, scale, scale_log2);                              \
    }

SPLIT(hd64_f16, __half, 64)
SPLIT(hd128_f16, __half, 128)
SPLIT(hd64_bf16, __nv_bfloat16, 64)
SPLIT(hd128_bf16, __nv_bfloat16, 128)

#define COMBINE(NAME, T, UNUSED)                                                               \
    extern "C" __global__ void __launch_bounds__(256)                                          \
        attention_combine_##NAME(const float *o_part, const float *lse_part, T *o, float *lse, \
                                 int rows, int head_dim, int parts) {                          \
        const int row = blockIdx.x * blockDim.y + threadIdx.y;                                 \
        if (row >= rows)                                                                       \
            return;                                                                            \
        if (head_dim % 4 == 0)                                                                 \
            combine<4>(o_part, lse_part, o, lse, row, rows, head_dim, parts);                  \
        else                                                                                   \
            combine<1>(o_part, lse_part, o, lse, row, rows, head_dim, parts);                  \
    }

FOR_EACH_DTYPE(COMBINE, )
