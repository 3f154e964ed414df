/*
 * tests/oracle/test_tier.c - the tiers against MPFR: their exps, their enclosures, and the lower
 * bounds on budgets.
 *
 *   test_tier exp       checks the exp on every float, on every level, against double-double's,
 *                       which the test itself holds against MPFR
 *   test_tier quick     checks the short exp on every float, on every level, against the exp
 */
#include "tests/oracle/oracle_test.h"

#include <mpfr.h>
#include <string.h>

#include "oracle/oracle.h"
#include "oracle/simd_row.h"
#include "oracle/simd_wide.h"
#include "oracle/simd_within.h"
#include "oracle/tier.h"
#include "oracle/ulp.h"
#include "tests/oracle/rows.h"
#include "tests/oracle/simulate.h"

#define MAX_COLS 600

static const struct row_simd *const levels[] = {&row_simd_v2, &row_simd_v3, &row_simd_v4};
static const struct within_simd *const within_levels[] = {&within_simd_v2, &within_simd_v3,
                                                          &within_simd_v4};
static const struct wide_simd *const wide_levels[] = {&wide_simd_v2, &wide_simd_v3, &wide_simd_v4};

/* Those up to the one that this machine runs. */
static size_t level_count(void) {
    size_t n = 1;
    while (levels[n - 1] != row_simd())
        n++;
    return n;
}

/* ---- exp ------------------------------------------------------------------------------------- */

/* |e - e^(x - max)| in units of 2^-53 e^(x - max); the argument as exact as MPFR can have it. */
static double exp_error(double e, double x, double max) {
    static mpfr_t t, want;
    static bool ready;
    if (!ready) {
        mpfr_init2(t, 2200);
        mpfr_init2(want, 120);
        ready = true;
    }
    mpfr_set_d(t, x, MPFR_RNDN);
    mpfr_sub_d(t, t, max, MPFR_RNDN);
    mpfr_exp(want, t, MPFR_RNDN);
    mpfr_set_d(t, e, MPFR_RNDN);
    mpfr_sub(t, t, want, MPFR_RNDN);
    mpfr_div(t, t, want, MPFR_RNDN);
    return fabs(mpfr_get_d(t, MPFR_RNDN)) * 0x1p53;
}

/* Of every level that this machine has; MPFR is asked once for the same bits. */
static double worst_exp_error(const double *x, size_t n, double max) {
    static double e[3][1024];
    double worst = 0;
    size_t far;
    for (size_t l = 0; l < level_count(); l++)
        levels[l]->exps(e[l], &far, x, n, max);
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l < level_count(); l++) {
            double v = e[l][i], error = v == 0 ? 0 : INFINITY;
            if (l > 0 && v == e[l - 1][i])
                continue;
            if (x[i] - max >= FAR)
                error = exp_error(v, x[i], max);
            CHECK(error <= EXP_ERROR * 0x1p53,
                  "%s: exp(%a - %a) = %a is off by %.3f units of 2^-53", levels[l]->name, x[i], max,
                  v, error);
            worst = fmax(worst, error);
        }
    return worst;
}

/* The same by the double-double exponential, whose own error is 2^-98, for x <= 0: fast. */
static double worst_exp_error_by_dd(const double *x, size_t n) {
    static double e[1024], hi[1024], lo[1024];
    double worst = 0;
    size_t far;
    wide_levels[level_count() - 1]->exps(hi, lo, &far, x, n, 0, 0);
    for (size_t l = 0; l < level_count(); l++) {
        levels[l]->exps(e, &far, x, n, 0);
        for (size_t i = 0; i < n; i++) {
            double error = fabs((e[i] - hi[i]) - lo[i]) / hi[i] * 0x1p53 + 0x1p-40;
            CHECK(error <= EXP_ERROR * 0x1p53, "%s: exp(%a) = %a is off by %.3f units of 2^-53",
                  levels[l]->name, x[i], e[i], error);
            worst = fmax(worst, error);
        }
    }
    return worst;
}

/* Floats -2^-30 ... FAR, every `stride`th: those below 2^-30 in magnitude round like 1 + t. */
static double exp_sweep(uint32_t stride, bool by_dd) {
    double x[1024], worst = 0;
    size_t n = 0;
    uint32_t last = dtype_from_double(&dtypes[DT_F32], FAR, ROUND_NEAREST);
    for (uint64_t bits = 0xb0800000; bits <= last; bits += stride) {
        x[n++] = dtype_to_double(&dtypes[DT_F32], (uint32_t)bits);
        if (n == 1024 || bits + stride > last) {
            worst = fmax(worst, by_dd ? worst_exp_error_by_dd(x, n) : worst_exp_error(x, n, 0));
            n = 0;
        }
    }
    return worst;
}

static void exp_is_within_its_bound(void **state) {
    (void)state;
    double worst = exp_sweep(4999, false);
    struct rng rng = rng_from_seed(1);
    for (size_t k = 0; k < times(300); k++) { /* x - max inexact in double: any two floats */
        double x[64], max = scaled_unit(&rng, 1, -40, 50) * (k % 2 ? 1 : -1);
        for (size_t i = 0; i < 64; i++)
            x[i] = (float)(max - scaled_unit(&rng, 0, -30, 40)), x[i] = fmin(x[i], (float)max);
        worst = fmax(worst, worst_exp_error(x, 64, (float)max));
    }
    for (int k = -865; k < 0; k++) /* the ends of the reduced argument's range */
        for (int side = -1; side <= 1; side++) {
            double x = (float)((k + 0.5) * M_LN2 + side * 1e-6);
            if (x >= FAR)
                worst = fmax(worst, worst_exp_error(&x, 1, 0));
        }
    print_message("worst error of exp: %.4f of 2^-53, bound %.2f\n", worst, EXP_ERROR * 0x1p53);
    CHECK(worst > 1, "the sweep saw no error worth the name: %.3f", worst);
    double one[] = {5, 5, 5}, e[3];
    size_t far;
    row_simd()->exps(e, &far, one, 3, 5);
    assert_true(e[0] == 1 && e[1] == 1 && e[2] == 1);
}

/* ---- the other exponentials ------------------------------------------------------------------- */

/* Of hi + lo, in units of e^t 2^-98. */
static double dd_exp_error(double hi, double lo, double x, double max) {
    static mpfr_t t, want;
    static bool ready;
    if (!ready) {
        mpfr_init2(t, 2200);
        mpfr_init2(want, 240);
        ready = true;
    }
    mpfr_set_d(t, x, MPFR_RNDN);
    mpfr_sub_d(t, t, max, MPFR_RNDN);
    mpfr_exp(want, t, MPFR_RNDN);
    mpfr_set_d(t, hi, MPFR_RNDN);
    mpfr_add_d(t, t, lo, MPFR_RNDN);
    mpfr_sub(t, t, want, MPFR_RNDN);
    mpfr_div(t, t, want, MPFR_RNDN);
    return fabs(mpfr_get_d(t, MPFR_RNDN)) / DD_EXP_ERROR;
}

static void draw_arguments(double *x, double *max, size_t n, size_t k, struct rng *rng) {
    *max = k % 3 == 0 ? 0 : (float)scaled_unit(rng, 1, -40, 50) * (k % 2 ? 1 : -1);
    for (size_t i = 0; i < n; i++) {
        double t = scaled_unit(rng, 0, -30, 40);
        x[i] = k % 5 == 0 ? *max - t : (float)(*max - t);
        if (k % 4 == 0) /* the ends of the reduced argument's range */
            x[i] =
                *max - ((double)rng_below(rng, 865) + 0.5) * M_LN2 + (rng_unit(rng) - 0.5) * 1e-6;
        x[i] = fmax(fmin(x[i], *max), *max + FAR);
    }
}

/* Each level's, against MPFR at 240 bits. */
static void dd_exp_is_within_its_bound(void **state) {
    (void)state;
    double x[64], hi[64], lo[64], max, worst = 0;
    size_t far;
    struct rng rng = rng_from_seed(11);
    for (size_t k = 0; k < times(600); k++) {
        draw_arguments(x, &max, 64, k, &rng);
        for (size_t l = 0; l < level_count(); l++) {
            wide_levels[l]->exps(hi, lo, &far, x, 64, max, 0);
            for (size_t i = 0; i < 64; i++)
                if (x[i] - max >= FAR) {
                    double error = dd_exp_error(hi[i], lo[i], x[i], max);
                    CHECK(error <= 1, "v%zu: exp(%a - %a) is off by %g of its bound", l + 2, x[i],
                          max, error);
                    worst = fmax(worst, error);
                }
        }
    }
    print_message("worst error of the double-double exp: %.4f of 2^-98\n", worst);
    CHECK(worst > 0x1p-8, "no error worth the name: %g", worst);
}

static double quick_exps(double *e, size_t level, const double *x, size_t n, double max) {
    static double errors[4096];
    const struct softmax_terms t = {.max = max, .exp = (int)EXP_EXPF};
    return within_levels[level]->weigh(e, errors, x, n, &t).size;
}

/* By the other exponential, whose own error is 2^-52. */
static double worst_quick_error(const double *x, size_t n, double max, size_t level) {
    static double quick[4096], e[4096];
    double worst = 0;
    size_t far;
    row_simd()->exps(e, &far, x, n, max);
    quick_exps(quick, level, x, n, max);
    for (size_t i = 0; i < n; i++) {
        bool near = x[i] - max >= FAR;
        CHECK(near || quick[i] == 0, "v%zu: exp(%a) is not 0", level + 2, x[i] - max);
        double error = near ? fabs(quick[i] - e[i]) / e[i] + 0x1p-52 : 0;
        CHECK(error <= QUICK_ERROR, "v%zu: exp(%a - %a) = %a is off by %g", level + 2, x[i], max,
              quick[i], error);
        worst = fmax(worst, error);
    }
    return worst;
}

/* Floats 0 ... FAR, every `stride`th. */
static double quick_sweep(uint32_t stride) {
    double x[4096], worst = 0;
    size_t n = 0;
    uint32_t last = dtype_from_double(&dtypes[DT_F32], FAR, ROUND_NEAREST);
    for (uint64_t bits = 0x80000000; bits <= last; bits += stride) {
        x[n++] = dtype_to_double(&dtypes[DT_F32], (uint32_t)bits);
        if (n == 4096 || bits + stride > last) {
            for (size_t l = 0; l < level_count(); l++)
                worst = fmax(worst, worst_quick_error(x, n, 0, l));
            n = 0;
        }
    }
    return worst;
}

static void quick_exp_is_within_its_bound(void **state) {
    (void)state;
    double x[64], max, worst = quick_sweep(1999);
    struct rng rng = rng_from_seed(12);
    for (size_t k = 0; k < times(2000); k++) {
        draw_arguments(x, &max, 64, k, &rng);
        for (size_t l = 0; l < level_count(); l++)
            worst = fmax(worst, worst_quick_error(x, 64, max, l));
    }
    print_message("worst error of the short exp: %.4f of 2^-42\n", worst / QUICK_ERROR);
    CHECK(worst > 0x1p-46, "the sweep saw no error worth the name: %g", worst);
    for (size_t l = 0; l < level_count(); l++) {
        double one[] = {5, 5, 5, -INFINITY}, e[4];
        assert_true(quick_exps(e, l, one, 4, 5) == 3);
        assert_true(e[0] == 1 && e[1] == 1 && e[2] == 1 && e[3] == 0);
    }
}

/* ---- enclosures ------------------------------------------------------------------------------ */

static double size_of(struct enclosure e) {
    return fmax(fabs(e.lo), fabs(e.hi));
}

static double largest(const struct oracle_row *row) {
    double max = 0;
    for (size_t j = 0; j < row->cols; j++)
        max = isfinite(row->x[j]) ? fmax(max, fabs(row->x[j])) : max;
    return max;
}

static void check_tier(const struct op *op, enum tier first, const struct oracle_row *row,
                       const struct enclosure *slow, const char *what) {
    static struct enclosure quick[MAX_COLS];
    enum tier tier = first;
    size_t n = op->result == OP_PER_ROW ? 1 : row->cols;
    assert_int_equal(tier_enclose(quick, &tier, op, row), OK);
    assert_true(tier == first || tier == TIER_MPFR);
    for (size_t j = 0; j < n; j++) {
        if (enclosure_is_nan(slow[j])) {
            assert_true(enclosure_is_nan(quick[j]));
            continue;
        }
        CHECK(quick[j].lo <= slow[j].lo && slow[j].hi <= quick[j].hi,
              "%s, %s row of %zu, [%zu]: tier %s [%a, %a], MPFR [%a, %a]", op->name, what,
              row->cols, j, tier_name(tier), quick[j].lo, quick[j].hi, slow[j].lo, slow[j].hi);
        double size = size_of(slow[j]);
        double width = quick[j].lo == quick[j].hi ? 0 : quick[j].hi - quick[j].lo;
        bool softmax = strcmp(op->name, "softmax") == 0;
        if (softmax && slow[j].lo == 0 && slow[j].hi == 0) /* masked: nothing, not next to nothing */
            CHECK(quick[j].lo == 0 && quick[j].hi == 0, "%s row of %zu, [%zu]: tier %s [%a, %a]",
                  what, row->cols, j, tier_name(tier), quick[j].lo, quick[j].hi);
        /* Two steps: MPFR's and the next; a sum's third errors are below 2^-159 of its terms. */
        double least = strcmp(op->name, "sum") == 0 ? 0x1p-140 * largest(row) : 0x1p-850;
        if (softmax || tier == TIER_DD)
            CHECK(width <= (tier == TIER_DD ? 0x1p-51 : 0x1p-47) * size + least,
                  "%s, %s row of %zu: tier %s has the width %g", op->name, what, row->cols,
                  tier_name(tier), width / size);
    }
}

static void check_enclosures(const struct op *op, const double *x, size_t cols, const char *what) {
    static struct enclosure slow[MAX_COLS];
    const struct oracle_row row = {.x = x, .cols = cols, .empty_row = EMPTY_UNIFORM};
    assert_int_equal(op->enclose(slow, &row), OK);
    for (enum tier tier = TIER_F64; tier < TIER_MPFR; tier++)
        check_tier(op, tier, &row, slow, what);
}

static void enclosures_contain_those_of_mpfr(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 7, 8, 9, 33, 257};
    double x[MAX_COLS];
    struct rng rng = rng_from_seed(2);
    for (const struct op *op = ops; op_is_matrix(op); op++)
        for (int kind = 0; kind < ROW_KINDS; kind++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                for (size_t k = 0; k < times(2); k++) {
                    row_make(x, sizes[s], (enum row_kind)kind, &rng);
                    check_enclosures(op, x, sizes[s], row_kind_name((enum row_kind)kind));
                }
}

static void special_rows_are_those_of_mpfr(void **state) {
    (void)state;
    static const double special[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1, 3e38, -3e38, 0x1p-149};
    const size_t count = sizeof special / sizeof *special;
    struct rng rng = rng_from_seed(3);
    double x[20];
    for (const struct op *op = ops; op->name != NULL; op++) {
        if (!op_is_matrix(op))
            continue;
        check_enclosures(op, x, 0, "empty");
        for (size_t k = 0; k < times(400); k++) {
            size_t cols = 1 + rng_below(&rng, 20), from = rng_below(&rng, 3);
            for (size_t j = 0; j < cols; j++)
                x[j] = special[from + rng_below(&rng, count - from)];
            check_enclosures(op, x, cols, "special");
        }
    }
}

/* Terms of three sizes, the two larger ones each with its opposite: what is left of the sum is what
 * its errors' errors hold, and those come many at a time, in any lane. */
static void errors_of_errors_count(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(6);
    double x[MAX_COLS];
    for (size_t n = 0; n < times(100); n++) {
        size_t cols = 0, pairs = 2 + rng_below(&rng, 12), rest = 1 + rng_below(&rng, 60);
        for (size_t k = 0; k < pairs; k++) {
            double v = (float)scaled_unit(&rng, 1, k % 2 ? 100 : 40, 10);
            x[cols++] = v;
            x[cols++] = -v;
        }
        for (size_t k = 0; k < rest; k++)
            x[cols++] = (float)scaled_unit(&rng, 1, -20, 10);
        row_shuffle(x, cols, &rng);
        check_enclosures(op_find("sum"), x, cols, "three sizes");
    }
}

/* Sums without any rounding are points, whatever their order of magnitude. */
static void exact_sums_are_points(void **state) {
    (void)state;
    double x[100];
    struct enclosure e;
    for (int j = 0; j < 100; j++)
        x[j] = (j - 30) * 0x1p-20;
    enum tier tier = TIER_F64;
    const struct oracle_row row = {.x = x, .cols = 100};
    assert_int_equal(tier_enclose(&e, &tier, op_find("sum"), &row), OK);
    assert_int_equal(tier, TIER_F64);
    assert_true(e.lo == e.hi && e.lo == (99 * 50 - 3000) * 0x1p-20);
}

/* The exact sum s + c of terms is one number, however it was split. */
static void levels_agree(void **state) {
    (void)state;
    double x[MAX_COLS], e[2][MAX_COLS];
    struct rng rng = rng_from_seed(4);
    for (size_t k = 0; k < times(200); k++) {
        size_t cols = 1 + rng_below(&rng, 300), far[2];
        row_make(x, cols, (enum row_kind)(k % ROW_KINDS), &rng);
        struct row_scan scan = levels[0]->scan(x, cols);
        levels[0]->exps(e[0], &far[0], x, cols, scan.max);
        struct row_sum a = levels[0]->sum(x, cols, 0);
        for (size_t l = 1; l < level_count(); l++) {
            struct row_scan other = levels[l]->scan(x, cols);
            assert_memory_equal(&scan, &other, sizeof scan);
            levels[l]->exps(e[1], &far[1], x, cols, scan.max);
            assert_int_equal(far[0], far[1]);
            for (size_t j = 0; j < cols; j++) /* each within EXP_ERROR of the truth */
                assert_true(fabs(e[0][j] - e[1][j]) <= 2.01 * EXP_ERROR * e[0][j]);
            struct row_sum b = levels[l]->sum(x, cols, 0);
            double size = fabs(a.s) + a.lost + b.lost;
            if (scan.minus_inf == 0)
                assert_true(fabs((a.s - b.s) + (a.c - b.c)) <= 0x1p-90 * (size + scan.max));
        }
    }
}

/* ---- the common path ------------------------------------------------------------------------- */

static const struct algorithm algorithms[] = {
    {"expf", EXP_EXPF, RESCALE_NONE, DIVIDE_IEEE, LOG_NONE, false, false},
    {"expf flush", EXP_EXPF, RESCALE_NONE, DIVIDE_RECIPROCAL, LOG_NONE, true, false},
    {"fast", EXP_FAST, RESCALE_NONE, DIVIDE_APPROX, LOG_NONE, false, false},
    {"fast flush", EXP_FAST, RESCALE_NONE, DIVIDE_APPROX, LOG_NONE, true, false},
    {"folded", EXP_EX2_FOLDED, RESCALE_NONE, DIVIDE_IEEE, LOG_NONE, false, false},
    {"online", EXP_EXPF, RESCALE_ONLINE, DIVIDE_IEEE, LOG_NONE, false, false},
    {"online folded", EXP_EX2_FOLDED, RESCALE_ONLINE, DIVIDE_RECIPROCAL, LOG_NONE, false, false},
};

struct common {
    const struct op *op;
    struct oracle_row row;
    struct numerics nu;
    struct enclosure slow[MAX_COLS];
    double x[MAX_COLS], budget[MAX_COLS], got[MAX_COLS];
};

static bool within(struct common *c) {
    struct tier_extremes e;
    const struct oracle_row *row = &c->row;
    assert_int_equal(tier_within(&e, c->op, &row, 1, c->got, row->cols, &c->nu), OK);
    return e.within;
}

/* One element at `part` of its budget from the truth, the others on it. */
static bool within_at(struct common *c, size_t j, double part) {
    for (size_t i = 0; i < c->row.cols; i++)
        c->got[i] = c->slow[i].lo;
    c->got[j] =
        part > 0 ? c->slow[j].hi + part * c->budget[j] : c->slow[j].lo + part * c->budget[j];
    return within(c);
}

/* Above its budget (by more than a double shows) no element is within; just below it, most are. */
static void the_common_path_is_sharp(void **state) {
    (void)state;
    static struct common c;
    struct rng rng = rng_from_seed(5);
    size_t seen = 0, sharp = 0;
    for (size_t k = 0; k < times(1500); k++) {
        const struct algorithm *a = &algorithms[k % (sizeof algorithms / sizeof *algorithms)];
        size_t cols = 1 + rng_below(&rng, 70);
        row_make(c.x, cols, (enum row_kind)rng_below(&rng, ROW_KINDS), &rng);
        c.op = op_find("softmax");
        c.row = (struct oracle_row){.x = c.x, .cols = cols};
        c.nu = simulated_numerics(a, cols, 1 + rng_below(&rng, cols));
        c.nu.out = &dtypes[k % 5 == 0 ? DT_F16 : k % 5 == 1 ? DT_BF16 : DT_F32];
        assert_int_equal(c.op->enclose(c.slow, &c.row), OK);
        assert_int_equal(c.op->budget(c.budget, &c.row, c.slow, &c.nu), OK);
        size_t j = rng_below(&rng, cols);
        if (isinf(c.budget[j]))
            continue;
        double over = 1 + 0x1p-25, nudge = c.budget[j] == 0 ? 0x1p-200 : 0;
        if (nudge > 0) {
            within_at(&c, j, 0);
            c.got[j] += nudge;
            CHECK(!within(&c), "%s: a masked entry is off and passes", a->name);
            continue;
        }
        CHECK(!within_at(&c, j, over) && !within_at(&c, j, -over),
              "%s: [%zu] of %zu beyond its budget passes, x %a, budget %a", a->name, j, cols,
              c.x[j], c.budget[j]);
        seen++;
        if (a->rescale == RESCALE_NONE && within_at(&c, j, 0)) /* covered at all */
            sharp += within_at(&c, j, 1 - 0x1p-15) && within_at(&c, j, -1 + 0x1p-15);
    }
    print_message("%zu elements, %zu of them decided to 2^-15 of their budget\n", seen, sharp);
    CHECK(sharp * 2 > seen, "the lower bound is far from the budget: %zu of %zu", sharp, seen);
}

/* 1 over 1: nothing rounds, so nothing is off. */
static void one_entry_is_exact(struct common *c) {
    struct tier_extremes e;
    c->x[0] = c->x[1] = -INFINITY;
    c->x[1] = 3;
    c->op = op_find("softmax");
    c->row = (struct oracle_row){.x = c->x, .cols = 2};
    c->nu = simulated_numerics(&algorithms[0], 2, 1);
    c->got[0] = 0;
    c->got[1] = 1;
    const struct oracle_row *row = &c->row;
    assert_int_equal(tier_within(&e, c->op, &row, 1, c->got, 2, &c->nu), OK);
    assert_true(e.within && e.rho == 0 && e.ulps == 0);
}

static void nothing_else_is_within(void **state) {
    (void)state;
    static struct common c;
    one_entry_is_exact(&c);
    static const double wrong[] = {NAN, INFINITY, -INFINITY, 0, 1, -0.25};
    for (size_t j = 0; j < 20; j++)
        c.x[j] = (double)j / 8;
    c.op = op_find("softmax");
    c.row = (struct oracle_row){.x = c.x, .cols = 20};
    c.nu = simulated_numerics(&algorithms[0], 20, 4);
    assert_int_equal(c.op->enclose(c.slow, &c.row), OK);
    assert_true(within_at(&c, 0, 0));
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
        for (size_t j = 0; j < 20; j++) {
            within_at(&c, 0, 0);
            c.got[j] = wrong[w];
            CHECK(!within(&c), "%g passes as element %zu", wrong[w], j);
        }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "exp") == 0) {
        print_message("worst error of exp, every float: %.4f of 2^-53\n", exp_sweep(1, true));
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "quick") == 0) {
        print_message("worst error of the short exp, every float: %.4f of 2^-42\n",
                      quick_sweep(1) / QUICK_ERROR);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_its_bound),
        cmocka_unit_test(dd_exp_is_within_its_bound),
        cmocka_unit_test(quick_exp_is_within_its_bound),
        cmocka_unit_test(enclosures_contain_those_of_mpfr),
        cmocka_unit_test(special_rows_are_those_of_mpfr),
        cmocka_unit_test(errors_of_errors_count),
        cmocka_unit_test(exact_sums_are_points),
        cmocka_unit_test(levels_agree),
        cmocka_unit_test(the_common_path_is_sharp),
        cmocka_unit_test(nothing_else_is_within),
    };
    int failed = cmocka_run_group_tests_name("tier", tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
