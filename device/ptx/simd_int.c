/*
 * simd_int.c - integer arithmetic.  PTX ISA 9.7.1.  Everything wraps, except what says .sat;
 * all arithmetic is done in unsigned types, where C wraps too.
 */
#include "device/ptx/simd.h"

/* ---- handlers over every integer type -------------------------------------------------------- */

#define SIMPLE(name, expression)   \
    INT_TYPES(name##_AT)           \
    DECLARE_BIND(name) {           \
        USE_INT(x, in->type, name) \
    }

#define add_int_AT(tag, T, U, R) LANE_HANDLER(add_int, tag, T, U, R, T, R, (U)a + (U)b)
SIMPLE(add_int, )
#define sub_int_AT(tag, T, U, R) LANE_HANDLER(sub_int, tag, T, U, R, T, R, (U)a - (U)b)
SIMPLE(sub_int, )
#define abs_int_AT(tag, T, U, R) \
    LANE_HANDLER(abs_int, tag, T, U, R, T, R, a < (T)1 ? (U)0 - (U)a : (U)a)
SIMPLE(abs_int, )
#define neg_int_AT(tag, T, U, R) LANE_HANDLER(neg_int, tag, T, U, R, T, R, (U)0 - (U)a)
SIMPLE(neg_int, )
#define min_int_AT(tag, T, U, R) LANE_HANDLER(min_int, tag, T, U, R, T, R, a < b ? a : b)
SIMPLE(min_int, )
#define max_int_AT(tag, T, U, R) LANE_HANDLER(max_int, tag, T, U, R, T, R, a > b ? a : b)
SIMPLE(max_int, )
/* PTX ISA 9.7.1.14: sad adds |a - b|, as an unsigned difference, to c. */
#define sad_AT(tag, T, U, R) \
    LANE_HANDLER(sad, tag, T, U, R, T, R, (U)c + (a < b ? (U)b - (U)a : (U)a - (U)b))
SIMPLE(sad, )

/* By zero: unspecified in PTX; an H200 returns all ones as quotient and as remainder. */
#define IS_SIGNED(T) ((T)-1 < (T)1)
#define DIVIDE(T, U) (b == 0 ? ~(U)0 : IS_SIGNED(T) && b == (T)-1 ? (U)0 - (U)a : (U)(a / b))
#define REMAINDER(T, U) (b == 0 ? ~(U)0 : IS_SIGNED(T) && b == (T)-1 ? (U)0 : (U)(a % b))
#define div_int_AT(tag, T, U, R) LANE_HANDLER(div_int, tag, T, U, R, T, R, DIVIDE(T, U))
SIMPLE(div_int, )
#define rem_int_AT(tag, T, U, R) LANE_HANDLER(rem_int, tag, T, U, R, T, R, REMAINDER(T, U))
SIMPLE(rem_int, )

/* ---- products -------------------------------------------------------------------------------- */

/* (U)1 * keeps 16-bit factors from being multiplied as int; the widest products need 128 bits. */
__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

#define mul_lo_AT(tag, T, U, R) LANE_HANDLER(mul_lo, tag, T, U, R, T, R, (U)((U)a * (uint64_t)(U)b))
#define mad_lo_AT(tag, T, U, R) \
    LANE_HANDLER(mad_lo, tag, T, U, R, T, R, (U)((U)a * (uint64_t)(U)b) + (U)c)
INT_TYPES(mul_lo_AT)
INT_TYPES(mad_lo_AT)

#define HIGH_TYPES(NAME)                              \
    NAME(u16, uint16_t, uint16_t, u32a, uint32_t, 16) \
    NAME(s16, int16_t, uint16_t, u32a, int32_t, 16)   \
    NAME(u32, uint32_t, uint32_t, u32a, uint64_t, 32) \
    NAME(s32, int32_t, uint32_t, u32a, int64_t, 32)   \
    NAME(u64, uint64_t, uint64_t, u64a, u128, 64)     \
    NAME(s64, int64_t, uint64_t, u64a, s128, 64)
#define mul_hi_AT(tag, T, U, R, P, bits) \
    LANE_HANDLER(mul_hi, tag, T, U, R, T, R, (U)(((P)a * (P)b) >> bits))
#define mad_hi_AT(tag, T, U, R, P, bits) \
    LANE_HANDLER(mad_hi, tag, T, U, R, T, R, (U)(((P)a * (P)b) >> bits) + (U)c)
HIGH_TYPES(mul_hi_AT)
HIGH_TYPES(mad_hi_AT)

DECLARE_BIND(mul_int) {
    if (in->mods.half == HALF_HI) {
        USE_INT(x, in->type, mul_hi)
    }
    USE_INT(x, in->type, mul_lo)
}
DECLARE_BIND(mad_int) {
    if (in->mods.half == HALF_HI) {
        USE_INT(x, in->type, mad_hi)
    }
    USE_INT(x, in->type, mad_lo)
}

/* mul.wide, mad.wide: factors of type T in lanes RF, the result U in lanes R. */
#define WIDE(tag, T, RF, P, U, R)                                                             \
    ALWAYS const struct xinsn *wide_##tag(struct warp *w, const struct xinsn *x, bool masked, \
                                          bool add) {                                         \
        const RF *pa = ROW(RF, x->a), *pb = ROW(RF, x->b);                                    \
        const R *pc = ROW(R, x->c);                                                           \
        LANE_RESULT(R, x->d, (U)((P)(T)pa[i] * (P)(T)pb[i]) + (add ? (U)pc[i] : (U)0));       \
        return x + 1;                                                                         \
    }                                                                                         \
    VARIANTS(wide_##tag, _mul, false)                                                         \
    VARIANTS(wide_##tag, _mad, true)
WIDE(u16, uint16_t, u32a, uint32_t, uint32_t, u32a)
WIDE(s16, int16_t, u32a, int32_t, uint32_t, u32a)
WIDE(u32, uint32_t, u32a, uint64_t, uint64_t, u64a)
WIDE(s32, int32_t, u32a, int64_t, uint64_t, u64a)

DECLARE_BIND(mul_wide) {
    switch (in->type) {
    case PTX_U16: return USE(x, wide_u16_mul);
    case PTX_S16: return USE(x, wide_s16_mul);
    case PTX_U32: return USE(x, wide_u32_mul);
    case PTX_S32: return USE(x, wide_s32_mul);
    default: return false;
    }
}
DECLARE_BIND(mad_wide) {
    switch (in->type) {
    case PTX_U16: return USE(x, wide_u16_mad);
    case PTX_S16: return USE(x, wide_s16_mad);
    case PTX_U32: return USE(x, wide_u32_mad);
    case PTX_S32: return USE(x, wide_s32_mad);
    default: return false;
    }
}

/* ---- saturating, signed 32 bits -------------------------------------------------------------- */

static uint32_t clamp_s32(int64_t v) {
    return (uint32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}
LANE_HANDLER(add_sat, s32, int32_t, uint32_t, u32a, int32_t, u32a, clamp_s32((int64_t)a + b))
LANE_HANDLER(sub_sat, s32, int32_t, uint32_t, u32a, int32_t, u32a, clamp_s32((int64_t)a - b))
DECLARE_BIND(add_sat) {
    return in->type == PTX_S32 && USE(x, add_sat_s32);
}
DECLARE_BIND(sub_sat) {
    return in->type == PTX_S32 && USE(x, sub_sat_s32);
}
