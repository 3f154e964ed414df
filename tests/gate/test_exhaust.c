/*
 * The exhaustion of special functions, on devices of this file: they compute what a C function
 * says, and one of them is wrong where a test wants it.
 */
#include "gate/exhaust.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"
#include "device/ptx/mufu.h"

/* ---- devices --------------------------------------------------------------------------------- */

struct device {
    bool other; /* not the one called cpu */
};
struct dev_buf {
    size_t size;
    uint32_t *words;
};
struct dev_image {
    uint32_t (*f)(uint32_t);
};

static const struct {
    const char *name;
    uint32_t (*f)(uint32_t);
} models[] = {
    {"ex2.approx.f16", mufu_ex2_f16},
    {"ex2.approx.ftz.bf16", mufu_ex2_bf16},
    {"tanh.approx.f16", mufu_tanh_f16},
    {"tanh.approx.bf16", mufu_tanh_bf16},
};

static struct {
    bool other; /* on which device */
    bool set;
    uint32_t x, result;
} fault;

status_t device_open(struct device **out, const char *name, const struct device_options *opt) {
    (void)opt;
    *out = malloc(sizeof **out);
    (*out)->other = strcmp(name, "cpu") != 0;
    return OK;
}
void device_close(struct device *dev) {
    free(dev);
}
status_t device_alloc(struct dev_buf **out, struct device *dev, size_t size) {
    (void)dev;
    *out = malloc(sizeof **out);
    **out = (struct dev_buf){size, malloc(size)};
    return OK;
}
void buffer_free(struct dev_buf *buf) {
    if (buf)
        free(buf->words);
    free(buf);
}
uint64_t buffer_address(const struct dev_buf *buf) {
    return (uint64_t)(uintptr_t)buf;
}
status_t buffer_read(void *dst, const struct dev_buf *buf, size_t size) {
    assert_true(size <= buf->size);
    memcpy(dst, buf->words, size);
    return OK;
}
status_t device_load(struct dev_image **out, struct device *dev, const char *label,
                     const void *text, size_t size) {
    (void)dev;
    *out = calloc(1, sizeof **out);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i].name, label) == 0)
            (*out)->f = models[i].f;
    assert_non_null((*out)->f);
    assert_non_null(memmem(text, size, label, strlen(label)));
    return OK;
}
void image_unload(struct dev_image *image) {
    free(image);
}
status_t device_launch(struct dev_run *run, struct device *dev, const struct dev_launch *launch) {
    uint64_t address;
    uint32_t first, count = launch->grid[0] * launch->block[0] * EXHAUST_UNROLL;
    memcpy(&address, launch->args[0], 8);
    memcpy(&first, launch->args[1], 4);
    struct dev_buf *buf = (struct dev_buf *)(uintptr_t)address;
    assert_true((size_t)count * 4 <= buf->size);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = first + i;
        bool wrong = fault.set && fault.other == dev->other && fault.x == x;
        buf->words[i] = wrong ? fault.result : launch->image->f(x);
    }
    *run = (struct dev_run){.completed = true};
    return OK;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static struct exhaust_report *reports;
static size_t report_count;

static void exhaust(const char *target, const char *twin, uint64_t shard, uint64_t shards) {
    const struct exhaust_options opt = {.target = target,
                                        .twin = twin,
                                        .error = true,
                                        .shard = shard,
                                        .shards = shards,
                                        .threads = 2};
    free(reports);
    reports = NULL;
    assert_int_equal(exhaust_run(&reports, &report_count, &opt), OK);
}

static void set_fault(bool other, uint32_t x, uint32_t result) {
    fault.set = true;
    fault.other = other;
    fault.x = x;
    fault.result = result;
}

static void test_select(void **state) {
    (void)state;
    static const struct {
        const char *target;
        size_t count;
    } cases[] = {{"mufu", 21}, {"ex2", 4},  {"tanh", 3}, {"sqrt", 2},      {"rsqrt", 3},
                 {"rcp", 3},   {"sin", 2},  {"cos", 2},  {"lg2", 2},       {"ex2.approx.f16", 1},
                 {"ex", 0},    {"ex2.", 0}, {"", 0},     {"ex2.approx", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = 0;
        for (size_t k = 0; k < exhaust_function_count; k++)
            n += exhaust_selects(cases[i].target, &exhaust_functions[k]);
        if (n != cases[i].count)
            fail_msg("'%s' selects %zu", cases[i].target, n);
    }
    const struct exhaust_options opt = {.target = "ex", .threads = 1};
    assert_int_equal(exhaust_run(&reports, &report_count, &opt), ERR_USAGE);
}

/* The sum of the header's words, by other code; its mix of 1 is splitmix64's, with no increment. */
static uint64_t sum_of(uint32_t (*f)(uint32_t)) {
    uint64_t sum = 0;
    for (uint64_t x = 0; x < 65536; x++) {
        unsigned __int128 z = x << 32 | f((uint32_t)x);
        z = (uint64_t)(((uint64_t)z ^ ((uint64_t)z >> 30)) * (unsigned __int128)0xbf58476d1ce4e5b9);
        z = (uint64_t)(((uint64_t)z ^ ((uint64_t)z >> 27)) * (unsigned __int128)0x94d049bb133111eb);
        sum += (uint64_t)z ^ ((uint64_t)z >> 31);
    }
    return sum;
}

static void test_clean(void **state) {
    (void)state;
    fault.set = false;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        exhaust(models[i].name, "other", 0, 1);
        assert_int_equal(report_count, 1);
        assert_int_equal(reports->inputs, 65536);
        assert_int_equal(reports->compared, 65536);
        assert_int_equal(reports->hashed, 1);
        assert_int_equal(reports->unlike, 0);
        assert_int_equal(reports->differ, 0);
        assert_int_equal(reports->hashes[0], sum_of(models[i].f));
        assert_true(exhaust_passed(reports));
    }
}

/* tanh.approx.f16 has the best known error of these: 2^-10.987, at 0x3e23. */
static void test_error(void **state) {
    (void)state;
    fault.set = false;
    exhaust("tanh.approx.f16", NULL, 0, 1);
    assert_int_equal(reports->worst[0].x, 0x3e23);
    assert_int_equal(reports->worst[0].got, 0x3b49);
    assert_true(fabs(reports->worst[0].error - fabs(tanh(0x1.88cp0) - 0x1.d24p-1)) < 1e-15);
    assert_true(exhaust_promise_kept(reports, 0));
    assert_int_equal(reports->compared, 0);
}

/* One wrong result among 65536, here or there, in each of the ways in which it can be seen. */
static void test_faults(void **state) {
    (void)state;
    set_fault(true, 0xb234, 0x3c00); /* there: bits alone */
    exhaust("ex2.approx.f16", "other", 0, 1);
    assert_int_equal(reports->differ, 1);
    assert_int_equal(reports->sample_count, 1);
    assert_int_equal(reports->samples[0].x, 0xb234);
    assert_int_equal(reports->samples[0].here, mufu_ex2_f16(0xb234));
    assert_int_equal(reports->samples[0].there, 0x3c00);
    assert_int_equal(reports->unlike, 0);
    assert_false(exhaust_passed(reports));

    set_fault(false, 0x3801, mufu_ex2_f16(0x3801) ^ 1); /* here, by one unit: the hash */
    exhaust("ex2.approx.f16", NULL, 0, 1);
    assert_int_equal(reports->unlike, 1);
    assert_true(exhaust_chunk_unlike(reports, 0));
    assert_true(exhaust_promise_kept(reports, 0));
    assert_false(exhaust_passed(reports));

    set_fault(false, 0x3801, mufu_ex2_f16(0x3801) ^ 8); /* by eight: the promise too */
    exhaust("ex2.approx.f16", NULL, 0, 1);
    assert_false(exhaust_promise_kept(reports, 0));
    assert_int_equal(reports->worst[0].x, 0x3801);

    set_fault(false, 0x4801, 0x7fff); /* NaN for a number */
    exhaust("tanh.approx.bf16", NULL, 0, 1);
    assert_int_equal(reports->wrong_class, 1);
    assert_int_equal(reports->wrong_class_x, 0x4801);
    assert_false(exhaust_passed(reports));

    set_fault(false, 0x7fc1, 0x3f80); /* and a number for NaN */
    exhaust("tanh.approx.bf16", NULL, 0, 1);
    assert_int_equal(reports->wrong_class, 1);

    set_fault(false, 0x3801, 0x7c00); /* infinity where the result is 1.4 */
    exhaust("ex2.approx.f16", NULL, 0, 1);
    assert_true(isinf(reports->worst[0].error));
    assert_false(exhaust_promise_kept(reports, 0));
    fault.set = false;
}

/* Every chunk is in exactly one shard; what nothing was asked of has not passed. */
static void test_shards(void **state) {
    (void)state;
    unsigned ran = 0, passed = 0;
    for (uint64_t i = 0; i < 3; i++) {
        exhaust("ex2.approx.f16", NULL, i, 3);
        ran += reports->chunks;
        passed += exhaust_passed(reports);
    }
    assert_int_equal(ran, 1);
    assert_int_equal(passed, 1);
}

static int clear(void **state) {
    (void)state;
    free(reports);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_select), cmocka_unit_test(test_clean),  cmocka_unit_test(test_error),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_shards),
    };
    return cmocka_run_group_tests(tests, NULL, clear);
}
