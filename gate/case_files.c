/* gate/case_files.c - a case of several tensors, each from a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/case_impl.h"
#include "gate/npy.h"

static bool find_input(size_t *index, const struct op *op, const char *name) {
    for (*index = 0; *index < op_input_count(op); ++*index)
        if (strcmp(op->inputs[*index].name, name) == 0)
            return true;
    return false;
}

/* The file's extents are those of the tensor's dimensions. */
static status_t bind(struct case_dims *dims, const struct op_tensor *t, const enum dim *shape,
                     const struct npy *npy, const char *path) {
    size_t rank = 0;
    while (rank < MAX_DIMS && shape[rank] != DIM_NONE)
        rank++;
    if (npy->dim_count != rank)
        return FAIL(ERR_USAGE, "%s: %zu-d where %s has %zu dimensions", path, npy->dim_count,
                    t->name, rank);
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] >= DIM_END) /* not known before all others are: `fits_pages` */
            continue;
        size_t known = dim_get(dims, shape[i]);
        if (known && known != npy->dims[i])
            return FAIL(ERR_USAGE, "%s: %s = %zu, and %zu elsewhere", path, dim_name(shape[i]),
                        npy->dims[i], known);
        dim_set(dims, shape[i], npy->dims[i]);
    }
    return OK;
}

/* Extents that follow from the case's dimensions. */
static status_t fits_pages(const struct case_dims *dims, const enum dim *shape,
                           const struct npy *npy, const char *path) {
    for (size_t i = 0; i < MAX_DIMS && shape[i] != DIM_NONE; i++)
        if (shape[i] >= DIM_END && npy->dims[i] != dim_get(dims, shape[i]))
            return FAIL(ERR_USAGE, "%s: %s: %zu, expected %zu", path, dim_name(shape[i]),
                        npy->dims[i], dim_get(dims, shape[i]));
    return OK;
}

static status_t read_all(struct npy *npys, struct case_dims *dims, const struct op *op,
                         const struct case_file *files, size_t count, bool paged) {
    status_t st = OK;
    bool given[OP_MAX_INPUTS] = {0};
    size_t index;
    for (size_t i = 0; i < count; i++) {
        if (!find_input(&index, op, files[i].name))
            TRY(FAIL(ERR_USAGE, "-i %s: op %s has no such input", files[i].name, op->name));
        if (given[index])
            TRY(FAIL(ERR_USAGE, "-i %s: given twice", files[i].name));
        given[index] = true;
        TRY(npy_read_tensor(&npys[index], files[i].path));
        TRY(bind(dims, &op->inputs[index], op_tensor_shape(op, &op->inputs[index], paged), &npys[index],
                 files[i].path));
    }
    for (size_t i = 0; i < op_input_count(op); i++)
        if (!given[i] && !op->inputs[i].optional && op->inputs[i].kind == TENSOR_REAL)
            TRY(FAIL(ERR_USAGE, "op %s: input %s is missing: -i %s=FILE.npy", op->name,
                     op->inputs[i].name, op->inputs[i].name));
    for (size_t i = 0; op->dims[i] != DIM_NONE; i++)
        if (dim_get(dims, op->dims[i]) == 0)
            TRY(FAIL(ERR_USAGE, "op %s: no file tells %s: --shape %s=N", op->name,
                     dim_name(op->dims[i]), dim_name(op->dims[i])));
    for (size_t i = 0; i < count; i++)
        if (find_input(&index, op, files[i].name))
            TRY(fits_pages(dims, op_tensor_shape(op, &op->inputs[index], paged), &npys[index],
                           files[i].path));
done:
    return st;
}

static status_t copy(const struct tensor *to, const struct npy *npy, const char *name,
                     const char *path) {
    if (!to->type)
        return FAIL(ERR_USAGE, "-i %s: the kernel does not take this input", name);
    if (to->type->kind == TENSOR_REAL) {
        const struct dtype *dt = to->type->dtype;
        if (npy_misfit(npy, dt))
            return FAIL(ERR_UNSUPPORTED, "%s: %s", path, npy_misfit(npy, dt));
        for (size_t i = 0; i < to->count; i++)
            tensor_set_bits(to, i, npy_datum(npy, dt, i));
        return OK;
    }
    if (npy->type->kind == TENSOR_REAL || npy->type->size > to->type->size)
        return FAIL(ERR_UNSUPPORTED, "%s: %s where the kernel takes %s", path, npy->type->name,
                    to->type->name);
    /* Only read; and data of a file may have any alignment, which tensor_get allows. */
    const struct tensor from = {.type = npy->type, .count = to->count, .data = (void *)npy->data};
    for (size_t i = 0; i < to->count; i++)
        tensor_set(to, i, tensor_get(&from, i));
    return OK;
}

/* "-i q=a.npy -i k=b.npy --shape ..." */
static status_t write_line(struct test_case *c, const struct case_file *files, size_t count) {
    char line[CASE_LINE_SIZE], path[CASE_LINE_SIZE], shape[SHAPE_SIZE];
    size_t at = 0;
    for (size_t i = 0; i < count && at < sizeof line; i++) {
        shell_word(path, sizeof path, files[i].path);
        at += (size_t)snprintf(line + at, sizeof line - at, "-i %s=%s ", files[i].name, path);
    }
    dims_shape(shape, sizeof shape, c->op->dims, &c->dims);
    if (at < sizeof line)
        at += (size_t)snprintf(line + at, sizeof line - at, "--shape %s", shape);
    if (at >= sizeof line)
        return FAIL(ERR_USAGE, "the files' paths are too long for a case line of %d characters",
                    CASE_LINE_SIZE);
    c->line = strdup(line);
    return c->line ? OK : FAIL(ERR_NOMEM, "no memory for a case line");
}

status_t case_from_files(struct test_case *out, const struct kernel *kernel,
                         const struct case_file *files, size_t count, struct case_dims dims) {
    struct npy npys[OP_MAX_INPUTS] = {0};
    status_t st = OK;
    size_t index;
    *out = (struct test_case){0};
    TRY(read_all(npys, &dims, kernel->op, files, count, kernel_paged(kernel)));
    TRY(case_begin(out, kernel, dims));
    const struct op_case c = case_for_op(out, EMPTY_NAN);
    fill_others(out->op, &c, 1);
    for (size_t i = 0; i < count; i++)
        if (find_input(&index, out->op, files[i].name))
            TRY(copy(&out->in[index], &npys[index], files[i].name, files[i].path));
    TRY(write_line(out, files, count));
done:
    for (size_t i = 0; i < OP_MAX_INPUTS; i++)
        npy_clear(&npys[i]);
    if (st != OK)
        case_clear(out);
    return st;
}
