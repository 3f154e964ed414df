/*
 * Rung 12.  For rows too long for one block: `chunks` blocks hold a row in their shared memory (which
 * has room for three of them, registers for two), exchange the chunks' (max, sum) through global
 * memory (states.cuh) and wait for each other in the middle, so that even a row of a million entries
 * is read once and written once.
 *
 * Waiting needs the blocks of a row on the GPU together.  Blocks take chunks in the order in which they
 * start, so all rows but the last one begun are complete, finish and make room for the last one's
 * blocks: there is no deadlock wherever one row fits.
 */
#include "kernels/softmax/on_chip.cuh"
#include "kernels/softmax/states.cuh"

/*
 * A chunk in shared memory: thread t reads only vectors t, t + blockDim.x ..., which it copied itself, so
 * that waiting for its own copies is enough.
 */
template <class T> struct SharedRow {
    const uint4 *slots;
    float ragged;
    Cut<T> cut;

    __device__ SharedRow(uint4 *slots, const T *row, unsigned n) : slots(slots), cut(row, n) {
        const uint4 *body = (const uint4 *)(row + cut.head);
        for (unsigned i = threadIdx.x; i < cut.vectors; i += blockDim.x)
            copy16(&slots[i], &body[i]);
        ragged = threadIdx.x < cut.head + cut.tail ? get(row[cut.ragged(threadIdx.x)]) : NEG_INF;
        wait_copies();
    }

    template <class F> __device__ void for_each_vector(const F &f) const {
#pragma unroll 2
        for (unsigned i = threadIdx.x; i < cut.vectors; i += blockDim.x) {
            float v[VEC<T>];
            unpack<T>(v, slots[i]);
            f(i, v);
        }
    }

    __device__ float max() const {
        float max = ragged;
        for_each_vector([&](unsigned, const float *v) {
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                max = fmaxf(max, v[j]);
        });
        return max;
    }

    template <class Exp> __device__ float exp_sum(const Exp &exp) const {
        float sums[VEC<T>];
#pragma unroll
        for (int j = 0; j < VEC<T>; j++)
            sums[j] = 0.0f;
        for_each_vector([&](unsigned, const float *v) {
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                sums[j] += exp(v[j]);
        });
        return join_sums<VEC<T>>(sums) + exp(ragged);
    }

    /* out = result(entry). */
    template <class F> __device__ void write(T *out, const F &result) const {
        if (threadIdx.x < cut.head + cut.tail)
            put(&out[cut.ragged(threadIdx.x)], result(ragged));
        for_each_vector([&](unsigned i, float *v) {
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                v[j] = result(v[j]);
            ((uint4 *)(out + cut.head))[i] = pack<T>(v);
        });
    }
};

template <class Exp, class T>
__device__ void blocks_wait(const T *__restrict__ x, T *__restrict__ y, unsigned long long *words,
                            int cols, unsigned chunks, int chunk_cols) {
    extern __shared__ uint4 slots[];
    __shared__ float part[2 * WARP + 2];
    const unsigned ticket = take_ticket(words);
    const unsigned r = ticket / chunks, chunk = ticket % chunks;
    const int start = min((int)chunk * chunk_cols, cols);
    const size_t at = (size_t)r * cols + start;
    const SharedRow<T> row(slots, x + at, min(chunk_cols, cols - start));

    const float m = team_reduce<RowMax>(row.max(), part);
    const float l = team_reduce<RowSum>(row.exp_sum(Exp(finite_or_zero(m))), part + WARP);
    unsigned long long *states = words + 1 + (size_t)r * chunks;
    if (threadIdx.x < WARP) {
        if (threadIdx.x == 0)
            publish(&states[chunk], m, l);
        const Online s = join_chunks(states, chunks, threadIdx.x);
        part[2 * WARP] = s.m;
        part[2 * WARP + 1] = 1.0f / s.l;
    }
    __syncthreads();
    const Exp exp(part[2 * WARP]);
    const float scale = part[2 * WARP + 1];
    row.write(y + at, [&](float v) { return exp(v) * scale; });
}

#define SOFTMAX_BLOCKS_WAIT(dtype, T, name, BLOCKS)                                      \
    extern "C" __global__ void __launch_bounds__(512, BLOCKS) softmax_##name##_##dtype(  \
        const T *__restrict__ x, T *__restrict__ y, unsigned long long *words, int cols, \
        int chunks, int chunk_cols) {                                                    \
        blocks_wait<ExpOf<T>>(x, y, words, cols, chunks, chunk_cols);                    \
    }

FOR_EACH_DTYPE(SOFTMAX_BLOCKS_WAIT, blocks_wait, 3)
