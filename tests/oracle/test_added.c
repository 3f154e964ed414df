/*
 * tests/oracle/test_added.c - rows that are sums, x + bias: exact in every tier, and in the budget
 * what a kernel's rounding of the sums moves.
 */
#include "tests/oracle/oracle_test.h"

#include <string.h>

#include "oracle/tier.h"
#include "tests/oracle/judge.h"
#include "tests/oracle/rows.h"
#include "tests/oracle/simulate.h"

enum { MAX_COLS = 300 };

static const char *const ops_of_sums[] = {"softmax", "log_softmax", "lse"};

static size_t results(const char *op, size_t cols) {
    return op_find(op)->result == OP_PER_ROW ? 1 : cols;
}

/* ---- enclosures ---------------------------------------------------------------------------------- */

/* 2^60 + k is 2^60 and a rest of k, and the differences are those of a row of k. */
static void sums_are_exact(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(1);
    double x[40], low[40];
    struct enclosure sums[40], small[40];
    for (size_t n = 0; n < times(200); n++) {
        const size_t cols = 1 + rng_below(&rng, 40);
        for (size_t j = 0; j < cols; j++) {
            x[j] = 0x1p60;
            low[j] = ldexp((double)rng_below(&rng, 2000) - 1000, -4);
        }
        const struct oracle_row of_sums = {.x = x, .low = low, .added = true, .cols = cols};
        const struct oracle_row of_low = {.x = low, .cols = cols};
        for (size_t k = 0; k < 3; k++) {
            const struct op *op = op_find(ops_of_sums[k]);
            assert_int_equal(op->enclose(sums, &of_sums), OK);
            assert_int_equal(op->enclose(small, &of_low), OK);
            for (size_t j = 0; j < results(op->name, cols); j++) {
                if (op->result == OP_PER_ROW) { /* which has the 2^60 in it */
                    small[j].lo = nextafter(0x1p60 + small[j].lo, 0);
                    small[j].hi = nextafter(0x1p60 + small[j].hi, INFINITY);
                    CHECK(small[j].lo <= sums[j].lo && sums[j].hi <= small[j].hi, "lse of %zu",
                          cols);
                    continue;
                }
                CHECK(memcmp(&sums[j], &small[j], sizeof *sums) == 0,
                      "%s of %zu, [%zu]: [%a, %a], not [%a, %a]", op->name, cols, j, sums[j].lo,
                      sums[j].hi, small[j].lo, small[j].hi);
            }
        }
    }
}

/* One entry is its own lse: between two doubles here. */
static void one_sum_is_its_lse(void **state) {
    (void)state;
    const double x[] = {-INFINITY, 1}, low[] = {0, 0x1p-60};
    const struct oracle_row row = {.x = x, .low = low, .added = true, .cols = 2};
    struct enclosure lse;
    assert_int_equal(op_find("lse")->enclose(&lse, &row), OK);
    assert_true(lse.lo == 1 && lse.hi == 1 + 0x1p-52);
}

/* ---- rows of x + bias ----------------------------------------------------------------------------- */

struct sums {
    size_t cols;
    float t[MAX_COLS];                   /* what a kernel has */
    double x[MAX_COLS], low[MAX_COLS];   /* what is so */
    double kernels[MAX_COLS];            /* t */
    struct oracle_row row;
};

/* range: of the entries near the largest. */
static void make_sums(struct sums *s, size_t cols, double range, struct rng *rng) {
    *s = (struct sums){.cols = cols};
    const double centre = range * (rng_unit(rng) - 0.5) * 2;
    bool rest = false;
    for (size_t j = 0; j < cols; j++) {
        const float x = (float)(centre + 8 * (rng_unit(rng) - 0.5));
        const uint64_t kind = rng_below(rng, 8);
        const float bias = kind == 0   ? 0
                           : kind == 1 ? -INFINITY
                           : kind == 2 ? -1e9f
                                       : (float)ldexp(rng_unit(rng) - 0.5, (int)rng_below(rng, 4));
        const float b = j == 0 ? 0.3f : bias;
        s->t[j] = x + b;
        s->kernels[j] = s->t[j];
        s->x[j] = (double)x + (double)b;
        if (isfinite(b)) {
            const double part = s->x[j] - (double)x;
            s->low[j] = ((double)x - (s->x[j] - part)) + ((double)b - part);
        }
        rest |= s->low[j] != 0;
    }
    s->row = (struct oracle_row){
        .x = s->x, .low = rest ? s->low : NULL, .added = true, .cols = cols};
}

/* A tier that answers for a row with a rest answers for the sums, and the right ones are answered. */
static void tiers_contain_mpfr(void **state) {
    (void)state;
    static struct sums s;
    struct enclosure slow[MAX_COLS], fast[MAX_COLS];
    struct rng rng = rng_from_seed(2);
    size_t by[3][TIER_COUNT] = {{0}};
    for (size_t n = 0; n < times(400); n++) {
        make_sums(&s, 1 + rng_below(&rng, 60), n % 2 ? 10 : 0x1p12, &rng);
        for (size_t j = 0; n % 4 == 1 && j < s.cols; j++) /* sums that double holds, near the top */
            if (s.x[j] > -1e6)
                s.low[j] = 0;
        for (size_t j = 0; n % 4 == 3 && j < s.cols; j++) /* and some that it does not */
            s.low[j] = s.x[j] > -1e6 ? s.x[j] * 0x1p-54 : s.low[j];
        s.row.low = s.low;
        for (size_t k = 0; k < 3; k++) {
            const struct op *op = op_find(ops_of_sums[k]);
            assert_int_equal(op->enclose(slow, &s.row), OK);
            for (enum tier first = TIER_F64; first < TIER_MPFR; first++) {
                enum tier tier = first;
                assert_int_equal(tier_enclose(fast, &tier, op, &s.row), OK);
                by[k][tier] += first == TIER_F64;
                for (size_t j = 0; j < results(op->name, s.cols); j++)
                    CHECK(fast[j].lo <= slow[j].lo && slow[j].hi <= fast[j].hi,
                          "%s of %zu from tier %s, [%zu]: [%a, %a], MPFR [%a, %a]", op->name, s.cols,
                          tier_name(first), j, fast[j].lo, fast[j].hi, slow[j].lo, slow[j].hi);
            }
        }
    }
    print_message("f64 answers for %zu, %zu and %zu of 400 rows\n", by[0][TIER_F64],
                  by[1][TIER_F64], by[2][TIER_F64]);
    assert_true(by[0][TIER_F64] > 50 && by[2][TIER_F64] > 50 && by[0][TIER_MPFR] > 50);
    assert_true(by[1][TIER_F64] < by[0][TIER_F64]); /* log_softmax shows what is far below, too */
}

/* ---- budgets -------------------------------------------------------------------------------------- */

static const struct algorithm algorithms[] = {
    {.name = "expf", .exp = EXP_EXPF, .divide = DIVIDE_IEEE},
    {.name = "__expf", .exp = EXP_FAST, .divide = DIVIDE_RECIPROCAL, .flush = true},
    {.name = "folded", .exp = EXP_EX2_FOLDED, .divide = DIVIDE_IEEE, .flush = true},
    {.name = "online expf", .exp = EXP_EXPF, .rescale = RESCALE_ONLINE, .divide = DIVIDE_IEEE},
    {.name = "exp(x - lse) by expf", .exp = EXP_EXPF},
    {.name = "exp(x - lse) by __expf, __logf", .exp = EXP_FAST, .log = LOG_FAST, .flush = true},
    {.name = "online folded",
     .exp = EXP_EX2_FOLDED,
     .rescale = RESCALE_ONLINE,
     .divide = DIVIDE_IEEE,
     .flush = true},
};

/* The largest rho, and how many results are beyond what the budget would be without the sums'. */
struct seen {
    double rho;
    size_t beyond;
};

static void hold(struct seen *seen, const struct sums *s, const char *name, const float *y,
                 const struct numerics *nu, const char *what) {
    static struct enclosure want[MAX_COLS];
    static double budget[MAX_COLS], without[MAX_COLS];
    const struct op *op = op_find(name);
    struct oracle_row plain = s->row;
    struct tier_extremes e;
    const struct oracle_row *row = &s->row;
    double got[MAX_COLS];
    plain.added = false;
    assert_int_equal(op->enclose(want, &s->row), OK);
    assert_int_equal(op->budget(budget, &s->row, want, nu), OK);
    assert_int_equal(op->budget(without, &plain, want, nu), OK);
    for (size_t j = 0; j < results(name, s->cols); j++) {
        double rho = rho_of(nu->out, y[j], want[j], budget[j]);
        CHECK(rho <= 1, "%s, %s of %zu: [%zu] rho %g: %a, want %a +- %g", name, what, s->cols, j,
              rho, (double)y[j], want[j].lo, budget[j]);
        seen->rho = fmax(seen->rho, rho);
        seen->beyond += rho_of(nu->out, y[j], want[j], without[j]) > 1;
        got[j] = y[j];
    }
    if (results(name, s->cols) != s->cols)
        return;
    /* The common look grants no more: the farthest result just beyond its budget is not within. */
    for (size_t j = 0; j < s->cols; j++) {
        if (!(budget[j] > 0 && isfinite(budget[j]) && want[j].lo > 0x1p-60))
            continue;
        const double kept = got[j];
        got[j] = want[j].hi + budget[j] * (1 + 0x1p-20);
        assert_int_equal(tier_within(&e, op, &row, 1, got, s->cols, nu), OK);
        CHECK(!e.within, "%s, %s of %zu: [%zu] is beyond and passes", name, what, s->cols, j);
        got[j] = kept;
    }
}

static void budgets_hold(void **state) {
    (void)state;
    static struct sums s;
    float y[MAX_COLS];
    struct rng rng = rng_from_seed(3);
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
        const struct algorithm *alg = &algorithms[a];
        struct seen softmax = {0, 0}, log_softmax = {0, 0}, lse = {0, 0};
        for (size_t n = 0; n < times(300); n++) {
            const size_t cols = 1 + rng_below(&rng, n % 3 ? 12 : MAX_COLS - 1);
            make_sums(&s, cols, ldexp(1, (int)rng_below(&rng, 14)), &rng);
            const struct numerics nu = simulated_numerics(alg, cols, 1);
            simulate_softmax(y, s.kernels, cols, 1, alg, &rng);
            hold(&softmax, &s, "softmax", y, &nu, alg->name);
            y[0] = simulate_lse(s.kernels, cols, 1, alg);
            hold(&lse, &s, "lse", y, &nu, alg->name);
            if (alg->exp == EXP_EX2_FOLDED)
                continue;
            simulate_log_softmax(y, s.kernels, cols, 1, alg);
            hold(&log_softmax, &s, "log_softmax", y, &nu, alg->name);
        }
        print_message("%s: worst rho of softmax %.3f, lse %.3f, log_softmax %.3f; beyond the budget "
                      "without the sums': %zu, %zu, %zu\n",
                      alg->name, softmax.rho, lse.rho, log_softmax.rho, softmax.beyond, lse.beyond,
                      log_softmax.beyond);
        /* online, folded: the shift of the farthest maximum is granted and covers it */
        const bool loose = alg->exp == EXP_EX2_FOLDED && alg->rescale == RESCALE_ONLINE;
        assert_true(softmax.rho > 0.3 && (loose || softmax.beyond > 100));
        assert_true(alg->exp == EXP_EX2_FOLDED || log_softmax.beyond > 100);
    }
}

/* Where the sums are data of f32 nothing is moved, but the budget cannot know. */
static void exact_sums_are_looked_at(void **state) {
    (void)state;
    double x[] = {1, 2.5, -INFINITY, -1e9}, low[] = {0, 0, 0, 0x1p-30}, got[4], budget[4];
    struct enclosure want[4];
    struct tier_extremes e;
    struct oracle_row row = {.x = x, .low = low, .added = true, .cols = 4};
    const struct oracle_row *rows = &row;
    const struct numerics nu = simulated_numerics(&algorithms[0], 4, 1);
    const struct op *op = op_find("softmax");
    assert_int_equal(op->enclose(want, &row), OK);
    assert_int_equal(op->budget(budget, &row, want, &nu), OK);
    for (size_t j = 0; j < 4; j++)
        got[j] = want[j].lo;
    assert_int_equal(tier_within(&e, op, &rows, 1, got, 4, &nu), OK);
    assert_true(e.within);
    x[0] += 0x1p-40; /* a sum that the kernel rounds */
    assert_int_equal(tier_within(&e, op, &rows, 1, got, 4, &nu), OK);
    assert_false(e.within);
}

/* Sums in the millions: nothing is claimed of what their rounding leaves. */
static void far_from_zero_nothing_is_claimed(void **state) {
    (void)state;
    double x[] = {-1e9 + 1, -1e9 + 2, -3e38 * 2}, budget[3];
    struct enclosure want[3];
    struct oracle_row row = {.x = x, .added = true, .cols = 3};
    const struct numerics nu = simulated_numerics(&algorithms[0], 3, 1);
    const struct op *op = op_find("softmax");
    assert_int_equal(op->enclose(want, &row), OK);
    assert_int_equal(op->budget(budget, &row, want, &nu), OK);
    assert_true(budget[0] == INFINITY && budget[1] == INFINITY);
    x[0] = -0x1p23 - 1; /* moved by half at most: each alone could be bounded */
    x[1] = -0x1p23 - 3;
    assert_int_equal(op->enclose(want, &row), OK);
    assert_int_equal(op->budget(budget, &row, want, &nu), OK);
    assert_true(budget[0] == INFINITY && budget[1] == INFINITY);
    x[0] = -0x1p23 + 64; /* these moved by 1/4 and so bounded, an entry 128 below by 1/2 */
    x[1] = -0x1p23 + 63;
    assert_int_equal(op->enclose(want, &row), OK);
    assert_int_equal(op->budget(budget, &row, want, &nu), OK);
    assert_true(budget[0] == INFINITY && budget[1] == INFINITY);
    x[0] = 1;
    x[1] = 2;
    assert_int_equal(op->enclose(want, &row), OK);
    assert_int_equal(op->budget(budget, &row, want, &nu), OK);
    assert_true(budget[0] < 1e-6 && budget[2] > 0 && budget[2] < 0x1p-120);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(one_sum_is_its_lse),
        cmocka_unit_test(tiers_contain_mpfr),
        cmocka_unit_test(budgets_hold),
        cmocka_unit_test(exact_sums_are_looked_at),
        cmocka_unit_test(far_from_zero_nothing_is_claimed),
    };
    int failed = cmocka_run_group_tests_name("added", tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
