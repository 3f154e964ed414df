/*
 * device/ptx/tensor.h - what a tensor core computes, as a parameter of the architecture.
 *
 * NVIDIA leaves accumulation order and rounding of floating-point mma unspecified (PTX ISA 9.7.15,
 * 9.7.16).  What the cores do is a chain of truncated fused dot products (T-FDPA; published by MMA-Sim,
 * arXiv 2511.10909, and by Khattak and Mikaitis, arXiv 2512.07004).  One block of L products and c:
 *
 *   E   = max(floor, exponents of c and of the products whose operands are both non-zero)
 *   T   = sum of t_i,  t_i = the term i cut toward zero to a multiple of 2^(E - F)
 *   d   = T rounded to the output format once; zero is +0
 *
 * An exponent here is that of the operands, 2^e <= |x| < 2^(e+1), the format's least one for
 * subnormals; that of a product is the sum of its operands', whatever its significand.  k > L: blocks
 * follow each other in increasing k, d of one is c of the next.
 *
 * A NaN among operands, 0 * Inf, or infinities of both signs: the canonical NaN (0x7fffffff,
 * 0x7fff).  Else an infinite term gives that infinity.  From 2^128 on f32 results are infinite; below
 * they are cut.  f16 results are rounded to nearest even and so infinite from 65520 on.
 */
#ifndef DEVICE_PTX_TENSOR_H
#define DEVICE_PTX_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

enum tensor_type { /* of a and b; c and d are F32 or F16 */
                   TENSOR_F16,
                   TENSOR_BF16,
                   TENSOR_TF32, /* the low 13 of 32 bits do not count */
                   TENSOR_E4M3, /* no infinity; NaN is S.1111.111 */
                   TENSOR_E5M2,
                   TENSOR_F32,
};

enum tensor_end { /* how d is rounded */
                  TENSOR_RZ_F32,
                  TENSOR_RNE_F16,  /* c is f16 too */
                  TENSOR_RZ_E8M13, /* an f32 whose last 10 bits are zero */
};

struct tensor_model {
    uint8_t block;    /* L: products fused */
    uint8_t fraction; /* F: bits below 2^E that are kept */
    int16_t floor;    /* the least E */
    uint8_t end;      /* enum tensor_end */
    /*
     * 8-bit operands on a core that has none, as ptxas computes them: both become f16; one block has
     * the products whose k / 2 is even, the next those whose k / 2 is odd, without c, which is added
     * at last, rounded to nearest.
     */
    bool through_f16;
};

/*
 * d of c + sum of a[i] b[i], i < k.  a, b, c, d: bit patterns; c is f16 or f32 as d is.  The last
 * block may be shorter than L.  type: of a and of b.
 */
uint32_t tensor_dot(const struct tensor_model *model, const enum tensor_type type[2],
                    const uint32_t *a, const uint32_t *b, unsigned k, uint32_t c);

enum tensor_class { TENSOR_FINITE, TENSOR_INFINITE, TENSOR_NAN };
enum tensor_class tensor_class_of(enum tensor_type type, uint32_t bits);

#endif
