/*
 * device/ptx/simd_tensor.h - shared by simd_tensor.c, simd_wmma.c and simd_wgmma.c: the product of
 * 16 rows by n columns that one warp computes.
 */
#ifndef DEVICE_PTX_SIMD_TENSOR_H
#define DEVICE_PTX_SIMD_TENSOR_H

#include "device/ptx/simd.h"
#include "device/ptx/tensor.h"

#define MAX_N 256
#define SCRATCH_ROWS 8 /* of 32 bits, from row x->d on: lower.c */
#define ROW_BYTES 32 /* of k, in every shape but those of f64 */

/* a: rows; b: columns; bytes in increasing k. */
struct factors {
    uint8_t a[16][ROW_BYTES], b[MAX_N][ROW_BYTES];
};

/*
 * c and d: rows of the register file.  Register 4 j + 2 h + e of lane 4 g + t holds (g + 8 h,
 * 8 j + 2 t + e), f16: register 2 j + h both e.
 */
struct accumulators {
    const uint32_t *c, *d;
    bool zero; /* c is 0, whatever its registers hold */
};

/* d = a b + c for the instruction x. */
void ISA_NAME(tensor_multiply)(struct warp *w, const struct xinsn *x, struct factors *f,
                               const struct accumulators *acc);
/* The registers of a (8 rows by 16 bytes each; `rows` is 1 or 2 of them) or b (rows 1). */
void ISA_NAME(tensor_gather)(uint8_t (*to)[ROW_BYTES], const struct warp *w, const uint32_t *list,
                             unsigned count, unsigned rows);

/*
 * Some d register is a c register of another place: c's rows are copied to scratch rows, whose
 * numbers *out gets.
 */
bool ISA_NAME(tensor_crossed)(uint32_t out[SCRATCH_ROWS], struct warp *w, const struct xinsn *x,
                              const uint32_t *c, const uint32_t *d, unsigned count);
/* m8n8k4 and the other shapes of f64: registers of d, a, b, c. */
void ISA_NAME(tensor_doubles)(struct warp *w, const struct xinsn *x, const uint32_t *list);

#endif
