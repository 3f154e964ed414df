/* A manifest entry checked and compiled, and what it says about a shape. */
#include "kernels/kernel.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/options.h"

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

/* Does the name mean something to the op's kernels already? */
static bool is_taken(const struct understood *u, const char *name) {
    const struct op *op = u->kernel.op;
    const struct expr_scope *scope = &u->detail.scope;
    for (size_t i = 0; i < op_input_count(op); i++)
        if (strcmp(name, op->inputs[i].name) == 0)
            return true;
    for (size_t i = 0; i < op_output_count(op); i++)
        if (strcmp(name, op->outputs[i].name) == 0)
            return true;
    for (size_t i = 0; scope->dims[i] != DIM_NONE; i++)
        if (strcmp(name, dim_name(scope->dims[i])) == 0)
            return true;
    for (size_t i = 0; i < scope->name_count; i++)
        if (strcmp(name, scope->names[i].name) == 0)
            return true;
    return false;
}

static status_t check_identifier(const struct understood *u, const char *name) {
    for (const char *p = name; *p; p++)
        if (!isalpha((unsigned char)*p) && *p != '_' && !(p > name && isdigit((unsigned char)*p)))
            return FAIL(ERR_SYNTAX, "`%s` is no identifier", name);
    if (is_taken(u, name))
        return FAIL(ERR_SYNTAX, "`%s` already means something else", name);
    return OK;
}

static status_t check_scratch_name(const struct understood *u, size_t i) {
    const struct manifest_kernel *m = written(u);
    const char *name = m->scratch[i].name;
    for (size_t k = 0; k < i; k++)
        if (strcmp(name, m->scratch[k].name) == 0)
            return FAIL(ERR_SYNTAX, "`%s` is already taken by scratch[%zu]", name, k);
    return check_identifier(u, name);
}

static status_t check_tensor_map_name(const struct understood *u, size_t i) {
    const struct manifest_kernel *m = written(u);
    const char *name = m->tensor_maps[i].name;
    for (size_t k = 0; k < m->scratch_count; k++)
        if (strcmp(name, m->scratch[k].name) == 0)
            return FAIL(ERR_SYNTAX, "`%s` is already taken by scratch[%zu]", name, k);
    for (size_t k = 0; k < i; k++)
        if (strcmp(name, m->tensor_maps[k].name) == 0)
            return FAIL(ERR_SYNTAX, "`%s` is already taken by tensor_maps[%zu]", name, k);
    return check_identifier(u, name);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* The types of one side; *first is that of the first tensor. */
static status_t find_types(const struct dtype **first, const struct tensor_type **more,
                           const struct understood *u, const struct op_tensor *tensors,
                           size_t count) {
    status_t st = OK;
    for (size_t i = 0; i < count; i++) {
        const struct op_tensor *t = &tensors[i];
        const char *text = manifest_type(&written(u)->types, t->name);
        if (!text && t->optional)
            continue;
        if (!text)
            TRY_AT(
                u,
                FAIL(ERR_SYNTAX, "missing: op %s has the tensor `%s`", u->kernel.op->name, t->name),
                "types");
        TRY_AT(u, find_type(&more[i], text, t->kind), "types.%s", t->name);
        if (i == 0)
            *first = more[i]->dtype;
    }
done:
    return st;
}

/* No type for a tensor that the op does not have. */
static status_t check_types(const struct understood *u) {
    const struct op *op = u->kernel.op;
    for (size_t k = 0; manifest_type_name(k); k++) {
        const char *name = manifest_type_name(k);
        bool known = strcmp(name, "acc") == 0 || !manifest_type(&written(u)->types, name);
        for (size_t i = 0; i < op_input_count(op); i++)
            known |= strcmp(op->inputs[i].name, name) == 0;
        for (size_t i = 0; i < op_output_count(op); i++)
            known |= strcmp(op->outputs[i].name, name) == 0;
        if (!known)
            return manifest_at(FAIL(ERR_SYNTAX, "op %s has no such tensor", op->name),
                               u->detail.file, u->detail.index, "types.%s", name);
    }
    return OK;
}

static status_t compile_types(struct understood *u) {
    status_t st = OK;
    struct kernel *k = &u->kernel;
    const struct op *op = k->op;
    const char *acc = written(u)->types.acc;
    TRY(find_types(&k->in, k->more_in, u, op->inputs, op_input_count(op)));
    TRY(find_types(&k->out, k->more_out, u, op->outputs, op_output_count(op)));
    TRY_AT(u, find_dtype(&k->acc, acc ? acc : "f32"), "types.acc");
    TRY(check_types(u));
done:
    return st;
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
    struct tensor_block block;
    struct dev_tensor_map map;

    for (size_t i = 0; i < u->detail.launch_count; i++)
        TRY(launch_try(&u->detail.launches[i], dims, u->detail.file, u->detail.index, i));
    for (size_t i = 0; i < u->detail.scratch_count; i++)
        TRY_AT(u, expr_size(&bytes, u->detail.scratch[i], dims), "scratch[%zu].bytes", i);
    for (size_t i = 0; i < u->detail.tensor_map_count; i++)
        TRY(tensor_map_evaluate(&map, &u->detail.tensor_maps[i], dims, u->detail.file,
                                u->detail.index, i));
    TRY_AT(u, kernel_inputs(&block, &u->kernel, dims, NULL), "options");
    TRY_AT(u, kernel_numerics(&numerics, &u->kernel, dims), "numerics");
done:
    return st;
}

/* Small, and about as large as cases are: 7 and 1000 for the first and last of two dimensions. */
static status_t try_shapes(struct understood *u) {
    struct case_dims small = {0}, usual = {0};
    const enum dim *dims = u->kernel.op->dims;
    for (size_t i = 0; dims[i] != DIM_NONE; i++) {
        dim_set(&small, dims[i], 1);
        dim_set(&usual, dims[i], dims[i] == DIM_COLS || dims[i] == DIM_KEYS ? 1000 : 7);
    }
    status_t st = try_shape(u, kernel_nearest(&u->kernel, small));
    return st == OK ? try_shape(u, kernel_nearest(&u->kernel, usual)) : st;
}

static status_t compile_number(struct expr **out, const struct understood *u, const char *text,
                               const char *key) {
    if (!text)
        return OK;
    return manifest_at(expr_new(out, text, &u->detail.scope), u->detail.file, u->detail.index,
                       "numerics.%s", key);
}

static status_t compile_numerics(struct understood *u) {
    status_t st = OK;
    const struct manifest_numerics *m = &written(u)->numerics;

    u->detail.numerics = m;
    TRY(compile_number(&u->detail.sum_height, u, m->sum_height, "sum_height"));
    TRY(compile_number(&u->detail.rescales, u, m->rescales, "rescales"));
    TRY(compile_number(&u->detail.angle_rel, u, m->angle_rel, "angle_rel"));
    TRY(compile_number(&u->detail.angle_abs, u, m->angle_abs, "angle_abs"));
    TRY(compile_number(&u->detail.qk_height, u, m->qk.height, "qk.height"));
    TRY(compile_number(&u->detail.pv_height, u, m->pv.height, "pv.height"));
    TRY(compile_number(&u->detail.qk_run, u, m->qk.run, "qk.run"));
    TRY(compile_number(&u->detail.pv_run, u, m->pv.run, "pv.run"));
    TRY(compile_number(&u->detail.parts, u, m->parts, "parts"));
    TRY(compile_number(&u->detail.lazy_threshold, u, m->lazy_threshold, "lazy_threshold"));
    if (m->p_type)
        TRY_AT(u, find_dtype(&u->detail.p_type, m->p_type), "numerics.p_type");
    if (m->table)
        TRY_AT(u, find_dtype(&u->detail.table, m->table), "numerics.table");
    if ((m->rescale == RESCALE_NONE) != (m->rescales == NULL))
        TRY_AT(u, FAIL(ERR_SYNTAX, "`rescale: online` and `rescales` belong together"), "numerics");
done:
    return st;
}

static const char *accepts_text(const struct understood *u, enum dim dim) {
    const char *text = manifest_accept(&written(u)->accepts, dim);
    return text ? text : "1..";
}

/* A range of row lengths, all of which the kernel accepts. */
static status_t check_recommended(const struct understood *u) {
    const enum dim *dims = u->kernel.op->dims, length = op_row_length(u->kernel.op);
    struct range range;
    size_t i = 0;
    while (dims[i] != DIM_NONE && dims[i] != length)
        i++;
    status_t st = range_parse(&range, u->kernel.recommended);
    if (st == OK && dims[i] == DIM_NONE)
        st = FAIL(ERR_SYNTAX, "op %s has no %s", u->kernel.op->name, dim_name(length));
    if (st == OK && (range.lo < u->detail.accepts[i].lo || range.hi > u->detail.accepts[i].hi))
        st = FAIL(ERR_SYNTAX, "%s = %s: the kernel does not accept all of them", dim_name(length),
                  u->kernel.recommended);
    return st;
}

static status_t compile_accepts(struct understood *u) {
    status_t st = OK;
    const enum dim *dims = u->kernel.op->dims;
    bool known[DIM_END] = {0};

    for (size_t i = 0; dims[i] != DIM_NONE; i++) {
        known[dims[i]] = true;
        TRY_AT(u, range_parse(&u->detail.accepts[i], accepts_text(u, dims[i])), "accepts.%s",
               dim_name(dims[i]));
    }
    const char *group = written(u)->accepts.group;
    if (group && !known[DIM_KV_HEADS])
        TRY_AT(u, FAIL(ERR_SYNTAX, "op %s has no key-value heads", u->kernel.op->name),
               "accepts.group");
    TRY_AT(u, range_parse(&u->detail.group, group ? group : "1.."), "accepts.group");
    for (enum dim d = DIM_NONE + 1; d < DIM_END; d++)
        if (!known[d] && manifest_accept(&written(u)->accepts, d))
            TRY_AT(u, FAIL(ERR_SYNTAX, "op %s has no such dimension", u->kernel.op->name),
                   "accepts.%s", dim_name(d));
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
        TRY_AT(u, check_scratch_name(u, i), "scratch[%zu].name", i);
        TRY_AT(u, expr_new(&u->detail.scratch[i], m->scratch[i].bytes, &u->detail.scope),
               "scratch[%zu].bytes", i);
    }
done:
    return st;
}

static status_t compile_tensor_maps(struct understood *u) {
    status_t st = OK;
    const struct manifest_kernel *m = written(u);
    for (size_t i = 0; i < m->tensor_map_count; i++) {
        TRY_AT(u, check_tensor_map_name(u, i), "tensor_maps[%zu].name", i);
        u->detail.tensor_map_count = i + 1;
        TRY(tensor_map_compile(&u->detail.tensor_maps[i], u->detail.file, u->detail.index, i,
                               &u->kernel, &u->detail.scope));
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
        .combines_exactly = m->combine,
        .recommended = m->recommended,
        .fault = m->planted_fault,
        .manifest = file->path,
        .detail = &u->detail,
    };
    TRY_AT(u, check_name(m->name), "name");
    TRY_AT(u, find_op(&u->kernel.op, m->op), "op");
    if (m->combine && u->kernel.op->dims[0] != DIM_PARTS)
        TRY_AT(u, FAIL(ERR_SYNTAX, "op %s joins no parts", m->op), "combine");
    TRY(compile_types(u));
    TRY(compile_accepts(u));
    TRY(options_compile(&u->detail, u->kernel.op));
    TRY(compile_scratch(u));
    TRY(compile_tensor_maps(u));
    for (size_t i = 0; i < m->launch_count; i++) {
        u->detail.launch_count = i + 1;
        TRY(launch_compile(&u->detail.launches[i], file, index, i, &u->kernel, &u->detail.scope));
    }
    TRY(compile_numerics(u));
    TRY(try_shapes(u));
    TRY_AT(u, find_image(&u->detail.image_path, m, file->path), m->source ? "source" : "image");
    u->kernel.image = u->detail.image_path;
    u->kernel.rounding = m->rounding;
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
    for (size_t i = 0; i < d->tensor_map_count; i++)
        tensor_map_clear(&d->tensor_maps[i]);
    expr_free(d->sum_height);
    expr_free(d->rescales);
    expr_free(d->angle_rel);
    expr_free(d->angle_abs);
    expr_free(d->qk_height);
    expr_free(d->pv_height);
    expr_free(d->qk_run);
    expr_free(d->pv_run);
    expr_free(d->parts);
    expr_free(d->lazy_threshold);
    for (size_t i = 0; i < d->scope.name_count; i++)
        expr_free(d->scope.names[i].value);
    free(d->image_path);
    free(u);
}

/* ---- what it says about a shape -------------------------------------------------------------- */

bool kernel_recommended(const struct kernel *kernel, struct case_dims dims) {
    struct range range;
    return kernel->recommended && range_parse(&range, kernel->recommended) == OK &&
           range_contains(&range, dim_get(&dims, op_row_length(kernel->op)));
}

const char *kernel_refuses(const struct kernel *kernel, struct case_dims dims) {
    static _Thread_local char reason[160];
    const struct understood *u = (const struct understood *)kernel;
    const enum dim *list = kernel->op->dims;
    for (size_t i = 0; list[i] != DIM_NONE; i++) {
        size_t value = dim_get(&dims, list[i]);
        if (range_contains(&u->detail.accepts[i], value))
            continue;
        snprintf(reason, sizeof reason, "%s = %zu: accepts %s", dim_name(list[i]), value,
                 accepts_text(u, list[i]));
        return reason;
    }
    struct op_options options;
    if (!kernel->op->refuses)
        return NULL;
    if (kernel_options(&options, kernel, dims) != OK)
        return status_message();
    const char *why = op_refuses(kernel->op, &dims, &options);
    if (why || dims.kv_heads == 0 || range_contains(&u->detail.group, dims.heads / dims.kv_heads))
        return why;
    snprintf(reason, sizeof reason, "heads / kv_heads = %zu: accepts %s",
             dims.heads / dims.kv_heads, written(u)->accepts.group);
    return reason;
}

struct case_dims kernel_nearest(const struct kernel *kernel, struct case_dims dims) {
    const enum dim *list = kernel->op->dims;
    for (size_t i = 0; list[i] != DIM_NONE; i++)
        dim_set(&dims, list[i], range_near(&kernel->detail->accepts[i], dim_get(&dims, list[i])));
    return dims;
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
        .variance = d->numerics->variance,
        .rsqrt = d->numerics->rsqrt,
        .trig = d->numerics->trig,
        .table = d->table,
        .tanh = d->numerics->tanh,
        .topk = d->numerics->topk,
        .qk.tensor_core = d->numerics->qk.tensor_core,
        .pv.tensor_core = d->numerics->pv.tensor_core,
        .p_type = d->p_type,
        .sum_rounded = d->numerics->sum_rounded,
        .divide_first = d->numerics->divide_first,
        .flush = d->numerics->flush,
    };
    numerics_target(out, DEFAULT_ARCH);
    if (d->sum_height)
        TRY(expr_number(&out->sum_height, d->sum_height, dims));
    if (d->rescales)
        TRY(expr_number(&out->rescales, d->rescales, dims));
    if (d->angle_rel)
        TRY(expr_number(&out->angle_rel, d->angle_rel, dims));
    if (d->angle_abs)
        TRY(expr_number(&out->angle_abs, d->angle_abs, dims));
    if (d->qk_height)
        TRY(expr_number(&out->qk.height, d->qk_height, dims));
    if (d->pv_height)
        TRY(expr_number(&out->pv.height, d->pv_height, dims));
    if (d->qk_run)
        TRY(expr_number(&out->qk.run, d->qk_run, dims));
    if (d->pv_run)
        TRY(expr_number(&out->pv.run, d->pv_run, dims));
    if (d->parts)
        TRY(expr_number(&out->parts, d->parts, dims));
    if (d->lazy_threshold)
        TRY(expr_number(&out->lazy_threshold, d->lazy_threshold, dims));
done:
    return st;
}
