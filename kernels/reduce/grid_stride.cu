/*
 * Rung 7.  Several elements per thread: the blocks of a row are few, and each thread strides over
 * the row by what they cover together, accumulating in a register.  Trees and barriers are paid
 * once per block, not once per 512 elements (Brent's argument), and any row length fits the grid.
 * The price is numeric: the height is no longer ceil(log2 cols) but grows with the elements per
 * thread.
 */
#include "kernels/reduce/op.cuh"

template <class Op, class T> __device__ void grid_stride(const T *x, float *y, int cols) {
    __shared__ float part[BLOCK];
    const T *row = row_of(x, cols);
    const int tid = threadIdx.x;
    const unsigned end = cols;
    const unsigned stride = gridDim.y * 2 * BLOCK;

    float v = Op::identity();
    for (unsigned i = blockIdx.y * 2 * BLOCK + tid; i < end; i += stride) {
        const float second = i + BLOCK < end ? get(row[i + BLOCK]) : Op::identity();
        v = Op::combine(v, Op::combine(get(row[i]), second));
    }
    part[tid] = v;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 32; half /= 2) {
        if (tid < half)
            part[tid] = Op::combine(part[tid], part[tid + half]);
        __syncthreads();
    }
    if (tid >= 32)
        return;
    for (int half = 32; half > 0; half /= 2) {
        v = Op::combine(part[tid], part[tid + half]);
        __syncwarp();
        part[tid] = v;
        __syncwarp();
    }
    if (tid == 0)
        *part_of(y) = v;
}

REDUCE_KERNELS(grid_stride, grid_stride)
