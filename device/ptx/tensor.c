/* tensor.c - one output of a tensor core, in integers; see tensor.h. */
#include <string.h>

#include "device/ptx/tensor.h"

struct format {
    int bits, fraction, least; /* least: exponent of subnormals and the smallest normal */
    int bias;
    uint32_t top;     /* exponent field of infinity and NaN */
    unsigned ignored; /* low bits of the register that do not count */
    bool has_infinity;
};

static const struct format formats[] = {
    [TENSOR_F16] = {16, 10, -14, 15, 31, 0, true},
    [TENSOR_BF16] = {16, 7, -126, 127, 255, 0, true},
    [TENSOR_TF32] = {19, 10, -126, 127, 255, 13, true},
    [TENSOR_E4M3] = {8, 3, -6, 7, 15, 0, false},
    [TENSOR_E5M2] = {8, 2, -14, 15, 31, 0, true},
    [TENSOR_F32] = {32, 23, -126, 127, 255, 0, true},
};

struct number {
    enum tensor_class class;
    bool negative;
    uint64_t significand; /* of 2^(exponent - fraction) */
    int exponent;
};

static struct number decode(const struct format *f, uint32_t bits) {
    bits >>= f->ignored;
    uint32_t field = bits >> f->fraction & ((1u << (f->bits - 1 - f->fraction)) - 1);
    uint32_t low = bits & ((1u << f->fraction) - 1);
    struct number x = {.class = TENSOR_FINITE, .negative = bits >> (f->bits - 1) & 1};
    if (field == f->top && f->has_infinity) {
        x.class = low ? TENSOR_NAN : TENSOR_INFINITE;
    } else if (field == f->top && low == (1u << f->fraction) - 1) {
        x.class = TENSOR_NAN;
    } else {
        x.significand = field ? low | 1u << f->fraction : low;
        x.exponent = field ? (int)field - f->bias : f->least;
    }
    return x;
}

enum tensor_class tensor_class_of(enum tensor_type type, uint32_t bits) {
    return decode(&formats[type], bits).class;
}

static struct number product(struct number a, struct number b) {
    struct number p = {TENSOR_FINITE, a.negative != b.negative, a.significand * b.significand,
                       a.exponent + b.exponent};
    bool a_zero = a.class == TENSOR_FINITE && !a.significand,
         b_zero = b.class == TENSOR_FINITE && !b.significand;
    if (a.class == TENSOR_NAN || b.class == TENSOR_NAN)
        p.class = TENSOR_NAN;
    else if (a.class == TENSOR_INFINITE || b.class == TENSOR_INFINITE)
        p.class = a_zero || b_zero ? TENSOR_NAN : TENSOR_INFINITE;
    return p;
}

/* significand * 2^shift, cut. */
static uint64_t shifted(uint64_t significand, int shift) {
    if (shift >= 0)
        return significand << shift;
    return shift > -64 ? significand >> -shift : 0;
}

/* The result formats: fraction bits, least exponent. */
static const struct format *end_format(const struct tensor_model *m) {
    return &formats[m->end == TENSOR_RNE_F16 ? TENSOR_F16 : TENSOR_F32];
}

/* sum * 2^unit, rounded; unit is the exponent of one unit of the sum. */
static uint32_t finish(const struct tensor_model *m, int64_t sum, int unit) {
    const struct format *f = end_format(m);
    int fraction = m->end == TENSOR_RZ_E8M13 ? 13 : f->fraction;
    uint64_t magnitude = sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum;
    if (!magnitude)
        return 0;
    int exponent = 63 - __builtin_clzll(magnitude) + unit;
    int last = (exponent > f->least ? exponent : f->least) - fraction;
    uint64_t kept = shifted(magnitude, unit - last);
    if (m->end == TENSOR_RNE_F16 && last > unit) {
        int drop = last - unit < 63 ? last - unit : 63;
        uint64_t rest = magnitude & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
        kept += rest > half || (rest == half && (kept & 1));
    }
    if (!kept)
        return 0;                 /* also for a negative sum */
    if (kept >> (fraction + 1)) { /* rounded up to the next power of two */
        kept >>= 1;
        last++;
    }
    uint32_t sign = sum < 0 ? 1u << (f->bits - 1) : 0;
    int field = kept >> fraction ? last + fraction + f->bias : 0;
    if (field >= (int)f->top)
        return sign | f->top << f->fraction;
    uint64_t low = kept & ((UINT64_C(1) << fraction) - 1);
    return sign | (uint32_t)field << f->fraction | (uint32_t)low << (f->fraction - fraction);
}

static uint32_t special(const struct format *f, bool nan, bool negative) {
    uint32_t infinity = f->top << f->fraction;
    if (nan)
        return (1u << (f->bits - 1)) - 1;
    return negative ? infinity | 1u << (f->bits - 1) : infinity;
}

#define MAX_BLOCK 64

static uint32_t block(const struct tensor_model *m, const enum tensor_type type[2],
                      const uint32_t *a, const uint32_t *b, unsigned count, uint32_t c) {
    const struct format *fa = &formats[type[0]], *fb = &formats[type[1]];
    const struct format *out = end_format(m);
    struct number term[MAX_BLOCK + 1];
    int fraction[MAX_BLOCK + 1], top = m->floor;
    bool nan = false, infinite[2] = {false, false};
    for (unsigned i = 0; i < count; i++) {
        term[i] = product(decode(fa, a[i]), decode(fb, b[i]));
        fraction[i] = fa->fraction + fb->fraction;
    }
    term[count] = decode(out, c);
    fraction[count] = out->fraction;
    for (unsigned i = 0; i <= count; i++) {
        nan |= term[i].class == TENSOR_NAN;
        infinite[term[i].negative] |= term[i].class == TENSOR_INFINITE;
        if (term[i].class == TENSOR_FINITE && term[i].significand && term[i].exponent > top)
            top = term[i].exponent;
    }
    if (nan || infinite[0] || infinite[1])
        return special(out, nan || (infinite[0] && infinite[1]), infinite[1]);
    int64_t sum = 0;
    for (unsigned i = 0; i <= count; i++) {
        int shift = m->fraction - fraction[i] - (top - term[i].exponent);
        uint64_t t = term[i].significand ? shifted(term[i].significand, shift) : 0;
        sum += term[i].negative ? -(int64_t)t : (int64_t)t;
    }
    return finish(m, sum, top - m->fraction);
}

/* ---- 8-bit operands through f16 -------------------------------------------------------------- */

/* Exact; the number's subnormals become normal, so that its exponent is another. */
static uint32_t widened(enum tensor_type type, uint32_t bits) {
    const struct format *f = &formats[type], *to = &formats[TENSOR_F16];
    struct number x = decode(f, bits);
    uint32_t sign = (uint32_t)x.negative << 15;
    if (x.class == TENSOR_NAN)
        return special(to, true, false);
    if (x.class == TENSOR_INFINITE)
        return special(to, false, x.negative);
    if (!x.significand)
        return sign;
    int up = __builtin_clzll(x.significand) - (63 - 10); /* to 11 bits */
    int field = x.exponent - f->fraction + 10 - up + 15;
    uint32_t significand = (uint32_t)x.significand << up;
    if (field <= 0) /* e5m2 has f16's exponents: what is lost is zero */
        return sign | significand >> (1 - field);
    return sign | (uint32_t)field << 10 | (significand & 0x3ff);
}

static uint32_t add_f16(uint32_t a, uint32_t b) {
    static const struct tensor_model m = {.end = TENSOR_RNE_F16};
    const struct format *f = &formats[TENSOR_F16];
    const struct number x = decode(f, a), y = decode(f, b);
    bool nan = x.class == TENSOR_NAN || y.class == TENSOR_NAN;
    if (nan || x.class == TENSOR_INFINITE || y.class == TENSOR_INFINITE) {
        bool both = x.class == TENSOR_INFINITE && y.class == TENSOR_INFINITE;
        return special(f, nan || (both && x.negative != y.negative),
                       x.class == TENSOR_INFINITE ? x.negative : y.negative);
    }
    int64_t sx = (int64_t)(x.significand << (x.exponent + 14));
    int64_t sy = (int64_t)(y.significand << (y.exponent + 14));
    return finish(&m, (x.negative ? -sx : sx) + (y.negative ? -sy : sy), -24);
}

static uint32_t add_f32(uint32_t a, uint32_t b) {
    float x, y;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    x += y;
    memcpy(&a, &x, 4);
    return x == x ? a : 0x7fffffff;
}

static uint32_t dot_through_f16(const struct tensor_model *m, const enum tensor_type type[2],
                                const uint32_t *a, const uint32_t *b, unsigned k, uint32_t c) {
    static const enum tensor_type f16[2] = {TENSOR_F16, TENSOR_F16};
    uint32_t wide_a[MAX_BLOCK], wide_b[MAX_BLOCK], sum = 0;
    unsigned n = 0;
    for (unsigned odd = 0; odd < 2; odd++)
        for (unsigned i = 0; i < k; i++)
            if (i / 2 % 2 == odd) {
                wide_a[n] = widened(type[0], a[i]);
                wide_b[n++] = widened(type[1], b[i]);
            }
    for (unsigned i = 0; i < k; i += k / 2)
        sum = block(m, f16, wide_a + i, wide_b + i, k / 2, sum);
    return m->end == TENSOR_RNE_F16 ? add_f16(sum, c) : add_f32(sum, c);
}

uint32_t tensor_dot(const struct tensor_model *m, const enum tensor_type type[2], const uint32_t *a,
                    const uint32_t *b, unsigned k, uint32_t c) {
    if (m->through_f16)
        return dot_through_f16(m, type, a, b, k, c);
    for (unsigned i = 0; i < k; i += m->block)
        c = block(m, type, a + i, b + i, k - i < m->block ? k - i : m->block, c);
    return c;
}
