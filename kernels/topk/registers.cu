/*
 * Softmax and its k <= 16 largest with one read of the row: it stays packed in the registers of a block and
 * gives its maximum, its sum and its largest entries from there.
 *
 * Each warp finds its own k largest.  The k-th largest of its 32 lanes' maxima is no larger than its k-th
 * largest entry, so only entries from there on can be chosen: in random rows hardly more than k.  They
 * are collected side by side, one to a lane, and picked one after the other by the warp's integer maximum
 * (redux).  Where there are more than 32, as in rows of equal entries, a warp looks through its registers
 * once for each rank instead.  In the end the first warp merges the warps' sorted lists.
 *
 * Larger entries first, and of equal ones (-0 and +0 are) the smaller index; a NaN is not chosen, but makes
 * all probabilities NaN.
 */
#include "kernels/softmax/on_chip.cuh"
#include "kernels/topk/key.cuh"

#define NOWHERE 0xffffffffu

/* An entry by its key; {0, NOWHERE} is none. */
struct Ranked {
    unsigned key, place;
};

static __device__ bool same(Ranked a, Ranked b) {
    return a.key == b.key && a.place == b.place;
}

/* The first of a warp's, in every lane. */
static __device__ Ranked first_of_warp(Ranked mine) {
    const unsigned key = __reduce_max_sync(FULL_WARP, mine.key);
    return Ranked{key, __reduce_min_sync(FULL_WARP, mine.key == key ? mine.place : NOWHERE)};
}

/* The k-th largest of 32 values, k <= 32. */
static __device__ float kth_of_lanes(float v, int k) {
    unsigned key = key_of(v), kth = 0;
    for (int rank = 0; rank < k; rank++) {
        kth = __reduce_max_sync(FULL_WARP, key);
        if (threadIdx.x % WARP == __ffs(__ballot_sync(FULL_WARP, key == kth)) - 1)
            key = 0;
    }
    return value_of(kth);
}

/* All entries >= least to `slots`, as far as there is room for them; how many there are. */
template <class Row> __device__ unsigned collect(Ranked *slots, const Row &row, float least) {
    const unsigned before = (1u << threadIdx.x % WARP) - 1;
    unsigned count = 0;
    row.for_each_slot([&](unsigned place, float x, bool there) {
        const bool good = there && x >= least;
        const unsigned found = __ballot_sync(FULL_WARP, good);
        if (found == 0)
            return;
        const unsigned at = count + __popc(found & before);
        if (good && at < WARP)
            slots[at] = Ranked{key_of(x), place};
        count += __popc(found);
    });
    return count;
}

/* The first entry of this thread's that comes after `last`. */
template <class Row> __device__ Ranked next_after(const Row &row, Ranked last) {
    Ranked next = {0, NOWHERE};
    row.for_each_slot([&](unsigned place, float x, bool there) {
        const unsigned key = there && x == x ? key_of(x) : 0;
        const bool after = key < last.key || (key == last.key && place > last.place);
        if (after && (key > next.key || (key == next.key && place < next.place)))
            next = Ranked{key, place};
    });
    return next.key == 0 ? Ranked{0, NOWHERE} : next;
}

/* The warp's k first entries: number r in lane r.  {0, NOWHERE} where there are no more. */
template <class Row>
__device__ Ranked warp_topk(const Row &row, float lane_max, int k, Ranked *slots) {
    const unsigned lane = threadIdx.x % WARP;
    const unsigned count = collect(slots, row, kth_of_lanes(lane_max, k));
    __syncwarp();
    Ranked mine = lane < count ? slots[lane] : Ranked{0, NOWHERE};
    Ranked result = {0, NOWHERE}, last = {NOWHERE, 0};
    for (int rank = 0; rank < k; rank++) {
        if (count > WARP)
            mine = next_after(row, last);
        last = first_of_warp(mine);
        if (same(mine, last))
            mine = Ranked{0, NOWHERE};
        if (lane == rank)
            result = last;
    }
    return result;
}

/* The lists in slots[w][0 .. k-1], w < warps, merged by a warp: number r in lane r. */
static __device__ Ranked merge(const Ranked (*slots)[WARP], unsigned warps, int k) {
    const unsigned lane = threadIdx.x % WARP;
    int next = 0;
    Ranked result = {0, NOWHERE};
    for (int rank = 0; rank < k; rank++) {
        const Ranked mine = lane < warps && next < k ? slots[lane][next] : Ranked{0, NOWHERE};
        const Ranked first = first_of_warp(mine);
        next += same(mine, first);
        if (lane == rank)
            result = first;
    }
    return result;
}

template <class T, class Exp>
__device__ void topk(const T *__restrict__ x, float *__restrict__ p, int *__restrict__ index,
                     int cols, int k) {
    __shared__ float part[2 * WARP];
    __shared__ Ranked slots[WARP][WARP];
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    PackedRow<T, 32 / VEC<T>> row(x + (size_t)blockIdx.x * cols, cols, threadIdx.x, blockDim.x);

    const float lane_max = row.max();
    const Exp exp(team_reduce<RowMax>(lane_max, part));
    row.keep_packed();
    const float scale = 1.0f / team_reduce<RowSum>(row.exp_sum(exp), part + WARP);
    row.keep_packed();
    const Ranked mine = warp_topk(row, lane_max, k, slots[warp]);
    __syncwarp(); /* its slots have been read */
    if (lane < k)
        slots[warp][lane] = mine;
    __syncthreads();
    if (warp > 0)
        return;
    const Ranked chosen = merge(slots, blockDim.x / WARP, k);
    if (lane < k) {
        const size_t at = (size_t)blockIdx.x * k + lane;
        p[at] = exp(value_of(chosen.key)) * scale;
        index[at] = (int)min(chosen.place, (unsigned)cols);
    }
}

#define TOPK(dtype, T, name)                                                          \
    extern "C" __global__ void __launch_bounds__(1024)                                \
        softmax_topk_##name##_##dtype(const T *__restrict__ x, float *__restrict__ p, \
                                      int *__restrict__ index, int cols, int k) {     \
        topk<T, ExpOf<T>>(x, p, index, cols, k);                                      \
    }

FOR_EACH_DTYPE(TOPK, registers)
