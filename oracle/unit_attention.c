/* oracle/unit_attention.c - one query row of one head of a case. */
#include <math.h>
#include <stdio.h>

#include "oracle/op_impl.h"

enum { IN_Q, IN_K, IN_V, IN_LENGTHS, IN_BIAS, IN_MASK, IN_SLOPES, IN_SINKS, IN_BLOCK_TABLE };

/* q, a sink; bias and a mask of bytes where there are any. */
size_t attention_room(const struct op_case *c) {
    const struct case_dims *d = &c->dims;
    return d->head_dim + 1 + (c->in[IN_BIAS].type ? d->keys : 0) +
           (c->in[IN_MASK].type ? d->keys / sizeof(double) + 1 : 0);
}

/* k and v. */
size_t attention_shared_room(const struct op_case *c) {
    return 2 * c->dims.keys * c->dims.head_dim;
}

/* The queries of a head, and of all heads with its keys and values. */
size_t attention_sharers(const struct case_dims *d) {
    return d->kv_heads > 0 ? d->heads / d->kv_heads * d->queries : 0;
}

size_t attention_keys_used(const struct op_case *c, size_t batch) {
    if (!c->in[IN_LENGTHS].type)
        return c->dims.keys;
    double length = tensor_get(&c->in[IN_LENGTHS], batch);
    return length <= 0 ? 0 : length >= (double)c->dims.keys ? c->dims.keys : (size_t)length;
}

bool attention_key_row(size_t *row, const struct op_case *c, size_t batch, size_t kv_head,
                       size_t key) {
    const struct case_dims *d = &c->dims;
    const struct tensor *table = &c->in[IN_BLOCK_TABLE];
    if (!table->type) {
        *row = (batch * d->kv_heads + kv_head) * d->keys + key;
        return true;
    }
    double page = tensor_get(table, batch * dim_get(d, DIM_PAGES) + key / PAGE_KEYS);
    if (!(page >= 0 && page < (double)dim_get(d, DIM_POOL)))
        return false;
    *row = ((size_t)page * PAGE_KEYS + key % PAGE_KEYS) * d->kv_heads + kv_head;
    return true;
}

/* Keys that are not real are not looked for. */
static void load_keys(struct op_unit *u, size_t batch, size_t kv_head) {
    const size_t n = u->c.dims.head_dim, own = batch * u->c.dims.kv_heads + kv_head;
    const size_t used = attention_keys_used(&u->c, batch);
    double *k = u->shared->values, *v = k + u->c.dims.keys * n;
    size_t row;
    if (u->shared->loaded == own)
        return;
    for (size_t j = 0; j < used; j++) {
        bool there = attention_key_row(&row, &u->c, batch, kv_head, j);
        for (size_t c = 0; !there && c < n; c++)
            k[j * n + c] = v[j * n + c] = NAN;
        if (!there)
            continue;
        tensor_row(k + j * n, &u->c.in[IN_K], row * n, n);
        tensor_row(v + j * n, &u->c.in[IN_V], row * n, n);
    }
    u->shared->loaded = own;
}

void attention_unit(struct op_unit *u, size_t index) {
    const struct op_case *c = &u->c;
    const struct case_dims *d = &c->dims;
    const struct op_options *o = &c->options;
    const struct tensor *in = c->in;
    size_t query = index % d->queries, head = index / d->queries % d->heads;
    size_t batch = index / d->queries / d->heads;
    size_t kv_head = head / (d->heads / d->kv_heads);
    double *q = u->memory, *sink = q + d->head_dim, *bias = sink + 1;
    unsigned char *mask = (unsigned char *)(bias + (in[IN_BIAS].type ? d->keys : 0));
    struct attention_row *r = &u->own.attention;

    tensor_row(q, &in[IN_Q], index * d->head_dim, d->head_dim);
    load_keys(u, batch, kv_head);
    *r = (struct attention_row){.q = q,
                                .k = u->shared->values,
                                .v = u->shared->values + d->keys * d->head_dim,
                                .k_stride = d->head_dim,
                                .v_stride = d->head_dim,
                                .head_dim = d->head_dim,
                                .value_dim = d->head_dim,
                                .keys = d->keys,
                                .keys_used = attention_keys_used(c, batch),
                                .query = query,
                                .queries = d->queries,
                                .scale = o->scale,
                                .softcap = o->softcap,
                                .causal = o->causal,
                                .windowed = o->windowed,
                                .window_left = o->window_left,
                                .window_right = o->window_right,
                                .window_sinks = o->window_sinks};
    if (in[IN_BIAS].type) {
        tensor_row(bias, &in[IN_BIAS], index * d->keys, d->keys);
        r->bias = bias;
    }
    if (in[IN_MASK].type) {
        for (size_t j = 0; j < d->keys; j++)
            mask[j] = tensor_get(&in[IN_MASK], (batch * d->queries + query) * d->keys + j) != 0;
        r->mask = mask;
    }
    if (in[IN_SLOPES].type)
        r->alibi_slope = tensor_get(&in[IN_SLOPES], head);
    if (in[IN_SINKS].type) {
        *sink = tensor_get(&in[IN_SINKS], head);
        r->sink = sink;
    }
    u->row.attention = r;
    u->row.cols = d->head_dim + 1;
}

const char *attention_refuses(const struct case_dims *dims, const struct op_options *options) {
    static _Thread_local char reason[96];
    (void)options;
    if (dims->kv_heads > 0 && dims->heads % dims->kv_heads == 0)
        return NULL;
    snprintf(reason, sizeof reason, "heads = %zu: expected a multiple of kv_heads = %zu",
             dims->heads, dims->kv_heads);
    return reason;
}

/* ---- attention_combine ----------------------------------------------------------------------- */

enum { IN_O_P, IN_LSE_P };

/* o_p and lse_p of one row. */
size_t combine_room(const struct op_case *c) {
    return c->dims.parts * (c->dims.head_dim + 1);
}

/*
 * Parts are keys: lse_p is the logit, o_p the value.  A part of lse -Inf is a key that is not there
 * (attention.h, bias), so that its o_p may be NaN.
 */
void combine_unit(struct op_unit *u, size_t index) {
    const struct case_dims *d = &u->c.dims;
    double *o_p = u->memory, *lse_p = o_p + d->parts * d->head_dim;
    struct attention_row *r = &u->own.attention;
    for (size_t p = 0; p < d->parts; p++) {
        tensor_row(o_p + p * d->head_dim, &u->c.in[IN_O_P], (p * d->rows + index) * d->head_dim,
                   d->head_dim);
        lse_p[p] = tensor_get(&u->c.in[IN_LSE_P], p * d->rows + index);
    }
    *r = (struct attention_row){.q = o_p, /* no entry of which is read, nor of k */
                                .k = o_p,
                                .v = o_p,
                                .v_stride = d->head_dim,
                                .value_dim = d->head_dim,
                                .keys = d->parts,
                                .keys_used = d->parts,
                                .queries = 1,
                                .scale = 1,
                                .bias = lse_p};
    u->row.attention = r;
    u->row.cols = d->head_dim + 1;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* o, then lse. */
status_t attention_row_enclose(struct enclosure *out, const struct oracle_row *row) {
    return attention_enclose(out, out + row->attention->value_dim, row->attention);
}

status_t attention_row_budget(double *budget, const struct oracle_row *row,
                              const struct enclosure *want, const struct numerics *numerics) {
    size_t n = row->attention->value_dim;
    return attention_budget(budget, budget + n, row->attention, want, want + n, numerics);
}
