/* oracle/topk.c - the k largest entries and their softmax.  Ranks are exact: inputs compared. */
#include "oracle/topk.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "oracle/oracle_impl.h"
#include "oracle/tier.h"

struct ranked {
    double x;
    size_t index;
};

static int compare_ranked(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->x != y->x)
        return x->x > y->x ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* index[0 .. k-1] of a row without NaN; -0 and 0 are equal. */
static status_t rank(size_t *index, const struct topk_row *row) {
    struct ranked *all = malloc((row->row.cols + 1) * sizeof *all);
    if (all == NULL)
        return FAIL(ERR_NOMEM, "softmax_topk: no memory for a row of %zu", row->row.cols);
    for (size_t i = 0; i < row->row.cols; i++)
        all[i] = (struct ranked){row->row.x[i], i};
    qsort(all, row->row.cols, sizeof *all, compare_ranked);
    for (size_t r = 0; r < row->k; r++)
        index[r] = all[r].index;
    free(all);
    return OK;
}

/* The chosen entries as a row of their own, in the caller's x. */
static struct oracle_row chosen(double *x, const struct topk_row *row, const size_t *index) {
    for (size_t r = 0; r < row->k; r++)
        x[r] = row->row.x[index[r]];
    return (struct oracle_row){.x = x, .cols = row->k, .empty_row = row->row.empty_row};
}

status_t softmax_topk_tier_enclose(size_t *index, struct enclosure *p, enum tier *tier,
                                   const struct topk_row *row) {
    if (row->k > row->row.cols)
        return FAIL(ERR_USAGE, "softmax_topk: %zu of a row of %zu", row->k, row->row.cols);
    struct row_facts facts = row_examine(&row->row);
    if (facts.nan > 0 || facts.plus_inf > 0) {
        enclosure_fill(p, row->k, enclosure_exact(NAN));
        for (size_t r = 0; r < row->k; r++)
            index[r] = SIZE_MAX;
        return OK;
    }
    double *x = NULL;
    struct enclosure *all = NULL;
    status_t st = OK;
    TRY(rank(index, row));
    x = malloc((row->k + 1) * sizeof *x);
    all = malloc((row->row.cols + 1) * sizeof *all);
    if (x == NULL || all == NULL)
        TRY(FAIL(ERR_NOMEM, "softmax_topk: no memory for a row of %zu", row->row.cols));
    if (row->renormalise) {
        struct oracle_row part = chosen(x, row, index);
        TRY(tier_enclose(p, tier, op_find("softmax"), &part));
    } else {
        TRY(tier_enclose(all, tier, op_find("softmax"), &row->row));
        for (size_t r = 0; r < row->k; r++)
            p[r] = all[index[r]];
    }
done:
    free(all);
    free(x);
    return st;
}

status_t softmax_topk_enclose(size_t *index, struct enclosure *p, const struct topk_row *row) {
    enum tier tier = TIER_MPFR;
    return softmax_topk_tier_enclose(index, p, &tier, row);
}
