/*
 * test_tensor.c - mma and wgmma against exact rationals, on every architecture that the emulator
 * knows; published vectors; results that an H200 gave.
 *
 *   ptx_tensor VECTORS               on the emulator, on every x86-64 level of this machine
 *   ptx_tensor VECTORS --device D    an H200 (cuda:0) against the reference for sm_90
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/gpu.h"
#include "tests/ptx/harness.h"
#include "tests/times.h"
#include "tests/ptx/mma_tiles.h"
#include "tests/ptx/rows.h"
#include "tests/ptx/tensor_ref.h"

static const enum ref_type ref_types[] = {
    [TENSOR_F16] = REF_F16,   [TENSOR_BF16] = REF_BF16, [TENSOR_TF32] = REF_TF32,
    [TENSOR_E4M3] = REF_E4M3, [TENSOR_E5M2] = REF_E5M2, [TENSOR_F32] = REF_F32};

/* ---- what each architecture computes: the published tables again ----------------------------- */

static struct ref_core core_of(const struct mma_insn *in, unsigned arch) {
    bool newer = arch >= 90, f16 = in->f16_out;
    struct ref_core core = {.block = newer ? 16 : 8,
                            .fraction = newer ? 25 : 24,
                            .floor = f16 ? (newer ? -21 : -20) : (newer ? -133 : -132),
                            .end = f16 ? REF_NEAREST_F16 : REF_CUT_F32};
    if (in->type == TENSOR_TF32)
        core.block /= 2;
    if (in->per < 4)
        return core;
    if (arch == 89 || mma_is_group(in)) {
        core.block = arch == 89 ? 16 : 32;
        core.fraction = 13;
        core.end = f16 ? REF_NEAREST_F16 : REF_CUT_E8M13;
    } else if (arch == 120) {
        core.block = 32;
    } else {
        core.converted = true;
    }
    return core;
}

/* A chain of fused multiply-adds in increasing k, by MPFR.  A NaN: of b, c, a, the first. */
static uint64_t chain_f64(const uint64_t *a, const uint64_t *b, unsigned k, uint64_t c) {
    const uint64_t quiet = 0x0008000000000000;
    for (unsigned i = 0; i < k; i++) {
        uint64_t d = ref_f64(REF_FMA, a[i], b[i], c, REF_RN);
        if (ref_is_nan64(d))
            d = ref_is_nan64(b[i])   ? b[i] | quiet
                : ref_is_nan64(c)    ? c | quiet
                : ref_is_nan64(a[i]) ? a[i] | quiet
                                     : 0xfff8000000000000;
        c = d;
    }
    return c;
}

static uint64_t sum_int(const struct mma_insn *in, const uint64_t *a, const uint64_t *b,
                        uint64_t c) {
    int64_t sum = (int32_t)c;
    for (unsigned k = 0; k < in->k; k++)
        sum += in->kind == MMA_S8 ? (int64_t)(int8_t)a[k] * (int8_t)b[k] : (int64_t)(a[k] * b[k]);
    if (strstr(in->name, "satfinite"))
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (uint32_t)sum;
}

static uint64_t expected(const struct mma_insn *in, unsigned arch, const uint64_t *a,
                         const uint64_t *b, uint64_t c) {
    if (in->kind == MMA_F64)
        return chain_f64(a, b, in->k, c);
    if (in->kind != MMA_FLOAT)
        return sum_int(in, a, b, c);
    struct ref_core core = core_of(in, arch);
    return ref_tensor_dot(&core, ref_types[in->type], a, b, in->k, (uint32_t)c);
}

/* ---- an instruction on some tiles ------------------------------------------------------------ */

#define TILES MMA_FAMILIES

static struct mma_tile tiles[TILES];
static uint64_t want[TILES][64][8];
static uint8_t a_regs[TILES * 4096], b_regs[TILES * 4096], c_regs[TILES * 4096],
    d_regs[TILES * 4096];

static const char *target_for(const struct mma_insn *in, char room[16]) {
    snprintf(room, 16, "sm_%u%s", in->least, mma_is_group(in) ? "a" : "");
    return room;
}

static status_t load(struct dev_image **image, struct device *dev, const struct mma_insn *in,
                     const char *target) {
    static char text[16384];
    size_t size = mma_kernel(text, sizeof text, in, target);
    harness_note(text, size);
    return device_load(image, dev, in->name, text, size);
}

/* A GPU is opened once: that takes a while, and nothing of it changes. */
static struct device *gpu;

static void check_tiles(const char *device, const struct mma_insn *in, unsigned count) {
    struct device *dev = gpu;
    struct dev_image *image = NULL;
    char target[16];
    status_t st = OK;
    unsigned wrong = 0;
    checks++;
    for (unsigned n = 0; n < count; n++)
        mma_registers(a_regs + n * mma_bytes_a(in), b_regs + n * mma_bytes_b(in),
                      c_regs + n * mma_bytes_c(in), in, &tiles[n]);
    if (!gpu)
        TRY(device_open(&dev, device, NULL));
    TRY(load(&image, dev, in, target_for(in, target)));
    TRY(mma_run(d_regs, NULL, dev, image, in, count, a_regs, b_regs, c_regs));
    for (unsigned n = 0; n < count; n++)
        for (unsigned i = 0; i < in->m; i++)
            for (unsigned j = 0; j < 8; j++) {
                uint64_t got = mma_result(in, d_regs + n * mma_bytes_c(in), i, j);
                if (got == want[n][i][j] || wrong++ > 2)
                    continue;
                printf("FAIL %s %s: tile %u (%u, %u): got %llx, want %llx\n", device, in->name, n,
                       i, j, (unsigned long long)got, (unsigned long long)want[n][i][j]);
            }
done:
    if (st != OK)
        printf("FAIL %s %s: %s\n", device, in->name, status_message());
    failures += wrong || st != OK;
    image_unload(image);
    if (!gpu)
        device_close(dev);
}

/* One tile of each family of operands. */
static void make_tiles(const struct mma_insn *in, unsigned arch, unsigned seed) {
    for (unsigned f = 0; f < TILES; f++) {
        mma_fill(&tiles[f], in, (enum mma_family)f, 1000 + seed);
        for (unsigned i = 0; i < in->m; i++)
            for (unsigned j = 0; j < 8; j++)
                want[f][i][j] = expected(in, arch, tiles[f].a[i], tiles[f].b[j], tiles[f].c[i][j]);
    }
}

static bool arch_has(const struct mma_insn *in, unsigned arch) {
    return in->least <= arch && (!mma_is_group(in) || arch == 90);
}

static void test_architectures(void) {
    static const unsigned archs[] = {75, 80, 86, 89, 90, 100, 120};
    const bool shorter = times(3) < 3; /* each on its first, and a third of the later ones */
    for (size_t n = 0; n < mma_insn_count; n++)
        for (size_t a = 0; a < COUNT(archs); a++) {
            char device[16];
            const struct mma_insn *in = &mma_insns[n];
            bool later = archs[a] > in->least && !mma_is_group(in);
            if (!arch_has(in, archs[a]) || (shorter && later && (n + a) % 3 != 0))
                continue;
            snprintf(device, sizeof device, "cpu:sm_%u", archs[a]);
            make_tiles(in, archs[a], archs[a]);
            for (int l = 0; l < LEVEL_COUNT; l++)
                if (use_level(l))
                    check_tiles(device, in, TILES);
        }
}

/* ---- single outputs -------------------------------------------------------------------------- */

static const struct mma_insn *find(const char *name) {
    for (size_t i = 0; i < mma_insn_count; i++)
        if (strcmp(mma_insns[i].name, name) == 0)
            return &mma_insns[i];
    return NULL;
}

/* All of a tile is zero but one row, one column and their element of c. */
static void place(unsigned n, const struct mma_insn *in, unsigned i, unsigned j, const uint64_t *ab,
                  uint64_t c, uint64_t d) {
    memset(&tiles[n], 0, sizeof tiles[n]);
    memset(want[n], 0, sizeof want[n]);
    for (unsigned k = 0; k < in->k; k++) {
        tiles[n].a[i][k] = ab[2 * k];
        tiles[n].b[j][k] = ab[2 * k + 1];
    }
    tiles[n].c[i][j] = c;
    for (unsigned row = 0; row < in->m; row++) /* zero times infinity, and NaN, are elsewhere too */
        for (unsigned col = 0; col < 8; col++)
            want[n][row][col] =
                expected(in, 90, tiles[n].a[row], tiles[n].b[col], tiles[n].c[row][col]);
    want[n][i][j] = d;
}

#define F16_MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#define F16_F16_MMA "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
#define BF16_MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"

/* Where the two published models, MMA-Sim's and Khattak and Mikaitis's, part: as the H200 has it. */
static void test_published(const char *device) {
    uint64_t ab[32];
    for (int k = 0; k < 32; k++)
        ab[k] = 0x1980; /* 2^-76 */
    place(0, find(BF16_MMA), 3, 5, ab, 0, 0x00000002);
    check_tiles(device, find(BF16_MMA), 1);
    uint64_t tie[32] = {0x0c00, 0x0800, 0x0001, 0x0001}; /* 2^-12 2^-13 + 2^-24 2^-24 */
    place(0, find(F16_F16_MMA), 15, 0, tie, 0, 0);
    check_tiles(device, find(F16_F16_MMA), 1);
    uint64_t small[32] = {0x1a00, 0x9980}; /* -2^-75 2^-76: cut to zero, which is +0 */
    place(0, find(BF16_MMA), 0, 7, small, 0, 0);
    check_tiles(device, find(BF16_MMA), 1);
    uint64_t zeros[32];
    for (int k = 0; k < 32; k++)
        zeros[k] = 0x8000 * (uint64_t)(k % 2);
    place(0, find(F16_MMA), 8, 1, zeros, 0x80000000, 0);
    check_tiles(device, find(F16_MMA), 1);
}

/*
 * 2^25 - 2^25 and 14 ones: Hopper keeps all ones of its single block; Ampere loses the 6 of the block
 * that holds 2^25, and adds the other 8.
 */
static void test_architectures_differ(void) {
    uint64_t ab[32] = {0x7800, 0x6400, 0xf800, 0x6400}; /* 2^15 2^10 */
    for (int k = 4; k < 32; k++)
        ab[k] = 0x3c00;
    place(0, find(F16_MMA), 9, 4, ab, 0, 0x41600000);
    check_tiles("cpu:sm_90", find(F16_MMA), 1);
    want[0][9][4] = 0x41000000;
    check_tiles("cpu:sm_80", find(F16_MMA), 1);
    check_tiles("cpu:sm_89", find(F16_MMA), 1);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* 0 finite, 1 infinite, 2 NaN; of a format with `fraction` bits, sign first. */
static int class_of(uint64_t bits, unsigned width, unsigned fraction) {
    uint64_t infinity = ((UINT64_C(1) << (width - 1 - fraction)) - 1) << fraction;
    uint64_t size = bits & ((UINT64_C(1) << (width - 1)) - 1);
    return size > infinity ? 2 : size == infinity;
}

static void test_events(const char *name, enum mma_family family, unsigned width,
                        unsigned fraction) {
    const struct mma_insn *in = find(name);
    const struct device_options options = {.shadow = true};
    struct dev_events events = {0};
    struct device *dev = NULL;
    struct dev_image *image = NULL;
    char target[16];
    uint64_t nan = 0, inf = 0;
    status_t st = OK;
    mma_fill(&tiles[0], in, family, 3);
    mma_registers(a_regs, b_regs, c_regs, in, &tiles[0]);
    for (unsigned i = 0; i < in->m; i++)
        for (unsigned j = 0; j < 8; j++) {
            uint64_t c = tiles[0].c[i][j];
            unsigned bits = in->f16_out ? 16 : 32, low = in->f16_out ? 10 : 23;
            int worst = class_of(c, bits, low);
            int d = class_of(expected(in, 90, tiles[0].a[i], tiles[0].b[j], c), bits, low);
            for (unsigned k = 0; k < in->k; k++) {
                int a = class_of(tiles[0].a[i][k], width, fraction);
                int b = class_of(tiles[0].b[j][k], width, fraction);
                worst = a > worst ? a : worst;
                worst = b > worst ? b : worst;
            }
            nan += d == 2 && worst < 2;
            inf += d == 1 && worst == 0;
        }
    TRY(device_open(&dev, "cpu", &options));
    TRY(load(&image, dev, in, target_for(in, target)));
    TRY(mma_run(d_regs, &events, dev, image, in, 1, a_regs, b_regs, c_regs));
done:
    CHECK_EQ(st, OK, name);
    CHECK_EQ(events.nan_born, nan, name);
    CHECK_EQ(events.inf_born, inf, name);
    CHECK_EQ(nan + inf > 0, 1, name);
    image_unload(image);
    device_close(dev);
}

/* ---- results of an H200 ---------------------------------------------------------------------- */

/* "name family d c a b a b ...", hexadecimal; false at the end or for a broken line. */
static bool read_vector(FILE *f, char name[80], uint64_t *d, uint64_t *c, uint64_t ab[64]) {
    static char line[2048];
    char *save, *word;
    if (!fgets(line, sizeof line, f) || !(word = strtok_r(line, "\t", &save)))
        return false;
    snprintf(name, 80, "%s", word);
    strtok_r(NULL, "\t", &save);
    uint64_t *const at[2] = {d, c};
    for (int i = 0; i < 66; i++) {
        uint64_t *to = i < 2 ? at[i] : &ab[i - 2];
        word = strtok_r(NULL, "\t\n", &save);
        *to = word ? strtoull(word, NULL, 16) : 0;
        if (!word && i < 2)
            return false;
    }
    return true;
}

static void test_recorded(const char *path, const char *device) {
    FILE *f = fopen(path, "r");
    char name[80], previous[80] = "";
    uint64_t d, c, ab[64];
    unsigned count = 0, total = 0;
    CHECK_EQ(f != NULL, 1, path);
    while (f && read_vector(f, name, &d, &c, ab)) {
        if (count == TILES || (count && strcmp(name, previous) != 0)) {
            check_tiles(device, find(previous), count);
            count = 0;
        }
        const struct mma_insn *in = find(name);
        if (!in) {
            CHECK_EQ(0, 1, name);
            break;
        }
        snprintf(previous, sizeof previous, "%s", name);
        unsigned n = total++;
        place(count++, in, n * 7 % in->m, n % 8, ab, c, d);
    }
    if (count)
        check_tiles(device, find(previous), count);
    CHECK_EQ(total > 1000, 1, "vectors of an H200");
    if (f)
        fclose(f);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refused(const char *device, const char *target, const char *insn, status_t code,
                    const char *why) {
    static char text[2048];
    struct device *dev;
    struct dev_image *image = NULL;
    size_t size = (size_t)snprintf(
        text, sizeof text,
        ".version 8.7\n.target %s\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %%r<20>;\n"
        ".reg .b64 %%d<20>;\n.reg .pred %%p<2>;\n%s\nret;\n}\n",
        target, insn);
    if (device_open(&dev, device, NULL) != OK) {
        CHECK_EQ(0, 1, status_message());
        return;
    }
    CHECK_EQ(device_load(&image, dev, "t", text, size), code, insn);
    CHECK_EQ(strstr(status_message(), why) != NULL, 1, status_message());
    image_unload(image);
    device_close(dev);
}

static void test_refused(void) {
    static const char *const bf16 =
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5}, "
        "{%r6}, {%r0, %r1, %r2, %r3};";
    static const char *const f64 =
        "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%d4, %d5}, {%d6}, "
        "{%d0, %d1, %d2, %d3};";
    static const char *const fp8 =
        "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5}, "
        "{%r6}, {%r0, %r1, %r2, %r3};";
    static const char *const group =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %d0, %d1, %p0, 1, "
        "1, 0, 0;";
    refused("cpu:sm_75", "sm_75", bf16, ERR_UNSUPPORTED, "it needs sm_80");
    refused("cpu:sm_80", "sm_75", bf16, ERR_UNSUPPORTED, "it needs sm_80");
    refused("cpu:sm_80", "sm_80", f64, ERR_UNSUPPORTED, "it needs sm_90");
    refused("cpu:sm_86", "sm_86", fp8, ERR_UNSUPPORTED, "it needs sm_89");
    refused("cpu:sm_90", "sm_90", group, ERR_UNSUPPORTED, "for the target sm_90a on sm_90 only");
    refused("cpu:sm_100", "sm_90a", group, ERR_TARGET, "compiled for sm_90a");
    refused("cpu", "sm_90",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, "
            "%r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3};",
            ERR_UNSUPPORTED, "do not go together");
    refused("cpu", "sm_90",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%r0, %r1, %r2, %r3}, {%r4, %r5, "
            "%r6, %r7}, {%r8, %r9}, {%r0, %r1};",
            ERR_UNSUPPORTED, "different types");
    refused("cpu", "sm_90",
            "mma.sync.aligned.m16n16k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, "
            "%r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3};",
            ERR_UNSUPPORTED, "no such shape");
    refused("cpu", "sm_90",
            "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, "
            "%r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3};",
            ERR_UNSUPPORTED, "modifier");
    refused("cpu", "sm_90",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2}, {%r4, %r5, %r6, "
            "%r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3};",
            ERR_SYNTAX, "vector of the wrong length");
    refused("cpu", "sm_90",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, "
            "%r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3};",
            ERR_UNSUPPORTED, "a type is missing");
    refused("cpu", "sm_90a",
            "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%r0, %r1, %r2, %r3, %r4, %r5}, "
            "%d0, %d1, %p0, 1, 1, 0, 0;",
            ERR_UNSUPPORTED, "n must be a multiple of 8");
    refused("cpu", "sm_90a",
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %d0, %d1, "
            "%p0, 2, 1, 0, 0;",
            ERR_UNSUPPORTED, "this form");
}

/*
 * e4m3 with e5m2 on a core that makes f16 of them: 2^-9 2^15 + 2^-9 2^-8.  As f16 2^-9 is normal, so
 * E is 6 and 2^-17 counts; with e4m3's least exponent, -6, E would be 9 and it would be cut off.
 */
static void test_mixed_eight(const char *device) {
    const char *before = job_device;
    struct job j = {.threads = 32,
                    .body = "and.b32 %r4, %r1, 3;\nsetp.eq.u32 %p0, %r4, 0;\n"
                            "selp.b32 %r5, 0x0101, 0, %p0;\nselp.b32 %r6, 0x1c78, 0, %p0;\n"
                            "mov.b32 %r7, 0;\nmma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 "
                            "{%r8, %r9, %r10, %r11}, {%r5, %r5, %r7, %r7}, {%r6, %r7}, "
                            "{%r7, %r7, %r7, %r7};\nst.global.u32 [%d2], %r8;\n"
                            "st.global.u32 [%d2+128], %r11;\n"};
    job_device = device;
    job_clean("mixed", &j);
    job_device = before;
    for (int i = 0; i < 64; i++)
        CHECK_EQ(out[i], 0x42800001, "2^6 + 2^-17");
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[2], "--device") == 0) {
        if (gpu_is_missing(argv[3]))
            return EXIT_SKIPPED;
        if (device_open(&gpu, argv[3], NULL) != OK) {
            printf("FAIL %s\n", status_message());
            return 1;
        }
        for (size_t n = 0; n < mma_insn_count; n++) {
            make_tiles(&mma_insns[n], 90, 0);
            check_tiles(argv[3], &mma_insns[n], TILES);
        }
        test_published(argv[3]);
        test_recorded(argv[1], argv[3]);
        test_mixed_eight(argv[3]);
        device_close(gpu);
        return report();
    }
    if (argc != 2) {
        fprintf(stderr, "usage: ptx_tensor VECTORS [--device DEVICE]\n");
        return 2;
    }
    test_architectures();
    for (int l = 0; l < LEVEL_COUNT; l++)
        if (use_level(l)) {
            test_published("cpu");
            test_architectures_differ();
            test_events(F16_MMA, MMA_SPECIAL, 16, 10);
            test_events(F16_F16_MMA, MMA_HUGE, 16, 10);
            test_events(BF16_MMA, MMA_HUGE, 16, 7);
            test_events(BF16_MMA, MMA_SPECIAL, 16, 7);
            test_recorded(argv[1], "cpu");
            test_mixed_eight("cpu");
        }
    test_refused();
    check_elsewhere(TEST_TENSOR);
    ref_free();
    return report();
}
