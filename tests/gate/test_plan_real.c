/* tests/gate/test_plan_real.c - the captured q, k and v as cases: which go where, and what is in them. */
#include "fake.h"

#include <string.h>

#include "gate/plan.h"
#include "tests/check.h"

static struct fake attention(const struct dtype *dt) {
    struct fake f = fake_kernel("fake", "attention", fake_sum);
    f.kernel.in = f.kernel.out = dt;
    f.kernel.more_in[1] = f.kernel.more_in[2] = tensor_type_of(dt);
    return f;
}

/* The items from files; *last is the last of them. */
static size_t from_files(const struct plan *p, const struct plan_item **last) {
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].files) {
            *last = &p->items[i];
            n++;
        }
    return n;
}

static void groups_of_heads(void **state) {
    (void)state;
    static const size_t full[DT_COUNT] = {[DT_F32] = 1, [DT_F16] = 3, [DT_BF16] = 1};
    for (int id = 0; id < DT_COUNT; id++) {
        const struct fake fake = attention(&dtypes[id]);
        const struct plan_item *item = NULL;
        struct plan plan;
        CHECK_OK(plan_init(&plan, &fake.kernel, SUITE_FULL, 1, REAL_FOLDER));
        assert_int_equal(from_files(&plan, &item), full[id]);
        plan_clear(&plan);
        CHECK_OK(plan_init(&plan, &fake.kernel, SUITE_QUICK, 1, REAL_FOLDER));
        assert_int_equal(from_files(&plan, &item), 1);
        assert_int_equal(item->dims.queries, 48);
        assert_int_equal(item->dims.heads, id == DT_F16 ? 3 : 1);
        plan_clear(&plan);
    }
}

/* Heads stand behind one another, tokens are the first ones, and the line names the case again. */
static void cases_hold_the_files(void **state) {
    (void)state;
    const struct fake fake = attention(&dtypes[DT_F16]);
    const struct plan_item *item = NULL;
    struct plan plan, again;
    struct test_case c, alone;
    char line[CASE_LINE_SIZE], own[CASE_LINE_SIZE];
    CHECK_OK(plan_init(&plan, &fake.kernel, SUITE_QUICK, 1, REAL_FOLDER));
    CHECK_OK(plan_init(&again, &fake.kernel, SUITE_QUICK, 1, REAL_FOLDER));
    assert_true(plan_equal(&plan, &again));
    assert_int_equal(from_files(&plan, &item), 1);
    CHECK_OK(plan_case(&c, item, &fake.kernel));
    assert_true(dims_equal(&c.dims, &item->dims));
    const struct case_file files[] = {
        {.name = "q", .path = REAL_FOLDER "/q_l18_h7_t512_f16.npy"},
        {.name = "k", .path = REAL_FOLDER "/k_l18_kv2_t512_f16.npy"},
        {.name = "v", .path = REAL_FOLDER "/v_l18_kv2_t512_f16.npy"},
    };
    CHECK_OK(case_from_files(&alone, &fake.kernel, files, 3, (struct case_dims){0}));
    assert_int_equal(alone.dims.queries, 512);
    for (size_t i = 0; i < 48 * 64; i++) {
        assert_int_equal(tensor_bits(&c.in[0], 48 * 64 + i), tensor_bits(&alone.in[0], i));
        assert_int_equal(tensor_bits(&c.in[1], i), tensor_bits(&alone.in[1], i));
        assert_int_equal(tensor_bits(&c.in[2], i), tensor_bits(&alone.in[2], i));
    }
    plan_line(line, sizeof line, item);
    case_line(own, sizeof own, &c);
    assert_string_equal(line, own);
    CHECK_CONTAINS(line, "q_l18_h6_t512_f16.npy,");
    CHECK_CONTAINS(line, " --rows 0:48 --shape batch=1,heads=3,kv_heads=1,queries=48,keys=48,");
    case_clear(&alone);
    case_clear(&c);
    plan_clear(&again);
    plan_clear(&plan);
}

/* Pages and one-row kernels have no use for them. */
static void pages_have_none(void **state) {
    (void)state;
    struct fake fake = attention(&dtypes[DT_F16]);
    const struct plan_item *item = NULL;
    struct plan plan;
    fake.kernel.more_in[op_block_table(fake.kernel.op)] = tensor_type_find("i32");
    CHECK_OK(plan_init(&plan, &fake.kernel, SUITE_FULL, 1, REAL_FOLDER));
    assert_int_equal(from_files(&plan, &item), 0);
    plan_clear(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_heads),
        cmocka_unit_test(cases_hold_the_files),
        cmocka_unit_test(pages_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
