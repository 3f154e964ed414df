/*
 * tests/kernels/fake_device.h - device/device.h without a device: it runs nothing and records what
 * it is asked.  An image is a list of lines `entry NAME SIZE...`, its parameters' sizes in bytes.
 */
#ifndef TESTS_KERNELS_FAKE_DEVICE_H
#define TESTS_KERNELS_FAKE_DEVICE_H

#include "device/device.h"

#define FAKE_MAX_ARGS 8
#define FAKE_MAX_LAUNCHES 8

struct fake_launch {
    char entry[32];
    unsigned grid[3], block[3];
    unsigned cluster[3];
    size_t dynamic_shared;
    uint64_t schedule_seed;
    uint64_t args[FAKE_MAX_ARGS]; /* zero-extended from the parameter's size; its first 8 bytes */
};

struct fake {
    struct fake_launch launches[FAKE_MAX_LAUNCHES];
    size_t launch_count;
    size_t stop_at;      /* this launch does not complete; SIZE_MAX: all do */
    size_t fail_at;      /* this launch breaks the device; SIZE_MAX: none */
    size_t break_guard;  /* address of a buffer whose guards break; 0: none */
    size_t change_buffer; /* address of a written buffer that the kernel changes; 0: none */
    size_t buffers;      /* alive */
    size_t allocated[8]; /* sizes, in the order of allocation */
    size_t allocations;
    struct dev_tensor_map maps[4]; /* encoded ones; the n-th one's bytes begin with 1000 + n */
    size_t map_count;
};

extern struct fake fake;

void fake_reset(void);

#endif
