/*
 * tests/ptx/elsewhere.h - rows of opcodes.def that test_rows leaves to another test.
 *
 * That test ends with check_elsewhere(): it fails unless each of its rows stood in a job's body
 * that ran and did what the test expected.  A row named here without a test is so found there.
 */
#ifndef TESTS_PTX_ELSEWHERE_H
#define TESTS_PTX_ELSEWHERE_H

#include "device/ptx/ptx.h"

enum elsewhere_test { TEST_MUFU, TEST_MEMORY, TEST_WARP };

static const struct elsewhere {
    enum ptx_op op;
    enum elsewhere_test test;
} elsewhere[] = {
    {PTX_OP_EX2_F32, TEST_MUFU},      {PTX_OP_LG2_F32, TEST_MUFU},
    {PTX_OP_RCPA_F32, TEST_MUFU},     {PTX_OP_RSQRT_F32, TEST_MUFU},
    {PTX_OP_SQRTA_F32, TEST_MUFU},    {PTX_OP_SIN_F32, TEST_MUFU},
    {PTX_OP_COS_F32, TEST_MUFU},      {PTX_OP_TANH_F32, TEST_MUFU},
    {PTX_OP_RCPA_F64, TEST_MUFU},     {PTX_OP_RSQRTA_F64, TEST_MUFU},
    {PTX_OP_LD, TEST_MEMORY},         {PTX_OP_LDU, TEST_MEMORY},
    {PTX_OP_ST, TEST_MEMORY},         {PTX_OP_PREFETCH, TEST_MEMORY},
    {PTX_OP_ATOM, TEST_MEMORY},       {PTX_OP_ATOM_CAS, TEST_MEMORY},
    {PTX_OP_RED, TEST_MEMORY},        {PTX_OP_SHFL, TEST_WARP},
    {PTX_OP_VOTE_BALLOT, TEST_WARP},  {PTX_OP_VOTE, TEST_WARP},
    {PTX_OP_MATCH_ANY, TEST_WARP},    {PTX_OP_MATCH_ALL, TEST_WARP},
    {PTX_OP_LD_HINT, TEST_MEMORY},    {PTX_OP_ST_HINT, TEST_MEMORY},
    {PTX_OP_CREATEPOLICY, TEST_MEMORY}, {PTX_OP_CP_ASYNC_CA, TEST_MEMORY},
    {PTX_OP_CP_ASYNC_CG, TEST_MEMORY}, {PTX_OP_CP_ASYNC_COMMIT, TEST_MEMORY},
    {PTX_OP_CP_ASYNC_WAIT, TEST_MEMORY}, {PTX_OP_CP_ASYNC_WAIT_ALL, TEST_MEMORY},
    {PTX_OP_LDMATRIX, TEST_MEMORY},   {PTX_OP_STMATRIX, TEST_MEMORY},
    {PTX_OP_MOVMATRIX, TEST_MEMORY},  {PTX_OP_ACTIVEMASK, TEST_WARP},
    {PTX_OP_REDUX, TEST_WARP},        {PTX_OP_BAR_WARP, TEST_WARP},
    {PTX_OP_BAR, TEST_WARP},          {PTX_OP_BARRIER, TEST_WARP},
    {PTX_OP_BAR_RED_POPC, TEST_WARP}, {PTX_OP_BAR_RED_PRED, TEST_WARP},
    {PTX_OP_MEMBAR, TEST_WARP},       {PTX_OP_FENCE, TEST_WARP},
    {PTX_OP_BRA, TEST_WARP},          {PTX_OP_RET, TEST_WARP},
    {PTX_OP_EXIT, TEST_WARP},         {PTX_OP_TRAP, TEST_WARP},
    {PTX_OP_BRKPT, TEST_WARP},        {PTX_OP_NANOSLEEP, TEST_WARP},
};

#endif
