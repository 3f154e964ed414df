/*
 * A softmax row that stays on chip: each thread of a team (a warp, a block) holds up to VECTORS
 * 16-byte vectors of it as f32, and at most one of the ragged entries before the first and after the
 * last 16-byte boundary.  Vector k of thread t is number k * team + t: every access is coalesced.
 *
 * Slots without an entry hold -Inf, which exp takes to 0: adding it changes nothing.
 */
#ifndef KERNELS_SOFTMAX_ON_CHIP_CUH
#define KERNELS_SOFTMAX_ON_CHIP_CUH

#include "kernels/io.cuh"
#include "kernels/softmax/exp.cuh"
#include "kernels/softmax/online.cuh"
#include "kernels/softmax/row.cuh"

template <int N> __device__ float join_sums(float *sums) {
#pragma unroll
    for (int width = N / 2; width > 0; width /= 2)
#pragma unroll
        for (int j = 0; j < width; j++)
            sums[j] += sums[j + width];
    return sums[0];
}

/* The state of one entry. */
template <class Exp> __device__ Online state_of(float x) {
    const float m = fmaxf(x, NEG_INF); /* never NaN */
    return Online{m, Exp(finite_or_zero(m))(x)};
}

/* The state s with the entries of DEPTH vectors: the sum is rescaled once for all of them. */
template <class Exp, int DEPTH, int N>
__device__ Online push_vectors(Online s, const float (&v)[DEPTH][N]) {
    float m = s.m;
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
#pragma unroll
        for (int j = 0; j < N; j++)
            m = fmaxf(m, v[k][j]);
    const Exp exp(finite_or_zero(m));
    float sums[N];
#pragma unroll
    for (int j = 0; j < N; j++) {
        sums[j] = exp(v[0][j]);
#pragma unroll
        for (int k = 1; k < DEPTH; k++)
            sums[j] += exp(v[k][j]);
    }
    return Online{m, fmaf(s.l, exp(s.m), join_sums<N>(sums))};
}

/* A warp's states, one from each lane, joined. */
template <class Exp> __device__ Online join_lanes(Online s) {
    const float m = warp_butterfly<RowMax>(s.m);
    return Online{m, warp_butterfly<RowSum>(s.l * Exp(finite_or_zero(m))(s.m))};
}

/* `count` states, those of a block or of a cluster, by one warp. */
template <class Exp> __device__ Online join_states(const float2 *states, unsigned count) {
    const unsigned lane = threadIdx.x % WARP;
    float m = NEG_INF, l = 0.0f;
    for (unsigned i = lane; i < count; i += WARP)
        m = fmaxf(m, states[i].x);
    m = warp_butterfly<RowMax>(m);
    const Exp exp(finite_or_zero(m));
    for (unsigned i = lane; i < count; i += WARP)
        l = fmaf(states[i].y, exp(states[i].x), l);
    return Online{m, warp_butterfly<RowSum>(l)};
}

/* A thread's VECTORS vectors of a row, unpacked. */
template <class T, int VECTORS> struct Entries {
    float v[VECTORS][VEC<T>];

    __device__ void clear(int k) {
#pragma unroll
        for (int j = 0; j < VEC<T>; j++)
            v[k][j] = NEG_INF;
    }

    __device__ float max(float max = NEG_INF) const {
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                max = fmaxf(max, v[k][j]);
        return max;
    }

    /* Every entry becomes its exp; their sum. */
    template <class Exp> __device__ float to_exps(const Exp &exp) {
        float sums[VEC<T>];
#pragma unroll
        for (int j = 0; j < VEC<T>; j++)
            sums[j] = 0.0f;
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
#pragma unroll
            for (int j = 0; j < VEC<T>; j++) {
                v[k][j] = exp(v[k][j]);
                sums[j] += v[k][j];
            }
        return join_sums<VEC<T>>(sums);
    }

    /* The same sum, and the entries stay. */
    template <class Exp> __device__ float exp_sum(const Exp &exp) const {
        Entries exps = *this;
        return exps.to_exps(exp);
    }

    /* As for PackedRow: here nothing is packed. */
    __device__ void keep_packed(unsigned = 0) const {}
};

/* How: how the row is cut, Cut<T> or Whole<T>. */
template <class T, int VECTORS, class How = Cut<T>> struct RegisterRow : Entries<T, VECTORS> {
    using Entries<T, VECTORS>::v;
    float ragged; /* entry number cut.ragged(thread), where thread < head + tail */
    How cut;
    unsigned thread, team;

    __device__ RegisterRow(const T *row, unsigned n, unsigned thread, unsigned team)
        : cut(row, n), thread(thread), team(team) {
        ragged = has_ragged() ? get(row[cut.ragged(thread)]) : NEG_INF;
        load((const uint4 *)(row + cut.head));
    }

    /* A row whose vectors already lie in shared memory, and its ragged entry in a register. */
    __device__ RegisterRow(const uint4 *slots, float ragged, const T *row, unsigned n,
                           unsigned thread, unsigned team)
        : ragged(ragged), cut(row, n), thread(thread), team(team) {
        load(slots);
    }

    __device__ void load(const uint4 *body) {
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (k * team + thread < cut.vectors)
                unpack<T>(v[k], body[k * team + thread]);
            else
                this->clear(k);
    }

    __device__ bool has_ragged() const {
        if constexpr (How::RAGGED)
            return thread < cut.head + cut.tail;
        else
            return false;
    }

    __device__ float max() const {
        return Entries<T, VECTORS>::max(ragged);
    }

    /* Every entry becomes its exp; the sum of this thread's. */
    template <class Exp> __device__ float to_exps(const Exp &exp) {
        float sum = Entries<T, VECTORS>::to_exps(exp);
        if constexpr (How::RAGGED) {
            ragged = exp(ragged);
            sum += ragged;
        }
        return sum;
    }

    /* The same sum, and the entries stay. */
    template <class Exp> __device__ float exp_sum(const Exp &exp) const {
        RegisterRow exps = *this;
        return exps.to_exps(exp);
    }

    /* out = result(entry). */
    template <class F> __device__ void write(T *out, const F &result) const {
        uint4 *body = (uint4 *)(out + cut.head);
        if (has_ragged())
            put(&out[cut.ragged(thread)], result(ragged));
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (k * team + thread < cut.vectors) {
                float x[VEC<T>];
#pragma unroll
                for (int j = 0; j < VEC<T>; j++)
                    x[j] = result(v[k][j]);
                body[k * team + thread] = pack<T>(x);
            }
    }

    /* After to_exps. */
    __device__ void write_scaled(T *out, float scale) const {
        write(out, [=](float v) { return v * scale; });
    }
};

struct StoreVector {
    __device__ void operator()(uint4 *to, uint4 v) const { *to = v; }
};

struct AddNothing {
    __device__ void operator()(float *, unsigned) const {}
};

/*
 * The same as it came from memory: a 16-bit entry takes half a register, and its exp is taken twice.
 * add(entries, i) changes vector i each time that it is unpacked.
 */
template <class T, int VECTORS, class Add = AddNothing> struct PackedRow {
    uint4 v[VECTORS];
    float ragged;
    Cut<T> cut;
    unsigned thread, team;
    Add add;

    __device__ PackedRow(const T *row, unsigned n, unsigned thread, unsigned team,
                         const Add &add = Add())
        : PackedRow(row, Cut<T>(row, n), thread, team, add) {}

    /* Cut as another row is, which lies as far from a 16-byte boundary. */
    __device__ PackedRow(const T *row, const Cut<T> &cut, unsigned thread, unsigned team,
                         const Add &add = Add())
        : cut(cut), thread(thread), team(team), add(add) {
        const uint4 *body = (const uint4 *)(row + cut.head);
        ragged = thread < cut.head + cut.tail ? get(row[cut.ragged(thread)]) : NEG_INF;
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (k * team + thread < cut.vectors) {
                v[k] = body[k * team + thread];
            } else {
                float empty[VEC<T>];
#pragma unroll
                for (int j = 0; j < VEC<T>; j++)
                    empty[j] = NEG_INF;
                v[k] = pack<T>(empty);
            }
    }

    /* Between passes: the compiler must not keep the unpacked entries of one for the next. */
    __device__ void keep_packed() {
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            asm volatile("" : "+r"(v[k].x), "+r"(v[k].y), "+r"(v[k].z), "+r"(v[k].w));
    }

    /*
     * Nor may ptxas, to which an empty asm is nothing: it must see the words change.  zero: a 0 of which it
     * cannot know that it is one, as the sign of a number of columns.
     */
    __device__ void keep_packed(unsigned zero) {
        if constexpr (sizeof(T) < 4) {
#pragma unroll
            for (int k = 0; k < VECTORS; k++) {
                unsigned *words[] = {&v[k].x, &v[k].y, &v[k].z, &v[k].w};
#pragma unroll
                for (int i = 0; i < 4; i++)
                    asm volatile("xor.b32 %0, %0, %1;" : "+r"(*words[i]) : "r"(zero));
            }
        }
    }

    __device__ void entries(float *x, int k) const {
        unpack<T>(x, v[k]);
        if (k * team + thread < cut.vectors)
            add(x, k * team + thread);
    }

    __device__ float max() const {
        float max = ragged;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            float x[VEC<T>];
            entries(x, k);
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                max = fmaxf(max, x[j]);
        }
        return max;
    }

    template <class Exp> __device__ float exp_sum(const Exp &exp) const {
        float sums[VEC<T>];
#pragma unroll
        for (int j = 0; j < VEC<T>; j++)
            sums[j] = 0.0f;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            float x[VEC<T>];
            entries(x, k);
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                sums[j] += exp(x[j]);
        }
        return join_sums<VEC<T>>(sums) + exp(ragged);
    }

    /* The (max, sum) of this thread's entries, DEPTH vectors at a time. */
    template <class Exp, int DEPTH> __device__ Online state() const {
        static_assert(VECTORS % DEPTH == 0, "every vector is pushed once");
        Online s = state_of<Exp>(ragged);
#pragma unroll
        for (int k = 0; k < VECTORS; k += DEPTH) {
            float x[DEPTH][VEC<T>];
#pragma unroll
            for (int j = 0; j < DEPTH; j++)
                entries(x[j], k + j);
            s = push_vectors<Exp>(s, x);
        }
        return s;
    }

    /* f(place in the row, entry, is there one) for all slots of this thread; the same calls in each. */
    template <class F> __device__ void for_each_slot(const F &f) const {
        f(cut.ragged(thread), ragged, thread < cut.head + cut.tail);
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            float x[VEC<T>];
            entries(x, k);
            const unsigned i = k * team + thread;
#pragma unroll
            for (int j = 0; j < VEC<T>; j++)
                f(cut.head + VEC<T> * i + j, x[j], i < cut.vectors);
        }
    }

    /* out = result(entry). */
    template <class F, class Store = StoreVector>
    __device__ void write(T *out, const F &result, const Store &store = Store()) const {
        uint4 *body = (uint4 *)(out + cut.head);
        if (thread < cut.head + cut.tail)
            put(&out[cut.ragged(thread)], result(ragged));
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (k * team + thread < cut.vectors) {
                float x[VEC<T>];
                entries(x, k);
#pragma unroll
                for (int j = 0; j < VEC<T>; j++)
                    x[j] = result(x[j]);
                store(&body[k * team + thread], pack<T>(x));
            }
    }
};

/* ---- copies to shared memory ----------------------------------------------------------------- */

/* 16 bytes, asynchronously. */
inline __device__ void copy16(uint4 *to, const uint4 *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}

/* Starts the copies of this thread's vectors of a row to `slots`; gives its ragged entry. */
template <int VECTORS, class T>
__device__ float start_copies(uint4 *slots, const T *row, const Cut<T> &cut, unsigned thread,
                              unsigned team) {
    const uint4 *body = (const uint4 *)(row + cut.head);
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
        if (k * team + thread < cut.vectors)
            copy16(&slots[k * team + thread], &body[k * team + thread]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    return thread < cut.head + cut.tail ? get(row[cut.ragged(thread)]) : NEG_INF;
}

inline __device__ void wait_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Until at most the last `later` groups of this thread's copies, MOST or fewer, are still under way. */
template <int MOST> __device__ void wait_groups(int later) {
    if constexpr (MOST == 0)
        wait_copies();
    else if (later >= MOST)
        asm volatile("cp.async.wait_group %0;" : : "n"(MOST) : "memory");
    else
        wait_groups<MOST - 1>(later);
}

/* ---- a block of any number of warps ---------------------------------------------------------- */

/*
 * The values of a block of any number of warps, by butterflies within and across them.  part holds
 * WARP values and is used once.
 */
template <class Op> __device__ float team_reduce(float v, float *part) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;

    v = warp_butterfly<Op>(v);
    if (warps == 1)
        return v;
    if (lane == 0)
        part[warp] = v;
    __syncthreads();
    return warp_butterfly<Op>(lane < warps ? part[lane] : Op::identity());
}

#endif
