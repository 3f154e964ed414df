/*
 * kernels/bind.h - a kernel's launches at one shape, on buffers that the caller chose.
 *
 * A kernel's buffers are numbered: the input x, the output y, then its scratch buffers as the
 * manifest lists them.
 */
#ifndef KERNELS_BIND_H
#define KERNELS_BIND_H

#include "kernels/catalogue.h"
#include "kernels/manifest.h"

enum { BUFFER_X, BUFFER_Y, BUFFER_SCRATCH };

#define KERNEL_MAX_BUFFERS (BUFFER_SCRATCH + MANIFEST_MAX_SCRATCH)

size_t kernel_buffer_count(const struct kernel *kernel);
const char *kernel_buffer_name(const struct kernel *kernel, size_t i);
/* The sizes in bytes of all buffers.  ERR_NOMEM if one does not fit a size_t; ERR_SYNTAX. */
MUST_CHECK status_t kernel_buffer_sizes(size_t bytes[static KERNEL_MAX_BUFFERS],
                                        const struct kernel *kernel, struct case_dims dims);

/* All launches, in order; arguments and extents are evaluated. */
struct bound_kernel {
    size_t launch_count;
    struct dev_launch launches[KERNEL_MAX_LAUNCHES];
    uint64_t *values; /* of the arguments; owned, and below */
    const void **args;
};

/*
 * addresses: one per buffer.  What is bound refers to lk's image, which must outlive it.
 * ERR_SYNTAX with path and line for an expression that has no value at this shape, ERR_UNSUPPORTED for
 * a number that does not fit its parameter, ERR_NOMEM; the caller clears *out in every case.
 */
MUST_CHECK status_t kernel_bind(struct bound_kernel *out, const struct loaded_kernel *lk,
                                struct case_dims dims, const uint64_t *addresses);
void bound_kernel_clear(struct bound_kernel *b); /* safe on a zeroed struct, and twice */

#endif
