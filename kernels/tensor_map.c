/* Tensor maps of a manifest entry: see tensor_map.h. */
#include "kernels/tensor_map.h"

#include <stdio.h>
#include <string.h>

#include "kernels/bind.h"

/* ---- compiling ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum dev_tensor_type type;
} words[] = {
    {"u8", DEV_TENSOR_U8},   {"u16", DEV_TENSOR_U16}, {"u32", DEV_TENSOR_U32},
    {"i32", DEV_TENSOR_S32}, {"u64", DEV_TENSOR_U64}, {"i64", DEV_TENSOR_S64},
    {"f16", DEV_TENSOR_F16}, {"f32", DEV_TENSOR_F32}, {"f64", DEV_TENSOR_F64},
    {"bf16", DEV_TENSOR_BF16},
};

static status_t find_map_type(enum dev_tensor_type *out, const char *name) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i].name) == 0) {
            *out = words[i].type;
            return OK;
        }
    return FAIL(ERR_SYNTAX, "`%s`: expected u8, u16, u32, i32, u64, i64, f16, f32, f64 or bf16", name);
}

/* The buffer called `name`, and its element type; *type is NULL for a scratch buffer. */
static status_t find_buffer(size_t *number, const struct tensor_type **type,
                            const struct manifest_kernel *m, const struct kernel *kernel,
                            const char *name) {
    const struct op *op = kernel->op;
    for (size_t i = 0; i < op_input_count(op); i++)
        if (strcmp(name, op->inputs[i].name) == 0 && (*type = kernel_input(kernel, i))) {
            *number = i;
            return OK;
        }
    for (size_t i = 0; i < op_output_count(op); i++)
        if (strcmp(name, op->outputs[i].name) == 0 && (*type = kernel_output(kernel, i))) {
            *number = BUFFER_OUTPUTS + i;
            return OK;
        }
    *type = NULL;
    for (size_t i = 0; i < m->scratch_count; i++)
        if (strcmp(name, m->scratch[i].name) == 0) {
            *number = BUFFER_SCRATCH + i;
            return OK;
        }
    return FAIL(ERR_SYNTAX, "`%s` is no tensor or scratch buffer of this kernel", name);
}

static status_t compile_list(struct expr **out, char *const *texts, size_t count, size_t expected,
                             const char *key, const struct manifest_file *file, size_t index,
                             size_t map, const struct expr_scope *scope) {
    status_t st = OK;
    if (count != expected)
        return manifest_at(FAIL(ERR_SYNTAX, "%zu numbers were expected, there are %zu", expected,
                                count),
                           file, index, "tensor_maps[%zu].%s", map, key);
    for (size_t i = 0; i < count; i++)
        TRY(manifest_at(expr_new(&out[i], texts[i], scope), file, index, "tensor_maps[%zu].%s[%zu]",
                        map, key, i));
done:
    return st;
}

status_t tensor_map_compile(struct kernel_tensor_map *out, const struct manifest_file *file,
                            size_t index, size_t i, const struct kernel *kernel,
                            const struct expr_scope *scope) {
    status_t st = OK;
    const struct manifest_kernel *k = &file->manifest->kernels[index];
    const struct manifest_tensor_map *m = &k->tensor_maps[i];
    const struct tensor_type *type;
    *out = (struct kernel_tensor_map){.rank = m->dims_count};
    TRY(manifest_at(find_buffer(&out->buffer, &type, k, kernel, m->of), file, index,
                    "tensor_maps[%zu].of", i));
    if (!m->type && !type)
        TRY(manifest_at(FAIL(ERR_SYNTAX, "`%s` is a scratch buffer: type is required", m->of), file,
                        index, "tensor_maps[%zu]", i));
    const char *word = m->type ? m->type : type->name;
    TRY(manifest_at(find_map_type(&out->type, word), file, index, "tensor_maps[%zu].type", i));
    size_t rank = out->rank;
    TRY(compile_list(out->dims, m->dims, rank, rank, "dims", file, index, i, scope));
    TRY(compile_list(out->box, m->box, m->box_count, rank, "box", file, index, i, scope));
    if (m->strides_count)
        TRY(compile_list(out->strides, m->strides, m->strides_count, rank - 1, "strides", file,
                         index, i, scope));
    if (m->element_strides_count)
        TRY(compile_list(out->element_strides, m->element_strides, m->element_strides_count, rank,
                         "element_strides", file, index, i, scope));
    if (m->swizzle)
        TRY(manifest_at(expr_new(&out->swizzle, m->swizzle, scope), file, index,
                        "tensor_maps[%zu].swizzle", i));
done:
    return st;
}

void tensor_map_clear(struct kernel_tensor_map *map) {
    for (size_t i = 0; i < DEV_TENSOR_RANK; i++) {
        expr_free(map->dims[i]);
        expr_free(map->box[i]);
        expr_free(map->element_strides[i]);
        if (i)
            expr_free(map->strides[i - 1]);
    }
    expr_free(map->swizzle);
    *map = (struct kernel_tensor_map){0};
}

/* ---- at one shape ---------------------------------------------------------------------------- */

/* The value, or `otherwise` where nothing is written; larger than any limit stays so. */
static status_t number(uint64_t *out, struct expr *e, uint64_t otherwise, struct case_dims dims) {
    size_t value = 0;
    status_t st = e ? expr_size(&value, e, dims) : OK;
    *out = e ? value : otherwise;
    return st;
}

static unsigned narrowed(uint64_t value) {
    return value > UINT32_MAX ? UINT32_MAX : (unsigned)value;
}

status_t tensor_map_evaluate(struct dev_tensor_map *out, const struct kernel_tensor_map *map,
                             struct case_dims dims, const struct manifest_file *file, size_t index,
                             size_t i) {
    status_t st = OK;
    uint64_t value, dense = dev_tensor_type_bytes(map->type);
    *out = (struct dev_tensor_map){.type = map->type, .rank = map->rank};
    for (unsigned d = 0; d < map->rank; d++) {
        TRY(number(&out->dims[d], map->dims[d], 0, dims));
        TRY(number(&value, map->box[d], 0, dims));
        out->box[d] = narrowed(value);
        TRY(number(&value, map->element_strides[d], 1, dims));
        out->element_strides[d] = narrowed(value);
        dense *= out->dims[d];
        if (d + 1 < map->rank)
            TRY(number(&out->strides[d], map->strides[d], dense, dims));
    }
    TRY(number(&value, map->swizzle, 0, dims));
    out->swizzle = narrowed(value);
done:
    return manifest_at(st, file, index, "tensor_maps[%zu]", i);
}
