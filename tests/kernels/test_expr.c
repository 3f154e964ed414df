/* Expressions and ranges. */
#include "tests/check.h"

#include <pthread.h>
#include <string.h>

#include "kernels/expr.h"
#include "kernels/range.h"

static const struct case_dims dims = {7, 1000};
static const struct expr_scope scope = {.dims = {DIM_ROWS, DIM_COLS}};

static void evaluates(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"rows", 7},
        {"cols", 1000},
        {"64", 64},
        {"1e3", 1000},
        {"ceil(cols/256)", 4},
        {"floor(cols/256)", 3},
        {"ceil(log2(cols))", 10},
        {"log2(8)", 3},
        {"min(3, cols, rows)", 3},
        {"max(rows, 12)", 12},
        {"rows*cols*4", 28000},
        {"2^10", 1024},
        {"-2^2", -4},
        {"rows > 8 ? 1 : 2", 2},
        {"(cols == 1000) && (rows != 3)", 1},
        {"cols >= 1000", 1},
        {"0.5", 0.5},
        {"1/sqrt(64)", 0.125},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct expr *e;
        double value;
        CHECK(expr_new(&e, cases[i].text, &scope) == OK, "%s: %s", cases[i].text, status_message());
        CHECK(expr_real(&value, e, dims) == OK, "%s: %s", cases[i].text, status_message());
        CHECK(value == cases[i].value, "%s: %.17g", cases[i].text, value);
        expr_free(e);
    }
}

static void refuses(void **state) {
    (void)state;
    static const char *const cases[] = {
        "",       " ",        "cols cols", "n",        "ceil(",     "ceil()", "ceil(1,2)",
        "1,2",    "cols = 3", "rows=cols", "\"rows\"", "rows.cols", "0x10",   "@",
        "cols +", ")",        "x",         "f32:1",    "\xc3\xa9",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct expr *e;
        CHECK(expr_new(&e, cases[i], &scope) == ERR_SYNTAX, "`%s` was taken", cases[i]);
        CHECK(strncmp(status_message(), "bad expression", 14) == 0, "%s", status_message());
        assert_null(e);
    }
}

static void checks_kinds(void **state) {
    (void)state;
    struct expr *e;
    double number;
    int64_t whole;
    size_t size;

    assert_int_equal(expr_new(&e, "rows - cols", &scope), OK);
    assert_int_equal(expr_real(&number, e, dims), OK);
    assert_int_equal(expr_number(&number, e, dims), ERR_SYNTAX);
    assert_int_equal(expr_integer(&whole, e, dims), OK);
    assert_int_equal(whole, -993);
    assert_int_equal(expr_size(&size, e, dims), ERR_SYNTAX);
    assert_string_equal(status_message(), "`rows - cols` = -993 at rows = 7, cols = 1000: "
                                          "expected a whole number >= 0");
    expr_free(e);

    assert_int_equal(expr_new(&e, "cols/16", &scope), OK);
    assert_int_equal(expr_number(&number, e, dims), OK);
    assert_int_equal(expr_integer(&whole, e, dims), ERR_SYNTAX);
    expr_free(e);

    static const char *const undefined[] = {"1/(rows - 7)", "-1/(rows - 7)", "0/(rows - 7)",
                                            "10^400"};
    for (size_t i = 0; i < sizeof undefined / sizeof undefined[0]; i++) {
        assert_int_equal(expr_new(&e, undefined[i], &scope), OK);
        CHECK(expr_real(&number, e, dims) == ERR_SYNTAX, "%s", undefined[i]);
        CHECK(expr_integer(&whole, e, dims) == ERR_SYNTAX, "%s", undefined[i]);
        expr_free(e);
    }
    assert_int_equal(expr_new(&e, "2^53 + 2", &scope),
                     OK); /* beyond it, doubles skip whole numbers */
    assert_int_equal(expr_size(&size, e, dims), ERR_SYNTAX);
    expr_free(e);
}

/* Threads that share one expression each see their own dimensions. */
static void *evaluate_many(void *arg) {
    struct expr *shared = arg;
    for (size_t i = 1; i <= 2000; i++) {
        struct expr *own;
        size_t a = 0, b = 0;
        struct case_dims mine = {i, (size_t)(uintptr_t)&own % 1000 + i}; /* differs by thread */
        if (expr_size(&a, shared, mine) != OK || a != mine.rows * mine.cols)
            return arg;
        if (i % 50 != 0)
            continue;
        if (expr_new(&own, "rows + cols", &scope) != OK || expr_size(&b, own, mine) != OK ||
            b != mine.rows + mine.cols)
            return arg;
        expr_free(own);
    }
    return NULL;
}

static void shares_among_threads(void **state) {
    (void)state;
    pthread_t threads[4];
    struct expr *shared;
    void *failed;
    assert_int_equal(expr_new(&shared, "rows*cols", &scope), OK);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, evaluate_many, shared), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    expr_free(shared);
}

static void reads_ranges(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t in[3], out[3];
        size_t near_100; /* the accepted value nearest above 100, or the largest */
    } cases[] = {
        {"1..", {1, 100, SIZE_MAX}, {0, 0, 0}, 100},
        {"1..64", {1, 63, 64}, {0, 65, SIZE_MAX}, 64},
        {"128", {128, 128, 128}, {127, 129, 0}, 128},
        {"8..4096 multiple of 8", {8, 104, 4096}, {0, 100, 4104}, 104},
        {"1.. multiple of 32", {32, 128, 320}, {0, 1, 100}, 128},
        {"1..101 multiple of 32", {32, 64, 96}, {128, 100, 1}, 96},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct range range;
        CHECK(range_parse(&range, cases[i].text) == OK, "%s", status_message());
        for (size_t k = 0; k < 3; k++) {
            CHECK(range_contains(&range, cases[i].in[k]), "%s: %zu", cases[i].text, cases[i].in[k]);
            CHECK(!range_contains(&range, cases[i].out[k]), "%s: %zu", cases[i].text,
                  cases[i].out[k]);
        }
        assert_int_equal(range_near(&range, 100), cases[i].near_100);
        assert_true(range_contains(&range, range_near(&range, range.lo)));
    }
    static const char *const bad[] = {"",
                                      "..",
                                      "..4",
                                      "a",
                                      "1-4",
                                      "1...4",
                                      "4..1",
                                      " 1..",
                                      "1.. ",
                                      "-1..",
                                      "1..4x",
                                      "1..4 multiple",
                                      "1..4 multiple of 0",
                                      "1..4 multiple of 5",
                                      "99999999999999999999.."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct range range;
        CHECK(range_parse(&range, bad[i]) == ERR_SYNTAX, "`%s` was taken", bad[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluates),    cmocka_unit_test(refuses),
        cmocka_unit_test(checks_kinds), cmocka_unit_test(shares_among_threads),
        cmocka_unit_test(reads_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
