/* tests/oracle/simulate.c - see simulate.h. */
#include "simulate.h"

#include <math.h>
#include <stdlib.h>

#include "gpu_exp.h"
#include "kernels/exp2_poly.h"

#define LOG2E 0x1.715476p0f

static float ftz(float x, bool flush) {
    return flush && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static size_t ceil_log2(size_t n) {
    size_t k = 0;
    while (((size_t)1 << k) < n)
        k++;
    return k;
}

struct numerics simulated_numerics(const struct algorithm *a, size_t cols, size_t threads) {
    size_t items = (cols + threads - 1) / threads;
    double height = (double)(items - 1 + ceil_log2(threads));
    return (struct numerics){
        .in = &dtypes[DT_F32],
        .acc = &dtypes[DT_F32],
        .out = &dtypes[DT_F32],
        .exp = a->exp,
        .sum_height = height,
        .rescales = a->rescale == RESCALE_ONLINE ? height : 0,
        .rescale = a->rescale,
        .divide = a->divide,
        .flush = a->flush,
        .log = a->log == LOG_NONE ? LOG_LOGF : a->log,
    };
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* part[0] = sum of part[0 .. n-1], neighbours first. */
static float tree_sum(float *part, size_t n, bool flush) {
    for (size_t step = 1; step < n; step *= 2)
        for (size_t i = 0; i + step < n; i += 2 * step)
            part[i] = ftz(part[i] + part[i + step], flush);
    return part[0];
}

float simulate_sum(const double *x, size_t cols, size_t threads, bool flush) {
    float *part = calloc(threads, sizeof *part);
    if (part == NULL)
        abort();
    for (size_t i = 0; i < cols; i++) {
        float *p = &part[i % threads];
        *p = i < threads ? ftz((float)x[i], flush) : ftz(*p + ftz((float)x[i], flush), flush);
    }
    float sum = tree_sum(part, threads, flush);
    free(part);
    return sum;
}

/* ---- exponentials ---------------------------------------------------------------------------- */

/* exp(a - b) as the algorithm computes it. */
static float exp_difference(float a, float b, const struct algorithm *alg) {
    switch (alg->exp) {
    case EXP_NONE:
        break;
    case EXP_EXPF:
        return ftz(gpu_expf(ftz(a - b, alg->flush)), alg->flush);
    case EXP_FAST:
        return gpu_expf_fast(ftz(a - b, alg->flush));
    case EXP_EX2_FOLDED:
        return gpu_ex2_approx_ftz(fmaf(a, LOG2E, -(b * LOG2E)));
    case EXP_EX2_POLY:
        return exp2_poly((a - b) * LOG2E);
    }
    return NAN;
}

/* exp(a - b) for two maxima. */
static float rescale_factor(float a, float b, const struct algorithm *alg) {
    if (alg->exp != EXP_EX2_FOLDED)
        return exp_difference(a, b, alg);
    if (alg->scaled_maxima)
        return gpu_ex2_approx_ftz(a * LOG2E - b * LOG2E);
    return gpu_ex2_approx_ftz((a - b) * LOG2E);
}

struct state {
    float max, sum;
};

static struct state merge(struct state a, struct state b, const struct algorithm *alg) {
    if (b.max == -INFINITY)
        return a;
    if (a.max == -INFINITY)
        return b;
    struct state out = {fmaxf(a.max, b.max), 0};
    /* a branchless kernel multiplies both sides; the larger one's factor is exp(0) */
    float left = a.max == out.max ? 1 : rescale_factor(a.max, out.max, alg);
    float right = b.max == out.max ? 1 : rescale_factor(b.max, out.max, alg);
    out.sum = ftz(ftz(a.sum * left, alg->flush) + ftz(b.sum * right, alg->flush), alg->flush);
    return out;
}

/* One more entry for a running state. */
static struct state take(struct state s, float x, const struct algorithm *alg) {
    if (x == -INFINITY)
        return s;
    if (s.max == -INFINITY)
        return (struct state){x, exp_difference(x, x, alg)};
    float max = fmaxf(s.max, x);
    float factor = s.max == max ? 1 : rescale_factor(s.max, max, alg);
    float sum = ftz(s.sum * factor, alg->flush) + exp_difference(x, max, alg);
    return (struct state){max, ftz(sum, alg->flush)};
}

/* The row's maximum and the sum of exp(x - max). */
static struct state reduce(const double *x, size_t cols, size_t threads,
                           const struct algorithm *alg) {
    struct state *part = calloc(threads, sizeof *part);
    float *sums = calloc(threads, sizeof *sums);
    if (part == NULL || sums == NULL)
        abort();
    struct state result = {-INFINITY, 0};
    if (alg->rescale == RESCALE_ONLINE) {
        for (size_t t = 0; t < threads; t++)
            part[t] = (struct state){-INFINITY, 0};
        for (size_t i = 0; i < cols; i++)
            part[i % threads] = take(part[i % threads], (float)x[i], alg);
        for (size_t step = 1; step < threads; step *= 2)
            for (size_t t = 0; t + step < threads; t += 2 * step)
                part[t] = merge(part[t], part[t + step], alg);
        result = part[0];
    } else {
        for (size_t i = 0; i < cols; i++)
            result.max = fmaxf(result.max, (float)x[i]);
        for (size_t i = 0; i < cols; i++)
            sums[i % threads] += exp_difference((float)x[i], result.max, alg);
        result.sum = tree_sum(sums, threads, alg->flush);
    }
    free(sums);
    free(part);
    return result;
}

static float divide(float a, float b, enum divide_variant how, struct rng *rng) {
    float inverse = 1 / b;
    switch (how) {
    case DIVIDE_NONE:
        break;
    case DIVIDE_IEEE:
        return a / b;
    case DIVIDE_RECIPROCAL:
        return a * inverse;
    case DIVIDE_APPROX: /* rcp.approx is within 1 ulp of the correctly rounded */
        return a * nextafterf(inverse, rng_below(rng, 2) ? INFINITY : -INFINITY);
    }
    return NAN;
}

/* __logf is lg2.approx times ln 2; the product's rounding is most of its error here. */
static float log_sum(float sum, const struct algorithm *alg) {
    return alg->log == LOG_FAST ? log2f(sum) * 0x1.62e43p-1f : logf(sum);
}

void simulate_softmax(float *y, const double *x, size_t cols, size_t threads,
                      const struct algorithm *alg, struct rng *rng) {
    struct state s = reduce(x, cols, threads, alg);
    if (alg->divide == DIVIDE_NONE) { /* exp(x - lse) */
        float lse = ftz(s.max + log_sum(s.sum, alg), alg->flush);
        for (size_t j = 0; j < cols; j++)
            y[j] = exp_difference((float)x[j], lse, alg);
        return;
    }
    for (size_t j = 0; j < cols; j++)
        y[j] = ftz(divide(exp_difference((float)x[j], s.max, alg), s.sum, alg->divide, rng),
                   alg->flush);
}

float simulate_lse(const double *x, size_t cols, size_t threads, const struct algorithm *alg) {
    struct state s = reduce(x, cols, threads, alg);
    return ftz(s.max + log_sum(s.sum, alg), alg->flush);
}

void simulate_log_softmax(float *y, const double *x, size_t cols, size_t threads,
                          const struct algorithm *alg) {
    struct state s = reduce(x, cols, threads, alg);
    for (size_t j = 0; j < cols; j++)
        y[j] = ftz(ftz((float)x[j] - s.max, alg->flush) - log_sum(s.sum, alg), alg->flush);
}
