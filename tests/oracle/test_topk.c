/*
 * tests/oracle/test_topk.c - softmax_topk: ranks and probabilities against Arb, special rows, which
 * ranks near-ties may take, and budgets against correct kernels and wrong ones.
 */
#include "oracle_test.h"

#include <math.h>

#include "ball.h"
#include "judge.h"
#include "oracle/oracle.h"
#include "oracle/topk.h"
#include "rows.h"
#include "simulate.h"

enum { MAX_COLS = 512, MAX_K = 64, PREC = 400 };

static void enclose(size_t *index, struct enclosure *p, const struct topk_row *row) {
    assert_int_equal(softmax_topk_enclose(index, p, row), OK);
}

/* ---- enclosures ------------------------------------------------------------------------------ */

/* sum of e^(x - shift) over all entries, or over the chosen ones. */
static void sum_by_arb(arb_t sum, const struct topk_row *row, const size_t *index, double shift) {
    arb_t t, m;
    arb_init(t);
    arb_init(m);
    arb_set_d(m, shift);
    arb_zero(sum);
    for (size_t i = 0; i < (row->renormalise ? row->k : row->row.cols); i++) {
        double x = row->row.x[row->renormalise ? index[i] : i];
        if (isinf(x))
            continue;
        arb_set_d(t, x);
        arb_sub(t, t, m, 2 * PREC);
        arb_exp(t, t, PREC);
        arb_add(sum, sum, t, PREC);
    }
    arb_clear(t);
    arb_clear(m);
}

static void test_arb(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(120);
    double x[100];
    size_t index[MAX_K];
    struct enclosure p[MAX_K];
    arb_t sum, want, m;
    arb_init(sum);
    arb_init(want);
    arb_init(m);
    for (size_t i = 0; i < times(120); i++) {
        size_t cols = 1 + (size_t)rng_below(&rng, 100);
        row_make(x, cols, (enum row_kind)(i % ROW_KINDS), &rng);
        struct topk_row row = {.row = {.x = x, .cols = cols, .empty_row = EMPTY_NAN}, .renormalise = i % 2};
        row.k = 1 + (size_t)rng_below(&rng, cols < MAX_K ? cols : MAX_K);
        enclose(index, p, &row);
        sum_by_arb(sum, &row, index, x[index[0]]);
        for (size_t r = 0; r < row.k; r++) {
            /* nothing left out is larger; ties go up in index */
            for (size_t j = 0; j < cols; j++) {
                bool before = x[j] > x[index[r]] || (x[j] == x[index[r]] && j < index[r]);
                bool placed = false;
                for (size_t s = 0; s < r; s++)
                    placed = placed || index[s] == j;
                assert_true(before == placed);
            }
            if (isinf(x[index[r]])) {
                assert_true(is_exactly(p[r], 0));
                continue;
            }
            arb_set_d(want, x[index[r]]);
            arb_set_d(m, x[index[0]]);
            arb_sub(want, want, m, 2 * PREC);
            arb_exp(want, want, PREC);
            arb_div(want, want, sum, PREC);
            assert_true(meets(p[r], want));
        }
    }
    arb_clear(sum);
    arb_clear(want);
    arb_clear(m);
}

static void test_special(void **state) {
    (void)state;
    size_t index[4];
    struct enclosure p[4];
    double x[4] = {2, NAN, 3, 3};
    struct topk_row row = {.row = {.x = x, .cols = 4, .empty_row = EMPTY_ZERO}, .k = 3};
    enclose(index, p, &row);
    assert_true(enclosure_is_nan(p[0]) && index[2] == SIZE_MAX);
    x[1] = INFINITY;
    enclose(index, p, &row);
    assert_true(enclosure_is_nan(p[2]) && index[0] == SIZE_MAX);
    x[1] = -INFINITY;
    row.k = 4;
    enclose(index, p, &row);
    assert_true(index[0] == 2 && index[1] == 3 && index[2] == 0 && index[3] == 1);
    assert_true(p[0].lo == p[1].lo && is_exactly(p[3], 0));
    x[0] = x[2] = x[3] = -INFINITY;
    enclose(index, p, &row);
    assert_true(index[0] == 0 && index[3] == 3 && is_exactly(p[0], 0));
    row.row.empty_row = EMPTY_UNIFORM;
    enclose(index, p, &row);
    assert_true(is_exactly(p[2], 0.25));
    x[0] = -0.0, x[1] = 0.0, x[2] = 0.0, x[3] = -0.0; /* all equal */
    row.k = 2;
    row.renormalise = true;
    enclose(index, p, &row);
    assert_true(index[0] == 0 && index[1] == 1 && is_exactly(p[1], 0.5));
    row.k = 5;
    assert_int_equal(softmax_topk_enclose(index, p, &row), ERR_USAGE);
    row.k = 0;
    enclose(index, p, &row);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static const struct algorithm algorithms[] = {
    {.name = "expf", .exp = EXP_EXPF, .divide = DIVIDE_IEEE},
    {.name = "__expf", .exp = EXP_FAST, .divide = DIVIDE_RECIPROCAL, .flush = true},
    {.name = "online expf", .exp = EXP_EXPF, .rescale = RESCALE_ONLINE, .divide = DIVIDE_IEEE},
};

/* The k largest of key[], of equal ones the smaller index first; quadratic, and plain. */
static void choose_largest(size_t *index, const float *key, size_t cols, size_t k) {
    bool used[MAX_COLS] = {false};
    for (size_t r = 0; r < k; r++) {
        size_t best = cols;
        for (size_t i = 0; i < cols; i++)
            if (!used[i] && (best == cols || key[i] > key[best]))
                best = i;
        used[best] = true;
        index[r] = best;
    }
}

/* rho of the computed probabilities of the true ranks. */
static double worst_rho(const struct topk_row *row, const struct numerics *nu, const float *y) {
    size_t index[MAX_K];
    struct enclosure want[MAX_K];
    double budget[MAX_K], worst = 0;
    enclose(index, want, row);
    assert_int_equal(softmax_topk_budget(budget, row, index, want, nu), OK);
    float total = 0;
    for (size_t r = 0; r < row->k; r++)
        total += y[index[r]];
    for (size_t r = 0; r < row->k; r++) {
        float got = row->renormalise ? y[index[r]] / total : y[index[r]];
        worst = fmax(worst, rho_of(&dtypes[DT_F32], got, want[r], budget[r]));
    }
    return worst;
}

static void test_kernels(void **state) {
    (void)state;
    static double x[MAX_COLS];
    static float y[MAX_COLS], key[MAX_COLS];
    static const size_t sizes[] = {2, 3, 5, 17, 64, MAX_COLS};
    for (size_t a = 0; a < sizeof algorithms / sizeof algorithms[0]; a++) {
        const struct algorithm *alg = &algorithms[a];
        struct rng rng = rng_from_seed(121 + a);
        double worst = 0, worst_renormalised = 0;
        size_t moved = 0;
        for (size_t i = 0; i < times(240); i++) {
            size_t cols = sizes[i % 6], threads = i % 2 ? 1 : 32;
            enum row_kind kind = (enum row_kind)(i / 6 % ROW_KINDS);
            row_make(x, cols, kind, &rng);
            if (i % 5 == 0) /* near-ties: neighbours in f32, whose probabilities often coincide */
                for (size_t j = 0; j < cols; j++)
                    x[j] = 40 + (double)rng_below(&rng, 8) * 0x1p-18;
            struct topk_row row = {.row = {.x = x, .cols = cols, .empty_row = EMPTY_NAN}, .renormalise = i % 3 == 0};
            row.k = 1 + (size_t)rng_below(&rng, cols < MAX_K ? cols : MAX_K);
            struct numerics nu = simulated_numerics(alg, cols, threads);
            nu.divide_first = true;
            nu.sum_height = fmax(nu.sum_height, (double)row.k);
            simulate_softmax(y, x, cols, threads, alg, &rng);
            double r = worst_rho(&row, &nu, y);
            CHECK(r <= 1, "%s, %s row %zu of %zu, k %zu: rho %g", alg->name, row_kind_name(kind), i,
                  cols, row.k, r);
            double *kept = row.renormalise ? &worst_renormalised : &worst;
            *kept = fmax(*kept, r);

            size_t got[MAX_K], wrong;
            for (size_t j = 0; j < cols; j++)
                key[j] = (float)x[j];
            choose_largest(got, key, cols, row.k);
            nu.topk = TOPK_BY_INPUT;
            assert_int_equal(softmax_topk_judge(&wrong, &row, got, &nu), OK);
            assert_true(wrong == row.k);
            choose_largest(got, y, cols, row.k);
            assert_int_equal(softmax_topk_judge(&wrong, &row, got, &nu), OK);
            moved += wrong < row.k;
            nu.topk = TOPK_BY_PROBABILITY;
            assert_int_equal(softmax_topk_judge(&wrong, &row, got, &nu), OK);
            CHECK(wrong == row.k, "%s, %s row %zu: rank %zu cannot be %zu", alg->name,
                  row_kind_name(kind), i, wrong, got[wrong]);
        }
        print_message("softmax_topk, %s: worst rho %.3f, renormalised %.3f, %zu rows reordered\n",
                      alg->name, worst, worst_renormalised, moved);
        assert_true(worst >= 0.3 && worst_renormalised >= 0.3 && moved > 0);
    }
}

static size_t judged(const struct topk_row *row, const size_t *got, enum topk_variant variant) {
    struct numerics nu = simulated_numerics(&algorithms[0], row->row.cols, 1);
    size_t wrong;
    nu.topk = variant;
    assert_int_equal(softmax_topk_judge(&wrong, row, got, &nu), OK);
    return wrong;
}

static void test_wrong_ranks(void **state) {
    (void)state;
    double x[] = {1, 3, 2, 3, nextafterf(3, 0)};
    struct topk_row row = {.row = {.x = x, .cols = 5, .empty_row = EMPTY_NAN}, .k = 3};
    static const struct {
        size_t got[3], by_input, ties_free, by_probability; /* the first wrong rank */
    } table[] = {
        {{1, 3, 4}, 3, 3, 3}, {{3, 1, 4}, 0, 3, 3}, {{1, 4, 3}, 1, 1, 3}, {{4, 1, 3}, 0, 0, 3},
        {{1, 3, 2}, 2, 2, 2}, {{1, 1, 3}, 1, 1, 1}, {{1, 3, 5}, 2, 2, 2}, {{2, 1, 3}, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(judged(&row, table[i].got, TOPK_BY_INPUT), table[i].by_input);
        assert_int_equal(judged(&row, table[i].got, TOPK_TIES_FREE), table[i].ties_free);
        assert_int_equal(judged(&row, table[i].got, TOPK_BY_PROBABILITY), table[i].by_probability);
    }
    x[0] = NAN; /* nothing to judge */
    assert_int_equal(judged(&row, table[7].got, TOPK_BY_INPUT), 3);
}

/* A probability over the wrong sum: the tail dropped, or renormalised where it was not asked. */
static void test_faults(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(125);
    double x[100], budget[8];
    float y[100];
    size_t index[8];
    struct enclosure want[8];
    row_make(x, 100, ROW_NORMAL, &rng);
    struct topk_row row = {.row = {.x = x, .cols = 100, .empty_row = EMPTY_NAN}, .k = 8};
    struct numerics nu = simulated_numerics(&algorithms[0], 100, 1);
    enclose(index, want, &row);
    assert_int_equal(softmax_topk_budget(budget, &row, index, want, &nu), OK);
    simulate_softmax(y, x, 96, 1, &algorithms[0], &rng);
    size_t seen = 0;
    float total = 0;
    for (size_t r = 0; r < 8; r++) {
        seen += index[r] < 96 && rho_at_least(&dtypes[DT_F32], y[index[r]], want[r], budget[r]) > 1;
        total += index[r] < 96 ? y[index[r]] : 0;
    }
    assert_true(seen >= 5);
    assert_true(rho_at_least(&dtypes[DT_F32], (float)want[0].lo / total, want[0], budget[0]) > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arb),     cmocka_unit_test(test_special),
        cmocka_unit_test(test_kernels), cmocka_unit_test(test_wrong_ranks),
        cmocka_unit_test(test_faults),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    flint_cleanup();
    oracle_thread_done();
    return failed;
}
