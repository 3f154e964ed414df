/*
 * device/ptx/tensor_form.h - which shapes and types of mma, wmma and wgmma exist, where, and with
 * which arithmetic.
 *
 * PTX ISA 9.7.14.4 (wmma), 9.7.14.5 (mma) and 9.7.15.5 (wgmma).  Not here, and refused: sparse and
 * block-scaled forms, 4-bit and 1-bit types, and Volta's m8n8k4 of f16.
 */
#ifndef DEVICE_PTX_TENSOR_FORM_H
#define DEVICE_PTX_TENSOR_FORM_H

#include "device/ptx/ptx.h"
#include "device/ptx/tensor.h"

/* Registers of one thread: 64-bit ones for f64, else 32-bit ones. */
struct tensor_regs {
    unsigned d, a, b, c; /* wgmma: d is c; b lies in shared memory, and a may */
};

/* NULL, or what is wrong with the instruction's shape and types. */
const char *tensor_form_problem(const struct ptx_insn *in);
/* Of an instruction without a problem. */
struct tensor_regs tensor_form_regs(const struct ptx_insn *in);
bool tensor_is_wgmma(enum ptx_op op);
bool tensor_is_wmma(enum ptx_op op); /* wmma.load, wmma.mma and wmma.store */
/*
 * The mma of m16n8 tiles that has the arithmetic of a wmma.mma, for 16 rows of its result (m8n32:
 * of the result transposed, which is that of b^T a^T).  Its c and d are f16 only if both of wmma's
 * are; else d is f32 and c was widened.
 */
struct ptx_insn tensor_form_as_mma(const struct ptx_insn *wmma);
/* Bytes of an element of a and b. */
unsigned tensor_element_bytes(enum ptx_type type);
enum tensor_type tensor_element_of(enum ptx_type type);

/*
 * Can a kernel for `target` ("sm_90a") use the instruction on architecture `arch` (90)?  *model: the
 * arithmetic, where a and b are floats but no f64.  Otherwise false, and *reason.
 */
bool tensor_form_on(struct tensor_model *model, const char **reason, const struct ptx_insn *in,
                    const char *target, unsigned arch);
/* The emulator has the arithmetic of this architecture. */
bool tensor_arch_known(unsigned arch);
#define TENSOR_ARCHS "sm_75, sm_80, sm_86, sm_89, sm_90, sm_100 or sm_120"

#endif
