/*
 * simd_tensor.c - mma: fragments, and the truncated fused dot product of tensor.h for 8 columns at a
 * time.  PTX ISA 9.7.14.5.
 *
 * A register of a fragment, its 32 lanes one after the other in memory, is a block of 8 rows by 16
 * bytes of k (columns for b), row after row.
 *
 * The sum in single precision.  a, b and the powers of two of their exponents are binary32 numbers;
 * a product of significands of at most 11 bits is exact, and so is one of powers.  With E the
 * greatest exponent, the scale 2^(F - E) is a power of two, term * scale is exact, and its conversion
 * to an integer cuts toward zero: t_i in units of 2^(E - F).  At most 8 products, each below 2^(F + 2),
 * and c, below 2^(F + 1), are added in one 32-bit integer, F <= 25.  The sum of two such integers and
 * its product with 2^(E - F) are exact in binary64.
 *
 * That needs E >= LEAST (in f16 the floor, which is greater), so that scale, terms that count, and the
 * result are normal numbers, and products below 2^128: powers whose product is at most MOST.  A
 * product that underflows is below 2^-126, is rounded to less than 2^-125, and so still less than one unit, 2^(LEAST - F).
 * Where an output is not known to be so, and where NaN or infinity take part, tensor_dot() computes
 * it.  Formats of 8 bits: up to 32 products of significands below 2, each below 3.6 * 2^F, fit two
 * 32-bit integers; on a core that has no 8-bit operands they are products of f16 (see tensor.h).
 */
#include <math.h>

#include "device/ptx/half.h"
#include "device/ptx/simd_await.h"
#include "device/ptx/simd_tensor.h"
#include "device/ptx/tensor_form.h"

#define GROUP 8 /* columns side by side */
#define MAX_K 32
#define LEAST (-76)
#define MOST 0x1p120

typedef float f8 __attribute__((vector_size(32), may_alias));
typedef int32_t i8 __attribute__((vector_size(32), may_alias));
typedef uint32_t u8 __attribute__((vector_size(32), may_alias));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef float f4 __attribute__((vector_size(16)));
typedef double d4 __attribute__((vector_size(32)));
typedef uint64_t l4 __attribute__((vector_size(32)));

ALWAYS u8 splat8(uint32_t x) {
    return x - (u8){0};
}
ALWAYS f8 splat_f8(float x) {
    return x - (f8){0};
}
ALWAYS u8 choose8(i8 mask, u8 yes, u8 no) {
    return ((u8)mask & yes) | (~(u8)mask & no);
}
/* Of numbers that are not negative: their bits are ordered as they are. */
ALWAYS f8 max8(f8 a, f8 b) {
#if ISA_LEVEL >= 3
    return (f8)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return (f8)choose8((i8)a > (i8)b, (u8)a, (u8)b);
#endif
}
ALWAYS bool any8(u8 mask) {
    l4 x = (l4)mask;
    return (x[0] | x[1] | x[2] | x[3]) != 0;
}
ALWAYS float power_of_two(int e) {
    return half_as_f32((uint32_t)(e + 127) << 23);
}

/* ---- operands as binary32 numbers ------------------------------------------------------------ */

/* What is known of the exponents of a row: 2^most and 2^least of those that are not zero. */
struct range {
    float most, least;
    bool special; /* there is a NaN or an infinity */
};

/* The number, and in *power 2^e, or 0 for zero; an exponent field above `top` is special. */
ALWAYS uint32_t widen(uint32_t *power, const uint8_t *at, unsigned i, enum tensor_type type) {
    uint32_t bits, field;
    if (type == TENSOR_E4M3) { /* as f16 bits: 2^-8 of it, and NaN a number */
        uint32_t size = at[i] & 0x7fu;
        float f = half_as_f32(f16_to_f32(size << 7)) * 0x1p8f;
        field = (size >> 3 ? size >> 3 : 1) + 127 - 7;
        *power = size == 0x7f ? 0x7f800000u : size ? field << 23 : 0;
        return half_f32_bits(f) | (uint32_t)(at[i] & 0x80) << 24;
    }
    if (type == TENSOR_E5M2) {
        bits = f16_to_f32((uint32_t)at[i] << 8);
        field = (at[i] & 0x7cu ? (at[i] & 0x7cu) >> 2 : 1) + 127 - 15;
        *power = (at[i] & 0x7cu) == 0x7c ? 0x7f800000u : at[i] & 0x7fu ? field << 23 : 0;
        return bits;
    }
    if (type == TENSOR_TF32) {
        bits = ((const u32a *)at)[i] & ~0x1fffu;
    } else {
        uint16_t h;
        memcpy(&h, at + 2 * i, 2);
        bits = type == TENSOR_F16 ? f16_to_f32(h) : (uint32_t)h << 16;
    }
    field = bits & 0x7f800000u;
    uint32_t least = type == TENSOR_F16 ? (uint32_t)(127 - 14) << 23 : 1u << 23;
    field = field > least ? field : least;
    *power = bits & 0x7fffffffu ? field : 0;
    return bits;
}

/*
 * through_f16: in the order in which a core without 8-bit operands takes them (see tensor.h), with
 * the exponents that f16 has: e4m3's subnormals are normal there, e5m2's are not.
 */
ALWAYS struct range decode_ordered(float *value, float *power, const uint8_t *at, unsigned k,
                                   enum tensor_type type, bool through_f16) {
    uint32_t most = 0, least = UINT32_MAX;
    for (unsigned n = 0; n < k; n++) {
        unsigned half = k / 2, in_half = n % half;
        unsigned i = through_f16 ? in_half / 2 * 4 + in_half % 2 + n / half * 2 : n;
        uint32_t p, v = widen(&p, at, i, type);
        if (through_f16 && type == TENSOR_E4M3)
            p = p < 0x7f800000u ? v & 0x7f800000u : p;
        value[n] = half_as_f32(v);
        power[n] = half_as_f32(p);
        most = p > most ? p : most;
        least = p - 1 < least ? p - 1 : least; /* zero becomes the greatest */
    }
    return (struct range){.most = half_as_f32(most),
                          .least = least == UINT32_MAX ? 1 : half_as_f32(least + 1),
                          .special = most >= 0x7f800000u};
}

ALWAYS struct range decode(float *value, float *power, const uint8_t *at, unsigned k,
                           enum tensor_type type) {
    return decode_ordered(value, power, at, k, type, false);
}

struct row {
    float value[MAX_K], power[MAX_K];
    struct range range;
};

struct group { /* 8 columns */
    f8 value[MAX_K], power[MAX_K];
    struct range range;
};

ALWAYS void decode_group(struct group *g, const uint8_t (*at)[ROW_BYTES], unsigned k,
                         enum tensor_type type) {
    g->range = (struct range){.most = 0, .least = 1, .special = false};
    for (unsigned j = 0; j < GROUP; j++) {
        float value[MAX_K], power[MAX_K];
        struct range r = decode(value, power, at[j], k, type);
        for (unsigned i = 0; i < k; i++) {
            ((f32a *)g->value)[i * GROUP + j] = value[i];
            ((f32a *)g->power)[i * GROUP + j] = power[i];
        }
        g->range.most = r.most > g->range.most ? r.most : g->range.most;
        g->range.least = r.least < g->range.least ? r.least : g->range.least;
        g->range.special |= r.special;
    }
}

/* ---- one row by 8 columns -------------------------------------------------------------------- */

struct terms {
    f8 c;
    u8 bad;    /* outputs that tensor_dot must compute */
    bool deep; /* products may underflow to zero */
};

/* A value cut to 24 bits (e8m13: 14), where every result is normal or zero. */
ALWAYS f4 cut(d4 value, bool e8m13) {
    l4 bits = (l4)value & ~(((uint64_t)1 << (e8m13 ? 39 : 29)) - 1);
    return __builtin_convertvector((d4)bits, f4);
}

/*
 * To nearest f16, ties to even, as a float: adding 1.5 * 2^52 units and taking them off again rounds
 * to units, the last place of an f16.
 */
ALWAYS f4 round_f16(d4 value) {
    l4 exponent = (l4)value & (uint64_t)0x7ff << 52;
    l4 least = (uint64_t)(1023 - 14) << 52 & ~(l4){0};
    l4 small = (l4)((d4)exponent < (d4)least);
    exponent = (small & least) | (~small & exponent);
    d4 big = (d4)(exponent + ((uint64_t)42 << 52)) * 1.5;
    d4 r = value + big - big;
    l4 over = (l4)((d4)((l4)r & ~((uint64_t)1 << 63)) >= 65536.0);
    l4 infinity = ((l4)r & (uint64_t)1 << 63) | (uint64_t)0x7ff << 52;
    return __builtin_convertvector((d4)((over & infinity) | (~over & (l4)r)), f4);
}

enum end { END_F32, END_F16, END_E8M13 };

ALWAYS f4 finish(i4 s0, i4 s1, f4 unit, enum end end) {
    d4 sum = __builtin_convertvector(s0, d4) + __builtin_convertvector(s1, d4);
    d4 value = sum * __builtin_convertvector(unit, d4);
    if (end == END_F16)
        return round_f16(value);
    return cut(value, end == END_E8M13);
}

ALWAYS void one_block(struct terms *t, const float *av, const float *ap, const f8 *bv, const f8 *bp,
                      unsigned count, const struct tensor_model *m, enum end end) {
    bool f16 = end == END_F16;
    f8 product[MAX_K];
    u8 c = (u8)t->c, size = c & 0x7fffffffu, field = c & 0x7f800000u;
    t->bad |= (u8)(field == 0x7f800000u);
    if (f16) {
        u8 subnormal = splat8((uint32_t)(127 - 14) << 23);
        field = choose8((i8)(field > subnormal), field, subnormal) & (u8)(size != 0);
    }
    f8 top = (f8)field;
    for (unsigned i = 0; i < count; i++) {
        product[i] = av[i] * bv[i];
        top = max8(top, ap[i] * bp[i]);
    }
    f8 least = splat_f8(power_of_two(f16 ? m->floor : LEAST));
    if (!f16) { /* f16: the floor is above LEAST, and so all of it is known */
        u8 nothing = (u8)((u8)top == 0) & (u8)(size == 0);
        u8 low = (u8)(top < least);
        if (!t->deep)
            low &= ~nothing;
        t->bad |= low;
    }
    top = max8(top, least);
    f8 scale = (f8)(splat8((uint32_t)(254 + m->fraction) << 23) - (u8)top);
    f8 unit = top * power_of_two(-m->fraction);
    i8 sum[2] = {__builtin_convertvector(t->c * scale, i8), {0}};
    for (unsigned i = 0; i < count; i++)
        sum[i & 1] += __builtin_convertvector(product[i] * scale, i8);
    f4 half[2];
    for (int h = 0; h < 2; h++) {
        i4 s0, s1;
        f4 u;
        memcpy(&s0, (const char *)&sum[0] + 16 * h, 16);
        memcpy(&s1, (const char *)&sum[1] + 16 * h, 16);
        memcpy(&u, (const char *)&unit + 16 * h, 16);
        half[h] = finish(s0, s1, u, end);
    }
    memcpy(&t->c, half, sizeof t->c);
}

ALWAYS void chain(struct terms *t, const struct row *a, const struct group *b, unsigned k,
                  unsigned block, const struct tensor_model *m, enum end end) {
    for (unsigned i = 0; i < k; i += block)
        one_block(t, a->value + i, a->power + i, b->value + i, b->power + i, block, m, end);
}

/* ---- accumulators ---------------------------------------------------------------------------- */

/* Row i of columns 8 j .. 8 j + 7 as bit patterns. */
ALWAYS void load_c(uint32_t c[GROUP], const struct warp *w, const struct accumulators *acc,
                   unsigned i, unsigned j, bool f16) {
    if (acc->zero) {
        memset(c, 0, GROUP * 4);
    } else if (f16) {
        const u32a *r = row32(w, acc->c[2 * j + i / 8]) + i % 8 * 4;
        for (int t = 0; t < 4; t++) {
            c[2 * t] = r[t] & 0xffff;
            c[2 * t + 1] = r[t] >> 16;
        }
    } else {
        const u32a *even = row32(w, acc->c[4 * j + i / 8 * 2]) + i % 8 * 4;
        const u32a *odd = row32(w, acc->c[4 * j + i / 8 * 2 + 1]) + i % 8 * 4;
        for (int t = 0; t < 4; t++) {
            c[2 * t] = even[t];
            c[2 * t + 1] = odd[t];
        }
    }
}

ALWAYS void store_d(struct warp *w, const struct accumulators *acc, const uint32_t d[GROUP],
                    unsigned i, unsigned j, bool f16) {
    if (f16) {
        u32a *r = row32(w, acc->d[2 * j + i / 8]) + i % 8 * 4;
        for (int t = 0; t < 4; t++)
            r[t] = d[2 * t] | d[2 * t + 1] << 16;
    } else {
        u32a *even = row32(w, acc->d[4 * j + i / 8 * 2]) + i % 8 * 4;
        u32a *odd = row32(w, acc->d[4 * j + i / 8 * 2 + 1]) + i % 8 * 4;
        for (int t = 0; t < 4; t++) {
            even[t] = d[2 * t];
            odd[t] = d[2 * t + 1];
        }
    }
}

/* ---- everything ------------------------------------------------------------------------------ */

static uint32_t element_bits(const uint8_t *row, unsigned i, unsigned bytes) {
    uint32_t v = 0;
    memcpy(&v, row + i * bytes, bytes);
    return v;
}

/* Of one output: is its NaN or infinity born here? */
static void count_births(struct dev_events *e, const enum tensor_type type[2], const uint32_t *a,
                         const uint32_t *b, unsigned k, uint32_t c, uint32_t d, bool f16) {
    enum tensor_type result = f16 ? TENSOR_F16 : TENSOR_F32;
    enum tensor_class class = tensor_class_of(result, d), worst = tensor_class_of(result, c);
    if (class == TENSOR_FINITE)
        return;
    for (unsigned i = 0; i < k; i++) {
        enum tensor_class ca = tensor_class_of(type[0], a[i]), cb = tensor_class_of(type[1], b[i]);
        worst = ca > worst ? ca : worst;
        worst = cb > worst ? cb : worst;
    }
    e->nan_born += class == TENSOR_NAN && worst != TENSOR_NAN;
    e->inf_born += class == TENSOR_INFINITE && worst == TENSOR_FINITE;
}

static void exactly(uint32_t d[GROUP], struct warp *w, const struct xinsn *x,
                    const struct tensor_model *model, const uint8_t *a,
                    const uint8_t (*b)[ROW_BYTES]) {
    const struct ptx_insn *in = x->insn;
    unsigned k = in->mods.k, bytes = tensor_element_bytes(in->type2);
    const enum tensor_type type[2] = {tensor_element_of(in->type2), tensor_element_of(in->type3)};
    uint32_t pa[ROW_BYTES], pb[ROW_BYTES];
    for (unsigned i = 0; i < k; i++)
        pa[i] = element_bits(a, i, bytes);
    for (unsigned j = 0; j < GROUP; j++) {
        for (unsigned i = 0; i < k; i++)
            pb[i] = element_bits(b[j], i, bytes);
        uint32_t c = d[j];
        d[j] = tensor_dot(model, type, pa, pb, k, c);
        if (w->launch->shadow)
            count_births(&w->launch->run->events, type, pa, pb, k, c, d[j], in->type == PTX_F16);
    }
}

/* Some of 8 results is NaN or infinite, which only exactly() counts as an event. */
static bool is_remarkable(const f8 *d) {
    const u32a *bits = (const u32a *)d;
    bool special = false;
    for (int n = 0; n < GROUP; n++)
        special |= (bits[n] & 0x7f800000u) == 0x7f800000u;
    return special;
}

/* false: NaN, infinity, or exponents too great. */
static bool in_range(const struct range *a, const struct range *b) {
    return !a->special && !b->special && (double)a->most * b->most <= MOST;
}

ALWAYS void float_columns(struct warp *w, const struct xinsn *x, const struct factors *f,
                          const struct accumulators *acc, const struct row rows[16], unsigned j,
                          const struct tensor_model *model, enum tensor_type type, unsigned k,
                          bool f16) {
    struct group g;
    decode_group(&g, f->b + 8 * j, k, type);
    for (unsigned i = 0; i < 16; i++) {
        uint32_t c[GROUP] __attribute__((aligned(32)));
        struct terms t = {.bad = {0}};
        load_c(c, w, acc, i, j, f16);
        bool fast = in_range(&rows[i].range, &g.range);
        if (fast) {
            for (int n = 0; n < GROUP; n++)
                ((f32a *)&t.c)[n] = half_as_f32(f16 ? f16_to_f32(c[n]) : c[n]);
            t.deep = (double)rows[i].range.least * g.range.least < 0x1p-126;
            if (model->block >= 16 && k == 16)
                chain(&t, &rows[i], &g, 16, 16, model, f16 ? END_F16 : END_F32);
            else if (model->block >= 8 && k == 16)
                chain(&t, &rows[i], &g, 16, 8, model, f16 ? END_F16 : END_F32);
            else if (model->block >= 8 && k == 8)
                chain(&t, &rows[i], &g, 8, 8, model, f16 ? END_F16 : END_F32);
            else
                chain(&t, &rows[i], &g, k, 4, model, f16 ? END_F16 : END_F32);
        }
        if (!fast || any8(t.bad) || (w->launch->shadow && is_remarkable(&t.c)))
            exactly(c, w, x, model, f->a[i], f->b + 8 * j);
        else
            for (int n = 0; n < GROUP; n++) {
                uint32_t bits = ((const u32a *)&t.c)[n];
                c[n] = f16 ? f32_to_f16(bits) : bits;
            }
        store_d(w, acc, c, i, j, f16);
    }
}

#define FLOATS(name, type, k, f16)                                                       \
    static void name(struct warp *w, const struct xinsn *x, const struct factors *f,     \
                     const struct accumulators *acc, const struct tensor_model *model) { \
        struct row rows[16];                                                             \
        for (unsigned i = 0; i < 16; i++)                                                \
            rows[i].range = decode(rows[i].value, rows[i].power, f->a[i], k, type);      \
        for (unsigned j = 0; j < x->insn->mods.n / 8u; j++)                              \
            float_columns(w, x, f, acc, rows, j, model, type, k, f16);                   \
    }
FLOATS(f16_k16, TENSOR_F16, 16, false)
FLOATS(f16_k8, TENSOR_F16, 8, false)
FLOATS(f16_k16_f16, TENSOR_F16, 16, true)
FLOATS(f16_k8_f16, TENSOR_F16, 8, true)
FLOATS(bf16_k16, TENSOR_BF16, 16, false)
FLOATS(bf16_k8, TENSOR_BF16, 8, false)
FLOATS(tf32_k8, TENSOR_TF32, 8, false)
FLOATS(tf32_k4, TENSOR_TF32, 4, false)

/* ---- 8-bit floats ---------------------------------------------------------------------------- */

/* Which way a core takes 8-bit operands; blocks are of 8, 16 or 32 products. */
struct eight {
    bool through_f16;
    unsigned block;
    enum end end;
};

static struct range decode_eight(float *value, float *power, const uint8_t *at, unsigned k,
                                 enum tensor_type type, bool through_f16) {
    bool wide = k == 32, e4m3 = type == TENSOR_E4M3;
#define ORDERED(k, type) \
    (through_f16 ? decode_ordered(value, power, at, k, type, true) \
                 : decode_ordered(value, power, at, k, type, false))
    if (e4m3)
        return wide ? ORDERED(32, TENSOR_E4M3) : ORDERED(16, TENSOR_E4M3);
    return wide ? ORDERED(32, TENSOR_E5M2) : ORDERED(16, TENSOR_E5M2);
#undef ORDERED
}

static void decode_eights(struct group *g, const uint8_t (*at)[ROW_BYTES], unsigned k,
                          enum tensor_type type, bool through_f16) {
    g->range = (struct range){.most = 0, .least = 1, .special = false};
    for (unsigned j = 0; j < GROUP; j++) {
        float value[MAX_K], power[MAX_K];
        struct range r = decode_eight(value, power, at[j], k, type, through_f16);
        for (unsigned i = 0; i < k; i++) {
            ((f32a *)g->value)[i * GROUP + j] = value[i];
            ((f32a *)g->power)[i * GROUP + j] = power[i];
        }
        g->range.most = r.most > g->range.most ? r.most : g->range.most;
        g->range.least = r.least < g->range.least ? r.least : g->range.least;
        g->range.special |= r.special;
    }
}

/* sum + c, rounded to nearest once: f16 sums are exact in binary64. */
ALWAYS f8 add_c(f8 sum, f8 c, bool f16) {
    if (!f16)
        return sum + c;
    f4 half[2];
    for (int h = 0; h < 2; h++) {
        f4 a, b;
        memcpy(&a, (const char *)&sum + 16 * h, 16);
        memcpy(&b, (const char *)&c + 16 * h, 16);
        half[h] = round_f16(__builtin_convertvector(a, d4) + __builtin_convertvector(b, d4));
    }
    memcpy(&sum, half, sizeof sum);
    return sum;
}

ALWAYS void eight_chain(struct terms *t, const struct row *a, const struct group *b, unsigned k,
                        const struct eight *e, const struct tensor_model *model, enum end end) {
    if (e->block == 32 && k == 32)
        chain(t, a, b, 32, 32, model, end);
    else if (e->block >= 16 && k == 32)
        chain(t, a, b, 32, 16, model, end);
    else if (e->block >= 16)
        chain(t, a, b, 16, 16, model, end);
    else
        chain(t, a, b, 16, 8, model, end);
}

ALWAYS void eight_columns(struct warp *w, const struct xinsn *x, const struct factors *f,
                          const struct accumulators *acc, const struct row rows[16],
                          const struct group *g, unsigned j, const struct eight *e,
                          const struct tensor_model *model, enum end end) {
    bool f16 = end == END_F16;
    for (unsigned i = 0; i < 16; i++) {
        uint32_t c[GROUP] __attribute__((aligned(32)));
        struct terms t = {.bad = {0}};
        load_c(c, w, acc, i, j, f16);
        bool fast = in_range(&rows[i].range, &g->range);
        f8 addend = {0};
        if (fast) {
            for (int n = 0; n < GROUP; n++)
                ((f32a *)&t.c)[n] = half_as_f32(f16 ? f16_to_f32(c[n]) : c[n]);
            t.deep = (double)rows[i].range.least * g->range.least < 0x1p-126;
            if (e->through_f16) {
                addend = t.c;
                t.c = (f8){0};
            }
            eight_chain(&t, &rows[i], g, x->insn->mods.k, e, model, end);
            if (e->through_f16) /* NaN and infinity, also of c, go the other way below */
                t.c = add_c(t.c, addend, f16);
        }
        if (!fast || any8(t.bad) || is_remarkable(&t.c))
            exactly(c, w, x, model, f->a[i], f->b + 8 * j);
        else
            for (int n = 0; n < GROUP; n++) {
                uint32_t bits = ((const u32a *)&t.c)[n];
                c[n] = f16 ? f32_to_f16(bits) : bits;
            }
        store_d(w, acc, c, i, j, f16);
    }
}

static void eights(struct warp *w, const struct xinsn *x, const struct factors *f,
                   const struct accumulators *acc, const struct tensor_model *model) {
    const struct ptx_insn *in = x->insn;
    const struct eight e = {.through_f16 = model->through_f16,
                            .block = model->through_f16 ? in->mods.k / 2u : model->block,
                            .end = model->end == TENSOR_RNE_F16    ? END_F16
                                   : model->end == TENSOR_RZ_E8M13 ? END_E8M13
                                                                   : END_F32};
    struct row rows[16];
    struct group g;
    for (unsigned i = 0; i < 16; i++)
        rows[i].range = decode_eight(rows[i].value, rows[i].power, f->a[i], in->mods.k,
                                     tensor_element_of(in->type2), e.through_f16);
    for (unsigned j = 0; j < in->mods.n / 8u; j++) {
        decode_eights(&g, f->b + 8 * j, in->mods.k, tensor_element_of(in->type3), e.through_f16);
        switch (e.end) {
        case END_F32: eight_columns(w, x, f, acc, rows, &g, j, &e, model, END_F32); break;
        case END_F16: eight_columns(w, x, f, acc, rows, &g, j, &e, model, END_F16); break;
        case END_E8M13: eight_columns(w, x, f, acc, rows, &g, j, &e, model, END_E8M13); break;
        }
    }
}

/* s8 and u8: exact sums, then cut to 32 bits or, with .satfinite, clamped. */
static void integers(struct warp *w, const struct xinsn *x, const struct factors *f,
                     const struct accumulators *acc) {
    const struct ptx_insn *in = x->insn;
    bool a_signed = in->type2 == PTX_S8, b_signed = in->type3 == PTX_S8;
    unsigned rows = in->mods.m == 8 ? 8 : 16;
    for (unsigned j = 0; j < in->mods.n / 8u; j++)
        for (unsigned i = 0; i < rows; i++) {
            uint32_t c[GROUP];
            load_c(c, w, acc, i, j, false);
            for (unsigned n = 0; n < GROUP; n++) {
                int32_t sum = 0; /* at most 32 * 255 * 255 */
                for (unsigned k = 0; k < in->mods.k; k++) {
                    int32_t a = f->a[i][k], b = f->b[8 * j + n][k];
                    sum += (a_signed ? (int8_t)a : a) * (b_signed ? (int8_t)b : b);
                }
                int64_t d = (int64_t)(int32_t)c[n] + sum;
                if (in->mods.satfinite)
                    d = d > INT32_MAX ? INT32_MAX : d < INT32_MIN ? INT32_MIN : d;
                c[n] = (uint32_t)d;
            }
            store_d(w, acc, c, i, j, false);
        }
}

void ISA_NAME(tensor_multiply)(struct warp *w, const struct xinsn *x, struct factors *f,
                               const struct accumulators *acc) {
    struct tensor_model model;
    memcpy(&model, &x->imm, sizeof model);
    bool f16 = x->insn->type == PTX_F16, k16 = x->insn->mods.k == 16, k8 = x->insn->mods.k == 8;
    switch (x->insn->type2) {
    case PTX_F16:
        if (f16)
            (k16 ? f16_k16_f16 : f16_k8_f16)(w, x, f, acc, &model);
        else
            (k16 ? f16_k16 : f16_k8)(w, x, f, acc, &model);
        break;
    case PTX_BF16:
        (k16 ? bf16_k16 : bf16_k8)(w, x, f, acc, &model);
        break;
    case PTX_TF32:
        (k8 ? tf32_k8 : tf32_k4)(w, x, f, acc, &model);
        break;
    case PTX_S8:
    case PTX_U8:
        integers(w, x, f, acc);
        break;
    default:
        eights(w, x, f, acc, &model);
    }
}

void ISA_NAME(tensor_gather)(uint8_t (*to)[ROW_BYTES], const struct warp *w, const uint32_t *list,
                             unsigned count, unsigned rows) {
    for (unsigned r = 0; r < count; r++)
        for (unsigned g = 0; g < 8; g++)
            memcpy(&to[r % rows * 8 + g][r / rows * 16], w->file + list[r] + g * 16, 16);
}

/* ---- f64: a chain of fused multiply-adds in increasing k ------------------------------------- */

#define QUIET 0x0008000000000000u

ALWAYS bool is_nan64(uint64_t bits) {
    return (bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

/* A NaN is the first of b, c, a that is one, quieted (H200), as in fma.f64. */
static uint64_t nan_of(uint64_t a, uint64_t b, uint64_t c) {
    return is_nan64(b)   ? b | QUIET
           : is_nan64(c) ? c | QUIET
           : is_nan64(a) ? a | QUIET
                         : 0xfff8000000000000u;
}

ALWAYS double fma_gpu(double a, double b, double c) {
    double d = fma(a, b, c);
    if (d == d)
        return d;
    uint64_t bits[3];
    memcpy(&bits[0], &a, 8);
    memcpy(&bits[1], &b, 8);
    memcpy(&bits[2], &c, 8);
    bits[0] = nan_of(bits[0], bits[1], bits[2]);
    memcpy(&d, &bits[0], 8);
    return d;
}

void ISA_NAME(tensor_doubles)(struct warp *w, const struct xinsn *x, const uint32_t *list) {
    unsigned rows = x->insn->mods.m / 8, steps = x->insn->mods.k / 4;
    const uint32_t *d = list, *a = d + 2 * rows, *b = a + rows * steps, *c = b + steps;
    double result[4][LANES];
    for (unsigned r = 0; r < 2 * rows; r++)
        for (unsigned lane = 0; lane < LANES; lane++) {
            unsigned g = lane / 4, column = lane % 4 * 2 + r % 2;
            double sum = ((const f64a *)row64(w, c[r]))[lane];
            for (unsigned k = 0; k < 4 * steps; k++)
                sum = fma_gpu(((const f64a *)row64(w, a[k / 4 * rows + r / 2]))[g * 4 + k % 4],
                              ((const f64a *)row64(w, b[k / 4]))[column * 4 + k % 4], sum);
            result[r][lane] = sum;
        }
    for (unsigned r = 0; r < 2 * rows; r++)
        memcpy(row64(w, d[r]), result[r], sizeof result[r]);
}

bool ISA_NAME(tensor_crossed)(uint32_t out[SCRATCH_ROWS], struct warp *w, const struct xinsn *x,
                              const uint32_t *c, const uint32_t *d, unsigned count) {
    bool crossed = false;
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < count; k++)
            crossed |= i != k && c[i] == d[k];
    for (unsigned i = 0; crossed && i < count; i++) {
        out[i] = x->d + i * ROW32;
        memcpy(w->file + out[i], w->file + c[i], ROW32);
    }
    return crossed;
}

/* ---- mma ------------------------------------------------------------------------------------- */

ALWAYS const struct xinsn *mma(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->e);
    const struct ptx_insn *in = x->insn;
    const uint32_t *list[4]; /* d, a, b, c */
    for (int g = 0; g < 4; g++)
        list[g] = x->list + (in->first[g] - in->first[0]);
    if (in->type == PTX_F64) {
        ISA_NAME(tensor_doubles)(w, x, list[0]);
        return x + 1;
    }
    struct factors f;
    unsigned rows = in->mods.m / 8;
    if (rows == 1)
        memset(f.a + 8, 0, sizeof f.a / 2);
    ISA_NAME(tensor_gather)(f.a, w, list[1], in->first[2] - in->first[1], rows);
    ISA_NAME(tensor_gather)(f.b, w, list[2], in->first[3] - in->first[2], 1);
    uint32_t copy[SCRATCH_ROWS];
    if (ISA_NAME(tensor_crossed)(copy, w, x, list[3], list[0], in->first[1] - in->first[0]))
        list[3] = copy;
    ISA_NAME(tensor_multiply)(w, x, &f, &(struct accumulators){.c = list[3], .d = list[0]});
    return x + 1;
}
VARIANTS(mma, )
DECLARE_BIND(mma) {
    (void)in;
    return USE(x, mma);
}
