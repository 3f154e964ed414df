/*
 * A libcuda.so.1 without a GPU: memory is the host's, a launch of copy16_* costs the time that its
 * arguments say at 1 TB/s, every other launch 1 us per block, and nothing is computed.  With it the
 * way through device/cuda.c and what `assay bench` makes of times can be tested anywhere.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES 32
#define MAX_PARAMS 64

struct function {
    char name[128];
    size_t count, sizes[MAX_PARAMS];
};

struct module {
    unsigned count;
    struct function functions[MAX_ENTRIES];
};

static double clock_ms; /* device time */

/* ".param .u64 .ptr .align 1 a_param_0," or ".param .align 8 .b8 a_param_1[128]" */
static size_t param_size(const char *at, const char *end) {
    size_t size = 0;
    for (const char *p = at; p + 3 < end; p++) {
        if (p[0] == '.' && strchr("ubsf", p[1]) && isdigit((unsigned char)p[2]))
            size = strtoul(p + 2, NULL, 10) / 8;
        if (*p == '[')
            size *= strtoul(p + 1, NULL, 10);
    }
    return size;
}

static void read_entry(struct function *f, const char *at) {
    const char *open = strchr(at, '('), *close = strchr(at, ')');
    sscanf(at, " %127[A-Za-z0-9_$]", f->name);
    for (const char *p = open; p && p < close && f->count < MAX_PARAMS; p++) {
        if (strncmp(p, ".param", 6) != 0)
            continue;
        size_t n = strcspn(p, ",)");
        f->sizes[f->count++] = param_size(p + 6, p + n);
    }
}

#define FAKE(name) int name /* no prototypes: libcuda has no header here */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

FAKE(cuInit)(unsigned flags) {
    return (int)flags;
}
FAKE(cuGetErrorName)(int code, const char **out) {
    *out = "FAKE";
    return code * 0;
}
FAKE(cuDriverGetVersion)(int *out) {
    *out = 13000;
    return 0;
}
FAKE(cuDeviceGetCount)(int *out) {
    *out = 1;
    return 0;
}
FAKE(cuDeviceGet)(int *out, int ordinal) {
    *out = ordinal;
    return 0;
}
FAKE(cuDeviceGetName)(char *out, int size, int dev) {
    snprintf(out, (size_t)size, "fake%d", dev);
    return 0;
}
FAKE(cuDeviceGetAttribute)(int *out, int what, int dev) {
    *out = what == 38 ? 1 << 20 : what == 75 ? 9 : 0;
    return dev;
}
FAKE(cuDevicePrimaryCtxRetain)(void **out, int dev) {
    *out = &clock_ms;
    return dev;
}
FAKE(cuDevicePrimaryCtxRelease_v2)(int dev) {
    return dev;
}
FAKE(cuCtxSetCurrent)(void *context) {
    return context == NULL;
}
FAKE(cuModuleLoadDataEx)(void **out, const char *text, unsigned n, const int *keys, void **values) {
    struct module *m = calloc(1, sizeof *m);
    (void)n, (void)keys, (void)values;
    for (const char *p = text; m && (p = strstr(p, ".entry")) && m->count < MAX_ENTRIES; p += 6)
        read_entry(&m->functions[m->count++], p + 6);
    *out = m;
    return m == NULL;
}
FAKE(cuModuleUnload)(void *m) {
    free(m);
    return 0;
}
FAKE(cuModuleGetFunctionCount)(unsigned *out, const struct module *m) {
    *out = m->count;
    return 0;
}
FAKE(cuModuleEnumerateFunctions)(void **out, unsigned n, struct module *m) {
    for (unsigned i = 0; i < n; i++)
        out[i] = &m->functions[i];
    return 0;
}
FAKE(cuFuncLoad)(void *f) {
    return f == NULL;
}
FAKE(cuFuncGetName)(const char **out, const struct function *f) {
    *out = f->name;
    return 0;
}
FAKE(cuFuncGetParamInfo)(const struct function *f, size_t i, size_t *offset, size_t *size) {
    if (i >= f->count)
        return 1;
    *offset = 8 * i;
    *size = f->sizes[i];
    return 0;
}
FAKE(cuFuncGetAttribute)(int *out, int what, const void *f) {
    *out = what == 0 ? 1024 : 0;
    return f == NULL;
}
FAKE(cuFuncSetAttribute)(const void *f, int what, int value) {
    return f == NULL || what + value < 0;
}
FAKE(cuMemAlloc_v2)(unsigned long long *out, size_t size) {
    void *p = NULL;
    int rc = posix_memalign(&p, 256, size);
    *out = (unsigned long long)(size_t)p;
    return rc ? 2 : 0;
}
FAKE(cuMemFree_v2)(unsigned long long at) {
    free((void *)(size_t)at);
    return 0;
}
FAKE(cuMemcpyHtoD_v2)(unsigned long long to, const void *from, size_t n) {
    memcpy((void *)(size_t)to, from, n);
    return 0;
}
FAKE(cuMemcpyDtoH_v2)(void *to, unsigned long long from, size_t n) {
    memcpy(to, (const void *)(size_t)from, n);
    return 0;
}
FAKE(cuMemsetD8_v2)(unsigned long long at, unsigned char byte, size_t n) {
    memset((void *)(size_t)at, byte, n);
    return 0;
}
FAKE(cuLaunchKernel)
(const struct function *f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
 unsigned bz, unsigned shared, void *stream, void **args, void **extra) {
    (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
    if (stream)
        return 1;
    if (strncmp(f->name, "copy16_", 7) == 0)
        clock_ms += 32.0 * *(const int *)args[2] / 1e12 * 1e3;
    else
        clock_ms += 1e-3 * x * y * z;
    return 0;
}
FAKE(cuLaunchKernelEx)(const void *config, const void *f, void **args, void **extra) {
    return config && f && args && extra ? 0 : 1; /* no kernel that is timed here has a cluster */
}
FAKE(cuEventCreate)(void **out, unsigned flags) {
    *out = calloc(1, sizeof(double));
    return (int)flags;
}
FAKE(cuEventDestroy_v2)(void *e) {
    free(e);
    return 0;
}
FAKE(cuEventRecord)(double *e, void *stream) {
    *e = clock_ms;
    return stream != NULL;
}
FAKE(cuEventQuery)(const double *e) {
    return e == NULL;
}
FAKE(cuEventElapsedTime)(float *out, const double *a, const double *b) {
    *out = (float)(*b - *a);
    return 0;
}
