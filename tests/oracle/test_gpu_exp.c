/*
 * tests/oracle/test_gpu_exp.c - the certificate behind the budgets' exp constants.
 *
 * gpu_exp.c computes the bits of sm_90 (ex2: no mismatch over all 2^32 inputs).  Its errors against
 * libm's double exp (below 2^-52) must stay under what oracle/bounds_exp.c grants, and come close,
 * so that nothing is granted that no kernel needs.  A stride visits every binade and all residues
 * of the interpolation; ASSAY_TEST_MULT=17 visits every float.
 */
#include "oracle_test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "gpu_exp.h"
#include "kernels/exp2_poly.h"

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The floats of [-130, -2^-26] by their bits. */
static const uint32_t first = 0xb2800000, last = 0xc3020000;

static uint32_t stride(void) {
    size_t mult = times(1);
    return mult >= 17 ? 1 : (uint32_t)(17 / mult);
}

struct worst {
    double ulps;  /* normal results, in steps of the result's binade */
    double floor; /* subnormal results: what the ulps leave, in steps of 2^-149 */
    float at;
};

/* `granted`: ulps that a budget grants everywhere. */
static void visit(struct worst *w, double granted, float x, double got, double want) {
    int exponent;
    frexp(want, &exponent);
    double ulp = ldexp(1, exponent - 24), err = fabs(got - want);
    if (want >= 0x1p-126) {
        if (err / ulp > w->ulps) {
            w->ulps = err / ulp;
            w->at = x;
        }
    } else {
        w->floor = fmax(w->floor, (err - granted * ulp) / 0x1p-149);
    }
}

static void test_expf(void **state) {
    (void)state;
    struct worst w = {0};
    for (uint32_t bits = first; bits < last; bits += stride())
        visit(&w, 2, from_bits(bits), gpu_expf(from_bits(bits)), exp((double)from_bits(bits)));
    print_message("expf: %.6f ulp at %.9g; subnormal floor %.4f\n", w.ulps, (double)w.at, w.floor);
    assert_true(w.ulps > 1.8 && w.ulps < 1.9310); /* over every float: 1.930987 */
    assert_true(w.floor > 0.5 && w.floor < 0.625);
    assert_true(gpu_expf(0) == 1 && gpu_expf(-0.0f) == 1 && gpu_expf(-INFINITY) == 0);
    assert_true(isnan(gpu_expf(NAN)));
    float worst = gpu_expf(-13.8993149f);
    assert_true(fabs(fabs(worst - exp((double)-13.8993149f)) / 0x1p-44 - 1.930987) < 1e-5);
}

static void test_ex2(void **state) {
    (void)state;
    struct worst w = {0};
    for (uint32_t bits = first; bits < last; bits += stride()) {
        double got = gpu_ex2_approx_ftz(from_bits(bits)), want = exp2((double)from_bits(bits));
        if (got != 0) /* flushed results are the floor's */
            visit(&w, 2.5, from_bits(bits), got, want);
        else
            assert_true(want < 0x1.00001p-126);
    }
    print_message("ex2.approx.ftz: %.6f ulp at %.9g\n", w.ulps, (double)w.at);
    assert_true(w.ulps > 2 && w.ulps < 2.0550); /* 2.054984 */
    assert_true(gpu_ex2_approx_ftz(0) == 1 && gpu_ex2_approx_ftz(-0x1p-140f) == 1);
    for (int i = -126; i <= 127; i++)
        assert_true(gpu_ex2_approx_ftz((float)i) == ldexpf(1, i));
}

/* Small arguments: the result is 1 or a step below, the truth between. */
static void test_near_zero(void **state) {
    (void)state;
    for (uint32_t bits = 0x80000001; bits < first; bits += 0xffff) {
        float x = from_bits(bits);
        assert_true(fabs(gpu_expf(x) - exp((double)x)) <= 2 * 0x1p-24);
        assert_true(fabs(gpu_expf_fast(x) - exp((double)x)) <= 2.5 * 0x1p-24);
    }
}

/*
 * The polynomial, from -2 to 1.  Elsewhere x - floor(x) is exact and a multiple of 2^-23, as it is
 * between -2 and -1, and the result is scaled by a power of two: nothing new happens.
 */
static void test_poly(void **state) {
    (void)state;
    double worst[2] = {0}; /* above and up to -1/2 */
    float at[2] = {0};
    for (int negative = 0; negative < 2; negative++)
        for (uint32_t bits = 0x32800000; bits < (negative ? 0x40000000u : 0x3f800000u);
             bits += stride()) {
            float x = from_bits(bits | (negative ? 0x80000000u : 0));
            double want = exp2((double)x), err = fabs((double)exp2_poly(x) - want) / want * 0x1p23;
            bool below = x <= -0.5f;
            if (err > worst[below]) {
                worst[below] = err;
                at[below] = x;
            }
        }
    print_message("polynomial: %.6f x 2^-23 at %.9g; up to -1/2 %.6f x 2^-23 at %.9g\n", worst[0],
                  (double)at[0], worst[1], (double)at[1]);
    assert_true(worst[0] > 1.375 && worst[0] < 1.38641); /* over every float: 1.386400 */
    assert_true(worst[1] > 1.198 && worst[1] < 1.21312); /* 1.213113 */
    for (int i = -126; i <= 127; i++) {
        assert_true(exp2_poly((float)i) == ldexpf(1, i));
        float x = (float)i + 0.3125f; /* the same f everywhere */
        assert_true(exp2_poly(x) == ldexpf(exp2_poly(-1.6875f), i + 2));
    }
    assert_true(exp2_poly(0x1p-140f) == 1 && exp2_poly(-0.0f) == 1);
    for (float x = -126.000008f; x > -400; x *= 1.01f)
        assert_true(exp2_poly(x) == 0);
    assert_true(exp2_poly(-INFINITY) == 0 && exp2_poly(128) == INFINITY);
    assert_true(exp2_poly(INFINITY) == INFINITY && isnan(exp2_poly(NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expf),
        cmocka_unit_test(test_ex2),
        cmocka_unit_test(test_near_zero),
        cmocka_unit_test(test_poly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
