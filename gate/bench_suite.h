/* gate/bench_suite.h - at which shapes kernels are measured, and the copy kernel's variants. */
#ifndef GATE_BENCH_SUITE_H
#define GATE_BENCH_SUITE_H

#include "kernels/catalogue.h"

/* The row lengths of an op, ended by 0. */
const size_t *bench_suite_cols(const struct op *op);

/*
 * So many rows of this length, a power of two, that a timed run reads and writes about 512 MiB, which
 * is several times any cache, and a counted one has about 2^16 elements.
 */
struct case_dims bench_suite_dims(size_t cols, size_t row_bytes, bool timed);

/* An entry of kernels/bench/copy.cu, and how many vectors a thread of it copies. */
struct bench_copy_variant {
    const char *entry;
    unsigned each;
};
extern const struct bench_copy_variant bench_copy_variants[]; /* ended by entry NULL */

#endif
