/* tests/oracle/test_op_special.c - docs/numerics.md's table of special rows, op by op. */
#include "oracle_test.h"

#include <math.h>
#include <string.h>

#include "oracle/oracle.h"

#define NI (-INFINITY)
#define PI INFINITY
#define MAX_COLS 4

/* A row, and what each op gives for it; softmax and log_softmax have one result per entry. */
static const struct {
    const char *what;
    size_t cols;
    double x[MAX_COLS];
    double sum, max, lse;
    double softmax[MAX_COLS], log_softmax[MAX_COLS];
} cases[] = {
    {"NaN among numbers", 3, {1, NAN, 2}, NAN, NAN, NAN, {NAN, NAN, NAN}, {NAN, NAN, NAN}},
    {"NaN with +Inf", 2, {NAN, PI}, NAN, NAN, NAN, {NAN, NAN}, {NAN, NAN}},
    {"NaN with -Inf", 2, {NI, NAN}, NAN, NAN, NAN, {NAN, NAN}, {NAN, NAN}},
    {"one +Inf", 3, {1, PI, 2}, PI, PI, PI, {NAN, NAN, NAN}, {NAN, NAN, NAN}},
    {"two +Inf", 2, {PI, PI}, PI, PI, PI, {NAN, NAN}, {NAN, NAN}},
    {"both infinities", 3, {PI, NI, 0}, NAN, PI, PI, {NAN, NAN, NAN}, {NAN, NAN, NAN}},
    {"-Inf beside one number", 3, {NI, 5, NI}, NI, 5, 5, {0, 1, 0}, {NI, 0, NI}},
    {"-Inf beside two equals", 3, {3, NI, 3}, NI, 3, 0 /* below */, {0.5, 0, 0.5}, {0, NI, 0}},
    {"all -Inf", 2, {NI, NI}, NI, NI, NI, {NAN, NAN}, {NAN, NAN}},
    {"nothing", 0, {0}, 0, NI, NI, {0}, {0}},
    {"one number", 1, {-7.25}, -7.25, -7.25, -7.25, {1}, {0}},
    {"negative zeros", 2, {-0.0, -0.0}, 0, 0, 0 /* below */, {0.5, 0.5}, {0, 0}},
    {"an exact sum that cancels",
     4,
     {0x1p100, 0x1p-100, -0x1p100, 3},
     0x1.8p1 + 0x1p-100,
     0x1p100,
     0x1p100,
     {1, 0, 0, 0},
     {0, 0, 0, 0}},
};

static void check_exact(const char *what, const char *op, size_t j, struct enclosure got,
                        double want) {
    bool ok = isnan(want) ? isnan(got.lo) && isnan(got.hi) : got.lo == want && got.hi == want;
    CHECK(ok, "%s: %s[%zu] is [%a, %a], want %a", what, op, j, got.lo, got.hi, want);
}

static void enclose(struct enclosure *out, const char *name, const double *x, size_t cols,
                    enum empty_row empty_row) {
    struct oracle_row row = {.x = x, .cols = cols, .empty_row = empty_row};
    const struct op *op = op_find(name);
    assert_non_null(op);
    assert_int_equal(op->enclose(out, &row), OK);
}

static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct enclosure got[MAX_COLS];
        const double *x = cases[i].x;
        size_t cols = cases[i].cols;
        bool inexact_lse = cols >= 2 && x[0] == x[cols - 1] && isfinite(x[0]);
        bool rounded = cols == 4; /* only its sum and max are exact */

        enclose(got, "max", x, cols, EMPTY_NAN);
        check_exact(cases[i].what, "max", 0, got[0], cases[i].max);
        enclose(got, "sum", x, cols, EMPTY_NAN);
        if (rounded) {
            assert_true(got[0].lo == 3 && got[0].hi == nextafter(3, 4));
        } else {
            check_exact(cases[i].what, "sum", 0, got[0], cases[i].sum);
        }
        if (rounded)
            continue;
        enclose(got, "lse", x, cols, EMPTY_NAN);
        if (inexact_lse) { /* x + log 2 */
            double want = x[0] + 0x1.62e42fefa39efp-1;
            assert_true(got[0].lo < got[0].hi && fabs(got[0].lo - want) < 1e-15);
        } else {
            check_exact(cases[i].what, "lse", 0, got[0], cases[i].lse);
        }
        enclose(got, "softmax", x, cols, EMPTY_NAN);
        for (size_t j = 0; j < cols; j++)
            check_exact(cases[i].what, "softmax", j, got[j], cases[i].softmax[j]);
        enclose(got, "log_softmax", x, cols, EMPTY_NAN);
        for (size_t j = 0; j < cols; j++) {
            if (inexact_lse && isfinite(x[j]))
                assert_true(got[j].lo < got[j].hi &&
                            fabs(got[j].lo + 0x1.62e42fefa39efp-1) < 1e-15);
            else
                check_exact(cases[i].what, "log_softmax", j, got[j], cases[i].log_softmax[j]);
        }
    }
}

static void test_empty_rows(void **state) {
    (void)state;
    static const double x[] = {NI, NI, NI, NI};
    struct enclosure got[MAX_COLS];
    for (size_t cols = 1; cols <= MAX_COLS; cols++) {
        enclose(got, "softmax", x, cols, EMPTY_ZERO);
        for (size_t j = 0; j < cols; j++)
            check_exact("empty", "softmax zero", j, got[j], 0);
        enclose(got, "softmax", x, cols, EMPTY_NAN);
        for (size_t j = 0; j < cols; j++)
            check_exact("empty", "softmax nan", j, got[j], NAN);
        enclose(got, "softmax", x, cols, EMPTY_UNIFORM);
        for (size_t j = 0; j < cols; j++) {
            /* lo cols <= 1 <= hi cols, exactly: fma's sign is that of the exact value */
            CHECK(fma(got[j].lo, (double)cols, -1) <= 0 && fma(got[j].hi, (double)cols, -1) >= 0,
                  "1/%zu in [%a, %a]", cols, got[j].lo, got[j].hi);
            CHECK(got[j].hi <= nextafter(got[j].lo, 1), "1/%zu", cols);
        }
    }
    /* empty_row is for empty rows only */
    static const double not_empty[] = {NI, 0};
    enclose(got, "softmax", not_empty, 2, EMPTY_UNIFORM);
    check_exact("not empty", "softmax", 0, got[0], 0);
    check_exact("not empty", "softmax", 1, got[1], 1);
}

static void test_table_of_ops(void **state) {
    (void)state;
    static const char *const names[] = {"sum", "max", "softmax", "log_softmax", "lse"};
    size_t count = 0;
    for (const struct op *op = ops; op->name != NULL; op++) {
        assert_ptr_equal(op_find(op->name), op);
        assert_true(op->formula[0] != '\0');
        count += op_is_matrix(op);
    }
    assert_int_equal(count, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < count; i++) {
        const struct op *op = op_find(names[i]);
        assert_non_null(op);
        assert_true(op_is_matrix(op));
        assert_int_equal(op->result, strstr(names[i], "softmax") ? OP_PER_ELEMENT : OP_PER_ROW);
    }
    assert_null(op_find("median"));
    assert_null(op_find(""));
}

/* Results that a double cannot hold well: the ends of its range. */
static void test_extremes(void **state) {
    (void)state;
    struct enclosure got[2];
    static const double far[] = {0, -800};
    enclose(got, "softmax", far, 2, EMPTY_NAN); /* e^-800 < 2^-1074 */
    assert_true(got[1].lo == 0 && got[1].hi == 0x1p-1074);
    assert_true(got[0].lo == nextafter(1, 0) && got[0].hi == 1);
    enclose(got, "lse", far, 2, EMPTY_NAN);
    assert_true(got[0].lo == 0 && got[0].hi == 0x1p-1074);

    static const double small[] = {0, -700};
    enclose(got, "lse", small, 2, EMPTY_NAN); /* log1p(e^-700), to full relative precision */
    assert_true(got[0].lo > 0.98e-304 && got[0].hi <= nextafter(got[0].lo, 1) &&
                got[0].hi < 0.99e-304);

    static const double huge[] = {0x1.fffffep127, -0x1.fffffep127};
    enclose(got, "softmax", huge, 2, EMPTY_NAN);
    assert_true(got[1].lo == 0 && got[1].hi == 0x1p-1074);
    enclose(got, "log_softmax", huge, 2, EMPTY_NAN);
    assert_true(got[1].lo <= -0x1.fffffep128 && got[1].hi >= -0x1.fffffep128);

    static const double top[] = {0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023};
    enclose(got, "sum", top, 2, EMPTY_NAN); /* a finite real beyond every double */
    assert_true(got[0].lo == 0x1.fffffffffffffp1023 && got[0].hi == PI);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_empty_rows),
        cmocka_unit_test(test_table_of_ops),
        cmocka_unit_test(test_extremes),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
