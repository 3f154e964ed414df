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
#include "oracle/oracle.h"

struct manifest_types {
    char *x, *y, *acc; /* acc: NULL when not written */
};

struct manifest_accepts {
    char *rows, *cols; /* NULL when not written */
};

struct manifest_launch {
    char *entry;
    char **grid, **block, **args; /* expressions; of args also names */
    uint32_t grid_count, block_count, arg_count;
    char *shared; /* NULL when not written */
};

struct manifest_scratch {
    char *name, *bytes;
};

struct manifest_numerics {
    enum exp_variant exp;
    enum rescale_variant rescale;
    enum divide_variant divide;
    enum log_variant log;
    char *sum_height, *rescales; /* NULL when not written */
    bool flush;
};

struct manifest_kernel {
    char *name, *op;
    char *source, *image; /* exactly one is not NULL in a good manifest */
    char *summary;        /* NULL when not written */
    struct manifest_types types;
    struct manifest_accepts accepts;
    enum empty_row empty_row;
    struct manifest_launch *launches;
    struct manifest_scratch *scratch;
    uint32_t launch_count, scratch_count;
    struct manifest_numerics numerics;
    bool deterministic;
    char *recommended;   /* range of cols; NULL when not written */
    char *planted_fault; /* NULL when not written */
};

struct manifest {
    struct manifest_kernel *kernels;
    uint32_t kernel_count;
};

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
