/*
 * device/ptx/cvt.h - one conversion of PTX's cvt, exactly.
 *
 * Values are bit patterns; integers come and go in the low bits.  PTX ISA 9.7.9.22.
 */
#ifndef DEVICE_PTX_CVT_H
#define DEVICE_PTX_CVT_H

#include "device/ptx/ptx.h"

/*
 * in: an instruction of opcode CVT.  The result has `to` = in->type, extended to 64 bits by its
 * sign.
 */
uint64_t cvt_lane(uint64_t bits, const struct ptx_insn *in);

/*
 * Rows CVT_F8_*: two numbers of 8 bits.  to8: a and b (f32 bits, or f16 bits if the source is f16x2)
 * become the high and the low byte; NaN is 0x7f, what is too large the largest number.  Not
 * verified on hardware: the sign of NaN.
 */
uint32_t cvt_to_eight(uint32_t a, uint32_t b, const struct ptx_insn *in);
/* The two bytes as f16x2. */
uint32_t cvt_from_eight(uint32_t pair, const struct ptx_insn *in);

#endif
