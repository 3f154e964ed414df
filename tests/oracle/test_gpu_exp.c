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
#include <string.h>

#include "gpu_exp.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expf),
        cmocka_unit_test(test_ex2),
        cmocka_unit_test(test_near_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
