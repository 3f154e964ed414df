/*
 * oracle/tensor.h - a case's dimensions and its named tensors.
 *
 * A tensor is row-major, and dense but for a matrix with a leading dimension.  Its extents are
 * dimensions of the case, outermost first, or 1 for none.
 */
#ifndef ORACLE_TENSOR_H
#define ORACLE_TENSOR_H

#include "oracle/dtype.h"

/* ---- dimensions ------------------------------------------------------------------------------ */

enum dim {
    DIM_NONE, /* ends a list */
    DIM_ROWS,
    DIM_COLS,
    DIM_BATCH,
    DIM_HEADS,    /* of q and o; of rope's x */
    DIM_KV_HEADS, /* of k and v: divides heads */
    DIM_QUERIES,
    DIM_KEYS,
    DIM_HEAD_DIM,
    DIM_K,     /* of a top-k */
    DIM_PARTS, /* of a row, each with its lse: attention_combine */
    DIM_END,
    /* Of others, for the shapes of a paged cache; no case names them. */
    DIM_PAGES = DIM_END, /* of one sequence: ceil(keys / PAGE_KEYS) */
    DIM_POOL,            /* of all: one for each page of each sequence, and one more */
    DIM_PAGE_KEYS,       /* PAGE_KEYS */
    DIM_ALL
};

#define PAGE_KEYS 16
#define DIM_COUNT (DIM_END - 1)
#define MAX_DIMS 7 /* of one op or tensor, with the DIM_NONE that ends them */

/* In the order of enum dim.  A dimension that the op does not have is 0. */
struct case_dims {
    size_t rows, cols, batch, heads, kv_heads, queries, keys, head_dim, k, parts;
};

const char *dim_name(enum dim dim); /* "head_dim", as expressions and --shape have it */
enum dim dim_find(const char *name, size_t length); /* DIM_NONE: there is none */
size_t dim_get(const struct case_dims *dims, enum dim dim);
void dim_set(struct case_dims *dims, enum dim dim, size_t value);
bool dims_equal(const struct case_dims *a, const struct case_dims *b);

/* "rows = 4, cols = 33" for a list of dimensions; "4x33" and "batch=1,heads=2,..." as --shape has
 * it: the former for rows and cols alone. */
void dims_text(char *out, size_t size, const enum dim *list, const struct case_dims *dims);
void dims_shape(char *out, size_t size, const enum dim *list, const struct case_dims *dims);
#define SHAPE_SIZE 160

/* ---- tensors --------------------------------------------------------------------------------- */

enum tensor_kind { TENSOR_REAL, TENSOR_WHOLE, TENSOR_FLAG };

/* What one element is stored as: a format of dtype.h, signed integers, or a byte that is 0 or not. */
struct tensor_type {
    const char *name; /* "f32", "i32" */
    enum tensor_kind kind;
    size_t size;               /* bytes */
    const struct dtype *dtype; /* TENSOR_REAL */
};

extern const struct tensor_type tensor_types[];               /* ended by a row with name NULL */
const struct tensor_type *tensor_type_find(const char *name); /* or NULL */
const struct tensor_type *tensor_type_of(const struct dtype *dt);

/* Data of one tensor; type NULL: the case has none of this name. */
struct tensor {
    const struct tensor_type *type;
    size_t count; /* elements */
    void *data;
    size_t cols, ld; /* rows of cols elements, ld from one to the next; 0: dense */
};

/* Where element i stands, in elements from data on; and the bytes from data to the tensor's end. */
static inline size_t tensor_slot(const struct tensor *t, size_t i) {
    return t->ld ? i / t->cols * t->ld + i % t->cols : i;
}
static inline size_t tensor_bytes(const struct tensor *t) {
    return (t->ld ? t->count / t->cols * t->ld : t->count) * t->type->size;
}

/* Element i of a tensor of real numbers, as a datum. */
uint32_t tensor_bits(const struct tensor *t, size_t i);
void tensor_set_bits(const struct tensor *t, size_t i, uint32_t bits);

/* Element i as an exact value: integers up to 2^53. */
double tensor_get(const struct tensor *t, size_t i);
/* Elements first .. first + n - 1. */
void tensor_row(double *out, const struct tensor *t, size_t first, size_t n);
/* The nearest element to value: rounded to nearest even, or to a whole number. */
void tensor_set(const struct tensor *t, size_t i, double value);

#endif
