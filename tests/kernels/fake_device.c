#include "fake_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES 8

struct device {
    int unused;
};

struct dev_image {
    struct dev_entry entries[MAX_ENTRIES];
    struct dev_param params[MAX_ENTRIES][FAKE_MAX_ARGS];
    char names[MAX_ENTRIES][32];
    size_t count;
};

struct dev_buf {
    size_t size;
    uint64_t address;
    unsigned char *bytes;
    bool written;
};

struct fake fake;
static struct device the_device;

void fake_reset(void) {
    fake = (struct fake){.stop_at = SIZE_MAX, .fail_at = SIZE_MAX};
}

status_t device_open(struct device **out, const char *name, const struct device_options *opt) {
    (void)name, (void)opt;
    *out = &the_device;
    return OK;
}

void device_close(struct device *dev) {
    (void)dev;
}

const struct device_info *device_info(const struct device *dev) {
    static const struct device_info info = {"fake", "sm_00", ""};
    (void)dev;
    return &info;
}

static void read_entry(struct dev_image *image, const char *line) {
    size_t i = image->count++, n = 0;
    int used = 0;
    sscanf(line, "entry %31s%n", image->names[i], &used);
    line += used;
    while (n < FAKE_MAX_ARGS && sscanf(line, "%zu%n", &image->params[i][n].size, &used) == 1) {
        line += used;
        n++;
    }
    image->entries[i] = (struct dev_entry){
        .name = image->names[i],
        .param_count = n,
        .params = image->params[i],
        .ambiguous = (unsigned)i, /* something to add up */
    };
}

status_t device_load(struct dev_image **out, struct device *dev, const char *label,
                     const void *text, size_t size) {
    (void)dev;
    *out = NULL;
    if (strncmp(text, "entry ", 6) != 0)
        return FAIL(ERR_SYNTAX, "%s:1:1: expected `entry`", label);
    struct dev_image *image = calloc(1, sizeof *image);
    char *copy = strndup(text, size), *rest = copy;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_entry(image, line);
    free(copy);
    *out = image;
    return OK;
}

void image_unload(struct dev_image *image) {
    free(image);
}

size_t image_entry_count(const struct dev_image *image) {
    return image->count;
}

const struct dev_entry *image_entry(const struct dev_image *image, size_t i) {
    return &image->entries[i];
}

const struct dev_entry *image_find(const struct dev_image *image, const char *name) {
    for (size_t i = 0; i < image->count; i++)
        if (strcmp(image->names[i], name) == 0)
            return &image->entries[i];
    return NULL;
}

status_t device_alloc(struct dev_buf **out, struct device *dev, size_t size) {
    (void)dev;
    *out = calloc(1, sizeof **out);
    (*out)->bytes = malloc(size + 1);
    memset((*out)->bytes, 0xff, size);
    (*out)->size = size;
    (*out)->address = 0x1000 * (uint64_t)(fake.allocations + 1);
    fake.allocated[fake.allocations++] = size;
    fake.buffers++;
    return OK;
}

void buffer_free(struct dev_buf *buf) {
    if (!buf)
        return;
    fake.buffers--;
    free(buf->bytes);
    free(buf);
}

size_t buffer_size(const struct dev_buf *buf) {
    return buf->size;
}

uint64_t buffer_address(const struct dev_buf *buf) {
    return buf->address;
}

status_t buffer_write(struct dev_buf *buf, const void *src, size_t size) {
    memcpy(buf->bytes, src, size);
    buf->written = true;
    return OK;
}

/* What was written; else every byte of a result says which buffer it came from. */
status_t buffer_read(void *dst, const struct dev_buf *buf, size_t size) {
    if (buf->written && buf->address != fake.change_buffer)
        memcpy(dst, buf->bytes, size);
    else
        memset(dst, (int)(buf->address >> 12), size);
    return OK;
}

status_t buffer_poison(struct dev_buf *buf) {
    memset(buf->bytes, 0xff, buf->size);
    return OK;
}

status_t buffer_guards(bool *intact, const struct dev_buf *buf) {
    *intact = buf->address != fake.break_guard;
    return OK;
}

const char *dev_fault_name(enum dev_fault_kind kind) {
    (void)kind;
    return "fake";
}

status_t device_launch(struct dev_run *run, struct device *dev, const struct dev_launch *launch) {
    (void)dev;
    size_t at = fake.launch_count++;
    const struct dev_entry *entry = image_find(launch->image, launch->entry);
    struct fake_launch *seen = &fake.launches[at];
    *run = (struct dev_run){.completed = at != fake.stop_at};
    if (at == fake.fail_at)
        return FAIL(ERR_DEVICE, "broken");
    if (!run->completed) {
        run->fault_count = run->fault_total = 1;
        run->faults[0].kind = FAULT_TRAP;
    }
    snprintf(seen->entry, sizeof seen->entry, "%s", launch->entry);
    memcpy(seen->grid, launch->grid, sizeof seen->grid);
    memcpy(seen->block, launch->block, sizeof seen->block);
    memcpy(seen->cluster, launch->cluster, sizeof seen->cluster);
    seen->dynamic_shared = launch->dynamic_shared;
    seen->schedule_seed = launch->schedule_seed;
    for (size_t i = 0; i < launch->arg_count; i++)
        memcpy(&seen->args[i], launch->args[i],
               entry->params[i].size < 8 ? entry->params[i].size : 8);
    return OK;
}

size_t dev_tensor_type_bytes(enum dev_tensor_type type) {
    return type == DEV_TENSOR_F32 ? 4 : type == DEV_TENSOR_U8 ? 1 : 2;
}

status_t dev_tensor_map_encode(uint8_t out[DEV_TENSOR_MAP_BYTES], struct device *dev,
                               const struct dev_tensor_map *map) {
    (void)dev;
    if (map->box[0] == 99)
        return FAIL(ERR_USAGE, "tensor map: 99");
    uint64_t mark = 1000 + fake.map_count;
    memset(out, 0, DEV_TENSOR_MAP_BYTES);
    memcpy(out, &mark, sizeof mark);
    fake.maps[fake.map_count++ % 4] = *map;
    return OK;
}
