/*
 * FlashAttention-2's form for f32 on tensor cores.  Each factor is split in two tf32 values,
 * x = high + low, and a product is low high + high low + high high in f32 accumulators: what is left
 * out is below 1.3 2^-20 of the product.
 *
 * A tensor core cuts its sums toward zero.  So that this does not add up over the keys, each tile's
 * P V starts from 0, and is added to O in the fma that rescales it.
 *
 * A split infinity meets the 0 of another factor and is NaN, where a product of f32 is still an
 * infinity: a row that comes out NaN is done again in plain f32 (args.cuh).
 *
 * A block of 8 warps holds 128 query rows, 16 a warp, and walks over the keys in tiles of 32.
 * Key 2t of 8 is column t of P's fragment and key 2t + 1 column t + 4, so that P goes from the
 * accumulators of the first product into the second without a shuffle; V's rows are read in that
 * order.
 */
#include "kernels/flash/mma.cuh"

#define WARPS 8
#define ROWS (WARPS * 16)
#define KEYS 32
#define NT (KEYS / 8)
#define PART 2 /* n8 tiles of O at a time */

struct Split {
    uint32_t high, low;
    __device__ __forceinline__ explicit Split(uint32_t x) {
        high = x + 0x1000; /* the tensor core drops the 13 bits below: rounded to nearest */
        low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high & 0xffffe000));
    }
};

static __device__ __forceinline__ void mma_tf32(float d[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                                uint32_t a3, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* high += a b of split factors, the products with a low factor into `low`. */
static __device__ __forceinline__ void mma_split(float high[4], float low[4], const Split a[4],
                                                 Split b0, Split b1) {
    mma_tf32(low, a[0].low, a[1].low, a[2].low, a[3].low, b0.high, b1.high);
    mma_tf32(low, a[0].high, a[1].high, a[2].high, a[3].high, b0.low, b1.low);
    mma_tf32(high, a[0].high, a[1].high, a[2].high, a[3].high, b0.high, b1.high);
}

static __device__ __forceinline__ uint32_t load_shared(uint32_t at) {
    uint32_t x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(at));
    return x;
}

/* Rows of HD values into a tile, as fa2_mma.cuh does it. */
template <int HD, int TILE>
static __device__ __forceinline__ void load_tile(uint32_t to, const float *from, int rows) {
    constexpr int STEP = WARPS * WARP * 4 / HD;
#pragma unroll
    for (int r = 0; r < TILE; r += STEP) {
        const bool there = r < rows;
        copy_async(to + r * HD * 4, there ? from + r * HD : from, there);
    }
}

template <int HD> static __device__ __forceinline__ uint32_t chunk4_at(int r, int c) {
    return (uint32_t)(r * HD * 4 + ((c ^ (r & 7)) << 4));
}

template <int HD, unsigned OPTIONS>
static __device__ __forceinline__ void attention(const Args<float> &args) {
    extern __shared__ __align__(512) unsigned char shared[];
    constexpr int ROW = HD * 4;
    const uint32_t q_tile = (uint32_t)__cvta_generic_to_shared(shared);
    const uint32_t k_tile = q_tile + ROWS * ROW, v_tile = k_tile + KEYS * ROW;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t4 = lane % 4;
    const int heads = args.heads, queries = args.queries, keys = args.keys;
    const float scale_log2 = args.scale_log2;
    const int block = OPTIONS & CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int first = block * ROWS;
    const int head = blockIdx.y % heads, batch = blockIdx.y / heads;
    const int kv_head = head / (heads / args.kv_heads);
    const size_t q_offset = ((size_t)blockIdx.y * queries + first) * HD;
    const size_t kv_offset = ((size_t)batch * args.kv_heads + kv_head) * keys * HD;
    const int rows = min(ROWS, queries - first);
    const int shift = keys - queries;
    int end = keys;
    if (OPTIONS & CAUSAL)
        end = max(0, min(keys, first + rows + shift));
    const int tiles = (end + KEYS - 1) / KEYS;

    const int my_row = threadIdx.x / (HD / 4), my_chunk = threadIdx.x % (HD / 4);
    const uint32_t my_place = chunk4_at<HD>(my_row, my_chunk);
    const float *k = args.k + kv_offset + my_row * HD + my_chunk * 4;
    const float *v = args.v + kv_offset + my_row * HD + my_chunk * 4;
    load_tile<HD, ROWS>(q_tile + my_place, args.q + q_offset + my_row * HD + my_chunk * 4,
                        rows - my_row);
    if (tiles > 0)
        load_tile<HD, KEYS>(k_tile + my_place, k, keys - my_row);
    copy_commit();

    float out[HD / 8][4], top[2] = {NEG_INF, NEG_INF}, sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            out[n][i] = 0.0f;
    copy_wait<0>();
    __syncthreads();

    /* An 8 x 4 matrix of f32 is to ldmatrix an 8 x 8 one of 16 bits. */
    const uint32_t q_lane = q_tile + chunk4_at<HD>(warp * 16 + lane % 16, lane / 16);
    const uint32_t k_lane = k_tile + chunk4_at<HD>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    /* V at key 2t (and 2t + 1), dimension g: chunk g / 4 and word g % 4 */
    const uint32_t v_lane0 = v_tile + chunk4_at<HD>(2 * t4, g / 4) + g % 4 * 4;
    const uint32_t v_lane1 = v_tile + chunk4_at<HD>(2 * t4 + 1, g / 4) + g % 4 * 4;
    const int row0 = first + warp * 16 + g;

    for (int j = 0; j < tiles; j++) {
        load_tile<HD, KEYS>(v_tile + my_place, v, keys - j * KEYS - my_row);
        v += KEYS * HD;
        copy_commit();

        float s[NT][4] = {}, s_low[NT][4] = {};
#pragma unroll 4
        for (int kk = 0; kk < HD / 8; kk++) {
            uint32_t raw[4];
            ldmatrix(raw, q_lane ^ kk * 32);
            const Split a[4] = {Split(raw[0]), Split(raw[1]), Split(raw[2]), Split(raw[3])};
#pragma unroll
            for (int n = 0; n < NT; n += 2) {
                ldmatrix(raw, (k_lane ^ kk * 32) + n * 8 * ROW);
                mma_split(s[n], s_low[n], a, Split(raw[0]), Split(raw[1]));
                mma_split(s[n + 1], s_low[n + 1], a, Split(raw[2]), Split(raw[3]));
            }
        }
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[n][i] += s_low[n][i];
        copy_wait<0>();
        __syncthreads(); /* V is here; K may be overwritten */
        k += KEYS * HD;
        if (j + 1 < tiles)
            load_tile<HD, KEYS>(k_tile + my_place, k, keys - (j + 1) * KEYS - my_row);
        copy_commit();

        const int base = j * KEYS;
        if (base + KEYS > keys || (OPTIONS & CAUSAL && base + KEYS - 1 > first + shift)) {
#pragma unroll
            for (int n = 0; n < NT; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int key = base + n * 8 + t4 * 2 + i % 2, row = row0 + i / 2 * 8;
                    if (key >= keys || (OPTIONS & CAUSAL && key > row + shift))
                        s[n][i] = NEG_INF;
                }
        }
        float factor[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float t = top[h];
#pragma unroll
            for (int n = 0; n < NT; n++)
                t = fmaxf(t, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
            t = fmaxf(t, __shfl_xor_sync(FULL_WARP, t, 1));
            t = fmaxf(t, __shfl_xor_sync(FULL_WARP, t, 2));
            const float at = isinf(t) ? 0.0f : t * scale_log2;
            factor[h] = exp2_sfu(fmaf(top[h], scale_log2, -at));
            top[h] = t;
            sum[h] *= factor[h];
#pragma unroll
            for (int n = 0; n < NT; n++)
#pragma unroll
                for (int i = 2 * h; i < 2 * h + 2; i++) {
                    s[n][i] = exp2_sfu(fmaf(s[n][i], scale_log2, -at));
                    sum[h] += s[n][i];
                }
        }
#pragma unroll
        for (int n = 0; n < HD / 8; n += PART) {
            float part[PART][4] = {};
#pragma unroll
            for (int kk = 0; kk < NT; kk++) {
                const Split p[4] = {
                    Split(__float_as_uint(s[kk][0])), Split(__float_as_uint(s[kk][2])),
                    Split(__float_as_uint(s[kk][1])), Split(__float_as_uint(s[kk][3]))};
#pragma unroll
                for (int m = 0; m < PART; m++) {
                    const uint32_t b0 = load_shared((v_lane0 ^ (n + m) * 32) + kk * 8 * ROW);
                    const uint32_t b1 = load_shared((v_lane1 ^ (n + m) * 32) + kk * 8 * ROW);
                    mma_split(part[m], part[m], p, Split(b0), Split(b1));
                }
            }
#pragma unroll
            for (int m = 0; m < PART; m++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    out[n + m][i] = fmaf(out[n + m][i], factor[i / 2], part[m][i]);
        }
        copy_wait<0>();
        __syncthreads(); /* the next K is here; V may be overwritten */
    }

    unsigned again = 0; /* a bit for each of the warp's rows: it is NaN */
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float l = sum[h];
        l += __shfl_xor_sync(FULL_WARP, l, 1);
        l += __shfl_xor_sync(FULL_WARP, l, 2);
        const float inverse = l == 0.0f ? 0.0f : __frcp_rn(l);
        const int r = warp * 16 + h * 8 + g;
        bool nan = l != l;
#pragma unroll
        for (int n = 0; n < HD / 8; n++)
            nan |= out[n][2 * h] != out[n][2 * h] || out[n][2 * h + 1] != out[n][2 * h + 1];
        again |= rows_of(__ballot_sync(FULL_WARP, nan && r < rows)) << 8 * h;
        if (r < rows) {
#pragma unroll
            for (int n = 0; n < HD / 8; n++)
                *(float2 *)(args.o + q_offset + (size_t)r * HD + n * 8 + t4 * 2) =
                    make_float2(out[n][2 * h] * inverse, out[n][2 * h + 1] * inverse);
            if (t4 == 0)
                args.lse[(size_t)blockIdx.y * queries + first + r] =
                    l == 0.0f ? NEG_INF : fmaf(reference(top[h]), args.scale, logf(l));
        }
    }
    for (; again; again &= again - 1) {
        __syncwarp(); /* after the stores above */
        plain_row<OPTIONS, float, HD>(args, blockIdx.y, first + warp * 16 + __ffs(again) - 1);
    }
}

#define ENTRY(NAME, HD, OPTIONS)                                                              \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP, 2)                              \
        NAME(const float *q, const float *k, const float *v, float *o, float *lse, int heads, \
             int kv_heads, int queries, int keys, float scale, float scale_log2) {            \
        attention<HD, OPTIONS>(                                                               \
            Args<float>{q, k, v, o, lse, heads, kv_heads, queries, keys, scale, scale_log2}); \
    }

ENTRY(attention_fa2_tf32x3_hd64_f32, 64, 0)
ENTRY(attention_fa2_tf32x3_hd64_causal_f32, 64, CAUSAL)
ENTRY(attention_fa2_tf32x3_hd128_f32, 128, 0)
ENTRY(attention_fa2_tf32x3_hd128_causal_f32, 128, CAUSAL)
