/* gate/judge_impl.h - what the files of the judge share. */
#ifndef GATE_JUDGE_IMPL_H
#define GATE_JUDGE_IMPL_H

#include "gate/judge.h"
#include "oracle/ulp.h"

/* ---- truth.c --------------------------------------------------------------------------------- */

void *new_array(size_t count, size_t size); /* not cleared; NULL: no memory */

/* Every partial sum of this case is representable in every format the kernel sums in. */
bool sums_exactly(const struct kernel *kernel, const struct test_case *c);

/* How many units of this case are looked at side by side: those of one part, up to a limit. */
size_t units_together(const struct op *op, const struct case_dims *dims);

/*
 * Make rows of one part known: rows[i], i < n, which is u->unit[at[i]].  Threads may do so side by
 * side with units of their own, for different rows.
 */
MUST_CHECK status_t truth_rows(struct truth *t, const struct op_units *u, const size_t *at,
                               const size_t *rows, size_t n);

/* ---- element.c ------------------------------------------------------------------------------- */

enum state { WITHIN, UNCLAIMED, BEYOND, UNDECIDED, WRONG_CLASS, WRONG_PLACE, NEVER_WRITTEN };

struct element {
    enum state state;
    double rho;
    struct ulp_error error;
};

/* An interval: of what the budget may be for an enclosure within this one. */
struct budget {
    double lo, hi;
};

uint32_t poison_of(const struct dtype *dt);

/* When an enclosure is too loose to say anything. */
enum looseness {
    LOOSE_IF_WIDE,    /* and if the budget steps within it */
    LOOSE_IF_STEPS,   /* only then: its class and, within 2^-6 ulp, its ulp are known */
    LOOSE_NEVER,      /* there is no tighter one */
};

struct element compare(const struct dtype *dt, uint32_t got, struct enclosure want,
                       struct budget budget, bool never_written, enum looseness looseness);

enum verdict state_verdict(enum state s);

/*
 * Could a wrong result have failed?  A result shows it if its class counts (NaN, an infinity), or if
 * it is a number larger than its budget.  A sum may cancel to far less than its terms, and losing
 * one of them would still show: there the row's largest term counts as the size of the result.
 * Results of 0 are asked only where there are no others: their budgets are small for free.
 */
struct trust {
    bool earned; /* by some result */
    bool other_than_zero;
    bool zero_earned; /* by some result of 0, against the size 1 */
};

void trust_add(struct trust *t, struct enclosure want, double budget, double row_scale);
void trust_join(struct trust *t, const struct trust *more);
bool trusted(const struct trust *t);

/* max(a, b) that keeps a NaN instead of dropping it. */
double max_keep(double a, double b);

/* One more element of a judgement. */
void account(struct judgement *j, const struct op *op, const struct tensor_type *type,
             const struct element *e, struct worst here, double scale);

/* The judgement of more rows, all behind those that j has. */
void judgement_join(struct judgement *j, const struct judgement *more);

/* ---- judge_row.c ----------------------------------------------------------------------------- */

/* What one thread judges with: scratch for some rows. */
struct judge {
    const struct kernel *kernel; /* NULL: not made yet */
    const struct test_case *c;
    struct truth *truth;
    struct tensor_block y;
    struct numerics numerics;
    size_t step;                     /* results per unit */
    size_t shown;                    /* of them, those that the kernel has, if they come first */
    size_t outputs, per_output[OP_MAX_OUTPUTS]; /* results per unit in each */
    size_t together;                 /* units side by side */
    bool exact;                      /* budgets are 0 throughout */
    bool quick;                      /* the common look may be asked */
    bool passed;                     /* the row has, at the common look: its rho is wanted */
    bool poison_known, poison_is_news;
    struct op_units units;           /* together: those being judged */
    const struct oracle_row **rows;  /* together: of them */
    struct tier_extremes *looks;     /* together: what the common look found */
    size_t *open, *open_rows;        /* together: which of them it left */
    double *got;                     /* together x shown: values */
    double *lo, *hi;                 /* step: budgets */
    struct enclosure *want;          /* step */
    struct result_scale *scale;
    struct element *elements, *again;
};

MUST_CHECK status_t judge_init(struct judge *g, const struct kernel *kernel,
                               const struct test_case *c, struct truth *truth, const void *y);
void judge_clear(struct judge *g); /* safe on a zeroed struct */

/* Units first .. first + n - 1, of one part, become g->units and g->rows. */
void judge_load(struct judge *g, size_t first, size_t n);

/* g->looks[0 .. n-1] at the units loaded. */
MUST_CHECK status_t judge_look(struct judge *g, size_t first, size_t n);

/* The closer look at row, which is unit `at` of those loaded and known to the truth: every element
 * compared. */
MUST_CHECK status_t judge_row(struct judge *g, struct judgement *j, struct trust *trust, size_t row,
                              size_t at);

/* Is this row to be judged again by MPFR? */
bool audit_picks(const struct truth *truth, size_t row);

/* Do the common look, the tiers and MPFR alone agree on every element of a row?  ERR_SELF. */
MUST_CHECK status_t audit_row(struct judge *g, struct tally *tally, size_t row);

uint32_t judge_got(const struct judge *g, size_t row, size_t col); /* bits, or a whole number */

#endif
