/*
 * oracle/norm.c - layernorm and rmsnorm over exact integers.
 *
 * With x_i = X_i 2^unit the sums S1 = sum X_i, S2 = sum X_i^2 are integers, and so are
 *   layernorm: D_j = n X_j - S1,  Q = n S2 - S1^2 + n^2 eps',   normalised_j = D_j / sqrt(Q)
 *   rmsnorm:   A_j = n X_j^2,     Q = S2 + n eps',              normalised_j = +- sqrt(A_j / Q)
 * with eps' = eps 2^(-2 unit): no mean is rounded and nothing cancels.  Only the quotient and the
 * root are inexact, each once.  The first form is D_j^2 under the same root, so both are one.
 */
#include "oracle/norm.h"

#include <math.h>

#include "oracle/dtype_mpfr.h"
#include "oracle/refine.h"

struct norm {
    const struct norm_row *row;
    bool centred;        /* layernorm */
    bool infinite;       /* rmsnorm of a row with an infinity: all finite entries become 0 */
    long unit, q_unit;   /* x_i = X_i 2^unit; the radicand is `radicand` 2^q_unit */
    mpz_t sum, radicand; /* S1, Q */
    size_t column;       /* the one that is enclosed */
};

static void make_sums(struct norm *n, mpz_t squares) {
    mpz_t x;
    mpz_init(x);
    for (size_t i = 0; i < n->row->cols; i++) {
        double_to_mpz(x, n->row->x[i], n->unit);
        mpz_add(n->sum, n->sum, x);
        mpz_addmul(squares, x, x);
    }
    mpz_clear(x);
}

/* Q over the finer of the units of x^2 and eps. */
static void make_radicand(struct norm *n, mpz_t squares) {
    const unsigned long cols = n->row->cols;
    mpz_t eps;
    mpz_init(eps);
    if (n->centred) {
        mpz_mul_ui(n->radicand, squares, cols);
        mpz_submul(n->radicand, n->sum, n->sum);
    } else {
        mpz_set(n->radicand, squares);
    }
    n->q_unit = 2 * n->unit;
    if (n->row->eps > 0) {
        long eps_unit = double_unit(&n->row->eps, 1);
        if (eps_unit < n->q_unit) {
            mpz_mul_2exp(n->radicand, n->radicand, (mp_bitcnt_t)(n->q_unit - eps_unit));
            n->q_unit = eps_unit;
        }
        double_to_mpz(eps, n->row->eps, n->q_unit);
        mpz_mul_ui(eps, eps, cols);
        if (n->centred)
            mpz_mul_ui(eps, eps, cols);
        mpz_add(n->radicand, n->radicand, eps);
    }
    mpz_clear(eps);
}

static void norm_init(struct norm *n, const struct norm_row *row, bool centred) {
    *n = (struct norm){.row = row, .centred = centred};
    mpz_t squares;
    mpz_inits(n->sum, n->radicand, squares, (mpz_ptr)0);
    for (size_t i = 0; i < row->cols; i++)
        n->infinite = n->infinite || isinf(row->x[i]);
    if (!n->infinite) {
        n->unit = double_unit(row->x, row->cols);
        make_sums(n, squares);
        make_radicand(n, squares);
    }
    mpz_clear(squares);
}

static void norm_clear(struct norm *n) {
    mpz_clears(n->sum, n->radicand, (mpz_ptr)0);
}

/* The normalised value of column j: sign sqrt(A_j / Q), exact where MPFR finds both steps exact. */
static void normalised(struct interval *out, const struct norm *n, size_t j, mpfr_prec_t prec) {
    mpz_t x;
    mpz_init(x);
    if (!n->infinite)
        double_to_mpz(x, n->row->x[j], n->unit);
    if (n->centred) {
        mpz_mul_ui(x, x, n->row->cols);
        mpz_sub(x, x, n->sum);
    }
    int sign = mpz_sgn(x);
    mpz_mul(x, x, x);
    if (!n->centred)
        mpz_mul_ui(x, x, n->row->cols);
    if (sign == 0) {
        interval_set_d(out, 0);
    } else {
        struct interval q;
        interval_init(&q, prec);
        mpfr_set_z(out->lo, x, MPFR_RNDD);
        mpfr_set_z(out->hi, x, MPFR_RNDU);
        mpfr_set_z(q.lo, n->radicand, MPFR_RNDD);
        mpfr_set_z(q.hi, n->radicand, MPFR_RNDU);
        mpfr_div(out->lo, out->lo, q.hi, MPFR_RNDD);
        mpfr_div(out->hi, out->hi, q.lo, MPFR_RNDU);
        mpfr_mul_2si(out->lo, out->lo, 2 * n->unit - n->q_unit, MPFR_RNDD);
        mpfr_mul_2si(out->hi, out->hi, 2 * n->unit - n->q_unit, MPFR_RNDU);
        mpfr_sqrt(out->lo, out->lo, MPFR_RNDD);
        mpfr_sqrt(out->hi, out->hi, MPFR_RNDU);
        if (sign < 0)
            interval_neg(out);
        interval_clear(&q);
    }
    mpz_clear(x);
}

/*
 * Rounded to the contract's format.  As long as the ends round apart the result is wide and the
 * precision rises; it ends, for a tie is a dyadic rational, and then root and quotient are exact.
 */
static void round_first(struct interval *x, const struct dtype *dt) {
    double lo = dtype_to_double(dt, dtype_from_mpfr(dt, x->lo, ROUND_NEAREST));
    double hi = dtype_to_double(dt, dtype_from_mpfr(dt, x->hi, ROUND_NEAREST));
    mpfr_set_d(x->lo, lo, MPFR_RNDD);
    mpfr_set_d(x->hi, hi, MPFR_RNDU);
}

static status_t norm_attempt(struct enclosure *out, const void *problem, mpfr_prec_t prec) {
    const struct norm *n = problem;
    const struct norm_row *row = n->row;
    struct interval y;
    interval_init(&y, prec);
    normalised(&y, n, n->column, prec);
    if (row->contract == NORM_ROUND_FIRST)
        round_first(&y, row->rounded);
    if (row->weight != NULL)
        interval_mul_d(&y, row->weight[n->column]);
    if (row->bias != NULL)
        interval_add_d(&y, row->bias[n->column]);
    *out = interval_enclosure(&y);
    interval_clear(&y);
    return OK;
}

/* The normalised value's sign: -1, 0, 1; NaN where there is none. */
static double normalised_sign(const struct norm *n, size_t j, bool nan_in_row) {
    double x = n->row->x[j];
    if (nan_in_row || isinf(x) || (n->infinite && n->centred))
        return NAN;
    if (n->infinite)
        return 0;
    if (mpz_sgn(n->radicand) == 0) /* 0/0: a constant row without eps */
        return NAN;
    struct interval y;
    interval_init(&y, 64);
    normalised(&y, n, j, 64);
    double sign = (double)(mpfr_sgn(y.hi) > 0) - (double)(mpfr_sgn(y.lo) < 0);
    interval_clear(&y);
    return sign;
}

static status_t norm_enclose(struct enclosure *out, const struct norm_row *row, bool centred) {
    if (!(row->eps >= 0 && isfinite(row->eps)))
        return FAIL(ERR_USAGE, "norm: eps is %g, expected a finite number >= 0", row->eps);
    if (row->contract == NORM_ROUND_FIRST && row->rounded == NULL)
        return FAIL(ERR_USAGE, "norm: the contract rounds first, but not to which format");
    if (row->cols == 0)
        return OK;
    bool nan_in_row = false;
    for (size_t i = 0; i < row->cols; i++)
        nan_in_row = nan_in_row || isnan(row->x[i]);
    if (nan_in_row) {
        for (size_t j = 0; j < row->cols; j++)
            out[j] = (struct enclosure){NAN, NAN};
        return OK;
    }
    struct norm n;
    norm_init(&n, row, centred);
    status_t st = OK;
    for (size_t j = 0; st == OK && j < row->cols; j++) {
        double w = row->weight != NULL ? row->weight[j] : 1;
        double b = row->bias != NULL ? row->bias[j] : 0;
        double sign = normalised_sign(&n, j, nan_in_row);
        if (isnan(sign) || !isfinite(w) || !isfinite(b)) {
            double special = sign * w + b;
            if (isfinite(special)) /* cannot be: one of them was not */
                special = NAN;
            out[j] = (struct enclosure){special, special};
            continue;
        }
        n.column = j;
        st = refine(&out[j], 1, &n, NULL, norm_attempt, centred ? "layernorm" : "rmsnorm");
    }
    norm_clear(&n);
    return st;
}

status_t layernorm_enclose(struct enclosure *out, const struct norm_row *row) {
    return norm_enclose(out, row, true);
}

status_t rmsnorm_enclose(struct enclosure *out, const struct norm_row *row) {
    return norm_enclose(out, row, false);
}
