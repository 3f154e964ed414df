/* device/ptx/resolve.c - what is known only when a whole function has been read. */
#include "base/size.h"
#include "device/ptx/front.h"

size_t resolve_layout(struct ptx_var *var, size_t at) {
    var->offset = size_align(at, var->align ? var->align : 1);
    return var->offset + var->size;
}

void resolve_dynamic(struct ptx_func *func, size_t begin) {
    for (size_t i = 0; i < func->insn_count; i++) {
        const struct ptx_insn *insn = &func->insns[i];
        unsigned count = insn->group_count ? insn->first[insn->group_count] : 0;
        for (unsigned j = 0; j < count; j++) {
            /* The parser owns every variable; only here are they still written. */
            struct ptx_var *var = (struct ptx_var *)insn->opnd[j].var;
            if (var && var->dynamic)
                var->offset = begin;
        }
    }
}

static bool is_product(enum ptx_op op) {
    return op == PTX_OP_MUL_F32 || op == PTX_OP_MUL_F64 || op == PTX_OP_MUL_F16 ||
           op == PTX_OP_MUL_BF16;
}

static bool is_sum(enum ptx_op op) {
    return op == PTX_OP_ADD_F32 || op == PTX_OP_SUB_F32 || op == PTX_OP_ADD_F64 ||
           op == PTX_OP_SUB_F64 || op == PTX_OP_ADD_F16 || op == PTX_OP_SUB_F16 ||
           op == PTX_OP_ADD_BF16 || op == PTX_OP_SUB_BF16;
}

static bool is_unsuffixed(const struct ptx_insn *insn) {
    return insn->mods.rnd == RND_NONE;
}

/*
 * ptxas may contract mul and add when neither has a rounding suffix (PTX ISA: an add or mul without
 * one "may be optimized aggressively"), so such a pair has no fixed bits.  Registers are compared over
 * the whole function, not along paths: that can only report too much, never too little.
 */
status_t resolve_ambiguous(struct ptx_func *func, struct ptx_arena *arena) {
    func->ambiguous = func->ambiguous_line = 0;
    bool *product = arena_alloc(arena, func->reg_count * sizeof *product);
    if (!product)
        return FAIL(ERR_NOMEM, "%s: no memory for the module", func->name);
    for (size_t i = 0; i < func->insn_count; i++) {
        const struct ptx_insn *mul = &func->insns[i];
        if (is_product(mul->op) && is_unsuffixed(mul) && mul->opnd[0].kind == OPND_REG)
            product[mul->opnd[0].reg] = true;
    }
    for (size_t i = 0; i < func->insn_count; i++) {
        const struct ptx_insn *add = &func->insns[i];
        if (!is_sum(add->op) || !is_unsuffixed(add))
            continue;
        bool fed = false;
        for (int k = 1; k <= 2; k++)
            fed |= add->opnd[k].kind == OPND_REG && product[add->opnd[k].reg];
        if (fed && !func->ambiguous++)
            func->ambiguous_line = add->line;
    }
    return OK;
}
