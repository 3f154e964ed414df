#include "gate/bench_suite.h"

#include <string.h>

#define TIMED_BYTES ((size_t)512 << 20)
#define COUNTED_RESULTS ((size_t)1 << 16)

#define MATRIX(n) {.rows = 1, .cols = (n)}
#define HEADS(h, d) {.rows = 1, .heads = (h), .head_dim = (d)}

static const struct case_dims reductions[] = {MATRIX(1024), MATRIX(4096), MATRIX(32768),
                                              MATRIX(1 << 20), {0}};
static const struct case_dims softmaxes[] = {MATRIX(256),   MATRIX(1024),   MATRIX(4096),
                                             MATRIX(8192),  MATRIX(32768),  MATRIX(131072),
                                             MATRIX(1 << 20), {0}};
/* As wide as models are. */
static const struct case_dims norms[] = {MATRIX(1024), MATRIX(2048),  MATRIX(4096),
                                         MATRIX(8192), MATRIX(16384), {0}};
static const struct case_dims ropes[] = {HEADS(8, 128), HEADS(32, 128), HEADS(32, 64), {0}};

static const struct {
    const char *op;
    const struct case_dims *shapes;
} suites[] = {
    {"sum", reductions},        {"max", reductions}, {"softmax", softmaxes},
    {"log_softmax", softmaxes}, {"lse", softmaxes},  {"softmax_topk", softmaxes},
    {"layernorm", norms},       {"rmsnorm", norms},  {"rope", ropes},
};

const struct bench_copy_variant bench_copy_variants[] = {
    {"copy16_1", 1}, {"copy16_2", 2}, {"copy16_4", 4}, {0}};

const struct case_dims *bench_suite(const struct op *op) {
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (strcmp(suites[i].op, op->name) == 0)
            return suites[i].shapes;
    return NULL;
}

size_t bench_suite_rows(size_t row_bytes, size_t row_results, bool timed) {
    const size_t wanted = timed ? TIMED_BYTES / row_bytes : COUNTED_RESULTS / row_results;
    size_t rows = 1;
    while (2 * rows <= wanted + wanted / 2) /* the power of two that is nearest, or nearly */
        rows *= 2;
    return rows;
}
