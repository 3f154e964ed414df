/* The f32 kernels of FlashAttention-2's form, by width of a head and mask. */
#include "kernels/flash/fa2_f32.cuh"

#define ENTRY(NAME, HD, CAUSAL)                                                                 \
    extern "C" __global__ void NAME(const float *q, const float *k, const float *v, float *o,   \
                                    float *lse, int heads, int kv_heads, int queries, int keys, \
                                    float scale) {                                              \
        attention<HD, CAUSAL>(q, k, v, o, lse, heads, kv_heads, queries, keys, scale);          \
    }

ENTRY(attention_fa2_hd64_f32, 64, false)
ENTRY(attention_fa2_hd64_causal_f32, 64, true)
ENTRY(attention_fa2_hd128_f32, 128, false)
ENTRY(attention_fa2_hd128_causal_f32, 128, true)
