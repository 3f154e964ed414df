/*
 * exhaust_mufu.c - the MUFU model against a GPU over all 2^32 inputs, or samples of them.
 *
 *   exhaust_mufu DEVICE [FUNCTION...]       cuda:0; a function is ex2.approx.ftz, rcp.approx, ...
 *
 * Prints per function how many inputs differ and the first few, by ranges of exponents.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/ptx/mufu.h"

#define CHUNK (1u << 26)
#define THREADS 16

static const struct function {
    const char *name;
    uint32_t (*model)(uint32_t);
} functions[] = {
    {"ex2.approx.ftz", mufu_ex2},       {"lg2.approx.ftz", mufu_lg2},
    {"rcp.approx.ftz", mufu_rcp},       {"rsqrt.approx.ftz", mufu_rsqrt},
    {"ex2.approx", mufu_ex2_subnormal}, {"lg2.approx", mufu_lg2_subnormal},
    {"rcp.approx", mufu_rcp_subnormal}, {"rsqrt.approx", mufu_rsqrt_subnormal},
};

static const char *const kernel =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry all(.param .u64 out, .param .u32 first)\n{\n"
    ".reg .b32 %%r<6>;\n.reg .b64 %%d<3>;\n"
    "mov.u32 %%r0, %%ctaid.x;\nmov.u32 %%r1, %%ntid.x;\nmov.u32 %%r2, %%tid.x;\n"
    "mad.lo.u32 %%r0, %%r0, %%r1, %%r2;\nld.param.u32 %%r3, [first];\nadd.u32 %%r4, %%r0, %%r3;\n"
    "%s.f32 %%r5, %%r4;\n"
    "ld.param.u64 %%d0, [out];\nmul.wide.u32 %%d1, %%r0, 4;\nadd.u64 %%d0, %%d0, %%d1;\n"
    "st.global.u32 [%%d0], %%r5;\nret;\n}\n";

struct share {
    const struct function *f;
    const uint32_t *got;
    uint32_t first, begin, end;
    uint64_t differ, by_exponent[512];
    uint32_t sample[4], samples;
};

static void *compare(void *context) {
    struct share *s = context;
    for (uint32_t i = s->begin; i < s->end; i++) {
        uint32_t x = s->first + i;
        if (s->f->model(x) == s->got[i])
            continue;
        s->differ++;
        s->by_exponent[x >> 23]++;
        if (s->samples < 4)
            s->sample[s->samples++] = i;
    }
    return NULL;
}

static uint64_t total, by_exponent[512];
static unsigned shown;

static void compare_chunk(const struct function *f, const uint32_t *got, uint32_t first) {
    static struct share share[THREADS];
    pthread_t thread[THREADS];
    for (unsigned t = 0; t < THREADS; t++) {
        share[t] = (struct share){.f = f,
                                  .got = got,
                                  .first = first,
                                  .begin = t * (CHUNK / THREADS),
                                  .end = (t + 1) * (CHUNK / THREADS)};
        pthread_create(&thread[t], NULL, compare, &share[t]);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
        total += share[t].differ;
        for (int e = 0; e < 512; e++)
            by_exponent[e] += share[t].by_exponent[e];
        for (unsigned k = 0; k < share[t].samples && shown < 24; k++, shown++) {
            uint32_t i = share[t].sample[k];
            printf("  %s(%08x): device %08x, model %08x\n", f->name, first + i, got[i],
                   f->model(first + i));
        }
    }
}

static status_t exhaust(struct device *dev, const struct function *f) {
    status_t st = OK;
    char text[2048];
    struct dev_image *image = NULL;
    struct dev_buf *out = NULL;
    struct dev_run run;
    uint32_t *got = malloc((size_t)CHUNK * 4);
    uint32_t first = 0;
    uint64_t address;
    const void *args[] = {&address, &first};
    if (!got)
        TRY(FAIL(ERR_NOMEM, "no memory"));
    TRY(device_load(&image, dev, f->name, text,
                    (size_t)snprintf(text, sizeof text, kernel, f->name)));
    TRY(device_alloc(&out, dev, (size_t)CHUNK * 4));
    address = buffer_address(out);
    total = shown = 0;
    memset(by_exponent, 0, sizeof by_exponent);
    for (unsigned chunk = 0; chunk < (uint64_t)1 << 32 >> 26; chunk++) {
        first = chunk << 26;
        struct dev_launch launch = {.image = image,
                                    .entry = "all",
                                    .grid = {CHUNK / 256, 1, 1},
                                    .block = {256, 1, 1},
                                    .args = args,
                                    .arg_count = 2};
        TRY(device_launch(&run, dev, &launch));
        if (!run.completed)
            TRY(FAIL(ERR_DEVICE, "%s", run.faults[0].text));
        TRY(buffer_read(got, out, (size_t)CHUNK * 4));
        compare_chunk(f, got, first);
    }
    printf("%-18s %llu of 2^32 inputs differ\n", f->name, (unsigned long long)total);
    for (int e = 0; e < 512; e++)
        if (by_exponent[e])
            printf("    sign %d exponent %d: %llu\n", e >> 8, (e & 255) - 127,
                   (unsigned long long)by_exponent[e]);
    fflush(stdout);
done:
    free(got);
    buffer_free(out);
    image_unload(image);
    return st;
}

int main(int argc, char **argv) {
    struct device *dev;
    if (argc < 2) {
        fprintf(stderr, "usage: exhaust_mufu DEVICE [FUNCTION...]\n");
        return 2;
    }
    status_t st = device_open(&dev, argv[1], NULL);
    for (size_t i = 0; st == OK && i < sizeof functions / sizeof *functions; i++) {
        bool wanted = argc == 2;
        for (int k = 2; k < argc; k++)
            wanted |= strcmp(argv[k], functions[i].name) == 0;
        if (wanted)
            st = exhaust(dev, &functions[i]);
    }
    if (st != OK) {
        fprintf(stderr, "exhaust_mufu: %s\n", status_message());
        return 3;
    }
    device_close(dev);
    return 0;
}
