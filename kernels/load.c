/* An image loaded for a kernel, and the manifest's launches held against its entries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/rewrite.h"
#include "kernels/loaded.h"
#include "kernels/read_file.h"

static const char *arg_text(const struct kernel *k, size_t launch, size_t arg) {
    const struct kernel_detail *d = k->detail;
    return d->file->manifest->kernels[d->index].launches[launch].args[arg];
}

static bool is_integer_size(size_t size) {
    return size == 1 || size == 2 || size == 4 || size == 8;
}

/* Does an argument of this kind fill a parameter of this size? */
static status_t check_arg(const struct kernel_arg *arg, const char *text, size_t size) {
    switch (arg->kind) {
    case ARG_INPUT:
    case ARG_OUTPUT:
    case ARG_SCRATCH:
        if (size != sizeof(uint64_t))
            return FAIL(ERR_SYNTAX, "`%s` is an address of 8 bytes, the parameter has %zu", text,
                        size);
        return OK;
    case ARG_TENSOR_MAP:
        if (size != DEV_TENSOR_MAP_BYTES)
            return FAIL(ERR_SYNTAX, "`%s` is a tensor map of %d bytes, the parameter has %zu", text,
                        DEV_TENSOR_MAP_BYTES, size);
        return OK;
    case ARG_INTEGER:
        if (!is_integer_size(size))
            return FAIL(ERR_SYNTAX,
                        "`%s` is an integer of 1, 2, 4 or 8 bytes, the parameter has %zu", text,
                        size);
        return OK;
    case ARG_REAL:
        if (size != dtype_size(arg->dtype))
            return FAIL(ERR_SYNTAX, "`%s` has %zu bytes, the parameter has %zu", text,
                        dtype_size(arg->dtype), size);
        return OK;
    }
    return OK;
}

static status_t check_launch(const struct kernel *k, size_t i, const struct dev_image *image) {
    status_t st = OK;
    const struct kernel_detail *d = k->detail;
    const struct kernel_launch *launch = &d->launches[i];
    const struct dev_entry *entry = image_find(image, launch->entry);

    if (!entry) {
        st = FAIL(ERR_SYNTAX, "%s has no entry `%s`", k->image, launch->entry);
        return manifest_at(st, d->file, d->index, "launches[%zu].entry", i);
    }
    if (launch->arg_count != entry->param_count) {
        st = FAIL(ERR_SYNTAX, "%zu arguments, but entry %s has %zu parameters", launch->arg_count,
                  launch->entry, entry->param_count);
        return manifest_at(st, d->file, d->index, "launches[%zu].args", i);
    }
    for (size_t a = 0; a < launch->arg_count; a++) {
        st = check_arg(&launch->args[a], arg_text(k, i, a), entry->params[a].size);
        if (st != OK)
            st = FAIL(st, "entry %s: %s", launch->entry, status_message());
        TRY(manifest_at(st, d->file, d->index, "launches[%zu].args[%zu]", i, a));
    }
done:
    return st;
}

/* Entries launched twice count once. */
static unsigned count_ambiguous(const struct kernel_detail *d, const struct dev_image *image) {
    unsigned count = 0;
    for (size_t i = 0; i < d->launch_count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || strcmp(d->launches[k].entry, d->launches[i].entry) == 0;
        if (!seen)
            count += image_find(image, d->launches[i].entry)->ambiguous;
    }
    return count;
}

status_t kernel_text(char **out, size_t *size, const struct kernel *kernel) {
    char *text;
    unsigned changed;
    status_t st = read_file(out, size, kernel->image, IMAGE_MAX_BYTES);
    if (st != OK || kernel->rounding == ROUNDING_AS_WRITTEN)
        return st;
    text = *out;
    st = ptx_write_rn(out, size, &changed, kernel->image, text, *size);
    free(text);
    return st;
}

status_t kernel_load_text(struct loaded_kernel **out, struct device *dev,
                          const struct kernel *kernel, const char *text, size_t size) {
    status_t st = OK;
    struct loaded_kernel *lk = calloc(1, sizeof *lk);
    *out = NULL;

    if (!lk)
        return FAIL(ERR_NOMEM, "no memory to load %s", kernel->name);
    lk->kernel = kernel;
    lk->dev = dev;
    TRY(device_load(&lk->image, dev, kernel->image, text, size));
    for (size_t i = 0; i < kernel->detail->launch_count; i++)
        TRY(check_launch(kernel, i, lk->image));
    lk->ambiguous = count_ambiguous(kernel->detail, lk->image);
    *out = lk;
    lk = NULL;
done:
    kernel_unload(lk);
    return st;
}

status_t kernel_load(struct loaded_kernel **out, struct device *dev, const struct kernel *kernel) {
    char *text;
    size_t size;
    *out = NULL;
    status_t st = kernel_text(&text, &size, kernel);
    if (st != OK)
        return st;
    st = kernel_load_text(out, dev, kernel, text, size);
    free(text);
    return st;
}

void kernel_unload(struct loaded_kernel *lk) {
    if (!lk)
        return;
    if (lk->image)
        image_unload(lk->image);
    free(lk);
}

const struct kernel *loaded_kernel_of(const struct loaded_kernel *lk) {
    return lk->kernel;
}

unsigned kernel_arch(const struct loaded_kernel *lk) {
    unsigned arch;
    return sscanf(device_info(lk->dev)->arch, "sm_%u", &arch) == 1 ? arch : DEFAULT_ARCH;
}

unsigned kernel_ambiguous(const struct loaded_kernel *lk) {
    return lk->ambiguous;
}
