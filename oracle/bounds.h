/*
 * oracle/bounds.h - what a kernel declares about its arithmetic, from which its budget follows.
 *
 * The manifest's `numerics:` map evaluated for one case.  A budget is derived from this and from
 * the row alone; nothing here is a tolerance.  Derivations and sources: docs/bounds.md.
 */
#ifndef ORACLE_BOUNDS_H
#define ORACLE_BOUNDS_H

#include <stdbool.h>

#include "oracle/dtype.h"

/* How the kernel computes e^t.  docs/bounds.md gives each one's certified error. */
enum exp_variant {
    EXP_NONE,
    EXP_EXPF,       /* CUDA's expf: range reduction + ex2.approx.ftz */
    EXP_FAST,       /* __expf: t * log2(e) rounded to f32, then ex2.approx */
    EXP_EX2_FOLDED, /* ex2.approx.ftz(fma(x, log2(e), -RN(m log2(e)))); docs/bounds.md#folded */
};

enum rescale_variant { RESCALE_NONE, RESCALE_ONLINE };

enum divide_variant {
    DIVIDE_NONE,
    DIVIDE_IEEE,       /* div.rn */
    DIVIDE_RECIPROCAL, /* multiply by rcp.rn(sum) */
    DIVIDE_APPROX,     /* div.approx (on a GPU: the emulator lacks it) or rcp.approx: 2 ulp */
};

/* How the kernel computes log(sum). */
enum log_variant {
    LOG_NONE,
    LOG_LOGF, /* CUDA's logf: 1 ulp */
    LOG_FAST, /* __logf: lg2.approx * ln 2 */
};

struct numerics {
    const struct dtype *in, *acc, *out;
    enum exp_variant exp;
    double sum_height; /* longest chain of roundings from a term to the sum */
    double rescales;   /* longest chain of online rescalings of one term; 0 if none */
    enum rescale_variant rescale;
    enum divide_variant divide;
    bool flush;           /* the kernel may flush subnormals to zero */
    enum log_variant log; /* lse and log_softmax only */
};

/*
 * An upper bound on |got_A - got_B| for two kernels, or two summation trees, that each stay within
 * their budget of the same real result: the sum of the budgets, rounded up.  For one kernel on a
 * permuted row op->spread is sharper.
 */
double bounds_two_orders(double budget_a, double budget_b);

#endif
