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

/* ---- states ---------------------------------------------------------------------------------- */

static bool same_bits(float a, float b) {
    uint32_t a_bits, b_bits;
    memcpy(&a_bits, &a, sizeof a);
    memcpy(&b_bits, &b, sizeof b);
    return a_bits == b_bits || (isnan(a) && isnan(b));
}

bool online_same(struct online a, struct online b) {
    return same_bits(a.m, b.m) && same_bits(a.l, b.l);
}

const struct online online_special[ONLINE_SPECIALS] = {
    {-INFINITY, 0}, {0, 1},        {-0.0f, 1},      {3e38f, 1},       {-3e38f, 1},
    {0, 0x1p-149f}, {1e-45f, 1},   {INFINITY, NAN}, {-INFINITY, NAN}, {5, NAN},
    {5, INFINITY},  {-104, 1e30f}, {-1e30f, 3e38f},
};

float online_random_maximum(struct rng *r, float near) {
    static const float special[] = {0,          -0.0f,       1,         -1,    88,     -88,
                                    88.722839f, -87.336548f, 104,       -104,  -1e4f,  -5e4f,
                                    -1e30f,     1e30f,       0x1p-149f, 3e38f, -3e38f, 0x1p-126f};
    switch (rng_below(r, 6)) {
    case 0:
        return special[rng_below(r, sizeof special / sizeof *special)];
    case 1:
        return near; /* equal maxima */
    case 2:
        return nextafterf(near, INFINITY);
    case 3: /* gaps across the underflow of exp */
        return near - (float)(80 + 30 * rng_unit(r));
    case 4:
        return (float)(2 * rng_unit(r) - 1);
    default:
        return (float)(200 * rng_unit(r) - 100);
    }
}

struct online online_random(struct rng *r, float near) {
    if (rng_below(r, 8) == 0)
        return online_empty();
    float l = rng_below(r, 2) ? 1.0f : (float)(1 + rng_unit(r) * (double)(1 << rng_below(r, 20)));
    return (struct online){online_random_maximum(r, near), l};
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
