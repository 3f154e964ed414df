/* test_shadow.c - races and unwritten reads: what must be found, and what must not. */
#include <stdio.h>
#include <string.h>

#include "tests/ptx/harness.h"

#define STORE(reg) "st.global.u32 [%d2], " reg ";\n"
#define SHARED ".shared .align 4 .b8 s[1024];"
/* %r4: my shared word; %r5: my neighbour's (lane ^ 1). */
#define MINE                                                                                     \
    "mov.u32 %r6, s;\nmad.lo.u32 %r4, %r1, 4, %r6;\nxor.b32 %r5, %r1, 1;\nmad.lo.u32 %r5, %r5, " \
    "4, %r6;\n"

static const uint32_t zeros[256];

/* ---- races in shared memory ------------------------------------------------------------------ */

static void test_warp_races(void) {
    struct job racy = {.threads = 32,
                       .declare = SHARED,
                       .shadow = true,
                       .body = MINE
                       "st.shared.u32 [%r4], %r1;\nld.shared.u32 %r7, [%r5];\n" STORE("%r7")};
    job_fault("lanes without a barrier", &racy, FAULT_RACE);
    CHECK_EQ(run.completed, 1, "a race does not stop the launch");
    struct job synced = racy;
    synced.body = MINE
        "st.shared.u32 [%r4], %r1;\nbar.warp.sync -1;\nld.shared.u32 %r7, [%r5];\n" STORE("%r7");
    job_clean("bar.warp.sync orders", &synced);
    struct job shuffled = racy;
    shuffled.body = MINE "st.shared.u32 [%r4], %r1;\nshfl.sync.bfly.b32 %r8, %r1, 1, 31, -1;\n"
                         "ld.shared.u32 %r7, [%r5];\n" STORE("%r7");
    job_fault("shfl orders no memory", &shuffled, FAULT_RACE);
    struct job write_after_read = racy;
    write_after_read.body =
        MINE "st.shared.u32 [%r4], %r1;\nbar.warp.sync -1;\nld.shared.u32 %r7, [%r5];\n"
             "st.shared.u32 [%r4], %r7;\n" STORE("%r7");
    job_fault("write after an unordered read", &write_after_read, FAULT_RACE);
    struct job pairs = racy; /* a partial mask orders its lanes, and only them */
    pairs.body = MINE "and.b32 %r8, %r1, 30;\nshl.b32 %r9, 3, %r8;\nst.shared.u32 [%r4], %r1;\n"
                      "bar.warp.sync %r9;\nld.shared.u32 %r7, [%r5];\n" STORE("%r7");
    job_clean("pairs by mask", &pairs);
    pairs.body =
        MINE "and.b32 %r8, %r1, 30;\nshl.b32 %r9, 3, %r8;\nst.shared.u32 [%r4], %r1;\n"
             "bar.warp.sync %r9;\nxor.b32 %r5, %r4, 8;\nld.shared.u32 %r7, [%r5];\n" STORE("%r7");
    job_fault("outside the mask", &pairs, FAULT_RACE);
}

/* Volatile keeps values out of registers; it makes no lane wait. */
static void test_volatile(void) {
    struct job tree = {
        .threads = 32, /* the warp reduction of before Volta */
        .declare = SHARED,
        .shadow = true,
        .body = MINE "st.volatile.shared.u32 [%r4], %r1;\nst.volatile.shared.u32 [%r4+128], 0;\n"
                     "bar.warp.sync -1;\n"
                     "ld.volatile.shared.u32 %r7, [%r4];\nld.volatile.shared.u32 %r8, [%r4+8];\n"
                     "add.u32 %r7, %r7, %r8;\nst.volatile.shared.u32 [%r4], %r7;\n"
                     "ld.volatile.shared.u32 %r8, [%r4+4];\nadd.u32 %r7, %r7, %r8;\n" STORE("%r7")};
    job_fault("volatile shared without bar.warp.sync", &tree, FAULT_RACE);
    struct job generic = tree;
    generic.body = MINE "cvt.u64.u32 %d3, %r4;\ncvta.shared.u64 %d3, %d3;\n"
                        "cvt.u64.u32 %d4, %r5;\ncvta.shared.u64 %d4, %d4;\n"
                        "st.volatile.u32 [%d3], %r1;\nld.volatile.u32 %r7, [%d4];\n" STORE("%r7");
    job_fault("volatile shared by a generic address", &generic, FAULT_RACE);
    struct job fenced = tree; /* a fence orders one thread's accesses, and no thread's after it */
    fenced.body = MINE "st.volatile.shared.u32 [%r4], %r1;\nmembar.cta;\n"
                       "ld.volatile.shared.u32 %r7, [%r5];\n" STORE("%r7");
    job_fault("volatile shared with a fence", &fenced, FAULT_RACE);
    struct job synced = tree;
    synced.body =
        MINE "st.volatile.shared.u32 [%r4], %r1;\nbar.warp.sync -1;\nld.volatile.shared.u32 %r7, "
             "[%r5];\nbar.warp.sync -1;\nst.volatile.shared.u32 [%r4], %r7;\n" STORE("%r7");
    job_clean("volatile shared with bar.warp.sync", &synced);
    struct job flag = {.blocks = 2, /* block 0 waits for block 1's flag */
                       .threads = 1,
                       .in = zeros,
                       .in_words = 4,
                       .shadow = true,
                       .body = "mov.u32 %r4, %ctaid.x;\nsetp.ne.u32 %p0, %r4, 0;\n@%p0 bra set;\n"
                               "wait:\nld.volatile.global.u32 %r5, [%d1];\nsetp.eq.u32 %p1, %r5, "
                               "0;\n@%p1 bra wait;\nbra.uni end;\n"
                               "set:\nmov.u32 %r5, 1;\nst.volatile.global.u32 [%d1], %r5;\n"
                               "end:\n" STORE("%r5")};
    job_clean("a volatile flag in global memory", &flag);
}

static void test_block_races(void) {
    struct job racy = {
        .threads = 64,
        .declare = SHARED,
        .shadow = true,
        .body = MINE
        "xor.b32 %r5, %r4, 128;\nst.shared.u32 [%r4], %r1;\nld.shared.u32 %r7, [%r5];\n" STORE(
            "%r7")};
    job_run(&racy);
    CHECK_EQ(run.fault_count >= 1, 1, "warps without a barrier");
    struct job synced = racy;
    synced.body = MINE "xor.b32 %r5, %r4, 128;\nst.shared.u32 [%r4], %r1;\nbar.sync "
                       "0;\nld.shared.u32 %r7, [%r5];\n" STORE("%r7");
    job_clean("bar.sync orders", &synced);
    struct job late = racy; /* the second store races with reads of the other warp */
    late.body = MINE "xor.b32 %r5, %r4, 128;\nst.shared.u32 [%r4], %r1;\nbar.sync "
                     "0;\nld.shared.u32 %r7, [%r5];\n"
                     "st.shared.u32 [%r4], 77;\n" STORE("%r7");
    job_fault("missing second barrier", &late, FAULT_RACE);
    for (uint64_t seed = 0; seed < 8;
         seed++) { /* found under every schedule, clean under every one */
        late.seed = synced.seed = seed;
        job_fault("missing second barrier, seeded", &late, FAULT_RACE);
        job_clean("bar.sync orders, seeded", &synced);
    }
    struct job same = {.threads = 64,
                       .declare = SHARED,
                       .shadow = true,
                       .body = "mov.u32 %r7, 5;\nst.shared.u32 [s], %r7;\nbar.sync "
                               "0;\nld.shared.u32 %r7, [s];\n" STORE("%r7")};
    job_clean("all store the same value", &same);
    struct job differ = same;
    differ.body = "st.shared.u32 [s], %r1;\nbar.sync 0;\nld.shared.u32 %r7, [s];\n" STORE("%r7");
    job_fault("lanes store different values", &differ, FAULT_RACE);
    struct job atomic = same;
    atomic.body =
        "setp.eq.u32 %p0, %r1, 0;\nmov.u32 %r7, 0;\n@%p0 st.shared.u32 [s], %r7;\nbar.sync 0;\n"
        "atom.shared.add.u32 %r8, [s], 1;\nbar.sync 0;\nld.shared.u32 %r7, [s];\n" STORE("%r7");
    job_clean("atomics do not race", &atomic);
    CHECK_EQ(out[7], 64, "atomics do not race");
    struct job mixed = same;
    mixed.body = "atom.shared.exch.b32 %r8, [s], %r1;\nld.shared.u32 %r7, [s];\n" STORE("%r7");
    job_run(&mixed);
    unsigned races = 0;
    for (size_t i = 0; i < run.fault_count; i++)
        races += run.faults[i].kind == FAULT_RACE;
    CHECK_EQ(races > 0, 1, "plain read against an atomic");
    struct job bytes = {.threads = 64,
                        .declare = SHARED,
                        .shadow = true,
                        .body = "mov.u32 %r4, s;\nadd.u32 %r4, %r4, %r1;\nst.shared.u8 [%r4], "
                                "%r1;\nld.shared.u8 %r7, [%r4];\n" STORE("%r7")};
    job_clean("bytes of one word", &bytes);
    struct job reuse = {
        .threads = 32,
        .blocks = 4,
        .declare = SHARED,
        .shadow = true,
        .body = MINE
        "st.shared.u32 [%r4], %r1;\nbar.sync 0;\nld.shared.u32 %r7, [%r5];\n" STORE("%r7")};
    job_clean("each block has its own shared memory", &reuse);
}

/* ---- races in global memory ------------------------------------------------------------------ */

static void test_grid_races(void) {
    struct job racy = {
        .blocks = 2,
        .threads = 1,
        .in = zeros,
        .in_words = 4,
        .shadow = true,
        .body = "mov.u32 %r4, %ctaid.x;\nadd.u32 %r4, %r4, 5;\nst.global.u32 [%d1], %r4;\n" STORE(
            "%r4")};
    job_fault("two blocks write", &racy, FAULT_RACE);
    CHECK_EQ(run.faults[0].block[0], 1, "two blocks write");
    struct job read = racy;
    read.body = "mov.u32 %r4, %ctaid.x;\nsetp.eq.u32 %p0, %r4, 0;\n@%p0 st.global.u32 [%d1], 9;\n"
                "ld.global.u32 %r5, [%d1];\n" STORE("%r5");
    job_fault("a block reads what another wrote", &read, FAULT_RACE);
    /* threadFenceReduction: partial results, a fence, a counter; the last block adds them up. */
    struct job last = {.blocks = 4,
                       .threads = 1,
                       .in = zeros,
                       .in_words = 8,
                       .shadow = true,
                       .body = "mov.u32 %r4, %ctaid.x;\nadd.u32 %r5, %r4, 1;\nmul.wide.u32 %d3, "
                               "%r4, 4;\nadd.u64 %d3, %d3, %d1;\n"
                               "st.global.u32 [%d3+4], %r5;\nmembar.gl;\natom.global.add.u32 %r6, "
                               "[%d1], 1;\nmov.u32 %r7, 0;\n"
                               "setp.ne.u32 %p0, %r6, 3;\n@%p0 bra end;\nld.global.v2.u32 {%r8, "
                               "%r9}, [%d1+8];\nadd.u32 %r7, %r8, %r9;\n"
                               "ld.global.u32 %r8, [%d1+4];\nadd.u32 %r7, %r7, %r8;\nld.global.u32 "
                               "%r8, [%d1+16];\nadd.u32 %r7, %r7, %r8;\nend:\n" STORE("%r7")};
    job_clean("last block, with fence", &last);
    CHECK_EQ(out[0] + out[1] + out[2] + out[3], 10, "last block, with fence");
    struct job no_fence = last;
    char body[2048], *at;
    strcpy(body, last.body);
    at = strstr(body, "membar.gl;");
    memset(at, ' ', 10);
    no_fence.body = body;
    job_fault("last block, without fence", &no_fence, FAULT_RACE);
    /* An atomic that releases needs no fence; a relaxed one orders nothing. */
    memcpy(at, "          ", 10);
    char order[2048];
    const char *const orders[] = {"acq_rel", "relaxed"};
    for (int i = 0; i < 2; i++) {
        char *atomic = strstr(body, "atom.global");
        snprintf(order, sizeof order, "%.*satom.%s.gpu%s", (int)(atomic - body), body, orders[i],
                 atomic + 4);
        no_fence.body = order;
        if (i == 0)
            job_clean("last block, acq_rel", &no_fence);
        else
            job_fault("last block, relaxed", &no_fence, FAULT_RACE);
    }
    struct job two_launches = {.blocks = 1,
                               .threads = 32,
                               .in = zeros,
                               .in_words = 64,
                               .shadow = true,
                               .body = "mul.wide.u32 %d3, %r1, 4;\nadd.u64 %d3, %d3, "
                                       "%d1;\nld.global.u32 %r4, [%d3];\nadd.u32 %r4, %r4, 1;\n"
                                       "st.global.u32 [%d3], %r4;\n" STORE("%r4")};
    job_clean("own words", &two_launches);
}

/* ---- unwritten reads ------------------------------------------------------------------------- */

static void test_unwritten(void) {
    struct job shared = {.threads = 32,
                         .declare = SHARED,
                         .shadow = true,
                         .body = "ld.shared.u32 %r7, [s+64];\n" STORE("%r7")};
    job_fault("shared never written", &shared, FAULT_UNWRITTEN);
    CHECK_EQ(run.completed, 1, "an unwritten read does not stop the launch");
    struct job global = {
        .threads = 32,
        .in = zeros,
        .in_words = 32,
        .in_written = 20,
        .shadow = true,
        .body =
            "mul.wide.u32 %d3, %r1, 4;\nadd.u64 %d3, %d3, %d1;\nld.global.u32 %r4, [%d3];\n" STORE(
                "%r4")};
    job_fault("global never written", &global, FAULT_UNWRITTEN);
    CHECK_EQ(run.faults[0].thread[0], 20, "global never written");
    CHECK_EQ(run.fault_total, 12, "each lane counts");
    CHECK_EQ(out[25], 0xffffffff, "poison");
    struct job local = {
        .declare = ".local .align 4 .b8 l[16];",
        .shadow = true,
        .body =
            "mov.u64 %d3, l;\nst.local.u32 [%d3], %r1;\nld.local.u32 %r4, [%d3+4];\n" STORE("%r4")};
    job_fault("local never written", &local, FAULT_UNWRITTEN);
    struct job half = {.declare = SHARED,
                       .shadow = true,
                       .body = "st.shared.u16 [s], %h1;\nld.shared.u32 %r4, [s];\n" STORE("%r4")};
    job_fault("half written", &half, FAULT_UNWRITTEN);
    struct job fresh = {.blocks = 2,
                        .declare = SHARED,
                        .shadow = true,
                        .body = /* block 0's writes are not block 1's */
                        "mov.u32 %r4, %ctaid.x;\nsetp.eq.u32 %p0, %r4, 0;\n@%p0 st.shared.u32 [s], "
                        "%r4;\nld.shared.u32 %r5, [s];\n" STORE("%r5")};
    job_fault("shared of an earlier block", &fresh, FAULT_UNWRITTEN);
    CHECK_EQ(run.faults[0].block[0], 1, "shared of an earlier block");
}

/* ---- events ---------------------------------------------------------------------------------- */

static void test_events(void) {
    struct job j = {
        .threads = 32,
        .shadow = true,
        .body =
            "mov.b32 %f1, 0x7f800000;\nsub.f32 %f2, %f1, %f1;\nadd.f32 %f3, %f2, %f2;\nmov.b32 "
            "%f4, 0x7f7fffff;\n"
            "add.f32 %f5, %f4, %f4;\nmov.b32 %f6, 0x00000005;\nadd.ftz.f32 %f7, %f6, %f6;\nmov.b32 "
            "%f8, 0x00800000;\n"
            "mul.ftz.f32 %f9, %f8, 0f3F000000;\nmul.ftz.f32 %f9, %f8, 0f00000000;\n" STORE("%r1")};
    job_clean("events", &j);
    CHECK_EQ(run.events.nan_born, 32, "NaN born: Inf - Inf, but not NaN + NaN");
    CHECK_EQ(run.events.inf_born, 32, "Inf born");
    CHECK_EQ(run.events.subnormal_flushed, 64, "an operand and a result flushed");
}

static void expect_events(const char *name, const char *body, uint64_t nan, uint64_t inf,
                          uint64_t flushed) {
    char text[512];
    struct job j = {.threads = 32, .shadow = true, .body = text};
    snprintf(text, sizeof text, "%s%s", body, STORE("%r1"));
    job_clean(name, &j);
    CHECK_EQ(run.events.nan_born, nan, name);
    CHECK_EQ(run.events.inf_born, inf, name);
    CHECK_EQ(run.events.subnormal_flushed, flushed, name);
}

/* The 16-bit formats: alone, and each half of a pair for itself. */
static void test_half_events(void) {
    expect_events("f16: 60000 + 60000", "mov.b16 %h1, 0x7b53;\nadd.f16 %h2, %h1, %h1;\n", 0, 32, 0);
    expect_events("f16: Inf - Inf", "mov.b16 %h1, 0x7c00;\nsub.f16 %h2, %h1, %h1;\n", 32, 0, 0);
    expect_events("f16: NaN is kept", "mov.b16 %h1, 0x7e00;\nmul.f16 %h2, %h1, %h1;\n", 0, 0, 0);
    expect_events("f16: nothing", "mov.b16 %h1, 0x3c00;\nfma.rn.f16 %h2, %h1, %h1, %h1;\n", 0, 0,
                  0);
    expect_events("bf16: 0 * Inf + 1",
                  "mov.b16 %h1, 0x7f80;\nmov.b16 %h2, 0;\nmov.b16 %h3, 0x3f80;\n"
                  "fma.rn.bf16 %h4, %h1, %h2, %h3;\n",
                  32, 0, 0);
    expect_events("bf16: large product", "mov.b16 %h1, 0x7f00;\nmul.bf16 %h2, %h1, %h1;\n", 0, 32,
                  0);
    /* low: Inf - Inf; high: 60000 + 60000 */
    expect_events("f16x2: each half",
                  "mov.b32 %r3, 0x7b537c00;\nmov.b32 %r4, 0x7b53fc00;\n"
                  "add.f16x2 %r5, %r3, %r4;\n",
                  32, 32, 0);
    expect_events("bf16x2: both halves", "mov.b32 %r3, 0x7f007f00;\nmul.bf16x2 %r5, %r3, %r3;\n", 0,
                  64, 0);
    expect_events("f16: a subnormal operand",
                  "mov.b16 %h1, 0x0001;\nmov.b16 %h2, 0x3c00;\n"
                  "add.ftz.f16 %h3, %h1, %h2;\n",
                  0, 0, 32);
    expect_events("f16: a subnormal result",
                  "mov.b16 %h1, 0x0400;\nmov.b16 %h2, 0x3800;\n"
                  "mul.ftz.f16 %h3, %h1, %h2;\n",
                  0, 0, 32);
    expect_events("f16x2: one subnormal result",
                  "mov.b32 %r3, 0x04003c00;\nmov.b32 %r4, 0x38003800;\n"
                  "mul.ftz.f16x2 %r5, %r3, %r4;\n",
                  0, 0, 32);
    expect_events("f16: an exact zero",
                  "mov.b16 %h1, 0x0400;\nmov.b16 %h2, 0;\n"
                  "mul.ftz.f16 %h3, %h1, %h2;\n",
                  0, 0, 0);
    expect_events("f16: subnormals without ftz", "mov.b16 %h1, 0x0001;\nadd.f16 %h3, %h1, %h1;\n",
                  0, 0, 0);
    /* Narrowing overflows. */
    expect_events("f32 to f16", "mov.f32 %f1, 0f47800000;\ncvt.rn.f16.f32 %h1, %f1;\n", 0, 32, 0);
    expect_events("f32 to bf16", "mov.f32 %f1, 0f7F7FFFFF;\ncvt.rn.bf16.f32 %h1, %f1;\n", 0, 32, 0);
    expect_events("f32 NaN to f16", "mov.f32 %f1, 0f7FC00000;\ncvt.rn.f16.f32 %h1, %f1;\n", 0, 0,
                  0);
    expect_events("a pair: the high one overflows",
                  "mov.f32 %f1, 0f47800000;\nmov.f32 %f2, 0f7F800000;\n"
                  "cvt.rn.f16x2.f32 %r3, %f1, %f2;\n",
                  0, 32, 0);
    expect_events("a pair: Inf comes from Inf",
                  "mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f7F800000;\n"
                  "cvt.rn.f16x2.f32 %r3, %f1, %f2;\n",
                  0, 0, 0);
    expect_events("f16: 2^16", "mov.b16 %h1, 0x4c00;\nex2.approx.f16 %h2, %h1;\n", 0, 32, 0);
}

int main(void) {
    test_warp_races();
    test_volatile();
    test_block_races();
    test_grid_races();
    test_unwritten();
    test_events();
    test_half_events();
    return report();
}
