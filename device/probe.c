/*
 * device/probe.c - texts that write down what they do: see rewrite.h.
 *
 * What is added stands behind the instruction that it notes down, on the same line, and never
 * branches: warps stay together.  Its registers begin with %assay_.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/rewrite.h"
#include "device/statement.h"

#define RECORD_BYTES 16 /* of struct probe_record */
_Static_assert(sizeof(struct probe_record) == RECORD_BYTES, "a record is written as two words");

/* ---- the new text -------------------------------------------------------------------------------- */

struct output {
    char *text;
    size_t size, room;
    bool full; /* out of memory: nothing more is added */
};

static void add_bytes(struct output *o, const char *bytes, size_t n) {
    if (o->size + n + 1 > o->room && !o->full) {
        size_t room = 2 * (o->size + n + 1);
        char *text = realloc(o->text, room);
        o->full = !text;
        if (text) {
            o->text = text;
            o->room = room;
        }
    }
    if (o->full)
        return;
    memcpy(o->text + o->size, bytes, n);
    o->size += n;
    o->text[o->size] = '\0';
}

__attribute__((format(printf, 2, 3))) static void add(struct output *o, const char *format, ...) {
    char piece[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof piece)
        o->full = true; /* no name is that long */
    else
        add_bytes(o, piece, (size_t)n);
}

/* ---- registers ------------------------------------------------------------------------------------ */

/* "%r<9>" or "%x" of a .reg. */
struct declared {
    struct piece name;
    unsigned long count; /* 0: the name itself */
    unsigned bits;       /* 1: a predicate; 0: a width that is not noted down */
    unsigned depth;
};

struct registers {
    struct declared *all;
    size_t count, room;
};

static unsigned bits_of_type(struct piece type) {
    static const struct {
        const char *part;
        unsigned bits;
    } widths[] = {{"pred", 1},    {"b8", 8},    {"u8", 8},   {"s8", 8},    {"b16", 16},
                  {"u16", 16},    {"s16", 16},  {"f16", 16}, {"bf16", 16}, {"b32", 32},
                  {"u32", 32},    {"s32", 32},  {"f32", 32}, {"tf32", 32}, {"f16x2", 32},
                  {"bf16x2", 32}, {"b64", 64},  {"u64", 64}, {"s64", 64},  {"f64", 64},
                  {"f32x2", 64},  {"b128", 128}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (piece_has(type, widths[i].part))
            return widths[i].bits;
    return 0;
}

static bool declare(struct registers *r, struct declared one) {
    if (r->count == r->room) {
        size_t room = 2 * r->room + 16;
        struct declared *all = realloc(r->all, room * sizeof *all);
        if (!all)
            return false;
        r->all = all;
        r->room = room;
    }
    r->all[r->count++] = one;
    return true;
}

/* ".reg .b32 %r<9>, %x;" */
static bool declare_all(struct registers *r, const struct statement *s) {
    struct piece rest = s->operands, token, type = {"", 0};
    struct declared one = {.depth = s->depth};
    while (piece_token(&token, &rest)) {
        if (piece_is(token, ".")) { /* .b32, .v2 */
            if (piece_token(&token, &rest) && bits_of_type(token))
                type = token;
            one.bits = bits_of_type(type);
        } else if (piece_is(token, "<")) {
            one.count = piece_token(&token, &rest) ? strtoul(token.at, NULL, 10) : 0;
        } else if (piece_is(token, ",")) {
            if (!declare(r, one))
                return false;
            one.count = 0;
        } else if (!piece_is(token, ">")) {
            one.name = token;
        }
    }
    return !one.name.size || declare(r, one);
}

static const struct declared *find_register(const struct registers *r, struct piece name) {
    for (size_t i = r->count; i-- > 0;) {
        const struct declared *d = &r->all[i];
        if (name.size < d->name.size || memcmp(name.at, d->name.at, d->name.size) != 0)
            continue;
        size_t digits = name.size - d->name.size;
        if (d->count == 0 && digits == 0)
            return d;
        bool number = d->count && digits;
        unsigned long n = 0;
        for (size_t k = d->name.size; k < name.size && number; k++) {
            number = isdigit((unsigned char)name.at[k]);
            n = 10 * n + (unsigned long)(name.at[k] - '0');
        }
        if (number && n < d->count)
            return d;
    }
    return NULL;
}

static void leave_scope(struct registers *r, unsigned depth) {
    while (r->count && r->all[r->count - 1].depth > depth)
        r->count--;
}

/* ---- sets of names --------------------------------------------------------------------------------- */

/* Open addressing; a name is the place in the text where it first stood. */
struct names {
    struct piece *slots;
    size_t count, room; /* a power of 2 */
};

static size_t slot_of(const struct names *s, struct piece name) {
    size_t h = 14695981039346656037u;
    for (size_t i = 0; i < name.size; i++)
        h = (h ^ (unsigned char)name.at[i]) * 1099511628211u;
    for (h &= s->room - 1; s->slots[h].size; h = (h + 1) & (s->room - 1))
        if (s->slots[h].size == name.size && memcmp(s->slots[h].at, name.at, name.size) == 0)
            break;
    return h;
}

static bool names_have(const struct names *s, struct piece name) {
    return s->room && s->slots[slot_of(s, name)].size;
}

static bool names_add(struct names *s, struct piece name) {
    if (2 * (s->count + 1) > s->room) {
        struct names larger = {.room = s->room ? 2 * s->room : 64};
        larger.slots = calloc(larger.room, sizeof *larger.slots);
        if (!larger.slots)
            return false;
        for (size_t i = 0; i < s->room; i++)
            if (s->slots[i].size)
                larger.slots[slot_of(&larger, s->slots[i])] = s->slots[i];
        larger.count = s->count;
        free(s->slots);
        *s = larger;
    }
    size_t at = slot_of(s, name);
    s->count += s->slots[at].size == 0;
    s->slots[at] = name;
    return true;
}

/* ---- what an instruction does ----------------------------------------------------------------------- */

static bool begins_with_any(struct piece opcode, const char *const *list) {
    for (; *list; list++) {
        size_t n = strlen(*list);
        if (piece_begins(opcode, *list) && (opcode.size == n || opcode.at[n] == '.'))
            return true;
    }
    return false;
}

/* Instructions whose first operand is no result, or one that nobody can compare. */
static bool has_no_result(struct piece opcode) {
    static const char *const list[] = {"st",
                                       "red",
                                       "atom",
                                       "bar",
                                       "barrier",
                                       "bra",
                                       "brx",
                                       "ret",
                                       "exit",
                                       "trap",
                                       "call",
                                       "membar",
                                       "fence",
                                       "cp",
                                       "prefetch",
                                       "prefetchu",
                                       "applypriority",
                                       "discard",
                                       "wgmma",
                                       "stmatrix",
                                       "mbarrier",
                                       "nanosleep",
                                       "griddepcontrol",
                                       "setmaxnreg",
                                       "createpolicy",
                                       "pmevent",
                                       "brkpt",
                                       "tcgen05",
                                       "isspacep",
                                       "elect",
                                       "clusterlaunchcontrol",
                                       "multimem",
                                       "tensormap",
                                       "alloca",
                                       "stacksave",
                                       "stackrestore",
                                       "activemask",
                                       "mapa",
                                       "getctarank",
                                       "cvta",
                                       "istypep",
                                       "suld",
                                       "sust",
                                       "sured",
                                       "suq",
                                       "tex",
                                       "tld4",
                                       "txq",
                                       NULL};
    return begins_with_any(opcode, list);
}

/* The value comes from another thread or from memory. */
static bool is_foreign(struct piece opcode) {
    static const char *const list[] = {"ld",    "ldu",   "ldmatrix",  "shfl", "vote",
                                       "match", "redux", "movmatrix", NULL};
    return begins_with_any(opcode, list);
}

static bool writes_memory(struct piece opcode) {
    static const char *const list[] = {"st", "red", "atom", NULL};
    static const char *const elsewhere[] = {"shared", "local", "param", "async", "bulk", NULL};
    for (const char *const *part = elsewhere; *part; part++)
        for (size_t i = 0; i + strlen(*part) < opcode.size; i++) /* also .shared::cta */
            if (opcode.at[i] == '.' && memcmp(opcode.at + i + 1, *part, strlen(*part)) == 0)
                return false;
    return begins_with_any(opcode, list);
}

static bool is_float(struct piece opcode) {
    static const char *const parts[] = {"f32", "f64", "f16", "f16x2", "bf16", "bf16x2", "f32x2"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (piece_has(opcode, parts[i]))
            return true;
    return false;
}

/* Special registers that differ from run to run. */
static bool is_unsteady(struct piece name) {
    static const char *const list[] = {
        "%clock",          "%clock_hi",          "%clock64", "%globaltimer",
        "%globaltimer_lo", "%globaltimer_hi",    "%smid",    "%nsmid",
        "%warpid",         "%nwarpid",           "%gridid",  "%total_smem_size",
        "%aggr_smem_size", "%dynamic_smem_size", NULL};
    for (const char *const *one = list; *one; one++)
        if (piece_is(name, *one))
            return true;
    return piece_begins(name, "%envreg") || piece_begins(name, "%pm") ||
           piece_begins(name, "%reserved_smem");
}

/* The first operand, and what follows its comma. */
static struct piece first_operand(struct piece *rest, struct piece operands) {
    struct piece token, left = operands;
    unsigned depth = 0;
    *rest = (struct piece){operands.at + operands.size, 0};
    while (piece_token(&token, &left)) {
        depth += piece_is(token, "{") || piece_is(token, "[");
        depth -= depth && (piece_is(token, "}") || piece_is(token, "]"));
        if (!depth && piece_is(token, ",")) {
            *rest = left;
            return (struct piece){operands.at, (size_t)(token.at - operands.at)};
        }
    }
    return operands;
}

/* ---- addresses --------------------------------------------------------------------------------------- */

/*
 * Registers that may hold an address or what was computed from one.  They are found over the whole
 * text, by name, and integers only: too many are fine, they are only not compared.
 */
static bool is_address_source(const struct statement *s, struct piece sources,
                              const struct registers *registers, const struct names *addresses) {
    struct piece token, rest = sources;
    bool moves = piece_begins(s->word, "mov."), param = false;
    if (piece_begins(s->word, "cvta") || piece_begins(s->word, "mapa") ||
        piece_begins(s->word, "getctarank"))
        return true;
    if (piece_begins(s->word, "ld."))
        param =
            piece_has(s->word, "param") &&
            (piece_has(s->word, "u64") || piece_has(s->word, "b64") || piece_has(s->word, "s64"));
    if (param || is_foreign(s->word) || is_float(s->word))
        return param;
    while (piece_token(&token, &rest)) {
        if (names_have(addresses, token) || (moves && is_unsteady(token)))
            return true;
        bool word = isalpha((unsigned char)*token.at) || *token.at == '_' || *token.at == '$';
        if (word && !find_register(registers, token)) /* a variable */
            return true;
    }
    return false;
}

static bool find_addresses(struct names *addresses, const char *text, size_t size) {
    bool good = true, more = true;
    for (unsigned sweep = 0; good && more && sweep < 64; sweep++) {
        struct registers registers = {0};
        struct scanner scanner = scanner_of(text, size);
        struct statement s;
        size_t before = addresses->count;
        for (scanner_next(&s, &scanner); good && s.kind != STATEMENT_END;
             scanner_next(&s, &scanner)) {
            if (s.kind == STATEMENT_DIRECTIVE && piece_is(s.word, ".reg"))
                good = declare_all(&registers, &s);
            if (s.kind == STATEMENT_CLOSE)
                leave_scope(&registers, s.depth - (s.depth > 0));
            if (s.kind != STATEMENT_INSN || piece_begins(s.word, "st."))
                continue;
            struct piece sources, token, results = first_operand(&sources, s.operands);
            if (!is_address_source(&s, sources, &registers, addresses))
                continue;
            while (good && piece_token(&token, &results))
                if (find_register(&registers, token) && !names_have(addresses, token))
                    good = names_add(addresses, token);
        }
        more = addresses->count != before;
        free(registers.all);
    }
    return good;
}

/* ---- both probes ------------------------------------------------------------------------------------- */

struct rewriter {
    const struct probe *probe;
    struct output out;
    struct registers registers;
    struct names addresses;
    struct piece pending[1024]; /* results of wgmma that are not there yet */
    size_t pending_count;
};

typedef void note_fn(struct rewriter *r, const struct statement *s);

#define REGISTERS " .reg .b64 %%assay_d<6>; .reg .b32 %%assay_r<9>; .reg .pred %%assay_p<6>;"

/* The predicate %assay_p3 := the guard, before the instruction may change it. */
static void keep_guard(struct rewriter *r, const struct statement *s) {
    if (!s->guard.size) /* and guard.at may be NULL */
        return;
    bool negated = s->guard.size > 1 && memchr(s->guard.at, '!', s->guard.size);
    const char *name = s->guard.at + s->guard.size;
    while (name > s->guard.at && name[-1] != '@' && name[-1] != '!' &&
           !isspace((unsigned char)name[-1]))
        name--;
    add(&r->out, "%s.pred %%assay_p3, %.*s; ", negated ? "not" : "mov",
        (int)(s->guard.at + s->guard.size - name), name);
}

/* Copy the text; behind `{` of the entry stands `begin`'s, behind its instructions `note`'s. */
static status_t rewrite(char **out, size_t *out_size, const char *text, size_t size,
                        const struct probe *probe, void begin(struct rewriter *), note_fn *note) {
    struct rewriter *r = calloc(1, sizeof *r);
    struct scanner scanner = scanner_of(text, size);
    struct statement s;
    const char *from = text;
    bool inside = false, good, found = false, ours = false;
    *out = NULL;
    *out_size = 0;
    if (!r)
        return FAIL(ERR_NOMEM, "no memory for a probe");
    r->probe = probe;
    good = find_addresses(&r->addresses, text, size);
    for (scanner_next(&s, &scanner); good && s.kind != STATEMENT_END; scanner_next(&s, &scanner)) {
        if (s.kind == STATEMENT_DIRECTIVE && s.depth == 0) {
            struct piece rest = s.text, token = {0}, last = {0};
            while (piece_token(&token, &rest) && !piece_is(last, "entry"))
                last = *token.at == '.' ? last : token;
            ours = piece_is(last, "entry") && piece_is(token, probe->entry);
        }
        if (s.kind == STATEMENT_DIRECTIVE && piece_is(s.word, ".reg"))
            good = declare_all(&r->registers, &s);
        if (s.kind == STATEMENT_CLOSE) {
            leave_scope(&r->registers, s.depth - (s.depth > 0));
            inside = inside && s.depth > 1;
        }
        bool opens = s.kind == STATEMENT_OPEN && s.depth == 1 && ours;
        if (!opens && !(inside && s.kind == STATEMENT_INSN))
            continue;
        add_bytes(&r->out, from, (size_t)(s.text.at - from));
        if (!opens)
            keep_guard(r, &s);
        add_bytes(&r->out, s.text.at, s.text.size);
        from = s.text.at + s.text.size;
        if (opens)
            begin(r);
        else
            note(r, &s);
        inside = true;
        found = true;
        ours = false;
    }
    add_bytes(&r->out, from, (size_t)(text + size - from));
    status_t st = OK;
    if (!good || r->out.full)
        st = FAIL(ERR_NOMEM, "no memory for a probe");
    else if (!found)
        st = FAIL(ERR_UNSUPPORTED, "no entry %s in the text", probe->entry);
    *out = r->out.text;
    *out_size = r->out.size;
    if (st != OK) {
        free(*out);
        *out = NULL;
    }
    free(r->registers.all);
    free(r->addresses.slots);
    free(r);
    return st;
}

/* ---- who writes there --------------------------------------------------------------------------------- */

/* %assay_d0: notes, d1: the address that is watched, r0-r2: the block. */
static void begin_writers(struct rewriter *r) {
    add(&r->out, REGISTERS);
    add(&r->out,
        " mov.u64 %%assay_d0, %" PRIu64 "; ld.global.u64 %%assay_d1, [%%assay_d0];"
        " mov.u32 %%assay_r0, %%ctaid.x; mov.u32 %%assay_r1, %%ctaid.y; mov.u32 %%assay_r2, "
        "%%ctaid.z;",
        r->probe->notes);
}

static unsigned bytes_written(struct piece opcode) {
    unsigned bits = bits_of_type(opcode);
    unsigned n = piece_has(opcode, "v8")   ? 8
                 : piece_has(opcode, "v4") ? 4
                 : piece_has(opcode, "v2") ? 2
                                           : 1;
    return bits / 8 * n;
}

static void note_writer(struct rewriter *r, const struct statement *s) {
    unsigned bytes = bytes_written(s->word);
    struct piece rest = s->operands, token, base = {0}, offset = {0};
    bool negative = false;
    if (!writes_memory(s->word) || !bytes)
        return;
    while (piece_token(&token, &rest) && !piece_is(token, "["))
        ;
    while (piece_token(&token, &rest) && !piece_is(token, "]")) {
        negative = negative || piece_is(token, "-");
        if (!base.size)
            base = token;
        else if (!piece_is(token, "+") && !piece_is(token, "-"))
            offset = token;
    }
    const struct declared *d = find_register(&r->registers, base);
    if (!d || d->bits != 64)
        return;
    add(&r->out, " %s.s64 %%assay_d2, %.*s, %.*s; sub.s64 %%assay_d2, %%assay_d1, %%assay_d2;",
        negative ? "sub" : "add", (int)base.size, base.at, offset.size ? (int)offset.size : 1,
        offset.size ? offset.at : "0");
    add(&r->out, " setp.lt.u64 %%assay_p1, %%assay_d2, %u;", bytes);
    if (s->guard.size)
        add(&r->out, " and.pred %%assay_p1, %%assay_p1, %%assay_p3;");
    add(&r->out,
        " mov.u32 %%assay_r3, %u; @%%assay_p1 st.global.v4.u32 [%%assay_d0+%d], {%%assay_r0, "
        "%%assay_r1, %%assay_r2, %%assay_r3};",
        s->line, PROBE_WRITER_OFFSET);
}

status_t ptx_probe_writers(char **out, size_t *out_size, const char *text, size_t size,
                           const struct probe *probe) {
    return rewrite(out, out_size, text, size, probe, begin_writers, note_writer);
}

/* ---- traces ------------------------------------------------------------------------------------------- */

/*
 * %assay_d0: where this thread's records stand, d1: where its next one would stand if the buffer had
 * all.  A thread of another block has its next one out of reach.
 */
static void begin_trace(struct rewriter *r) {
    const struct probe *p = r->probe;
    add(&r->out, REGISTERS);
    add(&r->out,
        " mov.u32 %%assay_r0, %%tid.x; mov.u32 %%assay_r1, %%tid.y; mov.u32 %%assay_r2, %%tid.z;"
        " mov.u32 %%assay_r3, %%ntid.x; mov.u32 %%assay_r4, %%ntid.y;"
        " mad.lo.u32 %%assay_r1, %%assay_r2, %%assay_r4, %%assay_r1;"
        " mad.lo.u32 %%assay_r0, %%assay_r1, %%assay_r3, %%assay_r0;");
    add(&r->out,
        " mul.wide.u32 %%assay_d0, %%assay_r0, %" PRIu64
        "; add.s64 %%assay_d0, %%assay_d0, %" PRIu64 "; sub.s64 %%assay_d1, %%assay_d0, %" PRIu64
        "; mov.u64 %%assay_d3, 4611686018427387904;"
        " add.s64 %%assay_d2, %%assay_d1, %%assay_d3;",
        p->count * RECORD_BYTES, p->notes, p->first * RECORD_BYTES);
    add(&r->out,
        " mov.u32 %%assay_r0, %%ctaid.x; mov.u32 %%assay_r1, %%ctaid.y; mov.u32 %%assay_r2, "
        "%%ctaid.z;"
        " setp.eq.u32 %%assay_p0, %%assay_r0, %u; setp.eq.and.u32 %%assay_p0, %%assay_r1, %u, "
        "%%assay_p0; setp.eq.and.u32 %%assay_p0, %%assay_r2, %u, %%assay_p0;"
        " selp.b64 %%assay_d1, %%assay_d1, %%assay_d2, %%assay_p0;",
        p->block[0], p->block[1], p->block[2]);
}

static void add_record(struct rewriter *r, const struct statement *s, struct piece name) {
    const struct declared *d = find_register(&r->registers, name);
    const char *guard = s->guard.size ? "@%assay_p3 " : "";
    if (!d || (d->bits != 1 && d->bits != 16 && d->bits != 32 && d->bits != 64) ||
        names_have(&r->addresses, name))
        return;
    add(&r->out,
        " sub.s64 %%assay_d2, %%assay_d1, %%assay_d0; setp.lt.u64 %%assay_p1, %%assay_d2, "
        "%" PRIu64 ";",
        r->probe->count * RECORD_BYTES);
    if (s->guard.size)
        add(&r->out, " and.pred %%assay_p1, %%assay_p1, %%assay_p3;");
    add(&r->out, " @%%assay_p1 st.global.u32 [%%assay_d1], %u;", s->line);
    add(&r->out, " @%%assay_p1 st.global.u32 [%%assay_d1+4], %u;", d->bits);
    if (d->bits == 1)
        add(&r->out,
            " selp.u32 %%assay_r5, 1, 0, %.*s; @%%assay_p1 st.global.u32 [%%assay_d1+8], "
            "%%assay_r5;",
            (int)name.size, name.at);
    else
        add(&r->out, " @%%assay_p1 st.global.b%u [%%assay_d1+8], %.*s;", d->bits, (int)name.size,
            name.at);
    add(&r->out, " %sadd.s64 %%assay_d1, %%assay_d1, %d;", guard, RECORD_BYTES);
}

static void note_results(struct rewriter *r, const struct statement *s) {
    struct piece rest, token, results = first_operand(&rest, s->operands);
    if (piece_begins(s->word, "wgmma.mma_async")) {
        while (piece_token(&token, &results))
            if (find_register(&r->registers, token) &&
                r->pending_count < sizeof r->pending / sizeof *r->pending)
                r->pending[r->pending_count++] = token;
        return;
    }
    if (piece_begins(s->word, "wgmma.wait_group")) {
        for (size_t i = 0; i < r->pending_count; i++)
            add_record(r, s, r->pending[i]);
        r->pending_count = 0;
        return;
    }
    if (has_no_result(s->word))
        return;
    while (piece_token(&token, &results))
        add_record(r, s, token);
}

status_t ptx_probe_trace(char **out, size_t *out_size, const char *text, size_t size,
                         const struct probe *probe) {
    return rewrite(out, out_size, text, size, probe, begin_trace, note_results);
}

/* ---- places -------------------------------------------------------------------------------------------- */

/* The text with one blank for every run of white space. */
static void copy_text(char *out, size_t size, struct piece piece) {
    size_t n = 0;
    for (size_t i = 0; i < piece.size && n + 1 < size; i++) {
        bool blank = isspace((unsigned char)piece.at[i]);
        if (!blank || (n && out[n - 1] != ' '))
            out[n++] = blank ? ' ' : piece.at[i];
    }
    out[n] = '\0';
}

/* `.file 3 "name"` with this number. */
static void file_name(char *out, size_t size, const char *text, size_t text_size,
                      struct piece number) {
    struct scanner scanner = scanner_of(text, text_size);
    struct statement s;
    out[0] = '\0';
    for (scanner_next(&s, &scanner); s.kind != STATEMENT_END; scanner_next(&s, &scanner)) {
        struct piece rest = s.operands, token;
        if (s.kind != STATEMENT_DIRECTIVE || !piece_is(s.word, ".file") ||
            !piece_token(&token, &rest) || token.size != number.size ||
            memcmp(token.at, number.at, number.size) != 0)
            continue;
        const char *open = memchr(rest.at, '"', rest.size);
        const char *close =
            open ? memchr(open + 1, '"', (size_t)(rest.at + rest.size - open - 1)) : NULL;
        if (close)
            snprintf(out, size, "%.*s", (int)(close - open - 1), open + 1);
    }
}

void ptx_place(struct ptx_place *out, const char *text, size_t size, unsigned line) {
    struct scanner scanner = scanner_of(text, size);
    struct statement s;
    struct piece file = {0};
    *out = (struct ptx_place){0};
    for (scanner_next(&s, &scanner); s.kind != STATEMENT_END && s.line <= line;
         scanner_next(&s, &scanner)) {
        struct piece rest = s.operands, token;
        if (s.kind == STATEMENT_DIRECTIVE && piece_is(s.word, ".loc") &&
            piece_token(&file, &rest) && piece_token(&token, &rest))
            out->source_line = (unsigned)strtoul(token.at, NULL, 10);
        if (s.kind != STATEMENT_INSN || s.line != line || has_no_result(s.word))
            continue;
        copy_text(out->text, sizeof out->text, s.text);
        out->foreign = is_foreign(s.word);
        break;
    }
    if (file.size)
        file_name(out->source, sizeof out->source, text, size, file);
    if (!out->source[0])
        out->source_line = 0;
}
