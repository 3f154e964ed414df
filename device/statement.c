/* device/statement.c - see statement.h. */
#include "device/statement.h"

#include <ctype.h>
#include <string.h>

struct scanner scanner_of(const char *text, size_t size) {
    return (struct scanner){.at = text, .end = text + size, .line = 1};
}

/* ---- characters -------------------------------------------------------------------------------- */

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* The end of the comment that begins at `at`; `at` itself if none does. */
static const char *after_comment(const char *at, const char *end) {
    if (end - at < 2 || at[0] != '/' || (at[1] != '/' && at[1] != '*'))
        return at;
    bool long_one = at[1] == '*';
    for (at += 2; at < end; at++) {
        if (!long_one && *at == '\n')
            return at;
        if (long_one && *at == '*' && end - at > 1 && at[1] == '/')
            return at + 2;
    }
    return end;
}

/* Step over one character, a comment or a string. */
static void step(struct scanner *s) {
    const char *from = s->at, *to = after_comment(from, s->end);
    if (to == from && *from == '"') {
        for (to = from + 1; to < s->end && *to != '"' && *to != '\n'; to++)
            to += *to == '\\' && to + 1 < s->end;
        to += to < s->end && *to == '"';
    } else if (to == from) {
        to = from + 1;
    }
    for (; from < to; from++)
        s->line += *from == '\n';
    s->at = to;
}

static void skip_blank(struct scanner *s) {
    while (s->at < s->end &&
           (isspace((unsigned char)*s->at) || after_comment(s->at, s->end) != s->at))
        step(s);
}

static struct piece between(const char *from, const char *to) {
    return (struct piece){from, (size_t)(to - from)};
}

/* A run of name characters and dots, from here on. */
static struct piece take_word(struct scanner *s) {
    const char *from = s->at;
    while (s->at < s->end && (is_name(*s->at) || *s->at == '.' || *s->at == ':'))
        s->at++;
    return between(from, s->at);
}

/* ---- statements -------------------------------------------------------------------------------- */

/* Directives that end with their line. */
static bool ends_with_line(struct piece word) {
    static const char *const words[] = {".version", ".target", ".address_size", ".loc", ".file"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (piece_is(word, words[i]))
            return true;
    return false;
}

/* To the directive's end.  Braces behind a `=` are its initializer, others are left alone. */
static void take_directive(struct statement *out, struct scanner *s) {
    bool value = false, line = ends_with_line(out->word);
    const char *from = s->at;
    unsigned parens = 0, braces = 0;
    while (s->at < s->end) {
        char c = *s->at;
        if (line && c == '\n')
            break;
        if (!line && !value && !parens && (c == '{' || c == '}'))
            break;
        value = value || c == '=';
        parens += c == '(';
        parens -= c == ')' && parens;
        braces += c == '{';
        braces -= c == '}' && braces;
        const char *at = s->at;
        if (!line && c == ';' && !parens && !braces) {
            s->at++;
            out->operands = between(from, at);
            return;
        }
        step(s);
    }
    out->operands = between(from, s->at);
}

static void take_insn(struct statement *out, struct scanner *s) {
    if (s->at < s->end && *s->at == '@') {
        const char *from = s->at++;
        skip_blank(s);
        if (s->at < s->end && *s->at == '!')
            s->at++;
        skip_blank(s);
        take_word(s);
        out->guard = between(from, s->at);
        skip_blank(s);
    }
    out->word = take_word(s);
    const char *from = s->at;
    while (s->at < s->end && *s->at != ';')
        step(s);
    out->operands = between(from, s->at);
    s->at += s->at < s->end;
}

/* DWARF data, which has no statements. */
static void skip_section(struct scanner *s) {
    while (s->at < s->end && *s->at != '}')
        step(s);
    s->at += s->at < s->end;
}

void scanner_next(struct statement *out, struct scanner *s) {
    skip_blank(s);
    *out = (struct statement){.kind = STATEMENT_END, .line = s->line};
    if (s->at >= s->end)
        return;
    const char *from = s->at;
    out->depth = s->depth;
    if (*from == '{') {
        out->kind = STATEMENT_OPEN;
        out->depth = ++s->depth;
        s->at++;
    } else if (*from == '}') {
        out->kind = STATEMENT_CLOSE;
        s->depth -= s->depth > 0;
        s->at++;
    } else if (*from == '.') {
        out->kind = STATEMENT_DIRECTIVE;
        out->word = take_word(s);
        take_directive(out, s);
        if (piece_is(out->word, ".section"))
            skip_section(s);
    } else if (is_name(*from) || *from == '@') {
        struct scanner ahead = *s;
        while (ahead.at < ahead.end && is_name(*ahead.at))
            ahead.at++;
        out->word = between(from, ahead.at);
        skip_blank(&ahead);
        if (*from != '@' && ahead.at < ahead.end && *ahead.at == ':' &&
            !(ahead.end - ahead.at > 1 && ahead.at[1] == ':')) {
            out->kind = STATEMENT_LABEL;
            *s = ahead;
            s->at++;
        } else {
            out->kind = STATEMENT_INSN;
            take_insn(out, s);
        }
    } else { /* nothing that PTX has: one character that is passed over */
        out->kind = STATEMENT_DIRECTIVE;
        out->word = between(from, from + 1);
        step(s);
    }
    out->text = between(from, s->at);
}

/* ---- pieces ------------------------------------------------------------------------------------- */

bool piece_is(struct piece piece, const char *text) {
    size_t n = strlen(text); /* of 0 bytes there may be no pointer to compare */
    return piece.size == n && (n == 0 || memcmp(piece.at, text, n) == 0);
}

bool piece_begins(struct piece piece, const char *prefix) {
    size_t n = strlen(prefix);
    return piece.size >= n && memcmp(piece.at, prefix, n) == 0;
}

bool piece_has(struct piece piece, const char *part) {
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= piece.size; i++)
        if ((i == 0 || piece.at[i - 1] == '.') && memcmp(piece.at + i, part, n) == 0 &&
            (i + n == piece.size || piece.at[i + n] == '.'))
            return true;
    return false;
}

bool piece_token(struct piece *token, struct piece *rest) {
    struct scanner s = scanner_of(rest->at, rest->size);
    skip_blank(&s);
    if (s.at >= s.end)
        return false;
    const char *from = s.at;
    if (is_name(*s.at))
        *token = take_word(&s);
    else
        *token = between(from, ++s.at);
    *rest = between(s.at, s.end);
    return true;
}
