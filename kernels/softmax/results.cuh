/*
 * What is made of a row that a team of threads holds: softmax, log_softmax, log-sum-exp.  A kernel is a
 * form, which says who holds a row and how, with one of these.
 */
#ifndef KERNELS_SOFTMAX_RESULTS_CUH
#define KERNELS_SOFTMAX_RESULTS_CUH

#include "kernels/softmax/on_chip.cuh"

/* ---- entries: what becomes of one, the row's (max, sum) known -------------------------------- */

template <class Exp> struct SoftmaxOf {
    Exp exp;
    float scale;
    __device__ explicit SoftmaxOf(Online s) : exp(s.m), scale(1.0f / s.l) {}
    __device__ float operator()(float x) const { return exp(x) * scale; }
};

template <class Exp> struct LogSoftmaxOf {
    float m, log_sum;
    __device__ explicit LogSoftmaxOf(Online s) : m(s.m), log_sum(logf(s.l)) {}
    __device__ float operator()(float x) const { return (x - m) - log_sum; }
};

/* ---- teams: whose values are combined -------------------------------------------------------- */

struct Warp {
    template <class Op> static __device__ float reduce(float v) { return warp_butterfly<Op>(v); }
};

/* blockDim.x neighbours, a power of two and at most a warp. */
struct Lanes {
    template <class Op, class V> static __device__ V reduce(V v) {
#pragma unroll
        for (unsigned offset = WARP / 2; offset > 0; offset /= 2)
            if (offset < blockDim.x)
                v = Op::combine(v, __shfl_xor_sync(FULL_WARP, v, offset));
        return v;
    }
};

struct Block {
    template <class Op> static __device__ float reduce(float v) {
        __shared__ float part[WARP]; /* one for each Op, which a kernel reduces by once */
        return team_reduce<Op>(v, part);
    }
};

/* ---- results --------------------------------------------------------------------------------- */

/*
 * Each has Out, the type of a result; PER_ENTRY: is there one for each entry; and finish(), for all
 * threads of the team that holds row number r: a RegisterRow, a TileRow (lanes.cuh) or, but for
 * Softmax, a PackedRow.  first: true in one of them.
 */
template <class T, class Exp = ExpOf<T>> struct Softmax {
    typedef T Out;
    static constexpr bool PER_ENTRY = true;

    template <class Team, class Row>
    static __device__ void finish(Row &row, T *y, size_t r, int cols, bool) {
        const float max = Team::template reduce<RowMax>(row.max());
        const float sum = Team::template reduce<RowSum>(row.to_exps(Exp(max)));
        row.write_scaled(y + r * cols, 1.0f / sum);
    }
};

/*
 * m and log(sum of exp(x - m)) of a row, in every thread.  An infinite maximum is shifted by 0: a
 * +Inf makes the sum +Inf, and in a row of nothing but -Inf it is 0.
 */
template <class Exp, class Team, class Row> __device__ float2 max_and_log(Row &row) {
    const float m = Team::template reduce<RowMax>(row.max());
    row.keep_packed();
    const float sum = Team::template reduce<RowSum>(row.exp_sum(Exp(isinf(m) ? 0.0f : m)));
    row.keep_packed();
    return make_float2(m, logf(sum));
}

/* (x - m) - log(sum), the smaller terms first, so that a large maximum costs no bits. */
template <class T> struct LogSoftmax {
    typedef T Out;
    static constexpr bool PER_ENTRY = true;

    template <class Team, class Row>
    static __device__ void finish(Row &row, T *y, size_t r, int cols, bool) {
        float2 s = max_and_log<ExpOf<T>, Team>(row);
        row.keep_packed((unsigned)cols >> 31);
        s.y += s.x - s.x; /* NaN if the maximum is infinite */
        row.write(y + r * cols, [&](float v) { return (v - s.x) - s.y; });
    }
};

template <class T> struct Lse {
    typedef float Out;
    static constexpr bool PER_ENTRY = false;

    template <class Team, class Row>
    static __device__ void finish(Row &row, float *y, size_t r, int, bool first) {
        const float2 s = max_and_log<ExpOf<T>, Team>(row);
        if (first)
            y[r] = s.x + s.y;
    }
};

/*
 * A softmax without a division, exp(x - lse), as kernels that keep lse for later have it.  Here a large
 * maximum does cost bits: what lse loses in its rounding is the exponent of every result.
 */
template <class T> struct SoftmaxLse {
    typedef T Out;
    static constexpr bool PER_ENTRY = true;

    template <class Team, class Row>
    static __device__ void finish(Row &row, T *y, size_t r, int cols, bool) {
        const float2 s = max_and_log<ExpOf<T>, Team>(row);
        row.keep_packed((unsigned)cols >> 31);
        row.write(y + r * cols, ExpOf<T>(s.x + (s.y + (s.x - s.x)))); /* NaN as in LogSoftmax */
    }
};

/* ---- a block per row ------------------------------------------------------------------------- */

template <class Result, class Row, class T>
__device__ void block_rows(const T *__restrict__ x, typename Result::Out *__restrict__ y,
                           int cols) {
    Row row(x + (size_t)blockIdx.x * cols, cols, threadIdx.x, blockDim.x);
    Result::template finish<Block>(row, y, blockIdx.x, cols, threadIdx.x == 0);
}

#endif
