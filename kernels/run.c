/* All launches of a kernel on one case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/bind.h"
#include "kernels/loaded.h"

struct buffers {
    struct kernel_buffer what[KERNEL_MAX_BUFFERS];
    struct dev_buf *all[KERNEL_MAX_BUFFERS];
    uint64_t addresses[KERNEL_MAX_BUFFERS];
};

static void buffers_free(struct buffers *buffers) {
    for (size_t i = 0; i < KERNEL_MAX_BUFFERS; i++)
        buffer_free(buffers->all[i]);
    *buffers = (struct buffers){0};
}

/* Poisoned, but for the inputs, and outputs that the caller fills. */
static status_t buffers_new(struct buffers *out, struct loaded_kernel *lk,
                            const struct kernel_io *io, const struct tensor_block *inputs,
                            const struct tensor_block *outputs) {
    status_t st = OK;
    TRY(kernel_buffers(out->what, lk->kernel, io->dims));
    for (size_t i = 0; i < KERNEL_MAX_BUFFERS; i++) {
        if (!out->what[i].name)
            continue;
        TRY(device_alloc(&out->all[i], lk->dev, out->what[i].bytes));
        out->addresses[i] = buffer_address(out->all[i]);
        if (i < BUFFER_OUTPUTS)
            TRY(buffer_write(out->all[i], inputs->tensors[i].data, out->what[i].bytes));
        else if (i < BUFFER_SCRATCH && io->output_fill)
            TRY(buffer_write(out->all[i], outputs->tensors[i - BUFFER_OUTPUTS].data,
                             out->what[i].bytes));
    }
done:
    return st;
}

static void add_fault(struct dev_run *run, const struct kernel *k, enum dev_fault_kind kind,
                      const char *why, const char *buffer) {
    run->fault_total++;
    if (run->fault_count == DEV_MAX_FAULTS)
        return;
    struct dev_fault *fault = &run->faults[run->fault_count++];
    *fault = (struct dev_fault){.kind = kind};
    snprintf(fault->kernel, sizeof fault->kernel, "%s", k->name);
    snprintf(fault->text, sizeof fault->text, "%.64s wrote %s %.64s: %s", k->name,
             kind == FAULT_GUARD ? "outside buffer" : "to its input", buffer, why);
}

static status_t check_guards(struct dev_run *last, const struct kernel *k,
                             const struct buffers *buffers) {
    status_t st = OK;
    for (size_t i = 0; i < KERNEL_MAX_BUFFERS; i++) {
        bool intact;
        if (!buffers->all[i])
            continue;
        TRY(buffer_guards(&intact, buffers->all[i]));
        if (!intact)
            add_fault(last, k, FAULT_GUARD, "its guard bytes changed", buffers->what[i].name);
    }
done:
    return st;
}

/* A map that cannot be made at a shape that the kernel accepts is its fault, like a launch's. */
static status_t bind(struct bound_kernel *out, struct kernel_result *result,
                     const struct loaded_kernel *lk, struct case_dims dims,
                     const uint64_t *addresses) {
    status_t st = kernel_bind(out, lk, dims, addresses);
    if (st != ERR_USAGE)
        return st;
    struct dev_run *run = &result->runs[0];
    *run = (struct dev_run){.fault_count = 1, .fault_total = 1};
    run->faults[0].kind = FAULT_TENSOR_MAP;
    snprintf(run->faults[0].kernel, sizeof run->faults[0].kernel, "%s", lk->kernel->name);
    snprintf(run->faults[0].text, sizeof run->faults[0].text, "%s", status_message());
    result->run_count = 1;
    return OK;
}

/* An input is the caller's: a kernel that changes it breaks whoever reads it next. */
static status_t check_input(struct dev_run *last, const struct kernel *k,
                            const struct buffers *buffers, const struct tensor *input, size_t i) {
    size_t bytes = tensor_bytes(input);
    void *now = malloc(bytes ? bytes : 1);
    if (!now)
        return FAIL(ERR_NOMEM, "no memory to read the input back");
    status_t st = buffer_read(now, buffers->all[i], bytes);
    if (st == OK && memcmp(now, input->data, bytes) != 0)
        add_fault(last, k, FAULT_INPUT, "its contents changed", buffers->what[i].name);
    free(now);
    return st;
}

/* What stands between the rows of an output is not the kernel's to write: it is `fill` as before. */
static void check_padding(struct dev_run *last, const struct kernel *k, const struct tensor *t,
                          const char *name, uint8_t fill) {
    const size_t size = t->type->size;
    for (size_t i = 0; t->ld && i < tensor_bytes(t); i++)
        if (i / size % t->ld >= t->cols && ((const uint8_t *)t->data)[i] != fill) {
            add_fault(last, k, FAULT_GUARD, "its padding between rows changed", name);
            return;
        }
}

/* What outputs hold before the first launch. */
static uint8_t output_fill(const struct kernel_io *io) {
    return io->output_fill ? io->output_fill : 0xff;
}

/* After a sequence that completed: what it left outside its outputs, and the outputs. */
static status_t collect(struct dev_run *last, const struct kernel *k, const struct buffers *buffers,
                        const struct tensor_block *inputs, const struct tensor_block *outputs,
                        uint8_t fill) {
    status_t st = OK;
    TRY(check_guards(last, k, buffers));
    for (size_t i = 0; i < OP_MAX_INPUTS; i++)
        if (inputs->tensors[i].type)
            TRY(check_input(last, k, buffers, &inputs->tensors[i], i));
    for (size_t i = 0; i < OP_MAX_OUTPUTS; i++) {
        const struct tensor *t = &outputs->tensors[i];
        if (!t->type)
            continue;
        TRY(buffer_read(t->data, buffers->all[BUFFER_OUTPUTS + i], tensor_bytes(t)));
        check_padding(last, k, t, buffers->what[BUFFER_OUTPUTS + i].name, fill);
    }
done:
    return st;
}

status_t kernel_run(struct kernel_result *result, struct loaded_kernel *lk,
                    const struct kernel_io *io) {
    status_t st = OK;
    const struct kernel *k = lk->kernel;
    const char *refusal = kernel_refuses(k, io->dims);
    struct buffers buffers = {0};
    struct bound_kernel bound = {0};
    struct tensor_block inputs, outputs;
    bool completed = true;

    result->run_count = 0;
    if (refusal)
        return FAIL(ERR_USAGE, "%s: %s", k->name, refusal);
    TRY(kernel_inputs(&inputs, k, io->dims, (void *)io->x)); /* only read */
    TRY(kernel_outputs(&outputs, k, io->dims, io->y));
    for (size_t i = 0; i < OP_MAX_OUTPUTS; i++)
        if (outputs.tensors[i].type)
            memset(outputs.tensors[i].data, output_fill(io), tensor_bytes(&outputs.tensors[i]));
    TRY(buffers_new(&buffers, lk, io, &inputs, &outputs));
    TRY(bind(&bound, result, lk, io->dims, buffers.addresses));
    completed = result->run_count == 0;
    for (size_t i = 0; completed && i < bound.launch_count; i++) {
        struct dev_run *run = &result->runs[i];
        bound.launches[i].schedule_seed = io->schedule_seed;
        TRY(manifest_at(device_launch(run, lk->dev, &bound.launches[i]), k->detail->file,
                        k->detail->index, "launches[%zu]", i));
        result->run_count = i + 1;
        completed = run->completed;
    }
    if (completed)
        TRY(collect(&result->runs[result->run_count - 1], k, &buffers, &inputs, &outputs,
                    output_fill(io)));
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
