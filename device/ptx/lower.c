/*
 * lower.c - a resolved function -> a flat array of instructions bound to handlers.
 *
 * One xinsn per PTX instruction, so a place in the one is a place in the other.  Operands become
 * rows of the register file: the registers first, then one row of zeros to throw results into, then
 * the constants and special registers, each once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/ptx/exec.h"
#include "device/ptx/tensor_form.h"

struct lowering {
    struct program *p;
    const struct lower_env *env;
    struct row_map map;
    uint32_t next, sink;
    size_t const_room, sreg_room;
    uint32_t *pred;       /* register number -> predicate number */
    uint32_t *const_hash; /* open addressing: index into consts, or UINT32_MAX */
    size_t hash_size;
    uint32_t *list_next;
};

#define NONE UINT32_MAX

static status_t grow(void **array, size_t *room, size_t count, size_t size) {
    if (count < *room)
        return OK;
    size_t want = *room ? *room * 2 : 16;
    void *bigger = realloc(*array, want * size);
    if (!bigger)
        return FAIL(ERR_NOMEM, "no memory for a program");
    *array = bigger;
    *room = want;
    return OK;
}

static uint32_t take_row(struct lowering *lo, bool wide) {
    uint32_t row = lo->next;
    lo->next += wide ? ROW64 : ROW32;
    return row;
}

/* ---- constants and special registers --------------------------------------------------------- */

static size_t const_slot(const struct lowering *lo, bool wide, uint64_t value) {
    uint64_t h = (value * 2 + wide) * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(h >> 32) & (lo->hash_size - 1);
    for (; lo->const_hash[i] != NONE; i = (i + 1) & (lo->hash_size - 1)) {
        const struct row_const *c = &lo->p->consts[lo->const_hash[i]];
        if (c->wide == wide && c->value == value)
            break;
    }
    return i;
}

static status_t rehash(struct lowering *lo) {
    if (lo->p->const_count * 2 < lo->hash_size)
        return OK;
    size_t size = lo->hash_size ? lo->hash_size * 2 : 64;
    uint32_t *table = malloc(size * sizeof *table);
    if (!table)
        return FAIL(ERR_NOMEM, "no memory for a program");
    memset(table, 0xff, size * sizeof *table);
    free(lo->const_hash);
    lo->const_hash = table;
    lo->hash_size = size;
    for (size_t i = 0; i < lo->p->const_count; i++) {
        const struct row_const *c = &lo->p->consts[i];
        table[const_slot(lo, c->wide, c->value)] = (uint32_t)i;
    }
    return OK;
}

static status_t const_row(uint32_t *row, struct lowering *lo, bool wide, uint64_t value) {
    status_t st = OK;
    struct program *p = lo->p;
    TRY(rehash(lo));
    size_t slot = const_slot(lo, wide, value);
    if (lo->const_hash[slot] == NONE) {
        TRY(grow((void **)&p->consts, &lo->const_room, p->const_count, sizeof *p->consts));
        lo->const_hash[slot] = (uint32_t)p->const_count;
        p->consts[p->const_count++] = (struct row_const){take_row(lo, wide), wide, value};
    }
    *row = p->consts[lo->const_hash[slot]].row;
done:
    return st;
}

static status_t sreg_row(uint32_t *row, struct lowering *lo, enum ptx_sreg sreg, unsigned bits) {
    status_t st = OK;
    struct program *p = lo->p;
    for (size_t i = 0; i < p->sreg_count; i++)
        if (p->sregs[i].sreg == sreg && p->sregs[i].bits == bits) {
            *row = p->sregs[i].row;
            return OK;
        }
    TRY(grow((void **)&p->sregs, &lo->sreg_room, p->sreg_count, sizeof *p->sregs));
    *row = take_row(lo, bits > 32);
    p->sregs[p->sreg_count++] = (struct row_sreg){*row, bits > 32, bits, sreg};
done:
    return st;
}

/* The address of a variable in its own space; global and const variables lie in the heap. */
static uint64_t var_address(const struct lowering *lo, const struct ptx_var *v) {
    if (v->dynamic) /* one declaration may serve several entries */
        return size_align(lo->p->func->static_shared, 16);
    if (v->space == SPACE_GLOBAL)
        return lo->env->global_base + v->offset;
    if (v->space == SPACE_CONST)
        return lo->env->const_base + v->offset;
    return v->offset;
}

/* ---- operands -------------------------------------------------------------------------------- */

static unsigned operand_bits(const struct lowering *lo, const struct ptx_operand *o) {
    enum ptx_type t = o->kind == OPND_REG ? lo->p->func->regs[o->reg].type : o->type;
    unsigned bits = ptx_type_bits(t);
    return bits > 64 ? 128 : bits > 32 ? 64 : bits > 16 ? 32 : 16;
}

static status_t source_row(uint32_t *row, struct lowering *lo, const struct ptx_operand *o) {
    unsigned bits = ptx_type_bits(o->type);
    switch (o->kind) {
    case OPND_REG: *row = lo->map.row[o->reg]; return OK;
    case OPND_IMM: return const_row(row, lo, bits > 32, o->imm);
    case OPND_SREG: return sreg_row(row, lo, o->sreg, bits);
    case OPND_VAR:
        return const_row(row, lo, bits > 32, var_address(lo, o->var) + (uint64_t)o->offset);
    case OPND_SINK: *row = lo->sink; return OK;
    case OPND_PRED:
    case OPND_MEM:
    case OPND_LABEL: break;
    }
    return FAIL(ERR_UNSUPPORTED, "an operand kind that the executor does not have");
}

static status_t memory_operand(struct xinsn *x, struct lowering *lo, const struct ptx_operand *o) {
    x->slot = (uint32_t)lo->p->slot_count++;
    if (o->kind == OPND_MEM && o->reg != PTX_NOREG) {
        x->a = lo->map.row[o->reg];
        x->imm = (uint64_t)o->offset;
        if (ptx_type_bits(lo->p->func->regs[o->reg].type) > 32)
            x->flags |= X_ADDR64;
        return OK;
    }
    uint64_t at = (uint64_t)o->offset + (o->var ? var_address(lo, o->var) : o->imm);
    x->flags |= X_UNIFORM | X_ADDR64;
    return const_row(&x->a, lo, true, at);
}

/* The source address of cp.async: row b, and the slot after that of the first address. */
static status_t second_address(struct xinsn *x, struct lowering *lo, const struct ptx_operand *o) {
    lo->p->slot_count++;
    if (o->reg == PTX_NOREG)
        return const_row(&x->b, lo, true, o->var ? var_address(lo, o->var) : 0);
    x->b = lo->map.row[o->reg];
    return OK;
}

static uint32_t pred_number(const struct lowering *lo, const struct ptx_operand *o) {
    return o->kind == OPND_PRED || o->kind == OPND_REG ? lo->pred[o->reg] : (uint32_t)PRED_TRUE + 1;
}

/* Rows of the elements of group g. */
static status_t vector_operand(struct xinsn *x, struct lowering *lo, const struct ptx_insn *in,
                               unsigned g) {
    status_t st = OK;
    x->list = lo->list_next;
    x->vec = (uint8_t)(in->first[g + 1] - in->first[g]);
    for (unsigned i = in->first[g]; i < in->first[g + 1]; i++)
        TRY(source_row(lo->list_next++, lo, &in->opnd[i]));
done:
    return st;
}

/* Rows of one matrix of mma or wgmma; x->list begins with the first and goes on to the last. */
static status_t fragment_operand(struct xinsn *x, struct lowering *lo, const struct ptx_insn *in,
                                 unsigned g) {
    const uint32_t *first = g ? x->list : lo->list_next;
    status_t st = vector_operand(x, lo, in, g);
    x->list = first;
    return st;
}

/* Which arithmetic an mma has here, or that it is not there. */
static status_t tensor_operation(struct xinsn *x, const struct lowering *lo,
                                 const struct ptx_insn *in) {
    const struct ptx_module *m = lo->p->module;
    struct tensor_model model;
    const char *reason;
    _Static_assert(sizeof model <= sizeof x->imm, "imm holds the model");
    if (in->op != PTX_OP_MMA && !tensor_is_wgmma(in->op))
        return OK;
    if (!tensor_form_on(&model, &reason, in, m->target, lo->env->arch))
        return FAIL(ERR_UNSUPPORTED, "%s:%u: '%s' with these types for %s on sm_%u: %s", m->label,
                    in->line, ptx_opcodes[in->op].name, m->target, lo->env->arch, reason);
    memcpy(&x->imm, &model, sizeof model);
    return OK;
}

/* They wait for the whole warp. */
static bool needs_warp(enum ptx_op op) {
    return op == PTX_OP_LDMATRIX || op == PTX_OP_STMATRIX || op == PTX_OP_MOVMATRIX ||
           op == PTX_OP_MMA || tensor_is_wgmma(op) || op == PTX_OP_WGMMA_FENCE ||
           op == PTX_OP_WGMMA_COMMIT || op == PTX_OP_WGMMA_WAIT;
}

/* Fill the operand fields of x in the order of the pattern. */
static status_t operands(struct xinsn *x, struct lowering *lo, const struct ptx_insn *in) {
    status_t st = OK;
    uint32_t *const source[4] = {&x->a, &x->b, &x->c, &x->e};
    unsigned sources = 0, preds = 0;
    for (unsigned g = 0; g < in->group_count; g++) {
        char letter = operand_letter(in, g);
        unsigned count = in->first[g + 1] - in->first[g];
        const struct ptx_operand *o = &in->opnd[in->first[g]];
        if (count == 0)
            continue;
        switch (letter) {
        case 'l': x->target = lo->p->code + o->target; break;
        case 'm':
            TRY(memory_operand(x, lo, o));
            sources++; /* the address is source a */
            break;
        case 'i':
        case 'p': /* destination predicates: 1 is the one that nobody reads */
            x->d = o->kind == OPND_SINK ? PRED_TRUE + 1 : pred_number(lo, o);
            x->d2 = count > 1 && o[1].kind != OPND_SINK ? pred_number(lo, &o[1]) : PRED_TRUE + 1;
            break;
        case 'E':
        case 'F':
        case 'G':
        case 'H':
        case 'R': TRY(fragment_operand(x, lo, in, g)); break;
        case 'S': /* registers, or a descriptor as source a */
            if (count > 1)
                TRY(fragment_operand(x, lo, in, g));
            else
                TRY(source_row(&x->a, lo, o));
            sources = 1;
            break;
        case 'Q':
        case 'P':
            if (o->kind == OPND_IMM) { /* a constant predicate */
                *(preds ? &x->p2 : &x->p) = PRED_TRUE;
                *(preds ? &x->p2neg : &x->pneg) = o->imm & 1 ? 0 : ~0u;
            } else {
                *(preds ? &x->p2 : &x->p) = pred_number(lo, o);
                *(preds ? &x->p2neg : &x->pneg) = o->negate ? ~0u : 0;
            }
            preds++;
            break;
        case 'r':
        case 't':
            TRY(source_row(&x->d, lo, o));
            x->d2 = count > 1 && o[1].kind != OPND_SINK ? pred_number(lo, &o[1]) : PRED_TRUE + 1;
            break;
        case 'n': /* b; the displacement stays in the operand, which the handler reads */
            TRY(second_address(x, lo, o));
            sources = 2;
            break;
        case 'f':
        case 'g':
        case 'z':
        case 'Z': break;
        case 'v':
        case 'V':
        case 'w':
        case 'W':
            TRY(vector_operand(x, lo, in, g));
            x->dbits = (uint8_t)operand_bits(lo, o);
            break;
        case 'k':
        case 'K':
            if (count > 1)
                TRY(vector_operand(x, lo, in, g));
            TRY(source_row(letter == 'k' ? &x->d : &x->a, lo, o));
            *(letter == 'k' ? &x->dbits : &x->abits) = (uint8_t)operand_bits(lo, o);
            break;
        default:
            if (operand_is_dest(letter)) {
                TRY(source_row(&x->d, lo, o));
                x->dbits = (uint8_t)operand_bits(lo, o);
            } else if (sources < 4) {
                if (sources == 0)
                    x->abits = (uint8_t)operand_bits(lo, o);
                TRY(source_row(source[sources++], lo, o));
            }
        }
    }
done:
    return st;
}

/* relaxed and stronger accesses are as strong as volatile ones; releasing ones fence first. */
static uint16_t access_flags(const struct ptx_mods *m) {
    uint16_t flags = m->volatile_ || m->order > ORDER_WEAK ? X_VOLATILE : 0;
    bool releases = m->order == ORDER_RELEASE || m->order == ORDER_ACQ_REL || m->order == ORDER_SC;
    return releases ? flags | X_RELEASE : flags;
}

static status_t lower_insn(struct xinsn *x, struct lowering *lo, const struct ptx_insn *in) {
    status_t st = OK;
    const struct ptx_module *m = lo->p->module;
    x->insn = in;
    x->guard = in->guard == PTX_NOREG ? PRED_TRUE : lo->pred[in->guard];
    x->gneg = in->guard != PTX_NOREG && in->guard_negate ? ~0u : 0;
    x->d2 = PRED_TRUE + 1;
    x->vec = 1;
    x->space = (uint16_t)in->mods.space;
    x->flags = access_flags(&in->mods);
    TRY(operands(x, lo, in));
    if (needs_warp(in->op))
        TRY(const_row(&x->e, lo, false, 0xffffffffu));
    TRY(tensor_operation(x, lo, in));
    if (!lo->env->isa->binds[in->op](x, in))
        return FAIL(ERR_UNSUPPORTED, "%s:%u: this form of '%s' is not in the emulator", m->label,
                    in->line, ptx_opcodes[in->op].name);
    if (lo->env->count_events)
        lo->env->isa->count_events(x, &lo->p->inners[in - lo->p->func->insns]);
    if (in->guard != PTX_NOREG)
        x->full = x->masked;
done:
    return st;
}

/* ---- the whole function ---------------------------------------------------------------------- */

static status_t number_predicates(struct lowering *lo) {
    const struct ptx_func *f = lo->p->func;
    lo->pred = calloc(f->reg_count + 1, sizeof *lo->pred);
    if (!lo->pred)
        return FAIL(ERR_NOMEM, "no memory for a program");
    lo->p->pred_count = 2; /* the constant one and the one that nobody reads */
    for (size_t i = 0; i < f->reg_count; i++)
        if (f->regs[i].type == PTX_PRED)
            lo->pred[i] = (uint32_t)lo->p->pred_count++;
    return OK;
}

static size_t operand_total(const struct ptx_func *f) {
    size_t n = 0;
    for (size_t i = 0; i < f->insn_count; i++)
        n += f->insns[i].first[f->insns[i].group_count];
    return n;
}

static status_t start_rows(struct lowering *lo) {
    struct program *p = lo->p;
    const struct ptx_func *f = p->func;
    size_t n = 0;
    for (size_t i = 0; i < f->reg_count; i++)
        n += lo->map.live_in[i];
    p->starts = calloc(n + 1, sizeof *p->starts);
    if (!p->starts)
        return FAIL(ERR_NOMEM, "no memory for a program");
    for (size_t i = 0; i < f->reg_count; i++)
        if (lo->map.live_in[i])
            p->starts[p->start_count++] = (struct row_start){
                lo->map.row[i], row_bytes(f->regs[i].type), ptx_type_bits(f->regs[i].type) == 16};
    return OK;
}

status_t program_lower(struct program **out, const struct ptx_module *m, const struct ptx_func *f,
                       const struct lower_env *env) {
    status_t st = OK;
    struct program *p = calloc(1, sizeof *p);
    struct lowering lo = {.p = p, .env = env};
    if (!p)
        return FAIL(ERR_NOMEM, "no memory for a program");
    p->module = m;
    p->func = f;
    p->count = f->insn_count;
    p->code = calloc(p->count + 1, sizeof *p->code);
    p->lists = calloc(operand_total(f) + 1, sizeof *p->lists);
    p->inners = env->count_events ? calloc(p->count + 1, sizeof *p->inners) : NULL;
    if (!p->code || !p->lists || (env->count_events && !p->inners))
        TRY(FAIL(ERR_NOMEM, "no memory for a program"));
    lo.list_next = p->lists;
    TRY(number_predicates(&lo));
    TRY(rows_assign(&lo.map, f));
    lo.sink = lo.map.next;
    lo.next = lo.sink + ROW128;
    TRY(start_rows(&lo));
    for (size_t i = 0; i < p->count; i++) {
        TRY(lower_insn(&p->code[i], &lo, &f->insns[i]));
        if (lo.next > UINT32_MAX / 2)
            TRY(FAIL(ERR_NOMEM, "'%s' has too many registers and constants", f->name));
    }
    p->file_bytes = lo.next;
    *out = p;
    p = NULL;
done:
    rows_clear(&lo.map);
    free(lo.pred);
    free(lo.const_hash);
    program_free(p);
    return st;
}

void program_free(struct program *p) {
    if (!p)
        return;
    free(p->code);
    free(p->consts);
    free(p->sregs);
    free(p->starts);
    free(p->lists);
    free(p->inners);
    free(p);
}
