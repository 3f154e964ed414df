/*
 * Ops of several tensors: cases and their bits, units made of a case, judgements of more than one
 * output.  The fakes compute in double and round once, so that an honest one is far within budget.
 */
#include "fake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/order.h"
#include "gate/plan.h"
#include "gate/twin.h"
#include "tests/check.h"

/* ---- cases ----------------------------------------------------------------------------------- */

static bool is_paged(const char *op) {
    return strcmp(op, "attention_paged") == 0;
}

static const struct op *op_of(const char *name) {
    return op_find(is_paged(name) ? "attention" : name);
}

static struct fake kernel_for(const char *op, const struct dtype *dt) {
    struct fake f = fake_kernel("fake", op_of(op)->name, fake_sum);
    f.kernel.in = f.kernel.out = dt;
    for (size_t i = 1; i < op_input_count(f.kernel.op); i++)
        f.kernel.more_in[i] = f.kernel.op->inputs[i].kind == TENSOR_REAL ? tensor_type_of(dt)
                              : f.kernel.op->inputs[i].kind == TENSOR_WHOLE
                                  ? tensor_type_find("i32")
                                  : tensor_type_find("u8");
    if (op_block_table(f.kernel.op) < OP_MAX_INPUTS && !is_paged(op))
        f.kernel.more_in[op_block_table(f.kernel.op)] = NULL;
    f.options = (struct op_options){.scale = 0.25, .base = 10000, .rotary_dim = 4, .eps = 1e-5};
    return f;
}

static const struct {
    const char *op;
    struct case_dims dims;
} cases[] = {
    {"layernorm", {.rows = 6, .cols = 33}},
    {"rope", {.rows = 5, .heads = 2, .head_dim = 8}},
    {"attention", {.batch = 2, .heads = 4, .kv_heads = 2, .queries = 5, .keys = 70, .head_dim = 8}},
    {"attention_combine", {.parts = 5, .rows = 6, .head_dim = 8}},
    {"attention_paged",
     {.batch = 2, .heads = 4, .kv_heads = 2, .queries = 5, .keys = 70, .head_dim = 8}},
};

static uint64_t hash_of(const struct test_case *c, const struct kernel *k) {
    struct tensor_block block;
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    CHECK_OK(kernel_inputs(&block, k, c->dims, c->x));
    for (size_t i = 0; i < OP_MAX_INPUTS; i++)
        for (size_t b = 0; c->in[i].type && b < c->in[i].count * c->in[i].type->size; b++)
            hash = (hash ^ ((const unsigned char *)c->in[i].data)[b]) * 0x100000001b3u;
    return hash;
}

/* All seeds 0 .. 11 of a fill in all formats, in one number. */
static uint64_t hash_fill(const struct fill *f, const char *op, struct case_dims dims) {
    uint64_t hash = 0;
    for (int id = 0; id < DT_COUNT; id++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            struct fake fake = kernel_for(op, &dtypes[id]);
            struct test_case c;
            CHECK_OK(case_make(&c, f, &fake.kernel, dims, seed));
            hash = hash * 31 + hash_of(&c, &fake.kernel);
            case_clear(&c);
        }
    return hash;
}

/* A case line means the same bits for ever. */
static const struct {
    const char *op, *fill;
    uint64_t hash;
} golden[] = {
#include "golden_ops.inc"
};

static void bits_are_kept(void **state) {
    (void)state;
    size_t seen = 0, differ = 0;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (const struct fill *f = fills_of(op_of(cases[k].op)); f->name; f++) {
            uint64_t hash = hash_fill(f, cases[k].op, cases[k].dims), wanted = 0;
            for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++)
                if (strcmp(golden[i].op, cases[k].op) == 0 && strcmp(golden[i].fill, f->name) == 0)
                    wanted = golden[i].hash;
            seen++;
            if (hash == wanted)
                continue;
            differ++;
            print_error("{\"%s\", \"%s\", 0x%016llx},\n", cases[k].op, f->name,
                        (unsigned long long)hash);
        }
    CHECK(differ == 0, "%zu fills have other bits than golden_ops.inc", differ);
    assert_int_equal(seen, sizeof golden / sizeof golden[0]);
}

/* A finite value of a fill stays finite in every format, and only the special fills hold others. */
static void only_special_fills_are_special(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (const struct fill *f = fills_of(op_of(cases[k].op)); f->name; f++) {
            bool special = strstr(f->name, "special") || strstr(f->name, "_inf") ||
                           strstr(f->name, "_nan") || strcmp(f->name, "unused") == 0 ||
                           strcmp(f->name, "far_below") == 0 || strcmp(f->name, "empty") == 0 ||
                           strcmp(f->name, "huge") == 0; /* which has -Inf beside the largest */
            size_t strange = 0;
            special |= is_paged(cases[k].op); /* NaN wherever no key is */
            for (uint64_t seed = 0; seed < 12; seed++) {
                struct fake fake = kernel_for(cases[k].op, &dtypes[seed % DT_COUNT]);
                struct test_case c;
                CHECK_OK(case_make(&c, f, &fake.kernel, cases[k].dims, seed));
                for (size_t i = 0; i < OP_MAX_INPUTS; i++)
                    for (size_t e = 0; e < c.in[i].count; e++)
                        strange += !isfinite(tensor_get(&c.in[i], e));
                case_clear(&c);
            }
            CHECK((strange > 0) == special, "%s, %s: %zu values are not finite", cases[k].op,
                  f->name, strange);
        }
}

static void lines_name_the_shape(void **state) {
    (void)state;
    struct fake fake = kernel_for("attention", &dtypes[DT_F16]);
    struct test_case c;
    char line[CASE_LINE_SIZE];
    CHECK_OK(case_make(&c, &fills_of(fake.kernel.op)[0], &fake.kernel, cases[2].dims, 7));
    case_line(line, sizeof line, &c);
    assert_string_equal(line, "--fill normal --shape batch=2,heads=4,kv_heads=2,queries=5,keys=70,"
                              "head_dim=8 --seed 7");
    case_clear(&c);
    struct case_dims huge = cases[2].dims;
    huge.keys = SIZE_MAX / 4;
    assert_int_equal(case_make(&c, &fills_of(fake.kernel.op)[0], &fake.kernel, huge, 7), ERR_USAGE);
}

/* ---- units ----------------------------------------------------------------------------------- */

/* Batch 1, head 3, query 2 of the shape above: keys and values of key-value head 1 of batch 1. */
static void attention_reads_its_own_rows(void **state) {
    (void)state;
    struct fake fake = kernel_for("attention", &dtypes[DT_F32]);
    struct test_case c;
    struct op_unit u;
    CHECK_OK(case_make(&c, &fills_of(fake.kernel.op)[0], &fake.kernel, cases[2].dims, 3));
    const struct op_case oc = case_for_op(&c, EMPTY_NAN);
    CHECK_OK(op_unit_init(&u, fake.kernel.op, &oc));
    size_t units;
    assert_true(op_unit_count(&units, c.op, &c.dims) && units == 40);
    assert_int_equal(op_result_count(c.op, &c.dims), 9);
    for (int twice = 0; twice < 2; twice++) {
        op_unit_at(&u, 0);
        op_unit_at(&u, (1 * 4 + 3) * 5 + 2);
        const struct attention_row *r = u.row.attention;
        const float *q = c.in[0].data, *k = c.in[1].data, *v = c.in[2].data;
        const float *bias = c.in[4].data, *slopes = c.in[6].data, *sinks = c.in[7].data;
        const unsigned char *mask = c.in[5].data;
        assert_true(r->query == 2 && r->queries == 5 && r->keys == 70);
        assert_true((double)r->keys_used == tensor_get(&c.in[3], 1));
        assert_true(r->q[5] == (double)q[((1 * 4 + 3) * 5 + 2) * 8 + 5]);
        assert_true(r->k[61 * r->k_stride + 4] == (double)k[((1 * 2 + 1) * 70 + 61) * 8 + 4]);
        assert_true(r->v[2 * r->v_stride + 7] == (double)v[((1 * 2 + 1) * 70 + 2) * 8 + 7]);
        assert_true(r->bias[9] == (double)bias[((1 * 4 + 3) * 5 + 2) * 70 + 9]);
        assert_true(r->mask[13] == mask[(1 * 5 + 2) * 70 + 13]);
        assert_true(r->alibi_slope == (double)slopes[3] && *r->sink == (double)sinks[3]);
    }
    op_unit_clear(&u);
    case_clear(&c);
    fake.kernel.more_in[3] = fake.kernel.more_in[4] = fake.kernel.more_in[5] = NULL;
    CHECK_OK(case_make(&c, &fills_of(fake.kernel.op)[0], &fake.kernel, cases[2].dims, 3));
    const struct op_case fewer = case_for_op(&c, EMPTY_NAN);
    CHECK_OK(op_unit_init(&u, fake.kernel.op, &fewer));
    op_unit_at(&u, 0);
    assert_true(!u.row.attention->bias && !u.row.attention->mask &&
                u.row.attention->keys_used == 70);
    op_unit_clear(&u);
    case_clear(&c);
}

static void shapes_that_do_not_fit(void **state) {
    (void)state;
    struct op_options options = {.rotary_dim = 6};
    struct case_dims dims = {.heads = 4, .kv_heads = 3, .head_dim = 4};
    assert_non_null(op_refuses(op_find("attention"), &dims, &options));
    dims.kv_heads = 2;
    assert_null(op_refuses(op_find("attention"), &dims, &options));
    assert_non_null(op_refuses(op_find("rope"), &dims, &options));
    options.rotary_dim = 3;
    assert_non_null(op_refuses(op_find("rope"), &dims, &options));
    options.rotary_dim = 2;
    assert_null(op_refuses(op_find("rope"), &dims, &options));
    assert_null(op_refuses(op_find("sum"), &dims, &options));
}

/* ---- judgements ------------------------------------------------------------------------------ */

/* What the fakes below do wrong. */
static enum {
    HONEST,
    WRONG_LSE,
    WRONG_O,
    SILENT_LSE,
    NO_LSE,
    LATER_O,
    LATER_LSE,
    LEAKS,
    WRONG_INDEX,
    TWICE,
    NEGATIVE
} fault;
static size_t runs; /* of fake_attention since it was set to 0 */

static void fake_attention(float *y, const float *x, struct case_dims d, uint64_t seed,
                           struct dev_run *run) {
    (void)seed, (void)run;
    struct fake fake = kernel_for("attention", &dtypes[DT_F32]);
    for (size_t i = 3; i < OP_MAX_INPUTS; i++)
        fake.kernel.more_in[i] = NULL;
    fake.kernel.more_out[1] = fault == NO_LSE ? NULL : tensor_type_find("f32");
    struct tensor_block in, out;
    CHECK_OK(kernel_inputs(&in, &fake.kernel, d, (void *)x));
    CHECK_OK(kernel_outputs(&out, &fake.kernel, d, y));
    const float *q = in.tensors[0].data, *k = in.tensors[1].data, *v = in.tensors[2].data;
    float *o = out.tensors[0].data, *lse = out.tensors[1].data;
    double z[128], *o_row = calloc(d.head_dim, sizeof *o_row);
    for (size_t r = 0; r < d.batch * d.heads * d.queries; r++) {
        size_t head = r / d.queries,
               kv = head / d.heads * d.kv_heads + head % d.heads / (d.heads / d.kv_heads);
        double max = -INFINITY, sum = 0;
        memset(o_row, 0, d.head_dim * sizeof *o_row);
        for (size_t j = 0; j < d.keys; j++) {
            z[j] = 0;
            for (size_t c = 0; c < d.head_dim; c++)
                z[j] += (double)q[r * d.head_dim + c] *
                        (double)k[(kv * d.keys + j) * d.head_dim + c] * 0.25;
            max = fmax(max, z[j]);
        }
        for (size_t j = 0; j < d.keys; j++) {
            sum += exp(z[j] - max);
            for (size_t c = 0; c < d.head_dim; c++)
                o_row[c] += exp(z[j] - max) * (double)v[(kv * d.keys + j) * d.head_dim + c];
        }
        for (size_t c = 0; c < d.head_dim; c++)
            o[r * d.head_dim + c] = (float)(o_row[c] / sum);
        if (fault == LATER_O && runs > 0 && r == 6)
            o[r * d.head_dim + 3] = nextafterf(o[r * d.head_dim + 3], 9);
        if (fault == LEAKS) /* 0 times the first query of all */
            o[r * d.head_dim] += q[0] * 0;
        if (fault == WRONG_O && r == 6)
            o[r * d.head_dim + 3] *= 1.001f;
        if (lse && (fault != SILENT_LSE || r != 4))
            lse[r] = (float)((max + log(sum)) * (fault == WRONG_LSE ? 1.4426950408889634 : 1));
        if (fault == LATER_LSE && runs > 0 && r == 4)
            lse[r] = nextafterf(lse[r], 99);
    }
    runs++;
    free(o_row);
}

static struct judgement judge_with(struct fake *fake, const char *fill, struct case_dims dims) {
    struct loaded_kernel *lk = fake_load(fake);
    struct kernel_result *result = malloc(sizeof *result);
    struct test_case c;
    struct truth truth;
    struct judgement j;
    assert_non_null(result);
    CHECK_OK(case_make(&c, fill_of(fake->kernel.op, fill), &fake->kernel, dims, 1));
    CHECK_OK(truth_init(&truth, fake->kernel.op, &c, EMPTY_NAN));
    CHECK_OK(judge_kernel(&j, result, lk, &c, &truth));
    truth_clear(&truth);
    case_clear(&c);
    free(result);
    kernel_unload(lk);
    return j;
}

static struct fake attention_fake(void) {
    struct fake fake = kernel_for("attention", &dtypes[DT_F32]);
    fake.compute = fake_attention;
    for (size_t i = 3; i < OP_MAX_INPUTS; i++)
        fake.kernel.more_in[i] = NULL;
    fake.kernel.more_out[1] = tensor_type_find("f32");
    fake.numerics.sum_height = 70;
    fake.numerics.log = LOG_LOGF;
    fake.numerics.qk.height = 8;
    fake.numerics.pv.height = 70;
    return fake;
}

static void judges_each_output(void **state) {
    (void)state;
    struct fake fake = attention_fake();
    struct case_dims dims = cases[2].dims;
    fault = HONEST;
    struct judgement j = judge_with(&fake, "normal", dims);
    CHECK(j.verdict == VERDICT_PASS && j.max_rho < 0.5, "%s: %s, rho %g", verdict_name(j.verdict),
          j.reason, j.max_rho);
    fault = WRONG_LSE;
    j = judge_with(&fake, "normal", dims);
    assert_int_equal(j.verdict, VERDICT_FAIL);
    assert_int_equal(j.worst.output, 1);
    CHECK_CONTAINS(j.reason, "lse, element [");
    fault = WRONG_O;
    j = judge_with(&fake, "normal", dims);
    assert_int_equal(j.verdict, VERDICT_FAIL);
    CHECK_CONTAINS(j.reason, "o, element [6][3]");
    fault = SILENT_LSE;
    j = judge_with(&fake, "normal", dims);
    assert_int_equal(j.verdict, VERDICT_FAIL);
    CHECK_CONTAINS(j.reason, "lse, element [4][8] was never written");
    /* a kernel that says it has no lse is judged by o alone */
    fake.kernel.more_out[1] = NULL;
    fault = NO_LSE;
    j = judge_with(&fake, "normal", dims);
    assert_int_equal(j.verdict, VERDICT_PASS);
}

static void fake_topk(float *y, const float *x, struct case_dims d, uint64_t seed,
                      struct dev_run *run) {
    (void)seed, (void)run;
    struct fake fake = kernel_for("softmax_topk", &dtypes[DT_F32]);
    fake.kernel.more_out[1] = tensor_type_find("i32");
    struct tensor_block out;
    CHECK_OK(kernel_outputs(&out, &fake.kernel, d, y));
    float *p = out.tensors[0].data;
    int32_t *index = out.tensors[1].data;
    for (size_t r = 0; r < d.rows; r++, x += d.cols, p += d.k, index += d.k) {
        double max = -INFINITY, sum = 0;
        bool used[128] = {0};
        for (size_t j = 0; j < d.cols; j++)
            max = fmax(max, (double)x[j]);
        for (size_t j = 0; j < d.cols; j++)
            sum += exp((double)x[j] - max);
        for (size_t k = 0; k < d.k; k++) {
            size_t best = d.cols;
            for (size_t j = 0; j < d.cols; j++)
                if (!used[j] && (best == d.cols || x[j] > x[best]))
                    best = j;
            used[best] = true;
            index[k] = (int32_t)best;
            p[k] = (float)(exp((double)x[best] - max) / sum);
        }
        if (fault == WRONG_INDEX && r == 1)
            index[2] = (index[2] + 1) % (int32_t)d.cols;
        if (fault == TWICE && r == 1)
            index[2] = index[1];
        if (fault == NEGATIVE && r == 1)
            index[2] = -1;
    }
}

static void judges_whole_numbers(void **state) {
    (void)state;
    struct fake fake = kernel_for("softmax_topk", &dtypes[DT_F32]);
    struct case_dims dims = {.rows = 3, .cols = 33, .k = 5};
    fake.compute = fake_topk;
    fake.kernel.more_out[1] = tensor_type_find("i32");
    fault = HONEST;
    struct judgement j = judge_with(&fake, "ties", dims);
    CHECK(j.verdict == VERDICT_PASS, "%s: %s", verdict_name(j.verdict), j.reason);
    for (int f = WRONG_INDEX; f <= NEGATIVE; f++) {
        fault = f;
        j = judge_with(&fake, "normal", dims);
        assert_int_equal(j.verdict, VERDICT_FAIL);
        assert_int_equal(j.worst.output, 1);
        CHECK_CONTAINS(j.reason, "index, element [1][7]");
        CHECK_CONTAINS(j.reason, "cannot stand there");
    }
}

/* The twin compares all outputs. */
static void twins_in_all_outputs(void **state) {
    (void)state;
    struct fake one = attention_fake(), two = attention_fake();
    struct loaded_kernel *lk = fake_load(&one), *twin = fake_load(&two);
    struct kernel_result *result = malloc(sizeof *result);
    struct test_case c;
    struct judgement j;
    size_t compared;
    assert_non_null(result);
    CHECK_OK(case_make(&c, fill_of(one.kernel.op, "normal"), &one.kernel, cases[2].dims, 1));
    fault = HONEST;
    CHECK_OK(twin_check(&j, &compared, result, lk, twin, &c));
    assert_int_equal(j.verdict, VERDICT_PASS);
    assert_int_equal(compared, 40 * 9);
    case_clear(&c);
    kernel_unload(lk);
    kernel_unload(twin);
    free(result);
}

/* Of an op whose entries have their places: no permutations, but repeats, schedules, neighbours. */
static void orders_without_permutations(void **state) {
    (void)state;
    struct fake fake = attention_fake();
    struct plan plan;
    size_t orders = 0;
    CHECK_OK(plan_init(&plan, &fake.kernel, SUITE_FULL, 1, NULL));
    for (size_t i = 0; i < plan.count; i++) {
        assert_true(plan.items[i].check == CHECK_BOUND || plan.items[i].check == CHECK_ORDER);
        assert_true(plan.items[i].dims.heads % plan.items[i].dims.kv_heads == 0);
        orders += plan.items[i].check == CHECK_ORDER;
    }
    assert_true(plan.count > 100 && orders > 0);
    plan_clear(&plan);

    static const struct {
        int fault;
        const char *reason; /* NULL: passes */
    } table[] = {{HONEST, NULL},
                 {LATER_O, "order: repeat 1: o, element [6][3] changes: equal bits are due"},
                 {LATER_LSE, "order: repeat 1: lse, element [4][8] changes"},
                 {LEAKS, "order: neighbours 1: o, element [20][0] changes"}};
    struct loaded_kernel *lk = fake_load(&fake);
    struct kernel_result *result = malloc(sizeof *result);
    struct test_case c;
    struct truth truth;
    assert_non_null(result);
    CHECK_OK(case_make(&c, fill_of(fake.kernel.op, "normal"), &fake.kernel, cases[2].dims, 1));
    CHECK_OK(truth_init(&truth, fake.kernel.op, &c, EMPTY_NAN));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct judgement j;
        bool saw;
        fault = table[i].fault;
        runs = 0;
        CHECK_OK(order_check(&j, &saw, result, lk, &c, &truth));
        assert_true(saw);
        if (table[i].reason)
            CHECK_CONTAINS(j.reason, table[i].reason);
        CHECK(j.verdict == (table[i].reason ? VERDICT_FAIL : VERDICT_PASS), "%zu: %s", i,
              verdict_name(j.verdict));
    }
    fake.kernel.deterministic = false;
    struct judgement j;
    bool saw;
    CHECK_OK(order_check(&j, &saw, result, lk, &c, &truth));
    assert_int_equal(j.verdict, VERDICT_SKIP);
    truth_clear(&truth);
    case_clear(&c);
    kernel_unload(lk);
    free(result);
}

/* ---- a matrix and its mask ------------------------------------------------------------------- */

static void masked_entries_are_minus_infinity(void **state) {
    (void)state;
    struct fake fake = fake_kernel("fake", "softmax", fake_softmax);
    struct test_case c;
    struct op_unit u;
    assert_true(case_permutes(&fake.kernel));
    fake.kernel.more_in[1] = tensor_type_find("u8");
    assert_false(case_permutes(&fake.kernel));
    struct case_dims dims = {.rows = 4, .cols = 6};
    CHECK_OK(case_make(&c, fill_find("normal"), &fake.kernel, dims, 1));
    const unsigned char *mask = c.in[1].data;
    const float *x = c.in[0].data;
    size_t hidden = 0;
    for (int causal = 0; causal < 2; causal++) {
        c.options.causal = causal;
        const struct op_case oc = case_for_op(&c, EMPTY_NAN);
        CHECK_OK(op_unit_init(&u, c.op, &oc));
        for (size_t r = 0; r < 4; r++) {
            op_unit_at(&u, r);
            for (size_t j = 0; j < 6; j++) {
                bool out = !mask[r * 6 + j] || (causal && j > r + 2); /* the last row sees all */
                assert_true(u.row.x[j] == (out ? -INFINITY : (double)x[r * 6 + j]));
                hidden += out;
            }
        }
        op_unit_clear(&u);
    }
    assert_true(hidden > 3);
    case_clear(&c);
}

/* x + bias as a double and a rest; what a mask of bytes hides is -Inf whatever the bias. */
static void additive_masks_are_added_exactly(void **state) {
    (void)state;
    struct fake fake = fake_kernel("fake", "softmax", fake_softmax);
    struct case_dims dims = {.rows = 9, .cols = 40};
    size_t rests = 0, hidden = 0, sentinels = 0;
    fake.kernel.more_in[2] = tensor_type_find("f32");
    assert_false(case_permutes(&fake.kernel));
    for (int masked = 0; masked < 2; masked++) {
        struct test_case c;
        struct op_unit u;
        fake.kernel.more_in[1] = masked ? tensor_type_find("u8") : NULL;
        CHECK_OK(case_make(&c, fill_find(masked ? "subnormal" : "normal"), &fake.kernel, dims, 1));
        const float *x = c.in[0].data, *bias = c.in[2].data;
        const unsigned char *mask = c.in[1].data;
        const struct op_case oc = case_for_op(&c, EMPTY_NAN);
        CHECK_OK(op_unit_init(&u, c.op, &oc));
        for (size_t i = 0; i < 9 * 40; i++) {
            op_unit_at(&u, i / 40);
            const double sum = u.row.x[i % 40], low = u.row.low ? u.row.low[i % 40] : 0;
            assert_true(u.row.added);
            if (masked && !mask[i]) {
                assert_true(sum == -INFINITY && low == 0);
                hidden += bias[i] > -INFINITY;
                continue;
            }
            long double exactly = (long double)x[i] + (long double)bias[i]; /* of 64 bits */
            assert_true(isinf(bias[i]) ? sum == bias[i] && low == 0
                                       : fabsl(exactly - sum - low) <= 0x1p-63L * fabsl(exactly));
            rests += low != 0;
            sentinels += bias[i] == -1e9f;
        }
        op_unit_clear(&u);
        case_clear(&c);
    }
    CHECK(rests > 20 && hidden > 20 && sentinels > 20, "%zu rests, %zu hidden, %zu sentinels", rests,
          hidden, sentinels);
}

/* Rows of 3 that lie 5 apart. */
static void rows_apart(void **state) {
    (void)state;
    float data[10];
    double row[4];
    const struct tensor t = {
        .type = tensor_type_find("f32"), .count = 6, .data = data, .cols = 3, .ld = 5};
    for (int i = 0; i < 10; i++)
        data[i] = NAN;
    assert_int_equal(tensor_bytes(&t), 40);
    for (size_t i = 0; i < 6; i++)
        tensor_set(&t, i, (double)i);
    static const float wanted[10] = {0, 1, 2, NAN, NAN, 3, 4, 5, NAN, NAN};
    for (size_t i = 0; i < 10; i++)
        assert_true(isnan(wanted[i]) ? isnan(data[i]) : data[i] == wanted[i]);
    tensor_row(row, &t, 2, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(row[i] == (double)i + 2 && tensor_get(&t, i + 2) == row[i]);
    tensor_set_bits(&t, 4, 0x40a00000); /* 5 */
    assert_true(data[6] == 5 && tensor_bits(&t, 4) == 0x40a00000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_kept),
        cmocka_unit_test(only_special_fills_are_special),
        cmocka_unit_test(lines_name_the_shape),
        cmocka_unit_test(attention_reads_its_own_rows),
        cmocka_unit_test(shapes_that_do_not_fit),
        cmocka_unit_test(judges_each_output),
        cmocka_unit_test(judges_whole_numbers),
        cmocka_unit_test(twins_in_all_outputs),
        cmocka_unit_test(orders_without_permutations),
        cmocka_unit_test(masked_entries_are_minus_infinity),
        cmocka_unit_test(additive_masks_are_added_exactly),
        cmocka_unit_test(rows_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
