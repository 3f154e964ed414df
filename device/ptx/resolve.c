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

/* Does ptxas see through it, from a value to its copy? */
static bool is_copy(const struct ptx_insn *insn) {
    switch (insn->op) {
    case PTX_OP_MOV:
    case PTX_OP_NEG_F32:
    case PTX_OP_NEG_F64:
    case PTX_OP_NEG_F16:
    case PTX_OP_NEG_BF16:
        return true;
    case PTX_OP_CVT:
    case PTX_OP_CVT_F16_F16:
    case PTX_OP_CVT_BF16_BF16:
        return insn->type == insn->type2;
    default:
        return false;
    }
}

/* Local memory becomes registers where ptxas knows the address; a generic one may be local. */
static bool is_local(const struct ptx_func *func, const struct ptx_insn *insn) {
    return func->local_bytes &&
           (insn->mods.space == SPACE_LOCAL || insn->mods.space == SPACE_GENERIC);
}

static bool is_load(enum ptx_op op) {
    return op == PTX_OP_LD || op == PTX_OP_LD_HINT;
}

static bool is_store(enum ptx_op op) {
    return op == PTX_OP_ST || op == PTX_OP_ST_HINT;
}

/* Is a register of group g one of the set? */
static bool group_has(const struct ptx_insn *insn, unsigned g, const bool *set) {
    bool has = false;
    for (unsigned k = insn->first[g]; k < insn->first[g + 1]; k++)
        has |= insn->opnd[k].kind == OPND_REG && set[insn->opnd[k].reg];
    return has;
}

/* Add the registers of group 0 to the set; false if all were there. */
static bool add_results(const struct ptx_insn *insn, bool *set) {
    bool added = false;
    for (unsigned k = insn->first[0]; k < insn->first[1]; k++)
        if (insn->opnd[k].kind == OPND_REG && !set[insn->opnd[k].reg])
            added = set[insn->opnd[k].reg] = true;
    return added;
}

#define SWEEPS 16

/* All registers that may hold an unsuffixed product, copies included. */
static void find_products(bool *product, const struct ptx_func *func) {
    bool added = true, stored = false;
    for (unsigned sweep = 0; added && sweep <= SWEEPS; sweep++) {
        bool all = sweep == SWEEPS; /* an endless chain of copies: take every copy for a product */
        added = false;
        for (size_t i = 0; i < func->insn_count; i++) {
            const struct ptx_insn *insn = &func->insns[i];
            if ((is_product(insn->op) && is_unsuffixed(insn)) ||
                (is_copy(insn) && (all || group_has(insn, 1, product))) ||
                (is_load(insn->op) && is_local(func, insn) && (all || stored)))
                added |= add_results(insn, product);
            if (is_store(insn->op) && is_local(func, insn) && !stored &&
                group_has(insn, 1, product))
                added = stored = true;
        }
    }
}

/*
 * ptxas may contract mul and add when neither has a rounding suffix (PTX ISA: an add or mul without
 * one "may be optimized aggressively"), so such a pair has no fixed bits.  ptxas 13.0 also does so
 * through mov, neg, a cvt that changes nothing and local memory; not through abs, selp, shared
 * memory or shuffles.  Registers are compared over the whole function, not along paths: that can
 * only report too much, never too little.
 */
status_t resolve_ambiguous(struct ptx_func *func, struct ptx_arena *arena) {
    func->ambiguous = func->ambiguous_line = 0;
    bool *product = arena_alloc(arena, func->reg_count * sizeof *product);
    if (!product)
        return FAIL(ERR_NOMEM, "%s: no memory for the module", func->name);
    find_products(product, func);
    for (size_t i = 0; i < func->insn_count; i++) {
        const struct ptx_insn *add = &func->insns[i];
        if (!is_sum(add->op) || !is_unsuffixed(add))
            continue;
        bool fed = group_has(add, 1, product) || group_has(add, 2, product);
        if (fed && !func->ambiguous++)
            func->ambiguous_line = add->line;
    }
    return OK;
}
