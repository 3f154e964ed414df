/* Where a kernel's tensors stand in a block of memory. */
#include "base/size.h"
#include "kernels/catalogue.h"

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
        if (!op_tensor_count(&t->count, inputs ? &op->inputs[i] : &op->outputs[i], &dims) ||
            !size_mul(&bytes, t->count, t->type->size) || bytes > SIZE_MAX / 64) {
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
