/*
 * tests/ptx/bench_exec.c - the emulator's speed: lane-instructions per second of one entry.
 *
 *   bench_exec FILE.ptx ENTRY [ROWS COLS [SECONDS]]
 *
 * Runs the entry over a matrix with a pointer argument for each .u64 parameter and the number of
 * columns for each .u32, one block of 256 threads per row, without and with the shadow, on every
 * x86-64 level that this machine has.  Time is processor time of this one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "device/device.h"

struct bench {
    const char *path, *entry;
    char *text;
    size_t size, rows, cols;
    double seconds;
};

static int complain(const char *what) {
    fprintf(stderr, "bench_exec: %s: %s\n", what, status_message());
    return 1;
}

static char *read_file(size_t *size, const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    *size = text ? fread(text, 1, (size_t)n, f) : 0;
    fclose(f);
    return text;
}

static status_t fill(struct dev_buf *buf, size_t count) {
    struct rng rng = rng_from_seed(1);
    float *x = malloc(count * sizeof *x);
    if (!x)
        return FAIL(ERR_NOMEM, "no memory for the input");
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(rng_unit(&rng) * 16 - 8);
    status_t st = buffer_write(buf, x, count * sizeof *x);
    free(x);
    return st;
}

#define MAX_ARGS 16

/* Processor time, so that a busy machine does not count. */
static double seconds_used(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static status_t measure(const struct bench *b, bool shadow, const char *isa) {
    status_t st = OK;
    struct device *dev = NULL;
    struct dev_image *image = NULL;
    struct dev_buf *buf[MAX_ARGS] = {0};
    uint64_t address[MAX_ARGS];
    uint32_t cols = (uint32_t)b->cols;
    const void *args[MAX_ARGS];
    struct device_options options = {.shadow = shadow};
    struct dev_run run;
    TRY(device_open(&dev, "cpu", &options));
    TRY(device_load(&image, dev, b->path, b->text, b->size));
    const struct dev_entry *e = image_find(image, b->entry);
    if (!e || e->param_count > MAX_ARGS)
        TRY(FAIL(ERR_USAGE, "%s has no entry '%s'", b->path, b->entry));
    for (size_t i = 0; i < e->param_count; i++) {
        args[i] = &cols;
        if (e->params[i].size != 8)
            continue;
        TRY(device_alloc(&buf[i], dev, b->rows * b->cols * sizeof(float)));
        TRY(fill(buf[i], b->rows * b->cols));
        address[i] = buffer_address(buf[i]);
        args[i] = &address[i];
    }
    struct dev_launch launch = {.image = image,
                                .entry = b->entry,
                                .grid = {(unsigned)b->rows, 1, 1},
                                .block = {256, 1, 1},
                                .args = args,
                                .arg_count = e->param_count};
    uint64_t lanes = 0, insns = 0;
    double seconds = 0;
    do {
        double start = seconds_used();
        TRY(device_launch(&run, dev, &launch));
        seconds += seconds_used() - start;
        if (!run.completed || run.fault_total)
            TRY(FAIL(ERR_DEVICE, "%s", run.faults[0].text));
        lanes += run.lane_insns;
        insns += run.warp_insns;
    } while (seconds < b->seconds);
    printf("%-28s %s shadow %-3s  %7.3f G lane-instructions/s  %6.1f ns per warp instruction\n",
           b->entry, isa, shadow ? "on" : "off", (double)lanes / seconds * 1e-9,
           seconds / (double)insns * 1e9);
done:
    for (size_t i = 0; i < MAX_ARGS; i++)
        buffer_free(buf[i]);
    image_unload(image);
    device_close(dev);
    return st;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: bench_exec FILE.ptx ENTRY [ROWS COLS [SECONDS]]\n");
        return 2;
    }
    struct bench b = {.path = argv[1], .entry = argv[2], .rows = 64, .cols = 4096, .seconds = 1};
    if (argc > 4) {
        b.rows = strtoul(argv[3], NULL, 10);
        b.cols = strtoul(argv[4], NULL, 10);
    }
    if (argc > 5)
        b.seconds = strtod(argv[5], NULL);
    b.text = read_file(&b.size, b.path);
    if (!b.text) {
        fprintf(stderr, "bench_exec: cannot read %s\n", b.path);
        return 2;
    }
    int failed = 0;
    static const char *const levels[] = {"v2", "v3", "v4"};
    const char *only = getenv("ASSAY_ISA");
    for (int i = 0; i < 3; i++) {
        if (only && strcmp(only, levels[i]) != 0)
            continue;
        setenv("ASSAY_ISA", levels[i], 1);
        for (int shadow = 0; shadow < 2; shadow++)
            if (measure(&b, shadow, levels[i]) != OK)
                failed = complain(levels[i]);
    }
    free(b.text);
    return failed;
}
