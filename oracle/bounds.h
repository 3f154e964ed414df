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
    EXP_EX2_POLY,   /* t * log2(e) rounded to f32, then kernels/exp2_poly.h */
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

/* How a norm computes the variance (layernorm).  rmsnorm's mean square is always one pass. */
enum variance_variant {
    VARIANCE_NONE,
    VARIANCE_TWO_PASS, /* the mean first, then the squares of x - mean */
    VARIANCE_WELFORD,  /* running mean and squares, merged pairwise (Chan, Golub, LeVeque) */
    VARIANCE_ONE_PASS, /* mean of x^2 minus mean^2: no good for large means, and so its budget */
};

/* How a norm computes 1 / sqrt(variance + eps). */
enum rsqrt_variant {
    RSQRT_NONE,
    RSQRT_IEEE,   /* 1 / sqrt, each rounded to nearest */
    RSQRT_APPROX, /* rsqrt.approx: 2^-22.9 relative; also CUDA's rsqrtf */
};

/* How rope computes sine and cosine of the angle it has. */
enum trig_variant {
    TRIG_NONE,
    TRIG_SINCOSF, /* CUDA's sinf, cosf: 2 ulp, any argument */
    TRIG_FAST,    /* __sinf, __cosf: 2^-21.19 absolute on [-pi, pi], nothing promised beyond */
    TRIG_TABLE,   /* correctly rounded values in the format `table` */
};

/* How the kernel computes tanh for the softcap. */
enum tanh_variant {
    TANH_NONE,
    TANH_TANHF, /* CUDA's tanhf: 2 ulp */
    TANH_FAST,  /* tanh.approx: 2^-10.987 relative */
};

/* What softmax_topk ranks by. */
enum topk_variant {
    TOPK_BY_INPUT,       /* the row's entries, of equal ones the smaller index first: exact */
    TOPK_TIES_FREE,      /* the row's entries, equal ones in any order */
    TOPK_BY_PROBABILITY, /* computed ones: nearly equal ones may change places */
};

/* Which tensor core instruction sums: mma.sync or wgmma with operands of this kind. */
enum tensor_core {
    TENSOR_CORE_NONE,
    TENSOR_CORE_16BIT, /* f16, bf16 */
    TENSOR_CORE_TF32,
    TENSOR_CORE_TF32X3, /* f32 factors split in two tf32 values, three products of four */
};

/*
 * A sum of products.  block = 0: products and additions rounded to nearest in acc, `height` of them
 * on the longest chain from a product to the sum (d for d fused multiply-adds).  block > 0: tensor
 * cores, which add `block` products to the accumulator at a time, each term cut to `bits` fraction
 * bits below the largest one and the result cut to f32 (docs/bounds.md#tensor).  They start from 0
 * again after every `run` products (0: never), whose sum is then added as height says.
 */
struct accumulation {
    double height, run;
    unsigned block, bits;
    enum tensor_core tensor_core; /* where block and bits are from: see numerics_target */
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

    /* Norms; sum_height is that of one reduction of the row. */
    enum variance_variant variance;
    enum rsqrt_variant rsqrt;

    /* Rope: the angle as sin and cos get it, declared as relative and absolute error. */
    enum trig_variant trig;
    double angle_rel, angle_abs;
    const struct dtype *table; /* TRIG_TABLE */

    /* Attention; sum_height is that of the sum of the weights. */
    struct accumulation qk, pv;
    enum tanh_variant tanh;
    const struct dtype *p_type; /* what P is rounded to before P V; NULL: it stays in acc */
    bool sum_rounded;           /* the sum adds P as rounded to p_type */
    bool divide_first;          /* P is divided by the sum before P V (three steps) */
    double lazy_threshold;      /* rescale only if the maximum rises by more, in log2 units; or 0 */
    double parts;               /* normalised parts that are joined by their lse; 0: there are none */

    enum topk_variant topk;
};

/*
 * block and bits of qk and pv as the tensor cores of this architecture (90 for sm_90) have them,
 * where they name one.  docs/bounds.md#tensor.
 */
void numerics_target(struct numerics *numerics, unsigned arch);

/*
 * An upper bound on |got_A - got_B| for two kernels, or two summation trees, that each stay within
 * their budget of the same real result: the sum of the budgets, rounded up.  For one kernel on a
 * permuted row op->spread is sharper.
 */
double bounds_two_orders(double budget_a, double budget_b);

#endif
