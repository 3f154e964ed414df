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

/* libcyaml's own booleans take every other word for true. */
static const cyaml_strval_t truths[] = {
    {"false", false},
    {"true", true},
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
#define MAX_SCRATCH 16
#define MAX_KERNELS 4096

static const cyaml_schema_value_t string_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, MAX_STRING),
};

static const cyaml_schema_field_t types_fields[] = {
    STRING(REQUIRED, manifest_types, x),
    STRING(REQUIRED, manifest_types, y),
    STRING(OPTIONAL, manifest_types, acc),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t accepts_fields[] = {
    STRING(OPTIONAL, manifest_accepts, rows),
    STRING(OPTIONAL, manifest_accepts, cols),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t launch_fields[] = {
    STRING(REQUIRED, manifest_launch, entry),
    CYAML_FIELD_SEQUENCE_COUNT("grid", REQUIRED, struct manifest_launch, grid, grid_count,
                               &string_value, 1, 3),
    CYAML_FIELD_SEQUENCE_COUNT("block", REQUIRED, struct manifest_launch, block, block_count,
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

static const cyaml_schema_field_t numerics_fields[] = {
    CYAML_FIELD_ENUM("exp", WORD, struct manifest_numerics, exp, exps, CYAML_ARRAY_LEN(exps)),
    CYAML_FIELD_ENUM("rescale", WORD, struct manifest_numerics, rescale, rescales,
                     CYAML_ARRAY_LEN(rescales)),
    CYAML_FIELD_ENUM("divide", WORD, struct manifest_numerics, divide, divides,
                     CYAML_ARRAY_LEN(divides)),
    CYAML_FIELD_ENUM("log", WORD, struct manifest_numerics, log, logs, CYAML_ARRAY_LEN(logs)),
    STRING(OPTIONAL, manifest_numerics, sum_height),
    STRING(OPTIONAL, manifest_numerics, rescales),
    CYAML_FIELD_ENUM("flush", WORD, struct manifest_numerics, flush, truths,
                     CYAML_ARRAY_LEN(truths)),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t kernel_fields[] = {
    STRING(REQUIRED, manifest_kernel, name),
    STRING(REQUIRED, manifest_kernel, op),
    STRING(OPTIONAL, manifest_kernel, source),
    STRING(OPTIONAL, manifest_kernel, image),
    STRING(OPTIONAL, manifest_kernel, summary),
    CYAML_FIELD_MAPPING("types", CYAML_FLAG_DEFAULT, struct manifest_kernel, types, types_fields),
    CYAML_FIELD_MAPPING("accepts", CYAML_FLAG_OPTIONAL, struct manifest_kernel, accepts,
                        accepts_fields),
    CYAML_FIELD_ENUM("empty_row", WORD, struct manifest_kernel, empty_row, empty_rows,
                     CYAML_ARRAY_LEN(empty_rows)),
    CYAML_FIELD_SEQUENCE_COUNT("launches", REQUIRED, struct manifest_kernel, launches, launch_count,
                               &launch_value, 1, KERNEL_MAX_LAUNCHES),
    CYAML_FIELD_SEQUENCE_COUNT("scratch", OPTIONAL, struct manifest_kernel, scratch, scratch_count,
                               &scratch_value, 0, MAX_SCRATCH),
    CYAML_FIELD_MAPPING("numerics", CYAML_FLAG_DEFAULT, struct manifest_kernel, numerics,
                        numerics_fields),
    CYAML_FIELD_ENUM("deterministic", WORD, struct manifest_kernel, deterministic, truths,
                     CYAML_ARRAY_LEN(truths)),
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
        {"exp", exps, CYAML_ARRAY_LEN(exps)},
        {"rescale", rescales, CYAML_ARRAY_LEN(rescales)},
        {"divide", divides, CYAML_ARRAY_LEN(divides)},
        {"log", logs, CYAML_ARRAY_LEN(logs)},
        {"flush", truths, CYAML_ARRAY_LEN(truths)},
        {"deterministic", truths, CYAML_ARRAY_LEN(truths)},
    };
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < CYAML_ARRAY_LEN(lists); i++)
        for (size_t w = 0; strcmp(field, lists[i].field) == 0 && w < lists[i].count; w++)
            used += (size_t)snprintf(out + used, size - used, " %s", lists[i].words[w].str);
}
