/*
 * test_sync.c - mbarrier objects, bulk and asynchronous copies, named barriers with thread counts,
 * and the instructions that have no effect on values.  Expected values are worked out by hand.
 *
 *   test_sync --device cuda:0     what has a result, on a GPU
 */

#include "tests/ptx/harness.h"

#define STORE(reg) "st.global.u32 [%d2], " reg ";\n"
/* s: 4096 bytes of data; m: 8 mbarrier objects. */
#define SPACE ".shared .align 128 .b8 s[4096];\n.shared .align 8 .b8 m[64];"
#define INIT(count)                                                                             \
    "setp.eq.u32 %p9, %r1, 0;\n@%p9 mbarrier.init.shared::cta.b64 [m], " count ";\n@%p9 fence." \
    "mbarrier_init.release.cluster;\nbar.sync 0;\n"
#define BARRIER "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"

static uint32_t ramp[2048];

/* ---- mbarrier -------------------------------------------------------------------------------- */

/* One warp fills a ring of two stages, three others take from it. */
static void test_pipeline(void) {
    for (size_t i = 0; i < job_seed_count(); i++) {
        struct job j = {
            .threads = 128,
            .shadow = true,
            .seed = job_seeds[i],
            .declare = SPACE,
            .in = ramp,
            .in_words = 2048,
            .body =
                /* m+0, m+8: full (32 arrivals); m+16, m+24: empty (96) */
            "setp.eq.u32 %p9, %r1, 0;\n@%p9 mbarrier.init.shared::cta.b64 [m], 32;\n"
            "@%p9 mbarrier.init.shared.b64 [m+8], 32;\n@%p9 mbarrier.init.shared.b64 [m+16], "
            "96;\n@%p9 mbarrier.init.shared.b64 [m+24], 96;\nbar.sync 0;\n"
            "mov.u32 %r4, s;\nmov.u32 %r5, m;\nmov.u32 %r6, 0;\nmov.u32 %r7, 0;\n"
            "setp.ge.u32 %p0, %r1, 32;\n@%p0 bra take;\n"
            "fill:\nand.b32 %r8, %r6, 1;\nmad.lo.u32 %r9, %r8, 8, %r5;\nshr.u32 %r10, %r6, 1;\n"
            "and.b32 %r10, %r10, 1;\nxor.b32 %r11, %r10, 1;\n"
            "w1:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r9+16], %r11;\n@!%p1 bra w1;\n"
            "mad.lo.u32 %r12, %r6, 32, %r1;\nmul.wide.u32 %d3, %r12, 4;\nadd.u64 %d3, %d3, %d1;\n"
            "ld.global.u32 %r13, [%d3];\nshl.b32 %r14, %r8, 7;\nmad.lo.u32 %r14, %r1, 4, %r14;\n"
            "add.u32 %r14, %r14, %r4;\nst.shared.u32 [%r14], %r13;\n"
            "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r9];\nadd.u32 %r6, %r6, 1;\n"
            "setp.lt.u32 %p2, %r6, 9;\n@%p2 bra fill;\nbra end;\n"
            "take:\nand.b32 %r8, %r6, 1;\nmad.lo.u32 %r9, %r8, 8, %r5;\nshr.u32 %r10, %r6, 1;\n"
            "and.b32 %r10, %r10, 1;\n"
            "w2:\nmbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r9], %r10;\n"
            "@!%p1 bra w2;\nadd.u32 %r12, %r1, 5;\nand.b32 %r12, %r12, 31;\nshl.b32 %r14, %r8, "
            "7;\nmad.lo.u32 %r14, %r12, 4, %r14;\nadd.u32 %r14, %r14, %r4;\n"
            "ld.shared.u32 %r13, [%r14];\nmad.lo.u32 %r7, %r7, 3, %r13;\n"
            "mbarrier.arrive.shared::cta.b64 %d4, [%r9+16];\nadd.u32 %r6, %r6, 1;\n"
            "setp.lt.u32 %p2, %r6, 9;\n@%p2 bra take;\n" STORE("%r7") "end:\n"};
        job_clean("pipeline", &j);
        for (unsigned t = 32; t < 128; t++) {
            uint32_t want = 0;
            for (unsigned k = 0; k < 9; k++)
                want = want * 3 + ramp[k * 32 + (t + 5) % 32];
            CHECK_EQ(out[t], want, "pipeline");
        }
    }
}

/* States, drops, counts, expected bytes: one thread, so that every state is known. */
static void test_states(void) {
    struct job j = {
        .declare = SPACE,
        .shadow = true,
        .body =
            "mov.u32 %r5, m;\nmbarrier.init.shared.b64 [%r5], 3;\nmov.u32 %r20, 0;\n"
            "mbarrier.arrive.shared::cta.b64 %d3, [%r5];\nmbarrier.test_wait.shared::cta.b64 %p0, "
            "[%r5], %d3;\n"
            "mbarrier.arrive.noComplete.shared::cta.b64 %d4, [%r5], 1;\n"
            "mbarrier.pending_count.b64 %r6, %d3;\nmbarrier.pending_count.b64 %r7, %d4;\n"
            "mbarrier.arrive_drop.shared::cta.b64 %d5, [%r5];\n" /* over: 2 are expected now */
            "mbarrier.test_wait.shared::cta.b64 %p1, [%r5], %d5;\n"
            "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r5], 0;\n"
            "mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r5], 1;\n"
            "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r5], 20;\n"
            "mbarrier.arrive.shared::cta.b64 %d6, [%r5], 2;\n" /* bytes are missing */
            "mbarrier.try_wait.shared::cta.b64 %p4, [%r5], %d6, 10;\n"
            "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r5], 12;\n"
            "mbarrier.test_wait.shared::cta.b64 %p5, [%r5], %d6;\n"
            "mbarrier.complete_tx.shared::cta.b64 [%r5], 8;\n"
            "mbarrier.try_wait.shared::cta.b64 %p6, [%r5], %d6;\n"
            "mbarrier.arrive_drop.noComplete.shared::cta.b64 %d7, [%r5], 1;\n" /* 1 from then on */
            "mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [%r5], 16;\n"
            "mbarrier.complete_tx.shared::cta.b64 [%r5], 16;\n"
            "mbarrier.test_wait.parity.shared::cta.b64 %p7, [%r5], 0;\n"
            "selp.u32 %r8, 1, 0, %p0;\nselp.u32 %r9, 2, 0, %p1;\nadd.u32 %r8, %r8, %r9;\n"
            "selp.u32 %r9, 4, 0, %p2;\nadd.u32 %r8, %r8, %r9;\nselp.u32 %r9, 8, 0, %p3;\n"
            "add.u32 %r8, %r8, %r9;\nselp.u32 %r9, 16, 0, %p4;\nadd.u32 %r8, %r8, %r9;\n"
            "selp.u32 %r9, 32, 0, %p5;\nadd.u32 %r8, %r8, %r9;\nselp.u32 %r9, 64, 0, %p6;\n"
            "add.u32 %r8, %r8, %r9;\nselp.u32 %r9, 128, 0, %p7;\nadd.u32 %r8, %r8, %r9;\n"
            "mbarrier.inval.shared::cta.b64 [%r5];\nmbarrier.init.shared::cta.b64 [%r5], 1;\n"
            "mbarrier.arrive.expect_tx.shared::cta.b64 %d8, [%r5], 0;\n"
            "mbarrier.test_wait.shared::cta.b64 %p0, [%r5], %d8;\nselp.u32 %r9, 256, 0, %p0;\n"
            "add.u32 %r8, %r8, %r9;\nst.global.u32 [%d0], %r8;\nst.global.u32 [%d0+4], %r6;\n"
            "st.global.u32 [%d0+8], %r7;\n"};
    job_clean("states", &j);
    CHECK_EQ(out[0], 2 + 4 + 64 + 128 + 256, "states");
    CHECK_EQ(out[1], 3, "pending before the first arrival");
    CHECK_EQ(out[2], 2, "pending before the second arrival");
}

static void test_cp_async_arrive(void) {
    struct job j = {
        .threads = 64,
        .declare = SPACE,
        .in = ramp,
        .in_words = 256,
        .body = INIT(
            "64") "mov.u32 %r4, s;\nmad.lo.u32 %r5, %r1, 16, %r4;\nmul.wide.u32 %d3, %r1, 16;\n"
                  "add.u64 %d4, %d1, %d3;\nmov.u32 %r6, m;\n"
                  "cp.async.cg.shared.global [%r5], [%d4], 16;\n"
                  "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r6];\n"
                  "w:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r6], 0;\n@!%p1 bra w;\n"
                  "xor.b32 %r7, %r1, 33;\nmad.lo.u32 %r7, %r7, 16, %r4;\nld.shared.u32 %r8, "
                  "[%r7];\n"
                  "cp.async.mbarrier.arrive.shared::cta.b64 [%r6];\n" /* counts for nothing */
                  "mbarrier.arrive.shared::cta.b64 _, [%r6];\n"
                  "v:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r6], 1;\n@!%p1 bra "
                  "v;\n" STORE("%r8")};
    job_clean("cp.async.mbarrier.arrive", &j);
    for (unsigned t = 0; t < 64; t++)
        CHECK_EQ(out[t], ramp[(t ^ 33) * 4], "cp.async.mbarrier.arrive");
}

/* ---- bulk copies ----------------------------------------------------------------------------- */

static void test_bulk(void) {
    struct job j = {
        .threads = 128,
        .shadow = true,
        .declare = SPACE,
        .in = ramp,
        .in_words = 1024,
        .body = INIT(
            "1") "mov.u32 %r4, s;\nmov.u32 %r5, m;\nmov.u64 %d5, 0;\n@!%p9 bra wait;\n"
                 "cp.async.bulk.prefetch.L2.global [%d1], 2048;\n"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 2048;\n"
                 "createpolicy.fractional.L2::evict_first.b64 %d5, 1.0;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d1], "
                 "1024, "
                 "[%r5];\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%r4+1024], [%d1+2048], 1024, [%r5], %d5;\n"
                 "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r5], 0;\n@!%p1 bra wait;\n"
                 "mad.lo.u32 %r6, %r1, 16, %r4;\nld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r6];\n"
                 "add.u32 %r7, %r7, 1;\nst.shared.v4.u32 [%r6], {%r7, %r8, %r9, %r10};\n"
                 "fence.proxy.async.shared::cta;\nbar.sync 0;\n@!%p9 bra end;\n"
                 "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r4], 1024;\n"
                 "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%d0+1024], "
                 "[%r4+1024], "
                 "1024, %d5;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\n"
                 "cp.async.bulk.wait_group 0;\nend:\n"};
    job_clean("bulk copies", &j);
    for (unsigned i = 0; i < 512; i++)
        CHECK_EQ(out[i], ramp[i < 256 ? i : i + 256] + (i % 4 == 0), "bulk copies");
}

static void test_cluster_copies(void) {
    for (size_t i = 0; i < job_seed_count(); i++) {
        struct job j = {
            .blocks = 4,
            .threads = 64,
            .cluster = 4,
            .shadow = true,
            .seed = job_seeds[i],
            .declare = SPACE,
            .in = ramp,
            .in_words = 1024,
            .body =
                /* every block hears: block 0's multicast, twice; its left neighbour's copy, store, sum */
            "setp.eq.u32 %p9, %r1, 0;\n@%p9 mbarrier.init.shared::cta.b64 [m], 1;\n"
            "@%p9 fence.mbarrier_init.release.cluster;\nmov.u32 %r4, s;\nmov.u32 %r5, m;\n"
            "mad.lo.u32 %r19, %r1, 4, %r4;\nst.shared.u32 [%r19+1024], %r2;\n"
            "st.shared.u32 [%r19+2048], 1000;\nmov.u64 %d5, 0;\n"
            "fence.proxy.async.shared::cta;\n" BARRIER
            "mov.u32 %r6, %cluster_ctarank;\n@!%p9 bra wait;\n"
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 796;\n"
            "add.u32 %r7, %r6, 1;\nand.b32 %r7, %r7, 3;\n"
            "mapa.shared::cluster.u32 %r8, %r4, %r7;\nmapa.shared::cluster.u32 %r9, %r5, %r7;\n"
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8+512], "
            "[%r4+1024], 256, [%r9];\n"
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r8+768], {%r6, %r7}, "
            "[%r9];\n"
            "mov.u64 %d6, 0x1234567890abcdef;\n"
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r8+776], %d6, "
            "[%r9];\n"
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
            "[%r8+2048], %r7, [%r9];\n"
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 "
            "[%r8+2056], %d6, [%r9];\n"
            "setp.ne.u32 %p2, %r6, 0;\n@%p2 bra wait;\nmov.u16 %h1, 15;\n"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            "[%r4], [%d1], 256, [%r5], %h1;\n"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
            ".L2::cache_hint [%r4+256], [%d1+1024], 256, [%r5], %h1, %d5;\n"
            "wait:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r5], 0;\n"
            "@!%p1 bra wait;\n"
            "ld.shared.u32 %r10, [%r19];\nld.shared.u32 %r11, [%r19+256];\n"
            "ld.shared.u32 %r12, [%r19+512];\nld.shared.u32 %r13, [s+768];\n"
            "ld.shared.u32 %r14, [s+772];\nld.shared.u32 %r15, [s+776];\nld.shared.u32 %r16, "
            "[s+2048];\nld.shared.u32 %r17, [s+2056];\nmul.wide.u32 %d3, %r2, 32;\n"
            "add.u64 %d3, %d3, %d0;\nst.global.v4.u32 [%d3], {%r10, %r11, %r12, %r13};\n"
            "st.global.v4.u32 [%d3+16], {%r14, %r15, %r16, %r17};\n" BARRIER};
        job_clean("copies within a cluster", &j);
        for (unsigned t = 0; t < 256; t++) {
            unsigned rank = t / 64, left = (rank + 3) % 4;
            const uint32_t want[8] = {
                ramp[t % 64], ramp[256 + t % 64], left * 64 + t % 64, left,
                rank,         0x90abcdef,         1000 + rank,        1000 + 0x90abcdef};
            for (unsigned k = 0; k < 8; k++)
                CHECK_EQ(out[t * 8 + k], want[k], "copies within a cluster");
        }
    }
}

/* 4096 copies of 240 bytes to 4 blocks count as 4 * 15 rows of 16 bytes each. */
static void test_multicast_budget(void) {
    struct job j = {
        .blocks = 4,
        .threads = 1,
        .cluster = 4,
        .insn_budget = 150000,
        .declare = SPACE,
        .in = ramp,
        .in_words = 1024,
        .body = "mbarrier.init.shared::cta.b64 [m], 1;\nfence.mbarrier_init.release.cluster;\n" BARRIER
                "mov.u32 %r4, s;\nmov.u32 %r5, m;\nmov.u16 %h1, 15;\nmov.u32 %r7, 0;\n"
                "mov.u32 %r6, %cluster_ctarank;\nsetp.ne.u32 %p0, %r6, 0;\n@%p0 bra end;\nagain:\n"
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                "[%r4], [%d1], 240, [%r5], %h1;\nadd.u32 %r7, %r7, 1;\n"
                "setp.lt.u32 %p1, %r7, 4096;\n@%p1 bra again;\nend:\n" BARRIER};
    job_fault("a loop of multicasts", &j, FAULT_INSN_BUDGET);
    j.insn_budget = 300000;
    job_clean("a loop of multicasts", &j);
}

/* ---- named barriers -------------------------------------------------------------------------- */

static void test_named(void) {
    for (size_t i = 0; i < job_seed_count(); i++) {
        struct job j = {
            /* warps 0 and 1 fill, arrive at barrier 3 and go on; warps 2 and 3 wait there */
            .threads = 192,
            .shadow = true,
            .seed = job_seeds[i],
            .declare = SPACE,
            .body =
                "mov.u32 %r4, s;\nmad.lo.u32 %r5, %r1, 4, %r4;\nsetp.ge.u32 %p0, %r1, 128;\n"
                "@%p0 bra rest;\nsetp.ge.u32 %p1, %r1, 64;\n@%p1 bra wait;\n"
                "st.shared.u32 [%r5], %r1;\nbar.arrive 3, 128;\nmov.u32 %r6, 5;\nbra end;\n"
                "wait:\nbar.sync 3, 128;\nld.shared.u32 %r6, [%r5+-256];\n"
                "setp.lt.u32 %p2, %r6, 40;\nbarrier.cta.red.popc.aligned.u32 %r7, 4, 64, %p2;\n"
                "mad.lo.u32 %r6, %r7, 1000, %r6;\nbar.red.and.pred %p3, 5, 64, !%p2;\n"
                "bar.cta.red.or.pred %p4, 5, 64, %p2;\nbarrier.red.and.pred %p5, 6, 64, %p2;\n"
                "selp.u32 %r8, 100000, 0, %p3;\nadd.u32 %r6, %r6, %r8;\nselp.u32 %r8, 200000, 0, "
                "%p4;\nadd.u32 %r6, %r6, %r8;\nselp.u32 %r8, 400000, 0, %p5;\nadd.u32 %r6, %r6, "
                "%r8;\n"
                "bra end;\nrest:\nmov.u32 %r6, 7;\n"
                "end:\nsetp.ge.u32 %p2, %r1, 191;\nbarrier.red.popc.u32 %r7, 2, %p2;\n"
                "barrier.sync.aligned 0;\nbarrier.cta.sync 1, 192;\nadd.u32 %r6, %r6, %r7;\n" STORE(
                    "%r6")};
        job_clean("named barriers", &j);
        for (unsigned t = 0; t < 192; t++)
            CHECK_EQ(out[t],
                     1 + (t < 64    ? 5
                          : t < 128 ? t - 64 + 40000 + 200000
                                    : 7),
                     "named barriers");
    }
}

/* ---- no effect on values --------------------------------------------------------------------- */

static void test_hints(void) {
    struct job j = {
        .threads = 32,
        .in = ramp,
        .in_words = 1024,
        .body =
            "griddepcontrol.wait;\nprefetch.global.L2::evict_last [%d1];\nprefetchu.L1 [%d1];\n"
            "applypriority.global.L2::evict_normal [%d1], 128;\npmevent 3;\n"
            "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d4, [%d1], 128, "
            "256;\n"
            "ld.global.nc.L1::no_allocate.L2::128B.u32 %r4, [%d1+128];\n"
            "ld.global.nc.L1::evict_last.L2::cache_hint.v2.u32 {%r5, %r6}, [%d1+8], %d4;\n"
            "ld.weak.global.ca.u32 %r7, [%d1];\nld.relaxed.cta.global.u32 %r8, [%d1+4];\n"
            "ld.global.cv.u32 %r9, [%d1+32];\nelect.sync %r10|%p0, -1;\nselp.u32 %r11, 64, 0, "
            "%p0;\nadd.u32 %r11, %r11, %r10;\n"
            "setp.ge.u32 %p1, %r1, 8;\n@%p1 elect.sync _|%p2, 0xffffff00;\n@%p1 selp.u32 %r12, "
            "128, 0, %p2;\n@!%p1 mov.u32 %r12, 0;\nadd.u32 %r11, %r11, %r12;\n"
            "griddepcontrol.launch_dependents;\nadd.u32 %r4, %r4, %r5;\nadd.u32 %r4, %r4, %r6;\n"
            "add.u32 %r4, %r4, %r7;\nadd.u32 %r4, %r4, %r8;\nadd.u32 %r4, %r4, %r9;\n"
            "shl.b32 %r4, %r4, 8;\nadd.u32 %r4, %r4, %r11;\n" STORE("%r4")};
    job_clean("hints", &j);
    unsigned sum = ramp[32] + ramp[2] + ramp[3] + ramp[0] + ramp[1] + ramp[8];
    for (unsigned t = 0; t < 32; t++)
        CHECK_EQ(out[t], sum * 256 + (t == 0 ? 64 : 0) + (t == 8 ? 128 : 0), "hints");
}

static void test_results(void) {
    test_pipeline();
    test_states();
    test_cp_async_arrive();
    test_bulk();
    test_cluster_copies();
    test_named();
    test_hints();
}

/* What ptxas takes for sm_90a only, or with a value that no register holds. */
static void test_hints_elsewhere(void) {
    struct job j = {
        .threads = 128,
        .in = ramp,
        .in_words = 64,
        .body = "setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.inc.sync.aligned.u32 80;\n"
                "createpolicy.cvt.L2.b64 %d4, %d0;\ndiscard.global.L2 [%d1], 128;\n" STORE("7")};
    job_clean("hints elsewhere", &j);
    CHECK_EQ(out[127], 7, "hints elsewhere");
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void expect(const char *name, const char *body, enum dev_fault_kind kind) {
    struct job j = {.threads = 64,
                    .shadow = true,
                    .declare = SPACE,
                    .in = ramp,
                    .in_words = 1024,
                    .insn_budget = 1000000,
                    .body = body};
    job_fault(name, &j, kind);
}

#define ONE "setp.ne.u32 %p0, %r1, 0;\n@%p0 bra end;\n"
#define END "end:\n"

static void test_faults(void) {
    expect("no object", ONE "mbarrier.arrive.shared.b64 %d3, [m];\n" END, FAULT_UNWRITTEN);
    expect("other bytes", ONE "st.shared.u64 [m], 5;\nmbarrier.arrive.shared.b64 %d3, [m];\n" END,
           FAULT_DIVERGENT_BARRIER);
    expect("after inval",
           ONE "mbarrier.init.shared.b64 [m], 1;\nmbarrier.inval.shared.b64 [m];\n"
               "mbarrier.arrive.shared.b64 %d3, [m];\n" END,
           FAULT_DIVERGENT_BARRIER);
    expect("count 0", ONE "mbarrier.init.shared.b64 [m], 0;\n" END, FAULT_DIVERGENT_BARRIER);
    expect("count too large", ONE "mbarrier.init.shared.b64 [m], 1048576;\n" END,
           FAULT_DIVERGENT_BARRIER);
    expect("too many arrivals",
           ONE "mbarrier.init.shared.b64 [m], 2;\nmbarrier.arrive.shared.b64 %d3, [m], 3;\n" END,
           FAULT_DIVERGENT_BARRIER);
    expect("noComplete completes",
           ONE "mbarrier.init.shared.b64 [m], 1;\n"
               "mbarrier.arrive.noComplete.shared.b64 %d3, [m], 1;\n" END,
           FAULT_DIVERGENT_BARRIER);
    expect("too many bytes",
           ONE "mbarrier.init.shared.b64 [m], 1;\nmbarrier.expect_tx.shared.b64 [m], 1048575;\n"
               "mbarrier.expect_tx.shared.b64 [m], 1;\n" END,
           FAULT_DIVERGENT_BARRIER);
    expect("init without a barrier",
           "mov.u32 %r5, m;\nsetp.eq.u32 %p0, %r1, 5;\n@%p0 mbarrier.init.shared.b64 [%r5], 64;\n"
           "mbarrier.arrive.shared.b64 _, [%r5];\n",
           FAULT_RACE);
    expect("data without a wait",
           INIT("64") "mov.u32 %r4, s;\nmad.lo.u32 %r5, %r1, 4, %r4;\nst.shared.u32 [%r5], %r1;\n"
                      "mbarrier.arrive.relaxed.cta.shared.b64 _, [m];\nxor.b32 %r6, %r1, 32;\n"
                      "w:\nmbarrier.try_wait.parity.shared.b64 %p1, [m], 0;\n@!%p1 bra w;\n"
                      "mad.lo.u32 %r6, %r6, 4, %r4;\nld.shared.u32 %r7, [%r6];\n",
           FAULT_RACE);
    expect("misaligned object", ONE "mbarrier.init.shared.b64 [m+4], 1;\n" END, FAULT_MISALIGNED);
    expect("an object in global memory", ONE "mbarrier.init.b64 [%d1], 1;\n" END,
           FAULT_DIVERGENT_BARRIER);
    expect("a wait in vain",
           ONE "mbarrier.init.shared.b64 [m], 1;\n"
               "w:\nmbarrier.try_wait.parity.shared.b64 %p1, [m], 0;\n@!%p1 bra w;\n" END,
           FAULT_INSN_BUDGET);
#define BULK(dst, src, size)                                                      \
    ONE "mbarrier.init.shared.b64 [m], 1;\ncp.async.bulk.shared::cluster.global." \
        "mbarrier::complete_tx::bytes [" dst "], [" src "], " size ", [m];\n" END
    expect("24 bytes", BULK("s", "%d1", "24"), FAULT_MISALIGNED);
    expect("misaligned source", BULK("s", "%d1+8", "16"), FAULT_MISALIGNED);
    expect("past the source", BULK("s", "%d1+3840", "512"), FAULT_OUT_OF_BOUNDS);
    expect("past the end", BULK("s+4000", "%d1", "4096"), FAULT_OUT_OF_BOUNDS);
    expect("past shared memory", BULK("s+2048", "%d1", "4096"), FAULT_OUT_OF_BOUNDS);
    expect("a count that is no number of warps", "bar.sync 1, 40;\n", FAULT_DIVERGENT_BARRIER);
    expect("barrier 16", "bar.sync 16;\n", FAULT_DIVERGENT_BARRIER);
    expect("nobody else comes", "setp.lt.u32 %p0, %r1, 32;\n@%p0 bar.sync 1, 64;\n",
           FAULT_DIVERGENT_BARRIER);
}

int main(int argc, char **argv) {
    for (uint32_t i = 0; i < 2048; i++)
        ramp[i] = i * 7 + 3;
    bool gpu = use_device(argc, argv);
    test_results();
    if (!gpu) {
        test_hints_elsewhere();
        test_faults();
        test_multicast_budget();
        check_elsewhere(TEST_SYNC);
    }
    return report();
}
