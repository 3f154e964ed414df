/*
 * Rung 11.  As rung 9, with a fixed grid whose blocks stride over the rows: while a block computes and
 * writes a row, the copies of its next one into shared memory are under way (cp.async), so that a
 * multiprocessor with a single block keeps memory busy too.  Each thread copies what it will read
 * itself, so no barrier is needed between copy and read; the copies of the next row start behind the
 * barrier of the maximum, when all of this one's have been read.
 */
#include "kernels/softmax/on_chip.cuh"

template <class Exp, class T>
__device__ void prefetch(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) {
    extern __shared__ uint4 slots[];
    __shared__ float part[2][2 * WARP];
    const int VECTORS = 32 / VEC<T>;
    const unsigned thread = threadIdx.x, team = blockDim.x;
    unsigned r = blockIdx.x;
    int turn = 0;

    const T *from = x + (size_t)r * cols;
    float ragged = start_copies<VECTORS>(slots, from, Cut<T>(from, cols), thread, team);
    for (; r < rows; r += gridDim.x, turn ^= 1) {
        wait_copies();
        RegisterRow<T, VECTORS> row(slots, ragged, from, cols, thread, team);
        const float max = team_reduce<RowMax>(row.max(), part[turn]);
        if (r + gridDim.x < rows) {
            from = x + (size_t)(r + gridDim.x) * cols;
            ragged = start_copies<VECTORS>(slots, from, Cut<T>(from, cols), thread, team);
        }
        const float sum = team_reduce<RowSum>(row.to_exps(Exp(max)), part[turn] + WARP);
        row.write_scaled(y + (size_t)r * cols, 1.0f / sum);
    }
}

#define SOFTMAX_PREFETCH(dtype, T, name)                                                           \
    extern "C" __global__ void __launch_bounds__(1024)                                             \
        softmax_##name##_##dtype(const T *__restrict__ x, T *__restrict__ y, int rows, int cols) { \
        prefetch<ExpOf<T>>(x, y, rows, cols);                                                      \
    }

FOR_EACH_DTYPE(SOFTMAX_PREFETCH, prefetch)
