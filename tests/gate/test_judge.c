/*
 * tests/gate/test_judge.c - the judge cannot be fooled the way other checkers have been.
 *
 * Each test names the fault that it guards against, as seen in a published checker.
 */
#include "tests/check.h"

#include <float.h>
#include <math.h>

#include "base/rng.h"
#include "gate/judge.h"
#include "tests/gate/fake.h"

/*
 * Fault of a published checker                                            Test
 *
 *  1 OpenCL-CTS: the budget grows with each element that was judged       budget_does_not_grow
 *  2 XLA: one part of a result is compared with itself                    every_element_counts
 *  3 LLVM libc: only the first element of each input is tested            every_element_counts
 *  4 SLEEF: one output is read from where another one stands              every_element_counts
 *  5 TransformerEngine: NaN makes |t - r| > atol false                    nan_output_fails
 *  6 BackendBench: the tolerances are not used                            budget_is_used
 *  7 KernelBench: zeros pass softmax                                      constants_fail
 *  8 pygpubench: NaN in the reference is a wildcard                       number_for_nan_fails
 *  9 cubecl: NaN in the reference does not fail a number                  number_for_nan_fails
 * 10 mlir-air: constants and random numbers pass                          constants_fail,
 *                                                                         random_output_fails
 *    CUTLASS: the maximum drops NaN                                       nan_output_fails
 *    CUTLASS: another tolerance than documented                           exact_fill_has_no_tolerance
 *    benchdnn: the reference may be the library itself                    shared_mistake_fails
 *    XLA, TransformerEngine: a pass by any metric is a pass               one_ulp_of_exact_fails,
 *                                                test_plain.c: what_exceeds_fails, reports_fail
 * X1 cubecl #1070: as 9                                                   number_for_nan_fails
 * X2 CUDATutorial #69: the maximum of errors starts at 0 and drops NaN    nan_output_fails
 * X3 Liger #259: NaN, and exactly one mismatch, are a success             nan_output_fails,
 *                                                                         one_mismatch_fails
 * X4 vllm #945: a constant added to a row is an alarm                     row_constant_is_no_alarm
 * X5 no agreed answer on empty rows                                       empty_rows_as_declared
 */

/* A case with its truth, the honest output, and the judgement of some output. */
struct bench {
    struct fake fake;
    struct test_case c;
    struct truth truth;
    float *y;
    struct judgement j;
};

static void begin(struct bench *b, const char *op, fake_fn *honest, const char *fill, size_t rows,
                  size_t cols) {
    *b = (struct bench){.fake = fake_kernel("fake", op, honest)};
    CHECK_OK(
        case_from_fill(&b->c, fill_find(fill), &dtypes[DT_F32], (struct case_dims){rows, cols}, 1));
    CHECK_OK(truth_init(&b->truth, b->fake.kernel.op, &b->c, EMPTY_NAN));
    CHECK_OK(truth_fill(&b->truth));
    b->y = malloc((b->truth.count + 1) * sizeof *b->y);
    struct dev_run run;
    honest(b->y, b->c.x, b->c.dims, 0, &run);
}

/* Like begin, with data of its own: one row. */
static void begin_row(struct bench *b, const char *op, fake_fn *honest, const float *x,
                      size_t cols) {
    *b = (struct bench){.fake = fake_kernel("fake", op, honest)};
    CHECK_OK(case_from_data(&b->c, x, &dtypes[DT_F32], (struct case_dims){1, cols}));
    CHECK_OK(truth_init(&b->truth, b->fake.kernel.op, &b->c, EMPTY_NAN));
    CHECK_OK(truth_fill(&b->truth));
    b->y = malloc((b->truth.count + 1) * sizeof *b->y);
    struct dev_run run;
    honest(b->y, x, b->c.dims, 0, &run);
}

static enum verdict judge(struct bench *b) {
    CHECK_OK(judge_output(&b->j, &b->fake.kernel, &b->c, &b->truth, b->y));
    return b->j.verdict;
}

static void end(struct bench *b) {
    case_clear(&b->c);
    truth_clear(&b->truth);
    free(b->y);
}

/* The control: no alarm on honest output, for every fill and op. */
static void honest_output_passes(void **state) {
    (void)state;
    static const struct {
        const char *op;
        fake_fn *fn;
    } ops_of[] = {{"sum", fake_sum}, {"max", fake_max}, {"softmax", fake_softmax}};
    for (const struct fill *f = fills; f->name; f++)
        for (size_t i = 0; i < 3; i++) {
            struct bench b;
            begin(&b, ops_of[i].op, ops_of[i].fn, f->name, 6, 257);
            CHECK(judge(&b) == VERDICT_PASS, "%s of %s: %s: %s", ops_of[i].op, f->name,
                  verdict_name(b.j.verdict), b.j.reason);
            assert_true(b.j.max_rho <= 1);
            assert_string_equal(b.j.reason, "");
            end(&b);
        }
}

/* TransformerEngine, CUDATutorial #69, Liger #259: NaN made the comparison false, so it passed. */
static void nan_output_fails(void **state) {
    (void)state;
    for (size_t at = 0; at < 6 * 257; at += 257 * 5 + 256) { /* the first element, and the last */
        struct bench b;
        begin(&b, "softmax", fake_softmax, "normal", 6, 257);
        b.y[at] = NAN;
        assert_int_equal(judge(&b), VERDICT_FAIL);
        assert_true(isinf(b.j.max_rho) && !isnan(b.j.max_ulp));
        assert_int_equal(b.j.worst.row * 257 + b.j.worst.col, at);
        CHECK_CONTAINS(b.j.reason, "is NaN where a number is due");
        end(&b);
    }
    struct bench b; /* and nothing but NaN */
    begin(&b, "softmax", fake_softmax, "normal", 6, 257);
    for (size_t i = 0; i < b.truth.count; i++)
        b.y[i] = NAN;
    assert_int_equal(judge(&b), VERDICT_FAIL);
    end(&b);
}

/* cubecl #1070, pygpubench: NaN in the reference was taken for "anything goes". */
static void number_for_nan_fails(void **state) {
    (void)state;
    static const char *const nan_fills[] = {"plus_inf", "one_nan", "all_ninf"};
    for (size_t i = 0; i < 3; i++) {
        struct bench b;
        begin(&b, "softmax", fake_softmax, nan_fills[i], 4, 32);
        size_t at = 0;
        while (at < b.truth.count && !enclosure_is_nan(b.truth.want[at]))
            at++;
        assert_true(at < b.truth.count);
        b.y[at] = 0;
        assert_int_equal(judge(&b), VERDICT_FAIL);
        CHECK_CONTAINS(b.j.reason, "is a number where NaN is due");
        end(&b);
    }
}

/* KernelBench: zeros passed softmax, as 1/n is below an absolute tolerance.  mlir-air: constants. */
static void constants_fail(void **state) {
    (void)state;
    static const float constants[] = {0, 1.0f / 4099, 1};
    for (size_t i = 0; i < 3; i++) {
        struct bench b;
        begin(&b, "softmax", fake_softmax, "normal", 1, 4099);
        for (size_t k = 0; k < b.truth.count; k++)
            b.y[k] = constants[i];
        assert_int_equal(judge(&b), VERDICT_FAIL);
        assert_true(b.j.max_rho > 1);
        end(&b);
    }
}

/* Liger #259: exactly one mismatch was reported as success. */
static void one_mismatch_fails(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "softmax", fake_softmax, "normal", 6, 257);
    b.y[700] *= 1.01f;
    assert_int_equal(judge(&b), VERDICT_FAIL);
    assert_int_equal(b.j.worst.row * 257 + b.j.worst.col, 700);
    CHECK_CONTAINS(b.j.reason, "budgets");
    end(&b);
}

/* The element reported is the one that is furthest off, not the first or the last. */
static void worst_is_largest(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "softmax", fake_softmax, "normal", 6, 257);
    b.y[100] *= 1.01f;
    b.y[700] *= 1.02f;
    b.y[900] *= 1.01f;
    assert_int_equal(judge(&b), VERDICT_FAIL);
    assert_int_equal(b.j.worst.row * 257 + b.j.worst.col, 700);
    CHECK_CONTAINS(b.j.reason, "element [2][186]");
    end(&b);
}

/* OpenCL-CTS: one large element widened the budget of all that came after it. */
static void budget_does_not_grow(void **state) {
    (void)state;
    struct bench b;
    float x[2 * 64];
    for (size_t j = 0; j < 64; j++) {
        x[j] = 1e30f;
        x[64 + j] = 1;
    }
    b = (struct bench){.fake = fake_kernel("fake", "sum", fake_sum)};
    CHECK_OK(case_from_data(&b.c, x, &dtypes[DT_F32], (struct case_dims){2, 64}));
    CHECK_OK(truth_init(&b.truth, b.fake.kernel.op, &b.c, EMPTY_NAN));
    b.y = malloc(2 * sizeof *b.y);
    struct dev_run run;
    fake_sum(b.y, x, b.c.dims, 0, &run);
    assert_int_equal(judge(&b), VERDICT_PASS);
    b.y[1] = 65;
    assert_int_equal(judge(&b), VERDICT_FAIL);
    assert_int_equal(b.j.worst.row, 1);
    end(&b);
}

/* XLA, LLVM libc, SLEEF: some element was compared with itself, with another, or not at all. */
static void every_element_counts(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "softmax", fake_softmax, "normal", 3, 33);
    for (size_t i = 0; i < b.truth.count; i++) {
        float honest = b.y[i];
        b.y[i] = honest * 1.01f;
        CHECK(judge(&b) == VERDICT_FAIL, "element %zu is not looked at", i);
        assert_int_equal(b.j.worst.row * 33 + b.j.worst.col, i);
        b.y[i] = honest;
    }
    assert_int_equal(judge(&b), VERDICT_PASS);
    float last = b.y[32]; /* and in its own place */
    b.y[32] = b.y[31];
    b.y[31] = last;
    assert_int_equal(judge(&b), VERDICT_FAIL);
    end(&b);
}

static double given_budget;

static status_t the_given_budget(double *budget, const struct oracle_row *row,
                                 const struct enclosure *want, const struct numerics *n) {
    (void)row, (void)want, (void)n;
    budget[0] = given_budget;
    return OK;
}

/* BackendBench: whatever the tolerance said, another one was used. */
static void budget_is_used(void **state) {
    (void)state;
    static const float x[] = {1, 2};
    struct bench b;
    begin_row(&b, "sum", fake_sum, x, 2);
    struct op op = *b.fake.kernel.op;
    b.fake.kernel.op = &op;
    op.budget = the_given_budget;
    b.y[0] = 3.25f;
    given_budget = 0.25;
    assert_int_equal(judge(&b), VERDICT_PASS);
    assert_true(b.j.max_rho == 1);
    given_budget = nextafter(0.25, 0);
    assert_int_equal(judge(&b), VERDICT_FAIL);
    end(&b);
}

/* mlir-air: an absolute tolerance of 0.5 accepted noise. */
static void random_output_fails(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(1);
    for (int k = 0; k < 20; k++) {
        struct bench b;
        begin(&b, "softmax", fake_softmax, "normal", 1, 4099);
        for (size_t i = 0; i < b.truth.count; i++)
            b.y[i] = (float)(rng_unit(&rng) * 2 / 4099);
        assert_int_equal(judge(&b), VERDICT_FAIL);
        end(&b);
    }
}

static void softmax_base_2(float *y, const float *x, struct case_dims d, uint64_t seed,
                           struct dev_run *run) {
    (void)seed, (void)run;
    for (size_t r = 0; r < d.rows; r++, x += d.cols, y += d.cols) {
        float sum = 0;
        for (size_t j = 0; j < d.cols; j++)
            sum += y[j] = exp2f(x[j] / 4);
        for (size_t j = 0; j < d.cols; j++)
            y[j] /= sum;
    }
}

/* benchdnn: a mistake that reference and kernel share.  The truth here is no kernel's. */
static void shared_mistake_fails(void **state) {
    (void)state;
    struct bench b; /* the bench's "honest" kernel is the mistaken one */
    begin(&b, "softmax", softmax_base_2, "normal", 3, 33);
    assert_int_equal(judge(&b), VERDICT_FAIL);
    end(&b);
}

/* vllm #945: ALiBi moved a row by a constant, and noise was taken for a difference. */
static void row_constant_is_no_alarm(void **state) {
    (void)state;
    enum { COLS = 257 };
    struct rng rng = rng_from_seed(3);
    float x[COLS], moved[COLS];
    for (size_t j = 0; j < COLS; j++) { /* sixteenths: adding 1000 is exact */
        x[j] = (float)rng_below(&rng, 256) / 16;
        moved[j] = x[j] + 1000;
    }
    struct bench b;
    struct dev_run run;
    begin_row(&b, "softmax", fake_softmax, x, COLS);
    fake_softmax(b.y, moved, b.c.dims, 0, &run); /* the moved row against the truth of the first */
    CHECK(judge(&b) == VERDICT_PASS, "%s", b.j.reason);
    moved[7] += 0.0625f; /* but not of a row that moved in one place */
    fake_softmax(b.y, moved, b.c.dims, 0, &run);
    assert_int_equal(judge(&b), VERDICT_FAIL);
    end(&b);
}

/* 0, NaN or 1/cols: what the manifest says, and nothing else. */
static void empty_rows_as_declared(void **state) {
    (void)state;
    static const float x[] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    static const float answers[] = {[EMPTY_NAN] = NAN, [EMPTY_ZERO] = 0, [EMPTY_UNIFORM] = 0.25f};
    for (int declared = EMPTY_NAN; declared <= EMPTY_UNIFORM; declared++)
        for (int given = EMPTY_NAN; given <= EMPTY_UNIFORM; given++) {
            struct bench b;
            begin_row(&b, "softmax", fake_softmax, x, 4);
            truth_clear(&b.truth);
            b.fake.kernel.empty_row = (enum empty_row)declared;
            CHECK_OK(truth_init(&b.truth, b.fake.kernel.op, &b.c, (enum empty_row)declared));
            for (size_t j = 0; j < 4; j++)
                b.y[j] = answers[given];
            CHECK(judge(&b) == (declared == given ? VERDICT_PASS : VERDICT_FAIL),
                  "declared %d, given %d: %s", declared, given, verdict_name(b.j.verdict));
            end(&b);
        }
}

static void opposite_sign_fails(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "sum", fake_sum, "normal", 6, 257);
    b.y[2] = -b.y[2];
    assert_int_equal(judge(&b), VERDICT_FAIL);
    end(&b);
    static const float x[] = {-3, -2, -1};
    begin_row(&b, "max", fake_max, x, 3);
    b.y[0] = 1;
    assert_int_equal(judge(&b), VERDICT_FAIL);
    end(&b);
}

/* Infinity is no large number: neither for FLT_MAX, nor the other way, nor with the wrong sign. */
static void infinities_fail(void **state) {
    (void)state;
    static const struct {
        float x, got;
    } table[] = {
        {FLT_MAX, INFINITY}, {INFINITY, FLT_MAX}, {INFINITY, -INFINITY}, {-INFINITY, -FLT_MAX},
        {-INFINITY, NAN},    {1, INFINITY},       {NAN, INFINITY},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct bench b;
        begin_row(&b, "max", fake_max, &table[i].x, 1);
        assert_int_equal(judge(&b), VERDICT_PASS);
        b.y[0] = table[i].got;
        CHECK(judge(&b) == VERDICT_FAIL, "max of %g may be %g", (double)table[i].x,
              (double)table[i].got);
        end(&b);
    }
}

/* max: one ulp beside an exact result is wrong. */
static void one_ulp_of_exact_fails(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "max", fake_max, "normal", 6, 257);
    b.y[5] = nextafterf(b.y[5], INFINITY);
    assert_int_equal(judge(&b), VERDICT_FAIL);
    assert_true(isinf(b.j.max_rho));
    end(&b);
}

/* A fill of integers: the sum has tolerance 0 although the budget of the op is larger. */
static void exact_fill_has_no_tolerance(void **state) {
    (void)state;
    struct bench b;
    double *budget;
    begin(&b, "sum", fake_sum, "exact_int", 6, 257);
    CHECK_OK(budgets_make(&budget, &b.fake.kernel, &b.c, &b.truth));
    for (size_t i = 0; i < 6; i++)
        assert_true(budget[i] == 0);
    free(budget);
    assert_int_equal(judge(&b), VERDICT_PASS);
    b.y[3] += 1;
    assert_int_equal(judge(&b), VERDICT_FAIL);
    b.c.fill = fill_find("normal"); /* the same data without the promise */
    assert_int_equal(judge(&b), VERDICT_PASS);
    end(&b);
}

/* A datum that was never written is found even where NaN is due. */
static void poison_is_found(void **state) {
    (void)state;
    static const float x[] = {1, NAN, 2};
    struct bench b;
    begin_row(&b, "softmax", fake_softmax, x, 3);
    assert_int_equal(judge(&b), VERDICT_PASS);
    memset(&b.y[1], 0xff, sizeof b.y[1]);
    assert_int_equal(judge(&b), VERDICT_FAIL);
    CHECK_CONTAINS(b.j.reason, "never written");
    end(&b);

    float poisoned[3] = {1, 0, 2}; /* in the input it is a NaN like another */
    memset(&poisoned[1], 0xff, sizeof poisoned[1]);
    begin_row(&b, "softmax", fake_softmax, poisoned, 3);
    memset(b.y, 0xff, 3 * sizeof *b.y);
    assert_int_equal(judge(&b), VERDICT_PASS);
    end(&b);
}

/* Softmax of a row with NaN: all NaN, here with the poison's bits, or not written where it should be. */
static bool leaves_one_out;

static void all_ones(float *y, const float *x, struct case_dims d, uint64_t seed,
                     struct dev_run *run) {
    (void)x, (void)seed, (void)run;
    for (size_t i = 0; i < d.rows * d.cols; i++)
        if (!leaves_one_out || i != 1)
            memset(&y[i], 0xff, sizeof y[i]);
}

/* A NaN may have the poison's bits: another run tells who wrote it, whatever the input holds. */
static void written_poison_is_a_nan(void **state) {
    (void)state;
    float x[3] = {1, NAN, 2};
    for (int poisoned = 0; poisoned < 2; poisoned++)
        for (int left_out = 0; left_out < 2; left_out++) {
            struct bench b;
            struct kernel_result result;
            if (poisoned)
                memset(&x[1], 0xff, sizeof x[1]);
            leaves_one_out = left_out;
            begin_row(&b, "softmax", all_ones, x, 3);
            struct loaded_kernel *lk = fake_load(&b.fake);
            CHECK_OK(judge_kernel(&b.j, &result, lk, &b.c, &b.truth));
            kernel_unload(lk);
            CHECK(b.j.verdict == (left_out ? VERDICT_FAIL : VERDICT_PASS), "poisoned %d: %s",
                  poisoned, b.j.reason);
            if (left_out)
                CHECK_CONTAINS(b.j.reason, "element [0][1] was never written");
            end(&b);
        }
}

static status_t twice_the_result(double *budget, const struct oracle_row *row,
                                 const struct enclosure *want, const struct numerics *n) {
    (void)n;
    for (size_t j = 0; j < row->cols; j++)
        budget[j] = 2 * want[j].hi;
    return OK;
}

static void fake_zero(float *y, const float *x, struct case_dims d, uint64_t seed,
                      struct dev_run *run) {
    (void)x, (void)seed, (void)run;
    memset(y, 0, d.rows * d.cols * sizeof *y);
}

static status_t tiny_budget(double *budget, const struct oracle_row *row,
                            const struct enclosure *want, const struct numerics *n) {
    (void)want, (void)n;
    for (size_t j = 0; j < row->cols; j++)
        budget[j] = 1e-7;
    return OK;
}

/* A check that could not have failed is no pass. */
static void vacuous_is_mistrusted(void **state) {
    (void)state;
    struct bench b;
    begin(&b, "softmax", fake_softmax, "normal", 6, 257);
    struct op op = *b.fake.kernel.op;
    b.fake.kernel.op = &op;
    op.budget = twice_the_result;
    assert_int_equal(judge(&b), VERDICT_MISTRUSTED);
    CHECK_CONTAINS(b.j.reason, "could have failed");
    end(&b);

    /* Zeros with a budget of 0 make up for nothing. */
    static const float one_hot[] = {-INFINITY, 0, -INFINITY};
    begin_row(&b, "softmax", fake_softmax, one_hot, 3);
    b.fake.kernel.op = &op;
    assert_int_equal(judge(&b), VERDICT_MISTRUSTED);
    end(&b);

    static const float alone[] = {5}; /* log 1 = 0: nothing but zeros, and they could have failed */
    begin_row(&b, "log_softmax", fake_zero, alone, 1);
    struct op log_op = *b.fake.kernel.op;
    b.fake.kernel.op = &log_op;
    log_op.budget = tiny_budget;
    assert_int_equal(judge(&b), VERDICT_PASS);
    b.y[0] = 1e-6f;
    assert_int_equal(judge(&b), VERDICT_FAIL);
    end(&b);

    begin(&b, "sum", fake_sum, "normal", 0, 5);
    assert_int_equal(judge(&b), VERDICT_MISTRUSTED);
    CHECK_CONTAINS(b.j.reason, "no results");
    end(&b);

    begin(&b, "sum", fake_sum, "cancel", 6, 256); /* sums far below their terms: not vacuous */
    assert_int_equal(judge(&b), VERDICT_PASS);
    end(&b);
}

/* Certain or UNSURE: the enclosure's width decides nothing. */
static void wide_enclosure_is_unsure(void **state) {
    (void)state;
    static const float x[] = {1, 2};
    struct bench b;
    double *budget;
    begin_row(&b, "sum", fake_sum, x, 2);
    CHECK_OK(budgets_make(&budget, &b.fake.kernel, &b.c, &b.truth));
    double within = budget[0];
    free(budget);
    b.truth.tier[0] = TIER_MPFR; /* nothing tighter to ask */
    b.truth.want[0] = (struct enclosure){3 - 2 * within, 3 + 2 * within};
    assert_int_equal(judge(&b), VERDICT_UNSURE);
    CHECK_CONTAINS(b.j.reason, "too wide");
    b.truth.want[0] = (struct enclosure){4, 4 + 1e-9}; /* wrong for every real in it */
    assert_int_equal(judge(&b), VERDICT_FAIL);
    b.truth.want[0] = (struct enclosure){3 - within / 4, 3 + within / 4};
    assert_int_equal(judge(&b), VERDICT_PASS);
    end(&b);
}

static status_t nan_budget(double *budget, const struct oracle_row *row,
                           const struct enclosure *want, const struct numerics *n) {
    (void)row, (void)want, (void)n;
    budget[0] = NAN;
    return OK;
}

static status_t no_budget(double *budget, const struct oracle_row *row,
                          const struct enclosure *want, const struct numerics *n) {
    (void)row, (void)want, (void)n;
    budget[0] = INFINITY;
    return OK;
}

/* A broken budget fails; no budget at all is nothing to trust. */
static void odd_budgets(void **state) {
    (void)state;
    static const float x[] = {1, 2};
    struct bench b;
    begin_row(&b, "sum", fake_sum, x, 2);
    struct op op = *b.fake.kernel.op;
    b.fake.kernel.op = &op;
    op.budget = nan_budget;
    b.y[0] = 2.5f;
    assert_int_equal(judge(&b), VERDICT_FAIL);
    op.budget = no_budget;
    assert_int_equal(judge(&b), VERDICT_MISTRUSTED);
    b.y[0] = NAN;
    assert_int_equal(judge(&b), VERDICT_MISTRUSTED);
    end(&b);
}

/* Partial sums that may overflow: no result is a find, and none is a pass.  Else NaN still fails. */
static void overflow_on_the_way_claims_nothing(void **state) {
    (void)state;
    static const struct {
        float x[4], got;
        enum verdict want;
    } rows[] = {
        {{0x1p127f, -0x1p127f, 0x1p127f, -0x1p127f}, NAN, VERDICT_MISTRUSTED},
        {{0x1p127f, -0x1p127f, 0x1p127f, -0x1p127f}, 0, VERDICT_MISTRUSTED},
        {{INFINITY, -0x1p127f, -0x1p127f, -0x1p127f}, NAN, VERDICT_MISTRUSTED},
        {{INFINITY, -0x1p127f, 1, 1}, NAN, VERDICT_FAIL},
        {{INFINITY, -0x1p127f, 1, 1}, INFINITY, VERDICT_PASS},
        {{0x1p126f, -0x1p126f, 0x1p126f, 0}, NAN, VERDICT_FAIL},
        {{INFINITY, -INFINITY, 0x1p127f, 0x1p127f}, NAN, VERDICT_PASS},
        {{INFINITY, -INFINITY, 0x1p127f, 0x1p127f}, INFINITY, VERDICT_FAIL},
        {{NAN, 0x1p127f, 0x1p127f, 0x1p127f}, INFINITY, VERDICT_FAIL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench b;
        begin_row(&b, "sum", fake_sum, rows[i].x, 4);
        b.y[0] = rows[i].got;
        assert_int_equal(judge(&b), rows[i].want);
        end(&b);
    }
}

static void trapping(float *y, const float *x, struct case_dims d, uint64_t seed,
                     struct dev_run *run) {
    fake_sum(y, x, d, seed, run);
    run->fault_count = 1;
    run->faults[0].kind = FAULT_RACE;
    snprintf(run->faults[0].text, sizeof run->faults[0].text, "race on shared memory at k.cu:12");
}

static void stopping(float *y, const float *x, struct case_dims d, uint64_t seed,
                     struct dev_run *run) {
    (void)y, (void)x, (void)d, (void)seed;
    run->completed = false;
}

/* A fault of the device fails the case even if every value is right. */
static void device_faults_fail(void **state) {
    (void)state;
    fake_fn *const faulty[] = {trapping, stopping};
    static const char *const words[] = {"race on shared memory at k.cu:12", "did not complete"};
    for (size_t i = 0; i < 2; i++) {
        struct bench b;
        struct kernel_result result;
        begin(&b, "sum", fake_sum, "normal", 2, 33);
        b.fake.compute = faulty[i];
        struct loaded_kernel *lk = fake_load(&b.fake);
        CHECK_OK(judge_kernel(&b.j, &result, lk, &b.c, &b.truth));
        assert_int_equal(b.j.verdict, VERDICT_FAIL);
        CHECK_CONTAINS(b.j.reason, words[i]);
        kernel_unload(lk);
        end(&b);
    }
}

static void refused_shape_is_skipped(void **state) {
    (void)state;
    struct bench b;
    struct kernel_result result;
    begin(&b, "sum", fake_sum, "normal", 2, 33);
    b.fake.max_cols = 32;
    struct loaded_kernel *lk = fake_load(&b.fake);
    CHECK_OK(judge_kernel(&b.j, &result, lk, &b.c, &b.truth));
    assert_int_equal(b.j.verdict, VERDICT_SKIP);
    assert_string_equal(b.j.reason, "cols = 33: accepts 1..32");
    kernel_unload(lk);
    end(&b);
}

static void verdicts_add_up(void **state) {
    (void)state;
    for (int a = 0; a < VERDICT_COUNT; a++) {
        assert_int_equal(verdict_worse(VERDICT_SKIP, (enum verdict)a), a);
        assert_int_equal(verdict_worse((enum verdict)a, VERDICT_FAIL), VERDICT_FAIL);
        for (int b = 0; b < VERDICT_COUNT; b++)
            assert_int_equal(verdict_worse((enum verdict)a, (enum verdict)b),
                             verdict_worse((enum verdict)b, (enum verdict)a));
    }
    assert_int_equal(verdict_worse(VERDICT_PASS, VERDICT_MISTRUSTED), VERDICT_MISTRUSTED);
    assert_int_equal(verdict_worse(VERDICT_MISTRUSTED, VERDICT_UNSURE), VERDICT_UNSURE);
    assert_string_equal(verdict_name(VERDICT_MISTRUSTED), "MISTRUSTED");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_output_passes),
        cmocka_unit_test(nan_output_fails),
        cmocka_unit_test(number_for_nan_fails),
        cmocka_unit_test(constants_fail),
        cmocka_unit_test(one_mismatch_fails),
        cmocka_unit_test(worst_is_largest),
        cmocka_unit_test(budget_does_not_grow),
        cmocka_unit_test(every_element_counts),
        cmocka_unit_test(budget_is_used),
        cmocka_unit_test(random_output_fails),
        cmocka_unit_test(shared_mistake_fails),
        cmocka_unit_test(row_constant_is_no_alarm),
        cmocka_unit_test(empty_rows_as_declared),
        cmocka_unit_test(opposite_sign_fails),
        cmocka_unit_test(infinities_fail),
        cmocka_unit_test(one_ulp_of_exact_fails),
        cmocka_unit_test(exact_fill_has_no_tolerance),
        cmocka_unit_test(poison_is_found),
        cmocka_unit_test(written_poison_is_a_nan),
        cmocka_unit_test(vacuous_is_mistrusted),
        cmocka_unit_test(wide_enclosure_is_unsure),
        cmocka_unit_test(odd_budgets),
        cmocka_unit_test(overflow_on_the_way_claims_nothing),
        cmocka_unit_test(device_faults_fail),
        cmocka_unit_test(refused_shape_is_skipped),
        cmocka_unit_test(verdicts_add_up),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return rc;
}
