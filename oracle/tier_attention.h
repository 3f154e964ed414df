/*
 * oracle/tier_attention.h - attention by the ladder: rows that share k and v, side by side.
 *
 * rows[0 .. count-1] have the same k, v, strides, head_dim and value_dim; queries, masks, biases,
 * slopes, sinks and lengths are their own.  So one call takes the query rows of a head, and of all
 * heads that share its k and v.  Proofs: docs/oracle.md, "Attention".
 */
#ifndef ORACLE_TIER_ATTENTION_H
#define ORACLE_TIER_ATTENTION_H

#include "oracle/attention.h"
#include "oracle/tier.h"

/*
 * o[r value_dim + c], lse[r]: as attention_enclose has them, by tier[r] or, where that has no
 * answer, by the next one that has; tier[r] becomes the one that answered.  Enclosures of lower
 * tiers contain those of TIER_MPFR.  Errors of attention_enclose.
 */
MUST_CHECK status_t attention_tier_enclose(struct enclosure *o, struct enclosure *lse,
                                           enum tier *tier, const struct attention_row *rows,
                                           size_t count);

/*
 * out[r].within: are all of row r's outputs within their budgets, for certain?  Against a lower
 * bound of attention_budget, so `sharp` is false; false says: look closer.  got_o: count x value_dim
 * exact values of data of numerics->out; got_lse: count values of data of numerics->acc, or NULL.
 * out[r].worst: the column, or value_dim for lse.  ERR_NOMEM; ERR_USAGE as attention_enclose.
 */
MUST_CHECK status_t attention_within(struct tier_extremes *out, const struct attention_row *rows,
                                     size_t count, const double *got_o, const double *got_lse,
                                     const struct numerics *numerics);

/*
 * Intervals that contain every budget that attention_budget gives for enclosures within o and lse:
 * o_lo, o_hi[0 .. value_dim-1], *lse_lo, *lse_hi.  Errors of attention_budget.
 */
MUST_CHECK status_t attention_tier_budgets(double *o_lo, double *o_hi, double *lse_lo,
                                           double *lse_hi, const struct attention_row *row,
                                           const struct enclosure *o, const struct enclosure *lse,
                                           const struct numerics *numerics);

#endif
