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

#endif
