/*
 * gate/order_parts.c - what joining parts must not depend on.
 *
 *   order     all parts in reverse and in a random order: within both orders' budgets
 *   swap      two parts either way: the same bits, if the manifest says `combine: exact`
 *   nothing   a part of lse -Inf, with NaN in o, in front and behind: likewise
 *   groups    the parts joined in two groups, then the two results: within the budgets of all three
 *             runs (docs/bounds.md, "Parts by themselves"); only where o has the type of o_p
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "gate/case_impl.h"
#include "gate/order_impl.h"

enum { IN_O_P, IN_LSE_P };
enum { OUT_O, OUT_LSE };

#define NOTHING SIZE_MAX /* no part of the case: lse -Inf, o NaN */

/* ---- cases of other parts -------------------------------------------------------------------- */

/* part: a row of floats for each of the units. */
static void copy_part(const struct tensor *to, size_t part, const struct tensor *from,
                      size_t source, size_t part_count, double otherwise) {
    const size_t n = to->count / part_count;
    for (size_t i = 0; i < n; i++) {
        if (source == NOTHING)
            tensor_set(to, part * n + i, otherwise);
        else
            tensor_set_bits(to, part * n + i, tensor_bits(from, source * n + i));
    }
}

/* Parts from[0 .. count-1] of the case, as a case of their own. */
static status_t make_case(struct test_case *out, const struct order *o, const size_t *from,
                          size_t count) {
    struct case_dims dims = o->c->dims;
    dims.parts = count;
    status_t st = case_begin(out, o->kernel, dims);
    for (size_t p = 0; st == OK && p < count; p++) {
        copy_part(&out->in[IN_O_P], p, &o->c->in[IN_O_P], from[p], count, NAN);
        copy_part(&out->in[IN_LSE_P], p, &o->c->in[IN_LSE_P], from[p], count, -INFINITY);
    }
    return st;
}

static bool refused(const struct order *o, size_t parts) {
    struct case_dims dims = o->c->dims;
    dims.parts = parts;
    return kernel_refuses(o->kernel, dims) != NULL;
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* Parts from[0 .. count-1], against `base`, the outputs of another run. */
static status_t same_bits(struct order *o, void *base, const size_t *from, size_t count,
                          const char *what, unsigned number) {
    struct test_case c = {0};
    struct order other = *o;
    void *y = malloc(o->y_bytes);
    bool clean = false;
    status_t st = OK;
    if (!y)
        TRY(FAIL(ERR_NOMEM, "no memory for an output of %s", o->kernel->name));
    TRY(make_case(&c, o, from, count));
    TRY(order_run(o, y, &clean, c.x, c.dims, 0, what, NULL));
    other.base = base;
    if (clean)
        order_compare_bits(&other, &(struct variant){.what = what,
                                                     .number = number,
                                                     .y = y,
                                                     .dims = c.dims,
                                                     .same_bits = true,
                                                     .due = "combine: exact",
                                                     .count = o->units});
done:
    case_clear(&c);
    free(y);
    return st;
}

static status_t check_swap(struct order *o) {
    const size_t one_way[] = {0, o->c->dims.parts - 1}, other_way[] = {one_way[1], 0};
    struct test_case c = {0};
    void *base = malloc(o->y_bytes);
    bool clean = false;
    status_t st = OK;
    if (!base)
        TRY(FAIL(ERR_NOMEM, "no memory for an output of %s", o->kernel->name));
    if (o->c->dims.parts < 2 || refused(o, 2))
        goto done;
    TRY(make_case(&c, o, one_way, 2));
    TRY(order_run(o, base, &clean, c.x, c.dims, 0, "two parts", NULL));
    if (clean)
        TRY(same_bits(o, base, other_way, 2, "swap", 1));
done:
    case_clear(&c);
    free(base);
    return st;
}

static status_t check_nothing(struct order *o, size_t *from) {
    const size_t parts = o->c->dims.parts;
    if (refused(o, parts + 2))
        return OK;
    for (size_t p = 0; p < parts + 2; p++)
        from[p] = p == 0 || p == parts + 1 ? NOTHING : p - 1;
    return same_bits(o, o->base, from, parts + 2, "parts of nothing", 1);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static double value_at(const struct tensor_block *y, struct op_place at) {
    return tensor_get(&y->tensors[at.output], at.element);
}

/* y of another run against the base's; allowance by result. */
static status_t compare_within(struct order *o, const void *y, struct case_dims dims,
                               const double *allowance, const char *what, unsigned number) {
    struct tensor_block base, other;
    status_t st = OK;
    const struct variant v = {.what = what, .number = number, .y = y, .dims = dims};
    TRY(kernel_outputs(&base, o->kernel, o->c->dims, o->base));
    TRY(kernel_outputs(&other, o->kernel, dims, (void *)y)); /* only read */
    for (size_t unit = 0; unit < o->units; unit++)
        for (size_t r = 0; r < o->step; r++) {
            struct op_place at = op_place_of(o->kernel->op, &o->c->dims, unit, r);
            if (!base.tensors[at.output].type)
                continue;
            double a = value_at(&base, at), b = value_at(&other, at);
            double allowed = allowance[unit * o->step + r];
            order_record(o, &v, order_rho(a, b, allowed),
                         (struct worst){.known = true,
                                        .output = at.output,
                                        .row = unit,
                                        .col = r,
                                        .got = tensor_bits(&other.tensors[at.output], at.element),
                                        .want = {a, a},
                                        .budget = allowed});
        }
done:
    return st;
}

static status_t check_order(struct order *o, const double *budget, size_t *from, unsigned number) {
    const size_t parts = o->c->dims.parts;
    struct rng rng = rng_from_seed(o->c->seed + number);
    struct test_case c = {0};
    double *allowed = calloc(o->units * o->step + 1, sizeof *allowed);
    void *y = malloc(o->y_bytes);
    bool clean = false;
    status_t st = OK;
    if (!y || !allowed)
        TRY(FAIL(ERR_NOMEM, "no memory for an output of %s", o->kernel->name));
    for (size_t p = 0; p < parts; p++)
        from[p] = parts - 1 - p;
    for (size_t p = parts; number > 1 && p > 1; p--) { /* Fisher-Yates */
        size_t k = (size_t)rng_below(&rng, p), t = from[p - 1];
        from[p - 1] = from[k];
        from[k] = t;
    }
    for (size_t i = 0; i < o->units * o->step; i++)
        allowed[i] = bounds_two_orders(budget[i], budget[i]);
    TRY(make_case(&c, o, from, parts));
    TRY(order_run(o, y, &clean, c.x, c.dims, 0, "parts in another order", NULL));
    if (clean)
        TRY(compare_within(o, y, c.dims, allowed, "order of parts", number));
done:
    case_clear(&c);
    free(allowed);
    free(y);
    return st;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* One run of a case of its own, and its budgets. */
struct joined {
    struct test_case c;
    void *y;
    struct tensor_block out;
    double *budget;
    bool clean;
};

static void joined_clear(struct joined *j) {
    case_clear(&j->c);
    free(j->y);
    free(j->budget);
}

/* j->c is there. */
static status_t join(struct joined *j, struct order *o) {
    struct truth truth = {0};
    status_t st = OK;
    j->y = malloc(o->y_bytes);
    if (!j->y)
        TRY(FAIL(ERR_NOMEM, "no memory for an output of %s", o->kernel->name));
    TRY(order_run(o, j->y, &j->clean, j->c.x, j->c.dims, 0, "parts in groups", NULL));
    TRY(kernel_outputs(&j->out, o->kernel, j->c.dims, j->y));
    TRY(truth_init(&truth, o->kernel->op, &j->c, o->kernel->empty_row));
    TRY(budgets_make(&j->budget, o->kernel, &j->c, &truth));
done:
    truth_clear(&truth);
    return st;
}

/* The two results as a case of two parts. */
static status_t make_pair(struct test_case *out, const struct order *o,
                          const struct joined *group) {
    struct case_dims dims = o->c->dims;
    dims.parts = 2;
    status_t st = case_begin(out, o->kernel, dims);
    for (size_t p = 0; st == OK && p < 2; p++) {
        copy_part(&out->in[IN_O_P], p, &group[p].out.tensors[OUT_O], 0, 2, NAN);
        copy_part(&out->in[IN_LSE_P], p, &group[p].out.tensors[OUT_LSE], 0, 2, NAN);
    }
    return st;
}

/*
 * What the joined result may be off from the base's: both runs' budgets, those of the groups, and for
 * o what the weights move by, a quarter of what the lse are off, times the distance of the two o.
 * Where one of these budgets claims nothing, nothing is claimed of the joined result either.
 */
static void allow_groups(double *allowed, const struct order *o, const double *budget,
                         const struct joined *group, const struct joined *pair) {
    for (size_t unit = 0; unit < o->units; unit++)
        for (size_t r = 0; r < o->step; r++) {
            struct op_place at = op_place_of(o->kernel->op, &o->c->dims, unit, r);
            size_t i = unit * o->step + r, lse = unit * o->step + o->step - 1;
            double own = fmax(group[0].budget[i], group[1].budget[i]), moved = 0;
            if (at.output == OUT_O) {
                double apart = fabs(value_at(&group[0].out, at) - value_at(&group[1].out, at)) +
                               group[0].budget[i] + group[1].budget[i];
                moved = (group[0].budget[lse] + group[1].budget[lse]) / 4 * apart;
            }
            allowed[i] = (budget[i] + pair->budget[i] + own + moved) * (1 + 0x1p-40);
            if (isnan(allowed[i])) /* of infinities: the class is all there is */
                allowed[i] = 0;
            if (fmax(fmax(budget[i], pair->budget[i]), own) == INFINITY ||
                fmax(group[0].budget[lse], group[1].budget[lse]) == INFINITY)
                allowed[i] = INFINITY;
        }
}

static status_t check_groups(struct order *o, const double *budget, size_t *from) {
    const size_t parts = o->c->dims.parts, half = parts / 2;
    struct joined group[2] = {0}, pair = {0};
    double *allowed = calloc(o->units * o->step + 1, sizeof *allowed);
    status_t st = OK;
    if (!allowed)
        TRY(FAIL(ERR_NOMEM, "no memory for an output of %s", o->kernel->name));
    for (size_t p = 0; p < parts; p++)
        from[p] = p;
    TRY(make_case(&group[0].c, o, from, half));
    TRY(make_case(&group[1].c, o, from + half, parts - half));
    TRY(join(&group[0], o));
    TRY(join(&group[1], o));
    if (!group[0].clean || !group[1].clean)
        goto done;
    TRY(make_pair(&pair.c, o, group));
    TRY(join(&pair, o));
    if (!pair.clean)
        goto done;
    allow_groups(allowed, o, budget, group, &pair);
    TRY(compare_within(o, pair.y, pair.c.dims, allowed, "groups", 1));
done:
    joined_clear(&group[0]);
    joined_clear(&group[1]);
    joined_clear(&pair);
    free(allowed);
    return st;
}

status_t order_parts(struct order *o) {
    const size_t parts = o->c->dims.parts;
    size_t *from = calloc(parts + 2, sizeof *from);
    double *budget = NULL;
    status_t st = OK;
    if (!from)
        TRY(FAIL(ERR_NOMEM, "no memory for an order of %zu parts", parts));
    if (o->kernel->combines_exactly) {
        TRY(check_swap(o));
        TRY(check_nothing(o, from));
    }
    TRY(budgets_make(&budget, o->kernel, o->c, o->truth));
    for (unsigned k = 1; parts > 1 && k <= 2; k++)
        TRY(check_order(o, budget, from, k));
    bool lse = kernel_output(o->kernel, OUT_LSE) == kernel_input(o->kernel, IN_LSE_P);
    if (parts > 2 && lse && o->kernel->out == o->kernel->in && !refused(o, 2) &&
        !refused(o, parts / 2) && !refused(o, parts - parts / 2))
        TRY(check_groups(o, budget, from));
done:
    free(budget);
    free(from);
    return st;
}
