/*
 * What a kernel that reads and writes memory is measured against: 16 bytes per access, and each
 * thread has EACH loads under way before its first store.  Which EACH is the fastest depends on
 * the GPU; `assay bench` takes the best.  `count` vectors of 16 bytes.
 */

template <int EACH>
static __device__ void copy16(const uint4 *__restrict__ from, uint4 *__restrict__ to, int count) {
    const int first = blockIdx.x * (int)blockDim.x * EACH + (int)threadIdx.x;
    uint4 v[EACH];

#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k * (int)blockDim.x < count)
            v[k] = from[first + k * (int)blockDim.x];
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k * (int)blockDim.x < count)
            to[first + k * (int)blockDim.x] = v[k];
}

#define COPY_KERNEL(each)                                                         \
    extern "C" __global__ void copy16_##each(const uint4 *__restrict__ from,      \
                                             uint4 *__restrict__ to, int count) { \
        copy16<each>(from, to, count);                                            \
    }

COPY_KERNEL(1)
COPY_KERNEL(2)
COPY_KERNEL(4)
