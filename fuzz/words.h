/*
 * fuzz/words.h - a fuzz input as a line of text and back.
 *
 *   1x33 NINF n=3; FILL n=0 a=-5000; PUT p=2 a=nan(0x7fc00000)
 *   4x256 k=2 RAMP n=0 a=-1 b=0x1p-4; NEXT; LIST 1 2 -0 inf
 *   1x3 raw 1 0x1.8p-3 -inf
 *
 * Shape, then k= and the kernel's index where it is not 0, then the operations by name with their
 * operands (grammar.h), each ended by ";", or "raw" and the data.  Floats are exact: whole numbers
 * or hexadecimal; NaN with its bits.
 */
#ifndef FUZZ_WORDS_H
#define FUZZ_WORDS_H

#include "base/status.h"
#include "fuzz/grammar.h"

/* Cut to size, which is > 0. */
void rows_print(char *out, size_t size, const struct rows_program *p);

/* ERR_SYNTAX with what was expected and found.  Missing operands are zero. */
MUST_CHECK status_t rows_parse(struct rows_program *out, const char *text);

#endif
