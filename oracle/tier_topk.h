/* oracle/tier_topk.h - softmax_topk by the ladder. */
#ifndef ORACLE_TIER_TOPK_H
#define ORACLE_TIER_TOPK_H

#include "oracle/tier.h"
#include "oracle/topk.h"

/* softmax_topk_enclose by *tier or, where that has no answer, the next one that has. */
MUST_CHECK status_t softmax_topk_tier_enclose(size_t *index, struct enclosure *p, enum tier *tier,
                                              const struct topk_row *row);

#endif
