/*
 * kernels/range.h - which values of a dimension a kernel accepts.
 *
 *     "1.."   "1..1024"   "128"   "8..4096 multiple of 8"
 */
#ifndef KERNELS_RANGE_H
#define KERNELS_RANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct range {
    size_t lo, hi;   /* both included; hi = SIZE_MAX: no upper end */
    size_t multiple; /* 1: every value */
};

/* ERR_SYNTAX if text is no range or holds no value. */
MUST_CHECK status_t range_parse(struct range *out, const char *text);
bool range_contains(const struct range *range, size_t value);
/* The smallest accepted value >= `value`, or the largest of all if there is none. */
size_t range_near(const struct range *range, size_t value);

#endif
