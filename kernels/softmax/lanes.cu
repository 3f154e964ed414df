/* softmax, log_softmax and log-sum-exp of short rows, a few lanes to a row (kernels/softmax/lanes.cuh). */
#include "kernels/softmax/lanes.cuh"
#include "kernels/softmax/results.cuh"

template <class Result, class T>
__device__ void lanes_rows(const T *__restrict__ x, typename Result::Out *__restrict__ y,
                           unsigned rows, int cols) {
    T *entries = NULL;
    if constexpr (Result::PER_ENTRY)
        entries = y;
    with_lanes(x, entries, rows, cols, [=](auto &row, unsigned r, bool mine) {
        Result::template finish<Lanes>(row, y, r, cols, mine && threadIdx.x == 0);
    });
}

#define LANES_ROWS(dtype, T, name, Result)                                             \
    extern "C" __global__ void __launch_bounds__(BLOCK) name##_##dtype(                \
        const T *__restrict__ x, Result<T>::Out *__restrict__ y, int rows, int cols) { \
        lanes_rows<Result<T>>(x, y, rows, cols);                                       \
    }

FOR_EACH_DTYPE(LANES_ROWS, softmax_lanes, Softmax)
FOR_EACH_DTYPE(LANES_ROWS, log_softmax_lanes, LogSoftmax)
FOR_EACH_DTYPE(LANES_ROWS, lse_lanes, Lse)
