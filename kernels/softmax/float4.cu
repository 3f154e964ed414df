/*
 * Rung 6.  A warp per row, eight rows in a block, and warps stride over the rows: no block
 * barrier at all, a fixed grid, and any row length.  16-byte loads and stores; the state is
 * rescaled once per four entries; one division per row and a multiply per entry (an extra
 * rounding each).  Up to 3 entries before the first 16-byte boundary of a row and up to 3 after
 * the last go one per lane.  x and y must start at the same distance from such a boundary.
 */
#include "kernels/softmax/online.cuh"

static __device__ Online push4(Online s, float4 v) {
    const float m = fmaxf(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), s.m);
    const float shift = finite_or_zero(m);
    const float terms =
        (expf(v.x - shift) + expf(v.y - shift)) + (expf(v.z - shift) + expf(v.w - shift));
    return Online{m, fmaf(s.l, expf(s.m - shift), terms)};
}

extern "C" __global__ void softmax_float4_f32(const float *__restrict__ x, float *__restrict__ y,
                                              int rows, int cols) {
    const unsigned end = cols, lane = threadIdx.x;
    const unsigned first_row = blockIdx.x * blockDim.y + threadIdx.y;

    for (unsigned r = first_row; r < rows; r += gridDim.x * blockDim.y) {
        const float *row = x + (size_t)r * end;
        float *out = y + (size_t)r * end;
        const unsigned to_boundary = -((size_t)row / sizeof(float)) % 4;
        const unsigned head = min(to_boundary, end);
        const unsigned vectors = (end - head) / 4, tail = (end - head) % 4;
        const float4 *body = (const float4 *)(row + head);
        /* The ragged entry of this lane, if it has one: a head entry or a tail entry. */
        const bool has_ragged = lane < head + tail;
        const unsigned ragged = lane < head ? lane : lane + 4 * vectors;

        Online s = online_empty();
        if (has_ragged)
            s = online_push(s, row[ragged]);
        for (unsigned i = lane; i < vectors; i += WARP)
            s = push4(s, body[i]);
        s = online_warp(s);

        const float scale = 1.0f / s.l;
        if (has_ragged)
            out[ragged] = expf(row[ragged] - s.m) * scale;
        for (unsigned i = lane; i < vectors; i += WARP) {
            const float4 v = body[i];
            ((float4 *)(out + head))[i] =
                make_float4(expf(v.x - s.m) * scale, expf(v.y - s.m) * scale,
                            expf(v.z - s.m) * scale, expf(v.w - s.m) * scale);
        }
    }
}
