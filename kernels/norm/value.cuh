/* A storage format's value as f32, and back, rounded to nearest even. */
#ifndef KERNELS_NORM_VALUE_CUH
#define KERNELS_NORM_VALUE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ inline float value_of(float x) { return x; }
__device__ inline float value_of(__half x) { return __half2float(x); }
/* The upper half of an f32. */
__device__ inline float value_of(__nv_bfloat16 x) {
    return __uint_as_float((unsigned)__bfloat16_as_ushort(x) << 16);
}

template <class T> __device__ inline T rounded_to(float x);
template <> __device__ inline float rounded_to<float>(float x) { return x; }
template <> __device__ inline __half rounded_to<__half>(float x) { return __float2half_rn(x); }
template <> __device__ inline __nv_bfloat16 rounded_to<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

#endif
