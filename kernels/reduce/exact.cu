/*
 * Rung 14.  The exact sum, rounded once: the same bits for every order, block size and grid, and within
 * half an ulp.  A superaccumulator (Kulisch): limb k of a row counts units of 2^(32 k - 149) in a
 * 64-bit integer, and integers add in any order to the same bits.
 *
 *     x = m 2^e, |m| < 2^24, e >= -149;   e + 149 = 32 k + s:
 *     m 2^s < 2^56 is added as its low 32 bits to limb k and the rest to limb k + 1.
 *
 * f32 has e <= 104, so k <= 7, and 10 limbs hold a window too (below); fewer than 2^31 additions of
 * less than 2^32 each cannot overflow one, so a row may have 2^30 elements.
 *
 * Speed: a thread keeps one window of 64 bits in a register and adds there what fits, m 2^(e - base)
 * for base <= e < base + 28; at most 1024 additions of less than 2^52 fit.  A larger exponent empties
 * the window into the block's limbs and moves it; a smaller one goes to the limbs directly.  Data within
 * 28 binades below their largest never do after a few elements.
 *
 * NaN and infinities are counted apart: any NaN, or both infinities, give NaN.
 */
#include "kernels/reduce/split.cuh"

#define LIMBS 10
#define WORDS (LIMBS + 1) /* a row's limbs, then its flags */
#define WINDOW 28
#define WINDOW_ADDITIONS 1024
#define HIGHEST_BASE \
    226 /* 253, the largest finite e + 149, is its last; 254, of Inf and NaN, not */
enum { SAW_NAN = 1, SAW_INF = 2, SAW_NINF = 4 };

typedef unsigned long long u64;
typedef long long s64;

/* v 2^(at - 149) to the limbs, |v| < 2^63: its three 32-bit digits, the last one signed. */
static __device__ void add_to_limbs(u64 *limbs, s64 v, int at) {
    const int k = at / 32, s = at % 32;
    const u64 low = (u64)v << s;
    const s64 high = s == 0 ? v >> 32 >> 32 : v >> (64 - s); /* v 2^s = high 2^64 + low */
    atomicAdd(&limbs[k], low & 0xffffffff);
    atomicAdd(&limbs[k + 1], low >> 32);
    atomicAdd(&limbs[k + 2], (u64)high);
}

struct Window {
    u64 *limbs, *flags;
    s64 sum;
    int base; /* exponent of the unit, plus 149 */
    int room; /* additions left */

    __device__ void empty() {
        if (sum != 0)
            add_to_limbs(limbs, sum, base);
        sum = 0;
        room = WINDOW_ADDITIONS;
    }

    __device__ void take(float x) {
        const unsigned bits = __float_as_uint(x);
        const int biased = bits >> 23 & 0xff;
        const int e = max(biased, 1) - 1; /* of m's unit, plus 149 */
        const int magnitude = (bits & 0x7fffff) | (biased > 0 ? 0x800000 : 0);
        const int m = (int)bits < 0 ? -magnitude : magnitude;

        if (room == 0)
            empty();
        if ((unsigned)(e - base) < WINDOW) {
            sum += (s64)m << (e - base);
            room--;
        } else if (biased == 0xff) {
            atomicOr(flags, magnitude != 0x800000 ? SAW_NAN : (int)bits < 0 ? SAW_NINF : SAW_INF);
        } else if (e < base) {
            if (m != 0)
                add_to_limbs(limbs, m, e);
        } else {
            empty();
            base = min(max(e - WINDOW + 4, 0), HIGHEST_BASE);
            sum = (s64)m << (e - base);
            room--;
        }
    }
};

template <class T> __device__ void exact(const T *x, u64 *words, int cols, int chunk_cols) {
    __shared__ u64 limbs[WORDS];
    unsigned n;
    const T *chunk = chunk_of(x, cols, chunk_cols, &n);
    const Cut<T> cut(chunk, n);
    Window window{limbs, &limbs[LIMBS], 0, 0, WINDOW_ADDITIONS};

    if (threadIdx.x < WORDS)
        limbs[threadIdx.x] = 0;
    __syncthreads();
    for_each_vector<4>((const uint4 *)(chunk + cut.head), cut.vectors, threadIdx.x, blockDim.x,
                       [&](uint4 raw) {
                           float v[VEC<T>];
                           unpack<T>(v, raw);
#pragma unroll
                           for (int j = 0; j < VEC<T>; j++)
                               window.take(v[j]);
                       });
    if (threadIdx.x < cut.head + cut.tail)
        window.take(get(chunk[cut.ragged(threadIdx.x)]));
    window.empty();
    __syncthreads();
    if (threadIdx.x < LIMBS)
        atomicAdd(&words[(size_t)blockIdx.y * WORDS + threadIdx.x], limbs[threadIdx.x]);
    else if (threadIdx.x == LIMBS && limbs[LIMBS])
        atomicOr(&words[(size_t)blockIdx.y * WORDS + LIMBS], limbs[LIMBS]);
}

/*
 * The number that the limbs hold, rounded to nearest, ties to even.  The words become its 32-bit digits,
 * the last one in place of the flags.
 */
static __device__ float round_limbs(u64 *digit) {
    s64 carry = 0;
    const u64 flags = digit[LIMBS];

    if (flags & SAW_NAN || (flags & SAW_INF && flags & SAW_NINF))
        return __int_as_float(0x7fffffff);
    if (flags)
        return __int_as_float(flags & SAW_INF ? 0x7f800000 : 0xff800000);
    for (int k = 0; k < LIMBS; k++) {
        const s64 sum = (s64)digit[k] + carry;
        digit[k] = (unsigned)sum;
        carry = sum >> 32;
    }
    const bool negative = carry < 0;
    digit[LIMBS] = (unsigned)carry;
    if (negative) { /* the magnitude: all bits flipped, plus one */
        unsigned one = 1;
        for (int k = 0; k <= LIMBS; k++) {
            digit[k] = (unsigned)(~digit[k] + one);
            one = one && digit[k] == 0;
        }
    }
    int top = LIMBS;
    while (top > 0 && digit[top] == 0)
        top--;
    /* Bits are numbered from 2^-149; the 24 from `high` down are kept, but none below 0. */
    const int high = 32 * top + 31 - __clz((unsigned)digit[top]);
    if (digit[top] == 0)
        return 0.0f;
    const int low = max(high - 23, 0);
    const u64 pair = digit[low / 32] | (low / 32 < LIMBS ? digit[low / 32 + 1] << 32 : 0);
    unsigned kept = (unsigned)(pair >> (low % 32)) & 0xffffff;
    if (low > 0) {
        const int half = low - 1;
        const bool above_half = digit[half / 32] >> (half % 32) & 1;
        bool rest = (digit[half / 32] & ((1ull << (half % 32)) - 1)) != 0;
        for (int k = 0; k < half / 32; k++)
            rest |= digit[k] != 0;
        kept += above_half && (rest || kept & 1);
    }
    /* kept 2^(low - 149): as bits, the exponent field counts from 1 where bit 23 is set. */
    const unsigned bits = low == 0 ? kept : kept + ((unsigned)low << 23);
    const unsigned limited = min(bits, 0x7f800000u);
    return __uint_as_float(limited | (negative ? 0x80000000u : 0));
}

extern "C" __global__ void sum_exact_clear(u64 *words, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        words[i] = 0;
}

#define SUM_EXACT(dtype, T, name)                                                             \
    extern "C" __global__ void __launch_bounds__(1024)                                        \
        sum_##name##_##dtype(const T *__restrict__ x, u64 *words, int cols, int chunk_cols) { \
        exact(x, words, cols, chunk_cols);                                                    \
    }

FOR_EACH_DTYPE(SUM_EXACT, exact)

extern "C" __global__ void sum_exact_round(u64 *words, float *y, int rows) {
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows)
        y[r] = round_limbs(words + (size_t)r * WORDS);
}
