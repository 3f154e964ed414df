/*
 * fuzz_rows.c - hunt for rows that break a reduce or softmax kernel, or bring it near its budget.
 *
 * An input (grammar.h) names a kernel and a matrix; the kernel runs on the emulator and the oracle
 * judges it, as in `assay check`.  A FAIL ends in abort() from a function named after what went
 * wrong, so that crash reports group by class.  libFuzzer is led uphill: besides code coverage it
 * sees how near to its budget each kernel has come, and which events happened inside.
 *
 *   ASSAY_FUZZ_KERNEL=GLOB   the kernels at hand, default all; those with a planted fault only if
 *                            the glob matches no other
 *   ASSAY_FUZZ_EVERY=1       run an input on every kernel at hand, not only the one it names
 *   ASSAY_FUZZ_BEST=DIR      keep the inputs of the largest rho of each kernel in DIR, and say it
 *   ASSAY_FUZZ_NPY=DIR       write the matrix of a failing input to DIR, for assay check -i x=...
 */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "fuzz/grammar.h"
#include "fuzz/mutate.h"
#include "fuzz/target.h"
#include "fuzz/words.h"
#include "gate/judge.h"
#include "gate/npy.h"

#define MAX_KERNELS 64
#define RHO_BINS 64 /* four to a doubling: rho from 2^-14 to 4 */
#define LIVE_BINS 5 /* see live_bin */
#define EVENT_BINS 8

/* ---- what stays between inputs: the device, the kernels; and the best so far, for the log ---- */

static struct {
    struct catalogue *catalogue;
    struct device *device;
    struct loaded_kernel *kernels[MAX_KERNELS];
    size_t count;
    bool every;
    const char *best_folder, *npy_folder;
    double best_rho[MAX_KERNELS][LIVE_BINS], best_ulp[MAX_KERNELS];
    uint64_t runs[MAX_KERNELS];
} lab;

static void check(status_t st) {
    if (st == OK)
        return;
    fprintf(stderr, "fuzz_rows: %s\n", status_message());
    exit(status_exit_code(st));
}

static void print_best(size_t k) {
    fprintf(stderr, "best: %-28s %8llu runs, max ulp %-9.4g max rho",
            loaded_kernel_of(lab.kernels[k])->name, (unsigned long long)lab.runs[k],
            lab.best_ulp[k]);
    for (size_t bin = 0; bin < LIVE_BINS; bin++)
        fprintf(stderr, " %.3f", lab.best_rho[k][bin]);
    fprintf(stderr, "\n");
}

static void lab_close(void) {
    for (size_t k = 0; k < lab.count; k++) {
        if (lab.best_folder)
            print_best(k);
        kernel_unload(lab.kernels[k]);
    }
    lab.count = 0;
    device_close(lab.device);
    catalogue_free(lab.catalogue);
    oracle_thread_done();
}

/* Load the kernels of a matrix that match, those with a planted fault or those without. */
static void load_kernels(const char *glob, bool faulty) {
    for (size_t i = 0; i < catalogue_count(lab.catalogue) && lab.count < MAX_KERNELS; i++) {
        const struct kernel *kernel = catalogue_kernel(lab.catalogue, i);
        if (op_is_matrix(kernel->op) && case_permutes(kernel) &&
            (kernel->fault != NULL) == faulty && fnmatch(glob, kernel->name, 0) == 0)
            check(kernel_load(&lab.kernels[lab.count++], lab.device, kernel));
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    const struct device_options options = {
        .shadow = true,
        .insn_budget = UINT64_C(1) << 26,
        .memory_budget = UINT64_C(1) << 28,
    };
    const char *glob = getenv("ASSAY_FUZZ_KERNEL"), *every = getenv("ASSAY_FUZZ_EVERY");
    lab.every = every && strcmp(every, "1") == 0;
    lab.best_folder = getenv("ASSAY_FUZZ_BEST");
    lab.npy_folder = getenv("ASSAY_FUZZ_NPY");
    check(catalogue_new(&lab.catalogue));
    check(catalogue_add_builtin(lab.catalogue));
    check(device_open(&lab.device, "cpu", &options));
    load_kernels(glob ? glob : "*", false);
    if (lab.count == 0)
        load_kernels(glob ? glob : "*", true);
    if (lab.count == 0) {
        fprintf(stderr, "fuzz_rows: no kernel matches '%s'\n", glob ? glob : "*");
        exit(2);
    }
    atexit(lab_close);
    return 0;
}

/* ---- feedback -------------------------------------------------------------------------------- */

/*
 * libFuzzer reads this section after each input and clears it before the next.  All bins up to the
 * one that was reached are set: an input that comes nearer to the budget shows something new.
 */
__attribute__((section("__libfuzzer_extra_counters"), used, aligned(64))) static struct {
    uint8_t rho[MAX_KERNELS][LIVE_BINS][RHO_BINS];
    uint8_t verdict[MAX_KERNELS][8]; /* 8: the section is cleared in words */
    uint8_t events[MAX_KERNELS][3][EVENT_BINS];
} counters;

static size_t rho_bin(double rho) {
    if (!(rho > 0))
        return 0;
    double bin = floor(4 * log2(rho)) + 56;
    return bin < 0 ? 0 : bin >= RHO_BINS ? RHO_BINS - 1 : (size_t)bin;
}

/*
 * What kind of result is the worst one?  0: no normal number.  Else by how many terms of its row
 * matter beside the largest (2^-34 of it and more): 1: up to 2, 2: up to 16, 3: up to 256, 4: more.
 * One rounding of a subnormal, or of two terms, comes close to any honest bound at once; climbing
 * must go on where many errors add up.
 */
static size_t live_bin(const struct kernel *kernel, const struct test_case *c,
                       const struct worst *w) {
    double max = -INFINITY, largest = 0, min_normal = dtype_min_normal(kernel->out);
    bool sum = strcmp(kernel->op->name, "sum") == 0;
    size_t live = 0, cols = c->dims.cols;
    if (!w->known || !isfinite(w->want.lo) || !isfinite(w->want.hi) ||
        (fabs(w->want.lo) < min_normal && fabs(w->want.hi) < min_normal))
        return 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t j = 0; j < cols; j++) {
            double x = dtype_to_double(c->dtype, dtype_load(c->dtype, c->x, w->row * cols + j));
            if (pass == 0) {
                max = x > max ? x : max;
                largest = fabs(x) > largest ? fabs(x) : largest;
            } else {
                live += sum ? fabs(x) >= largest * 0x1p-34 && x != 0 : x >= max - 23.5;
            }
        }
    return live <= 2 ? 1 : live <= 16 ? 2 : live <= 256 ? 3 : 4;
}

static void note_event(uint8_t bins[EVENT_BINS], uint64_t count) {
    for (size_t bin = 0; bin < EVENT_BINS && count > 0; bin++, count /= 8)
        bins[bin] = 1;
}

static void note(size_t k, size_t live, const struct judgement *j,
                 const struct kernel_result *result) {
    for (size_t bin = 0, top = rho_bin(j->max_rho); bin <= top; bin++)
        counters.rho[k][live][bin] = 1;
    counters.verdict[k][j->verdict] = 1;
    for (size_t i = 0; i < result->run_count; i++) {
        note_event(counters.events[k][0], result->runs[i].events.nan_born);
        note_event(counters.events[k][1], result->runs[i].events.inf_born);
        note_event(counters.events[k][2], result->runs[i].events.subnormal_flushed);
    }
}

static void write_file(const char *path, const uint8_t *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size)
        fprintf(stderr, "fuzz_rows: cannot write %s\n", path);
    if (f)
        fclose(f);
}

static void note_best(size_t k, size_t live, const struct judgement *j, const uint8_t *data,
                      size_t size) {
    lab.runs[k]++;
    if (j->verdict != VERDICT_PASS)
        return;
    if (j->max_ulp > lab.best_ulp[k])
        lab.best_ulp[k] = j->max_ulp;
    if (j->max_rho <= lab.best_rho[k][live])
        return;
    lab.best_rho[k][live] = j->max_rho;
    if (!lab.best_folder)
        return;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%zu", lab.best_folder,
             loaded_kernel_of(lab.kernels[k])->name, live);
    write_file(path, data, size);
}

/* ---- failures -------------------------------------------------------------------------------- */

FUZZ_FAIL(fault)     /* the device saw a fault: out of bounds, race, unwritten, budget, ... */
FUZZ_FAIL(unwritten) /* a result still holds the poison of its buffer */
FUZZ_FAIL(nan)       /* NaN where a number is due */
FUZZ_FAIL(lost_nan)  /* a number where NaN is due */
FUZZ_FAIL(inf)       /* an infinity where a number is due, or the wrong one */
FUZZ_FAIL(lost_inf)  /* a number where an infinity is due */
FUZZ_FAIL(budget)    /* a number further off than its budget */
FUZZ_FAIL(oracle)    /* nothing about the kernel: Assay itself could not judge */

__attribute__((noreturn)) static void fail_by_class(const struct kernel *kernel,
                                                    const struct judgement *j,
                                                    const struct kernel_result *result) {
    double got = dtype_to_double(kernel->out, j->worst.got);
    double want = j->worst.want.lo;
    if (!kernel_result_clean(result) || !j->worst.known)
        fuzz_fail_fault();
    if (j->worst.got == UINT32_MAX >> (32 - kernel->out->bits))
        fuzz_fail_unwritten();
    if (isnan(got) && !isnan(want))
        fuzz_fail_nan();
    if (isnan(want) && !isnan(got))
        fuzz_fail_lost_nan();
    if (isinf(got))
        fuzz_fail_inf();
    if (isinf(want))
        fuzz_fail_lost_inf();
    fuzz_fail_budget();
}

static void save_npy(const struct kernel *kernel, const struct test_case *c) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.npy", lab.npy_folder, kernel->name);
    if (npy_write(path, c->dtype, c->dims.rows, c->dims.cols, c->x) == OK)
        fprintf(stderr, "  case:  assay check %s -i x=%s\n", kernel->name, path);
    else
        fprintf(stderr, "  case:  %s\n", status_message());
}

static void report(const struct kernel *kernel, const struct judgement *j,
                   const struct test_case *c, const struct rows_program *p) {
    char words[2048];
    rows_print(words, sizeof words, p);
    fprintf(stderr, "%s: %s: %s\n  input: %s\n", kernel->name, verdict_name(j->verdict), j->reason,
            words);
    if (c->dims.cols != p->cols)
        fprintf(stderr, "  shape: %zux%zu, as the kernel does not accept that one\n", c->dims.rows,
                c->dims.cols);
    if (j->worst.known)
        fprintf(stderr, "  worst: row %zu col %zu: got %a, want [%a, %a], budget %a, rho %g\n",
                j->worst.row, j->worst.col, dtype_to_double(kernel->out, j->worst.got),
                j->worst.want.lo, j->worst.want.hi, j->worst.budget, j->max_rho);
    fprintf(stderr,
            "  again: ASSAY_FUZZ_KERNEL=%s fuzz_rows FILE  (ASSAY_FUZZ_NPY=DIR: as a case)\n",
            kernel->name);
    if (lab.npy_folder)
        save_npy(kernel, c);
}

/* ---- one input ------------------------------------------------------------------------------- */

/* What a case of one shape was judged by last; kernels of one op share it. */
struct bench {
    bool ready;
    const struct op *op;
    const struct dtype *dtype;
    enum empty_row empty_row;
    struct test_case c;
    struct truth truth;
};

static void bench_clear(struct bench *b) {
    truth_clear(&b->truth);
    case_clear(&b->c);
    b->ready = false;
}

/* The longest row that the kernel takes, up to the one asked for; else the shortest beyond. */
static bool fit(struct case_dims *dims, const struct kernel *kernel) {
    for (struct case_dims d = *dims; d.cols >= 1; d.cols--)
        if (!kernel_refuses(kernel, d)) {
            *dims = d;
            return true;
        }
    for (struct case_dims d = *dims; d.cols <= ROWS_MAX_COLS; d.cols++)
        if (!kernel_refuses(kernel, d)) {
            *dims = d;
            return true;
        }
    return false;
}

static void bench_prepare(struct bench *b, const struct kernel *kernel,
                          const struct rows_program *program, struct case_dims dims) {
    /* Too large for a stack, and written before they are read. */
    static struct rows_program p;
    static uint32_t x[ROWS_MAX_ROWS * ROWS_MAX_COLS];
    if (b->ready && b->op == kernel->op && b->dtype == kernel->in &&
        b->empty_row == kernel->empty_row && b->c.dims.cols == dims.cols)
        return;
    bench_clear(b);
    p = *program;
    p.cols = (uint16_t)dims.cols;
    size_t count = dims.rows * dims.cols;
    if (p.datum_count > count)
        p.datum_count = count;
    rows_render(x, &p);
    for (size_t i = 0; i < count && kernel->in->id != DT_F32; i++)
        dtype_store(
            kernel->in, x, i,
            dtype_from_double(kernel->in, dtype_to_double(&dtypes[DT_F32], x[i]), ROUND_NEAREST));
    b->op = kernel->op;
    b->dtype = kernel->in;
    b->empty_row = kernel->empty_row;
    check(case_from_data(&b->c, x, kernel->in, dims));
    if (truth_init(&b->truth, kernel->op, &b->c, kernel->empty_row) != OK) {
        fprintf(stderr, "fuzz_rows: %s: %s\n", kernel->name, status_message());
        fuzz_fail_oracle();
    }
    b->ready = true;
}

static void run_kernel(struct bench *b, size_t k, const struct rows_program *p, const uint8_t *data,
                       size_t size) {
    static struct kernel_result result; /* written before it is read; fault records are large */
    const struct kernel *kernel = loaded_kernel_of(lab.kernels[k]);
    struct case_dims dims = {.rows = p->rows, .cols = p->cols};
    if (!fit(&dims, kernel))
        return;
    bench_prepare(b, kernel, p, dims);
    struct judgement j;
    if (judge_kernel(&j, &result, lab.kernels[k], &b->c, &b->truth) != OK) {
        fprintf(stderr, "fuzz_rows: %s: %s\n", kernel->name, status_message());
        fuzz_fail_oracle();
    }
    size_t live = live_bin(kernel, &b->c, &j.worst);
    note(k, live, &j, &result);
    note_best(k, live, &j, data, size);
    if (j.verdict == VERDICT_FAIL) {
        report(kernel, &j, &b->c, p);
        fail_by_class(kernel, &j, &result);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct rows_program p; /* too large for a stack; decode writes all of it */
    struct bench bench = {0};
    if (!rows_decode(&p, data, size))
        return 0;
    for (size_t k = 0; k < lab.count; k++)
        if (lab.every || k == p.kernel % lab.count)
            run_kernel(&bench, k, &p, data, size);
    bench_clear(&bench);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    return rows_mutate(data, size, max_size, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned seed) {
    return rows_cross(out, max_size, a, a_size, b, b_size, seed);
}
