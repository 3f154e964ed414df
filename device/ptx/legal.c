/*
 * legal.c - what an image's .target may contain: the first architecture and PTX version of each
 * instruction that is newer than sm_75 and PTX 6.4.  PTX ISA 9, "Target ISA Notes" of each.
 */
#include "device/ptx/front.h"

static const struct {
    enum ptx_op op;
    unsigned short sm;
} rows[] = {
    {PTX_OP_CLUSTER_ARRIVE, 90},
    {PTX_OP_CLUSTER_WAIT, 90},
    {PTX_OP_MAPA, 90},
    {PTX_OP_GETCTARANK, 90},
    {PTX_OP_CP_ASYNC_CA, 80},
    {PTX_OP_CP_ASYNC_CG, 80},
    {PTX_OP_CP_ASYNC_CA_HINT, 80},
    {PTX_OP_CP_ASYNC_CG_HINT, 80},
    {PTX_OP_CP_ASYNC_COMMIT, 80},
    {PTX_OP_CP_ASYNC_WAIT, 80},
    {PTX_OP_CP_ASYNC_WAIT_ALL, 80},
    {PTX_OP_CP_ASYNC_MBAR, 80},
    {PTX_OP_CREATEPOLICY, 80},
    {PTX_OP_CREATEPOLICY_RANGE, 80},
    {PTX_OP_CREATEPOLICY_CVT, 80},
    {PTX_OP_DISCARD, 80},
    {PTX_OP_APPLYPRIORITY, 80},
    {PTX_OP_LD_HINT, 80},
    {PTX_OP_ST_HINT, 80},
    {PTX_OP_REDUX, 80},
    {PTX_OP_MBAR_INIT, 80},
    {PTX_OP_MBAR_INVAL, 80},
    {PTX_OP_MBAR_ARRIVE, 80},
    {PTX_OP_MBAR_ARRIVE_NO, 80},
    {PTX_OP_MBAR_DROP, 80},
    {PTX_OP_MBAR_DROP_NO, 80},
    {PTX_OP_MBAR_TEST, 80},
    {PTX_OP_MBAR_PENDING, 80},
    {PTX_OP_MBAR_TEST_PARITY, 80},
    {PTX_OP_MBAR_EXPECT, 90},
    {PTX_OP_MBAR_COMPLETE, 90},
    {PTX_OP_MBAR_ARRIVE_EXPECT, 90},
    {PTX_OP_MBAR_DROP_EXPECT, 90},
    {PTX_OP_MBAR_TRY, 90},
    {PTX_OP_MBAR_TRY_PARITY, 90},
    {PTX_OP_BULK_LOAD, 90},
    {PTX_OP_BULK_LOAD_HINT, 90},
    {PTX_OP_BULK_MULTICAST, 90},
    {PTX_OP_BULK_MULTICAST_HINT, 90},
    {PTX_OP_BULK_SHARE, 90},
    {PTX_OP_BULK_STORE, 90},
    {PTX_OP_BULK_REDUCE, 90},
    {PTX_OP_BULK_REDUCE_SHARE, 90},
    {PTX_OP_TENSOR_LOAD, 90},
    {PTX_OP_TENSOR_LOAD_HINT, 90},
    {PTX_OP_TENSOR_MULTICAST, 90},
    {PTX_OP_TENSOR_MULTICAST_HINT, 90},
    {PTX_OP_TENSOR_STORE, 90},
    {PTX_OP_TENSOR_REDUCE, 90},
    {PTX_OP_TENSOR_PREFETCH, 90},
    {PTX_OP_PREFETCH_TENSORMAP, 90},
    {PTX_OP_FENCE_PROXY_RESTRICT, 90},
    {PTX_OP_FENCE_PROXY_TENSORMAP, 90},
    {PTX_OP_CVT_F8_F32, 89},
    {PTX_OP_CVT_F8_F16, 89},
    {PTX_OP_CVT_F16_F8, 89},
    {PTX_OP_BULK_COMMIT, 90},
    {PTX_OP_BULK_WAIT, 90},
    {PTX_OP_BULK_PREFETCH, 90},
    {PTX_OP_ST_ASYNC, 90},
    {PTX_OP_RED_ASYNC, 90},
    {PTX_OP_FENCE_MBARRIER, 90},
    {PTX_OP_FENCE_PROXY_ASYNC, 90},
    {PTX_OP_ELECT, 90},
    {PTX_OP_GRIDDEP_LAUNCH, 90},
    {PTX_OP_GRIDDEP_WAIT, 90},
    {PTX_OP_SETMAXNREG_INC, 90},
    {PTX_OP_SETMAXNREG_DEC, 90},
    {PTX_OP_ATOM_VEC, 90},
    {PTX_OP_RED_VEC, 90},
    {PTX_OP_ADD_PAIR, 90},
    {PTX_OP_MIN_PAIR, 90},
    {PTX_OP_MAX_PAIR, 90},
    {PTX_OP_MIN_RELU, 90},
    {PTX_OP_MAX_RELU, 90},
    {PTX_OP_STMATRIX, 90},
    {PTX_OP_MIN_F32_XORSIGN, 86},
    {PTX_OP_MAX_F32_XORSIGN, 86},
    {PTX_OP_ADD_MIXED, 100},
    {PTX_OP_SUB_MIXED, 100},
    {PTX_OP_FMA_MIXED, 100},
    {PTX_OP_ADD_F32X2, 100},
    {PTX_OP_SUB_F32X2, 100},
    {PTX_OP_MUL_F32X2, 100},
    {PTX_OP_FMA_F32X2, 100},
    {PTX_OP_REDUX_F32, 100},
};

unsigned ptx_op_sm(enum ptx_op op) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op)
            return rows[i].sm;
    return 0;
}

static bool is_minmax_f32(enum ptx_op op) {
    return op == PTX_OP_MIN_F32 || op == PTX_OP_MAX_F32;
}

static bool is_access(enum ptx_op op) {
    return op == PTX_OP_LD || op == PTX_OP_ST || op == PTX_OP_LD_HINT || op == PTX_OP_ST_HINT;
}

/* Loads and stores of wmma; its multiplications and those of mma: tensor_form.c. */
static bool is_late_fragment(const struct ptx_insn *in) {
    bool load = in->op == PTX_OP_WMMA_LOAD_A || in->op == PTX_OP_WMMA_LOAD_B ||
                in->op == PTX_OP_WMMA_LOAD_C || in->op == PTX_OP_WMMA_STORE;
    return load && (in->type == PTX_BF16 || in->type == PTX_TF32 || in->type == PTX_F64);
}

unsigned ptx_insn_sm(const struct ptx_insn *in) {
    unsigned sm = ptx_op_sm(in->op);
    unsigned bytes = in->mods.vec * ptx_type_bits(in->type) / 8;
    bool bf16 = in->type == PTX_BF16 || in->type == PTX_BF16X2;
    bool nan = is_minmax_f32(in->op) && in->mods.nan;
    if (in->mods.space == SPACE_CLUSTER && sm < 90)
        sm = 90;
    if ((in->op == PTX_OP_ATOM_HALF || in->op == PTX_OP_RED_HALF) && bf16)
        sm = 90;
    if (is_minmax_f32(in->op) && in->group_count > 3)
        sm = 100;
    if (is_access(in->op) && (in->mods.vec > 4 || bytes > 16))
        sm = 100;
    return (nan || is_late_fragment(in)) && sm < 80 ? 80 : sm;
}
