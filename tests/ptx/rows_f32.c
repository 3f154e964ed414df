/* rows_f32.c - single precision: MPFR for what rounds, bit rules for what does not. */
#include "device/ptx/mufu.h"
#include "tests/ptx/rows.h"

/* a: operation, b: rounding, c: 1 ftz, 2 sat. */
static uint64_t arithmetic(const struct row_case *k, const uint64_t in[4]) {
    uint32_t v[3] = {(uint32_t)in[0], (uint32_t)in[1], (uint32_t)in[2]};
    if (k->c & 1)
        for (int i = 0; i < 3; i++)
            v[i] = ref_flush(v[i]);
    uint32_t r = ref_f32(k->a, v[0], v[1], v[2], k->b);
    if (k->c & 1) /* tiny is what is tiny after rounding to 24 bits without a lower bound (H200) */
        r = ref_is_tiny(k->a, v[0], v[1], v[2], k->b) ? r & 0x80000000u : r;
    if (k->c & 2) /* [0, 1]; NaN to +0 */
        r = ref_is_nan32(r) || r >> 31 ? 0 : r > 0x3f800000u ? 0x3f800000u : r;
    return r;
}

/* With .ftz, times one flushes, and makes every NaN canonical. */
static uint64_t times_one(const struct row_case *k, const uint64_t in[4]) {
    (void)k;
    return ref_is_nan32(in[0]) ? 0x7fffffffu : ref_flush((uint32_t)in[0]);
}

/* Sign changes: a NaN becomes canonical (H200: they are additions of -0). */
static uint64_t absolute(const struct row_case *k, const uint64_t in[4]) {
    if (ref_is_nan32(in[0]))
        return 0x7fffffffu;
    return (k->c & 1 ? ref_flush((uint32_t)in[0]) : in[0]) & 0x7fffffffu;
}
static uint64_t negated(const struct row_case *k, const uint64_t in[4]) {
    if (ref_is_nan32(in[0]))
        return 0x7fffffffu;
    return (k->c & 1 ? ref_flush((uint32_t)in[0]) : in[0]) ^ 0x80000000u;
}

/* a: 1 for max; c: 1 ftz, 2 NaN wins.  Two NaNs: canonical (H200). */
static uint64_t extreme(const struct row_case *k, const uint64_t in[4]) {
    uint32_t a = (uint32_t)in[0], b = (uint32_t)in[1];
    if (k->c & 1) {
        a = ref_flush(a);
        b = ref_flush(b);
    }
    bool na = ref_is_nan32(a), nb = ref_is_nan32(b);
    if ((k->c & 2 && (na || nb)) || (na && nb))
        return 0x7fffffffu;
    if (na || nb)
        return nb ? a : b;
    /* Sign and magnitude to two's complement: an order with -0 just below +0. */
    int64_t ka = a >> 31 ? -(int64_t)(a & 0x7fffffffu) - 1 : (int64_t)a;
    int64_t kb = b >> 31 ? -(int64_t)(b & 0x7fffffffu) - 1 : (int64_t)b;
    return (k->a ? ka > kb : ka < kb) ? a : b;
}

/* a * rcp(b) with the operands scaled alike first (a: 1 for div.full, c: 1 ftz). */
static uint64_t through_reciprocal(const struct row_case *k, const uint64_t in[4]) {
    const struct row_case product = {.a = REF_MUL, .b = REF_RN, .c = k->c};
    uint64_t v[4] = {in[0] & 0xffffffffu, in[1] & 0xffffffffu, 0, 0};
    uint32_t size = (uint32_t)v[1] & 0x7fffffffu, scale = 0x3f800000u;
    if (k->a && size > 0x7e800000u && size <= 0x7f800000u)
        scale = 0x3e800000u; /* 2^-2 */
    else if (size < 0x00800000u && !k->c)
        scale = 0x4b800000u; /* 2^24 */
    for (int i = 0; i < 2; i++)
        if (scale != 0x3f800000u)
            v[i] = arithmetic(&product, (uint64_t[4]){v[i], scale, 0, 0});
    return arithmetic(&product, (uint64_t[4]){v[0], mufu_rcp((uint32_t)v[1]), 0, 0});
}

static uint64_t class_of(const struct row_case *k, const uint64_t in[4]) {
    uint32_t e = (uint32_t)in[0] >> 23 & 255, f = (uint32_t)in[0] & 0x7fffff;
    switch (k->a) {
    case 0: return e != 255;
    case 1: return e == 255 && f == 0;
    case 2: return !(e == 255 && f);
    case 3: return e == 255 && f;
    case 4: return e != 255 && (e != 0 || f == 0); /* zeros count as normal */
    default: return e == 0 && f;
    }
}

static uint64_t copysign_of(const struct row_case *k, const uint64_t in[4]) {
    (void)k;
    return (in[0] & 0x80000000u) | (in[1] & 0x7fffffffu);
}

#define R1(op, name, mods, operands, in, kind, rnd, flags)                                          \
    { PTX_OP_##op, name mods ".f32 %wr, " operands ";", "w", in, arithmetic, kind, rnd, flags }
#define R4(op, name, mods, operands, in, kind, flags)                                              \
    R1(op, name, ".rn" mods, operands, in, kind, REF_RN, flags),                                   \
        R1(op, name, ".rz" mods, operands, in, kind, REF_RZ, flags),                               \
        R1(op, name, ".rm" mods, operands, in, kind, REF_RM, flags),                               \
        R1(op, name, ".rp" mods, operands, in, kind, REF_RP, flags)
#define FTZ(op, name, operands, in, kind) \
    R4(op, name, "", operands, in, kind, 0), R4(op, name, ".ftz", operands, in, kind, 1)
#define FTZ_SAT(op, name, operands, in, kind)                                       \
    FTZ(op, name, operands, in, kind), R4(op, name, ".sat", operands, in, kind, 2), \
        R4(op, name, ".ftz.sat", operands, in, kind, 3)

static const struct row_case cases[] = {
    FTZ_SAT(ADD_F32, "add", "%w0, %w1", "ff", REF_ADD),
    {PTX_OP_ADD_F32, "add.f32 %wr, %w0, %w1;", "w", "ff", arithmetic, REF_ADD, REF_RN, 0},
    FTZ_SAT(SUB_F32, "sub", "%w0, %w1", "ff", REF_SUB),
    FTZ_SAT(MUL_F32, "mul", "%w0, %w1", "ff", REF_MUL),
    {PTX_OP_MUL_F32, "mul.ftz.f32 %wr, %w0, 0f3F800000;", "w", "f", times_one, 0, 0, 0},
    FTZ_SAT(FMA_F32, "fma", "%w0, %w1, %w2", "fff", REF_FMA),
    FTZ_SAT(MAD_F32, "mad", "%w0, %w1, %w2", "fff", REF_FMA),
    FTZ(DIV_F32, "div", "%w0, %w1", "ff", REF_DIV),
    FTZ(RCP_F32, "rcp", "%w0", "f", REF_RCP),
    FTZ(SQRT_F32, "sqrt", "%w0", "f", REF_SQRT),
    {PTX_OP_ABS_F32, "abs.f32 %wr, %w0;", "w", "f", absolute, 0, 0, 0},
    {PTX_OP_ABS_F32, "abs.ftz.f32 %wr, %w0;", "w", "f", absolute, 0, 0, 1},
    {PTX_OP_NEG_F32, "neg.f32 %wr, %w0;", "w", "f", negated, 0, 0, 0},
    {PTX_OP_NEG_F32, "neg.ftz.f32 %wr, %w0;", "w", "f", negated, 0, 0, 1},
    {PTX_OP_MIN_F32, "min.f32 %wr, %w0, %w1;", "w", "ff", extreme, 0, 0, 0},
    {PTX_OP_MIN_F32, "min.ftz.f32 %wr, %w0, %w1;", "w", "ff", extreme, 0, 0, 1},
    {PTX_OP_MIN_F32, "min.NaN.f32 %wr, %w0, %w1;", "w", "ff", extreme, 0, 0, 2},
    {PTX_OP_MIN_F32, "min.ftz.NaN.f32 %wr, %w0, %w1;", "w", "ff", extreme, 0, 0, 3},
    {PTX_OP_MAX_F32, "max.f32 %wr, %w0, %w1;", "w", "ff", extreme, 1, 0, 0},
    {PTX_OP_MAX_F32, "max.ftz.f32 %wr, %w0, %w1;", "w", "ff", extreme, 1, 0, 1},
    {PTX_OP_MAX_F32, "max.NaN.f32 %wr, %w0, %w1;", "w", "ff", extreme, 1, 0, 2},
    {PTX_OP_MAX_F32, "max.ftz.NaN.f32 %wr, %w0, %w1;", "w", "ff", extreme, 1, 0, 3},
    {PTX_OP_DIV_APPROX_F32, "div.approx.f32 %wr, %w0, %w1;", "w", "ff", through_reciprocal, 0, 0,
     0},
    {PTX_OP_DIV_APPROX_F32, "div.approx.ftz.f32 %wr, %w0, %w1;", "w", "ff", through_reciprocal, 0,
     0, 1},
    {PTX_OP_DIV_FULL_F32, "div.full.f32 %wr, %w0, %w1;", "w", "ff", through_reciprocal, 1, 0, 0},
    {PTX_OP_DIV_FULL_F32, "div.full.ftz.f32 %wr, %w0, %w1;", "w", "ff", through_reciprocal, 1, 0,
     1},
    {PTX_OP_TESTP_F32, "testp.finite.f32 %pr, %w0;", "p", "f", class_of, 0, 0, 0},
    {PTX_OP_TESTP_F32, "testp.infinite.f32 %pr, %w0;", "p", "f", class_of, 1, 0, 0},
    {PTX_OP_TESTP_F32, "testp.number.f32 %pr, %w0;", "p", "f", class_of, 2, 0, 0},
    {PTX_OP_TESTP_F32, "testp.notanumber.f32 %pr, %w0;", "p", "f", class_of, 3, 0, 0},
    {PTX_OP_TESTP_F32, "testp.normal.f32 %pr, %w0;", "p", "f", class_of, 4, 0, 0},
    {PTX_OP_TESTP_F32, "testp.subnormal.f32 %pr, %w0;", "p", "f", class_of, 5, 0, 0},
    {PTX_OP_COPYSIGN_F32, "copysign.f32 %wr, %w0, %w1;", "w", "ff", copysign_of, 0, 0, 0},
};
const struct row_list rows_f32 = {cases, sizeof cases / sizeof *cases};
