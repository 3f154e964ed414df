/* gate/case_impl.h - what the files that make cases share. */
#ifndef GATE_CASE_IMPL_H
#define GATE_CASE_IMPL_H

#include "gate/case.h"

/* out->x and its tensors for a kernel, not yet written; the caller clears *out even on failure. */
MUST_CHECK status_t case_begin(struct test_case *out, const struct kernel *kernel,
                               struct case_dims dims);

#endif
