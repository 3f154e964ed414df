/*
 * log_softmax and log-sum-exp of rows of up to 32768: the row packed in the registers of a block, 128
 * bytes per thread.  One exp per entry, for the sum; in 16 bits two blocks of 512 share a multiprocessor
 * as in rung 10, so that one loads while the other computes.
 */
#include "kernels/softmax/results.cuh"

/* Per multiprocessor, in the registers that they may have; 0: ptxas chooses. */
template <class T> constexpr int BLOCKS = sizeof(T) == 2 ? 2 : 0;

#define LOG_ROWS(dtype, T, name, Result)                                                    \
    extern "C" __global__ void __launch_bounds__(256 * sizeof(T), BLOCKS<T>)                \
        name##_##dtype(const T *__restrict__ x, Result<T>::Out *__restrict__ y, int cols) { \
        block_rows<Result<T>, PackedRow<T, 8>>(x, y, cols);                                 \
    }

FOR_EACH_DTYPE(LOG_ROWS, log_softmax_rows, LogSoftmax)
FOR_EACH_DTYPE(LOG_ROWS, lse_rows, Lse)
FOR_EACH_DTYPE(LOG_ROWS, softmax_lse_rows, SoftmaxLse)
