/* simd_cvt.c - cvt: the frequent conversions over lanes, all others one by one through cvt.c. */
#include "device/ptx/cvt.h"
#include "device/ptx/half.h"
#include "device/ptx/simd.h"

/* ---- any conversion -------------------------------------------------------------------------- */

ALWAYS const struct xinsn *cvt_any(struct warp *w, const struct xinsn *x, bool masked) {
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint64_t a = x->abits > 32 ? row64(w, x->a)[i] : row32(w, x->a)[i];
        uint64_t r = cvt_lane(a, x->insn);
        if (x->dbits > 32)
            row64(w, x->d)[i] = r;
        else
            row32(w, x->d)[i] = x->dbits == 16 ? (uint16_t)r : (uint32_t)r;
    }
    return x + 1;
}
VARIANTS(cvt_any, )

/* ---- integers of 32 and 64 bits -------------------------------------------------------------- */

#define CVT(name, R, RA, expression)                                                      \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) { \
        const RA *pa = ROW(RA, x->a);                                                     \
        LANE_RESULT(R, x->d, ({                                                           \
                        RA a = pa[i];                                                     \
                        (expression);                                                     \
                    }));                                                                  \
        return x + 1;                                                                     \
    }                                                                                     \
    VARIANTS(name, )
CVT(cvt_zero_64, u64a, u32a, (uint64_t)a)
CVT(cvt_sign_64, u64a, u32a, (uint64_t)(int64_t)(int32_t)a)
CVT(cvt_low_32, u32a, u64a, (uint32_t)a)
CVT(cvt_same_32, u32a, u32a, a)
CVT(cvt_same_64, u64a, u64a, a)
CVT(cvt_low_16, u32a, u32a, a & 0xffffu)

/* ---- f32: saturation, and integers to f32 in round to nearest -------------------------------- */

static inline uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
CVT(cvt_s32_f32, u32a, u32a, bits_of((float)(int32_t)a))

ALWAYS const struct xinsn *cvt_sat_f32(struct warp *w, const struct xinsn *x, bool masked,
                                       bool ftz) {
    uint32_t m = MASK_OF(w, x, masked);
    FOR_VECTORS(i) {
        vu a = load_u(row32(w, x->a), i);
        if (ftz)
            a &= ~(vu)((a & 0x7f800000u) == 0);
        vu r = a & (vu)((vf)a > 0.0f); /* NaN and -0 become +0 */
        put(row32(w, x->d), i, select_u((vf)a > 1.0f, splat(0x3f800000u), r), m, masked);
    }
    return x + 1;
}
VARIANTS(cvt_sat_f32, _keep, false)
VARIANTS(cvt_sat_f32, _ftz, true)

/* ---- f16 and bf16 ---------------------------------------------------------------------------- */

CVT(cvt_f16_f32, u32a, u32a, f32_to_f16(a))
CVT(cvt_bf16_f32, u32a, u32a, f32_to_bf16(a))
CVT(cvt_f32_f16, u32a, u32a, f16_to_f32(a & 0xffff))
CVT(cvt_f32_bf16, u32a, u32a, a << 16)

/* The first source becomes the high half. */
#define PAIR(name, f)                                                                     \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) { \
        const u32a *pa = ROW(u32a, x->a), *pb = ROW(u32a, x->b);                          \
        LANE_RESULT(u32a, x->d, f(pa[i]) << 16 | f(pb[i]));                               \
        return x + 1;                                                                     \
    }                                                                                     \
    VARIANTS(name, )
PAIR(cvt_f16x2_f32, f32_to_f16)
PAIR(cvt_bf16x2_f32, f32_to_bf16)

ALWAYS const struct xinsn *cvt_pair_any(struct warp *w, const struct xinsn *x, bool masked) {
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint64_t high = cvt_lane(row32(w, x->a)[i], x->insn);
        uint64_t low = cvt_lane(row32(w, x->b)[i], x->insn);
        row32(w, x->d)[i] = (uint32_t)(high << 16 | low);
    }
    return x + 1;
}
VARIANTS(cvt_pair_any, )

DECLARE_BIND(cvt_pair) {
    bool plain = in->mods.rnd == RND_RN && !in->mods.relu && !in->mods.satfinite;
    if (!plain)
        return USE(x, cvt_pair_any);
    return in->type == PTX_F16X2 ? USE(x, cvt_f16x2_f32) : USE(x, cvt_bf16x2_f32);
}

ALWAYS const struct xinsn *cvt_eights(struct warp *w, const struct xinsn *x, bool masked) {
    enum ptx_op op = x->insn->op;
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint32_t a = row32(w, x->a)[i];
        row32(w, x->d)[i] = op == PTX_OP_CVT_F16_F8   ? cvt_from_eight(a, x->insn)
                            : op == PTX_OP_CVT_F8_F16 ? cvt_to_eight(a >> 16, a & 0xffff, x->insn)
                                                      : cvt_to_eight(a, row32(w, x->b)[i], x->insn);
    }
    return x + 1;
}
VARIANTS(cvt_eights, )
DECLARE_BIND(cvt_eight) {
    (void)in;
    return USE(x, cvt_eights);
}

static bool bind_half(struct xinsn *x, const struct ptx_insn *in) {
    const struct ptx_mods *m = &in->mods;
    if (m->ftz || m->sat || m->relu || m->satfinite || (x->dbits > 32) || (x->abits > 32))
        return false;
    if (in->type2 == PTX_F32 && m->rnd == RND_RN)
        return in->type == PTX_F16    ? USE(x, cvt_f16_f32)
               : in->type == PTX_BF16 ? USE(x, cvt_bf16_f32)
                                      : false;
    if (in->type == PTX_F32)
        return in->type2 == PTX_F16    ? USE(x, cvt_f32_f16)
               : in->type2 == PTX_BF16 ? USE(x, cvt_f32_bf16)
                                       : false;
    return false;
}

static bool bind_int(struct xinsn *x, const struct ptx_insn *in) {
    unsigned to = ptx_type_bits(in->type), from = ptx_type_bits(in->type2);
    if (in->mods.sat || x->abits == 16 || x->dbits != to || x->abits != from)
        return false;
    if (to == 64 && from == 64)
        return USE(x, cvt_same_64);
    if (to == 64)
        return in->type2 == PTX_S32 ? USE(x, cvt_sign_64) : USE(x, cvt_zero_64);
    if (to == 16)
        return from == 32 && USE(x, cvt_low_16);
    return from == 64 ? USE(x, cvt_low_32) : USE(x, cvt_same_32);
}

DECLARE_BIND(cvt) {
    bool from_float = in->type2 >= PTX_F16, to_float = in->type >= PTX_F16;
    if (bind_half(x, in))
        return true;
    if (!from_float && !to_float && bind_int(x, in))
        return true;
    if (in->type == PTX_F32 && in->type2 == PTX_F32 && in->mods.sat && in->mods.rnd == RND_NONE)
        return in->mods.ftz ? USE(x, cvt_sat_f32_ftz) : USE(x, cvt_sat_f32_keep);
    if (in->type == PTX_F32 && in->type2 == PTX_S32 && in->mods.rnd == RND_RN && !in->mods.sat)
        return USE(x, cvt_s32_f32);
    return USE(x, cvt_any);
}
