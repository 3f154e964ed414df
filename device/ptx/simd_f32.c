/*
 * simd_f32.c - single-precision arithmetic: every rounding mode, .ftz, .sat, canonical NaN.
 *
 * PTX ISA 9.7.3 (floating-point instructions).  What the ISA leaves open was measured on an H200
 * (docs/emulator.md): every NaN result is 0x7fffffff, also of abs, neg, min and max; .sat maps NaN
 * and -0 to +0; .ftz flushes what is tiny after rounding to 24 bits without a lower bound.
 */
#include <math.h>

#include "device/ptx/half.h"
#include "device/ptx/mufu.h"
#include "device/ptx/simd.h"

/* ---- rounding modes -------------------------------------------------------------------------- */

enum { RN, RZ, RM, RP };

/*
 * MXCSR with all exceptions masked.  AVX-512 has the mode in the instruction; below it the mode is
 * switched around the loop.  pin() keeps the compiler from moving arithmetic across the switch: its
 * argument is produced and its result consumed by volatile asm, which stays in order.
 */
#if ISA_LEVEL < 4
ALWAYS void mxcsr_set(uint32_t value) {
    __asm__ volatile("ldmxcsr %0" : : "m"(value) : "memory");
}
ALWAYS void round_begin(int rnd) {
    static const uint32_t bits[] = {0x1f80, 0x7f80, 0x3f80, 0x5f80};
    if (rnd != RN)
        mxcsr_set(bits[rnd]);
}
ALWAYS void round_end(int rnd) {
    if (rnd != RN)
        mxcsr_set(0x1f80);
}
ALWAYS vf pin(vf v) {
    __asm__ volatile("" : "+x"(v));
    return v;
}
#else
ALWAYS void round_begin(int rnd) {
    (void)rnd;
}
ALWAYS void round_end(int rnd) {
    (void)rnd;
}
#endif

#if ISA_LEVEL == 4
#    define WITH_ROUNDING(rnd, plain, call, ...)                                          \
        switch (rnd) {                                                                    \
        case RZ: return (vf)call(__VA_ARGS__, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);    \
        case RM: return (vf)call(__VA_ARGS__, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); \
        case RP: return (vf)call(__VA_ARGS__, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); \
        default: return plain;                                                            \
        }
ALWAYS vf add_v(vf a, vf b, int rnd){WITH_ROUNDING(rnd, a + b, _mm512_add_round_ps, (__m512)a,
                                                   (__m512)b)} ALWAYS vf mul_v(vf a, vf b, int rnd){
    WITH_ROUNDING(rnd, a *b, _mm512_mul_round_ps, (__m512)a, (__m512)b)} ALWAYS vf
    div_v(vf a, vf b,
          int rnd){WITH_ROUNDING(rnd, a / b, _mm512_div_round_ps, (__m512)a, (__m512)b)} ALWAYS vf
    sqrt_v(vf a, int rnd){WITH_ROUNDING(rnd, (vf)_mm512_sqrt_ps((__m512)a), _mm512_sqrt_round_ps,
                                        (__m512)a)} ALWAYS vf fma_v(vf a, vf b, vf c, int rnd){
        WITH_ROUNDING(rnd, (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c),
                      _mm512_fmadd_round_ps, (__m512)a, (__m512)b, (__m512)c)}
#else
#    define PINNED(rnd, v) ((rnd) == RN ? (v) : pin(v))
ALWAYS vf add_v(vf a, vf b, int rnd) {
    vf r = PINNED(rnd, a) + PINNED(rnd, b);
    return PINNED(rnd, r);
}
ALWAYS vf mul_v(vf a, vf b, int rnd) {
    vf r = PINNED(rnd, a) * PINNED(rnd, b);
    return PINNED(rnd, r);
}
ALWAYS vf div_v(vf a, vf b, int rnd) {
    vf r = PINNED(rnd, a) / PINNED(rnd, b);
    return PINNED(rnd, r);
}
ALWAYS vf sqrt_v(vf a, int rnd) {
#    if ISA_LEVEL == 3
    vf r = (vf)_mm256_sqrt_ps((__m256)PINNED(rnd, a));
#    else
    vf r = (vf)_mm_sqrt_ps((__m128)PINNED(rnd, a));
#    endif
    return PINNED(rnd, r);
}
#    if ISA_LEVEL == 3
ALWAYS vf fma_v(vf a, vf b, vf c, int rnd) {
    vf r =
        (vf)_mm256_fmadd_ps((__m256)PINNED(rnd, a), (__m256)PINNED(rnd, b), (__m256)PINNED(rnd, c));
    return PINNED(rnd, r);
}
#    else
/*
 * No fma instruction: a * b is exact in binary64; its sum with c is rounded to odd there (Boldo and
 * Melquiond 2008), after which one conversion rounds correctly in any mode because 53 >= 24 + 2.
 * Two lanes at a time.
 */
typedef double d2 __attribute__((vector_size(16)));
typedef uint64_t l2 __attribute__((vector_size(16)));

ALWAYS d2 add_to_odd(d2 p, d2 c) {
    d2 s = p + c, back = s - p, error = (p - (s - back)) + (c - back); /* TwoSum: exact */
    l2 bits = (l2)s, above = (l2)(error > 0), inexact = above | (l2)(error < 0);
    l2 even = (bits & 1) - 1;                /* all ones or zero, as the other masks */
    l2 inward = above ^ (l2)(s > 0);         /* |s| is too large */
    return (d2)(bits + ((inward | 1) & inexact & even));
}
ALWAYS vf fma_v(vf a, vf b, vf c, int rnd) {
    d2 p[2], q[2], s[2];
    round_end(rnd);
    for (int h = 0; h < 2; h++) {
        __m128 va = (__m128)a, vb = (__m128)b, vc = (__m128)c;
        if (h) {
            va = _mm_movehl_ps(va, va);
            vb = _mm_movehl_ps(vb, vb);
            vc = _mm_movehl_ps(vc, vc);
        }
        p[h] = (d2)_mm_cvtps_pd(va) * (d2)_mm_cvtps_pd(vb);
        q[h] = (d2)_mm_cvtps_pd(vc);
        s[h] = add_to_odd(p[h], q[h]);
    }
    if (rnd == RN)
        return (vf)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)s[0]), _mm_cvtpd_ps((__m128d)s[1]));
    /* The sum in the wanted mode: its zero has the right sign when the sum is exactly zero. */
    __m128 r[2], zero[2], is_zero;
    d2 exact[2];
    round_begin(rnd);
    for (int h = 0; h < 2; h++) {
        __asm__ volatile("" : "+x"(s[h]), "+x"(p[h]), "+x"(q[h]));
        exact[h] = p[h] + q[h];
        r[h] = _mm_cvtpd_ps((__m128d)s[h]);
        __asm__ volatile("" : "+x"(r[h]), "+x"(exact[h]));
        zero[h] = _mm_cvtpd_ps((__m128d)exact[h]);
    }
    round_end(rnd);
    is_zero = _mm_shuffle_ps((__m128)(exact[0] == 0), (__m128)(exact[1] == 0), 0x88);
    return (vf)_mm_blendv_ps(_mm_movelh_ps(r[0], r[1]), _mm_movelh_ps(zero[0], zero[1]), is_zero);
}
#    endif
#endif

/* ---- arithmetic ------------------------------------------------------------------------------ */

enum f32_kind {
    F_ADD,
    F_SUB,
    F_MUL,
    F_FMA,
    F_DIV,
    F_RCP,
    F_SQRT
};

/* .ftz: subnormals become zeros of the same sign. */
ALWAYS vf flush(vf v) {
    vs tiny = ((vu)v & 0x7f800000u) == 0;
    return (vf)((vu)v & ~((vu)tiny & 0x7fffffffu));
}

ALWAYS vf apply(enum f32_kind kind, vf a, vf b, vf c, int rnd) {
    switch (kind) {
    case F_ADD: return add_v(a, b, rnd);
    case F_SUB: return add_v(a, (vf)((vu)b ^ 0x80000000u), rnd);
    case F_MUL: return mul_v(a, b, rnd);
    case F_FMA: return fma_v(a, b, c, rnd);
    case F_DIV: return div_v(a, b, rnd);
    case F_RCP: return div_v((vf)splat(0x3f800000u), a, rnd);
    case F_SQRT: return sqrt_v(a, rnd);
    }
    return a;
}

ALWAYS vu finish(vf v, bool ftz, bool sat) {
    if (ftz)
        v = flush(v);
    if (sat) { /* clamp to [0, 1]; NaN and -0 give +0 */
        vu r = (vu)v & (vu)(v > 0.0f);
        return select_u(v > 1.0f, splat(0x3f800000u), r);
    }
    return select_u(v != v, splat(0x7fffffffu), (vu)v);
}

/*
 * .ftz: rounding in the subnormal range can reach 2^-126 from values that 24 bits with any exponent
 * would leave below it, and those are flushed.  Where r is +-2^-126 the operation is repeated with
 * an operand scaled by 2^64, which is exact for the operands that can give such a result.
 */
static __attribute__((noinline)) vf flush_edge(vf r, vs edge, enum f32_kind kind, vf a, vf b, vf c,
                                               int rnd) {
    vf up = (vf)splat(0x5f800000u); /* 2^64 */
    vs first =
        ((vu)a & 0x7fffffffu) < ((vu)b & 0x7fffffffu); /* the smaller factor takes the scale */
    vf sa = (vf)select_u(first, (vu)(a * up), (vu)a), sb = (vf)select_u(first, (vu)b, (vu)(b * up));
    vf scaled;
    switch (kind) {
    case F_MUL: scaled = mul_v(sa, sb, rnd); break;
    case F_FMA: scaled = fma_v(sa, sb, c * up, rnd); break;
    case F_DIV: scaled = div_v(a * up, b, rnd); break;
    default: scaled = div_v(up, a, rnd); break; /* F_RCP */
    }
    vs tiny = ((vu)scaled & 0x7fffffffu) < (vu)splat(0x20800000u); /* 2^-62 */
    return (vf)((vu)r & ~((vu)(edge & tiny) & 0x7fffffffu));
}

ALWAYS bool can_reach_edge(enum f32_kind kind) { /* sums of normal numbers are exact there */
    return kind == F_MUL || kind == F_FMA || kind == F_DIV || kind == F_RCP;
}

ALWAYS bool any(vs mask) {
#if ISA_LEVEL == 4
    return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif ISA_LEVEL == 3
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    return _mm_movemask_ps((__m128)mask) != 0;
#endif
}

ALWAYS const struct xinsn *arith(struct warp *w, const struct xinsn *x, bool masked,
                                 enum f32_kind kind, int rnd, bool ftz, bool sat) {
    uint32_t m = MASK_OF(w, x, masked);
    const u32a *ra = row32(w, x->a), *rb = row32(w, x->b), *rc = row32(w, x->c);
    u32a *rd = row32(w, x->d);
    bool two = kind != F_RCP && kind != F_SQRT;
    round_begin(rnd);
    FOR_VECTORS(i) {
        vf a = (vf)load_u(ra, i);
        vf b = two ? (vf)load_u(rb, i) : a;
        vf c = kind == F_FMA ? (vf)load_u(rc, i) : a;
        if (ftz) {
            a = flush(a);
            b = flush(b);
            c = flush(c);
        }
        vf r = apply(kind, a, b, c, rnd);
        if (ftz && can_reach_edge(kind)) {
            vs edge = (vs)(((vu)r & 0x7fffffffu) == 0x00800000u);
            if (__builtin_expect(any(edge), 0))
                r = flush_edge(r, edge, kind, a, b, c, rnd);
        }
        put(rd, i, finish(r, ftz, sat), m, masked);
    }
    round_end(rnd);
    return x + 1;
}

#define ARITH_4(kind, rnd)                                         \
    VARIANTS(arith, _##kind##_##rnd, kind, rnd, false, false)      \
    VARIANTS(arith, _##kind##_##rnd##_ftz, kind, rnd, true, false) \
    VARIANTS(arith, _##kind##_##rnd##_sat, kind, rnd, false, true) \
    VARIANTS(arith, _##kind##_##rnd##_ftz_sat, kind, rnd, true, true)
#define ARITH_KIND(kind) ARITH_4(kind, RN) ARITH_4(kind, RZ) ARITH_4(kind, RM) ARITH_4(kind, RP)
ARITH_KIND(F_ADD)
ARITH_KIND(F_SUB)
ARITH_KIND(F_MUL)
ARITH_KIND(F_FMA)
ARITH_KIND(F_DIV)
ARITH_KIND(F_RCP)
ARITH_KIND(F_SQRT)

struct variant {
    exec_fn full, masked;
};

#define V(name) \
    { arith_##name##_full, arith_##name##_masked }
#define ROW_4(kind, rnd) \
    { V(kind##_##rnd), V(kind##_##rnd##_ftz), V(kind##_##rnd##_sat), V(kind##_##rnd##_ftz_sat) }
#define ROW_KIND(kind) \
    { ROW_4(kind, RN), ROW_4(kind, RZ), ROW_4(kind, RM), ROW_4(kind, RP) }
static const struct variant arith_table[7][4][4] = {
    ROW_KIND(F_ADD), ROW_KIND(F_SUB), ROW_KIND(F_MUL),  ROW_KIND(F_FMA),
    ROW_KIND(F_DIV), ROW_KIND(F_RCP), ROW_KIND(F_SQRT),
};

static const struct variant *find_variant(const struct ptx_insn *in, enum f32_kind kind) {
    int rnd;
    switch (in->mods.rnd) {
    case RND_NONE:
    case RND_RN: rnd = RN; break;
    case RND_RZ: rnd = RZ; break;
    case RND_RM: rnd = RM; break;
    case RND_RP: rnd = RP; break;
    default: return NULL;
    }
    return &arith_table[kind][rnd][in->mods.ftz + 2 * in->mods.sat];
}

static bool bind_arith(struct xinsn *x, const struct ptx_insn *in, enum f32_kind kind) {
    const struct variant *v = find_variant(in, kind);
    if (!v)
        return false;
    x->full = v->full;
    x->masked = v->masked;
    return true;
}

#define BIND_ARITH(handler, kind)       \
    DECLARE_BIND(handler) {             \
        return bind_arith(x, in, kind); \
    }
BIND_ARITH(add_f32, F_ADD)
BIND_ARITH(sub_f32, F_SUB)
BIND_ARITH(mul_f32, F_MUL)
BIND_ARITH(fma_f32, F_FMA)
BIND_ARITH(div_f32, F_DIV)
BIND_ARITH(rcp_f32, F_RCP)
BIND_ARITH(sqrt_f32, F_SQRT)

/* ---- f32x2, and 16-bit operands: through the rows that lowering keeps for it ------------------ */

/* x->imm: the first of 8 rows of 32 bits; x->target: the handlers of the operation on f32. */
static const struct variant *operation(const struct xinsn *x) {
    return (const struct variant *)(const void *)x->target;
}

static struct xinsn on_rows(const struct xinsn *x, unsigned first) {
    struct xinsn t = *x;
    uint32_t row = (uint32_t)x->imm + first * ROW32;
    t.a = row;
    t.b = row + ROW32;
    t.c = row + 2 * ROW32;
    t.d = row + 3 * ROW32;
    return t;
}

ALWAYS const struct xinsn *f32x2(struct warp *w, const struct xinsn *x, bool masked) {
    const uint32_t from[3] = {x->a, x->b, x->c};
    struct xinsn half[2] = {on_rows(x, 0), on_rows(x, 4)};
    uint32_t m = MASK_OF(w, x, masked);
    for (unsigned k = 0; k < x->insn->group_count - 1u; k++) {
        const u64a *s = row64(w, from[k]);
        for (unsigned h = 0; h < 2; h++) {
            u32a *d = row32(w, half[h].a + k * ROW32);
            LANE_LOOP(i) d[i] = (uint32_t)(s[i] >> (32 * h));
        }
    }
    for (unsigned h = 0; h < 2; h++)
        operation(x)->masked(w, &half[h]);
    FOR_LANES(i, m)
    row64(w, x->d)[i] = row32(w, half[0].d)[i] | (uint64_t)row32(w, half[1].d)[i] << 32;
    return x + 1;
}
VARIANTS(f32x2, )

ALWAYS const struct xinsn *mixed(struct warp *w, const struct xinsn *x, bool masked) {
    struct xinsn t = on_rows(x, 0);
    bool bf16 = x->insn->type2 == PTX_BF16, fma = x->insn->op == PTX_OP_FMA_MIXED;
    (void)masked;
    for (unsigned k = 0; k < (fma ? 2u : 1u); k++) {
        const u32a *s = row32(w, k ? x->b : x->a);
        u32a *d = row32(w, t.a + k * ROW32);
        LANE_LOOP(i) d[i] = bf16 ? bf16_to_f32(s[i]) : f16_to_f32(s[i]);
    }
    *(fma ? &t.c : &t.b) = fma ? x->c : x->b;
    t.d = x->d;
    operation(x)->masked(w, &t);
    return x + 1;
}
VARIANTS(mixed, )

static bool bind_rows(struct xinsn *x, const struct ptx_insn *in, enum f32_kind kind) {
    const struct variant *v = find_variant(in, kind);
    x->target = (const struct xinsn *)(const void *)v;
    return v != NULL;
}
static enum f32_kind kind_of(enum ptx_op op) {
    switch (op) {
    case PTX_OP_SUB_MIXED:
    case PTX_OP_SUB_F32X2: return F_SUB;
    case PTX_OP_MUL_F32X2: return F_MUL;
    case PTX_OP_FMA_MIXED:
    case PTX_OP_FMA_F32X2: return F_FMA;
    default: return F_ADD;
    }
}
DECLARE_BIND(f32x2) {
    return bind_rows(x, in, kind_of(in->op)) && USE(x, f32x2);
}
DECLARE_BIND(mixed) {
    return bind_rows(x, in, kind_of(in->op)) && USE(x, mixed);
}

/* ---- sign, minimum, maximum ------------------------------------------------------------------ */

enum sign_kind { S_ABS, S_NEG, S_COPY };

ALWAYS const struct xinsn *sign(struct warp *w, const struct xinsn *x, bool masked,
                                enum sign_kind kind, bool ftz) {
    uint32_t m = MASK_OF(w, x, masked);
    FOR_VECTORS(i) {
        vu a = load_u(row32(w, x->a), i);
        if (ftz)
            a = (vu)flush((vf)a);
        vu r = kind == S_ABS ? a & 0x7fffffffu : a ^ 0x80000000u;
        if (kind == S_COPY) /* PTX ISA 9.7.3.2: the sign of a, the rest of b */
            r = (a & 0x80000000u) | (load_u(row32(w, x->b), i) & 0x7fffffffu);
        else
            r = select_u((vf)a != (vf)a, splat(0x7fffffffu), r);
        put(row32(w, x->d), i, r, m, masked);
    }
    return x + 1;
}
VARIANTS(sign, _abs, S_ABS, false)
VARIANTS(sign, _abs_ftz, S_ABS, true)
VARIANTS(sign, _neg, S_NEG, false)
VARIANTS(sign, _neg_ftz, S_NEG, true)
VARIANTS(sign, _copy, S_COPY, false)

DECLARE_BIND(abs_f32) {
    return in->mods.ftz ? USE(x, sign_abs_ftz) : USE(x, sign_abs);
}
DECLARE_BIND(neg_f32) {
    return in->mods.ftz ? USE(x, sign_neg_ftz) : USE(x, sign_neg);
}
DECLARE_BIND(copysign_f32) {
    (void)in;
    return USE(x, sign_copy);
}

/* Integers in the order of the floats, -0 below +0. */
ALWAYS vs order_key(vu v) {
    return (vs)(v ^ (vu)((vs)v >> 31 & 0x7fffffff));
}

ALWAYS const struct xinsn *extreme(struct warp *w, const struct xinsn *x, bool masked, bool max,
                                   bool ftz, bool nan) {
    uint32_t m = MASK_OF(w, x, masked);
    FOR_VECTORS(i) {
        vf a = (vf)load_u(row32(w, x->a), i), b = (vf)load_u(row32(w, x->b), i);
        if (ftz) {
            a = flush(a);
            b = flush(b);
        }
        vs first =
            max ? order_key((vu)a) >= order_key((vu)b) : order_key((vu)a) <= order_key((vu)b);
        vu r = select_u(first, (vu)a, (vu)b);
        if (nan) {
            r = select_u((a != a) | (b != b), splat(0x7fffffffu), r);
        } else {
            r = select_u(a != a, (vu)b, r);
            r = select_u(b != b, (vu)a, r);
            r = select_u((a != a) & (b != b), splat(0x7fffffffu), r);
        }
        put(row32(w, x->d), i, r, m, masked);
    }
    return x + 1;
}
VARIANTS(extreme, _min, false, false, false)
VARIANTS(extreme, _min_ftz, false, true, false)
VARIANTS(extreme, _min_nan, false, false, true)
VARIANTS(extreme, _min_ftz_nan, false, true, true)
VARIANTS(extreme, _max, true, false, false)
VARIANTS(extreme, _max_ftz, true, true, false)
VARIANTS(extreme, _max_nan, true, false, true)
VARIANTS(extreme, _max_ftz_nan, true, true, true)

/* .xorsign.abs and three operands: lane by lane. */
static uint32_t extreme_lane(uint32_t a, uint32_t b, const struct ptx_mods *mods, bool max) {
    uint32_t sign = (a ^ b) & 0x80000000u;
    uint32_t keep = mods->abs ? 0x7fffffffu : ~0u;
    if (mods->ftz) {
        a = (a & 0x7f800000u) ? a : a & 0x80000000u;
        b = (b & 0x7f800000u) ? b : b & 0x80000000u;
    }
    a &= keep;
    b &= keep;
    bool nan_a = (a & 0x7fffffffu) > 0x7f800000u, nan_b = (b & 0x7fffffffu) > 0x7f800000u;
    int32_t ka = (int32_t)(a ^ (a >> 31 ? 0x7fffffffu : 0)), kb = (int32_t)(b ^ (b >> 31 ? 0x7fffffffu : 0));
    uint32_t r = (max ? ka >= kb : ka <= kb) ? a : b;
    r = nan_a ? b : nan_b ? a : r;
    if (mods->nan ? nan_a || nan_b : nan_a && nan_b)
        return 0x7fffffffu;
    return mods->xorsign ? r | sign : r;
}
ALWAYS const struct xinsn *extreme_lanes(struct warp *w, const struct xinsn *x, bool masked) {
    const struct ptx_insn *in = x->insn;
    bool max = in->op == PTX_OP_MAX_F32 || in->op == PTX_OP_MAX_F32_XORSIGN;
    FOR_LANES(i, MASK_OF(w, x, masked)) {
        uint32_t r = extreme_lane(row32(w, x->a)[i], row32(w, x->b)[i], &in->mods, max);
        if (in->group_count > 3)
            r = extreme_lane(r, row32(w, x->c)[i], &in->mods, max);
        row32(w, x->d)[i] = r;
    }
    return x + 1;
}
VARIANTS(extreme_lanes, )
DECLARE_BIND(extreme_f32) {
    (void)in;
    return USE(x, extreme_lanes);
}

DECLARE_BIND(min_f32) {
    if (in->group_count > 3)
        return USE(x, extreme_lanes);
    if (in->mods.nan)
        return in->mods.ftz ? USE(x, extreme_min_ftz_nan) : USE(x, extreme_min_nan);
    return in->mods.ftz ? USE(x, extreme_min_ftz) : USE(x, extreme_min);
}
DECLARE_BIND(max_f32) {
    if (in->group_count > 3)
        return USE(x, extreme_lanes);
    if (in->mods.nan)
        return in->mods.ftz ? USE(x, extreme_max_ftz_nan) : USE(x, extreme_max_nan);
    return in->mods.ftz ? USE(x, extreme_max_ftz) : USE(x, extreme_max);
}

/* ---- special function unit ------------------------------------------------------------------- */

/* table[index], index < 64. */
ALWAYS vu table64(const uint32_t *table, vu index) {
#if ISA_LEVEL == 4 /* four registers hold the table: cheaper than a gather */
    const __m512i *t = (const __m512i *)table;
    __m512i i = (__m512i)index;
    __m512i low = _mm512_permutex2var_epi32(_mm512_loadu_si512(t), i, _mm512_loadu_si512(t + 1));
    __m512i high =
        _mm512_permutex2var_epi32(_mm512_loadu_si512(t + 2), i, _mm512_loadu_si512(t + 3));
    return (vu)_mm512_mask_blend_epi32(_mm512_test_epi32_mask(i, _mm512_set1_epi32(32)), low, high);
#elif ISA_LEVEL == 3
    return (vu)_mm256_i32gather_epi32((const int *)table, (__m256i)index, 4);
#else
    vu r;
    for (int k = 0; k < W; k++)
        r[k] = table[index[k]];
    return r;
#endif
}

/* The same steps as mufu_ex2() in mufu.c, W lanes at once; there they are explained. */
ALWAYS vu ex2_v(vu x) {
    vu magnitude = x & 0x7fffffffu;
    vs negative = (vs)x < 0;
    vu exponent = magnitude >> 23;
    vu significand = (x & 0x7fffffu) | 0x800000u;
    /* |x| * 2^23, truncated; |x| < 128 here: exponent field at most 133 */
    vs big = (vs)exponent > 133;
    vu left = (exponent - 127) & 31u, right = (127 - exponent) & 31u;
    vu fixed = select_u((vs)exponent >= 127, significand << left, significand >> right);
    fixed = fixed & ~(vu)((vs)exponent < 104);
    vu whole = fixed >> 23, fraction = fixed & 0x7fffffu;
    vs complement = negative & (vs)(fraction != 0);
    fraction = select_u(complement, fraction ^ 0x7fffffu, fraction);
    vs scale = (vs)select_u(negative, -whole, whole) + complement;
    vu row = fraction >> 17, r = fraction & 0x1ffffu;
    vu A = table64(mufu_ex2_a, row), B = table64(mufu_ex2_bc, row), C;
    C = B & 0x3ffu;
    B = B >> 10;
    vu high = r >> 9, low = r & 0x1ffu, square = high * high >> 1;
    for (int j = 1; j < 8; j++)
        square += (low >> (9 - j)) & (vu)((high & (1u << j)) != 0);
    vu top = B * (r >> 14);
    vu rest = B * (r & 0x3fffu) + C * square + 0x77e2u + ((A & 3u) << 13) + ((top & 1u) << 14);
    vu result = (A >> 2) + (top >> 1) + (rest >> 15); /* 24 bits, perhaps a carry */
    vs exp = scale + 127 + (vs)(result >> 24);
    vu bits = ((vu)exp << 23) | (result & 0x7fffffu);
    bits = bits & ~(vu)(exp <= 0);
    bits = select_u(exp >= 255, splat(0x7f800000u), bits);
    bits = select_u(big, splat(0x7f800000u) & ~(vu)negative, bits);
    return select_u((vs)magnitude > 0x7f800000, splat(0x7fffffffu), bits);
}

/* Without .ftz the unit's operand is halved below -126 and its result squared. */
ALWAYS vu ex2_full_v(vu x) {
    vs low = (vf)x < -126.0f;
    vf half = (vf)select_u(low, (vu)((vf)x * 0.5f), x);
    vf r = (vf)ex2_v((vu)half);
    return select_u(low, (vu)(r * r), (vu)r);
}

ALWAYS const struct xinsn *ex2(struct warp *w, const struct xinsn *x, bool masked, bool ftz) {
    uint32_t m = MASK_OF(w, x, masked);
    FOR_VECTORS(i) {
        vu a = load_u(row32(w, x->a), i);
        put(row32(w, x->d), i, ftz ? ex2_v(a) : ex2_full_v(a), m, masked);
    }
    return x + 1;
}
VARIANTS(ex2, _ftz, true)
VARIANTS(ex2, _all, false)

DECLARE_BIND(ex2_f32) {
    return in->mods.ftz ? USE(x, ex2_ftz) : USE(x, ex2_all);
}

/* ---- class tests ----------------------------------------------------------------------------- */

/* PTX ISA 9.7.3.1: testp.  Zeros count as normal. */
static bool class_test(uint32_t bits, enum ptx_mode mode) {
    uint32_t magnitude = bits & 0x7fffffffu;
    switch (mode) {
    case MODE_FINITE: return magnitude < 0x7f800000u;
    case MODE_INFINITE: return magnitude == 0x7f800000u;
    case MODE_NUMBER: return magnitude <= 0x7f800000u;
    case MODE_NOTANUMBER: return magnitude > 0x7f800000u;
    case MODE_NORMAL: return magnitude < 0x7f800000u && (magnitude >= 0x00800000u || !magnitude);
    default: return magnitude > 0 && magnitude < 0x00800000u;
    }
}

ALWAYS const struct xinsn *testp(struct warp *w, const struct xinsn *x, bool masked) {
    uint32_t m = MASK_OF(w, x, masked), result = 0;
    FOR_LANES(i, m)
    result |= (uint32_t)class_test(row32(w, x->a)[i], (enum ptx_mode)x->imm) << i;
    put_pred(w, x->d, result, m);
    return x + 1;
}
VARIANTS(testp, )

DECLARE_BIND(testp_f32) {
    x->imm = in->mods.mode;
    return in->mods.mode >= MODE_FINITE && USE(x, testp);
}

/* ---- division through the reciprocal --------------------------------------------------------- */

static float scaled(float v, float by, bool ftz) {
    v *= by;
    return ftz && fabsf(v) < 0x1p-126f ? copysignf(0, v) : v;
}

/*
 * What ptxas makes of div.approx and div.full (sm_90): without .ftz both scale a subnormal divisor
 * and its dividend by 2^24; full brings a divisor above 2^126 and its dividend down by 4, so that
 * the reciprocal stays normal.  Then one product, rounded to nearest.
 */
static uint32_t div_approx(uint32_t a, uint32_t b, bool full, bool ftz) {
    float x, y, r;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    if (ftz) {
        x = scaled(x, 1, true);
        y = scaled(y, 1, true);
    }
    float by = full && fabsf(y) > 0x1p126f ? 0.25f : !ftz && fabsf(y) < 0x1p-126f ? 0x1p24f : 1;
    x = scaled(x, by, ftz);
    y = scaled(y, by, ftz);
    memcpy(&b, &y, 4);
    b = mufu_rcp(b);
    memcpy(&r, &b, 4);
    double product = (double)x * (double)r; /* exact */
    if (ftz && fabs(product) < 0x1.ffffffp-127)
        product = copysign(0, product);
    r = (float)product;
    memcpy(&a, &r, 4);
    return r != r ? 0x7fffffffu : a;
}

ALWAYS const struct xinsn *div_lanes(struct warp *w, const struct xinsn *x, bool masked) {
    bool full = x->insn->mods.full, ftz = x->insn->mods.ftz;
    FOR_LANES(i, MASK_OF(w, x, masked))
    row32(w, x->d)[i] = div_approx(row32(w, x->a)[i], row32(w, x->b)[i], full, ftz);
    return x + 1;
}
VARIANTS(div_lanes, )
DECLARE_BIND(div_approx_f32) {
    return in->type == PTX_F32 && USE(x, div_lanes);
}
