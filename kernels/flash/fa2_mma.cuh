/*
 * FlashAttention-2's form on tensor cores: a block of 4 warps holds 128 query rows, each warp 32 of
 * them (head_dim 256: 64 and 16), and walks over the keys in tiles of 64.  O stays in registers as
 * f32, so does S; P is rounded to the input's type in registers and is the A operand of the second
 * product.  Each thread keeps its own part of the row sum to the end; one reciprocal there.
 *
 * K and V tiles come by cp.async: V of this tile while S is computed, K of the next while P V is.
 * Rows of a query beyond the last, and keys beyond the last, are zeros in shared memory; such keys
 * are masked; so are the keys from lengths[batch] on.
 *
 * Options: args.cuh.
 *
 * LAZY: the reference that is subtracted stays while no logit of the row is more than 8 (in log2 units)
 * above it, so that O and the sum are rescaled rarely; P may then reach 2^8.
 * POLY: of each 4 columns this many take 2^x by a polynomial on the FMA units.
 */
#ifndef KERNELS_FLASH_FA2_MMA_CUH
#define KERNELS_FLASH_FA2_MMA_CUH

#include "kernels/flash/mma.cuh"

#define WARPS 4
#define THRESHOLD 8.0f         /* log2 units */
#define KEYS 64                /* keys of a tile */
#define NT (KEYS / 8)          /* n8 tiles of S */

/* Query rows of a block.  O takes HD / 2 registers for each 16 rows of a warp: of 256 only one such tile fits. */
template <int HD> constexpr int BLOCK_ROWS = HD > 128 ? 64 : 128;

/*
 * Rows of HD values into a tile; zeros from row `rows` on.  to, from: where this thread's first chunk
 * lies; its others are STEP rows apart, and so under another swizzle where STEP is not a multiple of 8.
 */
template <class T, int HD, int TILE>
static __device__ __forceinline__ void load_tile(uint32_t to, const T *from, int rows) {
    constexpr int STEP = WARPS * WARP * 8 / HD;
#pragma unroll
    for (int r = 0; r < TILE; r += STEP) {
        const bool there = r < rows;
        copy_async((to + r * HD * 2) ^ (r % 8 << 4), there ? from + r * HD : from, there);
    }
}

template <class T, int HD, unsigned OPTIONS>
static __device__ __forceinline__ void attention(const Args<T> &args) {
    constexpr int ROWS = BLOCK_ROWS<HD>, MT = ROWS / WARPS / 16; /* m16 tiles of a warp */
    extern __shared__ __align__(512) unsigned char shared[]; /* a row of 256 values */
    const uint32_t q_tile = (uint32_t)__cvta_generic_to_shared(shared);
    const uint32_t k_tile = q_tile + ROWS * HD * 2;
    const uint32_t v_tile = k_tile + KEYS * HD * 2;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    /* Causal: the blocks with the most keys first. */
    const int heads = args.heads, queries = args.queries;
    const int block = OPTIONS & CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int first = block * ROWS; /* query row */
    const int head = blockIdx.y % heads, batch = blockIdx.y / heads;
    const int kv_head = head / (heads / args.kv_heads);
    const size_t q_offset = ((size_t)blockIdx.y * queries + first) * HD;
    const size_t kv_offset = ((size_t)batch * args.kv_heads + kv_head) * args.keys * HD;
    const int rows = min(ROWS, queries - first);
    const int keys = OPTIONS & LENGTHS ? min(args.keys, args.lengths[batch]) : args.keys;
    const int shift = keys - queries; /* query i's own key is i + shift */
    int begin = 0, end = keys;        /* keys that some row of this block sees; begin: a tile's */
    if (OPTIONS & CAUSAL)
        end = max(0, min(keys, first + rows + shift));
    if (OPTIONS & WINDOW)
        begin = max(0, first + shift - args.window_left) / KEYS * KEYS;
    const float multiplier = PLAIN<OPTIONS> ? args.scale_log2 : LOG2E;

    /* The chunk that this thread copies of each tile's first rows. */
    const int my_row = threadIdx.x / (HD / 8), my_chunk = threadIdx.x % (HD / 8);
    const uint32_t my_place = chunk_at<HD>(my_row, my_chunk);
    const T *k = args.k + kv_offset + (begin + my_row) * HD + my_chunk * 8;
    const T *v = args.v + kv_offset + (begin + my_row) * HD + my_chunk * 8;

    load_tile<T, HD, ROWS>(q_tile + my_place, args.q + q_offset + my_row * HD + my_chunk * 8,
                           rows - my_row);
    if (begin < end)
        load_tile<T, HD, KEYS>(k_tile + my_place, k, keys - begin - my_row);
    copy_commit();

    float out[MT][HD / 8][4];
    float top[MT][2], sum[MT][2];
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int n = 0; n < HD / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                out[m][n][i] = 0.0f;
        top[m][0] = top[m][1] = OPTIONS & SINK ? args.sinks[head] : NEG_INF;
        sum[m][0] = sum[m][1] = OPTIONS & SINK && lane % 4 == 0 ? 1.0f : 0.0f;
    }
    copy_wait<0>();
    __syncthreads();

    /*
     * What this lane addresses in chunk 0 of its matrices; chunk c (even) is at ^ c * 16, and 8 rows
     * further on are 8 rows' bytes, as the swizzle is the row's last three bits.
     */
    const uint32_t q_lane = q_tile + chunk_at<HD>(warp * (MT * 16) + lane % 16, lane / 16);
    const uint32_t k_lane = k_tile + chunk_at<HD>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    const uint32_t v_lane = v_tile + chunk_at<HD>(lane % 16, lane / 16);
    constexpr int ROW = HD * 2; /* bytes */
    const int row0 = first + warp * (MT * 16) + lane / 4;

    for (int base = begin; base < end; base += KEYS) {
        load_tile<T, HD, KEYS>(v_tile + my_place, v, keys - base - my_row);
        v += KEYS * HD;
        copy_commit();

        float s[MT][NT][4];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int n = 0; n < NT; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    s[m][n][i] = 0.0f;
#pragma unroll
        for (int kk = 0; kk < HD / 16; kk++) {
            uint32_t a[MT][4];
#pragma unroll
            for (int m = 0; m < MT; m++)
                ldmatrix(a[m], (q_lane ^ kk * 32) + m * 16 * ROW);
#pragma unroll
            for (int n = 0; n < NT; n += 2) {
                uint32_t b[4];
                ldmatrix(b, (k_lane ^ kk * 32) + n * 8 * ROW);
#pragma unroll
                for (int m = 0; m < MT; m++) {
                    Half<T>::mma(s[m][n], a[m], b[0], b[1]);
                    Half<T>::mma(s[m][n + 1], a[m], b[2], b[3]);
                }
            }
        }
        copy_wait<0>();
        __syncthreads(); /* V is here; K may be overwritten */
        k += KEYS * HD;
        if (base + KEYS < end)
            load_tile<T, HD, KEYS>(k_tile + my_place, k, keys - base - KEYS - my_row);
        copy_commit();

        if (!PLAIN<OPTIONS>) {
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int n = 0; n < NT; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const int key = base + n * 8 + lane % 4 * 2 + i % 2;
                        const int row = row0 + m * 16 + i / 2 * 8;
                        if (key < keys && row < queries)
                            s[m][n][i] =
                                logit<OPTIONS>(args, s[m][n][i], (size_t)blockIdx.y * queries + row,
                                               head, row + shift, key);
                    }
        }
        if (base + KEYS > keys || (OPTIONS & CAUSAL && base + KEYS - 1 > first + shift) ||
            (OPTIONS & WINDOW && base < first + ROWS - 1 + shift - args.window_left)) {
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int n = 0; n < NT; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const int key = base + n * 8 + lane % 4 * 2 + i % 2;
                        const int own = row0 + m * 16 + i / 2 * 8 + shift;
                        if (key >= keys || (OPTIONS & CAUSAL && key > own) ||
                            (OPTIONS & WINDOW && key < own - args.window_left))
                            s[m][n][i] = NEG_INF;
                    }
        }

#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float t = top[m][h];
#pragma unroll
                for (int n = 0; n < NT; n++)
                    t = fmaxf(t, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
                t = fmaxf(t, __shfl_xor_sync(FULL_WARP, t, 1));
                t = fmaxf(t, __shfl_xor_sync(FULL_WARP, t, 2));
                if (OPTIONS & LAZY && !(fmaf(t, multiplier, -top[m][h] * multiplier) > THRESHOLD))
                    t = top[m][h];
                /* An infinity would make NaN of itself; so a row of +Inf has a sum of +Inf. */
                const float at = isinf(t) ? 0.0f : t * multiplier;
                /* The fma's argument is not 0 at the same maximum, but what is left of its product's
                 * rounding: without the 1 a row's bits would depend on the other rows of the warp. */
                if (__any_sync(FULL_WARP, t != top[m][h])) {
                    const float factor =
                        t == top[m][h] ? 1.0f : exp2_sfu(fmaf(top[m][h], multiplier, -at));
                    top[m][h] = t;
                    sum[m][h] *= factor;
#pragma unroll
                    for (int n = 0; n < HD / 8; n++) {
                        out[m][n][2 * h] *= factor;
                        out[m][n][2 * h + 1] *= factor;
                    }
                }
#pragma unroll
                for (int n = 0; n < NT; n++)
#pragma unroll
                    for (int i = 2 * h; i < 2 * h + 2; i++) {
                        const float x = fmaf(s[m][n][i], multiplier, -at);
                        s[m][n][i] = OPTIONS & POLY && n % 4 == 0 ? exp2_poly(x) : exp2_sfu(x);
                        sum[m][h] += s[m][n][i];
                    }
            }

#pragma unroll
        for (int kk = 0; kk < KEYS / 16; kk++) {
            uint32_t p[MT][4];
#pragma unroll
            for (int m = 0; m < MT; m++) {
                p[m][0] = Half<T>::pack(s[m][2 * kk][0], s[m][2 * kk][1]);
                p[m][1] = Half<T>::pack(s[m][2 * kk][2], s[m][2 * kk][3]);
                p[m][2] = Half<T>::pack(s[m][2 * kk + 1][0], s[m][2 * kk + 1][1]);
                p[m][3] = Half<T>::pack(s[m][2 * kk + 1][2], s[m][2 * kk + 1][3]);
            }
#pragma unroll
            for (int n = 0; n < HD / 8; n += 2) {
                uint32_t b[4];
                ldmatrix_trans(b, (v_lane ^ n * 16) + kk * 16 * ROW);
#pragma unroll
                for (int m = 0; m < MT; m++) {
                    Half<T>::mma(out[m][n], p[m], b[0], b[1]);
                    Half<T>::mma(out[m][n + 1], p[m], b[2], b[3]);
                }
            }
        }
        copy_wait<0>();
        __syncthreads(); /* the next K is here; V may be overwritten */
    }

    /* O, through the warp's own rows of the Q tile, in 16-byte stores. */
    unsigned again = 0; /* a bit for each of the warp's rows: it is NaN */
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float l = sum[m][h];
            l += __shfl_xor_sync(FULL_WARP, l, 1);
            l += __shfl_xor_sync(FULL_WARP, l, 2);
            const float inverse = l == 0.0f ? 0.0f : __frcp_rn(l);
            const int r = warp * (MT * 16) + m * 16 + h * 8 + lane / 4;
            bool nan = l != l;
#pragma unroll
            for (int n = 0; n < HD / 8; n++)
                nan |= out[m][n][2 * h] != out[m][n][2 * h] ||
                       out[m][n][2 * h + 1] != out[m][n][2 * h + 1];
            again |= rows_of(__ballot_sync(FULL_WARP, nan && r < rows)) << (16 * m + 8 * h);
#pragma unroll
            for (int n = 0; n < HD / 8; n++) {
                const uint32_t pair =
                    Half<T>::pack(out[m][n][2 * h] * inverse, out[m][n][2 * h + 1] * inverse);
                *(uint32_t *)(shared + chunk_at<HD>(r, n) + lane % 4 * 4) = pair;
            }
            if (lane % 4 == 0 && r < rows)
                args.lse[(size_t)blockIdx.y * queries + first + r] =
                    l == 0.0f
                        ? NEG_INF
                        : fmaf(reference(top[m][h]), PLAIN<OPTIONS> ? args.scale : 1.0f, logf(l));
        }
    __syncwarp();
    constexpr int CHUNKS = HD / 8;
#pragma unroll
    for (int i = 0; i < MT * 16 * CHUNKS / WARP; i++) {
        const int at = i * WARP + lane;
        const int r = warp * (MT * 16) + at / CHUNKS, c = at % CHUNKS;
        if (r < rows)
            *(uint4 *)(args.o + q_offset + (size_t)r * HD + c * 8) =
                *(const uint4 *)(shared + chunk_at<HD>(r, c));
    }
    if constexpr ((OPTIONS & (CAUSAL | WINDOW)) != 0) /* else every row sees all that a tile has */
        for (; again; again &= again - 1) {
            __syncwarp(); /* after the stores above */
            plain_row<OPTIONS, T, HD>(args, blockIdx.y,
                                      first + warp * (MT * 16) + __ffs(again) - 1);
        }
}

/* attention_FORM_hd{64,128}SUFFIX_{f16,bf16} of q k v o lse heads kv_heads queries keys scale scale_log2 */
#define FA2_ENTRY(NAME, T, HD, OPTIONS)                                                     \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP, 2)                            \
        NAME(const T *q, const T *k, const T *v, T *o, float *lse, int heads, int kv_heads, \
             int queries, int keys, float scale, float scale_log2) {                        \
        attention<T, HD, OPTIONS>(                                                          \
            Args<T>{q, k, v, o, lse, heads, kv_heads, queries, keys, scale, scale_log2});   \
    }
#define FA2_ENTRIES(FORM, SUFFIX, OPTIONS)                                        \
    FA2_ENTRY(attention_##FORM##_hd64##SUFFIX##_f16, __half, 64, OPTIONS)         \
    FA2_ENTRY(attention_##FORM##_hd128##SUFFIX##_f16, __half, 128, OPTIONS)       \
    FA2_ENTRY(attention_##FORM##_hd64##SUFFIX##_bf16, __nv_bfloat16, 64, OPTIONS) \
    FA2_ENTRY(attention_##FORM##_hd128##SUFFIX##_bf16, __nv_bfloat16, 128, OPTIONS)

#endif
