/*
 * device/device_impl.h - what a back end provides; device.c puts guards, poison and names on top.
 *
 * A back end allocates whole regions (guards included) and never learns which part is the buffer,
 * except through `declare`, which tells the emulator's shadow where the buffer proper lies.
 */
#ifndef DEVICE_DEVICE_IMPL_H
#define DEVICE_DEVICE_IMPL_H

#include "device/device.h"

struct backend; /* one opened back end; its own struct begins as it likes */
struct module;  /* one loaded image; likewise */

struct backend_ops {
    const char *scheme; /* "cpu", "cuda": what stands before the colon */
    /* rest: what stands after the colon, "" if nothing. */
    status_t (*open)(struct backend **out, struct device_info *info, const char *rest,
                     const struct device_options *opt);
    void (*close)(struct backend *b);
    status_t (*load)(struct module **out, struct backend *b, const char *label, const void *text,
                     size_t size);
    void (*unload)(struct module *m);
    size_t (*entry_count)(const struct module *m);
    const struct dev_entry *(*entry)(const struct module *m, size_t i);
    /* A region of `size` bytes at *address (aligned to DEVICE_GUARD_BYTES). */
    status_t (*alloc)(uint64_t *address, struct backend *b, size_t size);
    void (*release)(struct backend *b, uint64_t address);
    /* Only [address, address + size) of a region may be touched by kernels; it is unwritten. */
    void (*declare)(struct backend *b, uint64_t address, size_t size);
    /* Host copies; they may cover guards.  write marks what it covers as written. */
    status_t (*write)(struct backend *b, uint64_t address, const void *src, size_t size);
    status_t (*read)(void *dst, struct backend *b, uint64_t address, size_t size);
    /* As a write of `size` times the same byte. */
    status_t (*set)(struct backend *b, uint64_t address, uint8_t byte, size_t size);
    status_t (*launch)(struct dev_run *run, struct backend *b, const struct module *m,
                       const struct dev_entry *entry, const struct dev_launch *launch);
    /* dev_tensor_map_encode of a map without a problem, on a device that has them. */
    status_t (*tensor_map)(uint8_t out[DEV_TENSOR_MAP_BYTES], struct backend *b,
                           const struct dev_tensor_map *map);
    /* device_time; entries[i] is launches[i]'s.  NULL: not timed. */
    status_t (*time)(double *seconds, struct backend *b, const struct module *const *modules,
                     const struct dev_entry *const *entries, const struct dev_launch *launches,
                     size_t count, size_t group);
};

/* What is wrong with a map, or NULL. */
const char *tensor_map_problem(const struct dev_tensor_map *map);

extern const struct backend_ops backend_cpu;  /* device/ptx/cpu.c */
extern const struct backend_ops backend_cuda; /* device/proxy.c */

#endif
