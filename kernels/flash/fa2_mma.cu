/* FlashAttention-2 on tensor cores: every new maximum rescales O. */
#include "kernels/flash/fa2_mma.cuh"

FA2_ENTRIES(fa2_mma, 0)
FA2_ENTRIES(fa2_mma_causal, CAUSAL)
