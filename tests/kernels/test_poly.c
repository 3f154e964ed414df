/*
 * kernels/exp2_poly.h as nvcc compiles it has the bits of the same text as C, which
 * tests/oracle/test_gpu_exp.c certifies: rows {0, t} through softmax_poly_f32 on `cpu`, whose two
 * results are 1 / (1 + e) and e / (1 + e), by a reciprocal.
 */
#include "tests/check.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/catalogue.h"
#include "kernels/exp2_poly.h"

enum { ROWS = 3000 };

/* Every binade of t, and arguments next to whole powers. */
static float argument(struct rng *rng, size_t row) {
    double unit = rng_unit(rng);
    if (row % 3 == 0)
        return (float)(-M_LN2 * (double)rng_below(rng, 130) + 0x1p-18 * (unit - 1));
    return (float)-ldexp(1 + unit, (int)(row % 34) - 27);
}

static void test_bits(void **state) {
    (void)state;
    static float x[2 * ROWS], y[2 * ROWS];
    static struct kernel_result result;
    struct rng rng = rng_from_seed(5);
    struct catalogue *cat;
    struct device *dev;
    struct loaded_kernel *lk;
    for (size_t r = 0; r < ROWS; r++)
        x[2 * r + 1] = argument(&rng, r);
    CHECK_OK(catalogue_new(&cat));
    CHECK_OK(catalogue_add_builtin(cat));
    CHECK_OK(device_open(&dev, "cpu", &(struct device_options){0}));
    const struct kernel *k = catalogue_find(cat, "softmax_poly_f32");
    assert_non_null(k);
    CHECK_OK(kernel_load(&lk, dev, k));
    const struct kernel_io io = {.dims = {.rows = ROWS, .cols = 2}, .x = x, .y = y};
    CHECK_OK(kernel_run(&result, lk, &io));
    assert_true(kernel_result_clean(&result));
    for (size_t r = 0; r < ROWS; r++) {
        const float e = exp2_poly(x[2 * r + 1] * 0x1.715476p0f), inverse = 1 / (1 + e);
        const float want[2] = {inverse, e * inverse};
        CHECK(memcmp(&y[2 * r], want, sizeof want) == 0, "t = %a: %a %a, in C %a %a",
              (double)x[2 * r + 1], (double)y[2 * r], (double)y[2 * r + 1], (double)want[0],
              (double)want[1]);
    }
    kernel_unload(lk);
    device_close(dev);
    catalogue_free(cat);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
