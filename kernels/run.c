/* All launches of a kernel on one case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "kernels/loaded.h"

/* The buffers of one run: inputs, outputs and scratch, in that order; NULL: none of that name. */
struct buffers {
    struct dev_buf **all;
    size_t count;
};

enum { BUFFER_OUTPUTS = OP_MAX_INPUTS, BUFFER_SCRATCH = OP_MAX_INPUTS + OP_MAX_OUTPUTS };

static void buffers_free(struct buffers *buffers) {
    for (size_t i = 0; i < buffers->count; i++)
        if (buffers->all[i])
            buffer_free(buffers->all[i]);
    free(buffers->all);
    *buffers = (struct buffers){0};
}

static status_t buffers_new(struct buffers *out, struct loaded_kernel *lk,
                            const struct kernel_io *io, const struct tensor_block *inputs,
                            const struct tensor_block *outputs) {
    status_t st = OK;
    const struct kernel_detail *d = lk->kernel->detail;

    out->count = BUFFER_SCRATCH + d->scratch_count;
    out->all = calloc(out->count, sizeof(struct dev_buf *));
    if (!out->all) {
        out->count = 0;
        TRY(FAIL(ERR_NOMEM, "no memory for %s's buffers", lk->kernel->name));
    }
    for (size_t i = 0; i < OP_MAX_INPUTS; i++) {
        const struct tensor *t = &inputs->tensors[i];
        if (!t->type)
            continue;
        TRY(device_alloc(&out->all[i], lk->dev, tensor_bytes(t)));
        TRY(buffer_write(out->all[i], t->data, tensor_bytes(t)));
    }
    for (size_t i = 0; i < OP_MAX_OUTPUTS; i++)
        if (outputs->tensors[i].type)
            TRY(device_alloc(&out->all[BUFFER_OUTPUTS + i], lk->dev,
                             tensor_bytes(&outputs->tensors[i])));
    for (size_t i = 0; i < d->scratch_count; i++) {
        size_t bytes;
        TRY(manifest_at(expr_size(&bytes, d->scratch[i], io->dims), d->file, d->index,
                        "scratch[%zu].bytes", i));
        TRY(device_alloc(&out->all[BUFFER_SCRATCH + i], lk->dev, bytes));
    }
done:
    return st;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Does a whole number fit `size` bytes, signed or unsigned? */
static bool fits(int64_t value, size_t size) {
    if (size >= sizeof value)
        return true;
    int64_t end = (int64_t)1 << (8 * size);
    return value >= -end / 2 && value < end;
}

/* The low `size` bytes of *out are the argument: devices and host are little-endian. */
static status_t evaluate_arg(uint64_t *out, const struct kernel_arg *arg, size_t size,
                             const struct buffers *buffers, struct case_dims dims) {
    status_t st = OK;
    int64_t whole;
    double real;

    switch (arg->kind) {
    case ARG_INPUT:
        *out = buffer_address(buffers->all[arg->index]);
        break;
    case ARG_OUTPUT:
        *out = buffer_address(buffers->all[BUFFER_OUTPUTS + arg->index]);
        break;
    case ARG_SCRATCH:
        *out = buffer_address(buffers->all[BUFFER_SCRATCH + arg->index]);
        break;
    case ARG_INTEGER:
        TRY(expr_integer(&whole, arg->value, dims));
        if (!fits(whole, size))
            TRY(FAIL(ERR_UNSUPPORTED, "%lld does not fit the parameter's %zu bytes",
                     (long long)whole, size));
        *out = (uint64_t)whole;
        break;
    case ARG_REAL:
        TRY(expr_real(&real, arg->value, dims));
        *out = dtype_from_double(arg->dtype, real, ROUND_NEAREST);
        break;
    }
done:
    return st;
}

static status_t run_launch(struct dev_run *run, struct loaded_kernel *lk, size_t i,
                           const struct kernel_io *io, const struct buffers *buffers) {
    status_t st = OK;
    const struct kernel_detail *d = lk->kernel->detail;
    const struct kernel_launch *launch = &d->launches[i];
    const struct dev_entry *entry = image_find(lk->image, launch->entry);
    uint64_t *values = calloc(launch->arg_count + 1, sizeof *values);
    const void **args = calloc(launch->arg_count + 1, sizeof *args);
    struct dev_launch dl = {
        .image = lk->image,
        .entry = launch->entry,
        .args = args,
        .arg_count = launch->arg_count,
        .schedule_seed = io->schedule_seed,
    };

    if (!values || !args)
        TRY(FAIL(ERR_NOMEM, "no memory for a launch"));
    TRY(launch_extents(dl.grid, dl.block, launch, io->dims));
    if (launch->shared)
        TRY(expr_size(&dl.dynamic_shared, launch->shared, io->dims));
    for (size_t a = 0; a < launch->arg_count; a++) {
        TRY(evaluate_arg(&values[a], &launch->args[a], entry->params[a].size, buffers, io->dims));
        args[a] = &values[a];
    }
    TRY(device_launch(run, lk->dev, &dl));
done:
    free(values);
    free(args);
    return manifest_at(st, d->file, d->index, "launches[%zu]", i);
}

/* ---- the sequence ---------------------------------------------------------------------------- */

static const char *buffer_name(const struct kernel *k, size_t i) {
    const struct kernel_detail *d = k->detail;
    if (i < BUFFER_OUTPUTS)
        return k->op->inputs[i].name;
    if (i < BUFFER_SCRATCH)
        return k->op->outputs[i - BUFFER_OUTPUTS].name;
    return d->file->manifest->kernels[d->index].scratch[i - BUFFER_SCRATCH].name;
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
             kind == FAULT_GUARD ? "outside buffer" : "to its input", buffer_name(k, buffer), why);
}

static status_t check_guards(struct dev_run *last, const struct kernel *k,
                             const struct buffers *buffers) {
    status_t st = OK;
    for (size_t i = 0; i < buffers->count; i++) {
        bool intact;
        if (!buffers->all[i])
            continue;
        TRY(buffer_guards(&intact, buffers->all[i]));
        if (!intact)
            add_fault(last, k, FAULT_GUARD, "its guard bytes changed", i);
    }
done:
    return st;
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
        add_fault(last, k, FAULT_INPUT, "its contents changed", i);
    free(now);
    return st;
}

/* What stands between the rows of an output is not the kernel's to write. */
static void check_padding(struct dev_run *last, const struct kernel *k, const struct tensor *t,
                          size_t output) {
    const size_t size = t->type->size;
    for (size_t i = 0; t->ld && i < tensor_bytes(t); i++)
        if (i / size % t->ld >= t->cols && ((const unsigned char *)t->data)[i] != 0xff) {
            add_fault(last, k, FAULT_GUARD, "its padding between rows changed",
                      BUFFER_OUTPUTS + output);
            return;
        }
}

/* After a sequence that completed: what it left outside its outputs, and the outputs. */
static status_t collect(struct dev_run *last, const struct kernel *k, const struct buffers *buffers,
                        const struct tensor_block *inputs, const struct tensor_block *outputs) {
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
        check_padding(last, k, t, i);
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
    struct tensor_block inputs, outputs;
    bool completed = true;

    result->run_count = 0;
    if (refusal)
        return FAIL(ERR_USAGE, "%s: %s", k->name, refusal);
    TRY(kernel_inputs(&inputs, k, io->dims, (void *)io->x)); /* only read */
    TRY(kernel_outputs(&outputs, k, io->dims, io->y));
    for (size_t i = 0; i < OP_MAX_OUTPUTS; i++)
        if (outputs.tensors[i].type)
            memset(outputs.tensors[i].data, 0xff, tensor_bytes(&outputs.tensors[i]));
    TRY(buffers_new(&buffers, lk, io, &inputs, &outputs));
    for (size_t i = 0; completed && i < k->detail->launch_count; i++) {
        struct dev_run *run = &result->runs[i];
        TRY(run_launch(run, lk, i, io, &buffers));
        result->run_count = i + 1;
        completed = run->completed;
    }
    if (completed)
        TRY(collect(&result->runs[result->run_count - 1], k, &buffers, &inputs, &outputs));
done:
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
