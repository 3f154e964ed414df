/*
 * gate/plan_real.c - real input: matrices for the ops of one, q, k and v for attention.
 *
 * Files of one head are named q_l18_h6_t512_f16.npy: layer, query head, tokens, format; k and v with the
 * key-value head that three query heads share (corpus/real/README.md).  Query heads of one layer that
 * share theirs are one case, as they are in the model.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/file.h"
#include "gate/npy.h"
#include "gate/plan_impl.h"

#define QUICK_SAMPLES 2     /* pieces of a real file in `quick` */
#define QUICK_ELEMENTS 6000 /* per piece, at least one row */
#define QUICK_TOKENS 48     /* the start of a prompt, of one case */
#define GROUP 3             /* query heads to a key-value head in the model: no file tells */

/* quick: pieces from the start and the middle of the file; full: all of it. */
static status_t add_file(struct plan *p, const struct op *op, const char *path, size_t rows,
                         size_t cols, enum suite suite) {
    struct plan_item item = {.check = CHECK_BOUND, .op = op, .path = path, .dims = {rows, cols}};
    size_t piece = cols ? QUICK_ELEMENTS / cols : rows;
    if (piece == 0)
        piece = 1;
    if (suite == SUITE_FULL || rows <= QUICK_SAMPLES * piece)
        return plan_add(p, item);
    item.part = true;
    item.dims.rows = piece;
    status_t st = OK;
    for (size_t k = 0; k < QUICK_SAMPLES; k++) {
        item.first_row = k * rows / QUICK_SAMPLES;
        TRY(plan_add(p, item));
    }
done:
    return st;
}

static status_t keep_path(struct plan *p, const char **out, const char *path) {
    char **paths = realloc(p->paths, (p->path_count + 1) * sizeof *paths);
    if (!paths)
        return FAIL(ERR_NOMEM, "no memory for a list of files");
    p->paths = paths;
    paths[p->path_count] = strdup(file_shorten(path));
    if (!paths[p->path_count])
        return FAIL(ERR_NOMEM, "no memory for a path");
    *out = paths[p->path_count++];
    return OK;
}

static bool is_logits(const char *path) {
    const char *name = strrchr(path, '/');
    return strncmp(name ? name + 1 : path, "logits_", 7) == 0;
}

/* The files of dir that match; none is no error.  globfree(out) by the caller. */
static status_t list_files(glob_t *out, const char *dir, const char *match) {
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/%s", dir, match);
    int rc = glob(pattern, 0, NULL, out);
    if (rc != 0 && rc != GLOB_NOMATCH)
        return FAIL(ERR_IO, "cannot list %s", pattern);
    return OK;
}

static status_t add_matrices(struct plan *p, const struct op *op, const struct dtype *dt,
                             enum suite suite, const char *dir) {
    glob_t found = {0};
    status_t st = OK;
    TRY(list_files(&found, dir, "*.npy"));
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (op_is_matrix(op) && op->result == OP_PER_ELEMENT && !is_logits(found.gl_pathv[i]))
            continue;
        struct npy npy;
        const char *path = NULL;
        TRY(npy_read(&npy, found.gl_pathv[i]));
        size_t rows = npy.rows, cols = npy.cols;
        bool fits = !npy_misfit(&npy, dt);
        npy_clear(&npy);
        if (!fits)
            continue;
        TRY(keep_path(p, &path, found.gl_pathv[i]));
        TRY(add_file(p, op, path, rows, cols, suite));
    }
done:
    globfree(&found);
    return st;
}

/* ---- q, k, v --------------------------------------------------------------------------------- */

/* What a file's name says. */
struct head {
    const char *path;
    unsigned layer, head, tokens;
};

static bool parse_head(struct head *out, const char *path, const char *format) {
    char end[16];
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    out->path = path;
    return sscanf(name, "q_l%u_h%u_t%u_%15[a-z0-9]", &out->layer, &out->head, &out->tokens, end) ==
               4 &&
           strcmp(end, format) == 0;
}

static bool same_group(const struct head *a, const struct head *b) {
    return a->layer == b->layer && a->head / GROUP == b->head / GROUP && a->tokens == b->tokens;
}

/* A group's heads are neighbours, in the order of their numbers. */
static int by_group(const void *x, const void *y) {
    const struct head *a = x, *b = y;
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    if (a->tokens != b->tokens)
        return a->tokens < b->tokens ? -1 : 1;
    return (a->head > b->head) - (a->head < b->head);
}

static bool fits_kernel(const struct kernel *kernel, struct case_dims dims) {
    return !kernel_paged(kernel) && !kernel_refuses(kernel, dims);
}

static status_t list_paths(char *out, size_t size, const struct head *heads, size_t count) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? "," : "",
                               file_shorten(heads[i].path));
        if (at >= size)
            return FAIL(ERR_USAGE, "%s: a path is too long", heads[i].path);
    }
    return OK;
}

/* One group's case of the first `rows` tokens, 0: of all; k and v are beside q. */
static status_t add_heads(struct plan *p, const struct kernel *kernel, const struct head *heads,
                          size_t count, const char *dir, size_t rows) {
    static const char *const names[] = {"q", "k", "v"};
    char path[4096];
    struct plan_item item = {.check = CHECK_BOUND, .op = kernel->op, .file_count = 3};
    struct npy npy;
    status_t st = OK;
    TRY(npy_read(&npy, heads->path));
    const size_t tokens = npy.rows, head_dim = npy.cols;
    npy_clear(&npy);
    if (rows >= tokens)
        rows = 0;
    item.dims = (struct case_dims){.batch = 1,
                                   .heads = count,
                                   .kv_heads = 1,
                                   .queries = rows ? rows : tokens,
                                   .keys = rows ? rows : tokens,
                                   .head_dim = head_dim};
    if (!fits_kernel(kernel, item.dims))
        return OK;
    for (size_t i = 0; i < 3; i++) {
        if (i == 0)
            TRY(list_paths(path, sizeof path, heads, count));
        else
            snprintf(path, sizeof path, "%s/%s_l%02u_kv%u_t%u_%s.npy", dir, names[i], heads->layer,
                     heads->head / GROUP, heads->tokens, kernel->in->name);
        item.files[i] = (struct case_file){.name = names[i], .rows = rows};
        TRY(keep_path(p, &item.files[i].path, path));
    }
    TRY(plan_add(p, item));
done:
    return st;
}

/* full: all groups of heads, all tokens; quick: the first tokens of the largest group. */
static status_t add_attention(struct plan *p, const struct kernel *kernel, enum suite suite,
                              const char *dir) {
    struct head *heads = NULL;
    size_t count = 0, best = 0, most = 0;
    glob_t found = {0};
    status_t st = OK;
    TRY(list_files(&found, dir, "q_*.npy"));
    heads = calloc(found.gl_pathc + 1, sizeof *heads);
    if (!heads)
        TRY(FAIL(ERR_NOMEM, "no memory for a list of files"));
    for (size_t i = 0; i < found.gl_pathc; i++)
        count += parse_head(&heads[count], found.gl_pathv[i], kernel->in->name);
    qsort(heads, count, sizeof *heads, by_group);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && same_group(&heads[i], &heads[i + n]);)
            n++;
        if (suite == SUITE_FULL)
            TRY(add_heads(p, kernel, &heads[i], n, dir, 0));
        if (n > most) {
            most = n;
            best = i;
        }
    }
    if (suite == SUITE_QUICK && most)
        TRY(add_heads(p, kernel, &heads[best], most, dir, QUICK_TOKENS));
done:
    free(heads);
    globfree(&found);
    return st;
}

status_t plan_add_real(struct plan *p, const struct kernel *kernel, enum suite suite,
                       const char *dir) {
    const struct op *op = kernel->op;
    if (op->dims[1] == DIM_COLS && op->dims[2] == DIM_NONE)
        return add_matrices(p, op, kernel->in, suite, dir);
    return op->dims[0] == DIM_BATCH ? add_attention(p, kernel, suite, dir) : OK;
}
