/*
 * tests/oracle/simulate.h - correct f32 kernels on the CPU, to hold budgets against.
 *
 * Each follows its declaration to the letter, with the GPU's exponentials (gpu_exp.h): T threads
 * take the entries t, t + T, ... and are merged by a tree.  T = 1 is serial, T = cols a pure tree.
 */
#ifndef TESTS_ORACLE_SIMULATE_H
#define TESTS_ORACLE_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rng.h"
#include "oracle/bounds.h"

struct algorithm {
    const char *name;
    enum exp_variant exp;
    enum rescale_variant rescale;
    enum divide_variant divide; /* DIVIDE_NONE: softmax is exp(x - lse) */
    enum log_variant log; /* LOG_NONE stands for LOG_LOGF */
    bool flush;
    bool scaled_maxima; /* EXP_EX2_FOLDED online: rescale by the difference of m log2(e) rounded */
};

/* The numerics that this algorithm's manifest would declare at this shape. */
struct numerics simulated_numerics(const struct algorithm *a, size_t cols, size_t threads);

float simulate_sum(const double *x, size_t cols, size_t threads, bool flush);

/* y[0 .. cols-1].  rng: for what an approximate division may do. */
void simulate_softmax(float *y, const double *x, size_t cols, size_t threads,
                      const struct algorithm *a, struct rng *rng);
float simulate_lse(const double *x, size_t cols, size_t threads, const struct algorithm *a);
void simulate_log_softmax(float *y, const double *x, size_t cols, size_t threads,
                          const struct algorithm *a);

#endif
