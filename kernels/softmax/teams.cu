/*
 * Rung 11.  For rows too long for one block.  A team of `chunks` blocks holds a row in its registers,
 * exchanges the chunks' (max, sum) through global memory and waits for them in the middle, so that even
 * a row of a million entries is read once and written once.  Teams stride over the rows, and while a
 * block waits, computes and writes, the copies of its chunk of the next row are under way, as in rung
 * 10.
 *
 * Waiting needs the team's blocks on the GPU together.  Blocks join teams in the order in which they
 * start (a ticket each), so all teams but the last are complete from the start, finish their rows and
 * make room for the last one's: there is no deadlock wherever one team fits.
 *
 * A chunk's state is one 64-bit word, (max, sum), written and read whole, and is its own flag:
 * softmax_teams_clear sets the words to all ones, which no state is, since a maximum is never NaN.  The
 * states are joined in the order of the chunks, whichever comes last: the same bits in every run.
 */
#include "kernels/softmax/on_chip.cuh"
#include "kernels/softmax/online.cuh"

#define TEAM_BLOCK 512 /* threads of a block */
#define EMPTY 0xffffffffffffffffull

/* words[0] hands out tickets from 0; the states follow. */
extern "C" __global__ void softmax_teams_clear(unsigned long long *words, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        words[i] = i == 0 ? 0 : EMPTY;
}

static __device__ void publish(unsigned long long *to, float m, float l) {
    const unsigned long long state =
        (unsigned long long)__float_as_uint(l) << 32 | __float_as_uint(m);
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(to), "l"(state) : "memory");
}

static __device__ Online await(const unsigned long long *from) {
    unsigned long long state;
    for (;;) {
        asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(state) : "l"(from) : "memory");
        if (state != EMPTY)
            return Online{__uint_as_float((unsigned)state), __uint_as_float(state >> 32)};
        __nanosleep(20);
    }
}

/* All chunks' states joined by one warp: maximum, then every sum rescaled to it once. */
static __device__ Online join_chunks(const unsigned long long *states, unsigned chunks,
                                     unsigned lane) {
    Online s = online_empty();
    for (unsigned c = lane; c < chunks; c += WARP) {
        const Online chunk = await(&states[c]);
        const float m = fmaxf(s.m, chunk.m);
        s.l = s.l * expf(s.m - finite_or_zero(m)) + chunk.l * expf(chunk.m - finite_or_zero(m));
        s.m = m;
    }
    return online_warp(s);
}

/*
 * A chunk in shared memory: thread t reads and writes only vectors t, t + TEAM_BLOCK ..., which it
 * copied itself.
 */
template <class T> struct SharedRow {
    const uint4 *slots;
    float ragged;
    Cut<T> cut;

    template <class F> __device__ void for_each_vector(const F &f) const {
#pragma unroll 2
        for (unsigned i = threadIdx.x; i < cut.vectors; i += TEAM_BLOCK) {
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

    template <class Exp> __device__ void write(T *out, const Exp &exp, float scale) const {
        if (threadIdx.x < cut.head + cut.tail)
            put(&out[cut.ragged(threadIdx.x)], exp(ragged) * scale);
        for_each_vector([&](unsigned i, float *v) {
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                v[j] = exp(v[j]) * scale;
            ((uint4 *)(out + cut.head))[i] = pack<T>(v);
        });
    }
};

template <class T>
__device__ float start_chunk(uint4 *slots, const T *from, const Cut<T> &cut) {
    const uint4 *body = (const uint4 *)(from + cut.head);
    for (unsigned i = threadIdx.x; i < cut.vectors; i += TEAM_BLOCK)
        copy16(&slots[i], &body[i]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    return threadIdx.x < cut.head + cut.tail ? get(from[cut.ragged(threadIdx.x)]) : NEG_INF;
}

template <class Exp, class T>
__device__ void teams(const T *__restrict__ x, T *__restrict__ y, unsigned long long *words,
                      int rows, int cols, unsigned chunks, int chunk_cols) {
    extern __shared__ uint4 buffers[]; /* this row's chunk and the next one's */
    __shared__ float part[2][2 * WARP + 2];
    __shared__ unsigned shared_ticket;
    const unsigned slots = (unsigned)chunk_cols / VEC<T>;

    if (threadIdx.x == 0)
        shared_ticket = atomicAdd((unsigned *)words, 1);
    __syncthreads();
    const unsigned ticket = shared_ticket, chunk = ticket % chunks, teams = gridDim.x / chunks;
    const int start = min((int)chunk * chunk_cols, cols), n = min(chunk_cols, cols - start);
    unsigned r = ticket / chunks;
    int turn = 0;

    const T *from = x + (size_t)r * cols + start;
    float next_ragged = start_chunk(buffers, from, Cut<T>(from, n));
    for (; r < rows; r += teams, turn ^= 1) {
        const SharedRow<T> row{buffers + turn * slots, next_ragged, Cut<T>(from, n)};
        T *out = y + (from - x);
        wait_copies();
        if (r + teams < rows) {
            from += (size_t)teams * cols;
            next_ragged = start_chunk(buffers + (turn ^ 1) * slots, from, Cut<T>(from, n));
        }
        const float m = team_reduce<RowMax>(row.max(), part[turn]);
        const float l = team_reduce<RowSum>(row.exp_sum(Exp(finite_or_zero(m))), part[turn] + WARP);
        unsigned long long *states = words + 1 + (size_t)r * chunks;
        if (threadIdx.x == 0)
            publish(&states[chunk], m, l);
        if (threadIdx.x < WARP) {
            const Online s = join_chunks(states, chunks, threadIdx.x);
            part[turn][2 * WARP] = s.m;
            part[turn][2 * WARP + 1] = 1.0f / s.l;
        }
        __syncthreads();
        row.write(out, Exp(part[turn][2 * WARP]), part[turn][2 * WARP + 1]);
    }
}

#define SOFTMAX_TEAMS(dtype, T, name, BLOCKS)                                                    \
    extern "C" __global__ void __launch_bounds__(TEAM_BLOCK, BLOCKS) softmax_##name##_##dtype(   \
        const T *__restrict__ x, T *__restrict__ y, unsigned long long *words, int rows,         \
        int cols, int chunks, int chunk_cols) {                                                  \
        teams<ExpOf<T>>(x, y, words, rows, cols, chunks, chunk_cols);                            \
    }

FOR_EACH_DTYPE(SOFTMAX_TEAMS, teams, 3)
#ifdef BENCH_VARIANTS
template <class Exp, int VECTORS, class T>
__device__ void teamsreg(const T *__restrict__ x, T *__restrict__ y, unsigned long long *words,
                      int rows, int cols, unsigned chunks, int chunk_cols) {
    extern __shared__ uint4 slots[];
    __shared__ float part[2][2 * WARP + 2];
    const unsigned thread = threadIdx.x, team_threads = TEAM_BLOCK;

    if (thread == 0)
        ((unsigned *)part)[0] = atomicAdd((unsigned *)words, 1);
    __syncthreads();
    const unsigned ticket = ((unsigned *)part)[0];
    __syncthreads();
    const unsigned chunk = ticket % chunks, teams = gridDim.x / chunks;
    const int start = min((int)chunk * chunk_cols, cols), n = min(chunk_cols, cols - start);
    unsigned r = ticket / chunks;
    int turn = 0;

    const T *from = x + (size_t)r * cols + start;
    float ragged = start_copies<VECTORS>(slots, from, Cut<T>(from, n), thread, team_threads);
    for (; r < rows; r += teams, turn ^= 1) {
        wait_copies();
        PackedRow<T, VECTORS> row(slots, ragged, Cut<T>(from, n), thread, team_threads);
        T *out = y + (from - x);
        const float m = team_reduce<RowMax>(row.max(), part[turn]);
        if (r + teams < rows) {
            from += (size_t)teams * cols;
            ragged = start_copies<VECTORS>(slots, from, Cut<T>(from, n), thread, team_threads);
        }
        row.keep_packed();
        const float l = team_reduce<RowSum>(row.exp_sum(Exp(finite_or_zero(m))), part[turn] + WARP);
        unsigned long long *states = words + 1 + (size_t)r * chunks;
        if (thread == 0)
            publish(&states[chunk], m, l);
        if (thread < WARP) {
            const Online s = join_chunks(states, chunks, thread);
            part[turn][2 * WARP] = s.m;
            part[turn][2 * WARP + 1] = 1.0f / s.l;
        }
        __syncthreads();
        row.keep_packed();
        row.write(out, Exp(part[turn][2 * WARP]), part[turn][2 * WARP + 1]);
    }
}


#define SOFTMAX_TEAMSR(dtype, T, name, BYTES, BLOCKS)                                             \
    extern "C" __global__ void __launch_bounds__(TEAM_BLOCK, BLOCKS) softmax_##name##_##dtype(          \
        const T *__restrict__ x, T *__restrict__ y, unsigned long long *words, int rows,         \
        int cols, int chunks, int chunk_cols) {                                                  \
        teamsreg<ExpOf<T>, BYTES / 16>(x, y, words, rows, cols, chunks, chunk_cols);                \
    }
FOR_EACH_DTYPE(SOFTMAX_TEAMSR, teamsreg, 128, 2)
FOR_EACH_DTYPE(SOFTMAX_TEAMS, teams2, 2)
#endif
