/*
 * kernels/cluster.cuh - thread-block clusters (sm_90): blocks that run together, meet at a barrier and
 * write to each other's shared memory.  PTX ISA: barrier.cluster, mapa.
 *
 * Every thread of a cluster arrives and waits in turn.  Before the first store to another block all of
 * them must have met once, since a block that has not started has no shared memory yet; and after the
 * last one once more, since a block that has ended has none any longer.
 */
#ifndef KERNELS_CLUSTER_CUH
#define KERNELS_CLUSTER_CUH

inline __device__ unsigned cluster_rank() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

inline __device__ unsigned cluster_size() {
    unsigned size;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}

/* Orders nothing: says only that this thread runs. */
inline __device__ void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;");
}

/* What this thread wrote before it is seen by all after their wait. */
inline __device__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
}

inline __device__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}

/* The address that `of`, in this block's shared memory, has in block `rank`'s. */
inline __device__ unsigned in_block(const void *of, unsigned rank) {
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"((unsigned)__cvta_generic_to_shared(of)), "r"(rank));
    return address;
}

/* *to = v in the shared memory of block `rank`. */
inline __device__ void store_in_block(float *to, unsigned rank, float v) {
    asm volatile("st.shared::cluster.f32 [%0], %1;" : : "r"(in_block(to, rank)), "f"(v) : "memory");
}

inline __device__ void store_in_block(float2 *to, unsigned rank, float2 v) {
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};"
                 :
                 : "r"(in_block(to, rank)), "f"(v.x), "f"(v.y)
                 : "memory");
}

#endif
