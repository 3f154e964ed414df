/*
 * Rung 13.  One launch and no parts: every block adds its part to the row's result with atomicAdd, in
 * whatever order they finish.  Two runs may differ in their last bits, and nothing here can be done
 * about it (rung 14 can).  y starts at 0.
 */
#include "kernels/reduce/split.cuh"

extern "C" __global__ void sum_atomic_clear(float *y, int rows) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows)
        y[i] = 0.0f;
}

#define SUM_ATOMIC(dtype, T, name)                                                  \
    extern "C" __global__ void __launch_bounds__(BLOCK) sum_##name##_##dtype(       \
        const T *__restrict__ x, float *__restrict__ y, int cols, int chunk_cols) { \
        const float v = reduce_chunk<Sum>(x, cols, chunk_cols);                     \
        if (threadIdx.x == 0)                                                       \
            atomicAdd(&y[blockIdx.y], v);                                           \
    }

FOR_EACH_DTYPE(SUM_ATOMIC, atomic)
