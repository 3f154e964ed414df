/* tests/gate/test_order.c - the order check finds each kind of dependence, and knows when it is blind. */
#include "tests/check.h"

#include <math.h>

#include "gate/order.h"
#include "tests/gate/fake.h"

static struct judgement judgement;
static bool saw;

static enum verdict check(const struct fake *fake, const char *fill, size_t rows, size_t cols) {
    struct test_case c;
    struct truth truth;
    struct kernel_result result;
    struct loaded_kernel *lk = fake_load(fake);
    CHECK_OK(
        case_from_fill(&c, fill_find(fill), &dtypes[DT_F32], (struct case_dims){rows, cols}, 1));
    CHECK_OK(truth_init(&truth, fake->kernel.op, &c, fake->kernel.empty_row));
    CHECK_OK(order_check(&judgement, &saw, &result, lk, &c, &truth));
    kernel_unload(lk);
    truth_clear(&truth);
    case_clear(&c);
    return judgement.verdict;
}

static void honest_kernels_pass(void **state) {
    (void)state;
    const struct fake fakes[] = {fake_kernel("sum", "sum", fake_sum),
                                 fake_kernel("max", "max", fake_max),
                                 fake_kernel("softmax", "softmax", fake_softmax)};
    for (const struct fill *f = fills; f->name; f++)
        for (size_t i = 0; i < 3; i++)
            CHECK(check(&fakes[i], f->name, 5, 129) == VERDICT_PASS, "%s of %s: %s",
                  fakes[i].kernel.name, f->name, judgement.reason);
    for (size_t i = 0; i < 3; i++) {
        check(&fakes[i], "normal", 5, 129);
        assert_true(saw);
    }
}

/* The sum of the first half only: another set of terms under a permutation. */
static void half_sum(float *y, const float *x, struct case_dims d, uint64_t seed,
                     struct dev_run *run) {
    (void)seed, (void)run;
    for (size_t r = 0; r < d.rows; r++) {
        y[r] = 0;
        for (size_t j = 0; j < d.cols / 2; j++)
            y[r] += x[r * d.cols + j];
    }
}

static void permutation_is_seen(void **state) {
    (void)state;
    const struct fake fake = fake_kernel("half", "sum", half_sum);
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "order: permutation 1");
    CHECK_CONTAINS(judgement.reason, "times what two orders may differ by");
    assert_true(judgement.max_rho > 1);
}

/* Gives column 0 a little more, wherever it is: shows only if results follow their places. */
static void favour_first(float *y, const float *x, struct case_dims d, uint64_t seed,
                         struct dev_run *run) {
    fake_softmax(y, x, d, seed, run);
    for (size_t r = 0; r < d.rows; r++)
        y[r * d.cols] *= 1.001f;
}

static void permuted_places_are_followed(void **state) {
    (void)state;
    const struct fake fake = fake_kernel("first", "softmax", favour_first);
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "order: permutation");
}

/* One ulp more under an odd schedule. */
static void scheduled(float *y, const float *x, struct case_dims d, uint64_t seed,
                      struct dev_run *run) {
    fake_sum(y, x, d, seed, run);
    if (seed % 2)
        y[0] = nextafterf(y[0], INFINITY);
}

static void schedule_is_seen(void **state) {
    (void)state;
    struct fake fake = fake_kernel("scheduled", "sum", scheduled);
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "order: schedule 1: row 0");
    CHECK_CONTAINS(judgement.reason, "deterministic: true");
    assert_true(isinf(judgement.max_rho));
    fake.kernel.deterministic = false; /* then one ulp is within what two orders may differ by */
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_PASS);
}

/* The same value, but another bit: the sign of zero. */
static void signed_zero(float *y, const float *x, struct case_dims d, uint64_t seed,
                        struct dev_run *run) {
    (void)x, (void)run;
    for (size_t r = 0; r < d.rows; r++)
        y[r] = seed % 2 ? -0.0f : 0.0f;
}

/* A number or NaN, as the first element has it. */
static void first_decides(float *y, const float *x, struct case_dims d, uint64_t seed,
                          struct dev_run *run) {
    (void)seed, (void)run;
    for (size_t r = 0; r < d.rows; r++)
        y[r] = x[r * d.cols] > 0 ? 0 : NAN;
}

static void bits_and_classes_count(void **state) {
    (void)state;
    struct fake fake = fake_kernel("zero", "sum", signed_zero);
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "order: schedule 1");
    fake.kernel.deterministic = false;
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_PASS);
    fake = fake_kernel("first", "sum", first_decides);
    fake.kernel.deterministic = false;
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "order: permutation");
    assert_true(isinf(judgement.max_rho));
}

static unsigned calls;

/* Another bit at each call, whatever the seed. */
static void drifting(float *y, const float *x, struct case_dims d, uint64_t seed,
                     struct dev_run *run) {
    fake_sum(y, x, d, seed, run);
    for (unsigned k = 0; k < calls; k++)
        y[d.rows - 1] = nextafterf(y[d.rows - 1], INFINITY);
    calls++;
}

static void repeat_is_seen(void **state) {
    (void)state;
    const struct fake fake = fake_kernel("drifting", "sum", drifting);
    calls = 0;
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "order: repeat 1: row 4");
}

/* Another bit if there are several rows: the batch changes the result. */
static void batched(float *y, const float *x, struct case_dims d, uint64_t seed,
                    struct dev_run *run) {
    fake_sum(y, x, d, seed, run);
    for (size_t r = 0; r < d.rows; r++)
        if (d.rows > 1)
            y[r] = nextafterf(y[r], INFINITY);
}

static void batch_is_seen(void **state) {
    (void)state;
    struct fake fake = fake_kernel("batched", "sum", batched);
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "order: batch of 1: row 0");
    fake.kernel.deterministic = false;
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_PASS);
}

/* Adds 0 times the next row's first element: only a NaN there shows it. */
static void leaking(float *y, const float *x, struct case_dims d, uint64_t seed,
                    struct dev_run *run) {
    fake_sum(y, x, d, seed, run);
    for (size_t r = 0; r + 1 < d.rows; r++)
        y[r] += 0 * x[(r + 1) * d.cols];
}

static void neighbour_is_seen(void **state) {
    (void)state;
    const struct fake fake = fake_kernel("leaking", "sum", leaking);
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "order: neighbours 1: row 2");
    assert_true(isnan(dtype_to_double(&dtypes[DT_F32], judgement.worst.got)));
}

/* Sorts before it adds, in double: no permutation can change it. */
static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void sorted(float *y, const float *x, struct case_dims d, uint64_t seed,
                   struct dev_run *run) {
    (void)seed, (void)run;
    float *copy = malloc(d.cols * sizeof *copy);
    for (size_t r = 0; r < d.rows; r++) {
        memcpy(copy, x + r * d.cols, d.cols * sizeof *copy);
        qsort(copy, d.cols, sizeof *copy, compare_floats);
        double sum = 0;
        for (size_t j = 0; j < d.cols; j++)
            sum += (double)copy[j];
        y[r] = (float)sum;
    }
    free(copy);
}

/* What cannot be seen is said: the caller makes it MISTRUSTED. */
static void blindness_is_reported(void **state) {
    (void)state;
    const struct fake fake = fake_kernel("sorted", "sum", sorted);
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_PASS);
    assert_true(saw); /* no bit changes, and one that did would have shown */
    const struct fake honest = fake_kernel("sum", "sum", fake_sum);
    check(&honest, "normal", 5, 1); /* one column has one order */
    assert_false(saw);
    check(&honest, "exact_int", 5, 129); /* bound 0: any change would have failed */
    assert_true(saw);
}

static void racy(float *y, const float *x, struct case_dims d, uint64_t seed, struct dev_run *run) {
    fake_sum(y, x, d, seed, run);
    if (seed == 2) {
        run->fault_count = 1;
        snprintf(run->faults[0].text, sizeof run->faults[0].text, "race at k.cu:7");
    }
}

static void fault_in_another_schedule(void **state) {
    (void)state;
    const struct fake fake = fake_kernel("racy", "sum", racy);
    assert_int_equal(check(&fake, "normal", 5, 129), VERDICT_FAIL);
    assert_string_equal(judgement.reason, "order: schedule: race at k.cu:7");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_kernels_pass),
        cmocka_unit_test(permutation_is_seen),
        cmocka_unit_test(permuted_places_are_followed),
        cmocka_unit_test(schedule_is_seen),
        cmocka_unit_test(bits_and_classes_count),
        cmocka_unit_test(repeat_is_seen),
        cmocka_unit_test(batch_is_seen),
        cmocka_unit_test(neighbour_is_seen),
        cmocka_unit_test(blindness_is_reported),
        cmocka_unit_test(fault_in_another_schedule),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return rc;
}
