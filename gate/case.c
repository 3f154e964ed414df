/* gate/case.c - cases made, named and cleared. */
#include "gate/case_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/npy.h"

/* NaN between the rows: it must not matter. */
static void poison_padding(const struct tensor *t) {
    for (size_t i = 0; t->ld && i < tensor_bytes(t) / t->type->size; i++)
        dtype_store(t->type->dtype, t->data, i, t->type->dtype->nan);
}

/* At least one byte, so that NULL always means no memory. */
status_t case_begin(struct test_case *out, const struct kernel *kernel, struct case_dims dims) {
    char shape[SHAPE_SIZE];
    struct tensor_block block;
    status_t st = OK;
    *out = (struct test_case){.op = kernel->op, .dtype = kernel->in, .dims = dims};
    dims_shape(shape, sizeof shape, kernel->op->dims, &dims);
    if (kernel->detail || !op_is_matrix(kernel->op)) /* else it is of_matrix's */
        TRY(kernel_options(&out->options, kernel, dims));
    if (kernel_inputs(&block, kernel, dims, NULL) != OK || block.bytes > CASE_MAX_BYTES)
        TRY(FAIL(ERR_USAGE, "shape %s: a case holds at most %zu MiB", shape, CASE_MAX_BYTES >> 20));
    out->x = malloc(block.bytes ? block.bytes : 1);
    if (!out->x)
        TRY(FAIL(ERR_NOMEM, "no memory for a case of %s (%zu bytes)", shape, block.bytes));
    TRY(kernel_inputs(&block, kernel, dims, out->x));
    memcpy(out->in, block.tensors, sizeof out->in);
    for (size_t i = 0; i < OP_MAX_INPUTS; i++)
        poison_padding(&out->in[i]);
done:
    return st;
}

/* A kernel of nothing but a matrix's format. */
static struct kernel of_matrix(const struct dtype *dt) {
    return (struct kernel){.op = &ops[0], .in = dt, .out = dt, .acc = dt};
}

struct op_case case_for_op(const struct test_case *c, enum empty_row empty_row) {
    struct op_case out = {.dims = c->dims, .options = c->options, .empty_row = empty_row};
    memcpy(out.in, c->in, sizeof out.in);
    return out;
}

size_t case_work(const struct test_case *c) {
    size_t elements = 0;
    for (size_t i = 0; i < OP_MAX_INPUTS; i++)
        elements += c->in[i].count;
    return elements;
}

bool case_same(const struct kernel *a, const struct kernel *b) {
    if (a->op != b->op || a->in != b->in || a->empty_row != b->empty_row)
        return false;
    for (size_t i = 1; i < OP_MAX_INPUTS; i++)
        if (a->more_in[i] != b->more_in[i])
            return false;
    return kernel_same_options(a, b);
}

bool case_permutes(const struct kernel *kernel) {
    struct op_options options = {0};
    if (!kernel->op->spread)
        return false;
    for (size_t i = 1; i < OP_MAX_INPUTS; i++)
        if (kernel->more_in[i])
            return false;
    struct case_dims dims = {.rows = 1, .cols = 1};
    return !kernel->detail ||
           (kernel_options(&options, kernel, dims) == OK && !options.causal && !options.ld);
}

/* The first input, row by row. */
static status_t fill_rows(struct test_case *c, const struct fill *fill, uint64_t seed) {
    size_t rows, cols;
    struct tensor *x = &c->in[0];
    if (!fill->row || !op_unit_count(&rows, c->op, &c->dims) || rows == 0)
        return OK;
    cols = x->count / rows;
    uint32_t *bits = malloc((cols ? cols : 1) * sizeof *bits);
    if (!bits)
        return FAIL(ERR_NOMEM, "no memory for a row of %zu columns", cols);
    for (size_t row = 0; row < rows; row++) {
        fill->row(bits, c->dtype, row, (struct case_dims){.rows = rows, .cols = cols}, seed);
        for (size_t j = 0; j < cols; j++)
            tensor_set_bits(x, row * cols + j, bits[j]);
    }
    free(bits);
    return OK;
}

status_t case_make(struct test_case *out, const struct fill *fill, const struct kernel *kernel,
                   struct case_dims dims, uint64_t seed) {
    status_t st = OK;
    TRY(case_begin(out, kernel, dims));
    out->fill = fill;
    out->seed = seed;
    TRY(fill_rows(out, fill, seed));
    const struct op_case c = case_for_op(out, EMPTY_NAN);
    fill_others(out->op, &c, seed);
    if (fill->others)
        fill->others(&c, seed);
done:
    if (st != OK)
        case_clear(out);
    return st;
}

status_t case_from_fill(struct test_case *out, const struct fill *fill, const struct dtype *dt,
                        struct case_dims dims, uint64_t seed) {
    const struct kernel kernel = of_matrix(dt);
    return case_make(out, fill, &kernel, dims, seed);
}

/* The rows [first, first + *count) must be there; *count = 0 becomes what is left. */
static status_t check_rows(const struct npy *npy, const char *path, size_t first, size_t *count) {
    if (first > npy->rows || (first == npy->rows && first > 0))
        return FAIL(ERR_USAGE, "%s: row %zu is wanted, the file has %zu", path, first, npy->rows);
    if (*count == 0)
        *count = npy->rows - first;
    if (*count > npy->rows - first)
        return FAIL(ERR_USAGE, "%s: rows %zu to %zu are wanted, the file has %zu", path, first,
                    first + *count - 1, npy->rows);
    return OK;
}

status_t case_from_npy(struct test_case *out, const char *path, const struct kernel *kernel,
                       size_t first, size_t count) {
    *out = (struct test_case){0};
    struct npy npy = {0};
    status_t st = OK;
    if (kernel->op->dims[1] != DIM_COLS || kernel->op->dims[2] != DIM_NONE)
        return FAIL(ERR_UNSUPPORTED, "%s: the input of op %s is no matrix", path, kernel->op->name);
    TRY(npy_read(&npy, path));
    if (npy_misfit(&npy, kernel->in))
        TRY(FAIL(ERR_UNSUPPORTED, "%s: %s", path, npy_misfit(&npy, kernel->in)));
    TRY(check_rows(&npy, path, first, &count));
    TRY(case_begin(out, kernel, (struct case_dims){.rows = count, .cols = npy.cols}));
    out->first_row = first;
    out->part = count != npy.rows;
    out->path = strdup(path);
    if (!out->path)
        TRY(FAIL(ERR_NOMEM, "no memory for a path"));
    for (size_t i = 0; i < count * npy.cols; i++)
        tensor_set_bits(&out->in[0], i, npy_datum(&npy, kernel->in, first * npy.cols + i));
    const struct op_case c = case_for_op(out, EMPTY_NAN);
    fill_others(out->op, &c, 1);
done:
    npy_clear(&npy);
    if (st != OK)
        case_clear(out);
    return st;
}

status_t case_from_data(struct test_case *out, const void *x, const struct dtype *dt,
                        struct case_dims dims) {
    const struct kernel kernel = of_matrix(dt);
    status_t st = case_begin(out, &kernel, dims);
    if (st == OK)
        memcpy(out->x, x, dims.rows * dims.cols * dtype_size(dt));
    else
        case_clear(out);
    return st;
}

void case_clear(struct test_case *c) {
    free(c->x);
    free(c->path);
    free(c->line);
    *c = (struct test_case){0};
}

/* A word as the shell reads it back. */
void shell_word(char *out, size_t size, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./-+=:,@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        snprintf(out, size, "%s", word);
        return;
    }
    size_t at = 0;
    const char *end = out + size;
    char *to = out;
    if (size < 8)
        return;
    *to++ = '\'';
    for (; word[at] && to + 6 < end; at++) {
        if (word[at] == '\'') {
            memcpy(to, "'\\''", 4);
            to += 4;
        } else {
            *to++ = word[at];
        }
    }
    *to++ = '\'';
    *to = '\0';
}

void case_line(char *out, size_t size, const struct test_case *c) {
    if (c->fill) {
        char shape[SHAPE_SIZE];
        dims_shape(shape, sizeof shape, c->op->dims, &c->dims);
        snprintf(out, size, "--fill %s --shape %s --seed %llu", c->fill->name, shape,
                 (unsigned long long)c->seed);
    } else if (c->line) {
        snprintf(out, size, "%s", c->line);
    } else if (c->path) {
        char path[CASE_LINE_SIZE];
        shell_word(path, sizeof path, c->path);
        if (c->part)
            snprintf(out, size, "-i x=%s --rows %zu:%zu", path, c->first_row, c->dims.rows);
        else
            snprintf(out, size, "-i x=%s", path);
    } else {
        snprintf(out, size, "(data in memory)");
    }
}
