/*
 * tests/ptx/tensor_ref.h - the truncated fused dot product by its definition, in exact rationals.
 *
 * Nothing of the emulator is used: numbers are GMP rationals, exponents come from their size, the
 * cut is a division of integers.
 */
#ifndef TESTS_PTX_TENSOR_REF_H
#define TESTS_PTX_TENSOR_REF_H

#include <stdbool.h>
#include <stdint.h>

enum ref_type { REF_F16, REF_BF16, REF_TF32, REF_E4M3, REF_E5M2, REF_F32 };
enum ref_end { REF_CUT_F32, REF_NEAREST_F16, REF_CUT_E8M13 };

struct ref_core {
    unsigned block; /* L */
    int fraction;   /* F */
    int floor;      /* the least E */
    enum ref_end end;
    bool converted; /* 8-bit operands become f16, in two blocks; c is added at last, to nearest */
};

uint32_t ref_tensor_dot(const struct ref_core *core, enum ref_type type, const uint64_t *a,
                        const uint64_t *b, unsigned k, uint32_t c);

#endif
