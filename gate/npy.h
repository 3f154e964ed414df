/*
 * gate/npy.h - NumPy's .npy files, versions 1 to 3: little-endian, C order.
 *
 *   '<f4'          f32
 *   '<f2'          f16
 *   '<u2', '|V2'   bf16: NumPy has no such dtype, so its bit patterns travel under these, or its
 *                  values as f32
 *
 * and, where a tensor of whole numbers is wanted, '<i4', '<i8', '|u1' and '|b1'.  A matrix is
 * two-dimensional, another tensor has the dimensions of its op.
 *
 * Everything else is refused in one line that says what was found and what is wanted.  The reader
 * trusts nothing in the file: sizes are checked against the file's length before any memory is asked
 * for.
 */
#ifndef GATE_NPY_H
#define GATE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "oracle/tensor.h"

#define NPY_MAX_DIMS 8

struct npy {
    const struct tensor_type *type;
    const struct dtype *dtype; /* type's; NULL for whole numbers */
    size_t dim_count, dims[NPY_MAX_DIMS];
    size_t rows, cols; /* of a matrix */
    const void *data;  /* row-major; inside `bytes`, any alignment */
    char *bytes;       /* the whole file; owned; NULL after npy_parse */
};

/*
 * Parse a file's content.  label names it in messages.  out->data points into bytes.
 * ERR_SYNTAX for a broken file, ERR_UNSUPPORTED for a sound one that Assay does not read.
 */
MUST_CHECK status_t npy_parse(struct npy *out, const char *label, const unsigned char *bytes,
                              size_t size);
/* The same for a tensor of any type and shape. */
MUST_CHECK status_t npy_read_tensor(struct npy *out, const char *path);
/* NULL if every datum can be read as one of format dt: the same format, or f32 whose values are all
 * exact in dt; else what stands in the way.  NumPy has no bf16, so people save bf16 as f32. */
const char *npy_misfit(const struct npy *npy, const struct dtype *dt);
/* Datum i in format dt, for an npy that fits. */
uint32_t npy_datum(const struct npy *npy, const struct dtype *dt, size_t i);

/* Read and parse a file.  Also ERR_IO, ERR_NOMEM. */
MUST_CHECK status_t npy_read(struct npy *out, const char *path);
void npy_clear(struct npy *npy); /* safe on a zeroed struct, and twice */

/* The dtype string under which this format is written: "<f4". */
const char *npy_descr(const struct dtype *dt);

/* Write rows x cols data as a version 1 file.  ERR_IO. */
MUST_CHECK status_t npy_write(const char *path, const struct dtype *dt, size_t rows, size_t cols,
                              const void *data);

#endif
