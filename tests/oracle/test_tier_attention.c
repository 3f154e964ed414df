/*
 * tests/oracle/test_tier_attention.c - attention by tiers: rows that share k and v, with every
 * option, against attention_enclose and attention_budget.
 */
#include "tests/oracle/oracle_test.h"

#include <stdlib.h>
#include <string.h>

#include "oracle/tier_attention.h"

enum { MAX_KEYS = 300, MAX_DIM = 40, MAX_ROWS = 11 };

/* How q, k and v are made. */
enum kind { NORMAL, SHARP, EQUAL, SAME_SIGN, CANCEL, LOW, TINY, KINDS };

/* Rows over one k and v, and everything they point to. */
struct samples {
    size_t count;
    double q[MAX_ROWS][MAX_DIM], k[MAX_KEYS * MAX_DIM], v[MAX_KEYS * MAX_DIM];
    double bias[MAX_ROWS][MAX_KEYS], sink[MAX_ROWS];
    unsigned char mask[MAX_ROWS][MAX_KEYS];
    struct attention_row row[MAX_ROWS];
    struct enclosure o[MAX_ROWS * MAX_DIM], lse[MAX_ROWS]; /* by MPFR */
};

static double gauss(struct rng *rng) {
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += rng_unit(rng) - 0.5;
    return (float)(sum * M_SQRT2);
}

static void choose(struct attention_row *row, struct samples *s, size_t r, struct rng *rng) {
    const size_t which = rng_below(rng, 3) ? rng_below(rng, 256) : 0;
    row->queries = 1 + (size_t)rng_below(rng, 2 * row->keys);
    row->query = (size_t)rng_below(rng, row->queries);
    row->causal = which & 1;
    row->windowed = which & 2;
    row->window_left = (size_t)rng_below(rng, row->keys);
    row->window_right = (size_t)rng_below(rng, 3);
    row->window_sinks = (size_t)rng_below(rng, 3);
    row->bias = which & 4 ? s->bias[r] : NULL;
    row->mask = which & 8 ? s->mask[r] : NULL;
    row->softcap = which & 16 ? (float)ldexp(1 + rng_unit(rng), (int)rng_below(rng, 6)) : 0;
    row->alibi_slope = which & 32 ? 0.0625 : 0;
    row->sink = which & 64 ? &s->sink[r] : NULL;
    if (which & 128)
        row->keys_used = row->keys - (size_t)rng_below(rng, row->keys);
}

static void make(struct samples *s, size_t keys, size_t dim, size_t value_dim, enum kind kind,
                 struct rng *rng) {
    s->count = 1 + (size_t)rng_below(rng, MAX_ROWS);
    for (size_t j = 0; j < keys * dim; j++)
        s->k[j] = kind == EQUAL && j >= dim ? s->k[j - dim] : gauss(rng);
    for (size_t j = 0; j < keys * value_dim; j++) {
        double v = gauss(rng) * (kind == TINY ? 0x1p-130 : 1);
        bool back = kind == CANCEL && j / value_dim % 2 == 1;
        s->v[j] = kind == SAME_SIGN ? fabs(v) : back ? -s->v[j - value_dim] : (float)v;
    }
    for (size_t r = 0; r < s->count; r++) {
        struct attention_row *row = &s->row[r];
        *row = (struct attention_row){.q = s->q[r],
                                      .k = s->k,
                                      .v = s->v,
                                      .k_stride = dim,
                                      .v_stride = value_dim,
                                      .head_dim = dim,
                                      .value_dim = value_dim,
                                      .keys = keys,
                                      .keys_used = keys,
                                      .queries = 1,
                                      .scale = (float)(1 / sqrt((double)dim))};
        for (size_t i = 0; i < dim; i++)
            s->q[r][i] = gauss(rng) * (kind == SHARP ? 12 : kind == LOW ? 200 : 1);
        s->sink[r] = gauss(rng);
        for (size_t j = 0; j < keys; j++) {
            s->mask[r][j] = rng_below(rng, 3) > 0;
            s->bias[r][j] = gauss(rng);
            if (rng_below(rng, 8) == 0)
                s->bias[r][j] = (double[]){-INFINITY, -10000, -3e38}[rng_below(rng, 3)];
        }
        choose(row, s, r, rng);
    }
}

static void enclose_slowly(struct samples *s) {
    for (size_t r = 0; r < s->count; r++)
        assert_int_equal(attention_enclose(s->o + r * s->row->value_dim, s->lse + r, &s->row[r]),
                         OK);
}

static bool inside(struct enclosure outer, struct enclosure inner) {
    if (enclosure_is_nan(inner))
        return enclosure_is_nan(outer);
    return outer.lo <= inner.lo && inner.hi <= outer.hi;
}

static size_t draw_keys(struct rng *rng) {
    return rng_below(rng, 20) == 0 ? MAX_KEYS - rng_below(rng, 40) : 1 + rng_below(rng, 40);
}

static void enclosures_contain_those_of_mpfr(enum tier first, uint64_t seed) {
    static struct samples s;
    static struct enclosure o[MAX_ROWS * MAX_DIM], lse[MAX_ROWS];
    const double least = first == TIER_DD ? 0x1p-51 : 0x1p-28;
    struct rng rng = rng_from_seed(seed);
    size_t rows = 0, quick = 0;
    for (size_t n = 0; n < times(400); n++) {
        size_t dim = 1 + rng_below(&rng, 33), value_dim = 1 + rng_below(&rng, MAX_DIM);
        enum kind kind = (enum kind)(n % KINDS);
        make(&s, draw_keys(&rng), dim, value_dim, kind, &rng);
        enclose_slowly(&s);
        enum tier tier[MAX_ROWS];
        for (size_t r = 0; r < s.count; r++)
            tier[r] = first;
        assert_int_equal(attention_tier_enclose(o, lse, tier, s.row, s.count), OK);
        for (size_t r = 0; r < s.count; r++) {
            rows++;
            quick += tier[r] == first;
            CHECK(inside(lse[r], s.lse[r]), "kind %d, row %zu: lse [%a, %a], MPFR [%a, %a]", kind,
                  r, lse[r].lo, lse[r].hi, s.lse[r].lo, s.lse[r].hi);
            for (size_t c = 0; c < value_dim; c++) {
                struct enclosure e = o[r * value_dim + c], m = s.o[r * value_dim + c];
                CHECK(inside(e, m), "kind %d, row %zu, [%zu]: tier %d [%a, %a], MPFR [%a, %a]",
                      kind, r, c, tier[r], e.lo, e.hi, m.lo, m.hi);
                double scale = kind == TINY ? 0x1p-128 : 4;
                CHECK(e.hi - e.lo <= least * scale, "kind %d: width %g", kind, e.hi - e.lo);
            }
        }
    }
    print_message("%zu of %zu rows by tier %s\n", quick, rows, tier_name(first));
    CHECK(quick * 10 > rows * 9, "tier %s answers for %zu of %zu rows", tier_name(first), quick,
          rows);
}

static void enclosures_of_f64_contain_those_of_mpfr(void **state) {
    (void)state;
    enclosures_contain_those_of_mpfr(TIER_F64, 1);
}

static void enclosures_of_dd_contain_those_of_mpfr(void **state) {
    (void)state;
    enclosures_contain_those_of_mpfr(TIER_DD, 5);
}

/* NaN and infinities where a row sees them, and where it does not. */
static void special_rows_are_those_of_mpfr(void **state) {
    (void)state;
    static struct samples s;
    static struct enclosure o[MAX_ROWS * MAX_DIM], lse[MAX_ROWS];
    static const double special[] = {NAN, INFINITY, -INFINITY, 0, 1e300};
    struct rng rng = rng_from_seed(2);
    for (size_t n = 0; n < times(300); n++) {
        size_t keys = 1 + rng_below(&rng, 20), dim = 1 + rng_below(&rng, 4);
        make(&s, keys, dim, 3, NORMAL, &rng);
        double w = special[n % 5];
        if (n % 3 == 0)
            s.k[rng_below(&rng, keys * dim)] = w;
        if (n % 3 == 1)
            s.v[rng_below(&rng, keys * 3)] = w;
        if (n % 3 == 2)
            s.q[rng_below(&rng, s.count)][rng_below(&rng, dim)] = w;
        enclose_slowly(&s);
        enum tier tier[MAX_ROWS] = {TIER_F64};
        assert_int_equal(attention_tier_enclose(o, lse, tier, s.row, s.count), OK);
        for (size_t r = 0; r < s.count; r++) {
            CHECK(inside(lse[r], s.lse[r]), "lse of row %zu", r);
            for (size_t c = 0; c < 3; c++)
                CHECK(inside(o[r * 3 + c], s.o[r * 3 + c]), "o of row %zu", r);
        }
    }
}

/* Dot products of terms of three sizes, of which the larger two cancel: no tier has all of what is
 * left, and each must know how far off it is. */
static void cancelling_logits_are_those_of_mpfr(void **state) {
    (void)state;
    enum { DIM = 6, BIG = 0, MIDDLE = 1 }; /* and their opposites at the end; two terms between */
    static struct samples s;
    static struct enclosure o[MAX_ROWS * 3], lse[MAX_ROWS];
    struct rng rng = rng_from_seed(7);
    for (size_t n = 0; n < times(100); n++) {
        size_t keys = 1 + rng_below(&rng, 20);
        int big = 20 + (int)rng_below(&rng, 100), middle = big - 40 - (int)rng_below(&rng, 20);
        make(&s, keys, DIM, 3, NORMAL, &rng);
        for (size_t j = 0; j < keys; j++) {
            double *k = s.k + j * DIM;
            k[BIG] = (float)ldexp(k[BIG], big);
            k[MIDDLE] = (float)ldexp(k[MIDDLE], middle);
            k[DIM - 2 + BIG] = -k[BIG];
            k[DIM - 2 + MIDDLE] = -k[MIDDLE];
        }
        for (size_t r = 0; r < s.count; r++) {
            s.q[r][DIM - 2 + BIG] = s.q[r][BIG];
            s.q[r][DIM - 2 + MIDDLE] = s.q[r][MIDDLE];
        }
        enclose_slowly(&s);
        for (enum tier first = TIER_F64; first < TIER_MPFR; first++) {
            enum tier tier[MAX_ROWS];
            for (size_t r = 0; r < s.count; r++)
                tier[r] = first;
            assert_int_equal(attention_tier_enclose(o, lse, tier, s.row, s.count), OK);
            for (size_t r = 0; r < s.count; r++) {
                CHECK(inside(lse[r], s.lse[r]), "2^%d, tier %s: lse [%a, %a], MPFR [%a, %a]", big,
                      tier_name(tier[r]), lse[r].lo, lse[r].hi, s.lse[r].lo, s.lse[r].hi);
                for (size_t c = 0; c < 3; c++)
                    CHECK(inside(o[r * 3 + c], s.o[r * 3 + c]), "2^%d, tier %s: o of row %zu", big,
                          tier_name(tier[r]), r);
            }
        }
    }
}

static struct numerics draw_numerics(struct rng *rng, const struct samples *s) {
    static const struct accumulation cores[] = {
        {.block = 8, .bits = 25}, {.block = 16, .bits = 25}, {.block = 4, .bits = 24}};
    const struct attention_row *row = s->row;
    struct numerics nu = {.in = &dtypes[DT_F32],
                          .acc = &dtypes[DT_F32],
                          .out = &dtypes[rng_below(rng, DT_COUNT)],
                          .exp = (enum exp_variant)(1 + rng_below(rng, 4)),
                          .sum_height = 1 + (double)rng_below(rng, row->keys),
                          .divide = (enum divide_variant)(1 + rng_below(rng, 3)),
                          .flush = rng_below(rng, 2),
                          .log = rng_below(rng, 2) ? LOG_LOGF : LOG_FAST,
                          .tanh = rng_below(rng, 2) ? TANH_TANHF : TANH_FAST,
                          .qk = {.height = 1 + (double)rng_below(rng, row->head_dim)},
                          .pv = {.height = 1 + (double)rng_below(rng, row->keys)},
                          .rescale = RESCALE_ONLINE};
    if (rng_below(rng, 2))
        nu.qk = nu.pv = cores[rng_below(rng, 3)];
    if (rng_below(rng, 2))
        nu.rescales = (double)rng_below(rng, 8);
    if (rng_below(rng, 2)) {
        nu.p_type = &dtypes[rng_below(rng, DT_COUNT)];
        nu.sum_rounded = rng_below(rng, 2);
    }
    nu.divide_first = rng_below(rng, 4) == 0;
    nu.lazy_threshold = rng_below(rng, 4) == 0 ? 8 : 0;
    return nu;
}

/* On the truth a row is within; with one output just beyond its budget it never is. */
static void nothing_beyond_its_budget_is_within(void **state) {
    (void)state;
    static struct samples s;
    static double budget[MAX_ROWS * MAX_DIM], lse_budget[MAX_ROWS], o[MAX_ROWS * MAX_DIM];
    double lse[MAX_ROWS];
    struct rng rng = rng_from_seed(3);
    size_t rows = 0, within = 0, half = 0;
    for (size_t n = 0; n < times(600); n++) {
        size_t dim = 1 + rng_below(&rng, 33), value_dim = 1 + rng_below(&rng, MAX_DIM);
        make(&s, draw_keys(&rng), dim, value_dim, (enum kind)(n % KINDS), &rng);
        enclose_slowly(&s);
        struct numerics nu = draw_numerics(&rng, &s);
        for (size_t r = 0; r < s.count; r++) {
            struct enclosure *want = s.o + r * value_dim;
            assert_int_equal(attention_budget(budget + r * value_dim, lse_budget + r, &s.row[r],
                                              want, s.lse + r, &nu),
                             OK);
        }
        for (int part = 0; part < 3; part++) { /* 0: the truth, 1: half a budget off, 2: beyond */
            size_t at[MAX_ROWS];
            for (size_t r = 0; r < s.count; r++) {
                const double way = rng_below(&rng, 2) ? 1 : -1;
                const double off = part == 0 ? 0 : part == 1 ? 0.5 * way : (1 + 0x1p-20) * way;
                at[r] = rng_below(&rng, value_dim + 1);
                for (size_t c = 0; c < value_dim; c++)
                    o[r * value_dim + c] = s.o[r * value_dim + c].lo;
                lse[r] = s.lse[r].lo;
                if (at[r] == value_dim)
                    lse[r] += off * lse_budget[r] + (off > 0 ? s.lse[r].hi - s.lse[r].lo : 0);
                else
                    o[r * value_dim + at[r]] += off * budget[r * value_dim + at[r]];
            }
            struct tier_extremes e[MAX_ROWS];
            assert_int_equal(attention_within(e, s.row, s.count, o, lse, &nu), OK);
            for (size_t r = 0; r < s.count; r++) {
                double b = at[r] == value_dim ? lse_budget[r] : budget[r * value_dim + at[r]];
                bool sure = isfinite(b) && b > 0;
                if (part == 0) {
                    rows++;
                    within += e[r].within;
                } else if (part == 1) {
                    half += e[r].within;
                } else if (sure) {
                    CHECK(!e[r].within,
                          "row %zu, %zu of %zu: beyond its budget %g passes (exp %d, divide %d)", r,
                          at[r], value_dim, b, nu.exp, nu.divide);
                }
            }
        }
    }
    print_message("of %zu rows %zu within on the truth, %zu with one output half a budget off\n",
                  rows, within, half);
    CHECK(within * 10 > rows * 8, "%zu of %zu rows", within, rows);
    CHECK(half * 4 > rows, "%zu of %zu rows: the lower bound is far below the budget", half, rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enclosures_of_f64_contain_those_of_mpfr),
        cmocka_unit_test(enclosures_of_dd_contain_those_of_mpfr),
        cmocka_unit_test(special_rows_are_those_of_mpfr),
        cmocka_unit_test(cancelling_logits_are_those_of_mpfr),
        cmocka_unit_test(nothing_beyond_its_budget_is_within),
    };
    int failed = cmocka_run_group_tests_name("tier_attention", tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
