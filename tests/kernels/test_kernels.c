/*
 * Every kernel, ours and the external ones, on every kind of row and on shapes around each of their
 * edges: no fault (the shadow watches), every result inside the budget of the declared numerics,
 * and the same bits under every schedule.  The faulty kernels must fail here.
 *
 * ASSAY_TEST_DEVICE names another device than `cpu`.
 */
#include "tests/check.h"

#include <string.h>

#include "kernels/bind.h"
#include "kernels/catalogue.h"
#include "oracle/oracle.h"
#include "oracle/ulp.h"
#include "rows.h"

static struct catalogue *cat;
static struct device *dev;

/* ---- a case and its truth -------------------------------------------------------------------- */

struct kase {
    struct case_dims dims;
    const struct dtype *dt;
    void *x;
    double *exact;
    struct op_truth {
        const struct op *op;
        struct enclosure *want; /* rows x results */
    } truths[8];
    size_t truth_count;
};

static size_t results_per_row(const struct op *op, size_t cols) {
    return op->result == OP_PER_ROW ? 1 : cols;
}

/* The rows of row_fill, rounded to dt. */
static struct kase make_case(const struct dtype *dt, size_t rows, size_t cols) {
    struct kase c = {.dims = {rows, cols}, .dt = dt};
    float *x = malloc(rows * cols * sizeof *x);
    c.x = malloc(rows * cols * dtype_size(dt));
    c.exact = malloc(rows * cols * sizeof *c.exact);
    assert_true(x && c.x && c.exact);
    for (size_t r = 0; r < rows; r++)
        row_fill(x + r * cols, cols, (enum row_kind)(r % ROW_KINDS), 1000 * cols + r);
    for (size_t i = 0; i < rows * cols; i++)
        dtype_store(dt, c.x, i, dtype_from_double(dt, (double)x[i], ROUND_NEAREST));
    dtype_row(c.exact, dt, c.x, 0, rows * cols);
    free(x);
    return c;
}

static struct oracle_row row_of(const struct kase *c, size_t r, enum empty_row empty_row) {
    return (struct oracle_row){
        .x = c->exact + r * c->dims.cols, .cols = c->dims.cols, .empty_row = empty_row};
}

static const struct enclosure *truth_of(struct kase *c, const struct kernel *k) {
    for (size_t i = 0; i < c->truth_count; i++)
        if (c->truths[i].op == k->op)
            return c->truths[i].want;
    struct op_truth *truth = &c->truths[c->truth_count++];
    size_t per_row = results_per_row(k->op, c->dims.cols);
    truth->op = k->op;
    truth->want = malloc(c->dims.rows * per_row * sizeof *truth->want);
    assert_non_null(truth->want);
    for (size_t r = 0; r < c->dims.rows; r++) {
        struct oracle_row row = row_of(c, r, k->empty_row);
        CHECK(k->op->enclose(truth->want + r * per_row, &row) == OK, "%s", status_message());
    }
    return truth->want;
}

static void drop_case(struct kase *c) {
    for (size_t i = 0; i < c->truth_count; i++)
        free(c->truths[i].want);
    free(c->x);
    free(c->exact);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Largest error / budget over one row; +Inf for a wrong class. */
static double row_rho(const struct kernel *k, struct kase *c, size_t r, const void *y,
                      double *budget) {
    size_t per_row = results_per_row(k->op, c->dims.cols);
    const struct enclosure *want = truth_of(c, k) + r * per_row;
    struct oracle_row row = row_of(c, r, k->empty_row);
    struct numerics nu;
    double worst = 0;

    CHECK(kernel_numerics(&nu, k, c->dims) == OK, "%s", status_message());
    CHECK(k->op->budget(budget, &row, want, &nu) == OK, "%s", status_message());
    for (size_t i = 0; i < per_row; i++) {
        struct ulp_error e = ulp_error(k->out, dtype_load(k->out, y, r * per_row + i), want[i]);
        double rho = e.outcome == ULP_CLASS_MISMATCH ? INFINITY : e.abs_lo / budget[i];
        if (isinf(budget[i]) || (e.outcome != ULP_CLASS_MISMATCH && e.abs_lo == 0))
            rho = 0; /* no bound holds (a partial sum may overflow), or no error at all */
        if (!(rho <= worst))
            worst = rho;
    }
    return worst;
}

/* The number of rows outside their budget; with `blame`, each is an error with its kind. */
static size_t count_bad_rows(const struct kernel *k, struct kase *c, const void *y, bool blame) {
    size_t per_row = results_per_row(k->op, c->dims.cols), bad = 0;
    double *budget = malloc(per_row * sizeof *budget);
    assert_non_null(budget);
    for (size_t r = 0; r < c->dims.rows; r++) {
        double rho = row_rho(k, c, r, y, budget);
        if (rho <= 1)
            continue;
        bad++;
        if (blame)
            print_error("%s, %zu x %zu, row %zu (%s): rho %g\n", k->name, c->dims.rows,
                        c->dims.cols, r, row_kind_names[r % ROW_KINDS], rho);
    }
    free(budget);
    return bad;
}

static void run_clean(struct loaded_kernel *lk, struct kase *c, void *y, uint64_t seed) {
    const struct kernel *k = loaded_kernel_of(lk);
    struct kernel_io io = {c->dims, c->x, y, seed};
    struct kernel_result *result = malloc(sizeof *result);
    assert_non_null(result);
    CHECK(kernel_run(result, lk, &io) == OK, "%s: %s", k->name, status_message());
    const struct dev_fault *fault = kernel_result_fault(result);
    CHECK(kernel_result_clean(result), "%s, %zu x %zu: %s", k->name, c->dims.rows, c->dims.cols,
          fault ? fault->text : "a launch did not complete");
    free(result);
}

/* Runs the kernel; returns how many rows of the case came out bad. */
static size_t check_case(struct loaded_kernel *lk, struct kase *c, bool schedules) {
    const struct kernel *k = loaded_kernel_of(lk);
    size_t count = c->dims.rows * results_per_row(k->op, c->dims.cols);
    size_t size = count * dtype_size(k->out);
    void *y = malloc(size), *again = malloc(size);
    assert_true(y && again);
    run_clean(lk, c, y, 0);
    for (uint64_t seed = 1; schedules && k->deterministic && seed <= 2; seed++) {
        run_clean(lk, c, again, seed);
        CHECK(memcmp(y, again, size) == 0, "%s, %zu x %zu: other bits by schedule %d", k->name,
              c->dims.rows, c->dims.cols, (int)seed);
    }
    size_t bad = count_bad_rows(k, c, y, k->fault == NULL);
    free(y);
    free(again);
    return bad;
}

/*
 * The kernel on x and y that begin `shift` entries after a 256-byte boundary, as those of a slice of a tensor may;
 * how many rows came out bad.
 */
static size_t check_shifted(struct loaded_kernel *lk, struct kase *c, size_t shift) {
    const struct kernel *k = loaded_kernel_of(lk);
    const size_t y_shift = k->op->result == OP_PER_ROW ? 0 : shift * dtype_size(k->out);
    const size_t x_shift = shift * dtype_size(k->in);
    struct kernel_buffer what[KERNEL_MAX_BUFFERS];
    struct dev_buf *buffers[KERNEL_MAX_BUFFERS] = {0};
    uint64_t addresses[KERNEL_MAX_BUFFERS] = {0};
    struct bound_kernel bound = {0};
    uint8_t *y = NULL;

    CHECK(kernel_buffers(what, k, c->dims) == OK, "%s", status_message());
    for (size_t i = 0; i < KERNEL_MAX_BUFFERS; i++) {
        if (!what[i].name)
            continue;
        const size_t before = i == 0 ? x_shift : i == BUFFER_OUTPUTS ? y_shift : 0;
        const size_t bytes = before + what[i].bytes;
        CHECK(device_alloc(&buffers[i], dev, bytes) == OK, "%s", status_message());
        addresses[i] = buffer_address(buffers[i]) + before;
        if (i >= BUFFER_SCRATCH)
            continue;
        uint8_t *host = malloc(bytes);
        assert_non_null(host);
        memset(host, 0xff, bytes); /* NaN, whichever the type */
        if (i == 0)
            memcpy(host + before, c->x, what[i].bytes);
        CHECK(buffer_write(buffers[i], host, bytes) == OK, "%s", status_message());
        if (i == BUFFER_OUTPUTS)
            y = host;
        else
            free(host);
    }
    CHECK(kernel_bind(&bound, lk, c->dims, addresses) == OK, "%s", status_message());
    for (size_t i = 0; i < bound.launch_count; i++) {
        struct dev_run *run = malloc(sizeof *run);
        assert_non_null(run);
        CHECK(device_launch(run, dev, &bound.launches[i]) == OK, "%s", status_message());
        CHECK(run->completed && run->fault_total == 0, "%s, %zu x %zu, %zu entries off: %s",
              k->name, c->dims.rows, c->dims.cols, shift,
              run->fault_count ? run->faults[0].text : "no end");
        free(run);
    }
    CHECK(buffer_read(y, buffers[BUFFER_OUTPUTS], y_shift + what[BUFFER_OUTPUTS].bytes) == OK, "%s",
          status_message());
    for (size_t i = 0; i < y_shift; i++)
        assert_int_equal(y[i], 0xff);
    size_t bad = count_bad_rows(k, c, y + y_shift, true);
    free(y);
    bound_kernel_clear(&bound);
    for (size_t i = 0; i < KERNEL_MAX_BUFFERS; i++)
        buffer_free(buffers[i]);
    return bad;
}

/* One dense matrix and nothing else. */
static bool is_plain(const struct kernel *k) {
    struct op_options options;
    if (!op_is_matrix(k->op))
        return false;
    for (size_t i = 1; i < OP_MAX_INPUTS; i++)
        if (k->more_in[i])
            return false;
    CHECK(kernel_options(&options, k, (struct case_dims){1, 1}) == OK, "%s", status_message());
    return !options.causal && !options.ld;
}

static struct loaded_kernel *load(const struct kernel *k) {
    struct loaded_kernel *lk;
    CHECK(kernel_load(&lk, dev, k) == OK, "%s", status_message());
    return lk;
}

/*
 * One shape for all honest kernels of this input type, of a matrix and nothing else, that accept it, or for the one
 * called `only`.
 */
static void check_type(const struct dtype *dt, size_t rows, size_t cols, const char *only) {
    struct kase c = make_case(dt, rows, cols);
    size_t bad = 0;
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        if (k->fault || k->in != dt || !is_plain(k) || kernel_refuses(k, c.dims) ||
            (only && strcmp(k->name, only) != 0))
            continue;
        struct loaded_kernel *lk = load(k);
        bad += check_case(lk, &c, rows * cols < 10000);
        kernel_unload(lk);
    }
    drop_case(&c);
    assert_int_equal(bad, 0);
}

/* All types up to this size; beyond it MPFR takes too long to do it thrice. */
#define EVERY_TYPE 8000

static void check_shape(size_t rows, size_t cols, const char *only) {
    check_type(dtype_find("f32"), rows, cols, only);
    if (rows * cols > EVERY_TYPE || only)
        return;
    check_type(dtype_find("f16"), rows, cols, only);
    check_type(dtype_find("bf16"), rows, cols, only);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void right_around_the_edges(void **state) {
    (void)state;
    static const size_t cols[] = {1,   2,   3,   5,   31,  32,  33,  64,   100,  127, 128,
                                  129, 255, 256, 257, 300, 512, 513, 1000, 1025, 4096};
    for (size_t i = 0; i < sizeof cols / sizeof cols[0]; i++)
        check_shape(ROW_KINDS, cols[i], NULL);
}

static void right_on_long_rows(void **state) {
    (void)state;
    check_shape(3, 4099, NULL);
    check_shape(1, 20011, NULL);
    check_shape(1, 70001, NULL); /* more blocks than one block of rungs 1 to 3 can finish */
}

static void right_on_many_rows(void **state) {
    (void)state;
    check_shape(1, 1, NULL);
    check_shape(200, 7, NULL);
    check_shape(16900, 1, "softmax_float4_f32"); /* twice what 1056 blocks of 8 warps hold */
}

/* Ours only: what Triton and others compile may rely on boundaries. */
static void right_off_boundaries(void **state) {
    (void)state;
    static const char *const types[] = {"f32", "f16", "bf16"};
    static const char external[] = TEST_FOLDER "/external/";
    static const size_t cols[] = {1, 3, 33, 64, 250, 257, 520};
    size_t bad = 0, count = 0;
    for (size_t t = 0; t < 3; t++)
        for (size_t n = 0; n < sizeof cols / sizeof cols[0]; n++) {
            struct kase c = make_case(dtype_find(types[t]), ROW_KINDS, cols[n]);
            const size_t vec = 16 / dtype_size(c.dt);
            for (size_t i = 0; i < catalogue_count(cat); i++) {
                const struct kernel *k = catalogue_kernel(cat, i);
                if (k->fault || strncmp(k->image, external, strlen(external)) == 0 ||
                    k->in != c.dt || !is_plain(k) || kernel_refuses(k, c.dims))
                    continue;
                struct loaded_kernel *lk = load(k);
                bad += check_shifted(lk, &c, 1 + n % (vec - 1));
                kernel_unload(lk);
                count++;
            }
            drop_case(&c);
        }
    assert_int_equal(bad, 0);
    assert_true(count > 500);
}

static void faulty_ones_fail(void **state) {
    (void)state;
    struct kase c = make_case(dtype_find("f32"), ROW_KINDS, 300);
    size_t count = 0;
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        if (!k->fault || !is_plain(k))
            continue;
        struct loaded_kernel *lk = load(k);
        size_t bad = check_case(lk, &c, false);
        CHECK(bad > 0 && bad < ROW_KINDS / 2, "%s: %zu bad rows", k->name, bad);
        kernel_unload(lk);
        count++;
    }
    drop_case(&c);
    assert_int_equal(count, 2);
}

/* What the rungs say about each other's bits. */
static void same_tree_same_bits(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"sum_interleaved_modulo_f32", "sum_interleaved_stride_f32"},
        {"sum_first_add_f32", "sum_last_warp_f32"},
        {"sum_last_warp_f32", "sum_unrolled_f32"},
        {"softmax_three_kernels_f32", "softmax_three_pass_f32"},
        {"sum_exact_f32", "sum_exact_wide_f32"}, /* whatever the blocks */
    };
    struct kase c = make_case(dtype_find("f32"), ROW_KINDS, 1000);
    uint32_t *y[2];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t count = 0;
        for (size_t k = 0; k < 2; k++) {
            struct loaded_kernel *lk = load(catalogue_find(cat, pairs[i][k]));
            count = c.dims.rows * results_per_row(loaded_kernel_of(lk)->op, c.dims.cols);
            y[k] = malloc(count * sizeof *y[k]);
            assert_non_null(y[k]);
            run_clean(lk, &c, y[k], 0);
            kernel_unload(lk);
        }
        CHECK(memcmp(y[0], y[1], count * sizeof *y[0]) == 0, "%s and %s differ", pairs[i][0],
              pairs[i][1]);
        free(y[0]);
        free(y[1]);
    }
    drop_case(&c);
}

/* Our own images fix their bits; of the external ones only one does not. */
static void ambiguity_is_seen(void **state) {
    (void)state;
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        struct loaded_kernel *lk = load(k);
        bool expected = strcmp(k->name, "log_softmax_cuobjdump_f32") == 0;
        CHECK((kernel_ambiguous(lk) > 0) == expected, "%s: %u ambiguous contractions", k->name,
              kernel_ambiguous(lk));
        kernel_unload(lk);
    }
}

static int set_up(void **state) {
    (void)state;
    const char *name = getenv("ASSAY_TEST_DEVICE");
    struct device_options options = {.shadow = true};
    status_t st = catalogue_new(&cat);
    if (st == OK)
        st = catalogue_add_builtin(cat);
    if (st == OK)
        st = catalogue_add(cat, TEST_FOLDER "/external/manifest.yaml");
    if (st == OK)
        st = device_open(&dev, name ? name : "cpu", &options);
    if (st != OK)
        print_error("%s\n", status_message());
    return st == OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    device_close(dev);
    catalogue_free(cat);
    oracle_thread_done();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_around_the_edges), cmocka_unit_test(right_on_long_rows),
        cmocka_unit_test(right_on_many_rows),     cmocka_unit_test(right_off_boundaries),
        cmocka_unit_test(faulty_ones_fail),       cmocka_unit_test(same_tree_same_bits),
        cmocka_unit_test(ambiguity_is_seen),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
