/* device/ptx/lex.c - PTX text to tokens (PTX ISA, "Syntax"), and errors that show where. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/ptx/front.h"

struct lexer lexer_start(const char *label, const char *text, size_t size) {
    return (struct lexer){.label = label,
                          .begin = text,
                          .end = text + size,
                          .at = text,
                          .line_begin = text,
                          .line = 1};
}

status_t front_fail(status_t code, const struct lexer *lexer, const struct token *at,
                    const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    /* The source line, cut around the caret and with what is no plain character shown as '.'. */
    const char *begin = at->text;
    while (begin > lexer->begin && begin[-1] != '\n')
        begin--;
    size_t column = (size_t)(at->text - begin);
    if (column > 60) {
        begin += column - 60;
        column = 60;
    }
    char source[101];
    size_t len = 0;
    while (begin + len < lexer->end && begin[len] != '\n' && len + 1 < sizeof source) {
        unsigned char c = (unsigned char)begin[len];
        source[len++] = c == '\t' ? ' ' : isprint(c) ? (char)c : '.';
    }
    source[len] = '\0';
    for (char *c = what; *c; c++)
        if (!isprint((unsigned char)*c))
            *c = '.';
    return FAIL(code, "%s:%u:%u: %s\n    %s\n    %*s^", lexer->label, at->line, at->col, what,
                source, (int)column, "");
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* A comment of the kind that has an end. */
static status_t skip_comment(struct lexer *lx) {
    const struct token begin = {.kind = TOK_PUNCT,
                                .text = lx->at,
                                .len = 2,
                                .line = lx->line,
                                .col = (unsigned)(lx->at - lx->line_begin) + 1};
    for (lx->at += 2; lx->end - lx->at >= 2; lx->at++) {
        if (lx->at[0] == '*' && lx->at[1] == '/') {
            lx->at += 2;
            return OK;
        }
        if (*lx->at == '\n') {
            lx->line++;
            lx->line_begin = lx->at + 1;
        }
    }
    return front_fail(ERR_SYNTAX, lx, &begin, "comment without an end");
}

/* Blanks and comments. */
static status_t skip_blank(struct lexer *lx) {
    status_t st = OK;
    while (lx->at < lx->end) {
        char c = *lx->at;
        if (c == '\n') {
            lx->line++;
            lx->line_begin = ++lx->at;
        } else if (isspace((unsigned char)c)) {
            lx->at++;
        } else if (c == '/' && lx->end - lx->at > 1 && lx->at[1] == '/') {
            while (lx->at < lx->end && *lx->at != '\n')
                lx->at++;
        } else if (c == '/' && lx->end - lx->at > 1 && lx->at[1] == '*') {
            TRY(skip_comment(lx));
        } else {
            break;
        }
    }
done:
    return st;
}

/* Exactly `digits` hexadecimal digits after 0f or 0d: the bits of a floating-point constant. */
static status_t lex_float_bits(struct token *t, struct lexer *lx, size_t digits,
                               enum tok_kind kind) {
    const char *p = lx->at + 2;
    t->value = 0;
    size_t n = 0;
    for (; p < lx->end && isxdigit((unsigned char)*p); p++, n++) {
        unsigned d = (unsigned)(isdigit((unsigned char)*p) ? *p - '0' : (*p | 32) - 'a' + 10);
        t->value = t->value << 4 | d;
    }
    t->len = (size_t)(p - lx->at);
    if (n != digits || (p < lx->end && is_word(*p)))
        return front_fail(ERR_SYNTAX, lx, t, "expected %zu hexadecimal digits after '%.2s'", digits,
                          lx->at);
    t->kind = kind;
    lx->at = p;
    return OK;
}

/* Decimal constants with a point or an exponent are binary64 (PTX ISA, "Floating-Point Constants"). */
static status_t lex_decimal(struct token *t, struct lexer *lx, const char *end) {
    char text[64];
    t->len = (size_t)(end - lx->at);
    if (t->len >= sizeof text)
        return front_fail(ERR_SYNTAX, lx, t, "number too long");
    memcpy(text, lx->at, t->len);
    text[t->len] = '\0';
    char *stop;
    double value = strtod(text, &stop);
    if (*stop)
        return front_fail(ERR_SYNTAX, lx, t, "malformed number");
    memcpy(&t->value, &value, sizeof value);
    t->kind = TOK_F64;
    lx->at = end;
    return OK;
}

static status_t lex_number(struct token *t, struct lexer *lx) {
    const char *p = lx->at;
    size_t left = (size_t)(lx->end - p);
    if (left > 1 && p[0] == '0' && (p[1] | 32) == 'f')
        return lex_float_bits(t, lx, 8, TOK_F32);
    if (left > 1 && p[0] == '0' && (p[1] | 32) == 'd')
        return lex_float_bits(t, lx, 16, TOK_F64);
    const char *end = p;
    while (end < lx->end && isdigit((unsigned char)*end))
        end++;
    if (end < lx->end && (*end == '.' || (*end | 32) == 'e')) {
        while (end < lx->end && (isalnum((unsigned char)*end) || *end == '.' ||
                                 ((*end == '+' || *end == '-') && (end[-1] | 32) == 'e')))
            end++;
        return lex_decimal(t, lx, end);
    }
    unsigned base = 10;
    if (left > 1 && p[0] == '0') {
        char c = p[1] | 32;
        base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
        p += base != 8 ? 2 : 0;
    }
    t->value = 0;
    const char *digits = p;
    bool overflow = false;
    for (; p < lx->end && isxdigit((unsigned char)*p); p++) {
        unsigned d = (unsigned)(isdigit((unsigned char)*p) ? *p - '0' : (*p | 32) - 'a' + 10);
        if (d >= base)
            break;
        overflow |= __builtin_mul_overflow(t->value, (uint64_t)base, &t->value);
        overflow |= __builtin_add_overflow(t->value, (uint64_t)d, &t->value);
    }
    bool empty = p == digits;
    if (p < lx->end && *p == 'U')
        p++;
    t->len = (size_t)(p - lx->at);
    if (empty || (p < lx->end && is_word(*p)))
        return front_fail(ERR_SYNTAX, lx, t, "malformed number");
    if (overflow)
        return front_fail(ERR_SYNTAX, lx, t, "number needs more than 64 bits");
    t->kind = TOK_INT;
    lx->at = p;
    return OK;
}

status_t lexer_next(struct token *t, struct lexer *lx) {
    *t = (struct token){.kind = TOK_END};
    status_t st = skip_blank(lx);
    if (st != OK)
        return st;
    *t = (struct token){.kind = TOK_END,
                        .text = lx->at,
                        .line = lx->line,
                        .col = (unsigned)(lx->at - lx->line_begin) + 1};
    if (lx->at >= lx->end)
        return OK;
    char c = *lx->at;
    const char *p = lx->at + 1;
    if (isdigit((unsigned char)c))
        return lex_number(t, lx);
    if (c == '.' && p < lx->end && is_word(*p)) {
        while (p < lx->end &&
               (is_word(*p) || (*p == ':' && lx->end - p > 2 && p[1] == ':' && is_word(p[2]))))
            p += *p == ':' ? 2 : 1;
        t->kind = TOK_DOT;
    } else if (is_word(c) || (c == '%' && p < lx->end && is_word(*p))) {
        while (p < lx->end && is_word(*p))
            p++;
        t->kind = TOK_WORD;
    } else if (c == '"') {
        while (p < lx->end && *p != '"' && *p != '\n')
            p++;
        if (p >= lx->end || *p != '"') {
            t->len = 1;
            return front_fail(ERR_SYNTAX, lx, t, "string without an end");
        }
        t->kind = TOK_STRING;
        t->text = lx->at + 1;
        t->len = (size_t)(p - t->text);
        lx->at = p + 1;
        return OK;
    } else {
        t->kind = TOK_PUNCT;
        if (!strchr("{}()[]<>,;:@!|=+-_~", c) || c == '\0') {
            t->len = 1;
            return front_fail(ERR_SYNTAX, lx, t, "unexpected character");
        }
    }
    t->len = (size_t)(p - lx->at);
    lx->at = p;
    return OK;
}
