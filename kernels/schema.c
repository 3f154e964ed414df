/* The form of a manifest: its keys, which of them must be given, and the words that some take. */
#include "kernels/schema.h"

#include <stdio.h>
#include <string.h>

#include "kernels/catalogue.h"
#include "kernels/manifest.h"

/* ---- words ----------------------------------------------------------------------------------- */

static const cyaml_strval_t empty_rows[] = {
    {"nan", EMPTY_NAN},
    {"zero", EMPTY_ZERO},
    {"uniform", EMPTY_UNIFORM},
};

static const cyaml_strval_t exps[] = {
    {"none", EXP_NONE},
    {"expf", EXP_EXPF},
    {"fast", EXP_FAST},
    {"ex2_folded", EXP_EX2_FOLDED},
    {"ex2_poly", EXP_EX2_POLY},
};

static const cyaml_strval_t rescales[] = {
    {"none", RESCALE_NONE},
    {"online", RESCALE_ONLINE},
};

static const cyaml_strval_t divides[] = {
    {"none", DIVIDE_NONE},
    {"ieee", DIVIDE_IEEE},
    {"reciprocal", DIVIDE_RECIPROCAL},
    {"approx", DIVIDE_APPROX},
};

static const cyaml_strval_t logs[] = {
    {"none", LOG_NONE},
    {"logf", LOG_LOGF},
    {"fast", LOG_FAST},
};

static const cyaml_strval_t variances[] = {
    {"none", VARIANCE_NONE},
    {"two_pass", VARIANCE_TWO_PASS},
    {"welford", VARIANCE_WELFORD},
    {"one_pass", VARIANCE_ONE_PASS},
};

static const cyaml_strval_t rsqrts[] = {
    {"none", RSQRT_NONE},
    {"ieee", RSQRT_IEEE},
    {"approx", RSQRT_APPROX},
};

static const cyaml_strval_t trigs[] = {
    {"none", TRIG_NONE},
    {"sincosf", TRIG_SINCOSF},
    {"fast", TRIG_FAST},
    {"table", TRIG_TABLE},
};

static const cyaml_strval_t tanhs[] = {
    {"none", TANH_NONE},
    {"tanhf", TANH_TANHF},
    {"fast", TANH_FAST},
};

static const cyaml_strval_t tensor_cores[] = {
    {"none", TENSOR_CORE_NONE},
    {"16bit", TENSOR_CORE_16BIT},
    {"tf32", TENSOR_CORE_TF32},
    {"tf32x3", TENSOR_CORE_TF32X3},
};

static const cyaml_strval_t topks[] = {
    {"by_input", TOPK_BY_INPUT},
    {"ties_free", TOPK_TIES_FREE},
    {"by_probability", TOPK_BY_PROBABILITY},
};

static const cyaml_strval_t layouts[] = {
    {"interleaved", ROPE_INTERLEAVED},
    {"half", ROPE_HALF_SPLIT},
};

static const cyaml_strval_t roundings[] = {
    {"as_written", ROUNDING_AS_WRITTEN},
    {"rn", ROUNDING_RN},
};

/* libcyaml's own booleans take every other word for true. */
static const cyaml_strval_t truths[] = {
    {"false", false},
    {"true", true},
};

static const cyaml_strval_t combines[] = {
    {"within", false},
    {"exact", true},
};

/* ---- schema ---------------------------------------------------------------------------------- */

#define REQUIRED CYAML_FLAG_POINTER
#define OPTIONAL (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define WORD (CYAML_FLAG_STRICT | CYAML_FLAG_OPTIONAL)

/* A string of at least one character, owned by the struct. */
#define STRING(flags, type, member) \
    CYAML_FIELD_STRING_PTR(#member, flags, struct type, member, 1, MAX_STRING)

#define MAX_STRING 1000 /* characters: names, paths, expressions, summaries */
#define MAX_ARGS 64
#define MAX_KERNELS 4096

/* One of a list of words. */
#define ENUM(type, member, words) \
    CYAML_FIELD_ENUM(#member, WORD, struct type, member, words, CYAML_ARRAY_LEN(words))

static const cyaml_schema_value_t string_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, MAX_STRING),
};

/* clang-format off */
#define TYPE_FIELDS(FIELD) FIELD(x) FIELD(y) FIELD(acc) FIELD(w) FIELD(b) FIELD(positions) \
    FIELD(q) FIELD(k) FIELD(v) FIELD(o) FIELD(lse) FIELD(lengths) FIELD(bias) FIELD(mask)       \
    FIELD(slopes) FIELD(sinks) FIELD(p) FIELD(index) FIELD(o_p) FIELD(lse_p) \
    FIELD(block_table)

#define ACCEPT_FIELDS(FIELD)                                                                 \
    FIELD(DIM_ROWS, rows) FIELD(DIM_COLS, cols) FIELD(DIM_BATCH, batch)                      \
    FIELD(DIM_HEADS, heads) FIELD(DIM_KV_HEADS, kv_heads) FIELD(DIM_QUERIES, queries)        \
    FIELD(DIM_KEYS, keys) FIELD(DIM_HEAD_DIM, head_dim) FIELD(DIM_K, k)                      \
    FIELD(DIM_PARTS, parts)
/* clang-format on */

static const cyaml_schema_field_t types_fields[] = {
#define FIELD(member) STRING(OPTIONAL, manifest_types, member),
    TYPE_FIELDS(FIELD)
#undef FIELD
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t accepts_fields[] = {
#define FIELD(dim, member) STRING(OPTIONAL, manifest_accepts, member),
    ACCEPT_FIELDS(FIELD)
#undef FIELD
        STRING(OPTIONAL, manifest_accepts, group),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t options_fields[] = {
    STRING(OPTIONAL, manifest_options, eps),
    STRING(OPTIONAL, manifest_options, round_to),
    STRING(OPTIONAL, manifest_options, base),
    STRING(OPTIONAL, manifest_options, rotary_dim),
    STRING(OPTIONAL, manifest_options, ld),
    STRING(OPTIONAL, manifest_options, scale),
    STRING(OPTIONAL, manifest_options, softcap),
    STRING(OPTIONAL, manifest_options, window_left),
    STRING(OPTIONAL, manifest_options, window_right),
    STRING(OPTIONAL, manifest_options, window_sinks),
    ENUM(manifest_options, layout, layouts),
    ENUM(manifest_options, causal, truths),
    ENUM(manifest_options, renormalise, truths),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t launch_fields[] = {
    STRING(REQUIRED, manifest_launch, entry),
    CYAML_FIELD_SEQUENCE_COUNT("grid", REQUIRED, struct manifest_launch, grid, grid_count,
                               &string_value, 1, 3),
    CYAML_FIELD_SEQUENCE_COUNT("block", REQUIRED, struct manifest_launch, block, block_count,
                               &string_value, 1, 3),
    CYAML_FIELD_SEQUENCE_COUNT("cluster", OPTIONAL, struct manifest_launch, cluster, cluster_count,
                               &string_value, 1, 3),
    STRING(OPTIONAL, manifest_launch, shared),
    CYAML_FIELD_SEQUENCE_COUNT("args", REQUIRED, struct manifest_launch, args, arg_count,
                               &string_value, 0, MAX_ARGS),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t launch_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_launch, launch_fields),
};

static const cyaml_schema_field_t scratch_fields[] = {
    STRING(REQUIRED, manifest_scratch, name),
    STRING(REQUIRED, manifest_scratch, bytes),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t scratch_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_scratch, scratch_fields),
};

static const cyaml_schema_field_t tensor_map_fields[] = {
    STRING(REQUIRED, manifest_tensor_map, name),
    STRING(REQUIRED, manifest_tensor_map, of),
    STRING(OPTIONAL, manifest_tensor_map, type),
    CYAML_FIELD_SEQUENCE_COUNT("dims", REQUIRED, struct manifest_tensor_map, dims, dims_count,
                               &string_value, 1, 5),
    CYAML_FIELD_SEQUENCE_COUNT("strides", OPTIONAL, struct manifest_tensor_map, strides,
                               strides_count, &string_value, 1, 4),
    CYAML_FIELD_SEQUENCE_COUNT("box", REQUIRED, struct manifest_tensor_map, box, box_count,
                               &string_value, 1, 5),
    CYAML_FIELD_SEQUENCE_COUNT("element_strides", OPTIONAL, struct manifest_tensor_map,
                               element_strides, element_strides_count, &string_value, 1, 5),
    STRING(OPTIONAL, manifest_tensor_map, swizzle),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t tensor_map_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_tensor_map, tensor_map_fields),
};

static const cyaml_schema_field_t products_fields[] = {
    STRING(OPTIONAL, manifest_products, height),
    STRING(OPTIONAL, manifest_products, run),
    ENUM(manifest_products, tensor_core, tensor_cores),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t numerics_fields[] = {
    ENUM(manifest_numerics, exp, exps),
    ENUM(manifest_numerics, rescale, rescales),
    ENUM(manifest_numerics, divide, divides),
    ENUM(manifest_numerics, log, logs),
    ENUM(manifest_numerics, variance, variances),
    ENUM(manifest_numerics, rsqrt, rsqrts),
    ENUM(manifest_numerics, trig, trigs),
    ENUM(manifest_numerics, tanh, tanhs),
    ENUM(manifest_numerics, topk, topks),
    ENUM(manifest_numerics, flush, truths),
    ENUM(manifest_numerics, sum_rounded, truths),
    ENUM(manifest_numerics, divide_first, truths),
    CYAML_FIELD_MAPPING("qk", CYAML_FLAG_OPTIONAL, struct manifest_numerics, qk, products_fields),
    CYAML_FIELD_MAPPING("pv", CYAML_FLAG_OPTIONAL, struct manifest_numerics, pv, products_fields),
    STRING(OPTIONAL, manifest_numerics, p_type),
    STRING(OPTIONAL, manifest_numerics, lazy_threshold),
    STRING(OPTIONAL, manifest_numerics, parts),
    STRING(OPTIONAL, manifest_numerics, sum_height),
    STRING(OPTIONAL, manifest_numerics, rescales),
    STRING(OPTIONAL, manifest_numerics, angle_rel),
    STRING(OPTIONAL, manifest_numerics, angle_abs),
    STRING(OPTIONAL, manifest_numerics, table),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t kernel_fields[] = {
    STRING(REQUIRED, manifest_kernel, name),
    STRING(REQUIRED, manifest_kernel, op),
    STRING(OPTIONAL, manifest_kernel, source),
    STRING(OPTIONAL, manifest_kernel, image),
    CYAML_FIELD_ENUM("rounding", WORD, struct manifest_kernel, rounding, roundings,
                     CYAML_ARRAY_LEN(roundings)),
    STRING(OPTIONAL, manifest_kernel, summary),
    CYAML_FIELD_MAPPING("types", CYAML_FLAG_DEFAULT, struct manifest_kernel, types, types_fields),
    CYAML_FIELD_MAPPING("accepts", CYAML_FLAG_OPTIONAL, struct manifest_kernel, accepts,
                        accepts_fields),
    CYAML_FIELD_MAPPING("options", CYAML_FLAG_OPTIONAL, struct manifest_kernel, options,
                        options_fields),
    ENUM(manifest_kernel, empty_row, empty_rows),
    CYAML_FIELD_SEQUENCE_COUNT("launches", REQUIRED, struct manifest_kernel, launches, launch_count,
                               &launch_value, 1, KERNEL_MAX_LAUNCHES),
    CYAML_FIELD_SEQUENCE_COUNT("scratch", OPTIONAL, struct manifest_kernel, scratch, scratch_count,
                               &scratch_value, 0, MANIFEST_MAX_SCRATCH),
    CYAML_FIELD_SEQUENCE_COUNT("tensor_maps", OPTIONAL, struct manifest_kernel, tensor_maps,
                               tensor_map_count, &tensor_map_value, 0, MANIFEST_MAX_TENSOR_MAPS),
    CYAML_FIELD_MAPPING("numerics", CYAML_FLAG_DEFAULT, struct manifest_kernel, numerics,
                        numerics_fields),
    ENUM(manifest_kernel, deterministic, truths),
    ENUM(manifest_kernel, combine, combines),
    STRING(OPTIONAL, manifest_kernel, recommended),
    STRING(OPTIONAL, manifest_kernel, planted_fault),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t kernel_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct manifest_kernel, kernel_fields),
};

static const cyaml_schema_field_t manifest_fields[] = {
    CYAML_FIELD_SEQUENCE_COUNT("kernels", REQUIRED, struct manifest, kernels, kernel_count,
                               &kernel_value, 1, MAX_KERNELS),
    CYAML_FIELD_END,
};

const cyaml_schema_value_t manifest_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct manifest, manifest_fields),
};

void schema_words(char *out, size_t size, const char *field) {
    static const struct {
        const char *field;
        const cyaml_strval_t *words;
        size_t count;
    } lists[] = {
        {"empty_row", empty_rows, CYAML_ARRAY_LEN(empty_rows)},
        {"rounding", roundings, CYAML_ARRAY_LEN(roundings)},
        {"exp", exps, CYAML_ARRAY_LEN(exps)},
        {"rescale", rescales, CYAML_ARRAY_LEN(rescales)},
        {"divide", divides, CYAML_ARRAY_LEN(divides)},
        {"log", logs, CYAML_ARRAY_LEN(logs)},
        {"variance", variances, CYAML_ARRAY_LEN(variances)},
        {"rsqrt", rsqrts, CYAML_ARRAY_LEN(rsqrts)},
        {"trig", trigs, CYAML_ARRAY_LEN(trigs)},
        {"tanh", tanhs, CYAML_ARRAY_LEN(tanhs)},
        {"tensor_core", tensor_cores, CYAML_ARRAY_LEN(tensor_cores)},
        {"layout", layouts, CYAML_ARRAY_LEN(layouts)},
        {"topk", topks, CYAML_ARRAY_LEN(topks)},
        {"renormalise", truths, CYAML_ARRAY_LEN(truths)},
        {"causal", truths, CYAML_ARRAY_LEN(truths)},
        {"sum_rounded", truths, CYAML_ARRAY_LEN(truths)},
        {"divide_first", truths, CYAML_ARRAY_LEN(truths)},
        {"flush", truths, CYAML_ARRAY_LEN(truths)},
        {"deterministic", truths, CYAML_ARRAY_LEN(truths)},
        {"combine", combines, CYAML_ARRAY_LEN(combines)},
    };
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < CYAML_ARRAY_LEN(lists); i++)
        for (size_t w = 0; strcmp(field, lists[i].field) == 0 && w < lists[i].count; w++)
            used += (size_t)snprintf(out + used, size - used, " %s", lists[i].words[w].str);
}

/* ---- fields by name -------------------------------------------------------------------------- */

static const char *const type_names[] = {
#define FIELD(member) #member,
    TYPE_FIELDS(FIELD)
#undef FIELD
};

const char *manifest_type_name(size_t i) {
    return i < CYAML_ARRAY_LEN(type_names) ? type_names[i] : NULL;
}

const char *manifest_type(const struct manifest_types *types, const char *name) {
    const char *const written[] = {
#define FIELD(member) types->member,
        TYPE_FIELDS(FIELD)
#undef FIELD
    };
    for (size_t i = 0; i < CYAML_ARRAY_LEN(type_names); i++)
        if (strcmp(name, type_names[i]) == 0)
            return written[i];
    return NULL;
}

const char *manifest_accept(const struct manifest_accepts *accepts, enum dim dim) {
    const char *const written[DIM_END] = {
#define FIELD(dim, member) [dim] = accepts->member,
        ACCEPT_FIELDS(FIELD)
#undef FIELD
    };
    return written[dim];
}
