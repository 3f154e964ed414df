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
#define GROUP 3             /* query heads to a key-value head */

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

static status_t add_matrices(struct plan *p, const struct op *op, const struct dtype *dt,
                             enum suite suite, const char *dir) {
    char pattern[4096];
    glob_t found = {0};
    status_t st = OK;
    snprintf(pattern, sizeof pattern, "%s/*.npy", dir);
    int rc = glob(pattern, 0, NULL, &found);
    if (rc != 0 && rc != GLOB_NOMATCH)
        TRY(FAIL(ERR_IO, "cannot list %s", pattern));
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

/* What a name says. */
struct head {
    unsigned layer, head, tokens;
};

static bool parse_head(struct head *out, const char *path, const char *format) {
    char end[16];
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return sscanf(name, "q_l%u_h%u_t%u_%15[a-z0-9]", &out->layer, &out->head, &out->tokens, end) ==
               4 &&
           strcmp(end, format) == 0;
}

static bool same_group(const struct head *a, const struct head *b) {
    return a->layer == b->layer && a->head / GROUP == b->head / GROUP && a->tokens == b->tokens;
}

static bool fits_kernel(const struct kernel *kernel, struct case_dims dims) {
    return !kernel_paged(kernel) && !kernel_refuses(kernel, dims);
}

/* q: a list of paths; k and v are beside them. */
static status_t add_heads(struct plan *p, const struct kernel *kernel, const struct head *h,
                          const char *dir, const char *q, size_t heads, size_t rows) {
    const unsigned tokens = rows ? (unsigned)rows : h->tokens;
    char path[4096];
    struct case_file *files = calloc(3, sizeof *files);
    char **paths = realloc(p->paths, (p->path_count + 1) * sizeof *paths);
    status_t st = OK;
    if (paths)
        p->paths = paths;
    if (!paths || !files) {
        free(files);
        return FAIL(ERR_NOMEM, "no memory for a list of files");
    }
    p->paths[p->path_count++] = (char *)files; /* freed with them */
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"q", "k", "v"};
        files[i] = (struct case_file){.name = names[i], .rows = rows};
        snprintf(path, sizeof path, "%s/%s_l%02u_kv%u_t%u_%s.npy", dir, names[i], h->layer,
                 h->head / GROUP, h->tokens, kernel->in->name);
        TRY(keep_path(p, &files[i].path, i == 0 ? q : path));
    }
    const struct case_dims dims = {.batch = 1,
                                   .heads = heads,
                                   .kv_heads = 1,
                                   .queries = tokens,
                                   .keys = tokens,
                                   .head_dim = 64};
    if (fits_kernel(kernel, dims))
        TRY(plan_add(p, (struct plan_item){.check = CHECK_BOUND,
                                           .op = kernel->op,
                                           .dims = dims,
                                           .files = files,
                                           .file_count = 3}));
done:
    return st;
}

/* full: all groups of heads, all tokens; quick: the first tokens of the largest group. */
static status_t add_attention(struct plan *p, const struct kernel *kernel, enum suite suite,
                              const char *dir) {
    char pattern[4096], list[4096], best[4096] = "";
    struct head of_best = {0};
    size_t most = 0;
    glob_t found = {0};
    status_t st = OK;
    snprintf(pattern, sizeof pattern, "%s/q_*.npy", dir);
    int rc = glob(pattern, 0, NULL, &found);
    if (rc != 0 && rc != GLOB_NOMATCH)
        TRY(FAIL(ERR_IO, "cannot list %s", pattern));
    for (size_t i = 0; i < found.gl_pathc;) { /* sorted: a group's heads are neighbours */
        struct head first, next;
        size_t heads = 0, at = 0;
        if (!parse_head(&first, found.gl_pathv[i], kernel->in->name)) {
            i++;
            continue;
        }
        for (; i < found.gl_pathc; i++) {
            if (!parse_head(&next, found.gl_pathv[i], kernel->in->name))
                continue;
            if (!same_group(&first, &next))
                break;
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", heads++ ? "," : "",
                                   file_shorten(found.gl_pathv[i]));
            if (at >= sizeof list)
                TRY(FAIL(ERR_USAGE, "%s: a path is too long", found.gl_pathv[i]));
        }
        if (suite == SUITE_FULL)
            TRY(add_heads(p, kernel, &first, dir, list, heads, 0));
        if (heads > most) {
            most = heads;
            of_best = first;
            snprintf(best, sizeof best, "%s", list);
        }
    }
    if (suite == SUITE_QUICK && most)
        TRY(add_heads(p, kernel, &of_best, dir, best, most, QUICK_TOKENS));
done:
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
