/*
 * test_online.c - the (m, l) combine of online softmax: it commutes bit for bit, has the empty
 * state as an exact identity, associates within a derived bound, and never loses a NaN.
 *
 * States are those that a kernel can reach by pushing entries: m = -Inf has l = 0 (or NaN).  Each
 * property is a function that says whether a combine has it, so that the same function is seen to
 * refuse combines with a planted mistake.
 *
 * The bound.  u = 2^-24; n leaves (m_i, l_i), d_i combines above leaf i, M the largest m_i,
 * D_i = M - m_i.  One combine computes, with D = m_low - m_high <= 0,
 *     t = fl(D) = D (1 + r1)                    |r1| <= u      (a difference never underflows)
 *     e = exp(t) (1 + r2) + z                   |r2| <= eps, |z| <= 2^-149 where e is subnormal
 *     l = (l_low e + l_high) (1 + r3)           |r3| <= u      (one fma; l_high >= 2^-100 here)
 * and exp(t) = exp(D) exp(D r1).  Maxima only rise on the way up, so the D of the combines in which
 * leaf i is on the low side add up to -D_i, and its term reaches the root with a relative error of
 * at most
 *     (1 + eps)^d_i (1 + u)^d_i exp(u D_i) - 1.
 * The z of one combine changes the root by at most l_low 2^-149 (1 + small), l_low <= 2 sum l_i.
 * All terms are positive, so
 *     |l - L| <= sum_i l_i exp(-D_i) ((1 + eps)^d_i (1 + u)^d_i exp(u D_i) - 1) + n 2^-147 sum l_i,
 * that is, combines x (exp + rounding), plus argument roundings, weighted by what each leaf adds.
 * Two trees over the same leaves differ by at most the sum of their bounds.
 */
#include "tests/order/online.h"

#include <math.h>
#include <mpfr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define U 0x1p-24
#define MAX_LEAVES 48
#define PRECISION \
    320 /* bits of the exact result: differences of floats up to 2^128 down to 2^-149 */

/* An exponential and a bound on its relative error. */
struct exponential {
    const char *name;
    exp_fn *exp;
    double eps;
};

static const struct exponential exponentials[] = {
    {"correctly rounded", exp_nearest, U},
    {"or one float beside that", exp_neighbour, 3 * U}, /* half an ulp and one: u + 2u */
};

/* ---- the properties -------------------------------------------------------------------------- */

static bool commutes(join_fn *join, exp_fn *exp) {
    struct rng r = rng_from_seed(1);
    for (int round = 0; round < 20000; round++) {
        struct online a = online_random(&r, 0), b = online_random(&r, a.m == -INFINITY ? 0 : a.m);
        struct online ab = join(a, b, exp), ba = join(b, a, exp);
        if (!online_same(ab, ba))
            return false;
    }
    return true;
}

static bool has_identity(join_fn *join, exp_fn *exp) {
    struct rng r = rng_from_seed(2);
    for (size_t i = 0; i < 5000; i++) {
        struct online s = i < ONLINE_SPECIALS ? online_special[i] : online_random(&r, 0);
        if (!online_same(join(s, online_empty(), exp), s) ||
            !online_same(join(online_empty(), s, exp), s))
            return false;
    }
    return true;
}

/* A sum that is NaN (a NaN or +Inf was among its entries) stays NaN, joined with whatever. */
static bool keeps_nan(join_fn *join, exp_fn *exp) {
    static const float maxima[] = {-INFINITY, -3e38f, -1, 0, 200, INFINITY};
    struct rng r = rng_from_seed(3);
    for (int round = 0; round < 5000; round++) {
        struct online s = online_random(&r, 0);
        struct online n = {maxima[rng_below(&r, sizeof maxima / sizeof *maxima)], NAN};
        if (!isnan(join(s, n, exp).l) || !isnan(join(n, s, exp).l))
            return false;
    }
    /* Two sums with an infinite maximum: exp(Inf - Inf).  One: the others count for nothing. */
    struct online inf = {INFINITY, 1}, one = {7, 3};
    return isnan(join(inf, inf, exp).l) && join(one, inf, exp).l == 1 && join(inf, one, exp).l == 1;
}

struct leaf {
    struct online state;
    unsigned depth;
};

/* Leaves [begin, end) in a tree: balanced, a chain from either side, or of any shape. */
static struct online random_tree(struct leaf *leaf, size_t begin, size_t end, struct rng *r,
                                 unsigned shape, join_fn *join, exp_fn *exp) {
    size_t n = end - begin;
    if (n == 1)
        return leaf[begin].state;
    size_t left = shape == 0   ? n / 2
                  : shape == 1 ? 1
                  : shape == 2 ? n - 1
                               : 1 + (size_t)rng_below(r, n - 1);
    for (size_t i = begin; i < end; i++)
        leaf[i].depth++;
    struct online a = random_tree(leaf, begin, begin + left, r, shape, join, exp);
    struct online b = random_tree(leaf, begin + left, end, r, shape, join, exp);
    return join(a, b, exp);
}

static float largest(const struct leaf *leaf, size_t n) {
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++)
        max = leaf[i].state.m > max ? leaf[i].state.m : max;
    return max;
}

static double bound(const struct leaf *leaf, size_t n, double eps) {
    double max = largest(leaf, n), relative = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (leaf[i].state.l == 0)
            continue;
        /* Beyond 200 a term and its error are below 2^-280 l_i: the last term covers both. */
        double gap = max - leaf[i].state.m, l = leaf[i].state.l;
        if (gap < 200)
            relative += l * exp(-gap) * expm1(leaf[i].depth * (log1p(eps) + log1p(U)) + U * gap);
        sum += l;
    }
    return (relative + (double)n * 0x1p-147 * sum) * (1 + 0x1p-40); /* its own roundings */
}

/* |got - sum_i l_i exp(m_i - M)|, rounded up. */
static double distance(float got, const struct leaf *leaf, size_t n) {
    double max = largest(leaf, n);
    mpfr_t sum, term;
    mpfr_init2(sum, PRECISION);
    mpfr_init2(term, PRECISION);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < n; i++) {
        if (leaf[i].state.l == 0)
            continue;
        mpfr_set_flt(term, leaf[i].state.m, MPFR_RNDN);
        mpfr_sub_d(term, term, max, MPFR_RNDN);
        mpfr_exp(term, term, MPFR_RNDN);
        mpfr_mul_d(term, term, leaf[i].state.l, MPFR_RNDN);
        mpfr_add(sum, sum, term, MPFR_RNDN);
    }
    mpfr_sub_d(sum, sum, got, MPFR_RNDN);
    double d = fabs(mpfr_get_d(sum, MPFR_RNDA));
    mpfr_clear(sum);
    mpfr_clear(term);
    return d;
}

/*
 * Any tree over the same leaves gives the largest m exactly and l within the bound; so two trees
 * agree within two bounds.  *reached = the largest error over bound.
 */
static bool associates(double *reached, join_fn *join, const struct exponential *e) {
    struct rng r = rng_from_seed(4);
    struct leaf leaf[MAX_LEAVES], other[MAX_LEAVES];
    *reached = 0;
    for (int round = 0; round < 4000; round++) {
        size_t n = 2 + (size_t)rng_below(&r, MAX_LEAVES - 1);
        float near = 0;
        for (size_t i = 0; i < n; i++) {
            leaf[i] = (struct leaf){.state = online_random(&r, near)};
            if (leaf[i].state.m != -INFINITY && rng_below(&r, 2))
                near = leaf[i].state.m;
            other[i] = leaf[i];
        }
        unsigned shape = (unsigned)(round % 4);
        struct online a = random_tree(leaf, 0, n, &r, shape, join, e->exp);
        struct online b = random_tree(other, 0, n, &r, 3, join, e->exp);
        double limit = bound(leaf, n, e->eps), error = distance(a.l, leaf, n);
        if (a.m != largest(leaf, n) || b.m != a.m || !(error <= limit) ||
            !(fabs((double)a.l - (double)b.l) <= limit + bound(other, n, e->eps)))
            return false;
        if (limit > 0 && error / limit > *reached)
            *reached = error / limit;
    }
    return true;
}

/* ---- the kernels' combine has them all ------------------------------------------------------- */

static void kernels_combine_commutes(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_true(commutes(online_join, exponentials[i].exp));
}

static void empty_state_is_an_exact_identity(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_true(has_identity(online_join, exponentials[i].exp));
}

static void kernels_combine_associates_within_the_bound(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        double reached;
        assert_true(associates(&reached, online_join, &exponentials[i]));
        print_message("exp %s: error / bound up to %.3f\n", exponentials[i].name, reached);
        assert_true(reached > 0.25); /* a bound that nothing comes near would pass anything */
    }
}

static void nan_and_infinity_are_never_lost(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_true(keeps_nan(online_join, exponentials[i].exp));
}

/* One entry pushed is the state {x, 1} joined, to the bit: what softmax_online_shuffle_f32 uses. */
static void push_is_a_join(void **state) {
    (void)state;
    struct rng r = rng_from_seed(5);
    for (int round = 0; round < 20000; round++) {
        struct online s = online_random(&r, 0);
        float x = online_random_maximum(&r, s.m == -INFINITY ? 0 : s.m);
        struct online pushed = online_push(s, x, exp_neighbour);
        struct online joined = online_join(s, (struct online){x, 1}, exp_neighbour);
        assert_true(online_same(pushed, joined));
    }
}

static void push_of_special_entries(void **state) {
    (void)state;
    struct online empty = online_empty(), five = {5, 2};
    assert_true(online_same(online_push(empty, -INFINITY, exp_nearest), empty));
    assert_true(online_same(online_push(five, -INFINITY, exp_nearest), five));
    assert_true(online_same(online_push(empty, 3, exp_nearest), (struct online){3, 1}));
    assert_true(isnan(online_push(five, NAN, exp_nearest).l));
    assert_true(isnan(online_push(empty, NAN, exp_nearest).l));
    assert_true(isnan(online_push(five, INFINITY, exp_nearest).l));
}

/* ---- and each property refuses a combine that has it not ------------------------------------- */

static void planted_mistakes_are_caught(void **state) {
    (void)state;
    static const struct {
        const char *name;
        join_fn *join;
        bool commutes, identity, associates, nan; /* which properties it keeps */
    } planted[] = {
        {"no guard", join_no_guard, true, false, false, true},
        {"maxima swapped", join_swapped, true, false, false, false},
        {"no rescale", join_no_rescale, true, true, false, false},
        {"first maximum", join_first_maximum, false, false, false, false},
        {"NaN dropped", join_nan_dropped, true, false, true, false},
        {"rescaled twice", join_rescaled_twice, true, true, false, true},
    };
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        double reached;
        bool got[] = {commutes(planted[i].join, exp_nearest),
                      has_identity(planted[i].join, exp_nearest),
                      associates(&reached, planted[i].join, &exponentials[0]),
                      keeps_nan(planted[i].join, exp_nearest)};
        print_message("%s: commutes %d, identity %d, associates %d, keeps NaN %d\n",
                      planted[i].name, got[0], got[1], got[2], got[3]);
        assert_int_equal(got[0], planted[i].commutes);
        assert_int_equal(got[1], planted[i].identity);
        assert_int_equal(got[2], planted[i].associates);
        assert_int_equal(got[3], planted[i].nan);
    }
}

static int free_cache(void **state) {
    (void)state;
    mpfr_free_cache();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_combine_commutes),
        cmocka_unit_test(empty_state_is_an_exact_identity),
        cmocka_unit_test(kernels_combine_associates_within_the_bound),
        cmocka_unit_test(nan_and_infinity_are_never_lost),
        cmocka_unit_test(push_is_a_join),
        cmocka_unit_test(push_of_special_entries),
        cmocka_unit_test(planted_mistakes_are_caught),
    };
    return cmocka_run_group_tests(tests, NULL, free_cache);
}
