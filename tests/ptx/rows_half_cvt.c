/*
 * rows_half_cvt.c - conversions to and from f16, bf16 and tf32: exact in MPFR, then rounded once.
 *
 * a: source type, b: destination type, c: rounding, then flags.
 */
#include <mpfr.h>

#include "tests/ptx/rows.h"

enum { RNA = REF_RNA, FTZ = 16, SAT = 32, INTEGRAL = 64, RELU = 128, FINITE = 256, PAIR = 512 };

static const mpfr_rnd_t modes[] = {MPFR_RNDN, MPFR_RNDZ, MPFR_RNDD, MPFR_RNDU};

static const struct ref_format *format(int t) {
    switch (t) {
    case PTX_F16:
        return &ref_f16;
    case PTX_BF16:
        return &ref_bf16;
    case PTX_TF32:
        return &ref_tf32;
    case PTX_F32:
        return &ref_binary32;
    case PTX_F64:
        return &ref_binary64;
    default:
        return NULL;
    }
}

static void set_int(mpfr_ptr x, int t, uint64_t bits) {
    int unused = 64 - ref_bits(t);
    if (ref_is_signed(t))
        mpfr_set_si(x, (int64_t)(bits << unused) >> unused, MPFR_RNDN);
    else
        mpfr_set_ui(x, bits << unused >> unused, MPFR_RNDN);
}

/* Sign and payload, quieted. */
static uint64_t keep_payload(const struct row_case *k, uint64_t bits) {
    const struct ref_format *from = format(k->a), *to = format(k->b);
    uint64_t sign = bits >> (from->bits - 1) & 1;
    uint64_t payload = bits << (64 - from->fraction) >> (64 - to->fraction);
    return sign << (to->bits - 1) | to->infinity | (uint64_t)1 << (to->fraction - 1) | payload;
}

/*
 * H200: canonical, except to and from f64, and where the conversion is not one: bf16 to f32 is a
 * shift, rna.tf32 is masking.  To an integer NaN gives 0, or the top bit of 64.
 */
static uint64_t from_nan(const struct row_case *k, uint64_t bits) {
    if (!format(k->b))
        return ref_bits(k->b) == 64 ? (uint64_t)1 << 63 : 0;
    if (k->c & SAT)
        return 0;
    if (k->a == PTX_F64 || k->b == PTX_F64)
        return keep_payload(k, bits);
    if (k->a == PTX_BF16 && k->b == PTX_F32 && !(k->c & FTZ))
        return bits << 16;
    if (k->b == PTX_TF32 && (k->c & 7) == RNA)
        return (bits & ~(uint64_t)0x1fff) - (k->c & FINITE ? 0x2000 : 0);
    return k->b == PTX_TF32 ? 0x7fffe000 : k->b == PTX_F32 ? 0x7fffffff : 0x7fff;
}

static uint64_t to_int(mpfr_ptr x, const struct row_case *k) {
    int bits = ref_bits(k->b), width = bits == 8 ? 32 : bits;
    uint64_t v = ref_to_int(x, k->b, k->c & 3);
    return width == 64 ? v : v & (((uint64_t)1 << width) - 1);
}

static uint64_t to_float(mpfr_ptr x, const struct row_case *k) {
    const struct ref_format *f = format(k->b);
    int sign = mpfr_signbit(x);
    if (k->c & (SAT | RELU) && sign)
        return 0;
    if (k->c & SAT && mpfr_cmp_ui(x, 1) > 0)
        mpfr_set_ui(x, 1, MPFR_RNDN);
    if (k->c & INTEGRAL && !mpfr_inf_p(x)) {
        mpfr_rint(x, x, modes[k->c & 3]);
        mpfr_setsign(x, x, sign, MPFR_RNDN);
    }
    uint64_t r = ref_round(x, f, k->c & 7);
    uint64_t top = (uint64_t)1 << (f->bits - 1);
    if (k->c & FINITE && (r & ~top) == f->infinity)
        r--;
    return k->b == PTX_TF32 ? r << 13 : r;
}

static uint64_t convert_one(const struct row_case *k, uint64_t bits) {
    const struct ref_format *from = format(k->a);
    if (from && from->bits < 64)
        bits &= ((uint64_t)1 << from->bits) - 1;
    if (from && ref_is_nan(from, bits))
        return from_nan(k, bits);
    if (k->a == PTX_F32 && k->c & FTZ && k->b != PTX_F16) /* H200: no flushing before f16 */
        bits = ref_flush((uint32_t)bits);
    mpfr_t x;
    mpfr_init2(x, 64);
    if (from)
        ref_set(x, from, bits);
    else
        set_int(x, k->a, bits);
    uint64_t r = format(k->b) ? to_float(x, k) : to_int(x, k);
    mpfr_clear(x);
    return k->b == PTX_F32 && k->c & FTZ ? ref_flush((uint32_t)r) : r;
}

static uint64_t convert(const struct row_case *k, const uint64_t in[4]) {
    if (k->c & PAIR)
        return convert_one(k, in[0] & 0xffffffffu) << 16 | convert_one(k, in[1] & 0xffffffffu);
    return convert_one(k, in[0]);
}

#define CVT(row, mods, D, dn, dr, S, sn, sr, in, flags)                                     \
    {                                                                                       \
        PTX_OP_CVT_##row, "cvt" mods "." dn "." sn " %" dr "r, %" sr "0;", dr, in, convert, \
            PTX_##S, PTX_##D, flags                                                         \
    }
#define FOUR(row, mods, ...)                                                       \
    CVT(row, ".rn" mods, __VA_ARGS__), CVT(row, ".rz" mods, __VA_ARGS__ + REF_RZ), \
        CVT(row, ".rm" mods, __VA_ARGS__ + REF_RM), CVT(row, ".rp" mods, __VA_ARGS__ + REF_RP)
#define TWO(row, mods, ...) \
    CVT(row, ".rn" mods, __VA_ARGS__), CVT(row, ".rz" mods, __VA_ARGS__ + REF_RZ)
#define FOUR_INT(row, mods, ...)                                                     \
    CVT(row, ".rni" mods, __VA_ARGS__), CVT(row, ".rzi" mods, __VA_ARGS__ + REF_RZ), \
        CVT(row, ".rmi" mods, __VA_ARGS__ + REF_RM), CVT(row, ".rpi" mods, __VA_ARGS__ + REF_RP)

#define FROM_BYTE(S, sn, sr)                              \
    FOUR(F16_INT, "", F16, "f16", "h", S, sn, sr, sr, 0), \
        CVT(F16_INT, ".rn.sat", F16, "f16", "h", S, sn, sr, sr, SAT)
#define FROM_INT(S, sn, sr) \
    FROM_BYTE(S, sn, sr), FOUR(BF16_INT, "", BF16, "bf16", "h", S, sn, sr, sr, 0)
#define TO_BYTE(D, dn, dr)                                     \
    FOUR_INT(INT_F16, "", D, dn, dr, F16, "f16", "h", "e", 0), \
        CVT(INT_F16, ".rni.sat", D, dn, dr, F16, "f16", "h", "e", 0)
#define TO_INT(D, dn, dr) \
    TO_BYTE(D, dn, dr), FOUR_INT(INT_BF16, "", D, dn, dr, BF16, "bf16", "h", "b", 0)

/* ---- 8 bits ---------------------------------------------------------------------------------- */

/* e4m3 has NaN where e5m2's pattern has infinity; "infinity" here is the first code past the largest. */
static const struct ref_format ref_e4m3 = {8, 3, -9, 0x7f}, ref_e5m2 = {8, 2, -16, 0x7c};

static const struct ref_format *eight(int type) {
    return type == PTX_E4M3X2 ? &ref_e4m3 : &ref_e5m2;
}

/* One number rounded to nearest; too large: the largest; NaN: 0x7f. */
static uint64_t narrow_one(const struct row_case *k, uint64_t bits) {
    const struct ref_format *from = format(k->a), *to = eight(k->b);
    bits &= ((uint64_t)1 << from->bits) - 1;
    if (ref_is_nan(from, bits))
        return 0x7f;
    mpfr_t x;
    mpfr_init2(x, 64);
    ref_set(x, from, bits);
    uint64_t sign = mpfr_signbit(x) ? 0x80 : 0;
    /* Past halfway from 448 or 57344 to the number that would be next, ref_round gives its code. */
    uint64_t r = mpfr_inf_p(x) ? to->infinity : ref_round(x, to, REF_RN) & 0x7f;
    mpfr_clear(x);
    if (r >= to->infinity)
        r = to->infinity - 1;
    return k->c & RELU && sign ? 0 : sign | r;
}

static uint64_t narrow_two(const struct row_case *k, const uint64_t in[4]) {
    if (k->a == PTX_F32)
        return narrow_one(k, in[0]) << 8 | narrow_one(k, in[1]);
    return narrow_one(k, in[0] >> 16) << 8 | narrow_one(k, in[0]);
}

static uint64_t widen_one(const struct row_case *k, uint64_t byte) {
    const struct ref_format *from = eight(k->a);
    uint64_t size = byte & 0x7f;
    if (size == 0x7f || (k->a == PTX_E5M2X2 && size > 0x7c))
        return 0x7fff;
    if (k->c & RELU && byte & 0x80)
        return 0;
    /* By definition: (-1)^s * m * 2^e. */
    int field = (int)(size >> from->fraction);
    if (k->a == PTX_E5M2X2 && size == 0x7c)
        return byte << 8;
    mpfr_t x;
    mpfr_init2(x, 64);
    uint64_t low = size & ((1u << from->fraction) - 1);
    mpfr_set_ui_2exp(x, field ? low | 1u << from->fraction : low,
                     from->last + (field ? field - 1 : 0), MPFR_RNDN);
    uint64_t r = ref_round(x, &ref_f16, REF_RN) | (byte & 0x80) << 8;
    mpfr_clear(x);
    return r;
}

static uint64_t widen_two(const struct row_case *k, const uint64_t in[4]) {
    return widen_one(k, in[0] >> 8 & 0xff) << 16 | widen_one(k, in[0] & 0xff);
}

#define EIGHT(D, dn)                                                                               \
    {PTX_OP_CVT_F8_F32, "cvt.rn.satfinite." dn ".f32 %hr, %w0, %w1;", "h", "ff", narrow_two,       \
     PTX_F32, PTX_##D, 0},                                                                         \
        {PTX_OP_CVT_F8_F32, "cvt.rn.satfinite.relu." dn ".f32 %hr, %w0, %w1;", "h", "ff",          \
         narrow_two, PTX_F32, PTX_##D, RELU},                                                      \
        {PTX_OP_CVT_F8_F16, "cvt.rn.satfinite." dn ".f16x2 %hr, %w0;", "h", "E", narrow_two,       \
         PTX_F16, PTX_##D, 0},                                                                     \
        {PTX_OP_CVT_F8_F16, "cvt.rn.satfinite.relu." dn ".f16x2 %hr, %w0;", "h", "E", narrow_two,  \
         PTX_F16, PTX_##D, RELU},                                                                  \
        {PTX_OP_CVT_F16_F8, "cvt.rn.f16x2." dn " %wr, %h0;", "w", "e", widen_two, PTX_##D,         \
         PTX_F16, 0},                                                                              \
    {                                                                                              \
        PTX_OP_CVT_F16_F8, "cvt.rn.relu.f16x2." dn " %wr, %h0;", "w", "e", widen_two, PTX_##D,     \
            PTX_F16, RELU                                                                          \
    }

#define PAIRS(mods, flags)                                                                         \
    {PTX_OP_CVT_PAIR_F32,                                                                          \
     "cvt" mods ".f16x2.f32 %wr, %w0, %w1;",                                                       \
     "w",                                                                                          \
     "ff",                                                                                         \
     convert,                                                                                      \
     PTX_F32,                                                                                      \
     PTX_F16,                                                                                      \
     PAIR + (flags)},                                                                              \
    {                                                                                              \
        PTX_OP_CVT_PAIR_F32, "cvt" mods ".bf16x2.f32 %wr, %w0, %w1;", "w", "ff", convert, PTX_F32, \
            PTX_BF16, PAIR + (flags)                                                               \
    }

static const struct row_case cases[] = {
    CVT(F32_F16, "", F32, "f32", "w", F16, "f16", "h", "e", 0),
    CVT(F32_F16, ".ftz", F32, "f32", "w", F16, "f16", "h", "e", FTZ),
    CVT(F32_F16, ".sat", F32, "f32", "w", F16, "f16", "h", "e", SAT),
    CVT(F32_F16, ".ftz.sat", F32, "f32", "w", F16, "f16", "h", "e", FTZ + SAT),
    CVT(F64_F16, "", F64, "f64", "d", F16, "f16", "h", "e", 0),
    CVT(F64_F16, ".sat", F64, "f64", "d", F16, "f16", "h", "e", SAT),
    CVT(F32_BF16, "", F32, "f32", "w", BF16, "bf16", "h", "b", 0),
    CVT(F32_BF16, ".ftz", F32, "f32", "w", BF16, "bf16", "h", "b", FTZ),
    CVT(F32_BF16, ".rm", F32, "f32", "w", BF16, "bf16", "h", "b", 0),
    CVT(F64_BF16, "", F64, "f64", "d", BF16, "bf16", "h", "b", 0),
    CVT(F64_BF16, ".rp", F64, "f64", "d", BF16, "bf16", "h", "b", 0),
    FOUR(F16_F32, "", F16, "f16", "h", F32, "f32", "w", "f", 0),
    FOUR(F16_F32, ".ftz", F16, "f16", "h", F32, "f32", "w", "f", FTZ),
    FOUR(F16_F32, ".sat", F16, "f16", "h", F32, "f32", "w", "f", SAT),
    FOUR(F16_F32, ".ftz.sat", F16, "f16", "h", F32, "f32", "w", "f", FTZ + SAT),
    FOUR(F16_F64, "", F16, "f16", "h", F64, "f64", "d", "F", 0),
    CVT(F16_F64, ".rn.sat", F16, "f16", "h", F64, "f64", "d", "F", SAT),
    FOUR(BF16_F32, "", BF16, "bf16", "h", F32, "f32", "w", "f", 0),
    FOUR(BF16_F32, ".ftz", BF16, "bf16", "h", F32, "f32", "w", "f", FTZ),
    FOUR(BF16_F64, "", BF16, "bf16", "h", F64, "f64", "d", "F", 0),
    TWO(HALF_F32, ".relu", F16, "f16", "h", F32, "f32", "w", "f", RELU),
    TWO(HALF_F32, ".satfinite", F16, "f16", "h", F32, "f32", "w", "f", FINITE),
    TWO(HALF_F32, ".relu.satfinite", F16, "f16", "h", F32, "f32", "w", "f", RELU + FINITE),
    TWO(HALF_F32, ".relu", BF16, "bf16", "h", F32, "f32", "w", "f", RELU),
    TWO(HALF_F32, ".satfinite", BF16, "bf16", "h", F32, "f32", "w", "f", FINITE),
    TWO(HALF_F32, ".relu.satfinite", BF16, "bf16", "h", F32, "f32", "w", "f", RELU + FINITE),
    PAIRS(".rn", 0),
    PAIRS(".rz", REF_RZ),
    PAIRS(".rn.relu", RELU),
    PAIRS(".rz.relu", RELU + REF_RZ),
    PAIRS(".rn.satfinite", FINITE),
    PAIRS(".rn.relu.satfinite", RELU + FINITE),
    CVT(F16_BF16, "", F16, "f16", "h", BF16, "bf16", "h", "b", 0),
    FOUR(F16_BF16, "", F16, "f16", "h", BF16, "bf16", "h", "b", 0),
    CVT(BF16_F16, "", BF16, "bf16", "h", F16, "f16", "h", "e", 0),
    FOUR(BF16_F16, "", BF16, "bf16", "h", F16, "f16", "h", "e", 0),
    CVT(F16_F16, "", F16, "f16", "h", F16, "f16", "h", "e", 0),
    CVT(F16_F16, ".sat", F16, "f16", "h", F16, "f16", "h", "e", SAT),
    CVT(F16_F16, ".rmi.sat", F16, "f16", "h", F16, "f16", "h", "e", SAT + INTEGRAL + REF_RM),
    FOUR_INT(F16_F16, "", F16, "f16", "h", F16, "f16", "h", "e", INTEGRAL),
    CVT(BF16_BF16, "", BF16, "bf16", "h", BF16, "bf16", "h", "b", 0),
    FOUR_INT(BF16_BF16, "", BF16, "bf16", "h", BF16, "bf16", "h", "b", INTEGRAL),
    FROM_BYTE(U8, "u8", "w"),
    FROM_BYTE(S8, "s8", "w"),
    FROM_INT(U16, "u16", "h"),
    FROM_INT(S16, "s16", "h"),
    FROM_INT(U32, "u32", "w"),
    FROM_INT(S32, "s32", "w"),
    FROM_INT(U64, "u64", "d"),
    FROM_INT(S64, "s64", "d"),
    TO_BYTE(U8, "u8", "w"),
    TO_BYTE(S8, "s8", "w"),
    TO_INT(U16, "u16", "h"),
    TO_INT(S16, "s16", "h"),
    TO_INT(U32, "u32", "w"),
    TO_INT(S32, "s32", "w"),
    TO_INT(U64, "u64", "d"),
    TO_INT(S64, "s64", "d"),
    EIGHT(E4M3X2, "e4m3x2"),
    EIGHT(E5M2X2, "e5m2x2"),
    TWO(TF32, "", TF32, "tf32", "w", F32, "f32", "w", "f", 0),
    TWO(TF32, ".relu", TF32, "tf32", "w", F32, "f32", "w", "f", RELU),
    CVT(TF32_RNA, ".rna", TF32, "tf32", "w", F32, "f32", "w", "f", RNA),
    CVT(TF32_RNA, ".rna.satfinite", TF32, "tf32", "w", F32, "f32", "w", "f", RNA + FINITE),
};
const struct row_list rows_half_cvt = {cases, sizeof cases / sizeof *cases};
