/*
 * gate/judge.h - one kernel's output on one case, judged by the oracle.
 *
 * The judge is what everything else rests on, so it errs on one side only: FAIL when even the
 * smallest error that the enclosure allows exceeds the budget, PASS when even the largest is within,
 * UNSURE between the two, and MISTRUSTED when nothing in the case could have failed.
 */
#ifndef GATE_JUDGE_H
#define GATE_JUDGE_H

#include <stdbool.h>

#include "base/parallel.h"
#include "gate/case.h"
#include "gate/verdict.h"
#include "oracle/tier.h"

/*
 * Which rows MPFR judges a second time, from the inputs on.  A share of them, picked by seed and row
 * (0: none, 1: all), and if `worst` the row that decided the case's verdict and its largest rho.
 */
struct audit {
    double share;
    uint64_t seed;
    bool worst;
};

/* How long work is done: by which threads, and whom it tells how far it is; all NULL: alone, nobody. */
struct work_options {
    struct threads *threads;
    /* Called now and then, from any thread but never from two at once. */
    void (*progress)(void *context, size_t done, size_t total);
    void *context;
};

/*
 * The oracle's answer for a case; the same for every kernel of the op, so it is kept and shared.
 * Rows are enclosed when someone asks: the common case of a judgement does not.
 */
struct truth {
    const struct op *op;
    const struct test_case *c; /* outlives the truth */
    enum empty_row empty_row;
    unsigned arch;          /* whose tensor cores kernels run on; 90 to begin with */
    enum tier first;        /* asked first: with TIER_MPFR every verdict is MPFR's alone */
    size_t units, step;     /* units of the case, and results of each, over all outputs */
    size_t count;           /* results: units x step */
    struct enclosure *want; /* of the units that are known; owned */
    unsigned char *tier;    /* enum tier by unit, or TIER_COUNT: not known yet; owned */
    /* The caller sets these; none to begin with. */
    struct audit audit;
    struct work_options work;
    bool poison_sure;       /* judge_run has told: an output that holds the poison was never written */
};

/* Nothing is computed yet.  first = TIER_F64, for the caller to change. */
MUST_CHECK status_t truth_init(struct truth *out, const struct op *op, const struct test_case *c,
                               enum empty_row empty_row);
/* Make all rows known.  ERR_UNDECIDED, ERR_NOMEM. */
MUST_CHECK status_t truth_fill(struct truth *t);
void truth_clear(struct truth *t); /* safe on a zeroed struct, and twice */

/* Results per unit of an op at these dimensions, over all outputs. */
static inline size_t results_per_row(const struct op *op, struct case_dims dims) {
    return op_result_count(op, &dims);
}

/*
 * A kernel's bounds for a case, one per result: bounds[0 .. truth->count-1], owned by the caller.
 * budgets_make: on |got - real result|.  spreads_make: on |got_A - got_B| in two orders of a row.
 * 0 throughout where the case's fill makes every partial sum exact and the op is a sum held in
 * formats no narrower than the input's.
 */
MUST_CHECK status_t budgets_make(double **bounds, const struct kernel *kernel,
                                 const struct test_case *c, struct truth *truth);
MUST_CHECK status_t spreads_make(double **bounds, const struct kernel *kernel,
                                 const struct test_case *c, struct truth *truth);
/* budgets_make for other numerics than the kernel's own. */
MUST_CHECK status_t budgets_declared(double **bounds, const struct kernel *kernel,
                                     const struct numerics *numerics, const struct test_case *c,
                                     struct truth *truth);

/* The element of a case that came off worst. */
struct worst {
    bool known;      /* false: no element was compared */
    bool per_row;    /* the op has one result per row; col is 0 */
    size_t output;   /* which of the op's outputs */
    size_t row, col; /* unit, and result in it over all outputs */
    uint32_t got;
    struct enclosure want;
    double budget;
};

/* "row 3", "element [3][17]" (the unit's number, and which of its results), or, where an op has
 * several outputs, "lse, element [3][64]". */
void worst_place(char *out, size_t size, const struct op *op, const struct worst *w);

#define REASON_SIZE 256

/* How many results each tier of the oracle decided, and how many MPFR judged again. */
struct tally {
    uint64_t decided[TIER_COUNT];
    uint64_t audited;
};

void tally_add(struct tally *to, const struct tally *from);

struct judgement {
    enum verdict verdict;
    char reason[REASON_SIZE]; /* one line; "" for PASS */
    /*
     * Plain errors over all elements with numbers on both sides, in ulps of the result and relative
     * to it (that one only where it is a normal number of the format).  A result that
     * cancels is measured on the scale of what was added, where that is larger: struct result_scale.
     * These and max_rho are upper bounds: the enclosure's width, below 2^-20 ulp and for attention
     * below 2^-6, is in them.
     */
    double max_ulp, max_rel;
    double max_rho;     /* +Inf where a class is wrong or a budget of 0 is exceeded */
    struct worst worst; /* where rho is largest, or the first of a wrong class */
    struct tally tally;
};

/*
 * Judge y (the block of outputs) against the truth.  Classes before values: NaN against a number
 * fails whatever the budget; every comparison is written !(err <= budget).  A datum that still holds
 * the poison every buffer starts with counts as never written.
 *
 * The verdict is MPFR's, whatever tier the truth is from: a row with an element that its enclosure
 * leaves undecided goes to the next tier (docs/oracle.md).  ERR_SELF if the audit contradicts.
 */
MUST_CHECK status_t judge_output(struct judgement *out, const struct kernel *kernel,
                                 const struct test_case *c, struct truth *truth, const void *y);

/*
 * Run the kernel on the case and judge it: device faults, then the values.  SKIP with the kernel's
 * own words if it refuses the shape; *result is then empty.
 */
MUST_CHECK status_t judge_kernel(struct judgement *out, struct kernel_result *result,
                                 struct loaded_kernel *lk, const struct test_case *c,
                                 struct truth *truth);

/* Run the kernel as judge_kernel does, and leave its output to another judge. */
typedef status_t judge_fn(struct judgement *out, const struct kernel *kernel,
                          const struct test_case *c, struct truth *truth, const void *y);
MUST_CHECK status_t judge_run(struct judgement *out, struct kernel_result *result,
                              struct loaded_kernel *lk, const struct test_case *c,
                              struct truth *truth, judge_fn *judge);

/* The judgement of a verdict that has nothing but a reason. */
struct judgement judgement_of(enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
