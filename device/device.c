/*
 * device.c - one interface over the back ends: names, guard bytes, poison, checked launches.
 *
 * A region is [guard | buffer | rest of the last 256 bytes | guard].  Everything but the buffer
 * holds GUARD_BYTE, the buffer starts as POISON_BYTE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/device_impl.h"
#include "device/target.h"

#define GUARD_BYTE 0xa5
#define POISON_BYTE 0xff /* a NaN in every format */
#define MAX_SHARED (227u * 1024)

struct device {
    const struct backend_ops *ops;
    struct backend *backend;
    struct device_info info;
    struct dev_buf *buffers; /* all that live, for the guard check after a launch; newest first */
    const struct dev_watch *watch; /* or NULL */
};

struct dev_image {
    struct device *device;
    struct module *module;
};

struct dev_buf {
    struct device *device;
    uint64_t region; /* address of the first guard byte */
    size_t size, region_size;
    struct dev_buf *next, **link; /* of device->buffers */
};

static const struct backend_ops *const backends[] = {&backend_cpu, &backend_cuda};

/* ---- open ------------------------------------------------------------------------------------ */

status_t device_open(struct device **out, const char *name, const struct device_options *opt) {
    status_t st = OK;
    static const struct device_options defaults;
    size_t scheme = strcspn(name, ":");
    const char *rest = name[scheme] ? name + scheme + 1 : name + scheme;
    struct device *d = calloc(1, sizeof *d);
    if (!d)
        return FAIL(ERR_NOMEM, "no memory for device '%s'", name);
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strlen(backends[i]->scheme) == scheme &&
            strncmp(name, backends[i]->scheme, scheme) == 0)
            d->ops = backends[i];
    if (!d->ops)
        TRY(FAIL(ERR_USAGE, "device '%s' is not known: cpu, cpu:sm_80 or cuda:0 was expected",
                 name));
    TRY(d->ops->open(&d->backend, &d->info, rest, opt ? opt : &defaults));
    d->info.timed = d->ops->time != NULL;
    *out = d;
    d = NULL;
done:
    free(d);
    return st;
}

void device_close(struct device *dev) {
    if (!dev)
        return;
    dev->ops->close(dev->backend);
    free(dev);
}

const struct device_info *device_info(const struct device *dev) {
    return &dev->info;
}

/* ---- images ---------------------------------------------------------------------------------- */

status_t device_load(struct dev_image **out, struct device *dev, const char *label,
                     const void *text, size_t size) {
    status_t st = OK;
    struct dev_image *image = calloc(1, sizeof *image);
    if (!image)
        return FAIL(ERR_NOMEM, "%s: no memory for the image", label);
    image->device = dev;
    TRY(dev->ops->load(&image->module, dev->backend, label, text, size));
    *out = image;
    image = NULL;
done:
    free(image);
    return st;
}

void image_unload(struct dev_image *image) {
    if (!image)
        return;
    image->device->ops->unload(image->module);
    free(image);
}

size_t image_entry_count(const struct dev_image *image) {
    return image->device->ops->entry_count(image->module);
}

const struct dev_entry *image_entry(const struct dev_image *image, size_t i) {
    return image->device->ops->entry(image->module, i);
}

const struct dev_entry *image_find(const struct dev_image *image, const char *name) {
    for (size_t i = 0; i < image_entry_count(image); i++)
        if (strcmp(image_entry(image, i)->name, name) == 0)
            return image_entry(image, i);
    return NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t tail_guard(const struct dev_buf *b) {
    return b->region_size - DEVICE_GUARD_BYTES - b->size;
}

uint64_t buffer_address(const struct dev_buf *buf) {
    return buf->region + DEVICE_GUARD_BYTES;
}

size_t buffer_size(const struct dev_buf *buf) {
    return buf->size;
}

status_t device_alloc(struct dev_buf **out, struct device *dev, size_t size) {
    status_t st = OK;
    if (size > SIZE_MAX / 2)
        return FAIL(ERR_NOMEM, "a buffer of %zu bytes", size);
    struct dev_buf *b = calloc(1, sizeof *b);
    if (!b)
        return FAIL(ERR_NOMEM, "no memory for a buffer");
    b->device = dev;
    b->size = size;
    b->region_size = size_align(size, DEVICE_GUARD_BYTES) + 2 * DEVICE_GUARD_BYTES;
    TRY(dev->ops->alloc(&b->region, dev->backend, b->region_size));
    st = dev->ops->set(dev->backend, b->region, GUARD_BYTE, DEVICE_GUARD_BYTES);
    if (st == OK)
        st = dev->ops->set(dev->backend, buffer_address(b) + size, GUARD_BYTE, tail_guard(b));
    if (st == OK)
        st = buffer_poison(b);
    if (st != OK) {
        dev->ops->release(dev->backend, b->region);
        goto done;
    }
    b->next = dev->buffers;
    b->link = &dev->buffers;
    if (b->next)
        b->next->link = &b->next;
    dev->buffers = b;
    *out = b;
    b = NULL;
done:
    free(b);
    return st;
}

void buffer_free(struct dev_buf *buf) {
    if (!buf)
        return;
    *buf->link = buf->next;
    if (buf->next)
        buf->next->link = buf->link;
    buf->device->ops->release(buf->device->backend, buf->region);
    free(buf);
}

status_t buffer_write(struct dev_buf *buf, const void *src, size_t size) {
    if (size > buf->size)
        return FAIL(ERR_USAGE, "%zu bytes do not fit a buffer of %zu", size, buf->size);
    return buf->device->ops->write(buf->device->backend, buffer_address(buf), src, size);
}

status_t buffer_read(void *dst, const struct dev_buf *buf, size_t size) {
    if (size > buf->size)
        return FAIL(ERR_USAGE, "a buffer of %zu bytes does not hold %zu", buf->size, size);
    return buf->device->ops->read(dst, buf->device->backend, buffer_address(buf), size);
}

status_t buffer_poison(struct dev_buf *buf) {
    status_t st = OK;
    const struct device *dev = buf->device;
    TRY(dev->ops->set(dev->backend, buffer_address(buf), POISON_BYTE, buf->size));
    dev->ops->declare(dev->backend, buffer_address(buf), buf->size);
done:
    return st;
}

static status_t is_filled(bool *intact, const struct dev_buf *buf, uint64_t address, size_t size) {
    status_t st = OK;
    uint8_t bytes[2 * DEVICE_GUARD_BYTES];
    TRY(buf->device->ops->read(bytes, buf->device->backend, address, size));
    for (size_t i = 0; i < size; i++)
        *intact = *intact && bytes[i] == GUARD_BYTE;
done:
    return st;
}

status_t buffer_guards(bool *intact, const struct dev_buf *buf) {
    status_t st = OK;
    *intact = true;
    TRY(is_filled(intact, buf, buf->region, DEVICE_GUARD_BYTES));
    TRY(is_filled(intact, buf, buffer_address(buf) + buf->size, tail_guard(buf)));
done:
    return st;
}

/* ---- tensor maps ----------------------------------------------------------------------------- */

size_t dev_tensor_type_bytes(enum dev_tensor_type type) {
    static const uint8_t bytes[DEV_TENSOR_TYPES] = {
        [DEV_TENSOR_U8] = 1,  [DEV_TENSOR_U16] = 2, [DEV_TENSOR_U32] = 4, [DEV_TENSOR_S32] = 4,
        [DEV_TENSOR_U64] = 8, [DEV_TENSOR_S64] = 8, [DEV_TENSOR_F16] = 2, [DEV_TENSOR_F32] = 4,
        [DEV_TENSOR_F64] = 8, [DEV_TENSOR_BF16] = 2};
    return (unsigned)type < DEV_TENSOR_TYPES ? bytes[type] : 0;
}

const char *tensor_map_problem(const struct dev_tensor_map *map) {
    size_t each = dev_tensor_type_bytes(map->type);
    if (!each)
        return "no such type";
    if (map->rank < 1 || map->rank > DEV_TENSOR_RANK)
        return "1 to 5 dimensions were expected";
    if (map->address % 16)
        return "the address is no multiple of 16";
    for (unsigned i = 0; i < map->rank; i++) {
        if (map->dims[i] < 1 || map->dims[i] > (uint64_t)1 << 32)
            return "a dimension is not in 1 .. 2^32";
        if (map->box[i] < 1 || map->box[i] > 256)
            return "a size of the box is not in 1 .. 256";
        if (map->element_strides[i] < 1 || map->element_strides[i] > (i ? 8u : 1u))
            return "an element stride is not in 1 .. 8 (1 for dimension 0)";
        if (i && (map->strides[i - 1] % 16 || map->strides[i - 1] >= (uint64_t)1 << 40))
            return "a stride is no multiple of 16 below 2^40";
    }
    size_t row = map->box[0] * each;
    if (row % 16)
        return "a row of the box is no multiple of 16 bytes";
    if (map->swizzle && map->swizzle != 32 && map->swizzle != 64 && map->swizzle != 128)
        return "a swizzle of 0, 32, 64 or 128 bytes was expected";
    return map->swizzle && row > map->swizzle ? "a row of the box is larger than the swizzle" : NULL;
}

status_t dev_tensor_map_encode(uint8_t out[DEV_TENSOR_MAP_BYTES], struct device *dev,
                               const struct dev_tensor_map *map) {
    const char *problem = tensor_map_problem(map);
    if (problem)
        return FAIL(ERR_USAGE, "tensor map: %s", problem);
    if (target_number(dev->info.arch) < 90)
        return FAIL(ERR_UNSUPPORTED, "tensor maps need sm_90, the device is %s", dev->info.arch);
    return dev->ops->tensor_map(out, dev->backend, map);
}

/* ---- launches -------------------------------------------------------------------------------- */

static status_t check_shape(const struct dev_entry *e, const struct dev_launch *l) {
    static const unsigned max_grid[3] = {0x7fffffff, 65535, 65535}, max_block[3] = {1024, 1024, 64};
    unsigned long long threads = 1;
    for (int i = 0; i < 3; i++) {
        if (l->grid[i] == 0 || l->grid[i] > max_grid[i])
            return FAIL(ERR_USAGE, "'%s': grid.%c is %u, 1 to %u was expected", e->name, "xyz"[i],
                        l -> grid[i], max_grid[i]);
        if (l->block[i] == 0 || l->block[i] > max_block[i])
            return FAIL(ERR_USAGE, "'%s': block.%c is %u, 1 to %u was expected", e->name, "xyz"[i],
                        l -> block[i], max_block[i]);
        threads *= l->block[i];
    }
    unsigned limit = e->max_threads && e->max_threads < 1024 ? e->max_threads : 1024;
    if (threads > limit)
        return FAIL(ERR_USAGE, "'%s': a block of %llu threads, at most %u were expected", e->name,
                    threads, limit);
    if (l->dynamic_shared > MAX_SHARED ||
        size_align(e->static_shared, 16) > MAX_SHARED - l->dynamic_shared)
        return FAIL(ERR_USAGE, "'%s': %zu + %zu bytes of shared memory, at most %u were expected",
                    e->name, e->static_shared, l->dynamic_shared, MAX_SHARED);
    return OK;
}

/* The cluster that the launch names, or the entry declares, or 1. */
static status_t choose_cluster(struct dev_launch *l, const struct dev_entry *e) {
    bool named = l->cluster[0] || l->cluster[1] || l->cluster[2];
    bool declared = e->cluster[0] != 0;
    unsigned long long blocks = 1;
    if (!named && e->needs_cluster && !declared)
        return FAIL(ERR_USAGE, "'%s' has to be launched with a cluster", e->name);
    for (int i = 0; i < 3; i++) {
        unsigned want = declared ? e->cluster[i] : 1;
        if (!named)
            l->cluster[i] = want;
        if (named && declared && l->cluster[i] != want)
            return FAIL(ERR_USAGE, "'%s': cluster.%c is %u, the entry declares %u", e->name,
                        "xyz"[i], l -> cluster[i], want);
        if (l->cluster[i] == 0 || l->cluster[i] > DEV_MAX_CLUSTER)
            return FAIL(ERR_USAGE, "'%s': cluster.%c is %u, 1 to %u was expected", e->name,
                        "xyz"[i], l -> cluster[i], DEV_MAX_CLUSTER);
        if (l->grid[i] % l->cluster[i])
            return FAIL(ERR_USAGE, "'%s': grid.%c is %u, no multiple of cluster.%c, which is %u",
                        e->name, "xyz"[i], l -> grid[i], "xyz"[i], l -> cluster[i]);
        blocks *= l->cluster[i];
    }
    if (blocks > DEV_MAX_CLUSTER)
        return FAIL(ERR_USAGE, "'%s': a cluster of %llu blocks, at most %u were expected", e->name,
                    blocks, DEV_MAX_CLUSTER);
    return OK;
}

/* A back end without bounds checks shows stray writes here. */
static status_t check_guards(struct dev_run *run, const struct device *dev,
                             const struct dev_launch *l) {
    status_t st = OK;
    for (const struct dev_buf *b = dev->buffers; b; b = b->next) {
        bool intact;
        TRY(buffer_guards(&intact, b));
        if (intact)
            continue;
        run->fault_total++;
        if (run->fault_count == DEV_MAX_FAULTS)
            continue;
        struct dev_fault *f = &run->faults[run->fault_count++];
        *f = (struct dev_fault){.kind = FAULT_GUARD, .address = buffer_address(b)};
        snprintf(f->kernel, sizeof f->kernel, "%s", l->entry);
        snprintf(f->text, sizeof f->text,
                 "%s: the guard bytes around a buffer of %zu bytes changed", l->entry, b->size);
    }
done:
    return st;
}

void device_watch(struct device *dev, const struct dev_watch *watch) {
    dev->watch = watch;
}

static status_t show(struct device *dev, bool done, const struct dev_launch *launch) {
    size_t count = 0;
    if (!dev->watch)
        return OK;
    for (const struct dev_buf *b = dev->buffers; b; b = b->next)
        count++;
    struct dev_buf **all = calloc(count + 1, sizeof *all);
    if (!all)
        return FAIL(ERR_NOMEM, "no memory to watch a launch");
    size_t at = count;
    for (struct dev_buf *b = dev->buffers; b; b = b->next)
        all[--at] = b;
    status_t st = dev->watch->step(dev->watch->context, done, launch, all, count);
    free(all);
    return st;
}

/* *entry = what the launch asks for, if it fits; *out = the launch with its cluster. */
static status_t check_launch(const struct dev_entry **entry, struct dev_launch *out,
                             const struct dev_launch *launch) {
    const struct dev_entry *e = image_find(launch->image, launch->entry);
    if (!e)
        return FAIL(ERR_USAGE, "the image has no entry '%s'", launch->entry);
    if (launch->arg_count != e->param_count)
        return FAIL(ERR_USAGE, "'%s' takes %zu arguments, %zu were given", e->name, e->param_count,
                    launch->arg_count);
    *entry = e;
    *out = *launch;
    status_t st = check_shape(e, launch);
    return st == OK ? choose_cluster(out, e) : st;
}

status_t device_launch(struct dev_run *run, struct device *dev, const struct dev_launch *launch) {
    status_t st = OK;
    const struct dev_entry *e;
    struct dev_launch complete;
    *run = (struct dev_run){0};
    TRY(check_launch(&e, &complete, launch));
    TRY(show(dev, false, launch));
    TRY(dev->ops->launch(run, dev->backend, launch->image->module, e, &complete));
    if (run->completed) {
        TRY(check_guards(run, dev, launch));
        TRY(show(dev, true, launch));
    }
done:
    return st;
}

status_t device_time(double *seconds, struct device *dev, const struct dev_launch *launches,
                     size_t count, size_t group) {
    status_t st = OK;
    if (!dev->ops->time)
        return FAIL(ERR_UNSUPPORTED, "device %s counts instructions and does not time them",
                    dev->info.name);
    if (group == 0 || count % group != 0)
        return FAIL(ERR_USAGE, "%zu launches in groups of %zu", count, group);
    const struct dev_entry **entries = calloc(count + 1, sizeof *entries);
    const struct module **modules = calloc(count + 1, sizeof *modules);
    struct dev_launch *complete = calloc(count + 1, sizeof *complete);
    if (!entries || !modules || !complete)
        TRY(FAIL(ERR_NOMEM, "no memory to time %zu launches", count));
    for (size_t i = 0; i < count; i++) {
        TRY(check_launch(&entries[i], &complete[i], &launches[i]));
        modules[i] = launches[i].image->module;
    }
    TRY(dev->ops->time(seconds, dev->backend, modules, entries, complete, count, group));
done:
    free(complete);
    free(entries);
    free(modules);
    return st;
}
