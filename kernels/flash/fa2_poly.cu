/* FlashAttention-2 on tensor cores, a quarter of the exponentials on the FMA units. */
#include "kernels/flash/fa2_mma.cuh"

FA2_ENTRIES(fa2_poly, POLY)
FA2_ENTRIES(fa2_poly_causal, POLY | CAUSAL)
