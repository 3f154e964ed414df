/*
 * tests/oracle/test_op_exact.c - the ops against exact rational and integer arithmetic (GMP).
 *
 * No MPFR here.  Sums and maxima are exact rationals.  e^t is enclosed in fixed point by its Taylor
 * series with a remainder, every step rounded down for the lower end and up for the upper one.
 */
#include "oracle_test.h"

#include <gmp.h>
#include <math.h>

#include "oracle/oracle.h"
#include "rows.h"

/* ---- fixed point ----------------------------------------------------------------------------- */

#define FRACTION 512 /* bits after the point; e^-130 still has 320 significant ones */

struct fixed {
    mpz_t lo, hi; /* the number is in [lo, hi] 2^-FRACTION */
};

static void fixed_init(struct fixed *f) {
    mpz_inits(f->lo, f->hi, (mpz_ptr)0);
}

static void fixed_clear(struct fixed *f) {
    mpz_clears(f->lo, f->hi, (mpz_ptr)0);
}

/* out = a * b for non-negative a, b. */
static void fixed_mul(struct fixed *out, const struct fixed *a, const struct fixed *b) {
    mpz_mul(out->lo, a->lo, b->lo);
    mpz_mul(out->hi, a->hi, b->hi);
    mpz_fdiv_q_2exp(out->lo, out->lo, FRACTION);
    mpz_cdiv_q_2exp(out->hi, out->hi, FRACTION);
}

/* e^|t| for |t| <= 200: Taylor at |t| / 2^16 < 1/256, then 16 squarings. */
static void fixed_exp_abs(struct fixed *out, const mpq_t t) {
    enum { HALVINGS = 16, TERMS = 70 };
    mpz_t scaled, one;
    struct fixed r, term;
    mpz_inits(scaled, one, (mpz_ptr)0);
    fixed_init(&r);
    fixed_init(&term);

    mpz_abs(scaled, mpq_numref(t));
    mpz_mul_2exp(scaled, scaled, FRACTION - HALVINGS);
    mpz_fdiv_q(r.lo, scaled, mpq_denref(t));
    mpz_cdiv_q(r.hi, scaled, mpq_denref(t));

    mpz_set_ui(one, 1);
    mpz_mul_2exp(one, one, FRACTION);
    mpz_set(term.lo, one);
    mpz_set(term.hi, one);
    mpz_set(out->lo, one);
    mpz_set(out->hi, one);
    for (unsigned n = 1; n < TERMS; n++) {
        fixed_mul(&term, &term, &r);
        mpz_fdiv_q_ui(term.lo, term.lo, n);
        mpz_cdiv_q_ui(term.hi, term.hi, n);
        mpz_add(out->lo, out->lo, term.lo);
        mpz_add(out->hi, out->hi, term.hi);
    }
    /* What is left out is below the last term: r / n < 1/2, so the terms more than halve. */
    mpz_add(out->hi, out->hi, term.hi);
    for (int i = 0; i < HALVINGS; i++)
        fixed_mul(out, out, out);

    fixed_clear(&term);
    fixed_clear(&r);
    mpz_clears(scaled, one, (mpz_ptr)0);
}

static void fixed_exp(struct fixed *out, const mpq_t t) {
    fixed_exp_abs(out, t);
    if (mpq_sgn(t) >= 0)
        return;
    mpz_t one, inverse;
    mpz_inits(one, inverse, (mpz_ptr)0);
    mpz_set_ui(one, 1);
    mpz_mul_2exp(one, one, 2 * FRACTION);
    mpz_fdiv_q(inverse, one, out->hi);
    mpz_cdiv_q(out->hi, one, out->lo);
    mpz_set(out->lo, inverse);
    mpz_clears(one, inverse, (mpz_ptr)0);
}

/* ---- the truth of a row ---------------------------------------------------------------------- */

struct truth {
    size_t count;
    struct fixed *terms; /* e^(x_i - max) */
    struct fixed sum;
    double max;
};

static void difference(mpq_t out, double a, double b) {
    mpq_t q;
    mpq_init(q);
    mpq_set_d(out, a);
    mpq_set_d(q, b);
    mpq_sub(out, out, q);
    mpq_clear(q);
}

static void truth_init(struct truth *t, const double *x, size_t cols) {
    t->count = cols;
    t->terms = malloc(cols * sizeof *t->terms);
    assert_non_null(t->terms);
    t->max = -INFINITY;
    for (size_t i = 0; i < cols; i++)
        t->max = fmax(t->max, x[i]);
    fixed_init(&t->sum);
    mpq_t arg;
    mpq_init(arg);
    for (size_t i = 0; i < cols; i++) {
        fixed_init(&t->terms[i]);
        if (isfinite(x[i])) {
            difference(arg, x[i], t->max);
            fixed_exp(&t->terms[i], arg);
        }
        mpz_add(t->sum.lo, t->sum.lo, t->terms[i].lo);
        mpz_add(t->sum.hi, t->sum.hi, t->terms[i].hi);
    }
    mpq_clear(arg);
}

static void truth_clear(struct truth *t) {
    for (size_t i = 0; i < t->count; i++)
        fixed_clear(&t->terms[i]);
    free(t->terms);
    fixed_clear(&t->sum);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* At most two steps of double wide: far below what the contract asks for. */
static void check_width(const char *op, enum row_kind kind, struct enclosure e) {
    CHECK(e.lo <= e.hi && nextafter(nextafter(e.lo, INFINITY), INFINITY) >= e.hi,
          "%s, %s row: [%a, %a] is wide", op, row_kind_name(kind), e.lo, e.hi);
}

/* lo <= a/b <= hi is possible for a in [a.lo, a.hi], b in [b.lo, b.hi], all positive. */
static void check_quotient(enum row_kind kind, size_t j, struct enclosure got,
                           const struct fixed *a, const struct fixed *b) {
    mpq_t end, truth;
    mpq_inits(end, truth, (mpq_ptr)0);
    mpq_set_d(end, got.lo);
    mpq_set_num(truth, a->hi);
    mpq_set_den(truth, b->lo);
    mpq_canonicalize(truth);
    CHECK(mpq_cmp(end, truth) <= 0, "softmax, %s row: [%zu] lo %a is above the truth",
          row_kind_name(kind), j, got.lo);
    mpq_set_d(end, got.hi);
    mpq_set_num(truth, a->lo);
    mpq_set_den(truth, b->hi);
    mpq_canonicalize(truth);
    CHECK(mpq_cmp(end, truth) >= 0, "softmax, %s row: [%zu] hi %a is below the truth",
          row_kind_name(kind), j, got.hi);
    mpq_clears(end, truth, (mpq_ptr)0);
}

/* from - minus.. : e^(a - b) against S: is log S in [lo_a - lo_b ..]?  See the callers. */
static int compare_exp(double a, double b, const struct fixed *sum) {
    mpq_t arg;
    struct fixed e;
    mpq_init(arg);
    fixed_init(&e);
    difference(arg, a, b);
    fixed_exp(&e, arg);
    int order = mpz_cmp(e.lo, sum->hi) > 0 ? 1 : mpz_cmp(e.hi, sum->lo) < 0 ? -1 : 0;
    fixed_clear(&e);
    mpq_clear(arg);
    return order;
}

static void check_lse(enum row_kind kind, struct enclosure got, const struct truth *truth) {
    check_width("lse", kind, got);
    /* e^(lo - max) <= S <= e^(hi - max) */
    CHECK(compare_exp(got.lo, truth->max, &truth->sum) <= 0, "lse, %s row: lo %a above the truth",
          row_kind_name(kind), got.lo);
    CHECK(compare_exp(got.hi, truth->max, &truth->sum) >= 0, "lse, %s row: hi %a below the truth",
          row_kind_name(kind), got.hi);
}

/* y = (x - max) - log S: e^(x - hi) <= e^max S <= e^(x - lo), all divided by e^max. */
static void check_log_softmax(enum row_kind kind, size_t j, double x, struct enclosure got,
                              const struct truth *truth) {
    if (isinf(x)) {
        assert_true(got.lo == -INFINITY && got.hi == -INFINITY);
        return;
    }
    check_width("log_softmax", kind, got);
    mpq_t arg, end;
    struct fixed e;
    mpq_inits(arg, end, (mpq_ptr)0);
    fixed_init(&e);
    difference(arg, x, truth->max);
    mpq_set_d(end, got.hi);
    mpq_sub(end, arg, end);
    fixed_exp(&e, end);
    CHECK(mpz_cmp(e.lo, truth->sum.hi) <= 0, "log_softmax, %s row: [%zu] hi %a below the truth",
          row_kind_name(kind), j, got.hi);
    mpq_set_d(end, got.lo);
    mpq_sub(end, arg, end);
    fixed_exp(&e, end);
    CHECK(mpz_cmp(e.hi, truth->sum.lo) >= 0, "log_softmax, %s row: [%zu] lo %a above the truth",
          row_kind_name(kind), j, got.lo);
    fixed_clear(&e);
    mpq_clears(arg, end, (mpq_ptr)0);
}

/* ---- the tests ------------------------------------------------------------------------------- */

enum { MAX_COLS = 40 };

static void enclose(struct enclosure *out, const char *name, const double *x, size_t cols) {
    struct oracle_row row = {.x = x, .cols = cols, .empty_row = EMPTY_NAN};
    assert_int_equal(op_find(name)->enclose(out, &row), OK);
}

static void test_exponentials(void **state) {
    (void)state;
    static const enum row_kind kinds[] = {
        ROW_NORMAL, ROW_WIDE,    ROW_TIES,      ROW_SUBNORMAL, ROW_PEAK,
        ROW_MASKED, ROW_RAMP_UP, ROW_RAMP_DOWN, ROW_LSE_ZERO,  ROW_FAR,
    };
    struct rng rng = rng_from_seed(5);
    double x[MAX_COLS];
    struct enclosure got[MAX_COLS];
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t i = 0; i < times(12); i++) {
            size_t cols = 1 + (size_t)rng_below(&rng, MAX_COLS);
            row_make(x, cols, kinds[k], &rng);
            struct truth truth;
            truth_init(&truth, x, cols);

            enclose(got, "softmax", x, cols);
            for (size_t j = 0; j < cols; j++) {
                check_width("softmax", kinds[k], got[j]);
                check_quotient(kinds[k], j, got[j], &truth.terms[j], &truth.sum);
            }
            enclose(got, "lse", x, cols);
            check_lse(kinds[k], got[0], &truth);
            enclose(got, "log_softmax", x, cols);
            for (size_t j = 0; j < cols; j++)
                check_log_softmax(kinds[k], j, x[j], got[j], &truth);
            truth_clear(&truth);
        }
    }
}

static void test_sum_and_max(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(6);
    double x[300];
    mpq_t sum, max, q;
    mpq_inits(sum, max, q, (mpq_ptr)0);
    for (enum row_kind kind = 0; kind < ROW_KINDS; kind++) {
        if (kind == ROW_MASKED)
            continue;
        for (size_t i = 0; i < times(60); i++) {
            size_t cols = 1 + (size_t)rng_below(&rng, 300);
            row_make(x, cols, kind, &rng);
            mpq_set_ui(sum, 0, 1);
            mpq_set_d(max, x[0]);
            for (size_t j = 0; j < cols; j++) {
                mpq_set_d(q, x[j]);
                mpq_add(sum, sum, q);
                if (mpq_cmp(q, max) > 0)
                    mpq_set(max, q);
            }
            struct enclosure got;
            enclose(&got, "sum", x, cols);
            /* the tightest enclosure: neighbours, or the sum itself */
            CHECK(got.hi == got.lo || got.hi == nextafter(got.lo, INFINITY), "sum, %s row",
                  row_kind_name(kind));
            mpq_set_d(q, got.lo);
            int at_lo = mpq_cmp(q, sum);
            mpq_set_d(q, got.hi);
            int at_hi = mpq_cmp(q, sum);
            CHECK(got.lo == got.hi ? at_lo == 0 : at_lo < 0 && at_hi > 0,
                  "sum, %s row of %zu: [%a, %a]", row_kind_name(kind), cols, got.lo, got.hi);

            enclose(&got, "max", x, cols);
            mpq_set_d(q, got.lo);
            CHECK(got.lo == got.hi && mpq_equal(q, max), "max, %s row: %a", row_kind_name(kind),
                  got.lo);
        }
    }
    mpq_clears(sum, max, q, (mpq_ptr)0);
}

/* The test's own exponential against constants printed by others (OEIS A001113, A068985). */
static void test_own_exponential(void **state) {
    (void)state;
    static const struct {
        double t;
        const char *digits; /* of e^t, 10^50 times, truncated */
    } cases[] = {
        {1, "271828182845904523536028747135266249775724709369995"},
        {-1, "36787944117144232159552377016146086744581113103176"},
    };
    mpz_t want, got;
    mpq_t t;
    struct fixed e;
    mpz_inits(want, got, (mpz_ptr)0);
    mpq_init(t);
    fixed_init(&e);
    for (size_t i = 0; i < 2; i++) {
        mpq_set_d(t, cases[i].t);
        fixed_exp(&e, t);
        mpz_set_str(want, cases[i].digits, 10);
        for (int end = 0; end < 2; end++) {
            mpz_ui_pow_ui(got, 10, 50);
            mpz_mul(got, got, end ? e.hi : e.lo);
            mpz_fdiv_q_2exp(got, got, FRACTION);
            assert_int_equal(mpz_cmp(got, want), 0);
        }
    }
    fixed_clear(&e);
    mpq_clear(t);
    mpz_clears(want, got, (mpz_ptr)0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_exponential),
        cmocka_unit_test(test_sum_and_max),
        cmocka_unit_test(test_exponentials),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
