/*
 * fake_cuda.c - a CUDA driver made of the emulator, for tests without a GPU.
 *
 * A program that has it linked in and exports its symbols is its own driver: ASSAY_LIBCUDA="".
 * ASSAY_FAKE_CUDA plants faults, several with a comma between:
 *
 *     crash:ENTRY:N    the driver dies of a signal when ENTRY is launched with a grid of N x ...
 *     exit:ENTRY:N     the driver ends the process
 *     hang:ENTRY:N     the kernel never ends
 *     sticky:ENTRY:N   the kernel ends the context
 *     deaf:load        loading an image never returns
 *     swap:OLD>NEW     every OLD in a PTX text is NEW: another arithmetic
 *     dry:launch       nothing is computed
 *     older:device     it is an sm_80
 *     full:stack       there is no memory for stacks
 *
 * A kernel of an image with alloca, or a function called `recursive`, faults unless it has more than
 * 16 KiB of stack.
 *
 * Its time is known: a launch of bench's copy16_* takes what 16 bytes in and 16 out per vector take at
 * 1 TB/s, every other launch 1 us per block.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/device_impl.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* nobody calls these by name */

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };

struct fake_module {
    struct module *module;
    unsigned count;
    bool deep; /* it needs stack */
    struct fake_function {
        struct fake_module *of;
        const struct dev_entry *entry;
        int dynamic_shared;
    } * functions;
};

static struct backend *backend;
static struct device_info info;
static int sticky; /* the error that every call gives from now on */
static bool hanging;
static size_t stack_bytes = 1024;
static int context;    /* its address is the handle */
static double clock_ms; /* device time */

/* ---- plants ----------------------------------------------------------------------------------- */

/* Is the fault WHAT planted for this entry and grid? */
static bool planted(const char *what, const char *entry, unsigned grid) {
    char list[1024], *rest;
    snprintf(list, sizeof list, "%s", getenv("ASSAY_FAKE_CUDA") ? getenv("ASSAY_FAKE_CUDA") : "");
    for (char *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        char kind[16] = "", name[64] = "";
        unsigned n = 0;
        if (sscanf(one, "%15[a-z]:%63[^:]:%u", kind, name, &n) >= 2 && strcmp(kind, what) == 0 &&
            strcmp(name, entry) == 0 && (n == 0 || n == grid))
            return true;
    }
    return false;
}

/* The text with all swaps made; free it. */
static char *swapped(const char *text) {
    char list[1024], *rest, *out = strdup(text);
    snprintf(list, sizeof list, "%s", getenv("ASSAY_FAKE_CUDA") ? getenv("ASSAY_FAKE_CUDA") : "");
    for (char *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        char old[128], new[128];
        if (sscanf(one, "swap:%127[^>]>%127s", old, new) != 2)
            continue;
        char *next = malloc(strlen(out) * (1 + strlen(new)) + 1), *to = next, *from = out, *at;
        for (; (at = strstr(from, old)); from = at + strlen(old))
            to += sprintf(to, "%.*s%s", (int)(at - from), from, new);
        strcpy(to, from);
        free(out);
        out = next;
    }
    return out;
}

/* ---- the driver ------------------------------------------------------------------------------- */

EXPORT int cuInit(unsigned flags) {
    return flags ? INVALID_VALUE : SUCCESS;
}

EXPORT int cuGetErrorName(int error, const char **name) {
    *name = error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return SUCCESS;
}

EXPORT int cuDriverGetVersion(int *version) {
    *version = 13000;
    return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *count) {
    *count = 1;
    return SUCCESS;
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return SUCCESS;
}

EXPORT int cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    snprintf(name, (size_t)size, "fake GPU");
    return SUCCESS;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    const int major = planted("older", "device", 0) ? 8 : 9;
    *value = attribute == 75 ? major : attribute == 38 ? 1 << 20 : 0; /* sm_90, 1 MiB of L2 */
    return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRetain(void **out, int device) {
    (void)device;
    static const struct device_options options = {.shadow = false};
    const char *arch = planted("older", "device", 0) ? "sm_80" : "sm_90";
    if (!backend && backend_cpu.open(&backend, &info, arch, &options) != OK)
        return OUT_OF_MEMORY;
    *out = &context;
    return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return SUCCESS;
}

EXPORT int cuCtxSetCurrent(void *to) {
    return to == &context ? sticky : INVALID_VALUE;
}

EXPORT int cuCtxSetLimit(int limit, size_t value) {
    if (limit != 0)
        return INVALID_VALUE;
    if (planted("full", "stack", 0))
        return OUT_OF_MEMORY;
    stack_bytes = value;
    return sticky;
}

EXPORT int cuModuleLoadDataEx(void **out, const void *text, unsigned count, const int *options,
                              void **values) {
    struct fake_module *m = calloc(1, sizeof *m);
    char *real = swapped(text);
    while (planted("deaf", "load", 0))
        sleep(1);
    m->deep = strstr(real, "alloca.") || strstr(real, "recursive");
    status_t st = backend_cpu.load(&m->module, backend, "image", real, strlen(real));
    free(real);
    if (st != OK) {
        for (unsigned i = 0; i < count; i++)
            if (options[i] == 5) /* the error log */
                snprintf(values[i], 512, "%s", status_message());
        free(m);
        return 218; /* CUDA_ERROR_INVALID_PTX */
    }
    m->count = (unsigned)backend_cpu.entry_count(m->module);
    m->functions = calloc(m->count + 1, sizeof *m->functions);
    for (unsigned i = 0; i < m->count; i++)
        m->functions[i] = (struct fake_function){.of = m, .entry = backend_cpu.entry(m->module, i)};
    *out = m;
    return sticky;
}

EXPORT int cuModuleUnload(void *module) {
    struct fake_module *m = module;
    backend_cpu.unload(m->module);
    free(m->functions);
    free(m);
    return sticky;
}

EXPORT int cuModuleGetFunctionCount(unsigned *count, void *module) {
    *count = ((struct fake_module *)module)->count;
    return sticky;
}

EXPORT int cuModuleEnumerateFunctions(void **out, unsigned count, void *module) {
    for (unsigned i = 0; i < count; i++)
        out[i] = &((struct fake_module *)module)->functions[i];
    return sticky;
}

EXPORT int cuFuncLoad(void *function) {
    (void)function;
    return sticky;
}

EXPORT int cuFuncGetName(const char **name, void *function) {
    *name = ((struct fake_function *)function)->entry->name;
    return sticky;
}

EXPORT int cuFuncGetParamInfo(void *function, size_t i, size_t *offset, size_t *size) {
    const struct dev_entry *e = ((struct fake_function *)function)->entry;
    if (i >= e->param_count)
        return INVALID_VALUE;
    *offset = 0;
    *size = e->params[i].size;
    return sticky;
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function) {
    const struct dev_entry *e = ((struct fake_function *)function)->entry;
    *value = attribute == 1   ? (int)e->static_shared
             : attribute == 0 ? (e->max_threads ? (int)e->max_threads : 1024)
                              : 0; /* no cluster */
    return sticky;
}

EXPORT int cuFuncSetAttribute(void *function, int attribute, int value) {
    (void)attribute;
    ((struct fake_function *)function)->dynamic_shared = value;
    return sticky;
}

EXPORT int cuMemAlloc_v2(unsigned long long *address, size_t size) {
    uint64_t at;
    if (backend_cpu.alloc(&at, backend, size) != OK)
        return OUT_OF_MEMORY;
    backend_cpu.declare(backend, at, size);
    *address = at;
    return sticky;
}

EXPORT int cuMemFree_v2(unsigned long long address) {
    backend_cpu.release(backend, address);
    return sticky;
}

EXPORT int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size) {
    return sticky                                             ? sticky
           : backend_cpu.write(backend, to, from, size) == OK ? SUCCESS
                                                              : INVALID_VALUE;
}

EXPORT int cuMemsetD8_v2(unsigned long long to, unsigned char byte, size_t size) {
    if (sticky)
        return sticky;
    return backend_cpu.set(backend, to, byte, size) == OK ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuTensorMapEncodeTiled(void *out, int type, unsigned rank, void *address,
                                  const uint64_t *dims, const uint64_t *strides,
                                  const unsigned *box, const unsigned *element_strides,
                                  int interleave, int swizzle, int promotion, int fill) {
    static const uint8_t types[] = {DEV_TENSOR_U8,  DEV_TENSOR_U16, DEV_TENSOR_U32, DEV_TENSOR_S32,
                                    DEV_TENSOR_U64, DEV_TENSOR_S64, DEV_TENSOR_F16, DEV_TENSOR_F32,
                                    DEV_TENSOR_F64, DEV_TENSOR_BF16};
    if (sticky)
        return sticky;
    if ((uintptr_t)out % 64 || interleave || promotion || fill || swizzle < 0 || swizzle > 3 ||
        type < 0 || (size_t)type >= sizeof types || rank < 1 || rank > DEV_TENSOR_RANK)
        return INVALID_VALUE;
    struct dev_tensor_map map = {.type = (enum dev_tensor_type)types[type],
                                 .rank = rank,
                                 .address = (uint64_t)(uintptr_t)address,
                                 .swizzle = swizzle ? 16u << swizzle : 0};
    for (unsigned i = 0; i < rank; i++) {
        map.dims[i] = dims[i];
        map.box[i] = box[i];
        map.element_strides[i] = element_strides[i];
        if (i)
            map.strides[i - 1] = strides[i - 1];
    }
    return !tensor_map_problem(&map) && backend_cpu.tensor_map(out, backend, &map) == OK
               ? SUCCESS
               : INVALID_VALUE;
}

EXPORT int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size) {
    return sticky                                            ? sticky
           : backend_cpu.read(to, backend, from, size) == OK ? SUCCESS
                                                             : INVALID_VALUE;
}

/* The copy's parameters: to, from, vectors. */
static double cost_ms(const struct dev_launch *l) {
    if (strncmp(l->entry, "copy16_", 7) == 0)
        return 32.0 * *(const int *)l->args[2] / 1e12 * 1e3;
    return 1e-3 * l->grid[0] * l->grid[1] * l->grid[2];
}

static int launch_at(const struct fake_function *f, struct dev_launch launch, void **params) {
    launch.entry = f->entry->name;
    launch.args = (const void *const *)params;
    launch.arg_count = f->entry->param_count;
    if (planted("crash", launch.entry, launch.grid[0])) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would answer it */
        raise(SIGSEGV);
    }
    if (planted("exit", launch.entry, launch.grid[0]))
        _exit(9);
    hanging = planted("hang", launch.entry, launch.grid[0]);
    if (planted("sticky", launch.entry, launch.grid[0]) || (f->of->deep && stack_bytes <= 16384))
        sticky = ILLEGAL_ADDRESS;
    if (sticky || hanging)
        return SUCCESS; /* a launch says nothing of how it ends */
    clock_ms += cost_ms(&launch);
    if (planted("dry", "launch", 0))
        return SUCCESS;
    struct dev_run *run = calloc(1, sizeof *run);
    if (backend_cpu.launch(run, backend, f->of->module, f->entry, &launch) != OK)
        sticky = 719; /* CUDA_ERROR_LAUNCH_FAILED */
    else if (!run->completed)
        sticky = ILLEGAL_ADDRESS;
    free(run);
    return SUCCESS;
}

EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                          void **extra) {
    const struct dev_launch launch = {
        .grid = {gx, gy, gz},
        .block = {bx, by, bz},
        .cluster = {1, 1, 1},
        .dynamic_shared = shared,
    };
    (void)stream, (void)extra;
    return launch_at(function, launch, params);
}

struct launch_config {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct {
        unsigned id, pad, cluster[16];
    } * attributes;
    unsigned attribute_count;
};

/* The cluster dimension is the one attribute that anybody gives. */
EXPORT int cuLaunchKernelEx(const struct launch_config *config, void *function, void **params,
                            void **extra) {
    struct dev_launch launch = {.dynamic_shared = config->shared};
    (void)extra;
    if (config->attribute_count != 1 || config->attributes[0].id != 4)
        return INVALID_VALUE;
    memcpy(launch.grid, config->grid, sizeof launch.grid);
    memcpy(launch.block, config->block, sizeof launch.block);
    memcpy(launch.cluster, config->attributes[0].cluster, sizeof launch.cluster);
    return launch_at(function, launch, params);
}

EXPORT int cuEventCreate(void **out, unsigned flags) {
    (void)flags;
    *out = calloc(1, sizeof(double)); /* when it was recorded */
    return *out ? sticky : OUT_OF_MEMORY;
}

EXPORT int cuEventDestroy_v2(void *e) {
    free(e);
    return sticky;
}

EXPORT int cuEventRecord(double *e, void *stream) {
    (void)stream;
    *e = clock_ms;
    return SUCCESS;
}

EXPORT int cuEventQuery(void *e) {
    (void)e;
    return hanging ? NOT_READY : sticky;
}

EXPORT int cuEventElapsedTime(float *milliseconds, const double *from, const double *to) {
    *milliseconds = (float)(*to - *from);
    return sticky;
}
