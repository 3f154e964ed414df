/* cli/select.c - which kernels -k means. */
#include <fnmatch.h>
#include <stdlib.h>

#include "cli/cli.h"

/* Marks what one glob selects: planted faults only if no honest kernel matches as well. */
static bool apply_glob(bool *chosen, const struct catalogue *cat, const char *glob) {
    bool honest = false, faulty = false;
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        if (fnmatch(glob, k->name, 0) == 0)
            *(k->fault ? &faulty : &honest) = true;
    }
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        if (fnmatch(glob, k->name, 0) == 0 && (!k->fault || !honest))
            chosen[i] = true;
    }
    return honest || faulty;
}

/* Every -k must match some kernel: a typing error must not pass a gate. */
status_t cli_select(const struct kernel ***out, size_t *count, const struct catalogue *cat,
                    const struct strings *globs) {
    size_t all = catalogue_count(cat);
    bool *chosen = calloc(all + 1, sizeof *chosen);
    const struct kernel **kernels = calloc(all + 1, sizeof *kernels);
    status_t st = OK;
    *count = 0;
    if (!chosen || !kernels)
        TRY(FAIL(ERR_NOMEM, "no memory for a list of kernels"));
    for (size_t i = 0; i < all; i++)
        chosen[i] = globs->count == 0 && !catalogue_kernel(cat, i)->fault;
    for (size_t i = 0; i < globs->count; i++)
        if (!apply_glob(chosen, cat, globs->items[i]))
            TRY(FAIL(ERR_USAGE, "-k '%s' matches none of %zu kernels (see assay list)",
                     globs->items[i], all));
    for (size_t i = 0; i < all; i++)
        if (chosen[i])
            kernels[(*count)++] = catalogue_kernel(cat, i);
    if (*count == 0)
        TRY(FAIL(ERR_USAGE, "there is no kernel to take"));
    *out = kernels;
    kernels = NULL;
done:
    free(kernels);
    free(chosen);
    return st;
}
