/* kernels/launch.h - one launch of a manifest entry: extents and arguments, compiled. */
#ifndef KERNELS_LAUNCH_H
#define KERNELS_LAUNCH_H

#include <stddef.h>

#include "kernels/expr.h"
#include "kernels/manifest.h"

enum arg_kind {
    ARG_INPUT,   /* address of an input tensor */
    ARG_OUTPUT,  /* address of an output tensor */
    ARG_SCRATCH, /* address of a scratch buffer */
    ARG_TENSOR_MAP, /* the 128 bytes of one of the tensor maps */
    ARG_INTEGER, /* a whole number, as wide as the image's parameter */
    ARG_REAL,    /* a number rounded to a dtype */
};

struct kernel_arg {
    enum arg_kind kind;
    size_t index;              /* which input, output, scratch buffer or tensor map */
    const struct dtype *dtype; /* ARG_REAL */
    struct expr *value;        /* ARG_INTEGER, ARG_REAL */
};

struct kernel_launch {
    const char *entry;
    struct expr *grid[3], *block[3]; /* NULL: 1 */
    struct expr *cluster[3];         /* first one NULL: none is named */
    struct expr *shared;             /* bytes; NULL: 0 */
    struct kernel_arg *args;
    size_t arg_count;
};

/*
 * Compile launch `launch` of entry `index`.  ERR_SYNTAX with path and line, ERR_NOMEM; even then
 * the caller clears *out.
 */
MUST_CHECK status_t launch_compile(struct kernel_launch *out, const struct manifest_file *file,
                                   size_t index, size_t launch, const struct kernel *kernel,
                                   const struct expr_scope *scope);
void launch_clear(struct kernel_launch *launch);

/* Evaluate everything at one shape, to find what would fail in a run. */
MUST_CHECK status_t launch_try(const struct kernel_launch *launch, struct case_dims dims,
                               const struct manifest_file *file, size_t index, size_t i);

/* Grid and block; ERR_SYNTAX if an extent is not in 1 .. 2^31 - 1. */
MUST_CHECK status_t launch_extents(unsigned grid[3], unsigned block[3],
                                   const struct kernel_launch *launch, struct case_dims dims);

/* The cluster; 0, 0, 0 if none is named.  ERR_SYNTAX likewise. */
MUST_CHECK status_t launch_cluster(unsigned cluster[3], const struct kernel_launch *launch,
                                   struct case_dims dims);

/* The dtype called `name`; ERR_SYNTAX with the ones there are. */
MUST_CHECK status_t find_dtype(const struct dtype **out, const char *name);
/* The element type called `name` of this kind; ERR_SYNTAX with the ones there are. */
MUST_CHECK status_t find_type(const struct tensor_type **out, const char *name,
                              enum tensor_kind kind);

#endif
