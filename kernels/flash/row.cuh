/* What the f32 forms share: which query row and which keys, and reductions in a warp. */
#ifndef KERNELS_FLASH_ROW_CUH
#define KERNELS_FLASH_ROW_CUH

#define WARP 32
#define FULL_WARP 0xffffffffu
#define NEG_INF __int_as_float(0xff800000)

/* q, o: [batch][heads][queries][HD]; k, v: [batch][kv_heads][keys][HD]; lse: [batch][heads][queries] */
struct Shape {
    int heads, kv_heads, queries, keys;
    /* Of the query rows of all batches and heads, the place of head `index`'s first. */
    __device__ size_t row(int index) const { return (size_t)index * queries; }
    /* The first key row of its key-value head. */
    __device__ size_t key(int index) const {
        const int batch = index / heads, head = index % heads;
        return ((size_t)batch * kv_heads + head / (heads / kv_heads)) * keys;
    }
    /* How many keys a query sees; causal: the last query sees the last key. */
    __device__ int seen(int query, bool causal) const {
        return causal ? max(0, min(keys, query + 1 + keys - queries)) : keys;
    }
};

static __device__ __forceinline__ float warp_max(float v) {
    for (int mask = WARP / 2; mask > 0; mask /= 2)
        v = fmaxf(v, __shfl_xor_sync(FULL_WARP, v, mask));
    return v;
}

static __device__ __forceinline__ float warp_sum(float v) {
    for (int mask = WARP / 2; mask > 0; mask /= 2)
        v += __shfl_xor_sync(FULL_WARP, v, mask);
    return v;
}

/*
 * What is subtracted in the place of a maximum: an infinite one would make NaN of itself.  So a row
 * without a key has weights 0, and one with +Inf a sum of +Inf: its lse is +Inf and its o NaN.
 */
static __device__ __forceinline__ float reference(float m) {
    return isinf(m) ? 0.0f : m;
}

static __device__ __forceinline__ float weight(float x, float m) {
    return expf(x - reference(m));
}

#endif
