/* tests/gate/test_twin.c - the twin check sees one wrong bit anywhere, and promises none where none is due. */
#include "tests/check.h"

#include <math.h>
#include <string.h>

#include "gate/report.h"
#include "gate/twin.h"
#include "tests/gate/fake.h"

static struct judgement judgement;
static size_t compared;

static enum verdict check(const struct fake *here, const struct fake *there, const char *fill,
                          size_t rows, size_t cols) {
    struct test_case c;
    struct kernel_result result;
    struct loaded_kernel *lk = fake_load(here), *twin = fake_load(there);
    CHECK_OK(
        case_from_fill(&c, fill_find(fill), &dtypes[DT_F32], (struct case_dims){rows, cols}, 1));
    CHECK_OK(twin_check(&judgement, &compared, &result, lk, twin, &c));
    kernel_unload(lk);
    kernel_unload(twin);
    case_clear(&c);
    return judgement.verdict;
}

static void equal_bits_pass(void **state) {
    (void)state;
    const struct fake fake = fake_kernel("softmax", "softmax", fake_softmax);
    for (const struct fill *f = fills; f->name; f++) {
        assert_int_equal(check(&fake, &fake, f->name, 5, 129), VERDICT_PASS);
        assert_int_equal(compared, 5 * 129);
    }
    const struct fake sum = fake_kernel("sum", "sum", fake_sum);
    assert_int_equal(check(&sum, &sum, "normal", 7, 3), VERDICT_PASS);
    assert_int_equal(compared, 7);
}

/* One bit of element [2][31] changed: in value, in the sign of a zero, in the payload of a NaN. */
static uint32_t flipped;

static void flip(float *y, const float *x, struct case_dims d, uint64_t seed, struct dev_run *run) {
    uint32_t bits;
    fake_softmax(y, x, d, seed, run);
    memcpy(&bits, &y[2 * d.cols + 31], sizeof bits);
    bits ^= flipped;
    memcpy(&y[2 * d.cols + 31], &bits, sizeof bits);
}

static void one_bit_fails(void **state) {
    (void)state;
    static const char *const names[] = {"normal", "all_ninf", "one_nan", "plus_inf"};
    static const uint32_t masks[] = {1, 0x80000000u, 0x00400000u};
    const struct fake honest = fake_kernel("softmax", "softmax", fake_softmax);
    const struct fake other = fake_kernel("softmax", "softmax", flip);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 3; k++) {
            flipped = masks[k];
            assert_int_equal(check(&honest, &other, names[i], 5, 32), VERDICT_FAIL);
            assert_int_equal(judgement.worst.row, 2);
            assert_int_equal(judgement.worst.col, 31);
            assert_true(isinf(judgement.max_rho));
            CHECK_CONTAINS(judgement.reason, "twin: 1 of 160 outputs differ; first element [2][31]");
        }
}

static void trapping(float *y, const float *x, struct case_dims d, uint64_t seed,
                     struct dev_run *run) {
    (void)y, (void)x, (void)d, (void)seed;
    run->completed = false;
    run->fault_count = run->fault_total = 1;
    run->faults[0].kind = FAULT_TRAP;
    snprintf(run->faults[0].text, sizeof run->faults[0].text, "trapped");
}

static void faults_fail(void **state) {
    (void)state;
    const struct fake honest = fake_kernel("sum", "sum", fake_sum);
    const struct fake broken = fake_kernel("sum", "sum", trapping);
    assert_int_equal(check(&honest, &broken, "normal", 2, 9), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "on the twin device: trapped");
    assert_int_equal(check(&broken, &honest, "normal", 2, 9), VERDICT_FAIL);
    CHECK_CONTAINS(judgement.reason, "on the first device: trapped");
    assert_int_equal(compared, 0);
}

static void no_promise_is_skipped(void **state) {
    (void)state;
    struct fake loose = fake_kernel("softmax", "softmax", flip);
    loose.kernel.deterministic = false;
    assert_int_equal(check(&loose, &loose, "normal", 3, 40), VERDICT_SKIP);
    assert_int_equal(compared, 0);
    struct fake narrow = fake_kernel("sum", "sum", fake_sum);
    narrow.max_cols = 8;
    assert_int_equal(check(&narrow, &narrow, "normal", 3, 40), VERDICT_SKIP);
}

/* A rerun line names the device, the twin and the manifest where they are not the usual ones. */
static void rerun_lines(void **state) {
    (void)state;
    struct fake fake = fake_kernel("k", "sum", fake_sum);
    struct kernel_report r;
    char text[RERUN_SIZE];
    kernel_report_init(&r, &fake.kernel);
    text_of_rerun(text, sizeof text, &r, "--fill huge --shape 1x2 --seed 3");
    assert_string_equal(text, "assay check k --fill huge --shape 1x2 --seed 3");
    r.device = "cpu";
    text_of_rerun(text, sizeof text, &r, "--order --fill huge --shape 1x2 --seed 3");
    assert_string_equal(text, "assay check k --order --fill huge --shape 1x2 --seed 3");
    r.device = "cuda:0";
    r.twin = "cpu:sm_80";
    fake.kernel.builtin = false;
    fake.kernel.manifest = "my/m.yaml";
    text_of_rerun(text, sizeof text, &r, "--twin -i x=a.npy");
    assert_string_equal(text, "assay check k --twin=cpu:sm_80 -i x=a.npy -d cuda:0 --manifest my/m.yaml");
    text_of_rerun(text, sizeof text, &r, "-i x=a.npy");
    assert_string_equal(text, "assay check k -i x=a.npy -d cuda:0 --manifest my/m.yaml");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bits_pass),
        cmocka_unit_test(one_bit_fails),
        cmocka_unit_test(faults_fail),
        cmocka_unit_test(no_promise_is_skipped),
        cmocka_unit_test(rerun_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
