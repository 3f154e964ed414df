/*
 * simd_mem.c - ld, st, atom and red: the common case in a few vector operations.
 *
 * All lanes are compared at once with the region that this instruction hit last; when every active
 * lane lies inside it, aligned, the bytes move.  Anything else - another region, a fault, the
 * shadow, a rare width - goes lane by lane through mem.c.
 */
#include "device/ptx/simd.h"

/*
 * off[i] = lane i's offset in region r; false unless every active lane's `bytes` lie inside,
 * aligned.
 * *line: the lanes' offsets grow by `bytes` from lane to lane.
 */
ALWAYS bool lane_offsets(uint64_t off[LANES], bool *line, const struct warp *w,
                         const struct xinsn *x, const struct region *r, uint32_t m, bool masked,
                         bool addr64, uint64_t bytes) {
    if (r->size < bytes)
        return false;
    uint64_t limit = r->size - bytes, base = r->lo - x->imm, bad = 0, low = 0, apart = 0;
    const u64a *a64 = ROW(u64a, x->a);
    const u32a *a32 = ROW(u32a, x->a);
    uint32_t add = (uint32_t)x->imm - (uint32_t)r->lo; /* 32 bits: shared memory, lo < 2^32 */
    uint64_t first = addr64 ? a64[0] - base : a32[0] + add;
    LANE_LOOP(i) {
        uint64_t o = addr64 ? a64[i] - base : (uint64_t)(uint32_t)(a32[i] + add);
        uint64_t keep = !masked || (m & lane_bit[i]) ? ~(uint64_t)0 : 0;
        off[i] = o;
        bad |= ((limit - o) | o) & keep; /* top bit: o > limit */
        low |= o & keep;
        apart |= o ^ (first + (uint64_t)i * bytes);
    }
    *line = !masked && apart == 0;
    return !(bad >> 63) && !(low & (bytes - 1));
}

ALWAYS struct region *region_of(const struct warp *w, const struct xinsn *x, bool shared) {
    return shared ? &w->block->shared : w->hits[x->slot];
}

static const struct xinsn *load_slow(struct warp *w, const struct xinsn *x, uint32_t m) {
    if (m && !mem_load_lanes(w, x, m))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return x + 1;
}

static const struct xinsn *store_slow(struct warp *w, const struct xinsn *x, uint32_t m) {
    if (m && !mem_store_lanes(w, x, m))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return x + 1;
}

#define COPY_LANES(R, lane_code)          \
    if (masked) {                         \
        FOR_LANES(i, m) {                 \
            lane_code;                    \
        }                                 \
    } else {                              \
        for (int i = 0; i < LANES; i++) { \
            lane_code;                    \
        }                                 \
    }

/* R: lane type of the element; vec elements each. */
#define LOAD(name, R, vec_, shared, addr64)                                                   \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) {     \
        uint32_t m = MASK_OF(w, x, masked);                                                   \
        uint64_t off[LANES] __attribute__((aligned(64)));                                     \
        bool line;                                                                            \
        struct region *r = region_of(w, x, shared);                                           \
        if (!m)                                                                               \
            return x + 1;                                                                     \
        if (!lane_offsets(off, &line, w, x, r, m, masked, addr64, sizeof(R) * vec_))          \
            return load_slow(w, x, m);                                                        \
        if (w->launch->shadow) {                                                              \
            if ((x->flags & X_VOLATILE) || !r->cells)                                         \
                return load_slow(w, x, m);                                                    \
            if (!shadow_load_lanes(w, x, m, r, off, sizeof(R) * vec_))                        \
                return leave(w, LEAVE_FAULT, x, x + 1);                                       \
        }                                                                                     \
        if (!shared)                                                                          \
            w->launch->run->bytes_read += sizeof(R) * vec_ * (unsigned)__builtin_popcount(m); \
        const uint8_t *host = r->host;                                                        \
        if (line && vec_ == 1) {                                                              \
            memcpy(ROW(R, x->list[0]), host + off[0], sizeof(R) * LANES);                     \
            return x + 1;                                                                     \
        }                                                                                     \
        for (int e = 0; e < vec_; e++) {                                                      \
            R *d = ROW(R, x->list[e]);                                                        \
            if (line) {                                                                       \
                const R *s = (const R *)(host + off[0]) + e;                                  \
                LANE_LOOP(i) d[i] = s[i * vec_];                                              \
            } else {                                                                          \
                COPY_LANES(R, d[i] = *(const R *)(host + off[i] + sizeof(R) * (unsigned)e))   \
            }                                                                                 \
        }                                                                                     \
        return x + 1;                                                                         \
    }                                                                                         \
    VARIANTS(name, )

#define STORE(name, R, vec_, shared, addr64)                                                     \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) {        \
        uint32_t m = MASK_OF(w, x, masked);                                                      \
        uint64_t off[LANES] __attribute__((aligned(64)));                                        \
        bool line;                                                                               \
        struct region *r = region_of(w, x, shared);                                              \
        if (!m)                                                                                  \
            return x + 1;                                                                        \
        if (!lane_offsets(off, &line, w, x, r, m, masked, addr64, sizeof(R) * vec_))             \
            return store_slow(w, x, m);                                                          \
        if (w->launch->shadow) {                                                                 \
            if ((x->flags & X_VOLATILE) || !r->cells)                                            \
                return store_slow(w, x, m);                                                      \
            if (!shadow_store_lanes(w, x, m, r, off, sizeof(R) * vec_))                          \
                return leave(w, LEAVE_FAULT, x, x + 1);                                          \
        }                                                                                        \
        if (!shared)                                                                             \
            w->launch->run->bytes_written += sizeof(R) * vec_ * (unsigned)__builtin_popcount(m); \
        uint8_t *host = r->host;                                                                 \
        if (line && vec_ == 1) {                                                                 \
            memcpy(host + off[0], ROW(R, x->list[0]), sizeof(R) * LANES);                        \
            return x + 1;                                                                        \
        }                                                                                        \
        for (int e = 0; e < vec_; e++) {                                                         \
            const R *s = ROW(R, x->list[e]);                                                     \
            COPY_LANES(R, *(R *)(host + off[i] + sizeof(R) * (unsigned)e) = s[i])                \
        }                                                                                        \
        return x + 1;                                                                            \
    }                                                                                            \
    VARIANTS(name, )

#define ADDRESSES(KIND, name, R, vec_)          \
    KIND(name##_global, R, vec_, false, true)   \
    KIND(name##_shared32, R, vec_, true, false) \
    KIND(name##_shared64, R, vec_, true, true)
ADDRESSES(LOAD, load_4x1, u32a, 1)
ADDRESSES(LOAD, load_4x2, u32a, 2)
ADDRESSES(LOAD, load_4x4, u32a, 4)
ADDRESSES(LOAD, load_8x1, u64a, 1)
ADDRESSES(LOAD, load_8x2, u64a, 2)
ADDRESSES(STORE, store_4x1, u32a, 1)
ADDRESSES(STORE, store_4x2, u32a, 2)
ADDRESSES(STORE, store_4x4, u32a, 4)
ADDRESSES(STORE, store_8x1, u64a, 1)
ADDRESSES(STORE, store_8x2, u64a, 2)

/* ---- one address for all lanes: parameters, and variables without an index ------------------- */

ALWAYS const struct xinsn *load_uniform(struct warp *w, const struct xinsn *x, bool masked,
                                        enum ptx_space space) {
    uint32_t m = MASK_OF(w, x, masked);
    const struct region *r = space == SPACE_PARAM    ? &w->launch->param
                             : space == SPACE_SHARED ? &w->block->shared
                                                     : w->hits[x->slot];
    uint64_t o = row64(w, x->a)[0] - r->lo, bytes = (uint64_t)x->esize * x->vec;
    if ((w->launch->shadow && space != SPACE_PARAM) || r->size < bytes || o > r->size - bytes ||
        (o & (bytes - 1)))
        return load_slow(w, x, m);
    if (space == SPACE_GLOBAL)
        w->launch->run->bytes_read += bytes * (unsigned)__builtin_popcount(m);
    for (unsigned e = 0; e < x->vec; e++) {
        if (x->esize == 8) {
            uint64_t v;
            memcpy(&v, r->host + o + 8 * e, 8);
            LANE_RESULT(u64a, x->list[e], v);
        } else {
            uint32_t v;
            memcpy(&v, r->host + o + 4 * e, 4);
            LANE_RESULT(u32a, x->list[e], v);
        }
    }
    return x + 1;
}
VARIANTS(load_uniform, _param, SPACE_PARAM)
VARIANTS(load_uniform, _shared, SPACE_SHARED)
VARIANTS(load_uniform, _global, SPACE_GLOBAL)
VARIANTS(load_uniform, _const, SPACE_CONST)

/* ---- everything else ------------------------------------------------------------------------- */

ALWAYS const struct xinsn *load_any(struct warp *w, const struct xinsn *x, bool masked) {
    return load_slow(w, x, MASK_OF(w, x, masked));
}
VARIANTS(load_any, )
ALWAYS const struct xinsn *store_any(struct warp *w, const struct xinsn *x, bool masked) {
    return store_slow(w, x, MASK_OF(w, x, masked));
}
VARIANTS(store_any, )
ALWAYS const struct xinsn *atomic_any(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked);
    if (m && !mem_atomic_lanes(w, x, m))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return x + 1;
}
VARIANTS(atomic_any, )

static bool is_signed(enum ptx_type t) {
    return t == PTX_S8 || t == PTX_S16 || t == PTX_S32 || t == PTX_S64;
}

/* false: the elements do not all have the first one's register width. */
static bool element_facts(struct xinsn *x, const struct ptx_insn *in) {
    x->esize = (uint8_t)(ptx_type_bits(in->type) / 8);
    if (is_signed(in->type))
        x->flags |= X_SIGNED;
    return x->esize >= 1 && x->esize <= 8;
}

#define CHOOSE(kind, shape)                                                               \
    (x->space == SPACE_SHARED ? (x->flags & X_ADDR64 ? USE(x, kind##_##shape##_shared64)  \
                                                     : USE(x, kind##_##shape##_shared32)) \
                              : USE(x, kind##_##shape##_global))

DECLARE_BIND(ld) {
    if (!element_facts(x, in))
        return false;
    bool natural = x->esize >= 4 && x->dbits == x->esize * 8;
    if (natural && (x->flags & X_UNIFORM))
        switch ((enum ptx_space)x->space) {
        case SPACE_PARAM: return USE(x, load_uniform_param);
        case SPACE_SHARED: return USE(x, load_uniform_shared);
        case SPACE_GLOBAL: return USE(x, load_uniform_global);
        case SPACE_CONST: return USE(x, load_uniform_const);
        default: break;
        }
    bool table = x->space == SPACE_GLOBAL || x->space == SPACE_GENERIC || x->space == SPACE_CONST;
    if (!natural || !(x->space == SPACE_SHARED || (table && (x->flags & X_ADDR64))))
        return USE(x, load_any);
    switch (x->esize * 10 + x->vec) {
    case 41: return CHOOSE(load, 4x1);
    case 42: return CHOOSE(load, 4x2);
    case 44: return CHOOSE(load, 4x4);
    case 81: return CHOOSE(load, 8x1);
    case 82: return CHOOSE(load, 8x2);
    default: return USE(x, load_any);
    }
}

DECLARE_BIND(st) {
    if (!element_facts(x, in))
        return false;
    bool natural = x->esize >= 4 && x->dbits == x->esize * 8 && !(x->flags & X_UNIFORM);
    bool table = x->space == SPACE_GLOBAL || x->space == SPACE_GENERIC;
    if (!natural || !(x->space == SPACE_SHARED || (table && (x->flags & X_ADDR64))))
        return USE(x, store_any);
    switch (x->esize * 10 + x->vec) {
    case 41: return CHOOSE(store, 4x1);
    case 42: return CHOOSE(store, 4x2);
    case 44: return CHOOSE(store, 4x4);
    case 81: return CHOOSE(store, 8x1);
    case 82: return CHOOSE(store, 8x2);
    default: return USE(x, store_any);
    }
}

static bool is_half_type(enum ptx_type t) {
    return t == PTX_F16 || t == PTX_F16X2 || t == PTX_BF16 || t == PTX_BF16X2;
}

/* Is there such an operation on the type, and on vectors of it? */
static bool is_atomic(const struct ptx_insn *in) {
    enum ptx_atom op = in->mods.atom;
    unsigned bytes = in->mods.vec * ptx_type_bits(in->type) / 8;
    bool extreme = op == ATOM_MIN || op == ATOM_MAX;
    if (in->mods.vec > 1 && (bytes > 16 || (in->mods.space != SPACE_GLOBAL &&
                                            in->mods.space != SPACE_GENERIC)))
        return false;
    if (is_half_type(in->type))
        return op == ATOM_ADD || (extreme && in->mods.vec > 1);
    if (in->type == PTX_F32 || in->type == PTX_F64)
        return op == ATOM_ADD || (op == ATOM_EXCH && in->mods.vec == 1);
    return op != ATOM_NONE && op != ATOM_POPC;
}

DECLARE_BIND(atom) {
    bool red = in->op == PTX_OP_RED || in->op == PTX_OP_RED_HALF || in->op == PTX_OP_RED_VEC;
    unsigned groups = (red ? 2u : 3u) + (in->op == PTX_OP_ATOM_CAS);
    if (!element_facts(x, in) || !is_atomic(in) ||
        in->mods.hint != (in->group_count > groups) || (red && in->mods.atom == ATOM_EXCH))
        return false;
    if (!red) {
        x->flags |= X_RESULT;
        x->list -= x->vec; /* the results' rows were listed just before the operands' */
    }
    return USE(x, atomic_any);
}

/* ---- cp.async: PTX ISA 9.7.9.25.3 ------------------------------------------------------------ */

/*
 * The copy happens at once, which is one of the orders that the ISA allows; waiting has nothing to
 * do.  A kernel that forgets to wait is therefore not found out.
 */
ALWAYS const struct xinsn *cp_async(struct warp *w, const struct xinsn *x, bool masked) {
    const struct ptx_operand *from = &x->insn->opnd[x->insn->first[1]];
    struct xinsn source = *x;
    source.space = SPACE_GLOBAL;
    source.a = x->b;
    source.imm = (uint64_t)from->offset;
    source.flags = X_ADDR64;
    source.slot = x->slot + 1;
    uint32_t lanes = MASK_OF(w, x, masked);
    uint8_t rows[LANES][16] = {{0}};
    unsigned size[LANES], have[LANES];
    const struct ptx_insn *in = x->insn; /* a source size need not be there */
    bool sized = in->group_count > 3 && in->first[4] > in->first[3];
    FOR_LANES(i, lanes) {
        size[i] = x->esize;
        have[i] = sized ? row32(w, x->c)[i] : x->esize;
        have[i] = have[i] < size[i] ? have[i] : size[i];
    }
    if (!lanes)
        return x + 1;
    if (!mem_read_rows(w, &source, lanes, have, rows) || !mem_write_rows(w, x, lanes, size, rows))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return x + 1;
}
VARIANTS(cp_async, )
DECLARE_BIND(cp_async) {
    x->esize = (uint8_t)in->opnd[in->first[2]].imm;
    return USE(x, cp_async);
}

ALWAYS const struct xinsn *createpolicy(struct warp *w, const struct xinsn *x, bool masked) {
    LANE_RESULT(u64a, x->d, (uint64_t)0);
    return x + 1;
}
VARIANTS(createpolicy, )
DECLARE_BIND(createpolicy) {
    (void)in;
    return USE(x, createpolicy);
}
