/*
 * test_wgmma.c - wgmma's forms: matrix descriptors with every swizzle, transposes, signs, a in
 * registers, accumulators that do not count, widths; and what a warpgroup may not do.
 *
 *   ptx_wgmma                          on the emulator
 *   ptx_wgmma --device D [FORMS]       on device D (cuda:0: an H200)
 *
 * A form is drawn at random; its matrices are taken element by element from the image of shared
 * memory by the canonical layouts, its sums are tensor_dot's, which ptx_tensor tests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/ptx/tensor.h"
#include "tests/ptx/gpu.h"
#include "tests/ptx/harness.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SHARED_BYTES 40960

static const struct kind {
    const char *types; /* of d, a, b */
    enum tensor_type type;
    unsigned bytes; /* of an element */
    bool f16_out, integer;
    uint32_t clear, set; /* of 32 random bits: which to keep, so that numbers are moderate */
} kinds[] = {
    {"f32.f16.f16", TENSOR_F16, 2, false, false, 0x8fff8fff, 0x30003000},
    {"f16.f16.f16", TENSOR_F16, 2, true, false, 0x8fff8fff, 0x30003000},
    {"f32.bf16.bf16", TENSOR_BF16, 2, false, false, 0x81ff81ff, 0x3e003e00},
    {"f32.tf32.tf32", TENSOR_TF32, 4, false, false, 0x81ffffff, 0x3e000000},
    {"f32.e4m3.e4m3", TENSOR_E4M3, 1, false, false, 0xffffffff, 0},
    {"f16.e5m2.e5m2", TENSOR_E5M2, 1, true, false, 0xbfbfbfbf, 0},
    {"s32.s8.s8", TENSOR_F32, 1, false, true, 0xffffffff, 0},
};

struct operand { /* a or b; sizes in bytes */
    unsigned start, leading, stride, base, swizzle;
    bool trans, negative;
};

struct form {
    const struct kind *kind;
    unsigned n;
    bool a_in_registers, accumulate;
    struct operand side[2];
};

/* ---- the layouts: element (mn, k) of a matrix in shared memory ------------------------------- */

/*
 * In units of T elements, 16 bytes: without swizzle ((8,m),(T,2)):((1T,SBO),(1,LBO)); swizzled
 * ((8,m),(T,2)):((wT,SBO),(1,T)) with w = 2, 4, 8; transposed ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO)) and
 * ((T,w,m),(8,k)):((1,T,LBO),(wT,SBO)).  Then address bits 4.. are XORed with bits 7.., less the base.
 */
static unsigned element_address(const struct operand *o, unsigned bytes, unsigned mn, unsigned k) {
    static const unsigned widths[] = {1, 8, 4, 2}; /* by swizzle mode: none, 128, 64, 32 bytes */
    unsigned w = widths[o->swizzle], t = 16 / bytes, at = o->start;
    if (!o->trans) {
        at += mn % 8 * w * 16 + mn / 8 * o->stride + k % t * bytes;
        at += k / t * (o->swizzle ? 16 : o->leading);
    } else if (!o->swizzle) {
        at += mn % t * bytes + mn / t * o->stride + k % 8 * 16 + k / 8 * o->leading;
    } else {
        unsigned across = t * w;
        at += mn % across * bytes + mn / across * o->leading + k % 8 * w * 16 + k / 8 * o->stride;
    }
    return at ^ ((at / 128 - o->base) % w * 16);
}

static uint64_t descriptor(const struct operand *o) {
    return (uint64_t)o->start >> 4 | (uint64_t)(o->leading >> 4) << 16 |
           (uint64_t)(o->stride >> 4) << 32 | (uint64_t)o->base << 49 | (uint64_t)o->swizzle << 62;
}

/* ---- forms ----------------------------------------------------------------------------------- */

static struct operand draw_operand(struct rng *rng, bool may_transpose) {
    return (struct operand){.start = 16 * (unsigned)rng_below(rng, 256),
                            .leading = 16 * (unsigned)rng_below(rng, 64),
                            .stride = 16 * (unsigned)rng_below(rng, 64),
                            .base = rng_below(rng, 2) ? (unsigned)rng_below(rng, 8) : 0,
                            .swizzle = (unsigned)rng_below(rng, 4),
                            .trans = may_transpose && rng_below(rng, 2),
                            .negative = rng_below(rng, 3) == 0};
}

static struct form draw_form(struct rng *rng, unsigned number) {
    static const unsigned widths[] = {8, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    struct form f = {.kind = &kinds[number % COUNT(kinds)],
                     .n = widths[rng_below(rng, COUNT(widths))],
                     .a_in_registers = rng_below(rng, 3) == 0,
                     .accumulate = rng_below(rng, 4) != 0};
    for (int s = 0; s < 2; s++)
        f.side[s] = draw_operand(rng, f.kind->bytes == 2);
    if (f.a_in_registers)
        f.side[0].trans = false;
    return f;
}

static unsigned d_count(const struct form *f) {
    return f->n / (f->kind->f16_out ? 4 : 2);
}

static int registers(char *text, size_t room, const char *name, unsigned count) {
    int n = snprintf(text, room, "{");
    for (unsigned i = 0; i < count; i++)
        n += snprintf(text + n, room - (size_t)n, "%s%%%s%u", i ? ", " : "", name, i);
    return n + snprintf(text + n, room - (size_t)n, "}");
}

/* Thread t's register r of d at (r * 128 + t) * 4; likewise of a. */
static const char *const head =
    ".version 8.7\n.target sm_90a\n.address_size 64\n"
    ".visible .entry form(.param .u64 pd, .param .u64 pa, .param .u64 image, .param .u64 da,\n"
    "                     .param .u64 db, .param .u32 accumulate)\n{\n"
    ".reg .b32 %t<6>, %v<4>, %a<4>, %d<128>;\n.reg .b64 %x<8>;\n.reg .pred %p, %q;\n"
    ".shared .align 1024 .b8 s[40960];\n"
    "mov.u32 %t0, %tid.x;\nmov.u32 %t1, s;\nshl.b32 %t2, %t0, 4;\nadd.u32 %t3, %t1, %t2;\n"
    "ld.param.u64 %x0, [image];\ncvt.u64.u32 %x1, %t2;\nadd.u64 %x0, %x0, %x1;\nmov.u32 %t4, 0;\n"
    "copy:\nld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%x0];\n"
    "st.shared.v4.b32 [%t3], {%v0, %v1, %v2, %v3};\n"
    "add.u64 %x0, %x0, 2048;\nadd.u32 %t3, %t3, 2048;\nadd.u32 %t4, %t4, 1;\n"
    "setp.lt.u32 %q, %t4, 20;\n@%q bra copy;\nfence.proxy.async;\nbar.sync 0;\n"
    "shr.u32 %t5, %t1, 4;\ncvt.u64.u32 %x2, %t5;\nld.param.u64 %x3, [da];\nadd.u64 %x3, %x3, %x2;\n"
    "ld.param.u64 %x4, [db];\nadd.u64 %x4, %x4, %x2;\nld.param.u32 %t5, [accumulate];\n"
    "setp.ne.u32 %p, %t5, 0;\nmul.wide.u32 %x5, %t0, 4;\nld.param.u64 %x6, [pd];\n"
    "add.u64 %x6, %x6, %x5;\nld.param.u64 %x7, [pa];\nadd.u64 %x7, %x7, %x5;\n";

static size_t make_kernel(char *text, size_t room, const struct form *f) {
    int n = snprintf(text, room, "%s", head);
    for (unsigned r = 0; r < d_count(f); r++)
        n += snprintf(text + n, room - (size_t)n, "ld.global.b32 %%d%u, [%%x6+%u];\n", r, r * 512);
    for (unsigned r = 0; r < 4; r++)
        n += snprintf(text + n, room - (size_t)n, "ld.global.b32 %%a%u, [%%x7+%u];\n", r, r * 512);
    n += snprintf(text + n, room - (size_t)n,
                  "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n%uk%u.%s ", f->n,
                  32 / f->kind->bytes, f->kind->types);
    n += registers(text + n, room - (size_t)n, "d", d_count(f));
    n += snprintf(text + n, room - (size_t)n, ", ");
    n += f->a_in_registers ? registers(text + n, room - (size_t)n, "a", 4)
                           : snprintf(text + n, room - (size_t)n, "%%x3");
    n += snprintf(text + n, room - (size_t)n, ", %%x4, %%p");
    for (int s = 0; s < 2 && !f->kind->integer; s++)
        n += snprintf(text + n, room - (size_t)n, ", %d", f->side[s].negative ? -1 : 1);
    for (int s = f->a_in_registers; s < 2 && f->kind->bytes == 2; s++)
        n += snprintf(text + n, room - (size_t)n, ", %d", f->side[s].trans);
    n += snprintf(text + n, room - (size_t)n,
                  ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    for (unsigned r = 0; r < d_count(f); r++)
        n += snprintf(text + n, room - (size_t)n, "st.global.b32 [%%x6+%u], %%d%u;\n", r * 512, r);
    return (size_t)(n + snprintf(text + n, room - (size_t)n, "ret;\n}\n"));
}

/* ---- one form -------------------------------------------------------------------------------- */

static uint32_t image_words[SHARED_BYTES / 4], a_words[4 * 128], d_before[128 * 128],
    d_after[128 * 128];

static void draw_data(struct rng *rng, const struct form *f) {
    const struct kind *kind = f->kind;
    for (size_t i = 0; i < COUNT(image_words); i++)
        image_words[i] = ((uint32_t)rng_u64(rng) & kind->clear) | kind->set;
    for (size_t i = 0; i < COUNT(a_words); i++)
        a_words[i] = ((uint32_t)rng_u64(rng) & kind->clear) | kind->set;
    for (size_t i = 0; i < d_count(f) * 128; i++)
        d_before[i] = kind->integer   ? (uint32_t)rng_u64(rng)
                      : kind->f16_out ? ((uint32_t)rng_u64(rng) & 0x8fff8fff) | 0x30003000
                                      : ((uint32_t)rng_u64(rng) & 0x83ffffff) | 0x3c000000;
}

static uint32_t element(const struct form *f, int side, unsigned mn, unsigned k) {
    unsigned bytes = f->kind->bytes;
    uint32_t v = 0;
    if (side == 0 && f->a_in_registers) { /* as in mma: 8 rows by 4 lanes' registers */
        unsigned per = 4 / bytes, lane = mn % 8 * 4 + k / per % 4;
        unsigned r = mn % 16 / 8 + k / (4 * per) * 2;
        memcpy(&v, (const uint8_t *)&a_words[r * 128 + mn / 16 * 32 + lane] + k % per * bytes,
               bytes);
    } else {
        memcpy(&v, (const uint8_t *)image_words + element_address(&f->side[side], bytes, mn, k),
               bytes);
    }
    if (f->side[side].negative && !f->kind->integer)
        v ^= 1u << (8 * bytes - 1);
    return v;
}

static uint32_t accumulator(const struct form *f, const uint32_t *words, unsigned i, unsigned j) {
    unsigned thread = i / 16 * 32 + i % 8 * 4 + j % 8 / 2, half = i % 16 / 8;
    if (f->kind->f16_out)
        return words[(j / 8 * 2 + half) * 128 + thread] >> 16 * (j % 2) & 0xffff;
    return words[(j / 8 * 4 + half * 2 + j % 2) * 128 + thread];
}

static uint32_t expected(const struct form *f, const uint32_t *a, const uint32_t *b, uint32_t c) {
    unsigned k = 32 / f->kind->bytes;
    if (f->kind->integer) {
        for (unsigned i = 0; i < k; i++)
            c += (uint32_t)((int8_t)a[i] * (int8_t)b[i]);
        return c;
    }
    bool f16 = f->kind->f16_out, eight = f->kind->bytes == 1;
    const struct tensor_model m = {.block = (uint8_t)k,
                                   .fraction = eight ? 13 : 25,
                                   .floor = f16 ? -21 : -133,
                                   .end = f16     ? TENSOR_RNE_F16
                                          : eight ? TENSOR_RZ_E8M13
                                                  : TENSOR_RZ_F32};
    return tensor_dot(&m, (enum tensor_type[2]){f->kind->type, f->kind->type}, a, b, k, c);
}

static status_t run_form(struct device *dev, const struct form *f) {
    status_t st = OK;
    static char text[32768];
    struct dev_image *image = NULL;
    struct dev_buf *buf[3] = {0};
    uint64_t address[3], da = descriptor(&f->side[0]), db = descriptor(&f->side[1]);
    uint32_t accumulate = f->accumulate;
    const size_t size[3] = {d_count(f) * 512, sizeof a_words, sizeof image_words};
    const void *const from[3] = {d_before, a_words, image_words};
    const void *args[6] = {&address[0], &address[1], &address[2], &da, &db, &accumulate};
    size_t length = make_kernel(text, sizeof text, f);
    harness_note(text, length);
    TRY(device_load(&image, dev, "form", text, length));
    for (int i = 0; i < 3; i++) {
        TRY(device_alloc(&buf[i], dev, size[i]));
        TRY(buffer_write(buf[i], from[i], size[i]));
        address[i] = buffer_address(buf[i]);
    }
    struct dev_launch launch = {.image = image,
                                .entry = "form",
                                .grid = {1, 1, 1},
                                .block = {128, 1, 1},
                                .args = args,
                                .arg_count = 6};
    TRY(device_launch(&run, dev, &launch));
    if (!run.completed || run.fault_total)
        TRY(FAIL(ERR_DEVICE, "%s", run.faults[0].text));
    TRY(buffer_read(d_after, buf[0], size[0]));
done:
    for (int i = 0; i < 3; i++)
        buffer_free(buf[i]);
    image_unload(image);
    return st;
}

static void describe(const struct form *f) {
    printf("  m64n%u %s, a in %s, accumulate %d", f->n, f->kind->types,
           f->a_in_registers ? "registers" : "shared memory", f->accumulate);
    for (int s = 0; s < 2; s++)
        printf("; %c: start %u leading %u stride %u base %u swizzle %u trans %d sign %d", "ab"[s],
               f -> side[s].start, f->side[s].leading, f->side[s].stride, f->side[s].base,
               f->side[s].swizzle, f->side[s].trans, f->side[s].negative);
    printf("\n");
}

static uint64_t outputs;

static void check_form(struct device *dev, const char *device, uint64_t seed) {
    struct rng rng = rng_from_seed(seed);
    struct form f = draw_form(&rng, (unsigned)seed);
    unsigned k = 32 / f.kind->bytes, wrong = 0;
    checks++;
    draw_data(&rng, &f);
    if (run_form(dev, &f) != OK) {
        printf("FAIL %s form %llu: %s\n", device, (unsigned long long)seed, status_message());
        failures++;
        return;
    }
    static uint32_t a[64][32], b[256][32];
    for (unsigned i = 0; i < k; i++) {
        for (unsigned m = 0; m < 64; m++)
            a[m][i] = element(&f, 0, m, i);
        for (unsigned n = 0; n < f.n; n++)
            b[n][i] = element(&f, 1, n, i);
    }
    for (unsigned i = 0; i < 64; i++)
        for (unsigned j = 0; j < f.n; j++, outputs++) {
            uint32_t c = f.accumulate ? accumulator(&f, d_before, i, j) : 0;
            uint32_t got = accumulator(&f, d_after, i, j), want = expected(&f, a[i], b[j], c);
            if (got == want || wrong++)
                continue;
            printf("FAIL %s form %llu (%u, %u): got %x, want %x\n", device,
                   (unsigned long long)seed, i, j, got, want);
            describe(&f);
        }
    failures += wrong > 0;
}

static void check_forms(const char *device, unsigned count) {
    struct device *dev;
    if (device_open(&dev, device, NULL) != OK) {
        printf("FAIL %s: %s\n", device, status_message());
        failures++;
        return;
    }
    for (unsigned i = 0; i < count; i++)
        check_form(dev, device, i);
    device_close(dev);
}

/* ---- what a warpgroup may not do ------------------------------------------------------------- */

static const char *const group_kernel =
    ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k()%s\n{\n"
    ".reg .b32 %%r<6>, %%d<4>;\n.reg .b64 %%x<3>;\n.reg .pred %%p<2>;\n"
    ".shared .align 1024 .b8 s[8192];\nmov.u32 %%r0, %%tid.x;\nmov.u32 %%r1, s;\n"
    "and.b32 %%r2, %%r1, 0x3ffff;\nshr.u32 %%r2, %%r2, 4;\ncvt.u64.u32 %%x0, %%r2;\n"
    "shl.b32 %%r3, %%r0, 5;\n"
    "add.u32 %%r4, %%r1, %%r3;\nshr.u32 %%r5, %%r0, 5;\nmov.b32 %%d0, 0;\nmov.b32 %%d1, 0;\n"
    "mov.b32 %%d2, 0;\nmov.b32 %%d3, 0;\n%s\n"
    "wgmma.fence.sync.aligned;\n%s"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%d0, %%d1, %%d2, %%d3}, %%x1, %%x1, 1, 1, "
    "1, 0, 0;\nskip:\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n%s\n"
    "ret;\n}\n";

#define DESCRIPTOR "or.b64 %x1, %x0, 0x0000001000080000;\n"
#define WRITE "st.shared.v2.b64 [%r4], {%x0, %x0};\nst.shared.v2.b64 [%r4+16], {%x0, %x0};\n"
#define MEET "fence.proxy.async;\nbar.sync 0;\n"

static void group_job(const char *name, const char *before, const char *at, const char *after,
                      unsigned threads, const char *want) {
    bool cluster = strstr(name, "cluster") != NULL; /* of two blocks */
    static char text[4096];
    struct device *dev = NULL;
    struct dev_image *image = NULL;
    status_t st = OK;
    const struct device_options options = {.shadow = true};
    size_t size = (size_t)snprintf(text, sizeof text, group_kernel,
                                   cluster ? " .reqnctapercluster 2, 1, 1" : "", before, at, after);
    checks++;
    run = (struct dev_run){0};
    TRY(device_open(&dev, "cpu", &options));
    TRY(device_load(&image, dev, name, text, size));
    struct dev_launch launch = {
        .image = image, .entry = "k", .grid = {cluster ? 2 : 1, 1, 1}, .block = {threads, 1, 1}};
    TRY(device_launch(&run, dev, &launch));
done:
    if (st != OK ||
        (want ? !run.fault_total || !strstr(run.faults[0].text, want) : run.fault_total)) {
        printf("FAIL %s: want %s, got %s\n", name, want ? want : "no fault",
               st != OK          ? status_message()
               : run.fault_total ? run.faults[0].text
                                 : "no fault");
        failures++;
    }
    image_unload(image);
    device_close(dev);
}

static void test_groups(void) {
    group_job("clean", DESCRIPTOR WRITE MEET, "", "", 128, NULL);
    group_job("two warpgroups", DESCRIPTOR WRITE MEET, "", "", 256, NULL);
    group_job("each block of a cluster its own", DESCRIPTOR WRITE MEET, "", "", 128, NULL);
    group_job("three warps", DESCRIPTOR WRITE MEET, "", "", 96, "fewer than four warps");
    group_job("one warp goes past", DESCRIPTOR WRITE MEET,
              "setp.eq.u32 %p0, %r5, 2;\n@%p0 bra skip;\n", "", 128,
              "executed other wgmma instructions");
    group_job("half a warp", DESCRIPTOR WRITE MEET,
              "and.b32 %r5, %r0, 1;\nsetp.eq.u32 %p0, %r5, 0;\n@%p0 exit;\n", "", 128,
              "has exited");
    group_job("outside",
              "or.b64 %x1, %x0, 0x0000001000100000;\nadd.u64 %x1, %x1, 500;\n" WRITE MEET, "", "",
              128, "of shared memory");
    group_job("unwritten", DESCRIPTOR MEET, "", "", 128, "nothing has written");
    group_job("no barrier before", DESCRIPTOR WRITE, "", "", 128, "no barrier between");
    group_job("written too early", DESCRIPTOR WRITE MEET, "", WRITE, 128, "no barrier between");
    group_job("written after a barrier", DESCRIPTOR WRITE MEET, "", MEET WRITE, 128, NULL);
}

int main(int argc, char **argv) {
    if (argc >= 3 && strcmp(argv[1], "--device") == 0) {
        if (gpu_is_missing(argv[2]))
            return EXIT_SKIPPED;
        check_forms(argv[2], argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 70);
        printf("%llu outputs\n", (unsigned long long)outputs);
        return report();
    }
    for (int l = 0; l < LEVEL_COUNT; l++)
        if (use_level(l))
            check_forms("cpu", l == 1 ? 280 : 70);
    test_groups();
    check_elsewhere(TEST_WGMMA);
    return report();
}
