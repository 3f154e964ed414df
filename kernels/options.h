/* kernels/options.h - the manifest's `options:` of an entry, compiled. */
#ifndef KERNELS_OPTIONS_H
#define KERNELS_OPTIONS_H

#include "kernels/kernel.h"

/*
 * d->options, d->scope and what else they need, for this op: options that it does not have, and
 * missing ones, are mistakes.  d->file and d->index are set.  ERR_SYNTAX with path and line.
 */
MUST_CHECK status_t options_compile(struct kernel_detail *d, const struct op *op);

#endif
