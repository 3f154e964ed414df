/* oracle/tensor.c - names of dimensions, element types, elements. */
#include "oracle/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

/* ---- dimensions ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t offset;
} dim_fields[DIM_END] = {
#define FIELD(dim, member) [dim] = {#member, offsetof(struct case_dims, member)}
    FIELD(DIM_ROWS, rows),   FIELD(DIM_COLS, cols),         FIELD(DIM_BATCH, batch),
    FIELD(DIM_HEADS, heads), FIELD(DIM_KV_HEADS, kv_heads), FIELD(DIM_QUERIES, queries),
    FIELD(DIM_KEYS, keys),   FIELD(DIM_HEAD_DIM, head_dim), FIELD(DIM_K, k),
    FIELD(DIM_PARTS, parts),
#undef FIELD
};

const char *dim_name(enum dim dim) {
    static const char *const derived[] = {"pages of a sequence", "pages of the pool",
                                          "keys of a page"};
    return dim < DIM_END ? dim_fields[dim].name : derived[dim - DIM_END];
}

enum dim dim_find(const char *name, size_t length) {
    for (enum dim d = DIM_NONE + 1; d < DIM_END; d++)
        if (strlen(dim_fields[d].name) == length && memcmp(dim_fields[d].name, name, length) == 0)
            return d;
    return DIM_NONE;
}

/* SIZE_MAX: more than that. */
static size_t derived(const struct case_dims *dims, enum dim dim) {
    const size_t pages = dims->keys / PAGE_KEYS + (dims->keys % PAGE_KEYS != 0);
    size_t pool;
    if (dim == DIM_PAGE_KEYS)
        return PAGE_KEYS;
    if (dim == DIM_PAGES)
        return pages;
    return size_mul(&pool, dims->batch, pages) && pool < SIZE_MAX ? pool + 1 : SIZE_MAX;
}

size_t dim_get(const struct case_dims *dims, enum dim dim) {
    size_t value;
    if (dim >= DIM_END)
        return derived(dims, dim);
    memcpy(&value, (const char *)dims + dim_fields[dim].offset, sizeof value);
    return value;
}

void dim_set(struct case_dims *dims, enum dim dim, size_t value) {
    memcpy((char *)dims + dim_fields[dim].offset, &value, sizeof value);
}

bool dims_equal(const struct case_dims *a, const struct case_dims *b) {
    return memcmp(a, b, sizeof *a) == 0; /* size_t throughout: no padding */
}

static void list_dims(char *out, size_t size, const enum dim *list, const struct case_dims *dims,
                      const char *format, const char *between) {
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; list[i] != DIM_NONE && at < size; i++) {
        at += (size_t)snprintf(out + at, size - at, "%s", i ? between : "");
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, format, dim_name(list[i]),
                                   dim_get(dims, list[i]));
    }
}

void dims_text(char *out, size_t size, const enum dim *list, const struct case_dims *dims) {
    list_dims(out, size, list, dims, "%s = %zu", ", ");
}

void dims_shape(char *out, size_t size, const enum dim *list, const struct case_dims *dims) {
    if (list[0] == DIM_ROWS && list[1] == DIM_COLS && list[2] == DIM_NONE)
        snprintf(out, size, "%zux%zu", dims->rows, dims->cols);
    else
        list_dims(out, size, list, dims, "%s=%zu", ",");
}

/* ---- tensors --------------------------------------------------------------------------------- */

const struct tensor_type tensor_types[] = {
    {"f32", TENSOR_REAL, 4, &dtypes[DT_F32]},
    {"f16", TENSOR_REAL, 2, &dtypes[DT_F16]},
    {"bf16", TENSOR_REAL, 2, &dtypes[DT_BF16]},
    {"i32", TENSOR_WHOLE, 4, NULL},
    {"i64", TENSOR_WHOLE, 8, NULL},
    {"u8", TENSOR_FLAG, 1, NULL},
    {0},
};

const struct tensor_type *tensor_type_find(const char *name) {
    for (const struct tensor_type *t = tensor_types; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

const struct tensor_type *tensor_type_of(const struct dtype *dt) {
    for (const struct tensor_type *t = tensor_types; t->name; t++)
        if (t->dtype == dt)
            return t;
    return NULL;
}

uint32_t tensor_bits(const struct tensor *t, size_t i) {
    return dtype_load(t->type->dtype, t->data, tensor_slot(t, i));
}

void tensor_set_bits(const struct tensor *t, size_t i, uint32_t bits) {
    dtype_store(t->type->dtype, t->data, tensor_slot(t, i), bits);
}

double tensor_get(const struct tensor *t, size_t i) {
    const unsigned char *at = (const unsigned char *)t->data + tensor_slot(t, i) * t->type->size;
    int32_t narrow;
    int64_t wide;
    switch (t->type->kind) {
    case TENSOR_REAL:
        return dtype_to_double(t->type->dtype, tensor_bits(t, i));
    case TENSOR_FLAG:
        return *at;
    case TENSOR_WHOLE:
        break;
    }
    if (t->type->size == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return (double)wide;
}

void tensor_row(double *out, const struct tensor *t, size_t first, size_t n) {
    if (t->type->kind == TENSOR_REAL && !t->ld)
        dtype_row(out, t->type->dtype, t->data, first, n);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = tensor_get(t, first + i);
}

void tensor_set(const struct tensor *t, size_t i, double value) {
    unsigned char *at = (unsigned char *)t->data + tensor_slot(t, i) * t->type->size;
    if (t->type->kind == TENSOR_REAL) {
        const struct dtype *dt = t->type->dtype;
        tensor_set_bits(t, i, dtype_from_double(dt, value, ROUND_NEAREST));
    } else if (t->type->size == 1) {
        *at = (unsigned char)value;
    } else if (t->type->size == sizeof(int32_t)) {
        int32_t narrow = (int32_t)value;
        memcpy(at, &narrow, sizeof narrow);
    } else {
        int64_t wide = (int64_t)value;
        memcpy(at, &wide, sizeof wide);
    }
}
