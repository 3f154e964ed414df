/*
 * mem.c - addresses to bytes, lane by lane, with every check.
 *
 * Nothing a kernel computes is dereferenced before its region is known.  The fast path of
 * simd_mem.c covers the case that all lanes hit one region; this file is the rest and the only
 * place that makes memory faults.
 */
#include "device/ptx/exec.h"

#include <string.h>

struct place {
    struct region *region;
    uint64_t at;
};

/* ---- finding --------------------------------------------------------------------------------- */

struct region *mem_find(const struct warp *w, uint64_t address) {
    size_t lo = 0, hi = w->launch->region_count; /* the last region that begins at or below */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (w->launch->regions[mid]->lo <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? w->launch->regions[lo - 1] : NULL;
}

static uint64_t lane_address(const struct warp *w, const struct xinsn *x, unsigned lane) {
    if (x->flags & X_ADDR64)
        return row64(w, x->a)[lane] + (x->flags & X_UNIFORM ? 0 : x->imm);
    return (uint32_t)(row32(w, x->a)[lane] + (uint32_t)x->imm);
}

/* The space and the address within it that a generic address names. */
static enum ptx_space generic_space(uint64_t *address) {
    static const struct {
        uint64_t base;
        enum ptx_space space;
    } windows[] = {
        {WINDOW_SHARED, SPACE_SHARED}, {WINDOW_LOCAL, SPACE_LOCAL}, {WINDOW_PARAM, SPACE_PARAM}};
    for (unsigned i = 0; i < 3; i++)
        if (*address - windows[i].base < WINDOW_BYTES) {
            *address -= windows[i].base;
            return windows[i].space;
        }
    return SPACE_GLOBAL;
}

static bool inside(const struct region *r, uint64_t address, uint64_t bytes) {
    return r && r->size >= bytes && address - r->lo <= r->size - bytes;
}

static bool find_global(struct place *out, struct warp *w, const struct xinsn *x, uint64_t address,
                        uint64_t bytes) {
    struct region *r = w->hits[x->slot];
    if (!inside(r, address, bytes)) {
        r = mem_find(w, address);
        if (!inside(r, address, bytes))
            return false;
        w->hits[x->slot] = r;
    }
    *out = (struct place){r, address - r->lo};
    return true;
}

static const char *space_name(enum ptx_space space) {
    switch (space) {
    case SPACE_SHARED: return "shared";
    case SPACE_LOCAL: return "local";
    case SPACE_PARAM: return "parameter";
    default: return "global";
    }
}

/* Say how far an address is from the region it most likely was meant for. */
static void out_of_bounds(struct warp *w, const struct xinsn *x, unsigned lane, const char *verb,
                          enum ptx_space space, uint64_t address, uint64_t bytes) {
    uint64_t size = space == SPACE_SHARED  ? w->block->shared.size
                    : space == SPACE_LOCAL ? w->launch->program->func->local_bytes
                                           : w->launch->param.size;
    const struct region *r = space == SPACE_GLOBAL ? mem_find(w, address) : NULL;
    unsigned long long at = address, n = bytes;
    if (space != SPACE_GLOBAL)
        fault_record(w, x, lane, FAULT_OUT_OF_BOUNDS, address,
                     "%s %llu bytes at %llu of %llu bytes of %s memory", verb, n, at,
                     (unsigned long long)size, space_name(space));
    else if (r && address - r->lo - r->size < DEVICE_GUARD_BYTES * 16)
        fault_record(w, x, lane, FAULT_OUT_OF_BOUNDS, address,
                     "%s %llu bytes, %llu past the end of a buffer of %llu bytes", verb, n,
                     (unsigned long long)(address - r->lo - r->size), (unsigned long long)r->size);
    else if (inside(r, address, 1))
        fault_record(w, x, lane, FAULT_OUT_OF_BOUNDS, address,
                     "%s %llu bytes at offset %llu of a buffer of %llu bytes", verb, n,
                     (unsigned long long)(address - r->lo), (unsigned long long)r->size);
    else
        fault_record(w, x, lane, FAULT_OUT_OF_BOUNDS, address,
                     "%s %llu bytes at 0x%llx, where no buffer is", verb, n, at);
}

/* Where lane's access lies.  false: a fault is recorded. */
static bool locate(struct place *out, struct warp *w, const struct xinsn *x, unsigned lane,
                   uint64_t bytes, bool write) {
    uint64_t address = lane_address(w, x, lane);
    enum ptx_space space = (enum ptx_space)x->space;
    const char *verb = write ? "writes" : "reads";
    if (space == SPACE_GENERIC)
        space = generic_space(&address);
    if (space == SPACE_CONST)
        space = SPACE_GLOBAL;
    if (address & (bytes - 1)) {
        fault_record(w, x, lane, FAULT_MISALIGNED, address,
                     "%s %llu bytes at 0x%llx, which is no multiple of %llu", verb,
                     (unsigned long long)bytes, (unsigned long long)address,
                     (unsigned long long)bytes);
        return false;
    }
    bool ok = false;
    switch (space) {
    case SPACE_GLOBAL: ok = find_global(out, w, x, address, bytes); break;
    case SPACE_SHARED:
        *out = (struct place){&w->block->shared, address};
        ok = inside(out->region, address, bytes);
        break;
    case SPACE_PARAM:
        *out = (struct place){&w->launch->param, address};
        ok = inside(out->region, address, bytes);
        break;
    case SPACE_LOCAL: {
        uint64_t each = w->launch->program->func->local_bytes;
        *out = (struct place){&w->block->local, address + (w->index * LANES + lane) * each};
        ok = each >= bytes && address <= each - bytes;
        break;
    }
    default: break;
    }
    if (ok && write && out->region->constant)
        ok = false;
    if (!ok)
        out_of_bounds(w, x, lane, verb, space, address, bytes);
    return ok;
}

/* ---- loads and stores ------------------------------------------------------------------------ */

static void write_register(struct warp *w, const struct xinsn *x, uint32_t row, unsigned lane,
                           uint64_t value) {
    if ((x->flags & X_SIGNED) && x->esize < 8) {
        unsigned unused = 64 - 8u * x->esize;
        value = (uint64_t)((int64_t)(value << unused) >> unused);
    }
    if (x->dbits > 32)
        row64(w, row)[lane] = value;
    else
        row32(w, row)[lane] = x->dbits == 16 ? (uint16_t)value : (uint32_t)value;
}

static uint64_t read_register(const struct warp *w, const struct xinsn *x, uint32_t row,
                              unsigned lane) {
    return x->dbits > 32 ? row64(w, row)[lane] : row32(w, row)[lane];
}

static bool is_heap(const struct warp *w, const struct region *r) {
    return r != &w->block->shared && r != &w->block->local && r != &w->launch->param &&
           !r->constant;
}

/* With a seed, lanes of one instruction take their turns in another order. */
static unsigned first_lane(const struct warp *w) {
    return w->launch->seed ? (unsigned)(w->launch->seed + w->turn) % LANES : 0;
}

/* A message to other threads. */
static void strong_access(struct warp *w, const struct xinsn *x) {
    if (x->flags & X_RELEASE)
        shadow_fence(w);
    shadow_strong(w);
}

/* Likewise; but a volatile access to shared memory alone is none: see shadow.c. */
static void volatile_access(struct warp *w, const struct xinsn *x, const struct place at[LANES],
                            uint32_t lanes) {
    bool message = x->flags & X_RELEASE;
    FOR_LANES(lane, lanes)
    message |= at[lane].region != &w->block->shared;
    if (message)
        strong_access(w, x);
}

bool mem_load_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes) {
    uint64_t bytes = (uint64_t)x->esize * x->vec;
    struct place at[LANES];
    FOR_LANES(lane, lanes)
    if (!locate(&at[lane], w, x, lane, bytes, false))
        return false;
    if (w->launch->shadow && (x->flags & X_VOLATILE))
        volatile_access(w, x, at, lanes);
    FOR_LANES(lane, lanes) {
        struct region *r = at[lane].region;
        if (w->launch->shadow && r->written &&
            !shadow_access(w, x, lane, r, at[lane].at, (unsigned)bytes,
                           x->flags & X_VOLATILE ? ACCESS_STRONG_READ : ACCESS_READ, NULL))
            return false;
        if (is_heap(w, r))
            w->launch->run->bytes_read += bytes;
        for (unsigned e = 0; e < x->vec; e++) {
            uint64_t v = 0;
            memcpy(&v, r->host + at[lane].at + (uint64_t)e * x->esize, x->esize);
            write_register(w, x, x->list[e], lane, v);
        }
    }
    return true;
}

bool mem_store_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes) {
    uint64_t bytes = (uint64_t)x->esize * x->vec;
    struct place at[LANES];
    FOR_LANES(lane, lanes)
    if (!locate(&at[lane], w, x, lane, bytes, true))
        return false;
    if (w->launch->shadow && (x->flags & X_VOLATILE))
        volatile_access(w, x, at, lanes);
    FOR_LANES(lane, lanes) {
        struct region *r = at[lane].region;
        uint8_t value[64];
        for (unsigned e = 0; e < x->vec; e++) {
            uint64_t v = read_register(w, x, x->list[e], lane);
            memcpy(value + (size_t)e * x->esize, &v, x->esize);
        }
        if (w->launch->shadow && r->written &&
            !shadow_access(w, x, lane, r, at[lane].at, (unsigned)bytes,
                           x->flags & X_VOLATILE ? ACCESS_STRONG_WRITE : ACCESS_WRITE, value))
            return false;
        if (is_heap(w, r))
            w->launch->run->bytes_written += bytes;
        memcpy(r->host + at[lane].at, value, bytes);
    }
    return true;
}

/* ---- rows of 16 bytes: cp.async, ldmatrix, stmatrix ------------------------------------------ */

static bool row_access(struct warp *w, const struct xinsn *x, unsigned lane, unsigned bytes,
                       uint8_t *row, bool write) {
    struct place at;
    if (bytes & (bytes - 1)) { /* cp.async with an odd source size */
        struct xinsn next = *x;
        for (; bytes; bytes--, row++, next.imm++)
            if (!row_access(w, &next, lane, 1, row, write))
                return false;
        return true;
    }
    if (!locate(&at, w, x, lane, bytes, write))
        return false;
    if (w->launch->shadow && at.region->written &&
        !shadow_access(w, x, lane, at.region, at.at, bytes, write ? ACCESS_WRITE : ACCESS_READ,
                       write ? row : NULL))
        return false;
    if (is_heap(w, at.region))
        *(write ? &w->launch->run->bytes_written : &w->launch->run->bytes_read) += bytes;
    memcpy(write ? at.region->host + at.at : row, write ? row : at.region->host + at.at, bytes);
    return true;
}

bool mem_read_rows(struct warp *w, const struct xinsn *x, uint32_t lanes,
                   const unsigned bytes[LANES], uint8_t out[LANES][16]) {
    FOR_LANES(lane, lanes)
    if (bytes[lane] && !row_access(w, x, lane, bytes[lane], out[lane], false))
        return false;
    return true;
}

bool mem_write_rows(struct warp *w, const struct xinsn *x, uint32_t lanes,
                    const unsigned bytes[LANES], uint8_t in[LANES][16]) {
    FOR_LANES(lane, lanes)
    if (bytes[lane] && !row_access(w, x, lane, bytes[lane], in[lane], true))
        return false;
    return true;
}

/* A row of a matrix of wgmma, for the whole warp. */
bool mem_read_shared(struct warp *w, const struct xinsn *x, uint32_t address, uint8_t out[16]) {
    struct region *r = &w->block->shared;
    if (!inside(r, address, 16)) {
        out_of_bounds(w, x, 0, "reads", SPACE_SHARED, address, 16);
        return false;
    }
    if (w->launch->shadow && r->written &&
        !shadow_access(w, x, 0, r, address, 16, ACCESS_READ, NULL))
        return false;
    memcpy(out, r->host + address, 16);
    return true;
}

/* ---- atomics: PTX ISA 9.7.13.5 --------------------------------------------------------------- */

static uint32_t flush_f32(uint32_t v) {
    return (v & 0x7f800000u) == 0 ? v & 0x80000000u : v;
}

/*
 * atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero, on
 * shared memory it does not (PTX ISA 9.7.13.5, H200: see docs/emulator.md).  Rounds to nearest.
 */
static uint64_t add_f32(uint64_t old, uint64_t operand, bool flush) {
    uint32_t a = (uint32_t)old, b = (uint32_t)operand, r;
    float fa, fb;
    if (flush) {
        a = flush_f32(a);
        b = flush_f32(b);
    }
    memcpy(&fa, &a, 4);
    memcpy(&fb, &b, 4);
    float sum = fa + fb;
    memcpy(&r, &sum, 4);
    if (sum != sum)
        return 0x7fffffffu;
    return flush ? flush_f32(r) : r;
}

static uint64_t add_f64(uint64_t old, uint64_t operand) {
    double a, b;
    memcpy(&a, &old, 8);
    memcpy(&b, &operand, 8);
    double sum = a + b;
    memcpy(&old, &sum, 8);
    return old;
}

static uint64_t sign_extend(uint64_t v, unsigned esize) {
    return esize == 4 ? (uint64_t)(int64_t)(int32_t)v : v;
}

/* The new value; operands of 4 bytes are zero-extended. */
static uint64_t atomic_result(const struct ptx_insn *in, uint64_t old, uint64_t b, uint64_t c,
                              bool flush) {
    bool is_signed = in->type == PTX_S32 || in->type == PTX_S64;
    unsigned esize = ptx_type_bits(in->type) / 8;
    int64_t so = (int64_t)sign_extend(old, esize), sb = (int64_t)sign_extend(b, esize);
    switch (in->mods.atom) {
    case ATOM_ADD:
        if (in->type == PTX_F32)
            return add_f32(old, b, flush);
        return in->type == PTX_F64 ? add_f64(old, b) : old + b;
    case ATOM_MIN: return (is_signed ? so < sb : old < b) ? old : b;
    case ATOM_MAX: return (is_signed ? so > sb : old > b) ? old : b;
    case ATOM_EXCH: return b;
    case ATOM_CAS: return old == b ? c : old;
    case ATOM_INC: return old >= b ? 0 : old + 1;
    case ATOM_DEC: return old == 0 || old > b ? b : old - 1;
    case ATOM_AND: return old & b;
    case ATOM_OR: return old | b;
    case ATOM_XOR: return old ^ b;
    case ATOM_NONE:
    case ATOM_POPC: break;
    }
    return old;
}

bool mem_atomic_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes) {
    bool wide = x->esize == 8;
    uint64_t bytes = x->esize;
    struct place at[LANES];
    FOR_LANES(lane, lanes)
    if (!locate(&at[lane], w, x, lane, bytes, true))
        return false;
    if (w->launch->shadow)
        strong_access(w, x);
    unsigned first = first_lane(w);
    for (unsigned k = 0; k < LANES; k++) {
        unsigned lane = (first + k) % LANES;
        if (!(lanes >> lane & 1))
            continue;
        struct region *r = at[lane].region;
        uint64_t b = wide ? row64(w, x->b)[lane] : row32(w, x->b)[lane];
        uint64_t c = x->insn->mods.atom != ATOM_CAS ? 0
                     : wide                         ? row64(w, x->c)[lane]
                                                    : row32(w, x->c)[lane];
        uint64_t old = 0;
        if (w->launch->shadow && r->written &&
            !shadow_access(w, x, lane, r, at[lane].at, (unsigned)bytes, ACCESS_ATOMIC, NULL))
            return false;
        memcpy(&old, r->host + at[lane].at, bytes);
        uint64_t new = atomic_result(x->insn, old, b, c, r != &w->block->shared);
        memcpy(r->host + at[lane].at, &new, bytes);
        if (is_heap(w, r)) {
            w->launch->run->bytes_read += bytes;
            w->launch->run->bytes_written += bytes;
        }
        if (x->flags & X_RESULT) {
            if (wide)
                row64(w, x->d)[lane] = old;
            else
                row32(w, x->d)[lane] = (uint32_t)old;
        }
    }
    return true;
}
