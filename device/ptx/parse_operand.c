/*
 * device/ptx/parse_operand.c - operands, by the letters of a row's pattern (opcodes.def).
 *
 * Registers come to exist here, when they are first named: a declared range costs nothing.
 */
#include <string.h>

#include "device/ptx/front.h"
#include "device/ptx/tensor_form.h"

#define MAX_VECTOR 128 /* accumulators of wgmma; elsewhere the instruction says how many */

static status_t wrong_operand(const struct parser *p, const struct token *at, const char *what) {
    return front_fail(ERR_SYNTAX, &p->lexer, at, "expected %s, found '%.*s'", what,
                      (int)(at->len < 40 ? at->len : 40), at->text);
}

static enum ptx_type wider(enum ptx_type t) {
    switch (ptx_type_bits(t)) {
    case 16:
        return t == PTX_S16 ? PTX_S32 : PTX_U32;
    default:
        return t == PTX_S32 ? PTX_S64 : PTX_U64;
    }
}

static status_t new_register(uint32_t *out, struct parser *p, const struct token *name,
                             enum ptx_type type) {
    struct ptx_func *f = p->func;
    struct ptx_reg *regs =
        arena_grow(p->module->arena, f->regs, f->reg_count, &p->reg_room, sizeof *regs);
    if (!regs)
        return parse_nomem(p);
    f->regs = regs;
    char *copy = arena_string(p->module->arena, name->text, name->len);
    if (!copy)
        return parse_nomem(p);
    *out = (uint32_t)f->reg_count;
    f->regs[f->reg_count++] = (struct ptx_reg){.name = copy, .type = type};
    return OK;
}

/*
 * The symbol of a register, a variable or nothing.  "%f12" declared as "%f<20>" becomes a symbol of
 * its own in the scope of the declaration when it is first used.
 */
status_t parse_find(struct symbol **out, struct parser *p, const struct token *name) {
    status_t st = OK;
    *out = scope_find(p->scope, name->text, name->len);
    size_t digits = 0;
    while (digits < name->len && name->text[name->len - 1 - digits] >= '0' &&
           name->text[name->len - 1 - digits] <= '9')
        digits++;
    for (struct scope *s = p->scope; s && !*out && digits; s = s->parent) {
        for (size_t n = digits; n > 0 && !*out;
             n--) { /* "%a1" may be declared "%a<9>" or "%a1<9>" */
            const char *number = name->text + name->len - n;
            struct symbol *range = scope_find_here(s, name->text, name->len - n);
            if (!range || range->kind != SYM_REGS || n > 10 || (n > 1 && *number == '0'))
                continue;
            uint64_t index = 0;
            for (size_t i = 0; i < n; i++)
                index = index * 10 + (uint64_t)(number[i] - '0');
            if (index >= range->count)
                continue;
            bool taken;
            *out = scope_add(p->module->arena, s, name->text, name->len, &taken);
            if (!*out)
                return parse_nomem(p);
            (*out)->kind = SYM_REG;
            (*out)->type = range->type;
        }
    }
    if (*out && (*out)->kind == SYM_REG && (*out)->reg == PTX_NOREG)
        TRY(new_register(&(*out)->reg, p, name, (*out)->type));
done:
    return st;
}

static const struct {
    const char *name;
    enum ptx_sreg sreg;
    bool xyz;
    uint8_t bits;
} sregs[] = {
    {"%tid", SREG_TID_X, true, 32},
    {"%ntid", SREG_NTID_X, true, 32},
    {"%ctaid", SREG_CTAID_X, true, 32},
    {"%nctaid", SREG_NCTAID_X, true, 32},
    {"%clusterid", SREG_CLUSTERID_X, true, 32},
    {"%nclusterid", SREG_NCLUSTERID_X, true, 32},
    {"%cluster_ctaid", SREG_CLUSTER_CTAID_X, true, 32},
    {"%cluster_nctaid", SREG_CLUSTER_NCTAID_X, true, 32},
    {"%cluster_ctarank", SREG_CLUSTER_CTARANK, false, 32},
    {"%cluster_nctarank", SREG_CLUSTER_NCTARANK, false, 32},
    {"%laneid", SREG_LANEID, false, 32},
    {"%warpid", SREG_WARPID, false, 32},
    {"%nwarpid", SREG_NWARPID, false, 32},
    {"%smid", SREG_SMID, false, 32},
    {"%nsmid", SREG_NSMID, false, 32},
    {"%gridid", SREG_GRIDID, false, 64},
    {"%lanemask_eq", SREG_LANEMASK_EQ, false, 32},
    {"%lanemask_le", SREG_LANEMASK_LE, false, 32},
    {"%lanemask_lt", SREG_LANEMASK_LT, false, 32},
    {"%lanemask_ge", SREG_LANEMASK_GE, false, 32},
    {"%lanemask_gt", SREG_LANEMASK_GT, false, 32},
    {"%clock", SREG_CLOCK, false, 32},
    {"%clock_hi", SREG_CLOCK_HI, false, 32},
    {"%clock64", SREG_CLOCK64, false, 64},
    {"%globaltimer", SREG_GLOBALTIMER, false, 64},
    {"%globaltimer_lo", SREG_GLOBALTIMER_LO, false, 32},
    {"%globaltimer_hi", SREG_GLOBALTIMER_HI, false, 32},
    {"%aggr_smem_size", SREG_TOTAL_SMEM_SIZE, false, 32},
    {"%dynamic_smem_size", SREG_DYNAMIC_SMEM_SIZE, false, 32},
    {"%total_smem_size", SREG_TOTAL_SMEM_SIZE, false, 32},
    {"%envreg", SREG_ENVREG, false, 32}, /* and its number, 0 to 31 */
};

static bool at_envreg(const struct parser *p) {
    static const char name[] = "%envreg";
    size_t n = sizeof name - 1, digits = p->token.len - n;
    if (p->token.kind != TOK_WORD || p->token.len <= n || digits > 2 ||
        memcmp(p->token.text, name, n) != 0)
        return false;
    unsigned number = 0;
    for (size_t i = n; i < p->token.len; i++) {
        unsigned digit = (unsigned char)p->token.text[i] - (unsigned)'0';
        if (digit > 9)
            return false;
        number = number * 10 + digit;
    }
    return number < 32;
}

/* A special register at the current token; *found says whether it is one. */
static status_t parse_sreg(bool *found, struct ptx_operand *out, struct parser *p, unsigned bits) {
    status_t st = OK;
    *found = false;
    for (size_t i = 0; i < sizeof sregs / sizeof *sregs && !*found; i++) {
        if (!parse_at(p, sregs[i].name) && !(sregs[i].sreg == SREG_ENVREG && at_envreg(p)))
            continue;
        struct token at = p->token;
        *found = true;
        out->kind = OPND_SREG;
        out->sreg = sregs[i].sreg;
        TRY(parse_advance(p));
        if (sregs[i].xyz) {
            char axis = p->token.kind == TOK_DOT && p->token.len == 2 ? p->token.text[1] : 0;
            if (axis < 'x' || axis > 'z')
                return wrong_operand(p, &p->token, "'.x', '.y' or '.z'");
            out->sreg = (enum ptx_sreg)(out->sreg + (axis - 'x'));
            TRY(parse_advance(p));
        }
        /* 16-bit reads of tid and friends are legal and truncate. */
        if (sregs[i].bits != bits && !(bits == 16 && sregs[i].xyz))
            return front_fail(ERR_SYNTAX, &p->lexer, &at, "special register of %u bits, not %u",
                              sregs[i].bits, bits);
    }
done:
    return st;
}

status_t parse_predicate(struct ptx_operand *out, struct parser *p, bool source) {
    status_t st = OK;
    *out = (struct ptx_operand){.kind = OPND_PRED, .type = PTX_PRED, .reg = PTX_NOREG};
    if (source)
        TRY(parse_accept(&out->negate, p, "!"));
    struct token name = p->token;
    struct symbol *symbol = NULL;
    if (!source && parse_at(p, "_")) {
        out->kind = OPND_SINK;
        return parse_advance(p);
    }
    if (name.kind == TOK_WORD)
        TRY(parse_find(&symbol, p, &name));
    if (!symbol || symbol->kind != SYM_REG || symbol->type != PTX_PRED)
        return wrong_operand(p, &name, "a predicate register");
    out->reg = symbol->reg;
    TRY(parse_advance(p));
done:
    return st;
}

/* How a register's width must relate to the type's. */
enum width_rule { WIDTH_EQUAL, WIDTH_AT_LEAST };

static status_t check_width(const struct parser *p, const struct token *at, enum ptx_type reg,
                            enum ptx_type t, enum width_rule rule) {
    unsigned have = ptx_type_bits(reg), need = ptx_type_bits(t);
    if (reg == PTX_PRED || have < need || (rule == WIDTH_EQUAL && have != need))
        return front_fail(ERR_SYNTAX, &p->lexer, at, "register of type .%s where .%s is meant",
                          ptx_type_name(reg), ptx_type_name(t));
    return OK;
}

static status_t parse_dest(struct ptx_operand *out, struct parser *p, enum ptx_type t,
                           enum width_rule rule) {
    status_t st = OK;
    *out = (struct ptx_operand){.kind = OPND_SINK, .type = t, .reg = PTX_NOREG};
    struct token name = p->token;
    struct symbol *symbol = NULL;
    if (parse_at(p, "_"))
        return parse_advance(p);
    if (name.kind == TOK_WORD)
        TRY(parse_find(&symbol, p, &name));
    if (!symbol || symbol->kind != SYM_REG)
        return wrong_operand(p, &name, "a register");
    TRY(check_width(p, &name, symbol->type, t, rule));
    out->kind = OPND_REG;
    out->reg = symbol->reg;
    TRY(parse_advance(p));
done:
    return st;
}

static status_t parse_offset(int64_t *out, struct parser *p) {
    status_t st = OK;
    *out = 0;
    bool plus, minus;
    TRY(parse_accept(&plus, p, "+"));
    TRY(parse_accept(&minus, p, "-"));
    if (!plus && !minus)
        return OK;
    struct token at = p->token;
    uint64_t value;
    TRY(parse_uint(&value, p, UINT64_MAX, "an offset"));
    if (value > (uint64_t)INT64_MAX)
        return front_fail(ERR_SYNTAX, &p->lexer, &at, "offset does not fit");
    *out = minus ? -(int64_t)value : (int64_t)value;
done:
    return st;
}

static status_t parse_source(struct ptx_operand *out, struct parser *p, enum ptx_type t,
                             enum width_rule rule) {
    status_t st = OK;
    *out = (struct ptx_operand){.type = t, .reg = PTX_NOREG};
    struct token name = p->token;
    bool literal = name.kind == TOK_INT || name.kind == TOK_F32 || name.kind == TOK_F64;
    if (literal || parse_at(p, "-")) {
        if (t == PTX_F16 || t == PTX_F16X2 || t == PTX_BF16 || t == PTX_BF16X2)
            return wrong_operand(p, &name, "a register"); /* there are no 16-bit float literals */
        out->kind = OPND_IMM;
        return parse_constant(&out->imm, p, t);
    }
    if (name.kind != TOK_WORD)
        return wrong_operand(p, &name, "a register or a constant");
    bool found;
    TRY(parse_sreg(&found, out, p, ptx_type_bits(t)));
    if (found)
        return OK;
    if (parse_at(p, "WARP_SZ")) {
        out->kind = OPND_IMM;
        out->imm = 32;
        return parse_advance(p);
    }
    struct symbol *symbol;
    TRY(parse_find(&symbol, p, &name));
    if (symbol && symbol->kind == SYM_VAR) {
        bool integer = t != PTX_F32 && t != PTX_F64 && ptx_type_bits(t) >= 32;
        if (!integer)
            return wrong_operand(p, &name, "a register or a constant");
        out->kind = OPND_VAR;
        TRY(parse_variable_use(&out->var, p, symbol));
        TRY(parse_advance(p));
        return parse_offset(&out->offset, p);
    }
    if (symbol && symbol->kind == SYM_FUNC && ptx_type_bits(t) == 64 && t != PTX_F64) {
        out->kind = OPND_FUNC;
        out->func = symbol->func;
        out->func->address_taken = true;
        return parse_advance(p);
    }
    if (!symbol || symbol->kind != SYM_REG)
        return wrong_operand(p, &name, "a register or a constant");
    TRY(check_width(p, &name, symbol->type, t, rule));
    out->kind = OPND_REG;
    out->reg = symbol->reg;
    TRY(parse_advance(p));
done:
    return st;
}

/* [register], [register + n], [variable + n], [n] */
static status_t parse_memory(struct ptx_operand *out, struct parser *p, enum ptx_space *space) {
    status_t st = OK;
    *out = (struct ptx_operand){.kind = OPND_MEM, .type = PTX_NOTYPE, .reg = PTX_NOREG};
    TRY(parse_expect(p, "["));
    struct token at = p->token;
    if (at.kind == TOK_INT) {
        TRY(parse_advance(p));
        if (at.value > (uint64_t)INT64_MAX)
            return front_fail(ERR_SYNTAX, &p->lexer, &at, "address does not fit");
        out->offset = (int64_t)at.value;
        return parse_expect(p, "]");
    }
    struct symbol *symbol = NULL;
    if (at.kind == TOK_WORD)
        TRY(parse_find(&symbol, p, &at));
    if (symbol && symbol->kind == SYM_VAR) {
        TRY(parse_variable_use(&out->var, p, symbol));
        /* A generic access to a variable by name is an access to the variable's own space. */
        if (*space == SPACE_GENERIC)
            *space = out->var->space;
        bool in_cluster = *space == SPACE_CLUSTER && out->var->space == SPACE_SHARED;
        if (*space != out->var->space && !in_cluster)
            return front_fail(ERR_SYNTAX, &p->lexer, &at, "variable of another state space");
        if (out->var->frame)
            *space = SPACE_LOCAL; /* where the thread's stack is */
    } else if (symbol && symbol->kind == SYM_REG &&
               (ptx_type_bits(symbol->type) == 64 ||
                (ptx_type_bits(symbol->type) == 32 && *space != SPACE_GENERIC &&
                 *space != SPACE_GLOBAL))) {
        out->reg = symbol->reg;
    } else {
        return wrong_operand(p, &at, "an address register or a variable");
    }
    TRY(parse_advance(p));
    TRY(parse_offset(&out->offset, p));
    TRY(parse_expect(p, "]"));
done:
    return st;
}

/* A table that .branchtargets has declared. */
static status_t parse_branch_table(struct ptx_operand *out, struct parser *p) {
    status_t st = OK;
    struct token name;
    struct symbol *s;
    TRY(parse_word(&name, p, "a label of .branchtargets"));
    s = scope_find(p->scope, name.text, name.len);
    if (!s || s->kind != SYM_TABLE || !s->table->targets)
        return wrong_operand(p, &name, "a label of .branchtargets");
    *out = (struct ptx_operand){.kind = OPND_TABLE, .type = PTX_NOTYPE, .reg = PTX_NOREG};
    out->table = s->table;
done:
    return st;
}

static status_t parse_label(struct ptx_operand *out, struct parser *p) {
    status_t st = OK;
    struct token name;
    TRY(parse_word(&name, p, "a label"));
    *out = (struct ptx_operand){.kind = OPND_LABEL, .type = PTX_NOTYPE, .reg = PTX_NOREG};
    struct fixup *f = arena_alloc(p->module->arena, sizeof *f);
    if (!f)
        return parse_nomem(p);
    f->label = name;
    f->scope = p->scope;
    f->next = p->fixups;
    p->fixups = f; /* f->opnd is set when the operands have their final place */
done:
    return st;
}

status_t parse_push(struct operands *o, struct parser *p, const struct ptx_operand *opnd) {
    if (o->count == MAX_OPERANDS)
        return front_fail(ERR_SYNTAX, &p->lexer, &p->token, "too many operands");
    o->list[o->count++] = *opnd;
    return OK;
}

/* All elements of a vector are equally wide; *bits: of those before, 0 if there are none. */
static status_t same_width(unsigned *bits, const struct parser *p, const struct token *at,
                           const struct ptx_operand *o) {
    enum ptx_type t = o->kind == OPND_REG ? p->func->regs[o->reg].type : o->type;
    if (o->kind == OPND_SINK)
        return OK;
    if (*bits && *bits != ptx_type_bits(t))
        return front_fail(ERR_SYNTAX, &p->lexer, at, "vector of registers of unequal width");
    *bits = ptx_type_bits(t);
    return OK;
}

/* The type of the first register from the current token on, which may follow constants. */
static status_t first_register_type(enum ptx_type *out, struct parser *p, bool after_constants) {
    status_t st = OK;
    const struct lexer lexer = p->lexer;
    const struct token token = p->token;
    struct symbol *symbol = NULL;
    while (after_constants && (p->token.kind == TOK_INT || parse_at(p, "-"))) {
        bool more;
        TRY(parse_accept(&more, p, "-"));
        TRY(parse_advance(p));
        TRY(parse_accept(&more, p, ","));
        if (!more)
            break;
    }
    if (p->token.kind == TOK_WORD && !parse_at(p, "_"))
        TRY(parse_find(&symbol, p, &p->token));
    if (!symbol || symbol->kind != SYM_REG)
        return wrong_operand(p, &p->token, "a register");
    *out = symbol->type;
    p->lexer = lexer;
    p->token = token;
done:
    return st;
}

/* {a, b, ...} or a: `count` elements of type t; count 0: as many as make up the type of a mov. */
static status_t parse_vector(struct operands *o, struct parser *p, enum ptx_type t, unsigned count,
                             bool dest, enum width_rule rule) {
    status_t st = OK;
    struct ptx_operand opnd;
    struct token at = p->token;
    bool braces;
    TRY(parse_accept(&braces, p, "{"));
    if (!braces && count > 1)
        return wrong_operand(p, &at, "'{'");
    unsigned n = 0, bits = 0;
    enum ptx_type element = t;
    for (bool more = true; more; n++) {
        if (n == MAX_VECTOR)
            return front_fail(ERR_SYNTAX, &p->lexer, &p->token, "vector too long");
        if (braces && count == 0 && n == 0) {
            /* mov: the first register says how wide the parts are; packing takes constants, too. */
            TRY(first_register_type(&element, p, !dest));
        }
        TRY(dest ? parse_dest(&opnd, p, element, rule) : parse_source(&opnd, p, element, rule));
        TRY(same_width(&bits, p, &at, &opnd));
        TRY(parse_push(o, p, &opnd));
        more = false;
        if (braces)
            TRY(parse_accept(&more, p, ","));
    }
    if (braces)
        TRY(parse_expect(p, "}"));
    bool sized = count ? n == count : !braces || n * ptx_type_bits(element) == ptx_type_bits(t);
    if (!sized)
        return front_fail(ERR_SYNTAX, &p->lexer, &at, "vector of the wrong length");
done:
    return st;
}

/* {..} around each register, also around a single one. */
static status_t parse_registers(struct operands *o, struct parser *p, unsigned count, bool dest) {
    if (!parse_at(p, "{"))
        return wrong_operand(p, &p->token, "'{'");
    return parse_vector(o, p, PTX_B32, count, dest, WIDTH_EQUAL);
}

/* f: an f32 constant;  g: any number;  z: 4, 8 or 16;  Z: 16. */
static status_t parse_number(struct ptx_operand *out, struct parser *p, char letter) {
    status_t st = OK;
    struct token at = p->token;
    *out = (struct ptx_operand){.kind = OPND_IMM,
                                .type = letter == 'f' ? PTX_F32 : PTX_U32,
                                .reg = PTX_NOREG};
    TRY(parse_constant(&out->imm, p, out->type));
    bool size = out->imm == 16 || (letter == 'z' && (out->imm == 4 || out->imm == 8));
    if ((letter == 'z' || letter == 'Z') && !size)
        return wrong_operand(p, &at, letter == 'z' ? "4, 8 or 16" : "16");
done:
    return st;
}

/*
 * [address, {c0, c1, ..}]: a tensor map and as many coordinates as the instruction has dimensions.
 * The map is in global, const or parameter memory; a register holds its generic address.
 */
static status_t parse_tensor(struct operands *o, struct parser *p, const struct ptx_insn *insn) {
    status_t st = OK;
    struct ptx_operand map = {.kind = OPND_MEM, .type = PTX_NOTYPE, .reg = PTX_NOREG};
    struct symbol *symbol = NULL;
    TRY(parse_expect(p, "["));
    struct token at = p->token;
    if (at.kind == TOK_WORD)
        TRY(parse_find(&symbol, p, &at));
    if (symbol && symbol->kind == SYM_VAR)
        TRY(parse_variable_use(&map.var, p, symbol));
    else if (symbol && symbol->kind == SYM_REG && ptx_type_bits(symbol->type) == 64)
        map.reg = symbol->reg;
    else
        return wrong_operand(p, &at, "the address of a tensor map");
    if (map.var && ((map.var->space != SPACE_PARAM && map.var->space != SPACE_CONST &&
                     map.var->space != SPACE_GLOBAL) ||
                    map.var->frame))
        return front_fail(ERR_SYNTAX, &p->lexer, &at, "variable of another state space");
    TRY(parse_advance(p));
    TRY(parse_offset(&map.offset, p));
    TRY(parse_push(o, p, &map));
    TRY(parse_expect(p, ","));
    if (!parse_at(p, "{"))
        return wrong_operand(p, &p->token, "'{'");
    TRY(parse_vector(o, p, PTX_S32, insn->mods.dim, false, WIDTH_EQUAL));
    TRY(parse_expect(p, "]"));
done:
    return st;
}

/* The registers of one matrix of mma, wmma or wgmma. */
static status_t parse_fragment(struct operands *o, struct parser *p, const struct ptx_insn *insn,
                               char letter) {
    const char *problem = tensor_form_problem(insn);
    if (problem)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &p->token, "%s: %s",
                          ptx_opcodes[insn->op].name, problem);
    struct tensor_regs regs = tensor_form_regs(insn);
    enum ptx_type t = insn->type == PTX_F64 ? PTX_F64 : PTX_B32;
    unsigned count = letter == 'F' || letter == 'S' ? regs.a
                     : letter == 'G'                ? regs.b
                     : letter == 'H'                ? regs.c
                                                    : regs.d;
    return parse_vector(o, p, t, count, letter == 'E' || letter == 'R', WIDTH_EQUAL);
}

/* One group of the pattern; see the letters in opcodes.def. */
static status_t parse_group(struct operands *o, struct parser *p, struct ptx_insn *insn,
                            char letter) {
    status_t st = OK;
    struct ptx_operand opnd;
    bool pair;
    switch (letter) {
    case 'd':
        TRY(parse_dest(&opnd, p, insn->type, WIDTH_EQUAL));
        break;
    case 'D':
        TRY(parse_dest(&opnd, p, wider(insn->type), WIDTH_EQUAL));
        break;
    case 'e':
        TRY(parse_dest(&opnd, p, PTX_B32, WIDTH_EQUAL));
        break;
    case 'x':
        TRY(parse_dest(&opnd, p, insn->type, WIDTH_AT_LEAST));
        break;
    case 'a':
        TRY(parse_source(&opnd, p, insn->type, WIDTH_EQUAL));
        break;
    case 'A':
        TRY(parse_source(&opnd, p, wider(insn->type), WIDTH_EQUAL));
        break;
    case 's':
        TRY(parse_source(&opnd, p, insn->type2, WIDTH_EQUAL));
        break;
    case 'y':
        TRY(parse_source(&opnd, p, insn->type2, WIDTH_AT_LEAST));
        break;
    case 'u':
        TRY(parse_source(&opnd, p, PTX_B32, WIDTH_EQUAL));
        break;
    case 'P':
        TRY(parse_predicate(&opnd, p, true));
        break;
    case 'i':
        TRY(parse_predicate(&opnd, p, false));
        break;
    case 'p':
    case 'r':
    case 't':
        if (letter == 'p')
            TRY(parse_predicate(&opnd, p, false));
        else
            TRY(parse_dest(&opnd, p, letter == 't' ? PTX_B32 : insn->type, WIDTH_EQUAL));
        TRY(parse_accept(&pair, p, "|"));
        if (pair) {
            TRY(parse_push(o, p, &opnd));
            TRY(parse_predicate(&opnd, p, false));
        }
        break;
    case 'm':
        TRY(parse_memory(&opnd, p, &insn->mods.space));
        break;
    case 'n':
        TRY(parse_memory(&opnd, p, &(enum ptx_space){SPACE_GLOBAL}));
        break;
    case 'N':
        TRY(parse_memory(&opnd, p, &(enum ptx_space){SPACE_SHARED}));
        break;
    case 'o':
        TRY(parse_memory(&opnd, p, &(enum ptx_space){SPACE_CLUSTER}));
        break;
    case 'h':
        TRY(parse_source(&opnd, p, PTX_B16, WIDTH_EQUAL));
        break;
    case 'q':
        TRY(parse_source(&opnd, p, PTX_B64, WIDTH_EQUAL));
        break;
    case 'f':
    case 'g':
    case 'z':
    case 'Z':
        TRY(parse_number(&opnd, p, letter));
        break;
    case 'S':
        if (!parse_at(p, "{")) {
            TRY(parse_source(&opnd, p, PTX_B64, WIDTH_EQUAL));
            break;
        }
        return parse_fragment(o, p, insn, letter);
    case 'E':
    case 'F':
    case 'G':
    case 'H':
    case 'R':
        return parse_fragment(o, p, insn, letter);
    case 'Q':
        if (p->token.kind == TOK_INT || parse_at(p, "-"))
            TRY(parse_number(&opnd, p, 'g'));
        else
            TRY(parse_predicate(&opnd, p, true));
        break;
    case 'X':
        return parse_tensor(o, p, insn);
    case 'w':
        return parse_registers(o, p, insn->mods.vec, true);
    case 'W':
        return parse_registers(o, p, insn->mods.vec, false);
    case 'l':
        TRY(parse_label(&opnd, p));
        break;
    case 'T':
        TRY(parse_branch_table(&opnd, p));
        break;
    case 'v':
        return parse_vector(o, p, insn->type, insn->mods.vec, true, WIDTH_AT_LEAST);
    case 'V':
        return parse_vector(o, p, insn->type, insn->mods.vec, false, WIDTH_AT_LEAST);
    case 'b':
        return parse_vector(o, p, insn->type, insn->mods.vec, true, WIDTH_EQUAL);
    case 'B':
        return parse_vector(o, p, insn->type, insn->mods.vec, false, WIDTH_EQUAL);
    case 'k':
        return parse_vector(o, p, insn->type, 0, true, WIDTH_EQUAL);
    case 'K':
        return parse_vector(o, p, insn->type, 0, false, WIDTH_EQUAL);
    default:
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &p->token, "operand pattern '%c'", letter);
    }
    TRY(parse_push(o, p, &opnd));
done:
    return st;
}

/* Bits of the register that stands here; 0: none does. */
static unsigned register_bits(const struct parser *p) {
    const struct symbol *s = NULL;
    if (p->token.kind == TOK_WORD)
        s = scope_find(p->scope, p->token.text, p->token.len);
    return s && s->kind == SYM_REG ? ptx_type_bits(s->type) : 0;
}

/* A predicate register or its negation stands here. */
static bool at_predicate(const struct parser *p) {
    if (parse_at(p, "!"))
        return true;
    const struct symbol *s = NULL;
    if (p->token.kind == TOK_WORD)
        s = scope_find(p->scope, p->token.text, p->token.len);
    return s && s->kind == SYM_REG && s->type == PTX_PRED;
}

status_t parse_operands(struct operands *o, struct parser *p, struct ptx_insn *insn) {
    status_t st = OK;
    const char *pattern = ptx_opcodes[insn->op].operands;
    bool comma = false;
    if (*pattern == 'c')
        return parse_call(o, p, insn);
    while (*pattern) {
        char letter = *pattern++;
        bool optional = *pattern == '?';
        pattern += optional;
        pattern += *pattern == ',';
        if (optional && parse_at(p, ";"))
            break;
        if (comma)
            TRY(parse_expect(p, ","));
        comma = true;
        insn->first[insn->group_count++] = (uint8_t)o->count;
        if (letter == 'U' || letter == 'Y') {
            struct symbol *known; /* a register of a range exists from its first use on */
            if (p->token.kind == TOK_WORD)
                TRY(parse_find(&known, p, &p->token));
            comma = letter == 'U' ? !at_predicate(p) : register_bits(p) != 64;
            letter = 'u';
            if (!comma)
                continue;
        }
        TRY(parse_group(o, p, insn, letter));
    }
    insn->first[insn->group_count] = (uint8_t)o->count;
done:
    return st;
}
