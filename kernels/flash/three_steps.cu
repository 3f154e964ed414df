/*
 * Attention as the formula reads: S = scale Q K^T, P = softmax(S), O = P V, with S and P in memory.
 * The baseline that the fused kernels are held against, not one to use.
 *
 * batch x heads x rows x head_dim, row-major; head h reads key-value head h / (heads / kv_heads).
 */
#include "kernels/softmax/row.cuh"

/* One thread per entry of S: keys in x, queries in y, heads of all batches in z. */
extern "C" __global__ void attention_three_steps_scores_f32(const float *q, const float *k,
                                                            float *s, int heads, int kv_heads,
                                                            int queries, int keys, int head_dim,
                                                            float scale) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y, head = blockIdx.z;
    const int kv_head = head / heads * kv_heads + head % heads / (heads / kv_heads);
    if (j >= keys)
        return;
    q += ((size_t)head * queries + i) * head_dim;
    k += ((size_t)kv_head * keys + j) * head_dim;
    float dot = 0.0f;
    for (int d = 0; d < head_dim; d++)
        dot = fmaf(q[d], k[d], dot);
    s[((size_t)head * queries + i) * keys + j] = dot * scale;
}

/* A block per row, in place; the last query sees the last key.  A row that sees no key is all 0. */
extern "C" __global__ void attention_three_steps_softmax_f32(float *s, float *lse, int queries,
                                                             int keys, int causal) {
    __shared__ float part[BLOCK];
    float *row = s + (size_t)blockIdx.x * keys;
    const int i = blockIdx.x % queries;
    const int seen = causal ? max(0, min(keys, i + 1 + keys - queries)) : keys;

    const float max = block_combine<RowMax>(seen, part, [=](int j) { return row[j]; });
    /* -Inf: weights of 0 or NaN alone.  +Inf: P and o are to be NaN, and lse is +Inf. */
    const float reference = isinf(max) ? 0.0f : max;
    const float sum =
        block_combine<RowSum>(seen, part, [=](int j) { return expf(row[j] - reference); });

    for (int j = threadIdx.x; j < keys; j += BLOCK)
        row[j] = j < seen && sum != 0.0f ? expf(row[j] - reference) / sum : 0.0f;
    if (threadIdx.x == 0)
        lse[blockIdx.x] = reference + logf(sum);
}

/* One thread per entry of O: columns in x, queries in y, heads of all batches in z. */
extern "C" __global__ void attention_three_steps_values_f32(const float *p, const float *v,
                                                            float *o, int heads, int kv_heads,
                                                            int queries, int keys, int head_dim,
                                                            int causal) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y, head = blockIdx.z;
    const int kv_head = head / heads * kv_heads + head % heads / (heads / kv_heads);
    const int seen = causal ? max(0, min(keys, i + 1 + keys - queries)) : keys;
    if (d >= head_dim)
        return;
    p += ((size_t)head * queries + i) * keys;
    v += (size_t)kv_head * keys * head_dim;
    float sum = 0.0f;
    for (int j = 0; j < seen; j++)
        sum = fmaf(p[j], v[(size_t)j * head_dim + d], sum);
    o[((size_t)head * queries + i) * head_dim + d] = sum;
}
