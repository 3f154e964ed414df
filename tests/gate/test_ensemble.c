/*
 * tests/gate/test_ensemble.c - biases that stay within every budget are found, honest rounding is
 * not accused, and an ensemble that could not have failed says so.
 */
#include "tests/check.h"

#include <math.h>

#include "base/rng.h"
#include "gate/ensemble.h"
#include "oracle/ulp.h"
#include "tests/gate/fake.h"
#include "tests/oracle/gpu_exp.h"

/* A case, its truth and an output in the kernel's own format. */
struct bench {
    struct fake fake;
    struct op op;
    struct test_case c;
    struct truth truth;
    void *y;
    struct judgement j;
};

static void begin(struct bench *b, const char *op, const char *fill, enum dtype_id in,
                  enum dtype_id out, struct case_dims dims, uint64_t seed) {
    *b = (struct bench){.fake = fake_kernel("fake", op, fake_sum), .op = *op_find(op)};
    b->fake.kernel.in = b->fake.numerics.in = &dtypes[in];
    b->fake.kernel.out = b->fake.numerics.out = &dtypes[out];
    b->fake.numerics.sum_height = (double)dims.cols - 1;
    CHECK_OK(case_from_fill(&b->c, fill_find(fill), &dtypes[in], dims, seed));
    CHECK_OK(truth_init(&b->truth, b->fake.kernel.op, &b->c, EMPTY_NAN));
    CHECK_OK(truth_fill(&b->truth)); /* outputs are made from it */
    b->y = calloc(b->truth.count + 1, sizeof(float));
}

static void end(struct bench *b) {
    case_clear(&b->c);
    truth_clear(&b->truth);
    free(b->y);
}

static enum verdict ensemble(struct bench *b) {
    CHECK_OK(ensemble_output(&b->j, &b->fake.kernel, &b->c, &b->truth, b->y));
    return b->j.verdict;
}

static enum verdict bound(struct bench *b) {
    CHECK_OK(judge_output(&b->j, &b->fake.kernel, &b->c, &b->truth, b->y));
    return b->j.verdict;
}

static void put(struct bench *b, size_t i, double v, enum rounding rounding) {
    const struct dtype *out = b->fake.kernel.out;
    dtype_store(out, b->y, i, dtype_from_double(out, v, rounding));
}

/* What a perfect kernel would give but for its last rounding. */
static void round_truth(struct bench *b, enum rounding rounding) {
    for (size_t i = 0; i < b->truth.count; i++)
        put(b, i, b->truth.want[i].lo, rounding);
}

/* As truncation must be: less than one ulp off everywhere. */
static void within_one_ulp(const struct bench *b) {
    const struct dtype *out = b->fake.kernel.out;
    for (size_t i = 0; i < b->truth.count; i++) {
        double got = dtype_to_double(out, dtype_load(out, b->y, i)), want = b->truth.want[i].lo;
        assert_true(fabs(got - want) <= 1.0001 * ulp_size(out, nextafter(want, INFINITY)));
    }
}

/* ---- last roundings -------------------------------------------------------------------------- */

static const struct case_dims narrow_dims = {1024, 33};

static void nearest_is_not_accused(void **state) {
    (void)state;
    static const char *const ops_of[] = {"sum", "softmax", "lse", "log_softmax"};
    for (size_t k = 0; k < 4; k++)
        for (int out = DT_F16; out <= DT_BF16; out++)
            for (uint64_t seed = 1; seed <= (k == 0 ? 40 : 3); seed++) {
                struct bench b;
                begin(&b, ops_of[k], "normal", DT_F32, (enum dtype_id)out, narrow_dims, seed);
                b.fake.numerics.log = LOG_LOGF;
                round_truth(&b, ROUND_NEAREST);
                CHECK(ensemble(&b) == VERDICT_PASS, "%s to %s, seed %d: %s", ops_of[k],
                      b.fake.kernel.out->name, (int)seed, b.j.reason);
                end(&b);
            }
}

/*
 * Entries of 16 bits lie on a grid, and so do their differences.  Where one entry outweighs the others
 * log(sum) is tiny, so the results of log_softmax lie just below that grid, and those below a tie all
 * go down: the errors of the best kernel there is have a mean that is not 0.
 */
static void a_grid_is_not_accused(void **state) {
    (void)state;
    for (int narrow = DT_F16; narrow <= DT_BF16; narrow++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            struct bench b;
            begin(&b, "log_softmax", "normal", (enum dtype_id)narrow, (enum dtype_id)narrow,
                  (struct case_dims){4096, 33}, seed);
            b.fake.numerics.log = LOG_LOGF;
            round_truth(&b, ROUND_NEAREST);
            CHECK(ensemble(&b) == VERDICT_PASS, "%s, seed %d: %s", b.fake.kernel.out->name,
                  (int)seed, b.j.reason);
            round_truth(&b, ROUND_ZERO);
            assert_int_equal(ensemble(&b), VERDICT_FAIL);
            CHECK_CONTAINS(b.j.reason, "bias upwards");
            end(&b);
        }
}

/* 2^-12 of the result before the last rounding. */
static status_t coarse_budget(double *budget, const struct oracle_row *row,
                              const struct enclosure *want, const struct numerics *n) {
    for (size_t j = 0; j < row->cols; j++)
        budget[j] = ldexp(want[j].hi, -12) + (n->out == n->acc ? 0 : ldexp(want[j].hi, -8));
    return OK;
}

/* What may go before the last rounding may all go one way, and a little more of it may not. */
static void errors_before_the_last_rounding(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "softmax", "normal", DT_F32, DT_BF16, narrow_dims, 1);
    b.op.budget = coarse_budget;
    b.fake.kernel.op = &b.op;
    for (int way = -1; way <= 1; way += 2) {
        for (size_t i = 0; i < b.truth.count; i++)
            put(&b, i, b.truth.want[i].lo * (1 + way * 0x0.ffp-12), ROUND_NEAREST);
        CHECK(ensemble(&b) == VERDICT_PASS, "%s", b.j.reason);
        for (size_t i = 0; i < b.truth.count; i++)
            put(&b, i, b.truth.want[i].lo * (1 + way * 0x1p-10), ROUND_NEAREST);
        assert_int_equal(ensemble(&b), VERDICT_FAIL);
        CHECK_CONTAINS(b.j.reason, way > 0 ? "bias upwards" : "bias downwards");
    }
    end(&b);
}

/* aiter #5151: f32 to bf16 by dropping bits, never more than one ulp, always the same way. */
static void truncation_is_found(void **state) {
    (void)state;
    static const char *const ops_of[] = {"sum", "max", "softmax"};
    for (size_t k = 0; k < 3; k++)
        for (int out = DT_F16; out <= DT_BF16; out++) {
            struct bench b;
            begin(&b, ops_of[k], "normal", DT_F32, (enum dtype_id)out, narrow_dims, 1);
            round_truth(&b, ROUND_ZERO);
            if (k < 2)
                within_one_ulp(&b);
            CHECK(ensemble(&b) == VERDICT_FAIL, "%s to %s", ops_of[k], b.fake.kernel.out->name);
            CHECK_CONTAINS(b.j.reason, k == 0 ? "bias toward zero" : "bias downwards");
            end(&b);
        }
}

static void directed_rounding_is_found(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "sum", "normal", DT_F32, DT_BF16, narrow_dims, 1);
    round_truth(&b, ROUND_UP);
    assert_int_equal(ensemble(&b), VERDICT_FAIL);
    CHECK_CONTAINS(b.j.reason, "bias upwards");
    round_truth(&b, ROUND_DOWN);
    assert_int_equal(ensemble(&b), VERDICT_FAIL);
    CHECK_CONTAINS(b.j.reason, "bias downwards");
    end(&b);
}

/* The sum of two bf16 is often a tie: to even is fair, away from zero is not. */
static void ties(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "sum", "normal", DT_BF16, DT_BF16, (struct case_dims){4096, 2}, 1);
    round_truth(&b, ROUND_NEAREST);
    CHECK(ensemble(&b) == VERDICT_PASS, "%s", b.j.reason);
    size_t tied = 0;
    for (size_t i = 0; i < b.truth.count; i++) {
        const struct dtype *out = b.fake.kernel.out;
        double want = b.truth.want[i].lo;
        double down = dtype_to_double(out, dtype_from_double(out, want, ROUND_DOWN));
        double up = dtype_to_double(out, dtype_from_double(out, want, ROUND_UP));
        if (want == down || want - down != up - want)
            continue;
        tied++;
        put(&b, i, want > 0 ? up : down, ROUND_NEAREST);
    }
    assert_true(tied > b.truth.count / 20);
    assert_int_equal(ensemble(&b), VERDICT_FAIL);
    CHECK_CONTAINS(b.j.reason, "away from zero");
    assert_int_equal(bound(&b), VERDICT_PASS); /* each single result is as good as to even */
    end(&b);
}

/* A residual stream of 72 truncated additions shrinks; one call of them is enough to find it. */
static void chained_calls_drift(void **state) {
    (void)state;
    static const struct {
        enum rounding rounding;
        double least, most;
        enum verdict verdict;
    } table[] = {{ROUND_NEAREST, 0, 0.01, VERDICT_PASS}, {ROUND_ZERO, 0.05, 0.5, VERDICT_FAIL}};
    for (size_t k = 0; k < 2; k++) {
        const struct dtype *bf16 = &dtypes[DT_BF16];
        struct rng rng = rng_from_seed(7);
        double lost = 0;
        for (int stream = 0; stream < 1000; stream++) {
            double exact = 1 + rng_unit(&rng), x = exact;
            for (int call = 0; call < 72; call++) {
                double update = 0.02 * (rng_unit(&rng) - 0.5);
                exact += update;
                x = dtype_to_double(bf16, dtype_from_double(bf16, x + update, table[k].rounding));
            }
            lost += (exact - x) / exact / 1000;
        }
        CHECK(lost <= table[k].most && fabs(lost) >= table[k].least, "lost %g", lost);
        struct bench b;
        begin(&b, "sum", "normal", DT_F32, DT_BF16, (struct case_dims){512, 2}, 1);
        round_truth(&b, table[k].rounding);
        assert_int_equal(ensemble(&b), table[k].verdict);
        end(&b);
    }
}

/* ---- inside the kernel ----------------------------------------------------------------------- */

static float add_toward_zero(float a, float b) {
    double exact = (double)a + (double)b; /* or one rounding of 2^-53 off it, which moves nothing */
    float sum = (float)exact;
    return fabs((double)sum) > fabs(exact) ? nextafterf(sum, 0) : sum;
}

static void sums(struct bench *b, bool truncate) {
    const float *x = b->c.x;
    float *y = b->y;
    for (size_t r = 0; r < b->c.dims.rows; r++) {
        y[r] = 0;
        for (size_t j = 0; j < b->c.dims.cols; j++) {
            float v = x[r * b->c.dims.cols + j];
            y[r] = truncate ? add_toward_zero(y[r], v) : y[r] + v;
        }
    }
}

/* Truncated additions stay within the worst case that nearest ones are granted. */
static void truncated_additions_are_found(void **state) {
    (void)state;
    static const char *const random_fills[] = {"normal", "near_overflow"};
    for (size_t k = 0; k < 2; k++) {
        struct bench b;
        begin(&b, "sum", random_fills[k], DT_F32, DT_F32, (struct case_dims){512, 257}, 3);
        sums(&b, false);
        CHECK(ensemble(&b) == VERDICT_PASS, "%s: %s", random_fills[k], b.j.reason);
        sums(&b, true);
        assert_int_equal(bound(&b), VERDICT_PASS);
        if (k == 1)
            assert_int_equal(ensemble(&b), VERDICT_FAIL);
        end(&b);
    }
}

/* flash-attention #2721: the numerator is rounded to bf16, the sum is not. */
static status_t bf16_budget(double *budget, const struct oracle_row *row,
                            const struct enclosure *want, const struct numerics *n) {
    (void)n;
    for (size_t j = 0; j < row->cols; j++)
        budget[j] = ldexp(want[j].hi, -6) + 0x1p-126;
    return OK;
}

static void bf16_softmax(struct bench *b, enum rounding rounding) {
    const struct dtype *bf16 = &dtypes[DT_BF16];
    size_t cols = b->c.dims.cols;
    for (size_t r = 0; r < b->c.dims.rows; r++) {
        const float *x = (const float *)b->c.x + r * cols;
        float max = -INFINITY, sum = 0;
        for (size_t j = 0; j < cols; j++)
            max = fmaxf(max, x[j]);
        for (size_t j = 0; j < cols; j++)
            sum += gpu_expf(x[j] - max);
        for (size_t j = 0; j < cols; j++) {
            double e = (double)gpu_expf(x[j] - max);
            double p = dtype_to_double(bf16, dtype_from_double(bf16, e, rounding));
            ((float *)b->y)[r * cols + j] = (float)p / sum;
        }
    }
}

static void rounded_numerator_is_found(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "softmax", "normal", DT_F32, DT_F32, narrow_dims, 1);
    b.op.budget = bf16_budget;
    b.fake.kernel.op = &b.op;
    bf16_softmax(&b, ROUND_NEAREST);
    CHECK(ensemble(&b) == VERDICT_PASS, "%s", b.j.reason);
    bf16_softmax(&b, ROUND_ZERO);
    assert_int_equal(bound(&b), VERDICT_PASS);
    assert_int_equal(ensemble(&b), VERDICT_FAIL);
    CHECK_CONTAINS(b.j.reason, "bias");
    end(&b);
}

/* Right on average and within every budget, but always as wrong as can be. */
static void spread_is_found(void **state) {
    (void)state;
    struct bench b;
    double *budget;
    struct rng rng = rng_from_seed(5);
    begin(&b, "sum", "near_overflow", DT_F32, DT_F32, (struct case_dims){512, 257}, 1);
    CHECK_OK(budgets_make(&budget, &b.fake.kernel, &b.c, &b.truth));
    for (size_t i = 0; i < b.truth.count; i++)
        put(&b, i, b.truth.want[i].lo + (rng_u64(&rng) >> 63 ? 0.9 : -0.9) * budget[i],
            ROUND_NEAREST);
    free(budget);
    assert_int_equal(bound(&b), VERDICT_PASS);
    assert_int_equal(ensemble(&b), VERDICT_FAIL);
    CHECK_CONTAINS(b.j.reason, "spread");
    end(&b);
}

/* The whole of a kernel in f32 with the GPU's exp: the mean error of expf is within its allowance. */
static void softmax_is_not_accused(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct bench b;
        begin(&b, "softmax", "normal", DT_F32, DT_F32, (struct case_dims){1024, 33}, seed);
        for (size_t r = 0; r < b.c.dims.rows; r++) {
            const float *x = (const float *)b.c.x + r * 33;
            float *y = (float *)b.y + r * 33, max = -INFINITY, sum = 0;
            for (size_t j = 0; j < 33; j++)
                max = fmaxf(max, x[j]);
            for (size_t j = 0; j < 33; j++)
                sum += y[j] = gpu_expf(x[j] - max);
            for (size_t j = 0; j < 33; j++)
                y[j] /= sum;
        }
        CHECK(ensemble(&b) == VERDICT_PASS, "%s", b.j.reason);
        for (size_t i = 0; i < b.truth.count; i++) /* 8 u too large, well within the budget */
            ((float *)b.y)[i] *= 1 + 8 * 0x1p-23f;
        assert_int_equal(bound(&b), VERDICT_PASS);
        assert_int_equal(ensemble(&b), VERDICT_FAIL);
        end(&b);
    }
}

/* The constant EXPF_BIAS of gate/ensemble.c: 0.5 u bounds the mean over sixteenths of a binade. */
static void mean_of_expf(void **state) {
    (void)state;
    static const double from[] = {-1, -16, -80};
    struct rng rng = rng_from_seed(1);
    for (size_t k = 0; k < 3; k++) {
        double sum[16] = {0}, count[16] = {0};
        for (int i = 0; i < 2000000; i++) {
            float x = (float)(from[k] * rng_unit(&rng));
            double e = exp((double)x), fraction = -(double)x * 0x1.71547652b82fep0;
            size_t bin = (size_t)(16 * (fraction - floor(fraction)));
            sum[bin] += ((double)gpu_expf(x) - e) / e;
            count[bin]++;
        }
        for (size_t bin = 0; bin < 16; bin++)
            CHECK(fabs(sum[bin] / count[bin]) < 0.5 * 0x1p-24, "bin %zu: %g u", bin,
                  sum[bin] / count[bin] * 0x1p24);
    }
}

/* ---- what cannot fail ------------------------------------------------------------------------ */

static void blind_is_mistrusted(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "sum", "normal", DT_F32, DT_BF16, (struct case_dims){16, 33}, 1); /* too few rows */
    round_truth(&b, ROUND_NEAREST);
    assert_int_equal(ensemble(&b), VERDICT_MISTRUSTED);
    CHECK_CONTAINS(b.j.reason, "would not have shown in 16 rows");
    end(&b);

    begin(&b, "sum", "normal", DT_F32, DT_BF16, narrow_dims, 1); /* no numbers */
    for (size_t i = 0; i < b.truth.count; i++)
        put(&b, i, NAN, ROUND_NEAREST);
    assert_int_equal(ensemble(&b), VERDICT_MISTRUSTED);
    CHECK_CONTAINS(b.j.reason, "no result is a number");
    end(&b);
}

static void nothing_to_test_is_skipped(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "max", "normal", DT_F32, DT_F32, narrow_dims, 1);
    round_truth(&b, ROUND_NEAREST);
    assert_int_equal(ensemble(&b), VERDICT_SKIP);
    CHECK_CONTAINS(b.j.reason, "every budget is 0");
    end(&b);

    begin(&b, "softmax", "normal", DT_F32, DT_F32, (struct case_dims){512, 2}, 1);
    b.fake.numerics.exp = EXP_FAST;
    round_truth(&b, ROUND_NEAREST);
    assert_int_equal(ensemble(&b), VERDICT_SKIP);
    CHECK_CONTAINS(b.j.reason, "no bound on the mean error");
    end(&b);
}

static void only_random_rows(void **state) {
    (void)state;
    assert_null(ensemble_refuses(fill_find("normal")));
    assert_null(ensemble_refuses(fill_find("near_overflow")));
    assert_non_null(ensemble_refuses(fill_find("ramp_up")));
    assert_non_null(ensemble_refuses(fill_find("exact_int")));
    assert_non_null(ensemble_refuses(NULL));
}

/* A device fault fails here as everywhere. */
static void trapping(float *y, const float *x, struct case_dims d, uint64_t seed,
                     struct dev_run *run) {
    fake_sum(y, x, d, seed, run);
    run->fault_count = 1;
    snprintf(run->faults[0].text, sizeof run->faults[0].text, "race on shared memory");
}

static void faults_fail(void **state) {
    (void)state;
    struct bench b;
    struct kernel_result result;
    begin(&b, "sum", "normal", DT_F32, DT_F32, narrow_dims, 1);
    struct loaded_kernel *lk = fake_load(&b.fake);
    CHECK_OK(ensemble_kernel(&b.j, &result, lk, &b.c, &b.truth));
    CHECK(b.j.verdict == VERDICT_PASS, "%s", b.j.reason);
    b.fake.compute = trapping;
    CHECK_OK(ensemble_kernel(&b.j, &result, lk, &b.c, &b.truth));
    assert_int_equal(b.j.verdict, VERDICT_FAIL);
    CHECK_CONTAINS(b.j.reason, "race");
    free(lk);
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_is_not_accused),
        cmocka_unit_test(a_grid_is_not_accused),
        cmocka_unit_test(errors_before_the_last_rounding),
        cmocka_unit_test(truncation_is_found),
        cmocka_unit_test(directed_rounding_is_found),
        cmocka_unit_test(ties),
        cmocka_unit_test(chained_calls_drift),
        cmocka_unit_test(truncated_additions_are_found),
        cmocka_unit_test(rounded_numerator_is_found),
        cmocka_unit_test(spread_is_found),
        cmocka_unit_test(softmax_is_not_accused),
        cmocka_unit_test(mean_of_expf),
        cmocka_unit_test(blind_is_mistrusted),
        cmocka_unit_test(nothing_to_test_is_skipped),
        cmocka_unit_test(only_random_rows),
        cmocka_unit_test(faults_fail),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return rc;
}
