/*
 * rows_extra.c - the rarer instructions: carries, dot products, 24-bit products, masks, pairs, mixed
 * formats.  References from first principles: 128-bit integers, bit by bit, MPFR.
 */
#include "tests/ptx/rows.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

#define LOW(bits) (((uwide)1 << (bits)) - 1)

/* ---- carries --------------------------------------------------------------------------------- */

static wide typed(uint64_t v, int bits, bool is_signed) {
    wide x = (wide)(v & (uint64_t)LOW(bits));
    return is_signed && (v >> (bits - 1) & 1) ? x - ((wide)1 << bits) : x;
}

enum { C_ADD, C_SUB, C_LO, C_HI };

/*
 * a: operation; b: bits; c: 1 signed, 2 a carry comes in (operand 3 is not 0), 4 the result is the
 * carry added to operand 2, otherwise the low 32 bits with the carry above them.
 */
static uint64_t carried(const struct row_case *k, const uint64_t in[4]) {
    uwide ones = LOW(k->b), a = in[0] & ones, b = in[1] & ones, c = in[2] & ones, r;
    uwide coming = k->c & 2 ? (in[3] & ones) != 0 : 0;
    uwide product = (uwide)typed(in[0], k->b, k->c & 1) * (uwide)typed(in[1], k->b, k->c & 1);
    switch (k->a) {
    case C_ADD:
        r = a + b + coming;
        break;
    case C_SUB:
        r = a - b - coming;
        break;
    case C_LO:
        r = (product & ones) + c + coming;
        break;
    default:
        r = (product >> k->b & ones) + c + coming;
        break;
    }
    uint64_t carry = (uint64_t)(r >> k->b & 1);
    if (k->c & 4)
        return k->a == C_SUB ? in[2] - carry : in[2] + carry;
    if (k->b == 64)
        return (uint64_t)r;
    uint64_t above = k->a == C_SUB ? (uint32_t)-carry : carry;
    return (uint64_t)(r & ones) | above << 32;
}

#define SHOW_ADD "\naddc.u32 %w1, 0, 0;\nmov.b64 %dr, {%w0, %w1};"
#define SHOW_SUB "\nsubc.u32 %w1, 0, 0;\nmov.b64 %dr, {%w0, %w1};"
#define COME "add.cc.u32 %w3, %w3, -1;\n"
#define COME64 "add.cc.u64 %d3, %d3, -1;\n"
#define BORROW "sub.cc.u32 %w3, 0, %w3;\n"
#define BORROW64 "sub.cc.u64 %d3, 0, %d3;\n"

/* ---- products -------------------------------------------------------------------------------- */

/* a: 0 low, 1 high; c: 1 signed, 2 plus operand 2, 4 clamped. */
static uint64_t in_24_bits(const struct row_case *k, const uint64_t in[4]) {
    wide p = typed(in[0], 24, k->c & 1) * typed(in[1], 24, k->c & 1);
    uint32_t r = (uint32_t)(k->a ? p >> 16 : p);
    if (k->c & 4) {
        wide sum = (wide)(int32_t)r + (int32_t)in[2];
        return (uint32_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    }
    return (uint32_t)(r + (k->c & 2 ? (uint32_t)in[2] : 0));
}

/* a: elements; b: the first byte of the second operand; c: 1, 2: which operands are signed. */
static uint64_t dot(const struct row_case *k, const uint64_t in[4]) {
    int bits = 32 / k->a;
    wide sum = (uint32_t)in[2];
    for (int i = 0; i < k->a; i++)
        sum += typed((uint32_t)in[0] >> (i * bits), bits, k->c & 1) *
               typed((uint32_t)in[1] >> ((i + k->b) * 8), 8, k->c & 2);
    return (uint32_t)sum;
}

/* c: 1 signed sources, 2 signed result, 4 clamped, 8 sum. */
static uint64_t byte_differences(const struct row_case *k, const uint64_t in[4]) {
    uint32_t r = 0, sum = (uint32_t)in[2];
    for (int i = 0; i < 32; i += 8) {
        wide d =
            typed((uint32_t)in[0] >> i, 8, k->c & 1) - typed((uint32_t)in[1] >> i, 8, k->c & 1);
        uint32_t v = (uint32_t)(d < 0 ? -d : d);
        if (k->c & 4 && v > (k->c & 2 ? 127u : 255u))
            v = k->c & 2 ? 127 : 255;
        r |= (v & 0xff) << i;
        sum += v;
    }
    return k->c & 8 ? sum : r;
}

/* ---- bits ------------------------------------------------------------------------------------ */

static uint64_t shift_amount(const struct row_case *k, const uint64_t in[4]) {
    bool sign = k->c && (in[0] >> (k->b - 1) & 1);
    for (int i = k->b - 1; i >= 0; i--)
        if ((in[0] >> i & 1) != (uint64_t)sign)
            return (uint64_t)(k->b - 1 - i);
    return 0xffffffff;
}

static uint64_t nth(const struct row_case *k, const uint64_t in[4]) { /* a: downwards */
    int32_t base = (int32_t)(in[1] & 31),
            n = (int32_t)(k->a ? 0 - (uint32_t)in[2] : (uint32_t)in[2]);
    int32_t step = n < 0 ? -1 : 1;
    int64_t want = n < 0 ? -(int64_t)n : n, seen = 0;
    if (n == 0)
        return in[0] >> base & 1 ? (uint32_t)base : 0xffffffff;
    for (int32_t i = base; i >= 0 && i <= 31; i += step) {
        seen += in[0] >> i & 1;
        if (seen == want)
            return (uint32_t)i;
    }
    return 0xffffffff;
}

static uint64_t extended(const struct row_case *k, const uint64_t in[4]) { /* a: wrap; c: signed */
    uint32_t n = k->a ? (uint32_t)in[1] % 32 : (uint32_t)in[1], r = 0;
    for (uint32_t i = 0; i < 32 && n > 0; i++) {
        uint32_t from = i < n ? i : n - 1;
        if (i < n || k->c)
            r |= (uint32_t)(in[0] >> from & 1) << i;
    }
    return r;
}

static uint64_t mask_of(const struct row_case *k, const uint64_t in[4]) { /* a: wrap */
    uint64_t at = (uint32_t)in[0], n = (uint32_t)in[1], r = 0;
    if (k->a) {
        at %= 32;
        n %= 32;
    }
    for (uint64_t i = at; i < 32 && i < at + n; i++)
        r |= (uint64_t)1 << i;
    return r;
}

static uint32_t logic(unsigned table, const uint64_t in[4]) {
    uint32_t r = 0;
    for (int i = 0; i < 32; i++) {
        unsigned row = (unsigned)((in[0] >> i & 1) * 4 + (in[1] >> i & 1) * 2 + (in[2] >> i & 1));
        r |= (table >> row & 1) << i;
    }
    return r;
}
static uint64_t logic_value(const struct row_case *k, const uint64_t in[4]) {
    return logic((unsigned)k->a, in);
}
static uint64_t logic_holds(const struct row_case *k, const uint64_t in[4]) { /* b: and */
    bool set = logic((unsigned)k->a, in) != 0, p = in[3] & 1;
    return k->b ? set && p : set || p;
}

/* PTX ISA's table of prmt's modes: for each selector the bytes from the top one down. */
static uint64_t picked(const struct row_case *k, const uint64_t in[4]) {
    static const char *const bytes[6][4] = {
        {"3210", "4321", "5432", "6543"}, /* f4e */
        {"5670", "6701", "7012", "0123"}, /* b4e */
        {"0000", "1111", "2222", "3333"}, /* rc8 */
        {"3210", "3211", "3222", "3333"}, /* ecl */
        {"0000", "1110", "2210", "3210"}, /* ecr */
        {"1010", "3232", "1010", "3232"}, /* rc16 */
    };
    const char *row = bytes[k->a][in[2] & 3];
    uint64_t both = (in[0] & 0xffffffff) | in[1] << 32, r = 0;
    for (int i = 0; i < 4; i++)
        r = r << 8 | (both >> (8 * (row[i] - '0')) & 0xff);
    return r;
}

/* ---- pairs of integers ----------------------------------------------------------------------- */

/* a: 0 add, 1 min, 2 max; b: elements; c: 1 signed, 2 negative to 0. */
static uint64_t pairs(const struct row_case *k, const uint64_t in[4]) {
    int bits = 32 / k->b;
    uint64_t r = 0;
    for (int i = 0; i < k->b; i++) {
        wide a = typed((uint32_t)in[0] >> (i * bits), bits, k->c & 1);
        wide b = typed((uint32_t)in[1] >> (i * bits), bits, k->c & 1);
        wide v = k->a == 0 ? a + b : (k->a == 1) == (a < b) ? a : b;
        if (k->c & 2 && v < 0)
            v = 0;
        r |= (uint64_t)((uwide)v & LOW(bits)) << (i * bits);
    }
    return r;
}

/* a: 0 lt, 1 gt; b: 0 and, 1 or, 2 xor; c: 1 the result is 1.0. */
static uint64_t set_with(const struct row_case *k, const uint64_t in[4]) {
    int32_t a = (int32_t)in[0], b = (int32_t)in[1];
    bool r = k->a ? a > b : a < b, p = in[2] & 1;
    r = k->b == 0 ? r && p : k->b == 1 ? r || p : r != p;
    return !r ? 0 : k->c ? 0x3f800000 : 0xffffffff;
}

/* ---- floats ---------------------------------------------------------------------------------- */

static int64_t order(uint32_t v) { /* -0 just below +0 */
    return v >> 31 ? -(int64_t)(v & 0x7fffffff) - 1 : (int64_t)v;
}

enum { FTZ = 1, NANS = 2, XORSIGN = 4, ABS = 8, THREE = 16 };

static uint32_t extreme2(uint32_t a, uint32_t b, bool max, int how) {
    uint32_t sign = (a ^ b) & 0x80000000u;
    if (how & FTZ) {
        a = ref_flush(a);
        b = ref_flush(b);
    }
    if (how & ABS) {
        a &= 0x7fffffff;
        b &= 0x7fffffff;
    }
    bool na = ref_is_nan32(a), nb = ref_is_nan32(b);
    if (how & NANS ? na || nb : na && nb)
        return 0x7fffffff;
    uint32_t r = na ? b : nb ? a : (max ? order(a) > order(b) : order(a) < order(b)) ? a : b;
    return how & XORSIGN ? r | sign : r;
}
static uint64_t extreme(const struct row_case *k, const uint64_t in[4]) {
    uint32_t r = extreme2((uint32_t)in[0], (uint32_t)in[1], k->a, k->c);
    return k->c & THREE ? extreme2(r, (uint32_t)in[2], k->a, k->c) : r;
}

/* a op b op c rounded once; c: 1 ftz, 2 sat. */
static uint32_t single(int op, const uint32_t from[3], int rnd, int c) {
    uint32_t v[3] = {from[0], from[1], from[2]};
    for (int i = 0; i < 3 && c & 1; i++)
        v[i] = ref_flush(v[i]);
    uint32_t r = ref_f32(op, v[0], v[1], v[2], rnd);
    if (c & 1 && ref_is_tiny(op, v[0], v[1], v[2], rnd))
        r &= 0x80000000u;
    if (c & 2)
        r = ref_is_nan32(r) || r >> 31 ? 0 : r > 0x3f800000u ? 0x3f800000u : r;
    return r;
}

static uint64_t in_halves(const struct row_case *k, const uint64_t in[4]) {
    uint64_t r = 0;
    for (int h = 0; h < 64; h += 32) {
        uint32_t v[3] = {(uint32_t)(in[0] >> h), (uint32_t)(in[1] >> h), (uint32_t)(in[2] >> h)};
        r |= (uint64_t)single(k->a, v, k->b, k->c) << h;
    }
    return r;
}

static uint32_t widened(const struct ref_format *f, uint64_t bits) {
    mpfr_t x;
    if (ref_is_nan(f, bits & 0xffff))
        return 0x7fffffff;
    mpfr_init2(x, REF_PRECISION);
    ref_set(x, f, bits & 0xffff);
    uint32_t r = (uint32_t)ref_round(x, &ref_binary32, REF_RN);
    mpfr_clear(x);
    return r;
}

/* c: 2 sat, 4 bf16. */
static uint64_t mixed(const struct row_case *k, const uint64_t in[4]) {
    const struct ref_format *f = k->c & 4 ? &ref_bf16 : &ref_f16;
    uint32_t a = widened(f, in[0]);
    uint32_t v[3] = {a, (uint32_t)in[1], (uint32_t)in[2]};
    if (k->a == REF_FMA)
        v[1] = widened(f, in[1]);
    return single(k->a, v, k->b, k->c & 2);
}

#define QUIET 0x0008000000000000u
static uint64_t reciprocal64(const struct row_case *k, const uint64_t in[4]) {
    return ref_is_nan64(in[0]) ? in[0] | QUIET : ref_f64(REF_RCP, in[0], 0, 0, k->b);
}
static uint64_t fused64(const struct row_case *k, const uint64_t in[4]) {
    for (int i = 1; i < 4; i++)
        if (ref_is_nan64(in[i % 3]))
            return in[i % 3] | QUIET;
    uint64_t r = ref_f64(REF_FMA, in[0], in[1], in[2], k->b);
    return ref_is_nan64(r) ? 0xfff8000000000000u : r;
}
static uint64_t class64(const struct row_case *k, const uint64_t in[4]) {
    unsigned e = in[0] >> 52 & 2047;
    uint64_t f = in[0] & 0xfffffffffffff;
    switch (k->a) {
    case 0:
        return e != 2047;
    case 1:
        return e == 2047 && f == 0;
    case 2:
        return e != 2047 || f == 0;
    case 3:
        return e == 2047 && f;
    case 4:
        return e != 2047 && (e != 0 || f == 0);
    default:
        return e == 0 && f;
    }
}
static uint64_t with_sign(const struct row_case *k, const uint64_t in[4]) {
    (void)k;
    return (in[1] & ~((uint64_t)1 << 63)) | (in[0] & (uint64_t)1 << 63);
}

/* ---- cases ----------------------------------------------------------------------------------- */

#define X2(op, name, operands, in, kind)                                                        \
    {                                                                                           \
        PTX_OP_##op##_F32X2,                                                                    \
        name ".rn.f32x2 %dr, " operands ";",                                                    \
        "d",                                                                                    \
        in,                                                                                     \
        in_halves,                                                                              \
        kind,                                                                                   \
        REF_RN,                                                                                 \
        0},                                                                                     \
        {PTX_OP_##op##_F32X2,                                                                   \
         name ".rz.f32x2 %dr, " operands ";",                                                   \
         "d",                                                                                   \
         in,                                                                                    \
         in_halves,                                                                             \
         kind,                                                                                  \
         REF_RZ,                                                                                \
         0},                                                                                    \
        {PTX_OP_##op##_F32X2,                                                                   \
         name ".rm.ftz.f32x2 %dr, " operands ";",                                               \
         "d",                                                                                   \
         in,                                                                                    \
         in_halves,                                                                             \
         kind,                                                                                  \
         REF_RM,                                                                                \
         1},                                                                                    \
    {                                                                                           \
        PTX_OP_##op##_F32X2, name ".rp.ftz.f32x2 %dr, " operands ";", "d", in, in_halves, kind, \
            REF_RP, 1                                                                           \
    }
#define MIXED(op, name, operands, in16, inb, kind)                                              \
    {                                                                                           \
        PTX_OP_##op##_MIXED,                                                                    \
        name ".rn.f32.f16 %wr, " operands ";",                                                  \
        "w",                                                                                    \
        in16,                                                                                   \
        mixed,                                                                                  \
        kind,                                                                                   \
        REF_RN,                                                                                 \
        0},                                                                                     \
        {PTX_OP_##op##_MIXED,                                                                   \
         name ".rz.sat.f32.f16 %wr, " operands ";",                                             \
         "w",                                                                                   \
         in16,                                                                                  \
         mixed,                                                                                 \
         kind,                                                                                  \
         REF_RZ,                                                                                \
         2},                                                                                    \
        {PTX_OP_##op##_MIXED,                                                                   \
         name ".rm.f32.bf16 %wr, " operands ";",                                                \
         "w",                                                                                   \
         inb,                                                                                   \
         mixed,                                                                                 \
         kind,                                                                                  \
         REF_RM,                                                                                \
         4},                                                                                    \
    {                                                                                           \
        PTX_OP_##op##_MIXED, name ".rp.sat.f32.bf16 %wr, " operands ";", "w", inb, mixed, kind, \
            REF_RP, 6                                                                           \
    }
#define PRMT(mode, number) \
    { PTX_OP_PRMT_MODE, "prmt.b32." mode " %wr, %w0, %w1, %w2;", "w", "dds", picked, number, 0, 0 }
#define TESTP(name, number) \
    { PTX_OP_TESTP_F64, "testp." name ".f64 %pr, %d0;", "p", "F", class64, number, 0, 0 }
#define PAIR(op, text, kind, elements, how) \
    { PTX_OP_##op, text " %wr, %w0, %w1;", "w", "dd", pairs, kind, elements, how }

static const struct row_case cases[] = {
    {PTX_OP_ADD_CC, "add.cc.u32 %w0, %w0, %w1;" SHOW_ADD, "d", "dd", carried, C_ADD, 32, 0},
    {PTX_OP_ADD_CC, "add.cc.s32 %w0, %w0, %w1;" SHOW_ADD, "d", "dd", carried, C_ADD, 32, 1},
    {PTX_OP_ADD_CC, "add.cc.u64 %d0, %d0, %d1;\naddc.u64 %dr, %d2, 0;", "d", "ddd", carried, C_ADD,
     64, 4},
    {PTX_OP_ADDC, COME "addc.cc.u32 %w0, %w0, %w1;" SHOW_ADD, "d", "dddd", carried, C_ADD, 32, 2},
    {PTX_OP_ADDC, COME64 "addc.cc.s64 %d0, %d0, %d1;\naddc.u64 %dr, %d2, 0;", "d", "dddd", carried,
     C_ADD, 64, 6},
    {PTX_OP_ADDC, COME64 "addc.u64 %dr, %d0, %d1;", "d", "dddd", carried, C_ADD, 64, 2},
    {PTX_OP_SUB_CC, "sub.cc.u32 %w0, %w0, %w1;" SHOW_SUB, "d", "dd", carried, C_SUB, 32, 0},
    {PTX_OP_SUB_CC, "sub.cc.s64 %d0, %d0, %d1;\nsubc.u64 %dr, %d2, 0;", "d", "ddd", carried, C_SUB,
     64, 4},
    {PTX_OP_SUBC, BORROW "subc.cc.u32 %w0, %w0, %w1;" SHOW_SUB, "d", "dddd", carried, C_SUB, 32, 2},
    {PTX_OP_SUBC, BORROW64 "subc.cc.u64 %d0, %d0, %d1;\nsubc.s64 %dr, %d2, 0;", "d", "dddd",
     carried, C_SUB, 64, 6},
    {PTX_OP_MAD_CC, "mad.lo.cc.u32 %w0, %w0, %w1, %w2;" SHOW_ADD, "d", "ddd", carried, C_LO, 32, 0},
    {PTX_OP_MAD_CC, "mad.hi.cc.u32 %w0, %w0, %w1, %w2;" SHOW_ADD, "d", "ddd", carried, C_HI, 32, 0},
    {PTX_OP_MAD_CC, "mad.hi.cc.s32 %w0, %w0, %w1, %w2;" SHOW_ADD, "d", "ddd", carried, C_HI, 32, 1},
    {PTX_OP_MAD_CC, "mad.lo.cc.u64 %dr, %d0, %d1, %d2;", "d", "ddd", carried, C_LO, 64, 0},
    {PTX_OP_MADC, COME "madc.lo.cc.u32 %w0, %w0, %w1, %w2;" SHOW_ADD, "d", "dddd", carried, C_LO,
     32, 2},
    {PTX_OP_MADC, COME "madc.hi.cc.s32 %w0, %w0, %w1, %w2;" SHOW_ADD, "d", "dddd", carried, C_HI,
     32, 3},
    {PTX_OP_MADC, COME64 "madc.hi.u64 %dr, %d0, %d1, %d2;", "d", "dddd", carried, C_HI, 64, 2},
    {PTX_OP_MADC, COME64 "madc.hi.s64 %dr, %d0, %d1, %d2;", "d", "dddd", carried, C_HI, 64, 3},
    {PTX_OP_MUL24, "mul24.lo.u32 %wr, %w0, %w1;", "w", "dd", in_24_bits, 0, 0, 0},
    {PTX_OP_MUL24, "mul24.lo.s32 %wr, %w0, %w1;", "w", "dd", in_24_bits, 0, 0, 1},
    {PTX_OP_MUL24, "mul24.hi.u32 %wr, %w0, %w1;", "w", "dd", in_24_bits, 1, 0, 0},
    {PTX_OP_MUL24, "mul24.hi.s32 %wr, %w0, %w1;", "w", "dd", in_24_bits, 1, 0, 1},
    {PTX_OP_MAD24, "mad24.lo.u32 %wr, %w0, %w1, %w2;", "w", "ddd", in_24_bits, 0, 0, 2},
    {PTX_OP_MAD24, "mad24.hi.s32 %wr, %w0, %w1, %w2;", "w", "ddd", in_24_bits, 1, 0, 3},
    {PTX_OP_MAD24_SAT, "mad24.hi.sat.s32 %wr, %w0, %w1, %w2;", "w", "ddd", in_24_bits, 1, 0, 7},
    {PTX_OP_DP4A, "dp4a.u32.u32 %wr, %w0, %w1, %w2;", "w", "ddd", dot, 4, 0, 0},
    {PTX_OP_DP4A, "dp4a.s32.s32 %wr, %w0, %w1, %w2;", "w", "ddd", dot, 4, 0, 3},
    {PTX_OP_DP4A, "dp4a.s32.u32 %wr, %w0, %w1, %w2;", "w", "ddd", dot, 4, 0, 1},
    {PTX_OP_DP4A, "dp4a.u32.s32 %wr, %w0, %w1, %w2;", "w", "ddd", dot, 4, 0, 2},
    {PTX_OP_DP2A, "dp2a.lo.u32.u32 %wr, %w0, %w1, %w2;", "w", "ddd", dot, 2, 0, 0},
    {PTX_OP_DP2A, "dp2a.hi.s32.s32 %wr, %w0, %w1, %w2;", "w", "ddd", dot, 2, 2, 3},
    {PTX_OP_DP2A, "dp2a.hi.u32.s32 %wr, %w0, %w1, %w2;", "w", "ddd", dot, 2, 2, 2},
    {PTX_OP_VABSDIFF4_UU, "vabsdiff4.u32.u32.u32 %wr, %w0, %w1, %w2;", "w", "ddd", byte_differences,
     0, 0, 0},
    {PTX_OP_VABSDIFF4_UU, "vabsdiff4.u32.u32.u32.add %wr, %w0, %w1, %w2;", "w", "ddd",
     byte_differences, 0, 0, 8},
    {PTX_OP_VABSDIFF4_US, "vabsdiff4.u32.s32.s32 %wr, %w0, %w1, %w2;", "w", "ddd", byte_differences,
     0, 0, 1},
    {PTX_OP_VABSDIFF4_SS, "vabsdiff4.s32.s32.s32.sat %wr, %w0, %w1, %w2;", "w", "ddd",
     byte_differences, 0, 0, 7},
    {PTX_OP_BFIND_SHIFT, "bfind.shiftamt.u32 %wr, %w0;", "w", "d", shift_amount, 0, 32, 0},
    {PTX_OP_BFIND_SHIFT, "bfind.shiftamt.s32 %wr, %w0;", "w", "d", shift_amount, 0, 32, 1},
    {PTX_OP_BFIND_SHIFT, "bfind.shiftamt.u64 %wr, %d0;", "w", "d", shift_amount, 0, 64, 0},
    {PTX_OP_BFIND_SHIFT, "bfind.shiftamt.s64 %wr, %d0;", "w", "d", shift_amount, 0, 64, 1},
    {PTX_OP_FNS, "and.b32 %w1, %w1, 31;\nfns.b32 %wr, %w0, %w1, %w2;", "w", "dds", nth, 0, 0, 0},
    {PTX_OP_FNS, "and.b32 %w1, %w1, 31;\nneg.s32 %w2, %w2;\nfns.b32 %wr, %w0, %w1, %w2;", "w",
     "dds", nth, 1, 0, 0},
    {PTX_OP_SZEXT, "szext.clamp.u32 %wr, %w0, %w1;", "w", "ds", extended, 0, 0, 0},
    {PTX_OP_SZEXT, "szext.clamp.s32 %wr, %w0, %w1;", "w", "ds", extended, 0, 0, 1},
    {PTX_OP_SZEXT, "szext.wrap.u32 %wr, %w0, %w1;", "w", "ds", extended, 1, 0, 0},
    {PTX_OP_SZEXT, "szext.wrap.s32 %wr, %w0, %w1;", "w", "ds", extended, 1, 0, 1},
    {PTX_OP_BMSK, "bmsk.clamp.b32 %wr, %w0, %w1;", "w", "ss", mask_of, 0, 0, 0},
    {PTX_OP_BMSK, "bmsk.wrap.b32 %wr, %w0, %w1;", "w", "ss", mask_of, 1, 0, 0},
    {PTX_OP_LOP3_BOOL, "lop3.or.b32 %wr|%pr, %w0, %w1, %w2, 0x96, %p3;", "w", "dddp", logic_value,
     0x96, 0, 0},
    {PTX_OP_LOP3_BOOL, "lop3.or.b32 %wr|%pr, %w0, %w1, %w2, 0x80, %p3;", "p", "dddp", logic_holds,
     0x80, 0, 0},
    {PTX_OP_LOP3_BOOL, "lop3.and.b32 _|%pr, %w0, %w1, %w2, 0x80, %p3;", "p", "dddp", logic_holds,
     0x80, 1, 0},
    PRMT("f4e", 0),
    PRMT("b4e", 1),
    PRMT("rc8", 2),
    PRMT("ecl", 3),
    PRMT("ecr", 4),
    PRMT("rc16", 5),
    PAIR(ADD_PAIR, "add.u16x2", 0, 2, 0),
    PAIR(ADD_PAIR, "add.s16x2", 0, 2, 1),
    PAIR(MIN_PAIR, "min.u16x2", 1, 2, 0),
    PAIR(MIN_PAIR, "min.s16x2", 1, 2, 1),
    PAIR(MAX_PAIR, "max.u16x2", 2, 2, 0),
    PAIR(MAX_PAIR, "max.s16x2", 2, 2, 1),
    PAIR(MIN_RELU, "min.relu.s32", 1, 1, 3),
    PAIR(MAX_RELU, "max.relu.s32", 2, 1, 3),
    PAIR(MIN_RELU, "min.relu.s16x2", 1, 2, 3),
    PAIR(MAX_RELU, "max.relu.s16x2", 2, 2, 3),
    {PTX_OP_SET, "set.lt.and.u32.s32 %wr, %w0, %w1, %p2;", "w", "ddp", set_with, 0, 0, 0},
    {PTX_OP_SET, "set.gt.or.f32.s32 %wr, %w0, %w1, %p2;", "w", "ddp", set_with, 1, 1, 1},
    {PTX_OP_SET, "set.lt.xor.s32.s32 %wr, %w0, %w1, %p2;", "w", "ddp", set_with, 0, 2, 0},
    {PTX_OP_MIN_F32_XORSIGN, "min.xorsign.abs.f32 %wr, %w0, %w1;", "w", "ff", extreme, 0, 0,
     XORSIGN | ABS},
    {PTX_OP_MIN_F32_XORSIGN, "min.ftz.NaN.xorsign.abs.f32 %wr, %w0, %w1;", "w", "ff", extreme, 0, 0,
     XORSIGN | ABS | FTZ | NANS},
    {PTX_OP_MAX_F32_XORSIGN, "max.ftz.xorsign.abs.f32 %wr, %w0, %w1;", "w", "ff", extreme, 1, 0,
     XORSIGN | ABS | FTZ},
    {PTX_OP_MAX_F32_XORSIGN, "max.NaN.xorsign.abs.f32 %wr, %w0, %w1;", "w", "ff", extreme, 1, 0,
     XORSIGN | ABS | NANS},
    {PTX_OP_RCP_F64, "rcp.rn.f64 %dr, %d0;", "d", "F", reciprocal64, 0, REF_RN, 0},
    {PTX_OP_RCP_F64, "rcp.rz.f64 %dr, %d0;", "d", "F", reciprocal64, 0, REF_RZ, 0},
    {PTX_OP_RCP_F64, "rcp.rm.f64 %dr, %d0;", "d", "F", reciprocal64, 0, REF_RM, 0},
    {PTX_OP_RCP_F64, "rcp.rp.f64 %dr, %d0;", "d", "F", reciprocal64, 0, REF_RP, 0},
    {PTX_OP_MAD_F64, "mad.rn.f64 %dr, %d0, %d1, %d2;", "d", "FFF", fused64, 0, REF_RN, 0},
    {PTX_OP_MAD_F64, "mad.rp.f64 %dr, %d0, %d1, %d2;", "d", "FFF", fused64, 0, REF_RP, 0},
    TESTP("finite", 0),
    TESTP("infinite", 1),
    TESTP("number", 2),
    TESTP("notanumber", 3),
    TESTP("normal", 4),
    TESTP("subnormal", 5),
    {PTX_OP_COPYSIGN_F64, "copysign.f64 %dr, %d0, %d1;", "d", "FF", with_sign, 0, 0, 0},
};
const struct row_list rows_extra = {cases, sizeof cases / sizeof *cases};

/* What sm_100 brought. */
static const struct row_case newer[] = {
    {PTX_OP_MIN_F32, "min.f32 %wr, %w0, %w1, %w2;", "w", "fff", extreme, 0, 0, THREE},
    {PTX_OP_MIN_F32, "min.ftz.NaN.f32 %wr, %w0, %w1, %w2;", "w", "fff", extreme, 0, 0,
     THREE | FTZ | NANS},
    {PTX_OP_MAX_F32, "max.f32 %wr, %w0, %w1, %w2;", "w", "fff", extreme, 1, 0, THREE},
    {PTX_OP_MAX_F32, "max.ftz.NaN.f32 %wr, %w0, %w1, %w2;", "w", "fff", extreme, 1, 0,
     THREE | FTZ | NANS},
    X2(ADD, "add", "%d0, %d1", "GG", REF_ADD),
    X2(SUB, "sub", "%d0, %d1", "GG", REF_SUB),
    X2(MUL, "mul", "%d0, %d1", "GG", REF_MUL),
    X2(FMA, "fma", "%d0, %d1, %d2", "GGG", REF_FMA),
    MIXED(ADD, "add", "%h0, %w1", "ef", "bf", REF_ADD),
    MIXED(SUB, "sub", "%h0, %w1", "ef", "bf", REF_SUB),
    MIXED(FMA, "fma", "%h0, %h1, %w2", "eef", "bbf", REF_FMA),
};
const struct row_list rows_sm100 = {newer, sizeof newer / sizeof *newer};
