/*
 * tests/oracle/attention_kernels.h - attention on the CPU as kernels do it: right, or with a fault.
 *
 * The exponentials have the GPU's bits (gpu_exp.h), the tensor cores are those of
 * docs/bounds.md.  Shares no code with the oracle.
 */
#ifndef TESTS_ORACLE_ATTENTION_KERNELS_H
#define TESTS_ORACLE_ATTENTION_KERNELS_H

#include "oracle/attention.h"

enum attention_fault {
    FAULT_NONE,
    FAULT_MAX_STUCK_AT_ZERO, /* O03: after a masked tile the maximum never falls below 0 */
    FAULT_SENTINEL,          /* O06: masked is -5e4, and the maximum starts there */
    FAULT_TAIL,              /* the last keys that do not fill a tile are dropped */
    FAULT_SOFTCAP_LAST,      /* O28: after the mask */
    FAULT_NO_RESCALE,        /* O is not rescaled, the sum is */
    FAULT_LSE_BASE_2,        /* O26 */
    FAULT_P_TRUNCATED,       /* O39 */
    FAULT_WINDOW_SHORT,      /* O29 */
    FAULT_TOP_LEFT,          /* causal, aligned at the first key */
    FAULT_ALIBI_SIGN,
    FAULT_NO_SINK,
    FAULT_UNIFORM,    /* O02: an empty row is the mean of v */
    FAULT_F16_SCORES, /* logits rounded to 16 bits, undeclared */
    FAULT_COUNT
};

struct attention_kernel {
    const char *name;
    enum dtype_id type; /* of q, k, v, o */
    enum exp_variant exp;
    enum divide_variant divide;
    size_t tile;          /* 0: three steps, P divided before P V */
    unsigned block, bits; /* tensor cores, or 0 */
    enum dtype_id p_type;
    bool sum_rounded;
    double lazy_threshold;
};

/* What this kernel's manifest would declare for this row. */
struct numerics attention_kernel_numerics(const struct attention_kernel *k,
                                          const struct attention_row *row);

/* o[0 .. value_dim-1] as f32 before the store in the kernel's type; *lse. */
void attention_kernel_run(float *o, float *lse, const struct attention_row *row,
                          const struct attention_kernel *k, enum attention_fault fault);

#endif
