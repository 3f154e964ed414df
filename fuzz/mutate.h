/*
 * fuzz/mutate.h - changes to a fuzz input that mean something to a float.
 *
 * libFuzzer's own mutations work on bytes; of a float's bytes they find large and small, but hardly
 * ever a tie, a neighbour, or the same number one binade up.  These work on whole elements and on
 * whole operations of the grammar.  The result always decodes, is never longer than `max_size`, and
 * is determined by its arguments.  max_size >= ROWS_HEADER (else the input comes back as it is).
 */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Change the input in place; returns its new size.  An input that does not decode is replaced. */
size_t rows_mutate(uint8_t *bytes, size_t size, size_t max_size, unsigned seed);

/* Join two inputs; returns the size of what is written to out.  0 if neither decodes. */
size_t rows_cross(uint8_t *out, size_t max_size, const uint8_t *a, size_t a_size, const uint8_t *b,
                  size_t b_size, unsigned seed);

#endif
