/*
 * Rung 9.  The row in registers of a block, 32 entries per thread, in 16-byte vectors: one read, one
 * write and one exp per entry, with nothing rescaled.  The block has as many threads as the row
 * needs (ceil(cols / 32), rounded up to whole warps), so none idles and a row of up to 32768 fits.
 * `registers` takes expf in f32 and ex2 in 16-bit formats; `folded`, for f16, folds log2(e) into one
 * fma; `poly` has a polynomial of degree 5 on the FMA units in the place of ex2, so that the special
 * function unit, of which an SM has an eighth as many lanes, sees one reciprocal a row.
 *
 * log_softmax and log-sum-exp in 16 bits: their `rows` have 64 entries per thread, most of them empty in rows of 1024.
 */
#include "kernels/softmax/results.cuh"

#define REGISTERS(dtype, T, name, Result)                                                   \
    extern "C" __global__ void __launch_bounds__(1024)                                      \
        name##_##dtype(const T *__restrict__ x, Result<T>::Out *__restrict__ y, int cols) { \
        block_rows<Result<T>, RegisterRow<T, 32 / VEC<T>>>(x, y, cols);                     \
    }

template <class T> using Folded = Softmax<T, ExpFolded>;
template <class T> using Poly = Softmax<T, ExpPoly>;

FOR_EACH_DTYPE(REGISTERS, softmax_registers, Softmax)
FOR_EACH_DTYPE(REGISTERS, softmax_poly, Poly)
REGISTERS(f16, __half, softmax_folded, Folded)
REGISTERS(f16, __half, log_softmax_registers, LogSoftmax)
REGISTERS(bf16, __nv_bfloat16, log_softmax_registers, LogSoftmax)
REGISTERS(f16, __half, lse_registers, Lse)
REGISTERS(bf16, __nv_bfloat16, lse_registers, Lse)
