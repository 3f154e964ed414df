/*
 * Rung 12.  For rows too long for one block: `chunks` blocks hold a row in their shared memory (which
 * has room for three of them), exchange the chunks' (max, sum) through global
 * memory (states.cuh) and wait for each other in the middle, so that even a row of a million entries
 * is read once and written once.
 *
 * Waiting needs the blocks of a row on the GPU together.  Blocks take chunks in the order in which they
 * start, so all rows but the last one begun are complete, finish and make room for the last one's
 * blocks: there is no deadlock wherever one row fits.
 */
#include "kernels/softmax/shared_row.cuh"
#include "kernels/softmax/states.cuh"

template <class Exp, class T>
__device__ void blocks_wait(const T *__restrict__ x, T *__restrict__ y, unsigned long long *words,
                            int cols, unsigned chunks, int chunk_cols) {
    extern __shared__ uint4 slots[];
    __shared__ float part[2 * WARP + 2];
    const unsigned ticket = take_ticket(words);
    const Chunk chunk(ticket / chunks, ticket % chunks, cols, chunk_cols);
    const SharedRow<T> row(slots, x + chunk.at, chunk.n);
    row.copy(x + chunk.at);
    wait_copies();

    const float m = team_reduce<RowMax>(row.max(), part);
    const float l = team_reduce<RowSum>(row.exp_sum(Exp(finite_or_zero(m))), part + WARP);
    unsigned long long *states = words + 1; /* of all rows */
    if (threadIdx.x < WARP) {
        if (threadIdx.x == 0)
            publish(&states[ticket], m, l);
        const Online s = join_chunks(states + ticket / chunks * chunks, chunks, threadIdx.x);
        part[2 * WARP] = s.m;
        part[2 * WARP + 1] = 1.0f / s.l;
    }
    __syncthreads();
    const Exp exp(part[2 * WARP]);
    const float scale = part[2 * WARP + 1];
    row.write(y + chunk.at, [&](float v) { return exp(v) * scale; });
}

#define SOFTMAX_BLOCKS_WAIT(dtype, T, name, BLOCKS)                                      \
    extern "C" __global__ void __launch_bounds__(512, BLOCKS) softmax_##name##_##dtype(  \
        const T *__restrict__ x, T *__restrict__ y, unsigned long long *words, int cols, \
        int chunks, int chunk_cols) {                                                    \
        blocks_wait<ExpOf<T>>(x, y, words, cols, chunks, chunk_cols);                    \
    }

FOR_EACH_DTYPE(SOFTMAX_BLOCKS_WAIT, blocks_wait, 3)
