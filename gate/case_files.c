/* gate/case_files.c - a case of several tensors, each from a file. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/case_impl.h"
#include "gate/npy.h"

static bool find_input(size_t *index, const struct op *op, const char *name) {
    for (*index = 0; *index < op_input_count(op); ++*index)
        if (strcmp(op->inputs[*index].name, name) == 0)
            return true;
    return false;
}

/* ---- a list of paths --------------------------------------------------------------------------- */

/* One, where the whole text names a file: a path may have commas in it. */
static size_t path_count(const char *list) {
    size_t n = 1;
    for (const char *at = list; *at; at++)
        n += *at == ',';
    return n > 1 && access(list, F_OK) == 0 ? 1 : n;
}

/* Number i of `count`. */
static status_t read_path(struct npy *out, const char *list, size_t i, size_t count) {
    if (count == 1)
        return npy_read_tensor(out, list);
    for (; i > 0; i--)
        list = strchr(list, ',') + 1;
    char *path = strndup(list, strcspn(list, ","));
    if (!path)
        return FAIL(ERR_NOMEM, "no memory for a path");
    status_t st = npy_read_tensor(out, path);
    free(path);
    return st;
}

/* What is given for one input. */
struct given {
    const struct case_file *file; /* NULL: nothing */
    size_t parts;                 /* how many paths it has */
    struct npy first;             /* the others are to be like it */
};

static size_t rank_of(const enum dim *shape) {
    size_t rank = 0;
    while (rank < MAX_DIMS && shape[rank] != DIM_NONE)
        rank++;
    return rank;
}

/* A 2-d file where the tensor has sequences and heads too: that of one head. */
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
static size_t extent_of(const struct given *g, const enum dim *shape, size_t i) {
    const size_t missing = rank_of(shape) - g->first.dim_count;
    if (i < missing)
        return i + 1 == missing ? g->parts : 1;
    return i == missing && missing && g->file->rows ? g->file->rows : g->first.dims[i - missing];
}

/* The files' extents are those of the tensor's dimensions. */
static status_t bind(struct case_dims *dims, const struct op_tensor *t, const enum dim *shape,
                     const struct given *g) {
    const char *path = g->file->path;
    const size_t rank = rank_of(shape);
    status_t st = OK;
    if (g->first.dim_count != rank && !is_slice(&g->first, shape))
        return FAIL(ERR_USAGE, "%s: %zu-d where %s has %zu dimensions", path, g->first.dim_count,
                    t->name, rank);
    if (g->first.dim_count == rank && g->parts > 1)
        return FAIL(ERR_USAGE, "%s: several files, each with all %zu dimensions of %s", path, rank,
                    t->name);
    if (is_slice(&g->first, shape))
        TRY(check_slice(&g->first, g->file));
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] >= DIM_END) /* not known before all others are: `fits` */
            continue;
        size_t known = dim_get(dims, shape[i]), found = extent_of(g, shape, i);
        if (known && known != found)
            return FAIL(ERR_USAGE, "%s: %s = %zu, and %zu elsewhere", path, dim_name(shape[i]),
                        found, known);
        dim_set(dims, shape[i], found);
    }
done:
    return st;
}

/* Now that all dimensions are known, the files have them: also one of 0, which told nothing. */
static status_t fits(const struct case_dims *dims, const enum dim *shape, const struct given *g) {
    for (size_t i = 0; i < rank_of(shape); i++)
        if (extent_of(g, shape, i) != dim_get(dims, shape[i]))
            return FAIL(ERR_USAGE, "%s: %s: %zu, expected %zu", g->file->path, dim_name(shape[i]),
                        extent_of(g, shape, i), dim_get(dims, shape[i]));
    return OK;
}

/* Rows are tokens of slices; where no file is one they would say nothing. */
static status_t check_rows(const struct given *given, const struct op *op, bool paged) {
    bool wanted = false;
    for (size_t i = 0; i < op_input_count(op); i++) {
        const struct given *g = &given[i];
        if (!g->file || !g->file->rows)
            continue;
        wanted = true;
        if (is_slice(&g->first, op_tensor_shape(op, &op->inputs[i], paged)))
            return OK;
    }
    return wanted ? FAIL(ERR_USAGE, "--rows: no file is that of one head (tokens x head_dim)") : OK;
}

static status_t read_all(struct given *given, struct case_dims *dims, const struct op *op,
                         const struct case_file *files, size_t count, bool paged) {
    status_t st = OK;
    size_t index;
    for (size_t i = 0; i < count; i++) {
        if (!find_input(&index, op, files[i].name))
            TRY(FAIL(ERR_USAGE, "-i %s: op %s has no such input", files[i].name, op->name));
        struct given *g = &given[index];
        if (g->file)
            TRY(FAIL(ERR_USAGE, "-i %s: given twice", files[i].name));
        g->file = &files[i];
        g->parts = path_count(files[i].path);
        TRY(read_path(&g->first, files[i].path, 0, g->parts));
        TRY(bind(dims, &op->inputs[index], op_tensor_shape(op, &op->inputs[index], paged), g));
    }
    for (size_t i = 0; i < op_input_count(op); i++)
        if (!given[i].file && !op->inputs[i].optional && op->inputs[i].kind == TENSOR_REAL)
            TRY(FAIL(ERR_USAGE, "op %s: input %s is missing: -i %s=FILE.npy", op->name,
                     op->inputs[i].name, op->inputs[i].name));
    TRY(check_rows(given, op, paged));
    for (size_t i = 0; op->dims[i] != DIM_NONE; i++)
        if (dim_get(dims, op->dims[i]) == 0)
            TRY(FAIL(ERR_USAGE, "op %s: no file tells %s: --shape %s=N", op->name,
                     dim_name(op->dims[i]), dim_name(op->dims[i])));
    for (size_t i = 0; i < op_input_count(op); i++)
        if (given[i].file)
            TRY(fits(dims, op_tensor_shape(op, &op->inputs[i], paged), &given[i]));
done:
    return st;
}

/* count elements of one file, from number `from` on, to elements `at` and on. */
static status_t copy_part(const struct tensor *to, size_t at, const struct npy *npy, size_t from,
                          size_t count, const char *path) {
    size_t room = 1;
    for (size_t i = 0; i < npy->dim_count; i++)
        room *= npy->dims[i];
    assert(from + count <= room);
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

static status_t copy(const struct tensor *to, const enum dim *shape, const struct given *g) {
    const struct case_file *file = g->file;
    const struct npy *first = &g->first;
    struct npy other = {0};
    status_t st = OK;
    if (!to->type)
        return FAIL(ERR_USAGE, "-i %s: the kernel does not take this input", file->name);
    const size_t count = to->count / g->parts;
    const bool part = is_slice(first, shape) && file->rows; /* other files are taken whole */
    const size_t from = part ? count / file->rows * file->first_row : 0;
    TRY(copy_part(to, 0, first, from, count, file->path));
    for (size_t p = 1; p < g->parts; p++) {
        TRY(read_path(&other, file->path, p, g->parts));
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
    struct given given[OP_MAX_INPUTS] = {0};
    const bool paged = kernel_paged(kernel);
    status_t st = OK;
    *out = (struct test_case){0};
    TRY(read_all(given, &dims, kernel->op, files, count, paged));
    TRY(case_begin(out, kernel, dims));
    const struct op_case c = case_for_op(out, EMPTY_NAN);
    fill_others(out->op, &c, 1);
    for (size_t i = 0; i < op_input_count(out->op); i++)
        if (given[i].file)
            TRY(copy(&out->in[i], op_tensor_shape(out->op, &out->op->inputs[i], paged), &given[i]));
    TRY(write_line(out, files, count));
done:
    for (size_t i = 0; i < OP_MAX_INPUTS; i++)
        npy_clear(&given[i].first);
    if (st != OK)
        case_clear(out);
    return st;
}
