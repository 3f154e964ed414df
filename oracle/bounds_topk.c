/* oracle/bounds_topk.c - budgets of softmax_topk, and which ranks a correct kernel may give. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "oracle/bounds_impl.h"
#include "oracle/outward.h"
#include "oracle/topk.h"

/*
 * What dividing twice adds: a quotient's error and half a step, in p_j and in the sum of the p; and
 * where p_j underflows a step of it, divided by a sum of at least 1/cols.
 */
static double divided_twice(double budget, double p, const struct division *division,
                            const struct topk_row *row, bool flush) {
    double once = compound(division->rel, division->nearest ? U32 : 0);
    double rel = compound(once, once / (1 - once));
    double step = flush ? 0x1p-125 : 0x1p-147;
    return budget + (p + budget) * rel + (double)row->row.cols * step;
}

status_t softmax_topk_budget(double *budget, const struct topk_row *row, const size_t *index,
                             const struct enclosure *want, const struct numerics *nu) {
    const size_t k = row->k, cols = row->row.cols;
    struct row_facts facts = row_examine(&row->row);
    if (facts.nan > 0 || facts.plus_inf > 0) {
        for (size_t r = 0; r < k; r++)
            budget[r] = 0;
        return OK;
    }
    struct division division;
    status_t st = division_of(&division, nu);
    if (st != OK)
        return st;
    double *x = malloc((cols + 1) * sizeof *x), *all = malloc((cols + 1) * sizeof *all);
    struct enclosure *p = calloc(cols + 1, sizeof *p);
    if (x == NULL || all == NULL || p == NULL)
        TRY(FAIL(ERR_NOMEM, "softmax_topk: no memory for a row of %zu", cols));
    if (row->renormalise) {
        for (size_t r = 0; r < k; r++)
            x[r] = row->row.x[index[r]];
        struct oracle_row part = {.x = x, .cols = k, .empty_row = row->row.empty_row};
        TRY(softmax_budget(budget, &part, want, nu));
        for (size_t r = 0; nu->divide_first && facts.finite > 0 && r < k; r++)
            if (isfinite(x[r]))
                budget[r] =
                    outward(divided_twice(budget[r], want[r].hi, &division, row, nu->flush), k);
    } else {
        for (size_t r = 0; r < k; r++) /* the budget of an entry looks at its own result only */
            p[index[r]] = want[r];
        TRY(softmax_budget(all, &row->row, p, nu));
        for (size_t r = 0; r < k; r++)
            budget[r] = all[index[r]];
    }
done:
    free(p);
    free(all);
    free(x);
    return st;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static int descending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* What every entry's computed probability may be, and each rank's. */
struct ranges {
    double *lo, *hi;               /* of entry i */
    double *sorted_lo, *sorted_hi; /* of rank r: the r-th largest of either */
    void *memory;
};

static status_t ranges_init(struct ranges *g, const struct oracle_row *row,
                            const struct numerics *nu) {
    const size_t cols = row->cols;
    struct enclosure *want = malloc((cols + 1) * sizeof *want);
    double *budget = malloc((cols + 1) * sizeof *budget);
    status_t st = OK;
    g->memory = malloc((4 * cols + 1) * sizeof(double));
    if (want == NULL || budget == NULL || g->memory == NULL)
        TRY(FAIL(ERR_NOMEM, "softmax_topk: no memory for a row of %zu", cols));
    g->lo = g->memory;
    g->hi = g->lo + cols;
    g->sorted_lo = g->hi + cols;
    g->sorted_hi = g->sorted_lo + cols;
    TRY(softmax_enclose(want, row));
    TRY(softmax_budget(budget, row, want, nu));
    for (size_t i = 0; i < cols; i++) {
        g->lo[i] = g->sorted_lo[i] = add_down(want[i].lo, -budget[i]);
        g->hi[i] = g->sorted_hi[i] = add_up(want[i].hi, budget[i]);
    }
    qsort(g->sorted_lo, cols, sizeof(double), descending);
    qsort(g->sorted_hi, cols, sizeof(double), descending);
done:
    free(budget);
    free(want);
    return st;
}

/* Can entry i stand at rank r? */
static bool admits(const struct topk_row *row, const size_t *index, const struct ranges *g,
                   const struct numerics *nu, size_t r, size_t i) {
    switch (nu->topk) {
    case TOPK_BY_INPUT:
        return i == index[r];
    case TOPK_TIES_FREE:
        return row->row.x[i] == row->row.x[index[r]];
    case TOPK_BY_PROBABILITY: /* rank r's value lies between the r-th largest ends */
        return g->memory == NULL || (g->hi[i] >= g->sorted_lo[r] && g->lo[i] <= g->sorted_hi[r]);
    }
    return false;
}

status_t softmax_topk_judge(size_t *wrong, const struct topk_row *row, const size_t *got,
                            const struct numerics *nu) {
    struct ranges g = {0};
    struct row_facts facts = row_examine(&row->row);
    size_t *index = malloc((row->k + 1) * sizeof *index);
    struct enclosure *p = malloc((row->k + 1) * sizeof *p);
    bool *used = calloc(row->row.cols + 1, sizeof *used);
    status_t st = OK;
    *wrong = row->k;
    if (index == NULL || p == NULL || used == NULL)
        TRY(FAIL(ERR_NOMEM, "softmax_topk: no memory for a row of %zu", row->row.cols));
    TRY(softmax_topk_enclose(index, p, row));
    if (facts.nan > 0 || facts.plus_inf > 0)
        goto done;
    if (nu->topk == TOPK_BY_PROBABILITY && facts.finite > 0)
        TRY(ranges_init(&g, &row->row, nu));
    for (size_t r = 0; r < row->k && *wrong == row->k; r++) {
        bool ok = got[r] < row->row.cols && !used[got[r]] && admits(row, index, &g, nu, r, got[r]);
        if (ok)
            used[got[r]] = true;
        else
            *wrong = r;
    }
done:
    free(g.memory);
    free(used);
    free(p);
    free(index);
    return st;
}
