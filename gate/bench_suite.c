#include "gate/bench_suite.h"

#include <string.h>

#define TIMED_BYTES ((size_t)512 << 20)
#define COUNTED_ELEMENTS ((size_t)1 << 16)

/* Ops whose rows are of any length; norms, as wide as models are. */
static const size_t reduce_cols[] = {1024, 4096, 32768, 1 << 20, 0};
static const size_t softmax_cols[] = {256, 1024, 4096, 8192, 32768, 131072, 1 << 20, 0};
static const size_t norm_cols[] = {1024, 2048, 4096, 8192, 16384, 0};

static const struct {
    const char *op;
    const size_t *cols;
} suites[] = {
    {"sum", reduce_cols},
    {"max", reduce_cols},
    {"layernorm", norm_cols},
    {"rmsnorm", norm_cols},
};

const struct bench_copy_variant bench_copy_variants[] = {
    {"copy16_1", 1}, {"copy16_2", 2}, {"copy16_4", 4}, {0}};

const size_t *bench_suite_cols(const struct op *op) {
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (strcmp(suites[i].op, op->name) == 0)
            return suites[i].cols;
    return softmax_cols;
}

struct case_dims bench_suite_dims(size_t cols, size_t row_bytes, bool timed) {
    const size_t wanted = timed ? TIMED_BYTES / row_bytes : COUNTED_ELEMENTS / cols;
    size_t rows = 1;
    while (2 * rows <= wanted + wanted / 2) /* the power of two that is nearest, or nearly */
        rows *= 2;
    return (struct case_dims){.rows = rows, .cols = cols};
}
