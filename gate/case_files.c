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

/* ---- a list of paths --------------------------------------------------------------------------- */

static size_t path_count(const char *list) {
    size_t n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

/* Number i of them. */
static status_t read_path(struct npy *out, const char *list, size_t i) {
    char path[4096];
    for (; i > 0; i--)
        list = strchr(list, ',') + 1;
    snprintf(path, sizeof path, "%.*s", (int)strcspn(list, ","), list);
    return npy_read_tensor(out, path);
}

static size_t rank_of(const enum dim *shape) {
    size_t rank = 0;
    while (rank < MAX_DIMS && shape[rank] != DIM_NONE)
        rank++;
    return rank;
}

/* Tokens x head_dim, where the tensor has sequences and heads. */
static bool is_slice(const struct npy *npy, const enum dim *shape) {
    return npy->dim_count == 2 && rank_of(shape) == 4;
}

static status_t check_slice(const struct npy *npy, const struct case_file *file) {
    if (file->rows > npy->dims[0] || file->first_row > npy->dims[0] - file->rows)
        return FAIL(ERR_USAGE, "%s: rows %zu to %zu are wanted, the file has %zu", file->path,
                    file->first_row, file->first_row + file->rows - 1, npy->dims[0]);
    return OK;
}

/* ---- dimensions -------------------------------------------------------------------------------- */

/* What the files tell of the tensor's dimension i. */
static size_t extent_of(const struct npy *npy, const enum dim *shape, const struct case_file *file,
                        size_t i) {
    const size_t missing = rank_of(shape) - npy->dim_count;
    if (i < missing)
        return i + 1 == missing ? path_count(file->path) : 1;
    return i == missing && missing && file->rows ? file->rows : npy->dims[i - missing];
}

/* The files' extents are those of the tensor's dimensions. */
static status_t bind(struct case_dims *dims, const struct op_tensor *t, const enum dim *shape,
                     const struct npy *npy, const struct case_file *file) {
    const size_t rank = rank_of(shape);
    status_t st = OK;
    if (npy->dim_count != rank && !is_slice(npy, shape))
        return FAIL(ERR_USAGE, "%s: %zu-d where %s has %zu dimensions", file->path, npy->dim_count,
                    t->name, rank);
    if (npy->dim_count == rank && path_count(file->path) > 1)
        return FAIL(ERR_USAGE, "%s: several files, each with all %zu dimensions of %s", file->path,
                    rank, t->name);
    if (npy->dim_count < rank)
        TRY(check_slice(npy, file));
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] >= DIM_END) /* not known before all others are: `fits_pages` */
            continue;
        size_t known = dim_get(dims, shape[i]), found = extent_of(npy, shape, file, i);
        if (known && known != found)
            return FAIL(ERR_USAGE, "%s: %s = %zu, and %zu elsewhere", file->path,
                        dim_name(shape[i]), found, known);
        dim_set(dims, shape[i], found);
    }
done:
    return st;
}

/* Extents that follow from the case's dimensions. */
static status_t fits_pages(const struct case_dims *dims, const enum dim *shape,
                           const struct npy *npy, const struct case_file *file) {
    for (size_t i = 0; i < rank_of(shape); i++)
        if (shape[i] >= DIM_END && extent_of(npy, shape, file, i) != dim_get(dims, shape[i]))
            return FAIL(ERR_USAGE, "%s: %s: %zu, expected %zu", file->path, dim_name(shape[i]),
                        extent_of(npy, shape, file, i), dim_get(dims, shape[i]));
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
        TRY(read_path(&npys[index], files[i].path, 0));
        TRY(bind(dims, &op->inputs[index], op_tensor_shape(op, &op->inputs[index], paged),
                 &npys[index], &files[i]));
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
                           &files[i]));
done:
    return st;
}

/* count elements of one file, from number `from` on, to elements `at` and on. */
static status_t copy_part(const struct tensor *to, size_t at, const struct npy *npy, size_t from,
                          size_t count, const char *path) {
    if (to->type->kind == TENSOR_REAL) {
        const struct dtype *dt = to->type->dtype;
        if (npy_misfit(npy, dt))
            return FAIL(ERR_UNSUPPORTED, "%s: %s", path, npy_misfit(npy, dt));
        for (size_t i = 0; i < count; i++)
            tensor_set_bits(to, at + i, npy_datum(npy, dt, from + i));
        return OK;
    }
    if (npy->type->kind == TENSOR_REAL || npy->type->size > to->type->size)
        return FAIL(ERR_UNSUPPORTED, "%s: %s where the kernel takes %s", path, npy->type->name,
                    to->type->name);
    /* Only read; and data of a file may have any alignment, which tensor_get allows. */
    const struct tensor data = {
        .type = npy->type, .count = from + count, .data = (void *)npy->data};
    for (size_t i = 0; i < count; i++)
        tensor_set(to, at + i, tensor_get(&data, from + i));
    return OK;
}

/* first: of the files the first, which the others are to be like. */
static status_t copy(const struct tensor *to, const struct npy *first,
                     const struct case_file *file) {
    const size_t parts = path_count(file->path);
    struct npy other = {0};
    status_t st = OK;
    if (!to->type)
        return FAIL(ERR_USAGE, "-i %s: the kernel does not take this input", file->name);
    const size_t count = to->count / parts;
    const size_t from = file->rows ? count / file->rows * file->first_row : 0;
    TRY(copy_part(to, 0, first, from, count, file->path));
    for (size_t p = 1; p < parts; p++) {
        TRY(read_path(&other, file->path, p));
        if (other.dim_count != first->dim_count ||
            memcmp(other.dims, first->dims, first->dim_count * sizeof *first->dims) != 0)
            TRY(FAIL(ERR_USAGE, "%s: file %zu has other dimensions than the first", file->path,
                     p + 1));
        TRY(copy_part(to, p * count, &other, from, count, file->path));
        npy_clear(&other);
    }
done:
    npy_clear(&other);
    return st;
}

void case_files_line(char *out, size_t size, const struct op *op, const struct case_file *files,
                     size_t count, const struct case_dims *dims) {
    char path[CASE_LINE_SIZE], shape[SHAPE_SIZE];
    size_t at = 0;
    for (size_t i = 0; i < count && at < size; i++) {
        shell_word(path, sizeof path, files[i].path);
        at += (size_t)snprintf(out + at, size - at, "-i %s=%s ", files[i].name, path);
    }
    if (at < size && count && files[0].rows)
        at += (size_t)snprintf(out + at, size - at, "--rows %zu:%zu ", files[0].first_row,
                               files[0].rows);
    dims_shape(shape, sizeof shape, op->dims, dims);
    if (at < size)
        at += (size_t)snprintf(out + at, size - at, "--shape %s", shape);
    if (at >= size)
        out[0] = '\0';
}

static status_t write_line(struct test_case *c, const struct case_file *files, size_t count) {
    char line[CASE_LINE_SIZE];
    case_files_line(line, sizeof line, c->op, files, count, &c->dims);
    if (!*line)
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
            TRY(copy(&out->in[index], &npys[index], &files[i]));
    TRY(write_line(out, files, count));
done:
    for (size_t i = 0; i < OP_MAX_INPUTS; i++)
        npy_clear(&npys[i]);
    if (st != OK)
        case_clear(out);
    return st;
}
