/*
 * gate/plan.c - suites.
 *
 * MPFR takes some microseconds per exponential, so quick is planned in elements: about 80,000 per
 * fill, sixteen fills, each judged once per op and shared by all its kernels.
 */
#include "gate/plan_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/file.h"
#include "gate/npy.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Lengths at, below and above what threads, warps, float4 and blocks divide rows into. */
static const struct case_dims quick_rows[] = {
    {1, 1},   {5, 1},   {5, 2},   {7, 31},   {5, 32},   {67, 33},  {5, 127},
    {5, 255}, {5, 256}, {6, 257}, {4, 1000}, {5, 1024}, {5, 1025}, {3, 4099},
};
static const struct case_dims full_rows[] = {
    {1030, 3}, {300, 64}, {9, 511},   {9, 512},   {9, 513},
    {5, 2048}, {3, 8191}, {2, 16387}, {1, 70001},
};
/* Tokens, heads, widths of a head. */
static const struct case_dims quick_heads[] = {
    {.rows = 1, .heads = 1, .head_dim = 2},   {.rows = 3, .heads = 2, .head_dim = 64},
    {.rows = 9, .heads = 3, .head_dim = 80},  {.rows = 8, .heads = 4, .head_dim = 128},
    {.rows = 31, .heads = 1, .head_dim = 96}, {.rows = 5, .heads = 8, .head_dim = 256},
};
static const struct case_dims full_heads[] = {
    {.rows = 128, .heads = 8, .head_dim = 128},
    {.rows = 127, .heads = 5, .head_dim = 64},
    {.rows = 1, .heads = 128, .head_dim = 192},
};

/* Batch, heads, key-value heads, queries, keys, width of a head. */
#define HEADS(b, h, g, q, n, d) \
    { .batch = b, .heads = h, .kv_heads = g, .queries = q, .keys = n, .head_dim = d }
static const struct case_dims quick_attention[] = {
    HEADS(1, 1, 1, 1, 1, 64),   HEADS(2, 2, 2, 1, 33, 64),  HEADS(1, 2, 1, 3, 127, 64),
    HEADS(1, 1, 1, 5, 128, 64), HEADS(2, 2, 1, 2, 129, 64), HEADS(1, 1, 1, 65, 9, 64),
    HEADS(1, 1, 1, 33, 65, 64), HEADS(2, 4, 2, 1, 31, 128),
};
static const struct case_dims full_attention[] = {
    HEADS(1, 2, 2, 128, 128, 64),  HEADS(1, 2, 1, 129, 127, 64), HEADS(1, 1, 1, 1, 1030, 64),
    HEADS(1, 1, 1, 127, 129, 128), HEADS(2, 4, 1, 1, 513, 64),   HEADS(1, 1, 1, 130, 2, 64),
};

/* Parts, rows, width of a head. */
#define PARTS(p, r, d) \
    { .parts = p, .rows = r, .head_dim = d }
static const struct case_dims quick_combine[] = {
    PARTS(1, 3, 64), PARTS(2, 33, 64), PARTS(3, 8, 128),
    PARTS(5, 9, 40), PARTS(9, 5, 37),  PARTS(33, 3, 128),
};
static const struct case_dims full_combine[] = {
    PARTS(2, 300, 128),
    PARTS(16, 64, 256),
    PARTS(128, 9, 64),
    PARTS(1000, 2, 64),
};

/* Rows, columns, and the k of a top-k. */
static const struct case_dims quick_topk[] = {
    {.rows = 1, .cols = 1, .k = 1},   {.rows = 7, .cols = 8, .k = 2},
    {.rows = 67, .cols = 17, .k = 16}, {.rows = 5, .cols = 64, .k = 6},
    {.rows = 5, .cols = 128, .k = 1}, {.rows = 5, .cols = 257, .k = 4},
    {.rows = 3, .cols = 9, .k = 9},
};
static const struct case_dims full_topk[] = {
    {.rows = 300, .cols = 64, .k = 8},
    {.rows = 9, .cols = 511, .k = 16},
    {.rows = 3, .cols = 4099, .k = 4},
};

/*
 * What an op's suites are made of: shapes of both, and more of `full`.  quick takes one pair of fill
 * and shape in `thin`, each fill other shapes.
 */
struct shapes {
    const struct case_dims *quick, *full;
    size_t quick_count, full_count, thin;
    unsigned seeds; /* of quick, per pair */
};

static struct shapes shapes_of(const struct op *op) {
    if (op->dims[2] == DIM_K)
        return (struct shapes){quick_topk, full_topk, COUNT(quick_topk), COUNT(full_topk), 2, 2};
    if (op->dims[0] == DIM_PARTS)
        return (struct shapes){
            quick_combine, full_combine, COUNT(quick_combine), COUNT(full_combine), 2, 1};
    if (op->dims[0] == DIM_BATCH)
        return (struct shapes){quick_attention,        full_attention,
                               COUNT(quick_attention), COUNT(full_attention),
                               COUNT(quick_attention), 1};
    if (op->dims[1] == DIM_HEADS)
        return (struct shapes){quick_heads,       full_heads, COUNT(quick_heads),
                               COUNT(full_heads), 4,          2};
    return (struct shapes){quick_rows, full_rows, COUNT(quick_rows), COUNT(full_rows), 8, 2};
}

static const struct case_dims order_shapes[] = {{5, 33}, {4, 256}, {3, 1025}};
static const char *const order_fills[] = {"normal", "huge",    "all_ninf", "alpha_underflow",
                                          "cancel", "ramp_up", "exact_int"};

/* Ensembles: a few hundred rows make a bias stand out (docs/bounds.md); wide rows make tall sums. */
static const struct case_dims quick_ensembles[] = {{512, 257}};
static const struct case_dims full_ensembles[] = {{4096, 33}, {4096, 65}, {2048, 257}, {512, 1025}};

#define FULL_SEEDS 8
#define SEED_STEP 1000 /* between them; within one, each shape has its own seed */

const char *suite_name(enum suite s) {
    return s == SUITE_FULL ? "full" : "quick";
}

status_t suite_find(enum suite *out, const char *name) {
    for (int s = SUITE_QUICK; s <= SUITE_FULL; s++)
        if (strcmp(name, suite_name((enum suite)s)) == 0) {
            *out = (enum suite)s;
            return OK;
        }
    return FAIL(ERR_USAGE, "--suite %s: expected quick or full", name);
}

status_t plan_add(struct plan *p, struct plan_item item) {
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 256;
        struct plan_item *items = realloc(p->items, room * sizeof *items);
        if (!items)
            return FAIL(ERR_NOMEM, "no memory for a plan of %zu cases", room);
        p->items = items;
        p->room = room;
    }
    p->items[p->count++] = item;
    return OK;
}

/* ---- fills ----------------------------------------------------------------------------------- */

/* The accepted shape next to this one; with longer rows come fewer of them, but some. */
static struct case_dims fitted(const struct kernel *kernel, struct case_dims dims) {
    struct case_dims fit = kernel_nearest(kernel, dims);
    if (fit.cols > dims.cols && dims.rows > 3) {
        size_t rows = dims.rows * dims.cols / fit.cols;
        fit = kernel_nearest(kernel, (struct case_dims){rows > 3 ? rows : 3, fit.cols});
    }
    return fit;
}

/* Shapes first, first + step ... of a list; the i-th has seed + i. */
static status_t add_every(struct plan *p, const struct kernel *kernel, enum check check,
                          const struct fill *fill, const struct case_dims *shapes, size_t count,
                          size_t first, size_t step, uint64_t seed) {
    for (size_t i = first; i < count; i += step) {
        const struct plan_item item = {.check = check,
                                       .op = kernel->op,
                                       .fill = fill,
                                       .dims = fitted(kernel, shapes[i]),
                                       .seed = seed + i};
        status_t st = plan_add(p, item);
        if (st != OK)
            return st;
    }
    return OK;
}

static status_t add_shapes(struct plan *p, const struct kernel *kernel, enum check check,
                           const struct fill *fill, const struct case_dims *shapes, size_t count,
                           uint64_t seed) {
    return add_every(p, kernel, check, fill, shapes, count, 0, 1, seed);
}

static bool suits(const struct kernel *kernel, const struct fill *fill) {
    for (size_t i = 0; fill->needs && i < op_input_count(kernel->op); i++)
        if (strcmp(kernel->op->inputs[i].name, fill->needs) == 0)
            return kernel_input(kernel, i);
    return true;
}

static status_t add_fills(struct plan *p, const struct kernel *kernel, enum suite suite,
                          uint64_t seed) {
    const struct shapes s = shapes_of(kernel->op);
    const size_t thin = suite == SUITE_FULL ? 1 : s.thin;
    const unsigned seeds = suite == SUITE_FULL ? FULL_SEEDS : s.seeds;
    status_t st = OK;
    for (const struct fill *f = fills_of(kernel->op); f->name; f++) {
        const size_t nth = (size_t)(f - fills_of(kernel->op));
        if (!suits(kernel, f))
            continue;
        for (unsigned k = 0; k < seeds; k++) /* each seed at shapes between the other's */
            TRY(add_every(p, kernel, CHECK_BOUND, f, s.quick, s.quick_count,
                          (nth + k * thin / seeds) % thin, thin, seed + k * SEED_STEP));
        if (suite == SUITE_FULL)
            TRY(add_shapes(p, kernel, CHECK_BOUND, f, s.full, s.full_count, seed));
    }
done:
    return st;
}

static bool in_order_fills(const struct fill *f) {
    for (size_t i = 0; i < COUNT(order_fills); i++)
        if (strcmp(f->name, order_fills[i]) == 0)
            return true;
    return false;
}

/*
 * Where permuting columns means nothing: parts change places under every fill; pages are in use, unused
 * and shared; the others are repeated and get neighbours.
 */
static bool in_place_fills(const struct kernel *kernel, const struct fill *f) {
    if (kernel->op->dims[0] == DIM_PARTS)
        return true;
    if (!kernel->deterministic || f == fills_of(kernel->op))
        return kernel->deterministic;
    return kernel_paged(kernel) && (f->needs || strcmp(f->name, "unused") == 0);
}

static status_t add_orders(struct plan *p, const struct kernel *kernel, enum suite suite,
                           uint64_t seed) {
    status_t st = OK;
    const struct shapes shapes = shapes_of(kernel->op);
    bool permutes = case_permutes(kernel);
    const size_t thin =
        suite == SUITE_FULL ? 1 : COUNT(order_shapes); /* quick: each fill a shape */
    for (const struct fill *f = fills; permutes && f->name; f++)
        if (suite == SUITE_FULL || in_order_fills(f))
            TRY(add_every(p, kernel, CHECK_ORDER, f, order_shapes, COUNT(order_shapes),
                          (size_t)(f - fills) % thin, thin, seed));
    for (const struct fill *f = fills_of(kernel->op); !permutes && f->name; f++) {
        const bool parts = kernel->op->dims[0] == DIM_PARTS;
        const size_t at = parts ? (size_t)(f - fills_of(kernel->op)) : shapes.quick_count / 2;
        if (in_place_fills(kernel, f))
            TRY(add_every(p, kernel, CHECK_ORDER, f, shapes.quick, shapes.quick_count,
                          suite == SUITE_FULL ? 0 : at % shapes.quick_count,
                          suite == SUITE_FULL ? 1 : shapes.quick_count, seed));
    }
done:
    return st;
}

/*
 * Ensembles need random rows: normal ones, and for a sum also rows of one sign, whose partial sums
 * grow, so that a truncated addition shows.
 */
static status_t add_ensembles(struct plan *p, const struct kernel *kernel, enum suite suite,
                              uint64_t seed) {
    const struct case_dims *shapes = suite == SUITE_FULL ? full_ensembles : quick_ensembles;
    size_t count = suite == SUITE_FULL ? COUNT(full_ensembles) : COUNT(quick_ensembles);
    status_t st = OK;
    if (!case_permutes(kernel)) /* no mean errors are known for the others */
        return OK;
    TRY(add_shapes(p, kernel, CHECK_ENSEMBLE, fill_find("normal"), shapes, count, seed));
    if (strcmp(kernel->op->name, "sum") == 0)
        TRY(add_shapes(p, kernel, CHECK_ENSEMBLE, fill_find("near_overflow"), shapes, count, seed));
done:
    return st;
}

status_t plan_init(struct plan *out, const struct kernel *kernel, enum suite suite, uint64_t seed,
                   const char *real_dir) {
    *out = (struct plan){0};
    status_t st = OK;
    TRY(add_fills(out, kernel, suite, seed));
    if (real_dir)
        TRY(plan_add_real(out, kernel, suite, real_dir));
    TRY(add_orders(out, kernel, suite, seed));
    TRY(add_ensembles(out, kernel, suite, seed));
done:
    if (st != OK)
        plan_clear(out);
    return st;
}

static bool same_files(const struct plan_item *x, const struct plan_item *y) {
    if (x->file_count != y->file_count)
        return false;
    for (size_t i = 0; i < x->file_count; i++)
        if (strcmp(x->files[i].path, y->files[i].path) != 0)
            return false;
    return true;
}

bool plan_equal(const struct plan *a, const struct plan *b) {
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct plan_item *x = &a->items[i], *y = &b->items[i];
        bool same_path = x->path && y->path ? strcmp(x->path, y->path) == 0 : x->path == y->path;
        same_path &= same_files(x, y);
        if (x->check != y->check || x->op != y->op || x->fill != y->fill ||
            !dims_equal(&x->dims, &y->dims) || x->seed != y->seed || x->first_row != y->first_row ||
            !same_path)
            return false;
    }
    return true;
}

status_t plan_add_twins(struct plan *p) {
    status_t st = OK;
    for (size_t i = 0, count = p->count; st == OK && i < count; i++) {
        struct plan_item item = p->items[i];
        if (item.check != CHECK_BOUND)
            continue;
        item.check = CHECK_TWIN;
        st = plan_add(p, item);
    }
    return st;
}

void plan_clear(struct plan *p) {
    for (size_t i = 0; i < p->path_count; i++)
        free(p->paths[i]);
    free(p->paths);
    free(p->items);
    *p = (struct plan){0};
}

status_t plan_case(struct test_case *out, const struct plan_item *item,
                   const struct kernel *kernel) {
    if (item->fill)
        return case_make(out, item->fill, kernel, item->dims, item->seed);
    if (item->file_count)
        return case_from_files(out, kernel, item->files, item->file_count, (struct case_dims){0});
    return case_from_npy(out, item->path, kernel, item->first_row,
                         item->part ? item->dims.rows : 0);
}

void check_line(char *out, size_t size, enum check check, const struct test_case *c) {
    static const char *const prefixes[] = {[CHECK_BOUND] = "",
                                           [CHECK_ORDER] = "--order ",
                                           [CHECK_ENSEMBLE] = "--ensemble ",
                                           [CHECK_TWIN] = "--twin "};
    char line[CASE_LINE_SIZE];
    case_line(line, sizeof line, c);
    snprintf(out, size, "%s%s", prefixes[check], line);
}

void plan_line(char *out, size_t size, const struct plan_item *item) {
    char files[CASE_LINE_SIZE];
    if (item->file_count)
        case_files_line(files, sizeof files, item->op, item->files, item->file_count, &item->dims);
    const struct test_case c = {.op = item->op,
                                .line = item->file_count ? files : NULL,
                                .fill = item->fill,
                                .dims = item->dims,
                                .seed = item->seed,
                                .path = (char *)item->path,
                                .first_row = item->first_row,
                                .part = item->part};
    check_line(out, size, item->check, &c);
}
