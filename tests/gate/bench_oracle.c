/*
 * tests/gate/bench_oracle.c - how many elements the judge decides per second, verdict included: by
 * the tiers, and by MPFR alone.
 *
 *   bench_oracle [ROWS [COLS]]     f32 softmax; 2048 rows of 4096 unless told, in cases of 64
 *
 * One thread, processor time.  A judgement is what `assay gate` does with a kernel's output: the
 * truth, budgets, comparisons, from memory to verdict.  The tiers judge all rows PASSES times and the
 * fastest counts (the machine may be shared); MPFR alone judges the first rows; its verdict and its
 * largest rho are held against those of the tiers on the same rows.
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

int main(int argc, char **argv) {
    size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 2048;
    size_t cols = argc > 2 ? strtoul(argv[2], NULL, 10) : 4096;
    size_t few = rows < 8 ? rows : 8;
    if (rows == 0 || cols == 0) {
        fprintf(stderr, "usage: bench_oracle [ROWS [COLS]]\n");
        return 2;
    }
    struct fake fake = fake_kernel("block_softmax", "softmax", block_softmax);
    fake.numerics.sum_height = ceil((double)cols / THREADS) + 8;
    struct test_case c;
    check(case_from_fill(&c, fill_find("normal"), &dtypes[DT_F32], (struct case_dims){rows, cols},
                         1));
    float *y = calloc(rows * cols, sizeof *y);
    if (!y)
        return 3;
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
    printf("decided by");
    for (int tier = 0; tier < TIER_COUNT; tier++)
        printf("  %s %llu (%.3g)", tier_name((enum tier)tier),
               (unsigned long long)fast.j.tally.decided[tier],
               (double)fast.j.tally.decided[tier] / (double)(rows * cols));
    printf("\n");
    bool agree = same.j.verdict == slow.j.verdict &&
                 fabs(same.j.max_rho - slow.j.max_rho) <= 1e-6 * slow.j.max_rho;
    printf("on the rows of both: %s\n", agree ? "the same verdict and rho" : "THEY DISAGREE");
    free(y);
    case_clear(&c);
    oracle_thread_done();
    return agree ? 0 : 1;
}
