/*
 * Rung 15.  Long rows in one launch and without global memory in between: the blocks of a cluster reduce
 * a chunk of the row each and leave their parts in the shared memory of the first of them, which
 * joins them in their order.  The same bits in every run.
 */
#include "kernels/cluster.cuh"
#include "kernels/reduce/block.cuh"
#include "kernels/reduce/stream.cuh"

#define MAX_BLOCKS 8 /* the largest cluster that every GPU with clusters has */

template <class Op, class T>
__device__ void cluster(const T *__restrict__ x, float *__restrict__ y, int cols, int chunk_cols) {
    __shared__ float parts[MAX_BLOCKS];
    const unsigned rank = cluster_rank(), blocks = cluster_size(), row = blockIdx.x / blocks;
    const Chunk chunk(row, rank, cols, chunk_cols);

    cluster_arrive_relaxed();
    const float v = block_reduce<Op>(stream<Op, 8>(x + chunk.at, chunk.n, threadIdx.x, BLOCK));
    cluster_wait();
    if (threadIdx.x == 0)
        store_in_block(&parts[rank], 0, v);
    cluster_arrive();
    cluster_wait();
    if (rank == 0 && threadIdx.x == 0) {
        float joined = parts[0];
        for (unsigned b = 1; b < blocks; b++)
            joined = Op::combine(joined, parts[b]);
        y[row] = joined;
    }
}

#define CLUSTER(dtype, T, op, Op)                                                   \
    extern "C" __global__ void __launch_bounds__(BLOCK) op##_cluster_##dtype(       \
        const T *__restrict__ x, float *__restrict__ y, int cols, int chunk_cols) { \
        cluster<Op>(x, y, cols, chunk_cols);                                        \
    }

FOR_EACH_DTYPE(CLUSTER, sum, Sum)
FOR_EACH_DTYPE(CLUSTER, max, Max)
