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
                    const void *y, const void *twin_y, size_t count) {
    size_t step = results_per_row(kernel->op, dims), differing = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t here = dtype_load(kernel->out, y, i), there = dtype_load(kernel->out, twin_y, i);
        if (here == there || differing++)
            continue;
        double value = dtype_to_double(kernel->out, here);
        out->worst = (struct worst){.known = true,
                                    .per_row = kernel->op->result == OP_PER_ROW,
                                    .row = i / step,
                                    .col = i % step,
                                    .got = there,
                                    .want = {value, value}};
    }
    if (!differing)
        return;
    char where[64];
    int digits = (int)(kernel->out->bits / 4);
    size_t first = out->worst.row * step + out->worst.col;
    worst_place(where, sizeof where, &out->worst);
    out->verdict = VERDICT_FAIL;
    out->max_rho = INFINITY; /* equal bits are due: the budget is 0 */
    snprintf(out->reason, sizeof out->reason,
             "twin: %zu of %zu outputs differ; first %s: 0x%0*x here, 0x%0*x on the twin", differing,
             count, where, digits, (unsigned)dtype_load(kernel->out, y, first), digits,
             (unsigned)out->worst.got);
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

    size_t count = c->dims.rows * results_per_row(kernel->op, c->dims);
    void *y = calloc(count + 1, dtype_size(kernel->out));
    void *twin_y = calloc(count + 1, dtype_size(kernel->out));
    bool clean;
    status_t st = OK;
    if (!y || !twin_y)
        TRY(FAIL(ERR_NOMEM, "no memory for two outputs of %s", kernel->name));
    TRY(run_clean(&clean, out, result, lk, c, y, "first"));
    if (clean)
        TRY(run_clean(&clean, out, &twin_result, twin, c, twin_y, "twin"));
    if (clean) {
        compare(out, kernel, c->dims, y, twin_y, count);
        *compared = count;
    }
done:
    free(y);
    free(twin_y);
    return st;
}
