/*
 * simd_wgmma.c - wgmma: matrices in shared memory.  PTX ISA 9.7.15.
 *
 * A warp computes its 16 rows when it executes wgmma.mma_async, which is one of the orders that
 * the ISA allows; fence, commit and wait have nothing to do.  The four warps of a warpgroup do not
 * meet here, but they must execute the same wgmma instructions: see wgmma_trace.
 */
#include "device/ptx/simd_await.h"
#include "device/ptx/simd_tensor.h"
#include "device/ptx/tensor_form.h"

/* ---- matrix descriptors: PTX ISA 9.7.15.5.1.2.2 ---------------------------------------------- */

/* Bytes. */
struct descriptor {
    uint32_t start, leading, stride;
    uint32_t pitch; /* from row to row (mn-major: from k to k) within 8 */
    uint32_t phases,
        phase; /* a row's swizzle is its 128 bytes' number, less phase, modulo phases */
};

static struct descriptor decode(uint64_t bits) {
    static const uint32_t phases[] = {1, 8, 4, 2}; /* none, 128, 64, 32 bytes */
    struct descriptor d = {.start = (uint32_t)(bits & 0x3fff) << 4,
                           .leading = (uint32_t)(bits >> 16 & 0x3fff) << 4,
                           .stride = (uint32_t)(bits >> 32 & 0x3fff) << 4,
                           .phase = (uint32_t)(bits >> 49 & 7),
                           .phases = phases[bits >> 62]};
    d.pitch = 16 * d.phases;
    return d;
}

/*
 * Where the 16 bytes are that hold (mn, k .. ), k a multiple of 16 bytes; mn_major: (mn .., k), mn a
 * multiple of 8 elements of 2 bytes.  k in elements for mn_major, else in 16 bytes.
 */
static uint32_t chunk_address(const struct descriptor *d, bool mn_major, uint32_t mn, uint32_t k) {
    uint32_t at;
    if (!mn_major)
        at = mn % 8 * d->pitch + mn / 8 * d->stride + k * (d->phases > 1 ? 16 : d->leading);
    else if (d->phases == 1)
        at = mn / 8 * d->stride + k % 8 * 16 + k / 8 * d->leading;
    else
        at = mn * 2 % d->pitch + mn * 2 / d->pitch * d->leading + k % 8 * d->pitch +
             k / 8 * d->stride;
    at += d->start;
    uint32_t swizzle = ((at >> 7) - d->phase) & (d->phases - 1);
    return at ^ swizzle << 4;
}

/* Rows first .. first + count - 1 (columns for b), bytes in increasing k.  false: a fault. */
static bool load(uint8_t (*to)[ROW_BYTES], struct warp *w, const struct xinsn *x, uint64_t bits,
                 bool mn_major, uint32_t first, uint32_t count) {
    struct descriptor d = decode(bits);
    uint8_t chunk[16];
    if (!mn_major) {
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < ROW_BYTES / 16; k++)
                if (!mem_read_shared(w, x, chunk_address(&d, false, first + i, k), to[i] + 16 * k))
                    return false;
        return true;
    }
    for (uint32_t i = 0; i < count; i += 8)
        for (uint32_t k = 0; k < ROW_BYTES / 2; k++) {
            if (!mem_read_shared(w, x, chunk_address(&d, true, first + i, k), chunk))
                return false;
            for (unsigned e = 0; e < 8; e++)
                memcpy(&to[i + e][2 * k], chunk + 2 * e, 2);
        }
    return true;
}

/* ---- wgmma.mma_async ------------------------------------------------------------------------- */

static uint64_t immediate(const struct ptx_insn *in, unsigned group) {
    return in->opnd[in->first[group]].imm;
}

/* The sign of a, by both scales; signs of 8-bit integers are never scaled. */
static void negate(uint8_t (*a)[ROW_BYTES], enum ptx_type type) {
    unsigned bytes = tensor_element_bytes(type);
    for (unsigned i = 0; i < 16; i++)
        for (unsigned k = bytes - 1; k < ROW_BYTES; k += bytes)
            a[i][k] ^= 0x80;
}

static const struct xinsn *bad_group(struct warp *w, const struct xinsn *x, const char *what) {
    fault_record(w, x, 0, FAULT_DIVERGENT_BARRIER, 0, "wgmma %s", what);
    return leave(w, LEAVE_FAULT, x, x + 1);
}

ALWAYS const struct xinsn *wgmma(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->e);
    const struct ptx_insn *in = x->insn;
    bool transposes = in->op == PTX_OP_WGMMA, scales = in->op != PTX_OP_WGMMA_INT;
    unsigned d_count = in->first[1] - in->first[0], a_count = in->first[2] - in->first[1];
    if ((w->index | 3) >= w->block->warps)
        return bad_group(w, x, "in a warpgroup of fewer than four warps");
    w->wgmma_trace =
        (w->wgmma_trace + (uint64_t)(x - w->launch->program->code) + 1) * 0x9e3779b97f4a7c15u;
    struct factors f;
    bool from_shared = a_count == 1;
    if (!from_shared)
        ISA_NAME(tensor_gather)(f.a, w, x->list + d_count, a_count, 2);
    else if (!load(f.a, w, x, row64(w, x->a)[0], transposes && immediate(in, 6), w->index % 4 * 16,
                   16))
        return leave(w, LEAVE_FAULT, x, x + 1);
    if (!load(f.b, w, x, row64(w, x->b)[0], transposes && immediate(in, from_shared ? 7 : 6), 0,
              in->mods.n))
        return leave(w, LEAVE_FAULT, x, x + 1);
    if (scales && immediate(in, 4) != immediate(in, 5))
        negate(f.a, in->type2);
    struct accumulators acc = {.c = x->list, .d = x->list, .zero = !(pred_p(w, x) & 1)};
    ISA_NAME(tensor_multiply)(w, x, &f, &acc);
    return x + 1;
}
VARIANTS(wgmma, )
DECLARE_BIND(wgmma) {
    bool from_shared = in->first[2] - in->first[1] == 1;
    unsigned groups = in->op == PTX_OP_WGMMA_INT ? 4 : in->op == PTX_OP_WGMMA_TF32 ? 6 : 7;
    if (in->op == PTX_OP_WGMMA && from_shared)
        groups = 8; /* imm-trans-a comes with a descriptor only */
    if (in->group_count != groups)
        return false;
    for (unsigned g = 4; g < groups; g++) {
        uint32_t v = (uint32_t)immediate(in, g);
        if (g < 6 ? v != 1 && v != UINT32_MAX : v > 1)
            return false;
    }
    return USE(x, wgmma);
}

/* ---- what has nothing to do ------------------------------------------------------------------ */

ALWAYS const struct xinsn *wgmma_order(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->e);
    if ((w->index | 3) >= w->block->warps)
        return bad_group(w, x, "in a warpgroup of fewer than four warps");
    return x + 1;
}
VARIANTS(wgmma_order, )
DECLARE_BIND(wgmma_fence) {
    (void)in;
    return USE(x, wgmma_order);
}
DECLARE_BIND(wgmma_commit) {
    (void)in;
    return USE(x, wgmma_order);
}
DECLARE_BIND(wgmma_wait) {
    (void)in;
    return USE(x, wgmma_order);
}

/* Memory of this emulator is one; what the fence orders is ordered. */
ALWAYS const struct xinsn *fence_proxy(struct warp *w, const struct xinsn *x, bool masked) {
    (void)w, (void)masked;
    return x + 1;
}
VARIANTS(fence_proxy, )
DECLARE_BIND(fence_proxy) {
    (void)in;
    return USE(x, fence_proxy);
}
