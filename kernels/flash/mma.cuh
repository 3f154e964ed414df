/*
 * What the tensor-core forms share: a type's mma.sync, ldmatrix, cp.async, packing.
 *
 * Tiles of 16-bit values lie in shared memory as rows of WIDTH values in chunks of 8 (16 bytes);
 * chunk c of row r is stored at chunk c ^ (r % 8), so that the eight rows that one ldmatrix reads are
 * in different banks.
 */
#ifndef KERNELS_FLASH_MMA_CUH
#define KERNELS_FLASH_MMA_CUH

#include <stdint.h>

#include "kernels/flash/args.cuh"
#include "kernels/exp2_poly.h"

template <class T> struct Half;

template <> struct Half<__half> {
    /* d += a b, m16n8k16, f32 accumulators */
    static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4], uint32_t b0,
                                               uint32_t b1) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
            "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
    static __device__ __forceinline__ uint32_t pack(float low, float high) {
        uint32_t d;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
        return d;
    }
};

template <> struct Half<__nv_bfloat16> {
    static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4], uint32_t b0,
                                               uint32_t b1) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
            "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
    static __device__ __forceinline__ uint32_t pack(float low, float high) {
        uint32_t d;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
        return d;
    }
};

/* Four 8 x 8 matrices; lane l gives the address of row l % 8 of matrix l / 8. */
static __device__ __forceinline__ void ldmatrix(uint32_t d[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(address));
}

static __device__ __forceinline__ void ldmatrix_trans(uint32_t d[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(address));
}

/* 16 bytes to shared memory; zeros where not `there`, and then nothing is read. */
static __device__ __forceinline__ void copy_async(uint32_t to, const void *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

static __device__ __forceinline__ void copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Wait until at most PENDING of the newest groups are on their way. */
template <int PENDING> static __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Bytes into a tile: chunk c of row r. */
template <int WIDTH> static __device__ __forceinline__ uint32_t chunk_at(int r, int c) {
    return (uint32_t)(r * WIDTH * 2 + ((c ^ (r & 7)) << 4));
}

#endif
