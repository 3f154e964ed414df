/* Manifests collected, and the repository's own ones found. */
#include "kernels/catalogue.h"

#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/kernel.h"
#include "kernels/manifest.h"
#include "kernels/read_file.h"

struct catalogue {
    struct kernel **kernels; /* by name */
    size_t kernel_count;
    struct manifest_file **files; /* what the kernels' strings live in */
    size_t file_count;
};

status_t catalogue_new(struct catalogue **out) {
    *out = calloc(1, sizeof **out);
    return *out ? OK : FAIL(ERR_NOMEM, "no memory for a catalogue");
}

void catalogue_free(struct catalogue *cat) {
    if (!cat)
        return;
    for (size_t i = 0; i < cat->kernel_count; i++)
        kernel_free(cat->kernels[i]);
    for (size_t i = 0; i < cat->file_count; i++)
        manifest_free(cat->files[i]);
    free(cat->kernels);
    free(cat->files);
    free(cat);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(struct kernel *const *)a)->name, (*(struct kernel *const *)b)->name);
}

/* Is `a` older than `b`, where `added` is the newest manifest? */
static bool older(const struct kernel *a, const struct kernel *b,
                  const struct manifest_file *added) {
    if (a->detail->file != b->detail->file)
        return b->detail->file == added;
    return a->detail->index < b->detail->index;
}

/* No name twice in kernels[], which is sorted; the newer of two is to blame. */
static status_t check_unique(struct kernel *const *kernels, size_t count,
                             const struct manifest_file *added) {
    for (size_t i = 1; i < count; i++) {
        const struct kernel *a = kernels[i - 1], *b = kernels[i];
        if (strcmp(a->name, b->name) != 0)
            continue;
        const struct kernel *old = older(a, b, added) ? a : b;
        const struct kernel *new = old == a ? b : a;
        return manifest_at(FAIL(ERR_SYNTAX, "already taken in %s", old->manifest),
                           new->detail->file, new->detail->index, "name");
    }
    return OK;
}

status_t catalogue_add(struct catalogue *cat, const char *manifest_path) {
    status_t st = OK;
    struct manifest_file *file = NULL;
    struct kernel **all = NULL;
    struct manifest_file **files = NULL;
    size_t old = cat->kernel_count, count = 0, built = 0;

    TRY(manifest_read(&file, manifest_path));
    count = old + file->manifest->kernel_count;
    all = calloc(count, sizeof(struct kernel *));
    files = calloc(cat->file_count + 1, sizeof(struct manifest_file *));
    if (!all || !files)
        TRY(FAIL(ERR_NOMEM, "no memory for a catalogue"));
    for (; built < file->manifest->kernel_count; built++)
        TRY(kernel_new(&all[old + built], file, built));
    if (old > 0)
        memcpy(all, cat->kernels, old * sizeof(struct kernel *));
    if (cat->file_count > 0)
        memcpy(files, cat->files, cat->file_count * sizeof(struct manifest_file *));
    qsort(all, count, sizeof(struct kernel *), by_name);
    TRY(check_unique(all, count, file));

    files[cat->file_count++] = file;
    free(cat->files);
    cat->files = files;
    free(cat->kernels);
    cat->kernels = all;
    cat->kernel_count = count;
    return OK;
done:
    /* Sorted or not, what is this file's is not yet the catalogue's. */
    for (size_t i = 0; all && i < count; i++)
        if (all[i] && all[i]->detail->file == file)
            kernel_free(all[i]);
    free(all);
    free(files);
    manifest_free(file);
    return st;
}

/* ---- the repository's own kernels ------------------------------------------------------------ */

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/*
 * *out = $ASSAY_KERNELS, or the folder `kernels` beside the running program, or (a program of the
 * build's tests/ or fuzz/) the one beside the program's folder.
 */
static status_t find_builtin(char out[PATH_MAX]) {
    char program[PATH_MAX];
    const char *set = getenv("ASSAY_KERNELS");
    if (set && *set) {
        if (!is_folder(set))
            return FAIL(ERR_IO, "ASSAY_KERNELS=%s: no such folder", set);
        snprintf(out, PATH_MAX, "%s", set);
        return OK;
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return FAIL(ERR_IO, "cannot find the running program: set ASSAY_KERNELS");
    program[length] = '\0';
    char *folder = dirname(program);
    for (int up = 0; up < 2; up++, folder = dirname(folder)) {
        if (snprintf(out, PATH_MAX, "%s/kernels", folder) < PATH_MAX && is_folder(out))
            return OK;
    }
    return FAIL(ERR_IO, "no folder `kernels` beside the program: set ASSAY_KERNELS");
}

status_t catalogue_add_builtin(struct catalogue *cat) {
    char folder[PATH_MAX], pattern[PATH_MAX + 32];
    glob_t found;
    status_t st = find_builtin(folder);
    if (st != OK)
        return st;
    snprintf(pattern, sizeof pattern, "%s/*/manifest.yaml", folder);
    int rc = glob(pattern, 0, NULL, &found); /* sorted */
    if (rc == GLOB_NOMATCH)
        return FAIL(ERR_IO, "no manifest matches %s", pattern);
    if (rc != 0)
        return FAIL(rc == GLOB_NOSPACE ? ERR_NOMEM : ERR_IO, "cannot read %s", folder);
    for (size_t i = 0; st == OK && i < found.gl_pathc; i++)
        st = catalogue_add(cat, found.gl_pathv[i]);
    for (size_t i = 0; i < cat->kernel_count; i++)
        for (size_t k = 0; k < found.gl_pathc; k++)
            cat->kernels[i]->builtin |= strcmp(cat->kernels[i]->manifest, found.gl_pathv[k]) == 0;
    globfree(&found);
    return st;
}

status_t builtin_image(struct dev_image **out, struct device *dev, const char *name) {
    char folder[PATH_MAX], path[PATH_MAX + 64];
    char *text = NULL;
    size_t size;
    status_t st = OK;
    TRY(find_builtin(folder));
    snprintf(path, sizeof path, "%s/%s", folder, name);
    TRY(read_file(&text, &size, path, IMAGE_MAX_BYTES));
    TRY(device_load(out, dev, path, text, size));
done:
    free(text);
    return st;
}

/* ---- looking up ------------------------------------------------------------------------------ */

size_t catalogue_count(const struct catalogue *cat) {
    return cat->kernel_count;
}

const struct kernel *catalogue_kernel(const struct catalogue *cat, size_t i) {
    return cat->kernels[i];
}

const struct kernel *catalogue_find(const struct catalogue *cat, const char *name) {
    struct kernel wanted = {.name = name}, *key = &wanted;
    struct kernel **found = NULL;
    if (cat->kernel_count > 0)
        found = bsearch(&key, cat->kernels, cat->kernel_count, sizeof key, by_name);
    return found ? *found : NULL;
}
