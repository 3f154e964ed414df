/* tests/oracle/attention_kernels.c - see attention_kernels.h. */
#include "attention_kernels.h"

#include <math.h>
#include <stdlib.h>

#include "gpu_exp.h"
#include "kernels/exp2_poly.h"

#define LOG2E 0x1.715476p0f

enum { MAX_KEYS = 4096, MAX_DIM = 256 };

static double rounded(enum dtype_id type, double x, enum rounding how) {
    const struct dtype *dt = &dtypes[type];
    return dtype_to_double(dt, dtype_from_double(dt, x, how));
}

struct numerics attention_kernel_numerics(const struct attention_kernel *k,
                                          const struct attention_row *row) {
    double n = (double)row->keys_used, d = (double)row->head_dim;
    double tiles = k->tile > 0 ? ceil(n / (double)k->tile) : 1;
    return (struct numerics){
        .in = &dtypes[k->type],
        .acc = &dtypes[DT_F32],
        .out = &dtypes[k->type],
        .exp = k->exp,
        .sum_height = k->tile > 0 ? (double)k->tile - 1 + tiles : fmax(n, 1) - 1,
        .rescales = tiles - 1 + (row->sink != NULL),
        .rescale = tiles > 1 || row->sink != NULL ? RESCALE_ONLINE : RESCALE_NONE,
        .divide = k->divide,
        .log = LOG_LOGF,
        .flush = k->exp != EXP_EXPF,
        .qk = {.height = k->block ? 0 : d, .block = k->block, .bits = k->bits},
        .pv = {.height = k->block ? 0 : n, .block = k->block, .bits = k->bits},
        .tanh = TANH_TANHF,
        .p_type = k->p_type == DT_F32 ? NULL : &dtypes[k->p_type],
        .sum_rounded = k->sum_rounded,
        .divide_first = k->tile == 0,
        .lazy_threshold = k->lazy_threshold,
    };
}

/* ---- sums of products ------------------------------------------------------------------------ */

/* x = s 2^e with e kept at the format's least exponent: what tensor cores align by. */
static int aligned_exponent(double x, int emin) {
    int e = ilogb(x);
    return e < emin ? emin : e;
}

/* c + sum a_i b_i, cut below the largest term. */
static float block_sum(const float *a, const float *b, size_t n, float c, unsigned bits, int emin) {
    int top = -133; /* the H200's clamp */
    for (size_t i = 0; i < n; i++)
        if (a[i] != 0 && b[i] != 0) {
            int e = aligned_exponent(a[i], emin) + aligned_exponent(b[i], emin);
            top = e > top ? e : top;
        }
    if (c != 0)
        top = aligned_exponent(c, -126) > top ? aligned_exponent(c, -126) : top;
    double sum = trunc(ldexp(c, (int)bits - top));
    for (size_t i = 0; i < n; i++)
        sum += trunc(ldexp((double)a[i] * b[i], (int)bits - top));
    return (float)rounded(DT_F32, ldexp(sum, top - (int)bits), ROUND_ZERO);
}

/* c + sum a_i b_i as the kernel does it. */
static float products(const float *a, const float *b, size_t n, float c,
                      const struct attention_kernel *k) {
    if (k->block == 0) {
        for (size_t i = 0; i < n; i++)
            c = fmaf(a[i], b[i], c);
        return c;
    }
    for (size_t i = 0; i < n; i += k->block) {
        size_t some = n - i < k->block ? n - i : k->block;
        c = block_sum(a + i, b + i, some, c, k->bits, dtypes[k->type].emin);
    }
    return c;
}

/* ---- logits ---------------------------------------------------------------------------------- */

static bool visible(const struct attention_row *row, size_t j, enum attention_fault fault) {
    long at = (long)row->query + (long)row->keys_used - (long)row->queries, key = (long)j;
    if (fault == FAULT_TOP_LEFT)
        at = (long)row->query;
    if (row->causal && key > at)
        return false;
    if (row->windowed && j >= row->window_sinks) {
        long left = (long)row->window_left - (fault == FAULT_WINDOW_SHORT ? 1 : 0);
        if (key < at - left || key > at + (long)row->window_right)
            return false;
    }
    return row->mask == NULL || row->mask[j];
}

static float soft(float z, const struct attention_row *row) {
    float cap = (float)row->softcap;
    return cap > 0 ? cap * tanhf(z / cap) : z;
}

/* ex2's argument takes the scale in where nothing stands between. */
static bool scale_folds(const struct attention_row *row, const struct attention_kernel *k) {
    return k->exp == EXP_EX2_FOLDED && row->softcap == 0 && row->bias == NULL &&
           row->alibi_slope == 0;
}

static float logit(const struct attention_row *row, size_t j, const struct attention_kernel *k,
                   enum attention_fault fault) {
    float q[MAX_DIM], key[MAX_DIM];
    float hidden = fault == FAULT_SENTINEL ? -5e4f : -INFINITY;
    bool seen = visible(row, j, fault);
    if (!seen && fault != FAULT_SOFTCAP_LAST)
        return hidden;
    for (size_t i = 0; i < row->head_dim; i++) {
        q[i] = (float)row->q[i];
        key[i] = (float)row->k[j * row->k_stride + i];
    }
    float z = products(q, key, row->head_dim, 0, k);
    if (fault == FAULT_F16_SCORES)
        z = (float)rounded(DT_BF16, z, ROUND_NEAREST);
    if (!scale_folds(row, k))
        z *= (float)row->scale;
    if (fault != FAULT_SOFTCAP_LAST)
        z = soft(z, row);
    if (row->bias != NULL)
        z += (float)row->bias[j];
    if (row->alibi_slope != 0) {
        float far =
            fabsf((float)row->query + (float)row->keys_used - (float)row->queries - (float)j);
        z -= (fault == FAULT_ALIBI_SIGN ? -1 : 1) * (float)row->alibi_slope * far;
    }
    return fault == FAULT_SOFTCAP_LAST ? soft(seen ? z : -INFINITY, row) : z;
}

/* exp(a - b), both in the logits' units. */
static float exp_difference(float a, float b, const struct attention_row *row,
                            const struct attention_kernel *k) {
    float c = scale_folds(row, k) ? (float)row->scale * LOG2E : LOG2E;
    switch (k->exp) {
    case EXP_NONE:
        break;
    case EXP_EXPF:
        return gpu_expf(a - b);
    case EXP_FAST:
        return gpu_expf_fast(a - b);
    case EXP_EX2_FOLDED:
        return gpu_ex2_approx_ftz(fmaf(a, c, -(b * c)));
    case EXP_EX2_POLY:
        return exp2_poly((a - b) * LOG2E);
    }
    return NAN;
}

/* exp(a - b) for two maxima: their difference first. */
static float rescale_factor(float a, float b, const struct attention_row *row,
                            const struct attention_kernel *k) {
    float c = scale_folds(row, k) ? (float)row->scale * LOG2E : LOG2E;
    return k->exp == EXP_EX2_FOLDED ? gpu_ex2_approx_ftz((a - b) * c)
                                    : exp_difference(a, b, row, k);
}

/* ---- the loop over tiles --------------------------------------------------------------------- */

struct state {
    float max, sum, o[MAX_DIM];
};

static float stored_p(float p, const struct attention_kernel *k, enum attention_fault fault) {
    enum rounding how = fault == FAULT_P_TRUNCATED ? ROUND_ZERO : ROUND_NEAREST;
    return k->p_type == DT_F32 ? p : (float)rounded(k->p_type, p, how);
}

/* A rise that is not worth a rescaling keeps the old reference. */
static float next_max(float old, float tile_max, const struct attention_row *row,
                      const struct attention_kernel *k) {
    float max = fmaxf(old, tile_max), c = scale_folds(row, k) ? (float)row->scale : 1;
    bool small = k->lazy_threshold > 0 && old > -INFINITY &&
                 (max - old) * c * LOG2E <= (float)k->lazy_threshold;
    return small ? old : max;
}

static void take_tile(struct state *s, const struct attention_row *row, const float *z, size_t from,
                      size_t to, const struct attention_kernel *k, enum attention_fault fault) {
    float tile_max = -INFINITY, p[MAX_KEYS], sum = 0;
    for (size_t j = from; j < to; j++)
        tile_max = fmaxf(tile_max, z[j]);
    float max = next_max(s->max, tile_max, row, k);
    if (fault == FAULT_MAX_STUCK_AT_ZERO && max == -INFINITY)
        max = 0;
    if (max == -INFINITY)
        return;
    float factor = s->max == -INFINITY ? 0
                   : s->max == max     ? 1
                                       : rescale_factor(s->max, max, row, k);
    for (size_t j = from; j < to; j++) {
        float w = z[j] == -INFINITY ? 0 : exp_difference(z[j], max, row, k);
        p[j] = stored_p(w, k, fault);
        sum += k->sum_rounded ? p[j] : w;
    }
    s->max = max;
    s->sum = s->sum * factor + sum;
    for (size_t c = 0; c < row->value_dim; c++) {
        float column[MAX_KEYS], weight[MAX_KEYS];
        for (size_t j = from; j < to; j++) {
            weight[j - from] = p[j];
            /* what is masked is not read: it may be NaN */
            column[j - from] = z[j] == -INFINITY ? 0 : (float)row->v[j * row->v_stride + c];
        }
        float o = fault == FAULT_NO_RESCALE ? s->o[c] : s->o[c] * factor;
        s->o[c] = products(weight, column, to - from, o, k);
    }
}

static void three_steps(float *o, struct state *s, const struct attention_row *row, const float *z,
                        size_t n, const struct attention_kernel *k, enum attention_fault fault) {
    float p[MAX_KEYS], column[MAX_KEYS];
    for (size_t j = 0; j < n; j++)
        s->max = fmaxf(s->max, z[j]);
    for (size_t j = 0; j < n; j++) {
        p[j] = s->max == -INFINITY ? 0 : exp_difference(z[j], s->max, row, k);
        s->sum += p[j];
    }
    for (size_t j = 0; j < n; j++)
        p[j] = s->sum > 0 ? stored_p(p[j] / s->sum, k, fault) : 0;
    for (size_t c = 0; c < row->value_dim; c++) {
        for (size_t j = 0; j < n; j++)
            column[j] = z[j] == -INFINITY ? 0 : (float)row->v[j * row->v_stride + c];
        o[c] = products(p, column, n, 0, k);
    }
}

void attention_kernel_run(float *o, float *lse, const struct attention_row *row,
                          const struct attention_kernel *k, enum attention_fault fault) {
    static float z[MAX_KEYS];
    struct state s = {.max = fault == FAULT_SENTINEL ? -5e4f : -INFINITY};
    size_t n = row->keys_used;
    if (n > MAX_KEYS || row->head_dim > MAX_DIM || row->value_dim > MAX_DIM)
        abort();
    if (fault == FAULT_TAIL)
        n -= n % k->tile;
    for (size_t j = 0; j < n; j++)
        z[j] = logit(row, j, k, fault);
    if (k->tile == 0) {
        three_steps(o, &s, row, z, n, k, fault);
    } else {
        for (size_t from = 0; from < n; from += k->tile)
            take_tile(&s, row, z, from, n - from < k->tile ? n : from + k->tile, k, fault);
        if (row->sink != NULL && fault != FAULT_NO_SINK) {
            float max = fmaxf(s.max, (float)*row->sink);
            float factor = s.max == -INFINITY ? 0 : s.max == max ? 1 : expf(s.max - max);
            s.sum =
                s.sum * factor + (max == (float)*row->sink ? 1 : gpu_expf((float)*row->sink - max));
            for (size_t c = 0; c < row->value_dim; c++)
                s.o[c] *= factor;
            s.max = max;
        }
        float inverse = 1 / s.sum;
        for (size_t c = 0; c < row->value_dim; c++)
            o[c] = s.sum == 0                       ? 0
                   : k->divide == DIVIDE_RECIPROCAL ? s.o[c] * inverse
                                                    : s.o[c] / s.sum;
    }
    float max = scale_folds(row, k) && s.max > -INFINITY ? s.max * (float)row->scale : s.max;
    *lse = s.sum == 0 ? -INFINITY : max + logf(s.sum);
    if (fault == FAULT_LSE_BASE_2)
        *lse *= LOG2E;
    if (fault == FAULT_UNIFORM && s.sum == 0)
        for (size_t c = 0; c < row->value_dim; c++)
            o[c] = (float)row->v[c];
}
