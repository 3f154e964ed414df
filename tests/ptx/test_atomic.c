/*
 * test_atomic.c - atom and red on every type, in global and shared memory, against MPFR and plain
 * integers; blocks that wait for other blocks.
 *
 *   test_atomic --device cuda:0     the same on a GPU
 */
#include <stdio.h>
#include <string.h>

#include <mpfr.h>

#include "tests/ptx/harness.h"
#include "tests/ptx/rows.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SIDE 20 /* specials of a type; every pair of them has a thread */
#define THREADS (SIDE * SIDE)
#define STORE(reg) "st.global.u32 [%d2], " reg ";\n"

enum element { F16, BF16, F32, F32_FLUSHED, F64, F64_SHARED, U16, U32, S32, U64, S64 };

static const uint64_t specials[][SIDE] = {
    [F16] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x8400, 0x3c00, 0xbc00, 0x3c01,
             0x1000, 0x1001, 0x0c00, 0x7bff, 0xfbff, 0x5000, 0x7c00, 0xfc00, 0x7e12, 0xfd23},
    [BF16] = {0,      0x8000, 1,      0x8001, 0x7f,   0x80,   0x8080, 0x3f80, 0xbf80, 0x3f81,
              0x3b80, 0x3b81, 0x3b00, 0x7f7f, 0xff7f, 0x7b00, 0x7f80, 0xff80, 0x7fc1, 0xffa3},
    [F32] = {0,          0x80000000, 1,          0x80000003, 0x7fffff,   0x800000,   0x80800001,
             0x3f800000, 0xbf800000, 0x3f800001, 0x33800000, 0x33800001, 0x33000000, 0x7f7fffff,
             0xff7fffff, 0x73800000, 0x7f800000, 0xff800000, 0x7fc12345, 0xff812345},
    [F64] = {0,
             0x8000000000000000,
             1,
             0x8000000000000003,
             0xfffffffffffff,
             0x10000000000000,
             0x8010000000000001,
             0x3ff0000000000000,
             0xbff0000000000000,
             0x3ff0000000000001,
             0x3ca0000000000000,
             0x3ca0000000000001,
             0x3c90000000000000,
             0x7fefffffffffffff,
             0xffefffffffffffff,
             0x7c90000000000000,
             0x7ff0000000000000,
             0xfff0000000000000,
             0x7ff8000000012345,
             0xfff4000000000001},
    [U32] = {0,          1,          2,          3,          7,          0x7f,       0x80,
             0xff,       0x7fff,     0x8000,     0xffff,     0x10000,    0x7fffffff, 0x80000000,
             0x80000001, 0xfffffffe, 0xffffffff, 0x12345678, 0x55555555, 0xf0f0f0f0},
    [U64] = {0,
             1,
             2,
             3,
             7,
             0xff,
             0xffffffff,
             0x100000000,
             0x7fffffff,
             0x80000000,
             0x7fffffffffffffff,
             0x8000000000000000,
             0x8000000000000001,
             0xffffffffffffffff,
             0xfffffffffffffffe,
             0x123456789abcdef,
             0x5555555555555555,
             0xf0f0f0f0f0f0f0f0,
             0xffffffff00000000,
             0x10000},
};

static unsigned element_bits(enum element e) {
    return e <= BF16 || e == U16                                 ? 16
           : e == F64 || e == F64_SHARED || e == U64 || e == S64 ? 64
                                                                 : 32;
}

static const uint64_t *specials_of(enum element e) {
    if (e == F64_SHARED)
        return specials[F64];
    return specials[e == F32_FLUSHED ? F32 : e == S64 ? U64 : e == S32 || e == U16 ? U32 : e];
}

static uint64_t special(enum element e, size_t i) {
    uint64_t v = specials_of(e)[i % SIDE];
    return element_bits(e) == 64 ? v : v & (((uint64_t)1 << element_bits(e)) - 1);
}

/* ---- references ------------------------------------------------------------------------------ */

static uint64_t ref_half(bool bf16, enum ptx_atom op, uint64_t a, uint64_t b) {
    const struct ref_format *f = bf16 ? &ref_bf16 : &ref_f16;
    bool nan_a = ref_is_nan(f, a), nan_b = ref_is_nan(f, b);
    mpfr_t x, y;
    mpfr_inits2(REF_PRECISION, x, y, (mpfr_ptr)0);
    ref_set(x, f, a);
    ref_set(y, f, b);
    uint64_t r;
    if (op == ATOM_ADD) {
        mpfr_add(x, x, y, MPFR_RNDN);
        r = mpfr_nan_p(x) ? 0x7fff : ref_round(x, f, REF_RN);
    } else if (nan_a || nan_b) {
        r = nan_a && nan_b ? 0x7fff : nan_a ? b : a;
    } else {
        int order = mpfr_cmp(x, y);
        if (order == 0) /* -0 < +0 */
            order = (int)mpfr_signbit(y) - (int)mpfr_signbit(x);
        r = (order < 0) == (op == ATOM_MIN) ? a : b;
        r = order == 0 ? a : r;
    }
    mpfr_clears(x, y, (mpfr_ptr)0);
    return r;
}

/* NaN as an H200 has it: global memory keeps the operand's bits, shared memory the old value's. */
static uint64_t ref_wide(bool shared, uint64_t a, uint64_t b) {
    const uint64_t quiet = 0x0008000000000000;
    if (ref_is_nan64(a) || ref_is_nan64(b)) {
        if (shared)
            return (ref_is_nan64(a) ? a : b) | quiet;
        return ref_is_nan64(b) ? b : a;
    }
    uint64_t r = ref_f64(REF_ADD, a, b, 0, REF_RN);
    return ref_is_nan64(r) ? 0xfff8000000000000 : r;
}

static int64_t as_signed(enum element e, uint64_t v) {
    return e == S32 ? (int32_t)v : (int64_t)v;
}

static uint64_t ref_integer(enum element e, enum ptx_atom op, uint64_t a, uint64_t b) {
    bool is_signed = e == S32 || e == S64;
    bool less = is_signed ? as_signed(e, a) < as_signed(e, b) : a < b;
    uint64_t r = 0;
    switch (op) {
    case ATOM_ADD:
        r = a + b;
        break;
    case ATOM_MIN:
        r = less ? a : b;
        break;
    case ATOM_MAX:
        r = less ? b : a;
        break;
    case ATOM_EXCH:
        r = b;
        break;
    case ATOM_INC:
        r = a >= b ? 0 : a + 1;
        break;
    case ATOM_DEC:
        r = a == 0 || a > b ? b : a - 1;
        break;
    case ATOM_AND:
        r = a & b;
        break;
    case ATOM_OR:
        r = a | b;
        break;
    case ATOM_XOR:
        r = a ^ b;
        break;
    case ATOM_CAS:
        r = a == b ? ~b : a;
        break; /* the kernel's third operand */
    default:
        break;
    }
    return element_bits(e) == 64 ? r : r & (((uint64_t)1 << element_bits(e)) - 1);
}

static uint64_t reference(enum element e, enum ptx_atom op, uint64_t a, uint64_t b) {
    switch (e) {
    case F16:
    case BF16:
        return ref_half(e == BF16, op, a, b);
    case F32:
        return ref_f32(REF_ADD, (uint32_t)a, (uint32_t)b, 0, REF_RN);
    case F32_FLUSHED:
        return ref_flush(
            ref_f32(REF_ADD, ref_flush((uint32_t)a), ref_flush((uint32_t)b), 0, REF_RN));
    case F64:
    case F64_SHARED:
        return ref_wide(e == F64_SHARED, a, b);
    default:
        return ref_integer(e, op, a, b);
    }
}

/* ---- one instruction, all pairs -------------------------------------------------------------- */

/*
 * text: over the address %d4 (global) or %r8 (shared) and the operands %h1..8, %r10..13, %d6, %d7,
 * all the same 16 bytes; cas: %h9, %r9, %d8 hold their complement.  Results: %x1..8, %r14..17,
 * %d9, %d10.  result: which of them (0: none).
 */
struct atomic_case {
    const char *text;
    char result;
    enum element element;
    unsigned count;
    enum ptx_atom op;
};

/* Shared memory does not flush, and has NaN in another order. */
#define SHARED_KIND(element) \
    ((element) == F32_FLUSHED ? F32 : (element) == F64 ? F64_SHARED : (element))
#define GS(op_text, type, operand, res, element, op)                                             \
    {"atom.global." op_text "." type " %" res ", [%d4], %" operand ";", res[0], element, 1, op}, \
        {"red.global." op_text "." type " [%d4], %" operand ";", 0, element, 1, op}, {           \
        "atom.shared." op_text "." type " %" res ", [%r8], %" operand ";", res[0],               \
            SHARED_KIND(element), 1, op                                                          \
    }
#define GSX(op_text, type, operand, res, element, op)                                              \
    {"atom.global." op_text "." type " %" res ", [%d4], %" operand ";", res[0], element, 1, op}, { \
        "atom.shared." op_text "." type " %" res ", [%r8], %" operand ";", res[0], element, 1, op  \
    }

static const struct atomic_case cases[] = {
    GS("add", "u32", "r10", "r14", U32, ATOM_ADD),
    GS("add", "s32", "r10", "r14", S32, ATOM_ADD),
    GS("add", "u64", "d6", "d9", U64, ATOM_ADD),
    GS("min", "u32", "r10", "r14", U32, ATOM_MIN),
    GS("min", "s32", "r10", "r14", S32, ATOM_MIN),
    GS("min", "u64", "d6", "d9", U64, ATOM_MIN),
    GS("min", "s64", "d6", "d9", S64, ATOM_MIN),
    GS("max", "u32", "r10", "r14", U32, ATOM_MAX),
    GS("max", "s32", "r10", "r14", S32, ATOM_MAX),
    GS("max", "u64", "d6", "d9", U64, ATOM_MAX),
    GS("max", "s64", "d6", "d9", S64, ATOM_MAX),
    GS("inc", "u32", "r10", "r14", U32, ATOM_INC),
    GS("dec", "u32", "r10", "r14", U32, ATOM_DEC),
    GS("and", "b32", "r10", "r14", U32, ATOM_AND),
    GS("or", "b32", "r10", "r14", U32, ATOM_OR),
    GS("xor", "b32", "r10", "r14", U32, ATOM_XOR),
    GS("and", "b64", "d6", "d9", U64, ATOM_AND),
    GS("or", "b64", "d6", "d9", U64, ATOM_OR),
    GS("xor", "b64", "d6", "d9", U64, ATOM_XOR),
    GSX("exch", "b32", "r10", "r14", U32, ATOM_EXCH),
    GSX("exch", "b64", "d6", "d9", U64, ATOM_EXCH),
    {"atom.global.cas.b16 %x1, [%d4], %h1, %h9;", 'x', U16, 1, ATOM_CAS},
    {"atom.global.cas.b32 %r14, [%d4], %r10, %r9;", 'r', U32, 1, ATOM_CAS},
    {"atom.global.cas.b64 %d9, [%d4], %d6, %d8;", 'd', U64, 1, ATOM_CAS},
    {"atom.shared.cas.b16 %x1, [%r8], %h1, %h9;", 'x', U16, 1, ATOM_CAS},
    {"atom.shared.cas.b32 %r14, [%r8], %r10, %r9;", 'r', U32, 1, ATOM_CAS},
    {"atom.shared.cas.b64 %d9, [%r8], %d6, %d8;", 'd', U64, 1, ATOM_CAS},
    GS("add", "f32", "r10", "r14", F32_FLUSHED, ATOM_ADD),
    GS("add", "f64", "d6", "d9", F64, ATOM_ADD),
    GS("add.noftz", "f16", "h1", "x1", F16, ATOM_ADD),
    GS("add.noftz", "bf16", "h1", "x1", BF16, ATOM_ADD),
    {"atom.global.add.noftz.f16x2 %r14, [%d4], %r10;", 'r', F16, 2, ATOM_ADD},
    {"red.global.add.noftz.f16x2 [%d4], %r10;", 0, F16, 2, ATOM_ADD},
    {"atom.shared.add.noftz.f16x2 %r14, [%r8], %r10;", 'r', F16, 2, ATOM_ADD},
    {"atom.global.add.noftz.bf16x2 %r14, [%d4], %r10;", 'r', BF16, 2, ATOM_ADD},
    {"red.global.add.noftz.bf16x2 [%d4], %r10;", 0, BF16, 2, ATOM_ADD},
    {"atom.shared.add.noftz.bf16x2 %r14, [%r8], %r10;", 'r', BF16, 2, ATOM_ADD},
    {"red.global.v2.f32.add [%d4], {%r10, %r11};", 0, F32_FLUSHED, 2, ATOM_ADD},
    {"red.global.add.v4.f32 [%d4], {%r10, %r11, %r12, %r13};", 0, F32_FLUSHED, 4, ATOM_ADD},
    {"atom.global.add.v2.f32 {%r14, %r15}, [%d4], {%r10, %r11};", 'r', F32_FLUSHED, 2, ATOM_ADD},
    {"atom.global.add.v4.f32 {%r14, %r15, %r16, %r17}, [%d4], {%r10, %r11, %r12, %r13};", 'r',
     F32_FLUSHED, 4, ATOM_ADD},
    {"red.global.add.noftz.v2.f16 [%d4], {%h1, %h2};", 0, F16, 2, ATOM_ADD},
    {"red.global.add.noftz.v4.bf16 [%d4], {%h1, %h2, %h3, %h4};", 0, BF16, 4, ATOM_ADD},
    {"atom.global.add.noftz.v8.f16 {%x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8}, [%d4], "
     "{%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8};",
     'x', F16, 8, ATOM_ADD},
    {"red.global.add.noftz.v4.f16x2 [%d4], {%r10, %r11, %r12, %r13};", 0, F16, 8, ATOM_ADD},
    {"atom.global.add.noftz.v2.bf16x2 {%r14, %r15}, [%d4], {%r10, %r11};", 'r', BF16, 4, ATOM_ADD},
    {"atom.global.min.noftz.v4.f16 {%x1, %x2, %x3, %x4}, [%d4], {%h1, %h2, %h3, %h4};", 'x', F16, 4,
     ATOM_MIN},
    {"red.global.max.noftz.v8.bf16 [%d4], {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8};", 0, BF16, 8,
     ATOM_MAX},
    {"red.global.min.noftz.v2.bf16x2 [%d4], {%r10, %r11};", 0, BF16, 4, ATOM_MIN},
    {"atom.global.max.noftz.v4.f16x2 {%r14, %r15, %r16, %r17}, [%d4], {%r10, %r11, %r12, %r13};",
     'r', F16, 8, ATOM_MAX},
    {"atom.add.f32 %r14, [%d4], %r10;", 'r', F32_FLUSHED, 1, ATOM_ADD}, /* generic */
    {"atom.acq_rel.gpu.global.add.u32 %r14, [%d4], %r10;", 'r', U32, 1, ATOM_ADD},
    {"atom.relaxed.sys.global.L2::cache_hint.exch.b32 %r14, [%d4], %r10, %d11;", 'r', U32, 1,
     ATOM_EXCH},
    {"red.release.cluster.global.add.u64 [%d4], %d6;", 0, U64, 1, ATOM_ADD},
};

static uint64_t piece(const uint8_t *at, unsigned bits, unsigned i) {
    uint64_t v = 0;
    memcpy(&v, at + (size_t)i * bits / 8, bits / 8);
    return v;
}

static void check_case(const struct atomic_case *c) {
    static uint8_t in[THREADS][32];
    char body[2048];
    unsigned bits = element_bits(c->element), wrong = 0;
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < 128 / bits; i++) {
            uint64_t a = special(c->element, t / SIDE + i * 7);
            uint64_t b = special(c->element, t % SIDE + i * 3);
            memcpy(in[t] + (size_t)i * bits / 8, &a, bits / 8);
            memcpy(in[t] + 16 + (size_t)i * bits / 8, &b, bits / 8);
        }
    snprintf(body, sizeof body,
             "mul.wide.u32 %%d3, %%r1, 32;\nadd.u64 %%d5, %%d1, %%d3;\nadd.u64 %%d4, %%d0, %%d3;\n"
             "mov.u32 %%r8, s;\nmad.lo.u32 %%r8, %%r1, 16, %%r8;\n"
             "ld.global.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%%d5];\n"
             "ld.global.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%d5+16];\n"
             "st.global.v4.u32 [%%d4], {%%r4, %%r5, %%r6, %%r7};\n"
             "st.shared.v4.u32 [%%r8], {%%r4, %%r5, %%r6, %%r7};\n"
             "mov.b64 %%d6, {%%r10, %%r11};\nmov.b64 %%d7, {%%r12, %%r13};\nnot.b64 %%d8, %%d6;\n"
             "mov.u64 %%d11, 0;\n"
             "not.b32 %%r9, %%r10;\nmov.b32 {%%h1, %%h2}, %%r10;\nmov.b32 {%%h3, %%h4}, %%r11;\n"
             "mov.b32 {%%h5, %%h6}, %%r12;\nmov.b32 {%%h7, %%h8}, %%r13;\nnot.b16 %%h9, %%h1;\n"
             "%s\n%s"
             "st.global.v4.u32 [%%d4+16], {%%r14, %%r15, %%r16, %%r17};\n",
             c->text,
             c->result == 'x'   ? "mov.b32 %r14, {%x1, %x2};\nmov.b32 %r15, {%x3, %x4};\n"
                                  "mov.b32 %r16, {%x5, %x6};\nmov.b32 %r17, {%x7, %x8};\n"
             : c->result == 'd' ? "mov.b64 {%r14, %r15}, %d9;\n"
                                : "");
    bool shared = strstr(c->text, "[%r8]") != NULL;
    if (shared)
        strcat(body, "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r8];\n"
                     "st.global.v4.u32 [%d4], {%r4, %r5, %r6, %r7};\n");
    struct job j = {.threads = THREADS,
                    .declare = ".shared .align 16 .b8 s[6400];\n.reg .b16 %x<9>;",
                    .in = (const uint32_t *)(const void *)in,
                    .in_words = sizeof in / 4,
                    .body = body};
    job_clean(c->text, &j);
    const uint8_t *got = (const uint8_t *)out;
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < c->count; i++) {
            uint64_t a = piece(in[t], bits, i), b = piece(in[t] + 16, bits, i);
            uint64_t want = reference(c->element, c->op, a, b);
            uint64_t now = piece(got + (size_t)t * 32, bits, i);
            uint64_t old = piece(got + (size_t)t * 32 + 16, bits, i);
            checks++;
            if (now == want && (!c->result || old == a))
                continue;
            failures++;
            if (wrong++ < 4)
                printf("FAIL %s: %llx, %llx: got %llx, want %llx; old %llx\n", c->text,
                       (unsigned long long)a, (unsigned long long)b, (unsigned long long)now,
                       (unsigned long long)want, (unsigned long long)old);
        }
}

/* ---- many threads, one place ----------------------------------------------------------------- */

static void test_sums(void) {
    static const uint32_t zero[4] = {0};
    struct job j = {.blocks = 5,
                    .threads = 96,
                    .shadow = true,
                    .in = zero,
                    .in_words = 4,
                    .out_words = 1,
                    .body =
                        "red.global.add.u32 [%d1], %r2;\nmov.b32 %f1, 0f3F800000;\n"
                        "red.global.add.f32 [%d1+4], %f1;\nred.global.max.u32 [%d1+8], %r2;\n"
                        "membar.gl;\natom.global.add.u32 %r4, [%d1+12], 1;\n"
                        "setp.ne.u32 %p0, %r4, 479;\n@%p0 bra done;\n"
                        /* the last of all: everything is there */
                        "ld.volatile.global.u32 %r5, [%d1];\nld.volatile.global.u32 %r6, [%d1+4];\n"
                        "ld.volatile.global.u32 %r7, [%d1+8];\nxor.b32 %r5, %r5, %r6;\n"
                        "add.u32 %r5, %r5, %r7;\nst.global.u32 [%d0], %r5;\ndone:\n"};
    job_clean("the last thread sums up", &j);
    CHECK_EQ(out[0], (480 * 479 / 2 ^ 0x43f00000) + 479, "the last thread sums up");
}

/* Block 0 waits for a flag that the last block sets; a semaphore passes from block to block. */
static void test_waiting(void) {
    static const uint32_t zero[2] = {0};
    static const char *const waits[] = {
        "ld.acquire.gpu.global.u32 %r4, [%d1];\n",
        "ld.volatile.global.u32 %r4, [%d1];\nmembar.gl;\n",
        "atom.acquire.gpu.global.or.b32 %r4, [%d1], 0;\n",
        "ld.relaxed.gpu.global.u32 %r4, [%d1];\nfence.acq_rel.gpu;\nnanosleep.u32 100;\n",
        "ld.relaxed.sys.global.u32 %r4, [%d1];\nfence.sc.sys;\n",
    };
    char body[1024];
    for (size_t i = 0; i < COUNT(waits); i++) {
        snprintf(body, sizeof body,
                 "setp.ne.u32 %%p0, %%r2, 0;\n@%%p0 bra other;\nspin:\n%ssetp.eq.u32 %%p1, %%r4, "
                 "0;\n@%%p1 bra spin;\nld.global.u32 %%r5, [%%d1+4];\nst.global.u32 [%%d0], %%r5;\n"
                 "bra done;\nother:\nsetp.ne.u32 %%p0, %%r2, 6;\n@%%p0 bra done;\n"
                 "st.global.u32 [%%d1+4], 77;\nst.release.gpu.global.u32 [%%d1], 1;\ndone:\n",
                 waits[i]);
        struct job j = {.blocks = 7,
                        .threads = 1,
                        .shadow = true,
                        .in = zero,
                        .in_words = 2,
                        .out_words = 1,
                        .body = body};
        job_clean(waits[i], &j);
        CHECK_EQ(out[0], 77, waits[i]);
    }
    struct job chain = {
        .blocks = 16, /* block i goes when block i + 1 has gone */
        .threads = 32,
        .shadow = true,
        .in = zero,
        .in_words = 2,
        .body =
            "mov.u32 %r4, %ctaid.x;\nmov.u32 %r5, 15;\nsub.u32 %r5, %r5, %r4;\n"
            "setp.ne.u32 %p2, %r1, 0;\n@%p2 bra go;\n"
            "spin:\nld.acquire.gpu.global.u32 %r6, [%d1];\nsetp.ne.u32 %p0, %r6, %r5;\n"
            "@%p0 bra spin;\ngo:\nbar.sync 0;\nld.global.u32 %r7, [%d1+4];\nbar.sync 0;\n"
            "@%p2 bra done;\nmad.lo.u32 %r7, %r7, 3, %r4;\nst.global.u32 [%d1+4], %r7;\n"
            "fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [%d1], 1;\nst.global.u32 [%d2], "
            "%r7;\ndone:\n"};
    job_clean("blocks in a row, backwards", &chain);
    uint32_t x = 0;
    for (unsigned b = 16; b-- > 0;) {
        x = x * 3 + b;
        CHECK_EQ(out[b * 32], x, "blocks in a row, backwards");
    }
}

static void test_refused(void) {
    static const char *const bad[] = {
        "atom.global.add.noftz.f16x2 %r4, [%d1], %h1;",
        "atom.global.add.f16 %h2, [%d1], %h1;",
        "atom.global.min.noftz.f16 %h2, [%d1], %h1;",
        "atom.global.min.f32 %f2, [%d1], %f1;",
        "red.shared.add.v2.f32 [%r4], {%f1, %f2};",
        "red.global.add.v8.f32 [%d1], {%f1, %f2, %f1, %f2, %f1, %f2, %f1, %f2};",
        "red.global.add.v2.f32 [%d1], {%f1, %d2};",
        "red.global.exch.b32 [%d1], %r1, %d3;",
        "red.global.L2::cache_hint.add.u32 [%d1], %r1;",
        "ld.global.v2.u32 {%r4, %d4}, [%d1];",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct job j = {.body = bad[i]};
        CHECK_EQ(job_run(&j) == ERR_SYNTAX || job_run(&j) == ERR_UNSUPPORTED, 1, bad[i]);
    }
}

static void test_results(void) {
    for (size_t i = 0; i < COUNT(cases); i++)
        check_case(&cases[i]);
    test_sums();
    test_waiting();
}

int main(int argc, char **argv) {
    bool gpu = use_device(argc, argv);
    test_results();
    if (!gpu) {
        test_refused();
        check_elsewhere(TEST_ATOMIC);
    }
    ref_free();
    return report();
}
