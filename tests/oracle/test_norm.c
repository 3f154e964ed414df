/*
 * tests/oracle/test_norm.c - layernorm and rmsnorm: enclosures against exact rationals, special
 * rows, properties; budgets against correct kernels, and against wrong ones.
 */
#include "oracle_test.h"

#include <gmp.h>
#include <math.h>

#include "judge.h"
#include "oracle/norm.h"

enum { MAX_COLS = 512 };

typedef status_t norm_enclose_fn(struct enclosure *, const struct norm_row *);
typedef status_t norm_budget_fn(double *, const struct norm_row *, const struct enclosure *,
                                const struct numerics *);
static norm_enclose_fn *const encloses[] = {rmsnorm_enclose, layernorm_enclose};
static norm_budget_fn *const budgets[] = {rmsnorm_budget, layernorm_budget};

enum norm_kind {
    KIND_NORMAL,
    KIND_OFFSET,  /* a mean much larger than the deviations */
    KIND_TINY,    /* deviations near sqrt(eps) */
    KIND_HUGE,    /* squares near the top of f32 */
    KIND_OUTLIER, /* one large entry */
    KIND_CONSTANT,
    KIND_KINDS
};

static void make_row(double *x, size_t cols, enum norm_kind kind, const struct dtype *dt,
                     struct rng *rng) {
    for (size_t i = 0; i < cols; i++) {
        double unit = 0;
        for (size_t k = 0; k < 4; k++)
            unit += rng_unit(rng) - 0.5;
        switch (kind) {
        case KIND_NORMAL:
        case KIND_KINDS:
            x[i] = unit * 1.7;
            break;
        case KIND_OFFSET:
            x[i] = (dt->id == DT_F32 ? 4000 : 1000) + unit;
            break;
        case KIND_TINY:
            x[i] = unit * 0.003;
            break;
        case KIND_HUGE:
            x[i] = unit * (dt->id == DT_F16 ? 1000 : 0x1p55);
            break;
        case KIND_OUTLIER:
            x[i] = i == cols / 2 ? 300 : unit;
            break;
        case KIND_CONSTANT:
            x[i] = 3.140625;
            break;
        }
        x[i] = round_to(dt, x[i]);
    }
}

static void make_weights(double *w, size_t cols, double around, const struct dtype *dt,
                         struct rng *rng) {
    for (size_t i = 0; i < cols; i++)
        w[i] = round_to(dt, around + rng_unit(rng) - 0.5);
}

/* ---- enclosures ------------------------------------------------------------------------------ */

/* out = ((t - bias) / weight) |.|, which grows with t for a positive weight. */
static void signed_square(mpq_t out, double t, double weight, double bias) {
    mpq_t other;
    mpq_init(other);
    mpq_set_d(out, t);
    mpq_set_d(other, bias);
    mpq_sub(out, out, other);
    mpq_set_d(other, weight);
    mpq_div(out, out, other);
    int sign = mpq_sgn(out);
    mpq_mul(out, out, out);
    if (sign < 0)
        mpq_neg(out, out);
    mpq_clear(other);
}

/* want[j] = the normalised value times its magnitude, by the definition, in rationals. */
static void normalise_exactly(mpq_t *want, const double *x, size_t cols, double eps, bool centred) {
    mpq_t mean, total, t, n;
    mpq_inits(mean, total, t, n, NULL);
    mpq_set_ui(n, cols, 1);
    for (size_t i = 0; centred && i < cols; i++) {
        mpq_set_d(t, x[i]);
        mpq_add(mean, mean, t);
    }
    mpq_div(mean, mean, n);
    for (size_t i = 0; i < cols; i++) {
        mpq_set_d(want[i], x[i]);
        mpq_sub(want[i], want[i], mean);
        mpq_mul(t, want[i], want[i]);
        mpq_add(total, total, t);
    }
    mpq_div(total, total, n);
    mpq_set_d(t, eps);
    mpq_add(total, total, t);
    for (size_t i = 0; i < cols; i++) {
        mpq_abs(t, want[i]);
        mpq_mul(want[i], want[i], t);
        mpq_div(want[i], want[i], total);
    }
    mpq_clears(mean, total, t, n, NULL);
}

static void test_rationals(void **state) {
    (void)state;
    enum { COLS = 24 };
    struct rng rng = rng_from_seed(40);
    double x[COLS], w[COLS], b[COLS];
    struct enclosure got[COLS];
    mpq_t want[COLS], lo, hi;
    mpq_inits(lo, hi, NULL);
    for (size_t i = 0; i < COLS; i++)
        mpq_init(want[i]);
    for (size_t i = 0; i < times(600); i++) {
        size_t cols = 1 + (size_t)rng_below(&rng, COLS);
        enum norm_kind kind = (enum norm_kind)(i % KIND_KINDS);
        make_row(x, cols, kind, &dtypes[i % DT_COUNT], &rng);
        if (i % 7 == 0)
            for (size_t j = 0; j < cols; j++)
                x[j] = scaled_unit(&rng, -0.5, -60, 120); /* doubles that no f32 holds */
        make_weights(w, cols, i % 2 ? 1 : -0.7, &dtypes[DT_F32], &rng);
        make_weights(b, cols, 0, &dtypes[DT_F32], &rng);
        bool centred = i % 4 < 2;
        struct norm_row row = {.x = x, .cols = cols, .eps = i % 3 ? 1e-5 : 1e-12};
        if (i % 5 > 0)
            row.weight = w;
        if (i % 5 > 1)
            row.bias = b;
        assert_int_equal(encloses[centred](got, &row), OK);
        normalise_exactly(want, x, cols, row.eps, centred);
        for (size_t j = 0; j < cols; j++) {
            double weight = row.weight ? w[j] : 1, bias = row.bias ? b[j] : 0;
            signed_square(lo, weight > 0 ? got[j].lo : got[j].hi, weight, bias);
            signed_square(hi, weight > 0 ? got[j].hi : got[j].lo, weight, bias);
            CHECK(mpq_cmp(lo, want[j]) <= 0 && mpq_cmp(hi, want[j]) >= 0,
                  "row %zu of kind %d, [%zu]: [%a, %a] excludes the result", i, kind, j, got[j].lo,
                  got[j].hi);
            CHECK(got[j].hi - got[j].lo <= 0x1p-40 * fabs(got[j].lo) + 0x1p-1073,
                  "row %zu, [%zu]: [%a, %a] is wide", i, j, got[j].lo, got[j].hi);
        }
    }
    for (size_t i = 0; i < COLS; i++)
        mpq_clear(want[i]);
    mpq_clears(lo, hi, NULL);
}

static void test_special(void **state) {
    (void)state;
    static const struct {
        double x[4], eps, w, b;
        double layer[4], rms[4]; /* exact results */
    } table[] = {
        {{3, 3, 3, 3}, 1, 2, 0.5, {.5, .5, .5, .5}, {0}},
        {{0, 0, 0, 0}, 1e-12, 2, 0.5, {.5, .5, .5, .5}, {.5, .5, .5, .5}},
        {{0, 0, 0, 0}, 0, 1, 0, {NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN}},
        {{1, -1, 1, -1}, 3, 1, 0, {.5, -.5, .5, -.5}, {.5, -.5, .5, -.5}},
        {{1, NAN, 2, 3}, 1, 1, 0, {NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN}},
        {{1, INFINITY, 2, 3}, 1, 1, 4, {NAN, NAN, NAN, NAN}, {4, NAN, 4, 4}},
        {{1, -1, 1, -1},
         3,
         INFINITY,
         0,
         {INFINITY, -INFINITY, INFINITY, -INFINITY},
         {INFINITY, -INFINITY, INFINITY, -INFINITY}},
        {{0, 0, 0, 0}, 1, INFINITY, 0, {NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN}},
        {{1, -1, 1, -1}, 3, NAN, 0, {NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN}},
        {{1, -1, 1, -1},
         3,
         1,
         -INFINITY,
         {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
         {-INFINITY, -INFINITY, -INFINITY, -INFINITY}},
        /* squares beyond f32, and beyond double */
        {{0x1p100, -0x1p100, 0x1p100, -0x1p100}, 0, 1, 0, {1, -1, 1, -1}, {1, -1, 1, -1}},
        {{0x1p1000, -0x1p1000, 0x1p1000, -0x1p1000}, 1, 1, 0, {0}, {0}},
        /* eps far below the variance, which is far below 1e-6 */
        {{-0x1p-10, -0x1p-10, 0x1p-10, 0x1p-10}, 0, 1, 0, {-1, -1, 1, 1}, {-1, -1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        double w[4], b[4];
        for (size_t j = 0; j < 4; j++) {
            w[j] = table[i].w;
            b[j] = table[i].b;
        }
        struct norm_row row = {
            .x = table[i].x, .cols = 4, .weight = w, .bias = b, .eps = table[i].eps};
        struct enclosure layer[4], rms[4];
        assert_int_equal(layernorm_enclose(layer, &row), OK);
        assert_int_equal(rmsnorm_enclose(rms, &row), OK);
        for (size_t j = 0; j < 4; j++) {
            if (i == 11) { /* 1 but for 2^-2001 */
                assert_true(fabs(layer[j].lo) == 1 || fabs(layer[j].hi) == 1);
                continue;
            }
            CHECK(is_exactly(layer[j], table[i].layer[j]), "layernorm %zu[%zu]: [%a, %a]", i, j,
                  layer[j].lo, layer[j].hi);
            if (i > 0)
                CHECK(is_exactly(rms[j], table[i].rms[j]), "rmsnorm %zu[%zu]: [%a, %a]", i, j,
                      rms[j].lo, rms[j].hi);
        }
    }
    struct enclosure out;
    assert_int_equal(layernorm_enclose(&out, &(struct norm_row){.cols = 0, .eps = 1}), OK);
    assert_int_equal(layernorm_enclose(&out, &(struct norm_row){.eps = -1}), ERR_USAGE);
    assert_int_equal(layernorm_enclose(&out, &(struct norm_row){.eps = NAN}), ERR_USAGE);
    assert_int_equal(rmsnorm_enclose(&out, &(struct norm_row){.contract = NORM_ROUND_FIRST}),
                     ERR_USAGE);
}

/* A row shifted by an exact constant has the same layernorm; scaled by 2^k without eps as well. */
static void test_properties(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(41);
    double x[64], moved[64];
    struct enclosure a[64], b[64];
    for (size_t i = 0; i < times(60); i++) {
        size_t cols = 2 + (size_t)rng_below(&rng, 62);
        make_row(x, cols, KIND_NORMAL, &dtypes[DT_BF16], &rng);
        struct norm_row row = {.x = x, .cols = cols, .eps = 1e-6};
        assert_int_equal(layernorm_enclose(a, &row), OK);
        for (size_t j = 0; j < cols; j++)
            moved[j] = x[j] + 4096;
        row.x = moved;
        assert_int_equal(layernorm_enclose(b, &row), OK);
        for (size_t j = 0; j < cols; j++)
            assert_true(a[j].lo == b[j].lo && a[j].hi == b[j].hi);
        for (size_t j = 0; j < cols; j++)
            moved[j] = ldexp(x[j], 300);
        row.eps = 0;
        assert_int_equal(rmsnorm_enclose(b, &row), OK);
        row.x = x;
        assert_int_equal(rmsnorm_enclose(a, &row), OK);
        for (size_t j = 0; j < cols; j++)
            assert_true(a[j].lo == b[j].lo && a[j].hi == b[j].hi);
    }
}

/* The named contract rounds the normalised value, and only that. */
static void test_round_first(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(42);
    const struct dtype *bf16 = &dtypes[DT_BF16];
    double x[64], w[64];
    struct enclosure plain[64], rounded[64], weighted[64];
    for (size_t i = 0; i < times(60); i++) {
        make_row(x, 64, KIND_NORMAL, bf16, &rng);
        make_weights(w, 64, 1, bf16, &rng);
        struct norm_row row = {.x = x, .cols = 64, .eps = 1e-6};
        assert_int_equal(rmsnorm_enclose(plain, &row), OK);
        row.contract = NORM_ROUND_FIRST;
        row.rounded = bf16;
        assert_int_equal(rmsnorm_enclose(rounded, &row), OK);
        row.weight = w;
        assert_int_equal(rmsnorm_enclose(weighted, &row), OK);
        for (size_t j = 0; j < 64; j++) {
            assert_true(is_exactly(rounded[j], round_to(bf16, plain[j].lo)));
            assert_true(is_exactly(weighted[j], rounded[j].lo * w[j])); /* 16 bits: exact */
        }
    }
    /* A tie, exactly: 257 / 512 lies between two data and goes to the even one. */
    double half[] = {0x1.01p-2, 0x1.01p-2}; /* 257/1024 */
    struct norm_row row = {.x = half, .cols = 2, .contract = NORM_ROUND_FIRST, .rounded = bf16};
    row.eps = 0x1p-2 - 0x1.01p-2 * 0x1.01p-2; /* root of square + eps: 1/2 */
    assert_int_equal(rmsnorm_enclose(rounded, &row), OK);
    assert_true(is_exactly(rounded[0], 0x1p-1)); /* 0x1.01p-1 is a tie */
}

/* ---- kernels --------------------------------------------------------------------------------- */

enum fault {
    FAULT_NONE,
    FAULT_ONE_PASS,    /* in place of the declared variance: O30 */
    FAULT_EPS_LOST,    /* eps added to the count: O33 */
    FAULT_CLAMP,       /* variances under 1e-6 become 0: O31 */
    FAULT_TAIL,        /* the last 1/9 of the row is not counted: O21 */
    FAULT_TRUNCATE,    /* to 16 bits by dropping bits: O38 */
    FAULT_ROUND_TWICE, /* the other contract: O40 */
};

struct kernel {
    const char *name;
    bool centred;
    enum variance_variant variance;
    enum rsqrt_variant rsqrt;
    enum dtype_id type; /* of x, w, b and y */
    enum norm_contract contract;
};

static double height(size_t cols, size_t threads) {
    double h = (double)((cols + threads - 1) / threads) - 1;
    for (size_t t = 1; t < threads; t *= 2)
        h++;
    return h;
}

static struct numerics numerics_of(const struct kernel *k, size_t cols, size_t threads) {
    return (struct numerics){.in = &dtypes[k->type],
                             .acc = &dtypes[DT_F32],
                             .out = &dtypes[k->type],
                             .sum_height = height(cols, threads),
                             .variance = k->variance,
                             .rsqrt = k->rsqrt};
}

/* Thread t sums entries t, t + threads, ...; a tree merges. */
static float tree(float *part, size_t threads) {
    for (size_t step = 1; step < threads; step *= 2)
        for (size_t t = 0; t + step < threads; t += 2 * step)
            part[t] += part[t + step];
    return part[0];
}

static float sum_of(const double *x, size_t cols, size_t threads, float centre, bool square) {
    float part[MAX_COLS] = {0};
    for (size_t i = 0; i < cols; i++) {
        float d = (float)x[i] - centre, term = square ? d * d : (float)x[i];
        part[i % threads] = i < threads ? term : part[i % threads] + term;
    }
    return tree(part, threads);
}

struct moments {
    float n, mean, squares;
};

static struct moments merge(struct moments a, struct moments b) {
    if (b.n == 0)
        return a;
    if (a.n == 0)
        return b;
    float n = a.n + b.n, delta = b.mean - a.mean, share = b.n / n;
    return (struct moments){n, a.mean + delta * share,
                            a.squares + b.squares + delta * delta * (a.n * share)};
}

static struct moments welford(const double *x, size_t cols, size_t threads) {
    struct moments part[MAX_COLS] = {{0}};
    for (size_t i = 0; i < cols; i++) {
        struct moments *p = &part[i % threads];
        float v = (float)x[i], delta = v - p->mean;
        p->n += 1;
        p->mean += delta / p->n;
        p->squares += delta * (v - p->mean);
    }
    for (size_t step = 1; step < threads; step *= 2)
        for (size_t t = 0; t + step < threads; t += 2 * step)
            part[t] = merge(part[t], part[t + step]);
    return part[0];
}

static float truncated(const struct dtype *dt, double x) {
    return (float)dtype_to_double(dt, dtype_from_double(dt, x, ROUND_ZERO));
}

static void simulate(float *y, const struct norm_row *row, size_t threads, const struct kernel *k,
                     enum fault fault, struct rng *rng) {
    const double *x = row->x;
    size_t cols = fault == FAULT_TAIL ? row->cols - row->cols / 9 : row->cols;
    float n = (float)row->cols, mean = 0, variance;
    if (!k->centred) {
        variance = sum_of(x, cols, threads, 0, true) / n;
    } else if (fault == FAULT_ONE_PASS || k->variance == VARIANCE_ONE_PASS) {
        mean = sum_of(x, cols, threads, 0, false) / n;
        variance = sum_of(x, cols, threads, 0, true) / n - mean * mean;
    } else if (k->variance == VARIANCE_WELFORD) {
        struct moments m = welford(x, cols, threads);
        mean = m.mean;
        variance = m.squares / n;
    } else {
        mean = sum_of(x, cols, threads, 0, false) / n;
        variance = sum_of(x, cols, threads, mean, true) / n;
    }
    if (fault == FAULT_CLAMP && variance < 1e-6f)
        variance = 0;
    float eps = (float)row->eps;
    float sum = fault == FAULT_EPS_LOST ? variance * n / (n + eps) : variance + eps;
    float scale = 1 / sqrtf(sum);
    if (k->rsqrt == RSQRT_APPROX)
        scale = nextafterf(scale, rng_below(rng, 2) ? INFINITY : 0);
    const struct dtype *dt = &dtypes[k->type];
    bool first = (row->contract == NORM_ROUND_FIRST) != (fault == FAULT_ROUND_TWICE);
    for (size_t j = 0; j < row->cols; j++) {
        float v = ((float)x[j] - mean) * scale;
        if (first)
            v = (float)round_to(dt, v);
        if (row->weight != NULL)
            v *= (float)row->weight[j];
        if (row->bias != NULL)
            v += (float)row->bias[j];
        y[j] = fault == FAULT_TRUNCATE ? truncated(dt, v) : (float)round_to(dt, v);
    }
}

static const struct kernel kernels[] = {
    {"rms f32", false, VARIANCE_NONE, RSQRT_IEEE, DT_F32, NORM_ROUND_LAST},
    {"rms f32 rsqrt", false, VARIANCE_NONE, RSQRT_APPROX, DT_F32, NORM_ROUND_LAST},
    {"rms bf16", false, VARIANCE_NONE, RSQRT_APPROX, DT_BF16, NORM_ROUND_LAST},
    {"rms bf16, rounded first", false, VARIANCE_NONE, RSQRT_APPROX, DT_BF16, NORM_ROUND_FIRST},
    {"layer f32 two-pass", true, VARIANCE_TWO_PASS, RSQRT_IEEE, DT_F32, NORM_ROUND_LAST},
    {"layer f32 Welford", true, VARIANCE_WELFORD, RSQRT_APPROX, DT_F32, NORM_ROUND_LAST},
    {"layer f32 one-pass", true, VARIANCE_ONE_PASS, RSQRT_IEEE, DT_F32, NORM_ROUND_LAST},
    {"layer f16 two-pass", true, VARIANCE_TWO_PASS, RSQRT_APPROX, DT_F16, NORM_ROUND_LAST},
    {"layer bf16 Welford", true, VARIANCE_WELFORD, RSQRT_APPROX, DT_BF16, NORM_ROUND_LAST},
    {"layer f16, rounded first", true, VARIANCE_TWO_PASS, RSQRT_APPROX, DT_F16, NORM_ROUND_FIRST},
};

struct norm_case {
    double x[MAX_COLS], w[MAX_COLS], b[MAX_COLS], budget[MAX_COLS];
    struct enclosure want[MAX_COLS];
    float y[MAX_COLS];
    struct norm_row row;
};

/* The worst rho of one row: at most for a correct kernel, at least for a wrong one. */
static double worst_rho(struct norm_case *c, size_t threads, const struct kernel *k,
                        enum fault fault, struct rng *rng) {
    struct numerics nu = numerics_of(k, c->row.cols, threads);
    assert_int_equal(encloses[k->centred](c->want, &c->row), OK);
    assert_int_equal(budgets[k->centred](c->budget, &c->row, c->want, &nu), OK);
    simulate(c->y, &c->row, threads, k, fault, rng);
    double worst = 0;
    for (size_t j = 0; j < c->row.cols; j++) {
        const struct dtype *dt = &dtypes[k->type];
        if (isinf(c->budget[j])) /* one pass: not even a number is promised */
            continue;
        double r = fault == FAULT_NONE ? rho_of(dt, c->y[j], c->want[j], c->budget[j])
                                       : rho_at_least(dt, c->y[j], c->want[j], c->budget[j]);
        worst = fmax(worst, r);
    }
    return worst;
}

static size_t make_case(struct norm_case *c, const struct kernel *k, size_t cols,
                        enum norm_kind kind, size_t extras, struct rng *rng) {
    static const size_t choices[] = {1, 4, 32, MAX_COLS};
    const struct dtype *dt = &dtypes[k->type];
    make_row(c->x, cols, kind, dt, rng);
    make_weights(c->w, cols, 1, dt, rng);
    make_weights(c->b, cols, 0, dt, rng);
    c->row = (struct norm_row){.x = c->x,
                               .cols = cols,
                               .weight = extras > 0 ? c->w : NULL,
                               .bias = extras > 1 ? c->b : NULL,
                               .eps = (float)1e-5,
                               .contract = k->contract,
                               .rounded = dt};
    return choices[rng_below(rng, 4)];
}

static void test_budgets(void **state) {
    (void)state;
    static struct norm_case c;
    static const size_t sizes[] = {1, 2, 3, 4, 7, 16, 100, MAX_COLS};
    for (size_t a = 0; a < sizeof kernels / sizeof kernels[0]; a++) {
        const struct kernel *k = &kernels[a];
        struct rng rng = rng_from_seed(43 + a);
        double worst = 0, long_worst = 0;
        size_t void_rows = 0;
        for (size_t i = 0; i < times(900); i++) {
            size_t cols = sizes[i % 8];
            enum norm_kind kind = (enum norm_kind)(i / 8 % KIND_KINDS);
            size_t threads = make_case(&c, k, cols, kind, i % 3, &rng);
            double r = worst_rho(&c, threads, k, FAULT_NONE, &rng);
            CHECK(r <= 1, "%s, row %zu: kind %d, %zu columns by %zu threads: rho %g", k->name, i,
                  kind, cols, threads, r);
            /* a long chain of roundings and a large mean: theory promises nothing */
            void_rows += isinf(c.budget[0]) && kind != KIND_OFFSET;
            worst = fmax(worst, r);
            if (cols >= 100)
                long_worst = fmax(long_worst, r);
        }
        print_message("%s: worst rho %.3f, %.3f of 100 columns and more, %zu rows void\n", k->name,
                      worst, long_worst, void_rows);
        assert_true(worst >= 0.3);
        assert_true(k->variance == VARIANCE_ONE_PASS || void_rows == 0);
    }
}

/* Each fault breaks the budget of the kernel that it is planted in. */
static void test_faults(void **state) {
    (void)state;
    static struct norm_case c;
    static const struct {
        enum fault fault;
        size_t kernel, cols;
        enum norm_kind kind;
    } planted[] = {
        {FAULT_ONE_PASS, 4, 512, KIND_OFFSET},    {FAULT_ONE_PASS, 5, 512, KIND_OFFSET},
        {FAULT_EPS_LOST, 4, 100, KIND_TINY},      {FAULT_EPS_LOST, 0, 100, KIND_TINY},
        {FAULT_EPS_LOST, 4, 16, KIND_CONSTANT},   {FAULT_EPS_LOST, 8, 100, KIND_TINY},
        {FAULT_CLAMP, 4, 4, KIND_TINY},           {FAULT_TAIL, 0, 128, KIND_NORMAL},
        {FAULT_TAIL, 2, 128, KIND_NORMAL},        {FAULT_TAIL, 5, 128, KIND_NORMAL},
        {FAULT_TRUNCATE, 2, 128, KIND_NORMAL},    {FAULT_TRUNCATE, 7, 128, KIND_NORMAL},
        {FAULT_ROUND_TWICE, 2, 128, KIND_NORMAL}, {FAULT_ROUND_TWICE, 3, 128, KIND_NORMAL},
        {FAULT_ROUND_TWICE, 9, 128, KIND_NORMAL},
    };
    struct rng rng = rng_from_seed(60);
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        const struct kernel *k = &kernels[planted[i].kernel];
        make_case(&c, k, planted[i].cols, planted[i].kind, 1, &rng);
        if (planted[i].fault == FAULT_CLAMP)
            for (size_t j = 0; j < 4; j++) {
                c.x[j] = j < 2 ? -0x1.0p-11 : 0x1.0p-11;
                c.row.eps = 0x1p-40;
            }
        double r = worst_rho(&c, 32, k, planted[i].fault, &rng);
        CHECK(r > 1, "%s with fault %d goes unseen: rho %g", k->name, planted[i].fault, r);
    }
}

static void test_refusals(void **state) {
    (void)state;
    double x[] = {1, 2}, budget[2];
    struct norm_row row = {.x = x, .cols = 2, .eps = 1};
    struct enclosure want[2];
    assert_int_equal(layernorm_enclose(want, &row), OK);
    struct numerics nu = numerics_of(&kernels[4], 2, 1);
    nu.variance = VARIANCE_NONE;
    assert_int_equal(layernorm_budget(budget, &row, want, &nu), ERR_UNSUPPORTED);
    assert_int_equal(rmsnorm_budget(budget, &row, want, &nu), OK);
    nu.rsqrt = RSQRT_NONE;
    assert_int_equal(rmsnorm_budget(budget, &row, want, &nu), ERR_UNSUPPORTED);
    /* squares that overflow f32: a correct kernel may give anything (O17) */
    double huge[] = {0x1p70, -0x1p70};
    row.x = huge;
    assert_int_equal(layernorm_enclose(want, &row), OK);
    nu = numerics_of(&kernels[4], 2, 1);
    assert_int_equal(layernorm_budget(budget, &row, want, &nu), OK);
    assert_true(isinf(budget[0]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rationals),  cmocka_unit_test(test_special),
        cmocka_unit_test(test_properties), cmocka_unit_test(test_round_first),
        cmocka_unit_test(test_budgets),    cmocka_unit_test(test_faults),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
