/* oracle/op.c - the table of ops: one row each. */
#include <mpfr.h>
#include <string.h>

#include "oracle/oracle_impl.h"

const struct op ops[] = {
    {"sum", "sum_i x_i", OP_PER_ROW, sum_enclose, sum_budget, sum_spread},
    {"max", "max_i x_i", OP_PER_ROW, max_enclose, max_budget, max_spread},
    {"softmax", "exp(x_j) / sum_i exp(x_i)", OP_PER_ELEMENT, softmax_enclose, softmax_budget,
     softmax_spread},
    {"log_softmax", "x_j - log sum_i exp(x_i)", OP_PER_ELEMENT, log_softmax_enclose,
     log_softmax_budget, log_softmax_spread},
    {"lse", "log sum_i exp(x_i)", OP_PER_ROW, lse_enclose, lse_budget, lse_spread},
    {0},
};

const struct op *op_find(const char *name) {
    for (const struct op *op = ops; op->name != NULL; op++)
        if (strcmp(op->name, name) == 0)
            return op;
    return NULL;
}

void oracle_thread_done(void) {
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE);
}
