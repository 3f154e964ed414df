/* gate/plan_impl.h - what the files that make plans share. */
#ifndef GATE_PLAN_IMPL_H
#define GATE_PLAN_IMPL_H

#include "gate/plan.h"

MUST_CHECK status_t plan_add(struct plan *p, struct plan_item item);

/* ---- plan_real.c: the cases of real input ------------------------------------------------------ */

MUST_CHECK status_t plan_add_real(struct plan *p, const struct kernel *kernel, enum suite suite,
                                  const char *dir);

#endif
