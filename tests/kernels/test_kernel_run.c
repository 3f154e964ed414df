/* What a run hands to the device and takes from it, seen from a device that only records. */
#include "tests/check.h"

#include <string.h>

#include "fake_device.h"
#include "kernels/catalogue.h"

struct fixture {
    struct catalogue *cat;
    struct device *dev;
    struct loaded_kernel *lk;
};

static struct fixture load(const char *name) {
    struct fixture f;
    fake_reset();
    assert_int_equal(catalogue_new(&f.cat), OK);
    assert_int_equal(catalogue_add(f.cat, TEST_FOLDER "/manifests/good.yaml"), OK);
    assert_int_equal(device_open(&f.dev, "cpu", NULL), OK);
    status_t st = kernel_load(&f.lk, f.dev, catalogue_find(f.cat, name));
    CHECK(st == OK, "%s", status_message());
    assert_ptr_equal(loaded_kernel_of(f.lk), catalogue_find(f.cat, name));
    return f;
}

static void unload(struct fixture *f) {
    kernel_unload(f->lk);
    device_close(f->dev);
    catalogue_free(f->cat);
    assert_int_equal(fake.buffers, 0);
}

#define ROWS 4
#define COLS 512

static void passes_arguments(void **state) {
    (void)state;
    struct fixture f = load("all_f32");
    struct kernel_result result;
    static float x[ROWS * COLS];
    uint16_t y[ROWS];
    struct kernel_io io = {{ROWS, COLS}, x, y, 17};
    assert_int_equal(kernel_run(&result, f.lk, &io), OK);

    /* x, y, then scratch, at 0x1000, 0x2000, 0x3000, 0x4000. */
    assert_int_equal(fake.allocations, 4);
    assert_int_equal(fake.allocated[0], sizeof x);
    assert_int_equal(fake.allocated[1], sizeof y);
    assert_int_equal(fake.allocated[2], 4 * ROWS * 2);
    assert_int_equal(fake.allocated[3], 0);

    assert_int_equal(fake.launch_count, 2);
    const struct fake_launch *first = &fake.launches[0], *second = &fake.launches[1];
    assert_string_equal(first->entry, "three");
    assert_int_equal(first->grid[0], ROWS);
    assert_int_equal(first->grid[1], 2);
    assert_int_equal(first->grid[2], 1);
    assert_int_equal(first->block[0], 32);
    assert_int_equal(first->block[1], 8);
    assert_int_equal(first->block[2], 1);
    assert_int_equal(first->dynamic_shared, 4 * COLS);
    assert_int_equal(first->cluster[0], 1);
    assert_int_equal(first->cluster[1], 2);
    assert_int_equal(first->cluster[2], 1);
    assert_int_equal(second->cluster[0], 0); /* none is named */
    assert_int_equal(first->schedule_seed, 17);
    assert_int_equal(first->args[0], 0x1000);
    assert_int_equal(first->args[1], 0x3000);
    assert_int_equal(first->args[2], 0x4000);
    assert_int_equal(first->args[3], UINT64_MAX - 1); /* -2 in 8 bytes */
    assert_int_equal(first->args[4], UINT32_MAX);     /* -1 in 4 */
    assert_int_equal(first->args[5], 0x3d3504f3);     /* RN32(2^-4.5) */
    assert_int_equal(first->args[6], 0xbf00);         /* -0.5 */
    assert_int_equal(first->args[7], 255);
    assert_string_equal(second->entry, "one");
    assert_int_equal(second->grid[1], 1);
    assert_int_equal(second->args[0], 0x3000);
    assert_int_equal(second->args[1], 0x2000);
    assert_int_equal(second->args[2], 2);

    assert_true(kernel_result_clean(&result));
    assert_null(kernel_result_fault(&result));
    assert_int_equal(result.run_count, 2);
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(y[i], 0x0202);              /* from the second buffer */
    assert_int_equal(kernel_ambiguous(f.lk), 2 + 0); /* entry i of the fake has i of them */
    unload(&f);
}

static void passes_tensor_maps(void **state) {
    (void)state;
    struct fixture f = load("mapped_f16");
    struct kernel_result result;
    static uint16_t x[20 * 40], y[20 * 40];
    struct kernel_io io = {{20, 40}, x, y, 0};
    assert_int_equal(kernel_run(&result, f.lk, &io), OK);
    assert_int_equal(fake.map_count, 2);
    const struct dev_tensor_map *a = &fake.maps[0], *b = &fake.maps[1];
    assert_int_equal(a->type, DEV_TENSOR_F16);
    assert_int_equal(a->rank, 2);
    assert_int_equal(a->address, 0x1000);
    assert_int_equal(a->dims[0], 40);
    assert_int_equal(a->dims[1], 20);
    assert_int_equal(a->strides[0], 80); /* without gaps */
    assert_int_equal(a->box[0], 64);
    assert_int_equal(a->box[1], 8);
    assert_int_equal(a->element_strides[1], 1);
    assert_int_equal(a->swizzle, 128);
    assert_int_equal(b->type, DEV_TENSOR_F32);
    assert_int_equal(b->rank, 3);
    assert_int_equal(b->address, 0x3000);
    assert_int_equal(b->strides[0], 64);
    assert_int_equal(b->strides[1], 1280);
    assert_int_equal(b->box[0], 40);
    assert_int_equal(b->element_strides[2], 3);
    assert_int_equal(b->swizzle, 0);
    assert_int_equal(fake.launches[0].args[0], 1000);
    assert_int_equal(fake.launches[0].args[1], 0x2000);
    assert_int_equal(fake.launches[0].args[2], 1001);
    assert_int_equal(fake.launches[0].args[3], 1000);
    static uint16_t wide[99], out[99]; /* the device refuses it */
    io = (struct kernel_io){{1, 99}, wide, out, 0};
    const size_t launches = fake.launch_count;
    assert_int_equal(kernel_run(&result, f.lk, &io), OK); /* the kernel's fault, no failure */
    assert_int_equal(fake.launch_count, launches);
    assert_false(kernel_result_clean(&result));
    assert_int_equal(kernel_result_fault(&result)->kind, FAULT_TENSOR_MAP);
    assert_string_equal(kernel_result_fault(&result)->text,
                        "mapped_f16: tensor_maps[1] at rows = 1, cols = 99: tensor map: 99");
    unload(&f);
}

static void refuses_shape_and_width(void **state) {
    (void)state;
    struct fixture f = load("all_f32");
    struct kernel_result result;
    static float x[ROWS * COLS];
    uint16_t y[ROWS];
    struct kernel_io io = {{ROWS, 12}, x, y, 0};
    assert_int_equal(kernel_run(&result, f.lk, &io), ERR_USAGE);
    assert_string_equal(status_message(), "all_f32: cols = 12: accepts 8..4096 multiple of 8");
    unload(&f);

    f = load("narrow_f32");
    float wide[1 << 13];
    io = (struct kernel_io){{1, 1 << 12}, x, wide, 0};
    assert_int_equal(kernel_run(&result, f.lk, &io), ERR_UNSUPPORTED);
    assert_non_null(strstr(status_message(), "launches[0]: 4294967296 does not fit"));
    assert_int_equal(fake.launch_count, 0);
    unload(&f);
}

static void stops_at_a_fault(void **state) {
    (void)state;
    struct fixture f = load("all_f32");
    struct kernel_result result;
    static float x[ROWS * COLS];
    uint16_t y[ROWS] = {0};
    struct kernel_io io = {{ROWS, COLS}, x, y, 0};
    fake.stop_at = 0;
    assert_int_equal(kernel_run(&result, f.lk, &io), OK);
    assert_int_equal(fake.launch_count, 1);
    assert_int_equal(result.run_count, 1);
    assert_false(kernel_result_clean(&result));
    assert_int_equal(kernel_result_fault(&result)->kind, FAULT_TRAP);
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(y[i], 0xffff); /* poison, never a stale result */
    unload(&f);
}

static void reports_guards(void **state) {
    (void)state;
    struct fixture f = load("all_f32");
    struct kernel_result result;
    static float x[ROWS * COLS];
    uint16_t y[ROWS];
    struct kernel_io io = {{ROWS, COLS}, x, y, 0};
    fake.break_guard = 0x3000;
    assert_int_equal(kernel_run(&result, f.lk, &io), OK);
    assert_false(kernel_result_clean(&result));
    assert_int_equal(result.runs[0].fault_count, 0);
    assert_int_equal(kernel_result_fault(&result)->kind, FAULT_GUARD);
    assert_string_equal(kernel_result_fault(&result)->text,
                        "all_f32 wrote outside buffer parts: its guard bytes changed");
    unload(&f);
}

static void reports_a_changed_input(void **state) {
    (void)state;
    struct fixture f = load("all_f32");
    struct kernel_result result;
    static float x[ROWS * COLS];
    uint16_t y[ROWS];
    struct kernel_io io = {{ROWS, COLS}, x, y, 0};
    fake.change_buffer = 0x1000;
    assert_int_equal(kernel_run(&result, f.lk, &io), OK);
    assert_false(kernel_result_clean(&result));
    assert_int_equal(kernel_result_fault(&result)->kind, FAULT_INPUT);
    assert_string_equal(kernel_result_fault(&result)->text,
                        "all_f32 wrote to its input x: its contents changed");
    unload(&f);
}

static void passes_on_a_broken_device(void **state) {
    (void)state;
    struct fixture f = load("all_f32");
    struct kernel_result result;
    static float x[ROWS * COLS];
    uint16_t y[ROWS];
    struct kernel_io io = {{ROWS, COLS}, x, y, 0};
    fake.fail_at = 1;
    assert_int_equal(kernel_run(&result, f.lk, &io), ERR_DEVICE);
    assert_non_null(strstr(status_message(), "good.yaml:16: all_f32: launches[1]: broken"));
    assert_int_equal(result.run_count, 1);
    unload(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_tensor_maps),
        cmocka_unit_test(passes_arguments),          cmocka_unit_test(refuses_shape_and_width),
        cmocka_unit_test(stops_at_a_fault),          cmocka_unit_test(reports_guards),
        cmocka_unit_test(passes_on_a_broken_device), cmocka_unit_test(reports_a_changed_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
