/*
 * tests/gate/bench_oracle.c - how many elements the judge decides per second, verdict included: by
 * the tiers, and by MPFR alone.
 *
 *   bench_oracle [ROWS [COLS]]
 *
 * f32 softmax, 2048 rows of 4096 unless told, in cases of 64; and f32 attention, heads of 64 and 128,
 * of ROWS / 8 queries on COLS / 4 and on COLS keys.  One thread, processor time.  A judgement is what `assay gate` does with a kernel's output: the
 * truth, budgets, comparisons, from memory to verdict.  The tiers judge all rows PASSES times and the
 * fastest counts (the machine may be shared); MPFR alone judges the first rows; its verdict and its
 * largest rho are held against those of the tiers on the same rows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "gate/judge.h"
#include "oracle/simd_row.h"
#include "oracle/tier_attention.h"
#include "oracle/ulp.h"
#include "tests/gate/fake.h"

#define THREADS 256
#define CASE_ROWS 64
#define PASSES 7

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Entries t, t + 256, ... by thread t, then a tree: height ceil(cols / 256) + 8. */
static void block_softmax(float *y, const float *x, struct case_dims d, uint64_t seed,
                          struct dev_run *run) {
    (void)seed, (void)run;
    for (size_t r = 0; r < d.rows; r++, x += d.cols, y += d.cols) {
        float max = -INFINITY, sums[THREADS] = {0};
        for (size_t j = 0; j < d.cols; j++)
            max = fmaxf(max, x[j]);
        for (size_t j = 0; j < d.cols; j++)
            sums[j % THREADS] += y[j] = expf(x[j] - max);
        for (size_t half = THREADS / 2; half > 0; half /= 2)
            for (size_t t = 0; t < half; t++)
                sums[t] += sums[t + half];
        for (size_t j = 0; j < d.cols; j++)
            y[j] /= sums[0];
    }
}

static float *new_floats(size_t n) {
    float *p = calloc(n, sizeof *p);
    if (!p)
        exit(3);
    return p;
}

static void print_shares(const uint64_t *decided, double all) {
    printf("decided by");
    for (int tier = 0; tier < TIER_COUNT; tier++)
        printf("  %s %llu (%.3g)", tier_name((enum tier)tier), (unsigned long long)decided[tier],
               (double)decided[tier] / all);
    printf("\n");
}

struct result {
    struct judgement j;
    double seconds;
};

static void check(status_t st) {
    if (st == OK)
        return;
    fprintf(stderr, "bench_oracle: %s\n", status_message());
    exit(status_exit_code(st));
}

/* The first `rows` rows from this tier on, 64 at a time. */
static struct result judge_with(enum tier first, const struct fake *fake,
                                const struct test_case *whole, size_t rows, const float *y) {
    struct result r = {.j = {.verdict = VERDICT_SKIP}};
    double start = cpu_seconds();
    for (size_t row = 0; row < rows; row += CASE_ROWS) {
        struct test_case c = *whole;
        struct truth truth;
        struct judgement j;
        c.in[0].data = (float *)c.in[0].data + row * c.dims.cols;
        c.dims.rows = rows - row < CASE_ROWS ? rows - row : CASE_ROWS;
        check(truth_init(&truth, fake->kernel.op, &c, EMPTY_NAN));
        truth.first = first;
        check(judge_output(&j, &fake->kernel, &c, &truth, y + row * c.dims.cols));
        truth_clear(&truth);
        r.j.verdict = verdict_worse(r.j.verdict, j.verdict);
        r.j.max_rho = fmax(r.j.max_rho, j.max_rho);
        r.j.max_ulp = fmax(r.j.max_ulp, j.max_ulp);
        tally_add(&r.j.tally, &j.tally);
    }
    r.seconds = cpu_seconds() - start;
    return r;
}

static double print_line(const char *what, const struct result *r, double elements) {
    double rate = elements / r->seconds;
    printf("%-10s %10.3f M elements/s  (%.2f ns each)  %s, rho %.9f, "
           "max ulp %.6f\n",
           what, rate * 1e-6, 1e9 / rate, verdict_name(r->j.verdict), r->j.max_rho, r->j.max_ulp);
    return rate;
}

/* ---- softmax ---------------------------------------------------------------------------------- */

static bool bench_softmax(size_t rows, size_t cols) {
    size_t few = rows < 8 ? rows : 8;
    struct fake fake = fake_kernel("block_softmax", "softmax", block_softmax);
    fake.numerics.sum_height = ceil((double)cols / THREADS) + 8;
    struct test_case c;
    check(case_from_fill(&c, fill_find("normal"), &dtypes[DT_F32], (struct case_dims){rows, cols},
                         1));
    float *y = new_floats(rows * cols);
    block_softmax(y, c.x, c.dims, 0, NULL);

    printf("f32 softmax, %zu rows of %zu, loops for x86-64-%s\n", rows, cols, row_simd()->name);
    struct result fast = {.seconds = INFINITY};
    for (int pass = 0; pass < PASSES; pass++) {
        struct result r = judge_with(TIER_F64, &fake, &c, rows, y);
        fast = r.seconds < fast.seconds ? r : fast;
    }
    struct result slow = judge_with(TIER_MPFR, &fake, &c, few, y);
    struct result same = judge_with(TIER_F64, &fake, &c, few, y);
    double fast_rate = print_line("tiers", &fast, (double)(rows * cols));
    double slow_rate = print_line("MPFR alone", &slow, (double)(few * cols));
    printf("ratio      %10.1f\n", fast_rate / slow_rate);
    print_shares(fast.j.tally.decided, (double)(rows * cols));
    /* The common look's errors are good to 2^-41 of a result: 2^-16 of a budget at most. */
    bool agree =
        same.j.verdict == slow.j.verdict && fabs(same.j.max_rho - slow.j.max_rho) <= 0x1p-15;
    printf("on the rows of both: %s\n", agree ? "the same verdict and rho" : "THEY DISAGREE");
    free(y);
    case_clear(&c);
    return agree;
}

/* ---- attention -------------------------------------------------------------------------------- */

#define LANES 32 /* partial sums of the weights */

/* Queries on one k and v: what the oracle sees, and what the kernel below made of it. */
struct attention {
    size_t queries, keys, dim;
    float *data;
    double *values, *o, *lse;
    struct attention_row *rows;
    struct numerics nu;
};

/* Two passes over the keys, products and sums one after another. */
static void attention_kernel(double *o, double *lse, const float *q, const float *k, const float *v,
                             size_t keys, size_t dim, float scale, float *z) {
    float max = -INFINITY, part[LANES] = {0}, sum[256] = {0};
    for (size_t j = 0; j < keys; j++) {
        float dot = 0;
        for (size_t i = 0; i < dim; i++)
            dot += q[i] * k[j * dim + i];
        z[j] = dot * scale;
        max = fmaxf(max, z[j]);
    }
    for (size_t j = 0; j < keys; j++) {
        float p = expf(z[j] - max);
        part[j % LANES] += p;
        for (size_t c = 0; c < dim; c++)
            sum[c] += p * v[j * dim + c];
    }
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t t = 0; t < half; t++)
            part[t] += part[t + half];
    for (size_t c = 0; c < dim; c++)
        o[c] = sum[c] / part[0];
    *lse = max + logf(part[0]);
}

static void attention_make(struct attention *a, size_t queries, size_t keys, size_t dim) {
    const size_t n = queries * dim, m = keys * dim;
    *a = (struct attention){.queries = queries, .keys = keys, .dim = dim};
    a->nu = (struct numerics){.in = &dtypes[DT_F32],
                              .acc = &dtypes[DT_F32],
                              .out = &dtypes[DT_F32],
                              .exp = EXP_EXPF,
                              .divide = DIVIDE_IEEE,
                              .log = LOG_LOGF,
                              .sum_height = ceil((double)keys / LANES) + 5,
                              .qk = {.height = (double)dim},
                              .pv = {.height = (double)keys}};
    a->data = new_floats(n + 2 * m + keys);
    a->values = calloc(n + 2 * m, sizeof *a->values);
    a->o = calloc(n, sizeof *a->o);
    a->lse = calloc(queries, sizeof *a->lse);
    a->rows = calloc(queries, sizeof *a->rows);
    if (!a->values || !a->o || !a->lse || !a->rows)
        exit(3);
    struct rng rng = rng_from_seed(7);
    for (size_t i = 0; i < n + 2 * m; i++) {
        double sum = 0;
        for (int k = 0; k < 4; k++)
            sum += rng_unit(&rng) - 0.5;
        a->data[i] = (float)(sum * sqrt(3));
        a->values[i] = a->data[i];
    }
    const float *k = a->data + n, *v = k + m, scale = (float)(1 / sqrt((double)dim));
    for (size_t r = 0; r < queries; r++) {
        a->rows[r] = (struct attention_row){.q = a->values + r * dim,
                                            .k = a->values + n,
                                            .v = a->values + n + m,
                                            .k_stride = dim,
                                            .v_stride = dim,
                                            .head_dim = dim,
                                            .value_dim = dim,
                                            .keys = keys,
                                            .keys_used = keys,
                                            .query = r,
                                            .queries = queries,
                                            .scale = scale};
        attention_kernel(a->o + r * dim, a->lse + r, a->data + r * dim, k, v, keys, dim, scale,
                         a->data + n + 2 * m);
    }
}

static void attention_free(struct attention *a) {
    free(a->data);
    free(a->values);
    free(a->o);
    free(a->lse);
    free(a->rows);
}

/* Outputs decided by each tier, of them within; from memory to verdict. */
struct attention_result {
    uint64_t decided[TIER_COUNT], within;
    double seconds, rho;
};

/* One output against its budget: 1 within, 0 beyond, -1 open. */
static int answer(double got, struct enclosure want, double budget) {
    double far = fmax(got - want.lo, want.hi - got),
           near = fmax(0, fmax(want.lo - got, got - want.hi));
    return far <= budget ? 1 : near <= budget ? -1 : 0;
}

/* Row r, from this tier on, output by output. */
static void climb_attention(struct attention_result *out, const struct attention *a, size_t r,
                            enum tier tier) {
    const size_t n = a->dim + 1;
    struct enclosure *want = calloc(n, sizeof *want);
    double *budget = calloc(n, sizeof *budget);
    int *state = malloc(n * sizeof *state);
    if (!want || !budget || !state)
        exit(3);
    for (size_t c = 0; c < n; c++)
        state[c] = -1;
    for (; tier < TIER_COUNT; tier++) {
        check(attention_tier_enclose(want, want + a->dim, &tier, &a->rows[r], 1));
        check(attention_budget(budget, budget + a->dim, &a->rows[r], want, want + a->dim, &a->nu));
        for (size_t c = 0; c < n; c++) {
            double got = c < a->dim ? a->o[r * a->dim + c] : a->lse[r];
            if (state[c] < 0 && (state[c] = answer(got, want[c], budget[c])) >= 0) {
                out->decided[tier]++;
                out->within += state[c] == 1;
            }
            out->rho = fmax(out->rho, fabs(got - want[c].lo) / budget[c]);
        }
    }
    free(want);
    free(budget);
    free(state);
}

static struct attention_result judge_attention(enum tier first, const struct attention *a,
                                               size_t rows) {
    struct attention_result r = {{0}, 0, 0, 0};
    struct tier_extremes *e = calloc(rows, sizeof *e);
    if (!e)
        exit(3);
    double start = cpu_seconds();
    if (first == TIER_F64)
        check(attention_within(e, a->rows, rows, a->o, a->lse, &a->nu));
    for (size_t row = 0; row < rows; row++) {
        if (e[row].within) {
            r.decided[TIER_F64] += a->dim + 1;
            r.within += a->dim + 1;
            r.rho = fmax(r.rho, e[row].rho);
        } else {
            climb_attention(&r, a, row, first);
        }
    }
    r.seconds = cpu_seconds() - start;
    free(e);
    return r;
}

static double attention_line(const char *what, const struct attention_result *r,
                             const struct attention *a, size_t rows) {
    double flops = 4 * (double)rows * (double)a->keys * (double)a->dim / r->seconds;
    printf("%-10s %10.4f GFLOP/s  (%.3f us a row)  %llu of %zu outputs within, rho %.4f at most\n",
           what, flops * 1e-9, 1e6 * r->seconds / (double)rows, (unsigned long long)r->within,
           rows * (a->dim + 1), r->rho);
    return flops;
}

static bool bench_attention(size_t queries, size_t keys, size_t dim) {
    struct attention a;
    attention_make(&a, queries, keys, dim);
    printf("\nf32 attention and lse, %zu queries on %zu keys of %zu, not causal: 4 Sq Sk D "
           "operations\n",
           queries, keys, dim);
    struct attention_result fast = {.seconds = INFINITY};
    for (int pass = 0; pass < PASSES; pass++) {
        struct attention_result r = judge_attention(TIER_F64, &a, queries);
        fast = r.seconds < fast.seconds ? r : fast;
    }
    struct attention_result slow = judge_attention(TIER_MPFR, &a, 1);
    struct attention_result same = judge_attention(TIER_F64, &a, 1);
    double ratio = attention_line("tiers", &fast, &a, queries);
    ratio /= attention_line("MPFR alone", &slow, &a, 1);
    printf("ratio      %10.1f\n", ratio);
    print_shares(fast.decided, (double)queries * (double)(dim + 1));
    attention_free(&a);
    return slow.within == same.within;
}

int main(int argc, char **argv) {
    size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 2048;
    size_t cols = argc > 2 ? strtoul(argv[2], NULL, 10) : 4096;
    if (rows == 0 || cols == 0) {
        fprintf(stderr, "usage: bench_oracle [ROWS [COLS]]\n");
        return 2;
    }
    bool agree = bench_softmax(rows, cols);
    for (size_t keys = (cols + 3) / 4; keys <= cols; keys *= 4)
        for (size_t dim = 64; dim <= 128; dim *= 2)
            agree &= bench_attention((rows + 7) / 8, keys, dim);
    oracle_thread_done();
    return agree ? 0 : 1;
}
