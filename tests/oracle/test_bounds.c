/*
 * tests/oracle/test_bounds.c - budgets hold for correct kernels, are nearly reached, and are broken
 * by wrong ones.
 *
 * rho = error / budget.  Every simulated correct kernel must keep rho <= 1 on every row; over the
 * ensemble the worst must come near enough to 1 that the budget means something.
 */
#include "oracle_test.h"

#include <math.h>
#include <string.h>

#include "gpu_exp.h"
#include "oracle/oracle.h"
#include "oracle/ulp.h"
#include "rows.h"
#include "simulate.h"

enum { MAX_COLS = 1024 };

static uint32_t f32_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* rho of a datum; +Inf for a wrong class. */
static double rho(const struct dtype *dt, uint32_t got, struct enclosure want, double budget) {
    struct ulp_error err = ulp_error(dt, got, want);
    if (err.outcome == ULP_CLASS_MATCH || err.abs_hi == 0)
        return 0;
    return err.outcome == ULP_CLASS_MISMATCH ? INFINITY : err.abs_hi / budget;
}

static double rho_f32(float got, struct enclosure want, double budget) {
    return rho(&dtypes[DT_F32], f32_bits(got), want, budget);
}

static void enclose(struct enclosure *out, const char *op, const double *x, size_t cols) {
    struct oracle_row row = {.x = x, .cols = cols, .empty_row = EMPTY_NAN};
    assert_int_equal(op_find(op)->enclose(out, &row), OK);
}

static void budget_of(double *out, const char *op, const double *x, size_t cols,
                      const struct enclosure *want, const struct numerics *nu) {
    struct oracle_row row = {.x = x, .cols = cols, .empty_row = EMPTY_NAN};
    assert_int_equal(op_find(op)->budget(out, &row, want, nu), OK);
}

static void spread_of(double *out, const char *op, const double *x, size_t cols,
                      const struct enclosure *want, const struct numerics *nu) {
    struct oracle_row row = {.x = x, .cols = cols, .empty_row = EMPTY_NAN};
    assert_int_equal(op_find(op)->spread(out, &row, want, nu), OK);
}

/* A shape, and how many threads share a row of it. */
static size_t shape(struct rng *rng, size_t *threads) {
    static const size_t sizes[] = {1, 2, 3, 5, 17, 64, 100, 257, 700, MAX_COLS};
    size_t cols = sizes[rng_below(rng, sizeof sizes / sizeof sizes[0])];
    const size_t choices[] = {1, 4, 32, cols};
    *threads = choices[rng_below(rng, 4)];
    return cols;
}

/* ---- sum ------------------------------------------------------------------------------------- */

/*
 * A row whose every addition in this tree loses half a unit: 1, and 2^-24 wherever a subtree joins
 * the first entry's path.
 */
static void stagnation(double *x, size_t cols, size_t threads) {
    for (size_t i = 0; i < cols; i++)
        x[i] = 0;
    x[0] = 1;
    for (size_t i = threads; i < cols; i += threads)
        x[i] = 0x1p-24;
    for (size_t step = 1; step < threads && step < cols; step *= 2)
        x[step] = 0x1p-24;
}

static void check_sum(const double *x, size_t cols, size_t threads, bool flush, const char *what,
                      double *worst) {
    struct algorithm alg = {.flush = flush};
    struct numerics nu = simulated_numerics(&alg, cols, threads);
    struct enclosure want;
    double budget;
    enclose(&want, "sum", x, cols);
    budget_of(&budget, "sum", x, cols, &want, &nu);
    if (isinf(budget))
        return;
    double r = rho_f32(simulate_sum(x, cols, threads, flush), want, budget);
    CHECK(r <= 1, "sum of a %s row, %zu by %zu threads: rho %g, budget %g", what, cols, threads, r,
          budget);
    *worst = fmax(*worst, r);
}

static void test_sum(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(20);
    double x[MAX_COLS], random = 0, serial = 0, tree = 0, mixed = 0;
    for (size_t i = 0; i < times(10000); i++) {
        size_t threads, cols = shape(&rng, &threads);
        enum row_kind kind = (enum row_kind)(i % ROW_KINDS);
        row_make(x, cols, kind, &rng);
        check_sum(x, cols, threads, kind == ROW_SUBNORMAL && i % 5 == 0, row_kind_name(kind),
                  &random);
    }
    for (size_t cols = 2; cols <= MAX_COLS; cols = cols * 3 / 2 + 1) {
        stagnation(x, cols, 1);
        check_sum(x, cols, 1, false, "stagnating", &serial);
        stagnation(x, cols, cols);
        check_sum(x, cols, cols, false, "stagnating", &tree);
        stagnation(x, cols, 32);
        check_sum(x, cols, 32, false, "stagnating", &mixed);
    }
    print_message("sum: worst rho %.3f random, %.3f serial, %.3f tree, %.3f mixed\n", random,
                  serial, tree, mixed);
    assert_true(random > 0.5 && serial > 0.9 && tree > 0.9 && mixed > 0.9);
}

static void test_sum_overflow(void **state) {
    (void)state;
    struct algorithm alg = {0};
    struct numerics nu = simulated_numerics(&alg, 3, 1);
    double x[] = {0x1.8p127, 0x1.8p127, -0x1.8p127}, budget;
    struct enclosure want;
    enclose(&want, "sum", x, 3);
    budget_of(&budget, "sum", x, 3, &want, &nu);
    assert_true(budget == INFINITY); /* a correct kernel may give Inf */
    x[1] = 0x1p100;
    x[2] = 1;
    enclose(&want, "sum", x, 3);
    budget_of(&budget, "sum", x, 3, &want, &nu);
    assert_true(budget < 0x1p106);
}

/* ---- max ------------------------------------------------------------------------------------- */

static void test_max(void **state) {
    (void)state;
    double x[] = {1.0009765625, -3, 0x1p-130}, budget, spread;
    struct numerics nu = simulated_numerics(&(struct algorithm){0}, 3, 1);
    struct enclosure want;
    enclose(&want, "max", x, 3);
    budget_of(&budget, "max", x, 3, &want, &nu);
    assert_true(budget == 0);
    nu.out = &dtypes[DT_BF16]; /* one rounding */
    budget_of(&budget, "max", x, 3, &want, &nu);
    spread_of(&spread, "max", x, 3, &want, &nu);
    assert_true(budget >= 0x1p-8 && budget < 0x1.001p-8 && spread == 0);

    enclose(&want, "max", x + 2, 1);
    nu.out = nu.acc;
    nu.flush = true;
    budget_of(&budget, "max", x + 2, 1, &want, &nu);
    assert_true(budget >= 0x1p-130 && budget < 0x1.001p-130);
}

/* ---- softmax, lse, log_softmax --------------------------------------------------------------- */

static const struct algorithm algorithms[] = {
    {.name = "expf", .exp = EXP_EXPF, .divide = DIVIDE_IEEE},
    {.name = "expf, reciprocal", .exp = EXP_EXPF, .divide = DIVIDE_RECIPROCAL},
    {.name = "expf, approximate division", .exp = EXP_EXPF, .divide = DIVIDE_APPROX},
    {.name = "expf, flush", .exp = EXP_EXPF, .divide = DIVIDE_IEEE, .flush = true},
    {.name = "__expf", .exp = EXP_FAST, .divide = DIVIDE_IEEE, .flush = true},
    {.name = "folded", .exp = EXP_EX2_FOLDED, .divide = DIVIDE_IEEE, .flush = true},
    {.name = "online expf", .exp = EXP_EXPF, .rescale = RESCALE_ONLINE, .divide = DIVIDE_IEEE},
    {.name = "online __expf",
     .exp = EXP_FAST,
     .rescale = RESCALE_ONLINE,
     .divide = DIVIDE_RECIPROCAL,
     .flush = true},
    {.name = "online folded",
     .exp = EXP_EX2_FOLDED,
     .rescale = RESCALE_ONLINE,
     .divide = DIVIDE_IEEE,
     .flush = true},
    {.name = "expf, __logf", .exp = EXP_EXPF, .divide = DIVIDE_IEEE, .log = LOG_FAST},
    {.name = "online folded, scaled maxima",
     .exp = EXP_EX2_FOLDED,
     .rescale = RESCALE_ONLINE,
     .divide = DIVIDE_IEEE,
     .flush = true,
     .scaled_maxima = true},
    {.name = "exp(x - lse) by expf", .exp = EXP_EXPF},
    {.name = "exp(x - lse) by __expf, __logf", .exp = EXP_FAST, .log = LOG_FAST, .flush = true},
    {.name = "exp(x - lse) by online expf", .exp = EXP_EXPF, .rescale = RESCALE_ONLINE},
    {.name = "polynomial", .exp = EXP_EX2_POLY, .divide = DIVIDE_IEEE},
    {.name = "exp(x - lse) by the polynomial", .exp = EXP_EX2_POLY},
};
enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };

/* Rows for exponentials: any family; rows of any floats only where nothing is folded in. */
static enum row_kind exp_kind(size_t i, const struct algorithm *alg) {
    enum row_kind kind = (enum row_kind)(i % ROW_KINDS);
    bool wild = kind == ROW_BITS || kind == ROW_CANCEL;
    return wild && alg->exp == EXP_EX2_FOLDED ? ROW_WIDE : kind;
}

/*
 * Looser than the others: the declaration does not say which rounded maxima the rescalings use, so
 * the budget adds the shift of the farthest one.
 */
static bool online_folded(const struct algorithm *alg) {
    return alg->exp == EXP_EX2_FOLDED && alg->rescale == RESCALE_ONLINE;
}

static void test_softmax(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(21);
    static double x[MAX_COLS], budget[MAX_COLS];
    static float y[MAX_COLS];
    static struct enclosure want[MAX_COLS];
    for (size_t a = 0; a < ALGORITHMS; a++) {
        const struct algorithm *alg = &algorithms[a];
        double worst = 0, worst_tiny = 0; /* apart: in tiny results underflow decides */
        for (size_t i = 0; i < times(450); i++) {
            size_t threads, cols = shape(&rng, &threads);
            enum row_kind kind = exp_kind(i, alg);
            row_make(x, cols, kind, &rng);
            struct numerics nu = simulated_numerics(alg, cols, threads);
            enclose(want, "softmax", x, cols);
            budget_of(budget, "softmax", x, cols, want, &nu);
            simulate_softmax(y, x, cols, threads, alg, &rng);
            for (size_t j = 0; j < cols; j++) {
                double r = rho_f32(y[j], want[j], budget[j]);
                CHECK(r <= 1, "%s, %s row of %zu by %zu threads: [%zu] rho %g: %a, want %a +- %g",
                      alg->name, row_kind_name(kind), cols, threads, j, r, (double)y[j], want[j].lo,
                      budget[j]);
                double *kept = want[j].lo > 0x1p-100 ? &worst : &worst_tiny;
                *kept = fmax(*kept, r);
            }
        }
        print_message("softmax, %s: worst rho %.3f, tiny results %.3f\n", alg->name, worst,
                      worst_tiny);
        assert_true(worst > (online_folded(alg) ? 0.3 : 0.5) && worst_tiny > 0.5);
    }
}

/* How far exp(t) is off, in steps of its binade. */
static double exp_error(float t, const struct algorithm *alg) {
    double got = alg->exp == EXP_EXPF ? gpu_expf(t) : gpu_expf_fast(t), want = exp((double)t);
    int exponent;
    frexp(want, &exponent);
    return fabs(got - want) / ldexp(1, exponent - 24);
}

/* Rows {0, t} with the worst exponentials there are: the exp constants are needed in full. */
static void test_worst_exponentials(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(27);
    for (size_t a = 0; a < ALGORITHMS; a++) {
        const struct algorithm *alg = &algorithms[a];
        if (alg->divide != DIVIDE_IEEE || online_folded(alg) || alg->exp == EXP_EX2_POLY)
            continue;
        /* ex2 errs most for results just below a power of two; folding a maximum of 0 in is exact */
        double worst = 0;
        size_t rows = 0;
        while (rows < times(100)) {
            double binade = (double)(3 + rng_below(&rng, 17)), below = 0.05 + 0.03 * rng_unit(&rng);
            double x[2] = {0, (float)(-(binade + below) * M_LN2)}, budget[2];
            if (exp_error((float)x[1], alg) < 1.75)
                continue;
            struct enclosure want[2];
            float y[2];
            struct numerics nu = simulated_numerics(alg, 2, 1);
            enclose(want, "softmax", x, 2);
            budget_of(budget, "softmax", x, 2, want, &nu);
            simulate_softmax(y, x, 2, 1, alg, &rng);
            double r = rho_f32(y[1], want[1], budget[1]);
            CHECK(r <= 1, "%s: exp(%a): rho %g", alg->name, x[1], r);
            worst = fmax(worst, r);
            rows++;
        }
        print_message("softmax, %s, worst exponentials: rho %.3f\n", alg->name, worst);
        assert_true(worst > 0.5);
    }
}

/* rho of the largest entry's softmax, 1/S: what the budget says about the sum. */
static double rho_of_largest(const double *x, size_t cols, const struct algorithm *alg,
                             struct rng *rng) {
    double budget[MAX_COLS];
    float y[MAX_COLS];
    struct enclosure want[MAX_COLS];
    struct numerics nu = simulated_numerics(alg, cols, 1);
    size_t largest = 0;
    for (size_t i = 1; i < cols; i++)
        if (x[i] > x[largest])
            largest = i;
    enclose(want, "softmax", x, cols);
    budget_of(budget, "softmax", x, cols, want, &nu);
    simulate_softmax(y, x, cols, 1, alg, rng);
    return rho_f32(y[largest], want[largest], budget[largest]);
}

/* Short rows changed a little at a time as long as rho does not fall. */
static void test_climb(void **state) {
    (void)state;
    enum { COLS = 4 };
    struct rng rng = rng_from_seed(28);
    for (size_t a = 0; a < ALGORITHMS; a++) {
        const struct algorithm *alg = &algorithms[a];
        double best = 0;
        for (size_t start = 0; start < times(20); start++) {
            double x[COLS], y[COLS], current = 0;
            row_make(x, COLS, ROW_NORMAL, &rng);
            for (size_t step = 0; step < 400; step++) {
                memcpy(y, x, sizeof y);
                size_t i = (size_t)rng_below(&rng, COLS);
                y[i] = (float)(y[i] + scaled_unit(&rng, -0.5, -21, 22));
                double r = rho_of_largest(y, COLS, alg, &rng);
                CHECK(r <= 1, "%s, {%a, %a, %a, %a}: rho %g", alg->name, y[0], y[1], y[2], y[3], r);
                if (r >= current) {
                    current = r;
                    memcpy(x, y, sizeof x);
                }
            }
            best = fmax(best, current);
        }
        print_message("softmax, %s, climbed: rho %.3f of 1/S\n", alg->name, best);
        /* __logf is granted 2^-21.41 near 1, and does better here */
        double least = alg->exp == EXP_EX2_FOLDED ? 0.05 : alg->divide == DIVIDE_NONE ? 0.3 : 0.45;
        assert_true(best > least);
    }
}

/*
 * docs/bounds.md's sigma to first order, written down once more for a staircase x_i = i step, whose
 * differences are exact: what no simulated kernel comes near enough to measure.
 */
static void test_first_order(void **state) {
    (void)state;
    enum { COLS = 24 };
    const double u = 0x1p-24, step = 307 * 0x1p-10;
    double x[COLS], budget[COLS];
    struct enclosure want[COLS];
    for (size_t i = 0; i < COLS; i++)
        x[i] = (double)i * step;
    for (int online = 0; online < 2; online++) {
        const struct algorithm alg = {.exp = EXP_EXPF,
                                      .divide = DIVIDE_IEEE,
                                      .rescale = online ? RESCALE_ONLINE : RESCALE_NONE};
        struct numerics nu = simulated_numerics(&alg, COLS, 1);
        enclose(want, "softmax", x, COLS);
        budget_of(budget, "softmax", x, COLS, want, &nu);
        double sigma = nu.sum_height * u;
        for (size_t i = 0; i + 1 < COLS; i++) {
            double above = (double)(COLS - 1 - i), t = above * step, e = exp(-t);
            double significand = e / ldexp(1, ilogb(e));
            double alpha = online ? above * 4 * u + above * u + u * t : 4 * u / significand;
            sigma += want[i].lo * alpha;
        }
        double g = want[COLS - 1].lo;
        double expected = g * sigma + ldexp(0.5, ilogb(g) - 23);
        double ratio = budget[COLS - 1] / expected;
        CHECK(ratio > 0.9999 && ratio < 1.0001, "online %d: budget is %.6f of the first order",
              online, ratio);
    }
}

/* The same for the row {0, t} and each way to compute exp and to divide. */
static void test_first_order_variants(void **state) {
    (void)state;
    const double u = 0x1p-24;
    for (size_t a = 0; a < ALGORITHMS; a++) {
        const struct algorithm *alg = &algorithms[a];
        if (alg->rescale == RESCALE_ONLINE)
            continue;
        for (int k = 1; k < 200; k++) {
            double x[2] = {0, -k * 0.25}, budget[2];
            struct enclosure want[2];
            struct numerics nu = simulated_numerics(alg, 2, 1);
            enclose(want, "softmax", x, 2);
            budget_of(budget, "softmax", x, 2, want, &nu);

            double q = x[1] * 0x1.715476p0, rounded = (float)q, d = 0, ulps = 2.5;
            if (alg->exp == EXP_EXPF)
                ulps = 2;
            else if (alg->exp == EXP_FAST || alg->exp == EXP_EX2_POLY)
                d = fabs(rounded * M_LN2 - x[1]);
            else
                d = fabs(rounded - q) * M_LN2 + 1.334e-8 * -x[1];
            double e = exp(x[1]), g = want[1].lo;
            double eps = ulps * 2 * u / (e / ldexp(1, ilogb(e)));
            if (alg->exp == EXP_EX2_POLY) /* relative, and less where nothing else rounds */
                eps = (k == 1 ? 1.3865 : 1.2132) * 2 * u;
            double alpha = eps + d;
            double divide = alg->divide == DIVIDE_RECIPROCAL ? u
                            : alg->divide == DIVIDE_APPROX   ? 5 * u
                                                             : 0;
            double last = alg->divide == DIVIDE_APPROX ? 0 : ldexp(0.5, ilogb(g) - 23);
            /* folded, a maximum's exp is not known to be 1 */
            double of_max = alg->exp == EXP_EX2_FOLDED ? 5 * u : 0;
            double expected = g * (alpha + divide + u + g * alpha + want[0].lo * of_max) + last;
            if (alg->divide == DIVIDE_NONE) { /* exp(x - lse): what lse is off by, and two roundings */
                double lse = log1p(e), shifted = lse - x[1];
                double of_log = alg->log == LOG_FAST ? 0x1p-25 + 0x1.816p-22 : 3 * u * lse;
                d = u + g * alpha + of_log + ldexp(0.5, ilogb(lse) - 23);
                d += ldexp(0.5, ilogb(shifted) - 23);
                if (alg->exp == EXP_FAST || alg->exp == EXP_EX2_POLY)
                    d += (u + 1.334e-8) * shifted;
                double of_exp = alg->exp == EXP_EX2_POLY ? 1.2132 : ulps / (g / ldexp(1, ilogb(g)));
                expected = g * (d + of_exp * 2 * u);
            }
            double ratio = budget[1] / expected;
            CHECK(ratio > 0.9999 && ratio < 1.0002, "%s, t = %g: budget is %.6f of the first order",
                  alg->name, x[1], ratio);
            if (alg->exp == EXP_EX2_FOLDED || alg->log == LOG_FAST)
                continue;

            /* lse of the same row; its sum's error is u for the addition and the second term's */
            enclose(want, "lse", x, 2);
            budget_of(budget, "lse", x, 2, want, &nu);
            spread_of(budget + 1, "lse", x, 2, want, &nu);
            double log_rounding = 3 * u * want[0].lo;
            double of_result = ldexp(0.5, ilogb(want[0].lo) - 23);
            ratio = budget[0] / (u + g * alpha + log_rounding + of_result);
            CHECK(ratio > 0.9999 && ratio < 1.0002, "lse, t = %g: budget is %.6f of it", x[1],
                  ratio);
            ratio = budget[1] / (2 * (u + log_rounding + of_result));
            CHECK(ratio > 0.9999 && ratio < 1.0002, "lse, t = %g: spread is %.6f of it", x[1],
                  ratio);
        }
    }
}

static void test_lse_and_log_softmax(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(22);
    static double x[MAX_COLS], budget[MAX_COLS];
    static float y[MAX_COLS];
    static struct enclosure want[MAX_COLS];
    for (size_t a = 0; a < ALGORITHMS; a++) {
        const struct algorithm *alg = &algorithms[a];
        double worst = 0, worst_log = 0;
        for (size_t i = 0; i < times(350); i++) {
            size_t threads, cols = shape(&rng, &threads);
            enum row_kind kind = exp_kind(i, alg);
            row_make(x, cols, kind, &rng);
            struct numerics nu = simulated_numerics(alg, cols, threads);
            enclose(want, "lse", x, cols);
            budget_of(budget, "lse", x, cols, want, &nu);
            double r = rho_f32(simulate_lse(x, cols, threads, alg), want[0], budget[0]);
            CHECK(r <= 1, "lse, %s, %s row of %zu by %zu: rho %g", alg->name, row_kind_name(kind),
                  cols, threads, r);
            worst = fmax(worst, r);

            if (alg->exp == EXP_EX2_FOLDED)
                continue;
            enclose(want, "log_softmax", x, cols);
            budget_of(budget, "log_softmax", x, cols, want, &nu);
            simulate_log_softmax(y, x, cols, threads, alg);
            for (size_t j = 0; j < cols; j++) {
                r = isinf(budget[j]) ? 0 : rho_f32(y[j], want[j], budget[j]);
                CHECK(r <= 1, "log_softmax, %s, %s row of %zu by %zu: [%zu] rho %g", alg->name,
                      row_kind_name(kind), cols, threads, j, r);
                worst_log = fmax(worst_log, r);
            }
        }
        print_message("%s: worst rho %.3f lse, %.3f log_softmax\n", alg->name, worst, worst_log);
        assert_true(worst > (online_folded(alg) ? 0.3 : 0.5));
        assert_true(worst_log > 0.5 || alg->exp == EXP_EX2_FOLDED);
    }
}

/* ---- other output formats -------------------------------------------------------------------- */

static void test_half_outputs(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(23);
    static double x[MAX_COLS], budget[MAX_COLS];
    static float y[MAX_COLS];
    static struct enclosure want[MAX_COLS];
    for (enum dtype_id id = DT_F16; id <= DT_BF16; id++) {
        const struct dtype *dt = &dtypes[id];
        double worst = 0, worst_sum = 0;
        for (size_t i = 0; i < times(400); i++) {
            size_t threads, cols = shape(&rng, &threads);
            row_make(x, cols, (enum row_kind)(i % ROW_CANCEL), &rng);
            struct numerics nu = simulated_numerics(&algorithms[0], cols, threads);
            nu.out = dt;
            enclose(want, "softmax", x, cols);
            budget_of(budget, "softmax", x, cols, want, &nu);
            struct numerics flushing = nu; /* of f32's subnormals; out keeps its own */
            double flushed[MAX_COLS];
            flushing.flush = true;
            budget_of(flushed, "softmax", x, cols, want, &flushing);
            for (size_t j = 0; j < cols; j++)
                assert_true(flushed[j] >= budget[j] && flushed[j] <= budget[j] * 1.01 + 0x1p-120);

            simulate_softmax(y, x, cols, threads, &algorithms[0], &rng);
            for (size_t j = 0; j < cols; j++) {
                uint32_t got = dtype_from_double(dt, y[j], ROUND_NEAREST);
                double r = rho(dt, got, want[j], budget[j]);
                CHECK(r <= 1, "softmax to %s: rho %g", dt->name, r);
                worst = fmax(worst, r);
            }
            /* sums across the overflow threshold of f16; anywhere in a binade for bf16 */
            double total = id == DT_F16 ? 65520 : 65536 * (1 + rng_unit(&rng));
            for (size_t j = 0; j < cols; j++)
                x[j] = (float)(total / (double)cols * (1 + ldexp(rng_unit(&rng) - 0.5, -22)));
            enclose(want, "sum", x, cols);
            budget_of(budget, "sum", x, cols, want, &nu);
            float sum = simulate_sum(x, cols, threads, false);
            double r = rho(dt, dtype_from_double(dt, sum, ROUND_NEAREST), want[0], budget[0]);
            CHECK(r <= 1, "sum %a to %s: rho %g", (double)sum, dt->name, r);
            worst_sum = fmax(worst_sum, r);
        }
        print_message("to %s: worst rho %.3f softmax, %.3f sum\n", dt->name, worst, worst_sum);
        assert_true(worst > 0.9 && worst_sum > 0.6);
    }
}

/* ---- two orders ------------------------------------------------------------------------------ */

static void test_spread(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(24);
    static double x[MAX_COLS], y[MAX_COLS], spread[MAX_COLS], budget[MAX_COLS];
    static float of_x[MAX_COLS], of_y[MAX_COLS];
    static struct enclosure want[MAX_COLS];
    double worst_sum = 0, worst_lse = 0;
    for (size_t a = 0; a < ALGORITHMS; a++) {
        const struct algorithm *alg = &algorithms[a];
        double worst = 0;
        for (size_t i = 0; i < times(200); i++) {
            size_t threads, cols = shape(&rng, &threads);
            enum row_kind kind = exp_kind(i, alg);
            row_make(x, cols, kind, &rng);
            for (size_t j = 0; j < cols; j++) /* reversed: place of entry j is cols - 1 - j */
                y[cols - 1 - j] = x[j];
            struct numerics nu = simulated_numerics(alg, cols, threads);

            enclose(want, "softmax", x, cols);
            budget_of(budget, "softmax", x, cols, want, &nu);
            spread_of(spread, "softmax", x, cols, want, &nu);
            simulate_softmax(of_x, x, cols, threads, alg, &rng);
            simulate_softmax(of_y, y, cols, threads, alg, &rng);
            for (size_t j = 0; j < cols; j++) {
                double r = fabs((double)of_x[j] - of_y[cols - 1 - j]) / spread[j];
                CHECK(isnan(r) || r <= 1, "spread, %s, %s row of %zu by %zu: [%zu] %g", alg->name,
                      row_kind_name(kind), cols, threads, j, r);
                CHECK(spread[j] <= bounds_two_orders(budget[j], budget[j]), "%s", alg->name);
                worst = fmax(worst, r);
            }
            enclose(want, "lse", x, cols);
            spread_of(spread, "lse", x, cols, want, &nu);
            double r = fabs((double)simulate_lse(x, cols, threads, alg) -
                            simulate_lse(y, cols, threads, alg)) /
                       spread[0];
            CHECK(isnan(r) || r <= 1, "spread of lse, %s, %s row: %g", alg->name,
                  row_kind_name(kind), r);
            worst_lse = fmax(worst_lse, r);

            if (kind == ROW_MASKED)
                continue;
            enclose(want, "sum", x, cols);
            spread_of(spread, "sum", x, cols, want, &nu);
            r = fabs((double)simulate_sum(x, cols, threads, alg->flush) -
                     simulate_sum(y, cols, threads, alg->flush)) /
                spread[0];
            CHECK(isnan(r) || isinf(spread[0]) || r <= 1, "spread of sum, %s row: %g",
                  row_kind_name(kind), r);
            if (!isinf(spread[0]))
                worst_sum = fmax(worst_sum, r);
        }
        print_message("spread of softmax, %s: worst %.3f\n", alg->name, worst);
        assert_true(worst > (alg->rescale == RESCALE_ONLINE ? 0.03 : 0.25));
    }
    print_message("spread: worst %.3f sum, %.3f lse\n", worst_sum, worst_lse);
    assert_true(worst_sum > 0.3 && worst_lse > 0.1);
}

static void test_two_orders(void **state) {
    (void)state;
    assert_true(bounds_two_orders(1, 2) == 3);
    assert_true(bounds_two_orders(1, 0x1p-60) == nextafter(1, 2)); /* rounded up */
    assert_true(bounds_two_orders(1, INFINITY) == INFINITY);
}

/* ---- wrong kernels --------------------------------------------------------------------------- */

/* The worst rho of y over a row. */
static double worst_rho(const float *y, const double *x, size_t cols, size_t threads,
                        const struct algorithm *alg) {
    static double budget[MAX_COLS];
    static struct enclosure want[MAX_COLS];
    struct numerics nu = simulated_numerics(alg, cols, threads);
    enclose(want, "softmax", x, cols);
    budget_of(budget, "softmax", x, cols, want, &nu);
    double worst = 0;
    for (size_t j = 0; j < cols; j++)
        worst = fmax(worst, rho_f32(y[j], want[j], budget[j]));
    return worst;
}

static void test_wrong_kernels(void **state) {
    (void)state;
    enum { COLS = 257, THREADS = 32 };
    struct rng rng = rng_from_seed(25);
    double x[COLS];
    float y[COLS];
    for (size_t i = 0; i < times(20); i++) {
        row_make(x, COLS, ROW_NORMAL, &rng);
        for (size_t a = 0; a < ALGORITHMS; a++) {
            const struct algorithm *alg = &algorithms[a];
            simulate_softmax(y, x, COLS, THREADS, alg, &rng);
            assert_true(worst_rho(y, x, COLS, THREADS, alg) <= 1);

            /* the last entry, a tail, does not reach the sum */
            simulate_softmax(y, x, COLS - 1, THREADS, alg, &rng);
            y[COLS - 1] = 0;
            assert_true(worst_rho(y, x, COLS, THREADS, alg) > 100);
        }
        const struct algorithm *alg = &algorithms[0];
        /* the sum of another row */
        simulate_softmax(y, x, COLS, THREADS, alg, &rng);
        for (size_t j = 0; j < COLS; j++)
            y[j] *= 1 + 0x1p-16f;
        assert_true(worst_rho(y, x, COLS, THREADS, alg) > 1);
        /* one element swapped with its neighbour */
        simulate_softmax(y, x, COLS, THREADS, alg, &rng);
        float swap = y[3];
        y[3] = y[4];
        y[4] = swap;
        assert_true(x[3] == x[4] || worst_rho(y, x, COLS, THREADS, alg) > 1);
        /* exponentials kept in bf16 */
        for (size_t j = 0; j < COLS; j++)
            y[j] = (float)dtype_to_double(&dtypes[DT_BF16],
                                          dtype_from_double(&dtypes[DT_BF16], y[j], ROUND_NEAREST));
        assert_true(worst_rho(y, x, COLS, THREADS, alg) > 1);
        /* no maximum subtracted */
        for (size_t j = 0; j < COLS; j++)
            x[j] += 200;
        for (size_t j = 0; j < COLS; j++)
            y[j] = INFINITY / INFINITY;
        assert_true(worst_rho(y, x, COLS, THREADS, alg) == INFINITY);
    }
}

/* Sums: one entry lost, one counted twice, the result through f16. */
static void test_wrong_sums(void **state) {
    (void)state;
    enum { COLS = 257, THREADS = 32 };
    struct rng rng = rng_from_seed(26);
    double x[COLS], budget;
    struct enclosure want;
    size_t caught = 0, tries = times(20);
    for (size_t i = 0; i < tries; i++) {
        row_make(x, COLS, ROW_WIDE, &rng);
        struct numerics nu = simulated_numerics(&(struct algorithm){0}, COLS, THREADS);
        enclose(&want, "sum", x, COLS);
        budget_of(&budget, "sum", x, COLS, &want, &nu);
        float sum = simulate_sum(x, COLS, THREADS, false);
        assert_true(rho_f32(sum, want, budget) <= 1);
        assert_true(rho_f32(sum - (float)x[COLS - 1], want, budget) > 10);
        assert_true(rho_f32(sum + (float)x[0], want, budget) > 10);
        float half = (float)dtype_to_double(&dtypes[DT_F16],
                                            dtype_from_double(&dtypes[DT_F16], sum, ROUND_NEAREST));
        caught += rho_f32(half, want, budget) > 1;
    }
    assert_true(caught > tries / 2); /* f16 is now and then right by luck */
}

/* ---- declarations and special rows ----------------------------------------------------------- */

static void test_refusals(void **state) {
    (void)state;
    double x[] = {1, 2}, budget[2];
    struct oracle_row row = {.x = x, .cols = 2, .empty_row = EMPTY_NAN};
    struct enclosure want[2];
    enclose(want, "softmax", x, 2);
    const struct op *softmax = op_find("softmax"), *lse = op_find("lse"), *sum = op_find("sum");
    struct numerics good = simulated_numerics(&algorithms[0], 2, 1), nu = good;
    assert_int_equal(softmax->budget(budget, &row, want, &nu), OK);
    nu.exp = EXP_NONE;
    assert_int_equal(softmax->budget(budget, &row, want, &nu), ERR_UNSUPPORTED);
    assert_non_null(strstr(status_message(), "exp"));
    nu = good;
    nu.divide = DIVIDE_NONE; /* with a log: exp(x - lse) */
    assert_int_equal(softmax->budget(budget, &row, want, &nu), OK);
    nu.exp = EXP_EX2_FOLDED;
    assert_int_equal(softmax->budget(budget, &row, want, &nu), ERR_UNSUPPORTED);
    nu.exp = good.exp;
    nu.log = LOG_NONE;
    assert_int_equal(softmax->budget(budget, &row, want, &nu), ERR_UNSUPPORTED);
    nu = good;
    nu.acc = &dtypes[DT_F16];
    assert_int_equal(softmax->budget(budget, &row, want, &nu), ERR_UNSUPPORTED);
    assert_int_equal(sum->budget(budget, &row, want, &nu), ERR_UNSUPPORTED); /* f32 into f16 */
    nu = good;
    nu.log = LOG_NONE;
    assert_int_equal(lse->budget(budget, &row, want, &nu), ERR_UNSUPPORTED);
    assert_non_null(strstr(status_message(), "log"));
}

/* Where only the class counts the budget is 0; -Inf among numbers must give exactly 0. */
static void test_special_rows(void **state) {
    (void)state;
    static const double rows[][3] = {
        {NAN, 1, 2},
        {INFINITY, 1, 2},
        {-INFINITY, -INFINITY, -INFINITY},
    };
    struct numerics nu = simulated_numerics(&algorithms[6], 3, 1);
    for (size_t i = 0; i < 3; i++) {
        for (const struct op *op = ops; op->name != NULL; op++) {
            if (!op_is_matrix(op))
                continue;
            struct enclosure want[3];
            double budget[3] = {-1, -1, -1};
            enclose(want, op->name, rows[i], 3);
            budget_of(budget, op->name, rows[i], 3, want, &nu);
            for (size_t j = 0; j < (op->result == OP_PER_ROW ? 1 : 3); j++)
                CHECK(budget[j] == 0, "%s, row %zu: %g", op->name, i, budget[j]);
        }
    }
    static const double masked[] = {-INFINITY, 1, 2};
    struct enclosure want[3];
    double budget[3];
    enclose(want, "softmax", masked, 3);
    budget_of(budget, "softmax", masked, 3, want, &nu);
    assert_true(budget[0] == 0 && budget[1] > 0 && budget[2] > 0);

    /* an empty row that is to be uniform: one division */
    struct oracle_row uniform = {.x = rows[2], .cols = 3, .empty_row = EMPTY_UNIFORM};
    const struct op *softmax = op_find("softmax");
    assert_int_equal(softmax->enclose(want, &uniform), OK);
    assert_int_equal(softmax->budget(budget, &uniform, want, &nu), OK);
    assert_true(rho_f32(1.0f / 3, want[0], budget[0]) <= 1 &&
                rho_f32(nextafterf(1.0f / 3, 1), want[0], budget[0]) > 1);
}

/* A maximum so large that lse, as subtracted, is off by more than 1: nothing is known, not even of small results. */
static void test_no_bound_by_lse(void **state) {
    (void)state;
    const struct algorithm alg = {.exp = EXP_EXPF};
    struct numerics nu = simulated_numerics(&alg, 2, 1);
    double x[] = {0x1p31, 0x1p31 - 256}, budget[2];
    struct enclosure want[2];
    enclose(want, "softmax", x, 2);
    budget_of(budget, "softmax", x, 2, want, &nu);
    assert_true(budget[0] == INFINITY && budget[1] == INFINITY);
    x[0] = 256;
    x[1] = 0;
    enclose(want, "softmax", x, 2);
    budget_of(budget, "softmax", x, 2, want, &nu);
    assert_true(budget[0] < 0x1p-14 && budget[1] < 0x1p-148);
}

/* Folded log2(e) far from zero: the rounded maximum alone carries ex2 out of range. */
static void test_no_bound(void **state) {
    (void)state;
    double x[] = {0x1p40, 0x1p40}, budget[2];
    struct enclosure want[2];
    struct numerics nu = simulated_numerics(&algorithms[5], 2, 1);
    enclose(want, "softmax", x, 2);
    budget_of(budget, "softmax", x, 2, want, &nu);
    assert_true(budget[0] == INFINITY);
    x[0] = x[1] = 0x1p20;
    budget_of(budget, "softmax", x, 2, want, &nu);
    assert_true(budget[0] < 0x1p-18);
}

/*
 * The classical bound of the shifted form, relative to each result: (n + 2 + 2 (max - min)) u, of
 * Blanchard, Higham and Higham, IMA J. Numer. Anal. 41 (2021), for sums in any order and an exp of
 * error u.  Ours grants exp 2 ulp, but knows the tree and each argument's own rounding.
 */
static void test_tighter_than_classical(void **state) {
    (void)state;
    enum { COLS = 4096, THREADS = 256 };
    static double x[COLS], budget[COLS];
    static struct enclosure want[COLS];
    const enum row_kind kinds[] = {ROW_NORMAL, ROW_WIDE, ROW_PEAK, ROW_TIES};
    struct rng rng = rng_from_seed(33);
    double worst = INFINITY;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct numerics nu = simulated_numerics(&algorithms[0], COLS, THREADS);
        assert_true(nu.exp == EXP_EXPF && nu.rescale == RESCALE_NONE && nu.sum_height == 23);
        row_make(x, COLS, kinds[k], &rng);
        double most = x[0], least = x[0], nearest = INFINITY;
        for (size_t j = 0; j < COLS; j++) {
            most = fmax(most, x[j]);
            least = fmin(least, x[j]);
        }
        const double classical = (COLS + 2 + 2 * (most - least)) * 0x1p-24;
        enclose(want, "softmax", x, COLS);
        budget_of(budget, "softmax", x, COLS, want, &nu);
        for (size_t j = 0; j < COLS; j++)
            if (want[j].lo >=
                0x1p-120) /* no floor of underflow, which the classical one leaves out */
                nearest = fmin(nearest, classical * want[j].lo / budget[j]);
        print_message("%s, %d columns over %.1f: budgets %.1f times tighter at least\n",
                      row_kind_name(kinds[k]), COLS, most - least, nearest);
        worst = fmin(worst, nearest);
    }
    assert_true(worst >= 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_sum_overflow),
        cmocka_unit_test(test_max),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_worst_exponentials),
        cmocka_unit_test(test_climb),
        cmocka_unit_test(test_first_order),
        cmocka_unit_test(test_first_order_variants),
        cmocka_unit_test(test_lse_and_log_softmax),
        cmocka_unit_test(test_half_outputs),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_two_orders),
        cmocka_unit_test(test_wrong_kernels),
        cmocka_unit_test(test_wrong_sums),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_special_rows),
        cmocka_unit_test(test_no_bound),
        cmocka_unit_test(test_no_bound_by_lse),
        cmocka_unit_test(test_tighter_than_classical),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
