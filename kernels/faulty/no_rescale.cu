/* Planted fault: a rising maximum rescales the sum, and leaves O as it is. */
#include "kernels/flash/fa2_f32.cuh"

extern "C" __global__ void attention_faulty_no_rescale_f32(const float *q, const float *k,
                                                           const float *v, float *o, float *lse,
                                                           int heads, int kv_heads, int queries,
                                                           int keys, float scale) {
    attention<64, false, false>(q, k, v, o, lse, heads, kv_heads, queries, keys, scale);
}
