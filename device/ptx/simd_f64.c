/*
 * simd_f64.c - double precision by the host's own binary64 arithmetic.  PTX ISA 9.7.3.
 *
 * Round to nearest is a plain loop; the directed modes switch MXCSR around it, with the operands
 * pinned between the switches as in simd_f32.c.  PTX keeps NaN payloads in f64; which of several
 * NaN operands is returned, quieted, is the H200's choice: b before a, in fma b, c, a, in div a
 * before b. An invalid operation gives 0xfff8000000000000.
 */
#include <math.h>

#include "device/ptx/simd.h"

enum { RN, RZ, RM, RP };
enum f64_kind { D_ADD, D_SUB, D_MUL, D_FMA, D_DIV, D_SQRT, D_RCP };

static void set_rounding(int rnd) {
    static const uint32_t bits[] = {0x1f80, 0x7f80, 0x3f80, 0x5f80};
    __asm__ volatile("ldmxcsr %0" : : "m"(bits[rnd]) : "memory");
}

ALWAYS double pinned(double v) {
    __asm__ volatile("" : "+x"(v));
    return v;
}

ALWAYS double apply(enum f64_kind kind, double a, double b, double c) {
    switch (kind) {
    case D_ADD: return a + b;
    case D_SUB: return a - b;
    case D_MUL: return a * b;
    case D_DIV: return a / b;
    case D_SQRT: return sqrt(a);
    case D_RCP: return 1 / a;
    case D_FMA: return fma(a, b, c);
    }
    return a;
}

ALWAYS double get(uint64_t bits) {
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

#define QUIET 0x0008000000000000u

ALWAYS bool is_nan(uint64_t bits) {
    return (bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

ALWAYS uint64_t finish(enum f64_kind kind, double r, uint64_t a, uint64_t b, uint64_t c) {
    uint64_t bits, nan = 0xfff8000000000000u;
    memcpy(&bits, &r, 8);
    if (kind == D_DIV) {
        nan = is_nan(b) ? b | QUIET : nan;
        nan = is_nan(a) ? a | QUIET : nan;
    } else {
        nan = is_nan(a) ? a | QUIET : nan;
        nan = kind == D_FMA && is_nan(c) ? c | QUIET : nan;
        nan = kind != D_SQRT && kind != D_RCP && is_nan(b) ? b | QUIET : nan;
    }
    return is_nan(bits) ? nan : bits;
}

ALWAYS const struct xinsn *arith(struct warp *w, const struct xinsn *x, bool masked,
                                 enum f64_kind kind) {
    const u64a *pa = ROW(u64a, x->a);
    const u64a *pb = kind == D_SQRT || kind == D_RCP ? pa : ROW(u64a, x->b);
    const u64a *pc = kind == D_FMA ? ROW(u64a, x->c) : pa;
    LANE_RESULT(u64a, x->d,
                finish(kind, apply(kind, get(pa[i]), get(pb[i]), get(pc[i])), pa[i], pb[i], pc[i]));
    return x + 1;
}

ALWAYS const struct xinsn *directed(struct warp *w, const struct xinsn *x, bool masked,
                                    enum f64_kind kind) {
    const u64a *pa = ROW(u64a, x->a);
    const u64a *pb = kind == D_SQRT || kind == D_RCP ? pa : ROW(u64a, x->b);
    const u64a *pc = kind == D_FMA ? ROW(u64a, x->c) : pa;
    u64a *d = ROW(u64a, x->d);
    set_rounding((int)x->imm);
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        double r = apply(kind, pinned(get(pa[i])), pinned(get(pb[i])), pinned(get(pc[i])));
        d[i] = finish(kind, pinned(r), pa[i], pb[i], pc[i]);
    }
    set_rounding(RN);
    return x + 1;
}

#define BIND_F64(handler, kind)                      \
    VARIANTS(arith, _##handler, kind)                \
    VARIANTS(directed, _##handler, kind)             \
    DECLARE_BIND(handler) {                          \
        switch (in->mods.rnd) {                      \
        case RND_NONE:                               \
        case RND_RN: return USE(x, arith_##handler); \
        case RND_RZ: x->imm = RZ; break;             \
        case RND_RM: x->imm = RM; break;             \
        case RND_RP: x->imm = RP; break;             \
        default: return false;                       \
        }                                            \
        return USE(x, directed_##handler);           \
    }
BIND_F64(add_f64, D_ADD)
BIND_F64(sub_f64, D_SUB)
BIND_F64(mul_f64, D_MUL)
BIND_F64(fma_f64, D_FMA)
BIND_F64(div_f64, D_DIV)
BIND_F64(sqrt_f64, D_SQRT)
BIND_F64(rcp_f64, D_RCP)

/* ---- sign, minimum, maximum ------------------------------------------------------------------ */

#define SIGN_BIT 0x8000000000000000u
/* A NaN keeps its sign (H200). */
LANE_HANDLER(abs_f64, u64, uint64_t, uint64_t, u64a, uint64_t, u64a,
             is_nan(a) ? a | QUIET : a & ~SIGN_BIT)
LANE_HANDLER(neg_f64, u64, uint64_t, uint64_t, u64a, uint64_t, u64a,
             is_nan(a) ? a | QUIET : a ^ SIGN_BIT)
DECLARE_BIND(abs_f64) {
    (void)in;
    return USE(x, abs_f64_u64);
}
DECLARE_BIND(neg_f64) {
    (void)in;
    return USE(x, neg_f64_u64);
}

/* Integers in the order of the floats, -0 below +0. */
ALWAYS int64_t order_key(uint64_t v) {
    return (int64_t)(v ^ ((v >> 63 ? ~(uint64_t)0 : 0) >> 1));
}
ALWAYS uint64_t extreme(uint64_t a, uint64_t b, bool max) {
    if (is_nan(a))
        return is_nan(b) ? b | QUIET : b;
    if (is_nan(b))
        return a;
    return (order_key(a) < order_key(b)) == max ? b : a;
}
LANE_HANDLER(min_f64, u64, uint64_t, uint64_t, u64a, uint64_t, u64a, extreme(a, b, false))
LANE_HANDLER(max_f64, u64, uint64_t, uint64_t, u64a, uint64_t, u64a, extreme(a, b, true))
DECLARE_BIND(min_f64) {
    (void)in;
    return USE(x, min_f64_u64);
}
DECLARE_BIND(max_f64) {
    (void)in;
    return USE(x, max_f64_u64);
}
