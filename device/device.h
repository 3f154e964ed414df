/*
 * device/device.h - how a kernel runs: one interface over the PTX emulator and the CUDA driver.
 *
 *   cpu           the emulator with the arithmetic of DEVICE_DEFAULT_ARCH
 *   cpu:sm_80     the emulator with another target's arithmetic
 *   cuda:0        the first GPU, through the driver API
 *
 * Every buffer stands between guard bytes and starts poisoned with 0xff (a NaN in every format), on
 * every device: what a kernel leaves unwritten or writes outside is found.
 *
 * A cuda device is a child process.  A kernel that faults there, hangs or takes the driver with it
 * ends the child; the launch reports a fault and does not complete, and the next use starts another
 * child.  Images stay; buffers can then only be freed, all of them before the next is allocated.
 * The environment variable ASSAY_LIBCUDA names another driver than libcuda.so.1.
 *
 * Nothing here exits or prints.  A device is used by one thread at a time; open one per thread.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define DEVICE_DEFAULT_ARCH "sm_90"
#define DEVICE_GUARD_BYTES 256 /* on each side of a buffer; also its alignment */

struct device;
struct dev_image;
struct dev_buf;

struct device_options {
    bool shadow;                /* track unwritten, racing accesses (cpu; always bounds-checked) */
    uint64_t insn_budget;       /* warp instructions one launch may execute; 0: 2^34 */
    uint64_t memory_budget;     /* bytes that buffers and launches may hold; 0: 4 GiB */
    unsigned max_faults;        /* fault records kept per launch; 0: 16 */
    /*
     * cuda: a launch that is not done after so many seconds, and 1 s for each 100 MB of buffers, is
     * a hang; after 3 hangs an entry is not launched again.  0: the environment variable
     * ASSAY_LAUNCH_SECONDS, or 10.
     */
    double launch_seconds;
};

struct device_info {
    char name[64];   /* "cpu", or the GPU's own name */
    char arch[16];   /* "sm_90" */
    char driver[32]; /* driver version; "" on cpu */
    size_t cache_bytes; /* of the last cache before memory; 0 on cpu */
    bool timed;         /* the device can time launches: device_time */
};

/* Open by name.  opt may be NULL.  ERR_USAGE for a name that is no device, ERR_DEVICE, ERR_NOMEM. */
MUST_CHECK status_t device_open(struct device **out, const char *name,
                                const struct device_options *opt);
void device_close(struct device *dev); /* NULL is fine; images and buffers must be gone before */
const struct device_info *device_info(const struct device *dev);

/* ---- images ---------------------------------------------------------------------------------- */

/* One parameter of an entry as the image declares it. */
struct dev_param {
    size_t size, align; /* bytes */
};

struct dev_entry {
    const char *name;
    size_t param_count;
    const struct dev_param *params;
    size_t static_shared;   /* bytes of shared memory declared in the entry */
    unsigned max_threads;   /* .maxntid / .reqntid product; 0: not declared */
    unsigned cluster[3];    /* .reqnctapercluster: blocks of a cluster; 0: not declared */
    bool needs_cluster;     /* .explicitcluster: a launch has to name its cluster */
    unsigned ambiguous;     /* mul feeding an add, both without a rounding suffix: bits not fixed */
    unsigned ambiguous_line; /* PTX line of the first such pair */
};

/*
 * Load PTX text (cpu, cuda) or a cubin (cuda).  label names the image in messages and faults, usually
 * its path.  text need not end in NUL and is not kept.  ERR_SYNTAX with label:line:col, the line and
 * a caret; ERR_UNSUPPORTED for a form that the emulator does not have, the same way; ERR_TARGET for one
 * that is compiled for other devices: a newer architecture, or another one's sm_90a.
 */
MUST_CHECK status_t device_load(struct dev_image **out, struct device *dev, const char *label,
                                const void *text, size_t size);
void image_unload(struct dev_image *image); /* NULL is fine */
size_t image_entry_count(const struct dev_image *image);
const struct dev_entry *image_entry(const struct dev_image *image, size_t i);
const struct dev_entry *image_find(const struct dev_image *image, const char *name); /* or NULL */

/* ---- memory ---------------------------------------------------------------------------------- */

/* size may be 0.  The contents are poison (0xff) and count as never written. */
MUST_CHECK status_t device_alloc(struct dev_buf **out, struct device *dev, size_t size);
void buffer_free(struct dev_buf *buf); /* NULL is fine */
size_t buffer_size(const struct dev_buf *buf);
uint64_t buffer_address(const struct dev_buf *buf); /* what a kernel gets as its pointer */
MUST_CHECK status_t buffer_write(struct dev_buf *buf, const void *src, size_t size); /* from byte 0 */
MUST_CHECK status_t buffer_read(void *dst, const struct dev_buf *buf, size_t size);
/* Poison the whole buffer again, as after device_alloc. */
MUST_CHECK status_t buffer_poison(struct dev_buf *buf);
/* *intact = the guard bytes on both sides are as they were laid. */
MUST_CHECK status_t buffer_guards(bool *intact, const struct dev_buf *buf);

/* ---- tensor maps ----------------------------------------------------------------------------- */

enum dev_tensor_type {
    DEV_TENSOR_U8, DEV_TENSOR_U16, DEV_TENSOR_U32, DEV_TENSOR_S32, DEV_TENSOR_U64, DEV_TENSOR_S64,
    DEV_TENSOR_F16, DEV_TENSOR_F32, DEV_TENSOR_F64, DEV_TENSOR_BF16, DEV_TENSOR_TYPES
};

size_t dev_tensor_type_bytes(enum dev_tensor_type type);

#define DEV_TENSOR_RANK 5
#define DEV_TENSOR_MAP_BYTES 128

/*
 * A tensor in global memory and the boxes that cp.async.bulk.tensor copies of it, as
 * cuTensorMapEncodeTiled takes them (CUDA Driver API, "Tensor Map Object Management"): tile mode, no
 * interleaving, zeros outside the tensor.  Dimension 0 is the one whose elements lie side by side; what
 * is stored there ends at a multiple of 16 bytes, so up to 15 bytes past the tensor are written.
 */
struct dev_tensor_map {
    enum dev_tensor_type type;
    unsigned rank;                             /* dimensions: 1 .. 5 */
    uint64_t address;                          /* of the first element; a multiple of 16 */
    uint64_t dims[DEV_TENSOR_RANK];            /* elements: 1 .. 2^32 */
    uint64_t strides[DEV_TENSOR_RANK - 1];     /* bytes, of dimension i + 1; a multiple of 16 below 2^40 */
    unsigned box[DEV_TENSOR_RANK];             /* elements: 1 .. 256; a row of it a multiple of 16 bytes */
    unsigned element_strides[DEV_TENSOR_RANK]; /* 1 .. 8: every so many elements are copied; [0] is 1 */
    unsigned swizzle;                          /* bytes: 0, 32, 64, 128, at least a row of the box */
};

/*
 * out: what a kernel gets as its CUtensorMap, at a multiple of 64 bytes in global, constant or
 * parameter memory; its bits are the device's own.  ERR_USAGE for a map outside the bounds above,
 * ERR_UNSUPPORTED on a device older than sm_90, ERR_DEVICE.
 */
MUST_CHECK status_t dev_tensor_map_encode(uint8_t out[DEV_TENSOR_MAP_BYTES], struct device *dev,
                                          const struct dev_tensor_map *map);

/* ---- launches -------------------------------------------------------------------------------- */

enum dev_fault_kind {
    FAULT_OUT_OF_BOUNDS,  /* an access outside every buffer or window */
    FAULT_MISALIGNED,
    FAULT_UNWRITTEN,      /* a read of memory that nothing wrote */
    FAULT_RACE,           /* two threads, one writes, no barrier between */
    FAULT_DIVERGENT_BARRIER, /* threads wait at barriers that cannot complete, or misuse one */
    FAULT_BAD_SHUFFLE,    /* a lane outside the member mask, or not there, is read or named */
    FAULT_INSN_BUDGET,    /* the launch ran past its instruction budget */
    FAULT_TRAP,           /* the kernel executed trap */
    FAULT_GUARD,          /* a buffer's guard bytes changed (found after the launch) */
    FAULT_INPUT,          /* the kernel changed one of its inputs (found after the last launch) */
    FAULT_TENSOR_MAP,     /* a map that cannot be made (found before the first launch) */
    FAULT_DEVICE,         /* anything else that the device reported; a hang, a crashed driver (cuda) */
};

const char *dev_fault_name(enum dev_fault_kind kind); /* "out of bounds" */

struct dev_fault {
    enum dev_fault_kind kind;
    char kernel[64];
    unsigned block[3], thread[3];
    unsigned ptx_line;    /* 0: not known */
    char source[96];      /* source file of .loc; "" if none */
    unsigned source_line;
    uint64_t address;     /* of the access; 0 where there is none */
    char text[224];       /* "KERNEL: ...", one sentence, everything above in words */
};

/* What happened inside, counted per lane. */
struct dev_events {
    uint64_t nan_born;          /* NaN result from operands without NaN */
    uint64_t inf_born;          /* infinite result from finite operands */
    uint64_t subnormal_flushed; /* a non-zero operand or result became zero by ftz */
};

#define DEV_MAX_CLUSTER 16

/* One launch.  args[i] points to params[i].size bytes. */
struct dev_launch {
    const struct dev_image *image;
    const char *entry;
    unsigned grid[3], block[3];
    size_t dynamic_shared; /* bytes */
    /*
     * Blocks of a thread-block cluster (sm_90 and later), at most DEV_MAX_CLUSTER; the grid is a
     * multiple of it.  All 0: what the entry declares, else 1.
     */
    unsigned cluster[3];
    const void *const *args;
    size_t arg_count;
    /*
     * 0: blocks and warps in index order.  Else a seed: blocks run in a permuted order and warps are
     * switched at other points, which a correct kernel must not notice (cpu only).
     */
    uint64_t schedule_seed;
};

#define DEV_MAX_FAULTS 16

struct dev_run {
    bool completed;               /* false: a fault stopped it; memory is as far as it got */
    size_t fault_count;           /* records in faults[] */
    uint64_t fault_total;         /* faults seen, kept or not */
    struct dev_fault faults[DEV_MAX_FAULTS];
    struct dev_events events;     /* cpu only */
    uint64_t warp_insns, lane_insns; /* executed; lane_insns counts active lanes (cpu only) */
    uint64_t bytes_read, bytes_written; /* global memory, as the lanes asked (cpu only) */
    double seconds;               /* device time */
};

/*
 * Run one launch to its end.  A fault of the kernel is no failure of this function: it is in *run.
 * ERR_USAGE when the launch does not fit the entry (argument count or size, grid or block 0 or over
 * the target's limits, shared memory over 227 KiB, a cluster that does not divide the grid); ERR_NOMEM; ERR_DEVICE.
 */
MUST_CHECK status_t device_launch(struct dev_run *run, struct device *dev,
                                  const struct dev_launch *launch);

/*
 * Run count launches back to back and time them in groups of `group` (count is a multiple of it):
 * seconds[k] is the device time from the first launch of group k to the end of its last.  All are
 * queued before the first one is waited for, so that the host's work does not show.  Nothing is
 * looked at in between, guards neither: run each launch through device_launch before.
 * ERR_USAGE as there; ERR_UNSUPPORTED on a device that is not timed; ERR_DEVICE, also for a fault.
 */
MUST_CHECK status_t device_time(double *seconds, struct device *dev,
                                const struct dev_launch *launches, size_t count, size_t group);

/* ---- watching -------------------------------------------------------------------------------- */

/*
 * Called before each launch of the device (done = false) and after one that completed (done = true),
 * with the buffers that live, oldest first.  What it returns but OK ends device_launch.
 */
struct dev_watch {
    status_t (*step)(void *context, bool done, const struct dev_launch *launch,
                     struct dev_buf *const *buffers, size_t count);
    void *context;
};

void device_watch(struct device *dev, const struct dev_watch *watch); /* NULL: no more */

#endif
