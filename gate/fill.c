/*
 * gate/fill.c - the fills of a matrix.
 *
 * Every fill has a few variants; row + seed picks one, so the rows of a case show them all and a
 * case of one row shows another one under another seed.
 *
 * A case line must mean the same bits everywhere.  So there is no libm here, whose last bit differs,
 * and no expression with two random draws in it, whose order C leaves to the compiler.
 */
#include "gate/fill.h"

#include <math.h>
#include <string.h>

#include "gate/fill_impl.h"

/* ---- the fills ------------------------------------------------------------------------------- */

void row_normal(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    static const double scales[] = {1, 4, 16};
    double scale = scales[l.variant % 3];
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, scale * normal(&l));
}

void row_huge(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    static const double centres[] = {1e4, 2e4, 3e4};
    static const double sentinels[] = {1.5e4, 6e4, 1e5, 1e30, 1.7e38};
    double centre = PICK(&l, centres);
    switch (l.variant % 4) {
    case 0: /* exp(1e4) overflows: Inf / Inf */
        for (size_t j = 0; j < l.cols; j++)
            put(&l, j, centre + 8 * normal(&l));
        break;
    case 1: /* exp(-1e4) underflows: 0 / 0 */
        for (size_t j = 0; j < l.cols; j++)
            put(&l, j, -centre + 8 * normal(&l));
        break;
    case 2: /* both ends in one row */
        for (size_t j = 0; j < l.cols; j++) {
            double end = random_sign(&l) * centre;
            put(&l, j, end + 8 * normal(&l));
        }
        break;
    case 3: { /* every live value lies below what a kernel may use in place of -Inf */
        double sentinel = PICK(&l, sentinels);
        for (size_t j = 0; j < l.cols; j++)
            put(&l, j, -sentinel * uniform(&l, 1, 1.0625));
        if (l.cols > 1)
            put(&l, below(&l, l.cols), -INFINITY);
        break;
    }
    }
}

static void row_all_ninf(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    size_t n = l.cols;
    for (size_t j = 0; j < n; j++)
        put(&l, j, -INFINITY);
    if (n == 0 || l.variant % 4 == 0)
        return; /* no key at all */
    size_t tile = random_tile(&l);
    switch (l.variant % 4) {
    case 1: /* the first tile is masked */
        for (size_t j = tile < n ? tile : n - 1; j < n; j++)
            put(&l, j, 4 * normal(&l));
        break;
    case 2: { /* one slice in eight is live: most threads, warps or blocks see only -Inf */
        size_t width = below(&l, 2) ? tile : 1, live = below(&l, 8);
        for (size_t j = 0; j < n; j++)
            if (j / width % 8 == live)
                put(&l, j, 4 * normal(&l));
        size_t at = below(&l, n);
        put(&l, at, 4 * normal(&l));
        break;
    }
    case 3: /* only the last few are live */
        for (size_t j = n > 4 ? n - 4 : n - 1; j < n; j++)
            put(&l, j, 4 * normal(&l));
        break;
    }
}

static void row_one_finite(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, -INFINITY);
    if (l.cols == 0)
        return;
    size_t where[] = {0, l.cols - 1, below(&l, l.cols)};
    put(&l, where[l.variant % 3], 10 * normal(&l));
}

/*
 * exp(-87.34) is the last normal f32 and exp(-103.97) the last non-zero one: a factor exp(m_old -
 * m_new) flushed to 0 must not meet an infinity.  8 log2 is the threshold of lazy rescaling.
 */
static void row_alpha_underflow(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    static const double jumps[] = {7.9 * LN2, 8 * LN2, 8.1 * LN2, 87.25, 87.5,
                                   88.8,      103.75,  104.25,    128,   300};
    double jump = PICK(&l, jumps);
    size_t n = l.cols, tile = random_tile(&l);
    switch (l.variant % 3) {
    case 0: { /* one jump up */
        size_t at = tile < n ? tile : n / 2;
        for (size_t j = 0; j < n; j++)
            put(&l, j, (j < at ? -jump : 0) - uniform(&l, 0, 0.5));
        break;
    }
    case 1: { /* a staircase of at most nine steps */
        size_t width = tile > n / 8 ? tile : n / 8 + 1;
        for (size_t j = 0; j < n; j++) {
            size_t step = j / width;
            put(&l, j, jump * ((double)step - 4) - uniform(&l, 0, 0.5));
        }
        break;
    }
    case 2: /* the maximum stands first, all others far below */
        for (size_t j = 0; j < n; j++)
            put(&l, j, (j ? -jump : 0) - uniform(&l, 0, 0.5));
        break;
    }
}

void row_mixed_signs(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    switch (l.variant % 3) {
    case 0:
        for (size_t j = 0; j < l.cols; j++) {
            double sign = random_sign(&l);
            put(&l, j, sign * in_binades(&l, -8, 15));
        }
        break;
    case 1: /* all negative: a maximum that starts at 0 or FLT_MIN stays there */
        for (size_t j = 0; j < l.cols; j++)
            put(&l, j, -in_binades(&l, -6, 10));
        break;
    case 2: /* zeros of both signs */
        for (size_t j = 0; j < l.cols; j++)
            put(&l, j, 0.0 * random_sign(&l));
        break;
    }
}

/* big, 1, -big, 1, ...: in the wrong order every 1 is lost. */
static void put_absorbing(struct line *l) {
    double big = ldexp(1, (int)l->dt->prec + 2);
    const double period[] = {big, 1, -big, 1};
    for (size_t j = 0; j < l->cols; j++)
        put(l, j, period[j % 4]);
}

static void row_cancel(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    uint64_t variant = l.variant % 3;
    if (variant == 2) {
        put_absorbing(&l);
        return;
    }
    size_t pairs = l.cols / 2;
    for (size_t k = 0; k < pairs; k++) {
        put(&l, 2 * k, in_binades(&l, -12, 19));
        int64_t ordinal = dtype_ordinal(dt, bits[2 * k]);
        /* variant 1: the partner is one step smaller, so a rest of one ulp stays */
        bits[2 * k + 1] = dtype_from_ordinal(dt, -(ordinal - (int64_t)variant));
    }
    if (l.cols % 2)
        put(&l, l.cols - 1, ldexp(1, -14));
    shuffle(&l);
}

static void row_ties(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    static const double maxima[] = {0, 3.5, -7.25, 100, -1000};
    double max = PICK(&l, maxima);
    size_t every = 2 + below(&l, 7);
    for (size_t j = 0; j < l.cols; j++) {
        bool tied = l.variant % 3 == 0                                      /* all equal */
                    || (l.variant % 3 == 1 && j % every == 0)               /* spread out */
                    || (l.variant % 3 == 2 && (j == 0 || j + 1 == l.cols)); /* both ends */
        put(&l, j, tied ? max : max - uniform(&l, 0.25, 8));
    }
}

void row_subnormal(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    double min_normal = dtype_min_normal(dt);
    /* exp(x) is subnormal for x between these two */
    double from = (dt->emin - (int)dt->prec + 1) * LN2, to = dt->emin * LN2;
    for (size_t j = 0; j < l.cols; j++) {
        double sign = random_sign(&l);
        switch (l.variant % 3) {
        case 0:
            put(&l, j, sign * min_normal * uniform(&l, 0, 1));
            break;
        case 1: /* across the border, to both sides */
            put(&l, j, sign * min_normal * uniform(&l, 0, 2));
            break;
        case 2: /* outputs of a softmax that are subnormal, below one maximum */
            put(&l, j, uniform(&l, from, to));
            break;
        }
    }
    if (l.variant % 3 == 2 && l.cols)
        put(&l, below(&l, l.cols), 0);
}

/*
 * One sign, |x_j| <= share * max / cols: no partial sum, in whatever order and rounded at each
 * step, reaches max, as (1 + u)^cols < 1 / 0.99 for the first share; the second is for formats where
 * rounding alone can add up to a factor 2.
 */
static void row_near_overflow(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    double n = (double)(l.cols ? l.cols : 1);
    double share = ldexp(n, -(int)dt->prec) < 0.005 ? 0.99 : 0.5;
    double limit = share * dtype_max(dt) / n, sign = random_sign(&l);
    for (size_t j = 0; j < l.cols; j++)
        bits[j] = dtype_from_double(dt, sign * limit * uniform(&l, 0.875, 1), ROUND_ZERO);
}

void row_plus_inf(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, 4 * normal(&l));
    if (l.cols == 0)
        return;
    size_t count = l.variant % 3 == 1 ? 1 + below(&l, l.cols) : 1;
    for (size_t k = 0; k < count; k++)
        put(&l, below(&l, l.cols), INFINITY);
    if (l.variant % 3 == 2 && l.cols > 1) /* beside a -Inf */
        for (size_t j = 0; j < l.cols; j++)
            if (dtype_classify(dt, bits[j]) != CLASS_INF) {
                put(&l, j, -INFINITY);
                break;
            }
}

void row_one_nan(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    for (size_t j = 0; j < l.cols; j++) /* variant 2: beside -Inf only */
        put(&l, j, l.variant % 3 == 2 ? -INFINITY : 4 * normal(&l));
    if (l.cols == 0)
        return;
    size_t where[] = {0, l.cols - 1, below(&l, l.cols)};
    bits[where[below(&l, 3)]] = dt->nan;
}

/* cols values a step apart, from -cols/2 steps upwards. */
static double ramp(const struct line *l, size_t j) {
    static const double steps[] = {0x1p-6, 0x1p-3, 0x1p-1};
    size_t middle = l->cols / 2;
    return steps[l->variant % 3] * ((double)j - (double)middle);
}

static void row_ramp_up(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, ramp(&l, j));
}

static void row_ramp_down(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, ramp(&l, l.cols - 1 - j));
}

/* Integers with sum |x_j| < 2^prec: every partial sum is an integer that the format holds. */
static void row_exact_int(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    uint64_t left = (UINT64_C(1) << dt->prec) - 1;
    uint64_t each = l.cols ? left / l.cols : 0;
    if (each == 0) { /* more columns than that: some are 0 */
        size_t every = (size_t)(l.cols / left) + 1;
        for (size_t j = 0; j < l.cols; j++)
            put(&l, j, j % every == 0 ? random_sign(&l) : 0);
        return;
    }
    /* variant 1: one sign, so the sum itself comes close to 2^prec */
    for (size_t j = 0; j < l.cols; j++) {
        double magnitude = (double)rng_below(&l.rng, each + 1);
        put(&l, j, magnitude * (l.variant % 2 ? 1 : random_sign(&l)));
    }
}

/* What stands behind the last full tile outweighs all that stands before it. */
static void row_tail_lengths(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    static const size_t tiles[] = {4, 32, 128, 256};
    if (l.cols == 0)
        return;
    size_t tail = l.cols - l.cols % tiles[l.variant % 4];
    if (tail == l.cols)
        tail = l.cols - 1;
    /* half of the rows are negative: a tail padded with 0 instead of -Inf would win the maximum */
    double low = l.variant / 4 % 2 ? -40 : 0, high = l.variant / 4 % 2 ? -8 : 32;
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, (j < tail ? low : high) - uniform(&l, 0, 0.25));
}

/* clang-format off */
const struct fill fills[] = {
    {"normal", "N(0, s^2), s = 1, 4, 16",
     "The everyday row: what the other fills are compared with.", row_normal, false},
    {"huge", "around +-1e4 to 3e4, both ends in a row, and below -1.5e4 to -1.7e38",
     "exp without max subtraction overflows or gives 0/0; a finite stand-in for -Inf beats real "
     "logits.", row_huge, false},
    {"all_ninf", "-Inf in the whole row, the first tile, seven slices of eight, or all but the last "
     "four", "A thread, warp, block or row that sees only -Inf computes -Inf - -Inf.",
     row_all_ninf, false},
    {"one_finite", "-Inf but for one value: first, last or anywhere",
     "The result is exactly one-hot; a lost element or a wrong identity shows.",
     row_one_finite, false},
    {"alpha_underflow", "the maximum jumps by 5.5 to 300, once, in steps, or downwards",
     "Factors of the online rescaling underflow to subnormals and to 0.",
     row_alpha_underflow, false},
    {"mixed_signs", "random signs and 15 binades, all negative, or zeros of both signs",
     "A maximum that starts at 0 or FLT_MIN, a sum that depends on signs, a -0 taken for nothing.",
     row_mixed_signs, false},
    {"cancel", "shuffled pairs that cancel exactly or to one ulp; 2^(p+2), 1, -2^(p+2), 1, ...",
     "Sums far smaller than their terms: the order of additions shows, and absolute tolerances lie.",
     row_cancel, false},
    {"ties", "several equal maxima: all, spread out, or both ends",
     "Equal maxima counted once, and the bias of rounding equal terms.", row_ties, false},
    {"subnormal", "below 2^emin, around it, and logits whose softmax is subnormal",
     "Flushing to zero of inputs, of products and of outputs.", row_subnormal, false},
    {"near_overflow", "one sign, each 0.87 to 0.99 (or half) of max / cols",
     "Sums just below overflow: a scaled, squared or doubled intermediate becomes Inf.",
     row_near_overflow, false},
    {"plus_inf", "+Inf once, several times, or beside a -Inf",
     "Inf - Inf and Inf / Inf where the definition says NaN, or a maximum that hides it.",
     row_plus_inf, false},
    {"one_nan", "one NaN: first, last, anywhere, or among -Inf",
     "A NaN dropped by fmax or by a comparison that is false.", row_one_nan, false},
    {"ramp_up", "rising by 1/64, 1/8 or 1/2 per column",
     "The running maximum changes at every element: the most rescalings there can be.",
     row_ramp_up, false},
    {"ramp_down", "falling by 1/64, 1/8 or 1/2 per column",
     "The running maximum is found at once: no rescaling, the sum grows by ever smaller terms.",
     row_ramp_down, false},
    {"exact_int", "integers with sum |x| < 2^p",
     "Every partial sum is exact in every order: a sum has tolerance 0.", row_exact_int, true},
    {"tail_lengths", "32 (or -8) behind the last multiple of 4, 32, 128 or 256, else 0 (or -40)",
     "A tail dropped, read twice or padded with the wrong identity.", row_tail_lengths, false},
    {NULL},
};
/* clang-format on */

const struct fill *fills_of(const struct op *op) {
    return strcmp(op->name, "rope") == 0                ? rope_fills
           : strcmp(op->name, "attention") == 0         ? attention_fills
           : strcmp(op->name, "attention_combine") == 0 ? combine_fills
           : strstr(op->name, "norm") != NULL           ? norm_fills
                                                        : fills;
}

const struct fill *fill_of(const struct op *op, const char *name) {
    for (const struct fill *f = fills_of(op); f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

const struct fill *fill_find(const char *name) {
    return fill_of(&ops[0], name);
}
