/* tests/oracle/test_ulp.c - the ulp's definition at its corners, and errors against enclosures. */
#include "oracle_test.h"

#include <float.h>
#include <gmp.h>
#include <math.h>

#include "oracle/ulp.h"

static const struct dtype *const f32 = &dtypes[DT_F32];
static const struct dtype *const f16 = &dtypes[DT_F16];
static const struct dtype *const bf16 = &dtypes[DT_BF16];

static struct enclosure exactly(double x) {
    return (struct enclosure){x, x};
}

/* The error of the datum nearest to y (exact where a test gives a datum). */
static struct ulp_error error_of(const struct dtype *dt, double y, struct enclosure want) {
    return ulp_error(dt, dtype_from_double(dt, y, ROUND_NEAREST), want);
}

static void test_size(void **state) {
    (void)state;
    static const struct {
        enum dtype_id id;
        double x, want;
    } cases[] = {
        {DT_F32, 1.5, 0x1p-23},
        {DT_F32, 1, 0x1p-24}, /* the step below 1 */
        {DT_F32, 0x1.000002p0, 0x1p-23},
        {DT_F32, 0x1.fffffep-1, 0x1p-24},
        {DT_F32, -2, 0x1p-23},
        {DT_F32, -3, 0x1p-22},
        {DT_F32, 0, 0x1p-149},
        {DT_F32, 0x1p-149, 0x1p-149},
        {DT_F32, 0x1p-127, 0x1p-149},
        {DT_F32, 0x1p-126, 0x1p-149}, /* 2^emin is not halved */
        {DT_F32, 0x1p-125, 0x1p-149},
        {DT_F32, 0x1.8p-125, 0x1p-148},
        {DT_F32, 0x1p-200, 0x1p-149},
        {DT_F32, 0x1.fffffep127, 0x1p104},
        {DT_F32, 0x1p128, 0x1p104},
        {DT_F32, 0x1.8p128, 0x1p105},
        {DT_F16, 1, 0x1p-11},
        {DT_F16, 1.5, 0x1p-10},
        {DT_F16, 0, 0x1p-24},
        {DT_F16, 0x1p-14, 0x1p-24},
        {DT_F16, 0x1p-13, 0x1p-24},
        {DT_F16, 65504, 32},
        {DT_BF16, 1, 0x1p-8},
        {DT_BF16, 1.5, 0x1p-7},
        {DT_BF16, 0, 0x1p-133},
        {DT_BF16, 0x1p-126, 0x1p-133},
        {DT_F32, 0x1.fffffffffffffp0, 0x1p-23},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK(ulp_size(&dtypes[cases[i].id], cases[i].x) == cases[i].want, "case %zu: %a", i,
              ulp_size(&dtypes[cases[i].id], cases[i].x));
}

/* ulp(x) is the distance of the two data around x, and at 2^e the smaller of its two distances. */
static void test_size_is_spacing(void **state) {
    (void)state;
    for (size_t k = DT_F16; k <= DT_BF16; k++) {
        const struct dtype *dt = &dtypes[k];
        int64_t largest = dtype_ordinal(dt, dtype_from_double(dt, dtype_max(dt), ROUND_NEAREST));
        for (int64_t i = 0; i < largest; i++) {
            double x = dtype_to_double(dt, dtype_from_ordinal(dt, i));
            double above = dtype_to_double(dt, dtype_from_ordinal(dt, i + 1));
            assert_true(ulp_size(dt, (x + above) / 2) == above - x);
            if (i > 0) {
                double below = dtype_to_double(dt, dtype_from_ordinal(dt, i - 1));
                assert_true(ulp_size(dt, x) == fmin(above - x, x - below));
                assert_true(ulp_size(dt, -x) == fmin(above - x, x - below));
            }
        }
    }
}

static void test_value(void **state) {
    (void)state;
    /* one step above 1.5, and the same in the other direction */
    struct ulp_error err = error_of(f32, 0x1.800002p0, exactly(1.5));
    assert_int_equal(err.outcome, ULP_VALUE);
    assert_true(err.ulps == 1 && err.abs_lo == 0x1p-23 && err.abs_hi == 0x1p-23);
    assert_true(err.rel == 0x1p-23 / 1.5);
    assert_true(error_of(f32, 1.5, exactly(0x1.800002p0)).ulps == -1);

    /* at a power of two the step above counts double */
    assert_true(error_of(f32, 0x1.000002p0, exactly(1)).ulps == 2);
    assert_true(error_of(f32, 0x1.fffffep-1, exactly(1)).ulps == -1);

    /* right is 0 even where the relative error has no meaning */
    err = error_of(f32, -0.0, exactly(0));
    assert_true(err.outcome == ULP_VALUE && err.ulps == 0 && err.rel == 0 && err.abs_hi == 0);
    err = error_of(f32, 0x1p-149, exactly(0));
    assert_true(err.ulps == 1 && isinf(err.rel) && err.abs_lo == 0x1p-149);

    /* subnormals: the step is fixed */
    assert_true(error_of(f16, 0x1p-24, exactly(0x1p-23)).ulps == -1);
    assert_true(error_of(bf16, 0, exactly(0x1p-134)).ulps == -0.5);
    /* signs */
    assert_true(error_of(f16, -1.5, exactly(1.5)).ulps == -3 * 1024);
}

static void test_enclosure(void **state) {
    (void)state;
    /* inside: it may be right, and is at most as wrong as the farther end */
    struct enclosure want = {1.25 - 0x1p-50, 1.25 + 0x1p-49};
    struct ulp_error err = error_of(f32, 1.25, want);
    assert_true(err.abs_lo == 0 && err.abs_hi == 0x1p-49);
    assert_true(err.ulps == -0x1p-49 / 0x1p-23);

    /* outside: between the distances to the two ends */
    err = error_of(f32, 1.5, want);
    assert_true(err.abs_lo == 0.25 - 0x1p-49 && err.abs_hi == 0.25 + 0x1p-50);

    /* rounded outward: 2^-60 is lost beside 1 */
    err = error_of(f32, 0x1p-60, exactly(-1));
    assert_true(err.abs_lo == 1 && err.abs_hi == nextafter(1, 2));
    err = error_of(f32, -0x1p-60, exactly(-1));
    assert_true(err.abs_lo == nextafter(1, 0) && err.abs_hi == 1);

    /* a power of two inside counts with its smaller ulp, from whichever side got comes */
    want = (struct enclosure){1 - 0x1p-44, 1 + 0x1p-44};
    double steps = error_of(f32, 0.75, want).ulps;
    assert_true(fabs(steps) >= 0.25 / 0x1p-24);
    steps = error_of(f32, 1.25, want).ulps;
    assert_true(steps >= 0.25 / 0x1p-24);

    /* around zero */
    want = (struct enclosure){-0x1p-1074, 0x1p-1074};
    err = error_of(f32, 0, want);
    assert_true(err.outcome == ULP_VALUE && isinf(err.rel) && fabs(err.ulps) < 1e-200);
    want = (struct enclosure){0, 0x1p-1074};
    err = error_of(f32, 0, want);
    assert_true(err.abs_lo == 0 && err.abs_hi == 0x1p-1074);
}

static void test_classes(void **state) {
    (void)state;
    const double inf = INFINITY;
    static const struct {
        double got, want;
        enum ulp_outcome outcome;
    } cases[] = {
        {NAN, NAN, ULP_CLASS_MATCH},
        {1, NAN, ULP_CLASS_MISMATCH},
        {INFINITY, NAN, ULP_CLASS_MISMATCH},
        {NAN, 1, ULP_CLASS_MISMATCH},
        {NAN, 0, ULP_CLASS_MISMATCH},
        {NAN, INFINITY, ULP_CLASS_MISMATCH},
        {INFINITY, INFINITY, ULP_CLASS_MATCH},
        {-INFINITY, -INFINITY, ULP_CLASS_MATCH},
        {-INFINITY, INFINITY, ULP_CLASS_MISMATCH},
        {0, INFINITY, ULP_CLASS_MISMATCH},
        {65504, INFINITY, ULP_CLASS_MISMATCH},
        {INFINITY, 1, ULP_OVERFLOW_EARLY},
        {-INFINITY, 1, ULP_OVERFLOW_EARLY},
        {INFINITY, 65519, ULP_OVERFLOW_EARLY},
        {INFINITY, 65520, ULP_CLASS_MATCH},
        {-INFINITY, 65520, ULP_CLASS_MISMATCH},
        {-INFINITY, -1e300, ULP_CLASS_MATCH},
        {65504, 65520, ULP_OVERFLOW_MISSED},
        {-65504, -1e30, ULP_OVERFLOW_MISSED},
        {65504, 65519, ULP_VALUE},
        {NAN, 1e300, ULP_CLASS_MISMATCH},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ulp_error err = error_of(f16, cases[i].got, exactly(cases[i].want));
        CHECK(err.outcome == cases[i].outcome, "case %zu: outcome %d", i, err.outcome);
        if (err.outcome == ULP_CLASS_MISMATCH)
            assert_true(err.abs_lo == inf && err.abs_hi == inf && err.ulps == inf &&
                        err.rel == inf);
        if (err.outcome == ULP_CLASS_MATCH)
            assert_true(err.abs_lo == 0 && err.abs_hi == 0 && err.ulps == 0 && err.rel == 0);
    }
}

static void test_overflow(void **state) {
    (void)state;
    /* early: the infinity counts as 2^(emax+1) = 65536 */
    struct ulp_error err = error_of(f16, INFINITY, exactly(65504));
    assert_true(err.outcome == ULP_OVERFLOW_EARLY && err.abs_lo == 32 && err.ulps == 1);
    err = error_of(f16, -INFINITY, exactly(1));
    assert_true(err.outcome == ULP_OVERFLOW_EARLY && err.abs_lo == 65537);
    /* missed: what was due counts as that */
    err = error_of(f16, 65504, exactly(1e9));
    assert_true(err.outcome == ULP_OVERFLOW_MISSED && err.abs_hi == 32 && err.ulps == -1);
    err = error_of(f32, 0, exactly(-0x1p200));
    assert_true(err.outcome == ULP_OVERFLOW_MISSED && err.abs_hi == 0x1p128);
    /* a finite real beyond double: oracle/enclosure.h */
    err = ulp_error(f32, dtype_from_double(f32, INFINITY, ROUND_NEAREST),
                    (struct enclosure){DBL_MAX, INFINITY});
    assert_int_equal(err.outcome, ULP_CLASS_MATCH);
    err = error_of(f32, 1, (struct enclosure){DBL_MAX, INFINITY});
    assert_true(err.outcome == ULP_OVERFLOW_MISSED && isfinite(err.abs_hi));
    /* an enclosure across the threshold: neither answer is certainly wrong */
    struct enclosure across = {65520 - 0x1p-30, 65520 + 0x1p-30};
    err = error_of(f16, INFINITY, across);
    assert_true(err.outcome == ULP_OVERFLOW_EARLY && err.abs_lo == 0);
    err = error_of(f16, 65504, across);
    assert_true(err.outcome == ULP_VALUE && err.abs_lo == 16 - 0x1p-30 &&
                err.abs_hi == 16 + 0x1p-30);
}

/* abs_lo and abs_hi against rationals: the greatest double below, the least above. */
static void test_outward_exact(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(4);
    mpq_t y, x, distance, bound;
    mpq_inits(y, x, distance, bound, (mpq_ptr)0);
    for (size_t i = 0; i < times(50000); i++) {
        uint32_t got = (uint32_t)rng_u64(&rng);
        if (dtype_classify(f32, got) <= CLASS_INF)
            continue;
        double center = scaled_unit(&rng, -0.5, -125, 250);
        if (i % 2 == 0) /* near got */
            center = dtype_to_double(f32, got) * (1 + ldexp(rng_unit(&rng) - 0.5, -20));
        if (!(fabs(center) < 0x1p127) || center == 0)
            continue;
        struct ulp_error err = ulp_error(f32, got, exactly(center));
        mpq_set_d(y, dtype_to_double(f32, got));
        mpq_set_d(x, center);
        mpq_sub(distance, y, x);
        mpq_abs(distance, distance);
        mpq_set_d(bound, err.abs_lo);
        CHECK(mpq_cmp(bound, distance) <= 0, "%a against %a", dtype_to_double(f32, got), center);
        mpq_set_d(bound, err.abs_hi);
        CHECK(mpq_cmp(bound, distance) >= 0, "%a against %a", dtype_to_double(f32, got), center);
        CHECK(err.abs_lo == err.abs_hi || nextafter(err.abs_lo, INFINITY) == err.abs_hi,
              "%a against %a", dtype_to_double(f32, got), center);
    }
    mpq_clears(y, x, distance, bound, (mpq_ptr)0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),          cmocka_unit_test(test_size_is_spacing),
        cmocka_unit_test(test_value),         cmocka_unit_test(test_enclosure),
        cmocka_unit_test(test_classes),       cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_outward_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
