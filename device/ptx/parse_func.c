/*
 * device/ptx/parse_func.c - .func: what it takes and gives; call and the tables of its targets.
 */
#include <string.h>

#include "device/ptx/front.h"

#define MAX_FORMALS 32

/* ---- declarations ------------------------------------------------------------------------------ */

/* The function of this name: a symbol of the module, made if there is none. */
static status_t parse_callee(struct ptx_func **out, struct parser *p, const struct token *name) {
    status_t st = OK;
    struct ptx_module *m = p->module;
    struct symbol *s = scope_find_here(p->globals, name->text, name->len);
    if (s && s->kind != SYM_FUNC)
        return front_fail(ERR_SYNTAX, &p->lexer, name, "'%.*s' is no function", (int)name->len,
                          name->text);
    if (s) {
        *out = s->func;
        return OK;
    }
    TRY(parse_symbol(&s, p, p->globals, name, SYM_FUNC));
    struct ptx_func **callees =
        arena_grow(m->arena, m->callees, m->callee_count, &p->callee_room, sizeof *callees);
    s->func = arena_alloc(m->arena, sizeof *s->func);
    if (!callees || !s->func)
        return parse_nomem(p);
    m->callees = callees;
    s->func->is_func = true;
    s->func->index = m->callee_count;
    TRY(parse_name(&s->func->name, p, name));
    m->callees[m->callee_count++] = s->func;
    *out = s->func;
done:
    return st;
}

/* One of a register's or variable's declarations in a list of parameters. */
static status_t parse_formal(struct ptx_formal *out, struct parser *p) {
    status_t st = OK;
    struct declarator d;
    struct symbol *s;
    enum ptx_space space = parse_space(&p->token);
    if (space != SPACE_PARAM && space != SPACE_REG)
        return parse_expected(p, "'.param' or '.reg'");
    TRY(parse_advance(p));
    if (space == SPACE_REG && parse_at(p, ".pred"))
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &p->token, "a predicate as a parameter");
    TRY(parse_declared_type(&d, p));
    TRY(parse_declarator(&d, p));
    *out = (struct ptx_formal){.reg = PTX_NOREG, .bytes = d.bytes};
    TRY(parse_symbol(&s, p, p->scope, &d.name, space == SPACE_REG ? SYM_REG : SYM_VAR));
    if (space == SPACE_REG) {
        if (d.bytes > 8 || d.bytes * 8 != ptx_type_bits(d.type) || d.bytes < 2)
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &d.name, "registers of this type");
        s->type = d.type;
        s->reg = PTX_NOREG;
        TRY(parse_find(&s, p, &d.name)); /* now it exists */
        out->reg = s->reg;
        return OK;
    }
    if (d.open_array)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &d.name, "array without a size");
    struct ptx_var *v;
    TRY(parse_new_variable(&v, p, &d, SPACE_PARAM));
    v->frame = true;
    p->local_bytes = resolve_layout(v, p->local_bytes);
    if (p->local_bytes > 1 << 16)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &d.name, "too many parameter bytes");
    s->var = v;
    out->var = v;
done:
    return st;
}

/* ( formal, ... ) if there is one. */
static status_t parse_formals(struct ptx_formal **out, size_t *count, struct parser *p) {
    status_t st = OK;
    bool present, empty;
    struct ptx_formal list[MAX_FORMALS];
    *count = 0;
    *out = NULL;
    TRY(parse_accept(&present, p, "("));
    if (!present)
        return OK;
    TRY(parse_accept(&empty, p, ")"));
    for (bool more = !empty; more;) {
        if (*count == MAX_FORMALS)
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &p->token, "more than %d parameters",
                              MAX_FORMALS);
        TRY(parse_formal(&list[(*count)++], p));
        TRY(parse_accept(&more, p, ","));
    }
    if (!empty)
        TRY(parse_expect(p, ")"));
    *out = arena_alloc(p->module->arena, (*count + 1) * sizeof **out);
    if (!*out)
        return parse_nomem(p);
    memcpy(*out, list, *count * sizeof **out);
done:
    return st;
}

static bool same_formals(const struct ptx_formal *a, size_t n, const struct ptx_formal *b,
                         size_t m) {
    for (size_t i = 0; i < n && n == m; i++)
        if (a[i].bytes != b[i].bytes)
            return false;
    return n == m;
}

/* .func (results) name (parameters) ;  or  { ... } */
status_t parse_func(struct parser *p) {
    status_t st = OK;
    struct ptx_func *draft = arena_alloc(p->module->arena, sizeof *draft), *known = NULL;
    struct token name;
    bool declared;
    if (!draft)
        return parse_nomem(p);
    draft->is_func = true;
    TRY(parse_advance(p));
    TRY(parse_function_begin(p, draft));
    TRY(parse_formals(&draft->rets, &draft->ret_count, p));
    TRY(parse_word(&name, p, "the function's name"));
    TRY(parse_formals(&draft->args, &draft->arg_count, p));
    TRY(parse_tuning(p));
    for (size_t i = 0; i < p->module->func_count; i++)
        if (token_is(&name, p->module->funcs[i].name))
            return front_fail(ERR_SYNTAX, &p->lexer, &name, "'%.*s' is an entry already",
                              (int)name.len, name.text);
    bool first = !scope_find_here(p->globals, name.text, name.len);
    TRY(parse_callee(&known, p, &name));
    if (!first && (!same_formals(known->rets, known->ret_count, draft->rets, draft->ret_count) ||
                   !same_formals(known->args, known->arg_count, draft->args, draft->arg_count)))
        return front_fail(ERR_SYNTAX, &p->lexer, &name, "'%.*s' was declared with other parameters",
                          (int)name.len, name.text);
    TRY(parse_accept(&declared, p, ";"));
    if (!declared && known->defined)
        return front_fail(ERR_SYNTAX, &p->lexer, &name, "'%.*s' is defined twice", (int)name.len,
                          name.text);
    if (!declared || first) {
        draft->name = known->name;
        draft->index = known->index;
        draft->address_taken = known->address_taken;
        *known = *draft;
    }
    p->func = declared ? NULL : known;
    if (declared)
        return OK;
    known->defined = true;
    TRY(parse_function_body(p));
done:
    return st;
}

/* ---- tables ------------------------------------------------------------------------------------ */

static status_t branch_target(struct ptx_table *t, struct parser *p, size_t i) {
    status_t st = OK;
    struct fixup *f = arena_alloc(p->module->arena, sizeof *f);
    if (!f)
        return parse_nomem(p);
    TRY(parse_word(&f->label, p, "a label"));
    f->scope = p->scope;
    f->target = &t->targets[i];
    f->next = p->fixups;
    p->fixups = f;
done:
    return st;
}

#define MAX_TARGETS 4096

/* Labels or functions up to the ";". */
static status_t parse_targets(struct ptx_table *t, struct parser *p, bool labels) {
    status_t st = OK;
    struct lexer ahead = p->lexer; /* how many there are is known before any is read */
    struct token word = p->token;
    size_t room = 1;
    while (word.kind != TOK_END && !token_is(&word, ";") && room <= MAX_TARGETS) {
        room += token_is(&word, ",");
        TRY(lexer_next(&word, &ahead));
    }
    if (room > MAX_TARGETS)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &p->token, "more than %d targets",
                          MAX_TARGETS);
    t->targets = labels ? arena_alloc(p->module->arena, room * sizeof *t->targets) : NULL;
    t->funcs = labels ? NULL : arena_alloc(p->module->arena, room * sizeof(struct ptx_func *));
    if (!t->targets && !t->funcs)
        return parse_nomem(p);
    for (bool more = true; more; t->count++) {
        struct token name = p->token;
        if (t->count == room)
            return parse_expected(p, "';'");
        if (labels) {
            TRY(branch_target(t, p, t->count));
        } else {
            TRY(parse_word(&name, p, "a function"));
            const struct symbol *s = scope_find_here(p->globals, name.text, name.len);
            if (!s || s->kind != SYM_FUNC)
                return front_fail(ERR_SYNTAX, &p->lexer, &name, "no function '%.*s' is declared",
                                  (int)name.len, name.text);
            t->funcs[t->count] = s->func;
        }
        TRY(parse_accept(&more, p, ","));
    }
    TRY(parse_expect(p, ";"));
done:
    return st;
}

status_t parse_table(struct parser *p, const struct token *name) {
    status_t st = OK;
    struct symbol *s;
    bool labels = parse_at(p, ".branchtargets"), prototype = parse_at(p, ".callprototype");
    struct ptx_table *t = arena_alloc(p->module->arena, sizeof *t);
    if (!t)
        return parse_nomem(p);
    TRY(parse_symbol(&s, p, p->scope, name, SYM_TABLE));
    s->table = t;
    TRY(parse_advance(p));
    t->any = prototype;
    /* Calls are checked against the functions themselves. */
    return prototype ? parse_skip_past(p, ";") : parse_targets(t, p, labels);
done:
    return st;
}

/* ---- call -------------------------------------------------------------------------------------- */

/* A variable of the frame, a register, or (source) a constant. */
static status_t parse_actual(struct operands *o, struct parser *p, bool source) {
    status_t st = OK;
    struct token name = p->token;
    struct symbol *s = NULL;
    struct ptx_operand opnd = {.kind = OPND_REG, .type = PTX_NOTYPE, .reg = PTX_NOREG};
    if (name.kind == TOK_WORD)
        TRY(parse_find(&s, p, &name));
    if (s && s->kind == SYM_VAR && s->var->frame) {
        opnd.kind = OPND_VAR;
        opnd.var = s->var;
    } else if (s && s->kind == SYM_REG && s->type != PTX_PRED) {
        opnd.reg = s->reg;
        opnd.type = s->type;
    } else if (source && !s && name.kind != TOK_WORD) {
        opnd.kind = OPND_IMM;
        opnd.type = name.kind == TOK_F32 ? PTX_F32 : name.kind == TOK_F64 ? PTX_F64 : PTX_B64;
        TRY(parse_constant(&opnd.imm, p, opnd.type));
        return parse_push(o, p, &opnd);
    } else {
        return parse_expected(p, "a .param variable or a register");
    }
    TRY(parse_advance(p));
    TRY(parse_push(o, p, &opnd));
done:
    return st;
}

/* ( actual, ... ) */
static status_t parse_actuals(struct operands *o, struct parser *p, bool source) {
    status_t st = OK;
    bool empty;
    TRY(parse_expect(p, "("));
    TRY(parse_accept(&empty, p, ")"));
    for (bool more = !empty; more;) {
        TRY(parse_actual(o, p, source));
        TRY(parse_accept(&more, p, ","));
    }
    if (!empty)
        TRY(parse_expect(p, ")"));
done:
    return st;
}

static status_t parse_target(struct operands *o, struct parser *p) {
    status_t st = OK;
    struct token name;
    struct symbol *s = NULL;
    struct ptx_operand opnd = {.kind = OPND_FUNC, .type = PTX_B64, .reg = PTX_NOREG};
    TRY(parse_word(&name, p, "a function"));
    TRY(parse_find(&s, p, &name));
    if (s && s->kind == SYM_REG && ptx_type_bits(s->type) == 64) {
        opnd.kind = OPND_REG;
        opnd.reg = s->reg;
    } else {
        if (!s || s->kind != SYM_FUNC)
            return front_fail(ERR_SYNTAX, &p->lexer, &name, "no function '%.*s' is declared",
                              (int)name.len, name.text);
        opnd.func = s->func;
    }
    TRY(parse_push(o, p, &opnd));
done:
    return st;
}

static status_t parse_call_table(struct operands *o, struct parser *p) {
    status_t st = OK;
    struct token name;
    TRY(parse_word(&name, p, "a label of .calltargets or .callprototype"));
    const struct symbol *s = scope_find(p->scope, name.text, name.len);
    if (!s || s->kind != SYM_TABLE || s->table->targets)
        return front_fail(ERR_SYNTAX, &p->lexer, &name, "no .calltargets or .callprototype '%.*s'",
                          (int)name.len, name.text);
    struct ptx_operand opnd = {.kind = OPND_TABLE, .type = PTX_NOTYPE, .reg = PTX_NOREG};
    opnd.table = s->table;
    TRY(parse_push(o, p, &opnd));
done:
    return st;
}

/* [(results),] function [, (arguments)] [, table] */
status_t parse_call(struct operands *o, struct parser *p, struct ptx_insn *insn) {
    status_t st = OK;
    bool comma = false;
    insn->group_count = 4;
    if (parse_at(p, "(")) {
        TRY(parse_actuals(o, p, false));
        TRY(parse_expect(p, ","));
    }
    insn->first[1] = (uint8_t)o->count;
    TRY(parse_target(o, p));
    bool indirect = o->list[o->count - 1].kind == OPND_REG;
    insn->first[2] = (uint8_t)o->count;
    TRY(parse_accept(&comma, p, ","));
    if (comma && parse_at(p, "(")) {
        TRY(parse_actuals(o, p, true));
        TRY(parse_accept(&comma, p, ","));
    }
    insn->first[3] = (uint8_t)o->count;
    if (indirect != comma)
        return parse_expected(p, indirect ? "the targets of an indirect call" : "';'");
    if (comma)
        TRY(parse_call_table(o, p));
    insn->first[4] = (uint8_t)o->count;
done:
    return st;
}
