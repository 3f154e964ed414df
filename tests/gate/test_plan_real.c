/* tests/gate/test_plan_real.c - the captured q, k and v as cases: which go where, and what is in them. */
#include "fake.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
        if (p->items[i].file_count) {
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

/* ---- files by name --------------------------------------------------------------------------- */

#define Q REAL_FOLDER "/q_l18_h6_t512_f16.npy," REAL_FOLDER "/q_l18_h7_t512_f16.npy"
#define K REAL_FOLDER "/k_l18_kv2_t512_f16.npy"
#define V REAL_FOLDER "/v_l18_kv2_t512_f16.npy"

/* An .npy of f32: 1, 2, 3, ... */
static void write_counts(const char *path, const char *shape, size_t count) {
    char dict[118];
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    const int n = snprintf(dict, sizeof dict,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    memset(dict + n, ' ', sizeof dict - (size_t)n);
    fwrite("\x93NUMPY\x01\x00\x76", 1, 9, file);
    fputc(0, file);
    fwrite(dict, 1, sizeof dict, file);
    for (size_t i = 0; i < count; i++) {
        const float value = (float)(i + 1);
        fwrite(&value, sizeof value, 1, file);
    }
    assert_int_equal(fclose(file), 0);
}

/* Heads 9, 10 and 11 share a key-value head, at 4 tokens and at 8; the files tell its width. */
static void heads_by_number(void **state) {
    (void)state;
    static const unsigned tokens[] = {4, 8};
    const struct fake fake = attention(&dtypes[DT_F32]);
    const struct plan_item *item = NULL;
    struct plan plan;
    char path[64], shape[32], line[CASE_LINE_SIZE];
    mkdir("heads", 0777);
    for (size_t i = 0; i < 2; i++)
        for (unsigned head = 9; head < 12; head++) {
            snprintf(path, sizeof path, "heads/q_l01_h%u_t%u_f32.npy", head, tokens[i]);
            snprintf(shape, sizeof shape, "(%u, 16)", tokens[i]);
            write_counts(path, shape, 16 * tokens[i]);
        }
    CHECK_OK(plan_init(&plan, &fake.kernel, SUITE_FULL, 1, "heads"));
    assert_int_equal(from_files(&plan, &item), 2);
    plan_line(line, sizeof line, item);
    CHECK_CONTAINS(line, "-i q=heads/q_l01_h9_t8_f32.npy,heads/q_l01_h10_t8_f32.npy,"
                         "heads/q_l01_h11_t8_f32.npy -i k=heads/k_l01_kv3_t8_f32.npy ");
    CHECK_CONTAINS(line, "heads=3,kv_heads=1,queries=8,keys=8,head_dim=16");
    plan_clear(&plan);
}

static size_t input_number(const struct op *op, const char *name) {
    for (size_t i = 0; i < op_input_count(op); i++)
        if (strcmp(op->inputs[i].name, name) == 0)
            return i;
    fail_msg("no input %s", name);
    return 0;
}

/* Rows are tokens of the files of one head; sinks have none and are taken from their first on. */
static void rows_are_those_of_heads(void **state) {
    (void)state;
    struct fake fake = attention(&dtypes[DT_F16]);
    const size_t sinks = input_number(fake.kernel.op, "sinks");
    struct test_case c;
    fake.kernel.more_in[sinks] = tensor_type_of(&dtypes[DT_F32]);
    write_counts("sinks.npy", "(2,)", 2);
    const struct case_file files[] = {
        {.name = "sinks", .path = "sinks.npy", .first_row = 4, .rows = 2},
        {.name = "q", .path = Q, .first_row = 4, .rows = 2},
        {.name = "k", .path = K, .first_row = 4, .rows = 2},
        {.name = "v", .path = V, .first_row = 4, .rows = 2},
    };
    CHECK_OK(case_from_files(&c, &fake.kernel, files, 4, (struct case_dims){0}));
    assert_int_equal(c.dims.queries, 2);
    assert_int_equal(c.in[sinks].count, 2);
    assert_true(tensor_get(&c.in[sinks], 0) == 1 && tensor_get(&c.in[sinks], 1) == 2);
    CHECK_CONTAINS(c.line, " --rows 4:2 --shape ");
    case_clear(&c);
}

static struct case_file rows_of(const char *name, const char *path, size_t first, size_t rows) {
    return (struct case_file){.name = name, .path = path, .first_row = first, .rows = rows};
}

/* Files of all four dimensions have no rows to choose; and none has rows that are not there. */
static void rows_that_are_not_there(void **state) {
    (void)state;
    static const size_t rows[][2] = {{0, 2}, {1, 2}, {1000000, 1}};
    const struct fake fake = attention(&dtypes[DT_F32]);
    struct test_case c;
    write_counts("whole.npy", "(1, 1, 4, 8)", 32);
    write_counts("none.npy", "(1, 1, 0, 8)", 0);
    for (size_t i = 0; i < 3; i++) {
        const size_t first = rows[i][0], n = rows[i][1];
        const struct case_file files[] = {rows_of("q", "whole.npy", first, n),
                                          rows_of("k", "whole.npy", first, n),
                                          rows_of("v", "whole.npy", first, n)};
        assert_int_equal(case_from_files(&c, &fake.kernel, files, 3, (struct case_dims){0}),
                         ERR_USAGE);
        CHECK_CONTAINS(status_message(), "no file is that of one head");
    }
    const struct case_file empty_k[] = {rows_of("q", "whole.npy", 0, 0),
                                        rows_of("k", "none.npy", 0, 0),
                                        rows_of("v", "whole.npy", 0, 0)};
    assert_int_equal(case_from_files(&c, &fake.kernel, empty_k, 3, (struct case_dims){0}),
                     ERR_USAGE);
    CHECK_CONTAINS(status_message(), "none.npy: keys: 0, expected 4");
}

/* A comma lies between two files, unless there is one of that name. */
static void names_with_commas(void **state) {
    (void)state;
    const struct fake fake = attention(&dtypes[DT_F32]);
    struct test_case c;
    write_counts("a", "(4, 8)", 32);
    write_counts("b", "(4, 8)", 32);
    struct case_file files[] = {rows_of("q", "a,b", 0, 0), rows_of("k", "a", 0, 0),
                                rows_of("v", "b", 0, 0)};
    remove("a,b");
    CHECK_OK(case_from_files(&c, &fake.kernel, files, 3, (struct case_dims){0}));
    assert_int_equal(c.dims.heads, 2);
    case_clear(&c);
    write_counts("a,b", "(4, 8)", 32);
    CHECK_OK(case_from_files(&c, &fake.kernel, files, 3, (struct case_dims){0}));
    assert_int_equal(c.dims.heads, 1);
    case_clear(&c);
    remove("a,b");
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
        cmocka_unit_test(heads_by_number),
        cmocka_unit_test(rows_are_those_of_heads),
        cmocka_unit_test(rows_that_are_not_there),
        cmocka_unit_test(names_with_commas),
        cmocka_unit_test(pages_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
