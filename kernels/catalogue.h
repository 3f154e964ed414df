/*
 * kernels/catalogue.h - the subjects: manifests read, checked against images, bound to a case.
 *
 * The kernels of this repository and a user's own come through the same door: a manifest entry and
 * a compiled image.  The format of a manifest: docs/manifest.md.
 */
#ifndef KERNELS_CATALOGUE_H
#define KERNELS_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "device/device.h"
#include "oracle/oracle.h"

struct catalogue;

/* One manifest entry.  Strings live as long as the catalogue. */
struct kernel {
    const char *name;
    const struct op *op;
    const char *summary;
    const struct dtype *in, *out, *acc; /* types: x, y, acc */
    enum empty_row empty_row;
    bool deterministic;
    const char *recommended; /* the range of cols for which it is the fastest one measured; or NULL */
    const char *fault;     /* planted fault: what is wrong with it; NULL for an honest kernel */
    const char *manifest;  /* path it was read from */
    bool builtin;          /* of this repository: found without naming the manifest */
    const char *image;     /* path of its PTX */
    const struct kernel_detail *detail; /* expressions, launches, scratch: catalogue.c's own */
};

/* A case's dimensions, by the names that manifest expressions use. */
struct case_dims {
    size_t rows, cols;
};

MUST_CHECK status_t catalogue_new(struct catalogue **out);
void catalogue_free(struct catalogue *cat);

/*
 * Add one manifest's kernels.  Messages carry path and line: unknown key, missing key, wrong type,
 * unknown op or dtype, bad expression, name already taken, image missing.
 * ERR_IO, ERR_SYNTAX, ERR_NOMEM.  On failure the catalogue is as it was.
 */
MUST_CHECK status_t catalogue_add(struct catalogue *cat, const char *manifest_path);

/* Add every manifest of the repository's own kernels, from the folder that holds their images. */
MUST_CHECK status_t catalogue_add_builtin(struct catalogue *cat);

size_t catalogue_count(const struct catalogue *cat);
const struct kernel *catalogue_kernel(const struct catalogue *cat, size_t i); /* by name order */
const struct kernel *catalogue_find(const struct catalogue *cat, const char *name); /* or NULL */

/* ---- one kernel on one device ---------------------------------------------------------------- */

struct loaded_kernel;

/*
 * Load the kernel's image and check it: every entry exists, and each launch's arguments match the
 * image's parameters in number and size.  Messages name the manifest and the entry.
 */
MUST_CHECK status_t kernel_load(struct loaded_kernel **out, struct device *dev,
                                const struct kernel *kernel);
void kernel_unload(struct loaded_kernel *lk);
const struct kernel *loaded_kernel_of(const struct loaded_kernel *lk);
/* Unsuffixed mul + add pairs in the entries this kernel launches; see struct dev_entry. */
unsigned kernel_ambiguous(const struct loaded_kernel *lk);

/* NULL if the kernel accepts the shape, else why not ("cols = 1000: accepts 1..512"); static until
 * the next call on this thread. */
const char *kernel_refuses(const struct kernel *kernel, struct case_dims dims);

/* The accepted shape next to `dims`: each dimension the smallest accepted from there on, or the
 * largest of all. */
struct case_dims kernel_nearest(const struct kernel *kernel, struct case_dims dims);

/* The declared numerics of this kernel at this shape. */
MUST_CHECK status_t kernel_numerics(struct numerics *out, const struct kernel *kernel,
                                    struct case_dims dims);

/*
 * Run all launches of the kernel in order on x (rows x cols data of kernel->in, row-major, host
 * memory) and read y back (rows or rows x cols data of kernel->out by the op's result shape).
 * Scratch buffers are allocated and poisoned anew.  runs[] gets one dev_run per launch (at most
 * max_runs are kept); the sequence stops at the first launch that does not complete.  After a
 * completed sequence the guards of all buffers are checked; a changed guard is added to the last
 * run as FAULT_GUARD.
 */
struct kernel_io {
    struct case_dims dims;
    const void *x;
    void *y;
    uint64_t schedule_seed;
};

#define KERNEL_MAX_LAUNCHES 8

struct kernel_result {
    size_t run_count;
    struct dev_run runs[KERNEL_MAX_LAUNCHES];
};

MUST_CHECK status_t kernel_run(struct kernel_result *result, struct loaded_kernel *lk,
                               const struct kernel_io *io);

/* What a kernel's launches reported, in sum: true if all completed without a fault. */
bool kernel_result_clean(const struct kernel_result *result);
/* The first fault, or NULL. */
const struct dev_fault *kernel_result_fault(const struct kernel_result *result);

#endif
