/* oracle/tier_unit.c - ops whose rows are their own, on the ladder: which functions climb it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "oracle/op_impl.h"
#include "oracle/tier_attention.h"
#include "oracle/tier_impl.h"
#include "oracle/tier_norm.h"
#include "oracle/topk.h"

typedef status_t climb_fn(struct enclosure *out, enum tier *tier, const struct oracle_row *row);

static status_t climb_layernorm(struct enclosure *out, enum tier *tier,
                                const struct oracle_row *row) {
    return layernorm_tier_enclose(out, tier, row->norm);
}

static status_t climb_rmsnorm(struct enclosure *out, enum tier *tier,
                              const struct oracle_row *row) {
    return rmsnorm_tier_enclose(out, tier, row->norm);
}

static status_t climb_rope(struct enclosure *out, enum tier *tier, const struct oracle_row *row) {
    return rope_tier_enclose(out, tier, row->rope, 1);
}

static status_t climb_attention(struct enclosure *out, enum tier *tier,
                                const struct oracle_row *row) {
    return attention_tier_enclose(out, out + row->attention->value_dim, tier, row->attention, 1);
}

static status_t climb_topk(struct enclosure *out, enum tier *tier, const struct oracle_row *row) {
    const size_t k = row->topk->k;
    size_t *index = calloc(k + 1, sizeof *index);
    if (!index)
        return FAIL(ERR_NOMEM, "oracle: no memory for %zu indices", k);
    status_t st = softmax_topk_tier_enclose(index, out, tier, row->topk);
    for (size_t r = 0; st == OK && r < k; r++)
        out[k + r] = enclosure_exact(index[r] == SIZE_MAX ? (double)NAN : (double)index[r]);
    free(index);
    return st;
}

static const struct {
    enclose_fn *of;
    climb_fn *climb;
} ladders[] = {
    {layernorm_row_enclose, climb_layernorm}, {rmsnorm_row_enclose, climb_rmsnorm},
    {rope_row_enclose, climb_rope},           {attention_row_enclose, climb_attention},
    {topk_row_enclose, climb_topk},
};

bool unit_tier_enclose(status_t *st, struct enclosure *out, enum tier *tier, const struct op *op,
                       const struct oracle_row *row) {
    for (size_t i = 0; i < sizeof ladders / sizeof *ladders; i++)
        if (op->enclose == ladders[i].of) {
            *st = ladders[i].climb(out, tier, row);
            return true;
        }
    return false;
}

bool unit_tier_budgets(status_t *st, double *lo, double *hi, const struct op *op,
                       const struct oracle_row *row, const struct enclosure *want,
                       const struct numerics *numerics) {
    if (op->budget != attention_row_budget)
        return false;
    const size_t n = row->attention->value_dim;
    *st = attention_tier_budgets(lo, hi, lo + n, hi + n, row->attention, want, want + n, numerics);
    return true;
}
