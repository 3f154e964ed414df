/*
 * tests/gate/bench_oracle.c - how many elements the judge decides per second, verdict included: by
 * the tiers, and by MPFR alone.
 *
 *   bench_oracle [ROWS [COLS]]
 *
 * f32 softmax, 2048 rows of 4096 unless told, in cases of 64; and f32 attention, heads of 64 and 128,
 * of ROWS / 8 queries on COLS / 4 and on COLS keys.  One thread, processor time.  A judgement is what
 * `assay gate` does with a kernel's output: the truth, budgets, comparisons, from memory to verdict.
 * The tiers judge all rows PASSES times and the fastest counts (the machine may be shared); MPFR alone
 * judges the first rows; its verdict and its largest rho are held against those of the tiers on the
 * same rows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate/judge.h"
#include "oracle/simd_row.h"
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
    const struct case_dims dims = {.rows = rows, .cols = cols};
    check(case_from_fill(&c, fill_find("normal"), &dtypes[DT_F32], dims, 1));
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

/* Two passes over the keys, products and sums one after another; z: room for the logits. */
static void attention_row(float *o, float *lse, const float *q, const float *k, const float *v,
                          const struct case_dims *d, float scale, float *z) {
    float max = -INFINITY, part[LANES] = {0};
    const size_t dim = d->head_dim;
    memset(o, 0, dim * sizeof *o);
    for (size_t j = 0; j < d->keys; j++) {
        float dot = 0;
        for (size_t i = 0; i < dim; i++)
            dot += q[i] * k[j * dim + i];
        z[j] = dot * scale;
        max = fmaxf(max, z[j]);
    }
    for (size_t j = 0; j < d->keys; j++) {
        float p = expf(z[j] - max);
        part[j % LANES] += p;
        for (size_t c = 0; c < dim; c++)
            o[c] += p * v[j * dim + c];
    }
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t t = 0; t < half; t++)
            part[t] += part[t + half];
    for (size_t c = 0; c < dim; c++)
        o[c] /= part[0];
    *lse = max + logf(part[0]);
}

static struct fake attention_fake(const struct case_dims *d) {
    const struct tensor_type *f32 = tensor_type_of(&dtypes[DT_F32]);
    struct fake fake = fake_kernel("attention", "attention", NULL);
    fake.kernel.more_in[1] = fake.kernel.more_in[2] = fake.kernel.more_out[1] = f32;
    fake.options.scale = (float)(1 / sqrt((double)d->head_dim));
    fake.numerics.log = LOG_LOGF;
    fake.numerics.sum_height = ceil((double)d->keys / LANES) + 5;
    fake.numerics.qk = (struct accumulation){.height = (double)d->head_dim};
    fake.numerics.pv = (struct accumulation){.height = (double)d->keys};
    return fake;
}

/* Queries on one k and v, computed and then judged from this tier on, PASSES times if quick. */
static struct result judge_attention(enum tier first, struct case_dims d) {
    const struct fake fake = attention_fake(&d);
    struct result fastest = {.seconds = INFINITY};
    struct tensor_block y;
    struct test_case c;
    check(case_make(&c, fill_of(fake.kernel.op, "normal"), &fake.kernel, d, 7));
    check(kernel_outputs(&y, &fake.kernel, d, NULL));
    char *out = (char *)new_floats(y.bytes / sizeof(float) + 1);
    float *z = new_floats(d.keys);
    check(kernel_outputs(&y, &fake.kernel, d, out));
    for (size_t r = 0; r < d.queries; r++)
        attention_row((float *)y.tensors[0].data + r * d.head_dim, (float *)y.tensors[1].data + r,
                      (const float *)c.in[0].data + r * d.head_dim, c.in[1].data, c.in[2].data, &d,
                      (float)fake.options.scale, z);
    for (int pass = 0; pass < (first == TIER_MPFR ? 1 : PASSES); pass++) {
        struct result r;
        struct truth truth;
        double start = cpu_seconds();
        check(truth_init(&truth, fake.kernel.op, &c, EMPTY_NAN));
        truth.first = first;
        check(judge_output(&r.j, &fake.kernel, &c, &truth, out));
        truth_clear(&truth);
        r.seconds = cpu_seconds() - start;
        fastest = r.seconds < fastest.seconds ? r : fastest;
    }
    free(z);
    free(out);
    case_clear(&c);
    return fastest;
}

static double attention_line(const char *what, const struct result *r, struct case_dims d) {
    double flops = 4 * (double)d.queries * (double)d.keys * (double)d.head_dim / r->seconds;
    printf("%-10s %10.4f GFLOP/s  (%.3f us a row)  %s, rho %.9f, max ulp %.6f\n", what, flops * 1e-9,
           1e6 * r->seconds / (double)d.queries, verdict_name(r->j.verdict), r->j.max_rho,
           r->j.max_ulp);
    return flops;
}

static bool bench_attention(size_t queries, size_t keys, size_t dim) {
    const struct case_dims d = {.batch = 1,
                                .heads = 1,
                                .kv_heads = 1,
                                .queries = queries,
                                .keys = keys,
                                .head_dim = dim};
    struct case_dims one = d;
    one.queries = 1;
    printf("\nf32 attention and lse, %zu queries on %zu keys of %zu, not causal: 4 Sq Sk D "
           "operations\n",
           queries, keys, dim);
    struct result fast = judge_attention(TIER_F64, d);
    struct result slow = judge_attention(TIER_MPFR, one), same = judge_attention(TIER_F64, one);
    double ratio = attention_line("tiers", &fast, d);
    ratio /= attention_line("MPFR alone", &slow, one);
    printf("ratio      %10.1f\n", ratio);
    print_shares(fast.j.tally.decided, (double)queries * (double)(dim + 1));
    bool agree =
        same.j.verdict == slow.j.verdict && fabs(same.j.max_rho - slow.j.max_rho) <= 0x1p-15;
    printf("on the row of both: %s\n", agree ? "the same verdict and rho" : "THEY DISAGREE");
    return agree;
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
