/* tests/order/online.c - see online.h. */
#include "tests/order/online.h"

#include <math.h>
#include <mpfr.h>
#include <stdint.h>
#include <string.h>

#include "oracle/dtype_mpfr.h"

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

struct online online_empty(void) {
    return (struct online){-INFINITY, 0};
}

static float finite_or_zero(float m) {
    return m == -INFINITY ? 0 : m;
}

/* The GPU's fmaxf: a number beats NaN, and -0 < +0 (C leaves that open). */
static float gpu_fmaxf(float a, float b) {
    return a == 0 && b == 0 ? (signbit(a) ? b : a) : fmaxf(a, b);
}

struct online online_join(struct online a, struct online b, exp_fn *exp) {
    const struct online low = a.m < b.m ? a : b;
    const struct online high = a.m < b.m ? b : a;
    const float m = gpu_fmaxf(a.m, b.m);
    return (struct online){m, fmaf(low.l, exp(low.m - finite_or_zero(m)), high.l)};
}

struct online online_push(struct online s, float x, exp_fn *exp) {
    const float m = gpu_fmaxf(s.m, x);
    const float shift = finite_or_zero(m);
    return (struct online){m, fmaf(s.l, exp(s.m - shift), exp(x - shift))};
}

/* ---- exponentials ---------------------------------------------------------------------------- */

/* 128 bits before the one rounding: exp of a float is never that close to a tie unless exact. */
static uint32_t exp_bits(float x) {
    mpfr_t e;
    mpfr_init2(e, 128);
    mpfr_set_flt(e, x, MPFR_RNDN);
    mpfr_exp(e, e, MPFR_RNDN);
    uint32_t bits = dtype_from_mpfr(&dtypes[DT_F32], e, ROUND_NEAREST);
    mpfr_clear(e);
    return bits;
}

float exp_nearest(float x) {
    return from_bits(exp_bits(x));
}

float exp_neighbour(float x) {
    uint32_t bits = exp_bits(x), argument;
    if (x == 0 || !isfinite(x) || bits == 0)
        return from_bits(bits);
    memcpy(&argument, &x, sizeof argument);
    return from_bits(bits + (argument * UINT32_C(2654435761) >> 16) % 3 - 1);
}

/* ---- planted mistakes ------------------------------------------------------------------------ */

struct online join_no_guard(struct online a, struct online b, exp_fn *exp) {
    const struct online low = a.m < b.m ? a : b, high = a.m < b.m ? b : a;
    const float m = gpu_fmaxf(a.m, b.m);
    return (struct online){m, fmaf(low.l, exp(low.m - m), high.l)};
}

struct online join_swapped(struct online a, struct online b, exp_fn *exp) {
    const struct online low = a.m > b.m ? a : b, high = a.m > b.m ? b : a;
    const float m = -gpu_fmaxf(-a.m, -b.m); /* the minimum */
    return (struct online){m, fmaf(low.l, exp(low.m - finite_or_zero(m)), high.l)};
}

struct online join_no_rescale(struct online a, struct online b, exp_fn *exp) {
    (void)exp;
    return (struct online){gpu_fmaxf(a.m, b.m), a.l + b.l};
}

struct online join_first_maximum(struct online a, struct online b, exp_fn *exp) {
    return (struct online){a.m, fmaf(b.l, exp(b.m - finite_or_zero(a.m)), a.l)};
}

struct online join_nan_dropped(struct online a, struct online b, exp_fn *exp) {
    struct online s = online_join(a, b, exp);
    s.l = fmaxf(s.l, 0);
    return s;
}

struct online join_rescaled_twice(struct online a, struct online b, exp_fn *exp) {
    const struct online low = a.m < b.m ? a : b, high = a.m < b.m ? b : a;
    const float m = gpu_fmaxf(a.m, b.m), scale = exp(low.m - finite_or_zero(m));
    return (struct online){m, fmaf(low.l * scale, scale, high.l)};
}
