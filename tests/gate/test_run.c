/* tests/gate/test_run.c - whole runs: the same report from any number of threads, and after a kill. */
#include "tests/check.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/journal.h"
#include "gate/run.h"
#include "tests/gate/fake.h"

/* Wrong in the last column of wider rows. */
static void bad_tail(float *y, const float *x, struct case_dims d, uint64_t seed,
                     struct dev_run *run) {
    fake_softmax(y, x, d, seed, run);
    if (d.cols > 100)
        y[d.rows * d.cols - 1] = 2;
}

static struct fake fakes[4];
static const struct kernel *kernels[4];

static void make_kernels(void) {
    fakes[0] = fake_kernel("sum", "sum", fake_sum);
    fakes[1] = fake_kernel("max", "max", fake_max);
    fakes[2] = fake_kernel("softmax", "softmax", fake_softmax);
    fakes[3] = fake_kernel("bad", "softmax", bad_tail);
    fakes[3].max_cols = 200;
    for (size_t i = 0; i < 4; i++) {
        if (fakes[i].max_cols == 0)
            fakes[i].max_cols = 300; /* what no kernel accepts costs no truth */
        kernels[i] = &fakes[i].kernel;
    }
}

static char *results(const struct gate_report *r) {
    struct gate_report copy = *r;
    copy.seconds = 0; /* the one thing that may differ */
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    CHECK_OK(report_json(file, &copy));
    fclose(file);
    return text;
}

static struct gate_options options(unsigned threads, const char *dir) {
    return (struct gate_options){
        .device = "fake", .suite = SUITE_QUICK, .seed = 1, .threads = threads, .dir = dir};
}

static void plans(void **state) {
    (void)state;
    struct plan quick, full;
    const struct fake fake = fake_kernel("softmax", "softmax", fake_softmax);
    CHECK_OK(plan_init(&quick, &fake.kernel, SUITE_QUICK, 1, NULL));
    CHECK_OK(plan_init(&full, &fake.kernel, SUITE_FULL, 1, NULL));
    assert_true(full.count > 3 * quick.count);
    size_t elements = 0, orders = 0, ensembles = 0;
    for (const struct fill *f = fills; f->name; f++) {
        bool used = false;
        for (size_t i = 0; i < quick.count; i++)
            used |= quick.items[i].fill == f && quick.items[i].check == CHECK_BOUND;
        CHECK(used, "%s is not in the quick suite", f->name);
    }
    for (size_t i = 0; i < quick.count; i++) {
        elements += quick.items[i].dims.rows * quick.items[i].dims.cols;
        orders += quick.items[i].check == CHECK_ORDER;
        ensembles += quick.items[i].check == CHECK_ENSEMBLE;
    }
    assert_true(orders > 0 && ensembles > 0 &&
                elements < 2000000); /* MPFR's time in a quick gate */
    /* every item can be made, and its line names it */
    struct test_case c;
    char line[CASE_LINE_SIZE], wanted[CASE_LINE_SIZE];
    CHECK_OK(plan_case(&c, &quick.items[3], &fake.kernel));
    check_line(line, sizeof line, CHECK_ORDER, &c);
    snprintf(wanted, sizeof wanted, "--order --fill %s --shape %zux%zu --seed %llu", c.fill->name,
             c.dims.rows, c.dims.cols, (unsigned long long)c.seed);
    assert_string_equal(line, wanted);
    case_clear(&c);
    plan_clear(&quick);
    plan_clear(&full);
    plan_clear(&full);
}

static void any_number_of_threads(void **state) {
    (void)state;
    char *first = NULL;
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        struct gate_report r;
        struct gate_options opt = options(threads, NULL);
        CHECK_OK(gate_run(&r, kernels, 4, &opt));
        assert_true(r.complete);
        for (size_t i = 0; i < 3; i++)
            CHECK(r.kernels[i].verdict == VERDICT_PASS, "%s: %s", kernels[i]->name,
                  r.kernels[i].reason);
        assert_int_equal(r.kernels[3].verdict, VERDICT_FAIL);
        assert_int_equal(r.kernels[3].verdicts[VERDICT_SKIP], 0); /* its shapes were found for it */
        assert_true(r.kernels[3].order_cases > 0);
        /* it is wrong beyond 100 columns and accepts up to 200 */
        const char *shape = strstr(r.kernels[3].findings[0].line, "--shape ");
        size_t rows = 0, cols = 0;
        assert_true(shape && sscanf(shape, "--shape %zux%zu", &rows, &cols) == 2);
        CHECK(cols > 100 && cols <= 200, "%s", shape);
        char *text = results(&r);
        if (first)
            assert_string_equal(text, first);
        else
            first = strdup(text);
        free(text);
        gate_report_clear(&r);
    }
    free(first);
}

static size_t last_done, last_total;

static void note(void *context, size_t done, size_t total) {
    (void)context;
    last_done = done;
    last_total = total;
}

/* A run that breaks down keeps what it has, and the next one goes on from there. */
static void breakdown_and_resume(void **state) {
    (void)state;
    char dir[] = "/tmp/assay-run-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    struct gate_report r;
    struct gate_options plain = options(1, NULL), opt = options(1, dir);

    fake_runs = 0;
    CHECK_OK(gate_run(&r, kernels, 4, &plain));
    size_t all_runs = fake_runs;
    char *whole = results(&r);
    gate_report_clear(&r);

    opt.progress = note;
    fake_runs = 0;
    fake_fail_after = all_runs / 2;
    assert_int_equal(gate_run(&r, kernels, 4, &opt), ERR_DEVICE);
    assert_string_equal(status_message(), "the fake device broke down");
    assert_false(r.complete);
    assert_false(gate_report_passed(&r));
    assert_int_equal(r.count, 4);
    assert_int_equal(r.kernels[3].verdict > VERDICT_PASS, 1);
    CHECK_CONTAINS(r.kernels[2].reason, "did not run: the fake device broke down");
    assert_true(r.kernels[0].cases > 1 && last_done < last_total);
    gate_report_clear(&r);

    /* as a kill in the middle of a line leaves it */
    snprintf(path, sizeof path, "%s/journal.jsonl", dir);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 20), 0);

    fake_fail_after = 0;
    fake_runs = 0;
    CHECK_OK(gate_run(&r, kernels, 4, &opt));
    size_t rest = fake_runs;
    assert_true(rest < all_runs * 6 / 10 && rest > all_runs * 4 / 10);
    char *resumed = results(&r);
    assert_string_equal(resumed, whole);
    assert_true(last_done == last_total);
    gate_report_clear(&r);

    fake_runs = 0; /* now all is in the journal, and nothing is written twice */
    assert_int_equal(stat(path, &info), 0);
    off_t size = info.st_size;
    CHECK_OK(gate_run(&r, kernels, 4, &opt));
    assert_int_equal(fake_runs, 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, size);
    gate_report_clear(&r);

    fakes[0].kernel.image =
        "/proc/version"; /* another image: its records are not taken for this one's */
    CHECK_OK(gate_run(&r, kernels, 1, &opt));
    assert_true(fake_runs > 0);
    make_kernels();

    CHECK_OK(report_write(dir, &r));
    gate_report_clear(&r);
    journal_remove(dir);
    assert_int_not_equal(access(path, F_OK), 0);
    static const char *const names[] = {"results.json", "junit.xml", "index.html"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(dir), 0);
    free(whole);
    free(resumed);
}

static status_t undecidable(struct enclosure *out, const struct oracle_row *row) {
    (void)out, (void)row;
    return FAIL(ERR_UNDECIDED, "the oracle gave up at 4096 bits");
}

/* An oracle that cannot decide ends no run, and passes no kernel. */
static void undecided_is_unsure(void **state) {
    (void)state;
    struct op op = *op_find("sum");
    op.enclose = undecidable;
    struct fake fake = fake_kernel("sum", "sum", fake_sum);
    fake.kernel.op = &op;
    const struct kernel *one[] = {&fake.kernel};
    struct gate_report r;
    struct gate_options opt = options(2, NULL);
    CHECK_OK(gate_run(&r, one, 1, &opt));
    assert_int_equal(r.kernels[0].verdict, VERDICT_UNSURE);
    CHECK_CONTAINS(r.kernels[0].reason, "gave up at 4096 bits");
    gate_report_clear(&r);
}

static void bad_folder(void **state) {
    (void)state;
    struct gate_report r;
    struct gate_options opt = options(1, "/proc/self/cmdline/out");
    assert_int_equal(gate_run(&r, kernels, 4, &opt), ERR_IO);
    CHECK_CONTAINS(status_message(), "/proc/self/cmdline");
    gate_report_clear(&r);
}

/* A file's records are those of its data: another file under the same path is another case. */
static void file_cases_by_content(void **state) {
    (void)state;
    float x[6] = {1, 2, 3, 4, 5, 6};
    char a[JOURNAL_NAME_SIZE], b[JOURNAL_NAME_SIZE], path[] = "x.npy";
    struct test_case c = {.dims = {2, 3}, .x = x};
    c.in[0] = (struct tensor){tensor_type_of(&dtypes[DT_F32]), 6, x};
    journal_name(a, &c, "--fill normal --shape 2x3 --seed 1");
    assert_string_equal(a, "--fill normal --shape 2x3 --seed 1");
    c.path = path;
    journal_name(a, &c, "-i x=x.npy");
    CHECK_CONTAINS(a, " -i x=x.npy");
    for (size_t i = 0; i < 6; i++) {
        x[i] = -x[i];
        journal_name(b, &c, "-i x=x.npy");
        assert_string_not_equal(a, b);
        x[i] = -x[i];
    }
    journal_name(b, &c, "-i x=x.npy");
    assert_string_equal(a, b);
}

int main(void) {
    make_kernels();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_cases_by_content),
        cmocka_unit_test(plans),
        cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(breakdown_and_resume),
        cmocka_unit_test(undecided_is_unsure),
        cmocka_unit_test(bad_folder),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return rc;
}
