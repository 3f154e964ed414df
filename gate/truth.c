/* gate/truth.c - the oracle's answer for a case, and a kernel's budgets. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "gate/judge_impl.h"

void *new_array(size_t count, size_t size) {
    size_t bytes;
    return size_mul(&bytes, count, size) ? malloc(bytes ? bytes : 1) : NULL;
}

static status_t count_results(struct truth *t) {
    t->step = results_per_row(t->op, t->c->dims);
    if (op_unit_count(&t->units, t->op, &t->c->dims) && size_mul(&t->count, t->units, t->step))
        return OK;
    char shape[SHAPE_SIZE];
    dims_shape(shape, sizeof shape, t->op->dims, &t->c->dims);
    return FAIL(ERR_USAGE, "shape %s is larger than any memory", shape);
}

status_t truth_init(struct truth *out, const struct op *op, const struct test_case *c,
                    enum empty_row empty_row) {
    *out = (struct truth){.op = op, .c = c, .empty_row = empty_row, .arch = DEFAULT_ARCH};
    status_t st = OK;
    TRY(count_results(out));
    out->want = new_array(out->count, sizeof *out->want);
    out->tier = new_array(out->units, 1);
    if (!out->want || !out->tier)
        TRY(FAIL(ERR_NOMEM, "no memory for the truth of %zu results", out->count));
    memset(out->tier, TIER_COUNT, out->units);
done:
    if (st != OK)
        truth_clear(out);
    return st;
}

/* Rows of attention side by side; what each needs beside k and v is not much. */
#define UNITS_TOGETHER ((size_t)64)

size_t units_together(const struct op *op, const struct case_dims *dims) {
    size_t n = op_sharers(op, dims);
    return n < UNITS_TOGETHER ? n : UNITS_TOGETHER;
}

status_t truth_rows(struct truth *t, const struct op_units *u, const size_t *at,
                    const size_t *rows, size_t n) {
    struct enclosure *want = NULL;
    const struct oracle_row **units = NULL;
    enum tier *tier = NULL;
    size_t *unknown = NULL, count = 0, bytes;
    status_t st = OK;
    if (n == 0)
        return OK;
    units = new_array(n, sizeof *units);
    tier = calloc(n, sizeof *tier);
    unknown = new_array(n, sizeof *unknown);
    if (!size_mul(&bytes, n, t->step) || !units || !tier || !unknown ||
        !(want = new_array(bytes, sizeof *want)))
        TRY(FAIL(ERR_NOMEM, "no memory for the truth of %zu rows", n));
    for (size_t i = 0; i < n; i++) {
        if (t->tier[rows[i]] != TIER_COUNT)
            continue;
        units[count] = &u->unit[at[i]].row;
        tier[count] = t->first;
        unknown[count++] = rows[i];
    }
    if (count == 0)
        goto done;
    TRY(tier_enclose_rows(want, tier, t->op, units, count, t->step));
    for (size_t i = 0; i < count; i++) {
        memcpy(t->want + unknown[i] * t->step, want + i * t->step, t->step * sizeof *want);
        t->tier[unknown[i]] = (unsigned char)tier[i];
    }
done:
    free(units);
    free(tier);
    free(unknown);
    free(want);
    return st;
}

status_t truth_fill(struct truth *t) {
    const struct op_case oc = case_for_op(t->c, t->empty_row);
    const size_t part = op_sharers(t->op, &t->c->dims), most = units_together(t->op, &t->c->dims);
    size_t at[UNITS_TOGETHER], rows[UNITS_TOGETHER];
    struct op_units units = {0};
    status_t st = OK;
    TRY(op_units_init(&units, most, t->op, &oc));
    for (size_t row = 0, n; row < t->units; row += n) {
        n = part - row % part;
        n = n < most ? n : most;
        for (size_t i = 0; i < n; i++) {
            at[i] = i;
            rows[i] = row + i;
        }
        op_units_at(&units, row, n);
        TRY(truth_rows(t, &units, at, rows, n));
    }
done:
    op_units_clear(&units);
    return st;
}

void truth_clear(struct truth *t) {
    free(t->want);
    free(t->tier);
    *t = (struct truth){0};
}

bool sums_exactly(const struct kernel *kernel, const struct test_case *c) {
    return c->fill && c->fill->exact && strcmp(kernel->op->name, "sum") == 0 &&
           kernel->acc->prec >= c->dtype->prec && kernel->acc->emax >= c->dtype->emax &&
           kernel->out->prec >= c->dtype->prec && kernel->out->emax >= c->dtype->emax;
}

/* op->budget or op->spread */
typedef status_t bound_fn(double *, const struct oracle_row *, const struct enclosure *,
                          const struct numerics *);

static status_t bounds_make(double **bounds, bound_fn *bound, const struct kernel *kernel,
                            const struct numerics *numerics, const struct test_case *c,
                            struct truth *truth) {
    const struct op_case oc = case_for_op(c, kernel->empty_row);
    struct op_unit unit = {0};
    double *out = NULL;
    status_t st = OK;
    TRY(truth_fill(truth));
    TRY(op_unit_init(&unit, kernel->op, &oc));
    out = new_array(truth->count, sizeof *out);
    if (!out)
        TRY(FAIL(ERR_NOMEM, "no memory for %zu bounds", truth->count));
    for (size_t i = 0; i < truth->count; i++)
        out[i] = 0;
    for (size_t row = 0; row < truth->units && !sums_exactly(kernel, c); row++) {
        op_unit_at(&unit, row);
        TRY(bound(out + row * truth->step, &unit.row, truth->want + row * truth->step, numerics));
    }
    *bounds = out;
    out = NULL;
done:
    op_unit_clear(&unit);
    free(out);
    if (st == ERR_UNSUPPORTED) /* its numerics do not say enough */
        st = FAIL(st, "%s: %s: %s", kernel->manifest, kernel->name, status_message());
    return st;
}

status_t budgets_declared(double **bounds, const struct kernel *kernel,
                          const struct numerics *numerics, const struct test_case *c,
                          struct truth *truth) {
    return bounds_make(bounds, kernel->op->budget, kernel, numerics, c, truth);
}

status_t budgets_make(double **bounds, const struct kernel *kernel, const struct test_case *c,
                      struct truth *truth) {
    struct numerics numerics;
    status_t st = kernel_numerics(&numerics, kernel, c->dims);
    return st != OK ? st : budgets_declared(bounds, kernel, &numerics, c, truth);
}

status_t spreads_make(double **bounds, const struct kernel *kernel, const struct test_case *c,
                      struct truth *truth) {
    struct numerics numerics;
    status_t st = kernel_numerics(&numerics, kernel, c->dims);
    return st != OK ? st : bounds_make(bounds, kernel->op->spread, kernel, &numerics, c, truth);
}
