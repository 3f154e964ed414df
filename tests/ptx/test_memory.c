/*
 * test_memory.c - spaces, widths, vectors, atomics, and every way an access can be wrong.
 *
 *   test_memory --device cuda:0     what has a result, on a GPU
 */
#include <stdio.h>
#include <string.h>

#include "tests/ptx/harness.h"

#define STORE(reg) "st.global.u32 [%d2], " reg ";\n"

static uint32_t ramp[1024];

static void test_widths(void) {
    static const uint32_t bytes[] = {0x80ff7f01, 0xfedcba98, 0x00008000, 0x12345678};
    struct job j = {.in = bytes,
                    .in_words = 4,
                    .body =
                        "ld.global.u8 %r4, [%d1+2];\nst.global.u32 [%d0], %r4;\nld.global.s8 %r4, "
                        "[%d1+2];\nst.global.u32 [%d0+4], %r4;\n"
                        "ld.global.u16 %r4, [%d1+8];\nst.global.u32 [%d0+8], %r4;\nld.global.s16 "
                        "%r4, [%d1+8];\nst.global.u32 [%d0+12], %r4;\n"
                        "ld.global.s32 %d4, [%d1+4];\nst.global.u64 [%d0+16], %d4;\nld.global.u32 "
                        "%d4, [%d1+4];\nst.global.u64 [%d0+24], %d4;\n"
                        "ld.global.b64 %d4, [%d1+8];\nst.global.b64 [%d0+32], %d4;\nld.global.u8 "
                        "%h1, [%d1+3];\ncvt.u32.u16 %r4, %h1;\n"
                        "st.global.u32 [%d0+40], %r4;\nmov.u32 %r4, 0x1234;\nst.global.u8 "
                        "[%d0+44], %r4;\nst.global.u8 [%d0+45], %r4;\n"
                        "mov.u16 %h2, 0x5678;\nst.global.u16 [%d0+46], %h2;\nldu.global.u32 %r4, "
                        "[%d1+12];\nst.global.u32 [%d0+48], %r4;\n"
                        "prefetch.global.L2 [%d1];\nld.s8 %r4, [%d1+3];\nst.u32 [%d0+52], %r4;\n"};
    job_clean("widths", &j);
    static const uint32_t want[] = {0xff,       0xffffffff, 0x8000,     0xffff8000, 0xfedcba98,
                                    0xffffffff, 0xfedcba98, 0,          0x00008000, 0x12345678,
                                    0x80,       0x56783434, 0x12345678, 0xffffff80};
    for (unsigned i = 0; i < sizeof want / sizeof *want; i++)
        CHECK_EQ(out[i], want[i], "widths");
}

static void test_vectors(void) {
    struct job j = {
        .threads = 40,
        .in = ramp,
        .in_words = 160,
        .body = "mul.wide.u32 %d3, %r1, 16;\nadd.u64 %d3, %d3, %d1;\nld.global.v4.u32 {%r4, %r5, "
                "%r6, %r7}, [%d3];\n"
                "mul.wide.u32 %d4, %r1, 32;\nadd.u64 %d4, %d4, %d0;\nst.global.v4.b32 [%d4], {%r7, "
                "%r6, %r5, %r4};\n"
                "ld.global.v2.u64 {%d5, %d6}, [%d3];\nld.global.v2.b32 {%r8, %r9}, [%d3+8];\n"
                "st.global.v2.u64 [%d4+16], {%d6, %d5};\nst.global.v2.u32 [%d4+8], {%r9, %r8};\n"};
    job_clean("vectors", &j);
    for (unsigned i = 0; i < 40; i++) {
        const uint32_t *o = out + 8 * i, *in = ramp + 4 * i;
        const uint32_t want[] = {in[3], in[2], in[3], in[2], in[2], in[3], in[0], in[1]};
        for (unsigned k = 0; k < 8; k++)
            CHECK_EQ(o[k], want[k], "vectors");
    }
    bool counted = strcmp(job_device, "cpu") == 0;
    CHECK_EQ(run.bytes_read, counted ? 40 * 40 : 0, "bytes read");
    CHECK_EQ(run.bytes_written, counted ? 40 * 40 : 0, "bytes written");
}

static void test_spaces(void) {
    struct job j = {
        .threads = 40,
        .module = ".global .align 4 .u32 g[4] = {7, 8, 9, 10};\n"
                  ".const .align 4 .u32 c[4] = {100, 200, 300, 400};\n.extern .shared .align 16 "
                  ".b8 dyn[];",
        .declare = ".shared .align 4 .b8 s[160];\n.local .align 4 .b8 l[64];",
        .dynamic_shared = 160,
        .body = "mov.u64 %d3, s;\ncvta.shared.u64 %d3, %d3;\nmul.wide.u32 %d4, %r1, 4;\nadd.u64 "
                "%d3, %d3, %d4;\nst.u32 [%d3], %r1;\n"
                "mov.u32 %r4, dyn;\nmad.lo.u32 %r4, %r1, 4, %r4;\nst.shared.u32 [%r4], 1000;\n"
                "mov.u64 %d5, l;\nst.local.u32 [%d5+8], %r1;\ncvta.local.u64 %d6, %d5;\nld.u32 "
                "%r5, [%d6+8];\n"
                "ld.shared.u32 %r6, [%r4];\nmov.u32 %r7, s;\nmad.lo.u32 %r7, %r1, 4, "
                "%r7;\nld.shared.u32 %r8, [%r7];\n"
                "ld.global.u32 %r9, [g+8];\nld.const.u32 %r10, [c+4];\nmov.u64 %d7, "
                "g;\nld.global.u32 %r11, [%d7+4];\n"
                "and.b32 %r12, %r1, 3;\nmul.wide.u32 %d8, %r12, 4;\nmov.u64 %d9, c;\nadd.u64 %d9, "
                "%d9, %d8;\nld.const.u32 %r13, [%d9];\n"
                "add.u32 %r4, %r5, %r6;\nadd.u32 %r4, %r4, %r8;\nadd.u32 %r4, %r4, %r9;\nadd.u32 "
                "%r4, %r4, %r10;\n"
                "add.u32 %r4, %r4, %r11;\nadd.u32 %r4, %r4, %r13;\n" STORE("%r4"),
        .shadow = true};
    job_clean("spaces", &j);
    for (unsigned i = 0; i < 40; i++)
        CHECK_EQ(out[i], i + 1000 + i + 9 + 200 + 8 + 100 * (i % 4 + 1), "spaces");
}

/* ---- atomics --------------------------------------------------------------------------------- */

static void test_atomics(void) {
    static const struct {
        const char *text;
        uint32_t start, want;
    } cases[] = {
        /* 32 threads with %r1 = 0..31 */
        {"atom.global.add.u32 %r4, [%d1], %r1;", 5, 5 + 496},
        {"red.global.add.s32 [%d1], %r1;", 5, 5 + 496},
        {"atom.global.min.u32 %r4, [%d1], %r1;", 17, 0},
        {"atom.global.min.s32 %r4, [%d1], %r1;", 0xfffffff0, 0xfffffff0},
        {"atom.global.max.u32 %r4, [%d1], %r1;", 17, 31},
        {"atom.global.max.s32 %r4, [%d1], %r1;", 0xfffffff0, 31},
        {"atom.global.inc.u32 %r4, [%d1], 9;", 5,
         7}, /* 5 .. 9, 0 .. 9, 0 .. 9, 0 .. 6 and one more */
        {"atom.global.dec.u32 %r4, [%d1], 9;", 5, 3},
        {"atom.global.and.b32 %r4, [%d1], %r1;", 0xff, 0},
        {"atom.global.or.b32 %r4, [%d1], %r1;", 0x100, 0x11f},
        {"atom.global.xor.b32 %r4, [%d1], %r1;", 0x55, 0x55},
        {"atom.global.exch.b32 %r4, [%d1], 77;", 1, 77},
        {"atom.global.cas.b32 %r4, [%d1], 3, 1000;", 3, 1000},
    };
    char body[256];
    for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
        snprintf(body, sizeof body,
                 "%s\nbar.sync 0;\nld.global.u32 %%r5, [%%d1];\nst.global.u32 [%%d2], %%r5;\n",
                 cases[k].text);
        struct job j = {
            .threads = 32, .in = &cases[k].start, .in_words = 1, .body = body, .shadow = true};
        job_clean(cases[k].text, &j);
        CHECK_EQ(out[3], cases[k].want, cases[k].text);
    }
    static const uint32_t wide[] = {0xffffffff, 1};
    struct job j64 = {.threads = 32,
                      .in = wide,
                      .in_words = 2,
                      .body = "cvt.u64.u32 %d3, %r1;\natom.global.add.u64 %d4, [%d1], "
                              "%d3;\nbar.sync 0;\nld.global.u32 %r5, [%d1+4];\n" STORE("%r5")};
    job_clean("atom.add.u64", &j64);
    CHECK_EQ(out[0], 2, "atom.add.u64");
}

static void test_atomic_floats(void) {
    /* Global: subnormal operands and results are flushed; shared: kept.  1 + 2^-24 rounds to 1. */
    static const uint32_t start[] = {0x00000005, 0x3f800000};
    struct job j = {.in = start,
                    .in_words = 2,
                    .declare = ".shared .align 4 .b8 s[4];",
                    .body = "mov.b32 %f1, 0x00000003;\nmov.b32 %f2, "
                            "0x33800000;\natom.global.add.f32 %f3, [%d1], %f1;\n"
                            "atom.global.add.f32 %f4, [%d1+4], %f2;\nld.global.u32 %r4, "
                            "[%d1];\nld.global.u32 %r5, [%d1+4];\n"
                            "mov.u32 %r6, 5;\nst.shared.u32 [s], %r6;\natom.shared.add.f32 %f5, "
                            "[s], %f1;\nld.shared.u32 %r7, [s];\n"
                            "st.global.f32 [%d0], %f3;\nst.global.u32 [%d0+4], %r4;\nst.global.u32 "
                            "[%d0+8], %r5;\nst.global.u32 [%d0+12], %r7;\n"};
    job_clean("atom.add.f32", &j);
    CHECK_EQ(out[0], 5, "the old value is not flushed");
    CHECK_EQ(out[1], 0, "global flushes");
    CHECK_EQ(out[2], 0x3f800000, "rounds to nearest even");
    CHECK_EQ(out[3], 8, "shared keeps subnormals");
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void test_bounds(void) {
    struct job past = {
        .threads = 64,
        .in = ramp,
        .in_words = 60,
        .body =
            "mul.wide.u32 %d3, %r1, 4;\nadd.u64 %d3, %d3, %d1;\nld.global.u32 %r4, [%d3];\n" STORE(
                "%r4")};
    for (int shadow = 0; shadow < 2; shadow++) {
        past.shadow = shadow;
        job_fault("read past the end", &past, FAULT_OUT_OF_BOUNDS);
        CHECK_EQ(run.faults[0].thread[0], 60, "read past the end");
        CHECK_EQ(run.completed, 0, "read past the end stops");
        CHECK_EQ(strcmp(run.faults[0].text,
                        "k: block 0 thread 60 reads 4 bytes, 0 past the end of a "
                        "buffer of 240 bytes, PTX line 24"),
                 0, run.faults[0].text);
    }
    struct job before = {.in = ramp, .in_words = 4, .body = "st.global.u32 [%d1+-4], %r1;\n"};
    job_fault("write before the start", &before, FAULT_OUT_OF_BOUNDS);
    struct job wild = {.in = ramp,
                       .in_words = 4,
                       .body = "mov.u64 %d3, 0xdeadbeef00;\nld.global.u64 %d4, [%d3];\n"};
    job_fault("wild address", &wild, FAULT_OUT_OF_BOUNDS);
    struct job null = {.body = "mov.u64 %d3, 0;\nld.u32 %r4, [%d3];\n"};
    job_fault("null", &null, FAULT_OUT_OF_BOUNDS);
    struct job top = {.body = "mov.u64 %d3, -4;\nld.global.u32 %r4, [%d3];\n"};
    job_fault("last address", &top, FAULT_OUT_OF_BOUNDS);
    struct job straddle = {
        .in = ramp, .in_words = 3, .body = "ld.global.v2.u32 {%r4, %r5}, [%d1+8];\n"};
    job_fault("straddles the end", &straddle, FAULT_OUT_OF_BOUNDS);
    struct job shared = {
        .threads = 33,
        .declare = ".shared .align 4 .b8 s[128];",
        .body = "mov.u32 %r4, s;\nmad.lo.u32 %r4, %r1, 4, %r4;\nst.shared.u32 [%r4], %r1;\n"};
    job_fault("shared past the end", &shared, FAULT_OUT_OF_BOUNDS);
    CHECK_EQ(run.faults[0].thread[0], 32, "shared past the end");
    struct job local = {.declare = ".local .align 4 .b8 l[16];",
                        .body = "mov.u64 %d3, l;\nst.local.u32 [%d3+16], %r1;\n"};
    job_fault("local past the end", &local, FAULT_OUT_OF_BOUNDS);
    struct job constant = {.module = ".const .u32 c = 5;",
                           .body =
                               "mov.u64 %d3, c;\ncvta.const.u64 %d3, %d3;\nst.u32 [%d3], %r1;\n"};
    job_fault("store to const", &constant, FAULT_OUT_OF_BOUNDS);
    struct job atomic = {
        .in = ramp, .in_words = 1, .body = "atom.global.add.u32 %r4, [%d1+4], 1;\n"};
    job_fault("atomic past the end", &atomic, FAULT_OUT_OF_BOUNDS);
    struct job empty = {.body = "ld.global.u32 %r4, [%d1];\n"};
    job_fault("a buffer of size 0", &empty, FAULT_OUT_OF_BOUNDS);
}

static void test_alignment(void) {
    struct job j = {.threads = 32,
                    .in = ramp,
                    .in_words = 100,
                    .body = "mul.wide.u32 %d3, %r1, 4;\nadd.u64 %d3, %d3, %d1;\nld.global.v2.u32 "
                            "{%r4, %r5}, [%d3];\n"};
    job_fault("misaligned vector", &j, FAULT_MISALIGNED);
    CHECK_EQ(run.faults[0].thread[0], 1, "misaligned vector");
    struct job one = {.in = ramp, .in_words = 4, .body = "st.global.u32 [%d1+2], %r1;\n"};
    job_fault("misaligned store", &one, FAULT_MISALIGNED);
    struct job shared = {.declare = ".shared .align 4 .b8 s[8];",
                         .body = "ld.shared.u32 %r4, [s+1];\n"};
    job_fault("misaligned shared", &shared, FAULT_MISALIGNED);
}

/* ---- cp.async, ldmatrix, stmatrix, movmatrix, cache policies --------------------------------- */

static uint8_t ramp_byte(size_t i) {
    return ((const uint8_t *)ramp)[i];
}
static uint16_t ramp_half(unsigned row, unsigned i) {
    return (uint16_t)(ramp_byte(row * 16 + i * 2) | ramp_byte(row * 16 + i * 2 + 1) << 8);
}

/*
 * Each byte of s, all ones before, is written by one copy: two of one cp.async-group to one place
 * are undefined (PTX ISA, cp.async.commit_group), and an H200 had the first one's bytes where one of
 * 0 bytes followed.
 *
 * %r6 is a mad: of a sum with a base that is the same in all lanes, and a cache hint, ptxas 13.0 for
 * sm_90 makes LDGSTS with a policy out of UR1, which nothing has written: an illegal instruction.
 */
static void test_cp_async(void) {
    struct job j = {
        .threads = 32,
        .in = ramp,
        .in_words = 1024,
        .declare = ".shared .align 16 .b8 s[2048];",
        .body = "mul.wide.u32 %d3, %r1, 16;\nadd.u64 %d4, %d1, %d3;\nmov.u32 %r4, s;\n"
                "shl.b32 %r5, %r1, 4;\nmad.lo.u32 %r6, %r1, 16, %r4;\nmin.u32 %r7, %r1, 16;\n"
                "and.b32 %r9, %r1, 3;\nmov.u32 %r8, -1;\n"
                "st.shared.v4.u32 [%r6], {%r8, %r8, %r8, %r8};\n"
                "st.shared.v4.u32 [%r6+512], {%r8, %r8, %r8, %r8};\n"
                "st.shared.v4.u32 [%r6+1024], {%r8, %r8, %r8, %r8};\n"
                "st.shared.v4.u32 [%r6+1536], {%r8, %r8, %r8, %r8};\n"
                "mov.u64 %d7, 0;\ncreatepolicy.fractional.L2::evict_first.b64 %d7, 1.0;\n"
                "cp.async.cg.shared.global.L2::cache_hint [%r6 + 0], [%d4 + 0], 0x10, %r7, %d7;\n"
                "cp.async.cg.shared.global [%r6 + 512], [%d4 + 0], 0x10, %r7;\n"
                "cp.async.commit_group;\n"
                "cp.async.ca.shared.global.L2::128B [%r6+1024], [%d4+16], 4;\n"
                "cp.async.ca.shared.global.L2::cache_hint.L2::128B [%r6+1028], [%d4], 4, %d7;\n"
                "cp.async.ca.shared::cta.global [%r6+1032], [%d4+8], 8, 5;\n"
                "cp.async.ca.shared.global [%r6+1536], [%d4], 4, 0;\n"
                "cp.async.ca.shared.global [%r6+1540], [%d4], 4, %r9;\n"
                "cp.async.ca.shared.global [%r6+1544], [%d4], 8, 0;\n"
                "cp.async.commit_group;\ncp.async.wait_group 0;\ncp.async.wait_all;\n"
                "bar.sync 0;\nxor.b32 %r8, %r5, 16;\nadd.u32 %r8, %r8, %r4;\n"
                "add.u64 %d5, %d0, %d3;\nmov.u32 %r3, 0;\n"
                "out:\nld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r8];\n"
                "st.global.v4.u32 [%d5], {%r10, %r11, %r12, %r13};\nadd.u32 %r8, %r8, 512;\n"
                "add.u64 %d5, %d5, 512;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p0, %r3, 4;\n"
                "@%p0 bra out;\n"};
    job_clean("cp.async", &j);
    const uint8_t *got = (const uint8_t *)out;
    for (unsigned t = 0; t < 32; t++) {
        unsigned from = t ^ 1, have = from < 16 ? from : 16;
        for (unsigned i = 0; i < 16; i++) {
            size_t at = (size_t)from * 16 + i;
            uint8_t part = i < have ? ramp_byte(at) : 0;
            CHECK_EQ(got[t * 16 + i], part, "cp.async.cg with a cache hint");
            CHECK_EQ(got[512 + t * 16 + i], part, "cp.async.cg");
            uint8_t want = i < 4    ? ramp_byte(at + 16)
                           : i < 8  ? ramp_byte(at - 4)
                           : i < 13 ? ramp_byte(at)
                                    : 0;
            CHECK_EQ(got[1024 + t * 16 + i], want, "cp.async.ca");
            bool there = i >= 4 && i < 4 + from % 4;
            CHECK_EQ(got[1536 + t * 16 + i], there ? ramp_byte(at - 4) : 0,
                     i < 4   ? "cp.async of 0 bytes out of 4"
                     : i < 8 ? "cp.async of 0 to 3 bytes out of 4"
                             : "cp.async of 0 bytes out of 8");
        }
    }
}

static void test_matrices(void) {
    struct job j = {
        .threads = 32,
        .in = ramp,
        .in_words = 1024,
        .shadow = true,
        .declare = ".shared .align 16 .b8 s[1536];",
        .body = "mul.wide.u32 %d3, %r1, 16;\nadd.u64 %d4, %d1, %d3;\nmov.u32 %r4, s;\n"
                "shl.b32 %r5, %r1, 4;\nadd.u32 %r6, %r4, %r5;\n"
                "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d4];\n"
                "st.shared.v4.u32 [%r6], {%r10, %r11, %r12, %r13};\nbar.sync 0;\n"
                "mul.lo.u32 %r7, %r1, 5;\nand.b32 %r7, %r7, 31;\nshl.b32 %r7, %r7, 4;\n"
                "add.u32 %r7, %r7, %r4;\n"
                "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r7];\n"
                "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r7];\n"
                "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r16}, [%r7];\n"
                "movmatrix.sync.aligned.m8n8.trans.b16 %r17, %r16;\n"
                "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r6+512], {%r10, %r11, %r12, %r13};\n"
                "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r6+1024], {%r10, %r11};\n"
                "bar.sync 0;\n"
                "ld.shared.v4.u32 {%r18, %r19, %r20, %r21}, [%r6+512];\nand.b32 %r8, %r5, 255;\n"
                "add.u32 %r8, %r8, %r4;\nld.shared.v4.u32 {%r22, %r23, %r24, %r25}, [%r8+1024];\n"
                "shl.b64 %d3, %d3, 2;\nadd.u64 %d5, %d0, %d3;\n"
                "st.global.v4.u32 [%d5], {%r10, %r11, %r12, %r13};\n"
                "st.global.v4.u32 [%d5+16], {%r14, %r15, %r16, %r17};\n"
                "st.global.v4.u32 [%d5+32], {%r18, %r19, %r20, %r21};\n"
                "st.global.v4.u32 [%d5+48], {%r22, %r23, %r24, %r25};\n"};
    job_clean("ldmatrix, stmatrix, movmatrix", &j);
    for (unsigned t = 0; t < 32; t++) {
        uint32_t want[16] = {0};
        for (unsigned e = 0; e < 2; e++) {
            unsigned r = t / 4, c = t % 4 * 2 + e, shift = 16 * e;
            for (unsigned k = 0; k < 4; k++)
                want[k] |= (uint32_t)ramp_half((8 * k + r) * 5 % 32, c) << shift;
            for (unsigned k = 0; k < 2; k++)
                want[4 + k] |= (uint32_t)ramp_half((8 * k + c) * 5 % 32, r) << shift;
            want[7] |= (uint32_t)ramp_half(c * 5 % 32, r) << shift;
        }
        want[6] = want[0];
        for (unsigned i = 0; i < 8; i++) {
            want[8 + i / 2] |= (uint32_t)ramp_half(t * 5 % 32, i) << 16 * (i % 2);
            want[12 + i / 2] |= (uint32_t)ramp_half((t % 16 / 8 * 8 + i) * 5 % 32, t % 8)
                                << 16 * (i % 2);
        }
        for (unsigned i = 0; i < 16; i++)
            CHECK_EQ(out[t * 16 + i], want[i], "matrices");
    }
}

/* What .trans loads and stores again is what was there. */
static void test_matrices_transposed(void) {
    struct job j = {
        .threads = 32,
        .in = ramp,
        .in_words = 1024,
        .shadow = true,
        .declare = ".shared .align 16 .b8 s[1536];",
        .body = "mul.wide.u32 %d3, %r1, 16;\nadd.u64 %d4, %d1, %d3;\nmov.u32 %r4, s;\n"
                "shl.b32 %r5, %r1, 4;\nadd.u32 %r6, %r4, %r5;\n"
                "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d4];\n"
                "st.shared.v4.u32 [%r6], {%r10, %r11, %r12, %r13};\nbar.sync 0;\n"
                "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r10, %r11, %r12, %r13}, [%r6];\n"
                "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r14}, [%r6+128];\n"
                "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r15, %r16}, [%r6+256];\n"
                "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r6+512], {%r10, %r11, %r12, %r13};\n"
                "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r6+1024], {%r14};\n"
                "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r6+1152], {%r15, %r16};\n"
                "bar.sync 0;\nld.shared.v4.u32 {%r18, %r19, %r20, %r21}, [%r6+512];\n"
                "min.u32 %r8, %r1, 23;\nshl.b32 %r8, %r8, 4;\nadd.u32 %r8, %r8, %r4;\n"
                "ld.shared.v4.u32 {%r22, %r23, %r24, %r25}, [%r8+1024];\n"
                "mul.wide.u32 %d3, %r1, 64;\nadd.u64 %d5, %d0, %d3;\n"
                "st.global.v4.u32 [%d5], {%r10, %r11, %r12, %r13};\n"
                "st.global.v4.u32 [%d5+16], {%r14, %r15, %r16, %r16};\n"
                "st.global.v4.u32 [%d5+32], {%r18, %r19, %r20, %r21};\n"
                "st.global.v4.u32 [%d5+48], {%r22, %r23, %r24, %r25};\n"};
    job_clean("ldmatrix.trans, stmatrix.trans", &j);
    for (unsigned t = 0; t < 32; t++) {
        uint32_t want[16] = {0};
        for (unsigned e = 0; e < 2; e++) {
            unsigned r = t / 4, c = t % 4 * 2 + e, shift = 16 * e;
            for (unsigned k = 0; k < 4; k++)
                want[k] |= (uint32_t)ramp_half(8 * k + c, r) << shift;
            want[4] |= (uint32_t)ramp_half(8 + c, r) << shift;
            want[5] |= (uint32_t)ramp_half(16 + r, c) << shift;
            want[6] |= (uint32_t)ramp_half(24 + r, c) << shift;
        }
        want[7] = want[6];
        unsigned from = 8 + (t < 23 ? t : 23); /* matrices 1, 2, 3 */
        for (unsigned i = 0; i < 8; i++) {
            want[8 + i / 2] |= (uint32_t)ramp_half(t, i) << 16 * (i % 2);
            want[12 + i / 2] |= (uint32_t)ramp_half(from, i) << 16 * (i % 2);
        }
        for (unsigned i = 0; i < 16; i++)
            CHECK_EQ(out[t * 16 + i], want[i], "transposed matrices");
    }
}

static void test_cache_policy(void) {
    struct job j = {
        .threads = 32,
        .in = ramp,
        .in_words = 1024,
        .body = "createpolicy.fractional.L2::evict_first.b64 %d4, 1.0;\n"
                "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d5, 0f3F000000;\n"
                "mul.wide.u32 %d3, %r1, 8;\nadd.u64 %d3, %d3, %d1;\n"
                "ld.global.L1::evict_first.L2::cache_hint.v2.b32 {%r4, %r5}, [ %d3 + 0 ], %d4;\n"
                "ld.global.L1::evict_last.L2::cache_hint.b16 %h1, [%d3+2], %d5;\n"
                "cvt.u32.u16 %r6, %h1;\nadd.u32 %r4, %r4, %r5;\nadd.u32 %r4, %r4, %r6;\n"
                "st.global.L1::evict_last.L2::cache_hint.b32 [%d2], %r4, %d5;\n"};
    job_clean("cache policies", &j);
    for (unsigned t = 0; t < 32; t++)
        CHECK_EQ(out[t], ramp[2 * t] + ramp[2 * t + 1] + (ramp[2 * t] >> 16), "cache policies");
}

static void test_results(void) {
    test_cp_async();
    test_matrices();
    test_matrices_transposed();
    test_cache_policy();
    test_widths();
    test_vectors();
    test_spaces();
    test_atomics();
    test_atomic_floats();
}

int main(int argc, char **argv) {
    for (uint32_t i = 0; i < 1024; i++)
        ramp[i] = i * 3 + 1;
    if (use_device(argc, argv)) {
        test_results();
        return report();
    }
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (!use_level(l))
            continue;
        test_results();
        test_bounds();
        test_alignment();
    }
    check_elsewhere(TEST_MEMORY);
    return report();
}
