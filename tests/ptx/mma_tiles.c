/* mma_tiles.c - see mma_tiles.h. */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "tests/ptx/mma_tiles.h"

/* ---- instructions ---------------------------------------------------------------------------- */

#define MMA(shape, types) "mma.sync.aligned." shape ".row.col." types
#define WGMMA(rest) "wgmma.mma_async.sync.aligned." rest

const struct mma_insn mma_insns[] = {
    {MMA("m16n8k16", "f32.f16.f16.f32"), 16, 16, 2, MMA_FLOAT, TENSOR_F16, false, 80},
    {MMA("m16n8k8", "f32.f16.f16.f32"), 16, 8, 2, MMA_FLOAT, TENSOR_F16, false, 75},
    {MMA("m16n8k16", "f16.f16.f16.f16"), 16, 16, 2, MMA_FLOAT, TENSOR_F16, true, 80},
    {MMA("m16n8k8", "f16.f16.f16.f16"), 16, 8, 2, MMA_FLOAT, TENSOR_F16, true, 75},
    {MMA("m16n8k16", "f32.bf16.bf16.f32"), 16, 16, 2, MMA_FLOAT, TENSOR_BF16, false, 80},
    {MMA("m16n8k8", "f32.bf16.bf16.f32"), 16, 8, 2, MMA_FLOAT, TENSOR_BF16, false, 80},
    {MMA("m16n8k8", "f32.tf32.tf32.f32"), 16, 8, 1, MMA_FLOAT, TENSOR_TF32, false, 80},
    {MMA("m16n8k4", "f32.tf32.tf32.f32"), 16, 4, 1, MMA_FLOAT, TENSOR_TF32, false, 80},
    {MMA("m8n8k4", "f64.f64.f64.f64"), 8, 4, 1, MMA_F64, TENSOR_F32, false, 80},
    {MMA("m16n8k4", "f64.f64.f64.f64"), 16, 4, 1, MMA_F64, TENSOR_F32, false, 90},
    {MMA("m16n8k8", "f64.f64.f64.f64"), 16, 8, 1, MMA_F64, TENSOR_F32, false, 90},
    {MMA("m16n8k16", "f64.f64.f64.f64"), 16, 16, 1, MMA_F64, TENSOR_F32, false, 90},
    {MMA("m8n8k16", "s32.s8.s8.s32"), 8, 16, 4, MMA_S8, TENSOR_F32, false, 75},
    {MMA("m16n8k16", "s32.s8.s8.s32"), 16, 16, 4, MMA_S8, TENSOR_F32, false, 80},
    {MMA("m16n8k32", "s32.s8.s8.s32"), 16, 32, 4, MMA_S8, TENSOR_F32, false, 80},
    {MMA("m16n8k32", "satfinite.s32.u8.u8.s32"), 16, 32, 4, MMA_U8, TENSOR_F32, false, 80},
    {MMA("m16n8k32", "f32.e4m3.e4m3.f32"), 16, 32, 4, MMA_FLOAT, TENSOR_E4M3, false, 89},
    {MMA("m16n8k32", "f32.e5m2.e5m2.f32"), 16, 32, 4, MMA_FLOAT, TENSOR_E5M2, false, 89},
    {MMA("m16n8k16", "f32.e4m3.e4m3.f32"), 16, 16, 4, MMA_FLOAT, TENSOR_E4M3, false, 89},
    {MMA("m16n8k32", "f16.e4m3.e4m3.f16"), 16, 32, 4, MMA_FLOAT, TENSOR_E4M3, true, 89},
    {WGMMA("m64n8k16.f32.f16.f16"), 64, 16, 2, MMA_FLOAT, TENSOR_F16, false, 90},
    {WGMMA("m64n8k16.f16.f16.f16"), 64, 16, 2, MMA_FLOAT, TENSOR_F16, true, 90},
    {WGMMA("m64n8k16.f32.bf16.bf16"), 64, 16, 2, MMA_FLOAT, TENSOR_BF16, false, 90},
    {WGMMA("m64n8k8.f32.tf32.tf32"), 64, 8, 1, MMA_FLOAT, TENSOR_TF32, false, 90},
    {WGMMA("m64n8k32.f32.e4m3.e4m3"), 64, 32, 4, MMA_FLOAT, TENSOR_E4M3, false, 90},
    {WGMMA("m64n8k32.f32.e5m2.e5m2"), 64, 32, 4, MMA_FLOAT, TENSOR_E5M2, false, 90},
    {WGMMA("m64n8k32.f16.e4m3.e4m3"), 64, 32, 4, MMA_FLOAT, TENSOR_E4M3, true, 90},
    {WGMMA("m64n8k32.f16.e5m2.e5m2"), 64, 32, 4, MMA_FLOAT, TENSOR_E5M2, true, 90},
    {WGMMA("m64n8k32.s32.s8.s8"), 64, 32, 4, MMA_S8, TENSOR_F32, false, 90},
};
const size_t mma_insn_count = COUNT(mma_insns);

bool mma_is_group(const struct mma_insn *in) {
    return in->m == 64;
}
static unsigned a_regs(const struct mma_insn *in) {
    return in->m / 8 * (in->k / (4 * in->per));
}
static unsigned b_regs(const struct mma_insn *in) {
    return in->k / (4 * in->per);
}
static unsigned c_regs(const struct mma_insn *in) {
    return (mma_is_group(in) ? 2 : in->m / 8) * (in->f16_out ? 1 : 2);
}
static unsigned reg_bytes(const struct mma_insn *in) {
    return in->kind == MMA_F64 ? 8 : 4;
}

/* ---- the kernel: one warp, one tile; register r of lane l of tile t at (t * regs + r) * 32 + l */

static int list(char *text, size_t room, const char *name, unsigned first, unsigned count) {
    int n = snprintf(text, room, "{");
    for (unsigned i = 0; i < count; i++)
        n += snprintf(text + n, room - (size_t)n, "%s%%%s%u", i ? ", " : "", name, first + i);
    return n + snprintf(text + n, room - (size_t)n, "}");
}

static const char *const group_head =
    ".visible .entry tile(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc)\n{\n"
    ".reg .b32 %t<6>;\n.reg .b64 %p<6>;\n.reg .b32 %v<8>;\n.reg .pred %q<2>;\n"
    ".shared .align 1024 .b8 s[2304];\n"
    "mov.u32 %t0, %ctaid.x;\nmov.u32 %t1, %tid.x;\nshl.b32 %t2, %t1, 4;\nmov.u32 %t3, s;\n"
    "add.u32 %t4, %t3, %t2;\nld.param.u64 %p0, [pa];\nmul.wide.u32 %p1, %t0, 2048;\n"
    "add.u64 %p0, %p0, %p1;\ncvt.u64.u32 %p1, %t2;\nadd.u64 %p0, %p0, %p1;\n"
    "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%p0];\nst.shared.v4.b32 [%t4], {%v0, %v1, %v2, %v3};\n"
    "setp.ge.u32 %q0, %t1, 16;\n@%q0 bra loaded;\n"
    "ld.param.u64 %p0, [pb];\nmul.wide.u32 %p2, %t0, 256;\n"
    "add.u64 %p0, %p0, %p2;\nadd.u64 %p0, %p0, %p1;\n"
    "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%p0];\n"
    "st.shared.v4.b32 [%t4+2048], {%v0, %v1, %v2, %v3};\nloaded:\n"
    "fence.proxy.async;\nbar.sync 0;\n"
    "shr.u32 %t3, %t3, 4;\ncvt.u64.u32 %p2, %t3;\nor.b64 %p2, %p2, 0x0000001000080000;\n"
    "add.u64 %p3, %p2, 128;\n" /* 2048 bytes on */
    "setp.eq.u32 %q0, %t3, %t3;\nmul.wide.u32 %p4, %t1, 4;\n";

/* Register r of thread l of tile t at (t * regs + r) * 128 + l. */
static size_t group_kernel(char *text, size_t room, const struct mma_insn *in, const char *target) {
    unsigned regs = c_regs(in);
    int n =
        snprintf(text, room, ".version 8.7\n.target %s\n.address_size 64\n%s", target, group_head);
    for (int g = 0; g < 2; g++)
        n += snprintf(text + n, room - (size_t)n,
                      "ld.param.u64 %%p0, [%s];\nmul.wide.u32 %%p1, %%t0, %u;\n"
                      "add.u64 %%p0, %%p0, %%p1;\nadd.u64 %%p%d, %%p0, %%p4;\n",
                      g ? "pd" : "pc", regs * 512, g ? 4 : 5);
    for (unsigned r = 0; r < regs; r++)
        n += snprintf(text + n, room - (size_t)n, "ld.global.b32 %%v%u, [%%p5+%u];\n", r, r * 512);
    n += snprintf(text + n, room - (size_t)n, "wgmma.fence.sync.aligned;\n%s ", in->name);
    n += list(text + n, room - (size_t)n, "v", 0, regs);
    n += snprintf(text + n, room - (size_t)n,
                  ", %%p2, %%p3, %%q0%s;\nwgmma.commit_group.sync.aligned;\n"
                  "wgmma.wait_group.sync.aligned 0;\n",
                  in->kind == MMA_S8 ? ""
                  : in->per == 2     ? ", 1, 1, 0, 0"
                                     : ", 1, 1");
    for (unsigned r = 0; r < regs; r++)
        n += snprintf(text + n, room - (size_t)n, "st.global.b32 [%%p4+%u], %%v%u;\n", r * 512, r);
    return (size_t)(n + snprintf(text + n, room - (size_t)n, "ret;\n}\n"));
}

size_t mma_kernel(char *text, size_t room, const struct mma_insn *in, const char *target) {
    static const char *const params[] = {"pa", "pb", "pc"};
    if (mma_is_group(in))
        return group_kernel(text, room, in, target);
    unsigned regs[3] = {a_regs(in), b_regs(in), c_regs(in)}, bytes = reg_bytes(in);
    unsigned total = regs[0] + regs[1] + regs[2], first = 0;
    int n =
        snprintf(text, room,
                 ".version %s\n.target %s\n.address_size 64\n"
                 ".visible .entry tile(.param .u64 pd, .param .u64 pa, .param .u64 pb, "
                 ".param .u64 pc)\n{\n.reg .b32 %%t<6>;\n.reg .b64 %%p<4>;\n.reg .b%u %%v<%u>;\n"
                 "mov.u32 %%t0, %%ctaid.x;\nmov.u32 %%t1, %%ntid.x;\nmov.u32 %%t2, %%tid.x;\n"
                 "mad.lo.u32 %%t0, %%t0, %%t1, %%t2;\nshr.u32 %%t3, %%t0, 5;\n"
                 "and.b32 %%t4, %%t0, 31;\n",
                 in->type == TENSOR_E4M3 || in->type == TENSOR_E5M2 ? "8.7" : "8.0", target,
                 bytes * 8, total + regs[2]);
    for (int g = 0; g < 4; g++) {
        const char *param = g < 3 ? params[g] : "pd";
        unsigned count = regs[g < 3 ? g : 2];
        n += snprintf(text + n, room - (size_t)n,
                      "ld.param.u64 %%p0, [%s];\nmad.lo.u32 %%t5, %%t3, %u, %%t4;\n"
                      "mul.wide.u32 %%p1, %%t5, %u;\nadd.u64 %%p%d, %%p0, %%p1;\n",
                      param, count * 32, bytes, g == 3 ? 3 : 2);
        for (unsigned r = 0; g < 3 && r < count; r++)
            n += snprintf(text + n, room - (size_t)n, "ld.global.b%u %%v%u, [%%p2+%u];\n",
                          bytes * 8, first + r, r * 32 * bytes);
        first += g < 3 ? count : 0;
    }
    n += snprintf(text + n, room - (size_t)n, "%s ", in->name);
    n += list(text + n, room - (size_t)n, "v", total, regs[2]);
    for (int g = 0, at = 0; g < 3; at += (int)regs[g++]) {
        n += snprintf(text + n, room - (size_t)n, ", ");
        n += list(text + n, room - (size_t)n, "v", (unsigned)at, regs[g]);
    }
    n += snprintf(text + n, room - (size_t)n, ";\n");
    for (unsigned r = 0; r < regs[2]; r++)
        n += snprintf(text + n, room - (size_t)n, "st.global.b%u [%%p3+%u], %%v%u;\n", bytes * 8,
                      r * 32 * bytes, total + r);
    return (size_t)(n + snprintf(text + n, room - (size_t)n, "ret;\n}\n"));
}

/* ---- operands -------------------------------------------------------------------------------- */

struct layout { /* of a float format; tf32 as the f32 it comes in */
    int bits, fraction, bias;
};

static const struct layout f16 = {16, 10, 15}, bf16 = {16, 7, 127}, f32 = {32, 23, 127},
                           f64 = {64, 52, 1023}, e4m3 = {8, 3, 7}, e5m2 = {8, 2, 15};

static struct layout layout_of(const struct mma_insn *in) {
    if (in->kind == MMA_F64)
        return f64;
    switch (in->type) {
    case TENSOR_F16:
        return f16;
    case TENSOR_BF16:
        return bf16;
    case TENSOR_E4M3:
        return e4m3;
    case TENSOR_E5M2:
        return e5m2;
    default:
        return f32;
    }
}

const char *const mma_family_names[MMA_FAMILIES] = {
    "random bits", "near 1",   "tiny", "tiny, sparse", "cancellation",
    "huge spread", "NaN, Inf", "huge", "ties",         "steps"};

/* A float with exponent e (clamped to the format; subnormal below). */
static uint64_t with_exponent(struct layout l, struct rng *rng, int e, uint64_t low) {
    int top = (1 << (l.bits - 1 - l.fraction)) - 2, field = e + l.bias;
    if (l.bits == 8 && l.fraction == 3)
        top++;
    uint64_t one = 1;
    low &= (one << l.fraction) - 1;
    if (field <= 0) {
        low = field < -l.fraction ? 0 : (low | one << l.fraction) >> (1 - field);
        field = 0;
    }
    field = field > top ? top : field;
    if (l.bits == 8 && l.fraction == 3 && field == 15 && low == 7)
        low = 6;
    return (rng_u64(rng) & 1) << (l.bits - 1) | (uint64_t)field << l.fraction | low;
}

static int below(struct rng *rng, int n) {
    return (int)rng_below(rng, (uint64_t)n);
}

static uint64_t sparse_bits(struct rng *rng) { /* few significant bits, so that ties happen */
    uint64_t r = rng_u64(rng);
    switch (r & 3) {
    case 0:
        return 0;
    case 1:
        return UINT64_C(0xe000000000000) >> (52 - 10) | (r >> 60) << 6;
    default:
        return r >> 8 & rng_u64(rng) & rng_u64(rng);
    }
}

/* centre: exponent of typical tiny operands, half the floor of a product. */
static uint64_t operand(struct layout l, struct rng *rng, enum mma_family f, int centre) {
    uint64_t r = rng_u64(rng);
    switch (f) {
    case MMA_NEAR_ONE:
        return with_exponent(l, rng, below(rng, 4) - 2, r);
    case MMA_SPARSE:
        if (below(rng, 6))
            return (r & 1) << (l.bits - 1);
        return with_exponent(l, rng, centre + below(rng, 13) - 6, r & 64 ? 0 : r >> 8);
    case MMA_TINY:
        return with_exponent(l, rng, centre + below(rng, 13) - 6, r & 192 ? r >> 8 : 0);
    case MMA_SPREAD: {
        int range = 2 * l.bias < 300 ? 2 * l.bias : 300;
        return with_exponent(l, rng, below(rng, range + 1) - range / 2, r >> 8);
    }
    case MMA_SPECIAL:
        if (below(rng, 40) == 0) {
            uint64_t top = ((UINT64_C(1) << (l.bits - 1 - l.fraction)) - 1) << l.fraction;
            return (r & 1) << (l.bits - 1) | top |
                   (r & 2 ? r >> 4 & ((UINT64_C(1) << l.fraction) - 1) : 0);
        }
        return below(rng, 10) ? with_exponent(l, rng, below(rng, 4) - 2, r >> 8) : 0;
    case MMA_HUGE: {
        int e = l.fraction == 23 || l.fraction == 7 ? 63 : l.bias;
        return with_exponent(l, rng, e - below(rng, 3), r >> 8);
    }
    case MMA_STEPS: /* powers of two that make ties far above others at the low end */
        switch (r & 7) {
        case 0:
            return with_exponent(l, rng, centre, 0);
        case 1:
            return with_exponent(l, rng, centre - 1, 0);
        case 2:
        case 3:
        case 4:
            return with_exponent(l, rng, centre - 12 + below(rng, 5), 0);
        default:
            return 0;
        }
    case MMA_TIES:
        return with_exponent(l, rng, below(rng, 12) - 8, sparse_bits(rng));
    default:
        return r & (l.bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << l.bits) - 1);
    }
}

void mma_fill(struct mma_tile *t, const struct mma_insn *in, enum mma_family f, uint64_t number) {
    uint64_t seed = (uint64_t)f << 32 | number;
    struct rng rng = rng_from_seed(seed * 0x9e3779b97f4a7c15u + 12345);
    rng_u64(&rng);
    struct layout l = layout_of(in), lc = in->kind == MMA_F64 ? f64 : in->f16_out ? f16 : f32;
    bool integer = in->kind == MMA_S8 || in->kind == MMA_U8;
    bool wide = l.bias > 100; /* tiny products need tiny operands, not the tiniest */
    int centre = f == MMA_STEPS   ? (wide && l.bias != 1023 ? -67 - below(&rng, 10) : -12)
                 : l.bias == 1023 ? -520
                 : wide           ? -66 - below(&rng, 8)
                                  : -l.bias + 3 - below(&rng, 8);
    for (unsigned i = 0; i < in->m; i++)
        for (unsigned k = 0; k < in->k; k++)
            t->a[i][k] = integer ? rng_u64(&rng) & 255 : operand(l, &rng, f, centre);
    for (unsigned j = 0; j < 8; j++)
        for (unsigned k = 0; k < in->k; k++)
            t->b[j][k] = integer ? rng_u64(&rng) & 255 : operand(l, &rng, f, centre);
    if (f == MMA_CANCEL && !integer) { /* products in pairs of opposite sign, and a few others */
        for (unsigned i = 0; i < in->m; i++)
            for (unsigned k = 0; k < in->k; k++)
                t->a[i][k] = operand(l, &rng, MMA_SPREAD, centre);
        for (unsigned k = 0; k < in->k; k++) {
            bool other = below(&rng, 4) == 0;
            for (unsigned j = 0; j < 8; j++)
                t->b[j][k] = other ? operand(l, &rng, below(&rng, 2) ? MMA_TINY : MMA_NEAR_ONE, -8)
                                   : operand(l, &rng, MMA_NEAR_ONE, 0);
            if (k % 2 && !other) {
                for (unsigned j = 0; j < 8; j++)
                    t->b[j][k] = t->b[j][k - 1];
                for (unsigned i = 0; i < in->m; i++)
                    t->a[i][k] = t->a[i][k - 1] ^ UINT64_C(1) << (l.bits - 1);
            }
        }
    }
    for (unsigned i = 0; i < in->m; i++)
        for (unsigned j = 0; j < 8; j++) {
            int tiny = lc.bias == 1023 ? -1022 : lc.bias == 15 ? -14 : wide ? -130 : 2 * centre;
            enum mma_family cf = f == MMA_CANCEL ? (below(&rng, 2) ? MMA_NEAR_ONE : MMA_SPREAD) : f;
            uint64_t c = operand(lc, &rng, cf, tiny);
            if ((f == MMA_TINY || f == MMA_STEPS) && below(&rng, 2))
                c = 0;
            if (f == MMA_SPARSE && below(&rng, 4))
                c = (rng_u64(&rng) & 1) << (lc.bits - 1);
            if (f == MMA_SPARSE && !wide && lc.bias == 127 && below(&rng, 2)) /* near f32's floor */
                c = with_exponent(lc, &rng, -115 - below(&rng, 36), rng_u64(&rng));
            if (f == MMA_HUGE)
                c = with_exponent(lc, &rng, lc.bias - below(&rng, 4), rng_u64(&rng));
            if (integer)
                c = f == MMA_HUGE ? 0x7fffffff - rng_below(&rng, 1 << 20)
                                  : rng_u64(&rng) >> (32 + below(&rng, 32));
            t->c[i][j] = c;
        }
}

/* ---- matrices to registers: PTX ISA, the figures of mma's fragments -------------------------- */

static unsigned a_row(unsigned r, unsigned lane) {
    return lane / 4 + 8 * (r & 1);
}
static unsigned fragment_k(const struct mma_insn *in, unsigned step, unsigned lane, unsigned e) {
    return step * 4 * in->per + lane % 4 * in->per + e;
}

static void put(uint8_t *at, unsigned bytes, uint64_t value) {
    memcpy(at, &value, bytes);
}

static uint64_t pack(const struct mma_insn *in, const uint64_t *row, unsigned step, unsigned lane) {
    uint64_t v = 0;
    for (unsigned e = 0; e < in->per; e++)
        v |= row[fragment_k(in, step, lane, e)] << (32 / in->per * e);
    return in->per == 1 ? row[fragment_k(in, step, lane, 0)] : v;
}

/* Rows of 32 bytes as core matrices. */
static void core_matrices(uint8_t *at, const struct mma_insn *in, const uint64_t rows[][32],
                          unsigned count) {
    unsigned bytes = 4 / in->per;
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < in->k; k++)
            put(at + i / 8 * 256 + k * bytes / 16 * 128 + i % 8 * 16 + k * bytes % 16, bytes,
                rows[i][k]);
}

static void group_registers(uint8_t *pa, uint8_t *pb, uint8_t *pc, const struct mma_insn *in,
                            const struct mma_tile *t) {
    core_matrices(pa, in, t->a, 64);
    core_matrices(pb, in, t->b, 8);
    for (unsigned l = 0; l < 128; l++)
        for (unsigned r = 0; r < c_regs(in); r++) {
            const uint64_t *row = t->c[l / 32 * 16 + l % 32 / 4 + 8 * (in->f16_out ? r : r / 2)];
            unsigned col = l % 4 * 2;
            put(pc + (r * 128 + l) * 4, 4,
                in->f16_out ? row[col] | row[col + 1] << 16 : row[col + r % 2]);
        }
}

void mma_registers(uint8_t *pa, uint8_t *pb, uint8_t *pc, const struct mma_insn *in,
                   const struct mma_tile *t) {
    unsigned bytes = reg_bytes(in), rows = in->m / 8;
    if (mma_is_group(in)) {
        group_registers(pa, pb, pc, in, t);
        return;
    }
    for (unsigned lane = 0; lane < 32; lane++) {
        for (unsigned r = 0; r < a_regs(in); r++)
            put(pa + (r * 32 + lane) * bytes, bytes,
                pack(in, t->a[rows == 2 ? a_row(r, lane) : lane / 4], r / rows, lane));
        for (unsigned r = 0; r < b_regs(in); r++)
            put(pb + (r * 32 + lane) * bytes, bytes, pack(in, t->b[lane / 4], r, lane));
        for (unsigned r = 0; r < c_regs(in); r++) {
            const uint64_t *row = t->c[lane / 4 + 8 * (in->f16_out ? r : r / 2)];
            unsigned col = lane % 4 * 2;
            put(pc + (r * 32 + lane) * bytes, bytes,
                in->f16_out ? row[col] | row[col + 1] << 16 : row[col + r % 2]);
        }
    }
}

uint64_t mma_result(const struct mma_insn *in, const uint8_t *pd, unsigned i, unsigned j) {
    unsigned lane = i % 8 * 4 + j / 2, bytes = reg_bytes(in);
    unsigned half = i % 16 / 8, r = in->f16_out ? half : half * 2 + j % 2;
    unsigned threads = mma_is_group(in) ? 128 : 32;
    uint64_t v = 0;
    memcpy(&v, pd + (r * threads + i / 16 * 32 + lane) * bytes, bytes);
    return in->f16_out ? v >> 16 * (j % 2) & 0xffff : v;
}

/* ---- running --------------------------------------------------------------------------------- */

size_t mma_bytes_a(const struct mma_insn *in) {
    return mma_is_group(in) ? 2048 : (size_t)a_regs(in) * 32 * reg_bytes(in);
}
size_t mma_bytes_b(const struct mma_insn *in) {
    return mma_is_group(in) ? 256 : (size_t)b_regs(in) * 32 * reg_bytes(in);
}
size_t mma_bytes_c(const struct mma_insn *in) {
    return (size_t)c_regs(in) * (mma_is_group(in) ? 128 : 32) * reg_bytes(in);
}

status_t mma_run(uint8_t *d, struct dev_events *events, struct device *dev,
                 const struct dev_image *image, const struct mma_insn *in, unsigned tiles,
                 const uint8_t *a, const uint8_t *b, const uint8_t *c) {
    status_t st = OK;
    const size_t size[4] = {tiles * mma_bytes_c(in), tiles * mma_bytes_a(in),
                            tiles * mma_bytes_b(in), tiles * mma_bytes_c(in)};
    const uint8_t *const from[4] = {NULL, a, b, c};
    struct dev_buf *buf[4] = {0};
    uint64_t address[4];
    const void *args[4];
    struct dev_run run;
    for (int i = 0; i < 4; i++) {
        TRY(device_alloc(&buf[i], dev, size[i]));
        if (from[i])
            TRY(buffer_write(buf[i], from[i], size[i]));
        address[i] = buffer_address(buf[i]);
        args[i] = &address[i];
    }
    struct dev_launch launch = {.image = image,
                                .entry = "tile",
                                .grid = {tiles, 1, 1},
                                .block = {mma_is_group(in) ? 128 : 32, 1, 1},
                                .args = args,
                                .arg_count = 4};
    TRY(device_launch(&run, dev, &launch));
    if (!run.completed || run.fault_total)
        TRY(FAIL(ERR_DEVICE, "%s", run.faults[0].text));
    if (events)
        *events = run.events;
    TRY(buffer_read(d, buf[0], size[0]));
done:
    for (int i = 0; i < 4; i++)
        buffer_free(buf[i]);
    return st;
}
