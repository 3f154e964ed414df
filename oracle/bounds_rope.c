/* oracle/bounds_rope.c - budgets of rope: the angle, its sine and cosine, and the rotation. */
#include <math.h>

#include "oracle/bounds_impl.h"
#include "oracle/rope_impl.h"

/* 2^-21.19, the larger of __sinf's and __cosf's, rounded up. */
#define TRIG_FAST_ERROR 4.1803e-7

struct turn {
    double sine, cosine;             /* |.|, rounded up */
    double sine_error, cosine_error; /* of the kernel's */
    bool sine_signed, cosine_signed; /* the kernel's has the sign of the real one, or both are 0 */
};

/* Error of a computed sine or cosine whose real value, at the kernel's angle, is at most `size`. */
static double trig_error(const struct numerics *nu, double size) {
    switch (nu->trig) {
    case TRIG_NONE:
        break;
    case TRIG_SINCOSF: /* 2 ulp off the correctly rounded: 2.5 steps, 5 halves */
        return 5 * rounding_error(nu->acc, fmin(size, 1), false);
    case TRIG_FAST:
        return TRIG_FAST_ERROR;
    case TRIG_TABLE:
        return rounding_error(nu->table, fmin(size, 1), false);
    }
    return INFINITY;
}

static struct turn turn_at(const struct rope_row *row, size_t i, const struct numerics *nu) {
    double freq = row->freq != NULL ? row->freq[i]
                                    : pow(row->base, -(double)(2 * i) / (double)row->rotary_dim);
    double angle = row->position * freq;
    /* pow and its exponent lose a few 2^-53 log(base) relative: sine and cosine move by that. */
    double loss = fabs(angle) * 0x1p-46;
    struct turn t = {.sine = fmin(1, fabs(sin(angle)) + loss + 0x1p-52),
                     .cosine = fmin(1, fabs(cos(angle)) + loss + 0x1p-52)};
    double off = nu->angle_rel * fabs(angle) * (1 + 0x1p-46) + nu->angle_abs;
    double moved = off * off / 2;
    t.sine_error = fmin(2, t.cosine * off + moved);
    t.cosine_error = fmin(2, t.sine * off + moved);
    t.sine_error += trig_error(nu, t.sine + t.sine_error);
    t.cosine_error += trig_error(nu, t.cosine + t.cosine_error);
    const double doubt = 2 * (loss + 0x1p-52);
    bool exact = angle == 0 && nu->angle_abs == 0;
    t.sine_signed = exact || t.sine - doubt > t.sine_error;
    t.cosine_signed = exact || t.cosine - doubt > t.cosine_error;
    return t;
}

/* a f + b g with errors ef, eg in f and g: two products, or a product and an fma, and a sum. */
static double rotated(double a, double f, double ef, double b, double g, double eg,
                      double magnitude, const struct numerics *nu) {
    double err = fabs(a) * ef + fabs(b) * eg;
    err += rounding_error(nu->acc, fabs(a) * (f + ef), nu->flush);
    err += rounding_error(nu->acc, fabs(b) * (g + eg), nu->flush);
    err += rounding_error(nu->acc, magnitude + err, nu->flush);
    if (!(fabs(a) + fabs(b) <= dtype_max(nu->acc)))
        return INFINITY; /* a partial result may overflow */
    return with_output(err, magnitude, nu);
}

status_t rope_budget(double *budget, const struct rope_row *row, const struct enclosure *want,
                     const struct numerics *nu) {
    status_t st = check_types(nu);
    if (st != OK)
        return st;
    if (nu->trig == TRIG_NONE || (nu->trig == TRIG_TABLE && nu->table == NULL))
        return FAIL(ERR_UNSUPPORTED,
                    "bounds: the kernel's numerics do not say how it computes sine and cosine");
    for (size_t i = 0; i < row->rotary_dim / 2; i++) {
        struct rope_pair at = rope_pair_at(row, i);
        double a = row->x[at.first], b = row->x[at.second];
        budget[at.first] = budget[at.second] = 0;
        struct turn t = turn_at(row, i, nu);
        if (!isfinite(a) || !isfinite(b)) { /* Inf times what may have either sign, or be 0 */
            if ((isinf(a) && !t.cosine_signed) || (isinf(b) && !t.sine_signed))
                budget[at.first] = INFINITY;
            if ((isinf(a) && !t.sine_signed) || (isinf(b) && !t.cosine_signed))
                budget[at.second] = INFINITY;
            continue;
        }
        double first = fmax(fabs(want[at.first].lo), fabs(want[at.first].hi));
        double second = fmax(fabs(want[at.second].lo), fabs(want[at.second].hi));
        budget[at.first] =
            outward(rotated(a, t.cosine, t.cosine_error, b, t.sine, t.sine_error, first, nu), 0);
        budget[at.second] =
            outward(rotated(a, t.sine, t.sine_error, b, t.cosine, t.cosine_error, second, nu), 0);
    }
    for (size_t j = row->rotary_dim; j < row->head_dim; j++)
        budget[j] = isfinite(row->x[j]) ? outward(with_output(0, fabs(row->x[j]), nu), 0) : 0;
    return OK;
}
