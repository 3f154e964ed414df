/*
 * The k largest entries of a row, largest first and of equal ones the first, with their probabilities.
 * A block per row finds one rank after the other: the best entry that comes after the last one found.
 */
#include "kernels/io.cuh"
#include "kernels/softmax/row.cuh"

struct Ranked {
    float x;
    int index;
};

/* Larger first; of equal ones the smaller index.  A NaN comes before nothing. */
static __device__ bool before(Ranked a, Ranked b) {
    return a.x > b.x || (a.x == b.x && a.index < b.index);
}

template <class T, bool RENORMALISE>
__device__ void topk(const T *x, float *p, int *index, int cols, int k) {
    __shared__ float part[BLOCK];
    __shared__ Ranked best[BLOCK];
    x += (size_t)blockIdx.x * cols;
    p += (size_t)blockIdx.x * k;
    index += (size_t)blockIdx.x * k;

    const float max = block_combine<RowMax>(cols, part, [=](int i) { return get(x[i]); });
    const float sum =
        block_combine<RowSum>(cols, part, [=](int i) { return expf(get(x[i]) - max); });

    Ranked last = {-NEG_INF, -1};
    float chosen = 0.0f;
    for (int rank = 0; rank < k; rank++) {
        Ranked mine = {NEG_INF, cols};
        for (int i = threadIdx.x; i < cols; i += BLOCK) {
            const Ranked it = {get(x[i]), i};
            if (before(last, it) && before(it, mine))
                mine = it;
        }
        best[threadIdx.x] = mine;
        __syncthreads();
        for (int half = BLOCK / 2; half > 0; half /= 2) {
            if (threadIdx.x < half && before(best[threadIdx.x + half], best[threadIdx.x]))
                best[threadIdx.x] = best[threadIdx.x + half];
            __syncthreads();
        }
        last = best[0];
        __syncthreads(); /* best is written again at once */
        const float weight = expf(last.x - max);
        chosen += weight;
        if (threadIdx.x == 0) {
            index[rank] = last.index;
            /* A sum that is NaN (by NaN or +Inf in the row) makes every p NaN. */
            p[rank] = RENORMALISE ? (sum == sum ? weight : sum) : weight / sum;
        }
    }
    if (RENORMALISE && threadIdx.x == 0)
        for (int rank = 0; rank < k; rank++)
            p[rank] /= chosen;
}

#define TOPK(NAME, T, RENORMALISE)                                                       \
    extern "C" __global__ void NAME(const T *x, float *p, int *index, int cols, int k) { \
        topk<T, RENORMALISE>(x, p, index, cols, k);                                      \
    }

TOPK(softmax_topk_naive_f32, float, false)
TOPK(softmax_topk_naive_renormalised_f32, float, true)
TOPK(softmax_topk_naive_bf16, __nv_bfloat16, false)
