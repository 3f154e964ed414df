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
    struct xfunc *func; /* the function being lowered */
    uint32_t next, sink, scratch;
    size_t const_room, sreg_room, frame_room, start_room;
    struct shared_place *shared; /* of the module's variables */
    size_t shared_count, shared_room;
    uint32_t *pred;       /* register number -> predicate number */
    uint32_t *const_hash; /* open addressing: index into consts, or UINT32_MAX */
    size_t hash_size;
    uint32_t *list_next;
};

#define NONE UINT32_MAX

/* A shared variable of the module lies where the first function that names it has it. */
struct shared_place {
    const struct ptx_var *origin;
    uint64_t offset;
};

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

static size_t const_slot(const struct lowering *lo, bool wide, bool shared, uint64_t value) {
    uint64_t h = (value * 4 + shared * 2 + wide) * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(h >> 32) & (lo->hash_size - 1);
    for (; lo->const_hash[i] != NONE; i = (i + 1) & (lo->hash_size - 1)) {
        const struct row_const *c = &lo->p->consts[lo->const_hash[i]];
        if (c->wide == wide && c->shared == shared && c->value == value)
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
        table[const_slot(lo, c->wide, c->shared, c->value)] = (uint32_t)i;
    }
    return OK;
}

static status_t based_row(uint32_t *row, struct lowering *lo, bool wide, bool shared,
                          uint64_t value) {
    status_t st = OK;
    struct program *p = lo->p;
    TRY(rehash(lo));
    size_t slot = const_slot(lo, wide, shared, value);
    if (lo->const_hash[slot] == NONE) {
        TRY(grow((void **)&p->consts, &lo->const_room, p->const_count, sizeof *p->consts));
        lo->const_hash[slot] = (uint32_t)p->const_count;
        p->consts[p->const_count++] = (struct row_const){take_row(lo, wide), wide, shared, value};
    }
    *row = p->consts[lo->const_hash[slot]].row;
done:
    return st;
}

static status_t const_row(uint32_t *row, struct lowering *lo, bool wide, uint64_t value) {
    return based_row(row, lo, wide, false, value);
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

static bool is_shared(const struct ptx_operand *o) {
    return o->var && o->var->space == SPACE_SHARED;
}

static status_t shared_address(uint64_t *out, struct lowering *lo, const struct ptx_var *v) {
    status_t st = OK;
    *out = lo->func->shared_base + v->offset;
    if (!v->origin)
        return OK;
    for (size_t i = 0; i < lo->shared_count; i++)
        if (lo->shared[i].origin == v->origin) {
            *out = lo->shared[i].offset;
            return OK;
        }
    TRY(grow((void **)&lo->shared, &lo->shared_room, lo->shared_count, sizeof *lo->shared));
    lo->shared[lo->shared_count++] = (struct shared_place){v->origin, *out};
done:
    return st;
}

/* The address of a variable in its own space; global and const variables lie in the heap. */
static status_t var_address(uint64_t *out, struct lowering *lo, const struct ptx_operand *o) {
    const struct ptx_var *v = o->var;
    *out = (uint64_t)o->offset;
    if (!v)
        return OK;
    if (v->dynamic) /* one declaration may serve several entries */
        *out += size_align(lo->p->static_shared, 16);
    else if (v->space == SPACE_GLOBAL)
        *out += lo->env->global_base + v->offset;
    else if (v->space == SPACE_CONST)
        *out += lo->env->const_base + v->offset;
    else if (v->space == SPACE_SHARED) {
        uint64_t at;
        status_t st = shared_address(&at, lo, v);
        *out += at;
        return st;
    } else
        *out += v->offset;
    return OK;
}

/* Does the variable lie in the lane's frame of a function that was called? */
static bool is_in_frame(const struct lowering *lo, const struct ptx_operand *o) {
    return o->var && (o->var->space == SPACE_LOCAL || o->var->frame) &&
           lo->func != lo->p->xfuncs;
}

static status_t frame_row(uint32_t *row, struct lowering *lo, bool wide, uint64_t offset) {
    status_t st = OK;
    struct program *p = lo->p;
    TRY(grow((void **)&p->frames, &lo->frame_room, p->frame_count, sizeof *p->frames));
    *row = take_row(lo, wide);
    p->frames[p->frame_count++] = (struct row_frame){*row, wide, offset};
done:
    return st;
}

/* A row with the address of a variable; without one, with the displacement. */
static status_t address_row(uint32_t *row, struct lowering *lo, bool wide,
                            const struct ptx_operand *o) {
    status_t st = OK;
    uint64_t at;
    TRY(var_address(&at, lo, o));
    TRY(is_in_frame(lo, o) ? frame_row(row, lo, wide, at)
                           : based_row(row, lo, wide, is_shared(o), at));
done:
    return st;
}

/* ---- operands -------------------------------------------------------------------------------- */

static unsigned operand_bits(const struct lowering *lo, const struct ptx_operand *o) {
    enum ptx_type t = o->kind == OPND_REG ? lo->func->func->regs[o->reg].type : o->type;
    unsigned bits = ptx_type_bits(t);
    return bits > 64 ? 128 : bits > 32 ? 64 : bits > 16 ? 32 : 16;
}

static status_t source_row(uint32_t *row, struct lowering *lo, const struct ptx_operand *o) {
    unsigned bits = ptx_type_bits(o->type);
    switch (o->kind) {
    case OPND_REG: *row = lo->map.row[o->reg]; return OK;
    case OPND_IMM: return const_row(row, lo, bits > 32, o->imm);
    case OPND_SREG: return sreg_row(row, lo, o->sreg, bits);
    case OPND_VAR: return address_row(row, lo, bits > 32, o);
    case OPND_FUNC: return const_row(row, lo, true, WINDOW_CODE + o->func->index * 16);
    case OPND_SINK: *row = lo->sink; return OK;
    case OPND_PRED:
    case OPND_MEM:
    case OPND_TABLE:
    case OPND_LABEL: break;
    }
    return FAIL(ERR_UNSUPPORTED, "an operand kind that the executor does not have");
}

static status_t memory_operand(struct xinsn *x, struct lowering *lo, const struct ptx_operand *o) {
    x->slot = (uint32_t)lo->p->slot_count++;
    if (o->kind == OPND_MEM && o->reg != PTX_NOREG) {
        x->a = lo->map.row[o->reg];
        x->imm = (uint64_t)o->offset;
        if (ptx_type_bits(lo->func->func->regs[o->reg].type) > 32)
            x->flags |= X_ADDR64;
        return OK;
    }
    x->flags |= is_in_frame(lo, o) ? X_ADDR64 : X_UNIFORM | X_ADDR64;
    return address_row(&x->a, lo, true, o);
}

/*
 * A second address, without its displacement, which stays in the operand: the source of an
 * asynchronous copy (row b, and the slot after that of the first address) or its mbarrier object
 * (row e).  flag: its lanes have 64 bits.
 */
static status_t second_address(uint32_t *row, struct xinsn *x, struct lowering *lo,
                               const struct ptx_operand *o, uint16_t flag) {
    lo->p->slot_count++;
    if (o->reg == PTX_NOREG) {
        struct ptx_operand bare = *o;
        bare.offset = 0;
        x->flags |= flag;
        return address_row(row, lo, true, &bare);
    }
    *row = lo->map.row[o->reg];
    if (ptx_type_bits(lo->func->func->regs[o->reg].type) > 32)
        x->flags |= flag;
    return OK;
}

/*
 * A tensor map's generic address, without its displacement, as row c, and its coordinates as
 * x->list; the slot is for the tensor's memory.
 */
static status_t tensor_operand(struct xinsn *x, struct lowering *lo, const struct ptx_insn *in,
                               unsigned g) {
    status_t st = OK;
    const struct ptx_operand *map = &in->opnd[in->first[g]];
    struct ptx_operand bare = *map;
    bare.offset = 0;
    x->slot = (uint32_t)lo->p->slot_count++;
    x->list = lo->list_next;
    x->vec = in->mods.dim;
    for (unsigned i = in->first[g] + 1; i < in->first[g + 1]; i++)
        TRY(source_row(lo->list_next++, lo, &in->opnd[i]));
    if (map->reg != PTX_NOREG) {
        x->c = lo->map.row[map->reg];
    } else {
        uint64_t at;
        TRY(var_address(&at, lo, &bare));
        TRY(const_row(&x->c, lo, true, at + (map->var->space == SPACE_PARAM ? WINDOW_PARAM : 0)));
    }
done:
    return st;
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

/* Rows of one matrix of mma, wmma or wgmma; x->list begins with the first and goes on to the last. */
static status_t fragment_operand(struct xinsn *x, struct lowering *lo, const struct ptx_insn *in,
                                 unsigned g) {
    const uint32_t *first = x->list ? x->list : lo->list_next;
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
    if (in->op != PTX_OP_MMA && !tensor_is_wgmma(in->op) && !tensor_is_wmma(in->op))
        return OK;
    if (!tensor_form_on(&model, &reason, in, m->target, lo->env->arch))
        return FAIL(ERR_UNSUPPORTED, "%s:%u: '%s' with these types for %s on sm_%u: %s", m->label,
                    in->line, ptx_opcodes[in->op].name, m->target, lo->env->arch, reason);
    if (in->op == PTX_OP_MMA || in->op == PTX_OP_WMMA || in->op == PTX_OP_WMMA_F16 ||
        tensor_is_wgmma(in->op))
        memcpy(&x->imm, &model, sizeof model);
    return OK;
}

/* They wait for the whole warp. */
static bool needs_warp(enum ptx_op op) {
    return op == PTX_OP_LDMATRIX || op == PTX_OP_STMATRIX || op == PTX_OP_MOVMATRIX ||
           op == PTX_OP_MMA || tensor_is_wmma(op) || tensor_is_wgmma(op) || op == PTX_OP_WGMMA_FENCE ||
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
        case 'l': x->target = lo->func->code + o->target; break;
        case 'T': x->target = lo->func->code; break; /* the table counts from here */
        case 'c':
        case 'j':
        case 'J': break; /* call.c and the handler read the operands themselves */
        case 'C':
            if (o->kind == OPND_REG)
                TRY(source_row(&x->a, lo, o));
            break;
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
        case 'X': TRY(tensor_operand(x, lo, in, g)); break;
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
        case 'n':
        case 'N':
            TRY(second_address(&x->b, x, lo, o, X_SOURCE64));
            sources = in->mods.dim ? 3 : 2; /* row c is a tensor map's address */
            break;
        case 'o':
            TRY(second_address(&x->e, x, lo, o, X_OBJECT64));
            sources = 4;
            break;
        case 'h': TRY(source_row(&x->d, lo, o)); break;
        case 'f':
        case 'g':
        case 'z':
        case 'Z': break;
        case 'b':
        case 'B':
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
    if (m->order > ORDER_WEAK)
        flags |= X_ORDERED;
    return releases ? flags | X_RELEASE : flags;
}

static bool needs_rows(enum ptx_op op) {
    return op == PTX_OP_ADD_MIXED || op == PTX_OP_SUB_MIXED || op == PTX_OP_FMA_MIXED ||
           op == PTX_OP_ADD_F32X2 || op == PTX_OP_SUB_F32X2 || op == PTX_OP_MUL_F32X2 ||
           op == PTX_OP_FMA_F32X2;
}

/* 8 rows of 32 bits in which an instruction may work; all share them. */
static uint32_t scratch_rows(struct lowering *lo) {
    if (!lo->scratch) {
        lo->scratch = lo->next;
        lo->next += 8 * ROW32;
    }
    return lo->scratch;
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
    if (needs_rows(in->op))
        x->imm = scratch_rows(lo);
    if (in->op == PTX_OP_MMA || in->op == PTX_OP_WMMA || in->op == PTX_OP_WMMA_F16)
        x->d = scratch_rows(lo);
    if (needs_warp(in->op))
        TRY(const_row(&x->e, lo, false, 0xffffffffu)); /* they wait for the whole warp */
    TRY(tensor_operation(x, lo, in));
    if (!lo->env->isa->binds[in->op](x, in))
        return FAIL(ERR_UNSUPPORTED, "%s:%u: this form of '%s' is not in the emulator", m->label,
                    in->line, ptx_opcodes[in->op].name);
    if (lo->env->count_events)
        lo->env->isa->count_events(x, &lo->p->inners[x - lo->p->code]);
    if (in->guard != PTX_NOREG)
        x->full = x->masked;
done:
    return st;
}

/* ---- the whole function ---------------------------------------------------------------------- */

static status_t number_predicates(struct lowering *lo) {
    const struct ptx_func *f = lo->func->func;
    lo->pred = calloc(f->reg_count + 1, sizeof *lo->pred);
    if (!lo->pred)
        return FAIL(ERR_NOMEM, "no memory for a program");
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
    status_t st = OK;
    struct program *p = lo->p;
    const struct ptx_func *f = lo->func->func;
    for (size_t i = 0; i < f->reg_count; i++) {
        if (!lo->map.live_in[i])
            continue;
        TRY(grow((void **)&p->starts, &lo->start_room, p->start_count, sizeof *p->starts));
        p->starts[p->start_count++] = (struct row_start){
            lo->map.row[i], row_bytes(f->regs[i].type), ptx_type_bits(f->regs[i].type) == 16};
    }
done:
    return st;
}

static status_t lower_function(struct lowering *lo, struct xfunc *xf) {
    status_t st = OK;
    struct program *p = lo->p;
    const struct ptx_func *f = xf->func;
    struct xinsn *code = p->code + (xf->code - p->code);
    lo->func = xf;
    xf->pred_first = (uint32_t)p->pred_count;
    TRY(number_predicates(lo));
    xf->pred_end = (uint32_t)p->pred_count;
    xf->row_first = lo->next;
    TRY(rows_assign(&lo->map, f, lo->next));
    if (lo->map.next > UINT32_MAX / 2)
        TRY(FAIL(ERR_NOMEM, "'%s' has too many registers and constants", f->name));
    xf->row_end = lo->map.next;
    lo->next = lo->map.next;
    xf->start_first = p->start_count;
    TRY(start_rows(lo));
    xf->start_end = p->start_count;
    xf->frame_first = p->frame_count;
    for (size_t i = 0; i < f->insn_count; i++) {
        TRY(lower_insn(&code[i], lo, &f->insns[i]));
        if (lo->next > UINT32_MAX / 2)
            TRY(FAIL(ERR_NOMEM, "'%s' has too many registers and constants", f->name));
    }
    xf->frame_end = p->frame_count;
    xf->row = p->maps[xf - p->xfuncs] = lo->map.row; /* calls need it */
    lo->map.row = NULL;
done:
    rows_clear(&lo->map);
    free(lo->pred);
    lo->pred = NULL;
    return st;
}

/* ---- the whole program ----------------------------------------------------------------------- */

static status_t lay_out_code(struct lowering *lo) {
    struct program *p = lo->p;
    size_t operands = 0;
    for (size_t i = 0; i < p->xfunc_count; i++) {
        p->count += p->xfuncs[i].func->insn_count;
        operands += operand_total(p->xfuncs[i].func);
    }
    p->code = calloc(p->count + 1, sizeof *p->code);
    p->lists = calloc(operands + 1, sizeof *p->lists);
    p->maps = calloc(p->xfunc_count, sizeof *p->maps);
    p->inners = lo->env->count_events ? calloc(p->count + 1, sizeof *p->inners) : NULL;
    if (!p->code || !p->lists || !p->maps || (lo->env->count_events && !p->inners))
        return FAIL(ERR_NOMEM, "no memory for a program");
    const struct xinsn *code = p->code;
    for (size_t i = 0; i < p->xfunc_count; i++) {
        p->xfuncs[i].code = code;
        code += p->xfuncs[i].func->insn_count;
    }
    lo->list_next = p->lists;
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
    p->pred_count = 2; /* the constant one and the one that nobody reads */
    TRY(program_functions(p));
    TRY(lay_out_code(&lo));
    lo.next = ROW128; /* row 0 is for results that are thrown away */
    for (size_t i = 0; i < p->xfunc_count; i++)
        TRY(lower_function(&lo, &p->xfuncs[i]));
    p->file_bytes = lo.next;
    *out = p;
    p = NULL;
done:
    free(lo.const_hash);
    free(lo.shared);
    program_free(p);
    return st;
}

void program_free(struct program *p) {
    if (!p)
        return;
    for (size_t i = 0; p->maps && i < p->xfunc_count; i++)
        free(p->maps[i]);
    free(p->maps);
    free(p->xfuncs);
    free(p->xfunc_of);
    free(p->frames);
    free(p->code);
    free(p->consts);
    free(p->sregs);
    free(p->starts);
    free(p->lists);
    free(p->inners);
    free(p);
}
