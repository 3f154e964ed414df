/* Extents and arguments of a launch. */
#include "kernels/launch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

status_t find_dtype(const struct dtype **out, const char *name) {
    char known[64];
    size_t used = 0;
    *out = dtype_find(name);
    if (*out)
        return OK;
    for (size_t i = 0; i < DT_COUNT && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", dtypes[i].name);
    return FAIL(ERR_SYNTAX, "unknown dtype `%s`: expected one of%s", name, known);
}

static status_t compile_extents(struct expr *extents[3], char *const *texts, size_t count,
                                const struct manifest_file *file, size_t index, size_t launch,
                                const char *key) {
    status_t st = OK;
    for (size_t i = 0; i < count; i++)
        TRY(manifest_at(expr_new(&extents[i], texts[i]), file, index, "launches[%zu].%s[%zu]",
                        launch, key, i));
done:
    return st;
}

/* "f32:0.5" -> ARG_REAL. */
static status_t compile_arg(struct kernel_arg *arg, const struct manifest_kernel *m,
                            const char *text) {
    const char *colon = strchr(text, ':');
    if (strcmp(text, "x") == 0 || strcmp(text, "y") == 0) {
        arg->kind = text[0] == 'x' ? ARG_X : ARG_Y;
        return OK;
    }
    for (size_t i = 0; i < m->scratch_count; i++)
        if (strcmp(text, m->scratch[i].name) == 0) {
            arg->kind = ARG_SCRATCH;
            arg->scratch = i;
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
    return expr_new(&arg->value, text);
}

status_t launch_compile(struct kernel_launch *out, const struct manifest_file *file, size_t index,
                        size_t launch) {
    status_t st = OK;
    const struct manifest_kernel *k = &file->manifest->kernels[index];
    const struct manifest_launch *m = &k->launches[launch];

    *out = (struct kernel_launch){.entry = m->entry};
    out->args = calloc(m->arg_count + 1, sizeof *out->args);
    if (!out->args)
        TRY(FAIL(ERR_NOMEM, "no memory for a launch"));
    out->arg_count = m->arg_count;
    TRY(compile_extents(out->grid, m->grid, m->grid_count, file, index, launch, "grid"));
    TRY(compile_extents(out->block, m->block, m->block_count, file, index, launch, "block"));
    TRY(compile_extents(out->cluster, m->cluster, m->cluster_count, file, index, launch,
                        "cluster"));
    if (m->shared)
        TRY(manifest_at(expr_new(&out->shared, m->shared), file, index, "launches[%zu].shared",
                        launch));
    for (size_t i = 0; i < m->arg_count; i++)
        TRY(manifest_at(compile_arg(&out->args[i], k, m->args[i]), file, index,
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
    for (size_t i = 0; i < 3; i++) {
        size_t extent = 1;
        status_t st = extents[i] ? expr_size(&extent, extents[i], dims) : OK;
        if (st != OK)
            return st;
        if (extent < 1 || extent > INT_MAX)
            return FAIL(ERR_SYNTAX, "%s[%zu] = %zu at rows = %zu, cols = %zu: expected 1 .. %d",
                        key, i, extent, dims.rows, dims.cols, INT_MAX);
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
