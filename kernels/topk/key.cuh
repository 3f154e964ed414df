/* Entries as unsigned integers that order like them: 0 is below all, a NaN above, and -0 is +0. */
#ifndef KERNELS_TOPK_KEY_CUH
#define KERNELS_TOPK_KEY_CUH

inline __device__ unsigned key_of(float x) {
    const int bits = __float_as_int(x + 0.0f); /* -0 + 0 is +0, NaN + 0 the positive one */
    return bits ^ (bits >> 31 | 0x80000000);
}

inline __device__ float value_of(unsigned key) {
    return __uint_as_float(key & 0x80000000 ? key ^ 0x80000000 : ~key);
}

#endif
