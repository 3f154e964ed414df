/* What a kernel's launches get at one shape: sizes of its buffers, extents, arguments. */
#include "kernels/bind.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/loaded.h"

/* ---- buffers --------------------------------------------------------------------------------- */

static void name_tensors(struct kernel_buffer *out, const struct tensor_block *block,
                         const struct op_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct tensor *t = &block->tensors[i];
        if (t->type)
            out[i] = (struct kernel_buffer){tensors[i].name, tensor_bytes(t), t->type};
    }
}

status_t kernel_buffers(struct kernel_buffer out[static KERNEL_MAX_BUFFERS],
                        const struct kernel *k, struct case_dims dims) {
    status_t st = OK;
    const struct kernel_detail *d = k->detail;
    struct tensor_block inputs, outputs;
    memset(out, 0, KERNEL_MAX_BUFFERS * sizeof *out);
    TRY(kernel_inputs(&inputs, k, dims, NULL));
    TRY(kernel_outputs(&outputs, k, dims, NULL));
    name_tensors(out, &inputs, k->op->inputs, op_input_count(k->op));
    name_tensors(out + BUFFER_OUTPUTS, &outputs, k->op->outputs, op_output_count(k->op));
    for (size_t i = 0; i < d->scratch_count; i++) {
        struct kernel_buffer *b = &out[BUFFER_SCRATCH + i];
        b->name = d->file->manifest->kernels[d->index].scratch[i].name;
        TRY(manifest_at(expr_size(&b->bytes, d->scratch[i], dims), d->file, d->index,
                        "scratch[%zu].bytes", i));
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
                             const uint64_t *addresses, struct case_dims dims) {
    status_t st = OK;
    int64_t whole;
    double real;

    switch (arg->kind) {
    case ARG_INPUT:
        *out = addresses[arg->index];
        break;
    case ARG_OUTPUT:
        *out = addresses[BUFFER_OUTPUTS + arg->index];
        break;
    case ARG_SCRATCH:
        *out = addresses[BUFFER_SCRATCH + arg->index];
        break;
    case ARG_TENSOR_MAP:
        break; /* bind_maps */
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

static status_t bind_maps(uint8_t (*maps)[DEV_TENSOR_MAP_BYTES], const struct loaded_kernel *lk,
                          struct case_dims dims, const uint64_t *addresses) {
    status_t st = OK;
    const struct kernel_detail *d = lk->kernel->detail;
    for (size_t i = 0; i < d->tensor_map_count; i++) {
        struct dev_tensor_map map;
        TRY(tensor_map_evaluate(&map, &d->tensor_maps[i], dims, d->file, d->index, i));
        map.address = addresses[d->tensor_maps[i].buffer];
        st = dev_tensor_map_encode(maps[i], lk->dev, &map);
        if (st == ERR_USAGE) { /* the kernel's own fault at this shape: kernel_run */
            char at[SHAPE_SIZE];
            dims_text(at, sizeof at, lk->kernel->op->dims, &dims);
            TRY(FAIL(ERR_USAGE, "%.64s: tensor_maps[%zu] at %s: %s", lk->kernel->name, i, at,
                     status_message()));
        }
        TRY(manifest_at(st, d->file, d->index, "tensor_maps[%zu]", i));
    }
done:
    return st;
}

static status_t bind_launch(struct dev_launch *out, uint64_t *values, const void **args,
                            uint8_t (*maps)[DEV_TENSOR_MAP_BYTES], const struct loaded_kernel *lk,
                            size_t i, struct case_dims dims, const uint64_t *addresses) {
    status_t st = OK;
    const struct kernel_detail *d = lk->kernel->detail;
    const struct kernel_launch *launch = &d->launches[i];
    const struct dev_entry *entry = image_find(lk->image, launch->entry);
    *out = (struct dev_launch){
        .image = lk->image,
        .entry = launch->entry,
        .args = args,
        .arg_count = launch->arg_count,
    };
    TRY(launch_extents(out->grid, out->block, launch, dims));
    TRY(launch_cluster(out->cluster, launch, dims));
    if (launch->shared)
        TRY(expr_size(&out->dynamic_shared, launch->shared, dims));
    for (size_t a = 0; a < launch->arg_count; a++) {
        TRY(evaluate_arg(&values[a], &launch->args[a], entry->params[a].size, addresses, dims));
        args[a] = launch->args[a].kind == ARG_TENSOR_MAP ? (const void *)maps[launch->args[a].index]
                                                         : &values[a];
    }
done:
    return manifest_at(st, d->file, d->index, "launches[%zu]", i);
}

status_t kernel_bind(struct bound_kernel *out, const struct loaded_kernel *lk,
                     struct case_dims dims, const uint64_t *addresses) {
    status_t st = OK;
    const struct kernel_detail *d = lk->kernel->detail;
    size_t arg_count = 0, first = 0;
    for (size_t i = 0; i < d->launch_count; i++)
        arg_count += d->launches[i].arg_count;
    *out = (struct bound_kernel){
        .launch_count = d->launch_count,
        .values = calloc(arg_count + 1, sizeof *out->values),
        .args = calloc(arg_count + 1, sizeof *out->args),
        .maps = calloc(d->tensor_map_count + 1, sizeof *out->maps),
    };
    if (!out->values || !out->args || !out->maps)
        return FAIL(ERR_NOMEM, "no memory for a launch");
    TRY(bind_maps(out->maps, lk, dims, addresses));
    for (size_t i = 0; i < d->launch_count; i++) {
        TRY(bind_launch(&out->launches[i], out->values + first, out->args + first, out->maps, lk, i,
                        dims, addresses));
        first += d->launches[i].arg_count;
    }
done:
    return st;
}

void bound_kernel_clear(struct bound_kernel *b) {
    free(b->values);
    free(b->args);
    free(b->maps);
    *b = (struct bound_kernel){0};
}
