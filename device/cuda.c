/*
 * device/cuda.c - kernels on an NVIDIA GPU through the driver API, in the process that worker.h starts.
 *
 * libcuda is opened at run time, so one binary serves machines with and without a GPU, and the few
 * declarations needed stand here, so that the build needs no CUDA headers (CUDA Driver API reference,
 * 12.4 and later: cuModuleEnumerateFunctions and cuFuncGetParamInfo came with it).
 *
 * A kernel that faults poisons the context for good: that launch's dev_run says what happened, and
 * every later call on the device fails with ERR_DEVICE.  A kernel that never ends is waited for:
 * ending this process is the parent's part.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/ptx/ptx.h"
#include "device/target.h"
#include "device/worker.h"

#define SPIN_SECONDS 2e-3 /* a longer launch is not waited for at full speed */

/* ---- the driver ---------------------------------------------------------------------------------- */

typedef int cu_result; /* CUresult */
typedef int cu_device;
typedef unsigned long long cu_pointer;
typedef struct cu_opaque *cu_handle; /* CUcontext, CUmodule, CUfunction, CUevent, CUstream */

enum {
    CU_SUCCESS = 0,
    CU_ERROR_INVALID_VALUE = 1,
    CU_ERROR_OUT_OF_MEMORY = 2,
    CU_ERROR_NO_BINARY = 209, /* CUDA_ERROR_NO_BINARY_FOR_GPU: a cubin of another target */
    CU_ERROR_NOT_READY = 600,
    CU_ERROR_ILLEGAL_ADDRESS = 700,
    CU_ERROR_MISALIGNED_ADDRESS = 716,
};
enum { CU_ATTR_L2_BYTES = 38, CU_ATTR_COMPUTE_MAJOR = 75, CU_ATTR_COMPUTE_MINOR = 76 };
enum {
    CU_FUNC_MAX_THREADS = 0,
    CU_FUNC_SHARED_BYTES = 1,
    CU_FUNC_MAX_DYNAMIC_SHARED = 8,
    CU_FUNC_CLUSTER_MUST_BE_SET = 10,
    CU_FUNC_CLUSTER_WIDTH = 11, /* then height and depth; 0: not declared */
    CU_FUNC_NON_PORTABLE_CLUSTER = 14,
};
#define PORTABLE_CLUSTER 8 /* blocks that every device with clusters accepts */
enum { CU_LIMIT_STACK_SIZE = 0 };
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

/* CUlaunchConfig and CUlaunchAttribute with what is used of the union. */
enum { CU_LAUNCH_CLUSTER_DIMENSION = 4 };
struct cu_launch_attribute {
    unsigned id;
    char pad[4];
    union {
        char bytes[64];
        unsigned cluster[3];
    } value;
};
struct cu_launch_config {
    unsigned grid[3], block[3], shared_bytes;
    cu_handle stream;
    struct cu_launch_attribute *attributes;
    unsigned attribute_count;
};

/* DRIVER(member, exported name, parameters) */
#define DRIVER_LIST(DRIVER)                                                                        \
    DRIVER(init, "cuInit", (unsigned))                                                             \
    DRIVER(error_name, "cuGetErrorName", (cu_result, const char **))                               \
    DRIVER(driver_version, "cuDriverGetVersion", (int *))                                          \
    DRIVER(device_count, "cuDeviceGetCount", (int *))                                              \
    DRIVER(device_get, "cuDeviceGet", (cu_device *, int))                                          \
    DRIVER(device_name, "cuDeviceGetName", (char *, int, cu_device))                               \
    DRIVER(device_attribute, "cuDeviceGetAttribute", (int *, int, cu_device))                      \
    DRIVER(context_retain, "cuDevicePrimaryCtxRetain", (cu_handle *, cu_device))                   \
    DRIVER(context_release, "cuDevicePrimaryCtxRelease_v2", (cu_device))                           \
    DRIVER(context_set, "cuCtxSetCurrent", (cu_handle))                                            \
    DRIVER(limit_set, "cuCtxSetLimit", (int, size_t))                                              \
    DRIVER(module_load, "cuModuleLoadDataEx",                                                      \
           (cu_handle *, const void *, unsigned, const int *, void **))                            \
    DRIVER(module_unload, "cuModuleUnload", (cu_handle))                                           \
    DRIVER(function_count, "cuModuleGetFunctionCount", (unsigned *, cu_handle))                    \
    DRIVER(functions, "cuModuleEnumerateFunctions", (cu_handle *, unsigned, cu_handle))            \
    DRIVER(function_load, "cuFuncLoad", (cu_handle))                                               \
    DRIVER(function_name, "cuFuncGetName", (const char **, cu_handle))                             \
    DRIVER(function_param, "cuFuncGetParamInfo", (cu_handle, size_t, size_t *, size_t *))          \
    DRIVER(function_get, "cuFuncGetAttribute", (int *, int, cu_handle))                            \
    DRIVER(function_set, "cuFuncSetAttribute", (cu_handle, int, int))                              \
    DRIVER(alloc, "cuMemAlloc_v2", (cu_pointer *, size_t))                                         \
    DRIVER(release, "cuMemFree_v2", (cu_pointer))                                                  \
    DRIVER(to_device, "cuMemcpyHtoD_v2", (cu_pointer, const void *, size_t))                       \
    DRIVER(to_host, "cuMemcpyDtoH_v2", (void *, cu_pointer, size_t))                               \
    DRIVER(set, "cuMemsetD8_v2", (cu_pointer, unsigned char, size_t))                              \
    DRIVER(tensor_map, "cuTensorMapEncodeTiled",                                                   \
           (void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *,   \
            const unsigned *, int, int, int, int))                                                 \
    DRIVER(launch, "cuLaunchKernel",                                                               \
           (cu_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
            cu_handle, void **, void **))                                                          \
    DRIVER(launch_ex, "cuLaunchKernelEx",                                                          \
           (const struct cu_launch_config *, cu_handle, void **, void **))                         \
    DRIVER(event_create, "cuEventCreate", (cu_handle *, unsigned))                                 \
    DRIVER(event_destroy, "cuEventDestroy_v2", (cu_handle))                                        \
    DRIVER(event_record, "cuEventRecord", (cu_handle, cu_handle))                                  \
    DRIVER(event_query, "cuEventQuery", (cu_handle))                                               \
    DRIVER(event_elapsed, "cuEventElapsedTime", (float *, cu_handle, cu_handle))

static struct {
#define DRIVER(member, name, parameters) cu_result (*member) parameters;
    DRIVER_LIST(DRIVER)
#undef DRIVER
} cu;

static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static char driver_problem[256]; /* why there is no driver; "" if there is one */

static void driver_open(void) {
    const char *other = getenv("ASSAY_LIBCUDA"); /* "": the program itself has a driver's functions */
    void *lib = dlopen(other ? other : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        snprintf(driver_problem, sizeof driver_problem, "no CUDA driver on this machine (%s)",
                 dlerror());
        return;
    }
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define DRIVER(member, name, parameters) {name, offsetof(__typeof__(cu), member)},
        DRIVER_LIST(DRIVER)
#undef DRIVER
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *at = dlsym(lib, symbols[i].name);
        if (!at) {
            snprintf(driver_problem, sizeof driver_problem,
                     "the CUDA driver is too old: it has no %s (12.4 or later is needed)",
                     symbols[i].name);
            return;
        }
        memcpy((char *)&cu + symbols[i].offset, &at, sizeof at);
    }
    cu_result r = cu.init(0);
    if (r != CU_SUCCESS)
        snprintf(driver_problem, sizeof driver_problem, "cuInit failed with error %d", r);
}

/* ---- back end --------------------------------------------------------------------------------------- */

struct backend {
    cu_device device;
    cu_handle context, begin, end; /* the events around a launch */
    bool dead;                     /* a sticky error: nothing works any more */
    bool deep;                     /* threads have STACK_BYTES of stack */
    char arch[16];                 /* "sm_90" */
};

struct module {
    struct backend *backend;
    cu_handle module;
    unsigned count;
    cu_handle *functions;
    struct dev_entry *entries;
    char *label;
};

static status_t failed(struct backend *b, const char *call, cu_result r) {
    const char *name = NULL;
    cu.error_name(r, &name);
    if (r == CU_ERROR_OUT_OF_MEMORY)
        return FAIL(ERR_NOMEM, "cuda: %s: out of device memory", call);
    if (r >= CU_ERROR_ILLEGAL_ADDRESS) /* 700 and up come from running kernels and stick */
        b->dead = true;
    return FAIL(ERR_DEVICE, "cuda: %s: %s (%d)", call, name ? name : "unknown error", r);
}

#define CU(call, ...)                                                                              \
    do {                                                                                           \
        cu_result result_ = cu.call(__VA_ARGS__);                                                  \
        if (result_ != CU_SUCCESS) {                                                               \
            st = failed(b, #call, result_);                                                        \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

/* Make the device's context this thread's; a dead one stays dead. */
static status_t enter(struct backend *b) {
    status_t st = OK;
    if (b->dead)
        return FAIL(ERR_DEVICE, "cuda: an earlier fault ended this device's context");
    CU(context_set, b->context);
done:
    return st;
}

static void cuda_close(struct backend *b) {
    if (!b)
        return;
    if (b->context) {
        cu.context_set(b->context);
        if (b->begin)
            cu.event_destroy(b->begin);
        if (b->end)
            cu.event_destroy(b->end);
        cu.context_release(b->device);
    }
    free(b);
}

static status_t cuda_open(struct backend **out, struct device_info *info, const char *rest,
                          const struct device_options *opt) {
    status_t st = OK;
    (void)opt; /* shadow and budgets belong to the emulator */
    *out = NULL;
    pthread_once(&driver_once, driver_open);
    if (driver_problem[0])
        return FAIL(ERR_DEVICE, "cuda: %s", driver_problem);
    char *end;
    long ordinal = strtol(*rest ? rest : "0", &end, 10);
    if (*end || ordinal < 0)
        return FAIL(ERR_USAGE, "device 'cuda:%s': expected cuda:N with N = 0, 1, ...", rest);
    struct backend *b = calloc(1, sizeof *b);
    if (!b)
        return FAIL(ERR_NOMEM, "no memory for a device");
    int count = 0, major, minor, version, cache;
    CU(device_count, &count);
    if (ordinal >= count) {
        st = FAIL(ERR_DEVICE, "cuda: no device %ld; this machine has %d", ordinal, count);
        goto done;
    }
    CU(device_get, &b->device, (int)ordinal);
    CU(device_name, info->name, sizeof info->name, b->device);
    CU(device_attribute, &major, CU_ATTR_COMPUTE_MAJOR, b->device);
    CU(device_attribute, &minor, CU_ATTR_COMPUTE_MINOR, b->device);
    snprintf(info->arch, sizeof info->arch, "sm_%d%d", major, minor);
    snprintf(b->arch, sizeof b->arch, "%s", info->arch);
    CU(device_attribute, &cache, CU_ATTR_L2_BYTES, b->device);
    info->cache_bytes = (size_t)cache;
    CU(driver_version, &version);
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    CU(context_retain, &b->context, b->device);
    TRY(enter(b));
    CU(event_create, &b->begin, 0);
    CU(event_create, &b->end, 0);
    *out = b;
done:
    if (st != OK)
        cuda_close(b);
    return st;
}

/* ---- images -------------------------------------------------------------------------------------------- */

static void cuda_unload(struct module *m) {
    if (!m)
        return;
    if (m->module && !m->backend->dead && enter(m->backend) == OK)
        cu.module_unload(m->module);
    for (unsigned i = 0; i < m->count && m->entries; i++) {
        free((char *)m->entries[i].name);
        free((void *)m->entries[i].params);
    }
    free(m->entries);
    free(m->functions);
    free(m->label);
    free(m);
}

static status_t describe(struct dev_entry *out, struct backend *b, cu_handle function) {
    status_t st = OK;
    const char *name;
    int value;
    CU(function_load, function); /* modules load lazily, and what is not loaded has no attributes */
    CU(function_name, &name, function);
    out->name = strdup(name);
    size_t offset, size;
    while (cu.function_param(function, out->param_count, &offset, &size) == CU_SUCCESS)
        out->param_count++;
    struct dev_param *params = calloc(out->param_count + 1, sizeof *params);
    out->params = params;
    if (!out->name || !params)
        return FAIL(ERR_NOMEM, "no memory for an image");
    for (size_t i = 0; i < out->param_count; i++) {
        CU(function_param, function, i, &offset, &params[i].size);
        params[i].align = params[i].size;
    }
    CU(function_get, &value, CU_FUNC_SHARED_BYTES, function);
    out->static_shared = (size_t)value;
    CU(function_get, &value, CU_FUNC_MAX_THREADS, function);
    out->max_threads = (unsigned)value;
    CU(function_get, &value, CU_FUNC_CLUSTER_MUST_BE_SET, function);
    out->needs_cluster = value != 0;
    for (int i = 0; i < 3; i++) {
        CU(function_get, &value, CU_FUNC_CLUSTER_WIDTH + i, function);
        out->cluster[i] = (unsigned)value;
    }
done:
    return st;
}

/* Frames and all, as much as the emulator gives beside the frames; a context's own default is 1 KiB. */
#define STACK_BYTES (PTX_RECURSION_BYTES + PTX_ALLOCA_BYTES)

/* Does it take stack while it runs: by alloca, or because it calls functions that may come back to it? */
static bool takes_stack(const struct ptx_func *f) {
    for (size_t i = 0; i < f->insn_count; i++) {
        const struct ptx_insn *in = &f->insns[i];
        const struct ptx_operand *callee = in->op == PTX_OP_CALL ? &in->opnd[in->first[1]] : NULL;
        if (in->op == PTX_OP_ALLOCA ||
            (callee && f->is_func && (callee->kind != OPND_FUNC || callee->func->defined)))
            return true;
    }
    return false;
}

/*
 * The driver knows the stack of all other kernels.  The memory is that of all threads that fit the
 * device (an H200: 8.3 GiB), so it is taken only for an image that needs it.
 */
static status_t deepen(struct backend *b, const struct ptx_module *parsed) {
    status_t st = OK;
    bool deep = false;
    for (size_t i = 0; i < parsed->func_count; i++)
        deep |= takes_stack(&parsed->funcs[i]);
    for (size_t i = 0; i < parsed->callee_count; i++)
        deep |= parsed->callees[i]->defined && takes_stack(parsed->callees[i]);
    if (deep && !b->deep) {
        CU(limit_set, CU_LIMIT_STACK_SIZE, STACK_BYTES);
        b->deep = true;
    }
done:
    return st;
}

/* Ambiguous contraction, stacks: what shows in PTX text only, and only if the front end can read it. */
static status_t note_text(struct module *m, const char *label, const char *text, size_t size) {
    struct ptx_module *parsed;
    if (ptx_module_parse(&parsed, label, text, size) != OK)
        return OK;
    for (size_t i = 0; i < parsed->func_count; i++) {
        for (unsigned k = 0; k < m->count; k++) {
            if (strcmp(parsed->funcs[i].name, m->entries[k].name) != 0)
                continue;
            m->entries[k].ambiguous = parsed->funcs[i].ambiguous;
            m->entries[k].ambiguous_line = parsed->funcs[i].ambiguous_line;
        }
    }
    status_t st = deepen(m->backend, parsed);
    ptx_module_free(parsed);
    return st;
}

static status_t cuda_load(struct module **out, struct backend *b, const char *label,
                          const void *text, size_t size) {
    status_t st = OK;
    *out = NULL;
    struct module *m = calloc(1, sizeof *m);
    char *copy = malloc(size + 1); /* the driver wants PTX to end in NUL */
    char log[512] = "", target[16];
    if (!m || !copy) {
        st = FAIL(ERR_NOMEM, "no memory for an image");
        goto done;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    m->backend = b;
    m->label = strdup(label);
    target_of(target, copy, size); /* the driver would say no more than that it is no PTX of its own */
    if (target_number(target) && !target_runs_on(target, b->arch))
        TRY(FAIL(ERR_TARGET, "%s: compiled for %s, the device is %s", label, target, b->arch));
    TRY(enter(b));
    const int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    cu_result r = cu.module_load(&m->module, copy, 2, options, values);
    if (r != CU_SUCCESS) {
        m->module = NULL;
        const char *name = NULL;
        cu.error_name(r, &name);
        log[strcspn(log, "\n")] = '\0';
        st = FAIL(r == CU_ERROR_NO_BINARY ? ERR_TARGET : ERR_SYNTAX,
                  "%s: the driver refused this image: %s: %s", label,
                  name ? name : "unknown error", log);
        goto done;
    }
    CU(function_count, &m->count, m->module);
    m->functions = calloc(m->count + 1u, sizeof *m->functions);
    m->entries = calloc(m->count + 1u, sizeof *m->entries);
    if (!m->functions || !m->entries) {
        st = FAIL(ERR_NOMEM, "no memory for an image");
        goto done;
    }
    CU(functions, m->functions, m->count, m->module);
    for (unsigned i = 0; i < m->count; i++)
        TRY(describe(&m->entries[i], b, m->functions[i]));
    TRY(note_text(m, label, copy, size));
    *out = m;
done:
    free(copy);
    if (st != OK)
        cuda_unload(m);
    return st;
}

static size_t cuda_entry_count(const struct module *m) {
    return m->count;
}

static const struct dev_entry *cuda_entry(const struct module *m, size_t i) {
    return &m->entries[i];
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static status_t cuda_alloc(uint64_t *address, struct backend *b, size_t size) {
    status_t st = OK;
    cu_pointer p;
    TRY(enter(b));
    CU(alloc, &p, size);
    *address = p;
done:
    return st;
}

static void cuda_release(struct backend *b, uint64_t address) {
    if (!b->dead && enter(b) == OK)
        cu.release(address);
}

static void cuda_declare(struct backend *b, uint64_t address, size_t size) {
    (void)b; /* the hardware checks pages, not buffers: guards are compared instead */
    (void)address;
    (void)size;
}

static status_t cuda_write(struct backend *b, uint64_t address, const void *src, size_t size) {
    status_t st = OK;
    TRY(enter(b));
    if (size)
        CU(to_device, address, src, size);
done:
    return st;
}

static status_t cuda_read(void *dst, struct backend *b, uint64_t address, size_t size) {
    status_t st = OK;
    TRY(enter(b));
    if (size)
        CU(to_host, dst, address, size);
done:
    return st;
}

static status_t cuda_set(struct backend *b, uint64_t address, uint8_t byte, size_t size) {
    status_t st = OK;
    TRY(enter(b));
    if (size)
        CU(set, address, byte, size);
done:
    return st;
}

static status_t cuda_tensor_map(uint8_t out[DEV_TENSOR_MAP_BYTES], struct backend *b,
                                const struct dev_tensor_map *map) {
    status_t st = OK;
    /* CUtensorMapDataType, CUtensorMapSwizzle. */
    static const uint8_t types[DEV_TENSOR_TYPES] = {
        [DEV_TENSOR_U8] = 0,  [DEV_TENSOR_U16] = 1, [DEV_TENSOR_U32] = 2, [DEV_TENSOR_S32] = 3,
        [DEV_TENSOR_U64] = 4, [DEV_TENSOR_S64] = 5, [DEV_TENSOR_F16] = 6, [DEV_TENSOR_F32] = 7,
        [DEV_TENSOR_F64] = 8, [DEV_TENSOR_BF16] = 9};
    int swizzle = map->swizzle == 128 ? 3 : map->swizzle == 64 ? 2 : map->swizzle == 32;
    _Alignas(64) uint8_t bytes[DEV_TENSOR_MAP_BYTES];
    TRY(enter(b));
    cu_result r = cu.tensor_map(bytes, types[map->type], map->rank,
                                (void *)(uintptr_t)map->address, map->dims, map->strides, map->box,
                                map->element_strides, 0, swizzle, 0, 0);
    if (r == CU_ERROR_INVALID_VALUE)
        TRY(FAIL(ERR_USAGE, "tensor map: the driver refuses it"));
    if (r != CU_SUCCESS)
        TRY(failed(b, "tensor_map", r));
    memcpy(out, bytes, sizeof bytes);
done:
    return st;
}

/* ---- launches ------------------------------------------------------------------------------------------ */

static void record_fault(struct dev_run *run, const struct dev_launch *launch, cu_result r) {
    const char *name = NULL;
    cu.error_name(r, &name);
    struct dev_fault *f = &run->faults[0];
    *f = (struct dev_fault){.kind = r == CU_ERROR_ILLEGAL_ADDRESS      ? FAULT_OUT_OF_BOUNDS
                                    : r == CU_ERROR_MISALIGNED_ADDRESS ? FAULT_MISALIGNED
                                                                       : FAULT_DEVICE};
    snprintf(f->kernel, sizeof f->kernel, "%s", launch->entry);
    snprintf(f->text, sizeof f->text, "%s: the GPU stopped it: %s (%d)", launch->entry,
             name ? name : "unknown error", r);
    run->fault_count = 1;
    run->fault_total = 1;
}

static double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static cu_result wait_for(cu_handle event) {
    static const struct timespec pause = {.tv_nsec = 50000};
    double spin = now_seconds() + SPIN_SECONDS;
    cu_result r;
    while ((r = cu.event_query(event)) == CU_ERROR_NOT_READY)
        if (now_seconds() > spin)
            nanosleep(&pause, NULL);
    return r;
}

/* Beyond 48 KiB of shared memory one has to ask. */
static cu_result ask_for_shared(cu_handle function, const struct dev_entry *entry,
                                const struct dev_launch *l) {
    if (l->dynamic_shared + entry->static_shared <= 48 * 1024)
        return CU_SUCCESS;
    return cu.function_set(function, CU_FUNC_MAX_DYNAMIC_SHARED, (int)l->dynamic_shared);
}

/* The launch call itself, with the cluster where there is one. */
static cu_result submit(cu_handle function, const struct dev_launch *l) {
    unsigned blocks = l->cluster[0] * l->cluster[1] * l->cluster[2];
    void **args = (void **)(uintptr_t)l->args;
    struct cu_launch_attribute cluster = {.id = CU_LAUNCH_CLUSTER_DIMENSION};
    struct cu_launch_config config = {.shared_bytes = (unsigned)l->dynamic_shared,
                                      .attributes = &cluster,
                                      .attribute_count = 1};
    if (blocks <= 1)
        return cu.launch(function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
                         l->block[2], (unsigned)l->dynamic_shared, NULL, args, NULL);
    memcpy(config.grid, l->grid, sizeof config.grid);
    memcpy(config.block, l->block, sizeof config.block);
    memcpy(cluster.value.cluster, l->cluster, sizeof cluster.value.cluster);
    cu_result r = CU_SUCCESS;
    if (blocks > PORTABLE_CLUSTER)
        r = cu.function_set(function, CU_FUNC_NON_PORTABLE_CLUSTER, 1);
    return r == CU_SUCCESS ? cu.launch_ex(&config, function, args, NULL) : r;
}

static status_t cuda_launch(struct dev_run *run, struct backend *b, const struct module *m,
                            const struct dev_entry *entry, const struct dev_launch *l) {
    status_t st = OK;
    cu_handle function = m->functions[entry - m->entries];
    TRY(enter(b));
    cu_result r = ask_for_shared(function, entry, l);
    if (r == CU_SUCCESS)
        r = cu.event_record(b->begin, NULL);
    if (r == CU_SUCCESS)
        r = submit(function, l);
    if (r == CU_SUCCESS)
        r = cu.event_record(b->end, NULL);
    if (r == CU_SUCCESS)
        r = wait_for(b->end);
    if (r >= CU_ERROR_ILLEGAL_ADDRESS) {
        b->dead = true;
        record_fault(run, l, r);
        return OK;
    }
    if (r != CU_SUCCESS)
        return failed(b, "launch", r);
    float milliseconds;
    CU(event_elapsed, &milliseconds, b->begin, b->end);
    run->seconds = (double)milliseconds * 1e-3;
    run->completed = true;
done:
    return st;
}

static status_t cuda_time(double *seconds, struct backend *b, const struct module *const *modules,
                          const struct dev_entry *const *entries,
                          const struct dev_launch *launches, size_t count, size_t group) {
    status_t st = OK;
    const size_t groups = count / group;
    cu_handle *events = calloc(2 * groups + 1, sizeof *events); /* begin, end, begin, end .. */
    if (!events)
        return FAIL(ERR_NOMEM, "no memory to time %zu launches", count);
    TRY(enter(b));
    for (size_t k = 0; k < 2 * groups; k++)
        CU(event_create, &events[k], 0);
    for (size_t i = 0; i < count; i++) {
        cu_handle function = modules[i]->functions[entries[i] - modules[i]->entries];
        cu_result r = ask_for_shared(function, entries[i], &launches[i]);
        if (r == CU_SUCCESS && i % group == 0)
            r = cu.event_record(events[i / group * 2], NULL);
        if (r == CU_SUCCESS)
            r = submit(function, &launches[i]);
        if (r != CU_SUCCESS)
            TRY(failed(b, "launch", r));
        if (i % group == group - 1)
            CU(event_record, events[i / group * 2 + 1], NULL);
    }
    for (size_t k = 0; k < groups; k++) {
        float milliseconds;
        cu_result r = wait_for(events[2 * k + 1]);
        if (r != CU_SUCCESS)
            TRY(failed(b, launches[k * group].entry, r));
        CU(event_elapsed, &milliseconds, events[2 * k], events[2 * k + 1]);
        seconds[k] = (double)milliseconds * 1e-3;
    }
done:
    for (size_t k = 0; k < 2 * groups && events[k]; k++)
        if (!b->dead)
            cu.event_destroy(events[k]);
    free(events);
    return st;
}

const struct backend_ops backend_driver = {
    .scheme = "driver",
    .open = cuda_open,
    .close = cuda_close,
    .load = cuda_load,
    .unload = cuda_unload,
    .entry_count = cuda_entry_count,
    .entry = cuda_entry,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .declare = cuda_declare,
    .write = cuda_write,
    .read = cuda_read,
    .set = cuda_set,
    .launch = cuda_launch,
    .tensor_map = cuda_tensor_map,
    .time = cuda_time,
};
