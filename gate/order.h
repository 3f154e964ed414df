/*
 * gate/order.h - does a result depend on what it must not depend on?
 *
 * One case is run again and again, and every output is compared with the first:
 *
 *   repeat       the same launch once more
 *   schedule     blocks and warps in other, seeded orders (cpu; elsewhere it is one more repeat)
 *   permutation  the columns of each row in another order; results compared at their new places
 *   batch        the first rows as a case of their own: another batch size, rows where they were
 *   neighbours   a row between rows of NaN
 *   parts        attention_combine: its parts in other orders, two of them swapped, parts of nothing
 *                among them, and joined in two steps (order_parts.c)
 *   pages        of a paged cache in other places, other values in what nobody uses (order_pages.c)
 *
 * A permutation may change an element by what two orders of the row may differ by (op->spread, at
 * most twice the budget).  The others must give the same bits if the manifest says `deterministic:
 * true`; else repeat and schedule are held to that bound as well, and batch and neighbours are left
 * out.
 */
#ifndef GATE_ORDER_H
#define GATE_ORDER_H

#include "gate/judge.h"

/*
 * *saw = the check could see an order: a permutation changed some bit, or, of more than one column,
 * some bound is 0 or below its result's size, so that a change that matters would have failed (an
 * exact accumulator changes none).  A kernel for which no case saw anything is MISTRUSTED.
 * max_rho is the largest |y_A - y_B| / spread, +Inf where equal bits were due; the worst element
 * holds y_A as an exact enclosure in `want`, y_B in `got` and the spread in `budget`;
 * max_ulp and max_rel stay 0.  *result holds the first run.
 */
MUST_CHECK status_t order_check(struct judgement *out, bool *saw, struct kernel_result *result,
                                struct loaded_kernel *lk, const struct test_case *c,
                                struct truth *truth);

#endif
