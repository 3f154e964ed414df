/* oracle/unit.c - one output row of a case, and all that it depends on, as exact values. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "oracle/op_impl.h"
#include "oracle/outward.h"

/* Memory of `count` doubles, not cleared, behind a header; NULL: none left. */
static void *room_for(size_t header, size_t count) {
    size_t bytes;
    if (!size_mul(&bytes, count, sizeof(double)) || bytes > SIZE_MAX - header)
        return NULL;
    return malloc(header + bytes + 1);
}

/* lender: its shared part is used; NULL: the unit has its own. */
static status_t unit_init(struct op_unit *u, const struct op *op, const struct op_case *c,
                          const struct op_unit *lender) {
    *u = (struct op_unit){.op = op, .c = *c, .borrowed = lender != NULL};
    u->row.empty_row = c->empty_row;
    u->memory = room_for(0, op->unit_room(&u->c));
    if (lender)
        u->shared = lender->shared;
    else if (op->shared_room)
        u->shared = room_for(sizeof *u->shared, op->shared_room(&u->c));
    if (!u->memory || (op->shared_room && !u->shared)) {
        op_unit_clear(u);
        return FAIL(ERR_NOMEM, "oracle: no memory for one row of %s", op->name);
    }
    if (u->shared && !lender)
        u->shared->loaded = SIZE_MAX;
    return OK;
}

status_t op_unit_init(struct op_unit *u, const struct op *op, const struct op_case *c) {
    return unit_init(u, op, c, NULL);
}

void op_unit_at(struct op_unit *u, size_t index) {
    u->op->unit(u, index);
}

void op_unit_clear(struct op_unit *u) {
    free(u->memory);
    if (!u->borrowed)
        free(u->shared);
    *u = (struct op_unit){0};
}

size_t op_sharers(const struct op *op, const struct case_dims *dims) {
    size_t n = op->sharers ? op->sharers(dims) : 1;
    return n > 0 ? n : 1;
}

status_t op_units_init(struct op_units *u, size_t room, const struct op *op,
                       const struct op_case *c) {
    *u = (struct op_units){.unit = calloc(room, sizeof *u->unit)};
    if (!u->unit)
        return FAIL(ERR_NOMEM, "oracle: no memory for %zu rows of %s", room, op->name);
    for (; u->room < room; u->room++) {
        status_t st = unit_init(&u->unit[u->room], op, c, u->room > 0 ? &u->unit[0] : NULL);
        if (st != OK)
            return st; /* op_units_clear frees those before it */
    }
    return OK;
}

void op_units_at(struct op_units *u, size_t first, size_t n) {
    for (size_t i = 0; i < n; i++)
        op_unit_at(&u->unit[i], first + i);
}

void op_units_clear(struct op_units *u) {
    for (size_t i = u->room; i > 0; i--)
        op_unit_clear(&u->unit[i - 1]);
    free(u->unit);
    *u = (struct op_units){0};
}

/* ---- matrices -------------------------------------------------------------------------------- */

enum { IN_X, IN_MASK, IN_BIAS };

/* x, and with an additive mask what the sums leave. */
size_t matrix_room(const struct op_case *c) {
    return c->in[IN_BIAS].type ? 2 * c->dims.cols : c->dims.cols;
}

/* x += bias, exactly: *row.low is what a double does not hold, if anything. */
static void add_bias(struct oracle_row *row, double *x, double *low, const struct tensor *bias,
                     size_t first, size_t cols) {
    row->added = true;
    row->low = NULL;
    tensor_row(low, bias, first, cols);
    for (size_t j = 0; j < cols; j++) {
        const double sum = x[j] + low[j];
        low[j] = isfinite(sum) ? two_sum_error(x[j], low[j], sum) : 0;
        x[j] = sum;
        if (low[j] != 0)
            row->low = low;
    }
}

void matrix_unit(struct op_unit *u, size_t index) {
    size_t cols = u->c.dims.cols;
    const struct tensor *mask = &u->c.in[IN_MASK];
    tensor_row(u->memory, &u->c.in[IN_X], index * cols, cols);
    double *low = u->memory + cols; /* if there is a bias */
    if (u->c.in[IN_BIAS].type)
        add_bias(&u->row, u->memory, low, &u->c.in[IN_BIAS], index * cols, cols);
    for (size_t j = 0; j < cols; j++)
        if ((mask->type && tensor_get(mask, index * cols + j) == 0) ||
            (u->c.options.causal && j + u->c.dims.rows > index + cols)) {
            u->memory[j] = -INFINITY;
            if (u->row.low)
                low[j] = 0;
        }
    u->row.x = u->memory;
    u->row.cols = cols;
}

/* ---- norms ----------------------------------------------------------------------------------- */

enum { IN_NORM_W = 1, IN_NORM_B };

size_t norm_room(const struct op_case *c) {
    return 3 * c->dims.cols;
}

/* A vector that all units share, read once it is there; NULL if the case has none. */
static const double *shared(double *room, const struct tensor *t, size_t n) {
    if (!t->type)
        return NULL;
    tensor_row(room, t, 0, n);
    return room;
}

void norm_unit(struct op_unit *u, size_t index) {
    size_t cols = u->c.dims.cols;
    struct norm_row *n = &u->own.norm;
    tensor_row(u->memory, &u->c.in[IN_X], index * cols, cols);
    *n = (struct norm_row){.x = u->memory,
                           .cols = cols,
                           .weight = shared(u->memory + cols, &u->c.in[IN_NORM_W], cols),
                           .bias = shared(u->memory + 2 * cols, &u->c.in[IN_NORM_B], cols),
                           .eps = u->c.options.eps,
                           .contract = u->c.options.contract,
                           .rounded = u->c.options.rounded};
    u->row.norm = n;
    u->row.cols = cols;
}

status_t layernorm_row_enclose(struct enclosure *out, const struct oracle_row *row) {
    return layernorm_enclose(out, row->norm);
}

status_t rmsnorm_row_enclose(struct enclosure *out, const struct oracle_row *row) {
    return rmsnorm_enclose(out, row->norm);
}

status_t layernorm_row_budget(double *budget, const struct oracle_row *row,
                              const struct enclosure *want, const struct numerics *numerics) {
    return layernorm_budget(budget, row->norm, want, numerics);
}

status_t rmsnorm_row_budget(double *budget, const struct oracle_row *row,
                            const struct enclosure *want, const struct numerics *numerics) {
    return rmsnorm_budget(budget, row->norm, want, numerics);
}

/* ---- rope ------------------------------------------------------------------------------------ */

enum { IN_ROPE_POSITIONS = 1 };

size_t rope_room(const struct op_case *c) {
    return c->dims.head_dim;
}

void rope_unit(struct op_unit *u, size_t index) {
    size_t head_dim = u->c.dims.head_dim, token = index / u->c.dims.heads;
    struct rope_row *r = &u->own.rope;
    tensor_row(u->memory, &u->c.in[IN_X], index * head_dim, head_dim);
    *r = (struct rope_row){.x = u->memory,
                           .head_dim = head_dim,
                           .rotary_dim = u->c.options.rotary_dim,
                           .layout = u->c.options.layout,
                           .position = tensor_get(&u->c.in[IN_ROPE_POSITIONS], token),
                           .base = u->c.options.base};
    u->row.rope = r;
    u->row.cols = head_dim;
}

const char *rope_refuses(const struct case_dims *dims, const struct op_options *options) {
    static _Thread_local char reason[96];
    if (options->rotary_dim % 2 == 0 && options->rotary_dim <= dims->head_dim)
        return NULL;
    snprintf(reason, sizeof reason,
             "rotary_dim = %zu: expected an even number, at most head_dim = %zu",
             options->rotary_dim, dims->head_dim);
    return reason;
}

status_t rope_row_enclose(struct enclosure *out, const struct oracle_row *row) {
    return rope_enclose(out, row->rope);
}

status_t rope_row_budget(double *budget, const struct oracle_row *row, const struct enclosure *want,
                         const struct numerics *numerics) {
    return rope_budget(budget, row->rope, want, numerics);
}

/* ---- softmax_topk ---------------------------------------------------------------------------- */

size_t topk_room(const struct op_case *c) {
    return c->dims.cols;
}

void topk_unit(struct op_unit *u, size_t index) {
    struct topk_row *t = &u->own.topk;
    size_t cols = u->c.dims.cols;
    tensor_row(u->memory, &u->c.in[IN_X], index * cols, cols);
    *t = (struct topk_row){.row = {.x = u->memory, .cols = cols, .empty_row = u->c.empty_row},
                           .k = u->c.dims.k,
                           .renormalise = u->c.options.renormalise};
    u->row.topk = t;
    u->row.cols = 2 * t->k;
}

const char *topk_refuses(const struct case_dims *dims, const struct op_options *options) {
    static _Thread_local char reason[96];
    (void)options;
    if (dims->k <= dims->cols)
        return NULL;
    snprintf(reason, sizeof reason, "k = %zu: expected at most cols = %zu", dims->k, dims->cols);
    return reason;
}

/* p, then the indices: exact, or NaN where there is no order. */
status_t topk_row_enclose(struct enclosure *out, const struct oracle_row *row) {
    const size_t k = row->topk->k;
    size_t *index = calloc(k + 1, sizeof *index);
    if (!index)
        return FAIL(ERR_NOMEM, "oracle: no memory for %zu indices", k);
    status_t st = softmax_topk_enclose(index, out, row->topk);
    for (size_t r = 0; st == OK && r < k; r++)
        out[k + r] = enclosure_exact(index[r] == SIZE_MAX ? (double)NAN : (double)index[r]);
    free(index);
    return st;
}

/* Of p; indices have none: they are right or wrong. */
status_t topk_row_budget(double *budget, const struct oracle_row *row, const struct enclosure *want,
                         const struct numerics *numerics) {
    const size_t k = row->topk->k;
    size_t *index = calloc(k + 1, sizeof *index);
    if (!index)
        return FAIL(ERR_NOMEM, "oracle: no memory for %zu indices", k);
    for (size_t r = 0; r < k; r++) {
        index[r] = enclosure_is_nan(want[k + r]) ? SIZE_MAX : (size_t)want[k + r].lo;
        budget[k + r] = 0;
    }
    status_t st = softmax_topk_budget(budget, row->topk, index, want, numerics);
    free(index);
    return st;
}

status_t topk_judge_whole(size_t *wrong, const struct oracle_row *row, const size_t *got,
                          const struct numerics *numerics) {
    return softmax_topk_judge(wrong, row->topk, got, numerics);
}
