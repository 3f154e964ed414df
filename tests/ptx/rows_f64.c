/*
 * rows_f64.c - double precision by MPFR.  NaN results as an H200 has them: of several NaN operands
 * b before a, in fma b, c, a, in div a before b; an invalid operation gives 0xfff8000000000000.
 */
#include "tests/ptx/rows.h"

static uint64_t arithmetic(const struct row_case *k, const uint64_t in[4]) {
    static const int orders[][3] = {{1, 0, 0}, {1, 2, 0}, {0, 1, 1}, {0, 0, 0}};
    const int *order = orders[k->a == REF_FMA ? 1 : k->a == REF_DIV ? 2 : k->a == REF_SQRT ? 3 : 0];
    for (int i = 0; i < 3; i++)
        if (ref_is_nan64(in[order[i]]))
            return in[order[i]] | 0x0008000000000000u;
    uint64_t r = ref_f64(k->a, in[0], in[1], in[2], k->b);
    return ref_is_nan64(r) ? 0xfff8000000000000u : r;
}

/* Sign changes leave a NaN's sign and quiet it (H200: they are additions of -0). */
static uint64_t absolute(const struct row_case *k, const uint64_t in[4]) {
    (void)k;
    if (ref_is_nan64(in[0]))
        return in[0] | 0x0008000000000000u;
    return in[0] & 0x7fffffffffffffffu;
}
static uint64_t negated(const struct row_case *k, const uint64_t in[4]) {
    (void)k;
    if (ref_is_nan64(in[0]))
        return in[0] | 0x0008000000000000u;
    return in[0] ^ 0x8000000000000000u;
}

static uint64_t extreme(const struct row_case *k, const uint64_t in[4]) {
    uint64_t a = in[0], b = in[1];
    bool na = ref_is_nan64(a), nb = ref_is_nan64(b);
    if (na && nb)
        return b | 0x0008000000000000u;
    if (na || nb)
        return nb ? a : b;
    bool sa = a >> 63, sb = b >> 63;
    bool a_less = sa != sb ? sa : sa ? a > b : a < b; /* -0 < +0 */
    return a_less == !k->a ? a : b;
}

#define R4(op, name, operands, in, kind)                                                          \
    {PTX_OP_##op, name ".rn.f64 %dr, " operands ";", "d", in, arithmetic, kind, REF_RN, 0},       \
        {PTX_OP_##op, name ".rz.f64 %dr, " operands ";", "d", in, arithmetic, kind, REF_RZ, 0},   \
        {PTX_OP_##op, name ".rm.f64 %dr, " operands ";", "d", in, arithmetic, kind, REF_RM, 0}, { \
        PTX_OP_##op, name ".rp.f64 %dr, " operands ";", "d", in, arithmetic, kind, REF_RP, 0      \
    }

static const struct row_case cases[] = {
    R4(ADD_F64, "add", "%d0, %d1", "FF", REF_ADD),
    {PTX_OP_ADD_F64, "add.f64 %dr, %d0, %d1;", "d", "FF", arithmetic, REF_ADD, REF_RN, 0},
    R4(SUB_F64, "sub", "%d0, %d1", "FF", REF_SUB),
    R4(MUL_F64, "mul", "%d0, %d1", "FF", REF_MUL),
    R4(FMA_F64, "fma", "%d0, %d1, %d2", "FFF", REF_FMA),
    R4(DIV_F64, "div", "%d0, %d1", "FF", REF_DIV),
    R4(SQRT_F64, "sqrt", "%d0", "F", REF_SQRT),
    {PTX_OP_ABS_F64, "abs.f64 %dr, %d0;", "d", "F", absolute, 0, 0, 0},
    {PTX_OP_NEG_F64, "neg.f64 %dr, %d0;", "d", "F", negated, 0, 0, 0},
    {PTX_OP_MIN_F64, "min.f64 %dr, %d0, %d1;", "d", "FF", extreme, 0, 0, 0},
    {PTX_OP_MAX_F64, "max.f64 %dr, %d0, %d1;", "d", "FF", extreme, 1, 0, 0},
};
const struct row_list rows_f64 = {cases, sizeof cases / sizeof *cases};
