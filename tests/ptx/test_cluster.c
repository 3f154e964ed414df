/*
 * test_cluster.c - thread-block clusters: who is where, their barrier, each other's shared memory.
 * Every expected value is worked out by hand in the test.
 *
 *   test_cluster --device cuda:0     what has a result, on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/harness.h"

#define STORE(reg) "st.global.u32 [%d2], " reg ";\n"
#define BARRIER "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
#define SHARED ".shared .align 16 .b8 s[256];"


static void test_sregs(void) {
    struct job j = {.blocks = 8,
                    .threads = 1,
                    .cluster = 4,
                    .body = "mov.u32 %r4, %clusterid.x;\nmov.u32 %r5, %nclusterid.x;\n"
                            "mad.lo.u32 %r4, %r4, 10, %r5;\nmov.u32 %r5, %cluster_ctaid.x;\n"
                            "mad.lo.u32 %r4, %r4, 10, %r5;\nmov.u32 %r5, %cluster_nctaid.x;\n"
                            "mad.lo.u32 %r4, %r4, 10, %r5;\nmov.u32 %r5, %cluster_ctarank;\n"
                            "mad.lo.u32 %r4, %r4, 10, %r5;\nmov.u32 %r5, %cluster_nctarank;\n"
                            "mad.lo.u32 %r4, %r4, 10, %r5;\nmov.u32 %r5, %cluster_nctaid.y;\n"
                            "mad.lo.u32 %r4, %r4, 10, %r5;\nmov.u32 %r5, %cluster_ctaid.z;\n"
                            "add.u32 %r4, %r4, %r5;\n" STORE("%r4")};
    job_clean("cluster registers", &j);
    for (unsigned b = 0; b < 8; b++)
        CHECK_EQ(out[b], b / 4 * 1000000 + 200000 + b % 4 * 10000 + 4000 + b % 4 * 100 + 40 + 1,
                 "cluster registers");
    j.cluster = 0; /* without a cluster each block is one */
    job_clean("no cluster", &j);
    for (unsigned b = 0; b < 8; b++)
        CHECK_EQ(out[b], b * 1000000 + 800000 + 1000 + 10 + 1, "no cluster");
}

/* Each block reads its right neighbour's shared memory, adds to its left one's, and reads its own. */
static void test_exchange(void) {
    for (size_t i = 0; i < job_seed_count(); i++) {
        struct job j = {
            .blocks = 8,
            .threads = 64,
            .cluster = 4,
            .shadow = true,
            .seed = job_seeds[i],
            .declare = SHARED,
            .body =
                "mov.u32 %r4, s;\nmad.lo.u32 %r5, %r1, 4, %r4;\nmov.u32 %r6, %cluster_ctarank;\n"
                "mad.lo.u32 %r7, %r6, 1000, %r1;\nst.shared.u32 [%r5], %r7;\n" BARRIER
                "add.u32 %r8, %r6, 1;\nand.b32 %r8, %r8, 3;\n"
                "mapa.shared::cluster.u32 %r9, %r5, %r8;\nld.shared::cluster.u32 %r10, [%r9];\n"
                "mov.u64 %d3, s;\ncvta.shared.u64 %d3, %d3;\nmul.wide.u32 %d4, %r1, 4;\n"
                "add.u64 %d3, %d3, %d4;\nmapa.u64 %d5, %d3, %r8;\nld.u32 %r11, [%d5];\n"
                "sub.u32 %r12, %r10, %r11;\nmapa.shared::cluster.u64 %d6, s, %r8;\n"
                "ld.shared::cluster.u32 %r14, [%d6+4];\n" BARRIER
                "add.u32 %r13, %r6, 3;\nand.b32 %r13, %r13, 3;\n"
                "mapa.shared::cluster.u32 %r9, %r5, %r13;\n"
                "atom.shared::cluster.add.u32 %r15, [%r9], 7;\n"
                "red.release.cluster.shared::cluster.add.u32 [%r9], 1;\n" BARRIER
                "ld.shared.u32 %r16, [%r5];\nadd.u32 %r10, %r10, %r12;\nadd.u32 %r10, %r10, "
                "%r14;\nadd.u32 %r10, %r10, %r16;\n" STORE("%r10") BARRIER};
        job_clean("exchange", &j);
        for (unsigned t = 0; t < 8 * 64; t++) {
            unsigned rank = t / 64 % 4, right = (rank + 1) % 4, me = t % 64;
            CHECK_EQ(out[t], right * 1000 + me + right * 1000 + 1 + rank * 1000 + me + 8,
                     "exchange");
        }
    }
}

/* Stores into other blocks, over many phases; warps arrive before they have finished their own. */
static void test_phases(void) {
    for (size_t i = 0; i < job_seed_count(); i++) {
        struct job j = {
            .blocks = 4,
            .threads = 96,
            .cluster = 2,
            .shadow = true,
            .seed = job_seeds[i],
            .declare = ".shared .align 16 .b8 s[384];",
            .body =
                "mov.u32 %r4, s;\nmad.lo.u32 %r5, %r1, 4, %r4;\nmov.u32 %r6, %cluster_ctarank;\n"
                "xor.b32 %r7, %r6, 1;\nmapa.shared::cluster.u32 %r8, %r5, %r7;\n"
                "mov.u32 %r9, 0;\nmov.u32 %r10, %r2;\n" BARRIER
                "loop:\nst.shared::cluster.u32 [%r8], %r10;\n"
                "barrier.cluster.arrive;\nadd.u32 %r11, %r9, 1;\nbarrier.cluster.wait;\n"
                "ld.shared.u32 %r12, [%r5];\nadd.u32 %r10, %r10, %r12;\n" BARRIER
                "add.u32 %r9, %r9, 1;\nsetp.lt.u32 %p0, %r9, 5;\n@%p0 bra loop;\n" STORE("%r10")};
        job_clean("phases", &j);
        for (unsigned t = 0; t < 4 * 96; t++) {
            unsigned a = t, b = t / 96 % 2 ? t - 96 : t + 96;
            for (int k = 0; k < 5; k++) {
                unsigned sum = a + b;
                a = b = sum;
            }
            CHECK_EQ(out[t], a, "phases");
        }
    }
}

/* Threads that have exited count as arrived. */
static void test_exited(void) {
    struct job j = {.blocks = 2,
                    .threads = 64,
                    .cluster = 2,
                    .declare = SHARED,
                    .body = "setp.lt.u32 %p0, %r1, 20;\n@%p0 exit;\nmov.u32 %r4, s;\n"
                            "mad.lo.u32 %r5, %r1, 4, %r4;\nst.shared.u32 [%r5], %r2;\n"
                            "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                            "mov.u32 %r6, %cluster_ctarank;\nxor.b32 %r6, %r6, 1;\n"
                            "mapa.shared::cluster.u32 %r7, %r5, %r6;\n"
                            "ld.shared::cluster.u32 %r8, [%r7];\n" STORE(
                                "%r8") "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"};
    job_clean("exited threads", &j);
    for (unsigned t = 0; t < 128; t++)
        CHECK_EQ(out[t], t % 64 < 20 ? 0xffffffff : (t + 64) % 128, "exited threads");
}

static void test_addresses(void) {
    struct job j = {
        .blocks = 2,
        .threads = 1,
        .cluster = 2,
        .module = ".const .u32 c = 5;\n.global .u32 g = 6;",
        .declare = SHARED "\n.local .align 4 .b8 l[8];",
        .body =
            "mov.u32 %r6, %cluster_ctarank;\nxor.b32 %r7, %r6, 1;\nmov.u32 %r4, s;\n"
            "mapa.shared::cluster.u32 %r5, %r4, %r7;\ngetctarank.shared::cluster.u32 %r8, %r5;\n"
            "getctarank.shared::cluster.u32 %r9, %r4;\nmov.u64 %d3, s;\n"
            "cvta.shared::cluster.u64 %d4, %d3;\nmapa.u64 %d5, %d4, %r7;\n"
            "getctarank.u64 %r10, %d5;\nmad.lo.u32 %r11, %r8, 10, %r9;\n"
            "mad.lo.u32 %r11, %r11, 10, %r10;\n"
            "isspacep.shared %p0, %d4;\nisspacep.shared::cta %p1, %d5;\n"
            "isspacep.shared::cluster %p2, %d5;\nisspacep.global %p3, %d5;\n"
            "isspacep.global %p4, %d0;\nmov.u64 %d6, l;\ncvta.local.u64 %d6, %d6;\n"
            "isspacep.local %p5, %d6;\nisspacep.local %p6, %d0;\nmov.u64 %d7, c;\n"
            "cvta.const.u64 %d7, %d7;\nisspacep.const %p7, %d7;\nisspacep.const %p8, %d0;\n"
            "selp.u32 %r12, 1, 0, %p0;\nselp.u32 %r13, 2, 0, %p1;\nadd.u32 %r12, %r12, %r13;\n"
            "selp.u32 %r13, 4, 0, %p2;\nadd.u32 %r12, %r12, %r13;\nselp.u32 %r13, 8, 0, %p3;\n"
            "add.u32 %r12, %r12, %r13;\nselp.u32 %r13, 16, 0, %p4;\nadd.u32 %r12, %r12, %r13;\n"
            "selp.u32 %r13, 32, 0, %p5;\nadd.u32 %r12, %r12, %r13;\nselp.u32 %r13, 64, 0, %p6;\n"
            "add.u32 %r12, %r12, %r13;\nselp.u32 %r13, 128, 0, %p7;\nadd.u32 %r12, %r12, %r13;\n"
            "selp.u32 %r13, 256, 0, %p8;\nadd.u32 %r12, %r12, %r13;\n"
            "mad.lo.u32 %r12, %r11, 1000, %r12;\n" STORE("%r12") BARRIER};
    job_clean("addresses", &j);
    CHECK_EQ(out[0], 101000 + 1 + 4 + 16 + 32 + 128, "addresses of block 0");
    CHECK_EQ(out[1], 10000 + 1 + 4 + 16 + 32 + 128, "addresses of block 1");
}

/* Sums in another block's shared memory keep subnormals too. */
static void test_subnormals(void) {
    struct job j = {
        .blocks = 2,
        .threads = 1,
        .cluster = 2,
        .declare = SHARED,
        .body = "mov.u32 %r4, s;\nst.shared.u32 [%r4], 5;\nst.shared.u32 [%r4+4], 6;\n" BARRIER
                "mov.u32 %r6, %cluster_ctarank;\nxor.b32 %r6, %r6, 1;\nmov.b32 %f1, 3;\n"
                "mapa.shared::cluster.u32 %r7, %r4, %r6;\ncvt.u64.u32 %d3, %r4;\n"
                "cvta.shared.u64 %d3, %d3;\nmapa.u64 %d4, %d3, %r6;\n"
                "atom.shared::cluster.add.f32 %f2, [%r7], %f1;\n"
                "atom.add.f32 %f2, [%d4+4], %f1;\n" BARRIER
                "ld.shared.u32 %r8, [%r4];\nld.shared.u32 %r9, [%r4+4];\n"
                "mad.lo.u32 %r8, %r8, 100, %r9;\n" STORE("%r8")};
    job_clean("subnormals in another block", &j);
    CHECK_EQ(out[0], 809, "subnormals in another block");
    CHECK_EQ(out[1], 809, "subnormals in another block");
}

static void test_results(void) {
    test_subnormals();
    test_sregs();
    test_exchange();
    test_phases();
    test_exited();
    test_addresses();
}

/* ---- faults ---------------------------------------------------------------------------------- */

#define NEIGHBOUR                                                                          \
    "mov.u32 %r4, s;\nmad.lo.u32 %r5, %r1, 4, %r4;\nmov.u32 %r6, %cluster_ctarank;\n"      \
    "xor.b32 %r6, %r6, 1;\nmapa.shared::cluster.u32 %r7, %r5, %r6;\nst.shared.u32 [%r5], " \
    "%r2;\n"

static void expect(const char *name, const char *body, bool shadow, enum dev_fault_kind kind) {
    struct job j = {.blocks = 2,
                    .threads = 64,
                    .cluster = 2,
                    .shadow = shadow,
                    .declare = SHARED,
                    .body = body};
    job_fault(name, &j, kind);
}

static void test_faults(void) {
    expect("read without a barrier", NEIGHBOUR "ld.shared::cluster.u32 %r8, [%r7];\n" BARRIER, true,
           FAULT_UNWRITTEN);
    expect("write without a barrier",
           NEIGHBOUR BARRIER
           "ld.shared.u32 %r8, [%r5];\nst.shared::cluster.u32 [%r7], %r1;\n" BARRIER,
           true, FAULT_RACE);
    expect("a relaxed arrival orders nothing",
           NEIGHBOUR "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
                     "ld.shared::cluster.u32 %r8, [%r7];\n" BARRIER,
           true, FAULT_RACE);
    expect("a store after the arrival",
           NEIGHBOUR "barrier.cluster.arrive;\nadd.u32 %r9, %r2, 1;\nst.shared.u32 [%r5], %r9;\n"
                     "barrier.cluster.wait;\nld.shared::cluster.u32 %r8, [%r7];\n" BARRIER,
           true, FAULT_RACE);
    expect("shared::cta of another block", NEIGHBOUR BARRIER "ld.shared.u32 %r8, [%r7];\n" BARRIER,
           false, FAULT_OUT_OF_BOUNDS);
    expect("past the end in another block",
           NEIGHBOUR BARRIER "ld.shared::cluster.u32 %r8, [%r7+256];\n" BARRIER, false,
           FAULT_OUT_OF_BOUNDS);
    expect("a block that is not there",
           NEIGHBOUR "mapa.shared::cluster.u32 %r7, %r5, 2;\nld.shared::cluster.u32 %r8, [%r7];\n",
           false, FAULT_OUT_OF_BOUNDS);
    expect("a block that has ended",
           NEIGHBOUR BARRIER "setp.ne.u32 %p0, %r6, 0;\n@!%p0 bra there;\nmov.u32 %r9, 0;\n"
                             "spin:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p1, %r9, 100000;\n"
                             "@%p1 bra spin;\nld.shared::cluster.u32 %r8, [%r7];\nthere:\n",
           false, FAULT_OUT_OF_BOUNDS);
    CHECK_EQ(strstr(run.faults[0].text, "which has ended") != NULL, 1, run.faults[0].text);
    expect("waits without having arrived", "barrier.cluster.wait;\n", false,
           FAULT_DIVERGENT_BARRIER);
    expect("arrives twice", "barrier.cluster.arrive;\nbarrier.cluster.arrive;\n", false,
           FAULT_DIVERGENT_BARRIER);
    expect("one thread never arrives",
           "setp.eq.u32 %p0, %r2, 0;\n@%p0 bra other;\n" BARRIER "other:\nbar.sync 0;\n", false,
           FAULT_DIVERGENT_BARRIER);
    CHECK_EQ(strstr(run.faults[0].text, "for ever") != NULL, 1, run.faults[0].text);
}

/* ---- launches that do not fit ---------------------------------------------------------------- */

static status_t launch(const char *directive, const unsigned grid[3], const unsigned cluster[3]) {
    status_t st = OK;
    struct device *dev = NULL;
    struct dev_image *image = NULL;
    char text[512];
    int size = snprintf(text, sizeof text,
                        ".version 8.6\n.target sm_90\n.address_size 64\n.entry k() %s\n{\n"
                        ".reg .b32 %%r<9>;\nmov.u32 %%r1, %%cluster_nctarank;\nret;\n}\n",
                        directive);
    TRY(device_open(&dev, "cpu", NULL));
    TRY(device_load(&image, dev, "cluster", text, (size_t)size));
    struct dev_launch l = {.image = image, .entry = "k", .block = {32, 1, 1}};
    memcpy(l.grid, grid, sizeof l.grid);
    memcpy(l.cluster, cluster, sizeof l.cluster);
    TRY(device_launch(&run, dev, &l));
done:
    image_unload(image);
    device_close(dev);
    return st;
}

static void test_launches(void) {
    static const struct {
        const char *directive;
        unsigned grid[3], cluster[3];
        status_t want;
        const char *says;
    } cases[] = {
        {"", {4, 2, 2}, {2, 2, 2}, OK, ""},
        {"", {4, 2, 2}, {0, 0, 0}, OK, ""},
        {"", {4, 2, 2}, {4, 2, 2}, OK, ""},
        {".reqnctapercluster 2, 2", {4, 2, 3}, {0, 0, 0}, OK, ""},
        {".reqnctapercluster 2, 2", {4, 2, 3}, {2, 2, 1}, OK, ""},
        {".explicitcluster", {4, 1, 1}, {2, 1, 1}, OK, ""},
        {"", {4, 2, 2}, {3, 1, 1}, ERR_USAGE, "no multiple"},
        {"", {4, 2, 2}, {0, 1, 1}, ERR_USAGE, "cluster.x is 0"},
        {"", {32, 2, 1}, {16, 2, 1}, ERR_USAGE, "at most 16"},
        {"", {34, 1, 1}, {17, 1, 1}, ERR_USAGE, "1 to 16"},
        {".reqnctapercluster 2", {4, 1, 1}, {4, 1, 1}, ERR_USAGE, "the entry declares 2"},
        {".reqnctapercluster 2", {3, 1, 1}, {0, 0, 0}, ERR_USAGE, "no multiple"},
        {".explicitcluster", {4, 1, 1}, {0, 0, 0}, ERR_USAGE, "with a cluster"},
        {".reqnctapercluster 17", {17, 1, 1}, {0, 0, 0}, ERR_UNSUPPORTED, "1 to 16"},
        {".reqnctapercluster 2,2,2,2", {17, 1, 1}, {0, 0, 0}, ERR_SYNTAX, "three"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        status_t st = launch(cases[i].directive, cases[i].grid, cases[i].cluster);
        CHECK_EQ(st, cases[i].want, st == OK ? cases[i].directive : status_message());
        CHECK_EQ(st == OK || strstr(status_message(), cases[i].says) != NULL, 1,
                 st == OK ? cases[i].directive : status_message());
    }
}

int main(int argc, char **argv) {
    bool gpu = use_device(argc, argv);
    test_results();
    if (!gpu) {
        test_faults();
        test_launches();
        check_elsewhere(TEST_CLUSTER);
    }
    return report();
}
