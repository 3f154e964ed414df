/*
 * oracle/attention.h - attention for one query row of one head: o and lse, enclosures and budgets.
 *
 *   z_j = scale (q . k_j);  z_j = softcap tanh(z_j / softcap) if softcap > 0;
 *   z_j += bias_j;  z_j -= alibi_slope |query + keys_used - queries - j|;  then the mask;
 *   P = softmax over the visible keys (and the sink);  o = sum_j P_j v_j;
 *   lse = log(sum_j e^z_j (+ e^sink)), base e.
 *
 * Key j is visible if all of these hold:
 *   j < keys_used                                  variable length, key padding
 *   causal: j <= at, at = query + keys_used - queries   the last query sees the last key
 *   windowed: at - window_left <= j <= at + window_right, or j < window_sinks
 *   mask == NULL or mask[j] != 0;  bias == NULL or bias[j] is not -Inf
 * An invisible key takes no part: its k and v may be NaN.  If none is visible o = 0 and lse is -Inf
 * (the sink, if there is one).
 *
 * Special values (docs/numerics.md#attention): a NaN in a visible logit makes o and lse NaN; +Inf
 * makes o NaN and lse +Inf; a logit of -Inf has weight 0.  v of a visible key acts as IEEE has it:
 * an infinity under a positive weight is an infinity, 0 Inf and 0 NaN are NaN.
 *
 * Grouped and multi-query heads, pages and batches are a matter of which k and v are passed.
 *
 * head_dim = 0: there are no q and k, and the logits are given, z_j = bias_j exactly.  So are normalised
 * parts with their lse joined: P partial results are P keys with logits lse_p and values o_p.
 */
#ifndef ORACLE_ATTENTION_H
#define ORACLE_ATTENTION_H

#include "base/status.h"
#include "oracle/bounds.h"
#include "oracle/enclosure.h"

/* The caller owns the arrays; all values are exact.  Zeroed options are off. */
struct attention_row {
    const double *q;           /* head_dim */
    const double *k, *v;       /* key j: k[j * k_stride ..], v[j * v_stride ..] */
    size_t k_stride, v_stride; /* in doubles */
    size_t head_dim, value_dim;
    size_t keys, keys_used; /* slots, and how many of them are real, from slot 0 on */
    size_t query, queries;  /* this row's index, and how many there are */
    double scale;           /* finite; what the kernel gets, often RN(1/sqrt(head_dim)) */
    double softcap;         /* > 0, or 0 for none */
    const double *bias;     /* keys values, or NULL */
    double alibi_slope;
    const unsigned char *mask; /* keys flags, or NULL */
    const double *sink;        /* one logit that counts in the sum and has no value; or NULL */
    bool causal, windowed;
    size_t window_left, window_right, window_sinks;
};

/* Does key j take part? */
bool attention_visible(const struct attention_row *row, size_t j);

/*
 * o[0 .. value_dim-1] no wider than 2^-40 relative, or 2^-80 sum_j P_j |v_j|; *lse no wider than
 * 2^-40 relative; or two steps of 2^-1074.  Memory: some 200 bytes per key
 * beside the inputs.
 * ERR_USAGE, ERR_NOMEM, ERR_UNDECIDED.
 */
MUST_CHECK status_t attention_enclose(struct enclosure *o, struct enclosure *lse,
                                      const struct attention_row *row);

/*
 * o_budget[0 .. value_dim-1], *lse_budget: upper bounds on |got - real result| of a correct kernel
 * with these numerics on this very row; lse is taken to be stored in acc.  0 where only the class
 * counts, +Inf where nothing is known.  o, lse: what enclose gave.  ERR_NOMEM; ERR_UNSUPPORTED if
 * the numerics lack exp, divide, log, tanh or acc f32 where the row needs it.
 * Derivation: docs/bounds.md, "Attention".
 */
MUST_CHECK status_t attention_budget(double *o_budget, double *lse_budget,
                                     const struct attention_row *row, const struct enclosure *o,
                                     const struct enclosure *lse, const struct numerics *numerics);

#endif
