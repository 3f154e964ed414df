/* gate/case.c - cases made, named and cleared. */
#include "gate/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "gate/npy.h"

/* out->x for out->dims and out->dtype; at least one byte, so that NULL always means no memory. */
static status_t alloc_data(struct test_case *out) {
    size_t count, bytes;
    if (!size_mul(&count, out->dims.rows, out->dims.cols) ||
        !size_mul(&bytes, count, dtype_size(out->dtype)) || bytes > CASE_MAX_BYTES)
        return FAIL(ERR_USAGE, "shape %zux%zu: a case holds at most %zu MiB", out->dims.rows,
                    out->dims.cols, CASE_MAX_BYTES >> 20);
    out->x = malloc(bytes ? bytes : 1);
    if (!out->x)
        return FAIL(ERR_NOMEM, "no memory for a case of %zux%zu (%zu bytes)", out->dims.rows,
                    out->dims.cols, bytes);
    return OK;
}

static size_t row_bytes(const struct test_case *c) {
    return c->dims.cols * dtype_size(c->dtype);
}

status_t case_from_fill(struct test_case *out, const struct fill *fill, const struct dtype *dt,
                        struct case_dims dims, uint64_t seed) {
    *out = (struct test_case){.dtype = dt, .dims = dims, .fill = fill, .seed = seed};
    status_t st = alloc_data(out);
    if (st != OK)
        return st;
    uint32_t *bits = malloc((dims.cols ? dims.cols : 1) * sizeof *bits);
    if (!bits) {
        case_clear(out);
        return FAIL(ERR_NOMEM, "no memory for a row of %zu columns", dims.cols);
    }
    for (size_t row = 0; row < dims.rows; row++) {
        fill->row(bits, dt, row, dims, seed);
        for (size_t j = 0; j < dims.cols; j++)
            dtype_store(dt, out->x, row * dims.cols + j, bits[j]);
    }
    free(bits);
    return OK;
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

status_t case_from_npy(struct test_case *out, const char *path, const struct dtype *dt,
                       size_t first, size_t count) {
    *out = (struct test_case){.dtype = dt, .first_row = first};
    struct npy npy = {0};
    status_t st = OK;
    TRY(npy_read(&npy, path));
    if (npy_misfit(&npy, dt))
        TRY(FAIL(ERR_UNSUPPORTED, "%s: %s", path, npy_misfit(&npy, dt)));
    TRY(check_rows(&npy, path, first, &count));
    out->dims = (struct case_dims){count, npy.cols};
    out->part = count != npy.rows;
    out->path = strdup(path);
    if (!out->path)
        TRY(FAIL(ERR_NOMEM, "no memory for a path"));
    TRY(alloc_data(out));
    for (size_t i = 0; i < count * npy.cols; i++)
        dtype_store(dt, out->x, i, npy_datum(&npy, dt, first * npy.cols + i));
done:
    npy_clear(&npy);
    if (st != OK)
        case_clear(out);
    return st;
}

status_t case_from_data(struct test_case *out, const void *x, const struct dtype *dt,
                        struct case_dims dims) {
    *out = (struct test_case){.dtype = dt, .dims = dims};
    status_t st = alloc_data(out);
    if (st == OK)
        memcpy(out->x, x, dims.rows * row_bytes(out));
    return st;
}

void case_clear(struct test_case *c) {
    free(c->x);
    free(c->path);
    *c = (struct test_case){0};
}

void case_row(double *x, const struct test_case *c, size_t row) {
    dtype_row(x, c->dtype, c->x, row * c->dims.cols, c->dims.cols);
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
        snprintf(out, size, "--fill %s --shape %zux%zu --seed %llu", c->fill->name, c->dims.rows,
                 c->dims.cols, (unsigned long long)c->seed);
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
