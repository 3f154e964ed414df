/* FlashAttention-2 on tensor cores: every new maximum rescales O. */
#include "kernels/flash/fa2_mma.cuh"

FA2_ENTRIES(fa2_mma, , 0)
FA2_ENTRIES(fa2_mma, _causal, CAUSAL)

FA2_ENTRY(attention_fa2_mma_hd256_f16, __half, 256, 0)
FA2_ENTRY(attention_fa2_mma_hd256_causal_f16, __half, 256, CAUSAL)
FA2_ENTRY(attention_fa2_mma_hd256_bf16, __nv_bfloat16, 256, 0)
FA2_ENTRY(attention_fa2_mma_hd256_causal_bf16, __nv_bfloat16, 256, CAUSAL)
