/*
 * simd_sync.c - thread-block clusters: their barrier, addresses in each other's shared memory.
 * PTX ISA 9.7.9.22 to 24, 9.7.13.4.
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
    case SPACE_SHARED: return is_shared && shared >> CLUSTER_SHIFT == w->block->rank;
    case SPACE_CLUSTER: return is_shared && shared >> CLUSTER_SHIFT < w->block->cluster->size;
    case SPACE_LOCAL: return is_local;
    case SPACE_PARAM: return is_param;
    case SPACE_CONST: return is_const;
    default: return !is_shared && !is_local && !is_param && !is_const;
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
