/*
 * tensor_map.c - tensor maps and the copies that use them, and bulk reductions.
 * PTX ISA 5.5, 9.7.9.25.4.4, 9.7.9.25.5.
 *
 * The 128 bytes of a CUtensorMap are NVIDIA's own and not published; these are the emulator's, made
 * by dev_tensor_map_encode.  A kernel may have put anything where it says that a map is, so every
 * use checks it again.
 *
 *   bytes  0   "AssayTM1"
 *          8   type, rank, log2 of the swizzle's bytes (0: none), 0
 *         12   box size - 1 of each dimension, 5 bytes
 *         17   element stride of each dimension, 5 bytes; then 2 zeros
 *         24   address
 *         32   size - 1 of each dimension, 5 times 4 bytes; then 4 zeros
 *         56   strides of dimensions 1 to 4, 4 times 8 bytes; then zeros
 */
#include <string.h>

#include "device/ptx/exec.h"

#define MAP_ALIGN 64
#define BOX_ALIGN 128        /* of a box in shared memory */
#define BOX_MAX_BYTES 262144 /* more than any block's shared memory */

static const char mark[8] = "AssayTM1";

void tensor_map_pack(uint8_t out[DEV_TENSOR_MAP_BYTES], const struct dev_tensor_map *map) {
    memset(out, 0, DEV_TENSOR_MAP_BYTES);
    memcpy(out, mark, sizeof mark);
    out[8] = (uint8_t)map->type;
    out[9] = (uint8_t)map->rank;
    out[10] = (uint8_t)(map->swizzle ? __builtin_ctz(map->swizzle) : 0);
    memcpy(out + 24, &map->address, 8);
    for (unsigned i = 0; i < map->rank; i++) {
        uint32_t last = (uint32_t)(map->dims[i] - 1);
        out[12 + i] = (uint8_t)(map->box[i] - 1);
        out[17 + i] = (uint8_t)map->element_strides[i];
        memcpy(out + 32 + 4 * i, &last, 4);
        if (i)
            memcpy(out + 48 + 8 * i, &map->strides[i - 1], 8);
    }
}

/* false: no map stands there. */
static bool unpack(struct dev_tensor_map *map, const uint8_t in[DEV_TENSOR_MAP_BYTES]) {
    *map = (struct dev_tensor_map){.type = (enum dev_tensor_type)in[8], .rank = in[9]};
    if (memcmp(in, mark, sizeof mark) != 0 || in[8] >= DEV_TENSOR_TYPES || in[9] < 1 ||
        in[9] > DEV_TENSOR_RANK || in[10] > 7)
        return false;
    map->swizzle = in[10] ? 1u << in[10] : 0;
    memcpy(&map->address, in + 24, 8);
    for (unsigned i = 0; i < map->rank; i++) {
        uint32_t last;
        memcpy(&last, in + 32 + 4 * i, 4);
        map->dims[i] = (uint64_t)last + 1;
        map->box[i] = in[12 + i] + 1u;
        map->element_strides[i] = in[17 + i];
        if (i)
            memcpy(&map->strides[i - 1], in + 48 + 8 * i, 8);
    }
    return tensor_map_problem(map) == NULL;
}

static bool wrong(struct warp *w, const struct xinsn *x, unsigned lane, enum dev_fault_kind kind,
                  uint64_t address, const char *what) {
    fault_record(w, x, lane, kind, address, "%s %s", ptx_opcodes[x->insn->op].name, what);
    return false;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Modify `bytes` bytes at an address by an operand.  false: a fault. */
static bool reduce_at(struct warp *w, const struct xinsn *x, unsigned lane, enum ptx_space space,
                      uint64_t address, unsigned bytes, enum ptx_type type,
                      const uint8_t *operand) {
    struct place at;
    uint64_t old = 0, b = 0;
    if (!mem_locate_at(&at, w, x, lane, space, address, bytes, true))
        return false;
    if (w->launch->shadow && at.region->written &&
        !shadow_access(w, x, lane, at.region, at.at, bytes, ACCESS_ATOMIC, NULL))
        return false;
    memcpy(&old, at.region->host + at.at, bytes);
    memcpy(&b, operand, bytes);
    uint64_t new = mem_atomic_value(type, x->insn->mods.atom, old, b, !at.region->owner);
    memcpy(at.region->host + at.at, &new, bytes);
    if (mem_is_heap(w, at.region)) {
        w->launch->run->bytes_read += bytes;
        w->launch->run->bytes_written += bytes;
    }
    return true;
}

#define T(name) ((ptx_types)1 << PTX_##name)

/* PTX ISA 9.7.9.25.4.2, the table of valid combinations. */
bool bulk_reduces(enum ptx_type type, enum ptx_atom op, bool global) {
    ptx_types types = 0, shared = T(U32) | T(S32) | T(B32);
    switch (op) {
    case ATOM_ADD:
        types = T(U32) | T(S32) | T(U64) | T(F32) | T(F64) | T(F16) | T(BF16);
        shared |= T(U64);
        break;
    case ATOM_MIN:
    case ATOM_MAX:
        types = T(U32) | T(S32) | T(U64) | T(S64) | T(F16) | T(BF16);
        break;
    case ATOM_INC:
    case ATOM_DEC:
        types = T(U32);
        break;
    case ATOM_AND:
    case ATOM_OR:
    case ATOM_XOR:
        types = T(B32) | T(B64);
        break;
    default:
        break;
    }
    return (global ? types : types & shared) >> type & 1;
}

static uint64_t address_in(const struct warp *w, uint32_t row, bool wide, unsigned lane,
                           uint64_t add) {
    return wide ? row64(w, row)[lane] + add : (uint32_t)(row32(w, row)[lane] + (uint32_t)add);
}

static const struct ptx_operand *group(const struct xinsn *x, unsigned g) {
    return &x->insn->opnd[x->insn->first[g]];
}

/* The address of x's first operand, and that of a source in shared memory in group g. */
static uint64_t first_address(const struct warp *w, const struct xinsn *x, unsigned lane) {
    return address_in(w, x->a, x->flags & X_ADDR64, lane, x->flags & X_UNIFORM ? 0 : x->imm);
}
static uint64_t source_address(const struct warp *w, const struct xinsn *x, unsigned lane,
                               unsigned g) {
    return address_in(w, x->b, x->flags & X_SOURCE64, lane, (uint64_t)group(x, g)->offset);
}

bool bulk_reduce_lane(struct warp *w, const struct xinsn *x, unsigned lane) {
    uint64_t to = first_address(w, x, lane), from = source_address(w, x, lane, 1);
    uint32_t bytes = row32(w, x->c)[lane];
    unsigned each = ptx_type_bits(x->insn->type) / 8;
    if (bytes % 16 || to % 16 || from % 16)
        return wrong(w, x, lane, FAULT_MISALIGNED, to,
                     "with an address or a size that is no multiple of 16");
    launch_charge(w->launch, bytes / each);
    for (uint32_t i = 0; i < bytes; i += 16) {
        uint8_t chunk[16];
        if (!mem_copy_at(w, x, lane, SPACE_SHARED, from + i, 16, chunk, false))
            return false;
        for (unsigned e = 0; e < 16; e += each)
            if (!reduce_at(w, x, lane, (enum ptx_space)x->space, to + i + e, each, x->insn->type,
                           chunk + e))
                return false;
    }
    return x->insn->op == PTX_OP_BULK_REDUCE || mbar_complete(w, x, lane, group(x, 3), bytes);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* A map at its use: the box of this very copy. */
struct box {
    struct dev_tensor_map map;
    int64_t at[DEV_TENSOR_RANK];      /* coordinates of its first element */
    uint32_t count[DEV_TENSOR_RANK];  /* elements along each dimension */
    unsigned each;                    /* bytes of an element */
    uint64_t bytes;
    bool leaves; /* for global memory */
};

/*
 * What an H200 answers with CUDA_ERROR_ILLEGAL_INSTRUCTION: an address in dimension 0 that is no
 * multiple of 16, and negative coordinates of what is stored (CUDA C++ Programming Guide, "Using TMA":
 * "the top left corner cannot have any negative indices"; loads and prefetches may have them).
 */
static bool check_corner(const struct box *b, struct warp *w, const struct xinsn *x, unsigned lane) {
    uint64_t to = b->map.address;
    if (b->at[0] * (int64_t)b->each % 16)
        return wrong(w, x, lane, FAULT_MISALIGNED, to,
                     "begins in dimension 0 at no multiple of 16 bytes");
    for (unsigned i = 0; b->leaves && i < b->map.rank; i++)
        if (b->at[i] < 0)
            return wrong(w, x, lane, FAULT_OUT_OF_BOUNDS, to,
                         "stores a box that begins at a negative coordinate");
    return true;
}

static bool read_map(struct box *b, struct warp *w, const struct xinsn *x, unsigned lane) {
    const struct ptx_insn *in = x->insn;
    b->leaves = in->op == PTX_OP_TENSOR_STORE || in->op == PTX_OP_TENSOR_REDUCE;
    bool first = b->leaves || in->op == PTX_OP_TENSOR_PREFETCH; /* the map is the first operand */
    uint64_t address = row64(w, x->c)[lane] + (uint64_t)group(x, first ? 0 : 1)->offset;
    uint8_t bytes[DEV_TENSOR_MAP_BYTES];
    if (address % MAP_ALIGN)
        return wrong(w, x, lane, FAULT_MISALIGNED, address,
                     "with a tensor map at an address that is no multiple of 64");
    for (unsigned i = 0; i < DEV_TENSOR_MAP_BYTES; i += 16)
        if (!mem_copy_at(w, x, lane, SPACE_GENERIC, address + i, 16, bytes + i, false))
            return false;
    if (!unpack(&b->map, bytes))
        return wrong(w, x, lane, FAULT_OUT_OF_BOUNDS, address,
                     "finds no tensor map there: dev_tensor_map_encode makes them");
    if (b->map.rank != in->mods.dim)
        return wrong(w, x, lane, FAULT_OUT_OF_BOUNDS, address,
                     "names another number of dimensions than its tensor map has");
    b->bytes = b->each = dev_tensor_type_bytes(b->map.type);
    for (unsigned i = 0; i < b->map.rank; i++) {
        unsigned step = i ? b->map.element_strides[i] : 1;
        b->count[i] = (b->map.box[i] + step - 1) / step;
        b->at[i] = (int32_t)row32(w, x->list[i])[lane];
        b->bytes *= b->count[i];
    }
    if (b->bytes > BOX_MAX_BYTES)
        return wrong(w, x, lane, FAULT_OUT_OF_BOUNDS, address,
                     "has a box that is larger than shared memory");
    return check_corner(b, w, x, lane);
}

/* The swizzle of a shared address: bits 4 to 6 change by bits 7 to 9. */
static uint64_t swizzled(uint64_t address, unsigned swizzle) {
    return swizzle ? address ^ ((address >> 7 & (swizzle / 16 - 1)) << 4) : address;
}

/* One row of the box along dimension 0, at `shared` in shared memory; inside: it is in the tensor. */
struct box_row {
    uint64_t global, shared;
    bool inside;
};

/* A box that is narrower than its swizzle leaves the rest of each of the swizzle's rows as it is. */
static struct box_row row_of(const struct box *b, uint32_t index, uint64_t shared) {
    uint64_t pitch = b->map.swizzle ? b->map.swizzle : b->count[0] * b->each;
    struct box_row r = {.global = b->map.address, .shared = shared + index * pitch, .inside = true};
    for (unsigned i = 1; i < b->map.rank; i++) {
        int64_t c = b->at[i] + (int64_t)(index % b->count[i]) * b->map.element_strides[i];
        index /= b->count[i];
        if (c < 0 || (uint64_t)c >= b->map.dims[i])
            r.inside = false;
        else
            r.global += (uint64_t)c * b->map.strides[i - 1];
    }
    return r;
}

enum move { MOVE_LOAD, MOVE_STORE, MOVE_REDUCE };

static enum ptx_type number_type(enum dev_tensor_type type) {
    static const enum ptx_type types[DEV_TENSOR_TYPES] = {
        [DEV_TENSOR_U8] = PTX_U8,   [DEV_TENSOR_U16] = PTX_U16, [DEV_TENSOR_U32] = PTX_U32,
        [DEV_TENSOR_S32] = PTX_S32, [DEV_TENSOR_U64] = PTX_U64, [DEV_TENSOR_S64] = PTX_S64,
        [DEV_TENSOR_F16] = PTX_F16, [DEV_TENSOR_F32] = PTX_F32, [DEV_TENSOR_F64] = PTX_F64,
        [DEV_TENSOR_BF16] = PTX_BF16};
    return types[type];
}

/*
 * How many of the `count` elements from the box's element `first` on are moved; the others stay as
 * they are, zeros in a load.  What leaves for a tensor is cut at its edge by 16 bytes, not by
 * elements, as an H200 does it: elements outside that share 16 bytes with one inside are written like
 * it, and that is a fault where they are past the end of the buffer.
 */
static unsigned moved(const struct box *b, const struct box_row *r, uint32_t first, unsigned count,
                      enum move how) {
    int64_t c = b->at[0] + first;
    if (!r->inside || c < 0 || (uint64_t)c >= b->map.dims[0])
        return 0;
    uint64_t left = b->map.dims[0] - (uint64_t)c;
    return how == MOVE_LOAD && left < count ? (unsigned)left : count;
}

/* 16 bytes of a row: elements from `first` on, between `chunk` and global memory. */
static bool move_chunk(struct warp *w, const struct xinsn *x, unsigned lane, const struct box *b,
                       const struct box_row *r, uint32_t first, uint8_t chunk[16],
                       enum move how) {
    unsigned whole = 16 / b->each, count = moved(b, r, first, whole, how);
    uint64_t at = r->global + (uint64_t)(b->at[0] + first) * b->each;
    bool at_once = how != MOVE_REDUCE && count == whole;
    launch_charge(w->launch, at_once || !count ? 1 : count);
    if (at_once)
        return mem_copy_at(w, x, lane, SPACE_GLOBAL, at, 16, chunk, how == MOVE_STORE);
    for (unsigned e = 0; e < count; e++, at += b->each) {
        uint8_t *element = chunk + (size_t)e * b->each;
        bool good = how == MOVE_REDUCE
                        ? reduce_at(w, x, lane, SPACE_GLOBAL, at, b->each,
                                    number_type(b->map.type), element)
                        : mem_copy_at(w, x, lane, SPACE_GLOBAL, at, b->each, element, false);
        if (!good)
            return false;
    }
    return true;
}

static bool move_box(struct warp *w, const struct xinsn *x, unsigned lane, const struct box *b,
                     enum ptx_space space, uint64_t shared, enum move how) {
    uint32_t per_row = b->count[0] * b->each, rows = (uint32_t)(b->bytes / per_row);
    if (shared % BOX_ALIGN)
        return wrong(w, x, lane, FAULT_MISALIGNED, shared,
                     "with shared memory at an address that is no multiple of 128");
    for (uint32_t i = 0; i < rows; i++) {
        struct box_row r = row_of(b, i, shared);
        for (uint32_t k = 0; k < per_row; k += 16) {
            uint8_t chunk[16] = {0};
            uint64_t at = swizzled(r.shared + k, b->map.swizzle);
            if (how != MOVE_LOAD && !mem_copy_at(w, x, lane, space, at, 16, chunk, false))
                return false;
            if (!move_chunk(w, x, lane, b, &r, k / b->each, chunk, how))
                return false;
            if (how == MOVE_LOAD && !mem_copy_at(w, x, lane, space, at, 16, chunk, true))
                return false;
        }
    }
    return true;
}

/* The same address in block `rank` of the cluster. */
static uint64_t in_rank(uint64_t address, unsigned rank) {
    return (address & ~((uint64_t)0xff << CLUSTER_SHIFT)) | (uint64_t)rank << CLUSTER_SHIFT;
}

static bool load_box(struct warp *w, const struct xinsn *x, unsigned lane, const struct box *b) {
    uint64_t to = first_address(w, x, lane);
    const struct ptx_operand *object = group(x, 2);
    if (!x->insn->mods.multicast)
        return move_box(w, x, lane, b, (enum ptx_space)x->space, to, MOVE_LOAD) &&
               mbar_complete(w, x, lane, object, (uint32_t)b->bytes);
    uint64_t bar = address_in(w, x->e, x->flags & X_OBJECT64, lane, (uint64_t)object->offset);
    FOR_LANES(rank, row32(w, x->d)[lane] & 0xffff) {
        struct ptx_operand there = *object;
        there.offset += (int64_t)(in_rank(bar, rank) - bar);
        if (!move_box(w, x, lane, b, (enum ptx_space)x->space, in_rank(to, rank), MOVE_LOAD) ||
            !mbar_complete(w, x, lane, &there, (uint32_t)b->bytes))
            return false;
    }
    return true;
}

/* PTX ISA 9.7.9.25.5.3: as in a bulk reduction, but for f64; a map says u32 where PTX says b32. */
static bool box_reduces(enum ptx_type type, enum ptx_atom op) {
    bool integer = type == PTX_U32 || type == PTX_S32 || type == PTX_U64 || type == PTX_S64;
    if (integer && (op == ATOM_AND || op == ATOM_OR || op == ATOM_XOR))
        type = ptx_type_bits(type) == 32 ? PTX_B32 : PTX_B64;
    return type != PTX_F64 && bulk_reduces(type, op, true);
}

bool tensor_copy_lane(struct warp *w, const struct xinsn *x, unsigned lane) {
    struct box b;
    if (!read_map(&b, w, x, lane))
        return false;
    if (x->insn->op == PTX_OP_TENSOR_PREFETCH)
        return true; /* no effect on values */
    if (!b.leaves)
        return load_box(w, x, lane, &b);
    uint64_t from = source_address(w, x, lane, 1);
    if (x->insn->op == PTX_OP_TENSOR_STORE)
        return move_box(w, x, lane, &b, SPACE_SHARED, from, MOVE_STORE);
    if (!box_reduces(number_type(b.map.type), x->insn->mods.atom))
        return wrong(w, x, lane, FAULT_OUT_OF_BOUNDS, 0,
                     "has an operation that its tensor's type has not");
    return move_box(w, x, lane, &b, SPACE_SHARED, from, MOVE_REDUCE);
}
