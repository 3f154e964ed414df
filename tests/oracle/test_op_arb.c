/*
 * tests/oracle/test_op_arb.c - the ops against Arb's ball arithmetic, a second library that shares
 * no code with MPFR.  Longer rows and wider ranges than the rational test can afford.
 *
 * Arb's balls are hundreds of bits tight, so they must lie between the ends of each enclosure (or
 * overlap them), and the enclosure must be no wider than two steps of double where nothing cancels.
 */
#include "oracle_test.h"

#include <math.h>

#include "ball.h"
#include "oracle/oracle.h"
#include "rows.h"

#define PREC 400

static void enclose(struct enclosure *out, const char *name, const double *x, size_t cols) {
    struct oracle_row row = {.x = x, .cols = cols, .empty_row = EMPTY_NAN};
    assert_int_equal(op_find(name)->enclose(out, &row), OK);
}

static void check(const char *op, enum row_kind kind, size_t cols, size_t j, struct enclosure got,
                  const arb_t want) {
    if (!meets(got, want)) {
        arb_printn(want, 30, 0);
        CHECK(false, " is the truth of %s[%zu], %s row of %zu: got [%a, %a]", op, j,
              row_kind_name(kind), cols, got.lo, got.hi);
    }
    /* lse may cancel, and then gives what the contract asks for */
    bool tight = nextafter(nextafter(got.lo, INFINITY), INFINITY) >= got.hi;
    if (kind == ROW_LSE_ZERO)
        tight = tight || got.hi - got.lo <= 0x1p-40 * fabs(got.lo);
    CHECK(tight, "%s[%zu], %s row of %zu: [%a, %a] is wide", op, j, row_kind_name(kind), cols,
          got.lo, got.hi);
}

struct truth {
    arb_ptr term;              /* e^(x_i - max) */
    arb_t sum, log_sum, total; /* total: the plain sum, of finite entries */
    double max;
};

static void truth_init(struct truth *t, const double *x, size_t cols) {
    t->term = _arb_vec_init((slong)cols);
    arb_init(t->sum);
    arb_init(t->log_sum);
    arb_init(t->total);
    t->max = -INFINITY;
    for (size_t i = 0; i < cols; i++)
        t->max = fmax(t->max, x[i]);
    arb_t max;
    arb_init(max);
    arb_set_d(max, t->max);
    for (size_t i = 0; i < cols; i++) {
        if (isinf(x[i]))
            continue;
        arb_ptr term = t->term + i;
        arb_set_d(term, x[i]);
        arb_add(t->total, t->total, term, 2 * PREC);
        arb_sub(term, term, max, 2 * PREC);
        arb_exp(term, term, PREC);
        arb_add(t->sum, t->sum, term, PREC);
    }
    arb_log(t->log_sum, t->sum, PREC);
    arb_clear(max);
}

static void truth_clear(struct truth *t, size_t cols) {
    _arb_vec_clear(t->term, (slong)cols);
    arb_clear(t->sum);
    arb_clear(t->log_sum);
    arb_clear(t->total);
}

static void check_row(const double *x, size_t cols, enum row_kind kind) {
    struct enclosure *got = malloc(cols * sizeof *got);
    assert_non_null(got);
    struct truth truth;
    truth_init(&truth, x, cols);
    arb_t want, at;
    arb_init(want);
    arb_init(at);

    enclose(got, "softmax", x, cols);
    for (size_t j = 0; j < cols; j++) {
        arb_div(want, truth.term + j, truth.sum, PREC);
        check("softmax", kind, cols, j, got[j], want);
    }
    enclose(got, "log_softmax", x, cols);
    for (size_t j = 0; j < cols; j++) {
        if (isinf(x[j])) {
            assert_true(got[j].lo == -INFINITY && got[j].hi == -INFINITY);
            continue;
        }
        arb_set_d(want, x[j]);
        arb_set_d(at, truth.max);
        arb_sub(want, want, at, 2 * PREC);
        arb_sub(want, want, truth.log_sum, PREC);
        check("log_softmax", kind, cols, j, got[j], want);
    }
    enclose(got, "lse", x, cols);
    arb_set_d(at, truth.max);
    arb_add(want, at, truth.log_sum, PREC);
    check("lse", kind, cols, 0, got[0], want);
    if (kind != ROW_MASKED) {
        enclose(got, "sum", x, cols);
        check("sum", kind, cols, 0, got[0], truth.total);
    }

    arb_clear(at);
    arb_clear(want);
    truth_clear(&truth, cols);
    free(got);
}

static void test_families(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(7);
    double x[700];
    for (enum row_kind kind = 0; kind < ROW_KINDS; kind++) {
        for (size_t i = 0; i < times(20); i++) {
            size_t cols = 1 + (size_t)rng_below(&rng, i % 4 == 0 ? 700 : 50);
            row_make(x, cols, kind, &rng);
            check_row(x, cols, kind);
        }
    }
}

static void test_long_row(void **state) {
    (void)state;
    enum { COLS = 8192 };
    struct rng rng = rng_from_seed(8);
    double *x = malloc(COLS * sizeof *x);
    assert_non_null(x);
    row_make(x, COLS, ROW_NORMAL, &rng);
    check_row(x, COLS, ROW_NORMAL);
    free(x);
}

/* Entries that no f32 holds: the oracle takes any double. */
static void test_doubles(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(9);
    double x[60];
    for (size_t i = 0; i < times(40); i++) {
        size_t cols = 1 + (size_t)rng_below(&rng, 60);
        for (size_t j = 0; j < cols; j++)
            x[j] = scaled_unit(&rng, -0.5, -30, 40);
        check_row(x, cols, ROW_BITS);
    }
    /* lse cancels to 2^-50 and below: log(1/2) rounded, twice */
    x[0] = x[1] = -0x1.62e42fefa39efp-1;
    check_row(x, 2, ROW_LSE_ZERO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_long_row),
        cmocka_unit_test(test_doubles),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    flint_cleanup();
    oracle_thread_done();
    return failed;
}
