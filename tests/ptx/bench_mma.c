/*
 * bench_mma.c - multiply-adds per second of processor time that the emulator does in mma and wgmma.
 *
 *   bench_mma [SECONDS]
 *
 * Operands are drawn once from a family (see mma_tiles.h) and accumulators go on from step to step;
 * one warp or warpgroup, on every x86-64 level of this machine, the shadow off.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "device/device.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define STEPS 512

static const struct subject {
    const char *name;
    unsigned d, a, b, macs; /* registers; multiply-adds of one warp */
    uint32_t mask, set;     /* of random operand words */
} subjects[] = {
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, 4, 2, 2048, 0x87ff87ff, 0x38003800},
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 2, 4, 2, 2048, 0x83ff83ff, 0x1c001c00},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 4, 2, 2048, 0x80ff80ff, 0x3f003f00},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 4, 4, 2, 1024, 0x80ffffff, 0x3f000000},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 4, 2, 4096, 0xbfbfbfbf, 0},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 4, 4, 2, 4096, 0xffffffff, 0},
};

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int list(char *text, size_t room, const char *name, unsigned first, unsigned count) {
    int n = snprintf(text, room, "{");
    for (unsigned i = 0; i < count; i++)
        n += snprintf(text + n, room - (size_t)n, "%s%%%s%u", i ? ", " : "", name, first + i);
    return n + snprintf(text + n, room - (size_t)n, "}");
}

static size_t make_kernel(char *text, size_t room, const struct subject *s) {
    int n =
        snprintf(text, room,
                 ".version 8.7\n.target sm_90\n.address_size 64\n"
                 ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %%r<4>, %%v<12>;\n"
                 ".reg .b64 %%x<4>;\n.reg .pred %%q;\nld.param.u64 %%x0, [p];\n"
                 "mov.u32 %%r0, %%tid.x;\nmul.wide.u32 %%x1, %%r0, 4;\nadd.u64 %%x0, %%x0, %%x1;\n"
                 "mov.u32 %%r1, 0;\n");
    for (unsigned i = 0; i < s->a + s->b; i++)
        n += snprintf(text + n, room - (size_t)n, "ld.global.b32 %%v%u, [%%x0+%u];\n", i, i * 128);
    for (unsigned i = 0; i < s->d; i++)
        n += snprintf(text + n, room - (size_t)n, "mov.b32 %%v%u, 0;\n", s->a + s->b + i);
    n += snprintf(text + n, room - (size_t)n, "again:\n%s ", s->name);
    n += list(text + n, room - (size_t)n, "v", s->a + s->b, s->d);
    n += snprintf(text + n, room - (size_t)n, ", ");
    n += list(text + n, room - (size_t)n, "v", 0, s->a);
    n += snprintf(text + n, room - (size_t)n, ", ");
    n += list(text + n, room - (size_t)n, "v", s->a, s->b);
    n += snprintf(text + n, room - (size_t)n, ", ");
    n += list(text + n, room - (size_t)n, "v", s->a + s->b, s->d);
    n +=
        snprintf(text + n, room - (size_t)n,
                 ";\nadd.u32 %%r1, %%r1, 1;\nsetp.lt.u32 %%q, %%r1, %d;\n@%%q bra again;\n", STEPS);
    for (unsigned i = 0; i < s->d; i++)
        n += snprintf(text + n, room - (size_t)n, "st.global.b32 [%%x0+%u], %%v%u;\n", i * 128,
                      s->a + s->b + i);
    return (size_t)(n + snprintf(text + n, room - (size_t)n, "ret;\n}\n"));
}

static status_t measure(const struct subject *s, const char *level, double seconds) {
    status_t st = OK;
    static char text[8192];
    static uint32_t words[6 * 32];
    struct device *dev = NULL;
    struct dev_image *image = NULL;
    struct dev_buf *buf = NULL;
    struct dev_run run;
    struct rng rng = rng_from_seed(1);
    uint64_t launches = 0, address;
    const void *args[] = {&address};
    TRY(device_open(&dev, "cpu", NULL));
    TRY(device_load(&image, dev, s->name, text, make_kernel(text, sizeof text, s)));
    TRY(device_alloc(&buf, dev, sizeof words));
    for (size_t i = 0; i < COUNT(words); i++)
        words[i] = ((uint32_t)rng_u64(&rng) & s->mask) | s->set;
    address = buffer_address(buf);
    struct dev_launch launch = {.image = image,
                                .entry = "k",
                                .grid = {1, 1, 1},
                                .block = {32, 1, 1},
                                .args = args,
                                .arg_count = 1};
    double begin = cpu_seconds(), took = 0;
    for (; took < seconds; took = cpu_seconds() - begin, launches++) {
        TRY(buffer_write(buf, words, sizeof words));
        TRY(device_launch(&run, dev, &launch));
        if (!run.completed)
            TRY(FAIL(ERR_DEVICE, "%s", run.faults[0].text));
    }
    printf("%-52s %s %8.0f M multiply-adds/s\n", s->name, level,
           (double)(launches * STEPS * s->macs) / took / 1e6);
done:
    buffer_free(buf);
    image_unload(image);
    device_close(dev);
    return st;
}

int main(int argc, char **argv) {
    static const char *const levels[] = {"v2", "v3", "v4"};
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    for (size_t i = 0; i < COUNT(subjects); i++)
        for (int l = 0; l < 3; l++) {
            setenv("ASSAY_ISA", levels[l], 1);
            if (measure(&subjects[i], levels[l], seconds) != OK)
                printf("%s %s: %s\n", subjects[i].name, levels[l], status_message());
        }
    return 0;
}
