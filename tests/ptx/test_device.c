/* test_device.c - device.h itself: names, buffers, poison, guards, what a launch refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/harness.h"

static const char *const text =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 p, .param .u32 n)\n.maxntid 128, 1, 1\n{\n.reg .b32 %r<2>;\n"
    ".reg .b64 %d<2>;\n.shared .align 4 .b8 s[64];\nld.param.u64 %d0, [p];\nld.param.u32 %r0, "
    "[n];\n"
    "st.global.u32 [%d0], %r0;\nret;\n}\n";

static void test_open(void) {
    struct device *dev;
    CHECK_EQ(device_open(&dev, "gpu", NULL), ERR_USAGE, "unknown device");
    static const char *const strange[] = {"cpu:sm_12", "cpu:sm_87", "cpu:sm_91", "cpu:sm_90x"};
    for (int i = 0; i < 4; i++)
        CHECK_EQ(device_open(&dev, strange[i], NULL), ERR_USAGE, strange[i]);
    CHECK_EQ(strcmp(status_message(), "device 'cpu:sm_90x': sm_75, sm_80, sm_86, sm_89, sm_90, "
                                      "sm_100 or sm_120 was expected"),
             0, status_message());
    CHECK_EQ(device_open(&dev, "cpu:", NULL), OK, "default target");
    CHECK_EQ(strcmp(device_info(dev)->arch, DEVICE_DEFAULT_ARCH), 0, "default target");
    device_close(dev);
    setenv("ASSAY_ISA", "v9", 1);
    CHECK_EQ(device_open(&dev, "cpu", NULL), ERR_USAGE, "unknown level");
    unsetenv("ASSAY_ISA");
    device_close(NULL);
    struct dev_image *image;
    CHECK_EQ(device_open(&dev, "cpu:sm_75", NULL), OK, "older target");
    CHECK_EQ(device_load(&image, dev, "t", text, strlen(text)), ERR_TARGET, "PTX for a newer target");
    CHECK_EQ(strcmp(status_message(),
                    "t: compiled for sm_80, the device is sm_75: run it with -d cpu:sm_80"),
             0, status_message());
    static const char *const unknown[] = {"sm_999", "sm_122a", "sm_1000", "sm_x"};
    for (int i = 0; i < 4; i++) { /* nobody is sent to a device that does not open */
        char newer[128], want[128];
        snprintf(newer, sizeof newer, ".version 8.0\n.target %s\n.entry k() { ret; }\n",
                 unknown[i]);
        snprintf(want, sizeof want, 
                 "t: compiled for %s; the emulator is sm_75, sm_80, sm_86, sm_89, sm_90, sm_100 or "
                 "sm_120",
                 unknown[i]);
        CHECK_EQ(device_load(&image, dev, "t", newer, strlen(newer)),
                 i < 2 ? ERR_TARGET : ERR_UNSUPPORTED, unknown[i]); /* the others are no targets */
        CHECK_EQ(strcmp(status_message(), want), 0, status_message());
    }
    device_close(dev);
}

static void test_buffers(struct device *dev) {
    struct dev_buf *a, *empty;
    uint8_t bytes[100];
    bool intact;
    CHECK_EQ(device_alloc(&a, dev, 100), OK, "alloc");
    CHECK_EQ(device_alloc(&empty, dev, 0), OK, "alloc nothing");
    CHECK_EQ(buffer_address(a) % DEVICE_GUARD_BYTES, 0, "alignment");
    CHECK_EQ(buffer_read(bytes, a, 100), OK, "read");
    CHECK_EQ(bytes[0] == 0xff && bytes[99] == 0xff, 1, "poison");
    memset(bytes, 7, sizeof bytes);
    CHECK_EQ(buffer_write(a, bytes, 100), OK, "write");
    CHECK_EQ(buffer_write(a, bytes, 101), ERR_USAGE, "write too much");
    CHECK_EQ(buffer_read(bytes, a, 101), ERR_USAGE, "read too much");
    CHECK_EQ(buffer_guards(&intact, a) == OK && intact, 1, "guards");
    CHECK_EQ(buffer_guards(&intact, empty) == OK && intact, 1, "guards of nothing");
    CHECK_EQ(buffer_poison(a), OK, "poison again");
    CHECK_EQ(buffer_read(bytes, a, 100) == OK && bytes[50] == 0xff, 1, "poison again");
    buffer_free(a);
    buffer_free(empty);
    buffer_free(NULL);
    CHECK_EQ(device_alloc(&a, dev, (size_t)1 << 40), ERR_NOMEM, "more than the budget");
    CHECK_EQ(device_alloc(&a, dev, SIZE_MAX), ERR_NOMEM, "more than there is");
}

static void test_launches(struct device *dev) {
    struct dev_image *image;
    struct dev_buf *buf;
    CHECK_EQ(device_load(&image, dev, "t", text, strlen(text)), OK, "load");
    CHECK_EQ(image_entry_count(image), 1, "entries");
    const struct dev_entry *e = image_find(image, "k");
    CHECK_EQ(image_find(image, "q") == NULL, 1, "no such entry");
    CHECK_EQ(e->param_count == 2 && e->params[1].size == 4 && e->static_shared == 64, 1, "entry");
    CHECK_EQ(e->max_threads, 128, "maxntid");
    CHECK_EQ(device_alloc(&buf, dev, 4), OK, "alloc");
    uint64_t address = buffer_address(buf);
    uint32_t n = 42, got = 0;
    const void *args[] = {&address, &n};
    const struct dev_launch good = {.image = image,
                                    .entry = "k",
                                    .grid = {1, 1, 1},
                                    .block = {1, 1, 1},
                                    .args = args,
                                    .arg_count = 2};
    struct dev_launch l = good;
    CHECK_EQ(device_launch(&run, dev, &l) == OK && run.completed && !run.fault_total, 1, "launch");
    CHECK_EQ(buffer_read(&got, buf, 4) == OK && got == 42, 1, "result");
    l.entry = "q";
    CHECK_EQ(device_launch(&run, dev, &l), ERR_USAGE, "no such entry");
    l = good;
    l.arg_count = 1;
    CHECK_EQ(device_launch(&run, dev, &l), ERR_USAGE, "argument count");
    l = good;
    l.grid[1] = 0;
    CHECK_EQ(device_launch(&run, dev, &l), ERR_USAGE, "grid 0");
    l.grid[1] = 65536;
    CHECK_EQ(device_launch(&run, dev, &l), ERR_USAGE, "grid too large");
    l = good;
    l.block[0] = 129;
    CHECK_EQ(device_launch(&run, dev, &l), ERR_USAGE, "more than maxntid");
    l.block[0] = 1025;
    CHECK_EQ(device_launch(&run, dev, &l), ERR_USAGE, "block too large");
    l = good;
    l.dynamic_shared = 227 * 1024 - 63;
    CHECK_EQ(device_launch(&run, dev, &l), ERR_USAGE, "shared memory");
    l.dynamic_shared = SIZE_MAX;
    CHECK_EQ(device_launch(&run, dev, &l), ERR_USAGE, "shared memory");
    l.dynamic_shared = 227 * 1024 - 64;
    CHECK_EQ(device_launch(&run, dev, &l), OK, "all shared memory");
    buffer_free(buf); /* its address is never used again */
    CHECK_EQ(device_launch(&run, dev, &good), OK, "freed buffer");
    CHECK_EQ(run.faults[0].kind, FAULT_OUT_OF_BOUNDS, "freed buffer");
    image_unload(image);
    image_unload(NULL);
}

/* The word that the image's k stores at p, with one thread. */
static uint32_t word_of(struct device *dev, struct dev_image *image, const char *what) {
    struct dev_buf *buf;
    CHECK_EQ(device_alloc(&buf, dev, 4), OK, "alloc");
    uint64_t address = buffer_address(buf);
    uint32_t got = 0;
    const void *args[] = {&address};
    struct dev_launch l = {.image = image,
                           .entry = "k",
                           .grid = {1, 1, 1},
                           .block = {1, 1, 1},
                           .args = args,
                           .arg_count = 1};
    CHECK_EQ(device_launch(&run, dev, &l) == OK && run.completed, 1, what);
    CHECK_EQ(buffer_read(&got, buf, 4), OK, what);
    buffer_free(buf);
    return got;
}

/* Many registers, all alive at once, and many instructions: slow is allowed, wrong is not. */
static void test_many_registers(struct device *dev) {
    enum { N = 20000 };
    size_t room = (size_t)N * 80 + 1024, at = 0;
    char *big = malloc(room);
    struct dev_image *image;
    at += (size_t)snprintf(
        big, room,
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %%r<%d>;\n.reg .b64 %%d<1>;\n",
        N);
    for (int i = 0; i < N; i++)
        at += (size_t)snprintf(big + at, room - at, "mov.u32 %%r%d, %d;\n", i, i);
    for (int i = 1; i < N; i++)
        at += (size_t)snprintf(big + at, room - at, "add.u32 %%r0, %%r0, %%r%d;\n", i);
    at += (size_t)snprintf(big + at, room - at,
                           "ld.param.u64 %%d0, [p];\nst.global.u32 [%%d0], %%r0;\nret;\n}\n");
    CHECK_EQ(device_load(&image, dev, "big", big, at), OK, "many registers");
    free(big);
    CHECK_EQ(word_of(dev, image, "many registers"), (uint32_t)N / 2 * (N - 1), "many registers");
    image_unload(image);
}

/* Loads of one text may share what is read only, and nothing else. */
static void test_loads_of_one_text(struct device *dev) {
    static const char counter[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 count = 7;\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<1>;\n.reg .b64 %d<1>;\n"
        "ld.global.u32 %r0, [count];\nadd.u32 %r0, %r0, 1;\nst.global.u32 [count], %r0;\n"
        "ld.param.u64 %d0, [p];\nst.global.u32 [%d0], %r0;\nret;\n}\n";
    struct dev_image *a, *b, *other;
    CHECK_EQ(device_load(&a, dev, "counter", counter, strlen(counter)), OK, "load");
    CHECK_EQ(device_load(&b, dev, "counter", counter, strlen(counter)), OK, "load again");
    CHECK_EQ(word_of(dev, a, "a variable of its own"), 8, "a variable of its own");
    CHECK_EQ(word_of(dev, a, "a variable of its own"), 9, "a variable of its own");
    CHECK_EQ(word_of(dev, b, "a variable of its own"), 8, "a variable of its own");
    image_unload(a);
    CHECK_EQ(word_of(dev, b, "the other one unloaded"), 9, "the other one unloaded");
    image_unload(b);

    CHECK_EQ(device_load(&a, dev, "t", text, strlen(text)), OK, "load");
    CHECK_EQ(device_load(&b, dev, "t", text, strlen(text)), OK, "load again");
    CHECK_EQ(device_load(&other, dev, "u", text, strlen(text)), OK, "load by another name");
    CHECK_EQ(image_entry(a, 0) == image_entry(b, 0), 1, "parsed once");
    CHECK_EQ(image_entry(a, 0) == image_entry(other, 0), 0, "messages have the other name");
    image_unload(a);
    CHECK_EQ(image_find(b, "k") != NULL, 1, "the other one unloaded");
    image_unload(b);
    CHECK_EQ(device_load(&a, dev, "t", text, strlen(text)), OK, "load once more");
    CHECK_EQ(image_find(a, "k") != NULL && image_find(other, "k") != NULL, 1, "both there");
    image_unload(other);
    image_unload(a);
}

int main(void) {
    struct device *dev;
    test_open();
    CHECK_EQ(device_open(&dev, "cpu", NULL), OK, "open");
    test_buffers(dev);
    test_launches(dev);
    test_many_registers(dev);
    test_loads_of_one_text(dev);
    device_close(dev);
    return report();
}
