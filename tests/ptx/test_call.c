/*
 * test_call.c - functions: arguments, results, stacks, recursion, tables of targets, assertions.
 * Every expected value is worked out by hand in the test.
 *
 *   test_call --device cuda:0     what has a result, on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/harness.h"

#define STORE(reg) "st.global.u32 [%d2], " reg ";\n"

/* r = f(a, b): as nvcc writes it. */
#define CALL2(f, r, a, b)                                                          \
    "{\n.param .b32 param0;\nst.param.b32 [param0], " a ";\n.param .b32 param1;\n" \
    "st.param.b32 [param1], " b ";\n.param .b32 retval0;\ncall.uni (retval0), " f  \
    ", (param0, param1);\nld.param.b32 " r ", [retval0];\n}\n"
#define CALL1(f, r, a)                                                                \
    "{\n.param .b32 param0;\nst.param.b32 [param0+0], " a ";\n.param .b32 retval0;\n" \
    "call (retval0), " f ", (param0);\nld.param.b32 " r ", [retval0+0];\n}\n"

/* 3 a - b, and through registers of the old style. */
static const char *const plain =
    ".func (.param .b32 func_retval0) weigh(.param .b32 p0, .param .b32 p1);\n"
    ".func (.reg .u32 %res) half(.reg .u32 %arg)\n{\n.reg .u32 %t;\nshr.u32 %t, %arg, 1;\n"
    "mov.u32 %res, %t;\nret;\n}\n"
    ".func (.param .b32 func_retval0) weigh(.param .b32 p0, .param .b32 p1)\n{\n"
    ".reg .b32 %r<5>;\nld.param.u32 %r1, [p0];\nld.param.u32 %r2, [p1];\n"
    "mad.lo.u32 %r3, %r1, 3, 0;\nsub.u32 %r4, %r3, %r2;\nst.param.b32 [func_retval0+0], %r4;\n"
    "ret;\n}\n";

static void test_plain(void) {
    struct job j = {.threads = 70,
                    .module = plain,
                    .shadow = true,
                    .body = "add.u32 %r4, %r1, 100;\n" CALL2(
                        "weigh", "%r5", "%r4",
                        "%r1") "call (%r6), half, (%r5);\n" CALL2("weigh", "%r7", "%r6", "%r4")
                        STORE("%r7")};
    job_clean("arguments and results", &j);
    for (unsigned i = 0; i < 70; i++) {
        unsigned a = i + 100, b = (3 * a - i) / 2;
        CHECK_EQ(out[i], 3 * b - a, "arguments and results");
    }
}

/* Lanes call from two places, come back to the right one, and meet again. */
static void test_divergence(void) {
    struct job j = {.threads = 64,
                    .module = plain,
                    .body = "mov.u32 %r8, 1;\nsetp.lt.u32 %p0, %r1, 10;\n@%p0 bra left;\n" CALL2(
                        "weigh",
                        "%r5", "%r1", "%r8") "add.u32 %r5, %r5, 1000;\nbra.uni "
                                             "join;\nleft:\n" CALL2("weigh", "%r5", "%r8",
                                                                    "%r1") "add.u32 %r5, %r5, "
                                                                           "2000;\njoin:\n"
                                                                           "setp.gt.u32 %p1, %r1, "
                                                                           "5;\n@%p1 call (%r5), "
                                                                           "half, (%r5);\n"
                                                                           "bar.sync "
                                                                           "0;\nvote.sync.ballot."
                                                                           "b32 %r6, %p0, "
                                                                           "-1;\nxor.b32 %r5, %r5, "
                                                                           "%r6;\n" STORE("%r5")};
    job_clean("calls from two places", &j);
    for (unsigned i = 0; i < 64; i++) {
        unsigned v = i < 10 ? 3 - i + 2000 : 3 * i - 1 + 1000;
        CHECK_EQ(out[i], (i > 5 ? v / 2 : v) ^ (i < 32 ? 0x3ff : 0), "calls from two places");
    }
    struct job together = {
        .threads = 32, /* half the lanes call, the others go round: they meet behind the call */
        .module = plain,
        .body = "setp.lt.u32 %p0, %r1, 16;\nmov.u32 %r5, %r1;\n@!%p0 bra over;\n" CALL2(
            "weigh", "%r5", "%r1",
            "%r1") "over:\nactivemask.b32 %r6;\nadd.u32 %r5, %r5, %r6;\n" STORE("%r5")};
    job_clean("lanes meet behind a call", &together);
    for (unsigned i = 0; i < 32 && strcmp(job_device, "cpu") == 0; i++)
        CHECK_EQ(out[i], (i < 16 ? 2 * i : i) - 1, "lanes meet behind a call");
}

/* fib(n) by itself; ackermann-like mutual recursion with an array in each frame. */
static void test_recursion(void) {
    struct job fib = {
        .threads = 40,
        .shadow = true,
        .module =
            ".func (.param .b32 r) fib(.param .b32 n)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<9>;\n"
            "ld.param.u32 %r1, [n];\nsetp.lt.u32 %p1, %r1, 2;\n@%p1 bra small;\n"
            "sub.u32 %r2, %r1, 1;\n" CALL1("fib", "%r3", "%r2") "sub.u32 %r4, %r1, 2;\n" CALL1(
                "fib", "%r5", "%r4") "add.u32 %r6, %r3, %r5;\nst.param.b32 [r], %r6;\nret;\n"
                                     "small:\nst.param.b32 [r], %r1;\nret;\n}\n",
        .body = "and.b32 %r4, %r1, 15;\n" CALL1("fib", "%r5", "%r4") STORE("%r5")};
    job_clean("fib", &fib);
    static const unsigned numbers[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610};
    for (unsigned i = 0; i < 40; i++)
        CHECK_EQ(out[i], numbers[i & 15], "fib");
    struct job mutual = {
        /*
         * even(n, p) stores n in its own array, calls odd(n - 1, &array) and adds what the caller's
         * array held: the sum of what each caller stored.
         */
        .threads = 33,
        .shadow = true,
        .module =
            ".func (.param .b32 r) odd(.param .b32 n, .param .b64 p);\n"
            ".func (.param .b32 r) even(.param .b32 n, .param .b64 p)\n{\n"
            ".local .align 8 .b8 a[16];\n.reg .pred %p<2>;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n"
            "ld.param.u32 %r1, [n];\nld.param.u64 %d1, [p];\nld.u32 %r2, [%d1];\n"
            "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra end;\nmov.u64 %d2, a;\ncvta.local.u64 %d3, %d2;\n"
            "mul.lo.u32 %r3, %r1, 10;\nst.local.u32 [a+4], %r3;\nadd.u64 %d3, %d3, 4;\n"
            "sub.u32 %r4, %r1, 1;\n{\n.param .b32 x;\nst.param.b32 [x], %r4;\n.param .b64 y;\n"
            "st.param.b64 [y], %d3;\n.param .b32 z;\ncall.uni (z), odd, (x, y);\n"
            "ld.param.b32 %r5, [z];\n}\nadd.u32 %r2, %r2, %r5;\nld.local.u32 %r6, [%d2+4];\n"
            "sub.u32 %r6, %r6, %r3;\nadd.u32 %r2, %r2, %r6;\nend:\nst.param.b32 [r], "
            "%r2;\nret;\n}\n"
            ".func (.param .b32 r) odd(.param .b32 n, .param .b64 p)\n{\n.reg .b32 %r<9>;\n"
            ".reg .b64 %d<9>;\nld.param.u32 %r1, [n];\nld.param.u64 %d1, [p];\n{\n.param .b32 x;\n"
            "st.param.b32 [x], %r1;\n.param .b64 y;\nst.param.b64 [y], %d1;\n.param .b32 z;\n"
            "call.uni (z), even, (x, y);\nld.param.b32 %r5, [z];\n}\nst.param.b32 [r], "
            "%r5;\nret;\n}\n",
        .declare = ".local .align 8 .b8 top[8];",
        .body = "st.local.u32 [top], 7;\nmov.u64 %d3, top;\ncvta.local.u64 %d3, %d3;\n"
                "rem.u32 %r4, %r1, 9;\n{\n.param .b32 x;\nst.param.b32 [x], %r4;\n.param .b64 y;\n"
                "st.param.b64 [y], %d3;\n.param .b32 z;\ncall.uni (z), even, (x, y);\n"
                "ld.param.b32 %r5, [z];\n}\n" STORE("%r5")};
    job_clean("mutual recursion", &mutual);
    for (unsigned i = 0; i < 33; i++) {
        unsigned n = i % 9;
        CHECK_EQ(out[i], 7 + 10 * (n * (n + 1) / 2), "mutual recursion");
    }
}

static const char *const four =
    ".func (.param .b32 r) f0(.param .b32 a)\n{\n.reg .b32 %x;\nld.param.u32 %x, [a];\n"
    "add.u32 %x, %x, 1000;\nst.param.b32 [r], %x;\nret;\n}\n"
    ".func (.param .b32 r) f1(.param .b32 a)\n{\n.reg .b32 %x;\nld.param.u32 %x, [a];\n"
    "mul.lo.u32 %x, %x, 3;\nst.param.b32 [r], %x;\nret;\n}\n"
    ".func (.param .b32 r) f2(.param .b32 a)\n{\n.reg .b32 %x;\nld.param.u32 %x, [a];\n"
    "xor.b32 %x, %x, 255;\nst.param.b32 [r], %x;\nret;\n}\n";

static void test_tables(void) {
    struct job indirect = {
        .threads = 64,
        .module = four,
        .body = "mov.u64 %d3, f0;\nmov.u64 %d4, f1;\nmov.u64 %d5, f2;\nrem.u32 %r4, %r1, 3;\n"
                "setp.eq.u32 %p0, %r4, 1;\nselp.b64 %d3, %d4, %d3, %p0;\nsetp.eq.u32 %p0, %r4, 2;\n"
                "selp.b64 %d3, %d5, %d3, %p0;\n{\n.param .b32 x;\nst.param.b32 [x], %r1;\n"
                ".param .b32 z;\nproto : .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                "call (z), %d3, (x), proto;\nld.param.b32 %r5, [z];\n}\n{\n.param .b32 x;\n"
                "st.param.b32 [x], %r5;\n.param .b32 z;\ntargets : .calltargets f0, f1, f2;\n"
                "call (z), %d3, (x), targets;\nld.param.b32 %r5, [z];\n}\n" STORE("%r5")};
    job_clean("indirect calls", &indirect);
    for (unsigned i = 0; i < 64; i++)
        CHECK_EQ(out[i], i % 3 == 0 ? i + 2000 : i % 3 == 1 ? 9 * i : i, "indirect calls");
    struct job jumps = {
        .threads = 64,
        .body =
            "and.b32 %r4, %r1, 3;\nts: .branchtargets A, B, C, B;\nmov.u32 %r5, 1;\n"
            "brx.idx %r4, ts;\nA:\nadd.u32 %r5, %r5, 10;\nB:\nadd.u32 %r5, %r5, 100;\nbra end;\n"
            "C:\nadd.u32 %r5, %r5, 5000;\nend:\n" STORE("%r5")};
    job_clean("brx.idx", &jumps);
    for (unsigned i = 0; i < 64; i++)
        CHECK_EQ(out[i], i % 4 == 0 ? 111 : i % 4 == 2 ? 5001 : 101, "brx.idx");
}

/* Structs by value, 64 bits, 16 bits; shared memory of the module and of the function. */
static void test_layout(void) {
    struct job j = {
        .threads = 32,
        .shadow = true,
        .module =
            ".shared .align 4 .b8 common[128];\n.extern .shared .align 16 .b8 dyn[];\n"
            ".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 a[16], .param .b32 t)\n{\n"
            ".shared .align 4 .b8 own[128];\n"
            ".reg .b16 %h<3>;\n.reg .b32 %r<9>;\n.reg .b64 %d<4>;\nld.param.b64 %d1, [a];\n"
            "ld.param.v2.b32 {%r1, %r2}, [a+8];\nld.param.u32 %r3, [t];\nshl.b32 %r4, %r3, 2;\n"
            "mov.u32 %r5, common;\nadd.u32 %r5, %r5, %r4;\nld.shared.u32 %r6, [%r5];\n"
            "mov.u32 %r7, own;\nadd.u32 %r7, %r7, %r4;\nst.shared.u32 [%r7], %r1;\n"
            "mov.u32 %r8, dyn;\nadd.u32 %r8, %r8, %r4;\nst.shared.u32 [%r8], %r3;\n"
            "add.u32 %r6, %r6, %r1;\nst.param.b32 [r], %r6;\nst.param.b32 [r+4], %r2;\n"
            "st.param.b64 [r+8], %d1;\nret;\n}\n",
        .dynamic_shared = 128,
        .body = "mov.u32 %r4, common;\nmad.lo.u32 %r4, %r1, 4, %r4;\nst.shared.u32 [%r4], 50;\n"
                "{\n.param .align 8 .b8 x[16];\nmov.u64 %d3, 0x1122334455667788;\n"
                "st.param.b64 [x], %d3;\nst.param.b32 [x+8], %r1;\nst.param.b32 [x+12], 9;\n"
                ".param .b32 y;\nst.param.b32 [y], %r1;\n.param .align 8 .b8 z[16];\n"
                "call.uni (z), swap, (x, y);\nld.param.v2.b32 {%r5, %r6}, [z];\n"
                "ld.param.b64 %d4, [z+8];\n}\nmov.u32 %r7, dyn;\nmad.lo.u32 %r7, %r1, 4, %r7;\n"
                "ld.shared.u32 %r8, [%r7];\nmul.wide.u32 %d5, %r1, 16;\nadd.u64 %d5, %d5, %d0;\n"
                "add.u32 %r6, %r6, %r8;\nst.global.v2.u32 [%d5], {%r5, %r6};\n"
                "st.global.u64 [%d5+8], %d4;\n"};
    job_clean("layout", &j);
    for (unsigned i = 0; i < 32; i++) {
        CHECK_EQ(out[4 * i], 50 + i, "layout");
        CHECK_EQ(out[4 * i + 1], 9 + i, "layout");
        CHECK_EQ(out[4 * i + 2], 0x55667788, "layout");
        CHECK_EQ(out[4 * i + 3], 0x11223344, "layout");
    }
}

/* Some lanes exit, some return early, inside a function. */
static void test_exit(void) {
    struct job j = {.threads = 48,
                    .module = ".func (.param .b32 r) leave(.param .b32 a)\n{\n.reg .pred %p<3>;\n"
                              ".reg .b32 %x;\nld.param.u32 %x, [a];\nst.param.b32 [r], 1;\n"
                              "setp.lt.u32 %p1, %x, 5;\n@%p1 exit;\nsetp.lt.u32 %p2, %x, 20;\n"
                              "@%p2 ret;\nst.param.b32 [r], 2;\n}\n",
                    .body = CALL1("leave", "%r5", "%r1") "bar.sync 0;\n" STORE("%r5")};
    job_clean("exit and ret in a function", &j);
    for (unsigned i = 0; i < 48; i++)
        CHECK_EQ(out[i], i < 5 ? 0xffffffff : i < 20 ? 1 : 2, "exit and ret in a function");
}

static void test_results(void) {
    test_plain();
    test_divergence();
    test_recursion();
    test_tables();
    test_layout();
    test_exit();
}

/* ---- faults and refusals --------------------------------------------------------------------- */

static void test_faults(void) {
    struct job assertion = {
        .threads = 40,
        .module = ".extern .func __assertfail\n(\n.param .b64 a,\n.param .b64 b,\n.param .b32 c,\n"
                  ".param .b64 d,\n.param .b64 e\n)\n.attribute(.noreturn)\n;\n"
                  ".global .align 1 .b8 text[6] = {120, 32, 62, 32, 48, 0};\n"
                  ".global .align 1 .b8 file[5] = {107, 46, 99, 117};\n",
        .body =
            "setp.ne.u32 %p0, %r1, 35;\n@%p0 bra fine;\nmov.u64 %d3, text;\n"
            "cvta.global.u64 %d3, %d3;\nmov.u64 %d4, file;\ncvta.global.u64 %d4, %d4;\n{\n"
            ".param .b64 p0;\nst.param.b64 [p0], %d3;\n.param .b64 p1;\nst.param.b64 [p1], %d4;\n"
            ".param .b32 p2;\nst.param.b32 [p2], 123;\n.param .b64 p3;\nst.param.b64 [p3], %d4;\n"
            ".param .b64 p4;\nst.param.b64 [p4], 1;\ncall.uni \n__assertfail, \n(\np0, \np1, \np2, "
            "\np3, \np4\n);\n}\nfine:\n"};
    job_fault("__assertfail", &assertion, FAULT_TRAP);
    CHECK_EQ(run.faults[0].thread[0], 35, "__assertfail");
    CHECK_EQ(strstr(run.faults[0].text, "fails the assertion 'x > 0' at k.cu:123") != NULL, 1,
             run.faults[0].text);
    struct job endless = {.threads = 32,
                          .module =
                              ".func (.param .b32 r) down(.param .b32 a)\n{\n.reg .b32 %x<3>;\n"
                              "ld.param.u32 %x1, [a];\n" CALL1(
                                  "down", "%x2", "%x1") "st.param.b32 [r], %x2;\nret;\n}\n",
                          .body = CALL1("down", "%r5", "%r1")};
    job_fault("endless recursion", &endless, FAULT_OUT_OF_BOUNDS);
    CHECK_EQ(strstr(run.faults[0].text, "stack of") != NULL, 1, run.faults[0].text);
    struct job wild = {.threads = 32,
                       .module = four,
                       .body = "mov.u64 %d3, f0;\nadd.u64 %d3, %d3, %d0;\n{\n.param .b32 x;\n"
                               "st.param.b32 [x], %r1;\n.param .b32 z;\n"
                               "proto : .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                               "call (z), %d3, (x), proto;\n}\n"};
    job_fault("a wild function pointer", &wild, FAULT_OUT_OF_BOUNDS);
    struct job unset = {.threads = 32,
                        .module = four,
                        .shadow = true,
                        .body = "{\n.param .b32 x;\n.param .b32 z;\ncall (z), f1, (x);\n}\n"};
    job_fault("an argument that is not set", &unset, FAULT_UNWRITTEN);
    struct job silent = {
        .threads = 32,
        .module = ".func (.param .b32 r) nothing()\n{\nret;\n}\n",
        .shadow = true,
        .body = "{\n.param .b32 z;\ncall (z), nothing, ();\nld.param.b32 %r4, [z];\n}\n"};
    job_fault("a result that is not set", &silent, FAULT_UNWRITTEN);
    struct job outside = {.body = "ts: .branchtargets A;\nmov.u32 %r4, 1;\nbrx.idx %r4, ts;\nA:\n"};
    job_fault("past the table", &outside, FAULT_OUT_OF_BOUNDS);
    struct job loop = {
        .threads = 32, /* no jump goes back: the budget counts all the same */
        .insn_budget = 100000,
        .module = ".func (.param .b32 r) fib(.param .b32 n)\n{\n.reg .pred %p<2>;\n"
                  ".reg .b32 %r<9>;\nld.param.u32 %r1, [n];\nsetp.lt.u32 %p1, %r1, 2;\n"
                  "@%p1 bra small;\nsub.u32 %r2, %r1, 1;\n" CALL1("fib", "%r3", "%r2")
                      CALL1("fib", "%r5", "%r2") "small:\nst.param.b32 [r], %r1;\nret;\n}\n",
        .body = "mov.u32 %r4, 60;\n" CALL1("fib", "%r5", "%r4")};
    job_fault("exponential recursion", &loop, FAULT_INSN_BUDGET);
}

/* ---- alloca ---------------------------------------------------------------------------------- */

/* sum of n..1, through n frames that each take 8 (n + 1) bytes and hold n there. */
#define TRIANGLE                                                                                \
    ".func (.param .b32 r) tri(.param .b32 n)\n{\n.reg .pred %p;\n.reg .b32 %a<6>;\n.reg .b64 "  \
    "%s<5>;\nld.param.u32 %a1, [n];\nmov.u32 %a2, 0;\nsetp.eq.u32 %p, %a1, 0;\n@%p bra done;\n" \
    "add.u32 %a4, %a1, 1;\nmul.wide.u32 %s1, %a4, 8;\nalloca.u64 %s2, %s1;\n"                   \
    "st.local.u32 [%s2], %a1;\nsub.u32 %a3, %a1, 1;\n{\n.param .b32 x;\n.param .b32 z;\n"       \
    "st.param.b32 [x], %a3;\ncall (z), tri, (x);\nld.param.b32 %a2, [z];\n}\n"                  \
    "ld.local.u32 %a5, [%s2];\nadd.u32 %a2, %a2, %a5;\ndone:\nst.param.b32 [r], %a2;\nret;\n}\n"

static void test_alloca(void) {
    struct job j = {
        .threads = 64,
        .shadow = true,
        .body = "alloca.u64 %d3, 12;\nalloca.u64 %d4, 8, 64;\nstacksave.u64 %d5;\n"
                "st.local.u32 [%d3+8], %r1;\nst.local.u32 [%d4+4], %r1;\n"
                "alloca.u64 %d7, 4, 4;\nst.local.u32 [%d7], 7;\nstackrestore.u64 %d5;\n"
                "alloca.u64 %d8, 4, 4;\nmul.wide.u32 %d6, %r1, 8;\nadd.u64 %d6, %d6, 8;\n"
                "alloca.u64 %d11, %d6;\nst.local.u32 [%d11], 7;\nst.local.u32 [%d8], %r1;\n"
                "cvta.local.u64 %d9, %d3;\nld.u32 %r4, [%d9+8];\n"
                "ld.local.u32 %r5, [%d4+4];\nadd.u32 %r4, %r4, %r5;\nld.local.u32 %r5, [%d8];\n"
                "add.u32 %r4, %r4, %r5;\nand.b64 %d10, %d4, 63;\ncvt.u32.u64 %r5, %d10;\n"
                "add.u32 %r4, %r4, %r5;\nsetp.ne.u64 %p0, %d8, %d7;\nselp.u32 %r5, 1000, 0, %p0;\n"
                "add.u32 %r4, %r4, %r5;\n" STORE("%r4")};
    job_clean("alloca", &j);
    for (uint32_t t = 0; t < 64; t++)
        CHECK_EQ(out[t], 3 * t, "alloca");
    struct job deep = {
        .threads = 32, /* 8 * (16 * 17 / 2 + 16) bytes at once, and all of them again and again */
        .shadow = true,
        .module = TRIANGLE,
        .body = "mov.u32 %r6, 0;\nmov.u32 %r7, 0;\nmov.u32 %r4, 16;\nagain:\n{\n.param .b32 x;\n"
                ".param .b32 z;\nst.param.b32 [x], %r4;\ncall (z), tri, (x);\n"
                "ld.param.b32 %r5, [z];\n}\nadd.u32 %r7, %r7, %r5;\nadd.u32 %r6, %r6, 1;\n"
                "setp.lt.u32 %p0, %r6, 50;\n@%p0 bra again;\n" STORE("%r7")};
    job_clean("alloca in functions", &deep);
    CHECK_EQ(out[5], 50 * 136, "alloca in functions");
}

/* 8 bytes at an address that is a multiple of 8, or of immAlign if that is more. */
static void test_alloca_alignment(void) {
    static const unsigned aligns[] = {1, 2, 4, 8, 16, 2048, 4096};
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        char body[512];
        unsigned least = aligns[i] < 8 ? 8 : aligns[i];
        snprintf(body, sizeof body,
                 "alloca.u64 %%d3, 3, 1;\nalloca.u64 %%d4, 8, %u;\nst.local.u64 [%%d4], %%d0;\n"
                 "alloca.u64 %%d5, 1, %u;\nor.b64 %%d6, %%d4, %%d5;\nor.b64 %%d6, %%d6, %%d3;\n"
                 "alloca.u64 %%d7, 1;\nand.b64 %%d7, %%d7, 7;\nand.b64 %%d8, %%d4, %u;\n"
                 "or.b64 %%d8, %%d8, %%d7;\nand.b64 %%d6, %%d6, 7;\nor.b64 %%d8, %%d8, %%d6;\n"
                 "cvt.u32.u64 %%r4, %%d8;\nst.global.u32 [%%d2], %%r4;\n",
                 aligns[i], aligns[i], least - 1);
        struct job j = {.threads = 3, .shadow = true, .body = body};
        job_clean(body, &j);
        for (unsigned t = 0; t < 3; t++)
            CHECK_EQ(out[t], 0, body);
    }
}

static void test_alloca_faults(void) {
    static const struct {
        const char *name, *body;
        enum dev_fault_kind kind;
    } cases[] = {
        {"too much", "alloca.u64 %d3, 20000;\n", FAULT_OUT_OF_BOUNDS},
        {"aligned past the end", "alloca.u64 %d3, 8;\nalloca.u64 %d3, 8, 8388608;\n",
         FAULT_OUT_OF_BOUNDS},
        {"far too much", "alloca.u64 %d3, -1;\n", FAULT_OUT_OF_BOUNDS},
        {"again and again", "again:\nalloca.u64 %d3, 64;\nbra again;\n", FAULT_OUT_OF_BOUNDS},
        {"a read before a write", "alloca.u64 %d3, 64;\nld.local.u32 %r4, [%d3];\n" STORE("%r4"),
         FAULT_UNWRITTEN},
        {"taken again, a read before a write",
         "stacksave.u64 %d5;\nalloca.u64 %d3, 64;\nst.local.u32 [%d3], 1;\nstackrestore.u64 %d5;\n"
         "alloca.u64 %d3, 64;\nld.local.u32 %r4, [%d3];\n" STORE("%r4"),
         FAULT_UNWRITTEN},
        {"restored to nowhere", "alloca.u64 %d3, 64;\nstackrestore.u64 %d0;\n",
         FAULT_OUT_OF_BOUNDS},
        {"restored upwards", "alloca.u64 %d3, 64;\nadd.u64 %d3, %d3, 100;\nstackrestore.u64 %d3;\n",
         FAULT_OUT_OF_BOUNDS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job j = {.threads = 2, .shadow = true, .body = cases[i].body};
        job_fault(cases[i].name, &j, cases[i].kind);
    }
    static const char *const odd[] = {"3", "0", "16777216"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char body[64];
        snprintf(body, sizeof body, "alloca.u64 %%d3, 64, %s;\n", odd[i]);
        struct job j = {.body = body};
        CHECK_EQ(job_run(&j), ERR_UNSUPPORTED, "an alignment that is no power of two up to 2^23");
    }
}

static void test_refused(void) {
    static const struct {
        const char *module, *body;
        status_t want;
        const char *says;
    } cases[] = {
        {".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n",
         "{\n.param .b64 x;\n.param .b32 z;\ncall (z), vprintf, (x, x);\n}\n", ERR_UNSUPPORTED,
         "calls 'vprintf', which is not defined here"},
        {"", "call nowhere;\n", ERR_SYNTAX, "no function 'nowhere' is declared"},
        {".func f(.param .b32 a)\n{\nret;\n}\n", "call f;\n", ERR_SYNTAX, "'f' has"},
        {".func f(.param .b32 a)\n{\nret;\n}\n", "{\n.param .b64 x;\ncall f, (x);\n}\n", ERR_SYNTAX,
         "'f' has"},
        {".func f(.param .b32 a)\n{\nret;\n}\n.func f(.param .b32 a)\n{\nret;\n}\n", "", ERR_SYNTAX,
         "defined twice"},
        {".func f(.param .b32 a);\n.func f(.param .b64 a)\n{\nret;\n}\n", "", ERR_SYNTAX,
         "other parameters"},
        {".func k()\n{\nret;\n}\n", "", ERR_SYNTAX, "'k'"},
        {"", "brx.idx %r4, ts;\n", ERR_SYNTAX, "branchtargets"},
        {"", "ts: .branchtargets nowhere;\nbrx.idx %r4, ts;\n", ERR_SYNTAX, "no label 'nowhere'"},
        {"", "ts: .calltargets nowhere;\n", ERR_SYNTAX, "no function 'nowhere'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job j = {.module = cases[i].module, .body = cases[i].body};
        status_t st = job_run(&j);
        CHECK_EQ(st, cases[i].want, st == OK ? cases[i].body : status_message());
        CHECK_EQ(strstr(status_message(), cases[i].says) != NULL, 1, status_message());
    }
}

int main(int argc, char **argv) {
    bool gpu = use_device(argc, argv);
    test_results();
    test_alloca();
    test_alloca_alignment();
    if (!gpu) {
        test_alloca_faults();
        test_faults();
        test_refused();
        check_elsewhere(TEST_CALL);
    }
    return report();
}
