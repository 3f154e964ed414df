/* oracle/tier_norm.h - layernorm, rmsnorm and rope by the ladder.  Proofs: docs/oracle.md. */
#ifndef ORACLE_TIER_NORM_H
#define ORACLE_TIER_NORM_H

#include "oracle/norm.h"
#include "oracle/rope.h"
#include "oracle/tier.h"

/*
 * out[0 .. cols-1]: as layernorm_enclose and rmsnorm_enclose have them, by *tier or, where that has no
 * answer, by the next one that has; *tier becomes the one that answered.  Enclosures of lower tiers
 * contain those of TIER_MPFR.  Errors of *_enclose.
 */
MUST_CHECK status_t layernorm_tier_enclose(struct enclosure *out, enum tier *tier,
                                           const struct norm_row *row);
MUST_CHECK status_t rmsnorm_tier_enclose(struct enclosure *out, enum tier *tier,
                                         const struct norm_row *row);

/*
 * Rows of one head_dim, out[r head_dim + j], tier[r].  Rows beside each other with the same base,
 * rotary_dim and freq share their frequencies.  TIER_DD has no answer here.
 */
MUST_CHECK status_t rope_tier_enclose(struct enclosure *out, enum tier *tier,
                                      const struct rope_row *rows, size_t count);

#endif
