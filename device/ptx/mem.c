/*
 * mem.c - addresses to bytes, lane by lane, with every check.
 *
 * Nothing a kernel computes is dereferenced before its region is known.  The fast path of
 * simd_mem.c covers the case that all lanes hit one region; this file is the rest and the only
 * place that makes memory faults.
 */
#include "device/ptx/exec.h"

#include <string.h>

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
        {WINDOW_SHARED, SPACE_CLUSTER}, {WINDOW_LOCAL, SPACE_LOCAL}, {WINDOW_PARAM, SPACE_PARAM}};
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
    case SPACE_SHARED:
    case SPACE_CLUSTER: return "shared";
    case SPACE_LOCAL: return "local";
    case SPACE_PARAM: return "parameter";
    default: return "global";
    }
}

/* Say how far an address is from the region it most likely was meant for. */
static void out_of_bounds(struct warp *w, const struct xinsn *x, unsigned lane, const char *verb,
                          enum ptx_space space, uint64_t address, uint64_t bytes) {
    uint64_t size = space == SPACE_SHARED || space == SPACE_CLUSTER ? w->block->shared.size
                    : space == SPACE_LOCAL ? w->launch->program->local_bytes
                                           : w->launch->param.size;
    const struct region *r = space == SPACE_GLOBAL ? mem_find(w, address) : NULL;
    unsigned long long at = address, n = bytes;
    uint64_t rank = address >> CLUSTER_SHIFT;
    const struct cluster *c = w->block->cluster;
    if ((space == SPACE_SHARED || space == SPACE_CLUSTER) && rank != w->block->rank) {
        fault_record(w, x, lane, FAULT_OUT_OF_BOUNDS, address,
                     rank >= c->size        ? "%s %llu bytes at shared address 0x%llx: no block %u"
                     : space == SPACE_SHARED ? "%s %llu bytes at shared::cta address 0x%llx, which "
                                               "is in block %u of the cluster"
                     : c->done[rank] ? "%s %llu bytes at shared address 0x%llx of block %u of the "
                                       "cluster, which has ended"
                                     : "%s %llu bytes at shared address 0x%llx, past the end in "
                                       "block %u of the cluster",
                     verb, n, at, (unsigned)rank);
        return;
    }
    if (space == SPACE_SHARED || space == SPACE_CLUSTER)
        at -= w->block->shared.lo;
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

bool mem_locate(struct place *out, struct warp *w, const struct xinsn *x, unsigned lane,
                uint64_t bytes, bool write) {
    return mem_locate_at(out, w, x, lane, (enum ptx_space)x->space, lane_address(w, x, lane), bytes,
                         write);
}

bool mem_locate_at(struct place *out, struct warp *w, const struct xinsn *x, unsigned lane,
                   enum ptx_space space, uint64_t address, uint64_t bytes, bool write) {
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
        *out = (struct place){&w->block->shared, address - w->block->shared.lo};
        ok = inside(out->region, address, bytes);
        break;
    case SPACE_CLUSTER: {
        struct region *r = cluster_shared(w->block->cluster, address);
        ok = inside(r, address, bytes) && !w->block->cluster->done[r->owner->rank];
        *out = (struct place){r, ok ? address - r->lo : 0};
        break;
    }
    case SPACE_PARAM:
        *out = (struct place){&w->launch->param, address};
        ok = inside(out->region, address, bytes);
        break;
    case SPACE_LOCAL: {
        uint64_t each = w->launch->program->local_bytes;
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

bool mem_is_heap(const struct warp *w, const struct region *r) {
    return !r->owner && r != &w->launch->param && !r->constant;
}

void mem_message(struct warp *w, const struct xinsn *x) {
    if (x->flags & X_RELEASE)
        shadow_fence(w);
    shadow_strong(w);
}

/* Likewise; but a volatile access to shared memory alone is none: see shadow.c. */
static void volatile_access(struct warp *w, const struct xinsn *x, const struct place at[LANES],
                            uint32_t lanes) {
    bool message = x->flags & X_ORDERED;
    FOR_LANES(lane, lanes)
    message |= !at[lane].region->owner;
    if (message)
        mem_message(w, x);
}

bool mem_load_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes) {
    uint64_t bytes = (uint64_t)x->esize * x->vec;
    struct place at[LANES];
    FOR_LANES(lane, lanes)
    if (!mem_locate(&at[lane], w, x, lane, bytes, false))
        return false;
    if (w->launch->shadow && (x->flags & X_VOLATILE))
        volatile_access(w, x, at, lanes);
    FOR_LANES(lane, lanes) {
        struct region *r = at[lane].region;
        if (w->launch->shadow && r->written &&
            !shadow_access(w, x, lane, r, at[lane].at, (unsigned)bytes,
                           x->flags & X_VOLATILE ? ACCESS_STRONG_READ : ACCESS_READ, NULL))
            return false;
        if (mem_is_heap(w, r))
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
    if (!mem_locate(&at[lane], w, x, lane, bytes, true))
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
        if (mem_is_heap(w, r))
            w->launch->run->bytes_written += bytes;
        memcpy(r->host + at[lane].at, value, bytes);
    }
    return true;
}

bool mem_copy_at(struct warp *w, const struct xinsn *x, unsigned lane, enum ptx_space space,
                 uint64_t address, unsigned bytes, uint8_t *data, bool write) {
    struct place at;
    if (!mem_locate_at(&at, w, x, lane, space, address, bytes, write))
        return false;
    if (w->launch->shadow && at.region->written &&
        !shadow_access(w, x, lane, at.region, at.at, bytes, write ? ACCESS_WRITE : ACCESS_READ,
                       write ? data : NULL))
        return false;
    if (mem_is_heap(w, at.region))
        *(write ? &w->launch->run->bytes_written : &w->launch->run->bytes_read) += bytes;
    memcpy(write ? at.region->host + at.at : data, write ? data : at.region->host + at.at, bytes);
    return true;
}

/* ---- rows of 16 bytes: cp.async, ldmatrix, stmatrix ------------------------------------------ */

static bool row_access(struct warp *w, const struct xinsn *x, unsigned lane, unsigned bytes,
                       uint8_t *row, bool write) {
    if (bytes & (bytes - 1)) { /* cp.async with an odd source size */
        struct xinsn next = *x;
        for (; bytes; bytes--, row++, next.imm++)
            if (!row_access(w, &next, lane, 1, row, write))
                return false;
        return true;
    }
    return mem_copy_at(w, x, lane, (enum ptx_space)x->space, lane_address(w, x, lane), bytes, row,
                       write);
}

bool mem_copy_bulk(struct warp *w, const struct xinsn *x, const struct xinsn *source, unsigned lane,
                   uint32_t n) {
    struct xinsn from = *source, to = *x;
    to.flags &= (uint16_t)~X_UNIFORM; /* so that the displacement counts */
    for (uint32_t i = 0; i < n; i++, from.imm += 16, to.imm += 16) {
        uint8_t row[16];
        if (!row_access(w, &from, lane, 16, row, false) || !row_access(w, &to, lane, 16, row, true))
            return false;
    }
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
bool mem_read_shared(struct warp *w, const struct xinsn *x, uint32_t offset, uint8_t out[16]) {
    struct region *r = &w->block->shared;
    if (!inside(r, r->lo + offset, 16)) {
        out_of_bounds(w, x, 0, "reads", SPACE_SHARED, r->lo + offset, 16);
        return false;
    }
    if (w->launch->shadow && r->written &&
        !shadow_access(w, x, 0, r, offset, 16, ACCESS_READ, NULL))
        return false;
    memcpy(out, r->host + offset, 16);
    return true;
}
