/*
 * oracle/bounds_exp.c - the error of exponentials shifted by the row's maximum, and of their sum.
 *
 * Direct (the maximum is known first): each argument's rounding is known from the row.  Online:
 * only the chain of rescalings is bounded.  Derivations: docs/bounds.md.
 */
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "oracle/bounds_impl.h"

/*
 * The polynomial's relative error, in units of 2^-23: 1.386400 and, for arguments of ex2 up to -1/2, where
 * nothing but the polynomial rounds, 1.213113.  Certified by test_gpu_exp, rounded up; docs/bounds.md.
 */
#define POLY_ULPS 1.3865
#define POLY_ULPS_BELOW_HALF 1.2132

struct exp_facts exp_facts_of(const struct numerics *nu) {
    const double flushed = dtype_min_normal(nu->acc);
    const double twice = compound(grown(2, U32), LOG2E_ERROR);
    switch (nu->exp) {
    case EXP_NONE:
        break;
    case EXP_EXPF:
        /*
         * 2 ulp.  Subnormal results: half a step by the last multiplication, and up to 0.12 because
         * the argument reduction stops at 2^-126 and leaves more than a fraction to ex2.
         */
        return (struct exp_facts){2, nu->flush ? flushed : 0.625 * 0x1p-149, U32};
    case EXP_FAST: /* ex2.approx: 2 ulp off the correctly rounded, so 2.5 */
        return (struct exp_facts){2.5, nu->flush ? flushed : 2.5 * 0x1p-149, twice};
    case EXP_EX2_FOLDED: /* a difference of maxima may take two roundings */
        return (struct exp_facts){2.5, flushed, twice};
    case EXP_EX2_POLY: /* relative, wherever in its binade the result lies; 0 below 2^-126 */
        return (struct exp_facts){POLY_ULPS, flushed, twice};
    }
    return (struct exp_facts){INFINITY, INFINITY, INFINITY};
}

static double round_to(const struct dtype *dt, double x) {
    return dtype_to_double(dt, dtype_from_double(dt, x, ROUND_NEAREST));
}

/* The datum nearest to t is at least as near as the one nearest to z, and z is 2^-53 |t| away. */
double rounding_distance(const struct dtype *acc, double z) {
    return fabs(round_to(acc, z) - z) + 0x1p-53 * fabs(z);
}

/* Error of the argument, in units of e^t, when exp is called once at x - m. */
static double direct_argument_error(const struct exp_budget *b, double x) {
    double z = x - b->facts.max;
    double flushed = b->nu->flush ? 2 * dtype_min_normal(b->nu->acc) : 0;
    switch (b->nu->exp) {
    case EXP_NONE:
        break;
    case EXP_EXPF:
        return rounding_distance(b->nu->acc, z) + flushed;
    case EXP_FAST:
    case EXP_EX2_POLY: {
        /* t * log2(e) as the kernel has it; the product of two f32 is exact in double. */
        double q = round_to(b->nu->acc, round_to(b->nu->acc, z) * LOG2E_F32);
        /* ln 2, its product and z in double: each off by at most 2^-53 |z|, near enough. */
        return fabs(q * M_LN2 - z) + 0x1p-51 * fabs(z) + flushed;
    }
    case EXP_EX2_FOLDED: {
        /* RN(x c - M): x c and M are exact in double, as is their difference but for 2^-53. */
        double folded = round_to(b->nu->acc, b->facts.max * LOG2E_F32);
        double rounding = rounding_distance(b->nu->acc, x * LOG2E_F32 - folded) * M_LN2;
        return rounding + LOG2E_ERROR * (fabs(z) + b->shift) + flushed;
    }
    }
    return INFINITY;
}

/* e^d (1 + rel) - 1 for an argument error d; d is tiny unless the term has vanished. */
static double term_error(double d, double rel) {
    return d <= 1 ? compound(d + d * d, rel) : INFINITY;
}

/*
 * Of an entry that counts, by the rounding of x + bias; then |m| is below 2^23.  So one below VANISHED
 * is moved by less than 1/2 and 2^-24 of its distance from m: it is below e^-127.4 = 2^-183.8.
 */
#define MOST_MOVED 0.25

/* ulps as a relative error, wherever in its binade the result lies. */
static double worst_eps(const struct exp_budget *b) {
    return b->exp.ulps * 0x1p-23;
}

/*
 * ulps as a relative error of a result near e^z.  The computed argument is off by less than 2^-15
 * (2.3 u 128; folded, 1.3 u 128 and a shift of 2^-16), libm's exp by less; a significand that close to
 * a power of two counts as 1.
 */
static double eps_at(const struct exp_budget *b, double z) {
    if (b->shift > 0x1p-16) /* log2(e) folded in: it moves the result in its binade */
        return worst_eps(b);
    if (b->nu->exp == EXP_EX2_POLY) /* z log2 e, as computed, is below -1/2 */
        return (z < -0.35 ? POLY_ULPS_BELOW_HALF : POLY_ULPS) * 0x1p-23;
    int exponent;
    double significand = 2 * frexp(exp(z), &exponent) * (1 - 0x1p-15);
    return significand > 1 && significand < 2 * (1 - 0x1p-14) ? worst_eps(b) / significand
                                                              : worst_eps(b);
}

status_t row_as_added(struct oracle_row *out, double **memory, const struct oracle_row *row,
                      const struct numerics *nu) {
    const double most = dtype_max(nu->acc);
    size_t bytes;
    *out = *row;
    *memory = NULL;
    if (!row->added)
        return OK;
    if (!size_mul(&bytes, row->cols + 1, sizeof **memory) || !(*memory = malloc(bytes)))
        return FAIL(ERR_NOMEM, "bounds: no memory for a row of %zu", row->cols);
    for (size_t j = 0; j < row->cols; j++) {
        double x = row->x[j];
        (*memory)[j] = isfinite(x) ? fmax(-most, fmin(round_to(nu->acc, x), most)) : x;
    }
    out->x = *memory;
    out->low = NULL;
    return OK;
}

double added_error(const struct exp_budget *b, double sum) {
    return b->row->added ? rounding_error(b->nu->acc, fabs(sum), b->nu->flush) : 0;
}

/* exp(0) = 1 exactly. */
double direct_alpha(const struct exp_budget *b, double x) {
    double z = x - b->facts.max, moved = added_error(b, x);
    if (z < VANISHED)
        return 0;
    if (z == 0 && b->nu->exp != EXP_EX2_FOLDED)
        return term_error(moved, 0);
    return term_error(direct_argument_error(b, x) + moved, eps_at(b, z));
}

double direct_floor(const struct exp_budget *b, double x) {
    double z = x - b->facts.max;
    /* Above -87, e^z (1 - alpha) > 2^-126: nothing underflows. */
    double floor = z < -87 + b->shift ? b->exp.floor : 0;
    return z < VANISHED ? floor + VANISHED_SIZE : floor;
}

/*
 * exp of RN(x - L), L within `off` of lse.  t = x - lse <= 0 is real: its rounding is bounded, not known.
 */
double shifted_alpha(const struct exp_budget *b, double x, double off) {
    double z = x - b->facts.max - b->log_sum; /* t, or a little below */
    if (z + off < VANISHED)
        return 0;
    double d = off + added_error(b, x) + rounding_error(b->nu->acc, fabs(z) + off, b->nu->flush);
    if (b->nu->exp == EXP_FAST || b->nu->exp == EXP_EX2_POLY) /* t * log2(e): rounding, constant */
        d += compound(U32, LOG2E_ERROR) * (fabs(z) + d);
    double flushed = b->nu->flush ? 3 * dtype_min_normal(b->nu->acc) : 0; /* L, argument, product */
    return term_error(d + flushed, d + b->moved < 0x1p-16 ? eps_at(b, z) : worst_eps(b));
}

double shifted_floor(const struct exp_budget *b, double x) {
    double z = x - b->facts.max - b->log_sum;
    /* Above -86, e^(z - 1) > 2^-126, and an argument that is off by more than 1 has no bound. */
    double floor = z < -86 ? b->exp.floor : 0;
    return z < VANISHED ? floor + VANISHED_SIZE : floor;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static status_t sort_distinct(struct exp_budget *b) {
    b->sorted = malloc(b->facts.finite * sizeof *b->sorted);
    if (b->sorted == NULL)
        return FAIL(ERR_NOMEM, "bounds: no memory for a row of %zu", b->row->cols);
    size_t n = 0;
    for (size_t i = 0; i < b->row->cols; i++)
        if (isfinite(b->row->x[i]))
            b->sorted[n++] = b->row->x[i];
    qsort(b->sorted, n, sizeof *b->sorted, compare_doubles);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || b->sorted[i] != b->sorted[kept - 1])
            b->sorted[kept++] = b->sorted[i];
    b->distinct = kept;
    return OK;
}

/* How many distinct values of the row lie above x: no chain of rising maxima from x is longer. */
static double values_above(const struct exp_budget *b, double x) {
    size_t lo = 0, hi = b->distinct; /* sorted[lo .. hi) may be the first one above x */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (b->sorted[mid] > x)
            hi = mid;
        else
            lo = mid + 1;
    }
    return (double)(b->distinct - lo);
}

/*
 * alpha of a term that entered under a running maximum and was rescaled at each rise.  The
 * arguments x - m_0, m_0 - m_1, ... have one sign and sum to x - m, so their errors do too
 * (telescoping).
 */
static double online_alpha(const struct exp_budget *b, double x) {
    double z = x - b->facts.max;
    bool folded = b->nu->exp == EXP_EX2_FOLDED;
    if (z < VANISHED)
        return 0;
    if (z == 0 && !folded)
        return term_error(added_error(b, x), 0);
    double above = values_above(b, x);
    double rescalings = fmin(b->nu->rescales, above);
    double exps = fmin(b->nu->rescales + 1, folded ? INFINITY : above);
    double d = b->exp.slope * fabs(z) + added_error(b, x);
    if (folded) /* the maximum that an entry met was folded in rounded: docs/bounds.md#folded */
        d += (1 + 3 * b->exp.slope) * U32 * fmax(fabs(x), fabs(b->facts.max));
    if (b->nu->flush)
        d += 2 * exps * dtype_min_normal(b->nu->acc);
    return term_error(d, compound(grown(exps, worst_eps(b)), grown(rescalings, U32)));
}

/*
 * S in double.  libm's exp errs below 1 ulp and x - m is off by at most 2^-53 746 where e^(x - m)
 * is not 0, so each term is good to 2^-42 and the sum to 2^-42 + cols 2^-53.
 */
static void bound_the_size(struct exp_budget *b) {
    double sum = 0, slack = 0x1p-41 + (double)b->row->cols * 0x1p-52;
    for (size_t i = 0; i < b->row->cols; i++)
        sum += exp(b->row->x[i] - b->facts.max);
    b->share = (1 + slack) / sum * exp(b->moved) * (1 + 0x1p-50);
    b->log_sum = log(sum) * (1 + 0x1p-50) + slack + b->moved;
}

/* An upper bound on softmax(x). */
static double weight(const struct exp_budget *b, double x) {
    return exp(x - b->facts.max) * exp(b->moved) * b->share * (1 + 0x1p-41);
}

/* sigma: sums' roundings, the terms' errors weighted by their share, and what underflow took. */
static status_t bound_the_sum(struct exp_budget *b) {
    bool online = b->nu->rescale == RESCALE_ONLINE;
    if (online) {
        status_t st = sort_distinct(b);
        if (st != OK)
            return st;
    }
    double terms = 0;
    for (size_t i = 0; i < b->row->cols; i++) {
        double x = b->row->x[i];
        if (!isfinite(x) || x - b->facts.max < VANISHED)
            continue;
        terms += weight(b, x) * (online ? online_alpha(b, x) : direct_alpha(b, x));
    }
    b->gamma = grown(effective_height(b->nu, b->facts.finite), U32);
    b->sigma = compound(b->gamma, terms);

    /* Each term may lose a floor when it enters, at each rescaling (factor or product) and,
     * flushed, in an addition. */
    bool maximum_exact = b->nu->exp != EXP_EX2_FOLDED;
    double losers = (double)b->facts.finite - (maximum_exact ? 1 : 0);
    double rescales = online ? b->nu->rescales : 0;
    double flushed = b->nu->flush ? dtype_min_normal(b->nu->acc) : 0;
    double product = rounding_error(b->nu->acc, dtype_min_normal(b->nu->acc), b->nu->flush);
    double floor_each =
        b->exp.floor + VANISHED_SIZE + flushed + rescales * (b->exp.floor + product);
    double later =
        compound(grown(rescales + 1, worst_eps(b)), compound(grown(rescales, U32), b->gamma));
    b->sigma += losers * floor_each * (1 + later) * exp(b->shift) * b->share;
    return OK;
}

void exp_budget_clear(struct exp_budget *b) {
    free(b->sorted);
    b->sorted = NULL;
}

status_t exp_budget_init(struct exp_budget *b, const struct oracle_row *row,
                         const struct row_facts *facts, const struct numerics *nu) {
    *b = (struct exp_budget){.row = row, .nu = nu, .facts = *facts};
    status_t st = check_types(nu);
    if (st != OK)
        return st;
    if (nu->acc->id != DT_F32)
        return FAIL(ERR_UNSUPPORTED, "bounds: exponentials accumulate in f32, not %s",
                    nu->acc->name);
    if (nu->exp == EXP_NONE)
        return FAIL(ERR_UNSUPPORTED,
                    "bounds: the kernel's numerics do not say how it computes exp");
    b->exp = exp_facts_of(nu);
    b->moved = added_error(b, fabs(facts->max) - VANISHED);
    if (nu->exp == EXP_EX2_FOLDED)
        b->shift = U32 * fabs(facts->max) * (1 + U32);
    bound_the_size(b);
    return bound_the_sum(b);
}

bool exp_budget_void(const struct exp_budget *b) {
    return !(b->sigma < 1) || b->shift > 64 || b->moved > MOST_MOVED;
}
