/*
 * kernels/manifest.h - a manifest as it is written: its YAML in C structs.
 *
 * Reading checks the form (known keys, required keys, words from a list); what the words mean is
 * kernel.c's to check.  The format: docs/manifest.md.
 */
#ifndef KERNELS_MANIFEST_H
#define KERNELS_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/catalogue.h"
#include "oracle/oracle.h"

#define MANIFEST_MAX_SCRATCH 16 /* buffers of one kernel */
#define MANIFEST_MAX_TENSOR_MAPS 8

/* By name of a tensor; NULL when not written. */
struct manifest_types {
    char *x, *y, *acc, *w, *b, *positions;
    char *q, *k, *v, *o, *lse, *lengths, *bias, *mask, *slopes, *sinks, *p, *index;
    char *o_p, *lse_p, *block_table;
};

/* By name of a dimension; NULL when not written. */
struct manifest_accepts {
    char *rows, *cols, *batch, *heads, *kv_heads, *queries, *keys, *head_dim, *k, *parts;
    char *group; /* heads / kv_heads */
};

/* What the op is told about this kernel: struct op_options before its expressions are evaluated. */
struct manifest_options {
    char *eps, *round_to, *base, *rotary_dim; /* expressions, a dtype; NULL when not written */
    char *ld, *scale, *softcap, *window_left, *window_right, *window_sinks;
    enum rope_layout layout;
    bool causal, renormalise;
};

/* A sum of products: struct accumulation before its expressions are evaluated. */
struct manifest_products {
    char *height, *run; /* NULL when not written */
    enum tensor_core tensor_core;
};

struct manifest_launch {
    char *entry;
    char **grid, **block, **cluster, **args; /* expressions; of args also names */
    uint32_t grid_count, block_count, cluster_count, arg_count;
    char *shared; /* NULL when not written */
};

struct manifest_scratch {
    char *name, *bytes;
};

struct manifest_tensor_map {
    char *name, *of;
    char *type; /* NULL: that of the tensor */
    char **dims, **strides, **box, **element_strides;
    uint32_t dims_count, strides_count, box_count, element_strides_count;
    char *swizzle; /* NULL when not written */
};

struct manifest_numerics {
    enum exp_variant exp;
    enum rescale_variant rescale;
    enum divide_variant divide;
    enum log_variant log;
    enum variance_variant variance;
    enum rsqrt_variant rsqrt;
    enum trig_variant trig;
    enum tanh_variant tanh;
    enum topk_variant topk;
    struct manifest_products qk, pv;
    char *p_type, *lazy_threshold, *parts; /* NULL when not written */
    bool sum_rounded, divide_first;
    char *sum_height, *rescales, *angle_rel, *angle_abs, *table; /* NULL when not written */
    bool flush;
};

struct manifest_kernel {
    char *name, *op;
    char *source, *image; /* exactly one is not NULL in a good manifest */
    enum kernel_rounding rounding;
    char *summary;        /* NULL when not written */
    struct manifest_types types;
    struct manifest_accepts accepts;
    struct manifest_options options;
    enum empty_row empty_row;
    struct manifest_launch *launches;
    struct manifest_scratch *scratch;
    struct manifest_tensor_map *tensor_maps;
    uint32_t launch_count, scratch_count, tensor_map_count;
    struct manifest_numerics numerics;
    bool deterministic, combine;
    char *recommended;   /* range of op_row_length; NULL when not written */
    char *planted_fault; /* NULL when not written */
};

struct manifest {
    struct manifest_kernel *kernels;
    uint32_t kernel_count;
};

/* What is written under the name of a tensor (or `acc`), or of a dimension; NULL for none. */
const char *manifest_type(const struct manifest_types *types, const char *name);
const char *manifest_accept(const struct manifest_accepts *accepts, enum dim dim);
/* The name of type i, from 0 on; NULL behind the last. */
const char *manifest_type_name(size_t i);

/* A manifest file that was read; text is kept for the line numbers of later messages. */
struct manifest_file {
    char *path, *text;
    size_t size;
    struct manifest *manifest;
};

/* ERR_IO; ERR_SYNTAX with path and line; ERR_NOMEM.  The caller frees *out. */
MUST_CHECK status_t manifest_read(struct manifest_file **out, const char *path);
void manifest_free(struct manifest_file *file); /* NULL is fine */

/*
 * Say where: unless st is OK, the last message gets "path:line: kernel: place: " in front.  The
 * place is a route inside entry `index`, like "launches[0].grid[1]" (place.h).  Returns st.
 */
MUST_CHECK status_t manifest_at(status_t st, const struct manifest_file *file, size_t index,
                                const char *place_format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
