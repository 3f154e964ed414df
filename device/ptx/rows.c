/*
 * rows.c - registers to rows of the warp's file, so that the file stays small enough for the cache.
 *
 * Backward liveness over basic blocks gives each register one interval of instructions in layout
 * order; registers whose intervals do not meet share a row.  Liveness is a property of one thread,
 * and every write touches active lanes only, so divergence does not break it.  A register that is
 * live at the entry may be read before it is written: the executor starts it at all ones.
 */
#include <stdlib.h>
#include <string.h>

#include "device/ptx/exec.h"

/* Beyond this many words of liveness sets every register simply gets its own row. */
#define MAX_SET_WORDS (1u << 22)
#define MAX_PASSES 64
#define NONE UINT32_MAX

static const char *const patterns[PTX_OP_COUNT] = {
#define INSN(id, name, types, types2, operands, allow, require, handler, what) \
    [PTX_OP_##id] = operands,
#include "device/ptx/opcodes.def"
#undef INSN
};

char operand_letter(const struct ptx_insn *in, unsigned g) {
    const char *s = patterns[in->op];
    for (; g && *s; s++)
        if (*s == ',')
            g--;
    return *s;
}

bool operand_is_dest(char letter) {
    return letter && strchr("bcdDeiprtvwxkER", letter);
}

uint32_t row_bytes(enum ptx_type type) {
    unsigned bits = ptx_type_bits(type);
    return bits > 64 ? ROW128 : bits > 32 ? ROW64 : ROW32;
}

/* ---- which registers an instruction touches -------------------------------------------------- */

struct flow {
    const struct ptx_func *f;
    uint32_t *dense; /* register -> 0 .. count-1, or NONE */
    uint32_t *reg;   /* and back */
    uint32_t count, words;
    uint32_t block_count;
    uint32_t *block_of;       /* instruction -> block */
    uint32_t *first;          /* block -> instruction; block_count + 1 entries */
    uint64_t *in, *use, *def; /* block_count x words: live in, read before written, written */
    uint32_t *begin, *end;    /* interval of each dense register */
};

typedef void touch_fn(struct flow *fl, uint32_t reg, bool write, void *context);

static void touch_registers(struct flow *fl, const struct ptx_insn *in, touch_fn *touch,
                            void *context) {
    for (int pass = 0; pass < 2; pass++) /* reads before writes */
        for (unsigned g = 0; g < in->group_count; g++) {
            char letter = operand_letter(in, g);
            bool dest = operand_is_dest(letter), both = letter == 'R';
            if (dest != (pass == 1) && !both)
                continue;
            for (unsigned i = in->first[g]; i < in->first[g + 1]; i++) {
                const struct ptx_operand *o = &in->opnd[i];
                if ((o->kind == OPND_REG || o->kind == OPND_MEM) && o->reg != PTX_NOREG)
                    touch(fl, o->reg, pass == 1 && o->kind == OPND_REG, context);
            }
        }
    for (size_t i = 0; in->op == PTX_OP_RET && i < fl->f->ret_count; i++)
        if (fl->f->rets[i].reg != PTX_NOREG && !fl->f->rets[i].var)
            touch(fl, fl->f->rets[i].reg, false, context);
}

static void number(struct flow *fl, uint32_t reg, bool write, void *context) {
    (void)write;
    (void)context;
    if (fl->dense[reg] == NONE) {
        fl->dense[reg] = fl->count;
        fl->reg[fl->count++] = reg;
    }
}

/* ---- blocks and liveness --------------------------------------------------------------------- */

static bool ends_block(enum ptx_op op) {
    return op == PTX_OP_BRA || op == PTX_OP_BRX || op == PTX_OP_RET || op == PTX_OP_EXIT;
}

static const struct ptx_table *branch_table(const struct ptx_insn *in) {
    return in->opnd[in->first[1]].table;
}

static void find_blocks(struct flow *fl) {
    size_t n = fl->f->insn_count;
    bool *leader = (bool *)fl->first; /* n + 1 words are there: more than enough for the flags */
    memset(leader, 0, n);
    leader[0] = true;
    for (size_t i = 0; i < n; i++) {
        const struct ptx_insn *in = &fl->f->insns[i];
        if (in->op == PTX_OP_BRA)
            leader[in->opnd[in->first[0]].target] = true;
        if (in->op == PTX_OP_BRX)
            for (size_t k = 0; k < branch_table(in)->count; k++)
                leader[branch_table(in)->targets[k]] = true;
        if (ends_block(in->op) && i + 1 < n)
            leader[i + 1] = true;
    }
    for (size_t i = 0; i < n; i++) {
        fl->block_count += leader[i];
        fl->block_of[i] = fl->block_count - 1;
    }
    for (size_t i = n; i-- > 0;)
        fl->first[fl->block_of[i]] = (uint32_t)i;
    fl->first[fl->block_count] = (uint32_t)n;
}

struct touch_block {
    uint64_t *use, *def;
    bool guarded;
};

static void use_def(struct flow *fl, uint32_t reg, bool write, void *context) {
    struct touch_block *b = context;
    uint32_t r = fl->dense[reg];
    uint64_t bit = (uint64_t)1 << (r % 64);
    if (!write && !(b->def[r / 64] & bit))
        b->use[r / 64] |= bit;
    /* A guarded write leaves the old value in some lanes: it does not end the old one's life. */
    if (write && !b->guarded)
        b->def[r / 64] |= bit;
}

/* Blocks that may follow, but for those in a table: at most two. */
static unsigned successors(const struct flow *fl, uint32_t block, uint32_t next[2]) {
    unsigned n = 0;
    const struct ptx_insn *last = &fl->f->insns[fl->first[block + 1] - 1];
    if (last->op == PTX_OP_BRA)
        next[n++] = fl->block_of[last->opnd[last->first[0]].target];
    bool falls = !ends_block(last->op) || last->guard != PTX_NOREG;
    if (falls && block + 1 < fl->block_count)
        next[n++] = block + 1;
    return n;
}

static uint64_t live_out_word(const struct flow *fl, uint32_t block, uint32_t word) {
    uint32_t next[2];
    uint64_t out = 0;
    for (unsigned i = successors(fl, block, next); i-- > 0;)
        out |= fl->in[(size_t)next[i] * fl->words + word];
    const struct ptx_insn *last = &fl->f->insns[fl->first[block + 1] - 1];
    if (last->op == PTX_OP_BRX)
        for (size_t k = 0; k < branch_table(last)->count; k++)
            out |= fl->in[(size_t)fl->block_of[branch_table(last)->targets[k]] * fl->words + word];
    return out;
}

/* false: it did not settle within MAX_PASSES. */
static bool live_sets(struct flow *fl) {
    for (uint32_t b = 0; b < fl->block_count; b++)
        for (uint32_t i = fl->first[b]; i < fl->first[b + 1]; i++) {
            const struct ptx_insn *in = &fl->f->insns[i];
            size_t at = (size_t)b * fl->words;
            struct touch_block t = {fl->use + at, fl->def + at, in->guard != PTX_NOREG};
            touch_registers(fl, in, use_def, &t);
        }
    for (int pass = 0; pass < MAX_PASSES; pass++) {
        bool changed = false;
        for (uint32_t b = fl->block_count; b-- > 0;)
            for (uint32_t w = 0; w < fl->words; w++) {
                size_t at = (size_t)b * fl->words + w;
                uint64_t in = fl->use[at] | (live_out_word(fl, b, w) & ~fl->def[at]);
                changed |= in != fl->in[at];
                fl->in[at] = in;
            }
        if (!changed)
            return true;
    }
    return false;
}

static void widen(struct flow *fl, uint32_t r, uint32_t at) {
    if (at < fl->begin[r])
        fl->begin[r] = at;
    if (fl->end[r] == NONE || at > fl->end[r])
        fl->end[r] = at;
}

static void widen_touch(struct flow *fl, uint32_t reg, bool write, void *context) {
    (void)write;
    widen(fl, fl->dense[reg], *(const uint32_t *)context);
}

static void widen_set(struct flow *fl, uint32_t word, uint64_t set, uint32_t at) {
    for (; set; set &= set - 1)
        widen(fl, word * 64 + (uint32_t)__builtin_ctzll(set), at);
}

static void intervals(struct flow *fl) {
    for (uint32_t r = 0; r < fl->count; r++)
        fl->begin[r] = fl->end[r] = NONE;
    for (uint32_t i = 0; i < fl->f->insn_count; i++)
        touch_registers(fl, &fl->f->insns[i], widen_touch, &i);
    for (uint32_t b = 0; b < fl->block_count; b++)
        for (uint32_t w = 0; w < fl->words; w++) {
            widen_set(fl, w, fl->in[(size_t)b * fl->words + w], fl->first[b]);
            widen_set(fl, w, live_out_word(fl, b, w), fl->first[b + 1] - 1);
        }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Walk the instructions; a register takes a free row where its interval begins. */
static status_t scan(struct row_map *map, struct flow *fl) {
    size_t n = fl->f->insn_count;
    uint32_t *starts = malloc((n + 1) * sizeof *starts); /* list heads by instruction */
    uint32_t *ends = malloc((n + 1) * sizeof *ends);
    uint32_t *start_next = malloc((fl->count + 1) * sizeof *start_next);
    uint32_t *end_next = malloc((fl->count + 1) * sizeof *end_next);
    uint32_t *free_row[3] = {0}, free_count[3] = {0};
    status_t st = OK;
    for (int k = 0; k < 3; k++)
        free_row[k] = malloc((fl->count + 1) * sizeof *free_row[k]);
    if (!starts || !ends || !start_next || !end_next || !free_row[0] || !free_row[1] ||
        !free_row[2])
        TRY(FAIL(ERR_NOMEM, "no memory for the registers of '%s'", fl->f->name));
    memset(starts, 0xff, (n + 1) * sizeof *starts);
    memset(ends, 0xff, (n + 1) * sizeof *ends);
    for (uint32_t r = fl->count; r-- > 0;) {
        start_next[r] = starts[fl->begin[r]];
        starts[fl->begin[r]] = r;
        end_next[r] = ends[fl->end[r]];
        ends[fl->end[r]] = r;
    }
    for (size_t i = 0; i < n; i++) {
        for (uint32_t r = starts[i]; r != NONE; r = start_next[r]) {
            uint32_t bytes = row_bytes(fl->f->regs[fl->reg[r]].type);
            int k = bytes == ROW32 ? 0 : bytes == ROW64 ? 1 : 2;
            if (free_count[k]) {
                map->row[fl->reg[r]] = free_row[k][--free_count[k]];
            } else {
                map->row[fl->reg[r]] = map->next;
                map->next += bytes;
            }
        }
        for (uint32_t r = ends[i]; r != NONE; r = end_next[r]) {
            uint32_t bytes = row_bytes(fl->f->regs[fl->reg[r]].type);
            int k = bytes == ROW32 ? 0 : bytes == ROW64 ? 1 : 2;
            free_row[k][free_count[k]++] = map->row[fl->reg[r]];
        }
    }
done:
    free(starts);
    free(ends);
    free(start_next);
    free(end_next);
    for (int k = 0; k < 3; k++)
        free(free_row[k]);
    return st;
}

static void one_row_each(struct row_map *map, const struct flow *fl) {
    for (uint32_t r = 0; r < fl->count; r++) {
        map->row[fl->reg[r]] = map->next;
        map->next += row_bytes(fl->f->regs[fl->reg[r]].type);
        map->live_in[fl->reg[r]] = true;
    }
}

static void flow_clear(struct flow *fl) {
    free(fl->dense);
    free(fl->reg);
    free(fl->block_of);
    free(fl->first);
    free(fl->in);
    free(fl->begin);
    free(fl->end);
}

status_t rows_assign(struct row_map *map, const struct ptx_func *f, uint32_t first_row) {
    status_t st = OK;
    struct flow fl = {.f = f};
    *map = (struct row_map){.next = first_row};
    map->row = calloc(f->reg_count + 1, sizeof *map->row);
    map->live_in = calloc(f->reg_count + 1, sizeof *map->live_in);
    fl.dense = malloc((f->reg_count + 1) * sizeof *fl.dense);
    fl.reg = malloc((f->reg_count + 1) * sizeof *fl.reg);
    fl.block_of = malloc((f->insn_count + 1) * sizeof *fl.block_of);
    fl.first = malloc((f->insn_count + 2) * sizeof *fl.first);
    if (!map->row || !map->live_in || !fl.dense || !fl.reg || !fl.block_of || !fl.first)
        TRY(FAIL(ERR_NOMEM, "no memory for the registers of '%s'", f->name));
    memset(fl.dense, 0xff, (f->reg_count + 1) * sizeof *fl.dense);
    for (size_t i = 0; i < f->insn_count; i++)
        touch_registers(&fl, &f->insns[i], number, NULL);
    if ((uint64_t)fl.count * ROW128 > UINT32_MAX / 2)
        TRY(FAIL(ERR_NOMEM, "'%s' uses %u registers: too many", f->name, fl.count));
    find_blocks(&fl);
    fl.words = (fl.count + 63) / 64;
    size_t set = (size_t)fl.block_count * fl.words;
    if (set <= MAX_SET_WORDS) {
        fl.in = calloc(set * 3 + 1, sizeof *fl.in);
        fl.begin = malloc((fl.count + 1) * sizeof *fl.begin);
        fl.end = malloc((fl.count + 1) * sizeof *fl.end);
        if (!fl.in || !fl.begin || !fl.end)
            TRY(FAIL(ERR_NOMEM, "no memory for the registers of '%s'", f->name));
        fl.use = fl.in + set;
        fl.def = fl.use + set;
        if (live_sets(&fl)) {
            intervals(&fl);
            for (uint32_t r = 0; r < fl.count; r++)
                map->live_in[fl.reg[r]] = fl.in[r / 64] >> (r % 64) & 1;
            TRY(scan(map, &fl));
            goto done;
        }
    }
    one_row_each(map, &fl);
done:
    flow_clear(&fl);
    if (st != OK)
        rows_clear(map);
    return st;
}

void rows_clear(struct row_map *map) {
    free(map->row);
    free(map->live_in);
    *map = (struct row_map){0};
}
