/*
 * gate/plain.h - plain numbers that a kernel must keep: its largest error in ulps and relative.
 *
 * The bound check says whether a kernel does what it declares; the plain budget says that it does not
 * get worse.  It stands in budgets.txt beside the manifest, one line for each kernel:
 *
 *     softmax_warp_f32  72  9e-6  measured 69.4 and 8.3e-06; far below the maximum expf errs most
 *     name        max_ulp   max_rel  why
 *
 * measured once, then raised only by a person, in review, with a reason: no tool writes that file.
 */
#ifndef GATE_PLAIN_H
#define GATE_PLAIN_H

#include "gate/judge.h"

struct plain {
    bool known;              /* false: the kernel has no row, and no plain check */
    double max_ulp, max_rel; /* finite, not negative; units and exceptions: struct judgement */
    int line;                /* of budgets.txt */
};

/*
 * The kernel's row; known = false if there is no such file or row.  ERR_IO; ERR_SYNTAX with path and
 * line for a row that is none (also another kernel's), a number out of range, a missing `why`, or two
 * rows of one name.
 */
MUST_CHECK status_t plain_find(struct plain *out, const struct kernel *kernel);

/* Turn a judgement that is no FAIL into one, with its reason, if a number exceeds the budget. */
void plain_judge(struct judgement *j, const struct plain *plain);

#endif
