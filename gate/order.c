/* gate/order.c - the same case in other orders, in other company, and again. */
#include "gate/order_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define PERMUTATIONS 3
#define SCHEDULES 3

/* ---- comparing ------------------------------------------------------------------------------- */

static size_t variant_index(const struct order *o, const struct variant *v, size_t row,
                            size_t col) {
    size_t at = v->column ? v->column[row * o->c->dims.cols + col] : col;
    return row * o->step + at;
}

double order_rho(double a, double b, double allowance) {
    if (allowance == INFINITY)
        return 0;
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : INFINITY;
    if (a == b)
        return 0;
    double difference = fabs(a - b);
    if (!(difference <= allowance))
        return difference / allowance > 1 ? difference / allowance : INFINITY;
    return difference / allowance;
}

void order_record(struct order *o, const struct variant *v, double rho, struct worst here) {
    struct judgement *j = o->out;
    bool failed = !(rho <= 1);
    bool worse = !j->worst.known || (failed && j->verdict != VERDICT_FAIL) ||
                 (failed == (j->verdict == VERDICT_FAIL) && rho > j->max_rho);
    if (!(rho <= j->max_rho))
        j->max_rho = rho;
    if (worse)
        j->worst = here;
    if (!failed || !worse)
        return;
    j->verdict = VERDICT_FAIL;
    char rule[96], where[64];
    if (v->same_bits)
        snprintf(rule, sizeof rule, "equal bits are due (%s)", v->due ? v->due : "deterministic: true");
    else if (here.budget == 0)
        snprintf(rule, sizeof rule, "equal values are due (bound 0)");
    else
        snprintf(rule, sizeof rule, "%.3g times what two orders may differ by", rho);
    worst_place(where, sizeof where, o->kernel->op, &here);
    snprintf(j->reason, sizeof j->reason, "order: %s %u: %s changes: %s", v->what, v->number, where,
             rule);
}

void order_compare_bits(struct order *o, const struct variant *v) {
    struct tensor_block base, other;
    if (kernel_outputs(&base, o->kernel, o->c->dims, o->base) != OK ||
        kernel_outputs(&other, o->kernel, v->dims, (void *)v->y) != OK) /* only read */
        return; /* cannot be: both have run */
    for (size_t unit = v->first; unit < v->first + v->count; unit++)
        for (size_t r = 0; r < o->step; r++) {
            struct op_place at = op_place_of(o->kernel->op, &o->c->dims, unit, r);
            const struct tensor *a = &base.tensors[at.output], *b = &other.tensors[at.output];
            if (!a->type) /* the kernel does without this output */
                continue;
            size_t size = a->type->size, slot = tensor_slot(a, at.element) * size;
            uint32_t got = 0;
            bool same =
                memcmp((const char *)a->data + slot, (const char *)b->data + slot, size) == 0;
            memcpy(&got, (const char *)b->data + slot, size < 4 ? size : 4);
            double value = tensor_get(a, at.element);
            order_record(o, v, same ? 0 : INFINITY,
                         (struct worst){.known = true,
                                        .per_row = o->kernel->op->result == OP_PER_ROW,
                                        .output = at.output,
                                        .row = unit,
                                        .col = r,
                                        .got = got,
                                        .want = {value, value}});
        }
}

static void compare(struct order *o, const struct variant *v) {
    const struct dtype *dt = o->kernel->out;
    if (v->same_bits) {
        order_compare_bits(o, v);
        return;
    }
    for (size_t row = v->first; row < v->first + v->count; row++) {
        for (size_t col = 0; col < o->step; col++) {
            size_t i = row * o->step + col, k = variant_index(o, v, row, col);
            uint32_t a = dtype_load(dt, o->base, i), b = dtype_load(dt, v->y, k);
            double allowance = o->spread[i];
            double rho = order_rho(dtype_to_double(dt, a), dtype_to_double(dt, b), allowance);
            double base = dtype_to_double(dt, a);
            /* An exact accumulator changes no bit, and an allowance below the result's size would
             * have shown it if it had. */
            bool telling = o->c->dims.cols > 1 && (allowance < fabs(base) || allowance == 0);
            if (v->permuted && (a != b || telling))
                *o->saw = true;
            order_record(o, v, rho,
                         (struct worst){.known = true,
                                        .per_row = o->kernel->op->result == OP_PER_ROW,
                                        .row = row,
                                        .col = col,
                                        .got = b,
                                        .want = {base, base},
                                        .budget = allowance});
        }
    }
}

/* ---- running --------------------------------------------------------------------------------- */

status_t order_run(struct order *o, void *y, bool *clean, const void *x, struct case_dims dims,
                   uint64_t schedule_seed, const char *what, struct kernel_result *result) {
    struct kernel_result local;
    struct kernel_result *r = result ? result : &local;
    const struct kernel_io io = {.dims = dims, .x = x, .y = y, .schedule_seed = schedule_seed};
    status_t st = kernel_run(r, o->lk, &io);
    if (st != OK)
        return st;
    *clean = kernel_result_clean(r);
    if (!*clean) {
        const struct dev_fault *fault = kernel_result_fault(r);
        o->out->verdict = VERDICT_FAIL;
        snprintf(o->out->reason, sizeof o->out->reason, "order: %s: %s", what,
                 fault ? fault->text : "a launch did not complete");
    }
    return OK;
}

/* repeat and schedule: the case as it is, `count` times more. */
static status_t check_reruns(struct order *o, const char *what, unsigned count, bool seeded) {
    void *y = malloc(o->y_bytes);
    if (!y)
        return FAIL(ERR_NOMEM, "no memory for an output of %s", o->kernel->name);
    status_t st = OK;
    for (unsigned k = 1; k <= count; k++) {
        bool clean;
        TRY(order_run(o, y, &clean, o->c->x, o->c->dims, seeded ? k : 0, what, NULL));
        if (!clean)
            break;
        compare(o, &(struct variant){.what = what,
                                     .number = k,
                                     .y = y,
                                     .dims = o->c->dims,
                                     .same_bits = o->kernel->deterministic,
                                     .count = o->units});
    }
done:
    free(y);
    return st;
}

/* column[row][j] = the new place of column j; one permutation per row (Fisher-Yates). */
static void permute(size_t *column, struct case_dims dims, uint64_t seed) {
    struct rng rng = rng_from_seed(seed);
    for (size_t row = 0; row < dims.rows; row++, column += dims.cols) {
        for (size_t j = 0; j < dims.cols; j++)
            column[j] = j;
        for (size_t j = dims.cols; j > 1; j--) {
            size_t k = (size_t)rng_below(&rng, j), t = column[j - 1];
            column[j - 1] = column[k];
            column[k] = t;
        }
    }
}

static status_t check_permutation(struct order *o, unsigned number) {
    const struct test_case *c = o->c;
    size_t count = c->dims.rows * c->dims.cols;
    size_t *column = malloc((count ? count : 1) * sizeof *column);
    void *y = malloc(o->y_bytes);
    struct test_case permuted = {0};
    bool clean;
    status_t st = OK;
    if (!column || !y)
        TRY(FAIL(ERR_NOMEM, "no memory for a permutation of %zu elements", count));
    TRY(case_from_data(&permuted, c->x, c->dtype, c->dims));
    permute(column, c->dims, c->seed * PERMUTATIONS + number);
    for (size_t row = 0; row < c->dims.rows; row++)
        for (size_t j = 0; j < c->dims.cols; j++) {
            size_t first = row * c->dims.cols;
            dtype_store(c->dtype, permuted.x, first + column[first + j],
                        dtype_load(c->dtype, c->x, first + j));
        }
    TRY(order_run(o, y, &clean, permuted.x, c->dims, 0, "permutation", NULL));
    if (clean)
        compare(o, &(struct variant){
                       .what = "permutation",
                       .number = number,
                       .y = y,
                       .dims = c->dims,
                       .permuted = memcmp(permuted.x, c->x, count * dtype_size(c->dtype)) != 0,
                       .column = o->kernel->op->result == OP_PER_ROW ? NULL : column,
                       .count = c->dims.rows,
                   });
done:
    case_clear(&permuted);
    free(column);
    free(y);
    return st;
}

/* The rows keep their places: at another place a row may be aligned otherwise, and a kernel that
 * loads four at once then groups its terms otherwise.  `deterministic` does not speak of that. */
static status_t check_batch(struct order *o) {
    const size_t sizes[] = {1, o->c->dims.rows / 2 + 1};
    void *y = malloc(o->y_bytes);
    status_t st = OK;
    if (!y)
        return FAIL(ERR_NOMEM, "no memory for an output of %s", o->kernel->name);
    for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const struct case_dims dims = {sizes[k], o->c->dims.cols};
        bool clean;
        if (dims.rows >= o->c->dims.rows || kernel_refuses(o->kernel, dims))
            continue;
        TRY(order_run(o, y, &clean, o->c->x, dims, 0, "a smaller batch", NULL));
        if (!clean)
            break;
        compare(o, &(struct variant){.what = "batch of",
                                     .number = (unsigned)dims.rows,
                                     .y = y,
                                     .dims = dims,
                                     .same_bits = true,
                                     .count = dims.rows});
    }
done:
    free(y);
    return st;
}

/* Elements that belong to one unit alone: those of one are kept, all others become NaN. */
static status_t check_neighbours(struct order *o) {
    struct tensor_block inputs;
    size_t kept = o->units / 2;
    void *x = NULL, *y = NULL;
    bool clean = false;
    status_t st = OK;
    if (o->units < 2)
        return OK;
    TRY(kernel_inputs(&inputs, o->kernel, o->c->dims, NULL));
    x = malloc(inputs.bytes + 1);
    y = malloc(o->y_bytes);
    if (!x || !y)
        TRY(FAIL(ERR_NOMEM, "no memory for an output of %s", o->kernel->name));
    memcpy(x, o->c->x, inputs.bytes);
    TRY(kernel_inputs(&inputs, o->kernel, o->c->dims, x));
    for (size_t k = 0; k < op_input_count(o->kernel->op); k++) {
        const struct tensor *t = &inputs.tensors[k];
        for (size_t i = 0; t->type && t->type->kind == TENSOR_REAL && i < t->count; i++) {
            size_t unit = op_unit_of(o->kernel->op, k, &o->c->dims, i);
            if (unit != kept && unit != SIZE_MAX)
                tensor_set_bits(t, i, t->type->dtype->nan);
        }
    }
    TRY(order_run(o, y, &clean, x, o->c->dims, 0, "neighbours of NaN", NULL));
    if (clean)
        compare(o, &(struct variant){.what = "neighbours",
                                     .number = 1,
                                     .y = y,
                                     .dims = o->c->dims,
                                     .same_bits = true,
                                     .first = kept,
                                     .count = 1});
done:
    free(x);
    free(y);
    return st;
}

static status_t check_all(struct order *o) {
    bool permutes = case_permutes(o->kernel);
    status_t st = OK;
    TRY(check_reruns(o, "repeat", 1, false));
    TRY(check_reruns(o, "schedule", SCHEDULES, true));
    for (unsigned k = 1; permutes && k <= PERMUTATIONS; k++)
        TRY(check_permutation(o, k));
    if (o->kernel->deterministic) {
        if (permutes)
            TRY(check_batch(o));
        TRY(check_neighbours(o));
    }
    if (o->kernel->op->dims[0] == DIM_PARTS)
        TRY(order_parts(o));
    if (kernel_paged(o->kernel) && o->kernel->deterministic)
        TRY(order_pages(o));
done:
    return st;
}

status_t order_check(struct judgement *out, bool *saw, struct kernel_result *result,
                     struct loaded_kernel *lk, const struct test_case *c, struct truth *truth) {
    const struct kernel *kernel = loaded_kernel_of(lk);
    *out = (struct judgement){.verdict = VERDICT_PASS};
    *saw = false;
    *result = (struct kernel_result){0};
    const char *refusal = kernel_refuses(kernel, c->dims);
    bool permutes = case_permutes(kernel);
    if (!refusal && !permutes && kernel->op->dims[0] != DIM_PARTS && !kernel->deterministic)
        refusal = "order: its entries have their places, and it is not declared deterministic";
    if (refusal) {
        *out = judgement_of(VERDICT_SKIP, "%s", refusal);
        return OK;
    }
    struct order o = {.lk = lk,
                      .kernel = kernel,
                      .c = c,
                      .units = truth->units,
                      .step = truth->step,
                      .truth = truth,
                      .out = out,
                      .saw = saw};
    struct tensor_block outputs;
    bool clean;
    status_t st = OK;
    TRY(kernel_outputs(&outputs, kernel, c->dims, NULL));
    o.y_bytes = outputs.bytes ? outputs.bytes : 1;
    o.base = malloc(o.y_bytes);
    if (!o.base)
        TRY(FAIL(ERR_NOMEM, "no memory for an output of %s", kernel->name));
    if (permutes)
        TRY(spreads_make(&o.spread, kernel, c, truth));
    else
        *saw = true; /* a schedule shows itself in any bit */
    TRY(order_run(&o, o.base, &clean, c->x, c->dims, 0, "the first run", result));
    if (clean)
        TRY(check_all(&o));
done:
    free(o.base);
    free(o.spread);
    return st;
}
