/*
 * tests/ptx/test_parse.c - the PTX front end: what it accepts, what it makes of it, and that anything
 * else is one clear error at the right line and column.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/ptx/ptx.h"

static int failures;

#define CHECK(cond, ...)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            failures++;                                                                            \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond);                             \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

/* A module around one entry's declarations and statements: the body begins on line 5. */
static char *wrap(const char *body) {
    char *text = NULL;
    int n = asprintf(&text, ".version 8.0\n.target sm_80\n.address_size 64\n"
                            ".visible .entry k(.param .u64 px, .param .u32 pn) {\n%s\n}\n", body);
    if (n < 0)
        abort();
    return text;
}

#define REGS ".reg .pred %p<4>; .reg .f32 %f<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; "             \
             ".reg .f64 %fd<4>; .reg .b16 %rs<4>;\n"

/* Statements on line 6, and the message's beginning after the label: "line:col: text". */
static const struct refusal {
    const char *statements;
    status_t status;
    const char *message;
} refusals[] = {
    {"foo.f32 %f1, %f2;", ERR_UNSUPPORTED, "6:1: unknown instruction 'foo'"},
    {"add.rnx.f32 %f1, %f2, %f3;", ERR_UNSUPPORTED, "6:4: unknown modifier: '.rnx' on 'add'"},
    {"add.approx.f32 %f1, %f2, %f3;", ERR_UNSUPPORTED, "6:4: modifier not allowed here: '.approx'"},
    {"add.rn.rn.f32 %f1, %f2, %f3;", ERR_UNSUPPORTED, "6:7: modifier not allowed here: '.rn'"},
    {"add.rn %f1, %f2, %f3;", ERR_UNSUPPORTED, "6:1: a type is missing after 'add'"},
    {"fma.f32 %f1, %f2, %f3, %f4;", ERR_UNSUPPORTED, "6:1: a modifier is missing after 'fma'"},
    {"add.f32.f32 %f1, %f2, %f3;", ERR_UNSUPPORTED, "6:8: one type too many: '.f32'"},
    {"fma.rn.s32 %r1, %r2, %r3, %r4;", ERR_UNSUPPORTED, "6:7: type not allowed here: '.s32'"},
    {"ex2.f32 %f1, %f2;", ERR_UNSUPPORTED, "6:1: a modifier is missing after 'ex2'"},
    {"add.rn.f32 %f1, %f2;", ERR_SYNTAX, "6:20: expected ',', found ';'"},
    {"add.rn.f32 %f1, %f2, %f3, %f4;", ERR_SYNTAX, "6:25: expected ';', found ','"},
    {"add.rn.f32 %f1, %f2, %f9;", ERR_SYNTAX, "6:22: expected a register or a constant, found '%f9'"},
    {"add.rn.f32 %f1, %f2, %f01;", ERR_SYNTAX, "6:22: expected a register or a constant"},
    {"add.rn.f32 %f1, %f2, %rd1;", ERR_SYNTAX, "6:22: register of type .b64 where .f32 is meant"},
    {"add.rn.f32 %f1, %p1, %f2;", ERR_SYNTAX, "6:17: register of type .pred where .f32 is meant"},
    {"add.rn.f32 %f1, %f2, 1;", ERR_SYNTAX, "6:22: expected a floating-point constant for .f32"},
    {"add.s32 %r1, %r2, 0f3F80;", ERR_SYNTAX, "6:19: expected 8 hexadecimal digits after '0f'"},
    {"add.s32 %r1, %r2, 4294967296;", ERR_SYNTAX, "6:19: constant does not fit .s32"},
    {"add.s32 %r1, %r2, -2147483649;", ERR_SYNTAX, "6:20: constant does not fit .s32"},
    {"add.s32 %r1, %r2, 99999999999999999999;", ERR_SYNTAX, "6:19: number needs more than 64 bits"},
    {"add.s32 %r1, %r2, 0xG;", ERR_SYNTAX, "6:19: malformed number"},
    {"setp.lt.f32 %r1, %f1, %f2;", ERR_SYNTAX, "6:13: expected a predicate register, found '%r1'"},
    {"add.sat.bf16 %rs1, %rs2, %rs3;", ERR_UNSUPPORTED, "6:8: type not allowed here: '.bf16' on 'add'"},
    {"add.rz.f16 %rs1, %rs2, %rs3;", ERR_UNSUPPORTED, "6:7: type not allowed here: '.f16' on 'add'"},
    {"fma.rn.sat.relu.f16 %rs1, %rs2, %rs3, %rs1;", ERR_UNSUPPORTED, "6:11: modifier not allowed"},
    {"max.xorsign.f16 %rs1, %rs2, %rs3;", ERR_UNSUPPORTED, "6:1: a modifier is missing"},
    {"add.f16 %rs1, %rs2, 0x3c00;", ERR_SYNTAX, "6:21: expected a register, found '0x3c00'"},
    {"cvt.f16.f32 %rs1, %f1;", ERR_UNSUPPORTED, "6:1: a modifier is missing after 'cvt'"},
    {"cp.async.cg.shared.global [%r1], [%rd1], 8;", ERR_SYNTAX, "6:42: expected 16, found '8'"},
    {"match.any.sync.b32 %r1|%p1, %r2, %r3;", ERR_SYNTAX, "6:23: expected ','"},
    {"setp.f32 %p1, %f1, %f2;", ERR_UNSUPPORTED, "6:1: a modifier is missing after 'setp'"},
    {"@%r1 ret;", ERR_SYNTAX, "6:2: expected a predicate register, found '%r1'"},
    {"bra nowhere;", ERR_SYNTAX, "6:5: no label 'nowhere' in this function"},
    {"bra px;", ERR_SYNTAX, "6:5: no label 'px' in this function"},
    {"L: L: ret;", ERR_SYNTAX, "6:4: 'L' is declared twice"},
    {".reg .f32 %f<3>;", ERR_SYNTAX, "6:11: '%f' is declared twice"},
    {"ld.global.v3.f32 {%f1, %f2, %f3}, [%rd1];", ERR_UNSUPPORTED, "6:10: unknown modifier: '.v3'"},
    {"ld.global.v2.f32 {%f1}, [%rd1];", ERR_SYNTAX, "6:18: vector of the wrong length"},
    {"ld.global.v2.f32 %f1, [%rd1];", ERR_SYNTAX, "6:18: expected '{', found '%f1'"},
    {"ld.global.f32 %f1, [%r1];", ERR_SYNTAX, "6:21: expected an address register or a variable"},
    {"ld.global.f32 %f1, [px];", ERR_SYNTAX, "6:21: variable of another state space"},
    {"ld.param.u64 %rd1, [px+99999999999999999999];", ERR_SYNTAX, "6:24: number needs more"},
    {"ld.param.u64 %rd1, [pz];", ERR_SYNTAX, "6:21: expected an address register or a variable"},
    {"ld.global.f32 %rs1, [%rd1];", ERR_SYNTAX, "6:15: register of type .b16 where .f32 is meant"},
    {"mov.b64 %rd1, {%r1, %rs1};", ERR_SYNTAX, "6:21: register of type .b16 where .b32 is meant"},
    {"mov.b64 %rd1, {%r1};", ERR_SYNTAX, "6:15: vector of the wrong length"},
    {"mov.u32 %r1, %tid;", ERR_SYNTAX, "6:18: expected '.x', '.y' or '.z', found ';'"},
    {"mov.u64 %rd1, %tid.x;", ERR_SYNTAX, "6:15: special register of 32 bits, not 64"},
    {"call foo, (%r1);", ERR_SYNTAX, "6:6: no function 'foo' is declared"},
    {".shared .align 3 .b8 s[4];", ERR_SYNTAX, "6:16: alignment is no power of two"},
    {".shared .b8 s[4294967297];", ERR_SYNTAX, "6:15: an array size may be at most"},
    {".shared .b64 s[4294967295];", ERR_UNSUPPORTED, "6:16: variable larger than 4 GiB"},
    {".local .b8 s[1000000];", ERR_UNSUPPORTED, "6:12: too much local memory"},
    {".shared .f32 s = 0f00000000;", ERR_SYNTAX, "6:14: only .global and .const have values"},
    {".shared .f32 s[];", ERR_UNSUPPORTED, "6:14: array without a size"},
    {".reg .b8 %c;", ERR_UNSUPPORTED, "6:6: registers of this type"},
    {".param .pred q;", ERR_SYNTAX, "6:8: expected a type"},
    {"{ { .reg .b32 %x; } mov.u32 %x, 1; }", ERR_SYNTAX, "6:29: expected a register, found '%x'"},
    {"\x01", ERR_SYNTAX, "6:1: unexpected character"},
    {"\"abc", ERR_SYNTAX, "6:1: string without an end"},
    {"ret; /* never closed", ERR_SYNTAX, "6:6: comment without an end"},
    {"/*/", ERR_SYNTAX, "6:1: comment without an end"},
    {"ret; } /* never closed *", ERR_SYNTAX, "6:8: comment without an end"},
};

static void test_refusals(void) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        char *body = NULL, *text;
        if (asprintf(&body, "%s%s", REGS, r->statements) < 0)
            abort();
        text = wrap(body);
        struct ptx_module *m;
        status_t st = ptx_module_parse(&m, "x", text, strlen(text));
        char want[256];
        snprintf(want, sizeof want, "x:%s", r->message);
        CHECK(st == r->status && m == NULL, "%s: status %d: %s", r->statements, st, status_message());
        CHECK(strncmp(status_message(), want, strlen(want)) == 0, "%s\n  got  %s\n  want %s",
              r->statements, status_message(), want);
        /* The caret stands under the column that the message names. */
        const char *caret = strrchr(status_message(), '\n');
        unsigned line, col;
        if (caret && sscanf(status_message(), "x:%u:%u:", &line, &col) == 2 && col <= 60)
            CHECK(strlen(caret) == 1 + 4 + col && caret[strlen(caret) - 1] == '^', "caret: %s",
                  status_message());
        if (st == OK)
            ptx_module_free(m);
        free(text);
        free(body);
    }
}

static const struct {
    const char *text, *message;
} headers[] = {
    {"", "x:1:1: expected '.version', found the end of the text"},
    {"hello", "x:1:1: expected '.version', found 'hello'"},
    {".version 8", "x:1:10: expected a version such as 8.0"},
    {".version 8.0 .target gfx906", "x:1:22: target 'gfx906'"},
    {".version 8.0 .target sm_80, map_f64_to_f32", "x:1:29: target option"},
    {".version 8.0 .target sm_80 .address_size 32", "x:1:42: addresses of 32 bits"},
    {".version 8.0 .target sm_80 .entry k() { barrier.cluster.arrive; }",
     "x:1:41: 'barrier' in this form needs sm_90, the target is sm_80"},
    {".version 8.0 .target sm_80 .entry k() .reqnctapercluster 2 {}",
     "x:1:39: clusters need sm_90, the target is sm_80"},
    {".version 8.0 .target sm_75 .entry k() { .reg .f32 %f<3>; min.NaN.f32 %f1, %f2, %f2; }",
     "x:1:58: 'min' in this form needs sm_80, the target is sm_75"},
    {".version 8.8 .target sm_90a .entry k() { .reg .f32 %f<3>; min.f32 %f1, %f2, %f2, %f2; }",
     "x:1:59: 'min' in this form needs sm_100, the target is sm_90a"},
    {".version 8.0 .target sm_80 .func f(.reg .pred p) { ret; }",
     "x:1:41: a predicate as a parameter"},
    {".version 8.0 .target sm_80 .entry k() {} .entry k() {}", "x:1:49: entry 'k' is defined twice"},
    {".version 8.0 .target sm_80 .entry k(.param .b8 a[40000]) {}",
     "x:1:48: more than 32764 parameter bytes"},
    {".version 8.0 .target sm_80 .global .f32 t[2] = {0f0, 1.0};",
     "x:1:49: expected 8 hexadecimal digits"},
    {".version 8.0 .target sm_80 .global .f32 t[2] = {0.5, 1.0, 2.0};",
     "x:1:59: more initialisers than elements"},
    {".version 8.0 .target sm_80 .entry k() { ret; } /*", "x:1:48: comment without an end"},
    {".version 8.0 .target sm_80 .entry k() { ret; }\n /* a\n\n *", "x:2:2: comment without an end"},
    {"/* a *//", "x:1:8: unexpected character"},
    {".version 8.0 .target sm_80 .extern .global .f32 t;", "x:1:49: variable of another module"},
};

static void test_headers(void) {
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct ptx_module *m;
        status_t st = ptx_module_parse(&m, "x", headers[i].text, strlen(headers[i].text));
        CHECK(st != OK && strncmp(status_message(), headers[i].message,
                                  strlen(headers[i].message)) == 0,
              "%s\n  got  %s\n  want %s", headers[i].text, status_message(), headers[i].message);
        if (st == OK)
            ptx_module_free(m);
    }
}

static struct ptx_module *parse(const char *body) {
    char *text = wrap(body);
    struct ptx_module *m;
    status_t st = ptx_module_parse(&m, "x", text, strlen(text));
    CHECK(st == OK, "%s\n%s", body, status_message());
    free(text);
    if (st != OK)
        exit(1);
    return m;
}

static void test_structure(void) {
    struct ptx_module *m = parse(
        REGS ".shared .align 16 .b8 a[20];\n.shared .align 8 .f64 b;\n"
        ".loc 1 42 7\n"
        "@!%p1 bra $L_end;\n"
        "mul.wide.s32 %rd1, %r1, -3;\n"
        "ld.global.nc.L1::evict_first.L2::128B.v4.f32 {%f1, %f2, _, %f4}, [%rd1+-16];\n"
        "shfl.sync.bfly.b32 %r3|%p2, %r1, 16, 31, -1;\n"
        "mov.b64 {%r4, %r5}, %rd1;\n"
        "mov.u32 %r6, b;\n"
        "ld.shared.f32 %f5, [a+4];\n"
        "{ .reg .b32 %r1; mov.u32 %r1, %ctaid.y; }\n"
        "$L_end: st.shared.f32 [%r6], 0f3F800000;\n");
    struct ptx_func *f = &m->funcs[0];
    CHECK(f->param_count == 2 && f->params[1].offset == 8 && f->param_bytes == 12, "parameters");
    CHECK(f->static_shared == 32, "shared: %zu", f->static_shared); /* 20 -> 24, + 8 */
    CHECK(f->insn_count == 10, "%zu instructions", f->insn_count);  /* 9 and the exit */
    const struct ptx_insn *bra = &f->insns[0];
    CHECK(bra->op == PTX_OP_BRA && bra->guard != PTX_NOREG && bra->guard_negate &&
          bra->opnd[0].target == 8, "branch");
    CHECK(bra->file == 1 && bra->source_line == 42 && bra->line == 9, "places: line %u", bra->line);
    const struct ptx_insn *mul = &f->insns[1];
    CHECK(mul->op == PTX_OP_MUL_WIDE && mul->opnd[2].kind == OPND_IMM &&
          mul->opnd[2].imm == 0xfffffffdu && mul->opnd[0].type == PTX_S64, "mul.wide");
    const struct ptx_insn *ld = &f->insns[2];
    CHECK(ld->mods.vec == 4 && ld->group_count == 2 && ld->first[1] == 4 &&
          ld->opnd[2].kind == OPND_SINK && ld->opnd[4].kind == OPND_MEM &&
          ld->opnd[4].offset == -16 && ld->mods.space == SPACE_GLOBAL, "vector load");
    const struct ptx_insn *shfl = &f->insns[3];
    CHECK(shfl->first[1] == 2 && shfl->opnd[1].kind == OPND_PRED && shfl->mods.mode == MODE_BFLY &&
          shfl->opnd[5].imm == 0xffffffffu, "shfl");
    CHECK(f->insns[4].first[1] == 2, "unpacking mov");
    CHECK(f->insns[5].opnd[1].kind == OPND_VAR && f->insns[5].opnd[1].var->offset == 24, "address");
    CHECK(f->insns[6].opnd[1].var->offset == 0 && f->insns[6].opnd[1].offset == 4, "shared load");
    CHECK(f->insns[7].opnd[0].reg != mul->opnd[1].reg, "an inner %%r1 is another register");
    CHECK(f->insns[9].op == PTX_OP_EXIT, "exit");
    ptx_module_free(m);
}

/* Dynamic shared memory begins behind the static one, at its own alignment. */
static void test_dynamic_shared(void) {
    const char *text = ".version 8.0\n.target sm_80\n.extern .shared .align 32 .b8 dyn[];\n"
                       ".shared .align 4 .b8 both[8];\n"
                       ".entry one() { .reg .b32 %r<3>; .shared .b8 s[5]; mov.u32 %r1, both;\n"
                       "mov.u32 %r2, dyn; }\n"
                       ".entry two() { .reg .b32 %r<3>; mov.u32 %r1, both; }\n"
                       ".entry none() { }\n";
    struct ptx_module *m;
    status_t st = ptx_module_parse(&m, "x", text, strlen(text));
    CHECK(st == OK, "%s", status_message());
    if (st != OK)
        return;
    CHECK(m->funcs[0].static_shared == 32, "%zu", m->funcs[0].static_shared); /* 5->8+8, to 32 */
    CHECK(m->funcs[0].insns[1].opnd[1].var->offset == 32, "begin of dyn");
    CHECK(m->funcs[1].static_shared == 8 && m->funcs[2].static_shared == 0, "only where named");
    ptx_module_free(m);
}

static void test_ambiguous(void) {
    static const struct {
        const char *body;
        unsigned count;
    } cases[] = {
        {"mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5;", 1},
        {"mul.f32 %f1, %f2, %f3; sub.f32 %f4, %f5, %f1;", 1},
        {"mul.rn.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5;", 0},
        {"mul.f32 %f1, %f2, %f3; add.rn.f32 %f4, %f1, %f5;", 0},
        {"mul.f32 %f1, %f2, %f3; add.f32 %f4, %f2, %f5;", 0},
        {"mul.f16 %rs1, %rs2, %rs3; add.f16 %rs2, %rs1, %rs3;", 1},
        {"mul.bf16x2 %r1, %r2, %r3; sub.bf16x2 %r2, %r1, %r3;", 1},
        {"mul.rn.f16x2 %r1, %r2, %r3; add.rn.f16x2 %r2, %r1, %r3;", 0},
        {"mul.f64 %fd1, %fd2, %fd3; add.f64 %fd2, %fd1, %fd1;", 1},
        {"mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5; add.f32 %f6, %f5, %f1;", 2},
        /* What ptxas sees through: see resolve.c. */
        {"mul.f32 %f1, %f2, %f3; mov.f32 %f4, %f1; add.f32 %f5, %f4, %f2;", 1},
        {"mul.f32 %f1, %f2, %f3; mov.b32 %r1, %f1; mov.b32 %f4, %r1; sub.f32 %f5, %f2, %f4;", 1},
        {"mul.f32 %f1, %f2, %f3; neg.f32 %f4, %f1; add.f32 %f5, %f4, %f2;", 1},
        {"mul.f32 %f1, %f2, %f3; cvt.f32.f32 %f4, %f1; add.f32 %f5, %f4, %f2;", 1},
        {"mul.f16x2 %r1, %r2, %r3; mov.b32 {%rs1, %rs2}, %r1; add.f16 %rs3, %rs2, %rs2;", 1},
        {"add.f32 %f5, %f4, %f2; mov.f32 %f4, %f3; mov.f32 %f3, %f1; mul.f32 %f1, %f2, %f2;", 1},
        {".local .align 4 .b8 s[16]; mul.f32 %f1, %f2, %f3; st.local.f32 [s], %f1; "
         "ld.local.f32 %f4, [s]; add.f32 %f5, %f4, %f2;", 1},
        {"mul.f32 %f1, %f2, %f3; abs.f32 %f4, %f1; add.f32 %f5, %f4, %f2;", 0},
        {".shared .align 4 .b8 s[16]; mul.f32 %f1, %f2, %f3; st.shared.f32 [s], %f1; "
         "ld.shared.f32 %f4, [s]; add.f32 %f5, %f4, %f2;", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *body = NULL;
        if (asprintf(&body, "%s%s", REGS, cases[i].body) < 0)
            abort();
        struct ptx_module *m = parse(body);
        CHECK(m->funcs[0].ambiguous == cases[i].count, "%s: %u", cases[i].body, m->funcs[0].ambiguous);
        CHECK((m->funcs[0].ambiguous_line == 6) == (cases[i].count > 0), "%s: line", cases[i].body);
        ptx_module_free(m);
        free(body);
    }
}

/* Every prefix of a good text, and the text with any one byte changed: an answer, never a crash. */
static void test_damage(void) {
    char *good = wrap(REGS ".shared .align 4 .b8 s[1024];\n.loc 1 3 1, function_name $info, inlined_at 1 2 3\n"
                      "{ .reg .pred p; setp.lt.and.f32 p|%p1, %f1, 0f3F800000, !%p2; }\n"
                      "@%p1 bra.uni L; ld.param.u64 %rd1, [px]; cvta.to.global.u64 %rd2, %rd1;\n"
                      "fma.rn.relu.f16x2 %r1, %r2, %r3, %r4; cvt.rn.bf16x2.f32 %r1, %f1, %f2;\n"
                      "cp.async.cg.shared.global [%r1], [%rd2], 16, %r2; cp.async.wait_group 0;\n"
                      "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r3];\n"
                      "atom.global.add.f32 %f1, [%rd2], %f2; bar.sync 0; L: ret;");
    size_t size = strlen(good);
    struct ptx_module *m;
    unsigned accepted = 0;
    for (size_t n = 0; n <= size; n++) {
        char *copy = malloc(n ? n : 1); /* exact size: a sanitizer sees one byte too far */
        memcpy(copy, good, n);
        if (ptx_module_parse(&m, "x", copy, n) == OK) {
            accepted += m->func_count > 0; /* a header alone is a module too */
            ptx_module_free(m);
        }
        free(copy);
    }
    CHECK(accepted == 2, "%u prefixes accepted", accepted); /* with and without the last newline */
    static const char bytes[] = {0, '"', '{', '}', '%', '9', ',', '\xff', ';', '[', '<', '/'};
    for (size_t at = 0; at < size; at++) {
        for (size_t b = 0; b < sizeof bytes; b++) {
            char keep = good[at];
            good[at] = bytes[b];
            if (ptx_module_parse(&m, "x", good, size) == OK)
                ptx_module_free(m);
            good[at] = keep;
        }
    }
    free(good);
}

static void test_hostile_sizes(void) {
    /* A range of four thousand million registers costs nothing until one is named. */
    struct ptx_module *m = parse(".reg .b32 %r<4294967295>; mov.u32 %r4294967294, 1;");
    CHECK(m->funcs[0].reg_count == 1, "%zu registers", m->funcs[0].reg_count);
    ptx_module_free(m);
    char *deep = malloc(100001);
    memset(deep, '{', 100000);
    deep[100000] = '\0';
    char *text = wrap(deep);
    CHECK(ptx_module_parse(&m, "x", text, strlen(text)) == ERR_UNSUPPORTED, "nesting");
    free(text);
    free(deep);
}

int main(void) {
    test_refusals();
    test_headers();
    test_structure();
    test_dynamic_shared();
    test_ambiguous();
    test_damage();
    test_hostile_sizes();
    printf("%d failed\n", failures);
    return failures != 0;
}
