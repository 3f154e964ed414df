/*
 * atomic.c - atom and red on numbers, element by element.  PTX ISA 9.7.13.5, 9.7.13.6.
 *
 * Lanes take their turns in lane order; with a schedule seed in another one.  A vector is not one
 * atomic operation, each of its elements is (PTX ISA 9.7.13.5).
 */
#include <string.h>

#include "device/ptx/exec.h"
#include "device/ptx/half.h"

/* ---- sums ------------------------------------------------------------------------------------ */

static uint32_t flush_f32(uint32_t v) {
    return (v & 0x7f800000u) == 0 ? v & 0x80000000u : v;
}

/*
 * atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero, on
 * shared memory it does not (PTX ISA 9.7.13.5, H200: see docs/emulator.md).  Rounds to nearest.
 */
static uint32_t add_f32(uint32_t a, uint32_t b, bool flush) {
    uint32_t r;
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
        return F32_NAN;
    return flush ? flush_f32(r) : r;
}

#define F64_QUIET 0x0008000000000000u

static bool is_nan64(uint64_t v) {
    return (v & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

/*
 * NaN (H200): in global memory the operand, else the old value, as it is; in shared memory the old
 * value, else the operand, quieted.
 */
static uint64_t add_f64(uint64_t old, uint64_t operand, bool global) {
    double a, b;
    uint64_t r;
    memcpy(&a, &old, 8);
    memcpy(&b, &operand, 8);
    double sum = a + b;
    memcpy(&r, &sum, 8);
    if (sum == sum)
        return r;
    if (!is_nan64(old) && !is_nan64(operand))
        return 0xfff8000000000000u;
    if (global)
        return is_nan64(operand) ? operand : old;
    return (is_nan64(old) ? old : operand) | F64_QUIET;
}

/* ---- 16-bit formats: always .noftz ----------------------------------------------------------- */

/*
 * The sum in binary32 and its rounding are one rounding: 24 bits are at least 2 * 11 + 2, and a
 * subnormal sum is exact (Figueroa 1995).
 */
static uint32_t add_half(uint32_t a, uint32_t b, bool bf16) {
    uint32_t fa = bf16 ? bf16_to_f32(a) : f16_to_f32(a), fb = bf16 ? bf16_to_f32(b) : f16_to_f32(b);
    uint32_t sum = half_f32_bits(half_as_f32(fa) + half_as_f32(fb));
    return bf16 ? f32_to_bf16(sum) : f32_to_f16(sum);
}

/* As min and max: -0 < +0, a number beats NaN. */
static uint32_t extreme_half(uint32_t a, uint32_t b, bool bf16, bool max) {
    uint32_t infinity = bf16 ? 0x7f80 : 0x7c00;
    bool nan_a = (a & 0x7fff) > infinity, nan_b = (b & 0x7fff) > infinity;
    int32_t oa = a & 0x8000 ? ~(int32_t)(a & 0x7fff) : (int32_t)a;
    int32_t ob = b & 0x8000 ? ~(int32_t)(b & 0x7fff) : (int32_t)b;
    if (nan_a || nan_b)
        return nan_a && nan_b ? HALF_NAN : nan_a ? b : a;
    return (oa < ob) == max ? b : a;
}

static uint32_t half_result(enum ptx_atom op, uint32_t a, uint32_t b, bool bf16) {
    return op == ATOM_ADD ? add_half(a, b, bf16) : extreme_half(a, b, bf16, op == ATOM_MAX);
}

static uint64_t halves(const struct ptx_insn *in, uint64_t old, uint64_t b) {
    bool bf16 = in->type == PTX_BF16 || in->type == PTX_BF16X2;
    uint32_t o = (uint32_t)old, v = (uint32_t)b,
             low = half_result(in->mods.atom, o & 0xffff, v & 0xffff, bf16);
    if (ptx_type_bits(in->type) == 16)
        return low;
    return low | half_result(in->mods.atom, o >> 16, v >> 16, bf16) << 16;
}

/* ---- one element ----------------------------------------------------------------------------- */

static bool is_half(enum ptx_type t) {
    return t == PTX_F16 || t == PTX_F16X2 || t == PTX_BF16 || t == PTX_BF16X2;
}

/* The new value; operands of less than 8 bytes are zero-extended.  global: in global memory. */
static uint64_t atomic_result(const struct ptx_insn *in, uint64_t old, uint64_t b, uint64_t c,
                              bool global) {
    bool is_signed = in->type == PTX_S32 || in->type == PTX_S64,
         narrow = ptx_type_bits(in->type) < 64;
    int64_t so = narrow ? (int32_t)old : (int64_t)old, sb = narrow ? (int32_t)b : (int64_t)b;
    if (is_half(in->type))
        return halves(in, old, b);
    switch (in->mods.atom) {
    case ATOM_ADD:
        if (in->type == PTX_F32)
            return add_f32((uint32_t)old, (uint32_t)b, global);
        return in->type == PTX_F64 ? add_f64(old, b, global) : old + b;
    case ATOM_MIN:
        return (is_signed ? so < sb : old < b) ? old : b;
    case ATOM_MAX:
        return (is_signed ? so > sb : old > b) ? old : b;
    case ATOM_EXCH:
        return b;
    case ATOM_CAS:
        return old == b ? c : old;
    case ATOM_INC:
        return old >= b ? 0 : old + 1;
    case ATOM_DEC:
        return old == 0 || old > b ? b : old - 1;
    case ATOM_AND:
        return old & b;
    case ATOM_OR:
        return old | b;
    case ATOM_XOR:
        return old ^ b;
    case ATOM_NONE:
    case ATOM_POPC:
        break;
    }
    return old;
}

uint64_t mem_atomic_value(enum ptx_type type, enum ptx_atom op, uint64_t old, uint64_t operand,
                          bool global) {
    const struct ptx_insn in = {.type = type, .mods = {.atom = op}};
    return atomic_result(&in, old, operand, 0, global);
}

/* ---- all lanes ------------------------------------------------------------------------------- */

static uint64_t get(const struct warp *w, const struct xinsn *x, uint32_t row, unsigned lane) {
    return x->esize == 8 ? row64(w, row)[lane] : row32(w, row)[lane];
}

static void put(struct warp *w, const struct xinsn *x, uint32_t row, unsigned lane, uint64_t v) {
    if (x->esize == 8)
        row64(w, row)[lane] = v;
    else
        row32(w, row)[lane] = (uint32_t)v;
}

static void run_lane(struct warp *w, const struct xinsn *x, unsigned lane, struct place at) {
    const uint32_t *operand = x->list + (x->flags & X_RESULT ? x->vec : 0);
    uint64_t c = x->insn->mods.atom == ATOM_CAS ? get(w, x, x->b, lane) : 0;
    uint64_t before[8];
    for (unsigned e = 0; e < x->vec; e++) {
        uint8_t *host = at.region->host + at.at + (size_t)e * x->esize;
        uint64_t old = 0, b = get(w, x, operand[e], lane);
        memcpy(&old, host, x->esize);
        before[e] = old;
        uint64_t new = atomic_result(x->insn, old, b, c, !at.region->owner);
        memcpy(host, &new, x->esize);
    }
    for (unsigned e = 0; x->flags & X_RESULT && e < x->vec; e++)
        put(w, x, x->list[e], lane, before[e]);
}

bool mem_atomic_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes) {
    uint64_t bytes = (uint64_t)x->esize * x->vec;
    struct place at[LANES];
    FOR_LANES(lane, lanes)
    if (!mem_locate(&at[lane], w, x, lane, bytes, true))
        return false;
    if (w->launch->shadow)
        mem_message(w, x);
    unsigned first = w->launch->seed ? (unsigned)(w->launch->seed + w->turn) % LANES : 0;
    for (unsigned k = 0; k < LANES; k++) {
        unsigned lane = (first + k) % LANES;
        if (!(lanes >> lane & 1))
            continue;
        struct region *r = at[lane].region;
        if (w->launch->shadow && r->written &&
            !shadow_access(w, x, lane, r, at[lane].at, (unsigned)bytes, ACCESS_ATOMIC, NULL))
            return false;
        run_lane(w, x, lane, at[lane]);
        if (mem_is_heap(w, r)) {
            w->launch->run->bytes_read += bytes;
            w->launch->run->bytes_written += bytes;
        }
    }
    return true;
}
