/*
 * Count, mean and sum of squared deviations of some entries, updated and joined without ever
 * subtracting large squares: Welford 1962, and Chan, Golub and LeVeque 1983 for the join.
 */
#ifndef KERNELS_NORM_MOMENTS_CUH
#define KERNELS_NORM_MOMENTS_CUH

#include "kernels/norm/row.cuh"

struct Moments {
    float n, mean, squares;
};

inline __device__ Moments no_moments() {
    return Moments{0.0f, 0.0f, 0.0f};
}

/* One entry more. */
inline __device__ Moments push(Moments a, float x) {
    const float n = a.n + 1.0f, step = x - a.mean, mean = a.mean + step / n;
    return Moments{n, mean, fmaf(step, x - mean, a.squares)};
}

/*
 * All entries of both; either may have none, and then the step is weighted by 0 before it is squared:
 * its square may overflow.
 */
inline __device__ Moments join(Moments a, Moments b) {
    const float n = a.n + b.n, step = b.mean - a.mean;
    const float share = b.n > 0.0f ? b.n / n : 0.0f;
    return Moments{n, fmaf(step, share, a.mean),
                   fmaf(step * (a.n * share), step, a.squares + b.squares)};
}

inline __device__ Moments down(Moments a, int offset) {
    return Moments{__shfl_down_sync(FULL_WARP, a.n, offset),
                   __shfl_down_sync(FULL_WARP, a.mean, offset),
                   __shfl_down_sync(FULL_WARP, a.squares, offset)};
}

/* Those of all lanes.  Not a butterfly: join is not commutative to the last bit. */
inline __device__ Moments warp_join(Moments a) {
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        a = join(a, down(a, offset));
    return Moments{__shfl_sync(FULL_WARP, a.n, 0), __shfl_sync(FULL_WARP, a.mean, 0),
                   __shfl_sync(FULL_WARP, a.squares, 0)};
}

#endif
