/* tensor_form.c - see tensor_form.h. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/ptx/tensor_form.h"

/* ---- shapes and types of mma ----------------------------------------------------------------- */

static const struct form {
    enum ptx_type d, a; /* of d and c, of a and b */
    uint16_t m, k;      /* n is 8 */
    unsigned least;     /* the first target that has it */
} forms[] = {
    {PTX_F32, PTX_F16, 16, 8, 75},   {PTX_F32, PTX_F16, 16, 16, 80},
    {PTX_F16, PTX_F16, 16, 8, 75},   {PTX_F16, PTX_F16, 16, 16, 80},
    {PTX_F32, PTX_BF16, 16, 8, 80},  {PTX_F32, PTX_BF16, 16, 16, 80},
    {PTX_F32, PTX_TF32, 16, 4, 80},  {PTX_F32, PTX_TF32, 16, 8, 80},
    {PTX_F64, PTX_F64, 8, 4, 80},    {PTX_F64, PTX_F64, 16, 4, 90},
    {PTX_F64, PTX_F64, 16, 8, 90},   {PTX_F64, PTX_F64, 16, 16, 90},
    {PTX_S32, PTX_S8, 8, 16, 75},    {PTX_S32, PTX_S8, 16, 16, 80},
    {PTX_S32, PTX_S8, 16, 32, 80},   {PTX_F32, PTX_E4M3, 16, 16, 89},
    {PTX_F32, PTX_E4M3, 16, 32, 89}, {PTX_F16, PTX_E4M3, 16, 16, 89},
    {PTX_F16, PTX_E4M3, 16, 32, 89},
};

/* The types that may stand for each other in a and b. */
static enum ptx_type family(enum ptx_type t) {
    return t == PTX_U8 ? PTX_S8 : t == PTX_E5M2 ? PTX_E4M3 : t;
}

static const struct form *find_form(const struct ptx_insn *in) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].d == in->type && forms[i].a == family(in->type2) && forms[i].m == in->mods.m &&
            in->mods.n == 8 && forms[i].k == in->mods.k)
            return &forms[i];
    return NULL;
}

bool tensor_is_wgmma(enum ptx_op op) {
    return op == PTX_OP_WGMMA || op == PTX_OP_WGMMA_TF32 || op == PTX_OP_WGMMA_INT;
}

unsigned tensor_element_bytes(enum ptx_type type) {
    return ptx_type_bits(type) / 8;
}

bool tensor_is_wmma(enum ptx_op op) {
    return op == PTX_OP_WMMA_LOAD_A || op == PTX_OP_WMMA_LOAD_B || op == PTX_OP_WMMA_LOAD_C ||
           op == PTX_OP_WMMA_STORE || op == PTX_OP_WMMA_F16 || op == PTX_OP_WMMA;
}

/* ---- shapes and types of wmma ---------------------------------------------------------------- */

static bool wmma_multiplies(enum ptx_op op) {
    return op == PTX_OP_WMMA_F16 || op == PTX_OP_WMMA;
}

/* The type of a and b; of a load or a store of c or d, which do not say it: one that fits them. */
static enum ptx_type wmma_factor(const struct ptx_insn *in) {
    switch (in->op) {
    case PTX_OP_WMMA_F16:
        return PTX_F16;
    case PTX_OP_WMMA:
        return in->type2;
    case PTX_OP_WMMA_LOAD_A:
    case PTX_OP_WMMA_LOAD_B:
        return in->type;
    default:
        return in->type == PTX_S32                          ? PTX_S8
               : in->type == PTX_F64                        ? PTX_F64
               : in->type == PTX_F32 && in->mods.k == 8 ? PTX_TF32
                                                            : PTX_F16;
    }
}

static const char *wmma_problem(const struct ptx_insn *in) {
    const struct ptx_mods *m = &in->mods;
    unsigned bytes = tensor_element_bytes(wmma_factor(in));
    bool square = m->m == 16 && m->n == 16;
    bool shape = bytes == 8   ? m->m == 8 && m->n == 8 && m->k == 4
                 : bytes == 4 ? square && m->k == 8
                              : m->k == 16 && (square || (m->m == 8 && m->n == 32) ||
                                               (m->m == 32 && m->n == 8));
    if (!shape)
        return "no such shape with these types";
    if (wmma_multiplies(in->op) ? m->layout < 4 : m->layout > 3)
        return wmma_multiplies(in->op) ? "the layouts of a and of b are needed"
                                       : "one layout is needed";
    if (in->op != PTX_OP_WMMA)
        return NULL;
    enum ptx_type d = bytes == 8 ? PTX_F64 : bytes == 1 ? PTX_S32 : PTX_F32;
    if (in->type != d || in->type4 != d)
        return "c and d have types that do not go with those of a and b";
    if (in->mods.satfinite && d != PTX_S32)
        return ".satfinite is for integers";
    return in->mods.rnd == RND_RN && d != PTX_F64 ? "a rounding mode is for f64" : NULL;
}

static unsigned wmma_accumulator_regs(const struct ptx_insn *in, enum ptx_type type) {
    unsigned elements = in->mods.m * in->mods.n / 32u;
    return type == PTX_F16 ? elements / 2 : elements;
}

/* PTX ISA 9.7.14.4.1: fragments of f16 have 8 registers, whatever the shape. */
static unsigned wmma_factor_regs(const struct ptx_insn *in, unsigned rows) {
    enum ptx_type t = wmma_factor(in);
    return t == PTX_F64   ? 1
           : t == PTX_F16 ? 8
                          : rows * in->mods.k * tensor_element_bytes(t) / (4 * 32);
}

static struct tensor_regs wmma_regs(const struct ptx_insn *in) {
    struct tensor_regs r = {.d = wmma_accumulator_regs(in, in->type),
                            .a = wmma_factor_regs(in, in->mods.m),
                            .b = wmma_factor_regs(in, in->mods.n)};
    r.c = in->op == PTX_OP_WMMA_F16 ? wmma_accumulator_regs(in, in->type2) : r.d;
    if (in->op == PTX_OP_WMMA_LOAD_A)
        r.d = r.a;
    if (in->op == PTX_OP_WMMA_LOAD_B)
        r.d = r.b;
    return r;
}

struct ptx_insn tensor_form_as_mma(const struct ptx_insn *wmma) {
    struct ptx_insn in = *wmma;
    bool narrow = wmma->op == PTX_OP_WMMA_F16 && wmma->type == PTX_F16 && wmma->type2 == PTX_F16;
    in.op = PTX_OP_MMA;
    if (wmma->op == PTX_OP_WMMA_F16)
        in.type = in.type4 = narrow ? PTX_F16 : PTX_F32;
    in.type2 = in.type3 = wmma_factor(wmma);
    in.mods.n = wmma->mods.m == 8 && wmma->mods.n == 32 ? 8 : wmma->mods.n;
    in.mods.m = in.type == PTX_F64 ? 8 : 16;
    return in;
}

static unsigned wmma_least(const struct ptx_insn *in) {
    enum ptx_type t = wmma_factor(in);
    return t == PTX_F16 || t == PTX_S8 || t == PTX_U8 ? 75 : 80;
}

static const char *wgmma_problem(const struct ptx_insn *in) {
    unsigned n = in->mods.n;
    if (in->mods.m != 64 || in->mods.k * tensor_element_bytes(in->type2) != 32)
        return "no such shape: wgmma has m64 and 32 bytes of k";
    bool integer = in->op == PTX_OP_WGMMA_INT;
    if (n % 8 || n < 8 || n > 256 || (integer && n % 16 && n != 8 && n != 24))
        return "no such shape: n must be a multiple of 8 up to 256 (integers: 8, 24 or of 16)";
    if (in->type == PTX_F16 && (in->type2 == PTX_BF16 || in->type2 == PTX_TF32))
        return "an f16 result needs f16 or 8-bit operands";
    return NULL;
}

const char *tensor_form_problem(const struct ptx_insn *in) {
    if (tensor_is_wmma(in->op) && (in->op != PTX_OP_WMMA || in->type2 == in->type3))
        return wmma_problem(in);
    if (family(in->type2) != family(in->type3) ||
        (in->type2 != in->type3 && tensor_element_bytes(in->type2) > 1))
        return "a and b have types that do not go together";
    if (tensor_is_wgmma(in->op))
        return wgmma_problem(in);
    if (tensor_is_wmma(in->op))
        return "a and b have different types";
    if (in->type != in->type4)
        return "c and d have different types";
    if (in->mods.satfinite && in->type != PTX_S32)
        return ".satfinite is for integers";
    return find_form(in) ? NULL : "no such shape with these types";
}

struct tensor_regs tensor_form_regs(const struct ptx_insn *in) {
    if (tensor_is_wmma(in->op))
        return wmma_regs(in);
    unsigned rows = tensor_is_wgmma(in->op) ? 16 : in->mods.m; /* of one warp */
    unsigned per = in->type2 == PTX_F64 ? 1 : 4 / tensor_element_bytes(in->type2);
    unsigned step = in->mods.k / (4 * per); /* a register holds 8 rows and 4 * per of k */
    unsigned d = rows * in->mods.n / (in->type == PTX_F16 ? 64 : 32);
    return (struct tensor_regs){.d = d, .a = rows / 8 * step, .b = step, .c = d};
}

enum tensor_type tensor_element_of(enum ptx_type type) {
    switch (type) {
    case PTX_F16:
        return TENSOR_F16;
    case PTX_BF16:
        return TENSOR_BF16;
    case PTX_TF32:
        return TENSOR_TF32;
    case PTX_E4M3:
        return TENSOR_E4M3;
    case PTX_E5M2:
        return TENSOR_E5M2;
    default:
        return TENSOR_F32;
    }
}

/* ---- architectures --------------------------------------------------------------------------- */

/*
 * L and F of each core, for operands of 16 bits, of tf32 and of 8 bits (0: it has none, or its
 * arithmetic is not known).  Sources in docs/emulator.md.
 */
struct core {
    uint8_t half_block, tf32_block, fraction;
    uint8_t eight_block, eight_fraction;
    uint8_t eight_end; /* of f32 results */
    bool eight_through_f16;
};

#define AMPERE \
    { 8, 4, 24, 0, 0, 0, false }

static const struct arch {
    unsigned number;
    struct core mma, wgmma;
} archs[] = {
    {75, {8, 0, 24, 0, 0, 0, false}, {0}},
    {80, AMPERE, {0}},
    {86, AMPERE, {0}},
    {89, {8, 4, 24, 16, 13, TENSOR_RZ_E8M13, false}, {0}},
    {90, {16, 8, 25, 16, 25, TENSOR_RZ_F32, true}, {16, 8, 25, 32, 13, TENSOR_RZ_E8M13, false}},
    {100, {16, 8, 25, 16, 25, TENSOR_RZ_F32, true}, {0}},
    {120, {16, 8, 25, 32, 25, TENSOR_RZ_F32, false}, {0}},
};

static const struct arch *find_arch(unsigned number) {
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (archs[i].number == number)
            return &archs[i];
    return NULL;
}

bool tensor_arch_known(unsigned arch) {
    return find_arch(arch) != NULL;
}

/*
 * E does not fall below emin - 5 - (F - 23), emin being the result format's least exponent (Khattak
 * and Mikaitis; confirmed on an H200 for f32 and f16 results).
 */
static int16_t floor_of(unsigned fraction, bool f16) {
    return (int16_t)((f16 ? -14 : -126) - 5 - ((int)fraction - 23));
}

static bool core_model(struct tensor_model *model, const struct core *core,
                       const struct ptx_insn *in) {
    unsigned bytes = tensor_element_bytes(in->type2);
    bool f16 = in->type == PTX_F16;
    *model = (struct tensor_model){.block = bytes == 4   ? core->tf32_block
                                            : bytes == 2 ? core->half_block
                                                         : core->eight_block,
                                   .fraction = bytes == 1 ? core->eight_fraction : core->fraction,
                                   .end = f16          ? TENSOR_RNE_F16
                                          : bytes == 1 ? core->eight_end
                                                       : TENSOR_RZ_F32,
                                   .through_f16 = bytes == 1 && core->eight_through_f16};
    model->floor = floor_of(core->fraction, f16);
    return model->block != 0;
}

bool tensor_form_on(struct tensor_model *model, const char **reason, const struct ptx_insn *in,
                    const char *target, unsigned arch) {
    bool wgmma = tensor_is_wgmma(in->op);
    bool wmma = tensor_is_wmma(in->op);
    const struct form *form = wgmma || wmma ? NULL : find_form(in);
    const struct arch *a = find_arch(arch);
    unsigned least = form ? form->least : wmma ? wmma_least(in) : 0;
    *model = (struct tensor_model){0};
    if (wgmma && (strcmp(target, "sm_90a") != 0 || arch != 90)) {
        *reason = "wgmma is for the target sm_90a on sm_90 only";
        return false;
    }
    if (least > arch || least > strtoul(target + 3, NULL, 10)) {
        *reason = least == 90   ? "it needs sm_90"
                  : least == 89 ? "it needs sm_89"
                                : "it needs sm_80";
        return false;
    }
    if (in->type == PTX_S32 || in->type == PTX_F64 || (wmma && !wmma_multiplies(in->op)))
        return true;
    struct ptx_insn as_mma = wmma ? tensor_form_as_mma(in) : *in;
    if (a && core_model(model, wgmma ? &a->wgmma : &a->mma, &as_mma)) {
        if (wmma && tensor_element_bytes(as_mma.type2) == 4)
            model->block = 4; /* ptxas makes m16n8k4 of it (HMMA.1684), twice, for sm_80 to sm_120 */
        return true;
    }
    *reason = "how this architecture computes it is not known";
    return false;
}
