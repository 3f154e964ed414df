/*
 * oracle/bounds_attention.c - budgets of attention.  docs/bounds.md, "Attention", whose names are
 * used here: D_j the error of logit j, eta_j the relative error of its weight (common to numerator
 * and sum), nu_j what the numerator alone adds, den that of the sum.
 */
#include <math.h>
#include <stdlib.h>

#include "oracle/attention.h"
#include "oracle/bounds_impl.h"
#include "oracle/simd_attention.h"

/*
 * x = high + low + left, tf32x3: |x - high| <= 2^-11 |x|, and the core cuts low to 11 bits: left is
 * 2^-21 |x| at most.  Of a product the two lefts, 2 2^-21 (1 + 2^-11), and low low, 2^-22.
 */
#define TF32X3_LEFT_OUT 0x1.48p-20

/* One visible key, or the sink. */
struct key {
    size_t j;        /* its slot; SIZE_MAX for the sink */
    double z, error; /* the logit in double; D: the kernel's distance from the real one, and z's */
    double own;      /* of that, z's */
    double p;        /* P_j, rounded up */
    double weight;   /* e^(z_j - m), rounded up */
    double eta;      /* of the weight */
    double rounding; /* of P to p_type, relative to P (1 + eta) */
    double rescalings;
    bool vanished; /* below e^-128 of the largest, as computed and as real */
};

struct bound {
    const struct attention_row *row;
    const struct numerics *nu;
    struct division division;
    struct exp_facts exp;
    struct key *keys;
    double *sorted;           /* z + D of all, ascending: what the kernel may have at most */
    size_t count, visible;    /* with and without the sink */
    double pv_blocks;         /* tensor core blocks with a visible key */
    double pv_error;          /* of P v's accumulation */
    bool folded_scale;        /* scale log2(e) is one constant inside ex2's argument */
    double top, upper;        /* m = max z; max z + D */
    double worst;             /* of keys that count: |the kernel's maximum - m| at most */
    double largest_q;
    double own;               /* the largest error that a z has for being computed in double */
    double largest;           /* magnitude of a partial result */
    double share, log_sum;    /* 1/S and log S, rounded up */
    double floor;             /* what underflow may take of one weight */
    double den;               /* relative error of the sum */
    double denominator_noise; /* of it, what the sum's own additions make */
    bool void_;
};

/* ---- logits ---------------------------------------------------------------------------------- */

/*
 * One tensor core block keeps `bits` fraction bits below the largest term, of block products and
 * the accumulator, and cuts the sum to f32, or to `bits` where that is less.
 */
static double block_error(const struct accumulation *a) {
    return ((double)a->block + 1) * ldexp(1, -(int)a->bits) +
           ldexp(1, a->bits < 23 ? -(int)a->bits : -23);
}

double accumulation_error(const struct accumulation *a, double n, double blocks) {
    const double additions = grown(fmin(a->height, n), U32);
    if (a->block == 0)
        return additions;
    if (a->run > 0)
        blocks = fmin(blocks, ceil(a->run / a->block));
    if (a->tensor_core != TENSOR_CORE_TF32X3)
        return compound(grown(blocks, block_error(a)), additions);
    double cuts = grown(3 * blocks, block_error(a) * (1 + 0x1p-9));
    return compound(compound(TF32X3_LEFT_OUT, cuts), additions);
}

/*
 * Absolute: products with a subnormal operand are aligned as if it were normal, 2^emin, and an
 * accumulator below 2^-126 has a fixed step.  largest: of either operand.
 */
static double accumulation_floor(const struct accumulation *a, double n, double blocks,
                                 const struct dtype *dt, double largest) {
    if (a->block == 0)
        return n * 0x1p-149;
    double aligned = dtype_min_normal(dt) * fmax(largest, dtype_min_normal(dt));
    if (a->tensor_core == TENSOR_CORE_TF32X3) /* a low part below 2^-126 loses 13 bits, too */
        return 3 * blocks * (block_error(a) * aligned + 0x1p-147) + n * (largest + 1) * 0x1p-136; /* P is 1 at most */
    return blocks * (block_error(a) * aligned + 0x1p-147);
}

static double round32(const struct bound *b, double magnitude) {
    return rounding_error(b->nu->acc, magnitude, b->nu->flush);
}

/* z after tanh; *error grows or shrinks with it. */
static double soften(const struct bound *b, double z, double *error) {
    double cap = b->row->softcap, x = z / cap;
    if (isinf(x)) {
        *error = 4 * round32(b, cap) + (b->nu->tanh == TANH_FAST ? TANH_FAST_ERROR * cap : 0);
        return copysign(cap, x);
    }
    double moved = (*error + 2 * round32(b, fabs(z) + *error)) / cap;
    double flat = 1 / cosh(fmin(fmax(0, fabs(x) - moved), 300));
    double t = tanh(x), err = fmin(2, flat * flat * moved * (1 + 0x1p-40));
    double size = fmin(1, fabs(t) + err);
    err += b->nu->tanh == TANH_FAST ? TANH_FAST_ERROR * size : 5 * round32(b, size);
    *error = cap * (err + 0x1p-50) + round32(b, cap * (size + err));
    return cap * t;
}

/* fmax, inline. */
static double larger_of(double a, double b) {
    return b > a ? b : a;
}

static void bound_logit(struct bound *b, struct key *key) {
    const struct attention_row *row = b->row;
    if (row->head_dim == 0) { /* given: exact, in the kernel as in double */
        *key = (struct key){.j = key->j, .z = row->bias[key->j]};
        return;
    }
    const double *k = row->k + key->j * row->k_stride;
    double largest = b->largest_q, n = (double)row->head_dim, sums[4] = {0}, sizes[4] = {0};
    for (size_t i = 0; i < row->head_dim; i++) { /* four chains of additions, not one */
        double product = row->q[i] * k[i];
        sums[i % 4] += product;
        sizes[i % 4] += fabs(product);
    }
    for (size_t i = 0; i < row->head_dim && b->nu->qk.block > 0; i++)
        largest = larger_of(largest, fabs(k[i]));
    double z = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double size = (sizes[0] + sizes[1]) + (sizes[2] + sizes[3]);
    const double blocks = ceil(n / fmax(1, b->nu->qk.block));
    double own = size * (n + 4) * 0x1p-52;
    double error = size * accumulation_error(&b->nu->qk, n, blocks) + own +
                   accumulation_floor(&b->nu->qk, n, blocks, b->nu->in, largest);
    if (!isfinite(z)) { /* an input was: -Inf has weight 0, and tanh makes either +-softcap */
        bool capped = row->softcap > 0;
        *key = (struct key){.j = key->j, .z = -INFINITY};
        if (!capped)
            return;
        z = copysign(INFINITY, z * row->scale);
        size = own = error = 0;
    }
    b->largest = fmax(b->largest, size + error); /* before scaling, too */
    z *= row->scale;
    error *= fabs(row->scale);
    if (!b->folded_scale && isfinite(z))
        error += round32(b, fabs(z) + error);
    if (row->softcap > 0)
        z = soften(b, z, &error);
    if (row->bias != NULL) {
        z += row->bias[key->j];
        error += round32(b, fabs(z) + error) + fabs(row->bias[key->j]) * 0x1p-52;
    }
    if (row->alibi_slope != 0) {
        double far = fabs((double)row->query + (double)row->keys_used - (double)row->queries -
                          (double)key->j);
        double slant = row->alibi_slope * far;
        z -= slant;
        error += round32(b, fabs(slant)) + fabs(slant) * 0x1p-52;
        error += round32(b, fabs(z) + error);
    }
    own = own * fabs(row->scale) + (fabs(z) + row->softcap) * 0x1p-48;
    key->z = z;
    key->error = error + own;
    key->own = own;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The logits, which of them count, their order, m, S. */
static void bound_logits(struct bound *b) {
    double lower = -INFINITY; /* the kernel's maximum is at least this */
    b->top = b->upper = -INFINITY;
    for (size_t i = 0; i < b->row->head_dim; i++)
        b->largest_q = larger_of(b->largest_q, fabs(b->row->q[i]));
    for (size_t i = 0; i < b->count; i++) {
        struct key *key = &b->keys[i];
        if (key->j == SIZE_MAX)
            *key = (struct key){.j = SIZE_MAX, .z = *b->row->sink};
        else
            bound_logit(b, key);
        b->top = fmax(b->top, key->z);
        b->upper = fmax(b->upper, key->z + key->error);
        lower = fmax(lower, key->z - key->error);
        b->sorted[i] = key->z + key->error;
    }
    b->worst = fmax(b->upper - b->top, b->top - lower);
    /* A finite sentinel of -1e9 or -FLT_MAX has a D of its own, and it does not matter. */
    for (size_t i = 0; i < b->count; i++) {
        struct key *key = &b->keys[i];
        key->vanished = key->z + key->error < lower + VANISHED;
        if (!key->vanished)
            b->own = fmax(b->own, key->own);
        /* folded, a first tile of them has a maximum whose product by log2(e) must not overflow */
        if (!key->vanished || (b->nu->exp == EXP_EX2_FOLDED && isfinite(key->z)))
            b->largest = fmax(b->largest, fabs(key->z) + key->error);
    }
    qsort(b->sorted, b->count, sizeof *b->sorted, compare_doubles);
    double sum = 0, slack = 0x1p-40 + (double)b->count * 0x1p-52;
    for (size_t i = 0; i < b->count; i++)
        sum += exp(b->keys[i].z - b->top);
    const double off = expm1(2 * b->own) * (1 + 0x1p-40); /* of e^(z - m), for the doubles' sake */
    b->share = (1 + slack) * (1 + off) / sum;
    b->log_sum = log(sum) * (1 + 0x1p-50) + slack + off;
    for (size_t i = 0; i < b->count; i++) {
        struct key *key = &b->keys[i];
        key->weight =
            key->vanished ? VANISHED_SIZE : exp(key->z - b->top) * (1 + slack) * (1 + off);
        key->p = fmin(1, key->weight * b->share);
    }
}

/* ---- weights --------------------------------------------------------------------------------- */

/* How many other logits may, as computed, lie above this one or beside it. */
static double possibly_above(const struct bound *b, const struct key *key) {
    double from = key->z - key->error;
    size_t lo = 0, hi = b->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (b->sorted[mid] >= from)
            hi = mid;
        else
            lo = mid + 1;
    }
    return (double)(b->count - lo) - 1; /* itself is among them */
}

/* Relative error of a number in (0, 1 + eta] rounded to p_type; its size here is at most `size`. */
static double p_rounding(const struct bound *b, double size) {
    const struct dtype *dt = b->nu->p_type;
    double half_step = ldexp(1, dt->emin - (int)dt->prec);
    double in_our_units = b->nu->divide_first ? 1 : exp(b->worst);
    return fmin(1, fmax(unit_roundoff(dt), size > 0 ? half_step * in_our_units / size : 1));
}

static void bound_weight(struct bound *b, struct key *key) {
    const struct numerics *nu = b->nu;
    const bool folded = nu->exp == EXP_EX2_FOLDED, lazy = nu->lazy_threshold > 0;
    const double threshold = nu->lazy_threshold * M_LN2 * (1 + 0x1p-50);
    if (key->vanished) { /* `floor` has it */
        key->rounding = 1;
        return;
    }
    double above = possibly_above(b, key), far = b->upper - key->z + key->error;
    double rescalings = fmin(nu->rescales, above);
    if (lazy)
        rescalings = fmin(rescalings, floor(far / threshold) + 1);
    double exps = rescalings + 1 + (nu->parts > 0);
    if (!folded && !lazy)
        exps = fmin(exps, above);
    double slope = b->exp.slope;
    if (folded && b->folded_scale)
        slope = compound(slope, U32);
    double d = slope * (far + 2 * threshold);
    if (folded)
        d += (1 + 3 * slope) * U32 * (fmax(fabs(key->z), fabs(b->top)) + key->error + b->worst);
    if (nu->parts > 0) { /* the maximum of its part lies between it and the row's */
        double size = fmax(fabs(key->z), fabs(b->upper)) + key->error + b->worst;
        d += 6 * U32 * (size + log((double)b->count) + 1);
        rescalings += nu->parts + 2;
    }
    if (nu->flush)
        d += 2 * exps * dtype_min_normal(nu->acc);
    key->eta = compound(expm1(key->error + d) * (1 + 0x1p-50), grown(exps, b->exp.ulps * 0x1p-23));
    key->rescalings = rescalings;
    bool exactly_one = above == 0 && !folded && !lazy && !nu->divide_first;
    if (nu->p_type != NULL && !exactly_one)
        key->rounding = p_rounding(b, (nu->divide_first ? key->p : key->weight) * (1 + key->eta));
}

static void bound_weights(struct bound *b) {
    const struct numerics *nu = b->nu;
    double flushed = nu->flush ? dtype_min_normal(nu->acc) : 0;
    double product = rounding_error(nu->acc, dtype_min_normal(nu->acc), nu->flush);
    /* Relative to S >= 1 in the kernel's own units, which are e^worst off ours at most. */
    b->floor = (b->exp.floor + VANISHED_SIZE + flushed + nu->rescales * (b->exp.floor + product)) *
               2 * b->share * exp(2 * b->worst);
    for (size_t i = 0; i < b->count; i++) {
        struct key *key = &b->keys[i];
        bound_weight(b, key);
        if (nu->sum_rounded) {
            key->eta = compound(key->eta, key->rounding);
            key->rounding = 0;
        }
        double height = fmin(nu->sum_height, (double)b->count - 1);
        double noise = key->p * (1 + key->eta) * grown(height + key->rescalings, U32);
        b->denominator_noise += noise;
        b->den += key->p * key->eta + noise;
    }
    b->den += (double)b->count * b->floor;
    b->denominator_noise += (double)b->count * b->floor;
}

/* ---- o and lse ------------------------------------------------------------------------------- */

/* Sums over the keys: the formula of docs/bounds.md, "o".  Of one key with a value. */
static void add_key(const struct column_terms *s, const struct bound *b, const struct key *key) {
    const struct numerics *nu = b->nu;
    double alone = compound(b->pv_error, grown(key->rescalings, U32));
    alone = compound(alone, key->rounding);
    if (nu->divide_first)
        alone = compound(alone, b->division.rel + (b->division.nearest ? U32 : 0));
    attention_simd()->grant(s, b->row->v + key->j * b->row->v_stride, b->row->value_dim,
                            key->p * key->eta, key->p * (1 + key->eta), alone, b->floor);
}

/* The sink: a key with v = 0. */
static void add_sink(const struct column_terms *s, const struct bound *b, const struct key *key) {
    for (size_t c = 0; c < b->row->value_dim; c++) {
        s->moved[c] += key->p * key->eta * s->size[c];
        s->noise[c] += b->floor * s->size[c];
    }
}

static double column_bound(const struct bound *b, const struct column_terms *s, size_t c) {
    const struct numerics *nu = b->nu;
    const double size = s->size[c], largest = s->largest[c], n = (double)b->visible;
    const struct dtype *p_type = nu->p_type != NULL ? nu->p_type : nu->acc;
    double noise = s->noise[c] +
                   accumulation_floor(&nu->pv, n, b->pv_blocks, p_type, largest) * exp(2 * b->worst);
    if (nu->divide_first)
        noise += n * largest * 0x1p-149;
    double err = (s->moved[c] + noise + size * b->denominator_noise) / (1 - b->den);
    /* The unnormalised numerator: S times as large, and more under a lazy maximum. */
    double held = largest * n * (1 + b->den) * exp2(nu->lazy_threshold);
    if (!(held <= dtype_max(nu->acc)))
        return INFINITY;
    if (!nu->divide_first) {
        double slip = (size + err) * b->division.rel;
        err += slip + last_rounding(&b->division, size + err + slip, nu);
    }
    return outward(with_output(err, size, nu), b->count + b->row->value_dim);
}

static status_t bound_columns(double *o_budget, const struct bound *b, const struct enclosure *o) {
    const size_t n = b->row->value_dim;
    double *memory = calloc(6 * n + 1, sizeof *memory), *lo = memory, *hi = lo + n, *size = hi + n;
    const struct column_terms s = {lo, hi, size, size + n, size + 2 * n, size + 3 * n};
    if (memory == NULL)
        return FAIL(ERR_NOMEM, "bounds: no memory for a head of %zu", n);
    for (size_t c = 0; c < n; c++) {
        lo[c] = o[c].lo;
        hi[c] = o[c].hi;
        size[c] = fmax(fabs(lo[c]), fabs(hi[c]));
    }
    for (size_t i = 0; i < b->count; i++)
        if (b->keys[i].j == SIZE_MAX)
            add_sink(&s, b, &b->keys[i]);
        else
            add_key(&s, b, &b->keys[i]);
    for (size_t c = 0; c < n; c++)
        if (!enclosure_is_nan(o[c]) && !isinf(o[c].lo))
            o_budget[c] = column_bound(b, &s, c);
    free(memory);
    return OK;
}

static double lse_bound(const struct bound *b, struct enclosure lse, double of_log) {
    double moved = b->den / (1 - b->den);
    double size = fmax(fabs(lse.lo), fabs(lse.hi)), err = moved + of_log;
    /* the maximum times the scale, and log2 to log, may round once more each */
    err += U32 * (b->log_sum + moved + fabs(b->top) + b->worst) *
           (b->nu->exp == EXP_EX2_FOLDED ? 3 : 0);
    if (b->nu->lazy_threshold >
        0) /* the reference is not the maximum: its log is that much longer */
        err += U32 * 8 * b->nu->lazy_threshold;
    err += round32(b, size + err);
    return outward(err, b->count);
}

static status_t bound_init(struct bound *b, const struct attention_row *row,
                           const struct numerics *nu) {
    *b = (struct bound){.row = row, .nu = nu};
    status_t st = OK;
    TRY(check_types(nu));
    TRY(division_of(&b->division, nu));
    if (nu->acc->id != DT_F32)
        return FAIL(ERR_UNSUPPORTED, "bounds: attention accumulates in f32, not %s", nu->acc->name);
    if (nu->exp == EXP_NONE || (row->softcap > 0 && nu->tanh == TANH_NONE))
        return FAIL(ERR_UNSUPPORTED, "bounds: the kernel's numerics do not say how it computes %s",
                    nu->exp == EXP_NONE ? "exp" : "tanh");
    b->exp = exp_facts_of(nu);
    b->folded_scale = nu->exp == EXP_EX2_FOLDED && row->softcap == 0 && row->bias == NULL &&
                      row->alibi_slope == 0;
    b->keys = calloc(row->keys_used + 1, sizeof *b->keys);
    b->sorted = calloc(row->keys_used + 1, sizeof *b->sorted);
    if (b->keys == NULL || b->sorted == NULL)
        TRY(FAIL(ERR_NOMEM, "bounds: no memory for %zu keys", row->keys_used));
    for (size_t j = 0; j < row->keys_used; j++)
        if (attention_visible(row, j))
            b->keys[b->count++].j = j;
    b->visible = b->count;
    if (b->count > 0 && nu->pv.block > 0) { /* which need not begin at a multiple of `block` */
        double span = (double)(b->keys[b->count - 1].j - b->keys[0].j);
        b->pv_blocks = fmin((double)b->count, ceil(span / nu->pv.block) + 1);
    }
    if (row->sink != NULL)
        b->keys[b->count++].j = SIZE_MAX;
done:
    return st;
}

static void bound_clear(struct bound *b) {
    free(b->keys);
    free(b->sorted);
}

static bool only_class(const struct attention_bound *at) {
    return enclosure_is_nan(*at->lse) || isinf(at->lse->lo); /* NaN, overflow, or empty */
}

static status_t bound_results(const struct attention_bound *at, struct bound *b, double of_log) {
    const size_t n = b->row->value_dim;
    *at->lse_budget = b->void_ ? INFINITY : lse_bound(b, *at->lse, of_log);
    if (!b->void_)
        return bound_columns(at->o_budget, b, at->o);
    for (size_t c = 0; c < n; c++)
        if (!enclosure_is_nan(at->o[c]) && !isinf(at->o[c].lo))
            at->o_budget[c] = INFINITY;
    return OK;
}

status_t attention_budgets(const struct attention_bound *at, size_t count,
                           const struct attention_row *row, const struct numerics *nu) {
    struct bound b;
    bool wanted = false;
    double of_log = 0;
    status_t st = OK;
    TRY(bound_init(&b, row, nu));
    for (size_t k = 0; k < count; k++) {
        *at[k].lse_budget = 0;
        for (size_t c = 0; c < row->value_dim; c++)
            at[k].o_budget[c] = 0;
        wanted |= !only_class(&at[k]);
    }
    if (!wanted)
        goto done;
    bound_logits(&b);
    bound_weights(&b);
    b.pv_error = accumulation_error(&nu->pv, (double)b.visible, b.pv_blocks);
    TRY(log_rounding(&of_log, nu, b.log_sum, fmin(1, b.den)));
    b.void_ = !(b.den < 0.5) || !(b.largest * 1.5 <= dtype_max(nu->acc));
    for (size_t k = 0; k < count; k++)
        if (!only_class(&at[k]))
            TRY(bound_results(&at[k], &b, of_log));
done:
    bound_clear(&b);
    return st;
}

status_t attention_budget(double *o_budget, double *lse_budget, const struct attention_row *row,
                          const struct enclosure *o, const struct enclosure *lse,
                          const struct numerics *nu) {
    const struct attention_bound at = {o_budget, lse_budget, o, lse};
    return attention_budgets(&at, 1, row, nu);
}
