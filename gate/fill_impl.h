/*
 * gate/fill_impl.h - how a fill writes a row, and the lists by op.
 *
 * No libm and no expression with two random draws in it: see fill.c.
 */
#ifndef GATE_FILL_IMPL_H
#define GATE_FILL_IMPL_H

#include <math.h>

#include "base/rng.h"
#include "gate/fill.h"

#define LN2 0x1.62e42fefa39efp-1 /* RN53(log 2) */

/* One row while it is being written. */
struct line {
    uint32_t *bits;
    const struct dtype *dt;
    size_t cols;
    uint64_t variant;
    struct rng rng;
};

static inline struct line line_begin(uint32_t *bits, const struct dtype *dt, size_t row,
                                     struct case_dims dims, uint64_t seed) {
    struct rng mix = rng_from_seed(seed);
    return (struct line){
        .bits = bits,
        .dt = dt,
        .cols = dims.cols,
        .variant = row + seed,
        .rng = rng_from_seed(rng_u64(&mix) + row * 0xd1342543de82ef95u),
    };
}

/* x_j = v rounded into the format; a finite v stays finite. */
static inline void put(struct line *l, size_t j, double v) {
    double max = dtype_max(l->dt);
    if (isfinite(v) && fabs(v) > max)
        v = copysign(max, v);
    l->bits[j] = dtype_from_double(l->dt, v, ROUND_NEAREST);
}

/* Entry i of a tensor; a finite value stays finite. */
static inline void set_finite(const struct tensor *t, size_t i, double x) {
    double max = dtype_max(t->type->dtype);
    tensor_set(t, i, isfinite(x) && fabs(x) > max ? copysign(max, x) : x);
}

static inline double uniform(struct line *l, double from, double to) {
    return from + (to - from) * rng_unit(&l->rng);
}

/* Nearly N(0, 1): the sum of twelve uniforms less 6 has variance 1 and needs only additions. */
static inline double everyday(struct rng *rng) {
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += rng_unit(rng);
    return sum;
}

static inline double normal(struct line *l) {
    return everyday(&l->rng);
}

static inline size_t below(struct line *l, size_t bound) {
    return (size_t)rng_below(&l->rng, bound);
}

static inline double pick(struct line *l, const double *from, size_t count) {
    return from[below(l, count)];
}
#define PICK(l, array) pick((l), (array), sizeof(array) / sizeof(array)[0])

static inline double random_sign(struct line *l) {
    return rng_u64(&l->rng) >> 63 ? -1 : 1;
}

/* A random significand in [1, 2) in one of `count` binades from 2^from upwards. */
static inline double in_binades(struct line *l, int from, size_t count) {
    double significand = uniform(l, 1, 2);
    return ldexp(significand, from + (int)below(l, count));
}

/* A power of two for which kernels are cut up: float4, warp, block. */
static inline size_t random_tile(struct line *l) {
    static const size_t tiles[] = {4, 32, 128, 256};
    return tiles[below(l, sizeof tiles / sizeof tiles[0])];
}

static inline void swap(struct line *l, size_t i, size_t j) {
    uint32_t t = l->bits[i];
    l->bits[i] = l->bits[j];
    l->bits[j] = t;
}

static inline void shuffle(struct line *l) {
    for (size_t i = l->cols; i > 1; i--)
        swap(l, i - 1, below(l, i));
}

#define ROW_ARGS \
    uint32_t *bits, const struct dtype *dt, size_t row, struct case_dims dims, uint64_t seed
#define LINE_BEGIN line_begin(bits, dt, row, dims, seed)

/* ---- rows that several ops use --------------------------------------------------------------- */

void row_normal(ROW_ARGS);
void row_huge(ROW_ARGS);
void row_mixed_signs(ROW_ARGS);
void row_subnormal(ROW_ARGS);
void row_plus_inf(ROW_ARGS);
void row_one_nan(ROW_ARGS);

/* A block table for these lengths: see fill_others.c. */
void fill_block_table(const struct op_case *c, uint64_t seed, size_t shared);

extern const struct fill norm_fills[], rope_fills[], attention_fills[], combine_fills[];

#endif
