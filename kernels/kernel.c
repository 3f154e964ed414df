/* A manifest entry checked and compiled, and what it says about a shape. */
#include "kernels/kernel.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A kernel and what only this folder sees of it, in one piece. */
struct understood {
    struct kernel kernel;
    struct kernel_detail detail;
};

/* Like TRY, and the message says where in the entry `u` it happened. */
#define TRY_AT(u, expr, ...) \
    TRY(manifest_at((expr), (u)->detail.file, (u)->detail.index, __VA_ARGS__))

static const struct manifest_kernel *written(const struct understood *u) {
    return &u->detail.file->manifest->kernels[u->detail.index];
}

/* ---- names ----------------------------------------------------------------------------------- */

static status_t check_name(const char *name) {
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("_-.", *p))
            return FAIL(ERR_SYNTAX, "`%s`: expected letters, digits, `_`, `-` and `.` only", name);
    return OK;
}

static status_t find_op(const struct op **out, const char *name) {
    char known[256];
    size_t used = 0;
    *out = op_find(name);
    if (*out)
        return OK;
    for (const struct op *op = ops; op->name && used < sizeof known; op++)
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", op->name);
    return FAIL(ERR_SYNTAX, "unknown op `%s`: expected one of%s", name, known);
}

static status_t check_scratch_name(const struct manifest_kernel *m, size_t i) {
    static const char *const taken[] = {"x", "y", "rows", "cols"};
    const char *name = m->scratch[i].name;
    for (const char *p = name; *p; p++)
        if (!isalpha((unsigned char)*p) && *p != '_' && !(p > name && isdigit((unsigned char)*p)))
            return FAIL(ERR_SYNTAX, "`%s` is no identifier", name);
    for (size_t k = 0; k < sizeof taken / sizeof taken[0]; k++)
        if (strcmp(name, taken[k]) == 0)
            return FAIL(ERR_SYNTAX, "`%s` already means something else", name);
    for (size_t k = 0; k < i; k++)
        if (strcmp(name, m->scratch[k].name) == 0)
            return FAIL(ERR_SYNTAX, "`%s` is already taken by scratch[%zu]", name, k);
    return OK;
}

/* ---- the image ------------------------------------------------------------------------------- */

/* *out = file as seen from the manifest at path, with `suffix` for its last `cut` characters. */
static status_t path_beside(char **out, const char *path, const char *file, size_t cut,
                            const char *suffix) {
    const char *slash = strrchr(path, '/');
    int folder = slash && file[0] != '/' ? (int)(slash - path) + 1 : 0;
    if (asprintf(out, "%.*s%.*s%s", folder, path, (int)(strlen(file) - cut), file, suffix) < 0) {
        *out = NULL;
        return FAIL(ERR_NOMEM, "no memory for a path");
    }
    return OK;
}

static status_t find_image(char **out, const struct manifest_kernel *m, const char *path) {
    struct stat info;
    status_t st;
    if (!m->source == !m->image)
        return FAIL(ERR_SYNTAX, "expected one of `source` and `image`, found %s",
                    m->source ? "both" : "neither");
    if (m->source) {
        size_t length = strlen(m->source);
        if (length < 4 || strcmp(m->source + length - 3, ".cu") != 0)
            return FAIL(ERR_SYNTAX, "source `%s`: expected a .cu file", m->source);
        st = path_beside(out, path, m->source, 3, ".ptx");
    } else {
        st = path_beside(out, path, m->image, 0, "");
    }
    if (st != OK)
        return st;
    if (stat(*out, &info) != 0 || !S_ISREG(info.st_mode))
        return FAIL(ERR_IO, "no image at %s%s", *out,
                    m->source ? " (the build compiles it from `source`)" : "");
    return OK;
}

/* ---- the whole entry ------------------------------------------------------------------------- */

/* Every expression at one shape: a slip shows when the manifest is read, not during a run. */
static status_t try_shape(struct understood *u, struct case_dims dims) {
    status_t st = OK;
    size_t bytes;
    struct numerics numerics;

    for (size_t i = 0; i < u->detail.launch_count; i++)
        TRY(launch_try(&u->detail.launches[i], dims, u->detail.file, u->detail.index, i));
    for (size_t i = 0; i < u->detail.scratch_count; i++)
        TRY_AT(u, expr_size(&bytes, u->detail.scratch[i], dims), "scratch[%zu].bytes", i);
    TRY_AT(u, kernel_numerics(&numerics, &u->kernel, dims), "numerics");
done:
    return st;
}

static status_t try_shapes(struct understood *u) {
    const struct range *rows = &u->detail.rows, *cols = &u->detail.cols;
    struct case_dims small = {range_near(rows, 1), range_near(cols, 1)};
    struct case_dims usual = {range_near(rows, 7), range_near(cols, 1000)};
    status_t st = try_shape(u, small);
    return st == OK ? try_shape(u, usual) : st;
}

static status_t compile_numerics(struct understood *u) {
    status_t st = OK;
    const struct manifest_numerics *m = &written(u)->numerics;

    u->detail.numerics = m;
    if (m->sum_height)
        TRY_AT(u, expr_new(&u->detail.sum_height, m->sum_height), "numerics.sum_height");
    if (m->rescales)
        TRY_AT(u, expr_new(&u->detail.rescales, m->rescales), "numerics.rescales");
    if ((m->rescale == RESCALE_NONE) != (m->rescales == NULL))
        TRY_AT(u, FAIL(ERR_SYNTAX, "`rescale: online` and `rescales` belong together"), "numerics");
done:
    return st;
}

/* A range of cols, all of which the kernel accepts. */
static status_t check_recommended(const struct understood *u) {
    struct range range;
    status_t st = range_parse(&range, u->kernel.recommended);
    if (st == OK && (range.lo < u->detail.cols.lo || range.hi > u->detail.cols.hi))
        st = FAIL(ERR_SYNTAX, "cols = %s: the kernel does not accept all of them",
                  u->kernel.recommended);
    return st;
}

static status_t compile_accepts(struct understood *u) {
    status_t st = OK;
    const struct manifest_accepts *m = &written(u)->accepts;

    TRY_AT(u, range_parse(&u->detail.rows, m->rows ? m->rows : "1.."), "accepts.rows");
    TRY_AT(u, range_parse(&u->detail.cols, m->cols ? m->cols : "1.."), "accepts.cols");
    if (u->kernel.recommended)
        TRY_AT(u, check_recommended(u), "recommended");
done:
    return st;
}

static status_t compile_scratch(struct understood *u) {
    status_t st = OK;
    const struct manifest_kernel *m = written(u);

    u->detail.scratch = calloc(m->scratch_count + 1, sizeof *u->detail.scratch);
    if (!u->detail.scratch)
        TRY(FAIL(ERR_NOMEM, "no memory for a kernel"));
    u->detail.scratch_count = m->scratch_count;
    for (size_t i = 0; i < m->scratch_count; i++) {
        TRY_AT(u, check_scratch_name(m, i), "scratch[%zu].name", i);
        TRY_AT(u, expr_new(&u->detail.scratch[i], m->scratch[i].bytes), "scratch[%zu].bytes", i);
    }
done:
    return st;
}

status_t kernel_new(struct kernel **out, const struct manifest_file *file, size_t index) {
    status_t st = OK;
    const struct manifest_kernel *m = &file->manifest->kernels[index];
    struct understood *u = calloc(1, sizeof *u);
    *out = NULL;

    if (!u)
        return FAIL(ERR_NOMEM, "no memory for a kernel");
    u->detail.file = file;
    u->detail.index = index;
    u->kernel = (struct kernel){
        .name = m->name,
        .summary = m->summary ? m->summary : "",
        .empty_row = m->empty_row,
        .deterministic = m->deterministic,
        .recommended = m->recommended,
        .fault = m->planted_fault,
        .manifest = file->path,
        .detail = &u->detail,
    };
    TRY_AT(u, check_name(m->name), "name");
    TRY_AT(u, find_op(&u->kernel.op, m->op), "op");
    TRY_AT(u, find_dtype(&u->kernel.in, m->types.x), "types.x");
    TRY_AT(u, find_dtype(&u->kernel.out, m->types.y), "types.y");
    TRY_AT(u, find_dtype(&u->kernel.acc, m->types.acc ? m->types.acc : "f32"), "types.acc");
    TRY(compile_accepts(u));
    TRY(compile_scratch(u));
    for (size_t i = 0; i < m->launch_count; i++) {
        u->detail.launch_count = i + 1;
        TRY(launch_compile(&u->detail.launches[i], file, index, i));
    }
    TRY(compile_numerics(u));
    TRY(try_shapes(u));
    TRY_AT(u, find_image(&u->detail.image_path, m, file->path), m->source ? "source" : "image");
    u->kernel.image = u->detail.image_path;
    *out = &u->kernel;
    u = NULL;
done:
    if (u)
        kernel_free(&u->kernel);
    return st;
}

void kernel_free(struct kernel *kernel) {
    if (!kernel)
        return;
    struct understood *u = (struct understood *)kernel; /* its first member */
    struct kernel_detail *d = &u->detail;
    for (size_t i = 0; i < d->launch_count; i++)
        launch_clear(&d->launches[i]);
    for (size_t i = 0; i < d->scratch_count; i++)
        expr_free(d->scratch[i]);
    free(d->scratch);
    expr_free(d->sum_height);
    expr_free(d->rescales);
    free(d->image_path);
    free(u);
}

/* ---- what it says about a shape -------------------------------------------------------------- */

const char *kernel_refuses(const struct kernel *kernel, struct case_dims dims) {
    static _Thread_local char reason[160];
    const struct manifest_accepts *m = &written((const struct understood *)kernel)->accepts;
    if (!range_contains(&kernel->detail->rows, dims.rows)) {
        snprintf(reason, sizeof reason, "rows = %zu: accepts %s", dims.rows,
                 m->rows ? m->rows : "1..");
        return reason;
    }
    if (!range_contains(&kernel->detail->cols, dims.cols)) {
        snprintf(reason, sizeof reason, "cols = %zu: accepts %s", dims.cols,
                 m->cols ? m->cols : "1..");
        return reason;
    }
    return NULL;
}

struct case_dims kernel_nearest(const struct kernel *kernel, struct case_dims dims) {
    return (struct case_dims){.rows = range_near(&kernel->detail->rows, dims.rows),
                              .cols = range_near(&kernel->detail->cols, dims.cols)};
}

status_t kernel_numerics(struct numerics *out, const struct kernel *kernel, struct case_dims dims) {
    status_t st = OK;
    const struct kernel_detail *d = kernel->detail;

    *out = (struct numerics){
        .in = kernel->in,
        .acc = kernel->acc,
        .out = kernel->out,
        .exp = d->numerics->exp,
        .rescale = d->numerics->rescale,
        .divide = d->numerics->divide,
        .log = d->numerics->log,
        .flush = d->numerics->flush,
    };
    if (d->sum_height)
        TRY(expr_number(&out->sum_height, d->sum_height, dims));
    if (d->rescales)
        TRY(expr_number(&out->rescales, d->rescales, dims));
done:
    return st;
}
