/*
 * fuzz_ptx_parse.c - any bytes as PTX text: the front end answers with a module or with one clear
 * message, and never with anything else.
 *
 * What is checked beyond the sanitizers: a refusal carries a message, an accepted module is whole
 * (every operand names something that exists), and parsing twice gives the same answer.
 */
#include "device/ptx/ptx.h"
#include "fuzz/target.h"

FUZZ_FAIL(silent_refusal)    /* an error without a message */
FUZZ_FAIL(dangling_operand)  /* an operand that names nothing */
FUZZ_FAIL(not_deterministic) /* a second parse gave something else */

static bool table_is_whole(const struct ptx_table *t, const struct ptx_func *f) {
    for (size_t i = 0; i < t->count; i++)
        if (t->targets ? t->targets[i] >= f->insn_count : !t->funcs[i])
            return false;
    return true;
}

static bool operand_is_whole(const struct ptx_operand *o, const struct ptx_func *f) {
    switch (o->kind) {
    case OPND_REG:
        return o->reg < f->reg_count && f->regs[o->reg].type != PTX_PRED;
    case OPND_PRED:
        return o->reg < f->reg_count && f->regs[o->reg].type == PTX_PRED;
    case OPND_VAR:
        return o->var != NULL;
    case OPND_MEM:
        return o->reg == PTX_NOREG || o->reg < f->reg_count;
    case OPND_LABEL:
        return o->target < f->insn_count;
    case OPND_SREG:
        return o->sreg < SREG_COUNT;
    case OPND_FUNC:
        return o->func && o->func->is_func;
    case OPND_TABLE:
        return o->table && table_is_whole(o->table, f);
    case OPND_IMM:
    case OPND_SINK:
        return true;
    }
    return false;
}

static void check_func(const struct ptx_func *f) {
    for (size_t i = 0; i < f->insn_count; i++) {
        const struct ptx_insn *insn = &f->insns[i];
        if (insn->op >= PTX_OP_COUNT || insn->group_count > PTX_MAX_GROUPS ||
            (insn->guard != PTX_NOREG && insn->guard >= f->reg_count))
            fuzz_fail_dangling_operand();
        for (size_t o = 0; insn->group_count && o < insn->first[insn->group_count]; o++)
            if (!operand_is_whole(&insn->opnd[o], f))
                fuzz_fail_dangling_operand();
    }
    for (size_t i = 0; i < f->param_count; i++)
        if (f->params[i].offset + f->params[i].size > f->param_bytes)
            fuzz_fail_dangling_operand();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ptx_module *module = NULL, *again = NULL;
    status_t st = ptx_module_parse(&module, "fuzz.ptx", (const char *)data, size);
    if (st != OK) {
        if (status_message()[0] == '\0')
            fuzz_fail_silent_refusal();
        return 0;
    }
    for (size_t i = 0; i < module->func_count; i++)
        check_func(&module->funcs[i]);
    for (size_t i = 0; i < module->callee_count; i++)
        check_func(module->callees[i]);
    if (ptx_module_parse(&again, "fuzz.ptx", (const char *)data, size) != OK ||
        again->func_count != module->func_count || again->var_count != module->var_count)
        fuzz_fail_not_deterministic();
    ptx_module_free(again);
    ptx_module_free(module);
    return 0;
}
