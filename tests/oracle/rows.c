/* tests/oracle/rows.c - see rows.h. */
#include "rows.h"

#include <math.h>
#include <string.h>

static const char *const names[ROW_KINDS] = {
    [ROW_NORMAL] = "normal",     [ROW_WIDE] = "wide",
    [ROW_TIES] = "ties",         [ROW_SUBNORMAL] = "subnormal",
    [ROW_PEAK] = "peak",         [ROW_MASKED] = "masked",
    [ROW_RAMP_UP] = "ramp_up",   [ROW_RAMP_DOWN] = "ramp_down",
    [ROW_LSE_ZERO] = "lse_zero", [ROW_FAR] = "far",
    [ROW_CANCEL] = "cancel",     [ROW_BITS] = "bits",
};

const char *row_kind_name(enum row_kind kind) {
    return names[kind];
}

static double between(struct rng *rng, double lo, double hi) {
    return (float)(lo + (hi - lo) * rng_unit(rng));
}

/* Roughly normal: the sum of four uniforms, variance 3. */
static double bell(struct rng *rng) {
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += between(rng, -1.5, 1.5);
    return (float)sum;
}

static double any_finite(struct rng *rng) {
    uint32_t bits;
    do {
        bits = (uint32_t)rng_u64(rng);
    } while ((bits >> 23 & 0xff) == 0xff);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void row_make(double *x, size_t cols, enum row_kind kind, struct rng *rng) {
    size_t one = cols > 0 ? (size_t)rng_below(rng, cols) : 0;
    for (size_t i = 0; i < cols; i++) {
        double rank = (double)i / (double)cols;
        switch (kind) {
        case ROW_NORMAL:
            x[i] = bell(rng);
            break;
        case ROW_WIDE:
            x[i] = between(rng, -60, 60);
            break;
        case ROW_TIES:
            x[i] = (double)rng_below(rng, 3) * 0.75 - 1;
            break;
        case ROW_SUBNORMAL:
            x[i] = rng_below(rng, 50) == 0 ? 1 : ldexp((double)rng_below(rng, 1 << 23), -149);
            break;
        case ROW_PEAK:
            x[i] = i == one ? between(rng, 1, 30) : bell(rng);
            break;
        case ROW_MASKED:
            x[i] = i != one && rng_below(rng, 2) ? -INFINITY : bell(rng);
            break;
        case ROW_RAMP_UP:
            x[i] = (float)(rank * 20 + rng_unit(rng) * 10 / (double)cols);
            break;
        case ROW_RAMP_DOWN:
            x[i] = (float)(-rank * 20 + rng_unit(rng) * 10 / (double)cols);
            break;
        case ROW_LSE_ZERO:
            x[i] = (float)(-log((double)cols) * (1 + ldexp(rng_unit(rng) - 0.5, -20)));
            break;
        case ROW_FAR:
            x[i] = i == one ? 3 : between(rng, -130, 3);
            break;
        case ROW_CANCEL:
            x[i] = i % 2 ? -x[i - 1] * (1 + 0x1p-20) : bell(rng);
            x[i] = (float)(i % 2 ? x[i] : ldexp(x[i], (int)rng_below(rng, 40)));
            break;
        case ROW_BITS:
        case ROW_KINDS:
            x[i] = any_finite(rng);
            break;
        }
    }
}

void row_shuffle(double *x, size_t cols, struct rng *rng) {
    for (size_t i = cols; i > 1; i--) {
        size_t j = (size_t)rng_below(rng, i);
        double swap = x[i - 1];
        x[i - 1] = x[j];
        x[j] = swap;
    }
}
