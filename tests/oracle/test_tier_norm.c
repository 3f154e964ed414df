/*
 * tests/oracle/test_tier_norm.c - the tiers of layernorm, rmsnorm, rope and softmax_topk against MPFR.
 */
#include "tests/oracle/oracle_test.h"

#include <mpfr.h>
#include <stdlib.h>
#include <string.h>

#include "oracle/simd_norm.h"
#include "oracle/tier_norm.h"
#include "oracle/tier.h"
#include "tests/oracle/rows.h"

enum { MAX_COLS = 300 };

static bool inside(struct enclosure outer, struct enclosure inner) {
    if (enclosure_is_nan(inner))
        return enclosure_is_nan(outer);
    return outer.lo <= inner.lo && inner.hi <= outer.hi;
}

static double width(struct enclosure e) {
    return e.lo == e.hi ? 0 : e.hi - e.lo;
}

/* ---- norms ------------------------------------------------------------------------------------- */

typedef status_t norm_enclose_fn(struct enclosure *, const struct norm_row *);
typedef status_t norm_tier_fn(struct enclosure *, enum tier *, const struct norm_row *);
static norm_enclose_fn *const encloses[] = {rmsnorm_enclose, layernorm_enclose};
static norm_tier_fn *const by_tier[] = {rmsnorm_tier_enclose, layernorm_tier_enclose};

enum kind { NORMAL, OFFSET, FAR_OFFSET, TINY, HUGE_SQUARES, OUTLIER, CONSTANT, SPECIAL, KINDS };

static double gauss(struct rng *rng) {
    double sum = 0;
    for (int k = 0; k < 4; k++)
        sum += rng_unit(rng) - 0.5;
    return sum * 1.7;
}

static void make_norm(double *x, size_t n, enum kind kind, struct rng *rng) {
    static const double special[] = {NAN, INFINITY, -INFINITY};
    for (size_t j = 0; j < n; j++) {
        double g = gauss(rng);
        x[j] = (float)(kind == OFFSET         ? 4000 + g
                       : kind == FAR_OFFSET   ? 0x1p23 + (double)rng_below(rng, 3)
                       : kind == TINY         ? g * 0x1p-140
                       : kind == HUGE_SQUARES ? g * 0x1p120
                       : kind == OUTLIER      ? (j == n / 2 ? 3e4 : g)
                       : kind == CONSTANT     ? 3.140625
                                              : g);
    }
    if (kind == SPECIAL)
        x[rng_below(rng, n)] = special[rng_below(rng, 3)];
}

/* How many rows each tier answered for. */
struct answers {
    size_t rows, by[TIER_COUNT];
};

static void check_norm(struct answers *a, const struct norm_row *row, int centred, enum kind kind,
                       enum tier first) {
    static struct enclosure slow[MAX_COLS], quick[MAX_COLS];
    enum tier tier = first;
    assert_int_equal(encloses[centred](slow, row), OK);
    assert_int_equal(by_tier[centred](quick, &tier, row), OK);
    a->rows++;
    a->by[tier]++;
    for (size_t j = 0; j < row->cols; j++) {
        CHECK(inside(quick[j], slow[j]),
              "kind %d, centred %d, [%zu] of %zu: %s [%a, %a], MPFR [%a, %a]", kind, centred, j,
              row->cols, tier_name(tier), quick[j].lo, quick[j].hi, slow[j].lo, slow[j].hi);
        if ((kind == CONSTANT || row->cols == 1) &&
            centred) /* 0 over a root of eps, however small that is */
            continue;
        /* Beside a sum that cancels, a few steps of double of what was added. */
        double size = fabs(slow[j].lo) + (row->bias ? fabs(row->bias[j]) : 0);
        double off = centred && kind == FAR_OFFSET ? 0x1p-30 : kind == OFFSET ? 0x1p-38 : 0x1p-42;
        if (tier == TIER_F64 && row->contract == NORM_ROUND_LAST)
            CHECK(width(quick[j]) <= off * (size + 1), "kind %d: width %g of %g", kind,
                  width(quick[j]), size);
        if (tier == TIER_DD && row->contract == NORM_ROUND_LAST)
            CHECK(width(quick[j]) <= 0x1p-51 * (size + 0x1p-20), "kind %d: width %g of %g by dd",
                  kind, width(quick[j]), size);
    }
}

static void norms_contain_those_of_mpfr(void **state) {
    (void)state;
    static double x[MAX_COLS], w[MAX_COLS], b[MAX_COLS];
    struct answers a = {0};
    struct rng rng = rng_from_seed(1);
    for (size_t n = 0; n < times(400); n++) {
        size_t cols = 1 + rng_below(&rng, n % 9 == 0 ? MAX_COLS : 40);
        enum kind kind = (enum kind)(n % KINDS);
        make_norm(x, cols, kind, &rng);
        for (size_t j = 0; j < cols; j++) {
            w[j] = (float)(1 + 0.3 * gauss(&rng));
            b[j] = (float)gauss(&rng);
        }
        if (n % 50 == 7)
            w[0] = NAN;
        struct norm_row row = {.x = x,
                               .cols = cols,
                               .weight = rng_below(&rng, 2) ? w : NULL,
                               .bias = rng_below(&rng, 2) ? b : NULL,
                               .eps = (double[]){0, 1e-5, 0x1p-160}[rng_below(&rng, 3)]};
        if (rng_below(&rng, 4) == 0) {
            row.contract = NORM_ROUND_FIRST;
            row.rounded = &dtypes[rng_below(&rng, DT_COUNT)];
        }
        for (int centred = 0; centred < 2; centred++)
            for (enum tier tier = TIER_F64; tier < TIER_MPFR; tier++)
                check_norm(&a, &row, centred, kind, tier);
    }
    print_message("norms: %zu rows, by f64 %zu, dd %zu, mpfr %zu\n", a.rows, a.by[TIER_F64],
                  a.by[TIER_DD], a.by[TIER_MPFR]);
    CHECK(a.by[TIER_MPFR] * 3 < a.rows, "MPFR for %zu of %zu rows", a.by[TIER_MPFR], a.rows);
}

static void norms_refuse_what_mpfr_refuses(void **state) {
    (void)state;
    const double x[] = {1, 2};
    struct enclosure out[2];
    enum tier tier = TIER_F64;
    struct norm_row row = {.x = x, .cols = 2, .eps = -1};
    assert_int_equal(layernorm_tier_enclose(out, &tier, &row), ERR_USAGE);
    row.eps = NAN;
    tier = TIER_F64;
    assert_int_equal(rmsnorm_tier_enclose(out, &tier, &row), ERR_USAGE);
    row = (struct norm_row){.x = x, .cols = 2, .contract = NORM_ROUND_FIRST};
    tier = TIER_F64;
    assert_int_equal(rmsnorm_tier_enclose(out, &tier, &row), ERR_USAGE);
}

/* ---- rope -------------------------------------------------------------------------------------- */

static void make_rope(struct rope_row *row, double *x, double *freq, size_t n, struct rng *rng) {
    static const double bases[] = {10000, 500000, 2, 1e6};
    for (size_t j = 0; j < row->head_dim; j++)
        x[j] = (float)gauss(rng);
    for (size_t i = 0; i < row->rotary_dim / 2; i++)
        freq[i] = (float)exp(-5 * rng_unit(rng));
    if (n % 11 == 0 && row->head_dim > 0)
        x[rng_below(rng, row->head_dim)] = n % 2 ? (double)NAN : INFINITY;
    if (n % 13 == 0)
        memset(x, 0, row->head_dim * sizeof *x);
    row->x = x;
    row->layout = n % 2 ? ROPE_INTERLEAVED : ROPE_HALF_SPLIT;
    row->base = bases[rng_below(rng, 4)];
    row->freq = n % 5 == 0 ? freq : NULL;
    row->position = (double)rng_below(rng, n % 3 == 0 ? 10 : n % 3 == 1 ? 5000 : 4000000);
    if (n % 17 == 0)
        row->position = -row->position / 3;
    if (n % 29 == 0)
        row->position = 1e12;
}

static void rope_contains_that_of_mpfr(void **state) {
    (void)state;
    enum { ROWS = 4, DIM = 80 };
    static double x[ROWS][DIM], freq[DIM];
    static struct enclosure quick[ROWS * DIM], slow[DIM];
    struct answers a = {0};
    struct rng rng = rng_from_seed(2);
    for (size_t n = 0; n < times(150); n++) {
        struct rope_row row[ROWS];
        enum tier tier[ROWS] = {TIER_F64};
        size_t dim = rng_below(&rng, DIM + 1), rotary = dim / 2 * 2;
        if (n % 4 == 0)
            rotary = rng_below(&rng, dim / 2 + 1) * 2;
        for (size_t r = 0; r < ROWS; r++) {
            row[r] = (struct rope_row){.head_dim = dim, .rotary_dim = rotary};
            make_rope(&row[r], x[r], freq, n, &rng);
            if (r % 2) /* shares its frequencies with the row before */
                row[r].base = row[r - 1].base;
        }
        assert_int_equal(rope_tier_enclose(quick, tier, row, ROWS), OK);
        for (size_t r = 0; r < ROWS; r++) {
            assert_int_equal(rope_enclose(slow, &row[r]), OK);
            a.rows++;
            a.by[tier[r]]++;
            for (size_t j = 0; j < dim; j++) {
                struct enclosure e = quick[r * dim + j];
                CHECK(inside(e, slow[j]),
                      "rope, position %g, [%zu] of %zu: [%a, %a], MPFR [%a, %a]", row[r].position,
                      j, dim, e.lo, e.hi, slow[j].lo, slow[j].hi);
                if (tier[r] == TIER_F64 && !enclosure_is_nan(e))
                    CHECK(width(e) <= 0x1p-45, "width %g", width(e));
            }
        }
    }
    print_message("rope: %zu rows, by f64 %zu, mpfr %zu\n", a.rows, a.by[TIER_F64],
                  a.by[TIER_MPFR]);
    CHECK(a.by[TIER_MPFR] * 3 < a.rows, "MPFR for %zu of %zu rows", a.by[TIER_MPFR], a.rows);
    enum tier tier = TIER_F64;
    struct rope_row odd = {.x = x[0], .head_dim = 4, .rotary_dim = 3, .base = 10};
    assert_int_equal(rope_tier_enclose(quick, &tier, &odd, 1), ERR_USAGE);
    const double bad[] = {1, NAN};
    odd = (struct rope_row){.x = x[0], .head_dim = 4, .rotary_dim = 4, .freq = bad};
    tier = TIER_F64;
    assert_int_equal(rope_tier_enclose(quick, &tier, &odd, 1), ERR_USAGE);
}

/* The rotation itself, every level, at the ends of its range and near multiples of pi/2. */
static void turns_are_within_their_bound(void **state) {
    (void)state;
    static const struct norm_simd *const levels[] = {&norm_simd_v2, &norm_simd_v3, &norm_simd_v4};
    const double one[] = {1}, none[] = {0}, zero[] = {0};
    double worst = 0, y, z;
    struct rng rng = rng_from_seed(3);
    mpfr_t t, s, c;
    mpfr_inits2(200, t, s, c, (mpfr_ptr)0);
    for (size_t n = 0; n < times(20000); n++) {
        double angle = (rng_unit(&rng) * 2 - 1) * ldexp(1, (int)rng_below(&rng, 30) - 7);
        if (n % 3 == 0) /* as near to a multiple as a double gets */
            angle = ((double)rng_below(&rng, 1 << 21) + 0.5 * (double)(n % 2)) * M_PI_2;
        mpfr_set_d(t, angle, MPFR_RNDN);
        mpfr_sin_cos(s, c, t, MPFR_RNDN);
        for (size_t l = 0; l < 3 && (l == 0 || levels[l - 1] != norm_simd()); l++) {
            levels[l]->turn(&y, &z, one, none, &angle, zero, 1, 1);
            mpfr_sub_d(t, c, y, MPFR_RNDN);
            worst = fmax(worst, fabs(mpfr_get_d(t, MPFR_RNDN)));
            mpfr_sub_d(t, s, z, MPFR_RNDN);
            worst = fmax(worst, fabs(mpfr_get_d(t, MPFR_RNDN)));
        }
    }
    mpfr_clears(t, s, c, (mpfr_ptr)0);
    print_message("worst error of a sine or cosine: %.4f of 2^-51\n", worst * 0x1p51);
    CHECK(worst <= 0x1p-51 && worst > 0x1p-56, "%g", worst);
}

/* ---- softmax_topk ------------------------------------------------------------------------------ */

static void topk_contains_that_of_mpfr(void **state) {
    (void)state;
    static double x[MAX_COLS];
    static struct enclosure quick[MAX_COLS], slow[MAX_COLS];
    static size_t index[2][MAX_COLS];
    struct rng rng = rng_from_seed(4);
    for (size_t n = 0; n < times(100); n++) {
        size_t cols = 1 + rng_below(&rng, 60);
        row_make(x, cols, (enum row_kind)(n % ROW_KINDS), &rng);
        struct topk_row row = {
            .row = {.x = x, .cols = cols}, .k = 1 + rng_below(&rng, cols), .renormalise = n % 2};
        assert_int_equal(softmax_topk_enclose(index[0], slow, &row), OK);
        for (enum tier first = TIER_F64; first < TIER_MPFR; first++) {
            enum tier tier = first;
            assert_int_equal(softmax_topk_tier_enclose(index[1], quick, &tier, &row), OK);
            assert_true(tier == first);
            assert_memory_equal(index[0], index[1], row.k * sizeof *index[0]);
            for (size_t r = 0; r < row.k; r++)
                CHECK(inside(quick[r], slow[r]), "topk, rank %zu of %zu", r, row.k);
            /* The op has the indices behind the probabilities. */
            const struct oracle_row of_op = {.topk = &row};
            static struct enclosure all[2 * MAX_COLS];
            assert_int_equal(tier_enclose(all, &tier, op_find("softmax_topk"), &of_op), OK);
            for (size_t r = 0; r < row.k; r++) {
                struct enclosure index_of = all[row.k + r];
                CHECK(index[0][r] == SIZE_MAX ? enclosure_is_nan(index_of)
                                              : index_of.lo == (double)index[0][r],
                      "topk, rank %zu of %zu: index %g", r, row.k, index_of.lo);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_contain_those_of_mpfr),
        cmocka_unit_test(norms_refuse_what_mpfr_refuses),
        cmocka_unit_test(rope_contains_that_of_mpfr),
        cmocka_unit_test(turns_are_within_their_bound),
        cmocka_unit_test(topk_contains_that_of_mpfr),
    };
    int failed = cmocka_run_group_tests_name("tier_norm", tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
