/*
 * tests/oracle/test_dtype.c - formats against MPFR's own rounding.
 *
 * The truth here shares nothing with oracle/: data are decoded field by field into MPFR, and
 * roundings are MPFR's, with its exponent range set to the format's and mpfr_subnormalize.
 */
#include "oracle_test.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "oracle/dtype.h"
#include "oracle/dtype_mpfr.h"

/* What the standards say, written down apart from the table. */
static const struct {
    const char *name;
    unsigned exponent_bits, fraction_bits;
    uint32_t largest, least;
    double largest_value, min_normal, least_value;
} formats[] = {
    {"f32", 8, 23, 0x7f7fffff, 1, 0x1.fffffep127, 0x1p-126, 0x1p-149},
    {"f16", 5, 10, 0x7bff, 1, 65504, 0x1p-14, 0x1p-24},
    {"bf16", 8, 7, 0x7f7f, 1, 0x1.fep127, 0x1p-126, 0x1p-133},
};

static const enum rounding roundings[] = {ROUND_NEAREST, ROUND_ZERO, ROUND_UP, ROUND_DOWN};
static const mpfr_rnd_t mpfr_roundings[] = {MPFR_RNDN, MPFR_RNDZ, MPFR_RNDU, MPFR_RNDD};
static const char *const rounding_names[] = {"nearest", "zero", "up", "down"};

/* The datum's value by its fields; NaN and infinities too. */
static void decode(mpfr_t out, const struct dtype *dt, uint32_t bits) {
    unsigned f = 0, e = 0;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, dt->name) == 0) {
            f = formats[i].fraction_bits;
            e = formats[i].exponent_bits;
        }
    CHECK(e > 0, "no format called %s here", dt->name);
    uint32_t fraction = bits & ((1u << f) - 1), exponent = bits >> f & ((1u << e) - 1);
    long bias = (1 << (e - 1)) - 1;
    if (exponent == (1u << e) - 1) {
        if (fraction != 0)
            mpfr_set_nan(out);
        else
            mpfr_set_inf(out, 1);
    } else if (exponent == 0) {
        mpfr_set_ui_2exp(out, fraction, 1 - bias - (long)f, MPFR_RNDN);
    } else {
        mpfr_set_ui_2exp(out, fraction + (1u << f), (long)exponent - bias - (long)f, MPFR_RNDN);
    }
    mpfr_setsign(out, out, (int)(bits >> (e + f) & 1), MPFR_RNDN);
}

/* x rounded to the format by MPFR alone; out has the format's precision. */
static void mpfr_rounded(mpfr_t out, const struct dtype *dt, const mpfr_t x, mpfr_rnd_t rnd) {
    mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
    mpfr_set_emin(dt->emin - (long)dt->prec + 2); /* MPFR's significands lie in [1/2, 1) */
    mpfr_set_emax(dt->emax + 1);
    int inexact = mpfr_set(out, x, rnd);
    inexact = mpfr_check_range(out, inexact, rnd);
    mpfr_subnormalize(out, inexact, rnd);
    mpfr_set_emin(emin);
    mpfr_set_emax(emax);
}

static bool same_number(const mpfr_t a, const mpfr_t b) {
    if (mpfr_nan_p(a) || mpfr_nan_p(b))
        return mpfr_nan_p(a) && mpfr_nan_p(b);
    return mpfr_equal_p(a, b) && mpfr_signbit(a) == mpfr_signbit(b);
}

/* Rounding x (which a double holds if `as_double`) agrees with MPFR in all modes. */
static void check_rounding(const struct dtype *dt, const mpfr_t x, bool as_double) {
    mpfr_t want, got;
    mpfr_init2(want, (mpfr_prec_t)dt->prec);
    mpfr_init2(got, (mpfr_prec_t)dt->prec);
    for (size_t r = 0; r < 4; r++) {
        mpfr_rounded(want, dt, x, mpfr_roundings[r]);
        decode(got, dt, dtype_from_mpfr(dt, x, roundings[r]));
        CHECK(same_number(got, want), "%s: from MPFR %.17g, %s", dt->name, mpfr_get_d(x, MPFR_RNDN),
              rounding_names[r]);
        if (as_double) {
            decode(got, dt, dtype_from_double(dt, mpfr_get_d(x, MPFR_RNDN), roundings[r]));
            CHECK(same_number(got, want), "%s: from double %a, %s", dt->name,
                  mpfr_get_d(x, MPFR_RNDN), rounding_names[r]);
        }
    }
    mpfr_clear(got);
    mpfr_clear(want);
}

/*
 * x = middle of two neighbours, and x a little off (by 2^-40 of their distance, and in MPFR by
 * 2^-300 of it, which no double can say), and the lower neighbour itself and a little off it.
 */
static void check_around(const struct dtype *dt, const mpfr_t lower, const mpfr_t upper) {
    mpfr_t x, gap, off;
    mpfr_inits2(400, x, gap, off, (mpfr_ptr)0);
    mpfr_sub(gap, upper, lower, MPFR_RNDN);
    for (int half = 0; half < 2; half++) {
        for (int side = -1; side <= 1; side++) {
            for (int tiny = 0; tiny < 2; tiny++) {
                if (tiny && side == 0)
                    continue;
                mpfr_mul_2si(x, gap, -1, MPFR_RNDN);
                mpfr_mul_si(x, x, half, MPFR_RNDN);
                mpfr_add(x, x, lower, MPFR_RNDN);
                mpfr_mul_2si(off, gap, tiny ? -300 : -25, MPFR_RNDN);
                mpfr_mul_si(off, off, side, MPFR_RNDN);
                mpfr_add(x, x, off, MPFR_RNDN);
                check_rounding(dt, x, !tiny);
            }
        }
    }
    mpfr_clears(x, gap, off, (mpfr_ptr)0);
}

/* The value of ordinal i, one step beyond the largest datum included: 2^(emax+1). */
static void value_of_ordinal(mpfr_t out, const struct dtype *dt, int64_t i) {
    uint32_t bits = dtype_from_ordinal(dt, i);
    if (dtype_classify(dt, bits) == CLASS_INF)
        mpfr_set_si_2exp(out, i < 0 ? -1 : 1, dt->emax + 1, MPFR_RNDN);
    else
        decode(out, dt, bits);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; i < DT_COUNT; i++) {
        const struct dtype *dt = dtype_find(formats[i].name);
        assert_non_null(dt);
        assert_ptr_equal(dt, &dtypes[dt->id]);
        assert_int_equal(dt->bits, 1 + formats[i].exponent_bits + formats[i].fraction_bits);
        assert_int_equal(dtype_size(dt) * 8, dt->bits);
        assert_int_equal(dt->prec, formats[i].fraction_bits + 1);
        assert_true(dtype_max(dt) == formats[i].largest_value);
        assert_true(dtype_min_normal(dt) == formats[i].min_normal);
        assert_true(dtype_to_double(dt, formats[i].largest) == formats[i].largest_value);
        assert_true(dtype_to_double(dt, formats[i].least) == formats[i].least_value);
        assert_int_equal(dtype_from_double(dt, formats[i].largest_value, ROUND_NEAREST),
                         formats[i].largest);
        assert_int_equal(dtype_from_double(dt, formats[i].least_value, ROUND_NEAREST),
                         formats[i].least);
        assert_int_equal(dtype_classify(dt, dt->nan), CLASS_NAN);
        assert_int_equal(dtype_from_double(dt, NAN, ROUND_NEAREST), dt->nan);
    }
    assert_null(dtype_find("f64"));
    assert_null(dtype_find(""));
}

/* Every datum of a 16-bit format: value, class, sign, order, storage, and back. */
static void check_all_data(const struct dtype *dt) {
    mpfr_t want, got;
    mpfr_inits2(53, want, got, (mpfr_ptr)0);
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        decode(want, dt, bits);
        double value = dtype_to_double(dt, bits);
        CHECK(mpfr_nan_p(want) ? isnan(value) : mpfr_get_d(want, MPFR_RNDN) == value,
              "%s %04x is %a", dt->name, bits, value);
        dtype_to_mpfr(got, dt, bits);
        CHECK(mpfr_nan_p(want) ? mpfr_nan_p(got) : same_number(got, want), "%s %04x", dt->name,
              bits);
        CHECK(dtype_sign(dt, bits) == (bits >> 15 != 0), "%s %04x", dt->name, bits);

        enum dtype_class want_class = mpfr_nan_p(want)                    ? CLASS_NAN
                                      : mpfr_inf_p(want)                  ? CLASS_INF
                                      : mpfr_zero_p(want)                 ? CLASS_ZERO
                                      : mpfr_get_exp(want) - 1 < dt->emin ? CLASS_SUBNORMAL
                                                                          : CLASS_NORMAL;
        CHECK(dtype_classify(dt, bits) == want_class, "%s %04x", dt->name, bits);

        unsigned char stored[6] = {0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa};
        dtype_store(dt, stored, 1, bits);
        assert_int_equal(dtype_load(dt, stored, 1), bits);
        assert_int_equal(dtype_load(dt, stored, 0), 0xaaaa);
        assert_int_equal(dtype_load(dt, stored, 2), 0xaaaa);

        if (want_class == CLASS_NAN)
            continue;
        for (size_t r = 0; r < 4; r++)
            CHECK(dtype_from_double(dt, value, roundings[r]) == bits, "%s %04x", dt->name, bits);
        int64_t ordinal = dtype_ordinal(dt, bits);
        if (want_class != CLASS_ZERO)
            assert_int_equal(dtype_from_ordinal(dt, ordinal), bits);
        if (want_class != CLASS_INF || dtype_sign(dt, bits)) { /* there is a next one */
            double next = dtype_to_double(dt, dtype_from_ordinal(dt, ordinal + 1));
            CHECK(next > value, "%s %04x: %a then %a", dt->name, bits, value, next);
        }
    }
    assert_int_equal(dtype_ordinal(dt, 0), 0);
    assert_int_equal(dtype_ordinal(dt, 0x8000), 0);
    assert_int_equal(dtype_from_ordinal(dt, 0), 0);
    mpfr_clears(want, got, (mpfr_ptr)0);
}

/* Every middle of two neighbours, and its surroundings, up to the overflow threshold. */
static void check_all_roundings(const struct dtype *dt) {
    mpfr_t lower, upper;
    mpfr_inits2(53, lower, upper, (mpfr_ptr)0);
    int64_t inf = dtype_ordinal(dt, dtype_from_double(dt, INFINITY, ROUND_NEAREST));
    for (int64_t i = -inf; i < inf; i++) {
        value_of_ordinal(lower, dt, i);
        value_of_ordinal(upper, dt, i + 1);
        check_around(dt, lower, upper);
    }
    mpfr_clears(lower, upper, (mpfr_ptr)0);
}

static void test_f16_data(void **state) {
    (void)state;
    check_all_data(&dtypes[DT_F16]);
}

static void test_bf16_data(void **state) {
    (void)state;
    check_all_data(&dtypes[DT_BF16]);
}

static void test_f16_roundings(void **state) {
    (void)state;
    check_all_roundings(&dtypes[DT_F16]);
}

static void test_bf16_roundings(void **state) {
    (void)state;
    check_all_roundings(&dtypes[DT_BF16]);
}

/* Corners of every binade, and random data biased to special exponents. */
static void test_f32(void **state) {
    (void)state;
    const struct dtype *dt = &dtypes[DT_F32];
    static const uint32_t fractions[] = {0, 1, 0x3fffff, 0x400000, 0x7ffffe, 0x7fffff};
    mpfr_t lower, upper, value;
    mpfr_inits2(53, lower, upper, value, (mpfr_ptr)0);
    struct rng rng = rng_from_seed(2);
    size_t random = times(20000);
    for (size_t i = 0; i < 255 * 6 + random; i++) {
        uint32_t bits = (uint32_t)(i / 6) << 23 | fractions[i % 6];
        if (i >= 255 * 6)
            bits = (uint32_t)rng_below(&rng, 0x7f800000);
        uint32_t signed_bits = bits | (uint32_t)rng_below(&rng, 2) << 31;
        decode(value, dt, signed_bits);
        assert_true(mpfr_get_d(value, MPFR_RNDN) == dtype_to_double(dt, signed_bits));
        int64_t ordinal = dtype_ordinal(dt, bits);
        assert_int_equal(dtype_from_ordinal(dt, -ordinal), ordinal != 0 ? bits | 1u << 31 : 0);
        value_of_ordinal(lower, dt, ordinal);
        value_of_ordinal(upper, dt, ordinal + 1);
        check_around(dt, lower, upper);
        value_of_ordinal(lower, dt, -ordinal - 1);
        value_of_ordinal(upper, dt, -ordinal);
        check_around(dt, lower, upper);
    }
    mpfr_clears(lower, upper, value, (mpfr_ptr)0);
}

/* Doubles far outside a format, double subnormals, and the host's own conversion to f32. */
static void test_any_double(void **state) {
    (void)state;
    mpfr_t x;
    mpfr_init2(x, 53);
    struct rng rng = rng_from_seed(3);
    for (size_t i = 0; i < times(100000); i++) {
        uint64_t bits = rng_u64(&rng);
        if (i % 4 == 0)
            bits &= 0x800fffffffffffff; /* a subnormal double */
        double d;
        memcpy(&d, &bits, sizeof d);
        if (isnan(d))
            continue;
        mpfr_set_d(x, d, MPFR_RNDN);
        for (size_t k = 0; k < DT_COUNT && mpfr_regular_p(x); k++)
            check_rounding(&dtypes[k], x, true);

        /* the host: around f32's range, where conversions differ */
        double near = scaled_unit(&rng, 1, -155, 290);
        float host = (float)near;
        uint32_t host_bits;
        memcpy(&host_bits, &host, sizeof host_bits);
        CHECK(dtype_from_double(&dtypes[DT_F32], near, ROUND_NEAREST) == host_bits, "%a", near);
    }
    for (size_t k = 0; k < DT_COUNT; k++) {
        const struct dtype *dt = &dtypes[k];
        uint32_t sign = 1u << (dt->bits - 1);
        uint32_t inf = (uint32_t)dtype_from_double(dt, INFINITY, ROUND_ZERO);
        assert_int_equal(dtype_classify(dt, inf), CLASS_INF);
        assert_int_equal(dtype_from_double(dt, -INFINITY, ROUND_UP), inf | sign);
        assert_int_equal(dtype_from_double(dt, -0.0, ROUND_UP), sign);
        assert_int_equal(dtype_from_double(dt, 0.0, ROUND_DOWN), 0);
    }
    mpfr_clear(x);
}

/* Numbers that no double holds. */
static void test_mpfr_range(void **state) {
    (void)state;
    mpfr_t x;
    mpfr_init2(x, 80);
    for (size_t k = 0; k < DT_COUNT; k++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            mpfr_set_si_2exp(x, sign, 5000, MPFR_RNDN);
            check_rounding(&dtypes[k], x, false);
            mpfr_set_si_2exp(x, sign, -5000, MPFR_RNDN);
            check_rounding(&dtypes[k], x, false);
            mpfr_set_inf(x, sign);
            check_rounding(&dtypes[k], x, false);
            mpfr_set_zero(x, sign);
            check_rounding(&dtypes[k], x, false);
        }
        mpfr_set_nan(x);
        assert_int_equal(dtype_from_mpfr(&dtypes[k], x, ROUND_UP), dtypes[k].nan);
    }
    mpfr_clear(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),          cmocka_unit_test(test_f16_data),
        cmocka_unit_test(test_bf16_data),      cmocka_unit_test(test_f16_roundings),
        cmocka_unit_test(test_bf16_roundings), cmocka_unit_test(test_f32),
        cmocka_unit_test(test_any_double),     cmocka_unit_test(test_mpfr_range),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mpfr_free_cache();
    return failed;
}
