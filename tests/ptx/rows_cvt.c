/*
 * rows_cvt.c - every conversion, through MPFR: the source exactly, then one rounding.
 *
 * a: source type, b: destination type, c: rounding, 16 ftz, 32 sat, 64 to an integral value.
 */
#include <mpfr.h>
#include <string.h>

#include "tests/ptx/rows.h"

static const mpfr_rnd_t modes[] = {MPFR_RNDN, MPFR_RNDZ, MPFR_RNDD, MPFR_RNDU};

static bool is_float(int t) {
    return t == PTX_F32 || t == PTX_F64;
}
static uint64_t low(uint64_t v, int bits) {
    return bits == 64 ? v : v & (((uint64_t)1 << bits) - 1);
}
static int64_t sign_extended(uint64_t v, int bits) {
    return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static void set_value(mpfr_t x, int type, uint64_t bits) {
    if (type == PTX_F32) {
        uint32_t half = (uint32_t)bits;
        float f;
        memcpy(&f, &half, 4);
        mpfr_set_flt(x, f, MPFR_RNDN);
    } else if (type == PTX_F64) {
        double d;
        memcpy(&d, &bits, 8);
        mpfr_set_d(x, d, MPFR_RNDN);
    } else if (ref_is_signed(type)) {
        mpfr_set_si(x, sign_extended(bits, ref_bits(type)), MPFR_RNDN);
    } else {
        mpfr_set_ui(x, low(bits, ref_bits(type)), MPFR_RNDN);
    }
}

/* Extended to the register: 16 bits for 16-bit results, 32 for 8 and 32, 64. */
static uint64_t in_register(int type, uint64_t v) {
    int bits = ref_bits(type), width = bits == 8 ? 32 : bits;
    return low(ref_is_signed(type) ? (uint64_t)sign_extended(v, bits) : low(v, bits), width);
}

static uint64_t to_int(mpfr_t x, const struct row_case *k) {
    int bits = ref_bits(k->b);
    uint64_t top = (uint64_t)1 << (bits - 1);
    if (mpfr_nan_p(x))
        return in_register(k->b, k->a == PTX_F64 || bits == 64 ? top : 0);
    return in_register(k->b, ref_to_int(x, k->b, k->c & 3));
}

static uint64_t to_float(mpfr_t x, const struct row_case *k) {
    bool wide = k->b == PTX_F64;
    if (k->c & 32 && (mpfr_nan_p(x) || mpfr_signbit(x)))
        return 0;
    if (k->c & 64 && !mpfr_inf_p(x)) {
        int sign = mpfr_signbit(x);
        mpfr_rint(x, x, modes[k->c & 3]);
        mpfr_setsign(x, x, sign, MPFR_RNDN);
    }
    if (k->c & 32 && mpfr_cmp_ui(x, 1) > 0)
        mpfr_set_ui(x, 1, MPFR_RNDN);
    mpfr_t r;
    mpfr_init2(r, wide ? 53 : 24);
    mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
    mpfr_set_emin(wide ? -1073 : -148);
    mpfr_set_emax(wide ? 1024 : 128);
    int t = mpfr_set(r, x, modes[k->c & 3]);
    t = mpfr_check_range(r, t, modes[k->c & 3]);
    mpfr_subnormalize(r, t, modes[k->c & 3]);
    double d = mpfr_get_d(r, MPFR_RNDN);
    mpfr_set_emin(emin);
    mpfr_set_emax(emax);
    mpfr_clear(r);
    uint64_t bits = 0;
    float f = (float)d;
    if (wide)
        memcpy(&bits, &d, 8);
    else
        memcpy(&bits, &f, 4);
    return bits;
}

/*
 * NaN to a float (H200): f32 to f32 is canonical, as is an f32 that .ftz touches; with f64 on
 * either side sign and leading payload bits stay, quieted.
 */
static uint64_t convert_nan(const struct row_case *k, uint64_t bits) {
    if (k->a == PTX_F32 && (k->b == PTX_F32 || k->c & 16))
        bits = 0x7fffffffu;
    if (k->a == PTX_F32 && k->b == PTX_F64)
        return (bits >> 31 << 63) | 0x7ff8000000000000u | (bits & 0x7fffffu) << 29;
    if (k->a == PTX_F64 && k->b == PTX_F32)
        return (bits >> 63 << 31) | 0x7fc00000u | (bits >> 29 & 0x7fffffu);
    return k->a == PTX_F64 ? bits | 0x0008000000000000u : bits;
}

static uint64_t convert(const struct row_case *k, const uint64_t in[4]) {
    uint64_t bits = low(in[0], ref_bits(k->a));
    bool nan = k->a == PTX_F32 ? ref_is_nan32(bits) : k->a == PTX_F64 && ref_is_nan64(bits);
    if (nan && is_float(k->b) && !(k->c & 32))
        return convert_nan(k, bits);
    if (!is_float(k->a) && !is_float(k->b) && !(k->c & 32)) {
        uint64_t v = ref_is_signed(k->a) ? (uint64_t)sign_extended(bits, ref_bits(k->a)) : bits;
        return in_register(k->b, v);
    }
    if (k->a == PTX_F32 && k->c & 16)
        bits = ref_flush((uint32_t)bits);
    mpfr_t x;
    mpfr_init2(x, 64);
    set_value(x, k->a, bits);
    uint64_t r = is_float(k->b) ? to_float(x, k) : to_int(x, k);
    mpfr_clear(x);
    return k->b == PTX_F32 && k->c & 16 ? ref_flush((uint32_t)r) : r;
}

/* CVT(destination, its register letter, source, its register, modifiers, inputs, flags) */
#define CVT(D, dn, dr, S, sn, sr, mods, in, flags)                                             \
    {                                                                                          \
        PTX_OP_CVT, "cvt" mods "." dn "." sn " %" dr "r, %" sr "0;", dr, in, convert, PTX_##S, \
            PTX_##D, flags                                                                     \
    }

#define INTS(X, ...)                                                                               \
    X(U8, "u8", "w", __VA_ARGS__), X(S8, "s8", "w", __VA_ARGS__), X(U16, "u16", "h", __VA_ARGS__), \
        X(S16, "s16", "h", __VA_ARGS__), X(U32, "u32", "w", __VA_ARGS__),                          \
        X(S32, "s32", "w", __VA_ARGS__), X(U64, "u64", "d", __VA_ARGS__),                          \
        X(S64, "s64", "d", __VA_ARGS__)

#define FROM_INT(D, dn, dr, S, sn, sr) CVT(D, dn, dr, S, sn, sr, "", "d", 0)
/* .sat only where the destination cannot hold every source value: ptxas refuses the others. */
#define SAT(D, dn, dr, S, sn, sr) CVT(D, dn, dr, S, sn, sr, ".sat", "d", 32)
#define SOURCE(S, sn, sr) INTS(FROM_INT, S, sn, sr)

#define INT_TO_FLOAT(S, sn, sr, D, dn, dr)                                              \
    CVT(D, dn, dr, S, sn, sr, ".rn", "d", 0), CVT(D, dn, dr, S, sn, sr, ".rz", "d", 1), \
        CVT(D, dn, dr, S, sn, sr, ".rm", "d", 2), CVT(D, dn, dr, S, sn, sr, ".rp", "d", 3)

#define F32_TO_INT(D, dn, dr, ...)                       \
    CVT(D, dn, dr, F32, "f32", "w", ".rni", "f", 0),     \
        CVT(D, dn, dr, F32, "f32", "w", ".rzi", "f", 1), \
        CVT(D, dn, dr, F32, "f32", "w", ".rmi", "f", 2), \
        CVT(D, dn, dr, F32, "f32", "w", ".rpi", "f", 3), \
        CVT(D, dn, dr, F32, "f32", "w", ".rpi.ftz", "f", 3 + 16)
#define F64_TO_INT(D, dn, dr, ...)                       \
    CVT(D, dn, dr, F64, "f64", "d", ".rni", "F", 0),     \
        CVT(D, dn, dr, F64, "f64", "d", ".rzi", "F", 1), \
        CVT(D, dn, dr, F64, "f64", "d", ".rmi", "F", 2), \
        CVT(D, dn, dr, F64, "f64", "d", ".rpi", "F", 3)

#define SAME(D, dn, r, in, mods, flags) CVT(D, dn, r, D, dn, r, mods, in, flags)

static const struct row_case cases[] = {
    SOURCE(U8, "u8", "w"),
    SOURCE(S8, "s8", "w"),
    SOURCE(U16, "u16", "h"),
    SOURCE(S16, "s16", "h"),
    SOURCE(U32, "u32", "w"),
    SOURCE(S32, "s32", "w"),
    SOURCE(U64, "u64", "d"),
    SOURCE(S64, "s64", "d"),
    SAT(S8, "s8", "w", U8, "u8", "w"),
    SAT(U8, "u8", "w", S8, "s8", "w"),
    SAT(U64, "u64", "d", S8, "s8", "w"),
    SAT(U8, "u8", "w", U16, "u16", "h"),
    SAT(S8, "s8", "w", S16, "s16", "h"),
    SAT(U16, "u16", "h", S16, "s16", "h"),
    SAT(S16, "s16", "h", U16, "u16", "h"),
    SAT(S8, "s8", "w", U32, "u32", "w"),
    SAT(U16, "u16", "h", S32, "s32", "w"),
    SAT(S32, "s32", "w", U32, "u32", "w"),
    SAT(U32, "u32", "w", S32, "s32", "w"),
    SAT(U64, "u64", "d", S32, "s32", "w"),
    SAT(S32, "s32", "w", S64, "s64", "d"),
    SAT(U32, "u32", "w", S64, "s64", "d"),
    SAT(S16, "s16", "h", U64, "u64", "d"),
    SAT(U64, "u64", "d", S64, "s64", "d"),
    SAT(S64, "s64", "d", U64, "u64", "d"),
    INTS(INT_TO_FLOAT, F32, "f32", "w"),
    INTS(INT_TO_FLOAT, F64, "f64", "d"),
    INTS(F32_TO_INT, ),
    INTS(F64_TO_INT, ),
    CVT(F64, "f64", "d", F32, "f32", "w", "", "f", 0),
    CVT(F64, "f64", "d", F32, "f32", "w", ".ftz", "f", 16),
    CVT(F32, "f32", "w", F64, "f64", "d", ".rn", "F", 0),
    CVT(F32, "f32", "w", F64, "f64", "d", ".rz", "F", 1),
    CVT(F32, "f32", "w", F64, "f64", "d", ".rm", "F", 2),
    CVT(F32, "f32", "w", F64, "f64", "d", ".rp", "F", 3),
    CVT(F32, "f32", "w", F64, "f64", "d", ".rn.ftz", "F", 16),
    CVT(F32, "f32", "w", F64, "f64", "d", ".rn.sat", "F", 32),
    SAME(F32, "f32", "w", "f", ".rni", 64),
    SAME(F32, "f32", "w", "f", ".rzi", 65),
    SAME(F32, "f32", "w", "f", ".rmi", 66),
    SAME(F32, "f32", "w", "f", ".rpi", 67),
    SAME(F32, "f32", "w", "f", ".rpi.ftz", 67 + 16),
    SAME(F32, "f32", "w", "f", ".rni.sat", 64 + 32),
    SAME(F32, "f32", "w", "f", ".sat", 32),
    SAME(F32, "f32", "w", "f", ".ftz.sat", 48),
    SAME(F64, "f64", "d", "F", ".rni", 64),
    SAME(F64, "f64", "d", "F", ".rzi", 65),
    SAME(F64, "f64", "d", "F", ".rmi", 66),
    SAME(F64, "f64", "d", "F", ".rpi", 67),
};
const struct row_list rows_cvt = {cases, sizeof cases / sizeof *cases};
