/* simd_bits.c - logic, shifts, bit fields, predicates.  PTX ISA 9.7.1 and 9.7.8. */
#include "device/ptx/simd.h"

#define BOTH(name, x, in) \
    return ptx_type_bits((in)->type) > 32 ? USE(x, name##_u64) : USE(x, name##_u32)

/* 16-bit values use the 32-bit form: zero-extended operands give zero-extended results. */
#define LOGIC(name, expression)                                                   \
    LANE_HANDLER(name, u32, uint32_t, uint32_t, u32a, uint32_t, u32a, expression) \
    LANE_HANDLER(name, u64, uint64_t, uint64_t, u64a, uint64_t, u64a, expression) \
    DECLARE_BIND(name) {                                                          \
        BOTH(name, x, in);                                                        \
    }
LOGIC(and, a &b)
LOGIC(or, a | b)
LOGIC(xor, a ^ b)

#define UNSIGNED_TYPES(NAME)            \
    NAME(u16, uint16_t, uint16_t, u32a) \
    NAME(u32, uint32_t, uint32_t, u32a) \
    NAME(u64, uint64_t, uint64_t, u64a)
#define USE_UNSIGNED(x, type, name)     \
    switch (ptx_type_bits(type)) {      \
    case 16: return USE(x, name##_u16); \
    case 32: return USE(x, name##_u32); \
    default: return USE(x, name##_u64); \
    }
#define not_AT(tag, T, U, R) LANE_HANDLER(not, tag, T, U, R, T, R, (U)~a)
#define cnot_AT(tag, T, U, R) LANE_HANDLER(cnot, tag, T, U, R, T, R, (U)(a == 0))
UNSIGNED_TYPES(not_AT)
UNSIGNED_TYPES(cnot_AT)
DECLARE_BIND(not ){USE_UNSIGNED(x, in->type, not )} DECLARE_BIND(cnot){
    USE_UNSIGNED(x, in->type, cnot)}

/* ---- predicates ------------------------------------------------------------------------------ */

#define PRED_OP(name, expression)                                                         \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) { \
        uint32_t m = MASK_OF(w, x, masked), a = pred_p(w, x), b = pred_p2(w, x);          \
        (void)a, (void)b;                                                                 \
        put_pred(w, x->d, expression, m);                                                 \
        return x + 1;                                                                     \
    }                                                                                     \
    VARIANTS(name, )                                                                      \
    DECLARE_BIND(name) {                                                                  \
        (void)in;                                                                         \
        return USE(x, name);                                                              \
    }
PRED_OP(and_pred, a &b) PRED_OP(or_pred, a | b) PRED_OP(xor_pred, a ^ b) PRED_OP(not_pred, ~a)
    PRED_OP(mov_pred, a)

/* ---- shifts: a shift by the width or more leaves zeros, or the sign -------------------------- */

/* The amount is a b32 row whatever the type. */
#define SHIFT(name, tag, T, U, R, expression)                                                     \
    ALWAYS const struct xinsn *name##_##tag(struct warp *w, const struct xinsn *x, bool masked) { \
        const R *pa = ROW(R, x->a);                                                               \
        const u32a *pb = ROW(u32a, x->b);                                                         \
        LANE_RESULT(R, x->d, ({                                                                   \
                        T a = (T)pa[i];                                                           \
                        uint32_t n = pb[i];                                                       \
                        (U)(expression);                                                          \
                    }));                                                                          \
        return x + 1;                                                                             \
    }                                                                                             \
    VARIANTS(name##_##tag, )
#define WIDTH(U) ((uint32_t)sizeof(U) * 8)
#define shl_AT(tag, T, U, R) \
    SHIFT(shl, tag, T, U, R, n < WIDTH(U) ? (U)((R)(U)a << (n & (WIDTH(R) - 1))) : (U)0)
/* Shifting once by half and once by the rest would be branch-free; the clamp serves both signs. */
#define shr_AT(tag, T, U, R) \
    SHIFT(shr, tag, T, U, R, \
          n < WIDTH(U) ? (U)(a >> (n & (WIDTH(U) - 1))) : (U)(a >> (WIDTH(U) - 1) >> ((T)-1 > 0)))
        INT_TYPES(shl_AT) INT_TYPES(shr_AT)
            DECLARE_BIND(shl){USE_INT(x, in->type, shl)} DECLARE_BIND(shr) {
    USE_INT(x, in->type, shr)
}

/* PTX ISA 9.7.8.8: the funnel is b:a; .l takes its high word, .r its low word. */
static uint32_t funnel(uint32_t a, uint32_t b, uint32_t n, bool left, bool wrap) {
    n = wrap ? n & 31 : n < 32 ? n : 32;
    uint64_t both = (uint64_t)b << 32 | a;
    return left ? (uint32_t)(both << n >> 32) : (uint32_t)(both >> n);
}
#define SHF(tag, left, wrap) \
    LANE_HANDLER(shf, tag, uint32_t, uint32_t, u32a, uint32_t, u32a, funnel(a, b, c, left, wrap))
SHF(l_clamp, true, false)
SHF(l_wrap, true, true)
SHF(r_clamp, false, false)
SHF(r_wrap, false, true)
DECLARE_BIND(shf) {
    switch (in->mods.mode) {
    case MODE_CLAMP_L: return USE(x, shf_l_clamp);
    case MODE_WRAP_L: return USE(x, shf_l_wrap);
    case MODE_CLAMP_R: return USE(x, shf_r_clamp);
    case MODE_WRAP_R: return USE(x, shf_r_wrap);
    default: return false;
    }
}

/* ---- counting and searching ------------------------------------------------------------------ */

/* Results are b32 whatever the source is. */
#define COUNT(name, tag, T, R, expression)                                                        \
    ALWAYS const struct xinsn *name##_##tag(struct warp *w, const struct xinsn *x, bool masked) { \
        const R *pa = ROW(R, x->a);                                                               \
        LANE_RESULT(u32a, x->d, ({                                                                \
                        T a = (T)pa[i];                                                           \
                        (uint32_t)(expression);                                                   \
                    }));                                                                          \
        return x + 1;                                                                             \
    }                                                                                             \
    VARIANTS(name##_##tag, )

static uint32_t highest_bit(uint64_t v) { /* all ones for 0 */
    return v ? 63 - (uint32_t)__builtin_clzll(v) : UINT32_MAX;
}
COUNT(popc, u32, uint32_t, u32a, __builtin_popcount(a))
COUNT(popc, u64, uint64_t, u64a, __builtin_popcountll(a))
COUNT(clz, u32, uint32_t, u32a, a ? __builtin_clz(a) : 32)
COUNT(clz, u64, uint64_t, u64a, a ? __builtin_clzll(a) : 64)
/* PTX ISA 9.7.1.18: of a negative number, the highest bit that differs from the sign. */
COUNT(bfind, u32, uint32_t, u32a, highest_bit(a))
COUNT(bfind, s32, int32_t, u32a, highest_bit((uint32_t)(a < 0 ? ~a : a)))
COUNT(bfind, u64, uint64_t, u64a, highest_bit(a))
COUNT(bfind, s64, int64_t, u64a, highest_bit((uint64_t)(a < 0 ? ~a : a)))
DECLARE_BIND(popc) {
    BOTH(popc, x, in);
}
DECLARE_BIND(clz) {
    BOTH(clz, x, in);
}
DECLARE_BIND(bfind) {
    switch (in->type) {
    case PTX_U32: return USE(x, bfind_u32);
    case PTX_S32: return USE(x, bfind_s32);
    case PTX_U64: return USE(x, bfind_u64);
    case PTX_S64: return USE(x, bfind_s64);
    default: return false;
    }
}

static uint64_t reverse(uint64_t v, unsigned bits) {
    uint64_t r = 0;
    for (unsigned i = 0; i < bits; i++)
        r |= (v >> i & 1) << (bits - 1 - i);
    return r;
}
LANE_HANDLER(brev, u32, uint32_t, uint32_t, u32a, uint32_t, u32a, (uint32_t)reverse(a, 32))
LANE_HANDLER(brev, u64, uint64_t, uint64_t, u64a, uint64_t, u64a, reverse(a, 64))
DECLARE_BIND(brev) {
    BOTH(brev, x, in);
}

/* ---- bit fields ------------------------------------------------------------------------------ */

static uint64_t low_ones(unsigned n) {
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

/*
 * Position and length are 0 to 255 (PTX ISA 9.7.1.19).  Beyond, an H200 takes the low 8 bits in the
 * 32-bit forms and everything in the 64-bit forms, where 255 does as well.
 */
static uint32_t field(uint32_t v, unsigned bits) {
    return bits == 32 ? v & 0xff : v < 255 ? v : 255;
}

/* What lies past the end of a is its sign bit. */
static uint64_t extract(uint64_t a, uint32_t pos, uint32_t len, unsigned bits, bool is_signed) {
    pos = field(pos, bits);
    len = field(len, bits);
    unsigned last = pos + len - 1 < bits ? pos + len - 1 : bits - 1;
    bool sign = is_signed && len && (a >> last & 1);
    unsigned have = pos >= bits ? 0 : len < bits - pos ? len : bits - pos;
    uint64_t field = pos >= bits ? 0 : a >> pos & low_ones(have);
    return sign ? field | ~low_ones(have) : field;
}

/* PTX ISA 9.7.1.20: the low bits of a replace a field of b. */
static uint64_t insert(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, unsigned bits) {
    pos = field(pos, bits);
    len = field(len, bits);
    if (pos >= bits)
        return b;
    uint64_t mask = low_ones(len < bits - pos ? len : bits - pos) << pos;
    return (b & ~mask) | (a << pos & mask);
}

#define FIELD(tag, R, is_signed, bits)                                                         \
    ALWAYS const struct xinsn *bfe_##tag(struct warp *w, const struct xinsn *x, bool masked) { \
        const R *pa = ROW(R, x->a);                                                            \
        const u32a *pb = ROW(u32a, x->b), *pc = ROW(u32a, x->c);                               \
        LANE_RESULT(R, x->d, (R)extract(pa[i], pb[i], pc[i], bits, is_signed));                \
        return x + 1;                                                                          \
    }                                                                                          \
    VARIANTS(bfe_##tag, )
FIELD(u32, u32a, false, 32)
FIELD(s32, u32a, true, 32)
FIELD(u64, u64a, false, 64)
FIELD(s64, u64a, true, 64)
DECLARE_BIND(bfe) {
    switch (in->type) {
    case PTX_U32: return USE(x, bfe_u32);
    case PTX_S32: return USE(x, bfe_s32);
    case PTX_U64: return USE(x, bfe_u64);
    case PTX_S64: return USE(x, bfe_s64);
    default: return false;
    }
}

#define INSERT(tag, R, bits)                                                                   \
    ALWAYS const struct xinsn *bfi_##tag(struct warp *w, const struct xinsn *x, bool masked) { \
        const R *pa = ROW(R, x->a), *pb = ROW(R, x->b);                                        \
        const u32a *pc = ROW(u32a, x->c), *pe = ROW(u32a, x->e);                               \
        LANE_RESULT(R, x->d, (R)insert(pa[i], pb[i], pc[i], pe[i], bits));                     \
        return x + 1;                                                                          \
    }                                                                                          \
    VARIANTS(bfi_##tag, )
INSERT(u32, u32a, 32)
INSERT(u64, u64a, 64)
DECLARE_BIND(bfi) {
    BOTH(bfi, x, in);
}

/* ---- arbitrary logic and bytes --------------------------------------------------------------- */

/* Bit 4a + 2b + c of the table is the result for bits a, b, c: a tree of selections. */
ALWAYS const struct xinsn *lop3(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked);
    vu t[8];
    for (int k = 0; k < 8; k++)
        t[k] = splat(x->imm >> k & 1 ? ~0u : 0);
    FOR_VECTORS(i) {
        vs a = (vs)load_u(row32(w, x->a), i), b = (vs)load_u(row32(w, x->b), i);
        vs c = (vs)load_u(row32(w, x->c), i);
        vu low = select_u(b, select_u(c, t[3], t[2]), select_u(c, t[1], t[0]));
        vu high = select_u(b, select_u(c, t[7], t[6]), select_u(c, t[5], t[4]));
        put(row32(w, x->d), i, select_u(a, high, low), m, masked);
    }
    return x + 1;
}
VARIANTS(lop3, )
DECLARE_BIND(lop3) {
    const struct ptx_operand *table = &in->opnd[in->first[4]];
    x->imm = table->imm;
    return table->kind == OPND_IMM && table->imm < 256 && USE(x, lop3);
}

/* PTX ISA 9.7.8.7, default mode: a nibble names a byte of b:a; its top bit replicates the sign. */
static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned nibble = selector >> (4 * i) & 15;
        uint32_t byte = (uint32_t)(both >> (8 * (nibble & 7))) & 0xff;
        if (nibble & 8)
            byte = byte & 0x80 ? 0xff : 0;
        r |= byte << (8 * i);
    }
    return r;
}
LANE_HANDLER(prmt, b32, uint32_t, uint32_t, u32a, uint32_t, u32a, permute(a, b, c))
DECLARE_BIND(prmt) {
    (void)in;
    return USE(x, prmt_b32);
}
