/*
 * tests/oracle/test_op_property.c - what must hold between enclosures, whatever the numbers are.
 */
#include "oracle_test.h"

#include <math.h>
#include <string.h>

#include "oracle/oracle_impl.h"
#include "oracle/outward.h"
#include "rows.h"

enum { MAX_COLS = 200 };

static void enclose(struct enclosure *out, const char *name, const double *x, size_t cols) {
    struct oracle_row row = {.x = x, .cols = cols, .empty_row = EMPTY_NAN};
    assert_int_equal(op_find(name)->enclose(out, &row), OK);
}

static bool identical(struct enclosure a, struct enclosure b) {
    return a.lo == b.lo && a.hi == b.hi;
}

static bool overlap(struct enclosure a, struct enclosure b) {
    return a.lo <= b.hi && b.lo <= a.hi;
}

static bool within(struct enclosure inner, struct enclosure outer) {
    return outer.lo <= inner.lo && inner.hi <= outer.hi;
}

/* A row of each family in turn. */
static size_t make(double *x, size_t i, struct rng *rng, enum row_kind *kind) {
    *kind = (enum row_kind)(i % ROW_KINDS);
    size_t cols = 1 + (size_t)rng_below(rng, MAX_COLS);
    row_make(x, cols, *kind, rng);
    return cols;
}

static void test_permutation(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(10);
    double x[MAX_COLS], y[MAX_COLS];
    size_t place[MAX_COLS];
    struct enclosure of_x[MAX_COLS], of_y[MAX_COLS];
    for (size_t i = 0; i < times(120); i++) {
        enum row_kind kind;
        size_t cols = make(x, i, &rng, &kind);
        for (size_t j = 0; j < cols; j++)
            place[j] = j;
        for (size_t j = cols; j > 1; j--) {
            size_t k = (size_t)rng_below(&rng, j), swap = place[j - 1];
            place[j - 1] = place[k];
            place[k] = swap;
        }
        for (size_t j = 0; j < cols; j++)
            y[place[j]] = x[j];
        for (const struct op *op = ops; op->name != NULL; op++) {
            if (!op_is_matrix(op))
                continue;
            enclose(of_x, op->name, x, cols);
            enclose(of_y, op->name, y, cols);
            size_t results = op->result == OP_PER_ELEMENT ? cols : 1;
            for (size_t j = 0; j < results; j++)
                CHECK(identical(of_x[j], of_y[results > 1 ? place[j] : j]), "%s, %s row", op->name,
                      row_kind_name(kind));
        }
    }
}

static void test_softmax_sums_to_one(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(11);
    double x[MAX_COLS];
    struct enclosure got[MAX_COLS];
    for (size_t i = 0; i < times(120); i++) {
        enum row_kind kind;
        size_t cols = make(x, i, &rng, &kind);
        enclose(got, "softmax", x, cols);
        double lo = 0, hi = 0;
        for (size_t j = 0; j < cols; j++) {
            lo = add_down(lo, got[j].lo);
            hi = add_up(hi, got[j].hi);
            assert_true(got[j].lo >= 0 && got[j].hi <= 1);
        }
        CHECK(lo <= 1 && hi >= 1 && hi - lo <= 0x1p-40, "%s row of %zu: [%a, %a]",
              row_kind_name(kind), cols, lo, hi);
    }
}

/* Adding c to every entry, where that is exact, changes neither softmax nor log_softmax. */
static void test_shift(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(12);
    double x[MAX_COLS], y[MAX_COLS];
    struct enclosure of_x[MAX_COLS], of_y[MAX_COLS];
    for (size_t i = 0; i < times(60); i++) {
        size_t cols = 1 + (size_t)rng_below(&rng, MAX_COLS);
        row_make(x, cols, i % 2 ? ROW_NORMAL : ROW_MASKED, &rng);
        double c = ldexp(1, (int)rng_below(&rng, 12)) * (i % 3 ? 1 : -1);
        for (size_t j = 0; j < cols; j++)
            y[j] = x[j] + c; /* f32 plus a power of two: exact in double */
        for (int log = 0; log < 2; log++) {
            enclose(of_x, log ? "log_softmax" : "softmax", x, cols);
            enclose(of_y, log ? "log_softmax" : "softmax", y, cols);
            for (size_t j = 0; j < cols; j++)
                CHECK(identical(of_x[j], of_y[j]), "%s shifted by %a", log ? "log" : "", c);
        }
        enclose(of_x, "lse", x, cols);
        enclose(of_y, "lse", y, cols);
        struct enclosure moved = {add_down(of_x->lo, c), add_up(of_x->hi, c)};
        CHECK(overlap(moved, *of_y), "lse shifted by %a", c);
    }
}

/* sum and max scale with powers of two and change sign with the row, bit for bit. */
static void test_scale(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(13);
    double x[MAX_COLS], y[MAX_COLS];
    struct enclosure of_x, of_y;
    for (size_t i = 0; i < times(240); i++) {
        enum row_kind kind;
        size_t cols = make(x, i, &rng, &kind);
        double factor = ldexp(1, (int)rng_below(&rng, 100) - 50);
        for (size_t j = 0; j < cols; j++)
            y[j] = x[j] * factor;
        enclose(&of_x, "sum", x, cols);
        enclose(&of_y, "sum", y, cols);
        CHECK(of_y.lo == of_x.lo * factor && of_y.hi == of_x.hi * factor, "%s row",
              row_kind_name(kind));
        enclose(&of_x, "max", x, cols);
        enclose(&of_y, "max", y, cols);
        assert_true(of_y.lo == of_x.lo * factor);
        for (size_t j = 0; j < cols; j++)
            y[j] = -x[j];
        enclose(&of_x, "sum", x, cols);
        enclose(&of_y, "sum", y, cols);
        assert_true(of_y.lo == -of_x.hi && of_y.hi == -of_x.lo);
    }
}

/* A row twice over: softmax halves exactly, lse grows by log 2. */
static void test_twice(void **state) {
    (void)state;
    const struct enclosure log2 = {0x1.62e42fefa39efp-1, 0x1.62e42fefa39f0p-1};
    struct rng rng = rng_from_seed(14);
    double x[2 * MAX_COLS];
    struct enclosure once[MAX_COLS], twice[2 * MAX_COLS];
    for (size_t i = 0; i < times(120); i++) {
        enum row_kind kind;
        size_t cols = make(x, i, &rng, &kind);
        memcpy(x + cols, x, cols * sizeof *x);
        enclose(once, "softmax", x, cols);
        enclose(twice, "softmax", x, 2 * cols);
        for (size_t j = 0; j < cols; j++) {
            struct enclosure half = {once[j].lo / 2, once[j].hi / 2};
            CHECK(half.lo < 0x1p-1022 ? overlap(half, twice[j]) : identical(half, twice[j]),
                  "%s row: [%a, %a] and [%a, %a]", row_kind_name(kind), half.lo, half.hi,
                  twice[j].lo, twice[j].hi);
            assert_true(identical(twice[j], twice[cols + j]));
        }
        enclose(once, "lse", x, cols);
        enclose(twice, "lse", x, 2 * cols);
        struct enclosure moved = {add_down(once->lo, log2.lo), add_up(once->hi, log2.hi)};
        CHECK(overlap(moved, *twice), "lse, %s row", row_kind_name(kind));
    }
}

/* log_softmax is the log of softmax, and x - lse; max <= lse <= max + log(cols). */
static void test_ops_agree(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(15);
    double x[MAX_COLS];
    struct enclosure soft[MAX_COLS], log_soft[MAX_COLS], lse, max;
    for (size_t i = 0; i < times(120); i++) {
        enum row_kind kind;
        size_t cols = make(x, i, &rng, &kind);
        enclose(soft, "softmax", x, cols);
        enclose(log_soft, "log_softmax", x, cols);
        enclose(&lse, "lse", x, cols);
        enclose(&max, "max", x, cols);
        for (size_t j = 0; j < cols; j++) {
            if (isinf(x[j]))
                continue;
            /* libm's log errs below an ulp; a value near 0 keeps its absolute error */
            if (soft[j].lo > 0x1p-1000)
                CHECK(log(soft[j].lo) <= log_soft[j].hi + 1e-13 + 1e-15 * fabs(log_soft[j].hi) &&
                          log(soft[j].hi) >= log_soft[j].lo - 1e-13 - 1e-15 * fabs(log_soft[j].lo),
                      "%s row: log %a is not %a", row_kind_name(kind), soft[j].lo, log_soft[j].lo);
            struct enclosure direct = {add_down(x[j], -lse.hi), add_up(x[j], -lse.lo)};
            CHECK(overlap(direct, log_soft[j]), "%s row", row_kind_name(kind));
        }
        assert_true(max.lo <= lse.hi);
        assert_true(lse.lo <= max.hi + log((double)cols) * (1 + 0x1p-50) + fabs(max.hi) * 0x1p-50);
    }
}

/* ---- precision ------------------------------------------------------------------------------- */

/* The directed roundings: at 20 bits the enclosures are wide and must hold those at 300 bits. */
static void test_low_precision_contains_high(void **state) {
    (void)state;
    static const struct {
        const char *name;
        attempt_fn *attempt;
    } attempts[] = {
        {"softmax", softmax_attempt}, {"log_softmax", log_softmax_attempt}, {"lse", lse_attempt}};
    struct rng rng = rng_from_seed(16);
    double x[MAX_COLS];
    struct enclosure coarse[MAX_COLS], fine[MAX_COLS];
    size_t wide = 0, all = 0;
    for (size_t i = 0; i < times(240); i++) {
        enum row_kind kind;
        size_t cols = make(x, i, &rng, &kind);
        struct oracle_row row = {.x = x, .cols = cols, .empty_row = EMPTY_NAN};
        struct row_facts facts = row_examine(&row);
        mpfr_prec_t prec = 2 + (mpfr_prec_t)rng_below(&rng, 30);
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(attempts[k].attempt(coarse, &row, &facts, prec), OK);
            assert_int_equal(attempts[k].attempt(fine, &row, &facts, 300), OK);
            for (size_t j = 0; j < (k == 2 ? 1 : cols); j++) {
                CHECK(within(fine[j], coarse[j]), "%s, %s row, %ld bits: [%a, %a] not in [%a, %a]",
                      attempts[k].name, row_kind_name(kind), (long)prec, fine[j].lo, fine[j].hi,
                      coarse[j].lo, coarse[j].hi);
                wide += coarse[j].lo < fine[j].lo || coarse[j].hi > fine[j].hi;
                all++;
            }
        }
    }
    assert_true(wide > all / 2); /* otherwise this test says nothing */
}

static status_t never_tight(struct enclosure *out, const struct oracle_row *row,
                            const struct row_facts *facts, mpfr_prec_t prec) {
    (void)row, (void)facts;
    *out = (struct enclosure){1, prec > 100 ? 1.5 : 2};
    return OK;
}

static status_t tight_at_384(struct enclosure *out, const struct oracle_row *row,
                             const struct row_facts *facts, mpfr_prec_t prec) {
    (void)row, (void)facts;
    *out = (struct enclosure){1, 1 + (prec < 384 ? 0x1p-39 : 0x1p-40)};
    return OK;
}

static void test_undecided(void **state) {
    (void)state;
    double x = 0;
    struct oracle_row row = {.x = &x, .cols = 1, .empty_row = EMPTY_NAN};
    struct row_facts facts = row_examine(&row);
    struct enclosure out;
    assert_int_equal(row_refine(&out, 1, &row, &facts, never_tight), ERR_UNDECIDED);
    assert_non_null(strstr(status_message(), "undecided"));
    assert_int_equal(row_refine(&out, 1, &row, &facts, tight_at_384), OK);
    assert_true(out.hi == 1 + 0x1p-40);
}

/* A row that no memory can hold is an error, not a crash. */
static void test_no_memory(void **state) {
    (void)state;
    double x = 0;
    struct oracle_row row = {.x = &x, .cols = SIZE_MAX / 64, .empty_row = EMPTY_NAN};
    struct row_facts facts = {.finite = 1};
    struct exp_row e;
    assert_int_equal(exp_row_init(&e, &row, &facts, 96), ERR_NOMEM);
    exp_row_clear(&e);
    exp_row_clear(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_softmax_sums_to_one),
        cmocka_unit_test(test_shift),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_ops_agree),
        cmocka_unit_test(test_low_precision_contains_high),
        cmocka_unit_test(test_undecided),
        cmocka_unit_test(test_no_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
