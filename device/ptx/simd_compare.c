/*
 * simd_compare.c - setp, set, selp, slct.  PTX ISA 9.7.7.
 * Ordered comparisons are false with a NaN, the u forms true; num and nan test for NaN itself.
 */
#include <math.h>

#include "device/ptx/simd.h"

/* ---- setp ------------------------------------------------------------------------------------ */

/* p = compare BOOL c, q = !compare BOOL c. */
ALWAYS const struct xinsn *setp_store(struct warp *w, const struct xinsn *x, uint32_t m,
                                      uint32_t compare) {
    uint32_t c = pred_p(w, x), p = compare, q = ~compare;
    switch ((enum ptx_bool)x->imm) {
    case BOOL_NONE: break;
    case BOOL_AND:
        p &= c;
        q &= c;
        break;
    case BOOL_OR:
        p |= c;
        q |= c;
        break;
    case BOOL_XOR:
        p ^= c;
        q ^= c;
        break;
    }
    put_pred(w, x->d, p, m);
    put_pred(w, x->d2, q, m);
    return x + 1;
}

#define SETP(name, T, R, ftz, expression)                                                 \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) { \
        const R *pa = ROW(R, x->a), *pb = ROW(R, x->b);                                   \
        u32a hit[LANES] __attribute__((aligned(64)));                                     \
        LANE_LOOP(i) {                                                                    \
            T a = LOAD_##T(pa[i], ftz), b = LOAD_##T(pb[i], ftz);                         \
            hit[i] = (expression) ? ~0u : 0;                                              \
        }                                                                                 \
        return setp_store(w, x, MASK_OF(w, x, masked), pack_row(hit));                    \
    }                                                                                     \
    VARIANTS(name, )

#define LOAD_uint16_t(v, ftz) ((uint16_t)(v))
#define LOAD_int16_t(v, ftz) ((int16_t)(v))
#define LOAD_uint32_t(v, ftz) ((uint32_t)(v))
#define LOAD_int32_t(v, ftz) ((int32_t)(v))
#define LOAD_uint64_t(v, ftz) ((uint64_t)(v))
#define LOAD_int64_t(v, ftz) ((int64_t)(v))

#define setp_int_AT(tag, T, U, R)            \
    SETP(setp_eq_##tag, T, R, false, a == b) \
    SETP(setp_ne_##tag, T, R, false, a != b) \
    SETP(setp_lt_##tag, T, R, false, a < b)  \
    SETP(setp_le_##tag, T, R, false, a <= b) \
    SETP(setp_gt_##tag, T, R, false, a > b)  \
    SETP(setp_ge_##tag, T, R, false, a >= b)
INT_TYPES(setp_int_AT)

static enum ptx_type as_unsigned(enum ptx_type t) {
    return t == PTX_S16 ? PTX_U16 : t == PTX_S32 ? PTX_U32 : t == PTX_S64 ? PTX_U64 : t;
}

DECLARE_BIND(setp_int) {
    enum ptx_type t = in->type, u = as_unsigned(in->type);
    x->imm = in->mods.boolop;
    switch (in->mods.cmp) {
    case CMP_EQ: USE_INT(x, t, setp_eq)
    case CMP_NE: USE_INT(x, t, setp_ne)
    case CMP_LT: USE_INT(x, t, setp_lt)
    case CMP_LE: USE_INT(x, t, setp_le)
    case CMP_GT: USE_INT(x, t, setp_gt)
    case CMP_GE: USE_INT(x, t, setp_ge)
    case CMP_LO: USE_INT(x, u, setp_lt)
    case CMP_LS: USE_INT(x, u, setp_le)
    case CMP_HI: USE_INT(x, u, setp_gt)
    case CMP_HS: USE_INT(x, u, setp_ge)
    default: return false;
    }
}

ALWAYS float as_f32(uint32_t bits, bool ftz) {
    float f;
    if (ftz && (bits & 0x7f800000u) == 0)
        bits &= 0x80000000u;
    memcpy(&f, &bits, 4);
    return f;
}
ALWAYS double as_f64(uint64_t bits) {
    double d;
    memcpy(&d, &bits, 8);
    return d;
}
#define LOAD_float(v, ftz) as_f32((v), (ftz))
#define LOAD_double(v, ftz) as_f64(v)

#define FLOAT_COMPARES(tag, T, R, ftz)                 \
    SETP(setp_eq_##tag, T, R, ftz, a == b)             \
    SETP(setp_ne_##tag, T, R, ftz, a<b || a> b)        \
    SETP(setp_lt_##tag, T, R, ftz, a < b)              \
    SETP(setp_le_##tag, T, R, ftz, a <= b)             \
    SETP(setp_gt_##tag, T, R, ftz, a > b)              \
    SETP(setp_ge_##tag, T, R, ftz, a >= b)             \
    SETP(setp_equ_##tag, T, R, ftz, !(a < b || a > b)) \
    SETP(setp_neu_##tag, T, R, ftz, a != b)            \
    SETP(setp_ltu_##tag, T, R, ftz, !(a >= b))         \
    SETP(setp_leu_##tag, T, R, ftz, !(a > b))          \
    SETP(setp_gtu_##tag, T, R, ftz, !(a <= b))         \
    SETP(setp_geu_##tag, T, R, ftz, !(a < b))          \
    SETP(setp_num_##tag, T, R, ftz, a == a && b == b)  \
    SETP(setp_nan_##tag, T, R, ftz, a != a || b != b)
FLOAT_COMPARES(f32, float, u32a, false)
FLOAT_COMPARES(f32_ftz, float, u32a, true)
FLOAT_COMPARES(f64, double, u64a, false)

#define FLOAT_CHOICE(tag)                        \
    x->imm = in->mods.boolop;                    \
    switch (in->mods.cmp) {                      \
    case CMP_EQ: return USE(x, setp_eq_##tag);   \
    case CMP_NE: return USE(x, setp_ne_##tag);   \
    case CMP_LT: return USE(x, setp_lt_##tag);   \
    case CMP_LE: return USE(x, setp_le_##tag);   \
    case CMP_GT: return USE(x, setp_gt_##tag);   \
    case CMP_GE: return USE(x, setp_ge_##tag);   \
    case CMP_EQU: return USE(x, setp_equ_##tag); \
    case CMP_NEU: return USE(x, setp_neu_##tag); \
    case CMP_LTU: return USE(x, setp_ltu_##tag); \
    case CMP_LEU: return USE(x, setp_leu_##tag); \
    case CMP_GTU: return USE(x, setp_gtu_##tag); \
    case CMP_GEU: return USE(x, setp_geu_##tag); \
    case CMP_NUM: return USE(x, setp_num_##tag); \
    case CMP_NAN: return USE(x, setp_nan_##tag); \
    default: return false;                       \
    }

DECLARE_BIND(setp_f32) {
    if (in->mods.ftz) {
        FLOAT_CHOICE(f32_ftz)
    }
    FLOAT_CHOICE(f32)
}
DECLARE_BIND(setp_f64) {
    FLOAT_CHOICE(f64)
}

/* ---- set: rare, lane by lane ----------------------------------------------------------------- */

static bool ordered(enum ptx_cmp cmp, bool lt, bool eq, bool gt) {
    bool unordered = !lt && !eq && !gt;
    switch (cmp) {
    case CMP_EQ: return eq;
    case CMP_NE: return lt || gt;
    case CMP_LT:
    case CMP_LO: return lt;
    case CMP_LE:
    case CMP_LS: return lt || eq;
    case CMP_GT:
    case CMP_HI: return gt;
    case CMP_GE:
    case CMP_HS: return gt || eq;
    case CMP_EQU: return !lt && !gt;
    case CMP_NEU: return !eq;
    case CMP_LTU: return !gt && !eq;
    case CMP_LEU: return !gt;
    case CMP_GTU: return !lt && !eq;
    case CMP_GEU: return !lt;
    case CMP_NUM: return !unordered;
    case CMP_NAN: return unordered;
    case CMP_NONE: break;
    }
    return false;
}

#define THREE_WAY(cmp, a, b) ordered((cmp), (a) < (b), (a) == (b), (a) > (b))

static bool compare_bits(const struct ptx_insn *in, uint64_t a, uint64_t b) {
    enum ptx_cmp cmp = in->mods.cmp;
    bool as_un = cmp == CMP_LO || cmp == CMP_LS || cmp == CMP_HI || cmp == CMP_HS;
    switch (as_un ? as_unsigned(in->type2) : in->type2) {
    case PTX_F32:
        return THREE_WAY(cmp, as_f32((uint32_t)a, in->mods.ftz), as_f32((uint32_t)b, in->mods.ftz));
    case PTX_F64: return THREE_WAY(cmp, as_f64(a), as_f64(b));
    case PTX_S16: return THREE_WAY(cmp, (int16_t)a, (int16_t)b);
    case PTX_S32: return THREE_WAY(cmp, (int32_t)a, (int32_t)b);
    case PTX_S64: return THREE_WAY(cmp, (int64_t)a, (int64_t)b);
    default: return THREE_WAY(cmp, a, b);
    }
}

ALWAYS const struct xinsn *set_lanes(struct warp *w, const struct xinsn *x, bool masked) {
    bool wide = ptx_type_bits(x->insn->type2) > 32;
    uint32_t yes = x->insn->type == PTX_F32 ? 0x3f800000u : ~0u, with = pred_p(w, x);
    enum ptx_bool op = x->insn->mods.boolop;
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint64_t a = wide ? row64(w, x->a)[i] : row32(w, x->a)[i];
        uint64_t b = wide ? row64(w, x->b)[i] : row32(w, x->b)[i];
        bool r = compare_bits(x->insn, a, b), p = with >> i & 1;
        r = op == BOOL_AND ? r && p : op == BOOL_OR ? r || p : op == BOOL_XOR ? r != p : r;
        row32(w, x->d)[i] = r ? yes : 0;
    }
    return x + 1;
}
VARIANTS(set_lanes, )
DECLARE_BIND(set) {
    return in->mods.cmp != CMP_NONE && USE(x, set_lanes);
}

/* ---- selp, slct ------------------------------------------------------------------------------ */

#define SELECT(tag, R, choose)                                                           \
    ALWAYS const struct xinsn *tag(struct warp *w, const struct xinsn *x, bool masked) { \
        const R *pa = ROW(R, x->a), *pb = ROW(R, x->b);                                  \
        const u32a *pc = ROW(u32a, x->c);                                                \
        uint32_t p = pred_p(w, x);                                                       \
        (void)p, (void)pc;                                                               \
        LANE_RESULT(R, x->d, ({                                                          \
                        R a = pa[i], b = pb[i];                                          \
                        (choose) ? a : b;                                                \
                    }));                                                                 \
        return x + 1;                                                                    \
    }                                                                                    \
    VARIANTS(tag, )
SELECT(selp_u32, u32a, p &lane_bit[i])
SELECT(selp_u64, u64a, p &lane_bit[i])
SELECT(slct_s32_u32, u32a, (int32_t)pc[i] >= 0)
SELECT(slct_s32_u64, u64a, (int32_t)pc[i] >= 0)
SELECT(slct_f32_u32, u32a, as_f32(pc[i], false) >= 0)
SELECT(slct_f32_u64, u64a, as_f32(pc[i], false) >= 0)
SELECT(slct_ftz_u32, u32a, as_f32(pc[i], true) >= 0)
SELECT(slct_ftz_u64, u64a, as_f32(pc[i], true) >= 0)

DECLARE_BIND(selp) {
    return ptx_type_bits(in->type) > 32 ? USE(x, selp_u64) : USE(x, selp_u32);
}
DECLARE_BIND(slct) {
    bool wide = ptx_type_bits(in->type) > 32;
    if (in->type2 == PTX_S32)
        return wide ? USE(x, slct_s32_u64) : USE(x, slct_s32_u32);
    if (in->mods.ftz)
        return wide ? USE(x, slct_ftz_u64) : USE(x, slct_ftz_u32);
    return wide ? USE(x, slct_f32_u64) : USE(x, slct_f32_u32);
}
