/* rows_int.c - integer arithmetic in 128 bits, cut to the type at the end. */
#include "tests/ptx/rows.h"

__extension__ typedef __int128 wide;

/* The operand as the type that k->b (bits) and k->c (1: signed) name. */
static wide operand(const struct row_case *k, uint64_t bits) {
    wide one = 1, span = one << k->b, v = (wide)bits % span;
    return k->c & 1 && v >= span / 2 ? v - span : v;
}
static uint64_t cut(wide v, int bits) {
    return bits == 64 ? (uint64_t)v : (uint64_t)v & (((uint64_t)1 << bits) - 1);
}
static wide magnitude(wide v) {
    return v < 0 ? -v : v;
}

enum {
    ADD,
    SUB,
    ABS,
    NEG,
    MIN,
    MAX,
    SAD,
    DIV,
    REM,
    LO,
    HI,
    WIDE,
    MADLO,
    MADHI,
    MADWIDE,
    ADDSAT,
    SUBSAT
};

static wide floor_shift(wide v, int n) { /* v / 2^n toward minus infinity */
    wide unit = (wide)1 << n, q = v / unit;
    return q * unit > v ? q - 1 : q;
}

static uint64_t integer(const struct row_case *k, const uint64_t in[4]) {
    wide a = operand(k, in[0]), b = k->c == 4 ? 7 : operand(k, in[1]), c = operand(k, in[2]), r = 0;
    int bits = k->b;
    switch (k->a) {
    case ADD: r = a + b; break;
    case SUB: r = a - b; break;
    case ABS: r = magnitude(a); break;
    case NEG: r = -a; break;
    case MIN: r = a < b ? a : b; break;
    case MAX: r = a > b ? a : b; break;
    case SAD: r = c + magnitude(a - b); break;
    case DIV: r = b == 0 ? -1 : a / b; break;
    case REM: r = b == 0 ? -1 : a % b; break; /* H200: all ones, as the quotient */
    case LO: r = (wide)((uint64_t)a * (uint64_t)b); break;
    case MADLO: r = (wide)((uint64_t)a * (uint64_t)b) + c; break;
    case HI: r = floor_shift(a * b, bits); break;
    case MADHI: r = floor_shift(a * b, bits) + c; break;
    case WIDE: return cut(a * b, 2 * bits);
    case MADWIDE: return cut(a * b + (wide)in[2], 2 * bits);
    case ADDSAT: r = a + b; break;
    case SUBSAT: r = a - b; break;
    }
    if (k->a == ADDSAT || k->a == SUBSAT)
        r = r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r;
    return cut(r, bits);
}

/* High half of 64 x 64 unsigned does not fit the signed 128-bit product: by 32-bit pieces. */
static uint64_t high_u64(const struct row_case *k, const uint64_t in[4]) {
    uint64_t a1 = in[0] >> 32, a0 = (uint32_t)in[0], b1 = in[1] >> 32, b0 = (uint32_t)in[1];
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32) + (k->a ? in[2] : 0);
}

#define T2(op, text, regs16, regs32, regs64, in, kind)                           \
    {PTX_OP_##op, text ".u16 " regs16 ";", "h", in, integer, kind, 16, 0},       \
        {PTX_OP_##op, text ".s16 " regs16 ";", "h", in, integer, kind, 16, 1},   \
        {PTX_OP_##op, text ".u32 " regs32 ";", "w", in, integer, kind, 32, 0},   \
        {PTX_OP_##op, text ".s32 " regs32 ";", "w", in, integer, kind, 32, 1},   \
        {PTX_OP_##op, text ".u64 " regs64 ";", "d", in, integer, kind, 64, 0}, { \
        PTX_OP_##op, text ".s64 " regs64 ";", "d", in, integer, kind, 64, 1      \
    }
#define BINARY(op, text, kind) \
    T2(op, text, "%hr, %h0, %h1", "%wr, %w0, %w1", "%dr, %d0, %d1", "dd", kind)
#define TERNARY(op, text, kind) \
    T2(op, text, "%hr, %h0, %h1, %h2", "%wr, %w0, %w1, %w2", "%dr, %d0, %d1, %d2", "ddd", kind)
#define SIGNED(op, text, kind)                                                  \
    {PTX_OP_##op, text ".s16 %hr, %h0;", "h", "d", integer, kind, 16, 1},       \
        {PTX_OP_##op, text ".s32 %wr, %w0;", "w", "d", integer, kind, 32, 1}, { \
        PTX_OP_##op, text ".s64 %dr, %d0;", "d", "d", integer, kind, 64, 1      \
    }

static const struct row_case cases[] = {
    BINARY(ADD_INT, "add", ADD),
    BINARY(SUB_INT, "sub", SUB),
    BINARY(MIN_INT, "min", MIN),
    BINARY(MAX_INT, "max", MAX),
    BINARY(DIV_INT, "div", DIV),
    BINARY(REM_INT, "rem", REM),
    BINARY(MUL_INT, "mul.lo", LO),
    TERNARY(MAD_INT, "mad.lo", MADLO),
    TERNARY(SAD, "sad", SAD),
    SIGNED(ABS_INT, "abs", ABS),
    SIGNED(NEG_INT, "neg", NEG),
    {PTX_OP_ADD_INT, "add.s32 %wr, %w0, -7;", "w", "d", integer, SUB, 32, 4},
    {PTX_OP_ADD_SAT, "add.sat.s32 %wr, %w0, %w1;", "w", "dd", integer, ADDSAT, 32, 1},
    {PTX_OP_SUB_SAT, "sub.sat.s32 %wr, %w0, %w1;", "w", "dd", integer, SUBSAT, 32, 1},
    {PTX_OP_MUL_INT, "mul.hi.u16 %hr, %h0, %h1;", "h", "dd", integer, HI, 16, 0},
    {PTX_OP_MUL_INT, "mul.hi.s16 %hr, %h0, %h1;", "h", "dd", integer, HI, 16, 1},
    {PTX_OP_MUL_INT, "mul.hi.u32 %wr, %w0, %w1;", "w", "dd", integer, HI, 32, 0},
    {PTX_OP_MUL_INT, "mul.hi.s32 %wr, %w0, %w1;", "w", "dd", integer, HI, 32, 1},
    {PTX_OP_MUL_INT, "mul.hi.u64 %dr, %d0, %d1;", "d", "dd", high_u64, 0, 64, 0},
    {PTX_OP_MUL_INT, "mul.hi.s64 %dr, %d0, %d1;", "d", "dd", integer, HI, 64, 1},
    {PTX_OP_MAD_INT, "mad.hi.u32 %wr, %w0, %w1, %w2;", "w", "ddd", integer, MADHI, 32, 0},
    {PTX_OP_MAD_INT, "mad.hi.s32 %wr, %w0, %w1, %w2;", "w", "ddd", integer, MADHI, 32, 1},
    {PTX_OP_MAD_INT, "mad.hi.u64 %dr, %d0, %d1, %d2;", "d", "ddd", high_u64, 1, 64, 0},
    {PTX_OP_MAD_INT, "mad.hi.s64 %dr, %d0, %d1, %d2;", "d", "ddd", integer, MADHI, 64, 1},
    {PTX_OP_MUL_WIDE, "mul.wide.u16 %wr, %h0, %h1;", "w", "dd", integer, WIDE, 16, 0},
    {PTX_OP_MUL_WIDE, "mul.wide.s16 %wr, %h0, %h1;", "w", "dd", integer, WIDE, 16, 1},
    {PTX_OP_MUL_WIDE, "mul.wide.u32 %dr, %w0, %w1;", "d", "dd", integer, WIDE, 32, 0},
    {PTX_OP_MUL_WIDE, "mul.wide.s32 %dr, %w0, %w1;", "d", "dd", integer, WIDE, 32, 1},
    {PTX_OP_MAD_WIDE, "mad.wide.u16 %wr, %h0, %h1, %w2;", "w", "ddd", integer, MADWIDE, 16, 0},
    {PTX_OP_MAD_WIDE, "mad.wide.s16 %wr, %h0, %h1, %w2;", "w", "ddd", integer, MADWIDE, 16, 1},
    {PTX_OP_MAD_WIDE, "mad.wide.u32 %dr, %w0, %w1, %d2;", "d", "ddd", integer, MADWIDE, 32, 0},
    {PTX_OP_MAD_WIDE, "mad.wide.s32 %dr, %w0, %w1, %d2;", "d", "ddd", integer, MADWIDE, 32, 1},
};
const struct row_list rows_int = {cases, sizeof cases / sizeof *cases};
