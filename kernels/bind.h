/*
 * kernels/bind.h - a kernel's launches at one shape, on buffers that the caller chose.
 *
 * A kernel's buffers are numbered: the op's inputs in its order, its outputs from BUFFER_OUTPUTS on,
 * and the scratch buffers from BUFFER_SCRATCH on, as the manifest lists them.  Tensors that the kernel
 * does without leave a gap.
 */
#ifndef KERNELS_BIND_H
#define KERNELS_BIND_H

#include "kernels/catalogue.h"
#include "kernels/manifest.h"

enum { BUFFER_OUTPUTS = OP_MAX_INPUTS, BUFFER_SCRATCH = OP_MAX_INPUTS + OP_MAX_OUTPUTS };

#define KERNEL_MAX_BUFFERS (BUFFER_SCRATCH + MANIFEST_MAX_SCRATCH)

struct kernel_buffer {
    const char *name; /* as in the manifest; NULL: there is none of this number */
    size_t bytes;
    const struct tensor_type *type; /* NULL: scratch */
};

/* ERR_USAGE if they are larger than any memory; ERR_SYNTAX. */
MUST_CHECK status_t kernel_buffers(struct kernel_buffer out[static KERNEL_MAX_BUFFERS],
                                   const struct kernel *kernel, struct case_dims dims);

/* All launches, in order; arguments and extents are evaluated. */
struct bound_kernel {
    size_t launch_count;
    struct dev_launch launches[KERNEL_MAX_LAUNCHES];
    uint64_t *values; /* of the arguments; owned, and below */
    const void **args;
    uint8_t (*maps)[DEV_TENSOR_MAP_BYTES]; /* by number of the manifest's tensor map */
};

/*
 * addresses: one per number, what stands in a gap is not looked at.  What is bound refers to lk's
 * image, which must outlive it.
 * ERR_SYNTAX with path and line for an expression that has no value at this shape, ERR_UNSUPPORTED for
 * a number that does not fit its parameter, ERR_USAGE, with the kernel, the map and the shape, for a tensor map
 * outside the bounds of device.h and nothing else, ERR_NOMEM; the caller clears *out in every case.
 */
MUST_CHECK status_t kernel_bind(struct bound_kernel *out, const struct loaded_kernel *lk,
                                struct case_dims dims, const uint64_t *addresses);
void bound_kernel_clear(struct bound_kernel *b); /* safe on a zeroed struct, and twice */

#endif
