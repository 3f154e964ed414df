/*
 * test_isolation.c - whatever a kernel does to the CUDA driver, its launch reports it and the device
 * goes on.  The driver is fake_cuda.c: no GPU is needed.
 */
#include "tests/check.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"

static const char *const text =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry put(.param .u64 p, .param .u32 n)\n{\n.reg .b32 %r<2>;\n.reg .b64 %d<2>;\n"
    "ld.param.u64 %d0, [p];\nld.param.u32 %r0, [n];\nst.global.u32 [%d0], %r0;\nret;\n}\n"
    ".visible .entry wild(.param .u64 p, .param .u32 n)\n{\n.reg .b64 %d<1>;\n"
    "mov.u64 %d0, 64;\nst.global.u32 [%d0], 1;\nret;\n}\n";

/* Images that need more stack than a context gives, one after the other: alloca, then recursion. */
static const char *const deep[] = {
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry put(.param .u64 p, .param .u32 n)\n{\n.reg .b32 %r<2>;\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d0, [p];\nld.param.u32 %r0, [n];\nalloca.u64 %d1, 2000;\n"
    "st.local.u32 [%d1], %r0;\nld.local.u32 %r1, [%d1];\nst.global.u32 [%d0], %r1;\nret;\n}\n",
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".func (.param .b32 r) recursive(.param .b32 a)\n{\n.reg .pred %p;\n.reg .b32 %x;\n"
    "ld.param.u32 %x, [a];\nsetp.ne.u32 %p, %x, 0;\n@!%p bra end;\n{\n.param .b32 y;\n"
    ".param .b32 z;\nst.param.b32 [y], 0;\ncall (z), recursive, (y);\n}\nend:\n"
    "st.param.b32 [r], %x;\nret;\n}\n"
    ".visible .entry put(.param .u64 p, .param .u32 n)\n{\n.reg .b32 %r<2>;\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d0, [p];\nld.param.u32 %r0, [n];\n{\n.param .b32 y;\n.param .b32 z;\n"
    "st.param.b32 [y], %r0;\ncall (z), recursive, (y);\nld.param.b32 %r1, [z];\n}\n"
    "st.global.u32 [%d0], %r1;\nret;\n}\n"};

static struct device *dev;
static struct dev_image *image;
static struct dev_run run;

static void open_with(const char *plants, double launch_seconds) {
    const struct device_options options = {.launch_seconds = launch_seconds};
    setenv("ASSAY_FAKE_CUDA", plants, 1);
    CHECK_OK(device_open(&dev, "cuda:0", &options));
    CHECK_OK(device_load(&image, dev, "t.ptx", text, strlen(text)));
}

static void close_all(void) {
    image_unload(image);
    device_close(dev);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child is left");
}

/* One launch with a buffer of its own; *got: what it holds afterwards. */
static status_t launch(uint32_t *got, const char *entry, unsigned grid) {
    struct dev_buf *buf;
    CHECK_OK(device_alloc(&buf, dev, 4));
    uint64_t address = buffer_address(buf);
    uint32_t n = 100 + grid;
    const void *args[] = {&address, &n};
    const struct dev_launch l = {.image = image,
                                 .entry = entry,
                                 .grid = {grid, 1, 1},
                                 .block = {1, 1, 1},
                                 .args = args,
                                 .arg_count = 2};
    status_t st = device_launch(&run, dev, &l);
    *got = 0;
    if (st == OK && run.completed)
        st = buffer_read(got, buf, 4);
    buffer_free(buf);
    return st;
}

static void works(unsigned grid) {
    uint32_t got;
    CHECK_OK(launch(&got, "put", grid));
    CHECK(run.completed && run.fault_total == 0, "%s", run.faults[0].text);
    assert_int_equal(got, 100 + grid);
}

static void faults(const char *entry, unsigned grid, enum dev_fault_kind kind, const char *words) {
    uint32_t got;
    CHECK_OK(launch(&got, entry, grid));
    assert_false(run.completed);
    assert_int_equal(run.fault_count, 1);
    assert_int_equal(run.faults[0].kind, kind);
    assert_string_equal(run.faults[0].kernel, entry);
    CHECK_CONTAINS(run.faults[0].text, words);
    CHECK_CONTAINS(run.faults[0].text, entry);
}

static void all_is_well(void **state) {
    (void)state;
    open_with("", 0);
    assert_string_equal(device_info(dev)->name, "fake GPU");
    assert_string_equal(device_info(dev)->arch, "sm_90");
    assert_int_equal(image_entry_count(image), 2);
    assert_int_equal(image_find(image, "put")->params[1].size, 4);
    for (unsigned i = 1; i < 5; i++)
        works(i);
    close_all();
}

/* More bytes than one piece of a copy, and not a whole number of them. */
static void long_copies(void **state) {
    (void)state;
    size_t size = ((size_t)20 << 20) + 12345;
    uint8_t *from = malloc(size), *to = calloc(1, size);
    struct dev_buf *buf;
    bool intact;
    open_with("", 0);
    for (size_t i = 0; i < size; i++)
        from[i] = (uint8_t)(i * 2654435761u >> 13);
    CHECK_OK(device_alloc(&buf, dev, size));
    CHECK_OK(buffer_write(buf, from, size));
    CHECK_OK(buffer_read(to, buf, size));
    assert_memory_equal(from, to, size);
    CHECK_OK(buffer_guards(&intact, buf));
    assert_true(intact);
    buffer_free(buf);
    close_all();
    free(from);
    free(to);
}

static void a_crash_is_survived(void **state) {
    (void)state;
    open_with("crash:put:2,exit:put:3", 0);
    works(1);
    faults("put", 2, FAULT_DEVICE, "put: the driver's process died of signal 11");
    works(4);
    faults("put", 3, FAULT_DEVICE, "put: the driver's process ended with code 9");
    faults("put", 2, FAULT_DEVICE, "signal 11");
    works(5);
    close_all();
}

static void a_sticky_error_is_survived(void **state) {
    (void)state;
    open_with("sticky:put:2", 0);
    for (int i = 0; i < 3; i++) {
        faults("put", 2, FAULT_OUT_OF_BOUNDS, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        faults("wild", 1, FAULT_OUT_OF_BOUNDS, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        works(1);
    }
    close_all();
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void a_hang_is_ended(void **state) {
    (void)state;
    open_with("hang:put:2", 0.2);
    double start = now();
    faults("put", 2, FAULT_DEVICE, "put: not done after 0.2 s");
    assert_true(now() - start >= 0.2);
    assert_true(now() - start < 20);
    works(1);
    faults("put", 2, FAULT_DEVICE, "not done after 0.2 s");
    faults("put", 2, FAULT_DEVICE, "not done after 0.2 s");
    start = now(); /* that was often enough */
    faults("put", 2, FAULT_DEVICE, "not launched again");
    assert_true(now() - start < 0.2);
    faults("wild", 1, FAULT_OUT_OF_BOUNDS, "700");
    close_all();
}

static void a_limit_from_the_environment(void **state) {
    (void)state;
    static const char *const bad[] = {"", "0", "-1", "1s", "nan", "1e9"};
    setenv("ASSAY_LAUNCH_SECONDS", "0.1", 1);
    open_with("hang:put:2", 0);
    faults("put", 2, FAULT_DEVICE, "not done after 0.1 s");
    close_all();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("ASSAY_LAUNCH_SECONDS", bad[i], 1);
        CHECK(device_open(&dev, "cuda:0", NULL) == ERR_USAGE, "'%s' is taken", bad[i]);
        CHECK_CONTAINS(status_message(), "ASSAY_LAUNCH_SECONDS");
    }
    unsetenv("ASSAY_LAUNCH_SECONDS");
}

/* Buffers of before the fault: freed, never read; and none is mistaken for a new one. */
static void buffers_are_lost(void **state) {
    (void)state;
    struct dev_buf *old, *new;
    uint32_t got;
    bool intact;
    open_with("crash:put:2", 0);
    CHECK_OK(device_alloc(&old, dev, 64));
    faults("put", 2, FAULT_DEVICE, "signal 11");
    assert_int_equal(buffer_read(&got, old, 4), ERR_DEVICE);
    assert_int_equal(buffer_write(old, &got, 4), ERR_DEVICE);
    assert_int_equal(buffer_guards(&intact, old), ERR_DEVICE);
    assert_int_equal(device_alloc(&new, dev, 64), ERR_DEVICE);
    CHECK_CONTAINS(status_message(), "still held");
    buffer_free(old);
    works(1);
    close_all();
}

/* Images whose threads need more stack than a context gives, and what needs none. */
static void stacks_are_deep(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        struct dev_image *none;
        open_with("", 0);
        image_unload(image);
        CHECK_OK(device_load(&image, dev, "deep.ptx", deep[i], strlen(deep[i])));
        works(3);
        close_all();
        open_with("full:stack", 0); /* what needs none is loaded */
        works(3);
        assert_int_equal(device_load(&none, dev, "deep.ptx", deep[i], strlen(deep[i])), ERR_NOMEM);
        close_all();
    }
}

/* Every field reaches the driver: the fake one makes the bytes that cpu makes; also after a crash. */
static void tensor_maps(void **state) {
    (void)state;
    struct device *cpu;
    uint8_t got[DEV_TENSOR_MAP_BYTES], want[DEV_TENSOR_MAP_BYTES];
    struct dev_tensor_map map = {.rank = 5,
                                 .dims = {(uint64_t)1 << 32, 7, 9, 11, 13},
                                 .strides = {16, 32, 48, ((uint64_t)1 << 40) - 16},
                                 .box = {16, 2, 3, 4, 256},
                                 .element_strides = {1, 2, 3, 8, 5}};
    CHECK_OK(device_open(&cpu, "cpu", NULL));
    open_with("crash:put:2", 0);
    map.address = 4096;
    for (unsigned type = 0; type < DEV_TENSOR_TYPES; type++) {
        map.type = (enum dev_tensor_type)type;
        map.box[0] = (unsigned)(16 / dev_tensor_type_bytes(map.type));
        map.swizzle = type % 4 ? 16u << type % 4 : 0;
        CHECK_OK(dev_tensor_map_encode(want, cpu, &map));
        CHECK_OK(dev_tensor_map_encode(got, dev, &map));
        assert_memory_equal(got, want, sizeof got);
        if (type == 4)
            faults("put", 2, FAULT_DEVICE, "signal 11");
    }
    map.rank = 6;
    assert_int_equal(dev_tensor_map_encode(got, dev, &map), ERR_USAGE);
    close_all();
    map.rank = 5;
    open_with("older:device", 0);
    assert_int_equal(dev_tensor_map_encode(got, dev, &map), ERR_UNSUPPORTED);
    CHECK_CONTAINS(status_message(), "the device is sm_80");
    close_all();
    device_close(cpu);
}

static void a_bad_image_is_refused(void **state) {
    (void)state;
    struct dev_image *bad;
    open_with("", 0);
    assert_int_equal(device_load(&bad, dev, "bad.ptx", "no PTX", 6), ERR_SYNTAX);
    CHECK_CONTAINS(status_message(), "bad.ptx: the driver refused this image");
    works(1);
    close_all();
}

static void two_devices_are_apart(void **state) {
    (void)state;
    open_with("crash:put:2", 0);
    struct device *first = dev;
    struct dev_image *first_image = image;
    open_with("crash:put:2", 0);
    faults("put", 2, FAULT_DEVICE, "signal 11");
    struct device *second = dev;
    struct dev_image *second_image = image;
    dev = first;
    image = first_image;
    works(1);
    image_unload(image);
    device_close(dev);
    dev = second;
    image = second_image;
    works(1);
    close_all();
}

static size_t open_files(void) {
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void nothing_leaks(void **state) {
    (void)state;
    size_t before = open_files();
    for (int i = 0; i < 3; i++) {
        open_with("crash:put:2,sticky:put:3", 0);
        works(1);
        faults("put", 2, FAULT_DEVICE, "signal 11");
        faults("put", 3, FAULT_OUT_OF_BOUNDS, "700");
        close_all();
    }
    setenv("ASSAY_LIBCUDA", "/no/such/driver", 1);
    assert_int_equal(device_open(&dev, "cuda:0", NULL), ERR_DEVICE);
    CHECK_CONTAINS(status_message(), "no CUDA driver");
    setenv("ASSAY_LIBCUDA", "", 1);
    assert_int_equal(device_open(&dev, "cuda:7", NULL), ERR_DEVICE);
    assert_int_equal(device_open(&dev, "cuda:x", NULL), ERR_USAGE);
    assert_int_equal(open_files(), before);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child is left");
}

/* The program dies while a kernel hangs: the driver's process must not outlive it. */
static void an_orphan_ends(void **state) {
    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that the orphan becomes a child of this process */
    pid_t parent = fork();
    if (parent == 0) {
        uint32_t got;
        open_with("hang:put:2", 1000);
        alarm(1); /* ends this process while it waits */
        _exit(launch(&got, "put", 2) == OK);
    }
    int how, ended = 0;
    for (double limit = now() + 20; ended < 2 && now() < limit;) {
        if (waitpid(-1, &how, WNOHANG) > 0)
            ended++;
        usleep(10000);
    }
    assert_int_equal(ended, 2);
}

int main(void) {
    setenv("ASSAY_LIBCUDA", "", 1); /* this program */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well),           cmocka_unit_test(long_copies),
        cmocka_unit_test(a_crash_is_survived),   cmocka_unit_test(a_sticky_error_is_survived),
        cmocka_unit_test(a_hang_is_ended),       cmocka_unit_test(a_limit_from_the_environment),
        cmocka_unit_test(buffers_are_lost),      cmocka_unit_test(a_bad_image_is_refused),
        cmocka_unit_test(two_devices_are_apart), cmocka_unit_test(nothing_leaks),
        cmocka_unit_test(tensor_maps),           cmocka_unit_test(stacks_are_deep),
        cmocka_unit_test(an_orphan_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
