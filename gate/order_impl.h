/* gate/order_impl.h - what the order checks share: the case's first run, and runs to compare with it. */
#ifndef GATE_ORDER_IMPL_H
#define GATE_ORDER_IMPL_H

#include "gate/order.h"

/* What all comparisons of one check share. */
struct order {
    struct loaded_kernel *lk;
    const struct kernel *kernel;
    const struct test_case *c;
    size_t units, step;  /* units of the case, and results of each */
    size_t y_bytes;      /* of the block of outputs */
    void *base;          /* the first run's outputs */
    double *spread;      /* what two orders may differ by, by result */
    struct truth *truth; /* of the case */
    struct judgement *out;
    bool *saw;
};

/* One other way to run the case, and where its results stand. */
struct variant {
    const char *what; /* "schedule" */
    unsigned number;
    const void *y;
    struct case_dims dims; /* its own: a smaller batch has fewer rows */
    bool same_bits;        /* are due; else the spread is allowed */
    const char *due;       /* why they are; NULL: "deterministic: true" */
    bool permuted;         /* the input is another one: a difference may show */
    const size_t *column;  /* column[row * cols + j]: where base column j stands now; NULL: at j */
    size_t first, count;   /* the rows to compare */
};

/*
 * *clean = the run left no fault; else the judgement is FAIL with the fault's words.  x, y: as
 * kernel_run; result: NULL if nobody asks.
 */
MUST_CHECK status_t order_run(struct order *o, void *y, bool *clean, const void *x,
                              struct case_dims dims, uint64_t schedule_seed, const char *what,
                              struct kernel_result *result);

/* Bit for bit, in every output. */
void order_compare_bits(struct order *o, const struct variant *v);

/*
 * |a - b| over the allowance: 0 for the same class or value, +Inf where the classes differ; 0 where
 * nothing is claimed (an allowance of +Inf: one of the orders may overflow on the way).
 */
double order_rho(double a, double b, double allowance);

/* One comparison: rho above 1 fails the check. */
void order_record(struct order *o, const struct variant *v, double rho, struct worst here);

/* ---- order_parts.c: attention_combine, its parts in other orders and groups ------------------- */

MUST_CHECK status_t order_parts(struct order *o);

/* ---- order_pages.c: a paged cache, its pages elsewhere and its unused slots otherwise ---------- */

MUST_CHECK status_t order_pages(struct order *o);

#endif
