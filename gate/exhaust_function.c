/* gate/exhaust_function.c - which instructions can be exhausted, and what is true of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/exhaust.h"
#include "oracle/dtype.h"

static double reciprocal(double x) {
    return 1 / x;
}
static double reciprocal_root(double x) {
    return 1 / sqrt(x);
}

static int exact_reciprocal(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd) {
    return mpfr_ui_div(r, 1, x, rnd);
}

#define TWO_PI 0x1.921fb54442d18p+2
#define HUNDRED_PI 0x1.3a28c59d5433bp+8
#define EVERYWHERE false, -1, INFINITY

/* The ISA counts ulps from the correctly rounded result: half an ulp more from the true value. */
static const struct exhaust_promise ex2_f32[] = {{METRIC_ULP, EVERYWHERE, 2.5, 0}};
static const struct exhaust_promise rcp_f32[] = {{METRIC_ULP, EVERYWHERE, 1.5, 0}};
static const struct exhaust_promise rsqrt_f32[] = {
    {METRIC_REL, EVERYWHERE, 0x1.125fbee250669p-23, 0}, /* 2^-22.9 */
};
static const struct exhaust_promise sqrt_f32[] = {{METRIC_REL, EVERYWHERE, 0x1p-23, 0}};
static const struct exhaust_promise lg2_f32[] = {
    {METRIC_ABS, false, 0.5, 2, 0x1p-22, 0},
    {METRIC_REL, true, 0.5, 2, 0x1p-22, 0},
};
static const struct exhaust_promise sine_f32[] = {
    {METRIC_ABS, false, -1, TWO_PI, 0x1.6a09e667f3bcdp-21, 0},     /* 2^-20.5 */
    {METRIC_ABS, false, -1, HUNDRED_PI, 0x1.3b2c47bff832cp-15, 0}, /* 2^-14.7 */
};
static const struct exhaust_promise cosine_f32[] = {
    {METRIC_ABS, false, -1, TWO_PI, 0x1.6a09e667f3bcdp-21, 0x409ccdb6}, /* 2^-20.427 there */
    {METRIC_ABS, false, -1, HUNDRED_PI, 0x1.3b2c47bff832cp-15, 0},
};
static const struct exhaust_promise tanh_f32[] = {{METRIC_REL, EVERYWHERE, 0x1p-11, 0}};
static const struct exhaust_promise ex2_f16[] = {
    {METRIC_REL, EVERYWHERE, 0x1.125fbee250663p-10, 0}, /* 2^-9.9 */
};
static const struct exhaust_promise ex2_bf16[] = {{METRIC_REL, EVERYWHERE, 0x1p-7, 0}};
static const struct exhaust_promise tanh_f16[] = {
    {METRIC_ABS, EVERYWHERE, 0x1.0251353756991p-11, 0}, /* 2^-10.987 */
};
static const struct exhaust_promise tanh_bf16[] = {
    {METRIC_ABS, EVERYWHERE, 0x1p-8, 0x3f3f}, /* 2^-7.9999 there */
};
static const struct exhaust_promise high_word[] = {{METRIC_REL, EVERYWHERE, 0, 0}}; /* none */

#define F(name, operand, ftz, fast, exact, promises) \
    {name, OPERAND_##operand, ftz, fast, exact, sizeof promises / sizeof *promises, promises},

const struct exhaust_function exhaust_functions[] = {
    F("ex2.approx.ftz.f32", F32, true, exp2, mpfr_exp2, ex2_f32)
    F("ex2.approx.f32", F32, false, exp2, mpfr_exp2, ex2_f32)
    F("lg2.approx.ftz.f32", F32, true, log2, mpfr_log2, lg2_f32)
    F("lg2.approx.f32", F32, false, log2, mpfr_log2, lg2_f32)
    F("rcp.approx.ftz.f32", F32, true, reciprocal, exact_reciprocal, rcp_f32)
    F("rcp.approx.f32", F32, false, reciprocal, exact_reciprocal, rcp_f32)
    F("rsqrt.approx.ftz.f32", F32, true, reciprocal_root, mpfr_rec_sqrt, rsqrt_f32)
    F("rsqrt.approx.f32", F32, false, reciprocal_root, mpfr_rec_sqrt, rsqrt_f32)
    F("sqrt.approx.ftz.f32", F32, true, sqrt, mpfr_sqrt, sqrt_f32)
    F("sqrt.approx.f32", F32, false, sqrt, mpfr_sqrt, sqrt_f32)
    F("sin.approx.ftz.f32", F32, true, sin, mpfr_sin, sine_f32)
    F("sin.approx.f32", F32, false, sin, mpfr_sin, sine_f32)
    F("cos.approx.ftz.f32", F32, true, cos, mpfr_cos, cosine_f32)
    F("cos.approx.f32", F32, false, cos, mpfr_cos, cosine_f32)
    F("tanh.approx.f32", F32, false, tanh, mpfr_tanh, tanh_f32)
    F("ex2.approx.f16", F16, false, exp2, mpfr_exp2, ex2_f16)
    F("ex2.approx.ftz.bf16", BF16, true, exp2, mpfr_exp2, ex2_bf16)
    F("tanh.approx.f16", F16, false, tanh, mpfr_tanh, tanh_f16)
    F("tanh.approx.bf16", BF16, false, tanh, mpfr_tanh, tanh_bf16)
    F("rcp.approx.ftz.f64", F64_HIGH, true, reciprocal, exact_reciprocal, high_word)
    F("rsqrt.approx.ftz.f64", F64_HIGH, true, reciprocal_root, mpfr_rec_sqrt, high_word)
};
const size_t exhaust_function_count = sizeof exhaust_functions / sizeof *exhaust_functions;

uint64_t exhaust_input_count(const struct exhaust_function *f) {
    return (uint64_t)1 << (f->operand == OPERAND_F16 || f->operand == OPERAND_BF16 ? 16 : 32);
}

bool exhaust_selects(const char *target, const struct exhaust_function *f) {
    size_t length = strlen(target);
    if (strcmp(target, "mufu") == 0)
        return true;
    return strncmp(f->name, target, length) == 0 &&
           (f->name[length] == '\0' || (f->name[length] == '.' && !strchr(target, '.')));
}

size_t exhaust_piece(const struct exhaust_function *f) {
    return exhaust_input_count(f) < EXHAUST_PIECE ? exhaust_input_count(f) : EXHAUST_PIECE;
}

/* A thread has EXHAUST_UNROLL inputs: what each of them costs is then the function and a store. */
size_t exhaust_ptx(char *text, size_t size, const struct exhaust_function *f) {
    static const char *const forms[] = {
        [OPERAND_F32] = "%s %%r5, %%r4;\n",
        [OPERAND_F16] = "cvt.u16.u32 %%h0, %%r4;\n%s %%h1, %%h0;\ncvt.u32.u16 %%r5, %%h1;\n",
        [OPERAND_BF16] = "cvt.u16.u32 %%h0, %%r4;\n%s %%h1, %%h0;\ncvt.u32.u16 %%r5, %%h1;\n",
        /* the low word: whatever is there does not matter */
        [OPERAND_F64_HIGH] =
            "mov.b64 %%d2, {%%r0, %%r4};\n%s %%d3, %%d2;\nmov.b64 {%%r6, %%r5}, %%d3;\n",
    };
    size_t stride = exhaust_piece(f) / EXHAUST_UNROLL;
    char form[160];
    snprintf(form, sizeof form, forms[f->operand], f->name);
    int at = snprintf(text, size,
                      ".version 8.0\n.target sm_90\n.address_size 64\n"
                      ".visible .entry all(.param .u64 out, .param .u32 first)\n{\n"
                      ".reg .b16 %%h<2>;\n.reg .b32 %%r<7>;\n.reg .b64 %%d<4>;\n"
                      "mov.u32 %%r0, %%ctaid.x;\nmov.u32 %%r1, %%ntid.x;\nmov.u32 %%r2, %%tid.x;\n"
                      "mad.lo.u32 %%r0, %%r0, %%r1, %%r2;\nld.param.u32 %%r3, [first];\n"
                      "add.u32 %%r3, %%r0, %%r3;\nld.param.u64 %%d0, [out];\n"
                      "mul.wide.u32 %%d1, %%r0, 4;\nadd.u64 %%d0, %%d0, %%d1;\n");
    for (size_t k = 0; k < EXHAUST_UNROLL; k++)
        at += snprintf(text + at, size - (size_t)at,
                       "add.u32 %%r4, %%r3, %zu;\n%sst.global.u32 [%%d0+%zu], %%r5;\n", k * stride,
                       form, 4 * k * stride);
    at += snprintf(text + at, size - (size_t)at, "ret;\n}\n");
    return (size_t)at;
}

double exhaust_value(const struct exhaust_function *f, uint32_t bits) {
    double value;
    float single;
    switch (f->operand) {
    case OPERAND_F32:
        memcpy(&single, &bits, 4);
        return (double)single;
    case OPERAND_F16:
        return dtype_to_double(&dtypes[DT_F16], bits);
    case OPERAND_BF16:
        return dtype_to_double(&dtypes[DT_BF16], bits);
    default: {
        uint64_t word = (uint64_t)bits << 32;
        memcpy(&value, &word, 8);
        return value;
    }
    }
}
