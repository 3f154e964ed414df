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

void ref_free(void) {
    mpfr_free_cache();
}
