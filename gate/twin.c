/* gate/twin.c - see twin.h. */
#include "gate/twin.h"

#include <stdio.h>
#include <stdlib.h>

/* Run on one device; false, with the fault's words in *out, if a launch did not end well. */
static status_t run_clean(bool *clean, struct judgement *out, struct kernel_result *result,
                          struct loaded_kernel *lk, const struct test_case *c, void *y,
                          const char *which) {
    const struct kernel_io io = {.dims = c->dims, .x = c->x, .y = y};
    status_t st = kernel_run(result, lk, &io);
    if (st != OK)
        return st;
    *clean = kernel_result_clean(result);
    if (!*clean) {
        const struct dev_fault *fault = kernel_result_fault(result);
        *out = judgement_of(VERDICT_FAIL, "twin: on the %s device: %s", which,
                            fault ? fault->text : "a launch did not complete");
    }
    return OK;
}

static void compare(struct judgement *out, const struct kernel *kernel, struct case_dims dims,
                    const struct tensor_block *y, const struct tensor_block *twin_y, size_t count) {
    size_t step = results_per_row(kernel->op, dims), differing = 0;
    uint32_t first = 0;
    for (size_t i = 0; i < count; i++) {
        const struct op_place at = op_place_of(kernel->op, &dims, i / step, i % step);
        const struct tensor *a = &y->tensors[at.output], *b = &twin_y->tensors[at.output];
        if (!a->type) /* the kernel does without this output */
            continue;
        const struct dtype *dt = a->type->dtype;
        uint32_t here, there;
        if (dt) {
            here = tensor_bits(a, at.element);
            there = tensor_bits(b, at.element);
        } else {
            here = (uint32_t)(int64_t)tensor_get(a, at.element);
            there = (uint32_t)(int64_t)tensor_get(b, at.element);
        }
        if (here == there || differing++)
            continue;
        double value = tensor_get(a, at.element);
        first = here;
        out->worst = (struct worst){.known = true,
                                    .per_row = kernel->op->result == OP_PER_ROW,
                                    .output = at.output,
                                    .row = i / step,
                                    .col = i % step,
                                    .got = there,
                                    .want = {value, value}};
    }
    if (!differing)
        return;
    char where[64];
    int digits = (int)(kernel_output(kernel, out->worst.output)->size * 2);
    worst_place(where, sizeof where, kernel->op, &out->worst);
    out->verdict = VERDICT_FAIL;
    out->max_rho = INFINITY; /* equal bits are due: the budget is 0 */
    snprintf(out->reason, sizeof out->reason,
             "twin: %zu of %zu outputs differ; first %s: 0x%0*x here, 0x%0*x on the twin",
             differing, count, where, digits, (unsigned)first, digits, (unsigned)out->worst.got);
}

status_t twin_check(struct judgement *out, size_t *compared, struct kernel_result *result,
                    struct loaded_kernel *lk, struct loaded_kernel *twin,
                    const struct test_case *c) {
    const struct kernel *kernel = loaded_kernel_of(lk);
    const char *refusal = kernel_refuses(kernel, c->dims);
    struct kernel_result twin_result;
    *out = (struct judgement){.verdict = VERDICT_PASS};
    *compared = 0;
    *result = (struct kernel_result){0};
    if (refusal)
        *out = judgement_of(VERDICT_SKIP, "%s", refusal);
    else if (!kernel->deterministic)
        *out = judgement_of(VERDICT_SKIP, "twin: not declared deterministic");
    else if (kernel_ambiguous(lk))
        *out = judgement_of(VERDICT_SKIP, "twin: %u unsuffixed mul + add pairs fix no bits",
                            kernel_ambiguous(lk));
    if (out->verdict == VERDICT_SKIP)
        return OK;

    struct tensor_block here, there;
    void *y = NULL, *twin_y = NULL;
    size_t units = 0, count = 0;
    bool clean;
    status_t st = OK;
    TRY(kernel_outputs(&here, kernel, c->dims, NULL));
    y = calloc(here.bytes + 1, 1);
    twin_y = calloc(here.bytes + 1, 1);
    if (!y || !twin_y)
        TRY(FAIL(ERR_NOMEM, "no memory for two outputs of %s", kernel->name));
    TRY(kernel_outputs(&here, kernel, c->dims, y));
    TRY(kernel_outputs(&there, kernel, c->dims, twin_y));
    if (op_unit_count(&units, kernel->op, &c->dims)) /* it does: its block does */
        count = units * results_per_row(kernel->op, c->dims);
    TRY(run_clean(&clean, out, result, lk, c, y, "first"));
    if (clean)
        TRY(run_clean(&clean, out, &twin_result, twin, c, twin_y, "twin"));
    if (clean) {
        compare(out, kernel, c->dims, &here, &there, count);
        *compared = count;
    }
done:
    free(y);
    free(twin_y);
    return st;
}
