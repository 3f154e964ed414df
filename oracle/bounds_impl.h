/*
 * oracle/bounds_impl.h - what the bounds files share.  Names follow docs/bounds.md: u unit
 * roundoff, h height, g_i = softmax_i, S = sum of e^(x_i - m), alpha_i the relative error of a
 * computed term, sigma that of the computed sum.
 */
#ifndef ORACLE_BOUNDS_IMPL_H
#define ORACLE_BOUNDS_IMPL_H

#include "oracle/oracle_impl.h"

#define U32 0x1p-24 /* unit roundoff of f32, in which all exp variants compute */

/* ---- bounds.c: pieces ------------------------------------------------------------------------ */

double unit_roundoff(const struct dtype *dt);

/* (1 + e)^k - 1 <= k e / (1 - k e); +Inf where that says nothing. */
double grown(double k, double e);

/* (1 + a)(1 + b) - 1 */
double compound(double a, double b);

/* Of one rounding to nearest of a number no larger: half a step there; a flush may take 2^emin. */
double rounding_error(const struct dtype *dt, double magnitude, bool flush);

/* b raised over the rounding errors of at most cols + 100 operations in a chain. */
double outward(double b, size_t cols);

/* An error bound for a result of this magnitude in acc, carried through the rounding to out. */
double with_output(double err, double magnitude, const struct numerics *nu);

/* ERR_UNSUPPORTED if acc cannot hold every input. */
MUST_CHECK status_t check_types(const struct numerics *nu);

/* Roundings that count on the longest chain: adding a zero is exact. */
double effective_height(const struct numerics *nu, size_t nonzero);

/* ---- bounds_exp.c ---------------------------------------------------------------------------- */

/* Below this argument e^t < 2^-184, and every computed value of it is below 2^-183 or a floor. */
#define VANISHED (-128.0)
#define VANISHED_SIZE 0x1p-182

/* One exp variant: |computed e^q - e^q| <= ulps ulp(e^q) + floor for the argument q it gets. */
struct exp_facts {
    double ulps;
    double floor;
    double slope; /* |argument that ex2 gets - (x - m)| <= slope |x - m|, when only that is known */
};

/* |RN32(log2 e) / log2 e - 1| = 1.3336e-8 (c = 0x1.715476p0), rounded up. */
#define LOG2E_ERROR 1.334e-8
#define LOG2E_F32 0x1.715476p0

struct exp_facts exp_facts_of(const struct numerics *nu); /* all +Inf for EXP_NONE */

/* ---- bounds_exp.c, for a row ----------------------------------------------------------------- */

/* What all budgets of a row with finite entries share. */
struct exp_budget {
    const struct oracle_row *row;
    const struct numerics *nu;
    struct row_facts facts;
    struct exp_facts exp;
    double share;   /* 1/S = the largest softmax, rounded up */
    double log_sum; /* log S, rounded up */
    double moved;   /* row->added: how far an entry is moved at most that counts */
    double shift;   /* EXP_EX2_FOLDED: |m - the maximum that log2(e) folded in really subtracts| */
    double gamma;   /* of the sum's tree */
    double sigma;   /* |computed S - S| <= sigma S */
    double *sorted; /* online only: the finite entries, distinct, ascending; owned */
    size_t distinct;
};

/*
 * The row has finite entries, no NaN and no +Inf.
 * ERR_NOMEM; ERR_UNSUPPORTED if acc is not f32 or the exp variant is not declared.
 */
MUST_CHECK status_t exp_budget_init(struct exp_budget *b, const struct oracle_row *row,
                                    const struct row_facts *facts, const struct numerics *nu);
void exp_budget_clear(struct exp_budget *b); /* safe on a zeroed struct, and twice */

/* alpha of a term whose exp is called once, at t = x - m: |computed - e^t| <= alpha e^t ... */
double direct_alpha(const struct exp_budget *b, double x);
/* ... + this, where it underflows. */
double direct_floor(const struct exp_budget *b, double x);

/* The same for exp(x - L), as a share of e^(x - lse), where |L - lse| <= off. */
double shifted_alpha(const struct exp_budget *b, double x, double off);
double shifted_floor(const struct exp_budget *b, double x);

/* |RN_acc(z) - t| where z = RN_double(t). */
double rounding_distance(const struct dtype *acc, double z);

/*
 * row->added: the row that a kernel has, x + bias rounded to acc (overflows held at the largest
 * datum), in *memory, which the caller frees.  Otherwise the row itself.  ERR_NOMEM.
 */
MUST_CHECK status_t row_as_added(struct oracle_row *out, double **memory,
                                 const struct oracle_row *row, const struct numerics *nu);

/* How far the kernel's sum of two inputs is from the real one; 0 if the row is not added. */
double added_error(const struct exp_budget *b, double sum);

/* A sum about which nothing is known, or a shift that may carry ex2 out of range. */
bool exp_budget_void(const struct exp_budget *b);

/* ---- bounds_softmax.c ------------------------------------------------------------------------ */

struct division {
    double rel;   /* relative error before the last rounding */
    bool nearest; /* it ends in a rounding to nearest */
};

MUST_CHECK status_t division_of(struct division *out, const struct numerics *nu);

/* The division's last rounding of a quotient no larger than this. */
double last_rounding(const struct division *division, double quotient, const struct numerics *nu);

/* ---- bounds_log.c ---------------------------------------------------------------------------- */

/* |computed log - log| of a number with a logarithm of at most log_sum + moved, and at least
 * log_sum - moved, log_sum >= 0. */
MUST_CHECK status_t log_rounding(double *out, const struct numerics *nu, double log_sum,
                                 double moved);

/* |m + log(sum), rounded to acc, - lse|. */
MUST_CHECK status_t lse_error(double *out, const struct exp_budget *b);

/* ---- bounds_attention.c ---------------------------------------------------------------------- */

#define TANH_FAST_ERROR 4.94e-4 /* 2^-10.987, rounded up */

struct attention_row;

/* One enclosure of a row's results, and where its budgets go. */
struct attention_bound {
    double *o_budget, *lse_budget;
    const struct enclosure *o, *lse;
};

/* attention_budget for several enclosures of one row: what does not depend on them is found once. */
MUST_CHECK status_t attention_budgets(const struct attention_bound *at, size_t count,
                                      const struct attention_row *row, const struct numerics *nu);

/* Of n products in this many tensor core blocks; relative to sum |terms|. */
double accumulation_error(const struct accumulation *a, double n, double blocks);

#endif
