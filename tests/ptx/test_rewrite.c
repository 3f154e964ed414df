/* test_rewrite.c - PTX texts changed by device/rewrite.h, and the scanner that they rest on. */
#include "tests/check.h"

#include "device/device.h"
#include "device/rewrite.h"
#include "device/statement.h"

/* ---- statements ------------------------------------------------------------------------------- */

static void statements_end_where_they_should(void **state) {
    (void)state;
    static const char text[] = "// a comment; with a semicolon\n"
                               ".version 8.0\n.target sm_80, debug\n"
                               ".visible .entry k(\n\t.param .u64 .ptr .align 16 p, // {\n\t.param "
                               ".u32 n\n)\n.maxntid 128\n"
                               "{\n.reg .b32 %r<4>; .reg .pred p;\n"
                               ".global .align 4 .b8 t[4] = {1, 2, 3, 4};\n"
                               "$L__BB0_1: /* ; */ @!p add.s32 %r1, %r2,\n 3;\n"
                               "{ mov.b64 {%r1, %r2}, %rd1; }\n"
                               ".loc 1 12 3, function_name $L, inlined_at 1 2 3\n"
                               "bar.sync 0;ld.global.L1::evict_first.b32 {%r0}, [%rd1+4];}\n"
                               ".section .debug_str\n{\n.b8 34 { \"}\"\n}\n.file 1 \"a;{b.cu\"\n";
    static const struct {
        enum statement_kind kind;
        unsigned line, depth;
        const char *word, *rest;
    } want[] = {
        {STATEMENT_DIRECTIVE, 2, 0, ".version", "8.0"},
        {STATEMENT_DIRECTIVE, 3, 0, ".target", "sm_80, debug"},
        {STATEMENT_DIRECTIVE, 4, 0, ".visible", NULL},
        {STATEMENT_OPEN, 9, 1, "", NULL},
        {STATEMENT_DIRECTIVE, 10, 1, ".reg", ".b32 %r<4>"},
        {STATEMENT_DIRECTIVE, 10, 1, ".reg", ".pred p"},
        {STATEMENT_DIRECTIVE, 11, 1, ".global", ".align 4 .b8 t[4] = {1, 2, 3, 4}"},
        {STATEMENT_LABEL, 12, 1, "$L__BB0_1", NULL},
        {STATEMENT_INSN, 12, 1, "add.s32", "%r1, %r2,\n 3"},
        {STATEMENT_OPEN, 14, 2, "", NULL},
        {STATEMENT_INSN, 14, 2, "mov.b64", "{%r1, %r2}, %rd1"},
        {STATEMENT_CLOSE, 14, 2, "", NULL},
        {STATEMENT_DIRECTIVE, 15, 1, ".loc", "1 12 3, function_name $L, inlined_at 1 2 3"},
        {STATEMENT_INSN, 16, 1, "bar.sync", "0"},
        {STATEMENT_INSN, 16, 1, "ld.global.L1::evict_first.b32", "{%r0}, [%rd1+4]"},
        {STATEMENT_CLOSE, 16, 1, "", NULL},
        {STATEMENT_DIRECTIVE, 17, 0, ".section", NULL},
        {STATEMENT_DIRECTIVE, 21, 0, ".file", "1 \"a;{b.cu\""},
        {STATEMENT_END, 22, 0, "", NULL},
    };
    struct scanner s = scanner_of(text, strlen(text));
    struct statement one;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        scanner_next(&one, &s);
        CHECK(one.kind == want[i].kind && one.line == want[i].line && one.depth == want[i].depth,
              "%zu: kind %d, line %u, depth %u", i, (int)one.kind, one.line, one.depth);
        CHECK(piece_is(one.word, want[i].word), "%zu: '%.*s'", i, (int)one.word.size, one.word.at);
        while (one.operands.size && (*one.operands.at == ' ' || *one.operands.at == '\n'))
            one.operands.at++, one.operands.size--;
        CHECK(!want[i].rest || piece_is(one.operands, want[i].rest), "%zu: '%.*s'", i,
              (int)one.operands.size, one.operands.at);
        CHECK(piece_is(one.guard, i == 8 ? "@!p" : ""), "%zu: guard", i);
    }
}

/* Every cut of a text ends, and never beyond it. */
static void cut_texts_end(void **state) {
    (void)state;
    static const char text[] =
        "@!p /* x */ add.rn.f32 %f1, %f2; .reg .b32 a = {\"\\\"}\", 1}; L: {} . @ ~";
    for (size_t from = 0; from <= sizeof text; from++)
        for (size_t size = 0; from + size < sizeof text; size++) {
            char *cut = malloc(size + 1); /* a sanitizer watches its end */
            memcpy(cut, text + from, size);
            struct scanner s = scanner_of(cut, size);
            struct statement one;
            size_t count = 0;
            do {
                scanner_next(&one, &s);
                assert_true(s.at <= cut + size);
            } while (one.kind != STATEMENT_END && ++count <= size);
            CHECK(count <= size, "%zu statements in '%.*s'", count, (int)size, cut);
            free(cut);
        }
}

/* ---- rounding --------------------------------------------------------------------------------- */

static char *with_rn(const char *text, unsigned want) {
    char *out;
    size_t size;
    unsigned changed;
    CHECK_OK(ptx_write_rn(&out, &size, &changed, "t.ptx", text, strlen(text)));
    assert_int_equal(size, strlen(out));
    CHECK(changed == want, "%u changed in: %s", changed, text);
    return out;
}

static void rn_is_written_where_none_is(void **state) {
    (void)state;
    static const char *const types[] = {"f32", "f32x2", "f64", "f16", "f16x2", "bf16", "bf16x2"};
    static const char *const ops[] = {"add", "sub", "mul"};
    static const char *const modifiers[] = {"", ".ftz", ".sat", ".ftz.sat"};
    for (size_t t = 0; t < 7; t++)
        for (size_t o = 0; o < 3; o++)
            for (size_t m = 0; m < 4; m++) {
                char text[96], want[96];
                snprintf(text, sizeof text, "{ @%%p %s%s.%s %%a, %%b, %%c; }", ops[o], modifiers[m],
                         types[t]);
                snprintf(want, sizeof want, "{ @%%p %s.rn%s.%s %%a, %%b, %%c; }", ops[o],
                         modifiers[m], types[t]);
                char *got = with_rn(text, 1);
                assert_string_equal(got, want);
                free(got);
            }
}

static void all_else_stays(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{ add.rn.f32 %f1, %f2, %f3; mul.rz.ftz.f32 %f1, %f2, %f3; sub.rm.f64 %d1, %d2, %d3; }",
        "{ add.s32 %r1, %r2, %r3; mul.lo.s32 %r1, %r2, %r3; mul.wide.u32 %d1, %r2, %r3; sub.u64 a, "
        "b, c; }",
        "{ fma.rn.f32 %f1, %f2, %f3, %f4; mad.lo.s32 a, b, c, d; addc.cc.u32 a, b, c; max.f32 a, "
        "b, c; }",
        "{ atom.global.add.f32 %f1, [%d1], %f2; red.global.add.f32 [%d1], %f2; }",
        "// add.f32 %f1, %f2, %f3;\n/* mul.f32 %f1, %f2, %f3; */ .file 1 \"add.f32 a, b, c;\"\n",
        ".section .debug_str { .b8 \"add.f32 a, b, c;\" }",
        "{ add.f32: mul.f32: }", /* labels */
        "",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *got = with_rn(texts[i], 0);
        assert_string_equal(got, texts[i]);
        free(got);
    }
}

static void a_cubin_is_refused(void **state) {
    (void)state;
    char *out;
    size_t size;
    unsigned changed;
    assert_int_equal(ptx_write_rn(&out, &size, &changed, "k.cubin", "\177ELF\0\0", 6),
                     ERR_UNSUPPORTED);
    CHECK_CONTAINS(status_message(), "k.cubin: not a PTX text");
    assert_null(out);
}

/* What was ambiguous is not any more, on the device that says so. */
static void no_pair_is_left(void **state) {
    (void)state;
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .f32 %f<9>;\n"
        "mul.f32 %f1, %f2, %f3;\nadd.f32 %f4, %f1, %f5;\nmul.ftz.f32 %f6, %f4, %f4; sub.f32 %f7, "
        "%f8, %f6;\nret;\n}\n";
    struct device *dev;
    struct dev_image *image;
    CHECK_OK(device_open(&dev, "cpu", NULL));
    CHECK_OK(device_load(&image, dev, "t.ptx", text, strlen(text)));
    assert_int_equal(image_entry(image, 0)->ambiguous, 2);
    image_unload(image);
    char *fixed = with_rn(text, 4);
    CHECK_OK(device_load(&image, dev, "t.ptx", fixed, strlen(fixed)));
    assert_int_equal(image_entry(image, 0)->ambiguous, 0);
    image_unload(image);
    device_close(dev);
    free(fixed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_end_where_they_should),
        cmocka_unit_test(cut_texts_end),
        cmocka_unit_test(rn_is_written_where_none_is),
        cmocka_unit_test(all_else_stays),
        cmocka_unit_test(a_cubin_is_refused),
        cmocka_unit_test(no_pair_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
