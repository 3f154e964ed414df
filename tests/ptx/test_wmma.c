/*
 * test_wmma.c - wmma: every shape, type and layout, loaded from global, generic and shared memory and
 * stored again, against exact rationals (tensor_ref.h); what programs do to every element of a
 * fragment; what is a fault and what is refused.
 *
 *   ptx_wmma [--device cuda:0]
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/ptx/gpu.h"
#include "tests/ptx/harness.h"
#include "tests/ptx/rows.h"
#include "tests/ptx/tensor_ref.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum kind { KIND_FLOAT, KIND_S8, KIND_U8, KIND_F64 };

static const struct type {
    const char *ab, *c, *d; /* as PTX names them */
    const char *mma;        /* the types of wmma.mma */
    enum kind kind;
    enum ref_type ref;
    unsigned bytes, k;  /* of an element of a and b */
    bool c_f16, d_f16;
} types[] = {
    {"f16", "f32", "f32", "f32.f32", KIND_FLOAT, REF_F16, 2, 16, false, false},
    {"f16", "f16", "f16", "f16.f16", KIND_FLOAT, REF_F16, 2, 16, true, true},
    {"f16", "f16", "f32", "f32.f16", KIND_FLOAT, REF_F16, 2, 16, true, false},
    {"f16", "f32", "f16", "f16.f32", KIND_FLOAT, REF_F16, 2, 16, false, true},
    {"bf16", "f32", "f32", "f32.bf16.bf16.f32", KIND_FLOAT, REF_BF16, 2, 16, false, false},
    {"tf32", "f32", "f32", "f32.tf32.tf32.f32", KIND_FLOAT, REF_TF32, 4, 8, false, false},
    {"s8", "s32", "s32", "s32.s8.s8.s32", KIND_S8, REF_F32, 1, 16, false, false},
    {"u8", "s32", "s32", "s32.u8.u8.s32.satfinite", KIND_U8, REF_F32, 1, 16, false, false},
    {"f64", "f64", "f64", "f64.f64.f64.f64", KIND_F64, REF_F32, 8, 4, false, false},
};

static const struct shape {
    unsigned m, n;
} shapes[] = {{16, 16}, {32, 8}, {8, 32}, {8, 8}};

/* An element (i, j) of a matrix is at j * ld + i if it lies by columns, else at i * ld + j. */
struct matrix {
    bool by_columns;
    unsigned ld, bytes;
    size_t at; /* bytes in the input */
};

static uint32_t in[3072];
#define B_AT 4096
#define C_AT 8192

static uint64_t element(const void *base, const struct matrix *m, unsigned i, unsigned j) {
    uint64_t v = 0;
    size_t n = m->by_columns ? (size_t)j * m->ld + i : (size_t)i * m->ld + j;
    memcpy(&v, (const uint8_t *)base + m->at + n * m->bytes, m->bytes);
    return v;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Mostly numbers near 1 that cancel, some of any bits, some special. */
static uint64_t draw(struct rng *rng, enum kind kind, enum ref_type type, unsigned bytes) {
    static const uint16_t special[] = {0,      0x8000, 1,      0x8001, 0x03ff, 0x7c00, 0xfc00,
                                       0x7e00, 0x7f80, 0xff80, 0x7fc0, 0x0080, 0x7bff, 0x7f7f};
    uint64_t bits = rng_u64(rng), choice = rng_below(rng, 40);
    if (kind == KIND_F64) {
        double x = (double)(int64_t)rng_below(rng, 2000) - 1000;
        memcpy(&bits, &x, 8);
        return choice == 0 ? 0x7ff0000000000000u : choice == 1 ? 0 : bits ^ rng_below(rng, 256);
    }
    if (kind != KIND_FLOAT || choice < 2)
        return bits;
    if (choice < 5) {
        uint64_t s = special[rng_below(rng, COUNT(special))];
        return bytes == 4 ? s << 16 : s;
    }
    unsigned fraction = type == REF_F16 ? 10 : bytes == 4 ? 23 : 7;
    unsigned bias = type == REF_F16 ? 15 : 127, width = 8 * bytes;
    uint64_t exponent = bias - 4 + rng_below(rng, 8), sign = bits >> 63;
    uint64_t low = bits & ((UINT64_C(1) << fraction) - 1);
    return sign << (width - 1) | exponent << fraction | low;
}

static void fill(struct rng *rng, const struct type *t, const struct matrix *m, unsigned rows,
                 unsigned cols, bool accumulator) {
    enum ref_type type = !accumulator ? t->ref : t->c_f16 ? REF_F16 : REF_F32;
    for (unsigned i = 0; i < rows; i++)
        for (unsigned j = 0; j < cols; j++) {
            uint64_t v = draw(rng, t->kind, type, m->bytes);
            size_t n = m->by_columns ? (size_t)j * m->ld + i : (size_t)i * m->ld + j;
            memcpy((uint8_t *)in + m->at + n * m->bytes, &v, m->bytes);
        }
}

/* ---- the result ------------------------------------------------------------------------------ */

/* L, F and the least E of sm_90 and of sm_80; tf32 goes by 4 on both (HMMA.1684). */
static struct ref_core core_of(const struct type *t, bool sm90) {
    bool f16 = t->c_f16 && t->d_f16;
    unsigned block = t->bytes == 4 ? 4 : sm90 ? 16 : 8;
    return (struct ref_core){.block = block,
                             .fraction = sm90 ? 25 : 24,
                             .floor = f16 ? (sm90 ? -21 : -20) : sm90 ? -133 : -132,
                             .end = f16 ? REF_NEAREST_F16 : REF_CUT_F32};
}

static uint32_t convert(uint32_t bits, const struct ref_format *from, const struct ref_format *to,
                        uint32_t nan) {
    mpfr_t x;
    if (ref_is_nan(from, bits))
        return nan;
    mpfr_init2(x, 64);
    ref_set(x, from, bits);
    uint32_t r = (uint32_t)ref_round(x, to, REF_RN);
    mpfr_clear(x);
    return r;
}

static uint64_t integer_result(const struct type *t, const uint64_t *a, const uint64_t *b,
                               uint64_t c) {
    int64_t sum = (int32_t)c;
    for (unsigned k = 0; k < t->k; k++)
        sum += t->kind == KIND_S8 ? (int8_t)a[k] * (int8_t)b[k]
                                  : (int)(uint8_t)a[k] * (int)(uint8_t)b[k];
    if (t->kind == KIND_U8) /* the one that has .satfinite here */
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (uint32_t)sum;
}

static uint64_t double_result(const uint64_t *a, const uint64_t *b, uint64_t c) {
    double x, y, sum;
    memcpy(&sum, &c, 8);
    for (unsigned k = 0; k < 4; k++) {
        memcpy(&x, &a[k], 8);
        memcpy(&y, &b[k], 8);
        sum = fma(x, y, sum);
    }
    memcpy(&c, &sum, 8);
    return sum == sum ? c : 0; /* which NaN: ptx_tensor asks */
}

static uint64_t want(const struct type *t, const struct ref_core *core, const uint64_t *a,
                     const uint64_t *b, uint64_t c) {
    if (t->kind == KIND_F64)
        return double_result(a, b, c);
    if (t->kind != KIND_FLOAT)
        return integer_result(t, a, b, c);
    bool widens = t->c_f16 && !t->d_f16;
    uint32_t wide = widens ? convert((uint32_t)c, &ref_f16, &ref_binary32, 0x7fffffff) : (uint32_t)c;
    uint32_t d = ref_tensor_dot(core, t->ref, a, b, t->k, wide);
    return t->d_f16 && !t->c_f16 ? convert(d, &ref_binary32, &ref_f16, 0x7fff) : d;
}

/* ---- one case -------------------------------------------------------------------------------- */

static unsigned regs_of(const struct type *t, unsigned rows) {
    return t->kind == KIND_F64 ? 1 : t->ref == REF_F16 && t->bytes == 2 ? 8
                                                                        : rows * t->k * t->bytes / 128;
}

static int list(char *to, size_t room, const char *name, unsigned count) {
    int n = snprintf(to, room, "{");
    for (unsigned i = 0; i < count; i++)
        n += snprintf(to + n, room - (size_t)n, "%s%%%s%u", i ? ", " : "", name, i);
    return n + snprintf(to + n, room - (size_t)n, "}");
}

struct setting {
    const struct type *type;
    struct shape shape;
    struct matrix a, b, c, d;
    unsigned space;   /* 0: .global; 1: generic; 2: a and b in .shared */
    bool defaults;    /* no strides */
    bool doubled;     /* every element of a, b, c times 2 between load and mma */
    char into;        /* d's registers are: 0: its own; 'a', 'b': theirs; 'c': c's in another order */
    const char *target;
};

static void lists(char text[4][160], const struct setting *s) {
    const struct type *t = s->type;
    bool wide = t->kind == KIND_F64;
    unsigned elements = s->shape.m * s->shape.n / 32;
    unsigned c = t->c_f16 ? elements / 2 : elements, d = t->d_f16 ? elements / 2 : elements;
    list(text[0], 160, wide ? "ga" : "a", regs_of(t, s->shape.m));
    list(text[1], 160, wide ? "gb" : "b", regs_of(t, s->shape.n));
    list(text[2], 160, wide ? "gc" : "c", c);
    if (s->into != 'c') {
        list(text[3], 160, s->into == 'a' ? "a" : s->into == 'b' ? "b" : wide ? "gd" : "e", d);
        return;
    }
    int n = snprintf(text[3], 160, "{");
    for (unsigned i = 0; i < d; i++)
        n += snprintf(text[3] + n, 160 - (size_t)n, "%s%%c%u", i ? ", " : "", (i + 3) % d);
    snprintf(text[3] + n, 160 - (size_t)n, "}");
}

static const char *layout(const struct matrix *m) {
    return m->by_columns ? "col" : "row";
}

/* wmma.load or wmma.store of a matrix at byte `at`. */
static int access_text(char *to, size_t room, const struct setting *s, const char *what,
                       const struct matrix *m, const char *regs, const char *type, bool store) {
    char place[40], stride[16] = "";
    const char *space = s->space == 0 ? ".global" : "";
    snprintf(place, sizeof place, store ? "[%%d0]" : "[%%d1+%zu]", m->at);
    if (s->space == 2 && !store && m->at < C_AT) {
        space = ".shared";
        snprintf(place, sizeof place, "[s+%zu]", m->at);
    }
    if (!s->defaults)
        snprintf(stride, sizeof stride, ", %u", m->ld);
    return snprintf(to, room, "wmma.%s.sync.aligned.%s.m%un%uk%u%s.%s %s%s%s%s;\n", what,
                    layout(m), s->shape.m, s->shape.n, s->type->k, space, type,
                    store ? place : regs, ", ", store ? regs : place, stride);
}

static void make_body(char *to, size_t room, const struct setting *s) {
    const struct type *t = s->type;
    char regs[4][160];
    lists(regs, s);
    size_t n = 0;
    if (s->space == 2)
        n += (size_t)snprintf(
            to, room,
            "mov.u32 %%r5, s;\nmad.lo.u32 %%r6, %%r1, 16, %%r5;\nmul.wide.u32 %%d3, %%r1, 16;\n"
            "add.u64 %%d3, %%d3, %%d1;\nmov.u32 %%r7, 0;\n"
            "copy:\nld.global.v4.u32 {%%r8, %%r9, %%r10, %%r11}, [%%d3];\n"
            "st.shared.v4.u32 [%%r6], {%%r8, %%r9, %%r10, %%r11};\nadd.u32 %%r6, %%r6, 512;\n"
            "add.u64 %%d3, %%d3, 512;\nadd.u32 %%r7, %%r7, 1;\nsetp.lt.u32 %%p0, %%r7, 16;\n"
            "@%%p0 bra copy;\nbar.sync 0;\n");
    n += (size_t)access_text(to + n, room - n, s, "load.a", &s->a, regs[0], t->ab, false);
    n += (size_t)access_text(to + n, room - n, s, "load.b", &s->b, regs[1], t->ab, false);
    n += (size_t)access_text(to + n, room - n, s, "load.c", &s->c, regs[2], t->c, false);
    for (unsigned i = 0; s->doubled && i < 8; i++)
        n += (size_t)snprintf(to + n, room - n,
                              "add.rn.f16x2 %%a%u, %%a%u, %%a%u;\nadd.rn.f16x2 %%b%u, %%b%u, "
                              "%%b%u;\nadd.rn.f32 %%c%u, %%c%u, %%c%u;\n",
                              i, i, i, i, i, i, i, i, i);
    n += (size_t)snprintf(to + n, room - n,
                          "wmma.mma.sync.aligned.%s.%s.m%un%uk%u.%s %s, %s, %s, %s;\n",
                          layout(&s->a), layout(&s->b), s->shape.m, s->shape.n, t->k, t->mma,
                          regs[3], regs[0], regs[1], regs[2]);
    access_text(to + n, room - n, s, "store.d", &s->d, regs[3], t->d, true);
}

static bool same(const struct type *t, uint64_t got, uint64_t expected) {
    if (t->kind == KIND_F64 && expected == 0 && (got & 0x7ff0000000000000u) == 0x7ff0000000000000u)
        return (got & 0xfffffffffffffu) != 0; /* NaN */
    return got == expected;
}

static uint64_t twice_f16(uint64_t bits) {
    return convert((uint32_t)bits, &ref_f16, &ref_f16, 0x7fff) + 0x400; /* moderate numbers only */
}

static void run_case(struct rng *rng, const struct setting *s) {
    static char body[8192];
    const struct type *t = s->type;
    struct ref_core core = core_of(t, !s->target);
    memset(in, 0, sizeof in);
    fill(rng, t, &s->a, s->shape.m, t->k, false);
    fill(rng, t, &s->b, t->k, s->shape.n, false);
    fill(rng, t, &s->c, s->shape.m, s->shape.n, true);
    if (s->doubled)
        for (size_t i = 0; i < COUNT(in); i++)
            in[i] = i < C_AT / 4 ? (in[i] & 0x83ff83ff) | 0x3c003c00 : (in[i] & 0x807fffff) | 0x3f800000;
    make_body(body, sizeof body, s);
    struct job j = {.threads = 32,
                    .in = in,
                    .in_words = COUNT(in),
                    .shadow = true,
                    .target = s->target,
                    .declare = ".reg .b32 %a<8>, %b<8>, %c<8>, %e<8>;\n.reg .f64 %ga<2>, %gb<2>, "
                               "%gc<4>, %gd<4>;\n.shared .align 128 .b8 s[8192];",
                    .body = body};
    unsigned before = failures, bad = 0;
    job_clean(t->mma, &j);
    if (failures != before)
        return;
    for (unsigned m = 0; m < s->shape.m; m++)
        for (unsigned n = 0; n < s->shape.n; n++) {
            uint64_t a[16], b[16], c = element(in, &s->c, m, n);
            for (unsigned k = 0; k < t->k; k++) {
                a[k] = element(in, &s->a, m, k);
                b[k] = element(in, &s->b, k, n);
                if (s->doubled) {
                    a[k] = twice_f16(a[k]);
                    b[k] = twice_f16(b[k]);
                }
            }
            if (s->doubled)
                c += 0x800000;
            uint64_t w = want(t, &core, a, b, c), got = element(out, &s->d, m, n);
            if (!same(t, got, w) && ++bad == 1)
                CHECK_EQ(got, w, body);
        }
    CHECK_EQ(bad, 0, "elements that differ");
}

static void make_matrix(struct matrix *m, struct rng *rng, bool defaults, unsigned rows,
                        unsigned cols, unsigned bytes, size_t at) {
    unsigned tight = m->by_columns ? rows : cols, unit = bytes >= 4 ? 4 : 16 / bytes;
    m->ld = defaults ? tight : (tight + unit - 1) / unit * unit + unit * (unsigned)rng_below(rng, 2);
    m->bytes = bytes;
    m->at = at;
}

static bool exists(const struct type *t, const struct shape *s) {
    return t->kind == KIND_F64 ? s->n == 8 && s->m == 8
           : t->bytes == 4     ? s->m == 16 && s->n == 16
                               : s->m * s->n == 256;
}

/*
 * d in the registers of a, of b, or of c in another order, where they are enough: no text forbids it.
 * Where ptxas 13.0 makes two HMMA of a wmma, the first overwrites what the second one is to read, so a
 * GPU is not asked.
 */
static void test_shared_registers(struct rng *rng, struct setting s) {
    const struct type *t = s.type;
    unsigned elements = s.shape.m * s.shape.n / 32, d = t->d_f16 ? elements / 2 : elements;
    if (t->kind != KIND_FLOAT)
        return;
    s.into = 'c';
    if (t->c_f16 == t->d_f16)
        run_case(rng, &s);
    s.into = 'a';
    if (regs_of(t, s.shape.m) >= d)
        run_case(rng, &s);
    s.into = 'b';
    if (regs_of(t, s.shape.n) >= d)
        run_case(rng, &s);
}

static void test_forms(struct rng *rng, const char *target) {
    const bool shared_registers = strcmp(job_device, "cpu") == 0;
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t h = 0; h < COUNT(shapes); h++)
            for (unsigned l = 0; l < (target ? 4u : 16u) && exists(&types[t], &shapes[h]); l++) {
                struct setting s = {.type = &types[t],
                                    .shape = shapes[h],
                                    .space = (unsigned)rng_below(rng, 3),
                                    .defaults = rng_below(rng, 4) == 0,
                                    .target = target};
                unsigned m = s.shape.m, n = s.shape.n, k = s.type->k;
                unsigned wide = s.type->kind == KIND_F64 ? 8 : 4;
                s.a.by_columns = l & 1;
                s.b.by_columns = l & 2;
                s.c.by_columns = l & 4;
                s.d.by_columns = l & 8;
                make_matrix(&s.a, rng, s.defaults, m, k, s.type->bytes, 0);
                make_matrix(&s.b, rng, s.defaults, k, n, s.type->bytes, B_AT);
                make_matrix(&s.c, rng, s.defaults, m, n, s.type->c_f16 ? 2 : wide, C_AT);
                make_matrix(&s.d, rng, s.defaults, m, n, s.type->d_f16 ? 2 : wide, 0);
                run_case(rng, &s);
                if (shared_registers && l < 2)
                    test_shared_registers(rng, s);
                s.doubled = t == 0 && l < 4;
                if (s.doubled)
                    run_case(rng, &s);
            }
}

/* b of m32n8k16 needs 2 registers of f16; the other 6 hold the same once more. */
static void test_repetition(void) {
    struct job j = {.threads = 32,
                    .in = in,
                    .in_words = COUNT(in),
                    .declare = ".reg .b32 %a<8>;",
                    .body = "wmma.load.b.sync.aligned.col.m32n8k16.global.f16 {%a0, %a1, %a2, %a3, "
                            "%a4, %a5, %a6, %a7}, [%d1], 16;\nxor.b32 %r4, %a0, %a2;\n"
                            "xor.b32 %r5, %a1, %a7;\nor.b32 %r4, %r4, %r5;\n"
                            "st.global.u32 [%d2], %r4;\nst.global.u32 [%d2+128], %a1;\n"};
    for (uint32_t i = 0; i < COUNT(in); i++)
        in[i] = 3 * i + 1;
    job_clean("repetition", &j);
    for (unsigned lane = 0; lane < 32; lane++) {
        CHECK_EQ(out[lane], 0, "repeated registers");
        CHECK_EQ(out[32 + lane], in[lane / 4 * 8 + 4 + lane % 4], "the second register");
    }
}

/* ---- faults and refusals --------------------------------------------------------------------- */

#define LOAD_A "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0, %a1, %a2, %a3, %a4, %a5, " \
               "%a6, %a7}, "
#define DECLARE ".reg .b32 %a<8>;\n.shared .align 128 .b8 s[256];"

static void test_faults(void) {
    static const struct {
        const char *name, *body;
        enum dev_fault_kind kind;
    } cases[] = {
        {"past the end", LOAD_A "[%d1+12000], 16;\n", FAULT_OUT_OF_BOUNDS},
        {"a huge stride", LOAD_A "[%d1], 4000000000;\n", FAULT_OUT_OF_BOUNDS},
        {"misaligned", LOAD_A "[%d1+1], 16;\n", FAULT_MISALIGNED},
        {"half a fragment further", LOAD_A "[%d1+16], 16;\n", FAULT_MISALIGNED},
        {"an element further", LOAD_A "[%d1+2], 16;\n", FAULT_MISALIGNED},
        {"rows of 34 bytes", LOAD_A "[%d1], 17;\n", FAULT_MISALIGNED},
        {"rows of 40 bytes", LOAD_A "[%d1], 20;\n", FAULT_MISALIGNED},
        {"4 bytes further, a fragment of 8",
         "wmma.load.a.sync.aligned.col.m16n16k16.global.s8 {%a0, %a1}, [%d1+4], 16;\n",
         FAULT_MISALIGNED},
        {"columns of 20 bytes, a fragment of 8",
         "wmma.load.a.sync.aligned.col.m16n16k16.global.s8 {%a0, %a1}, [%d1], 20;\n",
         FAULT_MISALIGNED},
        {"a store at 16 bytes, a fragment of 32",
         "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%d0+16], {%a0, %a1, %a2, %a3, %a4, "
         "%a5, %a6, %a7}, 16;\n",
         FAULT_MISALIGNED},
        {"different strides", LOAD_A "[%d1], %r1;\n", FAULT_DIVERGENT_BARRIER},
        {"different addresses", LOAD_A "[%d2], 16;\n", FAULT_DIVERGENT_BARRIER},
        {"past shared memory",
         "wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {%a0, %a1, %a2, %a3}, [s+64], 16;\n",
         FAULT_OUT_OF_BOUNDS},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct job j = {.threads = 32,
                        .in = in,
                        .in_words = COUNT(in),
                        .declare = DECLARE,
                        .body = cases[i].body};
        job_fault(cases[i].name, &j, cases[i].kind);
    }
}

/* Rows that begin at multiples of 16 bytes: what the CUDA C++ guide allows and code relies on. */
static void test_strides(void) {
    static const char *const bodies[] = {
        LOAD_A "[%d1], 24;\n",
        ("wmma.load.a.sync.aligned.col.m8n32k16.global.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, "
         "%a7}, [%d1];\n"),
        "wmma.load.a.sync.aligned.row.m8n32k16.global.s8 {%a0}, [%d1+4], 20;\n",
        "wmma.load.c.sync.aligned.row.m16n16k16.global.f16 {%a0, %a1, %a2, %a3}, [%d1+16], 24;\n",
    };
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct job j = {.threads = 32,
                        .in = in,
                        .in_words = COUNT(in),
                        .declare = DECLARE,
                        .body = bodies[i]};
        job_clean(bodies[i], &j);
    }
}

/* 8192 loads of 4 registers from columns: 8 elements of each lane, charged as 2^16 instructions. */
static void test_budget(void) {
    struct job j = {.threads = 32,
                    .in = in,
                    .in_words = COUNT(in),
                    .insn_budget = 80000,
                    .declare = DECLARE,
                    .body = "mov.u32 %r4, 0;\nagain:\n"
                            "wmma.load.a.sync.aligned.col.m16n16k16.global.f16 {%a0, %a1, %a2, %a3, "
                            "%a4, %a5, %a6, %a7}, [%d1], 16;\nadd.u32 %r4, %r4, 1;\n"
                            "setp.lt.u32 %p0, %r4, 8192;\n@%p0 bra again;\n"};
    job_fault("a loop of loads", &j, FAULT_INSN_BUDGET);
}

static void test_refusals(void) {
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"wmma.load.a.sync.aligned.row.m16n16k8.f16 {%a0}, [%d1];\n", "no such shape"},
        {"wmma.load.a.sync.aligned.m16n16k16.f16 {%a0}, [%d1];\n", "a modifier is missing"},
        {"wmma.load.a.sync.aligned.row.col.m16n16k16.f16 {%a0}, [%d1];\n", "one layout"},
        {"wmma.mma.sync.aligned.row.row.col.m16n16k16.f32.f32 {%a0}, {%a0}, {%a0}, {%a0};\n",
         "modifier not allowed here"},
        {"wmma.mma.sync.aligned.row.m16n16k16.f32.f32 {%a0}, {%a0}, {%a0}, {%a0};\n",
         "layouts of a and of b"},
        {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {%a0}, {%a0}, {%a0}, {%a0};\n",
         "different types"},
        {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.bf16.bf16.f32 {%a0}, {%a0}, {%a0}, {%a0};\n",
         "do not go with"},
        {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0, %a1}, [%d1];\n", "wrong length"},
        {"wmma.mma.sync.aligned.row.col.m8n32k16.f32.bf16.bf16.f32 {%a0}, {%a0}, {%a0}, {%a0};\n",
         "wrong length"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct job j = {.threads = 32, .declare = DECLARE, .body = cases[i].body};
        CHECK_EQ(job_run(&j) == OK, 0, cases[i].body);
        CHECK_EQ(strstr(status_message(), cases[i].says) != NULL, 1, status_message());
    }
    struct job old = {.threads = 32,
                      .target = "sm_75",
                      .declare = DECLARE,
                      .body = "wmma.load.a.sync.aligned.row.m16n16k16.bf16 {%a0, %a1, %a2, %a3}, "
                              "[%d1], 16;\n"};
    CHECK_EQ(job_run(&old), ERR_UNSUPPORTED, "bf16 on sm_75");
    CHECK_EQ(strstr(status_message(), "sm_80") != NULL, 1, status_message());
}

int main(int argc, char **argv) {
    struct rng rng = rng_from_seed(11);
    if (use_device(argc, argv)) {
        test_forms(&rng, NULL);
        ref_free();
        return report();
    }
    for (int level = 0; level < LEVEL_COUNT; level++)
        if (use_level(level)) {
            test_forms(&rng, NULL);
            test_forms(&rng, "sm_80");
        }
    test_repetition();
    test_faults();
    test_strides();
    test_budget();
    test_refusals();
    check_elsewhere(TEST_WMMA);
    ref_free();
    return report();
}
