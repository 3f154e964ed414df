/*
 * Rung 14.  For rows too long for an SM, in one launch: x is read twice, the second time from L2.
 *
 * Each chunk of a row is two jobs: the first leaves the chunk's (max, sum) (states.cuh), the second writes
 * the chunk.  Chunks are numbered through all rows, and blocks take jobs by ticket, in the order
 *     first job of chunk i;  second job of chunk i - lag;  then the next i,
 * so that reading from memory and writing go on side by side.  No block holds anything while it waits for
 * others: `lag` is long enough that a row's states are there when its second jobs start, and short
 * enough that the row is still in L2 then.  It is at least the chunks of a row, so that a second job waits
 * for smaller tickets only.
 */
#include "kernels/softmax/results.cuh"
#include "kernels/softmax/states.cuh"

#define MAX_THREADS 512
#define VECTORS 8
#define DEPTH 2

/* Written once and not read again: what is to stay in L2 is x. */
struct StoreStreaming {
    __device__ void operator()(uint4 *to, uint4 v) const { __stcs(to, v); }
};

template <template <class> class Result, class Exp, class T>
__device__ void pipelined(const T *__restrict__ x, T *__restrict__ y, unsigned long long *words,
                          int rows, int cols, unsigned chunks, int chunk_cols, unsigned lag) {
    __shared__ float2 parts[MAX_THREADS / WARP];
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const unsigned ticket = take_ticket(words);
    const bool second = ticket % 2;
    const unsigned i = ticket / 2 - (second ? lag : 0); /* before the first chunk: huge */
    if (i >= rows * chunks)
        return;
    const Chunk chunk(i / chunks, i % chunks, cols, chunk_cols);
    unsigned long long *states = words + 1;
    PackedRow<T, VECTORS> row(x + chunk.at, chunk.n, threadIdx.x, blockDim.x);

    if (!second) {
        Online s = join_lanes<Exp>(row.template state<Exp, DEPTH>());
        if (lane == 0)
            parts[warp] = make_float2(s.m, s.l);
        __syncthreads();
        if (warp > 0)
            return;
        s = join_states<Exp>(parts, blockDim.x / WARP);
        if (lane == 0)
            publish(&states[i], s.m, s.l);
        return;
    }
    row.keep_packed(); /* its loads are under way while the states are joined */
    if (warp == 0) {
        const Online s = join_chunks(states + i / chunks * chunks, chunks, lane);
        parts[0] = make_float2(s.m, s.l);
    }
    __syncthreads();
    const Result<Exp> result(Online{parts[0].x, parts[0].y});
    row.write(y + chunk.at, result, StoreStreaming());
}

#define PIPELINED(dtype, T, op, Result)                                                            \
    extern "C" __global__ void __launch_bounds__(MAX_THREADS) op##_pipelined_##dtype(              \
        const T *__restrict__ x, T *__restrict__ y, unsigned long long *words, int rows, int cols, \
        int chunks, int chunk_cols, int lag) {                                                     \
        pipelined<Result, ExpOf<T>>(x, y, words, rows, cols, chunks, chunk_cols, lag);             \
    }

FOR_EACH_DTYPE(PIPELINED, softmax, SoftmaxOf)
FOR_EACH_DTYPE(PIPELINED, log_softmax, LogSoftmaxOf)
