/* tests/gate/test_plain.c - plain budgets: the file, the check, and what the numbers mean. */
#include "tests/check.h"

#include <math.h>
#include <unistd.h>

#include "gate/report.h"
#include "tests/gate/fake.h"

static char dir[] = "/tmp/assay-plain-XXXXXX";
static char manifest[64], budgets[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(manifest, sizeof manifest, "%s/manifest.yaml", dir);
    snprintf(budgets, sizeof budgets, "%s/budgets.txt", dir);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(budgets);
    return rmdir(dir);
}

static status_t find(struct plain *out, const char *text) {
    struct fake fake = fake_kernel("mine", "sum", fake_sum);
    fake.kernel.manifest = manifest;
    FILE *file = fopen(budgets, "w");
    fputs(text, file);
    fclose(file);
    return plain_find(out, &fake.kernel);
}

static void rows_are_found(void **state) {
    (void)state;
    struct plain p;
    CHECK_OK(
        find(&p, "# a comment\n\nother 1 2 because\n  mine\t2.5 1e-6  measured 2.3 and 9e-7\n"));
    assert_true(p.known && p.max_ulp == 2.5 && p.max_rel == 1e-6 && p.line == 4);
    CHECK_OK(find(&p, "mine 0 0 exact")); /* no newline at the end */
    assert_true(p.known && p.max_ulp == 0 && p.max_rel == 0);
    CHECK_OK(find(&p, "other 1 2 because\nmine_too 1 2 because\n"));
    assert_false(p.known);
    unlink(budgets);
    struct fake fake = fake_kernel("mine", "sum", fake_sum);
    fake.kernel.manifest = manifest;
    CHECK_OK(plain_find(&p, &fake.kernel)); /* no file: a user's own kernel */
    assert_false(p.known);
}

static void bad_rows_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } table[] = {
        {"mine 1\n", "budgets.txt:1: expected NAME MAX_ULP MAX_REL WHY"},
        {"\nmine 1 x why\n", "budgets.txt:2: expected"},
        {"mine 1x 2 why\n", "expected"},
        {"mine -1 2 why\n", "expected"},
        {"mine nan 2 why\n", "expected"},
        {"mine inf 2 why\n", "expected"},
        {"other 1 2\n", "other: expected the reason"},
        {"mine 1 2 why\nmine 3 4 why\n", "budgets.txt:2: mine has a row in line 1 already"},
    };
    struct plain p;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CHECK(find(&p, table[i].text) == ERR_SYNTAX, "%s", table[i].text);
        CHECK_CONTAINS(status_message(), table[i].words);
    }
    char line[700];
    memset(line, '#', sizeof line);
    line[sizeof line - 1] = '\0';
    assert_int_equal(find(&p, line), ERR_SYNTAX);
    CHECK_CONTAINS(status_message(), "longer than");
}

static enum verdict judged(struct judgement *j, double ulp, double rel, enum verdict verdict) {
    const struct plain p = {.known = true, .max_ulp = 2, .max_rel = 1e-6, .line = 7};
    *j = (struct judgement){.verdict = verdict, .max_ulp = ulp, .max_rel = rel};
    plain_judge(j, &p);
    return j->verdict;
}

static void what_exceeds_fails(void **state) {
    (void)state;
    struct judgement j;
    assert_int_equal(judged(&j, 2, 1e-6, VERDICT_PASS), VERDICT_PASS);
    assert_int_equal(judged(&j, nextafter(2, 3), 0, VERDICT_PASS), VERDICT_FAIL);
    CHECK_CONTAINS(j.reason, "the largest ulp error is 2, budgets.txt:7 allows 2");
    assert_int_equal(judged(&j, 2, 2e-6, VERDICT_MISTRUSTED), VERDICT_FAIL);
    CHECK_CONTAINS(j.reason, "the largest relative error is 2e-06, budgets.txt:7 allows 1e-06");
    assert_int_equal(judged(&j, NAN, 0, VERDICT_UNSURE), VERDICT_FAIL);
    assert_int_equal(judged(&j, 0, INFINITY, VERDICT_PASS), VERDICT_FAIL);
    assert_int_equal(judged(&j, 9, 9, VERDICT_SKIP), VERDICT_SKIP);
    assert_int_equal(judged(&j, 9, 9, VERDICT_FAIL), VERDICT_FAIL);
    assert_string_equal(j.reason, ""); /* the first reason stays */
    j = (struct judgement){.verdict = VERDICT_PASS, .max_ulp = 1e9};
    plain_judge(&j, &(struct plain){0});
    assert_int_equal(j.verdict, VERDICT_PASS);
}

/* The report's kernel fails, with the line that shows it; order checks have no plain numbers. */
static void reports_fail(void **state) {
    (void)state;
    struct fake fake = fake_kernel("mine", "sum", fake_sum);
    struct kernel_report r;
    kernel_report_init(&r, &fake.kernel);
    r.plain = (struct plain){.known = true, .max_ulp = 1, .max_rel = 1, .line = 3};
    struct outcome o = {.judgement = {.verdict = VERDICT_PASS, .max_ulp = 1, .max_rho = 0.5}};
    CHECK_OK(kernel_report_add(&r, CHECK_BOUND, "--fill a --shape 1x1 --seed 1", &o));
    o.judgement.max_ulp = 1.25;
    CHECK_OK(kernel_report_add(&r, CHECK_ORDER, "--order --fill a --shape 1x1 --seed 1", &o));
    assert_int_equal(r.verdict, VERDICT_PASS);
    CHECK_OK(kernel_report_add(&r, CHECK_BOUND, "--fill b --shape 1x1 --seed 1", &o));
    CHECK_OK(kernel_report_finish(&r));
    assert_int_equal(r.verdict, VERDICT_FAIL);
    CHECK_CONTAINS(r.reason, "plain budget: the largest ulp error is 1.25");
    assert_string_equal(r.worst.line, "--fill b --shape 1x1 --seed 1");
    kernel_report_clear(&r);
}

/* A sum that cancels: on the scale of its terms, not of what is left of them. */
static void cancelling_sums_are_measured_by_their_terms(void **state) {
    (void)state;
    static const float x[] = {1, 0x1p-20f, -1};
    struct fake fake = fake_kernel("mine", "sum", fake_sum);
    struct test_case c;
    struct truth truth;
    struct judgement j;
    float y = 0x1p-20f + 0x1p-23f; /* off by 2^-23 beside a result of 2^-20 */
    CHECK_OK(case_from_data(&c, x, &dtypes[DT_F32], (struct case_dims){1, 3}));
    CHECK_OK(truth_init(&truth, fake.kernel.op, &c, EMPTY_NAN));
    CHECK_OK(judge_output(&j, &fake.kernel, &c, &truth, &y));
    assert_true(j.max_ulp == 0.5); /* ulp(2 + 2^-20) = 2^-22 */
    assert_true(fabs(j.max_rel - 0x1p-24) < 1e-12);
    truth_clear(&truth);
    case_clear(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found),
        cmocka_unit_test(bad_rows_are_refused),
        cmocka_unit_test(what_exceeds_fails),
        cmocka_unit_test(reports_fail),
        cmocka_unit_test(cancelling_sums_are_measured_by_their_terms),
    };
    int rc = cmocka_run_group_tests(tests, make_folder, remove_folder);
    oracle_thread_done();
    return rc;
}
