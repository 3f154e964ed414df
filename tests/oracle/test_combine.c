/*
 * tests/oracle/test_combine.c - attention_combine: its units, enclosures against Arb, tiers, the
 * neutral part; budgets against a correct kernel, and against wrong ones.
 */
#include "oracle_test.h"

#if __has_include(<flint/arb.h>) /* FLINT 3 took Arb in */
#    include <flint/arb.h>
#else
#    include <arb.h>
#endif
#include <math.h>

#include "gpu_exp.h"
#include "judge.h"
#include "oracle/tier.h"

enum { MAX_PARTS = 40, ROWS = 3, DIM = 5, PREC = 600 };

enum kind {
    KIND_NORMAL,
    KIND_EQUAL,
    KIND_DOMINANT, /* one part 20 to 110 above the others */
    KIND_RISING,
    KIND_SOME, /* half of the parts of lse -Inf, o NaN */
    KIND_HUGE, /* lse around +-1e4 or 1e30 */
    KIND_CANCEL,
    KIND_KINDS
};

/* A case of `parts` parts, and one unit of it. */
struct sample {
    float o_p[MAX_PARTS * ROWS * DIM], lse_p[MAX_PARTS * ROWS];
    struct op_case c;
    struct op_unit unit;
    struct enclosure want[DIM + 1];
    size_t parts, row;
};

static double gauss(struct rng *rng) {
    double sum = 0;
    for (size_t i = 0; i < 6; i++)
        sum += rng_unit(rng) - 0.5;
    return sum * M_SQRT2;
}

static double lse_of(enum kind kind, size_t p, size_t parts, struct rng *rng) {
    static const double heights[] = {20, 88, 95, 110};
    static const double sizes[] = {1e4, -1e4, 1e30, -1e30};
    double x = gauss(rng);
    switch (kind) {
    case KIND_EQUAL:
    case KIND_CANCEL:
        return 7.5;
    case KIND_DOMINANT:
        return p == parts / 2 ? heights[parts % 4] : x;
    case KIND_RISING:
        return 5.5 * (double)p + x / 8;
    case KIND_SOME:
        return p % 2 ? x : -INFINITY;
    case KIND_HUGE:
        return sizes[parts % 4] + (parts % 4 < 2 ? x : 0);
    case KIND_NORMAL:
    case KIND_KINDS:
        break;
    }
    return 3 * x;
}

static void make(struct sample *s, size_t parts, enum kind kind, struct rng *rng) {
    const struct tensor_type *f32 = tensor_type_find("f32");
    s->parts = parts;
    s->row = (size_t)rng_below(rng, ROWS);
    for (size_t p = 0; p < parts; p++)
        for (size_t row = 0; row < ROWS; row++) {
            double lse = lse_of(kind, p, parts, rng);
            s->lse_p[p * ROWS + row] = (float)lse;
            for (size_t c = 0; c < DIM; c++) {
                double x = lse == -INFINITY ? (double)NAN : gauss(rng);
                if (kind == KIND_CANCEL && p % 2)
                    x = -(double)s->o_p[((p - 1) * ROWS + row) * DIM + c];
                s->o_p[(p * ROWS + row) * DIM + c] = (float)x;
            }
        }
    s->c = (struct op_case){
        .dims = {.parts = parts, .rows = ROWS, .head_dim = DIM},
        .in = {{.type = f32, .count = parts * ROWS * DIM, .data = s->o_p},
               {.type = f32, .count = parts * ROWS, .data = s->lse_p}},
    };
    assert_int_equal(op_unit_init(&s->unit, op_find("attention_combine"), &s->c), OK);
    op_unit_at(&s->unit, s->row);
    assert_int_equal(s->unit.op->enclose(s->want, &s->unit.row), OK);
}

static double o_at(const struct sample *s, size_t p, size_t c) {
    return (double)s->o_p[(p * ROWS + s->row) * DIM + c];
}

static double lse_at(const struct sample *s, size_t p) {
    return (double)s->lse_p[p * ROWS + s->row];
}

/* ---- enclosures ------------------------------------------------------------------------------ */

static void expect_ball(struct enclosure e, const arb_t ball, const char *what, size_t i) {
    arb_t lo, hi;
    arb_init(lo);
    arb_init(hi);
    arb_set_d(lo, e.lo);
    arb_set_d(hi, e.hi);
    CHECK(!arb_gt(lo, ball) && !arb_lt(hi, ball), "%s, case %zu: [%a, %a]", what, i, e.lo, e.hi);
    arb_clear(hi);
    arb_clear(lo);
}

/* e^lse without any shift: balls do not overflow. */
static void check_against_arb(const struct sample *s, size_t i) {
    arb_t w, sum, product, o[DIM];
    arb_init(w);
    arb_init(sum);
    arb_init(product);
    for (size_t c = 0; c < DIM; c++)
        arb_init(o[c]);
    for (size_t p = 0; p < s->parts; p++) {
        if (lse_at(s, p) == -INFINITY)
            continue;
        arb_set_d(w, lse_at(s, p));
        arb_exp(w, w, PREC);
        arb_add(sum, sum, w, PREC);
        for (size_t c = 0; c < DIM; c++) {
            arb_set_d(product, o_at(s, p, c));
            arb_addmul(o[c], product, w, PREC);
        }
    }
    if (arb_is_zero(sum)) {
        assert_true(is_exactly(s->want[DIM], -INFINITY) && is_exactly(s->want[0], 0));
    } else {
        for (size_t c = 0; c < DIM; c++) {
            arb_div(o[c], o[c], sum, PREC);
            expect_ball(s->want[c], o[c], "o", i);
        }
        arb_log(sum, sum, PREC);
        expect_ball(s->want[DIM], sum, "lse", i);
    }
    for (size_t c = 0; c < DIM; c++)
        arb_clear(o[c]);
    arb_clear(product);
    arb_clear(sum);
    arb_clear(w);
}

static void test_arb(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(41);
    for (size_t i = 0; i < times(400); i++) {
        make(&s, 1 + (size_t)rng_below(&rng, MAX_PARTS), (enum kind)(i % KIND_KINDS), &rng);
        check_against_arb(&s, i);
        op_unit_clear(&s.unit);
    }
}

/* Enclosures of the lower tiers contain MPFR's, and the easy cases are theirs. */
static void test_tiers(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(42);
    size_t easy = 0;
    for (size_t i = 0; i < times(400); i++) {
        make(&s, 1 + (size_t)rng_below(&rng, MAX_PARTS), (enum kind)(i % KIND_KINDS), &rng);
        for (int first = TIER_F64; first < TIER_MPFR; first++) {
            enum tier tier = (enum tier)first;
            struct enclosure e[DIM + 1];
            assert_int_equal(tier_enclose(e, &tier, s.unit.op, &s.unit.row), OK);
            easy += first == TIER_F64 && tier == TIER_F64;
            for (size_t c = 0; c <= DIM; c++)
                CHECK(e[c].lo <= s.want[c].lo && s.want[c].hi <= e[c].hi,
                      "case %zu, result %zu, %s: [%a, %a] around [%a, %a]", i, c, tier_name(tier),
                      e[c].lo, e[c].hi, s.want[c].lo, s.want[c].hi);
        }
        op_unit_clear(&s.unit);
    }
    assert_true(easy > times(400) / 2);
}

/* ---- budgets --------------------------------------------------------------------------------- */

enum fault { HONEST, FORGETS_LAST, BASE_2, EQUAL_WEIGHTS, STALE_LSE, FAULTS };

static void combine(float *o, float *lse, const struct sample *s, enum fault fault) {
    float m = -INFINITY, l = 0, sum[DIM] = {0};
    for (size_t p = 0; p < s->parts; p++)
        m = fmaxf(m, (float)lse_at(s, p));
    const float at = isinf(m) ? 0 : m;
    for (size_t p = 0; p + (fault == FORGETS_LAST) < s->parts; p++) {
        if (lse_at(s, p) == -INFINITY)
            continue;
        float t = (float)lse_at(s, p) - at;
        float weight = fault == BASE_2 ? exp2f(t) : fault == EQUAL_WEIGHTS ? 1 : gpu_expf(t);
        l += weight;
        for (size_t c = 0; c < DIM; c++) {
            float product = weight * (float)o_at(s, p, c);
            sum[c] += product;
        }
    }
    for (size_t c = 0; c < DIM; c++)
        o[c] = l == 0 ? 0 : sum[c] / l;
    *lse = l == 0 ? -INFINITY : fault == STALE_LSE ? at : at + logf(l);
}

static struct numerics numerics_of(const struct sample *s) {
    const struct dtype *f32 = &dtypes[DT_F32];
    return (struct numerics){.in = f32,
                             .acc = f32,
                             .out = f32,
                             .exp = EXP_EXPF,
                             .sum_height = (double)s->parts - 1,
                             .divide = DIVIDE_IEEE,
                             .log = LOG_LOGF,
                             .pv.height = (double)s->parts};
}

struct rhos {
    double o, lse;
};

static struct rhos judge(struct sample *s, enum fault fault) {
    double budget[DIM + 1];
    float o[DIM], lse;
    struct numerics nu = numerics_of(s);
    struct rhos r = {0};
    assert_int_equal(s->unit.op->budget(budget, &s->unit.row, s->want, &nu), OK);
    combine(o, &lse, s, fault);
    r.lse = rho_of(nu.out, lse, s->want[DIM], budget[DIM]);
    for (size_t c = 0; c < DIM; c++)
        r.o = fmax(r.o, rho_of(nu.out, o[c], s->want[c], budget[c]));
    return r;
}

static void test_budgets(void **state) {
    (void)state;
    static struct sample s;
    static const size_t sizes[] = {1, 2, 2, 3, 4, 9, 33};
    struct rng rng = rng_from_seed(43);
    struct rhos worst = {0};
    for (size_t i = 0; i < times(6000); i++) {
        make(&s, sizes[i % 7], (enum kind)(i / 7 % KIND_KINDS), &rng);
        struct rhos r = judge(&s, HONEST);
        CHECK(r.o <= 1 && r.lse <= 1, "case %zu, %zu parts: rho %g, lse %g", i, s.parts, r.o,
              r.lse);
        worst.o = fmax(worst.o, r.o);
        worst.lse = fmax(worst.lse, r.lse);
        op_unit_clear(&s.unit);
    }
    print_message("combine: worst rho %.3f, lse %.3f\n", worst.o, worst.lse);
    assert_true(worst.o >= 0.5 && worst.lse >= 0.5);
}

static void test_faults(void **state) {
    (void)state;
    static struct sample s;
    for (int fault = HONEST + 1; fault < FAULTS; fault++) {
        struct rng rng = rng_from_seed(44);
        size_t found = 0;
        for (size_t i = 0; i < 50; i++) {
            make(&s, 4, KIND_NORMAL, &rng);
            struct rhos r = judge(&s, (enum fault)fault);
            found += r.o > 1 || r.lse > 1;
            op_unit_clear(&s.unit);
        }
        CHECK(found == 50, "fault %d: found in %zu of 50 cases", fault, found);
    }
}

/* A given logit is exact: one part alone is rounded nowhere, however large its lse. */
static void test_one_part(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(45);
    double budget[DIM + 1];
    for (size_t i = 0; i < 20; i++) {
        make(&s, 1, i % 2 ? KIND_HUGE : KIND_NORMAL, &rng);
        struct numerics nu = numerics_of(&s);
        assert_int_equal(s.unit.op->budget(budget, &s.unit.row, s.want, &nu), OK);
        for (size_t c = 0; c < DIM; c++) {
            assert_true(is_exactly(s.want[c], o_at(&s, 0, c)));
            /* the product, and the quotient */
            assert_true(budget[c] <= 2.01 * 0x1p-24 * fabs(o_at(&s, 0, c)));
        }
        assert_true(is_exactly(s.want[DIM], lse_at(&s, 0)));
        op_unit_clear(&s.unit);
    }
}

/* Nor do parts of equal and huge lse lose anything to their logits: o is their mean. */
static void test_equal_parts(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(47);
    double budget[DIM + 1];
    make(&s, 2, KIND_NORMAL, &rng);
    s.lse_p[s.row] = s.lse_p[ROWS + s.row] = 1e30f;
    op_unit_at(&s.unit, s.row);
    struct numerics nu = numerics_of(&s);
    assert_int_equal(s.unit.op->enclose(s.want, &s.unit.row), OK);
    assert_int_equal(s.unit.op->budget(budget, &s.unit.row, s.want, &nu), OK);
    for (size_t c = 0; c < DIM; c++)
        CHECK(budget[c] <= 16 * 0x1p-24 * (fabs(o_at(&s, 0, c)) + fabs(o_at(&s, 1, c))),
              "[%zu]: %g", c, budget[c]);
    op_unit_clear(&s.unit);
}

static void test_special(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(46);
    make(&s, 4, KIND_SOME, &rng);
    const size_t at = 1 * ROWS + s.row; /* a part with a weight */
    assert_true(isfinite(s.want[0].lo) && isfinite(s.want[DIM].lo));
    s.lse_p[at] = INFINITY;
    op_unit_at(&s.unit, s.row);
    assert_int_equal(s.unit.op->enclose(s.want, &s.unit.row), OK);
    assert_true(enclosure_is_nan(s.want[0]) && is_exactly(s.want[DIM], INFINITY));
    s.lse_p[at] = NAN;
    op_unit_at(&s.unit, s.row);
    assert_int_equal(s.unit.op->enclose(s.want, &s.unit.row), OK);
    assert_true(enclosure_is_nan(s.want[0]) && enclosure_is_nan(s.want[DIM]));
    s.lse_p[at] = 0;
    s.o_p[at * DIM + 2] = -INFINITY;
    op_unit_at(&s.unit, s.row);
    assert_int_equal(s.unit.op->enclose(s.want, &s.unit.row), OK);
    assert_true(is_exactly(s.want[2], -INFINITY) && isfinite(s.want[1].lo));
    for (size_t p = 0; p < 4; p++)
        s.lse_p[p * ROWS + s.row] = -INFINITY;
    op_unit_at(&s.unit, s.row);
    assert_int_equal(s.unit.op->enclose(s.want, &s.unit.row), OK);
    assert_true(is_exactly(s.want[2], 0) && is_exactly(s.want[DIM], -INFINITY));
    op_unit_clear(&s.unit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arb),      cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_budgets),  cmocka_unit_test(test_faults),
        cmocka_unit_test(test_one_part), cmocka_unit_test(test_equal_parts),
        cmocka_unit_test(test_special),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    flint_cleanup();
    return failed;
}
