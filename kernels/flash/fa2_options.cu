/*
 * FlashAttention-2 on tensor cores with what models ask for besides a causal mask.  An entry takes all
 * of the family's arguments and uses those of its options.
 */
#include "kernels/flash/fa2_mma.cuh"

#define OPTION_ENTRY(NAME, T, HD, OPTIONS)                                                        \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP, 2) NAME(                            \
        const T *q, const T *k, const T *v, const int *lengths, const T *bias,                    \
        const float *slopes, const float *sinks, T *o, float *lse, int heads, int kv_heads,       \
        int queries, int keys, float scale, float scale_log2, int window_left, float softcap) {   \
        attention<T, HD, OPTIONS>(Args<T>{q, k, v, o, lse, heads, kv_heads, queries, keys, scale, \
                                          scale_log2, lengths, bias, slopes, sinks, window_left,  \
                                          softcap});                                              \
    }
#define OPTION_ENTRIES(FORM, HD, OPTIONS)                         \
    OPTION_ENTRY(attention_fa2_##FORM##_f16, __half, HD, OPTIONS) \
    OPTION_ENTRY(attention_fa2_##FORM##_bf16, __nv_bfloat16, HD, OPTIONS)

OPTION_ENTRIES(lengths, 64, LENGTHS)
OPTION_ENTRIES(lengths_causal, 128, LENGTHS | CAUSAL)
OPTION_ENTRIES(window, 128, CAUSAL | WINDOW)
OPTION_ENTRIES(bias, 64, BIAS)
OPTION_ENTRIES(alibi, 64, ALIBI | CAUSAL)
OPTION_ENTRIES(softcap, 64, SOFTCAP | CAUSAL)
OPTION_ENTRIES(sink, 64, SINK | CAUSAL | WINDOW)
OPTION_ENTRIES(all, 64, LENGTHS | SOFTCAP | BIAS | ALIBI | CAUSAL | WINDOW | SINK)
