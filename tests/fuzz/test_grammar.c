/* test_grammar.c - the fuzz input's grammar and its mutator: what decodes, what it means, that
 * nothing depends on anything but the bytes. */
#include "fuzz/grammar.h"
#include "fuzz/mutate.h"
#include "fuzz/words.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define MAX_INPUT 4096
#define ELEMENTS (ROWS_MAX_ROWS * ROWS_MAX_COLS)

static struct rows_program program, again;
static uint32_t bits[ELEMENTS], bits_again[ELEMENTS];
static uint8_t bytes[ROWS_MAX_BYTES], bytes_again[ROWS_MAX_BYTES];

static uint32_t f32(float x) {
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

static float number(uint32_t b) {
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

static size_t random_input(struct rng *r, uint8_t *out) {
    size_t size = 1 + (size_t)rng_below(r, 300);
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)rng_u64(r);
    out[0] = ROWS_VERSION;
    return size;
}

/* The row of a one-row program. */
static void render_ops(size_t cols, const struct rows_op *ops, size_t count) {
    program = (struct rows_program){.rows = 1, .cols = (uint16_t)cols, .op_count = count};
    memcpy(program.ops, ops, count * sizeof *ops);
    rows_render(bits, &program);
}

static void assert_row(const float *want, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_int_equal(bits[i], f32(want[i]));
}
#define ASSERT_ROW(...)                                  \
    do {                                                 \
        const float want_[] = {__VA_ARGS__};             \
        assert_row(want_, sizeof want_ / sizeof *want_); \
    } while (0)
#define RENDER(cols, ...)                                     \
    do {                                                      \
        const struct rows_op ops_[] = {__VA_ARGS__};          \
        render_ops((cols), ops_, sizeof ops_ / sizeof *ops_); \
    } while (0)

/* ---- what the operations mean ---------------------------------------------------------------- */

static void fill_ramp_list(void **state) {
    (void)state;
    RENDER(8, {.kind = ROWS_FILL, .n = 2, .a = f32(3)},
           {.kind = ROWS_RAMP, .n = 3, .a = f32(1), .b = f32(-0.5f)},
           {.kind = ROWS_LIST, .count = 1, .list = {f32(7), f32(9)}});
    ASSERT_ROW(3, 3, 1, 0.5f, 0, 7, 9, /* and the rest repeats */ 3);
}

static void ninf_ties_jump_use_the_largest_so_far(void **state) {
    (void)state;
    RENDER(7, {.kind = ROWS_NINF, .n = 2}, {.kind = ROWS_FILL, .n = 1, .a = f32(1)},
           {.kind = ROWS_TIES, .n = 1, .steps = 1}, {.kind = ROWS_TIES, .n = 1, .steps = -1},
           {.kind = ROWS_JUMP, .n = 0, .a = f32(88)});
    float next = nextafterf(1, 2);
    ASSERT_ROW(-INFINITY, -INFINITY, 1, next, 1, 88 + next, 88 + next);
    RENDER(2, {.kind = ROWS_NINF, .n = 1}, {.kind = ROWS_TIES}); /* nothing finite counts as 0 */
    ASSERT_ROW(-INFINITY, 0);
}

static void repeat_mirror_scale(void **state) {
    (void)state;
    RENDER(8, {.kind = ROWS_LIST, .count = 1, .list = {f32(1), f32(2)}},
           {.kind = ROWS_REPEAT, .n = 2, .count = 1}, {.kind = ROWS_MIRROR, .n = 3},
           {.kind = ROWS_SCALE, .n = 1, .steps = 3});
    ASSERT_ROW(1, 2, 1, 2, -2, -1, -16, 1);
}

/* Each half (or, reversed, each odd part) adds up to one more step of the same size. */
static void stairs_descend(void **state) {
    (void)state;
    RENDER(8, {.kind = ROWS_STAIRS, .a = f32(16), .steps = -1});
    ASSERT_ROW(16, 8, 4, 4, 2, 2, 2, 2);
    RENDER(8, {.kind = ROWS_STAIRS, .a = f32(16), .steps = -1, .count = 1});
    ASSERT_ROW(16, 2, 4, 2, 8, 2, 4, 2);
    RENDER(5, {.kind = ROWS_STAIRS, .a = f32(1), .steps = 0});
    ASSERT_ROW(1, 1, 0.5f, 0.5f, 0.25f);
}

static void put_is_last_and_wraps(void **state) {
    (void)state;
    RENDER(3, {.kind = ROWS_PUT, .n = 4, .a = f32(5)}, {.kind = ROWS_FILL, .a = f32(1)});
    ASSERT_ROW(1, 5, 1);
    RENDER(3, {.kind = ROWS_PUT, .n = 2, .a = UINT32_C(0x7f800001)}); /* bits are kept */
    assert_int_equal(bits[2], 0x7f800001);
    ASSERT_ROW(0, 0);
}

static void shuffle_permutes(void **state) {
    (void)state;
    RENDER(64, {.kind = ROWS_RAMP, .a = f32(0), .b = f32(1)}, {.kind = ROWS_SHUFFLE, .seed = 5});
    uint64_t seen = 0;
    bool moved = false;
    for (int i = 0; i < 64; i++) {
        seen |= UINT64_C(1) << (int)number(bits[i]);
        moved |= number(bits[i]) != (float)i;
    }
    assert_true(seen == UINT64_MAX && moved);
}

static void noise_stays_within(void **state) {
    (void)state;
    RENDER(256, {.kind = ROWS_NOISE, .a = f32(10), .b = f32(2), .seed = 3});
    float low = 12, high = 8;
    for (int i = 0; i < 256; i++) {
        low = fminf(low, number(bits[i]));
        high = fmaxf(high, number(bits[i]));
    }
    assert_true(low >= 8 && low < 8.5f && high <= 12 && high > 11.5f);
}

static void next_row_and_rows_without_operations(void **state) {
    (void)state;
    program = (struct rows_program){.rows = 3,
                                    .cols = 2,
                                    .op_count = 3,
                                    .ops = {{.kind = ROWS_FILL, .a = f32(1)},
                                            {.kind = ROWS_NEXT},
                                            {.kind = ROWS_LIST, .count = 0, .list = {f32(2)}}}};
    rows_render(bits, &program);
    ASSERT_ROW(1, 1, 2, 2, 2, 2);
    program.op_count = 0;
    rows_render(bits, &program);
    ASSERT_ROW(0, 0, 0, 0, 0, 0);
}

static void raw_data_repeat(void **state) {
    (void)state;
    program = (struct rows_program){
        .rows = 2, .cols = 3, .raw = true, .datum_count = 2, .data = {f32(1), f32(-2)}};
    rows_render(bits, &program);
    ASSERT_ROW(1, -2, 1, -2, 1, -2);
}

static void lengths_never_pass_the_row(void **state) {
    (void)state;
    struct rng r = rng_from_seed(11);
    for (int round = 0; round < 3000; round++) {
        size_t size = random_input(&r, bytes);
        assert_true(rows_decode(&program, bytes, size));
        size_t count = (size_t)program.rows * program.cols;
        for (size_t i = count; i < count + 8 && i < ELEMENTS; i++)
            bits[i] = 0xdeadbeef;
        rows_render(bits, &program);
        for (size_t i = count; i < count + 8 && i < ELEMENTS; i++)
            assert_int_equal(bits[i], 0xdeadbeef);
        /* every element was written: rendering over other rubbish gives the same */
        memset(bits_again, 0x5a, sizeof bits_again);
        rows_render(bits_again, &program);
        assert_memory_equal(bits, bits_again, count * sizeof *bits);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void every_input_of_the_version_decodes(void **state) {
    (void)state;
    const uint8_t version = ROWS_VERSION;
    assert_true(rows_decode(&program, &version, 1));
    assert_int_equal(program.rows, 1);
    assert_int_equal(program.cols, 1);
    struct rng r = rng_from_seed(7);
    for (int round = 0; round < 3000; round++) {
        size_t size = random_input(&r, bytes);
        assert_true(rows_decode(&program, bytes, size));
        assert_in_range(program.rows, 1, ROWS_MAX_ROWS);
        assert_in_range(program.cols, 1, ROWS_MAX_COLS);
    }
}

static void other_versions_are_refused(void **state) {
    (void)state;
    for (int v = 0; v < 256; v++) {
        const uint8_t input[] = {(uint8_t)v, 0, 0, 0, 0};
        assert_int_equal(rows_decode(&program, input, sizeof input), v == ROWS_VERSION);
    }
    assert_false(rows_decode(&program, NULL, 0));
}

static void round_trip(void **state) {
    (void)state;
    struct rng r = rng_from_seed(1);
    for (int round = 0; round < 3000; round++) {
        size_t size = random_input(&r, bytes);
        rows_decode(&program, bytes, size);
        size_t first = rows_encode(bytes, sizeof bytes, &program);
        rows_decode(&again, bytes, first);
        assert_memory_equal(&program, &again, sizeof program);
        size_t second = rows_encode(bytes_again, sizeof bytes_again, &again);
        assert_int_equal(first, second);
        assert_memory_equal(bytes, bytes_again, first);
    }
}

static void encode_cuts_at_whole_operations(void **state) {
    (void)state;
    struct rng r = rng_from_seed(2);
    for (int round = 0; round < 300; round++) {
        size_t size = random_input(&r, bytes);
        rows_decode(&program, bytes, size);
        for (size_t room = ROWS_HEADER; room < 120; room++) {
            uint8_t *exact = malloc(room); /* a sanitizer sees a write behind it */
            size_t cut = rows_encode(exact, room, &program);
            assert_true(cut <= room && cut >= ROWS_HEADER);
            rows_decode(&again, exact, cut);
            assert_true(again.op_count <= program.op_count);
            assert_memory_equal(again.ops, program.ops, again.op_count * sizeof *again.ops);
            free(exact);
        }
    }
}

static void words_name_the_operations(void **state) {
    (void)state;
    char text[200];
    program = (struct rows_program){
        .rows = 1,
        .cols = 33,
        .op_count = 2,
        .ops = {{.kind = ROWS_NINF, .n = 3}, {.kind = ROWS_FILL, .a = f32(-5000)}}};
    rows_print(text, sizeof text, &program);
    assert_string_equal(text, "1x33 NINF n=3; FILL n=0 a=-5000;");
    rows_print(text, 12, &program); /* cut, not overrun */
    assert_string_equal(text, "1x33 NINF n");
}

static void words_round_trip(void **state) {
    (void)state;
    static char text[1 << 18];
    struct rng r = rng_from_seed(8);
    for (int round = 0; round < 2000; round++) {
        size_t size = random_input(&r, bytes);
        rows_decode(&program, bytes, size);
        rows_print(text, sizeof text, &program);
        assert_int_equal(rows_parse(&again, text), OK);
        assert_memory_equal(&program, &again, sizeof program);
    }
}

static void bad_words_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "x",
        "1x",
        "0x4",
        "5x4",
        "1x0",
        "1x2049",
        "1x4 JUMPS",
        "1x4 FILL n=70000",
        "1x4 FILL n=1 a=",
        "1x4 FILL a=nan",
        "1x4 FILL a=nan(0x3f800000)",
        "1x4 REPEAT c=0",
        "1x4 TIES e=200",
        "1x4 FILL n=1 q=3",
        "1x2 raw 1 2 3",
        "1x2 raw FILL",
        "1x4 k=256",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(rows_parse(&program, bad[i]), ERR_SYNTAX);
        assert_string_not_equal(status_message(), "");
    }
    assert_int_equal(rows_parse(&program, "1x4 FILL n=1 a=1; NEXT"),
                     OK); /* the last ; is optional */
    assert_int_equal(program.op_count, 2);
}

/* ---- the mutator ----------------------------------------------------------------------------- */

static void mutants_decode_and_fit(void **state) {
    (void)state;
    struct rng r = rng_from_seed(3);
    static const size_t limits[] = {ROWS_HEADER, 6, 20, 64, 300, MAX_INPUT};
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        uint8_t *input = malloc(limits[l]);
        size_t size = 0;
        for (int round = 0; round < 5000; round++) {
            size = rows_mutate(input, size, limits[l], (unsigned)rng_u64(&r));
            assert_in_range(size, ROWS_HEADER, limits[l]);
            assert_true(rows_decode(&program, input, size));
        }
        free(input);
    }
}

static void crossings_decode_and_fit(void **state) {
    (void)state;
    struct rng r = rng_from_seed(4);
    uint8_t a[MAX_INPUT], b[MAX_INPUT];
    size_t a_size = 0, b_size = 0;
    for (int round = 0; round < 5000; round++) {
        a_size = rows_mutate(a, a_size, sizeof a, (unsigned)rng_u64(&r));
        b_size = rows_mutate(b, b_size, sizeof b, (unsigned)rng_u64(&r));
        size_t room = ROWS_HEADER + (size_t)rng_below(&r, 400);
        uint8_t *out = malloc(room);
        size_t size = rows_cross(out, room, a, a_size, b, b_size, (unsigned)rng_u64(&r));
        assert_in_range(size, ROWS_HEADER, room);
        assert_true(rows_decode(&program, out, size));
        free(out);
    }
    assert_int_equal(rows_cross(a, sizeof a, NULL, 0, NULL, 0, 1), 0);
}

static void mutation_is_determined_by_its_seed(void **state) {
    (void)state;
    struct rng r = rng_from_seed(5);
    for (int round = 0; round < 2000; round++) {
        size_t size = random_input(&r, bytes);
        memcpy(bytes_again, bytes, size);
        unsigned seed = (unsigned)rng_u64(&r);
        size_t first = rows_mutate(bytes, size, MAX_INPUT, seed);
        size_t second = rows_mutate(bytes_again, size, MAX_INPUT, seed);
        assert_int_equal(first, second);
        assert_memory_equal(bytes, bytes_again, first);
    }
}

/* From nothing it reaches every operation, raw mode, several rows, long rows and every special. */
static void mutator_reaches_the_whole_grammar(void **state) {
    (void)state;
    struct rng r = rng_from_seed(6);
    bool op_seen[ROWS_OP_COUNT] = {false}, raw = false, long_row = false, rows = false;
    bool nan = false, inf = false, zero = false, subnormal = false, sentinel = false;
    size_t size = 0;
    for (int round = 0; round < 20000; round++) {
        size = rows_mutate(bytes, size, MAX_INPUT, (unsigned)rng_u64(&r));
        rows_decode(&program, bytes, size);
        for (size_t i = 0; i < program.op_count; i++)
            op_seen[program.ops[i].kind] = true;
        raw |= program.raw;
        rows |= program.rows == ROWS_MAX_ROWS;
        long_row |= program.cols >= 2047;
        rows_render(bits, &program);
        for (size_t i = 0; i < (size_t)program.rows * program.cols; i++) {
            float x = number(bits[i]);
            nan |= isnan(x);
            inf |= isinf(x);
            zero |= bits[i] == 0x80000000;
            subnormal |= fpclassify(x) == FP_SUBNORMAL;
            sentinel |= x == -1e30f;
        }
    }
    for (int i = 0; i < ROWS_OP_COUNT; i++)
        assert_true(op_seen[i]);
    assert_true(raw && rows && long_row && nan && inf && zero && subnormal && sentinel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fill_ramp_list),
        cmocka_unit_test(ninf_ties_jump_use_the_largest_so_far),
        cmocka_unit_test(repeat_mirror_scale),
        cmocka_unit_test(stairs_descend),
        cmocka_unit_test(put_is_last_and_wraps),
        cmocka_unit_test(shuffle_permutes),
        cmocka_unit_test(noise_stays_within),
        cmocka_unit_test(next_row_and_rows_without_operations),
        cmocka_unit_test(raw_data_repeat),
        cmocka_unit_test(lengths_never_pass_the_row),
        cmocka_unit_test(every_input_of_the_version_decodes),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(encode_cuts_at_whole_operations),
        cmocka_unit_test(words_name_the_operations),
        cmocka_unit_test(words_round_trip),
        cmocka_unit_test(bad_words_are_refused),
        cmocka_unit_test(mutants_decode_and_fit),
        cmocka_unit_test(crossings_decode_and_fit),
        cmocka_unit_test(mutation_is_determined_by_its_seed),
        cmocka_unit_test(mutator_reaches_the_whole_grammar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
