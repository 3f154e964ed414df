/*
 * test_warp.c - divergence, loops, exchange between lanes, barriers, spinning, budgets, schedules.
 * Every expected value is worked out by hand in the test.
 *
 *   test_warp --device cuda:0     what has a result, on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/harness.h"
#include "tests/times.h"

#define STORE(reg) "st.global.u32 [%d2], " reg ";\n"

/* ---- control flow ---------------------------------------------------------------------------- */

static void test_divergence(void) {
    /* Lane i runs i + 1 rounds of a loop and takes one of two branches in each. */
    struct job j = {
        .threads = 70,
        .body = "mov.u32 %r4, 0;\nmov.u32 %r5, 0;\n"
                "loop:\nand.b32 %r6, %r4, 1;\nsetp.eq.u32 %p0, %r6, 0;\n@%p0 bra even;\n"
                "add.u32 %r5, %r5, 100;\nbra.uni join;\neven:\nadd.u32 %r5, %r5, 1;\njoin:\n"
                "add.u32 %r4, %r4, 1;\nsetp.le.u32 %p1, %r4, %r1;\n@%p1 bra loop;\n" STORE("%r5")};
    job_clean("divergent loop", &j);
    for (unsigned i = 0; i < 70; i++)
        CHECK_EQ(out[i], (i + 2) / 2 + 100 * ((i + 1) / 2), "divergent loop");
}

static void test_reconvergence(void) {
    /* Nested branches meet again: the ballot at the end sees all lanes. */
    struct job j = {
        .threads = 32,
        .body = "setp.lt.u32 %p0, %r1, 10;\n@%p0 bra a;\nsetp.lt.u32 %p1, %r1, 20;\n@%p1 bra b;\n"
                "mov.u32 %r5, 3;\nbra.uni end;\nb:\nmov.u32 %r5, 2;\nbra.uni end;\na:\nmov.u32 "
                "%r5, 1;\nend:\n"
                "activemask.b32 %r6;\nshl.b32 %r5, %r5, 8;\npopc.b32 %r6, %r6;\nor.b32 %r5, %r5, "
                "%r6;\n" STORE("%r5")};
    job_clean("reconvergence", &j);
    for (unsigned i = 0; i < 32; i++)
        CHECK_EQ(out[i], (i < 10 ? 1 : i < 20 ? 2 : 3) << 8 | 32, "reconvergence");
}

static void test_return(void) {
    /* Some lanes leave early; the others go on without them. */
    struct job j = {.threads = 40,
                    .body = STORE("%r1") "setp.lt.u32 %p0, %r1, 10;\n@%p0 ret;\n"
                                         "add.u32 %r4, %r1, 100;\n" STORE("%r4")};
    job_clean("ret", &j);
    for (unsigned i = 0; i < 40; i++)
        CHECK_EQ(out[i], i < 10 ? i : i + 100, "ret");
}

static void test_guards(void) {
    struct job j = {
        .threads = 33,
        .body = "setp.lt.u32 %p0, %r1, 5;\nmov.u32 %r5, 7;\n@%p0 add.u32 %r5, %r5, 1;\n"
                "@!%p0 mul.lo.u32 %r5, %r5, 2;\n@%p0 st.global.u32 [%d2], %r5;\n@%p0 exit;\n"
                "add.u32 %r5, %r5, 100;\n" STORE("%r5")};
    job_clean("guards and exit", &j);
    for (unsigned i = 0; i < 33; i++)
        CHECK_EQ(out[i], i < 5 ? 8 : 114, "guards and exit");
    /*
     * 16 common instructions (9 of the harness), then 4 for lanes 5 and up: only active lanes
     * count.
     */
    CHECK_EQ(strcmp(job_device, "cpu") != 0 ||
                 (run.warp_insns > 0 && run.lane_insns <= run.warp_insns * 32),
             1, "counts");
}

/* %warpid is the warp's place on its processor: which one, no GPU promises (PTX ISA, %warpid). */
static void test_sregs(void) {
    struct job j = {
        .blocks = 3,
        .threads = 40,
        .body = "mov.u32 %r4, %laneid;\nmov.u32 %r5, %warpid;\nmov.u32 %r10, %nwarpid;\n"
                "setp.ge.u32 %p1, %r5, %r10;\n@%p1 add.u32 %r4, %r4, 1000;\n"
                "mov.u32 %r6, %lanemask_lt;\npopc.b32 %r6, %r6;\nsub.u32 %r4, %r4, %r6;\n"
                "mov.u32 %r7, %nctaid.x;\nmad.lo.u32 %r4, %r7, 100000, %r4;\n"
                "mov.u32 %r8, %clock;\nmov.u32 %r9, %clock;\nsetp.lt.u32 %p0, %r8, %r9;\n@%p0 "
                "add.u32 %r4, %r4, 7;\n" STORE("%r4") "st.global.u32 [%d2+480], %r5;\n"};
    job_clean("special registers", &j);
    for (unsigned i = 0; i < 120; i++) {
        unsigned warp = i % 40 / 32;
        CHECK_EQ(out[i], 300007, "special registers");
        if (strcmp(job_device, "cpu") == 0)
            CHECK_EQ(out[120 + i], warp, "warps in order");
        else
            CHECK_EQ(out[120 + i], out[120 + i / 40 * 40 + 32 * warp], "one number for a warp");
    }
}

static void test_uninitialised(void) {
    struct job j = {.threads = 32,
                    .blocks = 2,
                    .body = /* what is read first is all ones: never by chance the right sum */
                    "add.u32 %r20, %r20, %r1;\nadd.u32 %r21, %r20, 2;\n" STORE("%r21")};
    job_clean("registers start at all ones", &j);
    for (unsigned i = 0; i < 64; i++)
        CHECK_EQ(out[i], i % 32 + 1, "registers start at all ones");
    struct job sum = {.threads = 32,
                      .blocks = 2,
                      .body = /* float s; for (i = 0; i < 3; i++) s += 1; */
                      "mov.u32 %r4, 0;\nloop:\nadd.rn.f32 %f1, %f1, 0f3F800000;\n"
                      "add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p0, %r4, 3;\n@%p0 bra loop;\n"
                      "mov.b32 %r5, %f1;\n" STORE("%r5")};
    job_clean("a sum without a start", &sum);
    for (unsigned i = 0; i < 64; i++)
        CHECK_EQ(out[i], 0x7fffffff, "a sum without a start");
    struct job wide = sum;
    wide.body =
        "shr.u64 %d3, %d4, 32;\nand.b64 %d3, %d3, %d4;\ncvt.u32.u64 %r5, %d3;\n" STORE("%r5");
    job_clean("64 bits start at all ones", &wide);
    CHECK_EQ(out[40], 0xffffffff, "64 bits start at all ones");
    struct job narrow = sum; /* the lane's upper half stays zero */
    narrow.body = "cvt.u32.u16 %r5, %h1;\nmov.b32 %r6, {%h2, %h3};\nxor.b32 %r6, %r6, -1;\n"
                  "add.u32 %r5, %r5, %r6;\n" STORE("%r5");
    job_clean("16 bits start at all ones", &narrow);
    CHECK_EQ(out[40], 0xffff, "16 bits start at all ones");
    struct job pred = sum;
    pred.body = "selp.u32 %r5, 1, 2, %p3;\n" STORE("%r5");
    job_clean("predicates start both ways", &pred);
    for (unsigned i = 0; i < 64; i++)
        CHECK_EQ(out[i], i % 2 ? 2 : 1, "predicates start both ways");
}

/* ---- exchange -------------------------------------------------------------------------------- */

static void test_shfl(void) {
    static const struct {
        const char *text;
        int kind; /* 0 bfly, 1 down, 2 up, 3 idx; width by c */
        unsigned b, c;
    } cases[] = {
        {"shfl.sync.bfly.b32 %r4|%p0, %r1, 16, 31, -1;", 0, 16, 31},
        {"shfl.sync.bfly.b32 %r4|%p0, %r1, 3, 0x1c1f, -1;", 0, 3, 0x1c1f},
        {"shfl.sync.down.b32 %r4|%p0, %r1, 5, 31, -1;", 1, 5, 31},
        {"shfl.sync.down.b32 %r4|%p0, %r1, 2, 0x181f, -1;", 1, 2, 0x181f},
        {"shfl.sync.up.b32 %r4|%p0, %r1, 5, 0, -1;", 2, 5, 0},
        {"shfl.sync.up.b32 %r4|%p0, %r1, 1, 0x1800, -1;", 2, 1, 0x1800},
        {"shfl.sync.idx.b32 %r4|%p0, %r1, 9, 31, -1;", 3, 9, 31},
        {"shfl.sync.idx.b32 %r4|%p0, %r1, 5, 0x1807, -1;", 3, 5, 0x1807},
    };
    char body[512];
    for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
        snprintf(body, sizeof body,
                 "%s\nselp.u32 %%r5, 256, 0, %%p0;\nor.b32 %%r4, %%r4, %%r5;\n"
                 "st.global.u32 [%%d2], %%r4;\n",
                 cases[k].text);
        struct job j = {.threads = 32, .body = body};
        job_clean(cases[k].text, &j);
        for (int lane = 0; lane < 32; lane++) {
            int seg = cases[k].c >> 8 & 31, clamp = cases[k].c & 31, b = (int)cases[k].b;
            int last = (lane & seg) | (clamp & ~seg & 31);
            int from = cases[k].kind == 0   ? lane ^ b
                       : cases[k].kind == 1 ? lane + b
                       : cases[k].kind == 2 ? lane - b
                                            : (lane & seg) | (b & ~seg & 31);
            int in_range = cases[k].kind == 2 ? from >= last : from <= last;
            CHECK_EQ(out[lane], (in_range ? from : lane) | in_range << 8, cases[k].text);
        }
    }
}

static void test_votes(void) {
    struct job j = {
        .threads = 32,
        .body = "setp.lt.u32 %p0, %r1, 12;\nvote.sync.ballot.b32 %r4, %p0, -1;\n"
                "vote.sync.all.pred %p1, %p0, -1;\nvote.sync.any.pred %p2, !%p0, "
                "-1;\nvote.sync.uni.pred %p3, %p0, -1;\n"
                "selp.u32 %r5, 1, 0, %p1;\nselp.u32 %r6, 2, 0, %p2;\nselp.u32 %r7, 4, 0, %p3;\n"
                "or.b32 %r5, %r5, %r6;\nor.b32 %r5, %r5, %r7;\nshl.b32 %r5, %r5, 16;\nor.b32 %r4, "
                "%r4, %r5;\n" STORE("%r4")};
    job_clean("votes", &j);
    CHECK_EQ(out[0], 0xfff | 2 << 16, "votes");
    CHECK_EQ(out[31], 0xfff | 2 << 16, "votes");
    struct job halves = {
        .threads = 32,
        .body = /* each half votes by itself, in one instruction */
        "setp.lt.u32 %p0, %r1, 16;\nselp.b32 %r5, 0xffff, 0xffff0000, %p0;\nand.b32 %r6, %r1, 3;\n"
        "setp.eq.u32 %p1, %r6, 1;\nvote.sync.ballot.b32 %r4, %p1, %r5;\n" STORE("%r4")};
    job_clean("ballot per half", &halves);
    CHECK_EQ(out[3], 0x2222, "ballot per half");
    CHECK_EQ(out[20], 0x22220000, "ballot per half");
}

static void test_match_redux(void) {
    struct job j = {
        .threads = 32,
        .body =
            "and.b32 %r4, %r1, 3;\nmatch.any.sync.b32 %r5, %r4, -1;\nmov.u32 %r6, 5;\n"
            "match.all.sync.b32 %r7|%p0, %r6, -1;\nmatch.all.sync.b32 %r8|%p1, %r4, -1;\n"
            "redux.sync.add.s32 %r9, %r1, -1;\nredux.sync.max.u32 %r10, %r1, "
            "-1;\nredux.sync.min.s32 %r11, %r1, -1;\n"
            "redux.sync.xor.b32 %r12, %r1, -1;\nredux.sync.or.b32 %r13, %r4, "
            "-1;\nredux.sync.and.b32 %r14, %r6, -1;\n"
            "selp.u32 %r15, 1, 0, %p0;\nselp.u32 %r16, 2, 0, %p1;\n"
            "mul.lo.u32 %r17, %r1, 52;\ncvt.u64.u32 %d3, %r17;\nadd.u64 %d3, %d3, %d0;\n"
            "st.global.u32 [%d3], %r5;\nst.global.u32 [%d3+4], %r7;\nst.global.u32 [%d3+8], %r8;\n"
            "st.global.u32 [%d3+12], %r9;\nst.global.u32 [%d3+16], %r10;\nst.global.u32 [%d3+20], "
            "%r11;\n"
            "st.global.u32 [%d3+24], %r12;\nst.global.u32 [%d3+28], %r13;\nst.global.u32 [%d3+32], "
            "%r14;\n"
            "add.u32 %r15, %r15, %r16;\nst.global.u32 [%d3+36], %r15;\n"};
    job_clean("match, redux", &j);
    const uint32_t *lane6 = out + 6 * 13;
    CHECK_EQ(lane6[0], 0x44444444, "match.any");
    CHECK_EQ(lane6[1], 0xffffffff, "match.all equal");
    CHECK_EQ(lane6[2], 0, "match.all different");
    CHECK_EQ(lane6[3], 496, "redux add");
    CHECK_EQ(lane6[4], 31, "redux max");
    CHECK_EQ(lane6[5], 0, "redux min");
    CHECK_EQ(lane6[6], 0, "redux xor");
    CHECK_EQ(lane6[7], 3, "redux or");
    CHECK_EQ(lane6[8], 5, "redux and");
    CHECK_EQ(lane6[9], 1, "match.all predicates");
}

/* Lanes 0, 2, ... and 1, 3, ... by themselves; a NaN in lane 6. */
static void test_redux_f32(void) {
    struct job j = {
        .threads = 32,
        .target = "sm_100a",
        .body =
            "cvt.rn.f32.u32 %f1, %r1;\nsub.f32 %f1, %f1, 0f41800000;\nsetp.eq.u32 %p0, %r1, 6;\n"
            "selp.f32 %f1, 0f7FFFFFFF, %f1, %p0;\nand.b32 %r4, %r1, 1;\nshl.b32 %r5, "
            "0x55555555, %r4;\nredux.sync.min.f32 %f2, %f1, %r5;\n"
            "redux.sync.max.abs.f32 %f3, %f1, %r5;\nredux.sync.max.NaN.f32 %f4, %f1, %r5;\n"
            "mul.wide.u32 %d3, %r1, 12;\nadd.u64 %d3, %d3, %d0;\nst.global.f32 [%d3], %f2;\n"
            "st.global.f32 [%d3+4], %f3;\nst.global.f32 [%d3+8], %f4;\n"};
    job_clean("redux.f32", &j);
    for (unsigned t = 0; t < 32; t++) {
        CHECK_EQ(out[3 * t], t % 2 ? 0xc1700000 : 0xc1800000, "redux.min.f32");     /* -15, -16 */
        CHECK_EQ(out[3 * t + 1], t % 2 ? 0x41700000 : 0x41800000, "redux.max.abs"); /* 15, 16 */
        CHECK_EQ(out[3 * t + 2], t % 2 ? 0x41700000 : 0x7fffffff, "redux.max.NaN");
    }
}

static void test_match_wide(void) {
    /* The low halves are equal in all lanes: only 64 bits tell them apart.  The result is b32. */
    struct job j = {
        .threads = 32,
        .body = "and.b32 %r4, %r1, 3;\ncvt.u64.u32 %d4, %r4;\nshl.b64 %d4, %d4, 32;\n"
                "match.any.sync.b64 %r5, %d4, -1;\nmov.u64 %d5, 0x100000001;\n"
                "match.all.sync.b64 %r6|%p0, %d5, -1;\nmatch.all.sync.b64 %r7|%p1, %d4, -1;\n"
                "selp.u32 %r8, 1, 0, %p0;\nselp.u32 %r9, 2, 0, %p1;\nor.b32 %r8, %r8, %r9;\n"
                "mul.wide.u32 %d3, %r1, 16;\nadd.u64 %d3, %d3, %d0;\n"
                "st.global.v4.u32 [%d3], {%r5, %r6, %r7, %r8};\n"};
    job_clean("match.b64", &j);
    CHECK_EQ(out[4 * 6], 0x44444444, "match.any.b64");
    CHECK_EQ(out[4 * 6 + 1], 0xffffffff, "match.all.b64 equal");
    CHECK_EQ(out[4 * 6 + 2], 0, "match.all.b64 different");
    CHECK_EQ(out[4 * 6 + 3], 1, "match.all.b64 predicates");
}

static void test_sync_waits(void) {
    /* Lanes that come by different ways wait for each other at the shuffle. */
    struct job j = {
        .threads = 32,
        .body = "setp.lt.u32 %p0, %r1, 7;\nmov.u32 %r5, %r1;\n@!%p0 bra meet;\nmov.u32 %r6, 0;\n"
                "spin:\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, 50;\n@%p1 bra spin;\nadd.u32 "
                "%r5, %r5, %r6;\n"
                "meet:\nshfl.sync.bfly.b32 %r4, %r5, 1, 31, -1;\n" STORE("%r4")};
    job_clean("shuffle waits", &j);
    for (unsigned i = 0; i < 32; i++)
        CHECK_EQ(out[i], (i ^ 1) < 7 ? (i ^ 1) + 50 : i ^ 1, "shuffle waits");
    struct job two = {
        .threads = 32,
        .body = /* bar.warp.sync joins lanes at two instructions */
        "setp.lt.u32 %p0, %r1, 16;\n@%p0 bra a;\nbar.warp.sync -1;\nmov.u32 %r5, 1;\nbra.uni end;\n"
        "a:\nbar.warp.sync -1;\nmov.u32 %r5, 2;\nend:\n" STORE("%r5")};
    job_clean("bar.warp.sync in two places", &two);
    CHECK_EQ(out[0], 2, "bar.warp.sync");
    CHECK_EQ(out[31], 1, "bar.warp.sync");
}

static void test_bad_shuffles(void) {
    struct job exited = {
        .threads = 32,
        .body =
            "setp.eq.u32 %p0, %r1, 3;\n@%p0 exit;\nshfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;\n" STORE(
                "%r4")};
    job_fault("shuffle names an exited lane", &exited, FAULT_BAD_SHUFFLE);
    struct job unnamed = {.threads = 32,
                          .body = "shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xffff;\n" STORE("%r4")};
    job_fault("shuffle does not name its lane", &unnamed, FAULT_BAD_SHUFFLE);
    struct job reads = {
        .threads = 32,
        .body =
            "setp.lt.u32 %p0, %r1, 16;\n@%p0 shfl.sync.idx.b32 %r4, %r1, 20, 31, 0xffff;\n" STORE(
                "%r4")};
    job_fault("shuffle reads outside its mask", &reads, FAULT_BAD_SHUFFLE);
    struct job partial = {.threads = 20,
                          .body = "shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;\n" STORE("%r4")};
    job_fault("shuffle names lanes that never were", &partial, FAULT_BAD_SHUFFLE);
    CHECK_EQ(run.faults[0].ptx_line > 0, 1, "the fault has a line");
}

/* ---- barriers -------------------------------------------------------------------------------- */

static void test_barriers(void) {
    struct job j = {.threads = 96,
                    .declare = ".shared .align 4 .b8 s[512];",
                    .shadow = true,
                    .body = "mov.u32 %r4, s;\nmad.lo.u32 %r5, %r1, 4, %r4;\nst.shared.u32 [%r5], "
                            "%r1;\nbar.sync 0;\n"
                            "mov.u32 %r6, 95;\nsub.u32 %r6, %r6, %r1;\nmad.lo.u32 %r6, %r6, 4, "
                            "%r4;\nld.shared.u32 %r7, [%r6];\n" STORE("%r7")};
    job_clean("bar.sync", &j);
    for (unsigned i = 0; i < 96; i++)
        CHECK_EQ(out[i], 95 - i, "bar.sync");
    struct job red = {.threads = 64,
                      .body = "setp.lt.u32 %p0, %r1, 40;\nbar.red.popc.u32 %r4, 1, "
                              "%p0;\nbar.red.and.pred %p1, 1, %p0;\n"
                              "bar.red.or.pred %p2, 1, %p0;\nselp.u32 %r5, 100, 0, %p1;\nselp.u32 "
                              "%r6, 1000, 0, %p2;\n"
                              "add.u32 %r4, %r4, %r5;\nadd.u32 %r4, %r4, %r6;\n" STORE("%r4")};
    job_clean("bar.red", &red);
    CHECK_EQ(out[0], 1040, "bar.red");
    CHECK_EQ(out[63], 1040, "bar.red");
    struct job named = {
        .threads = 96,
        .declare = ".shared .align 4 .b8 s[512];",
        .shadow = true,
        .body =
            /*
             * warp 0 produces, warp 1 waits for it at barrier 3 of 64 threads, warp 2 does not
             * care
             */
        "mov.u32 %r4, s;\nmad.lo.u32 %r5, %r1, 4, %r4;\nshr.u32 %r6, %r1, 5;\nsetp.eq.u32 %p0, "
        "%r6, 0;\n"
        "setp.eq.u32 %p1, %r6, 1;\nmov.u32 %r7, 5;\n@%p0 bra produce;\n@%p1 bra consume;\nbra.uni "
        "end;\n"
        "produce:\nst.shared.u32 [%r5], %r1;\nbarrier.cta.arrive 3, 64;\nbra.uni end;\n"
        "consume:\nbarrier.cta.sync 3, 64;\nld.shared.u32 %r7, [%r5+-128];\nend:\n" STORE("%r7")};
    job_clean("named barrier", &named);
    CHECK_EQ(out[40], 8, "named barrier");
    CHECK_EQ(out[80], 5, "named barrier");
    struct job gone = {.threads = 64,
                       .body = /* exited threads are not waited for */
                       "setp.ge.u32 %p0, %r1, 32;\n@%p0 exit;\nbar.sync 0;\n" STORE("%r1")};
    job_clean("barrier after exits", &gone);
    CHECK_EQ(out[5], 5, "barrier after exits");
}

static void test_deadlocks(void) {
    struct job two = {.threads = 64,
                      .body = "setp.lt.u32 %p0, %r1, 32;\n@%p0 bra a;\nbar.sync 1;\nbra.uni "
                              "end;\na:\nbar.sync 2;\nend:\n" STORE("%r1")};
    job_fault("two barriers", &two, FAULT_DIVERGENT_BARRIER);
    struct job divergent = {.threads = 32,
                            .body = "setp.lt.u32 %p0, %r1, 16;\n@%p0 bra a;\nbar.sync 0;\nbra.uni "
                                    "end;\na:\nbar.sync 0;\nend:\n" STORE("%r1")};
    job_fault("one warp at two bar.sync", &divergent, FAULT_DIVERGENT_BARRIER);
    struct job never = {.threads = 32,
                        .body = "setp.lt.u32 %p0, %r1, 16;\n@%p0 bra a;\nshfl.sync.bfly.b32 %r4, "
                                "%r1, 1, 31, -1;\nbra.uni end;\n"
                                "a:\nbar.sync 0;\nend:\n" STORE("%r1")};
    job_fault("a shuffle and a barrier", &never, FAULT_DIVERGENT_BARRIER);
    struct job many = {.threads = 32, .body = "bar.sync 0, 64;\n" STORE("%r1")};
    job_fault("a barrier for more threads than there are", &many, FAULT_DIVERGENT_BARRIER);
}

/* ---- progress -------------------------------------------------------------------------------- */

static const char *const lock_body = /* every thread adds 1 to out[0] under a lock at in[0] */
    "spin:\natom.global.cas.b32 %r4, [%d1], 0, 1;\nsetp.ne.u32 %p0, %r4, 0;\n@%p0 bra spin;\n"
    "membar.gl;\nld.volatile.global.u32 %r5, [%d1+4];\nadd.u32 %r5, %r5, "
    "1;\nst.volatile.global.u32 [%d1+4], %r5;\n"
    "membar.gl;\natom.global.exch.b32 %r6, [%d1], 0;\n" STORE("%r5");

static void test_spinning(void) {
    static const uint32_t zeros[4];
    for (uint64_t seed = 0; seed < times(4); seed++) {
        struct job lock = {.blocks = 2,
                           .threads = 48,
                           .in = zeros,
                           .in_words = 4,
                           .body = lock_body,
                           .seed = seed,
                           .shadow = true};
        job_clean("spin lock", &lock);
        uint32_t sum = 0;
        for (unsigned i = 0; i < 96; i++)
            sum += out[i];
        CHECK_EQ(sum, 96 * 97 / 2, "spin lock");
        struct job blocks = {
            .blocks = 6,
            .threads = 32,
            .in = zeros,
            .in_words = 4,
            .seed = seed,
            .body =
                /* block b waits until b has been counted down: only the last may begin */
            "mov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %nctaid.x;\nsub.u32 %r4, %r5, %r4;\nsub.u32 %r4, "
            "%r4, 1;\n"
            "wait:\nld.volatile.global.u32 %r6, [%d1];\nsetp.ne.u32 %p0, %r6, %r4;\n@%p0 bra "
            "wait;\n"
            "bar.warp.sync -1;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 red.global.add.u32 [%d1], "
            "1;\n" STORE("%r6")};
        job_clean("blocks wait for later ones", &blocks);
        CHECK_EQ(out[0], 5, "blocks wait for later ones");
    }
    struct job sleepy = {.threads = 64,
                         .in = zeros,
                         .in_words = 4,
                         .body = "setp.lt.u32 %p0, %r1, 32;\n@!%p0 bra set;\nwait:\nnanosleep.u32 "
                                 "20;\nld.volatile.global.u32 %r6, [%d1];\n"
                                 "setp.eq.u32 %p1, %r6, 0;\n@%p1 bra wait;\nbra.uni "
                                 "end;\nset:\nmov.u32 %r6, 9;\nst.volatile.global.u32 [%d1], %r6;\n"
                                 "end:\n" STORE("%r6")};
    job_clean("nanosleep", &sleepy);
    CHECK_EQ(out[0], 9, "nanosleep");
}

static void test_budgets(void) {
    struct job endless = {
        .threads = 32, .blocks = 100000, .insn_budget = 5000, .body = "l:\nbra l;\n"};
    job_fault("endless loop", &endless, FAULT_INSN_BUDGET);
    CHECK_EQ(run.completed, 0, "endless loop");
    CHECK_EQ(run.warp_insns < 40000, 1, "endless loop stops soon");
    struct job huge = {.threads = 1, .blocks = 0x7fffffff, .insn_budget = 1000, .body = ""};
    job_fault("huge grid", &huge, FAULT_INSN_BUDGET);
    struct job local = {.threads = 1024,
                        .declare = ".local .align 4 .b8 l[100000000];",
                        .body = "mov.u32 %r4, l;\nst.local.u32 [l], %r4;\n"};
    status_t st = job_run(&local); /* refused by the front end, or for want of memory */
    CHECK_EQ(st == ERR_NOMEM || st == ERR_UNSUPPORTED, 1, "huge local memory");
    struct job trap = {.threads = 40,
                       .body = "setp.eq.u32 %p0, %r1, 35;\n@%p0 trap;\n" STORE("%r1")};
    job_fault("trap", &trap, FAULT_TRAP);
    CHECK_EQ(run.faults[0].thread[0], 35, "trap names the thread");
    struct job brkpt = {.body = "brkpt;\n"};
    job_fault("brkpt", &brkpt, FAULT_TRAP);
}

static void test_seeds(void) {
    /* The order of blocks shows in an atomic counter: seeds change it, the same seed repeats it. */
    static const uint32_t zeros[1];
    uint32_t first[64], plain[64];
    struct job j = {.blocks = 64,
                    .threads = 1,
                    .in = zeros,
                    .in_words = 1,
                    .body = "atom.global.add.u32 %r4, [%d1], 1;\n" STORE("%r4")};
    job_clean("no seed", &j);
    bool in_order = true, differs = false, repeats = true;
    for (unsigned i = 0; i < 64; i++)
        in_order &= (plain[i] = out[i]) == i;
    j.seed = 7;
    job_clean("seed", &j);
    for (unsigned i = 0; i < 64; i++)
        differs |= (first[i] = out[i]) != plain[i];
    job_clean("seed again", &j);
    for (unsigned i = 0; i < 64; i++)
        repeats &= first[i] == out[i];
    CHECK_EQ(in_order, 1, "index order without a seed");
    CHECK_EQ(differs, 1, "another order with a seed");
    CHECK_EQ(repeats, 1, "the same order with the same seed");
}

static void test_fences(void) {
    struct job j = {
        .threads = 32,
        .body = "membar.cta;\nmembar.gl;\nmembar.sys;\nfence.acq_rel.gpu;\nfence.sc.cta;\n" STORE(
            "%r1")};
    job_clean("fences", &j);
    CHECK_EQ(out[9], 9, "fences");
}

static void test_results(void) {
    test_divergence();
    test_reconvergence();
    test_return();
    test_guards();
    test_sregs();
    test_shfl();
    test_votes();
    test_match_redux();
    test_match_wide();
    test_sync_waits();
    test_barriers();
    test_fences();
}

int main(int argc, char **argv) {
    if (use_device(argc, argv)) {
        test_results();
        return report();
    }
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (!use_level(l))
            continue;
        test_results();
        test_uninitialised();
        test_redux_f32();
        test_bad_shuffles();
        test_deadlocks();
        test_spinning();
        test_budgets();
        test_seeds();
    }
    check_elsewhere(TEST_WARP);
    return report();
}
