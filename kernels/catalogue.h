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

/* What is made of an add, sub or mul of an image that has no rounding modifier. */
enum kernel_rounding {
    ROUNDING_AS_WRITTEN, /* nothing: the assembler may fuse it */
    ROUNDING_RN,         /* `.rn` is written onto it before any device reads the text */
};

/* One manifest entry.  Strings live as long as the catalogue. */
struct kernel {
    const char *name;
    const struct op *op;
    const char *summary;
    const struct dtype *in, *out, *acc; /* of the op's first input and output; types: acc */
    /* Of its further ones, by their index; NULL: the kernel does without. */
    const struct tensor_type *more_in[OP_MAX_INPUTS], *more_out[OP_MAX_OUTPUTS];
    enum empty_row empty_row;
    bool deterministic;
    bool combines_exactly; /* attention_combine: two parts either way are the same bits, and a part of
                            * lse -Inf changes none */
    const char *recommended; /* the range of op_row_length for which it is the fastest measured; or NULL */
    const char *fault;     /* planted fault: what is wrong with it; NULL for an honest kernel */
    const char *manifest;  /* path it was read from */
    bool builtin;          /* of this repository: found without naming the manifest */
    const char *image;     /* path of its PTX */
    enum kernel_rounding rounding;
    const struct kernel_detail *detail; /* expressions, launches, scratch: catalogue.c's own */
};

/* The type of one of the op's tensors, NULL if the kernel does without. */
static inline const struct tensor_type *kernel_input(const struct kernel *k, size_t i) {
    return i == 0 ? tensor_type_of(k->in) : k->more_in[i];
}
static inline const struct tensor_type *kernel_output(const struct kernel *k, size_t i) {
    return i == 0 ? tensor_type_of(k->out) : k->more_out[i];
}

/* Does it take keys and values from pages, by a block table? */
static inline bool kernel_paged(const struct kernel *k) {
    size_t table = op_block_table(k->op);
    return table < OP_MAX_INPUTS && kernel_input(k, table);
}

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

/*
 * Load an image of the repository that is no subject and has no manifest, as seen from that folder:
 * "bench/copy.ptx".
 */
MUST_CHECK status_t builtin_image(struct dev_image **out, struct device *dev, const char *name);

size_t catalogue_count(const struct catalogue *cat);
const struct kernel *catalogue_kernel(const struct catalogue *cat, size_t i); /* by name order */
const struct kernel *catalogue_find(const struct catalogue *cat, const char *name); /* or NULL */

/* ---- one kernel on one device ---------------------------------------------------------------- */

struct loaded_kernel;

/* The kernel's image as devices see it: rounding written where it asks for that.  Caller frees. */
MUST_CHECK status_t kernel_text(char **out, size_t *size, const struct kernel *kernel);

/*
 * Load the kernel's image and check it: every entry exists, and each launch's arguments match the
 * image's parameters in number and size.  Messages name the manifest and the entry.
 * ERR_TARGET for an image that other devices run (device_load).
 */
MUST_CHECK status_t kernel_load(struct loaded_kernel **out, struct device *dev,
                                const struct kernel *kernel);
/* The same with another text in the image's place. */
MUST_CHECK status_t kernel_load_text(struct loaded_kernel **out, struct device *dev,
                                     const struct kernel *kernel, const char *text, size_t size);
void kernel_unload(struct loaded_kernel *lk);
const struct kernel *loaded_kernel_of(const struct loaded_kernel *lk);
/* 90 for a device of sm_90. */
unsigned kernel_arch(const struct loaded_kernel *lk);
/* Unsuffixed mul + add pairs in the entries this kernel launches; see struct dev_entry. */
unsigned kernel_ambiguous(const struct loaded_kernel *lk);

/* NULL if the kernel accepts the shape, else why not ("cols = 1000: accepts 1..512"); static until
 * the next call on this thread. */
const char *kernel_refuses(const struct kernel *kernel, struct case_dims dims);

/* Are its rows of a length for which the kernel is recommended? */
bool kernel_recommended(const struct kernel *kernel, struct case_dims dims);

/* The accepted shape next to `dims`: each dimension the smallest accepted from there on, or the
 * largest of all. */
struct case_dims kernel_nearest(const struct kernel *kernel, struct case_dims dims);

/* The declared numerics of this kernel at this shape, on sm_90: numerics_target for others. */
#define DEFAULT_ARCH 90
MUST_CHECK status_t kernel_numerics(struct numerics *out, const struct kernel *kernel,
                                    struct case_dims dims);

/*
 * Its options at this shape; rotary_dim and the like are checked by op_refuses only.  Two kernels of
 * one op that say the same take the same cases to the same truth.
 */
MUST_CHECK status_t kernel_options(struct op_options *out, const struct kernel *kernel,
                                   struct case_dims dims);
bool kernel_same_options(const struct kernel *a, const struct kernel *b);

/*
 * Where the tensors of one side stand in one block of memory: one behind another in the op's order,
 * each at a multiple of 16 bytes.
 */
struct tensor_block {
    size_t bytes; /* of the whole block */
    struct tensor tensors[OP_MAX_INPUTS > OP_MAX_OUTPUTS ? OP_MAX_INPUTS : OP_MAX_OUTPUTS];
};

/* data may be NULL, and then so are the tensors'.  ERR_USAGE: larger than any memory. */
MUST_CHECK status_t kernel_inputs(struct tensor_block *out, const struct kernel *kernel,
                                  struct case_dims dims, void *data);
MUST_CHECK status_t kernel_outputs(struct tensor_block *out, const struct kernel *kernel,
                                   struct case_dims dims, void *data);

/*
 * Run all launches of the kernel in order on x, the block of its inputs, and read back y, that of
 * its outputs (both in host memory; of one tensor a block is just its data).
 * Scratch buffers are allocated and poisoned anew.  runs[] gets one dev_run per launch (at most
 * max_runs are kept); the sequence stops at the first launch that does not complete.  After a
 * completed sequence the guards of all buffers are checked; a changed guard is added to the last
 * run as FAULT_GUARD.  Where a tensor map cannot be made, nothing is launched: one run, FAULT_TENSOR_MAP.
 */
struct kernel_io {
    struct case_dims dims;
    const void *x;
    void *y;
    uint64_t schedule_seed;
    /*
     * 0: outputs start unwritten, as 0xff.  Else they start as this byte and count as written: what
     * holds 0xff after a run with 0, and this after a run with it, was never written.
     */
    uint8_t output_fill;
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
