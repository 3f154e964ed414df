/*
 * gate/order_pages.c - what a paged cache must not show: where its pages lie, and what nobody uses.
 *
 *   moved pages    the pool's pages in another order, and the table with them
 *   unused slots   other values in all slots that no key of a sequence has, and other numbers in the
 *                  table where no key needs a page: one that is not of the pool
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "gate/order_impl.h"

enum { IN_K = 1, IN_V = 2 };

/* The case's inputs once more, to be changed. */
struct copy {
    void *x;
    struct op_case c;
};

static status_t copy_case(struct copy *out, const struct order *o) {
    struct tensor_block block;
    status_t st = OK;
    *out = (struct copy){.c = case_for_op(o->c, o->kernel->empty_row)};
    TRY(kernel_inputs(&block, o->kernel, o->c->dims, NULL));
    out->x = malloc(block.bytes + 1);
    if (!out->x)
        TRY(FAIL(ERR_NOMEM, "no memory for a case of %s", o->kernel->name));
    memcpy(out->x, o->c->x, block.bytes);
    TRY(kernel_inputs(&block, o->kernel, o->c->dims, out->x));
    memcpy(out->c.in, block.tensors, sizeof out->c.in);
done:
    return st;
}

static status_t same_bits(struct order *o, const struct copy *copy, const char *what,
                          const char *due) {
    void *y = malloc(o->y_bytes);
    bool clean = false;
    status_t st = OK;
    if (!y)
        return FAIL(ERR_NOMEM, "no memory for an output of %s", o->kernel->name);
    TRY(order_run(o, y, &clean, copy->x, o->c->dims, 0, what, NULL));
    if (clean)
        order_compare_bits(o, &(struct variant){.what = what,
                                                .number = 1,
                                                .y = y,
                                                .dims = o->c->dims,
                                                .same_bits = true,
                                                .due = due,
                                                .count = o->units});
done:
    free(y);
    return st;
}

/* Page p becomes page pool - 1 - p. */
static status_t check_moved(struct order *o, size_t table) {
    const size_t pool = dim_get(&o->c->dims, DIM_POOL);
    struct copy copy = {0};
    status_t st = OK;
    TRY(copy_case(&copy, o));
    for (size_t i = 0; i < copy.c.in[table].count; i++) {
        double page = tensor_get(&copy.c.in[table], i);
        if (page >= 0 && page < (double)pool)
            tensor_set(&copy.c.in[table], i, (double)pool - 1 - page);
    }
    for (size_t input = IN_K; input <= IN_V; input++) {
        const struct tensor *to = &copy.c.in[input], *from = &o->c->in[input];
        const size_t n = to->count / pool * to->type->size;
        for (size_t p = 0; p < pool; p++)
            memcpy((char *)to->data + (pool - 1 - p) * n, (const char *)from->data + p * n, n);
    }
    TRY(same_bits(o, &copy, "moved pages", "the same keys from other pages"));
done:
    free(copy.x);
    return st;
}

static void mark(bool *used, const struct op_case *c) {
    size_t row;
    for (size_t b = 0; b < c->dims.batch; b++)
        for (size_t j = 0; j < attention_keys_used(c, b); j++)
            for (size_t h = 0; h < c->dims.kv_heads; h++)
                if (attention_key_row(&row, c, b, h, j))
                    used[row] = true;
}

static status_t check_unused(struct order *o, size_t table) {
    const struct case_dims *d = &o->c->dims;
    const size_t rows = o->c->in[IN_K].count / d->head_dim, pages = dim_get(d, DIM_PAGES);
    struct copy copy = {0};
    bool *used = calloc(rows + 1, sizeof *used);
    status_t st = OK;
    TRY(copy_case(&copy, o));
    if (!used)
        TRY(FAIL(ERR_NOMEM, "no memory for %zu slots of a pool", rows));
    mark(used, &copy.c);
    for (size_t row = 0; row < rows; row++)
        for (size_t i = row * d->head_dim; !used[row] && i < (row + 1) * d->head_dim; i++) {
            tensor_set(&copy.c.in[IN_K], i, i % 3 ? 100 : INFINITY);
            tensor_set(&copy.c.in[IN_V], i, i % 2 ? -100 : INFINITY);
        }
    for (size_t i = 0; i < copy.c.in[table].count; i++)
        if (i % pages * PAGE_KEYS >= attention_keys_used(&copy.c, i / pages))
            tensor_set(&copy.c.in[table], i, 0x7fff0000);
    TRY(same_bits(o, &copy, "unused slots", "nobody uses them"));
done:
    free(used);
    free(copy.x);
    return st;
}

status_t order_pages(struct order *o) {
    const size_t table = op_block_table(o->kernel->op);
    status_t st = OK;
    TRY(check_moved(o, table));
    TRY(check_unused(o, table));
done:
    return st;
}
