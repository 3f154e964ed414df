/*
 * rows_half.c - f16 and bf16 arithmetic, extremes, comparisons, ex2, tanh; single and in pairs.
 *
 * a: operation, b: PTX_F16 or PTX_BF16, c: flags.  Arithmetic is exact in MPFR, then rounded once.
 */
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

#include "device/ptx/mufu.h"
#include "tests/ptx/rows.h"

enum { FTZ = 1, SAT = 2, RELU = 4, NANS = 8, XORSIGN = 16, PAIR = 32 };

#define NAN16 0x7fffu

static const struct ref_format *format(const struct row_case *k) {
    return k->b == PTX_F16 ? &ref_f16 : &ref_bf16;
}

static bool is_nan(const struct row_case *k, uint64_t bits) {
    return ref_is_nan(format(k), bits);
}

static uint64_t flush(const struct row_case *k, uint64_t bits) {
    return k->c & FTZ && (bits & 0x7c00) == 0 ? bits & 0x8000 : bits;
}

typedef uint64_t half_fn(const struct row_case *k, uint64_t a, uint64_t b, uint64_t c);

/* One value, or both of a pair. */
static uint64_t each(const struct row_case *k, const uint64_t in[4], half_fn *f) {
    uint64_t r = f(k, in[0] & 0xffff, in[1] & 0xffff, in[2] & 0xffff);
    if (k->c & PAIR)
        r |= f(k, in[0] >> 16 & 0xffff, in[1] >> 16 & 0xffff, in[2] >> 16 & 0xffff) << 16;
    return r;
}

static uint64_t limit(const struct row_case *k, uint64_t r) {
    bool negative = r & 0x8000, nan = is_nan(k, r);
    if (k->c & SAT)
        return nan || negative ? 0 : r > 0x3c00 ? 0x3c00 : r;
    if (nan)
        return NAN16;
    return k->c & RELU && negative ? 0 : r;
}

/* .ftz: rounded to 11 bits with any exponent, is it below 2^-14? */
static bool is_tiny(mpfr_srcptr x) {
    mpfr_t r;
    mpfr_init2(r, 11);
    mpfr_set(r, x, MPFR_RNDN);
    bool tiny = !mpfr_nan_p(r) && mpfr_cmpabs(r, x) != 2 && mpfr_get_exp(r) <= -14;
    tiny = mpfr_regular_p(r) && tiny;
    mpfr_clear(r);
    return tiny;
}

static uint64_t arith_one(const struct row_case *k, uint64_t a, uint64_t b, uint64_t c) {
    mpfr_t x, y, z;
    mpfr_inits2(REF_PRECISION, x, y, z, (mpfr_ptr)0);
    ref_set(x, format(k), flush(k, a));
    ref_set(y, format(k), flush(k, b));
    ref_set(z, format(k), flush(k, c));
    switch (k->a) {
    case REF_ADD:
        mpfr_add(x, x, y, MPFR_RNDN);
        break;
    case REF_SUB:
        mpfr_sub(x, x, y, MPFR_RNDN);
        break;
    case REF_MUL:
        mpfr_mul(x, x, y, MPFR_RNDN);
        break;
    default:
        mpfr_fma(x, x, y, z, MPFR_RNDN);
        break;
    }
    uint64_t r = mpfr_nan_p(x) ? NAN16 : ref_round(x, format(k), REF_RN);
    if (k->c & FTZ && is_tiny(x))
        r &= 0x8000;
    mpfr_clears(x, y, z, (mpfr_ptr)0);
    return limit(k, r);
}
static uint64_t arith(const struct row_case *k, const uint64_t in[4]) {
    return each(k, in, arith_one);
}

/* a: 1 max, 0 min */
static uint64_t extreme_one(const struct row_case *k, uint64_t a, uint64_t b, uint64_t c) {
    (void)c;
    a = flush(k, a);
    b = flush(k, b);
    uint64_t sign = (a ^ b) & 0x8000;
    bool nan_a = is_nan(k, a), nan_b = is_nan(k, b);
    if ((nan_a && nan_b) || (k->c & NANS && (nan_a || nan_b)))
        return NAN16;
    if (k->c & XORSIGN) {
        a &= 0x7fff;
        b &= 0x7fff;
    }
    uint64_t r = a;
    if (nan_a || nan_b) {
        r = nan_a ? b : a;
    } else {
        mpfr_t x, y;
        mpfr_inits2(24, x, y, (mpfr_ptr)0);
        ref_set(x, format(k), a);
        ref_set(y, format(k), b);
        int order = mpfr_cmp(x, y);
        if (order == 0) /* -0 < +0 */
            order = (int)(b >> 15) - (int)(a >> 15);
        r = (order < 0) == (k->a == 1) ? b : a;
        mpfr_clears(x, y, (mpfr_ptr)0);
    }
    return k->c & XORSIGN ? r | sign : r;
}
static uint64_t extreme(const struct row_case *k, const uint64_t in[4]) {
    return each(k, in, extreme_one);
}

/* a: 1 neg, 0 abs */
static uint64_t sign_one(const struct row_case *k, uint64_t a, uint64_t b, uint64_t c) {
    (void)b, (void)c;
    a = flush(k, a);
    return is_nan(k, a) ? NAN16 : k->a ? a ^ 0x8000 : a & 0x7fff;
}
static uint64_t sign(const struct row_case *k, const uint64_t in[4]) {
    return each(k, in, sign_one);
}

/* ---- ex2, tanh: docs/emulator.md says where the rules and exceptions come from --------------- */

static uint64_t ex2_one(const struct row_case *k, uint64_t a, uint64_t b, uint64_t c) {
    (void)b, (void)c;
    if (is_nan(k, a))
        return NAN16;
    mpfr_t x;
    mpfr_init2(x, 24);
    ref_set(x, format(k), a);
    ref_set(x, &ref_binary32, mufu_ex2((uint32_t)ref_round(x, &ref_binary32, REF_RN)));
    uint64_t r = ref_round(x, format(k), REF_RZ);
    if (mpfr_cmp_ui_2exp(x, 1, k->b == PTX_F16 ? 16 : 128) >= 0)
        r = format(k)->infinity;
    mpfr_clear(x);
    return r;
}
static uint64_t ex2(const struct row_case *k, const uint64_t in[4]) {
    return each(k, in, ex2_one);
}

/* Results that are not the true value cut, by how far they are from it. */
static const uint16_t tanh_f16_above[] = {0x29c6, 0x2c95, 0x2c96, 0x2e39, 0x2e9d, 0x3064,
                                          0x323f, 0x32ff, 0x355b, 0x372d, 0x3824, 0x399a,
                                          0x3cc9, 0x3de3, 0x3ed6, 0x4080};
static const uint16_t tanh_f16_below[] = {0x2d3f, 0x39f8, 0x3c8e, 0x3c9d,
                                          0x3db8, 0x3e23, 0x3eab, 0x4429};

static bool listed(uint64_t x, const uint16_t *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}
#define LISTED(x, list) listed((x), (list), sizeof(list) / sizeof *(list))

static uint64_t tanh_one(const struct row_case *k, uint64_t a, uint64_t b, uint64_t c) {
    (void)b, (void)c;
    uint64_t m = a & 0x7fff, s = a & 0x8000, r;
    if (is_nan(k, a))
        return NAN16;
    if (m <= (k->b == PTX_F16 ? 0x1c07u : 0x3b80u))
        return a;
    if (m >= (k->b == PTX_F16 ? 0x4800u : 0x4100u))
        return s | (k->b == PTX_F16 ? 0x3c00 : 0x3f80);
    mpfr_t x;
    mpfr_init2(x, 200);
    ref_set(x, format(k), m);
    mpfr_tanh(x, x, MPFR_RNDN);
    r = ref_round(x, format(k), REF_RZ);
    mpfr_clear(x);
    if (k->b == PTX_F16)
        r = r + LISTED(m, tanh_f16_above) - LISTED(m, tanh_f16_below);
    else
        r -= m == 0x3f3f;
    return s | r;
}
static uint64_t tanh_half(const struct row_case *k, const uint64_t in[4]) {
    return each(k, in, tanh_one);
}

/* ---- comparisons ----------------------------------------------------------------------------- */

enum { EQ, NE, LT, LE, GT, GE, NUM, NAN_ };
enum { UNORDERED = 8 };
enum { AND = 64, OR = 128, XOR = 256 };

static bool holds(const struct row_case *k, uint64_t a, uint64_t b) {
    a = flush(k, a);
    b = flush(k, b);
    bool nan = is_nan(k, a) || is_nan(k, b);
    if ((k->a & 7) == NUM || (k->a & 7) == NAN_)
        return nan == ((k->a & 7) == NAN_);
    if (nan)
        return k->a & UNORDERED;
    mpfr_t x, y;
    mpfr_inits2(24, x, y, (mpfr_ptr)0);
    ref_set(x, format(k), a);
    ref_set(y, format(k), b);
    int order = mpfr_cmp(x, y);
    mpfr_clears(x, y, (mpfr_ptr)0);
    switch (k->a & 7) {
    case EQ:
        return order == 0;
    case NE:
        return order != 0;
    case LT:
        return order < 0;
    case LE:
        return order <= 0;
    case GT:
        return order > 0;
    default:
        return order >= 0;
    }
}

static bool combine(const struct row_case *k, bool r, bool c) {
    return k->c & AND ? r && c : k->c & OR ? r || c : k->c & XOR ? r != c : r;
}

static uint64_t compare(const struct row_case *k, const uint64_t in[4]) {
    bool c = in[2] & 1, p = holds(k, in[0] & 0xffff, in[1] & 0xffff);
    bool q = !p;
    if (k->c & PAIR)
        q = holds(k, in[0] >> 16 & 0xffff, in[1] >> 16 & 0xffff);
    uint64_t r = combine(k, p, c);
    return k->out[0] == 'q' ? r + 2u * combine(k, q, c) : r;
}

/* set: what true looks like. */
static uint64_t set_value(const struct row_case *k, const uint64_t in[4], uint64_t yes) {
    bool c = in[2] & 1;
    uint64_t r = combine(k, holds(k, in[0] & 0xffff, in[1] & 0xffff), c) ? yes : 0;
    if (k->c & PAIR)
        r |= combine(k, holds(k, in[0] >> 16 & 0xffff, in[1] >> 16 & 0xffff), c) ? yes << 16 : 0;
    return r;
}
static uint64_t set_one(const struct row_case *k, const uint64_t in[4]) {
    return set_value(k, in, k->b == PTX_F16 ? 0x3c00 : 0x3f80);
}
static uint64_t set_ones16(const struct row_case *k, const uint64_t in[4]) {
    return set_value(k, in, 0xffff);
}
static uint64_t set_ones32(const struct row_case *k, const uint64_t in[4]) {
    return set_value(k, in, 0xffffffffu);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Both the single and the paired form. */
#define CASE3(row, T, name, e, E, ref, op, flags)                                                 \
    {PTX_OP_##row, name "." e##_name " %hr, %h0, %h1, %h2;",                                      \
     "h",          e##_in e##_in e##_in,                                                          \
     ref,          op,                                                                            \
     PTX_##T,      flags},                                                                        \
    {                                                                                             \
        PTX_OP_##row, name "." e##_name "x2 %wr, %w0, %w1, %w2;", "w", E##_in E##_in E##_in, ref, \
            op, PTX_##T, (flags) | PAIR                                                           \
    }
#define CASE2(row, T, name, e, E, ref, op, flags)                                                  \
    {PTX_OP_##row, name "." e##_name " %hr, %h0, %h1;", "h", e##_in e##_in, ref, op, PTX_##T,      \
     flags},                                                                                       \
    {                                                                                              \
        PTX_OP_##row, name "." e##_name "x2 %wr, %w0, %w1;", "w", E##_in E##_in, ref, op, PTX_##T, \
            (flags) | PAIR                                                                         \
    }
#define CASE1(row, T, name, e, E, ref, op, flags)                                           \
    {PTX_OP_##row, name "." e##_name " %hr, %h0;", "h", e##_in, ref, op, PTX_##T, flags}, { \
        PTX_OP_##row, name "." e##_name "x2 %wr, %w0;", "w", E##_in, ref, op, PTX_##T,      \
            (flags) | PAIR                                                                  \
    }
#define e_name "f16"
#define b_name "bf16"
#define e_in "e"
#define E_in "E"
#define b_in "b"
#define B_in "B"

#define SUMS(row, name, op)                                                 \
    CASE2(row##_F16, F16, name, e, E, arith, op, 0),                        \
        CASE2(row##_F16, F16, name ".rn", e, E, arith, op, 0),              \
        CASE2(row##_F16, F16, name ".ftz", e, E, arith, op, FTZ),           \
        CASE2(row##_F16, F16, name ".rn.sat", e, E, arith, op, SAT),        \
        CASE2(row##_F16, F16, name ".ftz.sat", e, E, arith, op, FTZ | SAT), \
        CASE2(row##_BF16, BF16, name, b, B, arith, op, 0),                  \
        CASE2(row##_BF16, BF16, name ".rn", b, B, arith, op, 0)
#define EXTREMES(row, name, op)                                                           \
    CASE2(row##_F16, F16, name, e, E, extreme, op, 0),                                    \
        CASE2(row##_F16, F16, name ".ftz", e, E, extreme, op, FTZ),                       \
        CASE2(row##_F16, F16, name ".NaN", e, E, extreme, op, NANS),                      \
        CASE2(row##_F16, F16, name ".ftz.NaN", e, E, extreme, op, FTZ | NANS),            \
        CASE2(row##_F16_XORSIGN, F16, name ".xorsign.abs", e, E, extreme, op, XORSIGN),   \
        CASE2(row##_F16_XORSIGN, F16, name ".ftz.NaN.xorsign.abs", e, E, extreme, op,     \
              XORSIGN | FTZ | NANS),                                                      \
        CASE2(row##_BF16, BF16, name, b, B, extreme, op, 0),                              \
        CASE2(row##_BF16, BF16, name ".NaN", b, B, extreme, op, NANS),                    \
        CASE2(row##_BF16_XORSIGN, BF16, name ".xorsign.abs", b, B, extreme, op, XORSIGN), \
        CASE2(row##_BF16_XORSIGN, BF16, name ".NaN.xorsign.abs", b, B, extreme, op,       \
              XORSIGN | NANS)

#define SETP(name, cmp)                                                                         \
    {PTX_OP_SETP_F16, "setp." name ".f16 %pr, %h0, %h1;", "p", "ee", compare, cmp, PTX_F16, 0}, \
        {PTX_OP_SETP_F16,                                                                       \
         "setp." name ".ftz.f16 %pr, %h0, %h1;",                                                \
         "p",                                                                                   \
         "ee",                                                                                  \
         compare,                                                                               \
         cmp,                                                                                   \
         PTX_F16,                                                                               \
         FTZ},                                                                                  \
        {PTX_OP_SETP_BF16,                                                                      \
         "setp." name ".bf16 %pr, %h0, %h1;",                                                   \
         "p",                                                                                   \
         "bb",                                                                                  \
         compare,                                                                               \
         cmp,                                                                                   \
         PTX_BF16,                                                                              \
         0},                                                                                    \
        {PTX_OP_SETP_F16X2,                                                                     \
         "setp." name ".f16x2 %pr|%qr, %w0, %w1;",                                              \
         "q",                                                                                   \
         "EE",                                                                                  \
         compare,                                                                               \
         cmp,                                                                                   \
         PTX_F16,                                                                               \
         PAIR},                                                                                 \
    {                                                                                           \
        PTX_OP_SETP_BF16X2, "setp." name ".bf16x2 %pr|%qr, %w0, %w1;", "q", "BB", compare, cmp, \
            PTX_BF16, PAIR                                                                      \
    }

#define LOGIC(name, flag)                                                                   \
    {PTX_OP_SETP_F16,                                                                       \
     "setp.lt." name ".f16 %pr, %h0, %h1, %p2;",                                            \
     "p",                                                                                   \
     "eep",                                                                                 \
     compare,                                                                               \
     LT,                                                                                    \
     PTX_F16,                                                                               \
     flag},                                                                                 \
        {PTX_OP_SETP_BF16,                                                                  \
         "setp.geu." name ".bf16 %pr, %h0, %h1, %p2;",                                      \
         "p",                                                                               \
         "bbp",                                                                             \
         compare,                                                                           \
         GE + UNORDERED,                                                                    \
         PTX_BF16,                                                                          \
         flag},                                                                             \
        {PTX_OP_SETP_F16X2,                                                                 \
         "setp.le." name ".ftz.f16x2 %pr|%qr, %w0, %w1, %p2;",                              \
         "q",                                                                               \
         "EEp",                                                                             \
         compare,                                                                           \
         LE,                                                                                \
         PTX_F16,                                                                           \
         PAIR | FTZ | flag},                                                                \
    {                                                                                       \
        PTX_OP_SETP_BF16X2, "setp.neu." name ".bf16x2 %pr|%qr, %w0, %w1, %p2;", "q", "BBp", \
            compare, NE + UNORDERED, PTX_BF16, PAIR | flag                                  \
    }

static const struct row_case cases[] = {
    SUMS(ADD, "add", REF_ADD),
    SUMS(SUB, "sub", REF_SUB),
    SUMS(MUL, "mul", REF_MUL),
    CASE3(FMA_F16, F16, "fma.rn", e, E, arith, REF_FMA, 0),
    CASE3(FMA_F16, F16, "fma.rn.ftz", e, E, arith, REF_FMA, FTZ),
    CASE3(FMA_F16, F16, "fma.rn.sat", e, E, arith, REF_FMA, SAT),
    CASE3(FMA_F16, F16, "fma.rn.ftz.sat", e, E, arith, REF_FMA, FTZ | SAT),
    CASE3(FMA_F16_RELU, F16, "fma.rn.relu", e, E, arith, REF_FMA, RELU),
    CASE3(FMA_F16_RELU, F16, "fma.rn.ftz.relu", e, E, arith, REF_FMA, FTZ | RELU),
    CASE3(FMA_BF16, BF16, "fma.rn", b, B, arith, REF_FMA, 0),
    CASE3(FMA_BF16, BF16, "fma.rn.relu", b, B, arith, REF_FMA, RELU),
    EXTREMES(MIN, "min", 0),
    EXTREMES(MAX, "max", 1),
    CASE1(ABS_F16, F16, "abs", e, E, sign, 0, 0),
    CASE1(ABS_F16, F16, "abs.ftz", e, E, sign, 0, FTZ),
    CASE1(ABS_BF16, BF16, "abs", b, B, sign, 0, 0),
    CASE1(NEG_F16, F16, "neg", e, E, sign, 1, 0),
    CASE1(NEG_F16, F16, "neg.ftz", e, E, sign, 1, FTZ),
    CASE1(NEG_BF16, BF16, "neg", b, B, sign, 1, 0),
    CASE1(EX2_F16, F16, "ex2.approx", e, E, ex2, 0, 0),
    CASE1(EX2_BF16, BF16, "ex2.approx.ftz", b, B, ex2, 0, 0),
    CASE1(TANH_HALF, F16, "tanh.approx", e, E, tanh_half, 0, 0),
    CASE1(TANH_HALF, BF16, "tanh.approx", b, B, tanh_half, 0, 0),
    SETP("eq", EQ),
    SETP("ne", NE),
    SETP("lt", LT),
    SETP("le", LE),
    SETP("gt", GT),
    SETP("ge", GE),
    SETP("num", NUM),
    SETP("nan", NAN_),
    SETP("equ", EQ + UNORDERED),
    SETP("neu", NE + UNORDERED),
    SETP("ltu", LT + UNORDERED),
    SETP("leu", LE + UNORDERED),
    SETP("gtu", GT + UNORDERED),
    SETP("geu", GE + UNORDERED),
    LOGIC("and", AND),
    LOGIC("or", OR),
    LOGIC("xor", XOR),
    {PTX_OP_SET_F16, "set.lt.f16.f16 %hr, %h0, %h1;", "h", "ee", set_one, LT, PTX_F16, 0},
    {PTX_OP_SET_F16, "set.gtu.ftz.u16.f16 %hr, %h0, %h1;", "h", "ee", set_ones16, GT + UNORDERED,
     PTX_F16, FTZ},
    {PTX_OP_SET_F16, "set.le.and.s32.f16 %wr, %h0, %h1, %p2;", "w", "eep", set_ones32, LE, PTX_F16,
     AND},
    {PTX_OP_SET_BF16, "set.ge.bf16.bf16 %hr, %h0, %h1;", "h", "bb", set_one, GE, PTX_BF16, 0},
    {PTX_OP_SET_BF16, "set.ne.u32.bf16 %wr, %h0, %h1;", "w", "bb", set_ones32, NE, PTX_BF16, 0},
    {PTX_OP_SET_BF16, "set.eq.or.s16.bf16 %hr, %h0, %h1, %p2;", "h", "bbp", set_ones16, EQ,
     PTX_BF16, OR},
    {PTX_OP_SET_F16X2, "set.gt.f16x2.f16x2 %wr, %w0, %w1;", "w", "EE", set_one, GT, PTX_F16, PAIR},
    {PTX_OP_SET_F16X2, "set.equ.ftz.u32.f16x2 %wr, %w0, %w1;", "w", "EE", set_ones16,
     EQ + UNORDERED, PTX_F16, PAIR | FTZ},
    {PTX_OP_SET_BF16X2, "set.leu.bf16x2.bf16x2 %wr, %w0, %w1;", "w", "BB", set_one, LE + UNORDERED,
     PTX_BF16, PAIR},
    {PTX_OP_SET_BF16X2, "set.nan.xor.s32.bf16x2 %wr, %w0, %w1, %p2;", "w", "BBp", set_ones16, NAN_,
     PTX_BF16, PAIR | XOR},
};
const struct row_list rows_half = {cases, sizeof cases / sizeof *cases};
