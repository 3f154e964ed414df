/*
 * kernels/tensor_map.h - one tensor map of a manifest entry: which buffer, and what of it the
 * kernel's cp.async.bulk.tensor copies at a time.
 */
#ifndef KERNELS_TENSOR_MAP_H
#define KERNELS_TENSOR_MAP_H

#include "device/device.h"
#include "kernels/expr.h"
#include "kernels/manifest.h"

struct kernel_tensor_map {
    size_t buffer; /* its number: bind.h */
    enum dev_tensor_type type;
    unsigned rank;
    struct expr *dims[DEV_TENSOR_RANK], *box[DEV_TENSOR_RANK]; /* elements */
    struct expr *strides[DEV_TENSOR_RANK - 1];                 /* bytes; NULL: without gaps */
    struct expr *element_strides[DEV_TENSOR_RANK];             /* NULL: 1 */
    struct expr *swizzle;                                      /* bytes; NULL: none */
};

/*
 * Compile map `i` of entry `index`.  ERR_SYNTAX with path and line, ERR_NOMEM; even then the caller
 * clears *out.
 */
MUST_CHECK status_t tensor_map_compile(struct kernel_tensor_map *out,
                                       const struct manifest_file *file, size_t index, size_t i,
                                       const struct kernel *kernel, const struct expr_scope *scope);
void tensor_map_clear(struct kernel_tensor_map *map);

/* Its numbers at one shape, without the address.  ERR_SYNTAX likewise. */
MUST_CHECK status_t tensor_map_evaluate(struct dev_tensor_map *out,
                                        const struct kernel_tensor_map *map, struct case_dims dims,
                                        const struct manifest_file *file, size_t index, size_t i);

#endif
