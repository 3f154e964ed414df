/* oracle/tier.c - tier 0's enclosures, and which tier answers. */
#include "oracle/tier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "oracle/outward.h"
#include "oracle/simd_attention.h"
#include "oracle/simd_norm.h"
#include "oracle/simd_wide.h"
#include "oracle/simd_within.h"
#include "oracle/tier_impl.h"

/* ---- which loops this machine runs ------------------------------------------------------------ */

static bool has_v3(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool has_v4(void) {
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

/* 2, 3 or 4. */
static int pick_level(void) {
    const char *wanted = getenv("ASSAY_ISA");
    if (has_v4() && (!wanted || strcmp(wanted, "v4") == 0))
        return 4;
    if (has_v3() && (!wanted || strcmp(wanted, "v2") != 0))
        return 3;
    return 2;
}

/* Asked for several times a row; every thread finds the same answer. */
static int level(void) {
    static _Atomic int level;
    int known = level;
    if (!known)
        level = known = pick_level();
    return known;
}

#define OF_LEVEL(name)                                                                     \
    const struct name *name(void) {                                                        \
        static const struct name *const by_level[] = {&name##_v2, &name##_v3, &name##_v4}; \
        return by_level[level() - 2];                                                      \
    }

OF_LEVEL(row_simd)
OF_LEVEL(within_simd)
OF_LEVEL(attention_simd)
OF_LEVEL(wide_simd)
OF_LEVEL(wide_attention_simd)
OF_LEVEL(norm_simd)

/* ---- tier 0 ----------------------------------------------------------------------------------- */

/* Beyond this a sum could overflow: hand up. */
#define MAX_SIZE 0x1p900

/* Half the width of a sum whose low parts were added up in double: docs/oracle.md, step 2. */
static double lost_in_sum(const struct row_sum *sum, size_t n) {
    return ((double)n + 16) * 0x1p-52 * sum->lost;
}

static struct enclosure around(double s, double c, double half) {
    if (half == 0 && two_sum_error(s, c, s + c) == 0)
        return (struct enclosure){s + c, s + c};
    /* One step more on each side: an enclosure of MPFR's ends on a double. */
    return (struct enclosure){nextafter(add_down(s, add_down(c, -half)), -INFINITY),
                              nextafter(add_up(s, add_up(c, half)), INFINITY)};
}

static bool sum_f64(struct enclosure *out, const struct oracle_row *row) {
    struct row_sum sum = row_simd()->sum(row->x, row->cols, 0);
    if (!(fabs(sum.s) < MAX_SIZE && sum.lost < MAX_SIZE))
        return false;
    *out = around(sum.s, sum.c, lost_in_sum(&sum, row->cols));
    return true;
}

status_t shifted_init(struct shifted *s, const struct oracle_row *row, double max) {
    size_t far, bytes;
    *s = (struct shifted){.lo = 1, .hi = 1};
    if (!size_mul(&bytes, row->cols, sizeof *s->e) || !(s->e = malloc(bytes)))
        return FAIL(ERR_NOMEM, "oracle: no memory for a row of %zu", row->cols);
    struct row_sum sum = row_simd()->exps(s->e, &far, row->x, row->cols, max);
    double rest = sum.s + sum.c;
    double half = EXP_ERROR * fabs(rest) + lost_in_sum(&sum, row->cols) + (double)far * FAR_SIZE;
    s->rest = around(sum.s, sum.c, half * (1 + 0x1p-40));
    s->rest.lo = fmax(s->rest.lo, 0); /* a sum of exponentials */
    if (s->rest.hi > 0) {
        /* In units of 2^-53: 1.75 for e_j, half each for 1/S, this product and the one with e_j,
         * 2 for a step outward as in `around`: 5.25, and room. */
        s->lo = 1 / add_up(1, s->rest.hi) * (1 - 0x1p-50);
        s->hi = 1 / add_down(1, s->rest.lo) * (1 + 0x1p-50);
    }
    return OK;
}

void shifted_clear(struct shifted *s) {
    free(s->e);
    s->e = NULL;
}

/* log(1 + rest), by one call of MPFR for each end. */
static void log_sum(mpfr_t lo, mpfr_t hi, const struct shifted *s) {
    mpfr_set_d(lo, s->rest.lo, MPFR_RNDN);
    mpfr_set_d(hi, s->rest.hi, MPFR_RNDN);
    mpfr_log1p(lo, lo, MPFR_RNDD);
    mpfr_log1p(hi, hi, MPFR_RNDU);
}

static void log_ops_f64(struct enclosure *out, const struct oracle_row *row,
                        const struct shifted *s, double max, bool per_element) {
    mpfr_t lo, hi;
    mpfr_inits2(96, lo, hi, (mpfr_ptr)0);
    log_sum(lo, hi, s);
    if (!per_element) {
        mpfr_add_d(lo, lo, max, MPFR_RNDD);
        mpfr_add_d(hi, hi, max, MPFR_RNDU);
    }
    struct enclosure ends = enclosure_from_mpfr(lo, hi);
    mpfr_clears(lo, hi, (mpfr_ptr)0);
    if (per_element)
        row_simd()->logs(out, row->x, row->cols, max, ends.lo, ends.hi);
    else if (ends.lo == ends.hi)
        *out = ends;
    else
        *out = (struct enclosure){nextafter(ends.lo, -INFINITY), nextafter(ends.hi, INFINITY)};
}

/* ---- double-double ----------------------------------------------------------------------------- */

static void add_exactly(double *hi, double *lo) {
    double sum = *hi + *lo;
    *lo = two_sum_error(*hi, *lo, sum);
    *hi = sum;
}

/* hi + lo + rest, half a width of `half`; the last sums outward. */
static struct enclosure around_three(double hi, double lo, double rest, double half) {
    for (int pass = 0; pass < 2; pass++) { /* they may cancel: side by side first */
        add_exactly(&hi, &lo);
        add_exactly(&lo, &rest);
    }
    return (struct enclosure){add_down(hi, add_down(lo, add_down(rest, -half))),
                              add_up(hi, add_up(lo, add_up(rest, half)))};
}

static bool sum_dd(struct enclosure *out, const struct oracle_row *row) {
    struct wide_sum sum = wide_simd()->sum(row->x, row->cols);
    if (!(fabs(sum.s) < MAX_SIZE))
        return false;
    *out = around_three(sum.s, sum.c, sum.d, ((double)row->cols + 64) * 0x1p-52 * sum.lost);
    return true;
}

/* Relative errors, with what makes them hold MPFR's enclosures at 96 bits. */
static double dd_slack(size_t cols) {
    return 0x1p-88 + (double)cols * 0x1p-100;
}

static void log_ops_dd(struct enclosure *out, const struct oracle_row *row, struct pair rest,
                       double half, double max, bool per_element) {
    mpfr_t lo, hi;
    mpfr_inits2(96, lo, hi, (mpfr_ptr)0); /* as lse_attempt: from wider ends these are no tighter */
    mpfr_set_d(lo, rest.hi, MPFR_RNDN);
    mpfr_set(hi, lo, MPFR_RNDN);
    mpfr_add_d(lo, lo, add_down(rest.lo, -half), MPFR_RNDD);
    mpfr_add_d(hi, hi, add_up(rest.lo, half), MPFR_RNDU);
    if (mpfr_sgn(lo) < 0)
        mpfr_set_zero(lo, 1);
    mpfr_log1p(lo, lo, MPFR_RNDD);
    mpfr_log1p(hi, hi, MPFR_RNDU);
    if (per_element) {
        struct pair log = {mpfr_get_d(lo, MPFR_RNDN), 0};
        mpfr_sub(hi, hi, lo, MPFR_RNDU);
        mpfr_sub_d(lo, lo, log.hi, MPFR_RNDN);
        log.lo = mpfr_get_d(lo, MPFR_RNDN);
        wide_simd()->logs(out, row->x, row->cols, max, log, mpfr_get_d(hi, MPFR_RNDU),
                          dd_slack(row->cols));
    } else {
        mpfr_add_d(lo, lo, max, MPFR_RNDD);
        mpfr_add_d(hi, hi, max, MPFR_RNDU);
        *out = enclosure_from_mpfr(lo, hi);
    }
    mpfr_clears(lo, hi, (mpfr_ptr)0);
}

static status_t exps_dd(struct enclosure *out, const struct op *op, const struct oracle_row *row,
                        double max) {
    struct row_facts facts = row_examine(row);
    size_t n = row->cols, far, bytes;
    double *e = NULL;
    if (!size_mul(&bytes, n, 2 * sizeof *e) || !(e = malloc(bytes)))
        return FAIL(ERR_NOMEM, "oracle: no memory for a row of %zu", n);
    struct pair rest = wide_simd()->exps(e, e + n, &far, row->x, n, max, facts.argmax);
    double half = rest.hi * dd_slack(n) + (double)far * FAR_SIZE;
    if (op->enclose == softmax_enclose) {
        /* 1 + rest: dd, and the far ones beside a sum of at least 1 */
        double sum = 1 + rest.hi;
        struct pair s = {sum, two_sum_error(1, rest.hi, sum) + rest.lo};
        wide_simd()->shares(out, e, e + n, row->x, n, s, dd_slack(n));
    } else {
        log_ops_dd(out, row, rest, half, max, op->enclose == log_softmax_enclose);
    }
    free(e);
    return OK;
}

/* ---- which rows a tier answers for ------------------------------------------------------------- */

/*
 * Is the op of the sums that of x, for this tier's purpose?  low may be left out where there is none
 * and, of an exponential, far below the maximum: x_j + low_j - max < FAR.
 */
static bool sums_are_doubles(const struct oracle_row *row, double max, bool far_too) {
    for (size_t j = 0; row->low && j < row->cols; j++)
        if (row->low[j] != 0 && !(far_too && row->x[j] - max + fabs(row->low[j]) < 2 * FAR))
            return false;
    return true;
}

/* *given = false: this tier does not answer for this row. */
static status_t enclose_by(struct enclosure *out, bool *given, enum tier tier, const struct op *op,
                           const struct oracle_row *row) {
    *given = false;
    bool softmax = op->enclose == softmax_enclose, lse = op->enclose == lse_enclose;
    bool log_softmax = op->enclose == log_softmax_enclose;
    bool sum = op->enclose == sum_enclose, max = op->enclose == max_enclose;
    if ((!sum && !max && !softmax && !lse && !log_softmax) || row->cols > TIER_MAX_COLS)
        return OK;
    struct row_scan scan = row_simd()->scan(row->x, row->cols);
    bool infinite = sum ? scan.minus_inf > 0 : scan.max == -INFINITY;
    if (max || scan.nan > 0 || scan.plus_inf > 0 || infinite || row->cols == 0) {
        *given = true; /* there op->enclose computes nothing: a class, or an entry of the row */
        return op->enclose(out, row);
    }
    if (sum) {
        *given = tier == TIER_F64 ? sum_f64(out, row) : sum_dd(out, row);
        return OK;
    }
    if (fabs(scan.max) > MAX_SIZE || !sums_are_doubles(row, scan.max, !log_softmax))
        return OK;
    *given = true;
    if (tier == TIER_DD)
        return exps_dd(out, op, row, scan.max);
    struct shifted s;
    status_t st = shifted_init(&s, row, scan.max);
    if (st != OK)
        return st;
    if (softmax)
        row_simd()->shares(out, s.e, row->x, row->cols, s.lo, s.hi);
    else
        log_ops_f64(out, row, &s, scan.max, log_softmax);
    shifted_clear(&s);
    return OK;
}

/* ---- the ladder ------------------------------------------------------------------------------- */

const char *tier_name(enum tier tier) {
    static const char *const names[TIER_COUNT] = {
        [TIER_F64] = "f64", [TIER_DD] = "dd", [TIER_MPFR] = "mpfr"};
    return names[tier];
}

status_t tier_enclose(struct enclosure *out, enum tier *tier, const struct op *op,
                      const struct oracle_row *row) {
    status_t own;
    if (unit_tier_enclose(&own, out, tier, op, row))
        return own;
    for (; *tier < TIER_MPFR; ++*tier) {
        bool given;
        status_t st = enclose_by(out, &given, *tier, op, row);
        if (st != OK || given)
            return st;
    }
    return op->enclose(out, row);
}

status_t tier_enclose_rows(struct enclosure *out, enum tier *tier, const struct op *op,
                           const struct oracle_row *const *rows, size_t count, size_t n) {
    status_t st = OK;
    if (unit_tier_enclose_rows(&st, out, tier, op, rows, count, n))
        return st;
    for (size_t r = 0; r < count; r++)
        TRY(tier_enclose(out + r * n, &tier[r], op, rows[r]));
done:
    return st;
}

status_t tier_budgets(double *lo, double *hi, const struct op *op, const struct oracle_row *row,
                      const struct enclosure *want, const struct numerics *numerics) {
    size_t n = op->result == OP_PER_ROW ? 1 : row->cols, bytes;
    struct enclosure *end = NULL;
    status_t st = OK;
    if (unit_tier_budgets(&st, lo, hi, op, row, want, numerics))
        return st;
    if (!size_mul(&bytes, n ? n : 1, sizeof *end) || !(end = malloc(bytes)))
        return FAIL(ERR_NOMEM, "oracle: no memory for a row of %zu", row->cols);
    for (size_t j = 0; j < n; j++)
        end[j] = enclosure_exact(want[j].lo);
    TRY(op->budget(lo, row, end, numerics));
    for (size_t j = 0; j < n; j++)
        end[j] = enclosure_exact(want[j].hi);
    TRY(op->budget(hi, row, end, numerics));
    for (size_t j = 0; j < n; j++) {
        double least = lo[j] < hi[j] ? lo[j] : hi[j], most = lo[j] < hi[j] ? hi[j] : lo[j];
        bool exact = want[j].lo == want[j].hi || enclosure_is_nan(want[j]);
        lo[j] = exact ? least : least * (1 - 0x1p-40);
        hi[j] = exact ? most : most * (1 + 0x1p-40);
    }
done:
    free(end);
    return st;
}
