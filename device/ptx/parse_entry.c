/*
 * device/ptx/parse_entry.c - an entry: parameters, tuning directives, registers, labels and its body.
 */
#include <string.h>

#include "base/size.h"
#include "device/ptx/front.h"

#define MAX_NESTING 64
#define MAX_PARAM_BYTES 32764 /* sm_70 and later, PTX ISA 8.1 */

/* .reg .type %a, %b<N>; */
static status_t parse_registers(struct parser *p) {
    status_t st = OK;
    TRY(parse_advance(p));
    enum ptx_type t = p->token.kind == TOK_DOT ? ptx_type_of(&p->token) : PTX_NOTYPE;
    if (t == PTX_NOTYPE)
        return parse_expected(p, "a register type");
    if (t == PTX_B128 || ptx_type_bits(t) == 8)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &p->token, "registers of this type");
    TRY(parse_advance(p));
    for (bool more = true; more;) {
        struct token name;
        struct symbol *symbol;
        bool range;
        TRY(parse_word(&name, p, "a register name"));
        TRY(parse_symbol(&symbol, p, p->scope, &name, SYM_REG));
        symbol->type = t;
        TRY(parse_accept(&range, p, "<"));
        if (range) {
            symbol->kind = SYM_REGS;
            TRY(parse_uint(&symbol->count, p, UINT32_MAX, "a register count"));
            TRY(parse_expect(p, ">"));
        }
        TRY(parse_accept(&more, p, ","));
    }
    TRY(parse_expect(p, ";"));
done:
    return st;
}

static status_t parse_loc(struct parser *p) {
    status_t st = OK;
    uint64_t file, line, column;
    TRY(parse_advance(p));
    TRY(parse_uint(&file, p, UINT32_MAX, "a file number"));
    TRY(parse_uint(&line, p, UINT32_MAX, "a line number"));
    TRY(parse_uint(&column, p, UINT32_MAX, "a column number"));
    bool more;
    TRY(parse_accept(&more, p, ","));
    if (more) { /* function_name LABEL [+ N], inlined_at FILE LINE COLUMN: the inner place is kept */
        TRY(parse_expect(p, "function_name"));
        struct token name;
        TRY(parse_word(&name, p, "a label"));
        TRY(parse_accept(&more, p, "+"));
        if (more)
            TRY(parse_uint(&column, p, UINT64_MAX, "an offset"));
        TRY(parse_expect(p, ","));
        TRY(parse_expect(p, "inlined_at"));
        for (int i = 0; i < 3; i++)
            TRY(parse_uint(&column, p, UINT32_MAX, "a number"));
    }
    p->loc_file = (unsigned)file;
    p->loc_line = (unsigned)line;
done:
    return st;
}

static status_t resolve_labels(struct parser *p) {
    for (struct fixup *f = p->fixups; f; f = f->next) {
        struct symbol *s = NULL;
        for (const struct scope *scope = f->scope; scope && !(s && s->kind == SYM_LABEL);
             scope = scope->parent)
            s = scope_find_here(scope, f->label.text, f->label.len);
        if (!s || s->kind != SYM_LABEL)
            return front_fail(ERR_SYNTAX, &p->lexer, &f->label, "no label '%.*s' in this function",
                              (int)f->label.len, f->label.text);
        *(f->target ? f->target : &f->opnd->target) = s->target;
    }
    return OK;
}

static status_t new_scope(struct parser *p, struct scope *parent) {
    p->scope = scope_new(p->module->arena, parent);
    return p->scope ? OK : parse_nomem(p);
}

/* Statements between { and }, both included; nested blocks have scopes of their own. */
static status_t parse_body(struct parser *p) {
    status_t st = OK;
    unsigned depth = 0;
    struct scope *outermost = p->scope;
    do {
        struct token t = p->token;
        if (parse_at(p, "{")) {
            if (++depth > MAX_NESTING)
                return front_fail(ERR_UNSUPPORTED, &p->lexer, &t, "blocks nested too deep");
            if (depth > 1)
                TRY(new_scope(p, p->scope));
            TRY(parse_advance(p));
        } else if (parse_at(p, "}")) {
            if (--depth > 0)
                p->scope = p->scope->parent;
            else
                break;
            TRY(parse_advance(p));
        } else if (parse_at(p, ".reg")) {
            TRY(parse_registers(p));
        } else if (parse_at(p, ".loc")) {
            TRY(parse_loc(p));
        } else if (parse_at(p, ".pragma")) {
            TRY(parse_skip_past(p, ";"));
        } else if (parse_space(&t) != SPACE_GENERIC) {
            TRY(parse_variable(p, false));
        } else if (t.kind == TOK_END) {
            return parse_expected(p, "'}'");
        } else {
            struct lexer ahead = p->lexer; /* one token further: a label has a colon */
            struct token next;
            TRY(lexer_next(&next, &ahead));
            if (t.kind == TOK_WORD && next.kind == TOK_PUNCT && next.text[0] == ':') {
                TRY(parse_advance(p));
                TRY(parse_advance(p));
                if (parse_at(p, ".branchtargets") || parse_at(p, ".calltargets") ||
                    parse_at(p, ".callprototype")) {
                    TRY(parse_table(p, &t));
                    continue;
                }
                struct symbol *label;
                TRY(parse_symbol(&label, p, p->scope, &t, SYM_LABEL));
                label->target = (uint32_t)p->func->insn_count;
            } else {
                TRY(parse_insn(p));
            }
        }
    } while (depth > 0);
    p->scope = outermost;
    TRY(parse_expect(p, "}"));
done:
    return st;
}

static status_t parse_params(struct parser *p) {
    status_t st = OK;
    struct ptx_func *f = p->func;
    bool present, empty;
    TRY(parse_accept(&present, p, "("));
    if (!present)
        return OK;
    TRY(parse_accept(&empty, p, ")"));
    for (bool more = !empty; more;) {
        if (parse_space(&p->token) != SPACE_PARAM)
            return parse_expected(p, "'.param'");
        struct declarator d;
        TRY(parse_advance(p));
        TRY(parse_declared_type(&d, p));
        TRY(parse_declarator(&d, p));
        struct ptx_var *params =
            arena_grow(p->module->arena, f->params, f->param_count, &p->param_room, sizeof *params);
        if (!params)
            return parse_nomem(p);
        f->params = params;
        struct ptx_var *v;
        TRY(parse_new_variable(&v, p, &d, SPACE_PARAM));
        f->param_bytes = resolve_layout(v, f->param_bytes);
        if (f->param_bytes > MAX_PARAM_BYTES)
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &d.name, "more than %d parameter bytes",
                              MAX_PARAM_BYTES);
        f->params[f->param_count++] = *v;
        struct symbol *symbol;
        TRY(parse_symbol(&symbol, p, p->scope, &d.name, SYM_VAR));
        symbol->var = v;
        TRY(parse_accept(&more, p, ","));
    }
    if (!empty)
        TRY(parse_expect(p, ")"));
done:
    return st;
}

/* N{, N{, N}}: at most `max` numbers; *count of them. */
static status_t parse_shape(uint64_t shape[3], unsigned *count, struct parser *p) {
    status_t st = OK;
    *count = 0;
    for (bool more = true; more;) {
        if (*count == 3)
            return front_fail(ERR_SYNTAX, &p->lexer, &p->token, "more than three numbers");
        TRY(parse_uint(&shape[(*count)++], p, 1 << 16, "a number"));
        TRY(parse_accept(&more, p, ","));
    }
done:
    return st;
}

/* .maxntid, .reqntid, the cluster, and what only tunes. */
status_t parse_tuning(struct parser *p) {
    status_t st = OK;
    static const char *const tuning[] = {".minnctapersm", ".maxnctapersm", ".maxnreg",
                                         ".maxclusterrank"};
    while (p->token.kind == TOK_DOT) {
        struct token at = p->token;
        bool threads = parse_at(p, ".maxntid") || parse_at(p, ".reqntid");
        bool cluster = parse_at(p, ".reqnctapercluster"), known = threads || cluster;
        for (size_t i = 0; i < sizeof tuning / sizeof *tuning; i++)
            known |= parse_at(p, tuning[i]);
        if (parse_at(p, ".pragma")) {
            TRY(parse_skip_past(p, ";"));
            continue;
        }
        if (parse_at(p, ".attribute") || parse_at(p, ".noreturn")) { /* of a function */
            bool list = parse_at(p, ".attribute");
            TRY(parse_advance(p));
            if (list)
                TRY(parse_skip_past(p, ")"));
            continue;
        }
        if (parse_at(p, ".explicitcluster")) {
            p->func->explicit_cluster = true;
            TRY(parse_advance(p));
            continue;
        }
        if (!known)
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &at, "directive '%.*s' on an entry",
                              (int)at.len, at.text);
        if (cluster && p->sm < 90)
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &at,
                              "clusters need sm_90, the target is %s", p->module->target);
        TRY(parse_advance(p));
        uint64_t shape[3] = {1, 1, 1};
        unsigned count;
        TRY(parse_shape(shape, &count, p));
        uint64_t product = shape[0] * shape[1] * shape[2];
        if (cluster && (product == 0 || product > PTX_MAX_CLUSTER))
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &at,
                              "a cluster of %llu blocks: 1 to %d were expected",
                              (unsigned long long)product, PTX_MAX_CLUSTER);
        for (int i = 0; cluster && i < 3; i++)
            p->func->cluster[i] = (unsigned)shape[i];
        if (threads)
            p->func->max_threads = product > UINT32_MAX ? UINT32_MAX : (unsigned)product;
    }
done:
    return st;
}

/* Falling off the end, or jumping to a label there, leaves the function. */
static status_t add_exit(struct parser *p) {
    return parse_append(p, &(struct ptx_insn){.op = p->func->is_func ? PTX_OP_RET : PTX_OP_EXIT,
                                              .type = PTX_NOTYPE,
                                              .type2 = PTX_NOTYPE,
                                              .guard = PTX_NOREG,
                                              .line = p->token.line});
}

status_t parse_function_begin(struct parser *p, struct ptx_func *f) {
    p->func = f;
    p->fixups = NULL;
    p->insn_room = p->reg_room = p->param_room = 0;
    p->shared_bytes = p->shared_align_dynamic = p->local_bytes = 0;
    p->loc_file = p->loc_line = 0;
    return new_scope(p, p->globals);
}

status_t parse_function_body(struct parser *p) {
    status_t st = OK;
    struct ptx_func *f = p->func;
    if (!parse_at(p, "{"))
        return parse_expected(p, "'{'");
    TRY(parse_body(p));
    TRY(add_exit(p));
    TRY(resolve_labels(p));
    size_t align = p->shared_align_dynamic > 16 ? p->shared_align_dynamic : 16;
    f->static_shared =
        p->shared_align_dynamic ? size_align(p->shared_bytes, align) : p->shared_bytes;
    resolve_dynamic(f, f->static_shared);
    f->local_bytes = p->local_bytes;
    TRY(resolve_ambiguous(f, p->module->arena));
    p->func = NULL;
    p->scope = NULL;
done:
    return st;
}

status_t parse_entry(struct parser *p) {
    status_t st = OK;
    struct ptx_module *m = p->module;
    struct ptx_func *funcs =
        arena_grow(m->arena, m->funcs, m->func_count, &p->func_room, sizeof *funcs);
    if (!funcs)
        return parse_nomem(p);
    m->funcs = funcs;
    struct token name;
    TRY(parse_advance(p));
    TRY(parse_word(&name, p, "the entry's name"));
    for (size_t i = 0; i < m->func_count; i++)
        if (token_is(&name, m->funcs[i].name))
            return front_fail(ERR_SYNTAX, &p->lexer, &name, "entry '%.*s' is defined twice",
                              (int)name.len, name.text);
    if (scope_find_here(p->globals, name.text, name.len))
        return front_fail(ERR_SYNTAX, &p->lexer, &name, "'%.*s' is something else already",
                          (int)name.len, name.text);
    struct ptx_func *f = &m->funcs[m->func_count++];
    *f = (struct ptx_func){0};
    TRY(parse_name(&f->name, p, &name));
    TRY(parse_function_begin(p, f));
    TRY(parse_params(p));
    TRY(parse_tuning(p));
    TRY(parse_function_body(p));
done:
    return st;
}
