/* oracle/tier_unit.c - ops whose rows are their own, on the ladder: which functions climb it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- attention, row by row into what its functions take -------------------------------------------- */

/* count copies of what the rows point to; NULL: no memory.  Freed by the caller. */
static struct attention_row *attention_rows(const struct oracle_row *const *rows, size_t count) {
    struct attention_row *copy = calloc(count + 1, sizeof *copy);
    for (size_t r = 0; copy && r < count; r++)
        copy[r] = *rows[r]->attention;
    return copy;
}

static status_t enclose_attention(struct enclosure *out, enum tier *tier,
                                  const struct oracle_row *const *rows, size_t count) {
    const size_t dim = rows[0]->attention->value_dim;
    struct attention_row *copy = attention_rows(rows, count);
    struct enclosure *o = calloc(count * (dim + 1), sizeof *o), *lse = o + count * dim;
    status_t st = OK;
    if (!copy || !o)
        TRY(FAIL(ERR_NOMEM, "attention: no memory for %zu rows", count));
    TRY(attention_tier_enclose(o, lse, tier, copy, count));
    for (size_t r = 0; r < count; r++) {
        memcpy(out + r * (dim + 1), o + r * dim, dim * sizeof *out);
        out[r * (dim + 1) + dim] = lse[r];
    }
done:
    free(copy);
    free(o);
    return st;
}

bool unit_tier_enclose_rows(status_t *st, struct enclosure *out, enum tier *tier,
                            const struct op *op, const struct oracle_row *const *rows, size_t count,
                            size_t n) {
    if (op->enclose != attention_row_enclose || count == 0 || n != rows[0]->cols)
        return false;
    *st = enclose_attention(out, tier, rows, count);
    return true;
}

/* got: o, or o and lse. */
static status_t attention_looks(struct tier_extremes *out, const struct oracle_row *const *rows,
                                size_t count, const double *got, size_t n,
                                const struct numerics *numerics) {
    const size_t dim = rows[0]->attention->value_dim;
    struct attention_row *copy = attention_rows(rows, count);
    double *o = calloc(count * (dim + 1) + 1, sizeof *o), *lse = o + count * dim;
    status_t st = OK;
    if (!copy || !o)
        TRY(FAIL(ERR_NOMEM, "attention: no memory for %zu rows", count));
    for (size_t r = 0; r < count; r++) {
        memcpy(o + r * dim, got + r * n, dim * sizeof *o);
        lse[r] = got[r * n + n - 1];
    }
    TRY(attention_within(out, copy, count, o, n > dim ? lse : NULL, numerics));
done:
    free(copy);
    free(o);
    return st;
}

bool unit_tier_within(status_t *st, struct tier_extremes *out, const struct op *op,
                      const struct oracle_row *const *rows, size_t count, const double *got,
                      size_t n, const struct numerics *numerics) {
    if (op->enclose != attention_row_enclose || op->budget != attention_row_budget || count == 0 ||
        n < rows[0]->attention->value_dim)
        return false;
    *st = attention_looks(out, rows, count, got, n, numerics);
    return true;
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
