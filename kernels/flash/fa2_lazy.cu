/* FlashAttention-2 on tensor cores with lazy rescaling. */
#include "kernels/flash/fa2_mma.cuh"

FA2_ENTRIES(fa2_lazy, LAZY)
FA2_ENTRIES(fa2_lazy_causal, LAZY | CAUSAL)
