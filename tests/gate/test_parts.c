/*
 * tests/gate/test_parts.c - attention_combine under order checks: its parts in other orders, swapped,
 * with parts of nothing among them, and joined in two steps.  One fake is honest, the others are wrong
 * in one way each.
 */
#include "fake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/order.h"
#include "gate/plan.h"
#include "tests/check.h"

static enum {
    HONEST,
    TWO_SUMS,         /* honest: positive terms and negative ones apart, so Inf - Inf may come */
    FUSED,            /* an fma: of two products one is rounded */
    COUNTS_NOTHING,   /* 0 NaN for a part of lse -Inf */
    FAVOURS_THE_LAST, /* its weight is a little more */
    LSE_OFF,          /* by 1e-3 where there are several parts */
    LEAKS,            /* 0 times the first row's lse */
} fault;

static void fake_combine(float *y, const float *x, struct case_dims d, uint64_t seed,
                         struct dev_run *run) {
    (void)seed, (void)run;
    float *lse = y + (d.rows * d.head_dim * sizeof *y + 15) / 16 * 16 / sizeof *y;
    const float *lse_p = x + (d.parts * d.rows * d.head_dim * sizeof *x + 15) / 16 * 16 / sizeof *x;
    for (size_t r = 0; r < d.rows; r++) {
        float m = -INFINITY, l = 0;
        for (size_t p = 0; p < d.parts; p++)
            m = fmaxf(m, lse_p[p * d.rows + r]);
        float at = isinf(m) ? 0 : m;
        for (size_t c = 0; c < d.head_dim; c++) {
            float sum = -0.0f, negative = -0.0f;
            l = 0;
            for (size_t p = 0; p < d.parts; p++) {
                float own = lse_p[p * d.rows + r];
                if (own == -INFINITY && fault != COUNTS_NOTHING)
                    continue;
                float weight = (float)exp((double)own - (double)at);
                if (fault == FAVOURS_THE_LAST && p + 1 == d.parts)
                    weight *= 1.0001f;
                float product = weight * x[(p * d.rows + r) * d.head_dim + c];
                if (fault == TWO_SUMS && product < 0)
                    negative += product;
                else
                    sum = fault == FUSED ? fmaf(weight, x[(p * d.rows + r) * d.head_dim + c], sum)
                                         : sum + product;
                l += weight;
            }
            sum += negative;
            y[r * d.head_dim + c] = l == 0 ? 0 : sum / l;
            if (fault == LEAKS)
                y[r * d.head_dim + c] += 0 * lse_p[0];
        }
        lse[r] = l == 0 ? -INFINITY : at + (float)log((double)l);
        if (fault == LSE_OFF && d.parts > 1)
            lse[r] += 1e-3f;
    }
}

static struct fake combine_fake(void) {
    struct fake fake = fake_kernel("fake", "attention_combine", fake_combine);
    fake.kernel.more_in[1] = fake.kernel.more_out[1] = tensor_type_find("f32");
    fake.kernel.combines_exactly = true;
    fake.numerics.log = LOG_LOGF;
    fake.numerics.sum_height = fake.numerics.pv.height = 9;
    return fake;
}

static struct judgement check_case(const struct fake *fake, const struct test_case *c) {
    struct loaded_kernel *lk = fake_load(fake);
    struct kernel_result *result = malloc(sizeof *result);
    struct truth truth;
    struct judgement j;
    bool saw;
    assert_non_null(result);
    CHECK_OK(truth_init(&truth, fake->kernel.op, c, EMPTY_NAN));
    CHECK_OK(order_check(&j, &saw, result, lk, c, &truth));
    assert_true(saw);
    truth_clear(&truth);
    free(result);
    kernel_unload(lk);
    return j;
}

static struct judgement check(const struct fake *fake, const char *fill, struct case_dims dims,
                              uint64_t seed) {
    struct test_case c;
    CHECK_OK(case_make(&c, fill_of(fake->kernel.op, fill), &fake->kernel, dims, seed));
    struct judgement j = check_case(fake, &c);
    case_clear(&c);
    return j;
}

static void honest_kernels_pass(void **state) {
    (void)state;
    const struct fake fake = combine_fake();
    fault = HONEST;
    for (const struct fill *f = fills_of(fake.kernel.op); f->name; f++)
        for (size_t parts = 1; parts < 7; parts++)
            for (uint64_t seed = 0; seed < 6; seed++) {
                const struct case_dims dims = {.parts = parts, .rows = 5, .head_dim = 3};
                struct judgement j = check(&fake, f->name, dims, seed);
                CHECK(j.verdict == VERDICT_PASS, "%s, %zu parts, seed %d: %s", f->name, parts,
                      (int)seed, j.reason);
            }
}

static void wrong_kernels_do_not(void **state) {
    (void)state;
    static const struct {
        int fault;
        const char *reason;
    } table[] = {
        {FUSED, "order: swap 1: o, element [0][5] changes: equal bits are due (combine: exact)"},
        {COUNTS_NOTHING,
         "order: parts of nothing 1: o, element [0][0] changes: equal bits are due"},
        {FAVOURS_THE_LAST, "order: swap 1: o, element [0][0] changes"},
        {LSE_OFF, "order: groups 1: lse, element ["},
        {LEAKS, "order: neighbours 1: o, element [2][0] changes"},
    };
    struct fake fake = combine_fake();
    const struct case_dims dims = {.parts = 5, .rows = 5, .head_dim = 16};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        fault = table[i].fault;
        struct judgement j = check(&fake, "normal", dims, 1);
        CHECK(j.verdict == VERDICT_FAIL && strstr(j.reason, table[i].reason), "%zu: %s, %s", i,
              verdict_name(j.verdict), j.reason);
    }
    /* without the claim an fma is fine, and a wrong weight is still found */
    fake.kernel.combines_exactly = false;
    fault = FUSED;
    assert_int_equal(check(&fake, "normal", dims, 1).verdict, VERDICT_PASS);
    fault = FAVOURS_THE_LAST;
    struct judgement j = check(&fake, "normal", dims, 1);
    CHECK(j.verdict == VERDICT_FAIL && strstr(j.reason, "order: order of parts "), "%s", j.reason);
}

/* Alone, the first four parts overflow to Inf - Inf; beside the others they weigh next to nothing. */
static void nothing_is_claimed_of_a_void_group(void **state) {
    (void)state;
    const struct fake fake = combine_fake();
    const struct case_dims dims = {.parts = 8, .rows = 1, .head_dim = 1};
    struct test_case c;
    CHECK_OK(case_make(&c, fill_of(fake.kernel.op, "normal"), &fake.kernel, dims, 1));
    for (size_t p = 0; p < dims.parts; p++) {
        tensor_set(&c.in[0], p, p >= 4 ? 1 : p % 2 ? 3e38 : -3e38);
        tensor_set(&c.in[1], p, p >= 4 ? 10 : 0);
    }
    fault = TWO_SUMS;
    struct judgement j = check_case(&fake, &c);
    CHECK(j.verdict == VERDICT_PASS, "%s: %s", verdict_name(j.verdict), j.reason);
    case_clear(&c);
}

/* Every fill has an order check, at other shapes. */
static void plans_have_all_fills(void **state) {
    (void)state;
    const struct fake fake = combine_fake();
    struct plan plan;
    size_t orders = 0, fill_count = 0;
    while (fills_of(fake.kernel.op)[fill_count].name)
        fill_count++;
    CHECK_OK(plan_init(&plan, &fake.kernel, SUITE_QUICK, 1, NULL));
    for (size_t i = 0; i < plan.count; i++)
        orders += plan.items[i].check == CHECK_ORDER;
    assert_int_equal(orders, fill_count);
    plan_clear(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_kernels_pass),
        cmocka_unit_test(wrong_kernels_do_not),
        cmocka_unit_test(nothing_is_claimed_of_a_void_group),
        cmocka_unit_test(plans_have_all_fills),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
