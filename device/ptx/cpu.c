/*
 * cpu.c - the back end "cpu": PTX executed by exec.h's machinery.
 *
 * Addresses are the emulator's own and are never reused, so a pointer into a freed buffer is found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xmmintrin.h>

#include "base/size.h"
#include "device/ptx/exec.h"
#include "device/ptx/tensor_form.h"
#include "device/target.h"

#define DEFAULT_INSN_BUDGET ((uint64_t)1 << 34)
#define DEFAULT_MEMORY_BUDGET ((uint64_t)4 << 30)
#define DEFAULT_FAULTS 16
#define STACK_BUDGET ((uint64_t)64 << 20) /* bytes of saved registers and frames of one launch */
#define MXCSR_DEFAULT 0x1f80   /* round to nearest, keep subnormals, no traps */
#define TIME_LIMIT 0xf0000000u /* the shadow's clock starts again before it wraps */

struct allocation {
    struct region touchable; /* what kernels see: the declared part */
    uint64_t address;        /* of the whole, guards included */
    size_t size;
    uint8_t *host;
};

struct backend {
    const struct isa *isa;
    char arch[16];
    struct device_options options;
    struct region **regions; /* &allocation.touchable, ascending */
    size_t count, room;
    uint64_t next_address;
    uint64_t held; /* bytes against the memory budget */
    uint32_t now;
    struct module *shared; /* a list: what later loads of the same text are given */
};

/*
 * Loads of the same text are one module, as an image is loaded for each of its kernels; but not where it
 * has variables, of which each load has its own.
 */
struct module {
    struct backend *backend;
    struct module *next; /* of backend->shared */
    unsigned users;
    char *label, *text; /* NULL: not shared */
    size_t size;
    struct ptx_module *ptx;
    struct program **programs;
    struct dev_entry *entries;
    struct dev_param *params;
    uint64_t globals, constants; /* addresses; 0: none */
};

/* ---- the device ------------------------------------------------------------------------------ */

static status_t cpu_open(struct backend **out, struct device_info *info, const char *rest,
                         const struct device_options *opt) {
    status_t st = OK;
    const char *arch = *rest ? rest : DEVICE_DEFAULT_ARCH;
    if (!tensor_arch_known(target_number(arch)))
        return FAIL(ERR_USAGE, "device 'cpu:%s': " TENSOR_ARCHS " was expected", rest);
    struct backend *b = calloc(1, sizeof *b);
    if (!b)
        return FAIL(ERR_NOMEM, "no memory for a device");
    b->options = *opt;
    if (!b->options.insn_budget)
        b->options.insn_budget = DEFAULT_INSN_BUDGET;
    if (!b->options.memory_budget)
        b->options.memory_budget = DEFAULT_MEMORY_BUDGET;
    if (!b->options.max_faults || b->options.max_faults > DEV_MAX_FAULTS)
        b->options.max_faults = DEFAULT_FAULTS;
    b->next_address = WINDOW_GLOBAL;
    b->now = 1;
    TRY(isa_pick(&b->isa));
    *info = (struct device_info){.name = "cpu"};
    snprintf(info->arch, sizeof info->arch, "%s", arch);
    snprintf(b->arch, sizeof b->arch, "%s", arch);
    *out = b;
    b = NULL;
done:
    free(b);
    return st;
}

static void cpu_close(struct backend *b) {
    free(b->regions);
    free(b);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct allocation *allocation_of(struct region *r) {
    return (struct allocation *)r; /* its first member */
}

/* The allocation that holds [address, address + size). */
static struct allocation *find(const struct backend *b, uint64_t address, size_t size) {
    size_t lo = 0, hi = b->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (allocation_of(b->regions[mid])->address <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return NULL;
    struct allocation *a = allocation_of(b->regions[lo - 1]);
    return a->size >= size && address - a->address <= a->size - size ? a : NULL;
}

static void free_allocation(struct allocation *a) {
    if (!a)
        return;
    shadow_detach(&a->touchable);
    free(a->host);
    free(a);
}

static uint64_t cost(const struct backend *b, size_t size) {
    return size + (b->options.shadow ? shadow_bytes(size) : 0);
}

static status_t cpu_alloc(uint64_t *address, struct backend *b, size_t size) {
    status_t st = OK;
    struct allocation *a = NULL;
    if (size > b->options.memory_budget || cost(b, size) > b->options.memory_budget - b->held)
        return FAIL(ERR_NOMEM,
                    "%zu bytes do not fit the memory budget of %llu, of which %llu are taken", size,
                    (unsigned long long)b->options.memory_budget, (unsigned long long)b->held);
    if (b->count == b->room) {
        size_t room = b->room ? b->room * 2 : 16;
        struct region **grown = realloc(b->regions, room * sizeof *grown);
        if (!grown)
            return FAIL(ERR_NOMEM, "no memory for a buffer");
        b->regions = grown;
        b->room = room;
    }
    size_t rounded = size_align(size ? size : 1, DEVICE_GUARD_BYTES);
    a = calloc(1, sizeof *a);
    if (a)
        a->host = aligned_alloc(DEVICE_GUARD_BYTES, rounded);
    if (!a || !a->host)
        TRY(FAIL(ERR_NOMEM, "no memory for a buffer of %zu bytes", size));
    a->address = b->next_address;
    a->size = size;
    a->touchable = (struct region){.lo = a->address, .size = 0, .host = a->host};
    b->next_address += size_align(rounded, 4096) + 4096;
    b->held += cost(b, size);
    b->regions[b->count++] = &a->touchable; /* addresses only grow: the list stays sorted */
    *address = a->address;
    a = NULL;
done:
    free_allocation(a);
    return st;
}

static void cpu_release(struct backend *b, uint64_t address) {
    struct allocation *a = find(b, address, 0);
    if (!a)
        return;
    size_t i = 0;
    while (b->regions[i] != &a->touchable)
        i++;
    memmove(b->regions + i, b->regions + i + 1, (--b->count - i) * sizeof *b->regions);
    b->held -= cost(b, a->size);
    free_allocation(a);
}

/* Also when a buffer is poisoned again: its shadow begins anew. */
static void cpu_declare(struct backend *b, uint64_t address, size_t size) {
    struct allocation *a = find(b, address, size);
    if (!a)
        return;
    struct region *r = &a->touchable;
    bool fresh = r->lo != address || r->size != size || !r->host;
    r->lo = address;
    r->size = size;
    r->host = a->host + (address - a->address);
    if (b->options.shadow && (fresh || !r->written)) {
        shadow_detach(r);
        if (shadow_attach(r, true) != OK)
            shadow_detach(r); /* no memory: this buffer goes without */
    }
    shadow_mark(r, 0, r->size, false);
}

/* *at = where the host keeps these bytes, which count as written from now on. */
static status_t write_to(uint8_t **at, struct backend *b, uint64_t address, size_t size) {
    struct allocation *a = find(b, address, size);
    if (!a)
        return FAIL(ERR_DEVICE, "no buffer holds %zu bytes at 0x%llx", size,
                    (unsigned long long)address);
    *at = a->host + (address - a->address);
    struct region *r = &a->touchable;
    uint64_t from = address > r->lo ? address : r->lo, end = address + size;
    if (end > r->lo + r->size)
        end = r->lo + r->size;
    if (from < end)
        shadow_mark(r, from - r->lo, end - from, true);
    return OK;
}

static status_t cpu_write(struct backend *b, uint64_t address, const void *src, size_t size) {
    uint8_t *at;
    status_t st = write_to(&at, b, address, size);
    if (st == OK && size)
        memcpy(at, src, size);
    return st;
}

static status_t cpu_set(struct backend *b, uint64_t address, uint8_t byte, size_t size) {
    uint8_t *at;
    status_t st = write_to(&at, b, address, size);
    if (st == OK && size)
        memset(at, byte, size);
    return st;
}

static status_t cpu_read(void *dst, struct backend *b, uint64_t address, size_t size) {
    const struct allocation *a = find(b, address, size);
    if (!a)
        return FAIL(ERR_DEVICE, "no buffer holds %zu bytes at 0x%llx", size,
                    (unsigned long long)address);
    if (size)
        memcpy(dst, a->host + (address - a->address), size);
    return OK;
}

/* ---- images ---------------------------------------------------------------------------------- */

static void cpu_unload(struct module *m) {
    if (!m || --m->users > 0)
        return;
    for (struct module **at = &m->backend->shared; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    free(m->label);
    free(m->text);
    if (m->globals)
        cpu_release(m->backend, m->globals);
    if (m->constants)
        cpu_release(m->backend, m->constants);
    if (m->programs)
        for (size_t i = 0; i < m->ptx->func_count; i++)
            program_free(m->programs[i]);
    free(m->programs);
    free(m->entries);
    free(m->params);
    ptx_module_free(m->ptx);
    free(m);
}

/*
 * Memory for the variables of one space, with their initial values; the rest is zero, as CUDA has
 * it.
 */
static status_t place_variables(uint64_t *address, struct module *m, enum ptx_space space,
                                size_t size) {
    status_t st = OK;
    if (!size)
        return OK;
    TRY(cpu_alloc(address, m->backend, size));
    cpu_declare(m->backend, *address, size);
    struct allocation *a = find(m->backend, *address, size);
    memset(a->host, 0, size);
    shadow_mark(&a->touchable, 0, size, true);
    a->touchable.constant = space == SPACE_CONST;
    for (size_t i = 0; i < m->ptx->var_count; i++) {
        const struct ptx_var *v = m->ptx->vars[i];
        if (v->space == space && v->init && v->offset <= size && v->size <= size - v->offset)
            memcpy(a->host + v->offset, v->init, v->size);
    }
done:
    return st;
}

static void describe(struct dev_entry *e, struct dev_param *params, const struct program *p) {
    const struct ptx_func *f = p->func;
    for (size_t i = 0; i < f->param_count; i++)
        params[i] = (struct dev_param){f->params[i].size, f->params[i].align};
    *e = (struct dev_entry){
        .name = f->name,
        .param_count = f->param_count,
        .params = params,
        .static_shared = p->static_shared,
        .max_threads = f->max_threads,
        .cluster = {f->cluster[0], f->cluster[1], f->cluster[2]},
        .needs_cluster = f->explicit_cluster,
    };
    for (size_t i = 0; i < p->xfunc_count; i++) {
        const struct ptx_func *part = p->xfuncs[i].func;
        if (part->ambiguous && !e->ambiguous)
            e->ambiguous_line = part->ambiguous_line;
        e->ambiguous += part->ambiguous;
    }
}

static status_t check_target(const char *target, const struct backend *b, const char *label) {
    unsigned number = target_number(target);
    if (target_runs_on(target, b->arch))
        return OK;
    if (tensor_arch_known(number))
        return FAIL(ERR_TARGET, "%s: compiled for %s, the device is %s: run it with -d cpu:%s",
                    label, target, b->arch, target);
    return FAIL(number ? ERR_TARGET : ERR_UNSUPPORTED,
                "%s: compiled for %s; the emulator is " TENSOR_ARCHS, label, target);
}

static struct module *find_shared(const struct backend *b, const char *label, const void *text,
                                  size_t size) {
    for (struct module *m = b->shared; m; m = m->next)
        if (m->size == size && memcmp(m->text, text, size) == 0 && strcmp(m->label, label) == 0)
            return m;
    return NULL;
}

static status_t share(struct module *m, const char *label, const void *text, size_t size) {
    m->label = strdup(label);
    m->text = malloc(size ? size : 1);
    if (!m->label || !m->text)
        return FAIL(ERR_NOMEM, "%s: no memory for the image", label);
    memcpy(m->text, text, size);
    m->size = size;
    m->next = m->backend->shared;
    m->backend->shared = m;
    return OK;
}

static status_t cpu_load(struct module **out, struct backend *b, const char *label,
                         const void *text, size_t size) {
    status_t st = OK;
    struct module *m = find_shared(b, label, text, size);
    if (m) {
        m->users++;
        *out = m;
        return OK;
    }
    m = calloc(1, sizeof *m);
    if (!m)
        return FAIL(ERR_NOMEM, "no memory for an image");
    m->backend = b;
    m->users = 1;
    TRY(ptx_module_parse(&m->ptx, label, text, size));
    TRY(check_target(m->ptx->target, b, label));
    size_t params = 0;
    for (size_t i = 0; i < m->ptx->func_count; i++)
        params += m->ptx->funcs[i].param_count;
    m->programs = calloc(m->ptx->func_count + 1, sizeof *m->programs);
    m->entries = calloc(m->ptx->func_count + 1, sizeof *m->entries);
    m->params = calloc(params + 1, sizeof *m->params);
    if (!m->programs || !m->entries || !m->params)
        TRY(FAIL(ERR_NOMEM, "%s: no memory for the image", label));
    TRY(place_variables(&m->globals, m, SPACE_GLOBAL, m->ptx->global_bytes));
    TRY(place_variables(&m->constants, m, SPACE_CONST, m->ptx->const_bytes));
    struct lower_env env = {.isa = b->isa,
                            .arch = target_number(b->arch),
                            .global_base = m->globals,
                            .const_base = m->constants,
                            .count_events = b->options.shadow};
    struct dev_param *next = m->params;
    for (size_t i = 0; i < m->ptx->func_count; i++) {
        const struct ptx_func *f = &m->ptx->funcs[i];
        TRY(program_lower(&m->programs[i], m->ptx, f, &env));
        describe(&m->entries[i], next, m->programs[i]);
        next += f->param_count;
    }
    if (!m->globals)
        TRY(share(m, label, text, size));
    *out = m;
    m = NULL;
done:
    cpu_unload(m);
    return st;
}

static size_t cpu_entry_count(const struct module *m) {
    return m->ptx->func_count;
}

static const struct dev_entry *cpu_entry(const struct module *m, size_t i) {
    return &m->entries[i];
}

/* ---- tensor maps ----------------------------------------------------------------------------- */

static status_t cpu_tensor_map(uint8_t out[DEV_TENSOR_MAP_BYTES], struct backend *b,
                               const struct dev_tensor_map *map) {
    (void)b;
    tensor_map_pack(out, map);
    return OK;
}

/* ---- launches -------------------------------------------------------------------------------- */

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* After 4 billion events the clock starts again, and every cell with it. */
static void keep_time(struct backend *b) {
    if (b->now < TIME_LIMIT)
        return;
    for (size_t i = 0; i < b->count; i++)
        shadow_forget(b->regions[i]);
    b->now = 1;
}

static status_t cpu_launch(struct dev_run *run, struct backend *b, const struct module *m,
                           const struct dev_entry *entry, const struct dev_launch *call) {
    status_t st;
    const struct program *p = m->programs[entry - m->entries];
    uint8_t *params = calloc(p->func->param_bytes + 8, 1);
    if (!params)
        return FAIL(ERR_NOMEM, "no memory for the parameters of '%s'", entry->name);
    for (size_t i = 0; i < call->arg_count; i++)
        memcpy(params + p->func->params[i].offset, call->args[i], p->func->params[i].size);
    keep_time(b);
    struct launch l = {
        .program = p,
        .call = call,
        .run = run,
        .param = {.size = p->func->param_bytes, .host = params, .constant = true},
        .regions = b->regions,
        .region_count = b->count,
        .max_faults = b->options.max_faults,
        .shadow = b->options.shadow,
        .budget_left = b->options.insn_budget,
        .stack_left = STACK_BUDGET,
        .rng = rng_from_seed(call->schedule_seed),
        .seed = call->schedule_seed,
        .clusters = (uint64_t)(call->grid[0] / call->cluster[0]) *
                    (call->grid[1] / call->cluster[1]) * (call->grid[2] / call->cluster[2]),
        .now = &b->now,
        .began = ++b->now,
    };
    double start = seconds_now();
    unsigned mxcsr = _mm_getcsr();
    _mm_setcsr(MXCSR_DEFAULT); /* handlers rely on it; the caller may flush subnormals */
    st = launch_run(&l, b->options.memory_budget - b->held);
    _mm_setcsr(mxcsr);
    run->seconds = seconds_now() - start;
    free(params);
    return st;
}

const struct backend_ops backend_cpu = {
    .scheme = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .load = cpu_load,
    .unload = cpu_unload,
    .entry_count = cpu_entry_count,
    .entry = cpu_entry,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .declare = cpu_declare,
    .write = cpu_write,
    .read = cpu_read,
    .set = cpu_set,
    .launch = cpu_launch,
    .tensor_map = cpu_tensor_map,
};
