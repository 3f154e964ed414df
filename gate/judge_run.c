/* gate/judge_run.c - a kernel run on a case and judged: device faults, what was never written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate/judge_impl.h"

static void add_fault(struct judgement *j, const struct kernel_result *result) {
    const struct dev_fault *fault = kernel_result_fault(result);
    j->verdict = VERDICT_FAIL;
    j->max_rho = INFINITY; /* no results, however good, make up for it */
    snprintf(j->reason, sizeof j->reason, "%s",
             fault ? fault->text : "a launch did not complete, without a fault on record");
}

/* ---- what was never written ------------------------------------------------------------------- */

#define OTHER_FILL 0x5a

static uint32_t other_fill_of(const struct dtype *dt) {
    return 0x5a5a5a5au & poison_of(dt);
}

static bool shows_poison(const struct tensor_block *y) {
    for (size_t k = 0; k < OP_MAX_OUTPUTS; k++) {
        const struct tensor *t = &y->tensors[k];
        const struct dtype *dt = t->type ? t->type->dtype : NULL;
        for (size_t i = 0; dt && i < t->count; i++)
            if (dtype_load(dt, t->data, i) == poison_of(dt))
                return true;
    }
    return false;
}

/*
 * The poison is a NaN that a kernel may also write.  Where one stands, a second run tells, in which
 * outputs start otherwise: a datum that was written becomes a NaN next to the poison, and what
 * still holds the poison then was never written.
 */
static status_t tell_poison(struct truth *truth, struct loaded_kernel *lk,
                            const struct test_case *c, const struct tensor_block *layout, void *y) {
    const struct kernel *kernel = loaded_kernel_of(lk);
    struct tensor_block first, second;
    struct kernel_result *result = NULL;
    void *again = NULL;
    status_t st = OK;
    TRY(kernel_outputs(&first, kernel, c->dims, y));
    if (!shows_poison(&first))
        goto done;
    again = calloc(layout->bytes + 1, 1);
    result = calloc(1, sizeof *result);
    if (!again || !result)
        TRY(FAIL(ERR_NOMEM, "no memory for another output of %s", kernel->name));
    TRY(kernel_outputs(&second, kernel, c->dims, again));
    const struct kernel_io io = {.dims = c->dims, .x = c->x, .y = again, .output_fill = OTHER_FILL};
    TRY(kernel_run(result, lk, &io));
    if (!kernel_result_clean(result))
        goto done; /* it reads what it should write: what the first run says must do */
    truth->poison_sure = true;
    for (size_t k = 0; k < OP_MAX_OUTPUTS; k++) {
        const struct tensor *t = &first.tensors[k];
        const struct dtype *dt = t->type ? t->type->dtype : NULL;
        for (size_t i = 0; dt && i < t->count; i++)
            if (dtype_load(dt, t->data, i) == poison_of(dt) &&
                dtype_load(dt, second.tensors[k].data, i) != other_fill_of(dt))
                dtype_store(dt, t->data, i, poison_of(dt) - 1);
    }
done:
    free(again);
    free(result);
    return st;
}

status_t judge_run(struct judgement *out, struct kernel_result *result, struct loaded_kernel *lk,
                   const struct test_case *c, struct truth *truth, judge_fn *judge) {
    const struct kernel *kernel = loaded_kernel_of(lk);
    *result = (struct kernel_result){0};
    const char *refusal = kernel_refuses(kernel, c->dims);
    if (refusal) {
        *out = judgement_of(VERDICT_SKIP, "%s", refusal);
        return OK;
    }
    struct tensor_block layout;
    void *y = NULL;
    status_t st = OK;
    TRY(kernel_outputs(&layout, kernel, c->dims, NULL));
    y = calloc(layout.bytes ? layout.bytes : 1, 1);
    if (!y)
        TRY(FAIL(ERR_NOMEM, "no memory for the output of %s", kernel->name));
    const struct kernel_io io = {.dims = c->dims, .x = c->x, .y = y, .schedule_seed = 0};
    truth->arch = kernel_arch(lk);
    TRY(kernel_run(result, lk, &io));
    truth->poison_sure = false;
    if (kernel_result_clean(result)) {
        TRY(tell_poison(truth, lk, c, &layout, y));
        TRY(judge(out, kernel, c, truth, y));
    } else {
        *out = (struct judgement){0};
        add_fault(out, result);
    }
done:
    free(y);
    return st;
}

status_t judge_kernel(struct judgement *out, struct kernel_result *result, struct loaded_kernel *lk,
                      const struct test_case *c, struct truth *truth) {
    return judge_run(out, result, lk, c, truth, judge_output);
}
