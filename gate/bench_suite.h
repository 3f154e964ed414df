/* gate/bench_suite.h - at which shapes kernels are measured, and the copy kernel's variants. */
#ifndef GATE_BENCH_SUITE_H
#define GATE_BENCH_SUITE_H

#include "kernels/catalogue.h"

/*
 * Shape i of the op's list, from 0 on; false behind the last, and for an op that has no list.
 * Of ops with rows it has one row.  A timed device gets larger shapes of the others.
 */
bool bench_suite_shape(struct case_dims *out, const struct op *op, size_t i, bool timed);

/*
 * So many rows, a power of two, that a timed run reads and writes about 512 MiB, which is several
 * times any cache, and a counted one about 512 KiB.
 */
size_t bench_suite_rows(size_t row_bytes, bool timed);

/*
 * Floating-point operations of a run, where they and not bytes are what an op is measured by
 * (attention: 4 head_dim per query and key that it sees); else 0.
 */
double bench_flops(const struct op *op, const struct case_dims *dims,
                   const struct op_options *options);

/*
 * "" for the plain op, "causal" with that alone; what other options and inputs make of it is not
 * comparable: "other".
 */
const char *bench_variant(const struct kernel *kernel, const struct op_options *options);

/* An entry of kernels/bench/copy.cu, and how many vectors a thread of it copies. */
struct bench_copy_variant {
    const char *entry;
    unsigned each;
};
extern const struct bench_copy_variant bench_copy_variants[]; /* ended by entry NULL */

#endif
