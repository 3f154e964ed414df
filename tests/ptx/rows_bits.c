/* rows_bits.c - bit by bit, as the PTX ISA writes the operations down. */
#include "tests/ptx/rows.h"

/* Bit i of a value of `bits` bits; beyond them nothing. */
static unsigned bit(uint64_t v, int i, int bits) {
    return i >= 0 && i < bits ? v >> i & 1 : 0;
}

/* a: truth table of three inputs, b: bits. */
static uint64_t logic(const struct row_case *k, const uint64_t in[4]) {
    uint64_t r = 0;
    for (int i = 0; i < k->b; i++) {
        unsigned index = bit(in[0], i, 64) * 4 + bit(in[1], i, 64) * 2 + bit(in[2], i, 64);
        r |= (uint64_t)(k->a >> index & 1) << i;
    }
    return r;
}
static uint64_t predicate(const struct row_case *k, const uint64_t in[4]) {
    return k->a >> ((in[0] & 1) * 2 + (in[1] & 1)) & 1;
}
static uint64_t cnot(const struct row_case *k, const uint64_t in[4]) {
    for (int i = 0; i < k->b; i++)
        if (bit(in[0], i, 64))
            return 0;
    return 1;
}

/* a: 0 left, 1 right, 2 right with the sign. */
static uint64_t shift(const struct row_case *k, const uint64_t in[4]) {
    uint64_t r = 0;
    int64_t n = (uint32_t)in[1];
    for (int i = 0; i < k->b; i++) {
        int64_t from = k->a ? i + n : i - n;
        unsigned fill = k->a == 2 ? bit(in[0], k->b - 1, k->b) : 0;
        r |= (uint64_t)(from >= k->b ? fill : from < 0 ? 0 : bit(in[0], (int)from, k->b)) << i;
    }
    return r;
}

/* a: 1 right; c: 1 wrap.  The 64 bits b:a move by n. */
static uint64_t funnel(const struct row_case *k, const uint64_t in[4]) {
    uint32_t n = (uint32_t)in[2], r = 0;
    n = k->c ? n % 32 : n > 32 ? 32 : n;
    for (int i = 0; i < 32; i++) {
        int from = k->a ? i + (int)n : 32 + i - (int)n;
        unsigned b = from < 32 ? bit(in[0], from, 32) : bit(in[1], from - 32, 32);
        r |= b << i;
    }
    return r;
}

static uint64_t count_ones(const struct row_case *k, const uint64_t in[4]) {
    unsigned n = 0;
    for (int i = 0; i < k->b; i++)
        n += bit(in[0], i, 64);
    return n;
}
static uint64_t leading_zeros(const struct row_case *k, const uint64_t in[4]) {
    unsigned n = 0;
    for (int i = k->b - 1; i >= 0 && !bit(in[0], i, 64); i--)
        n++;
    return n;
}
static uint64_t reversed(const struct row_case *k, const uint64_t in[4]) {
    uint64_t r = 0;
    for (int i = 0; i < k->b; i++)
        r |= (uint64_t)bit(in[0], k->b - 1 - i, 64) << i;
    return r;
}
static uint64_t highest(const struct row_case *k, const uint64_t in[4]) { /* a: 1 signed */
    unsigned sign = k->a ? bit(in[0], k->b - 1, 64) : 0;
    for (int i = k->b - 1; i >= 0; i--)
        if (bit(in[0], i, 64) != sign)
            return (uint64_t)i;
    return 0xffffffffu;
}

/*
 * PTX ISA 9.7.1.19: position and length are 0 to 255.  Beyond, the 32-bit forms take the low 8 bits
 * and the 64-bit forms all of them (H200); 255 stands for more here.
 */
static int field(const struct row_case *k, uint64_t v) {
    uint32_t n = (uint32_t)v;
    return (int)(k->b == 32 ? n & 255 : n > 255 ? 255 : n);
}

static uint64_t extract(const struct row_case *k, const uint64_t in[4]) { /* a: 1 signed */
    int pos = field(k, in[1]), len = field(k, in[2]), msb = k->b - 1;
    unsigned sign = 0;
    uint64_t r = 0;
    if (k->a && len)
        sign = bit(in[0], pos + len - 1 < msb ? pos + len - 1 : msb, 64);
    for (int i = 0; i <= msb; i++)
        r |= (uint64_t)(i < len && pos + i <= msb ? bit(in[0], pos + i, 64) : sign) << i;
    return r;
}
static uint64_t insert(const struct row_case *k, const uint64_t in[4]) {
    int pos = field(k, in[2]), len = field(k, in[3]), msb = k->b - 1;
    uint64_t r = k->b == 64 ? in[1] : (uint32_t)in[1];
    for (int i = 0; i < len && pos + i <= msb; i++)
        r = (r & ~((uint64_t)1 << (pos + i))) | (uint64_t)bit(in[0], i, 64) << (pos + i);
    return r;
}

static uint64_t permute(const struct row_case *k, const uint64_t in[4]) {
    uint8_t bytes[8];
    uint64_t r = 0;
    (void)k;
    for (int i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(in[0] >> (8 * i));
        bytes[4 + i] = (uint8_t)(in[1] >> (8 * i));
    }
    for (int i = 0; i < 4; i++) {
        unsigned nibble = (unsigned)(in[2] >> (4 * i)) & 15;
        uint8_t b = bytes[nibble & 7];
        r |= (uint64_t)(nibble & 8 ? (b & 128 ? 255 : 0) : b) << (8 * i);
    }
    return r;
}

/* a: how the pieces are moved; see the cases. */
static uint64_t moved(const struct row_case *k, const uint64_t in[4]) {
    switch (k->a) {
    case 0: return k->b == 64 ? in[0] : in[0] & (((uint64_t)1 << k->b) - 1);
    case 1: return (uint32_t)in[0] | in[1] << 32;
    case 2:
        return (uint16_t)in[0] | (in[1] & 0xffff) << 16 | (in[2] & 0xffff) << 32 |
               (in[3] & 0xffff) << 48;
    case 3: return (uint16_t)in[0] | (in[1] & 0xffff) << 16;
    case 4: return in[0] >> 32;
    case 5: return (uint32_t)in[0] >> 16;
    case 7: return in[0] << 16 & 0xffffffff;
    case 8: return (in[0] & 0xffff) | 0xffff0000;
    case 9: return 5 | in[0] << 32;
    default: return in[0] >> 48;
    }
}

#define LOGIC(op, text, in, table)                                                      \
    {PTX_OP_##op, text ".b16 %hr, " in("h") ";", "h", "dd", logic, table, 16, 0},       \
        {PTX_OP_##op, text ".b32 %wr, " in("w") ";", "w", "dd", logic, table, 32, 0}, { \
        PTX_OP_##op, text ".b64 %dr, " in("d") ";", "d", "dd", logic, table, 64, 0      \
    }
#define TWO(r) "%" r "0, %" r "1"
#define ONE(r) "%" r "0"
#define SHIFT(op, text, type, r, bits, kind) \
    { PTX_OP_##op, text "." type " %" r "r, %" r "0, %w1;", r, "ds", shift, kind, bits, 0 }
#define PRED(op, text, table) \
    { PTX_OP_##op, text, "p", "pp", predicate, table, 0, 0 }

static const struct row_case cases[] = {
    LOGIC(AND, "and", TWO, 0xc0),
    LOGIC(OR, "or", TWO, 0xfc),
    LOGIC(XOR, "xor", TWO, 0x3c),
    LOGIC(NOT, "not", ONE, 0x0f),
    {PTX_OP_CNOT, "cnot.b16 %hr, %h0;", "h", "d", cnot, 0, 16, 0},
    {PTX_OP_CNOT, "cnot.b32 %wr, %w0;", "w", "d", cnot, 0, 32, 0},
    {PTX_OP_CNOT, "cnot.b64 %dr, %d0;", "d", "d", cnot, 0, 64, 0},
    PRED(AND_PRED, "and.pred %pr, %p0, %p1;", 8),
    PRED(OR_PRED, "or.pred %pr, %p0, %p1;", 14),
    PRED(XOR_PRED, "xor.pred %pr, %p0, %p1;", 6),
    PRED(NOT_PRED, "not.pred %pr, %p0;", 3),
    PRED(MOV_PRED, "mov.pred %pr, %p1;", 10),
    PRED(MOV_PRED, "mov.pred %pr, -1;", 15),
    PRED(MOV_PRED, "mov.pred %pr, 0;", 0),
    PRED(XOR_PRED, "xor.pred %pr, %p0, -1;", 3),
    {PTX_OP_LOP3, "lop3.b32 %wr, %w0, %w1, %w2, 0x80;", "w", "ddd", logic, 0x80, 32, 0},
    {PTX_OP_LOP3, "lop3.b32 %wr, %w0, %w1, %w2, 0x96;", "w", "ddd", logic, 0x96, 32, 0},
    {PTX_OP_LOP3, "lop3.b32 %wr, %w0, %w1, %w2, 0xca;", "w", "ddd", logic, 0xca, 32, 0},
    {PTX_OP_LOP3, "lop3.b32 %wr, %w0, %w1, %w2, 0x1d;", "w", "ddd", logic, 0x1d, 32, 0},
    SHIFT(SHL, "shl", "b16", "h", 16, 0),
    SHIFT(SHL, "shl", "b32", "w", 32, 0),
    SHIFT(SHL, "shl", "b64", "d", 64, 0),
    SHIFT(SHR, "shr", "b16", "h", 16, 1),
    SHIFT(SHR, "shr", "u16", "h", 16, 1),
    SHIFT(SHR, "shr", "s16", "h", 16, 2),
    SHIFT(SHR, "shr", "b32", "w", 32, 1),
    SHIFT(SHR, "shr", "u32", "w", 32, 1),
    SHIFT(SHR, "shr", "s32", "w", 32, 2),
    SHIFT(SHR, "shr", "u64", "d", 64, 1),
    SHIFT(SHR, "shr", "s64", "d", 64, 2),
    {PTX_OP_SHF, "shf.l.clamp.b32 %wr, %w0, %w1, %w2;", "w", "dds", funnel, 0, 32, 0},
    {PTX_OP_SHF, "shf.l.wrap.b32 %wr, %w0, %w1, %w2;", "w", "dds", funnel, 0, 32, 1},
    {PTX_OP_SHF, "shf.r.clamp.b32 %wr, %w0, %w1, %w2;", "w", "dds", funnel, 1, 32, 0},
    {PTX_OP_SHF, "shf.r.wrap.b32 %wr, %w0, %w1, %w2;", "w", "dds", funnel, 1, 32, 1},
    {PTX_OP_POPC, "popc.b32 %wr, %w0;", "w", "d", count_ones, 0, 32, 0},
    {PTX_OP_POPC, "popc.b64 %wr, %d0;", "w", "d", count_ones, 0, 64, 0},
    {PTX_OP_CLZ, "clz.b32 %wr, %w0;", "w", "d", leading_zeros, 0, 32, 0},
    {PTX_OP_CLZ, "clz.b64 %wr, %d0;", "w", "d", leading_zeros, 0, 64, 0},
    {PTX_OP_BREV, "brev.b32 %wr, %w0;", "w", "d", reversed, 0, 32, 0},
    {PTX_OP_BREV, "brev.b64 %dr, %d0;", "d", "d", reversed, 0, 64, 0},
    {PTX_OP_BFIND, "bfind.u32 %wr, %w0;", "w", "d", highest, 0, 32, 0},
    {PTX_OP_BFIND, "bfind.s32 %wr, %w0;", "w", "d", highest, 1, 32, 0},
    {PTX_OP_BFIND, "bfind.u64 %wr, %d0;", "w", "d", highest, 0, 64, 0},
    {PTX_OP_BFIND, "bfind.s64 %wr, %d0;", "w", "d", highest, 1, 64, 0},
    {PTX_OP_BFE, "bfe.u32 %wr, %w0, %w1, %w2;", "w", "dss", extract, 0, 32, 0},
    {PTX_OP_BFE, "bfe.s32 %wr, %w0, %w1, %w2;", "w", "dss", extract, 1, 32, 0},
    {PTX_OP_BFE, "bfe.u64 %dr, %d0, %w1, %w2;", "d", "dss", extract, 0, 64, 0},
    {PTX_OP_BFE, "bfe.s64 %dr, %d0, %w1, %w2;", "d", "dss", extract, 1, 64, 0},
    {PTX_OP_BFI, "bfi.b32 %wr, %w0, %w1, %w2, %w3;", "w", "ddss", insert, 0, 32, 0},
    {PTX_OP_BFI, "bfi.b64 %dr, %d0, %d1, %w2, %w3;", "d", "ddss", insert, 0, 64, 0},
    {PTX_OP_PRMT, "prmt.b32 %wr, %w0, %w1, %w2;", "w", "ddd", permute, 0, 32, 0},
    {PTX_OP_MOV, "mov.b16 %hr, %h0;", "h", "d", moved, 0, 16, 0},
    {PTX_OP_MOV, "mov.u32 %wr, %w0;", "w", "d", moved, 0, 32, 0},
    {PTX_OP_MOV, "mov.f64 %dr, %d0;", "d", "d", moved, 0, 64, 0},
    {PTX_OP_MOV, "mov.b64 %dr, {%w0, %w1};", "d", "dd", moved, 1, 64, 0},
    {PTX_OP_MOV, "mov.b64 %dr, {%h0, %h1, %h2, %h3};", "d", "dddd", moved, 2, 64, 0},
    {PTX_OP_MOV, "mov.b32 %wr, {%h0, %h1};", "w", "dd", moved, 3, 32, 0},
    {PTX_OP_MOV, "mov.b32 %wr, {0, %h0};", "w", "d", moved, 7, 32, 0},
    {PTX_OP_MOV, "mov.b32 %wr, {%h0, -1};", "w", "d", moved, 8, 32, 0},
    {PTX_OP_MOV, "mov.b64 %dr, {5, %w0};", "d", "d", moved, 9, 64, 0},
    {PTX_OP_MOV, "mov.b64 {%w3, %wr}, %d0;", "w", "d", moved, 4, 32, 0},
    {PTX_OP_MOV, "mov.b32 {%h3, %hr}, %w0;", "h", "d", moved, 5, 16, 0},
    {PTX_OP_MOV, "mov.b64 {%h1, %h2, %h3, %hr}, %d0;", "h", "d", moved, 6, 16, 0},
    {PTX_OP_MOV, "mov.b64 {%w0, %w1}, %d0; mov.b64 %dr, {%w0, %w1};", "d", "d", moved, 0, 64, 0},
    {PTX_OP_CVTA, "cvta.global.u64 %dr, %d0; cvta.to.global.u64 %dr, %dr;", "d", "d", moved, 0, 64,
     0},
    {PTX_OP_CVTA, "and.b64 %d0, %d0, 65535; cvta.shared.u64 %dr, %d0; cvta.to.shared.u64 %dr, %dr;",
     "d", "d", moved, 0, 16, 0},
    {PTX_OP_CVTA, "and.b64 %d0, %d0, 65535; cvta.local.u64 %dr, %d0; cvta.to.local.u64 %dr, %dr;",
     "d", "d", moved, 0, 16, 0},
};
const struct row_list rows_bits = {cases, sizeof cases / sizeof *cases};
