/*
 * Rung 4.  Half of rung 3's threads only loaded.  Here each thread combines two elements on the way
 * in, so a block covers 2 * 256 of them and half as many blocks do the work.  The height stays
 * ceil(log2 cols): the first level of the tree has moved into the load.
 */
#include "kernels/reduce/op.cuh"

template <class Op, class T> __device__ void first_add(const T *x, float *y, int cols) {
    __shared__ float part[BLOCK];
    const T *row = row_of(x, cols);
    const int tid = threadIdx.x;
    const int i = blockIdx.y * 2 * BLOCK + tid;

    float v = i < cols ? get(row[i]) : Op::identity();
    if (i + BLOCK < cols)
        v = Op::combine(v, get(row[i + BLOCK]));
    part[tid] = v;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            part[tid] = Op::combine(part[tid], part[tid + half]);
        __syncthreads();
    }
    if (tid == 0)
        *part_of(y) = part[0];
}

REDUCE_KERNELS(first_add, first_add)
