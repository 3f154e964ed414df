#include "rows.h"

#include <float.h>
#include <math.h>

#include "base/rng.h"

const char *const row_kind_names[ROW_KINDS] = {
    [ROW_NORMAL] = "normal",
    [ROW_HUGE] = "huge",
    [ROW_ALL_NINF] = "all -Inf",
    [ROW_ONE_FINITE] = "one finite",
    [ROW_MASKED_HEAD] = "masked head",
    [ROW_MASKED_TAIL] = "masked tail",
    [ROW_NAN] = "NaN",
    [ROW_NAN_IN_NINF] = "NaN among -Inf",
    [ROW_PLUS_INF] = "+Inf",
    [ROW_BOTH_INF] = "+Inf and -Inf",
    [ROW_TIES] = "ties",
    [ROW_RAMP_UP] = "ramp up",
    [ROW_RAMP_DOWN] = "ramp down",
    [ROW_INTEGERS] = "integers",
    [ROW_CANCEL] = "cancel",
    [ROW_SUBNORMAL] = "subnormal",
    [ROW_NEAR_OVERFLOW] = "near overflow",
    [ROW_NEGATIVE_ZERO] = "negative zero",
};

/* Uniform on [-scale, scale). */
static float spread(struct rng *rng, float scale) {
    return scale * (float)(2 * rng_unit(rng) - 1);
}

static float entry(struct rng *rng, enum row_kind kind, size_t i, size_t cols, size_t chosen) {
    switch (kind) {
    case ROW_HUGE:
        return spread(rng, 200);
    case ROW_ALL_NINF:
        return -INFINITY;
    case ROW_ONE_FINITE:
        return i == chosen ? -3.25f : -INFINITY;
    case ROW_MASKED_HEAD:
        return i < (cols + 1) / 2 && i + 1 < cols ? -INFINITY : spread(rng, 8);
    case ROW_MASKED_TAIL:
        return i > chosen ? -INFINITY : spread(rng, 8);
    case ROW_NAN_IN_NINF:
        return i == chosen ? NAN : -INFINITY;
    case ROW_TIES:
        return 7.5f;
    case ROW_RAMP_UP:
        return -20 + 40 * (float)i / (float)cols;
    case ROW_RAMP_DOWN:
        return 20 - 40 * (float)i / (float)cols;
    case ROW_INTEGERS:
        return (float)rng_below(rng, 17) - 8;
    case ROW_CANCEL:
        return (i % 2 ? -1e6f : 1e6f) + spread(rng, 1);
    case ROW_SUBNORMAL:
        return (float)rng_below(rng, 1000) * 0x1p-149f;
    case ROW_NEAR_OVERFLOW:
        return i % 2 ? -FLT_MAX : FLT_MAX;
    case ROW_NEGATIVE_ZERO:
        return -0.0f;
    case ROW_NORMAL:
    case ROW_NAN:
    case ROW_PLUS_INF:
    case ROW_BOTH_INF:
    case ROW_KINDS:
        break;
    }
    return spread(rng, 4);
}

void row_fill(float *x, size_t cols, enum row_kind kind, uint64_t seed) {
    struct rng rng = rng_from_seed(seed);
    size_t chosen = rng_below(&rng, cols);
    for (size_t i = 0; i < cols; i++)
        x[i] = entry(&rng, kind, i, cols, chosen);
    if (kind == ROW_NAN)
        x[chosen] = NAN;
    if (kind == ROW_PLUS_INF || kind == ROW_BOTH_INF)
        x[chosen] = INFINITY;
    if (kind == ROW_BOTH_INF)
        x[(chosen + cols / 2) % cols] = cols > 1 ? -INFINITY : INFINITY;
}
