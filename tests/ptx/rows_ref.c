/* rows_ref.c - correctly rounded arithmetic by MPFR, in binary32 and binary64 with subnormals. */
#include <mpfr.h>
#include <string.h>

#include "tests/ptx/rows.h"

struct format {
    mpfr_prec_t precision;
    mpfr_exp_t emin, emax;
};
static const struct format binary32 = {24, -148, 128}, binary64 = {53, -1073, 1024};

static const mpfr_rnd_t modes[] = {MPFR_RNDN, MPFR_RNDZ, MPFR_RNDD, MPFR_RNDU};

uint32_t ref_flush(uint32_t f32) {
    return f32 << 1 >> 24 == 0 ? f32 & 0x80000000u : f32;
}
bool ref_is_nan32(uint64_t bits) {
    return (bits & 0x7fffffffu) > 0x7f800000u;
}
bool ref_is_nan64(uint64_t bits) {
    return (bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

static int operate(mpfr_t r, int op, const mpfr_t a, const mpfr_t b, const mpfr_t c,
                   mpfr_rnd_t rnd) {
    switch (op) {
    case REF_ADD: return mpfr_add(r, a, b, rnd);
    case REF_SUB: return mpfr_sub(r, a, b, rnd);
    case REF_MUL: return mpfr_mul(r, a, b, rnd);
    case REF_FMA: return mpfr_fma(r, a, b, c, rnd);
    case REF_DIV: return mpfr_div(r, a, b, rnd);
    case REF_RCP: return mpfr_ui_div(r, 1, a, rnd);
    default: return mpfr_sqrt(r, a, rnd);
    }
}

static double compute(const struct format *f, int op, double a, double b, double c, int rnd) {
    mpfr_t x, y, z, r;
    mpfr_inits2(53, x, y, z, (mpfr_ptr)0);
    mpfr_init2(r, f->precision);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_set_d(y, b, MPFR_RNDN);
    mpfr_set_d(z, c, MPFR_RNDN);
    mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
    mpfr_set_emin(f->emin);
    mpfr_set_emax(f->emax);
    int t = operate(r, op, x, y, z, modes[rnd]);
    mpfr_subnormalize(r, t, modes[rnd]);
    double result = mpfr_get_d(r, MPFR_RNDN); /* exact */
    mpfr_set_emin(emin);
    mpfr_set_emax(emax);
    mpfr_clears(x, y, z, r, (mpfr_ptr)0);
    return result;
}

static double f32_value(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return (double)f;
}

uint32_t ref_f32(int op, uint32_t a, uint32_t b, uint32_t c, int rnd) {
    float r = (float)compute(&binary32, op, f32_value(a), f32_value(b), f32_value(c), rnd);
    uint32_t bits;
    memcpy(&bits, &r, 4);
    return ref_is_nan32(bits) ? 0x7fffffffu : bits;
}

uint64_t ref_f64(int op, uint64_t a, uint64_t b, uint64_t c, int rnd) {
    double x, y, z;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    memcpy(&z, &c, 8);
    double r = compute(&binary64, op, x, y, z, rnd);
    uint64_t bits;
    memcpy(&bits, &r, 8);
    return bits;
}

bool ref_is_tiny(int op, uint32_t a, uint32_t b, uint32_t c, int rnd) {
    static const struct format unbounded = {24, -1000, 1000};
    double r = compute(&unbounded, op, f32_value(a), f32_value(b), f32_value(c), rnd);
    return r != 0 && r < 0x1p-126 && r > -0x1p-126;
}

/* ---- any format, one rounding ---------------------------------------------------------------- */

const struct ref_format ref_f16 = {16, 10, -24, 0x7c00}, ref_bf16 = {16, 7, -133, 0x7f80},
                        ref_tf32 = {19, 10, -136, 0x3fc00},
                        ref_binary32 = {32, 23, -149, 0x7f800000u},
                        ref_binary64 = {64, 52, -1074, 0x7ff0000000000000u};

static uint64_t magnitude(const struct ref_format *f, uint64_t bits) {
    return bits & (((uint64_t)1 << (f->bits - 1)) - 1);
}

bool ref_is_nan(const struct ref_format *f, uint64_t bits) {
    return magnitude(f, bits) > f->infinity;
}

void ref_set(mpfr_ptr x, const struct ref_format *f, uint64_t bits) {
    uint64_t m = magnitude(f, bits), e = m >> f->fraction;
    uint64_t significand = m & (((uint64_t)1 << f->fraction) - 1);
    if (e)
        significand |= (uint64_t)1 << f->fraction;
    mpfr_set_ui_2exp(x, significand, f->last + (e ? (mpfr_exp_t)e - 1 : 0), MPFR_RNDN);
    if (m == f->infinity)
        mpfr_set_inf(x, 1);
    if (m > f->infinity)
        mpfr_set_nan(x);
    mpfr_setsign(x, x, bits >> (f->bits - 1) & 1, MPFR_RNDN);
}

uint64_t ref_round(mpfr_srcptr x, const struct ref_format *f, int rnd) {
    bool negative = mpfr_signbit(x);
    uint64_t sign = negative ? (uint64_t)1 << (f->bits - 1) : 0;
    if (mpfr_zero_p(x) || mpfr_inf_p(x))
        return sign | (mpfr_zero_p(x) ? 0 : f->infinity);
    long unit = mpfr_get_exp(x) - 1 - f->fraction;
    unit = unit < f->last ? f->last : unit;
    if (unit - f->last > 1 << 12)
        unit = f->last + (1 << 12); /* far above any largest number */
    mpfr_t n;
    mpfr_init2(n, REF_PRECISION);
    mpfr_mul_2si(n, x, -unit, MPFR_RNDN);
    if (rnd == REF_RNA)
        mpfr_round(n, n);
    else
        mpfr_rint(n, n, modes[rnd]);
    mpfr_abs(n, n, MPFR_RNDN);
    uint64_t bits = f->infinity;
    if (mpfr_fits_ulong_p(n, MPFR_RNDN))
        bits = ((uint64_t)(unit - f->last) << f->fraction) + mpfr_get_ui(n, MPFR_RNDN);
    mpfr_clear(n);
    bool keep = rnd == REF_RZ || rnd == (negative ? REF_RP : REF_RM);
    if (bits >= f->infinity)
        bits = f->infinity - keep;
    return sign | bits;
}

int ref_bits(int type) {
    switch (type) {
    case PTX_U8:
    case PTX_S8: return 8;
    case PTX_U16:
    case PTX_S16: return 16;
    case PTX_U32:
    case PTX_S32:
    case PTX_F32: return 32;
    default: return 64;
    }
}

bool ref_is_signed(int type) {
    return type == PTX_S8 || type == PTX_S16 || type == PTX_S32 || type == PTX_S64;
}

uint64_t ref_to_int(mpfr_ptr x, int type, int rnd) {
    int bits = ref_bits(type);
    bool negative = ref_is_signed(type);
    mpfr_rint(x, x, modes[rnd]);
    mpfr_t lo, hi;
    mpfr_inits2(66, lo, hi, (mpfr_ptr)0);
    mpfr_set_ui_2exp(hi, 1, negative ? bits - 1 : bits, MPFR_RNDN);
    mpfr_sub_ui(hi, hi, 1, MPFR_RNDN);
    mpfr_set_si_2exp(lo, negative ? -1 : 0, bits - 1, MPFR_RNDN);
    if (mpfr_cmp(x, lo) < 0)
        mpfr_set(x, lo, MPFR_RNDN);
    if (mpfr_cmp(x, hi) > 0)
        mpfr_set(x, hi, MPFR_RNDN);
    mpfr_clears(lo, hi, (mpfr_ptr)0);
    return negative ? (uint64_t)mpfr_get_si(x, MPFR_RNDN) : mpfr_get_ui(x, MPFR_RNDN);
}

void ref_free(void) {
    mpfr_free_cache();
}
