/* All launches of a kernel on one case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/bind.h"
#include "kernels/loaded.h"

struct buffers {
    struct dev_buf *all[KERNEL_MAX_BUFFERS]; /* numbered as in bind.h */
    uint64_t addresses[KERNEL_MAX_BUFFERS];
    size_t bytes[KERNEL_MAX_BUFFERS];
    size_t count;
};

static void buffers_free(struct buffers *buffers) {
    for (size_t i = 0; i < buffers->count; i++)
        buffer_free(buffers->all[i]);
    *buffers = (struct buffers){0};
}

/* Poisoned, but for x; bytes[] is set. */
static status_t buffers_fill(struct buffers *out, struct loaded_kernel *lk, const void *x) {
    status_t st = OK;
    for (size_t count = kernel_buffer_count(lk->kernel); out->count < count; out->count++) {
        TRY(device_alloc(&out->all[out->count], lk->dev, out->bytes[out->count]));
        out->addresses[out->count] = buffer_address(out->all[out->count]);
    }
    TRY(buffer_write(out->all[BUFFER_X], x, out->bytes[BUFFER_X]));
done:
    return st;
}

static void add_fault(struct dev_run *run, const struct kernel *k, enum dev_fault_kind kind,
                      const char *why, size_t buffer) {
    run->fault_total++;
    if (run->fault_count == DEV_MAX_FAULTS)
        return;
    struct dev_fault *fault = &run->faults[run->fault_count++];
    *fault = (struct dev_fault){.kind = kind};
    snprintf(fault->kernel, sizeof fault->kernel, "%s", k->name);
    snprintf(fault->text, sizeof fault->text, "%.64s wrote %s %.64s: %s", k->name,
             kind == FAULT_GUARD ? "outside buffer" : "to its input", kernel_buffer_name(k, buffer), why);
}

static status_t check_guards(struct dev_run *last, const struct kernel *k,
                             const struct buffers *buffers) {
    status_t st = OK;
    for (size_t i = 0; i < buffers->count; i++) {
        bool intact;
        TRY(buffer_guards(&intact, buffers->all[i]));
        if (!intact)
            add_fault(last, k, FAULT_GUARD, "its guard bytes changed", i);
    }
done:
    return st;
}

/* x is the caller's: a kernel that changes it breaks whoever reads it next. */
static status_t check_input(struct dev_run *last, const struct kernel *k,
                            const struct buffers *buffers, const void *x, size_t x_bytes) {
    void *now = malloc(x_bytes ? x_bytes : 1);
    if (!now)
        return FAIL(ERR_NOMEM, "no memory to read the input back");
    status_t st = buffer_read(now, buffers->all[BUFFER_X], x_bytes);
    if (st == OK && memcmp(now, x, x_bytes) != 0)
        add_fault(last, k, FAULT_INPUT, "its contents changed", BUFFER_X);
    free(now);
    return st;
}

status_t kernel_run(struct kernel_result *result, struct loaded_kernel *lk,
                    const struct kernel_io *io) {
    status_t st = OK;
    const struct kernel *k = lk->kernel;
    const char *refusal = kernel_refuses(k, io->dims);
    struct buffers buffers = {0};
    struct bound_kernel bound = {0};
    bool completed = true;

    result->run_count = 0;
    if (refusal)
        return FAIL(ERR_USAGE, "%s: %s", k->name, refusal);
    TRY(kernel_buffer_sizes(buffers.bytes, k, io->dims));
    memset(io->y, 0xff, buffers.bytes[BUFFER_Y]);
    TRY(buffers_fill(&buffers, lk, io->x));
    TRY(kernel_bind(&bound, lk, io->dims, buffers.addresses));
    for (size_t i = 0; completed && i < bound.launch_count; i++) {
        struct dev_run *run = &result->runs[i];
        bound.launches[i].schedule_seed = io->schedule_seed;
        TRY(manifest_at(device_launch(run, lk->dev, &bound.launches[i]), k->detail->file,
                        k->detail->index, "launches[%zu]", i));
        result->run_count = i + 1;
        completed = run->completed;
    }
    if (completed) {
        struct dev_run *last = &result->runs[result->run_count - 1];
        TRY(check_guards(last, k, &buffers));
        TRY(check_input(last, k, &buffers, io->x, buffers.bytes[BUFFER_X]));
        TRY(buffer_read(io->y, buffers.all[BUFFER_Y], buffers.bytes[BUFFER_Y]));
    }
done:
    bound_kernel_clear(&bound);
    buffers_free(&buffers);
    return st;
}

bool kernel_result_clean(const struct kernel_result *result) {
    for (size_t i = 0; i < result->run_count; i++)
        if (!result->runs[i].completed || result->runs[i].fault_total > 0)
            return false;
    return result->run_count > 0;
}

const struct dev_fault *kernel_result_fault(const struct kernel_result *result) {
    for (size_t i = 0; i < result->run_count; i++)
        if (result->runs[i].fault_count > 0)
            return &result->runs[i].faults[0];
    return NULL;
}
