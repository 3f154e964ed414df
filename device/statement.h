/*
 * device/statement.h - the statements of a PTX text, by place: for changing text, not for running it.
 *
 * The front end of device/ptx reads what the emulator can execute and refuses the rest.  A text that
 * is only to be changed here and there may hold anything that a GPU takes, so this scanner knows no
 * opcodes: it knows comments, where a statement ends, and what kind it is.
 */
#ifndef DEVICE_STATEMENT_H
#define DEVICE_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>

enum statement_kind {
    STATEMENT_END,       /* of the text */
    STATEMENT_INSN,      /* {@guard} opcode operands ; */
    STATEMENT_DIRECTIVE, /* .word ... to its ; or, where it has none, to its line's end or a brace */
    STATEMENT_LABEL,     /* name : */
    STATEMENT_OPEN,      /* { */
    STATEMENT_CLOSE,     /* } */
};

/* A piece of the text. */
struct piece {
    const char *at;
    size_t size;
};

struct statement {
    enum statement_kind kind;
    struct piece text;  /* from its first character to its last, `;` included */
    unsigned line;      /* of the first character, from 1 on */
    struct piece guard; /* "@%p1", "@!%p1"; size 0 without one (INSN) */
    struct piece word;  /* opcode with its modifiers; directive; label (INSN, DIRECTIVE, LABEL) */
    struct piece
        operands;   /* what stands between the opcode and `;` (INSN) or behind the directive */
    unsigned depth; /* open braces around it; of a brace, around what it encloses */
};

struct scanner {
    const char *at, *end;
    unsigned line, depth;
};

struct scanner scanner_of(const char *text, size_t size);
/* The next statement.  Text that is cut short ends in STATEMENT_END. */
void scanner_next(struct statement *out, struct scanner *s);

bool piece_is(struct piece piece, const char *text);
bool piece_begins(struct piece piece, const char *prefix);
/* Does the dotted name hold this part: piece_has("add.rn.f32", "rn")? */
bool piece_has(struct piece piece, const char *part);
/*
 * Take the next token from *rest: a name ("%r1", "shfl", "0f3F800000", "a.b"), or one other
 * character.  Comments and white space are skipped.  False at the end.
 */
bool piece_token(struct piece *token, struct piece *rest);

#endif
