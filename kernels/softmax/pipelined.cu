/*
 * Rung 14.  For rows too long for an SM, in one launch: x is read twice, the second time from L2.
 *
 * Each chunk of a row is two jobs: the first leaves the chunk's (max, sum) (states.cuh), the second,
 * `lag` rows later, writes the chunk.  Blocks take jobs by ticket, in the order
 *     first job of row s, chunk c;  second job of row s - lag, chunk c;  then the next c, then the next s,
 * so that reading from memory and writing go on side by side.  No block holds anything while it waits for
 * others: `lag` is long enough that a row's states are there when its second jobs start, and short
 * enough that the row is still in L2 then.
 */
#include "kernels/softmax/on_chip.cuh"
#include "kernels/softmax/states.cuh"

#define VECTORS 4

/* Written once and not read again: what is to stay in L2 is x. */
struct StoreStreaming {
    __device__ void operator()(uint4 *to, uint4 v) const { __stcs(to, v); }
};

template <class Exp, class T>
__device__ void pipelined(const T *__restrict__ x, T *__restrict__ y, unsigned long long *words,
                          int rows, int cols, unsigned chunks, int chunk_cols, int lag) {
    __shared__ float part[2 * WARP];
    const unsigned ticket = take_ticket(words);
    const bool second = ticket % 2;
    const unsigned chunk = ticket / 2 % chunks;
    const int r = (int)(ticket / 2 / chunks) - (second ? lag : 0);
    if (r < 0 || r >= rows)
        return;
    const int start = min((int)chunk * chunk_cols, cols);
    const size_t at = (size_t)r * cols + start;
    unsigned long long *states = words + 1 + (size_t)r * chunks;
    PackedRow<T, VECTORS> row(x + at, min(chunk_cols, cols - start), threadIdx.x, blockDim.x);

    if (!second) {
        const float m = team_reduce<RowMax>(row.max(), part);
        row.keep_packed();
        const float l = team_reduce<RowSum>(row.exp_sum(Exp(finite_or_zero(m))), part + WARP);
        if (threadIdx.x == 0)
            publish(&states[chunk], m, l);
        return;
    }
    row.keep_packed(); /* its loads are under way while the states are joined */
    if (threadIdx.x < WARP) {
        const Online s = join_chunks(states, chunks, threadIdx.x);
        part[0] = s.m;
        part[1] = 1.0f / s.l;
    }
    __syncthreads();
    const Exp exp(part[0]);
    const float scale = part[1];
    row.write(y + at, [&](float v) { return exp(v) * scale; }, StoreStreaming());
}

#define SOFTMAX_PIPELINED(dtype, T, name)                                                  \
    extern "C" __global__ void __launch_bounds__(512) softmax_##name##_##dtype(            \
        const T *__restrict__ x, T *__restrict__ y, unsigned long long *words, int rows,   \
        int cols, int chunks, int chunk_cols, int lag) {                                   \
        pipelined<ExpOf<T>>(x, y, words, rows, cols, chunks, chunk_cols, lag);             \
    }

FOR_EACH_DTYPE(SOFTMAX_PIPELINED, pipelined)
