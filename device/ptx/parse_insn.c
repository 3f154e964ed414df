/*
 * device/ptx/parse_insn.c - one instruction: guard, opcode and the row of opcodes.def that it fits.
 *
 * The row says which types, modifiers and operands are legal; whatever fits no row is an error at the
 * word that does not fit.
 */
#include <string.h>

#include "device/ptx/front.h"

#define MAX_WORDS 16 /* dot words after an opcode */

const struct ptx_opcode ptx_opcodes[PTX_OP_COUNT] = {
#define T(id) ((ptx_types)1 << PTX_##id)
#define M(id) (UINT64_C(1) << MOD_##id)
#define INSN(id, name, types, types2, operands, allow, require, handler, what) \
    {name, types, types2, operands, allow, require, #handler, what},
#include "device/ptx/opcodes.def"
#undef INSN
#undef M
#undef T
};

/* ---- which row --------------------------------------------------------------------------------- */

struct words {
    struct token opcode;
    struct token word[MAX_WORDS];
    size_t count;
};

/* How far a row fits: the number of words accepted, and why it stopped. */
struct fit {
    size_t accepted;
    const char *problem; /* NULL: it fits */
    struct ptx_insn insn;
};

/* The row's name covers the opcode and `*used` of the words ("bar.warp"). */
static bool name_fits(size_t *used, const struct ptx_opcode *row, const struct words *w) {
    const char *name = row->name;
    size_t len = strcspn(name, ".");
    if (w->opcode.len != len || memcmp(w->opcode.text, name, len) != 0)
        return false;
    *used = 0;
    for (name += len; *name; name += len) {
        len = 1 + strcspn(name + 1, ".");
        if (*used == w->count || w->word[*used].len != len ||
            memcmp(w->word[*used].text, name, len) != 0)
            return false;
        (*used)++;
    }
    return true;
}

/* The types that the row allows after `count` of them. */
static ptx_types next_types(const struct ptx_opcode *row, unsigned count) {
    uint64_t four = row->allow >> MOD_TYPES4 & 1, three = row->allow >> MOD_TYPES3 & 1;
    switch (count) {
    case 0: return row->types;
    case 1: return row->types2;
    case 2: return three || four ? row->types2 : 0;
    default: return count == 3 && four ? row->types : 0;
    }
}

static struct fit fit_row(enum ptx_op op, const struct words *w, size_t used) {
    const struct ptx_opcode *row = &ptx_opcodes[op];
    struct fit fit = {
        .insn = {.op = op, .type = PTX_NOTYPE, .type2 = PTX_NOTYPE, .type3 = PTX_NOTYPE,
                 .type4 = PTX_NOTYPE, .mods = {.vec = 1}}};
    enum ptx_type *const types[PTX_MAX_TYPES + 1] = {&fit.insn.type, &fit.insn.type2,
                                                     &fit.insn.type3, &fit.insn.type4};
    unsigned type_count = 0;
    uint64_t seen = 0;
    for (; used < w->count; used++) {
        const struct token *word = &w->word[used];
        fit.accepted = used;
        enum ptx_type t = ptx_type_of(word);
        ptx_types wanted = next_types(row, type_count);
        if (t != PTX_NOTYPE) {
            if (!(wanted >> t & 1)) {
                fit.problem = wanted ? "type not allowed here" : "one type too many";
                return fit;
            }
            *types[type_count++] = t;
            continue;
        }
        /* Cache and memory-order words may come several times (.L1::x.L2::y), layouts of wmma too. */
        uint64_t again = seen & ~(UINT64_C(1) << MOD_CACHE | UINT64_C(1) << MOD_ORDER |
                                  (uint64_t)(fit.insn.mods.layout < 4) << MOD_LAYOUT);
        uint64_t kind = ptx_mod_apply(&fit.insn.mods, word, row->allow & ~again);
        if (!kind) {
            fit.problem = ptx_mod_known(word) ? "modifier not allowed here" : "unknown modifier";
            return fit;
        }
        seen |= kind;
    }
    fit.accepted = w->count;
    seen |= UINT64_C(1) << MOD_TYPES3 | UINT64_C(1) << MOD_TYPES4; /* types, counted here */
    if (next_types(row, type_count))
        fit.problem = "a type is missing";
    else if (row->require & ~seen)
        fit.problem = "a modifier is missing";
    return fit;
}

/* Opcodes that exist and that no row has, and why. */
static const char *absent_reason(const struct token *opcode) {
    static const struct {
        const char *name, *reason;
    } absent[] = {
        {"tcgen05", "tensor memory and the tensor cores of sm_100 are not modelled"},
        {"tensormap", "tensor maps are made by the host and are not changed by a kernel"},
        {"multimem", "there is one device, and no multicast memory"},
        {"tex", "there are no textures"},
        {"tld4", "there are no textures"},
        {"txq", "there are no textures"},
        {"suld", "there are no surfaces"},
        {"sust", "there are no surfaces"},
        {"sured", "there are no surfaces"},
        {"suq", "there are no surfaces"},
        {"clusterlaunchcontrol", "clusters of sm_100 that take over others are not modelled"},
    };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (token_is(opcode, absent[i].name))
            return absent[i].reason;
    return NULL;
}

static status_t choose_row(struct ptx_insn *out, struct parser *p, const struct words *w) {
    struct fit best = {.problem = NULL};
    bool known = false;
    for (int op = 0; op < PTX_OP_COUNT; op++) {
        size_t used;
        if (!name_fits(&used, &ptx_opcodes[op], w))
            continue;
        struct fit fit = fit_row((enum ptx_op)op, w, used);
        if (!fit.problem) {
            *out = fit.insn;
            return OK;
        }
        if (!known || fit.accepted > best.accepted)
            best = fit;
        known = true;
    }
    const char *reason = known ? NULL : absent_reason(&w->opcode);
    if (reason)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &w->opcode,
                          "'%.*s' is not in the emulator: %s", (int)w->opcode.len, w->opcode.text,
                          reason);
    if (!known)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &w->opcode, "unknown instruction '%.*s'",
                          (int)(w->opcode.len < 40 ? w->opcode.len : 40), w->opcode.text);
    const struct token *at = best.accepted < w->count ? &w->word[best.accepted] : &w->opcode;
    if (at == &w->opcode)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, at, "%s after '%.*s'", best.problem,
                          (int)at->len, at->text);
    return front_fail(ERR_UNSUPPORTED, &p->lexer, at, "%s: '%.*s' on '%.*s'", best.problem,
                      (int)(at->len < 40 ? at->len : 40), at->text,
                      (int)(w->opcode.len < 40 ? w->opcode.len : 40), w->opcode.text);
}

/* Where the words' text stands if it has been met, or will stand: rows depend on nothing else. */
static struct mnemonic *mnemonic_of(struct parser *p, const struct words *w) {
    const struct token *last = w->count ? &w->word[w->count - 1] : &w->opcode;
    const char *text = w->opcode.text;
    size_t len = (size_t)(last->text + last->len - text);
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT32_C(16777619);
    struct mnemonic *m = &p->mnemonics[(hash ^ hash >> 16) % PTX_MNEMONICS];
    if (!m->text || m->len != len || memcmp(m->text, text, len) != 0)
        *m = (struct mnemonic){.len = len};
    return m;
}

static status_t find_row(struct ptx_insn *out, struct parser *p, const struct words *w) {
    struct mnemonic *m = mnemonic_of(p, w);
    if (!m->text) {
        status_t st = choose_row(&m->insn, p, w);
        if (st != OK)
            return st;
        m->text = w->opcode.text;
    }
    *out = m->insn;
    return OK;
}

/* ---- the instruction -------------------------------------------------------------------------------- */

status_t parse_append(struct parser *p, const struct ptx_insn *insn) {
    struct ptx_func *f = p->func;
    struct ptx_insn *insns =
        arena_grow(p->module->arena, f->insns, f->insn_count, &p->insn_room, sizeof *insns);
    if (!insns)
        return parse_nomem(p);
    f->insns = insns;
    f->insns[f->insn_count++] = *insn;
    return OK;
}

static status_t parse_words(struct words *w, struct parser *p) {
    status_t st = OK;
    w->count = 0;
    TRY(parse_word(&w->opcode, p, "an instruction"));
    while (p->token.kind == TOK_DOT) {
        if (w->count == MAX_WORDS)
            return front_fail(ERR_SYNTAX, &p->lexer, &p->token, "too many modifiers");
        w->word[w->count++] = p->token;
        TRY(parse_advance(p));
    }
done:
    return st;
}

status_t parse_insn(struct parser *p) {
    status_t st = OK;
    struct ptx_insn insn;
    struct operands operands = {.count = 0};
    struct words words;
    struct ptx_operand guard = {.reg = PTX_NOREG};
    struct fixup *before = p->fixups;
    unsigned line = p->token.line;
    bool guarded;
    TRY(parse_accept(&guarded, p, "@"));
    if (guarded)
        TRY(parse_predicate(&guard, p, true));
    TRY(parse_words(&words, p));
    TRY(find_row(&insn, p, &words));
    insn.line = line;
    insn.file = p->loc_file;
    insn.source_line = p->loc_line;
    insn.guard = guard.reg;
    insn.guard_negate = guard.negate;
    TRY(parse_operands(&operands, p, &insn));
    if (ptx_insn_sm(&insn) > p->sm)
        return front_fail(ERR_UNSUPPORTED, &p->lexer, &words.opcode,
                          "'%.*s' in this form needs sm_%u, the target is %s",
                          (int)words.opcode.len, words.opcode.text, ptx_insn_sm(&insn),
                          p->module->target);
    TRY(parse_expect(p, ";"));
    insn.opnd = arena_alloc(p->module->arena, operands.count * sizeof *insn.opnd);
    if (!insn.opnd)
        return parse_nomem(p);
    if (operands.count)
        memcpy(insn.opnd, operands.list, operands.count * sizeof *insn.opnd);
    if (p->fixups != before &&
        insn.op == PTX_OP_BRA) /* a branch has one label, and it is the only operand */
        p->fixups->opnd = &insn.opnd[0];
    TRY(parse_append(p, &insn));
done:
    return st;
}
