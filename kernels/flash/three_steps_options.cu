/*
 * The three steps with all that attention may be asked for: softcap, bias, ALiBi, a window with
 * first keys that stay, a mask of bytes, variable lengths, sinks.  The order is that of
 * docs/numerics.md: scale, softcap, bias, ALiBi, mask.
 *
 * A key that a query does not see has P = -1: its value is not looked at, and may be NaN.
 */
#include "kernels/softmax/row.cuh"

#define HIDDEN (-1.0f)

static __device__ int used_of(const int *lengths, int batch, int keys) {
    return max(0, min(lengths[batch], keys));
}

/* One thread per entry of S: keys in x, queries in y, heads of all batches in z. */
extern "C" __global__ void
attention_options_scores_f32(const float *q, const float *k, const int *lengths, const float *bias,
                             const unsigned char *mask, const float *slopes, float *s, int heads,
                             int kv_heads, int queries, int keys, int head_dim, int left, int right,
                             int first_keys, float scale, float softcap) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    const int batch = blockIdx.z / heads, head = blockIdx.z % heads;
    const int kv_head = batch * kv_heads + head / (heads / kv_heads);
    const int used = used_of(lengths, batch, keys), at = i + used - queries;
    const size_t row = (size_t)blockIdx.z * queries + i;
    if (j >= keys)
        return;
    const bool near = (j >= at - left && j <= at + right) || j < first_keys;
    if (j >= used || !near || !mask[((size_t)batch * queries + i) * keys + j]) {
        s[row * keys + j] = NEG_INF;
        return;
    }
    q += row * head_dim;
    k += ((size_t)kv_head * keys + j) * head_dim;
    float dot = 0.0f;
    for (int d = 0; d < head_dim; d++)
        dot = fmaf(q[d], k[d], dot);
    const float z = softcap * tanhf(dot * scale / softcap) + bias[row * keys + j];
    s[row * keys + j] = z - slopes[head] * fabsf((float)(at - j));
}

/* A block per row, in place.  A logit of -Inf is a hidden key here: this kernel takes no others. */
extern "C" __global__ void attention_options_softmax_f32(float *s, const float *sinks, float *lse,
                                                         int heads, int queries, int keys) {
    __shared__ float part[BLOCK];
    float *row = s + (size_t)blockIdx.x * keys;
    const float sink = sinks[blockIdx.x / queries % heads];

    const float max = fmaxf(sink, block_combine<RowMax>(keys, part, [=](int j) { return row[j]; }));
    const float sum = block_combine<RowSum>(keys, part, [=](int j) { return expf(row[j] - max); }) +
                      expf(sink - max);

    for (int j = threadIdx.x; j < keys; j += BLOCK)
        row[j] = row[j] == NEG_INF ? HIDDEN : expf(row[j] - max) / sum;
    if (threadIdx.x == 0)
        lse[blockIdx.x] = max + logf(sum);
}

/* One thread per entry of O: columns in x, queries in y, heads of all batches in z. */
extern "C" __global__ void attention_options_values_f32(const float *p, const float *v, float *o,
                                                        int heads, int kv_heads, int queries,
                                                        int keys, int head_dim) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y, head = blockIdx.z;
    const int kv_head = head / heads * kv_heads + head % heads / (heads / kv_heads);
    if (d >= head_dim)
        return;
    p += ((size_t)head * queries + i) * keys;
    v += (size_t)kv_head * keys * head_dim;
    float sum = 0.0f;
    for (int j = 0; j < keys; j++)
        if (p[j] != HIDDEN)
            sum = fmaf(p[j], v[(size_t)j * head_dim + d], sum);
    o[((size_t)head * queries + i) * head_dim + d] = sum;
}
