/*
 * gate/judge_row.c - one row of an output: the common look, the ladder, the audit.
 *
 * docs/oracle.md, "How a row is judged".
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "gate/judge_impl.h"

/* Does an input itself hold the poison pattern?  Then finding it in the output proves nothing. */
static bool holds_poison(const struct test_case *c) {
    for (size_t k = 0; k < OP_MAX_INPUTS; k++) {
        const struct tensor *t = &c->in[k];
        const struct dtype *dt = t->type ? t->type->dtype : NULL;
        for (size_t i = 0; dt && i < t->count; i++)
            if (tensor_bits(t, i) == poison_of(dt))
                return true;
    }
    return false;
}

/* ---- where results stand ------------------------------------------------------------------------ */

/* op_place_of, from what judge_init has counted. */
static struct op_place place_of(const struct judge *g, size_t row, size_t col) {
    size_t output = 0;
    while (col >= g->per_output[output] && output + 1 < g->outputs)
        col -= g->per_output[output++];
    return (struct op_place){output, row * g->per_output[output] + col};
}

/* The output that result `col` of a unit stands in, and its place there. */
static const struct tensor *output_of(const struct judge *g, size_t row, size_t col,
                                      size_t *element) {
    const struct op_place at = place_of(g, row, col);
    *element = at.element;
    return &g->y.tensors[at.output];
}

/* Its type; NULL: the kernel does without this output. */
static const struct tensor_type *got_type(const struct judge *g, size_t col) {
    size_t element;
    return output_of(g, 0, col, &element)->type;
}

uint32_t judge_got(const struct judge *g, size_t row, size_t col) {
    size_t element;
    const struct tensor *t = output_of(g, row, col, &element);
    if (t->type->kind != TENSOR_REAL)
        return (uint32_t)(int64_t)tensor_get(t, element);
    return tensor_bits(t, element);
}

/* The input is searched only once some output looks like poison. */
static bool never_written(struct judge *g, const struct dtype *dt, uint32_t bits) {
    if (bits != poison_of(dt))
        return false;
    if (!g->poison_known)
        g->poison_is_news = g->truth->poison_sure || !holds_poison(g->c);
    g->poison_known = true;
    return g->poison_is_news;
}

/* ---- scratch ------------------------------------------------------------------------------------ */

/* The kernel's results come first, in the formats that budgets are for. */
static bool fit_for_looks(struct judge *g) {
    for (size_t o = 0, col = 0; o < g->outputs; col += g->per_output[o++]) {
        const struct tensor_type *type = g->y.tensors[o].type;
        if (!type)
            continue;
        if (g->shown != col || type->dtype != (o == 0 ? g->numerics.out : g->numerics.acc))
            return false;
        g->shown += g->per_output[o];
    }
    return true;
}

static void count_outputs(struct judge *g) {
    g->outputs = op_output_count(g->kernel->op);
    for (size_t col = 0; col < g->step; col++)
        g->per_output[op_place_of(g->kernel->op, &g->c->dims, 0, col).output]++;
}

status_t judge_init(struct judge *g, const struct kernel *kernel, const struct test_case *c,
                    struct truth *truth, const void *y) {
    const struct op_case oc = case_for_op(c, kernel->empty_row);
    status_t st = OK;
    *g = (struct judge){.kernel = kernel,
                        .c = c,
                        .truth = truth,
                        .step = truth->step,
                        .together = units_together(kernel->op, &c->dims),
                        .exact = sums_exactly(kernel, c)};
    TRY(kernel_outputs(&g->y, kernel, c->dims, (void *)y)); /* only read */
    TRY(kernel_numerics(&g->numerics, kernel, c->dims));
    numerics_target(&g->numerics, truth->arch);
    count_outputs(g);
    g->quick = fit_for_looks(g) && !g->exact && truth->first == TIER_F64;
    TRY(op_units_init(&g->units, g->together, kernel->op, &oc));
    g->rows = new_array(g->together, sizeof *g->rows);
    g->looks = new_array(g->together, sizeof *g->looks);
    g->open = new_array(g->together, sizeof *g->open);
    g->open_rows = new_array(g->together, sizeof *g->open_rows);
    g->got = new_array(g->step, g->together * sizeof *g->got);
    g->lo = new_array(g->step, sizeof *g->lo);
    g->hi = new_array(g->step, sizeof *g->hi);
    g->want = new_array(g->step, sizeof *g->want);
    g->scale = new_array(g->step, sizeof *g->scale);
    g->elements = new_array(g->step, sizeof *g->elements);
    g->again = new_array(g->step, sizeof *g->again);
    if (!g->rows || !g->looks || !g->open || !g->open_rows || !g->got || !g->lo || !g->hi ||
        !g->want || !g->scale || !g->elements || !g->again)
        TRY(FAIL(ERR_NOMEM, "no memory to judge %zu results at a time", g->step));
done:
    return st;
}

void judge_clear(struct judge *g) {
    op_units_clear(&g->units);
    free(g->rows);
    free(g->looks);
    free(g->open);
    free(g->open_rows);
    free(g->got);
    free(g->lo);
    free(g->hi);
    free(g->want);
    free(g->scale);
    free(g->elements);
    free(g->again);
    *g = (struct judge){0};
}

void judge_load(struct judge *g, size_t first, size_t n) {
    op_units_at(&g->units, first, n);
    for (size_t i = 0; i < n; i++)
        g->rows[i] = &g->units.unit[i].row;
}

/* ---- the common look ---------------------------------------------------------------------------- */

/* The truth has this row by a tier that leaves nothing to a closer look. */
static bool known_better(const struct truth *t, size_t row) {
    return t->tier[row] != TIER_F64 && t->tier[row] != TIER_COUNT;
}

status_t judge_look(struct judge *g, size_t first, size_t n) {
    if (g->quick) {
        for (size_t i = 0, to = 0; i < n; i++)
            for (size_t o = 0, col = 0; col < g->shown; col += g->per_output[o++]) {
                size_t element = place_of(g, first + i, col).element;
                tensor_row(g->got + to, &g->y.tensors[o], element, g->per_output[o]);
                to += g->per_output[o];
            }
        status_t st = tier_within(g->looks, g->kernel->op, g->rows, n, g->got, g->shown,
                                  &g->numerics);
        if (st != OK)
            return st;
    }
    for (size_t i = 0; i < n; i++)
        if (!g->quick || known_better(g->truth, first + i))
            g->looks[i] = (struct tier_extremes){.within = false};
    return OK;
}

/* ---- the ladder --------------------------------------------------------------------------------- */

static status_t row_budgets(struct judge *g, const struct oracle_row *row, enum tier tier) {
    const struct op *op = g->kernel->op;
    status_t st = OK;
    if (g->exact) {
        memset(g->lo, 0, g->step * sizeof *g->lo);
        memset(g->hi, 0, g->step * sizeof *g->hi);
        return OK;
    }
    if (tier < TIER_MPFR) {
        st = tier_budgets(g->lo, g->hi, op, row, g->want, &g->numerics);
    } else {
        st = op->budget(g->lo, row, g->want, &g->numerics);
        memcpy(g->hi, g->lo, g->step * sizeof *g->lo);
    }
    if (st == ERR_UNSUPPORTED) /* its numerics do not say enough */
        st = FAIL(st, "%s: %s: %s", g->kernel->manifest, g->kernel->name, status_message());
    return st;
}

/*
 * Every element of a row compared, with the enclosures g->want of this tier; as long as one is
 * undecided, all are again with those of the next tier.  g->want and g->lo are the last ones used.
 */
static status_t climb(struct judge *g, struct element *elements, struct tally *tally,
                      const struct oracle_row *x, size_t row, enum tier tier) {
    size_t decided = 0;
    status_t st = OK;
    for (;;) {
        const bool final = tier == TIER_MPFR;
        const enum looseness looseness = final       ? LOOSE_NEVER
                                         : g->passed ? LOOSE_IF_STEPS
                                                     : LOOSE_IF_WIDE;
        size_t open = 0;
        TRY(row_budgets(g, x, tier));
        for (size_t col = 0; col < g->step; col++) {
            const struct tensor_type *type = got_type(g, col);
            if (!type || type->kind != TENSOR_REAL) { /* not there, or see judge_whole */
                elements[col] = (struct element){.state = WITHIN};
                continue;
            }
            const struct dtype *dt = type->dtype;
            uint32_t bits = judge_got(g, row, col);
            elements[col] = compare(dt, bits, g->want[col], (struct budget){g->lo[col], g->hi[col]},
                                    never_written(g, dt, bits), looseness);
            open += elements[col].state == UNDECIDED;
        }
        size_t now = g->step - open;
        tally->decided[tier] += now > decided ? now - decided : 0;
        decided = now > decided ? now : decided;
        if (open == 0 || final)
            break;
        tier++;
        TRY(tier_enclose(g->want, &tier, g->kernel->op, x));
    }
done:
    return st;
}

/* Outputs of whole numbers are right or wrong, all of a unit at once. */
static status_t judge_whole(struct judge *g, struct element *elements, const struct oracle_row *x,
                            size_t row) {
    size_t n = 0, wrong = 0, first = 0;
    status_t st = OK;
    if (!g->kernel->op->judge_whole)
        return OK;
    size_t *got = new_array(g->step, sizeof *got);
    if (!got)
        return FAIL(ERR_NOMEM, "no memory to judge %zu results at a time", g->step);
    for (size_t col = 0; col < g->step; col++) {
        size_t element;
        const struct tensor *t = output_of(g, row, col, &element);
        if (!t->type || t->type->kind == TENSOR_REAL)
            continue;
        first = n ? first : col; /* they follow one another */
        double value = tensor_get(t, element);
        got[n++] = value < 0 ? SIZE_MAX : (size_t)value;
    }
    st = g->kernel->op->judge_whole(&wrong, x, got, &g->numerics);
    if (st == OK && wrong < n)
        elements[first + wrong] = (struct element){.state = WRONG_PLACE, .rho = INFINITY};
    free(got);
    return st;
}

status_t judge_row(struct judge *g, struct judgement *j, struct trust *trust, size_t row,
                   size_t at) {
    const struct oracle_row *x = g->rows[at];
    const struct op *op = g->kernel->op;
    status_t st = OK;
    memcpy(g->want, g->truth->want + row * g->step, g->step * sizeof *g->want);
    TRY(climb(g, g->elements, &j->tally, x, row, (enum tier)g->truth->tier[row]));
    TRY(judge_whole(g, g->elements, x, row));
    memset(g->scale, 0, g->step * sizeof *g->scale);
    if (op->scale)
        op->scale(g->scale, x);
    for (size_t col = 0; col < g->step; col++) {
        const struct tensor_type *type = got_type(g, col);
        if (!type)
            continue;
        const struct worst here = {
            .known = true,
            .per_row = op->result == OP_PER_ROW,
            .output = place_of(g, row, col).output,
            .row = row,
            .col = col,
            .got = judge_got(g, row, col),
            .want = g->want[col],
            .budget = g->lo[col],
        };
        account(j, op, type, &g->elements[col], here, g->scale[col].plain);
        if (type->kind == TENSOR_REAL)
            trust_add(trust, here.want, here.budget, g->scale[col].term);
    }
done:
    return st;
}

/* ---- the audit ---------------------------------------------------------------------------------- */

bool audit_picks(const struct truth *truth, size_t row) {
    const struct audit *audit = &truth->audit;
    struct rng rng = rng_from_seed(audit->seed ^ (row + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return rng_unit(&rng) < audit->share;
}

static status_t contradiction(const struct judge *g, size_t row, size_t col, const char *says,
                              enum state slow) {
    const struct worst at = {
        .per_row = g->kernel->op->result == OP_PER_ROW, .row = row, .col = col};
    char where[64];
    worst_place(where, sizeof where, g->kernel->op, &at);
    return FAIL(ERR_SELF,
                "Assay contradicts itself on %s, %s: %s, MPFR alone says %s; "
                "this is a fault of Assay, not of the kernel",
                g->kernel->name, where, says, verdict_name(state_verdict(slow)));
}

/* g->elements by the tiers and g->again by MPFR, whose enclosures are g->want. */
static status_t compare_audited(const struct judge *g, size_t row) {
    const struct enclosure *first = g->truth->want + row * g->step;
    const char *tier = tier_name((enum tier)g->truth->tier[row]);
    char says[128];
    for (size_t col = 0; col < g->step; col++) {
        const enum state slow = g->again[col].state;
        const struct enclosure want = g->want[col];
        if (g->looks[0].within && state_verdict(slow) != VERDICT_PASS)
            return contradiction(g, row, col, "its common look says PASS", slow);
        if (g->elements[col].state != slow) {
            snprintf(says, sizeof says, "its tiers say %s",
                     verdict_name(state_verdict(g->elements[col].state)));
            return contradiction(g, row, col, says, slow);
        }
        if (!enclosure_is_nan(want) && !(first[col].lo <= want.lo && want.hi <= first[col].hi)) {
            snprintf(says, sizeof says, "tier %s has [%a, %a] and MPFR [%a, %a]", tier,
                     first[col].lo, first[col].hi, want.lo, want.hi);
            return contradiction(g, row, col, says, slow);
        }
    }
    return OK;
}

status_t audit_row(struct judge *g, struct tally *tally, size_t row) {
    const size_t at = 0;
    struct tally ignored = {0};
    status_t st = OK;
    judge_load(g, row, 1);
    TRY(judge_look(g, row, 1));
    TRY(truth_rows(g->truth, &g->units, &at, &row, 1));
    memcpy(g->want, g->truth->want + row * g->step, g->step * sizeof *g->want);
    TRY(climb(g, g->elements, &ignored, g->rows[0], row, (enum tier)g->truth->tier[row]));
    TRY(g->kernel->op->enclose(g->want, g->rows[0]));
    TRY(climb(g, g->again, &ignored, g->rows[0], row, TIER_MPFR));
    tally->audited += g->step;
    TRY(compare_audited(g, row));
done:
    return st;
}
