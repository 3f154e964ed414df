/* simd_move.c - mov in all its forms, cvta, nop.  PTX ISA 9.7.9. */
#include "device/ptx/simd.h"

LANE_HANDLER(copy, u32, uint32_t, uint32_t, u32a, uint32_t, u32a, a)
LANE_HANDLER(copy, u64, uint64_t, uint64_t, u64a, uint64_t, u64a, a)

ALWAYS const struct xinsn *copy_b128(struct warp *w, const struct xinsn *x, bool masked) {
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        row64(w, x->d)[i] = row64(w, x->a)[i];
        row64(w, x->d + ROW64)[i] = row64(w, x->a + ROW64)[i];
    }
    return x + 1;
}
VARIANTS(copy_b128, )

/* ---- packing and unpacking: element 0 is the lowest ------------------------------------------ */

ALWAYS uint64_t get_lane(const struct warp *w, uint32_t row, unsigned bits, uint32_t lane) {
    return bits > 32 ? row64(w, row)[lane] : row32(w, row)[lane];
}
ALWAYS void set_lane(struct warp *w, uint32_t row, unsigned bits, uint32_t lane, uint64_t value) {
    if (bits > 32)
        row64(w, row)[lane] = value;
    else
        row32(w, row)[lane] = (uint32_t)value;
}

/* x->imm: bits of one element.  The source is read before any destination is written. */
ALWAYS const struct xinsn *unpack(struct warp *w, const struct xinsn *x, bool masked) {
    unsigned each = (unsigned)x->imm;
    uint64_t ones = each == 64 ? ~(uint64_t)0 : ((uint64_t)1 << each) - 1;
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint64_t v = get_lane(w, x->a, x->abits, i);
        uint64_t high = x->abits > 64 ? row64(w, x->a + ROW64)[i] : 0;
        for (unsigned k = 0; k < x->vec; k++) {
            unsigned at = k * each;
            uint64_t part = (at < 64 ? v >> at : high >> (at - 64)) & ones;
            set_lane(w, x->list[k], each, i, part);
        }
    }
    return x + 1;
}
VARIANTS(unpack, )

ALWAYS const struct xinsn *pack(struct warp *w, const struct xinsn *x, bool masked) {
    unsigned each = (unsigned)x->imm;
    uint64_t ones = each == 64 ? ~(uint64_t)0 : ((uint64_t)1 << each) - 1; /* a constant may be wider */
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint64_t word[2] = {0, 0};
        for (unsigned k = 0; k < x->vec; k++) {
            unsigned at = k * each;
            word[at / 64] |= (get_lane(w, x->list[k], each, i) & ones) << (at % 64);
        }
        set_lane(w, x->d, x->dbits, i, word[0]);
        if (x->dbits > 64)
            row64(w, x->d + ROW64)[i] = word[1];
    }
    return x + 1;
}
VARIANTS(pack, )

/* ---- clocks: counters that only go up -------------------------------------------------------- */

ALWAYS const struct xinsn *clock_now(struct warp *w, const struct xinsn *x, bool masked) {
    uint64_t now = w->clock + w->insns + (uint64_t)(x - w->run_start);
    if (x->imm == SREG_CLOCK_HI || x->imm == SREG_GLOBALTIMER_HI)
        now >>= 32;
    FOR_LANES(i, MASK_OF(w, x, masked))
    set_lane(w, x->d, x->dbits, i, now);
    return x + 1;
}
VARIANTS(clock_now, )

static bool is_clock(const struct ptx_operand *o) {
    return o->kind == OPND_SREG &&
           (o->sreg == SREG_CLOCK || o->sreg == SREG_CLOCK64 || o->sreg == SREG_CLOCK_HI ||
            o->sreg == SREG_GLOBALTIMER || o->sreg == SREG_GLOBALTIMER_LO ||
            o->sreg == SREG_GLOBALTIMER_HI);
}

DECLARE_BIND(mov) {
    unsigned bits = ptx_type_bits(in->type);
    unsigned to = in->first[1] - in->first[0], from = in->first[2] - in->first[1];
    if (to > 1 && from > 1)
        return false;
    if (to > 1 || from > 1) {
        x->imm = bits / (to > 1 ? to : from);
        if (x->imm < 16)
            return false;
        *(to > 1 ? &x->abits : &x->dbits) = (uint8_t)bits;
        return to > 1 ? USE(x, unpack) : USE(x, pack);
    }
    if (is_clock(&in->opnd[in->first[1]])) {
        x->imm = in->opnd[in->first[1]].sreg;
        x->dbits = (uint8_t)bits;
        return USE(x, clock_now);
    }
    if (bits > 64)
        return in->opnd[in->first[1]].kind == OPND_REG && USE(x, copy_b128);
    return bits > 32 ? USE(x, copy_u64) : USE(x, copy_u32);
}

/* ---- addresses ------------------------------------------------------------------------------- */

ALWAYS const struct xinsn *cvta_u64(struct warp *w, const struct xinsn *x, bool masked) {
    const u64a *pa = ROW(u64a, x->a);
    LANE_RESULT(u64a, x->d, pa[i] + x->imm);
    return x + 1;
}
VARIANTS(cvta_u64, )

DECLARE_BIND(cvta) {
    uint64_t window = 0;
    if (in->mods.space == SPACE_SHARED || in->mods.space == SPACE_CLUSTER)
        window = WINDOW_SHARED;
    if (in->mods.space == SPACE_LOCAL)
        window = WINDOW_LOCAL;
    if (in->mods.space == SPACE_PARAM)
        window = WINDOW_PARAM;
    x->imm = in->mods.to ? 0 - window : window;
    return in->type == PTX_U64 && USE(x, cvta_u64);
}

static const struct xinsn *nop_full(struct warp *w, const struct xinsn *x) {
    (void)w;
    return x + 1;
}
#define nop_masked nop_full
DECLARE_BIND(nop) {
    (void)in;
    return USE(x, nop);
}
