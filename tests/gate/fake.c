/* tests/gate/fake.c - see fake.h. */
#include "tests/gate/fake.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t fake_runs, fake_fail_after;

struct device {
    struct device_info info;
};

struct loaded_kernel {
    const struct kernel *kernel;
};

/* ---- kernels --------------------------------------------------------------------------------- */

void fake_sum(float *y, const float *x, struct case_dims d, uint64_t seed, struct dev_run *run) {
    (void)seed, (void)run;
    for (size_t r = 0; r < d.rows; r++) {
        y[r] = 0;
        for (size_t j = 0; j < d.cols; j++)
            y[r] += x[r * d.cols + j];
    }
}

/* Keeps a NaN, as the oracle's max does. */
void fake_max(float *y, const float *x, struct case_dims d, uint64_t seed, struct dev_run *run) {
    (void)seed, (void)run;
    for (size_t r = 0; r < d.rows; r++) {
        y[r] = -INFINITY;
        for (size_t j = 0; j < d.cols; j++)
            if (!(x[r * d.cols + j] <= y[r]))
                y[r] = isnan(y[r]) ? y[r] : x[r * d.cols + j];
    }
}

void fake_softmax(float *y, const float *x, struct case_dims d, uint64_t seed,
                  struct dev_run *run) {
    for (size_t r = 0; r < d.rows; r++, x += d.cols, y += d.cols) {
        float max, sum = 0;
        fake_max(&max, x, (struct case_dims){1, d.cols}, seed, run);
        for (size_t j = 0; j < d.cols; j++)
            sum += y[j] = expf(x[j] - max);
        for (size_t j = 0; j < d.cols; j++)
            y[j] /= sum;
    }
}

struct fake fake_kernel(const char *name, const char *op, fake_fn *compute) {
    const struct dtype *f32 = &dtypes[DT_F32];
    return (struct fake){
        .kernel = {.name = name,
                   .op = op_find(op),
                   .summary = "a fake",
                   .in = f32,
                   .out = f32,
                   .acc = f32,
                   .deterministic = true,
                   .manifest = "/proc/version",
                   .builtin = true,
                   .image = "/proc/self/exe"},
        .compute = compute,
        .numerics = {.in = f32,
                     .acc = f32,
                     .out = f32,
                     .exp = EXP_EXPF,
                     .sum_height = 8192,
                     .divide = DIVIDE_IEEE,
                     .flush = false},
    };
}

/* ---- kernels/catalogue.h --------------------------------------------------------------------- */

struct loaded_kernel *fake_load(const struct fake *fake) {
    struct loaded_kernel *lk = malloc(sizeof *lk);
    lk->kernel = &fake->kernel;
    return lk;
}

status_t kernel_load(struct loaded_kernel **out, struct device *dev, const struct kernel *kernel) {
    (void)dev;
    *out = fake_load((const struct fake *)kernel);
    return OK;
}

void kernel_unload(struct loaded_kernel *lk) {
    free(lk);
}

const struct kernel *loaded_kernel_of(const struct loaded_kernel *lk) {
    return lk->kernel;
}

unsigned kernel_arch(const struct loaded_kernel *lk) {
    (void)lk;
    return DEFAULT_ARCH;
}

unsigned kernel_ambiguous(const struct loaded_kernel *lk) {
    (void)lk;
    return 0;
}

const char *kernel_refuses(const struct kernel *kernel, struct case_dims dims) {
    static _Thread_local char text[64];
    const struct fake *fake = (const struct fake *)kernel;
    if (fake->max_cols == 0 || dims.cols <= fake->max_cols)
        return NULL;
    snprintf(text, sizeof text, "cols = %zu: accepts 1..%zu", dims.cols, fake->max_cols);
    return text;
}

struct case_dims kernel_nearest(const struct kernel *kernel, struct case_dims dims) {
    const struct fake *fake = (const struct fake *)kernel;
    if (fake->max_cols && dims.cols > fake->max_cols)
        dims.cols = fake->max_cols;
    return dims;
}

status_t kernel_numerics(struct numerics *out, const struct kernel *kernel, struct case_dims dims) {
    (void)dims;
    *out = ((const struct fake *)kernel)->numerics;
    return OK;
}

status_t kernel_options(struct op_options *out, const struct kernel *kernel,
                        struct case_dims dims) {
    (void)dims;
    *out = ((const struct fake *)kernel)->options;
    return OK;
}

bool kernel_same_options(const struct kernel *a, const struct kernel *b) {
    (void)a, (void)b;
    return true;
}

status_t kernel_run(struct kernel_result *result, struct loaded_kernel *lk,
                    const struct kernel_io *io) {
    const struct fake *fake = (const struct fake *)lk->kernel;
    size_t run = __atomic_add_fetch(&fake_runs, 1, __ATOMIC_RELAXED);
    if (fake_fail_after && run > fake_fail_after)
        return FAIL(ERR_DEVICE, "the fake device broke down");
    struct tensor_block y;
    status_t st = kernel_outputs(&y, lk->kernel, io->dims, io->y);
    if (st != OK)
        return st;
    memset(io->y, io->output_fill ? io->output_fill : 0xff, y.bytes); /* 0xff: as in device.h */
    *result = (struct kernel_result){.run_count = 1};
    result->runs[0].completed = true;
    result->runs[0].events.nan_born = 1;
    fake->compute(io->y, io->x, io->dims, io->schedule_seed, &result->runs[0]);
    return OK;
}

bool kernel_result_clean(const struct kernel_result *result) {
    for (size_t i = 0; i < result->run_count; i++)
        if (!result->runs[i].completed || result->runs[i].fault_count)
            return false;
    return true;
}

const struct dev_fault *kernel_result_fault(const struct kernel_result *result) {
    for (size_t i = 0; i < result->run_count; i++)
        if (result->runs[i].fault_count)
            return &result->runs[i].faults[0];
    return NULL;
}

/* ---- device/device.h ------------------------------------------------------------------------- */

status_t device_open(struct device **out, const char *name, const struct device_options *opt) {
    (void)opt;
    *out = calloc(1, sizeof **out);
    snprintf((*out)->info.name, sizeof(*out)->info.name, "%s", name);
    snprintf((*out)->info.arch, sizeof(*out)->info.arch, "sm_00");
    return OK;
}

void device_close(struct device *dev) {
    free(dev);
}

const struct device_info *device_info(const struct device *dev) {
    return &dev->info;
}
