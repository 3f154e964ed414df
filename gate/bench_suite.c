#include "gate/bench_suite.h"

#include <string.h>

#define TIMED_BYTES ((size_t)512 << 20)
#define COUNTED_BYTES ((size_t)512 << 10)

#define MATRIX(n) \
    { .rows = 1, .cols = (n) }
#define TOPK(n) \
    { .rows = 1, .cols = (n), .k = 8 }
#define HEADS(h, d) \
    { .rows = 1, .heads = (h), .head_dim = (d) }
#define ATTENTION(b, h, n, d) \
    { .batch = (b), .heads = (h), .kv_heads = (h), .queries = (n), .keys = (n), .head_dim = (d) }
#define LIST(name) name, sizeof name / sizeof *name

static const struct case_dims reductions[] = {MATRIX(256), MATRIX(1024), MATRIX(4096),
                                              MATRIX(32768), MATRIX(1 << 20)};
static const struct case_dims softmaxes[] = {
    MATRIX(32),   MATRIX(64),   MATRIX(128),   MATRIX(256),    MATRIX(512),    MATRIX(1024),
    MATRIX(4096), MATRIX(8192), MATRIX(32768), MATRIX(131072), MATRIX(1 << 20)};
static const struct case_dims choices[] = {TOPK(64),   TOPK(128),   TOPK(256),
                                           TOPK(1024), TOPK(32768), TOPK(131072)};
/* As wide as models are. */
static const struct case_dims norms[] = {MATRIX(1024), MATRIX(2048), MATRIX(4096), MATRIX(8192),
                                         MATRIX(16384)};
static const struct case_dims ropes[] = {HEADS(8, 128), HEADS(32, 128), HEADS(32, 64)};
/* 16384 tokens. */
static const struct case_dims attentions[] = {
    ATTENTION(4, 16, 4096, 128), ATTENTION(4, 32, 4096, 64), ATTENTION(4, 8, 4096, 256)};
/* 2048 and 16384 keys in parts of 256. */
static const struct case_dims combines[] = {{.parts = 8, .rows = 1, .head_dim = 128},
                                            {.parts = 64, .rows = 1, .head_dim = 128}};
static const struct case_dims small_attentions[] = {
    ATTENTION(1, 2, 128, 128), ATTENTION(1, 2, 128, 64), ATTENTION(1, 2, 128, 256)};

static const struct {
    const char *op;
    const struct case_dims *shapes;
    size_t count;
    const struct case_dims *counted; /* on a device that is not timed; NULL: the same */
} suites[] = {
    {"sum", LIST(reductions), NULL},    {"max", LIST(reductions), NULL},
    {"softmax", LIST(softmaxes), NULL}, {"log_softmax", LIST(softmaxes), NULL},
    {"lse", LIST(softmaxes), NULL},     {"softmax_topk", LIST(choices), NULL},
    {"layernorm", LIST(norms), NULL},   {"rmsnorm", LIST(norms), NULL},
    {"rope", LIST(ropes), NULL},        {"attention", LIST(attentions), small_attentions},
    {"attention_combine", LIST(combines), NULL},
};

const struct bench_copy_variant bench_copy_variants[] = {
    {"copy16_1", 1}, {"copy16_2", 2}, {"copy16_4", 4}, {0}};

bool bench_suite_shape(struct case_dims *out, const struct op *op, size_t i, bool timed) {
    for (size_t k = 0; k < sizeof suites / sizeof *suites; k++) {
        if (strcmp(suites[k].op, op->name) != 0 || i >= suites[k].count)
            continue;
        *out = timed || !suites[k].counted ? suites[k].shapes[i] : suites[k].counted[i];
        return true;
    }
    return false;
}

size_t bench_suite_rows(size_t row_bytes, bool timed) {
    const size_t wanted = (timed ? TIMED_BYTES : COUNTED_BYTES) / row_bytes;
    size_t rows = 1;
    while (2 * rows <= wanted + wanted / 2) /* the power of two that is nearest, or nearly */
        rows *= 2;
    return rows;
}

static bool is_attention(const struct op *op) {
    return strcmp(op->name, "attention") == 0;
}

/* Keys that query i sees: those up to its own place, counted from the end. */
static double causal_pairs(size_t queries, size_t keys) {
    double pairs = 0;
    for (size_t i = 0; i < queries; i++) {
        double seen = (double)(i + 1) + (double)keys - (double)queries;
        pairs += seen > 0 ? seen : 0;
    }
    return pairs;
}

double bench_flops(const struct op *op, const struct case_dims *dims,
                   const struct op_options *options) {
    if (!is_attention(op))
        return 0;
    const double pairs = options->causal ? causal_pairs(dims->queries, dims->keys)
                                         : (double)dims->queries * (double)dims->keys;
    return 4.0 * (double)dims->head_dim * (double)dims->batch * (double)dims->heads * pairs;
}

const char *bench_variant(const struct kernel *kernel, const struct op_options *options) {
    bool other = options->windowed || options->softcap != 0 || options->renormalise;
    for (size_t i = 3; is_attention(kernel->op) && i < op_input_count(kernel->op); i++)
        other = other || kernel_input(kernel, i); /* lengths, masks, biases */
    for (size_t i = 1; op_is_matrix(kernel->op) && i < op_input_count(kernel->op); i++)
        other = other || kernel_input(kernel, i);
    return other ? "other" : options->causal ? "causal" : "";
}
