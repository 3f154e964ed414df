/* oracle/op_impl.h - how units are made of a case, and rows of their own judged: unit.c. */
#ifndef ORACLE_OP_IMPL_H
#define ORACLE_OP_IMPL_H

#include "oracle/oracle_impl.h"

typedef size_t unit_room_fn(const struct op_case *c);
typedef void unit_fn(struct op_unit *u, size_t index);
unit_room_fn matrix_room, norm_room, rope_room, attention_room, attention_shared_room, combine_room,
    topk_room;
unit_fn matrix_unit, norm_unit, rope_unit, attention_unit, combine_unit, topk_unit;

enclose_fn layernorm_row_enclose, rmsnorm_row_enclose, rope_row_enclose, attention_row_enclose,
    topk_row_enclose;
budget_fn layernorm_row_budget, rmsnorm_row_budget, rope_row_budget, attention_row_budget,
    topk_row_budget;

typedef void scale_fn(struct result_scale *scale, const struct oracle_row *row);
scale_fn sum_scale, max_scale, layernorm_scale, rmsnorm_scale, rope_scale, attention_scale;

const char *rope_refuses(const struct case_dims *dims, const struct op_options *options);
status_t topk_judge_whole(size_t *wrong, const struct oracle_row *row, const size_t *got,
                          const struct numerics *numerics);
const char *topk_refuses(const struct case_dims *dims, const struct op_options *options);
size_t attention_sharers(const struct case_dims *dims);
const char *attention_refuses(const struct case_dims *dims, const struct op_options *options);

#endif
