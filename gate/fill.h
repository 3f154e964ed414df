/*
 * gate/fill.h - named families of rows, each made to hurt one kind of kernel.
 *
 * A fill makes a row of any format from (row, dims, seed) alone, with integer and exact double
 * arithmetic only: the same bits on every machine and in every version.  docs/cases.md lists them.
 */
#ifndef GATE_FILL_H
#define GATE_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/catalogue.h"
#include "oracle/dtype.h"

struct fill {
    const char *name;    /* "alpha_underflow" */
    const char *values;  /* what is in a row; row + seed picks the variant */
    const char *purpose; /* what it hurts, one sentence */
    /* Write the dims.cols data of one row. */
    void (*row)(uint32_t *bits, const struct dtype *dt, size_t row, struct case_dims dims,
                uint64_t seed);
    bool exact; /* every partial sum is representable in the format: a sum has tolerance 0 */
};

extern const struct fill fills[];               /* ended by a row with name NULL */
const struct fill *fill_find(const char *name); /* or NULL */

#endif
