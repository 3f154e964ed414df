/* Where a kernel's tensors stand in a block of memory. */
#include "base/size.h"
#include "kernels/catalogue.h"

/* The leading dimension of this tensor; 0: dense. */
static status_t find_ld(size_t *ld, const struct kernel *k, const struct op_tensor *t,
                        struct case_dims dims) {
    struct op_options options;
    *ld = 0;
    if (!k->detail || t->kind != TENSOR_REAL || t->shape[0] != DIM_ROWS ||
        t->shape[1] != DIM_COLS || t->shape[2] != DIM_NONE)
        return OK;
    status_t st = kernel_options(&options, k, dims);
    if (st == OK && options.ld && options.ld < dims.cols)
        return FAIL(ERR_SYNTAX, "ld = %zu: expected at least cols = %zu", options.ld, dims.cols);
    *ld = options.ld;
    return st;
}

static status_t place_tensors(struct tensor_block *out, const struct kernel *k,
                              struct case_dims dims, void *data, bool inputs) {
    const struct op *op = k->op;
    *out = (struct tensor_block){0};
    for (size_t i = 0; i < (inputs ? op_input_count(op) : op_output_count(op)); i++) {
        struct tensor *t = &out->tensors[i];
        size_t bytes;
        t->type = inputs ? kernel_input(k, i) : kernel_output(k, i);
        if (!t->type)
            continue;
        const struct op_tensor *of = inputs ? &op->inputs[i] : &op->outputs[i];
        status_t st = find_ld(&t->ld, k, of, dims);
        if (st != OK)
            return st;
        t->cols = dims.cols;
        const enum dim *shape = op_tensor_shape(op, of, kernel_paged(k));
        if (!op_tensor_count(&t->count, shape, &dims) ||
            !size_mul(&bytes, t->ld ? dims.rows : t->count, t->type->size) ||
            !size_mul(&bytes, bytes, t->ld ? t->ld : 1) || bytes > SIZE_MAX / 64) {
            char at[SHAPE_SIZE];
            dims_shape(at, sizeof at, op->dims, &dims);
            return FAIL(ERR_USAGE, "shape %s is larger than any memory", at);
        }
        t->data = data ? (char *)data + out->bytes : NULL;
        out->bytes += size_align(bytes, 16);
    }
    return OK;
}

status_t kernel_inputs(struct tensor_block *out, const struct kernel *kernel, struct case_dims dims,
                       void *data) {
    return place_tensors(out, kernel, dims, data, true);
}

status_t kernel_outputs(struct tensor_block *out, const struct kernel *kernel,
                        struct case_dims dims, void *data) {
    return place_tensors(out, kernel, dims, data, false);
}
