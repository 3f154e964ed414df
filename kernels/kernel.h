/* kernels/kernel.h - a manifest entry understood: names resolved, expressions compiled. */
#ifndef KERNELS_KERNEL_H
#define KERNELS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/catalogue.h"
#include "kernels/expr.h"
#include "kernels/launch.h"
#include "kernels/manifest.h"
#include "kernels/range.h"
#include "kernels/tensor_map.h"

struct kernel_detail {
    const struct manifest_file *file;
    size_t index; /* in the manifest: "kernels[index]" */
    char *image_path;
    struct range accepts[MAX_DIMS]; /* in the order of op->dims */
    struct range group;             /* attention: heads / kv_heads */
    const struct manifest_options *options;
    const struct dtype *round_to; /* NULL: not said */
    struct expr_scope numbers;    /* dimensions: what options may use */
    struct expr_scope scope;      /* and the options that are numbers */
    size_t launch_count, scratch_count;
    struct kernel_launch launches[KERNEL_MAX_LAUNCHES];
    struct expr **scratch; /* bytes of each scratch buffer */
    size_t tensor_map_count;
    struct kernel_tensor_map tensor_maps[MANIFEST_MAX_TENSOR_MAPS];
    const struct manifest_numerics *numerics;
    struct expr *sum_height, *rescales, *angle_rel, *angle_abs; /* NULL: 0 */
    struct expr *qk_height, *pv_height, *qk_run, *pv_run;       /* NULL: 0 */
    struct expr *lazy_threshold, *parts;                        /* NULL: 0 */
    const struct dtype *table, *p_type;
};

/*
 * Understand entry `index` of a manifest, which must outlive it.  Checks all that can be checked
 * without the image's text: names, numbers, expressions (also by evaluating them at two accepted
 * shapes), that the image is there.  ERR_SYNTAX, ERR_IO, ERR_NOMEM, with path and line.
 */
MUST_CHECK status_t kernel_new(struct kernel **out, const struct manifest_file *file, size_t index);
void kernel_free(struct kernel *kernel); /* NULL is fine */

#endif
