/*
 * simd_sync.c - thread-block clusters, mbarrier objects, bulk copies.
 * PTX ISA 9.7.9.22 to 27, 9.7.13.4, 9.7.13.15.
 */
#include "device/ptx/simd.h"

/* ---- the cluster's barrier ------------------------------------------------------------------- */

ALWAYS const struct xinsn *cluster_arrives(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked);
    if (m && !cluster_arrive(w, x, m, x->insn->mods.order == ORDER_RELAXED))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return m ? leave(w, LEAVE_AGAIN, x + 1, x + 1) : x + 1; /* the barrier may be complete */
}
VARIANTS(cluster_arrives, )
DECLARE_BIND(cluster_arrive) {
    enum ptx_order order = in->mods.order;
    return (order == ORDER_NONE || order == ORDER_RELEASE || order == ORDER_RELAXED) &&
           USE(x, cluster_arrives);
}

ALWAYS const struct xinsn *cluster_waits(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked), waiting;
    if (!m)
        return x + 1;
    if (!cluster_wait(&waiting, w, x, m))
        return leave(w, LEAVE_FAULT, x, x + 1);
    if (!waiting)
        return x + 1;
    if (w->mask & ~waiting)
        warp_split(w, w->mask & ~waiting, x + 1);
    w->path[w->current].state = PATH_CLUSTER;
    return leave(w, LEAVE_BAR, x, x + 1);
}
VARIANTS(cluster_waits, )
DECLARE_BIND(cluster_wait) {
    return (in->mods.order == ORDER_NONE || in->mods.order == ORDER_ACQUIRE) &&
           USE(x, cluster_waits);
}

/* ---- addresses ------------------------------------------------------------------------------- */

#define OFFSET_BITS (((uint64_t)1 << CLUSTER_SHIFT) - 1)

/* The rank is in the same bits of a shared and of a generic address. */
ALWAYS const struct xinsn *mapa_u32(struct warp *w, const struct xinsn *x, bool masked) {
    const u32a *pa = ROW(u32a, x->a), *pb = ROW(u32a, x->b);
    LANE_RESULT(u32a, x->d, (pa[i] & (uint32_t)OFFSET_BITS) | pb[i] << CLUSTER_SHIFT);
    return x + 1;
}
VARIANTS(mapa_u32, )
ALWAYS const struct xinsn *mapa_u64(struct warp *w, const struct xinsn *x, bool masked) {
    const u64a *pa = ROW(u64a, x->a);
    const u32a *pb = ROW(u32a, x->b);
    LANE_RESULT(u64a, x->d, ({
                    uint64_t base = pa[i] & ~(uint64_t)0xffffffff;
                    base | (pa[i] & OFFSET_BITS) | (uint32_t)(pb[i] << CLUSTER_SHIFT);
                }));
    return x + 1;
}
VARIANTS(mapa_u64, )
static bool in_cluster_space(const struct ptx_insn *in) {
    return in->mods.space == SPACE_CLUSTER || in->mods.space == SPACE_GENERIC;
}
DECLARE_BIND(mapa) {
    if (!in_cluster_space(in))
        return false;
    if (in->type == PTX_U32)
        return in->mods.space == SPACE_CLUSTER && USE(x, mapa_u32);
    return USE(x, mapa_u64);
}

ALWAYS const struct xinsn *getctarank_u32(struct warp *w, const struct xinsn *x, bool masked) {
    const u32a *pa = ROW(u32a, x->a);
    LANE_RESULT(u32a, x->d, pa[i] >> CLUSTER_SHIFT);
    return x + 1;
}
VARIANTS(getctarank_u32, )
ALWAYS const struct xinsn *getctarank_u64(struct warp *w, const struct xinsn *x, bool masked) {
    const u64a *pa = ROW(u64a, x->a);
    LANE_RESULT(u32a, x->d, (uint32_t)pa[i] >> CLUSTER_SHIFT);
    return x + 1;
}
VARIANTS(getctarank_u64, )
DECLARE_BIND(getctarank) {
    if (!in_cluster_space(in))
        return false;
    if (in->type == PTX_U32)
        return in->mods.space == SPACE_CLUSTER && USE(x, getctarank_u32);
    return USE(x, getctarank_u64);
}

static bool lies_in(const struct warp *w, uint64_t address, enum ptx_space space) {
    uint64_t shared = address - WINDOW_SHARED;
    bool is_shared = shared < WINDOW_BYTES, is_local = address - WINDOW_LOCAL < WINDOW_BYTES;
    bool is_param = address - WINDOW_PARAM < WINDOW_BYTES;
    const struct region *r = mem_find(w, address);
    bool is_const = r && r->constant && address - r->lo < r->size;
    switch (space) {
    case SPACE_SHARED:
        return is_shared && shared >> CLUSTER_SHIFT == w->block->rank;
    case SPACE_CLUSTER:
        return is_shared && shared >> CLUSTER_SHIFT < w->block->cluster->size;
    case SPACE_LOCAL:
        return is_local;
    case SPACE_PARAM:
        return is_param;
    case SPACE_CONST:
        return is_const;
    default:
        return !is_shared && !is_local && !is_param && !is_const;
    }
}

ALWAYS const struct xinsn *isspacep(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked), in = 0;
    FOR_LANES(i, m)
    in |= (uint32_t)lies_in(w, row64(w, x->a)[i], (enum ptx_space)x->space) << i;
    put_pred(w, x->d, in, m);
    return x + 1;
}
VARIANTS(isspacep, )
DECLARE_BIND(isspacep) {
    (void)in;
    return USE(x, isspacep);
}

/* ---- mbarrier objects ------------------------------------------------------------------------ */

ALWAYS const struct xinsn *mbar(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked);
    if (!m)
        return x + 1;
    if (!mbar_run(w, x, m))
        return leave(w, LEAVE_FAULT, x, x + 1);
    if (!x->vec || (w->pred[x->d] & m) == m)
        return x + 1;
    w->gave_way = true; /* a test in vain: let the others run */
    return leave(w, LEAVE_YIELD, x + 1, x + 1);
}
VARIANTS(mbar, )
DECLARE_BIND(mbar) {
    enum ptx_space space = in->mods.space;
    enum ptx_op op = in->op;
    bool test = op == PTX_OP_MBAR_TEST || op == PTX_OP_MBAR_TEST_PARITY || op == PTX_OP_MBAR_TRY ||
                op == PTX_OP_MBAR_TRY_PARITY;
    if (space != SPACE_SHARED && space != SPACE_CLUSTER && space != SPACE_GENERIC)
        return false;
    if (in->opnd[0].kind == OPND_REG && op != PTX_OP_CP_ASYNC_MBAR)
        x->flags |= X_RESULT;
    x->vec = test; /* imm is the address's displacement */
    return USE(x, mbar);
}

ALWAYS const struct xinsn *mbar_pending_count(struct warp *w, const struct xinsn *x, bool masked) {
    FOR_LANES(i, MASK_OF(w, x, masked))
    row32(w, x->d)[i] = mbar_pending(row64(w, x->a)[i]);
    return x + 1;
}
VARIANTS(mbar_pending_count, )
DECLARE_BIND(mbar_pending) {
    (void)in;
    return USE(x, mbar_pending_count);
}

/* ---- bulk copies: done at once, which is one of the orders that the ISA allows --------------- */

static const struct ptx_operand *group(const struct xinsn *x, unsigned g) {
    return &x->insn->opnd[x->insn->first[g]];
}

/* What to add to a lane's shared address so that it lies in block `rank`. */
static uint64_t to_rank(const struct warp *w, uint32_t row, bool wide, unsigned lane, uint64_t add,
                        unsigned rank) {
    uint64_t address = (wide ? row64(w, row)[lane] : row32(w, row)[lane]) + add;
    return ((uint64_t)rank - (address >> CLUSTER_SHIFT & 0xff)) << CLUSTER_SHIFT;
}

static bool bulk_to(struct warp *w, const struct xinsn *x, const struct xinsn *source,
                    unsigned lane, uint32_t bytes, const struct ptx_operand *object) {
    launch_charge(w->launch, bytes / 16);
    return mem_copy_bulk(w, x, source, lane, bytes / 16) &&
           (!object || mbar_complete(w, x, lane, object, bytes));
}

static bool bulk_lane(struct warp *w, const struct xinsn *x, const struct xinsn *source,
                      unsigned lane) {
    uint32_t bytes = row32(w, x->c)[lane];
    const struct ptx_operand *object = x->insn->op == PTX_OP_BULK_STORE ? NULL : group(x, 3);
    if (bytes % 16) {
        fault_record(w, x, lane, FAULT_MISALIGNED, 0,
                     "copies %u bytes: a multiple of 16 was expected", bytes);
        return false;
    }
    if (!x->insn->mods.multicast)
        return bulk_to(w, x, source, lane, bytes, object);
    FOR_LANES(rank, row32(w, x->d)[lane] & 0xffff) {
        struct xinsn to = *x;
        struct ptx_operand there = *object;
        to.flags &= (uint16_t)~X_UNIFORM;
        to.imm += to_rank(w, x->a, x->flags & X_ADDR64, lane, x->imm, rank);
        there.offset +=
            (int64_t)to_rank(w, x->e, x->flags & X_OBJECT64, lane, (uint64_t)object->offset, rank);
        if (!bulk_to(w, &to, source, lane, bytes, &there))
            return false;
    }
    return true;
}

ALWAYS const struct xinsn *bulk(struct warp *w, const struct xinsn *x, bool masked) {
    struct xinsn source = *x;
    bool load = x->insn->op != PTX_OP_BULK_STORE && x->insn->op != PTX_OP_BULK_SHARE;
    source.space = load ? SPACE_GLOBAL : SPACE_SHARED;
    source.a = x->b;
    source.imm = (uint64_t)group(x, 1)->offset;
    source.flags = x->flags & X_SOURCE64 ? X_ADDR64 : 0;
    source.slot = x->slot + 1;
    FOR_LANES(lane, MASK_OF(w, x, masked))
    if (!bulk_lane(w, x, &source, lane))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return x + 1;
}
VARIANTS(bulk, )
DECLARE_BIND(bulk) {
    enum ptx_space space = in->mods.space;
    if (in->op == PTX_OP_BULK_STORE)
        return space == SPACE_GLOBAL && in->mods.hint == (in->group_count > 3) && USE(x, bulk);
    return (space == SPACE_CLUSTER || (space == SPACE_SHARED && in->op != PTX_OP_BULK_SHARE)) &&
           USE(x, bulk);
}

ALWAYS const struct xinsn *bulk_reduce(struct warp *w, const struct xinsn *x, bool masked) {
    FOR_LANES(lane, MASK_OF(w, x, masked))
    if (!bulk_reduce_lane(w, x, lane))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return x + 1;
}
VARIANTS(bulk_reduce, )
DECLARE_BIND(bulk_reduce) {
    enum ptx_space space = in->mods.space;
    bool half = in->type == PTX_F16 || in->type == PTX_BF16;
    if (!bulk_reduces(in->type, in->mods.atom, space == SPACE_GLOBAL) ||
        in->mods.noftz != (half && in->mods.atom == ATOM_ADD))
        return false;
    if (in->op == PTX_OP_BULK_REDUCE)
        return space == SPACE_GLOBAL && in->mods.hint == (in->group_count > 3) &&
               USE(x, bulk_reduce);
    return space == SPACE_CLUSTER && USE(x, bulk_reduce);
}

ALWAYS const struct xinsn *tensor_copy(struct warp *w, const struct xinsn *x, bool masked) {
    FOR_LANES(lane, MASK_OF(w, x, masked))
    if (!tensor_copy_lane(w, x, lane))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return x + 1;
}
VARIANTS(tensor_copy, )
DECLARE_BIND(tensor_copy) {
    enum ptx_space space = in->mods.space;
    if (in->op == PTX_OP_TENSOR_STORE || in->op == PTX_OP_TENSOR_REDUCE)
        return space == SPACE_GLOBAL && in->mods.hint == (in->group_count > 2) &&
               USE(x, tensor_copy);
    if (in->op == PTX_OP_TENSOR_PREFETCH)
        return space == SPACE_GLOBAL && in->mods.hint == (in->group_count > 1) &&
               USE(x, tensor_copy);
    return (space == SPACE_CLUSTER || (space == SPACE_SHARED && !in->mods.multicast)) &&
           USE(x, tensor_copy);
}

ALWAYS const struct xinsn *async_store(struct warp *w, const struct xinsn *x, bool masked,
                                       bool modify) {
    uint32_t m = MASK_OF(w, x, masked);
    if (!m)
        return x + 1;
    if (!(modify ? mem_atomic_lanes(w, x, m) : mem_store_lanes(w, x, m)))
        return leave(w, LEAVE_FAULT, x, x + 1);
    FOR_LANES(lane, m)
    if (!mbar_complete(w, x, lane, group(x, 2), (uint32_t)x->esize * x->vec))
        return leave(w, LEAVE_FAULT, x, x + 1);
    return x + 1;
}
VARIANTS(async_store, _plain, false)
VARIANTS(async_store, _modify, true)

static bool async_facts(struct xinsn *x, const struct ptx_insn *in) {
    x->esize = (uint8_t)(ptx_type_bits(in->type) / 8);
    return (in->mods.space == SPACE_CLUSTER || in->mods.space == SPACE_GENERIC) &&
           x->esize * in->mods.vec <= 16;
}
DECLARE_BIND(st_async) {
    return async_facts(x, in) && USE(x, async_store_plain);
}
DECLARE_BIND(red_async) {
    return async_facts(x, in) && in->mods.atom != ATOM_EXCH && in->mods.atom != ATOM_POPC &&
           USE(x, async_store_modify);
}
