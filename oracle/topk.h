/*
 * oracle/topk.h - softmax_topk: the k largest entries of a row and their probabilities.
 *
 *   index[r]: the entry of rank r, largest first; of equal entries the smaller index comes first.
 *   p[r] = softmax(x)[index[r]], or with `renormalise` softmax over the k chosen entries only.
 *
 * The order is that of the exact inputs, which is that of the exact probabilities.  -Inf ranks last
 * and has probability 0.  A NaN or +Inf in the row leaves no order of probabilities: all p are NaN
 * and all indices SIZE_MAX, which are not judged.  A row of nothing but -Inf has the indices
 * 0 .. k-1 and what empty_row says (of cols entries; of k with `renormalise`).
 */
#ifndef ORACLE_TOPK_H
#define ORACLE_TOPK_H

#include "base/status.h"
#include "oracle/bounds.h"
#include "oracle/enclosure.h"
#include "oracle/row.h"

struct topk_row {
    struct oracle_row row;
    size_t k; /* <= row.cols */
    bool renormalise;
};

/* index[0 .. k-1], p[0 .. k-1]; p as tight as softmax's.  ERR_USAGE for k > cols; ERR_NOMEM,
 * ERR_UNDECIDED. */
MUST_CHECK status_t softmax_topk_enclose(size_t *index, struct enclosure *p,
                                         const struct topk_row *row);

/*
 * budget[0 .. k-1]: for p at its own rank, as softmax's.  With `renormalise` and
 * numerics->divide_first the kernel divides by the row's sum first and by the chosen ones' after.
 * index, want: what enclose gave.
 */
MUST_CHECK status_t softmax_topk_budget(double *budget, const struct topk_row *row,
                                        const size_t *index, const struct enclosure *want,
                                        const struct numerics *numerics);

/*
 * *wrong = the first rank at which a correct kernel cannot have put got[rank], or k if there is
 * none.  numerics->topk says what it ranks by; with TOPK_BY_PROBABILITY entries may stand where
 * computed probabilities within their budgets allow.  An index twice, or out of the row, is wrong.
 */
MUST_CHECK status_t softmax_topk_judge(size_t *wrong, const struct topk_row *row, const size_t *got,
                                       const struct numerics *numerics);

#endif
