/*
 * device/ptx/simd.h - 32 lanes in the vectors of one x86-64 level.
 *
 * Every simd_*.c is compiled once per level: ISA is v2, v3 or v4, ISA_LEVEL its number.  Functions
 * that are visible outside get the level as a suffix.  All levels give the same bits.
 *
 * Integer handlers are plain loops over the lanes that the compiler vectorises; single-precision
 * arithmetic uses explicit vectors, because a directed rounding mode must be pinned around it.
 */
#ifndef DEVICE_PTX_SIMD_H
#define DEVICE_PTX_SIMD_H

#include <immintrin.h>
#include <string.h>

#include "device/ptx/exec.h"

#define CAT2(a, b) a##_##b
#define CAT(a, b) CAT2(a, b)
#define ISA_NAME(name) CAT(name, ISA)
#define BIND(handler) ISA_NAME(bind_##handler)
#define ALWAYS static inline __attribute__((always_inline))

bool ISA_NAME(count_events)(struct xinsn *x, struct inner *inner); /* simd_events.c */

/* A loop whose iterations do not depend on each other; rows may be the same row, never overlap. */
#ifdef __clang__
#    define LANE_LOOP(i)                                                                   \
        _Pragma("clang loop vectorize(assume_safety) interleave(disable)") for (int i = 0; \
                                                                                i < LANES; i++)
#else
#    define LANE_LOOP(i) _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)
#endif

/* Expand a mask of lanes into a row of all ones and zeros. */
static const uint32_t lane_bit[LANES] __attribute__((aligned(64))) = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

/* ---- vectors of W lanes ---------------------------------------------------------------------- */

#if ISA_LEVEL == 4
#    define W 16
#elif ISA_LEVEL == 3
#    define W 8
#else
#    define W 4
#endif

typedef float vf __attribute__((vector_size(W * 4), may_alias));
typedef int32_t vs __attribute__((vector_size(W * 4), may_alias));
typedef uint32_t vu __attribute__((vector_size(W * 4), may_alias));

#define FOR_VECTORS(i) for (int i = 0; i < LANES; i += W)

ALWAYS vu load_u(const u32a *row, int i) {
    return *(const vu *)(row + i);
}
ALWAYS vu splat(uint32_t x) {
    return x - (vu){0};
}
ALWAYS vu select_u(vs mask, vu yes, vu no) {
    return ((vu)mask & yes) | (~(vu)mask & no);
}
/* Lanes i .. i+W-1 of the mask m as all ones and zeros. */
ALWAYS vs lanes_at(uint32_t m, int i) {
    return (vs)((splat(m) & *(const vu *)(lane_bit + i)) != 0);
}

/* Store a result: to every lane, or to the lanes of m. */
ALWAYS void put(u32a *row, int i, vu value, uint32_t m, bool masked) {
    vu *at = (vu *)(row + i);
    *at = masked ? select_u(lanes_at(m, i), value, *at) : value;
}

/* Bit i = the top bit of lane i of a row. */
ALWAYS uint32_t pack_row(const u32a *row) {
    uint32_t m = 0;
    FOR_VECTORS(i) {
#if ISA_LEVEL == 4
        m |= (uint32_t)_mm512_movepi32_mask((__m512i)load_u(row, i)) << i;
#elif ISA_LEVEL == 3
        m |= (uint32_t)_mm256_movemask_ps((__m256)load_u(row, i)) << i;
#else
        m |= (uint32_t)_mm_movemask_ps((__m128)load_u(row, i)) << i;
#endif
    }
    return m;
}

/* ---- common shapes of handlers --------------------------------------------------------------- */

/* The lanes an instruction works on; every lane when the variant is the unmasked one. */
#define MASK_OF(w, x, masked) ((masked) ? active((w), (x)) : ~0u)

/* Make NAME_full and NAME_masked from the always-inline NAME(w, x, masked, ...). */
#define VARIANTS(name, suffix, ...)                                                           \
    static const struct xinsn *name##suffix##_full(struct warp *w, const struct xinsn *x) {   \
        return name(w, x, false __VA_OPT__(, ) __VA_ARGS__);                                  \
    }                                                                                         \
    static const struct xinsn *name##suffix##_masked(struct warp *w, const struct xinsn *x) { \
        return name(w, x, true __VA_OPT__(, ) __VA_ARGS__);                                   \
    }

#define USE(x, name) ((x)->full = name##_full, (x)->masked = name##_masked, true)

/* A handler that computes lane by lane.  T: lane type of the result's row (u32a or u64a). */
#define LANE_RESULT(T, row, expression)                                     \
    do {                                                                    \
        T *restrict_d = (T *)__builtin_assume_aligned(w->file + (row), 64); \
        if (masked) {                                                       \
            uint32_t lanes_ = active(w, x);                                 \
            LANE_LOOP(i) {                                                  \
                T r_ = (T)(expression);                                     \
                T old_ = restrict_d[i];                                     \
                restrict_d[i] = lanes_ & lane_bit[i] ? r_ : old_;           \
            }                                                               \
        } else {                                                            \
            LANE_LOOP(i) restrict_d[i] = (T)(expression);                   \
        }                                                                   \
    } while (0)

/*
 * Integer types: NAME(tag, signed or unsigned C type, unsigned type of that width, lane type).
 * 16-bit values sit zero-extended in 32-bit lanes.
 */
#define INT_TYPES(NAME)                 \
    NAME(u16, uint16_t, uint16_t, u32a) \
    NAME(s16, int16_t, uint16_t, u32a)  \
    NAME(u32, uint32_t, uint32_t, u32a) \
    NAME(s32, int32_t, uint32_t, u32a)  \
    NAME(u64, uint64_t, uint64_t, u64a) \
    NAME(s64, int64_t, uint64_t, u64a)

#define ROW(T, number) ((T *)__builtin_assume_aligned(w->file + (number), 64))

/*
 * A handler NAME_TAG over lanes: expression in a, b, c of C type T; the result is cut to type U and
 * stored in lanes of type R.  UC: the C type of source c, in lanes of type RC.
 */
#define LANE_HANDLER(name, tag, T, U, R, TC, RC, expression)                                      \
    ALWAYS const struct xinsn *name##_##tag(struct warp *w, const struct xinsn *x, bool masked) { \
        const R *pa = ROW(R, x->a), *pb = ROW(R, x->b);                                           \
        const RC *pc = ROW(RC, x->c);                                                             \
        LANE_RESULT(R, x->d, ({                                                                   \
                        T a = (T)pa[i], b = (T)pb[i];                                             \
                        TC c = (TC)pc[i];                                                         \
                        (void)a, (void)b, (void)c;                                                \
                        (U)(expression);                                                          \
                    }));                                                                          \
        return x + 1;                                                                             \
    }                                                                                             \
    VARIANTS(name##_##tag, )

/* Choose by integer type (b types as unsigned). */
#define USE_INT(x, type, name)               \
    switch (type) {                          \
    case PTX_B16:                            \
    case PTX_U16: return USE(x, name##_u16); \
    case PTX_S16: return USE(x, name##_s16); \
    case PTX_B32:                            \
    case PTX_U32: return USE(x, name##_u32); \
    case PTX_S32: return USE(x, name##_s32); \
    case PTX_B64:                            \
    case PTX_U64: return USE(x, name##_u64); \
    case PTX_S64: return USE(x, name##_s64); \
    default: return false;                   \
    }

#define DECLARE_BIND(handler)                                        \
    bool BIND(handler)(struct xinsn * x, const struct ptx_insn *in); \
    bool BIND(handler)(struct xinsn * x, const struct ptx_insn *in)

/* Set predicate `number` to `value` in the lanes. */
ALWAYS void put_pred(struct warp *w, uint32_t number, uint32_t value, uint32_t lanes) {
    w->pred[number] = (w->pred[number] & ~lanes) | (value & lanes);
}

/* A source predicate. */
ALWAYS uint32_t pred_p(const struct warp *w, const struct xinsn *x) {
    return w->pred[x->p] ^ x->pneg;
}
ALWAYS uint32_t pred_p2(const struct warp *w, const struct xinsn *x) {
    return w->pred[x->p2] ^ x->p2neg;
}

#endif
