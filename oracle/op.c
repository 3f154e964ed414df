/* oracle/op.c - the table of ops: one row each. */
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "oracle/op_impl.h"
#include "oracle/oracle_impl.h"

#define X_MATRIX                   \
    {                              \
        "x", TENSOR_REAL, false, { \
            DIM_ROWS, DIM_COLS     \
        }                          \
    }
#define MATRIX \
    .dims = {DIM_ROWS, DIM_COLS}, .unit_dims = 1, .unit_room = matrix_room, .unit = matrix_unit
/* The op is that of x + bias, where an entry whose mask is 0 is -Inf. */
#define MASKED_MATRIX                                              \
    .inputs = {X_MATRIX,                                           \
               {"mask", TENSOR_FLAG, true, {DIM_ROWS, DIM_COLS}},  \
               {"bias", TENSOR_REAL, true, {DIM_ROWS, DIM_COLS}}}, \
    MATRIX

#define Y_PER_ROW .result = OP_PER_ROW, .outputs = {{"y", TENSOR_REAL, false, {DIM_ROWS}}}
#define Y_PER_ELEMENT \
    .result = OP_PER_ELEMENT, .outputs = {{"y", TENSOR_REAL, false, {DIM_ROWS, DIM_COLS}}}

const struct op ops[] = {
    {.name = "sum",
     .formula = "sum_i x_i",
     .enclose = sum_enclose,
     .budget = sum_budget,
     .spread = sum_spread,
     .scale = sum_scale,
     Y_PER_ROW,
     .inputs = {X_MATRIX},
     MATRIX},
    {.name = "max",
     .formula = "max_i x_i",
     .enclose = max_enclose,
     .budget = max_budget,
     .spread = max_spread,
     .scale = max_scale,
     Y_PER_ROW,
     .inputs = {X_MATRIX},
     MATRIX},
    {.name = "softmax",
     .formula = "exp(x_j) / sum_i exp(x_i)",
     .enclose = softmax_enclose,
     .budget = softmax_budget,
     .spread = softmax_spread,
     Y_PER_ELEMENT,
     MASKED_MATRIX},
    {.name = "log_softmax",
     .formula = "x_j - log sum_i exp(x_i)",
     .enclose = log_softmax_enclose,
     .budget = log_softmax_budget,
     .spread = log_softmax_spread,
     Y_PER_ELEMENT,
     MASKED_MATRIX},
    {.name = "lse",
     .formula = "log sum_i exp(x_i)",
     .enclose = lse_enclose,
     .budget = lse_budget,
     .spread = lse_spread,
     .scale = max_scale,
     Y_PER_ROW,
     MASKED_MATRIX},
    {.name = "layernorm",
     .formula = "(x_j - mean) / sqrt(variance + eps) w_j + b_j",
     .enclose = layernorm_row_enclose,
     .budget = layernorm_row_budget,
     .scale = layernorm_scale,
     Y_PER_ELEMENT,
     .dims = {DIM_ROWS, DIM_COLS},
     .inputs = {{"x", TENSOR_REAL, false, {DIM_ROWS, DIM_COLS}},
                {"w", TENSOR_REAL, true, {DIM_COLS}},
                {"b", TENSOR_REAL, true, {DIM_COLS}}},
     .unit_dims = 1,
     .unit_room = norm_room,
     .unit = norm_unit},
    {.name = "rmsnorm",
     .formula = "x_j / sqrt(mean of x_i^2 + eps) w_j + b_j",
     .enclose = rmsnorm_row_enclose,
     .budget = rmsnorm_row_budget,
     .scale = rmsnorm_scale,
     Y_PER_ELEMENT,
     .dims = {DIM_ROWS, DIM_COLS},
     .inputs = {{"x", TENSOR_REAL, false, {DIM_ROWS, DIM_COLS}},
                {"w", TENSOR_REAL, true, {DIM_COLS}},
                {"b", TENSOR_REAL, true, {DIM_COLS}}},
     .unit_dims = 1,
     .unit_room = norm_room,
     .unit = norm_unit},
    {.name = "rope",
     .formula = "pairs of x turned by position base^(-2i/rotary_dim)",
     .enclose = rope_row_enclose,
     .budget = rope_row_budget,
     .scale = rope_scale,
     .result = OP_PER_ELEMENT,
     .dims = {DIM_ROWS, DIM_HEADS, DIM_HEAD_DIM},
     .inputs = {{"x", TENSOR_REAL, false, {DIM_ROWS, DIM_HEADS, DIM_HEAD_DIM}},
                {"positions", TENSOR_WHOLE, false, {DIM_ROWS}}},
     .outputs = {{"y", TENSOR_REAL, false, {DIM_ROWS, DIM_HEADS, DIM_HEAD_DIM}}},
     .unit_dims = 2,
     .unit_room = rope_room,
     .unit = rope_unit,
     .refuses = rope_refuses},
    {.name = "attention",
     .formula = "softmax(scale q k^T, masked) v, and log of its sum",
     .enclose = attention_row_enclose,
     .budget = attention_row_budget,
     .scale = attention_scale,
     .result = OP_PER_ELEMENT,
     .dims = {DIM_BATCH, DIM_HEADS, DIM_KV_HEADS, DIM_QUERIES, DIM_KEYS, DIM_HEAD_DIM},
     .inputs = {{"q", TENSOR_REAL, false, {DIM_BATCH, DIM_HEADS, DIM_QUERIES, DIM_HEAD_DIM}},
                {"k", TENSOR_REAL, false, {DIM_BATCH, DIM_KV_HEADS, DIM_KEYS, DIM_HEAD_DIM}},
                {"v", TENSOR_REAL, false, {DIM_BATCH, DIM_KV_HEADS, DIM_KEYS, DIM_HEAD_DIM}},
                {"lengths", TENSOR_WHOLE, true, {DIM_BATCH}},
                {"bias", TENSOR_REAL, true, {DIM_BATCH, DIM_HEADS, DIM_QUERIES, DIM_KEYS}},
                {"mask", TENSOR_FLAG, true, {DIM_BATCH, DIM_QUERIES, DIM_KEYS}},
                {"slopes", TENSOR_REAL, true, {DIM_HEADS}},
                {"sinks", TENSOR_REAL, true, {DIM_HEADS}},
                {"block_table", TENSOR_WHOLE, true, {DIM_BATCH, DIM_PAGES}}},
     .pool = {DIM_POOL, DIM_PAGE_KEYS, DIM_KV_HEADS, DIM_HEAD_DIM},
     .outputs = {{"o", TENSOR_REAL, false, {DIM_BATCH, DIM_HEADS, DIM_QUERIES, DIM_HEAD_DIM}},
                 {"lse", TENSOR_REAL, true, {DIM_BATCH, DIM_HEADS, DIM_QUERIES}}},
     .unit_dims = 3,
     .unit_room = attention_room,
     .unit = attention_unit,
     .sharers = attention_sharers,
     .shared_room = attention_shared_room,
     .refuses = attention_refuses},
    /* The parts of a row are keys whose logits are lse_p: unit_attention.c. */
    {.name = "attention_combine",
     .formula = "sum_p exp(lse_p - lse) o_p, lse = log sum_p exp(lse_p)",
     .enclose = attention_row_enclose,
     .budget = attention_row_budget,
     .scale = attention_scale,
     .result = OP_PER_ELEMENT,
     .dims = {DIM_PARTS, DIM_ROWS, DIM_HEAD_DIM},
     .inputs = {{"o_p", TENSOR_REAL, false, {DIM_PARTS, DIM_ROWS, DIM_HEAD_DIM}},
                {"lse_p", TENSOR_REAL, false, {DIM_PARTS, DIM_ROWS}}},
     .outputs = {{"o", TENSOR_REAL, false, {DIM_ROWS, DIM_HEAD_DIM}},
                 {"lse", TENSOR_REAL, true, {DIM_ROWS}}},
     .unit_dims = 1,
     .unit_room = combine_room,
     .unit = combine_unit},
    {.name = "softmax_topk",
     .formula = "the k largest of softmax(x) and where they stand",
     .enclose = topk_row_enclose,
     .budget = topk_row_budget,
     .judge_whole = topk_judge_whole,
     .result = OP_PER_ELEMENT,
     .dims = {DIM_ROWS, DIM_COLS, DIM_K},
     .inputs = {{"x", TENSOR_REAL, false, {DIM_ROWS, DIM_COLS}}},
     .outputs = {{"p", TENSOR_REAL, false, {DIM_ROWS, DIM_K}},
                 {"index", TENSOR_WHOLE, false, {DIM_ROWS, DIM_K}}},
     .unit_dims = 1,
     .unit_room = topk_room,
     .unit = topk_unit,
     .refuses = topk_refuses},
    {0},
};

const struct op *op_find(const char *name) {
    for (const struct op *op = ops; op->name != NULL; op++)
        if (strcmp(op->name, name) == 0)
            return op;
    return NULL;
}

enum dim op_row_length(const struct op *op) {
    for (size_t i = 0; op->dims[i] != DIM_NONE; i++)
        if (op->dims[i] == DIM_COLS)
            return DIM_COLS;
    return DIM_HEAD_DIM;
}

bool op_is_matrix(const struct op *op) {
    return op->unit == matrix_unit;
}

/* ---- tensors and units ----------------------------------------------------------------------- */

size_t op_input_count(const struct op *op) {
    size_t n = 0;
    while (n < OP_MAX_INPUTS && op->inputs[n].name)
        n++;
    return n;
}

size_t op_output_count(const struct op *op) {
    size_t n = 0;
    while (n < OP_MAX_OUTPUTS && op->outputs[n].name)
        n++;
    return n;
}

size_t op_block_table(const struct op *op) {
    size_t i = 0;
    while (i < op_input_count(op) && strcmp(op->inputs[i].name, "block_table") != 0)
        i++;
    return i < op_input_count(op) ? i : OP_MAX_INPUTS;
}

const enum dim *op_tensor_shape(const struct op *op, const struct op_tensor *t, bool paged) {
    for (size_t i = 0; paged && i < MAX_DIMS && t->shape[i] != DIM_NONE; i++)
        if (t->shape[i] == DIM_KV_HEADS)
            return op->pool;
    return t->shape;
}

/* The product of extents shape[from .. to-1], as far as there are any. */
static bool extent(size_t *out, const enum dim *shape, const struct case_dims *dims, size_t from,
                   size_t to) {
    *out = 1;
    for (size_t i = from; i < to && shape[i] != DIM_NONE; i++)
        if (!size_mul(out, *out, dim_get(dims, shape[i])))
            return false;
    return true;
}

bool op_tensor_count(size_t *out, const enum dim *shape, const struct case_dims *dims) {
    return extent(out, shape, dims, 0, MAX_DIMS);
}

bool op_unit_count(size_t *out, const struct op *op, const struct case_dims *dims) {
    return extent(out, op->outputs[0].shape, dims, 0, op->unit_dims);
}

static size_t per_unit(const struct op *op, const struct case_dims *dims, size_t output) {
    size_t n;
    return extent(&n, op->outputs[output].shape, dims, op->unit_dims, MAX_DIMS) ? n : SIZE_MAX;
}

size_t op_result_count(const struct op *op, const struct case_dims *dims) {
    size_t n = 0;
    for (size_t o = 0; o < op_output_count(op); o++)
        n += per_unit(op, dims, o);
    return n;
}

struct op_place op_place_of(const struct op *op, const struct case_dims *dims, size_t unit,
                            size_t r) {
    size_t output = 0, n = per_unit(op, dims, 0);
    while (r >= n && output + 1 < op_output_count(op)) {
        r -= n;
        n = per_unit(op, dims, ++output);
    }
    return (struct op_place){output, unit * n + r};
}

size_t op_unit_of(const struct op *op, size_t input, const struct case_dims *dims, size_t i) {
    const enum dim *shape = op->inputs[input].shape, *units = op->outputs[0].shape;
    size_t at[DIM_ALL] = {0}, rank = 0, unit = 0;
    bool has[DIM_ALL] = {0};
    while (rank < MAX_DIMS && shape[rank] != DIM_NONE)
        rank++;
    while (rank-- > 0) { /* the last dimension runs fastest */
        size_t n = dim_get(dims, shape[rank]);
        at[shape[rank]] = n ? i % n : 0;
        i = n ? i / n : 0;
        has[shape[rank]] = true;
    }
    for (size_t k = 0; k < op->unit_dims; k++) {
        if (!has[units[k]])
            return SIZE_MAX;
        unit = unit * dim_get(dims, units[k]) + at[units[k]];
    }
    return unit;
}

const char *op_refuses(const struct op *op, const struct case_dims *dims,
                       const struct op_options *options) {
    return op->refuses ? op->refuses(dims, options) : NULL;
}

void oracle_thread_done(void) {
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE);
}
