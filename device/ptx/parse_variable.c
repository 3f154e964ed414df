/*
 * device/ptx/parse_variable.c - declarations of variables, their values, and where they are placed.
 */
#include <string.h>

#include "device/ptx/front.h"

#define MAX_VARIABLE_BYTES ((uint64_t)1 << 32)
#define MAX_LOCAL_BYTES ((uint64_t)512 * 1024) /* per thread, PTX targets' limit */
#define MAX_INIT_BYTES ((uint64_t)1 << 26)

enum ptx_space parse_space(const struct token *t) {
    static const struct {
        const char *text;
        enum ptx_space space;
    } spaces[] = {{".global", SPACE_GLOBAL}, {".shared", SPACE_SHARED}, {".local", SPACE_LOCAL},
                  {".const", SPACE_CONST},   {".param", SPACE_PARAM},   {".reg", SPACE_REG}};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (token_is(t, spaces[i].text))
            return spaces[i].space;
    return SPACE_GENERIC;
}

status_t parse_symbol(struct symbol **out, struct parser *p, struct scope *scope,
                      const struct token *name, enum symbol_kind kind) {
    bool taken;
    *out = scope_add(p->module->arena, scope, name->text, name->len, &taken);
    if (taken)
        return front_fail(ERR_SYNTAX, &p->lexer, name, "'%.*s' is declared twice", (int)name->len,
                          name->text);
    if (!*out)
        return parse_nomem(p);
    (*out)->kind = kind;
    return OK;
}

status_t parse_constant(uint64_t *bits, struct parser *p, enum ptx_type t) {
    status_t st = OK;
    bool minus, floating = t == PTX_F32 || t == PTX_F64;
    TRY(parse_accept(&minus, p, "-"));
    struct token c = p->token;
    if (c.kind == TOK_INT) {
        unsigned width = ptx_type_bits(t);
        if (floating)
            return front_fail(ERR_SYNTAX, &p->lexer, &c,
                              "expected a floating-point constant for .%s", ptx_type_name(t));
        uint64_t limit = width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
        if (c.value > (minus ? limit / 2 + 1 : limit))
            return front_fail(ERR_SYNTAX, &p->lexer, &c, "constant does not fit .%s",
                              ptx_type_name(t));
        *bits = (minus ? -c.value : c.value) & limit;
    } else if (c.kind == TOK_F32 && ptx_type_bits(t) == 32) {
        *bits = c.value ^ (minus ? UINT64_C(1) << 31 : 0);
    } else if (c.kind == TOK_F64 && ptx_type_bits(t) == 64) {
        *bits = c.value ^ (minus ? UINT64_C(1) << 63 : 0);
    } else if (c.kind == TOK_F64 && t == PTX_F32) {
        /* A decimal constant of .f32 is the binary64 number rounded once more, as ptxas does. */
        double d;
        memcpy(&d, &c.value, sizeof d);
        float f = (float)(minus ? -d : d);
        uint32_t b;
        memcpy(&b, &f, sizeof b);
        *bits = b;
    } else {
        return parse_expected(p, "a constant of the instruction's type");
    }
    TRY(parse_advance(p));
done:
    return st;
}

/* "= { c, c, ... }" or "= c": element by element into var->init. */
static status_t parse_initialiser(struct parser *p, struct ptx_var *var, enum ptx_type t,
                                  bool open_array) {
    status_t st = OK;
    size_t width = ptx_type_bits(t) / 8, count = 0, room = 0;
    uint8_t *data = NULL;
    bool braces, more = true;
    TRY(parse_accept(&braces, p, "{"));
    while (more) {
        if (count * width >= MAX_INIT_BYTES || (!open_array && (count + 1) * width > var->size))
            return front_fail(ERR_SYNTAX, &p->lexer, &p->token, "more initialisers than elements");
        data = arena_grow(p->module->arena, data, count, &room, width);
        if (!data)
            return parse_nomem(p);
        uint64_t bits;
        TRY(parse_constant(&bits, p, t));
        memcpy(data + count++ * width, &bits, width); /* little endian, as the target is */
        more = false;
        if (braces)
            TRY(parse_accept(&more, p, ","));
    }
    if (braces)
        TRY(parse_expect(p, "}"));
    if (open_array)
        var->size = count * width;
    if (var->size > MAX_INIT_BYTES)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &p->token, "initialised variable too large");
    uint8_t *init = arena_alloc(p->module->arena, var->size);
    if (!init)
        return parse_nomem(p);
    memcpy(init, data, count * width);
    var->init = init;
done:
    return st;
}

/* [.align N] [.vK] .type, then [.ptr [.space] [.align N]] for parameters. */
status_t parse_declared_type(struct declarator *d, struct parser *p) {
    status_t st = OK;
    *d = (struct declarator){0};
    uint64_t lanes = 1;
    for (; p->token.kind == TOK_DOT;) {
        enum ptx_type t = ptx_type_of(&p->token);
        if (parse_at(p, ".align")) {
            TRY(parse_advance(p));
            struct token at = p->token;
            TRY(parse_uint(&d->align, p, 1 << 20, "an alignment"));
            if (d->align == 0 || (d->align & (d->align - 1)))
                return front_fail(ERR_SYNTAX, &p->lexer, &at, "alignment is no power of two");
            continue;
        }
        if (parse_at(p, ".v2") || parse_at(p, ".v4")) {
            lanes = (uint64_t)(p->token.text[2] - '0');
        } else if (t != PTX_NOTYPE && t != PTX_PRED) {
            d->type = t;
            TRY(parse_advance(p));
            uint64_t align = d->align;
            if (parse_at(p, ".ptr")) { /* describes what a pointer parameter points to: no layout */
                TRY(parse_advance(p));
                if (parse_space(&p->token) != SPACE_GENERIC)
                    TRY(parse_advance(p));
                if (parse_at(p, ".align")) {
                    TRY(parse_advance(p));
                    TRY(parse_uint(&align, p, 1 << 20, "an alignment"));
                }
            }
            d->bytes = ptx_type_bits(t) / 8 * lanes;
            if (!d->align)
                d->align = d->bytes;
            return OK;
        } else {
            return parse_expected(p, "a type");
        }
        TRY(parse_advance(p));
    }
    return parse_expected(p, "a type");
done:
    return st;
}

/* name, name[N], name[], name[N][M] */
status_t parse_declarator(struct declarator *d, struct parser *p) {
    status_t st = OK;
    bool bracket;
    TRY(parse_word(&d->name, p, "a variable name"));
    TRY(parse_accept(&bracket, p, "["));
    while (bracket) {
        if (parse_at(p, "]")) {
            d->open_array = true;
        } else {
            uint64_t n;
            struct token at = p->token;
            TRY(parse_uint(&n, p, MAX_VARIABLE_BYTES, "an array size"));
            if (__builtin_mul_overflow(d->bytes, n, &d->bytes) || d->bytes > MAX_VARIABLE_BYTES)
                return front_fail(ERR_UNSUPPORTED, &p->lexer, &at, "variable larger than 4 GiB");
        }
        TRY(parse_expect(p, "]"));
        TRY(parse_accept(&bracket, p, "["));
    }
done:
    return st;
}

status_t parse_name(const char **out, struct parser *p, const struct token *name) {
    *out = arena_string(p->module->arena, name->text, name->len);
    return *out ? OK : parse_nomem(p);
}

status_t parse_new_variable(struct ptx_var **out, struct parser *p, const struct declarator *d,
                            enum ptx_space space) {
    status_t st = OK;
    struct ptx_var *v = arena_alloc(p->module->arena, sizeof *v);
    if (!v)
        return parse_nomem(p);
    TRY(parse_name(&v->name, p, &d->name));
    v->space = space;
    v->size = d->bytes;
    v->align = d->align;
    *out = v;
done:
    return st;
}

/* Give a shared or local variable its place in the current function. */
static status_t place_in_function(struct parser *p, struct ptx_var *v, const struct token *at) {
    if (v->dynamic) {
        if (v->align > p->shared_align_dynamic)
            p->shared_align_dynamic = v->align;
        return OK; /* its offset is known when the function ends */
    }
    size_t *end = v->space == SPACE_SHARED ? &p->shared_bytes : &p->local_bytes;
    *end = resolve_layout(v, *end);
    if (*end > (v->space == SPACE_SHARED ? MAX_VARIABLE_BYTES : MAX_LOCAL_BYTES))
        return front_fail(ERR_UNSUPPORTED, &p->lexer, at, "too much %s memory",
                          v->space == SPACE_SHARED ? "shared" : "local");
    return OK;
}

static status_t module_variable(struct parser *p, struct ptx_var *v) {
    struct ptx_module *m = p->module;
    struct ptx_var **vars = arena_grow(m->arena, m->vars, m->var_count, &p->var_room, sizeof *vars);
    if (!vars)
        return parse_nomem(p);
    m->vars = vars;
    m->vars[m->var_count++] = v;
    size_t *end = v->space == SPACE_GLOBAL ? &m->global_bytes : &m->const_bytes;
    *end = resolve_layout(v, *end);
    return OK;
}

/* The current token is the space; `external` says that .extern stood before it. */
status_t parse_variable(struct parser *p, bool external) {
    status_t st = OK;
    struct token at = p->token;
    enum ptx_space space = parse_space(&at);
    struct scope *scope = p->func ? p->scope : p->globals;
    struct declarator base;
    TRY(parse_advance(p));
    TRY(parse_declared_type(&base, p));
    for (bool more = true; more;) {
        struct declarator d = base;
        TRY(parse_declarator(&d, p));
        struct symbol *symbol;
        TRY(parse_symbol(&symbol, p, scope, &d.name, SYM_VAR));
        TRY(parse_new_variable(&symbol->var, p, &d, space));
        bool init;
        TRY(parse_accept(&init, p, "="));
        if (init && space != SPACE_GLOBAL && space != SPACE_CONST)
            return front_fail(ERR_SYNTAX, &p->lexer, &d.name,
                              "only .global and .const have values");
        if (init)
            TRY(parse_initialiser(p, symbol->var, base.type, d.open_array));
        symbol->var->dynamic = space == SPACE_SHARED && external;
        symbol->var->frame = space == SPACE_PARAM;
        if (d.open_array && !init && !symbol->var->dynamic)
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &d.name, "array without a size");
        if (symbol->var->dynamic)
            symbol->var->size = 0;
        if (external && space != SPACE_SHARED)
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &d.name, "variable of another module");
        if (space == SPACE_GLOBAL || space == SPACE_CONST)
            TRY(module_variable(p, symbol->var));
        else if (space == SPACE_LOCAL || p->func)
            TRY(place_in_function(p, symbol->var, &d.name));
        TRY(parse_accept(&more, p, ","));
    }
    TRY(parse_expect(p, ";"));
done:
    return st;
}

status_t parse_variable_use(const struct ptx_var **out, struct parser *p, struct symbol *symbol) {
    struct ptx_var *v = symbol->var;
    if (v->space != SPACE_SHARED ||
        scope_find_here(p->globals, symbol->name, symbol->len) != symbol) {
        *out = v;
        return OK;
    }
    /* A module-scope shared variable takes room only in the functions that name it: its copy goes
     * into the function's outermost scope, where the next use finds it. */
    struct scope *outer = p->scope;
    while (outer->parent != p->globals)
        outer = outer->parent;
    bool taken;
    struct symbol *own = scope_add(p->module->arena, outer, symbol->name, symbol->len, &taken);
    struct ptx_var *copy = arena_alloc(p->module->arena, sizeof *copy);
    if (!own || !copy)
        return parse_nomem(p);
    *copy = *v;
    copy->origin = v;
    own->kind = SYM_VAR;
    own->var = copy;
    *out = copy;
    return place_in_function(p, copy, &p->token);
}
