/* gate/fill_norm.c - the fills of layernorm and rmsnorm. */
#include "gate/fill_impl.h"

/* Variance 0, or no deviation but rounding: eps alone is under the root. */
static void row_constant(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    static const double values[] = {0, 1, -3.5, 1000, 0x1p-20};
    double value = PICK(&l, values);
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, value);
    if (l.variant % 3 == 1 && l.cols) /* one entry a step away */
        bits[below(&l, l.cols)] += 1;
}

/* |mean| up to 2^p / 8 standard deviations: mean of squares less square of mean has nothing left. */
static void row_large_mean(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    double mean = random_sign(&l) * ldexp(1, (int)dt->prec - 3 - (int)(l.variant % 4) * 2);
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, mean + normal(&l));
}

static void row_outlier(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    static const double factors[] = {100, 1e4, 3e7};
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, normal(&l));
    if (l.cols) {
        size_t where[] = {0, l.cols - 1, below(&l, l.cols)};
        double sign = random_sign(&l);
        put(&l, where[l.variant % 3], sign * factors[l.variant % 3]);
    }
}

/* Squares near overflow, where the mean square still is a number, and squares that overflow. */
static void row_huge_squares(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    int top = dt->emax < 100 ? dt->emax - 1 : l.variant % 3 == 2 ? 100 : 56;
    for (size_t j = 0; j < l.cols; j++) {
        double sign = random_sign(&l);
        put(&l, j, sign * in_binades(&l, top - 4, 4));
    }
}

/* Squares that underflow: what is left of the mean square is eps. */
static void row_tiny_squares(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    static const int exponents[] = {-74, -62, -40};
    int from = dt->emin > -100 ? dt->emin + 2 : exponents[l.variant % 3];
    for (size_t j = 0; j < l.cols; j++) {
        double sign = random_sign(&l);
        put(&l, j, sign * in_binades(&l, from, 6));
    }
}

const struct fill norm_fills[] = {
    {.name = "normal",
     .values = "N(0, s^2), s = 1, 4, 16",
     .purpose = "The everyday row: what the other fills are compared with.",
     .row = row_normal},
    {.name = "constant",
     .values = "one value throughout, or one entry a step away",
     .purpose =
         "Variance 0: a variance rounded below 0 is NaN under the root, a lost eps divides by 0.",
     .row = row_constant},
    {.name = "large_mean",
     .values = "N(m, 1), |m| = 2^(p-9) to 2^(p-3)",
     .purpose =
         "The mean of squares less the square of the mean cancels: one pass has nothing left.",
     .row = row_large_mean},
    {.name = "outlier",
     .values = "N(0, 1) and one entry of 100, 1e4 or 3e7",
     .purpose = "One entry is the variance; the others' results are small and must not be lost.",
     .row = row_outlier},
    {.name = "mixed_signs",
     .values = "random signs and 15 binades, all negative, or zeros of both signs",
     .purpose = "Entries of very different size in one sum; rows of zeros.",
     .row = row_mixed_signs},
    {.name = "huge_squares",
     .values = "2^52 to 2^56 or 2^96 to 2^100; in f16 near its largest",
     .purpose = "Squares near overflow, and beyond it: a square kept in 16 bits is Inf.",
     .row = row_huge_squares},
    {.name = "tiny_squares",
     .values = "2^-74 to 2^-34; in f16 near its smallest normal",
     .purpose = "Squares that underflow: what is left under the root is eps.",
     .row = row_tiny_squares},
    {.name = "subnormal",
     .values = "below 2^emin, around it, and down to its logarithm",
     .purpose = "Flushing to zero of inputs and outputs.",
     .row = row_subnormal},
    {.name = "plus_inf",
     .values = "+Inf once, several times, or beside a -Inf",
     .purpose = "Inf - Inf and Inf / Inf where the definition says NaN, and 0 beside it.",
     .row = row_plus_inf},
    {.name = "one_nan",
     .values = "one NaN: first, last, anywhere, or among -Inf",
     .purpose = "A NaN that is lost, or that leaks into other rows.",
     .row = row_one_nan},
    {NULL},
};
