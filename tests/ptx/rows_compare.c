/* rows_compare.c - comparisons and selections.  PTX ISA 9.7.7: ordered, unordered, num, nan. */
#include <string.h>

#include "tests/ptx/rows.h"

enum { EQ, NE, LT, LE, GT, GE, NUM, NANS };
#define UNORDERED 8 /* with EQ..GE: true when an operand is NaN */

static double value(const struct row_case *k, uint64_t bits) {
    double d;
    float f;
    uint32_t half = k->c & 1 ? ref_flush((uint32_t)bits) : (uint32_t)bits;
    memcpy(&d, &bits, 8);
    memcpy(&f, &half, 4);
    return k->b == 64 ? d : (double)f;
}

static bool holds(int cmp, int order) { /* order: -1, 0, 1 */
    switch (cmp) {
    case EQ: return order == 0;
    case NE: return order != 0;
    case LT: return order < 0;
    case LE: return order <= 0;
    case GT: return order > 0;
    default: return order >= 0;
    }
}

/* a: comparison, b: bits, c: 1 ftz, 4 and, 8 or, 16 xor with in[2]'s lowest bit. */
static uint64_t combine(const struct row_case *k, bool r, uint64_t predicate) {
    bool p = r, q = !r, c = predicate & 1;
    if (k->c & 4)
        p = p && c, q = q && c;
    if (k->c & 8)
        p = p || c, q = q || c;
    if (k->c & 16)
        p = p != c, q = q != c;
    return k->out[0] == 'q' ? p + 2u * q : p;
}

static uint64_t compare_float(const struct row_case *k, const uint64_t in[4]) {
    double a = value(k, in[0]), b = value(k, in[1]);
    bool nan = a != a || b != b;
    bool r = k->a == NUM    ? !nan
             : k->a == NANS ? nan
             : nan          ? (k->a & UNORDERED) != 0
                            : holds(k->a & 7, a < b ? -1 : a > b);
    return combine(k, r, in[2]);
}

static uint64_t compare_int(const struct row_case *k, const uint64_t in[4]) { /* c & 2: signed */
    uint64_t a = in[0] << (64 - k->b), b = in[1] << (64 - k->b);
    int order =
        k->c & 2 ? ((int64_t)a < (int64_t)b ? -1 : (int64_t)a > (int64_t)b) : (a < b ? -1 : a > b);
    return combine(k, holds(k->a, order), in[2]);
}

/* set: 1.0 or all ones. */
static uint64_t set_mask(const struct row_case *k, const uint64_t in[4]) {
    return compare_int(k, in) ? 0xffffffffu : 0;
}
static uint64_t set_one(const struct row_case *k, const uint64_t in[4]) {
    return compare_float(k, in) ? 0x3f800000u : 0;
}
static uint64_t set_mask_f(const struct row_case *k, const uint64_t in[4]) {
    return compare_float(k, in) ? 0xffffffffu : 0;
}

static uint64_t cut(uint64_t v, int bits) {
    return bits == 64 ? v : v & (((uint64_t)1 << bits) - 1);
}
static uint64_t select_p(const struct row_case *k, const uint64_t in[4]) {
    return cut(in[2] & 1 ? in[0] : in[1], k->b);
}
static uint64_t select_s32(const struct row_case *k, const uint64_t in[4]) {
    return cut(in[2] >> 31 & 1 ? in[1] : in[0], k->b);
}
static uint64_t select_f32(const struct row_case *k, const uint64_t in[4]) { /* c: 1 ftz */
    uint32_t c = k->c ? ref_flush((uint32_t)in[2]) : (uint32_t)in[2];
    bool at_least_zero = !ref_is_nan32(c) && (!(c >> 31) || c == 0x80000000u);
    return cut(at_least_zero ? in[0] : in[1], k->b);
}

#define F6(type, regs, in, bits, mods, flag, u, add)                                              \
    {PTX_OP_SETP_##type,                                                                          \
     "setp.eq" u mods " %pr, " regs ";",                                                          \
     "p",                                                                                         \
     in,                                                                                          \
     compare_float,                                                                               \
     EQ + add,                                                                                    \
     bits,                                                                                        \
     flag},                                                                                       \
        {PTX_OP_SETP_##type,                                                                      \
         "setp.ne" u mods " %pr, " regs ";",                                                      \
         "p",                                                                                     \
         in,                                                                                      \
         compare_float,                                                                           \
         NE + add,                                                                                \
         bits,                                                                                    \
         flag},                                                                                   \
        {PTX_OP_SETP_##type,                                                                      \
         "setp.lt" u mods " %pr, " regs ";",                                                      \
         "p",                                                                                     \
         in,                                                                                      \
         compare_float,                                                                           \
         LT + add,                                                                                \
         bits,                                                                                    \
         flag},                                                                                   \
        {PTX_OP_SETP_##type,                                                                      \
         "setp.le" u mods " %pr, " regs ";",                                                      \
         "p",                                                                                     \
         in,                                                                                      \
         compare_float,                                                                           \
         LE + add,                                                                                \
         bits,                                                                                    \
         flag},                                                                                   \
        {PTX_OP_SETP_##type,                                                                      \
         "setp.gt" u mods " %pr, " regs ";",                                                      \
         "p",                                                                                     \
         in,                                                                                      \
         compare_float,                                                                           \
         GT + add,                                                                                \
         bits,                                                                                    \
         flag},                                                                                   \
    {                                                                                             \
        PTX_OP_SETP_##type, "setp.ge" u mods " %pr, " regs ";", "p", in, compare_float, GE + add, \
            bits, flag                                                                            \
    }
#define FLOATS(type, regs, in, bits, mods, flag)                                                   \
    F6(type, regs, in, bits, mods, flag, "", 0),                                                   \
        F6(type, regs, in, bits, mods, flag, "u", UNORDERED), {PTX_OP_SETP_##type,                 \
                                                               "setp.num" mods " %pr, " regs ";",  \
                                                               "p",                                \
                                                               in,                                 \
                                                               compare_float,                      \
                                                               NUM,                                \
                                                               bits,                               \
                                                               flag},                              \
    {                                                                                              \
        PTX_OP_SETP_##type, "setp.nan" mods " %pr, " regs ";", "p", in, compare_float, NANS, bits, \
            flag                                                                                   \
    }
#define I(cmp, code, type, regs, bits, flag)                                                   \
    {                                                                                          \
        PTX_OP_SETP_INT, "setp." cmp "." type " %pr, " regs ";", "p", "dd", compare_int, code, \
            bits, flag                                                                         \
    }
#define I6(type, regs, bits, flag)                                                \
    I("eq", EQ, type, regs, bits, flag), I("ne", NE, type, regs, bits, flag),     \
        I("lt", LT, type, regs, bits, flag), I("le", LE, type, regs, bits, flag), \
        I("gt", GT, type, regs, bits, flag), I("ge", GE, type, regs, bits, flag)
#define H "%h0, %h1"
#define W "%w0, %w1"
#define D "%d0, %d1"

static const struct row_case cases[] = {
    FLOATS(F32, W, "ff", 32, ".f32", 0),
    FLOATS(F32, W, "ff", 32, ".ftz.f32", 1),
    FLOATS(F64, D, "FF", 64, ".f64", 0),
    I6("u16", H, 16, 0),
    I6("s16", H, 16, 2),
    I6("u32", W, 32, 0),
    I6("s32", W, 32, 2),
    I6("u64", D, 64, 0),
    I6("s64", D, 64, 2),
    I("eq", EQ, "b16", H, 16, 0),
    I("ne", NE, "b32", W, 32, 0),
    I("eq", EQ, "b64", D, 64, 0),
    I("lo", LT, "u32", W, 32, 0),
    I("ls", LE, "u32", W, 32, 0),
    I("hi", GT, "u64", D, 64, 0),
    I("hs", GE, "u16", H, 16, 0),
    {PTX_OP_SETP_INT, "setp.lt.s32 %pr|%qr, %w0, %w1;", "q", "dd", compare_int, LT, 32, 2},
    {PTX_OP_SETP_INT, "setp.lt.and.s32 %pr|%qr, %w0, %w1, %p2;", "q", "ddp", compare_int, LT, 32,
     6},
    {PTX_OP_SETP_INT, "setp.ge.or.u32 %pr|%qr, %w0, %w1, %p2;", "q", "ddp", compare_int, GE, 32, 8},
    {PTX_OP_SETP_INT, "setp.eq.xor.s64 %pr|%qr, %d0, %d1, %p2;", "q", "ddp", compare_int, EQ, 64,
     16},
    {PTX_OP_SETP_F32, "setp.gt.and.f32 %pr|%qr, %w0, %w1, %p2;", "q", "ffp", compare_float, GT, 32,
     4},
    {PTX_OP_SETP_F64, "setp.ltu.or.f64 %pr|%qr, %d0, %d1, %p2;", "q", "FFp", compare_float,
     LT + UNORDERED, 64, 8},
    {PTX_OP_SET, "set.lt.u32.s32 %wr, %w0, %w1;", "w", "dd", set_mask, LT, 32, 2},
    {PTX_OP_SET, "set.gt.s32.u64 %wr, %d0, %d1;", "w", "dd", set_mask, GT, 64, 0},
    {PTX_OP_SET, "set.le.f32.f32 %wr, %w0, %w1;", "w", "ff", set_one, LE, 32, 0},
    {PTX_OP_SET, "set.leu.ftz.f32.f32 %wr, %w0, %w1;", "w", "ff", set_one, LE + UNORDERED, 32, 1},
    {PTX_OP_SET, "set.nan.u32.f64 %wr, %d0, %d1;", "w", "FF", set_mask_f, NANS, 64, 0},
    {PTX_OP_SELP, "selp.b16 %hr, %h0, %h1, %p2;", "h", "ddp", select_p, 0, 16, 0},
    {PTX_OP_SELP, "selp.f32 %wr, %w0, %w1, %p2;", "w", "ddp", select_p, 0, 32, 0},
    {PTX_OP_SELP, "selp.b64 %dr, %d0, %d1, %p2;", "d", "ddp", select_p, 0, 64, 0},
    {PTX_OP_SLCT, "slct.u32.s32 %wr, %w0, %w1, %w2;", "w", "ddd", select_s32, 0, 32, 0},
    {PTX_OP_SLCT, "slct.f64.s32 %dr, %d0, %d1, %w2;", "d", "ddd", select_s32, 0, 64, 0},
    {PTX_OP_SLCT, "slct.f32.f32 %wr, %w0, %w1, %w2;", "w", "ddf", select_f32, 0, 32, 0},
    {PTX_OP_SLCT, "slct.ftz.b64.f32 %dr, %d0, %d1, %w2;", "d", "ddf", select_f32, 0, 64, 1},
};
const struct row_list rows_compare = {cases, sizeof cases / sizeof *cases};
