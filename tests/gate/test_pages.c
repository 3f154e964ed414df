/*
 * tests/gate/test_pages.c - attention over pages: what a unit is made of, and order checks of fakes that
 * look at pages or slots that are not theirs.
 */
#include "fake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/order.h"
#include "gate/plan.h"
#include "tests/check.h"

enum { KEYS_MOST = 80 };

static enum {
    HONEST,
    READS_ON,     /* one key beyond the length, with weight 0 */
    BY_PAGE,      /* a logit depends on where the page lies */
    NO_TABLE,     /* pages in order */
    ASKS_FOR_ALL, /* the first page of a sequence without keys */
} fault;

/* Everything in double, one query per head; o in f32. */
static void fake_paged(float *y, const float *x, struct case_dims d, uint64_t seed,
                       struct dev_run *run);

static struct fake paged_fake(void) {
    struct fake fake = fake_kernel("fake", "attention", fake_paged);
    const struct op *op = fake.kernel.op;
    fake.kernel.more_in[1] = fake.kernel.more_in[2] = tensor_type_find("f32");
    fake.kernel.more_in[3] = fake.kernel.more_in[op_block_table(op)] = tensor_type_find("i32");
    fake.options.scale = 0.25;
    fake.numerics.log = LOG_LOGF;
    fake.numerics.qk.height = 8;
    fake.numerics.pv.height = KEYS_MOST;
    return fake;
}

static void fake_paged(float *y, const float *x, struct case_dims d, uint64_t seed,
                       struct dev_run *run) {
    (void)seed, (void)run;
    const struct fake fake = paged_fake();
    struct tensor_block in;
    CHECK_OK(kernel_inputs(&in, &fake.kernel, d, (void *)x)); /* only read */
    const float *q = in.tensors[0].data, *k = in.tensors[1].data, *v = in.tensors[2].data;
    const int *lengths = in.tensors[3].data, *table = in.tensors[8].data;
    const size_t pages = (d.keys + 15) / 16;
    for (size_t r = 0; r < d.batch * d.heads; r++) {
        const size_t batch = r / d.heads, head = r % d.heads / (d.heads / d.kv_heads);
        double z[KEYS_MOST], max = -INFINITY, sum = 0;
        size_t at[KEYS_MOST], n = (size_t)lengths[batch], more = fault == READS_ON && n < d.keys;
        if (fault == READS_ON && n % 16 == 0)
            more = 0; /* it would be another page */
        for (size_t j = 0; j < n + more; j++) {
            int page =
                fault == NO_TABLE ? (int)(batch * pages + j / 16) : table[batch * pages + j / 16];
            at[j] = (((size_t)page * 16 + j % 16) * d.kv_heads + head) * d.head_dim;
            z[j] = fault == BY_PAGE ? page * 1e-3 : 0;
            for (size_t c = 0; c < d.head_dim; c++)
                z[j] += (double)q[r * d.head_dim + c] * (double)k[at[j] + c] * 0.25;
            max = j < n ? fmax(max, z[j]) : max;
        }
        for (size_t j = 0; j < n; j++)
            sum += exp(z[j] - max);
        for (size_t c = 0; c < d.head_dim; c++) {
            double o = 0;
            for (size_t j = 0; j < n; j++)
                o += exp(z[j] - max) * (double)v[at[j] + c];
            if (more)
                o += 0 * (double)v[at[n] + c];
            y[r * d.head_dim + c] = n ? (float)(o / sum) : 0;
        }
        if (fault == ASKS_FOR_ALL && n == 0)
            y[r * d.head_dim] += (float)table[batch * pages] * 0x1p-60f;
    }
}

static const struct case_dims dims = {
    .batch = 4, .heads = 4, .kv_heads = 2, .queries = 1, .keys = 70, .head_dim = 8};

static void reads_by_the_table(void **state) {
    (void)state;
    const struct fake fake = paged_fake();
    struct test_case c;
    struct op_unit u;
    CHECK_OK(case_make(&c, fill_of(fake.kernel.op, "normal"), &fake.kernel, dims, 3));
    assert_int_equal(c.in[8].count, 4 * 5);
    assert_int_equal(c.in[1].count, (4 * 5 + 1) * 16 * 2 * 8);
    const struct op_case oc = case_for_op(&c, EMPTY_NAN);
    CHECK_OK(op_unit_init(&u, fake.kernel.op, &oc));
    op_unit_at(&u, 1 * 4 + 3);
    const struct attention_row *r = u.row.attention;
    const float *k = c.in[1].data, *v = c.in[2].data;
    const int *lengths = c.in[3].data, *table = c.in[8].data;
    assert_int_equal(lengths[1], 70); /* every second one is whole */
    assert_int_equal(r->keys_used, 70);
    for (size_t j = 0; j < 70; j += 23) {
        size_t row = ((size_t)table[5 + j / 16] * 16 + j % 16) * 2 + 1;
        assert_true(r->k[j * r->k_stride + 3] == (double)k[row * 8 + 3]);
        assert_true(r->v[j * r->v_stride + 5] == (double)v[row * 8 + 5]);
    }
    /* a page that is not of the pool holds no key */
    ((int *)c.in[8].data)[5 + 2] = 21;
    op_unit_at(&u, 0);
    op_unit_at(&u, 1 * 4 + 3);
    assert_true(isnan(r->k[32 * r->k_stride]) && !isnan(r->k[31 * r->k_stride]));
    op_unit_clear(&u);
    case_clear(&c);
}

/* Slots and pages that no key has hold NaN, entries that no key needs -1, and pages are shared. */
static void fills_keep_their_promises(void **state) {
    (void)state;
    const struct fake fake = paged_fake();
    size_t shared = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct test_case c;
        CHECK_OK(case_make(&c, fill_of(fake.kernel.op, "shared_prefix"), &fake.kernel, dims, seed));
        const int *lengths = c.in[3].data, *table = c.in[8].data;
        size_t numbers = 0, keys = 0;
        bool seen[21] = {0};
        for (size_t i = 0; i < 20; i++) {
            assert_int_equal(table[i] < 0, (int)(i % 5 * 16) >= lengths[i / 5]);
            for (size_t b = 1; b < 4 && i < 5; b++)
                shared += table[i] >= 0 && table[b * 5 + i] == table[i];
            if (table[i] >= 0 && !seen[table[i]]) {
                int left = lengths[i / 5] - (int)(i % 5 * 16);
                keys += (size_t)(left < 16 ? left : 16);
                seen[table[i]] = true;
            }
        }
        for (size_t i = 0; i < c.in[1].count; i++)
            numbers += !isnan(tensor_get(&c.in[1], i));
        assert_int_equal(numbers, keys * 2 * 8);
        case_clear(&c);
    }
    assert_true(shared > 0);
}

static struct judgement check(const struct fake *fake, const char *fill, uint64_t seed) {
    struct loaded_kernel *lk = fake_load(fake);
    struct kernel_result *result = malloc(sizeof *result);
    struct test_case c;
    struct truth truth;
    struct judgement j;
    bool saw;
    assert_non_null(result);
    CHECK_OK(case_make(&c, fill_of(fake->kernel.op, fill), &fake->kernel, dims, seed));
    CHECK_OK(truth_init(&truth, fake->kernel.op, &c, EMPTY_NAN));
    CHECK_OK(order_check(&j, &saw, result, lk, &c, &truth));
    assert_true(saw);
    truth_clear(&truth);
    case_clear(&c);
    free(result);
    kernel_unload(lk);
    return j;
}

static void honest_kernels_pass(void **state) {
    (void)state;
    static const char *const names[] = {"normal", "unused", "shared_prefix"};
    const struct fake fake = paged_fake();
    fault = HONEST;
    for (size_t i = 0; i < 3; i++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct judgement j = check(&fake, names[i], seed);
            CHECK(j.verdict == VERDICT_PASS, "%s, seed %d: %s", names[i], (int)seed, j.reason);
        }
}

static void wrong_kernels_do_not(void **state) {
    (void)state;
    static const struct {
        int fault;
        const char *fill, *reason;
    } table[] = {
        {READS_ON, "shared_prefix", "order: unused slots 1: o, element ["},
        {BY_PAGE, "normal", "order: moved pages 1: o, element ["},
        {NO_TABLE, "shared_prefix", "order: unused slots 1: o, element ["},
        {ASKS_FOR_ALL, "unused", "order: unused slots 1: o, element ["},
    };
    const struct fake fake = paged_fake();
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        fault = table[i].fault;
        struct judgement j = check(&fake, table[i].fill, 1);
        CHECK(j.verdict == VERDICT_FAIL && strstr(j.reason, table[i].reason), "%zu: %s, %s", i,
              verdict_name(j.verdict), j.reason);
    }
}

/* Suites have the fill of shared pages where there are pages. */
static void plans_ask_for_a_table(void **state) {
    (void)state;
    struct fake fake = paged_fake();
    for (int with = 0; with < 2; with++) {
        struct plan plan;
        size_t shared = 0, orders = 0;
        fake.kernel.more_in[op_block_table(fake.kernel.op)] = with ? tensor_type_find("i32") : NULL;
        CHECK_OK(plan_init(&plan, &fake.kernel, SUITE_QUICK, 1, NULL));
        for (size_t i = 0; i < plan.count; i++) {
            shared += strcmp(plan.items[i].fill->name, "shared_prefix") == 0;
            orders += plan.items[i].check == CHECK_ORDER;
        }
        assert_int_equal(shared, with ? 2 : 0);
        assert_int_equal(orders, with ? 3 : 1);
        plan_clear(&plan);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_by_the_table),    cmocka_unit_test(fills_keep_their_promises),
        cmocka_unit_test(honest_kernels_pass),   cmocka_unit_test(wrong_kernels_do_not),
        cmocka_unit_test(plans_ask_for_a_table),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
