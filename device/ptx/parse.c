/*
 * device/ptx/parse.c - a module: its header and what stands at its top level.
 *
 * Recursive descent with one token in hand; variables are in parse_variable.c, entries in
 * parse_entry.c, instructions in parse_insn.c.  Whatever the emulator does not have is refused here,
 * with line, column and caret; nothing is skipped silently except what cannot change a value
 * (debug sections, linkage, pragmas, tuning hints).
 */
#include <string.h>

#include "device/ptx/front.h"

status_t parse_nomem(const struct parser *p) {
    return FAIL(ERR_NOMEM, "%s: no memory for the module", p->lexer.label);
}

status_t parse_advance(struct parser *p) {
    return lexer_next(&p->token, &p->lexer);
}

status_t parse_expected(const struct parser *p, const char *what) {
    const struct token *t = &p->token;
    if (t->kind == TOK_END)
        return front_fail(ERR_SYNTAX, &p->lexer, t, "expected %s, found the end of the text", what);
    return front_fail(ERR_SYNTAX, &p->lexer, t, "expected %s, found '%.*s'", what,
                      (int)(t->len < 40 ? t->len : 40), t->text);
}

status_t parse_accept(bool *found, struct parser *p, const char *text) {
    *found = parse_at(p, text);
    return *found ? parse_advance(p) : OK;
}

status_t parse_expect(struct parser *p, const char *text) {
    if (!parse_at(p, text)) {
        char quoted[40] = "'";
        strncat(quoted, text, sizeof quoted - 3);
        strcat(quoted, "'");
        return parse_expected(p, quoted);
    }
    return parse_advance(p);
}

status_t parse_word(struct token *out, struct parser *p, const char *what) {
    if (p->token.kind != TOK_WORD)
        return parse_expected(p, what);
    *out = p->token;
    return parse_advance(p);
}

status_t parse_uint(uint64_t *out, struct parser *p, uint64_t max, const char *what) {
    if (p->token.kind != TOK_INT)
        return parse_expected(p, what);
    if (p->token.value > max)
        return front_fail(ERR_SYNTAX, &p->lexer, &p->token, "%s may be at most %llu", what,
                          (unsigned long long)max);
    *out = p->token.value;
    return parse_advance(p);
}

/* Step over everything up to and with the closing text; what is skipped cannot change a value. */
status_t parse_skip_past(struct parser *p, const char *closing) {
    status_t st = OK;
    while (!parse_at(p, closing)) {
        if (p->token.kind == TOK_END)
            return parse_expected(p, closing);
        TRY(parse_advance(p));
    }
    TRY(parse_advance(p));
done:
    return st;
}

/* ---- module ---------------------------------------------------------------------------------------- */

static status_t parse_file(struct parser *p) {
    status_t st = OK;
    struct ptx_module *m = p->module;
    uint64_t number, rest;
    TRY(parse_advance(p));
    TRY(parse_uint(&number, p, 65535, "a file number"));
    if (p->token.kind != TOK_STRING)
        return parse_expected(p, "a file name");
    if (number >= m->file_count) {
        const char **grown = arena_alloc(m->arena, (number + 1) * 2 * sizeof *grown);
        if (!grown)
            return parse_nomem(p);
        if (m->file_count)
            memcpy(grown, m->files, m->file_count * sizeof *grown);
        m->files = grown;
        m->file_count = (number + 1) * 2;
    }
    TRY(parse_name(&m->files[number], p, &p->token));
    TRY(parse_advance(p));
    bool more;
    TRY(parse_accept(&more, p, ",")); /* time stamp and size */
    while (more) {
        TRY(parse_uint(&rest, p, UINT64_MAX, "a number"));
        TRY(parse_accept(&more, p, ","));
    }
done:
    return st;
}

/* .section NAME { ... }: debug information. */
static status_t skip_section(struct parser *p) {
    status_t st = OK;
    unsigned depth = 0;
    do {
        if (p->token.kind == TOK_END)
            return parse_expected(p, "'}'");
        if (parse_at(p, "{"))
            depth++;
        if (parse_at(p, "}") && depth > 0 && --depth == 0)
            return parse_advance(p);
        TRY(parse_advance(p));
    } while (true);
done:
    return st;
}

/* .version X.Y  .target sm_NN[, ...]  .address_size 64 */
static status_t parse_header(struct parser *p) {
    status_t st = OK;
    struct ptx_module *m = p->module;
    TRY(parse_expect(p, ".version"));
    if (p->token.kind != TOK_F64)
        return parse_expected(p, "a version such as 8.0");
    double version;
    memcpy(&version, &p->token.value, sizeof version);
    if (!(version >= 1 && version < 100))
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &p->token, "PTX version out of range");
    m->version_major = (unsigned)version;
    m->version_minor = (unsigned)((version - m->version_major) * 10 + 0.5);
    TRY(parse_advance(p));
    TRY(parse_expect(p, ".target"));
    struct token target;
    TRY(parse_word(&target, p, "a target such as sm_80"));
    if (target.len < 4 || target.len >= sizeof m->target || memcmp(target.text, "sm_", 3) != 0)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &target, "target '%.*s'",
                          (int)(target.len < 40 ? target.len : 40), target.text);
    memcpy(m->target, target.text, target.len);
    for (size_t i = 3; i < target.len && target.text[i] >= '0' && target.text[i] <= '9'; i++)
        p->sm = p->sm * 10 + (unsigned)(target.text[i] - '0');
    for (bool more;;) { /* texmode_..., debug, map_f64_to_f32 (which would change bits) */
        TRY(parse_accept(&more, p, ","));
        if (!more)
            break;
        struct token extra;
        TRY(parse_word(&extra, p, "a target option"));
        if (!token_is(&extra, "debug") && !token_is(&extra, "texmode_independent"))
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &extra, "target option");
    }
    if (parse_at(p, ".address_size")) {
        uint64_t bits;
        TRY(parse_advance(p));
        struct token at = p->token;
        TRY(parse_uint(&bits, p, 64, "an address size"));
        if (bits != 64)
            return front_fail(ERR_UNSUPPORTED, &p->lexer, &at, "addresses of %u bits",
                              (unsigned)bits);
    }
done:
    return st;
}

static status_t parse_module(struct parser *p) {
    status_t st = OK;
    bool external = false;
    TRY(parse_advance(p));
    TRY(parse_header(p));
    while (p->token.kind != TOK_END) {
        struct token t = p->token;
        bool linkage = parse_at(p, ".visible") || parse_at(p, ".weak") || parse_at(p, ".common");
        if (linkage || parse_at(p, ".extern")) {
            external |= !linkage;
            TRY(parse_advance(p));
            continue;
        }
        if (parse_at(p, ".entry"))
            TRY(parse_entry(p));
        else if (parse_at(p, ".file"))
            TRY(parse_file(p));
        else if (parse_at(p, ".section"))
            TRY(skip_section(p));
        else if (parse_at(p, ".pragma"))
            TRY(parse_skip_past(p, ";"));
        else if (parse_at(p, ".func"))
            TRY(parse_func(p));
        else if (parse_space(&t) != SPACE_GENERIC && parse_space(&t) != SPACE_PARAM &&
                 parse_space(&t) != SPACE_REG)
            TRY(parse_variable(p, external));
        else
            return parse_expected(p, "a directive");
        external = false;
    }
done:
    return st;
}

status_t ptx_module_parse(struct ptx_module **out, const char *label, const char *text,
                          size_t size) {
    status_t st = OK;
    *out = NULL;
    struct ptx_arena *arena = arena_new();
    struct parser p = {.lexer = lexer_start(label, text, size)};
    p.module = arena ? arena_alloc(arena, sizeof *p.module) : NULL;
    if (!p.module) {
        arena_free(arena);
        return parse_nomem(&p);
    }
    p.module->arena = arena;
    p.module->label = arena_string(arena, label, strlen(label));
    p.globals = scope_new(arena, NULL);
    if (!p.module->label || !p.globals)
        st = parse_nomem(&p);
    else
        st = parse_module(&p);
    if (st != OK) {
        arena_free(arena);
        return st;
    }
    *out = p.module;
    return OK;
}

void ptx_module_free(struct ptx_module *m) {
    if (m)
        arena_free(m->arena);
}
