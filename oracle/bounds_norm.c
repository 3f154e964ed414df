/*
 * oracle/bounds_norm.c - budgets of layernorm and rmsnorm.  docs/bounds.md, "Norms", whose names
 * are used here: e the mean's error, delta that of variance + eps, kappa that of 1/sqrt, V the real
 * variance + eps.
 */
#include <float.h>
#include <math.h>

#include "oracle/bounds_impl.h"
#include "oracle/norm.h"

/* 2^-22.9, rounded up. */
#define RSQRT_APPROX_ERROR 1.2776e-7

/* What the bound needs to know of the row; upper bounds but for `mean` and the *_low. */
struct norm_size {
    double mean, mean_slack; /* in double, and how far off at most */
    double magnitude;        /* mean |x| */
    double largest, spread;  /* max |x|, max x - min x */
    double square;           /* mean x^2 */
    double variance, variance_low;
    size_t nonzero;
};

/* Roundings of a division by n, or of a product by 1/n rounded: none for a power of two. */
static double share_roundings(size_t n) {
    return (n & (n - 1)) == 0 ? 0 : 2;
}

static struct norm_size norm_measure(const struct norm_row *row) {
    struct norm_size s = {0};
    const double n = (double)row->cols, slack = (n + 100) * 0x1p-52;
    double least = INFINITY, most = -INFINITY, sum = 0, squares = 0;
    for (size_t i = 0; i < row->cols; i++) {
        double x = row->x[i];
        sum += x;
        s.nonzero += x != 0;
        s.magnitude += fabs(x);
        squares += x * x;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    s.mean = sum / n;
    s.magnitude *= (1 + slack) / n;
    /* n - 1 additions and a division, of which the budget must not make an error of the kernel */
    s.mean_slack = (n - 1 + share_roundings(row->cols)) * 0x1.01p-53 * s.magnitude;
    s.square = squares * (1 + slack) / n;
    s.largest = fmax(fabs(least), fabs(most));
    s.spread = (most - least) * (1 + 0x1p-52);
    double about = 0; /* squares about the computed mean: too large by mean_slack^2 at most */
    for (size_t i = 0; i < row->cols; i++)
        about += (row->x[i] - s.mean) * (row->x[i] - s.mean);
    s.variance = about * (1 + slack) / n;
    s.variance_low = fmax(0, about * (1 - slack) / n - s.mean_slack * s.mean_slack);
    return s;
}

struct norm_bound {
    const struct norm_row *row;
    const struct numerics *nu;
    bool centred;
    struct norm_size size;
    double mean_error; /* e */
    double kappa;
    double scale; /* 1 / sqrt(V), rounded up */
    bool void_;   /* overflow, or a variance about which nothing is known */
};

/* e: how far the computed mean may be off. */
static double mean_error(const struct norm_bound *b) {
    const double h = effective_height(b->nu, b->size.nonzero);
    const struct norm_size *s = &b->size;
    if (b->nu->variance != VARIANCE_WELFORD)
        return grown(h + share_roundings(b->row->cols), U32) * s->magnitude;
    /* each update rounds the mean (u X) and its step (4 roundings of at most the spread) */
    double per_update = U32 * (4.01 * s->spread + s->largest);
    return 9.02 * h * U32 < 1 ? h * per_update / (1 - 9.02 * h * U32) : INFINITY;
}

/* |computed variance - variance|. */
static double variance_error(const struct norm_bound *b) {
    const double h = fmin(b->nu->sum_height, (double)b->row->cols - 1), e = b->mean_error;
    const struct norm_size *s = &b->size;
    double gamma = grown(h + 1 + share_roundings(b->row->cols), U32);
    switch (b->nu->variance) {
    case VARIANCE_NONE:
        break;
    case VARIANCE_TWO_PASS: /* the deviations sum to 0, so e enters squared only */
        return s->variance * compound(grown(2, U32), gamma) +
               e * e * (1 + grown(2, U32)) * (1 + gamma);
    case VARIANCE_WELFORD: {
        /* sum of n_a n_b / n over the merges, per entry: small to large, or a quarter per level */
        double merges = fmin(h / 4, log2((double)b->row->cols));
        double moved = e * sqrt(s->variance * (8 + 16 * merges)) + e * e * (1 + 4 * merges);
        return s->variance * grown(h + 7, U32) + moved * (1 + grown(h + 7, U32));
    }
    case VARIANCE_ONE_PASS: {
        double mean = fabs(s->mean) + s->mean_slack;
        double of_squares = s->square * gamma;
        double of_mean = (2 * mean + e) * e + U32 * (mean + e) * (mean + e);
        return of_squares + of_mean + U32 * (s->variance + of_squares + of_mean);
    }
    }
    return INFINITY;
}

static status_t norm_bound_init(struct norm_bound *b, const struct norm_row *row,
                                const struct numerics *nu, bool centred) {
    *b = (struct norm_bound){.row = row, .nu = nu, .centred = centred};
    status_t st = check_types(nu);
    if (st != OK)
        return st;
    if (nu->acc->id != DT_F32)
        return FAIL(ERR_UNSUPPORTED, "bounds: norms accumulate in f32, not %s", nu->acc->name);
    if (nu->rsqrt == RSQRT_NONE || (centred && nu->variance == VARIANCE_NONE))
        return FAIL(ERR_UNSUPPORTED, "bounds: the kernel's numerics do not say how it computes %s",
                    nu->rsqrt == RSQRT_NONE ? "1/sqrt" : "the variance");
    b->size = norm_measure(row);
    const struct norm_size *s = &b->size;
    const double n = (double)row->cols;
    double real, real_low, err; /* variance, or mean square */
    if (centred) {
        b->mean_error = mean_error(b);
        real = s->variance;
        real_low = s->variance_low;
        err = variance_error(b);
    } else {
        real = s->square;
        real_low = s->square * (1 - (n + 100) * 0x1p-51);
        err = s->square *
              grown(effective_height(nu, s->nonzero) + 1 + share_roundings(row->cols), U32);
    }
    /* Each square may underflow; the mean of what is lost is no more than one loss. */
    err += rounding_error(nu->acc, dtype_min_normal(nu->acc), nu->flush) * 2;
    double v = real_low + row->eps;
    double delta = compound(err / v, U32);
    double root = nu->rsqrt == RSQRT_APPROX ? RSQRT_APPROX_ERROR : grown(2, U32);
    b->kappa = compound(1 / sqrt(1 - delta) - 1, root);
    b->scale = (1 + 0x1p-50) / sqrt(v);
    /* One-pass also holds the sum of squares; a sum of deviations' squares is no larger. */
    double held = centred && nu->variance != VARIANCE_ONE_PASS ? real + err : s->square * 1.001;
    bool overflow = !(n * held * 1.001 <= dtype_max(nu->acc)) ||
                    !(n * s->magnitude * 1.001 <= dtype_max(nu->acc)) ||
                    !(2 * s->largest <= dtype_max(nu->acc));
    b->void_ = !(delta < 1) || overflow || (nu->flush && v < 4 * dtype_min_normal(nu->acc));
    return OK;
}

/* How far the normalised value, rounded to dt, may be from the real one rounded to dt. */
static double flipped(const struct dtype *dt, double value, double err) {
    double lo = dtype_to_double(dt, dtype_from_double(dt, value - err, ROUND_NEAREST));
    double hi = dtype_to_double(dt, dtype_from_double(dt, value + err, ROUND_NEAREST));
    return isfinite(lo) && isfinite(hi) ? hi - lo : INFINITY;
}

static double column_bound(const struct norm_bound *b, size_t j, struct enclosure want) {
    const struct numerics *nu = b->nu;
    const struct norm_row *row = b->row;
    double deviation = b->centred ? row->x[j] - b->size.mean : row->x[j];
    double doubt = b->centred ? b->size.mean_slack : 0; /* of the deviation in double */
    double size = (fabs(deviation) + doubt) * b->scale;
    /* x - mean and the product by 1/sqrt round, or the product alone */
    double rel = compound(grown(b->centred ? 2 : 1, U32), b->kappa);
    double err = size * rel + b->mean_error * b->scale * (1 + rel);
    if (nu->flush)
        err += dtype_min_normal(nu->acc) * (1 + b->scale);
    else
        err += 0x1p-150;
    if (row->contract == NORM_ROUND_FIRST) {
        /* the value itself is known to 2^-40, and to the doubt in the mean; err has the rest */
        double known = doubt * b->scale + size * 0x1p-40;
        err = flipped(row->rounded, deviation * b->scale, err + known);
        size += rounding_error(row->rounded, size, false);
    }
    if (row->weight != NULL) {
        double w = fabs(row->weight[j]);
        err = err * w + rounding_error(nu->acc, (size + err) * w, nu->flush);
    }
    double magnitude = fmax(fabs(want.lo), fabs(want.hi));
    if (row->bias != NULL)
        err += rounding_error(nu->acc, magnitude + err, nu->flush);
    if (!(magnitude + err <= dtype_max(nu->acc)))
        return INFINITY;
    return with_output(err, magnitude, nu);
}

static status_t norm_budget(double *budget, const struct norm_row *row,
                            const struct enclosure *want, const struct numerics *nu, bool centred) {
    bool finite = true;
    for (size_t i = 0; i < row->cols; i++)
        finite = finite && isfinite(row->x[i]);
    struct norm_bound b = {0};
    status_t st = norm_bound_init(&b, row, nu, centred);
    for (size_t j = 0; st == OK && j < row->cols; j++) {
        double w = row->weight != NULL ? row->weight[j] : 1;
        if (enclosure_is_nan(want[j]) || isinf(want[j].lo) || !isfinite(w))
            budget[j] = 0; /* only the class counts */
        else if (!finite)
            budget[j] = outward(with_output(0, fabs(want[j].hi), nu), row->cols); /* 0 w + b */
        else if (b.void_)
            budget[j] = INFINITY;
        else
            budget[j] = outward(column_bound(&b, j, want[j]), row->cols);
    }
    return st;
}

status_t layernorm_budget(double *budget, const struct norm_row *row, const struct enclosure *want,
                          const struct numerics *numerics) {
    return norm_budget(budget, row, want, numerics, true);
}

status_t rmsnorm_budget(double *budget, const struct norm_row *row, const struct enclosure *want,
                        const struct numerics *numerics) {
    return norm_budget(budget, row, want, numerics, false);
}
