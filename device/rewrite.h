/*
 * device/rewrite.h - PTX texts changed before a device sees them.
 *
 * All keep every line where it is, so that messages and `.loc` still fit the text that was given.
 */
#ifndef DEVICE_REWRITE_H
#define DEVICE_REWRITE_H

#include <stddef.h>

#include "base/status.h"

/*
 * Write `.rn` onto every floating-point add, sub and mul without a rounding modifier (f32, f32x2,
 * f64, f16, f16x2, bf16, bf16x2; also with .ftz and .sat).  Round to nearest even is what they mean
 * anyway, "but mul/add sequences with no rounding modifiers may be optimized to use fused-multiply-
 * add", while one with a modifier is "treated conservatively by the code optimizer" (PTX ISA,
 * Floating Point Instructions: add, mul): then the text alone fixes the bits.
 *
 * *out: the new text, NUL-terminated, of *out_size bytes, the caller's; *changed: instructions.
 * ERR_UNSUPPORTED for what is no PTX text; ERR_NOMEM.
 */
MUST_CHECK status_t ptx_write_rn(char **out, size_t *out_size, unsigned *changed, const char *label,
                                 const char *text, size_t size);

#endif
