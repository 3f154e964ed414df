/*
 * device/ptx/front.h - shared by lex.c, parse.c and resolve.c only.
 */
#ifndef DEVICE_PTX_FRONT_H
#define DEVICE_PTX_FRONT_H

#include <string.h>

#include "device/ptx/ptx.h"

/* ---- arena.c: memory of one module, dropped at once -------------------------------------------- */

struct ptx_arena;

struct ptx_arena *arena_new(void);
void arena_free(struct ptx_arena *arena);
/* Zeroed memory aligned for any object; NULL when there is none. */
void *arena_alloc(struct ptx_arena *arena, size_t size);
/*
 * Room for one more element: `old` if *room > count, else a copy twice as large (*room follows).
 * NULL without memory.  The old copy stays until the arena goes.
 */
void *arena_grow(struct ptx_arena *arena, void *old, size_t count, size_t *room, size_t element);
/* NUL-terminated copy. */
char *arena_string(struct ptx_arena *arena, const char *text, size_t len);

/* ---- lex.c: text -> tokens ----------------------------------------------------------------------- */

enum tok_kind {
    TOK_END,
    TOK_WORD,   /* name, opcode or register: letters, digits, _ $ and a leading % */
    TOK_DOT,    /* ".word", the dot included; "::" may stand inside */
    TOK_INT,    /* value */
    TOK_F32,    /* 0fXXXXXXXX: value holds the bits */
    TOK_F64,    /* 0dXXXXXXXXXXXXXXXX or a decimal number: value holds binary64 bits */
    TOK_STRING, /* text without the quotes */
    TOK_PUNCT,  /* one character: text[0] */
};

struct token {
    enum tok_kind kind;
    const char *text;
    size_t len;
    uint64_t value;
    unsigned line, col; /* from 1 */
};

struct lexer {
    const char *label;
    const char *begin, *end;
    const char *at;         /* next character */
    const char *line_begin;
    unsigned line;
};

struct lexer lexer_start(const char *label, const char *text, size_t size);
MUST_CHECK status_t lexer_next(struct token *out, struct lexer *lexer);

/* "label:line:col: message", the source line and a caret under `at`. */
status_t front_fail(status_t code, const struct lexer *lexer, const struct token *at,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Inline, so that the length of a constant is one. */
static inline bool token_is(const struct token *t, const char *text) {
    return t->len == strlen(text) && memcmp(t->text, text, t->len) == 0 && t->kind != TOK_STRING;
}

/* ---- modifiers.c: dot words -> kinds of modifier --------------------------------------------------- */

#define PTX_MOD_LIST(MOD)                                                                          \
    MOD(RND) MOD(FTZ) MOD(SAT) MOD(APPROX) MOD(FULL) MOD(CMP) MOD(BOOL) MOD(SPACE) MOD(VEC)        \
    MOD(HALF) MOD(HALF_WIDE) MOD(MODE) MOD(WRAP) MOD(ATOM) MOD(ATOM_CAS) MOD(BAR) MOD(UNI)         \
    MOD(SYNC) MOD(ALIGNED) MOD(CACHE) MOD(VOLATILE) MOD(SCOPE) MOD(ORDER) MOD(NAN) MOD(TO) MOD(CTA)      \
    /* the subsets of RND that some rows allow */                                                  \
    MOD(RN) MOD(RNA) MOD(RNZ) MOD(FRND) MOD(IRND)                                                  \
    MOD(RELU) MOD(SATFINITE) MOD(XORSIGN) MOD(ABS)      \
    MOD(HINT) MOD(FROM) MOD(SHAPE) MOD(MATRICES) MOD(TRANS)                                        \
    MOD(NOFTZ) MOD(BARRED) MOD(FROM_SHARED) MOD(COMPLETE) MOD(MULTICAST) MOD(GROUP) MOD(READ) MOD(NOINC)    \
    MOD(CC) MOD(SHIFTAMT) MOD(PRMT) MOD(LIMIT) \
    MOD(MNK) MOD(ROW) MOD(COL) MOD(LAYOUT) MOD(DIM) MOD(TILE) MOD(RESTRICT) MOD(TENSORMAP)         \
    /* no words: the instruction has three types (d, a, b), or four (c too) */                     \
    MOD(TYPES3) MOD(TYPES4)

enum ptx_mod_kind {
#define MOD(id) MOD_##id,
    PTX_MOD_LIST(MOD)
#undef MOD
    MOD_KINDS
};

const char *ptx_mod_kind_name(enum ptx_mod_kind kind);
bool ptx_mod_known(const struct token *word);
/*
 * Apply the word as the first kind in `allowed` that it can be; returns that kind's bit, 0 if none.
 */
uint64_t ptx_mod_apply(struct ptx_mods *mods, const struct token *word, uint64_t allowed);
enum ptx_type ptx_type_of(const struct token *word); /* ".f32"; PTX_NOTYPE */

/* ---- scope.c: names ---------------------------------------------------------------------------------- */

enum symbol_kind { SYM_REG, SYM_REGS, SYM_VAR, SYM_LABEL, SYM_FUNC, SYM_TABLE };

struct symbol {
    enum symbol_kind kind;
    const char *name;
    size_t len;
    struct symbol *next;      /* in its hash chain */
    enum ptx_type type;       /* SYM_REG, SYM_REGS */
    uint64_t count;           /* SYM_REGS: name0 .. name<count-1> exist */
    uint32_t reg;             /* SYM_REG: index in func->regs, PTX_NOREG until first used */
    struct ptx_var *var;      /* SYM_VAR */
    uint32_t target;          /* SYM_LABEL */
    struct ptx_func *func;    /* SYM_FUNC */
    struct ptx_table *table;  /* SYM_TABLE */
};

struct scope {
    struct scope *parent;
    struct symbol **chains;
    size_t chain_count, symbol_count;
};

struct scope *scope_new(struct ptx_arena *arena, struct scope *parent);
/* Add a name to this scope: NULL without memory; *taken if this very scope has it already. */
struct symbol *scope_add(struct ptx_arena *arena, struct scope *scope, const char *name, size_t len,
                         bool *taken);
struct symbol *scope_find_here(const struct scope *scope, const char *name, size_t len);
struct symbol *scope_find(const struct scope *scope, const char *name, size_t len);

/* ---- parse*.c ------------------------------------------------------------------------------ */

/* A branch whose label may come later: looked up from `scope` when the function ends. */
struct fixup {
    struct fixup *next;
    struct ptx_operand *opnd;
    uint32_t *target;        /* instead of an operand: an element of a table */
    struct token label;
    const struct scope *scope;
};

/* What the row of an instruction's words is, by their text: a module repeats some dozens of them. */
#define PTX_MNEMONICS 128
struct mnemonic {
    const char *text; /* in the source; NULL: none */
    size_t len;
    struct ptx_insn insn; /* without operands and place */
};

struct parser {
    struct lexer lexer;
    struct token token;          /* the one being looked at */
    struct ptx_module *module;
    struct scope *globals;
    /* of the function being parsed */
    struct ptx_func *func;
    struct scope *scope;         /* innermost */
    struct fixup *fixups;
    size_t insn_room, reg_room, param_room;
    size_t func_room, callee_room, var_room; /* of the module */
    size_t shared_bytes, shared_align_dynamic, local_bytes;
    unsigned loc_file, loc_line;
    unsigned sm;                 /* of .target: 90 for sm_90a */
    struct mnemonic mnemonics[PTX_MNEMONICS];
};

MUST_CHECK status_t parse_advance(struct parser *p);
static inline bool parse_at(const struct parser *p, const char *text) {
    return token_is(&p->token, text);
}
/* Expect this very text and step over it. */
MUST_CHECK status_t parse_expect(struct parser *p, const char *text);
/* Step over the text if it is there. */
MUST_CHECK status_t parse_accept(bool *found, struct parser *p, const char *text);
MUST_CHECK status_t parse_word(struct token *out, struct parser *p, const char *what);
MUST_CHECK status_t parse_uint(uint64_t *out, struct parser *p, uint64_t max, const char *what);
status_t parse_nomem(const struct parser *p);
/* "expected WHAT, found ..." at the current token. */
status_t parse_expected(const struct parser *p, const char *what);
/* Step over everything up to and with the closing text; only for what cannot change a value. */
MUST_CHECK status_t parse_skip_past(struct parser *p, const char *closing);
/* A NUL-terminated copy of a name in the module's arena. */
MUST_CHECK status_t parse_name(const char **out, struct parser *p, const struct token *name);
MUST_CHECK status_t parse_symbol(struct symbol **out, struct parser *p, struct scope *scope,
                                 const struct token *name, enum symbol_kind kind);

struct declarator {
    struct token name;
    enum ptx_type type;
    uint64_t align;
    bool open_array; /* [] */
    uint64_t bytes;
};

enum ptx_space parse_space(const struct token *t); /* ".global" ...; SPACE_GENERIC: no space */
/* [.align N] [.vK] .type, then [.ptr [.space] [.align N]] for parameters. */
MUST_CHECK status_t parse_declared_type(struct declarator *d, struct parser *p);
/* name, name[N], name[], name[N][M] */
MUST_CHECK status_t parse_declarator(struct declarator *d, struct parser *p);
MUST_CHECK status_t parse_new_variable(struct ptx_var **out, struct parser *p,
                                       const struct declarator *d, enum ptx_space space);
/* The current token is the space; `external` says that .extern stood before it. */
MUST_CHECK status_t parse_variable(struct parser *p, bool external);
/* The current token is ".entry". */
MUST_CHECK status_t parse_entry(struct parser *p);
/* The current token is ".func": a declaration or a definition. */
MUST_CHECK status_t parse_func(struct parser *p);
/* A function's beginning: scope and counters.  Its end: body, exits, labels, layout. */
MUST_CHECK status_t parse_function_begin(struct parser *p, struct ptx_func *f);
MUST_CHECK status_t parse_function_body(struct parser *p);
MUST_CHECK status_t parse_tuning(struct parser *p);
/* The current token is .branchtargets, .calltargets or .callprototype. */
MUST_CHECK status_t parse_table(struct parser *p, const struct token *name);
/* One instruction, guard included, up to and with its ";". */
MUST_CHECK status_t parse_insn(struct parser *p);
#define MAX_OPERANDS 160 /* of one instruction, vectors counted by element */

struct operands {
    struct ptx_operand list[MAX_OPERANDS];
    size_t count;
};

/* A predicate register; a source may be negated, a destination may be "_". */
MUST_CHECK status_t parse_predicate(struct ptx_operand *out, struct parser *p, bool source);
MUST_CHECK status_t parse_push(struct operands *o, struct parser *p,
                               const struct ptx_operand *opnd);
/* The symbol of a name; *out is NULL for a name that is not known. */
MUST_CHECK status_t parse_find(struct symbol **out, struct parser *p, const struct token *name);
/* Everything behind "call". */
MUST_CHECK status_t parse_call(struct operands *o, struct parser *p, struct ptx_insn *insn);
/* All operands of the instruction's row; fills insn->first and insn->group_count too. */
MUST_CHECK status_t parse_operands(struct operands *o, struct parser *p, struct ptx_insn *insn);

/* Append to the function's instructions. */
MUST_CHECK status_t parse_append(struct parser *p, const struct ptx_insn *insn);
/* A variable visible here; module-scope shared variables get their place in this function. */
MUST_CHECK status_t parse_variable_use(const struct ptx_var **out, struct parser *p,
                                       struct symbol *symbol);
/* A constant of type t at the current token, sign included, as bits of t's width. */
MUST_CHECK status_t parse_constant(uint64_t *bits, struct parser *p, enum ptx_type t);

/* ---- resolve.c ----------------------------------------------------------------------------------------- */

/* Place a variable at the first aligned offset from `at`; returns its end. */
size_t resolve_layout(struct ptx_var *var, size_t at);
/* Operands that name dynamic shared memory get its begin. */
void resolve_dynamic(struct ptx_func *func, size_t begin);
/* Count unsuffixed adds and subs fed by an unsuffixed mul: func->ambiguous. */
MUST_CHECK status_t resolve_ambiguous(struct ptx_func *func, struct ptx_arena *arena);

#endif
