/*
 * Rung 15.  Rows too long for one block, held in the shared memory of a cluster's blocks: read once,
 * written once, and the blocks meet at the cluster's barrier in the hardware instead of waiting for words
 * in global memory (rung 12).
 *
 * A thread copies its vectors in pieces, all under way at once, and takes the (max, sum) of a piece as
 * soon as it has come, while the later ones are still coming; so when the last piece is there, hardly
 * anything is left to do before the exchange.  Each warp writes its state to every block of the cluster,
 * and each warp joins all of them in the same order: the same bits in every block and in every run, and
 * one barrier.
 */
#include "kernels/cluster.cuh"
#include "kernels/softmax/results.cuh"
#include "kernels/softmax/shared_row.cuh"

#define MAX_BLOCKS 8 /* the largest cluster that every GPU with clusters has */
#define MAX_WARPS 16 /* of a block */
#define DEPTH 2      /* vectors of a piece, per thread */
#define PIECES 14    /* 512 threads x 14 pieces x 2 vectors = 224 KiB */

/* The state s with the entries of one piece. */
template <class Exp, class T>
__device__ Online push_piece(Online s, const SharedRow<T> &row, unsigned first) {
    float v[DEPTH][VEC<T>];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        const unsigned i = first + k * blockDim.x;
        if (i < row.cut.vectors) {
            unpack<T>(v[k], row.slots[i]);
        } else {
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                v[k][j] = NEG_INF;
        }
    }
    return push_vectors<Exp>(s, v);
}

template <class Exp, class T>
__device__ void cluster(const T *__restrict__ x, T *__restrict__ y, int cols, int chunk_cols) {
    extern __shared__ uint4 slots[];
    __shared__ float2 states[MAX_BLOCKS * MAX_WARPS];
    const unsigned rank = cluster_rank(), blocks = cluster_size();
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const Chunk chunk(blockIdx.x / blocks, rank, cols, chunk_cols);

    cluster_arrive_relaxed();
    const SharedRow<T> row(slots, x + chunk.at, chunk.n);
    row.template copy_pieces<PIECES, DEPTH>(x + chunk.at);
    Online s = state_of<Exp>(row.ragged);
    for (int piece = 0; piece * DEPTH * blockDim.x < row.cut.vectors; piece++) {
        wait_groups<PIECES - 1>(PIECES - 1 - piece);
        s = push_piece<Exp>(s, row, piece * DEPTH * blockDim.x + threadIdx.x);
    }
    s = join_lanes<Exp>(s);

    cluster_wait();
    if (lane < blocks)
        store_in_block(&states[rank * warps + warp], lane, make_float2(s.m, s.l));
    cluster_arrive();
    cluster_wait();
    row.write(y + chunk.at, SoftmaxOf<Exp>(join_states<Exp>(states, blocks * warps)));
}

/* Three blocks of at most 72 KiB share a multiprocessor: while one computes, others load and store. */
#define SOFTMAX_CLUSTER(dtype, T, name, BLOCKS)                                        \
    extern "C" __global__ void __launch_bounds__(MAX_WARPS *WARP, BLOCKS)              \
        softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int cols, \
                                 int chunk_cols) {                                     \
        cluster<ExpOf<T>>(x, y, cols, chunk_cols);                                     \
    }

FOR_EACH_DTYPE(SOFTMAX_CLUSTER, cluster, 3)
