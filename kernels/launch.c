/* Extents and arguments of a launch. */
#include "kernels/launch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

status_t find_type(const struct tensor_type **out, const char *name, enum tensor_kind kind) {
    char known[64];
    size_t used = 0;
    *out = tensor_type_find(name);
    if (*out && (*out)->kind == kind)
        return OK;
    for (const struct tensor_type *t = tensor_types; t->name && used < sizeof known; t++)
        if (t->kind == kind)
            used += (size_t)snprintf(known + used, sizeof known - used, " %s", t->name);
    return FAIL(ERR_SYNTAX, "%s `%s`: expected one of%s",
                *out ? "no type for this tensor:" : "unknown dtype", name, known);
}

status_t find_dtype(const struct dtype **out, const char *name) {
    const struct tensor_type *type;
    status_t st = find_type(&type, name, TENSOR_REAL);
    *out = st == OK ? type->dtype : NULL;
    return st;
}

static status_t compile_extents(struct expr *extents[3], char *const *texts, size_t count,
                                const struct manifest_file *file, size_t index, size_t launch,
                                const char *key, const struct expr_scope *scope) {
    status_t st = OK;
    for (size_t i = 0; i < count; i++)
        TRY(manifest_at(expr_new(&extents[i], texts[i], scope), file, index,
                        "launches[%zu].%s[%zu]", launch, key, i));
done:
    return st;
}

/* Is `text` one of these tensors, and does the kernel have it? */
static bool find_tensor(size_t *index, const struct op_tensor *tensors, size_t count,
                        const char *text) {
    for (*index = 0; *index < count; ++*index)
        if (strcmp(text, tensors[*index].name) == 0)
            return true;
    return false;
}

/* "f32:0.5" -> ARG_REAL. */
static status_t compile_arg(struct kernel_arg *arg, const struct manifest_kernel *m,
                            const struct kernel *kernel, const struct expr_scope *scope,
                            const char *text) {
    const char *colon = strchr(text, ':');
    const struct op *op = kernel->op;
    bool input = find_tensor(&arg->index, op->inputs, op_input_count(op), text);
    if (input || find_tensor(&arg->index, op->outputs, op_output_count(op), text)) {
        arg->kind = input ? ARG_INPUT : ARG_OUTPUT;
        if (!(input ? kernel_input(kernel, arg->index) : kernel_output(kernel, arg->index)))
            return FAIL(ERR_SYNTAX, "`%s`: `types` does not give this tensor a type", text);
        return OK;
    }
    for (size_t i = 0; i < m->scratch_count; i++)
        if (strcmp(text, m->scratch[i].name) == 0) {
            arg->kind = ARG_SCRATCH;
            arg->index = i;
            return OK;
        }
    for (size_t i = 0; i < m->tensor_map_count; i++)
        if (strcmp(text, m->tensor_maps[i].name) == 0) {
            arg->kind = ARG_TENSOR_MAP;
            arg->index = i;
            return OK;
        }
    arg->kind = ARG_INTEGER;
    if (colon && !strchr(text, '?')) { /* `a ? b : c` is an expression too */
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
        status_t st = find_dtype(&arg->dtype, name);
        if (st != OK)
            return st;
        arg->kind = ARG_REAL;
        text = colon + 1;
    }
    return expr_new(&arg->value, text, scope);
}

status_t launch_compile(struct kernel_launch *out, const struct manifest_file *file, size_t index,
                        size_t launch, const struct kernel *kernel,
                        const struct expr_scope *scope) {
    status_t st = OK;
    const struct manifest_kernel *k = &file->manifest->kernels[index];
    const struct manifest_launch *m = &k->launches[launch];

    *out = (struct kernel_launch){.entry = m->entry};
    out->args = calloc(m->arg_count + 1, sizeof *out->args);
    if (!out->args)
        TRY(FAIL(ERR_NOMEM, "no memory for a launch"));
    out->arg_count = m->arg_count;
    TRY(compile_extents(out->grid, m->grid, m->grid_count, file, index, launch, "grid", scope));
    TRY(compile_extents(out->block, m->block, m->block_count, file, index, launch, "block", scope));
    TRY(compile_extents(out->cluster, m->cluster, m->cluster_count, file, index, launch, "cluster",
                        scope));
    if (m->shared)
        TRY(manifest_at(expr_new(&out->shared, m->shared, scope), file, index,
                        "launches[%zu].shared", launch));
    for (size_t i = 0; i < m->arg_count; i++)
        TRY(manifest_at(compile_arg(&out->args[i], k, kernel, scope, m->args[i]), file, index,
                        "launches[%zu].args[%zu]", launch, i));
done:
    return st;
}

void launch_clear(struct kernel_launch *launch) {
    for (size_t i = 0; i < 3; i++) {
        expr_free(launch->grid[i]);
        expr_free(launch->block[i]);
        expr_free(launch->cluster[i]);
    }
    expr_free(launch->shared);
    for (size_t i = 0; i < launch->arg_count; i++)
        expr_free(launch->args[i].value);
    free(launch->args);
    *launch = (struct kernel_launch){0};
}

static status_t extents_at(unsigned out[3], struct expr *const extents[3], const char *key,
                           struct case_dims dims) {
    char at[SHAPE_SIZE];
    for (size_t i = 0; i < 3; i++) {
        size_t extent = 1;
        status_t st = extents[i] ? expr_size(&extent, extents[i], dims) : OK;
        if (st != OK)
            return st;
        if (extent < 1 || extent > INT_MAX) {
            expr_at(at, sizeof at, extents[i], dims);
            return FAIL(ERR_SYNTAX, "%s[%zu] = %zu at %s: expected 1 .. %d", key, i, extent, at,
                        INT_MAX);
        }
        out[i] = (unsigned)extent;
    }
    return OK;
}

status_t launch_extents(unsigned grid[3], unsigned block[3], const struct kernel_launch *launch,
                        struct case_dims dims) {
    status_t st = extents_at(grid, launch->grid, "grid", dims);
    return st == OK ? extents_at(block, launch->block, "block", dims) : st;
}

status_t launch_cluster(unsigned cluster[3], const struct kernel_launch *launch,
                        struct case_dims dims) {
    cluster[0] = cluster[1] = cluster[2] = 0;
    return launch->cluster[0] ? extents_at(cluster, launch->cluster, "cluster", dims) : OK;
}

status_t launch_try(const struct kernel_launch *launch, struct case_dims dims,
                    const struct manifest_file *file, size_t index, size_t i) {
    status_t st = OK;
    unsigned grid[3], block[3], cluster[3];
    size_t bytes;
    int64_t whole;
    double real;

    TRY(manifest_at(launch_extents(grid, block, launch, dims), file, index, "launches[%zu]", i));
    TRY(manifest_at(launch_cluster(cluster, launch, dims), file, index, "launches[%zu]", i));
    if (launch->shared)
        TRY(manifest_at(expr_size(&bytes, launch->shared, dims), file, index,
                        "launches[%zu].shared", i));
    for (size_t k = 0; k < launch->arg_count; k++) {
        const struct kernel_arg *arg = &launch->args[k];
        if (arg->kind == ARG_INTEGER)
            st = expr_integer(&whole, arg->value, dims);
        if (arg->kind == ARG_REAL)
            st = expr_real(&real, arg->value, dims);
        TRY(manifest_at(st, file, index, "launches[%zu].args[%zu]", i, k));
    }
done:
    return st;
}
