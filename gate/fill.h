/*
 * gate/fill.h - named families of rows, each made to hurt one kind of kernel.
 *
 * A fill makes tensors of any format from (dims, seed) alone, with integer and exact double
 * arithmetic only: the same bits on every machine and in every version.  docs/cases.md lists them.
 * Each op has a list of its own; ops of a matrix share one.
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
    /*
     * Write one row of the op's first input: dims.cols data of dims.rows such rows, one per unit.
     * The other tensors are then as fill_others makes them.
     */
    void (*row)(uint32_t *bits, const struct dtype *dt, size_t row, struct case_dims dims,
                uint64_t seed);
    bool exact; /* every partial sum is representable in the format: a sum has tolerance 0 */
    /* Change the other tensors, or (row NULL) write all of them.  NULL: nothing to do. */
    void (*others)(const struct op_case *c, uint64_t seed);
    const char *needs; /* an input without which it is none but the first; suites leave it out then */
};

extern const struct fill fills[];                 /* of a matrix; ended by a row with name NULL */
const struct fill *fills_of(const struct op *op); /* its list */
/* The fill of this name in its list, or in that of a matrix; or NULL. */
const struct fill *fill_of(const struct op *op, const char *name);
const struct fill *fill_find(const char *name);

/* Every input of c but the first, as an everyday call has it. */
void fill_others(const struct op *op, const struct op_case *c, uint64_t seed);

#endif
