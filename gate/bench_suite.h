/* gate/bench_suite.h - at which shapes kernels are measured, and the copy kernel's variants. */
#ifndef GATE_BENCH_SUITE_H
#define GATE_BENCH_SUITE_H

#include "kernels/catalogue.h"

/*
 * The op's list: shapes of one row each, ended by one without rows.  NULL: it has none yet.
 */
const struct case_dims *bench_suite(const struct op *op);

/*
 * So many rows, a power of two, that a timed run reads and writes about 512 MiB, which is several
 * times any cache, and a counted one gives about 2^16 results.
 */
size_t bench_suite_rows(size_t row_bytes, size_t row_results, bool timed);

/* An entry of kernels/bench/copy.cu, and how many vectors a thread of it copies. */
struct bench_copy_variant {
    const char *entry;
    unsigned each;
};
extern const struct bench_copy_variant bench_copy_variants[]; /* ended by entry NULL */

#endif
