/*
 * call.c - functions: which ones a program has, and what call and ret do to the lanes.
 *
 * Each function has rows of its own, so a call moves no registers but its arguments.  A function
 * that can be called again before it returns (a cycle in the graph of calls) has its rows saved by
 * the call and restored by the return.  Variables of a function lie in a stack in the thread's local
 * memory; the lanes of one frame were called together, but each lane has its own base and caller.
 */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/ptx/exec.h"

#define NONE UINT32_MAX
#define FRAME_LINK 16u      /* bytes that every frame takes beside its variables */
#define MANY_FUNCTIONS 512u /* so many are not looked at: they all count as cyclic */

/* ---- which functions a program has ----------------------------------------------------------- */

struct graph {
    struct program *p;
    size_t room, edge_count, edge_room;
    uint32_t *from, *to; /* edges, in the order of `from`, each once */
    uint32_t *last;      /* by callee: 1 + the last `from` that has an edge to it */
    size_t *first;       /* by function: its first edge; one more at the end */
};

static status_t push_edge(struct graph *g, uint32_t from, uint32_t to) {
    uint32_t *last = &g->last[g->p->xfuncs[to].func->index];
    if (*last == from + 1)
        return OK;
    *last = from + 1;
    if (g->edge_count == g->edge_room) {
        size_t room = g->edge_room ? g->edge_room * 2 : 32;
        uint32_t *f = realloc(g->from, room * sizeof *f);
        g->from = f ? f : g->from;
        uint32_t *t = realloc(g->to, room * sizeof *t);
        g->to = t ? t : g->to;
        if (!f || !t)
            return FAIL(ERR_NOMEM, "no memory for a program");
        g->edge_room = room;
    }
    g->from[g->edge_count] = from;
    g->to[g->edge_count++] = to;
    return OK;
}

static status_t add_function(uint32_t *index, struct graph *g, const struct ptx_func *f) {
    struct program *p = g->p;
    uint32_t *known = f->is_func ? &p->xfunc_of[f->index] : NULL;
    if (known && *known != NONE) {
        *index = *known;
        return OK;
    }
    if (p->xfunc_count == g->room) {
        size_t room = g->room ? g->room * 2 : 4;
        struct xfunc *bigger = realloc(p->xfuncs, room * sizeof *bigger);
        if (!bigger)
            return FAIL(ERR_NOMEM, "no memory for a program");
        p->xfuncs = bigger;
        g->room = room;
    }
    *index = (uint32_t)p->xfunc_count++;
    p->xfuncs[*index] = (struct xfunc){.func = f};
    if (known)
        *known = *index;
    return OK;
}

static size_t actual_bytes(const struct ptx_func *caller, const struct ptx_operand *o,
                           size_t formal) {
    switch (o->kind) {
    case OPND_VAR:
        return o->var->size;
    case OPND_REG:
        return ptx_type_bits(caller->regs[o->reg].type) / 8;
    default:
        return formal <= 8 ? formal : 0; /* a constant is as wide as it has to be */
    }
}

static bool actuals_fit(const struct ptx_func *caller, const struct ptx_insn *in, unsigned group,
                        const struct ptx_formal *formals, size_t count) {
    if ((size_t)(in->first[group + 1] - in->first[group]) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (actual_bytes(caller, &in->opnd[in->first[group] + i], formals[i].bytes) !=
            formals[i].bytes)
            return false;
    return true;
}

static bool call_fits(const struct ptx_func *caller, const struct ptx_insn *in,
                      const struct ptx_func *callee) {
    return actuals_fit(caller, in, 0, callee->rets, callee->ret_count) &&
           actuals_fit(caller, in, 2, callee->args, callee->arg_count);
}

static bool is_assertion(const struct ptx_func *f) {
    return !f->defined && strcmp(f->name, "__assertfail") == 0 && f->arg_count >= 4;
}

static const struct ptx_operand *callee_of(const struct ptx_insn *in) {
    return &in->opnd[in->first[1]];
}

static status_t add_callee(struct graph *g, uint32_t from, const struct ptx_insn *in,
                           const struct ptx_func *callee) {
    status_t st = OK;
    const char *label = g->p->module->label;
    const struct ptx_func *caller = g->p->xfuncs[from].func;
    uint32_t to;
    bool direct = callee_of(in)->kind == OPND_FUNC;
    if (direct && !call_fits(caller, in, callee))
        return FAIL(ERR_SYNTAX, "%s:%u: the arguments or results are not those that '%s' has",
                    label, in->line, callee->name);
    if (is_assertion(callee))
        return OK;
    if (!callee->defined)
        return FAIL(ERR_UNSUPPORTED, "%s:%u: calls '%s', which is not defined here", label,
                    in->line, callee->name);
    TRY(add_function(&to, g, callee));
    TRY(push_edge(g, from, to));
done:
    return st;
}

static status_t add_callees(struct graph *g, uint32_t from, const struct ptx_insn *in) {
    status_t st = OK;
    const struct ptx_module *m = g->p->module;
    const struct ptx_operand *callee = callee_of(in);
    if (callee->kind == OPND_FUNC)
        return add_callee(g, from, in, callee->func);
    const struct ptx_table *t = in->opnd[in->first[3]].table;
    for (size_t i = 0; i < t->count; i++)
        TRY(add_callee(g, from, in, t->funcs[i]));
    for (size_t i = 0; t->any && i < m->callee_count; i++)
        if (m->callees[i]->address_taken && m->callees[i]->defined)
            TRY(add_callee(g, from, in, m->callees[i]));
done:
    return st;
}

/* Can `index` be reached from itself? */
static status_t find_cycle(struct graph *g, uint32_t index) {
    size_t n = g->p->xfunc_count, count = 1;
    bool *seen = calloc(n, 1);
    uint32_t *left = malloc(n * sizeof *left);
    if (!seen || !left) {
        free(seen);
        free(left);
        return FAIL(ERR_NOMEM, "no memory for a program");
    }
    left[0] = index;
    while (count && !g->p->xfuncs[index].cyclic) {
        uint32_t at = left[--count];
        for (size_t e = g->first[at]; e < g->first[at + 1]; e++) {
            g->p->xfuncs[index].cyclic |= g->to[e] == index;
            if (!seen[g->to[e]]) {
                seen[g->to[e]] = true;
                left[count++] = g->to[e];
            }
        }
    }
    free(seen);
    free(left);
    return OK;
}

static uint64_t frame_bytes(const struct xfunc *f) {
    return size_align(f->func->local_bytes, 16) + FRAME_LINK;
}

static bool has_alloca(const struct program *p) {
    for (size_t i = 0; i < p->xfunc_count; i++)
        for (size_t k = 0; k < p->xfuncs[i].func->insn_count; k++)
            if (p->xfuncs[i].func->insns[k].op == PTX_OP_ALLOCA)
                return true;
    return false;
}

status_t program_functions(struct program *p) {
    status_t st = OK;
    struct graph g = {.p = p};
    uint32_t entry;
    size_t callees = p->module->callee_count;
    p->xfunc_of = malloc((callees + 1) * sizeof *p->xfunc_of);
    if (!p->xfunc_of)
        return FAIL(ERR_NOMEM, "no memory for a program");
    memset(p->xfunc_of, 0xff, (callees + 1) * sizeof *p->xfunc_of);
    g.last = calloc(callees + 1, sizeof *g.last);
    if (!g.last)
        TRY(FAIL(ERR_NOMEM, "no memory for a program"));
    TRY(add_function(&entry, &g, p->func));
    for (uint32_t i = 0; i < p->xfunc_count; i++)
        for (size_t k = 0; k < p->xfuncs[i].func->insn_count; k++)
            if (p->xfuncs[i].func->insns[k].op == PTX_OP_CALL)
                TRY(add_callees(&g, i, &p->xfuncs[i].func->insns[k]));
    g.first = calloc(p->xfunc_count + 1, sizeof *g.first);
    if (!g.first)
        TRY(FAIL(ERR_NOMEM, "no memory for a program"));
    for (size_t e = 0; e < g.edge_count; e++)
        g.first[g.from[e] + 1] = e + 1;
    for (size_t i = 0; i < p->xfunc_count; i++)
        if (g.first[i + 1] < g.first[i])
            g.first[i + 1] = g.first[i];
    p->static_shared = p->func->static_shared;
    p->local_bytes = p->func->local_bytes;
    bool recursive = false;
    for (uint32_t i = 1; i < p->xfunc_count; i++) {
        struct xfunc *f = &p->xfuncs[i];
        if (p->xfunc_count > MANY_FUNCTIONS)
            f->cyclic = true;
        else
            TRY(find_cycle(&g, i));
        recursive |= f->cyclic;
        f->shared_base = size_align(p->static_shared, 16);
        if (f->func->static_shared)
            p->static_shared = f->shared_base + f->func->static_shared;
        p->local_bytes += frame_bytes(f); /* without cycles each has one frame at most */
    }
    if (p->xfunc_count > 1)
        p->local_bytes = size_align(p->local_bytes, 16) + 2 * FRAME_LINK;
    if (recursive)
        p->local_bytes += PTX_RECURSION_BYTES;
    p->stack_bytes = p->local_bytes;
    if (has_alloca(p))
        p->local_bytes = size_align(p->stack_bytes, 16) + PTX_ALLOCA_BYTES;
done:
    free(g.from);
    free(g.to);
    free(g.last);
    free(g.first);
    return st;
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct frame {
    const struct xinsn *call;
    const struct xfunc *callee;
    uint32_t mask; /* lanes that are in it, or in what it called */
    uint32_t next_free;
    uint32_t caller[LANES], stack[LANES]; /* what in_frame and stack were */
    uint32_t alloca_top[LANES];           /* likewise */
    uint8_t *saved;                       /* the callee's rows and predicates before the call */
    size_t saved_bytes;
};

static void free_frame(struct warp *w, uint32_t i) {
    struct frame *f = &w->frame[i];
    w->launch->stack_left += f->saved_bytes;
    free(f->saved);
    *f = (struct frame){.next_free = w->free_frame};
    w->free_frame = i;
}

static uint32_t alloca_begin(const struct program *p) {
    return (uint32_t)size_align(p->stack_bytes, 16);
}

void call_begin(struct warp *w) {
    w->free_frame = 0;
    for (size_t i = w->frame_room; i-- > 1;)
        free_frame(w, (uint32_t)i);
    memset(w->in_frame, 0, sizeof w->in_frame);
    memset(w->stack, 0, sizeof w->stack);
    for (unsigned lane = 0; lane < LANES; lane++)
        w->alloca_top[lane] = alloca_begin(w->launch->program);
}

void call_end(struct warp *w) {
    for (size_t i = 1; i < w->frame_room; i++)
        free(w->frame[i].saved);
    free(w->frame);
    w->frame = NULL;
    w->frame_room = 0;
}

/* Frame 0 is never used: 0 is the end of the list of free ones, and the entry. */
static uint32_t new_frame(struct warp *w) {
    if (!w->free_frame) {
        size_t room = w->frame_room ? w->frame_room * 2 : 8;
        uint64_t bytes = (room - w->frame_room) * sizeof *w->frame;
        if (bytes > w->launch->stack_left)
            return 0;
        struct frame *bigger = realloc(w->frame, room * sizeof *bigger);
        if (!bigger)
            return 0;
        w->launch->stack_left -= bytes;
        memset(bigger + w->frame_room, 0, (room - w->frame_room) * sizeof *bigger);
        w->frame = bigger;
        for (size_t i = room; i-- > (w->frame_room ? w->frame_room : 1);) {
            bigger[i].next_free = w->free_frame;
            w->free_frame = (uint32_t)i;
        }
        w->frame_room = room;
    }
    uint32_t i = w->free_frame;
    w->free_frame = w->frame[i].next_free;
    return i;
}

void call_exit(struct warp *w, uint32_t lanes) {
    if (!w->frame)
        return;
    FOR_LANES(lane, lanes)
    for (uint32_t i = w->in_frame[lane], up; i; i = up) {
        up = w->frame[i].caller[lane];
        w->frame[i].mask &= ~(1u << lane);
        if (!w->frame[i].mask)
            free_frame(w, i);
    }
}

static const struct xfunc *function_of(const struct warp *w, unsigned lane) {
    uint32_t i = w->in_frame[lane];
    return i ? w->frame[i].callee : w->launch->program->xfuncs;
}

/* Rows with addresses in the frame that the lanes are in now. */
static void place_rows(struct warp *w, const struct xfunc *f, uint32_t lanes) {
    const struct program *p = w->launch->program;
    for (size_t i = f->frame_first; i < f->frame_end; i++)
        FOR_LANES(lane, lanes) {
            uint64_t at = w->stack[lane] + p->frames[i].offset;
            if (p->frames[i].wide)
                row64(w, p->frames[i].row)[lane] = at;
            else
                row32(w, p->frames[i].row)[lane] = (uint32_t)at;
        }
}

/* Swap in: the callee's registers as they are, to `saved` or back, in the columns of the lanes. */
static void move_rows(struct warp *w, const struct xfunc *f, uint8_t *saved, uint32_t lanes,
                      bool save) {
    size_t bytes = f->row_end - f->row_first, preds = f->pred_end - f->pred_first;
    /* A column is 4 bytes of each 128, whatever the row's width: move the pairs of 64-bit rows. */
    for (uint32_t i = 0; i < f->func->reg_count; i++) {
        uint32_t row = f->row[i];
        if (f->func->regs[i].type == PTX_PRED || row < f->row_first)
            continue;
        unsigned width = row_bytes(f->func->regs[i].type) / LANES;
        size_t at = row - f->row_first;
        FOR_LANES(lane, lanes) {
            uint8_t *here = w->file + row + (size_t)lane * width,
                    *there = saved + at + lane * width;
            memcpy(save ? there : here, save ? here : there, width);
        }
    }
    for (size_t i = 0; i < preds; i++) {
        uint32_t *here = &w->pred[f->pred_first + i], there;
        memcpy(&there, saved + bytes + i * 4, 4);
        if (save)
            memcpy(saved + bytes + i * 4, here, 4);
        else
            *here = (*here & ~lanes) | (there & lanes);
    }
}

/* ---- values between functions ---------------------------------------------------------------- */

/* A register, a variable in a frame or a constant, on the caller's or the callee's side. */
struct slot {
    const struct ptx_var *var;
    bool constant;
    uint32_t row;
    uint64_t imm;
};

static struct slot actual_slot(const struct xfunc *f, const struct ptx_operand *o) {
    return (struct slot){.var = o->kind == OPND_VAR ? o->var : NULL,
                         .constant = o->kind == OPND_IMM,
                         .row = o->kind == OPND_REG ? f->row[o->reg] : 0,
                         .imm = o->imm};
}

static struct slot formal_slot(const struct xfunc *f, const struct ptx_formal *formal) {
    return (struct slot){.var = formal->var, .row = formal->var ? 0 : f->row[formal->reg]};
}

static uint64_t stack_offset(const struct warp *w, unsigned lane, uint32_t base,
                             const struct ptx_var *v) {
    return (w->index * LANES + lane) * (uint64_t)w->launch->program->local_bytes + base + v->offset;
}

static uint64_t get_slot(const struct warp *w, const struct slot *s, size_t bytes, unsigned lane,
                         uint32_t base) {
    uint64_t v = 0;
    if (s->constant)
        return s->imm;
    if (s->var)
        memcpy(&v, w->block->local.host + stack_offset(w, lane, base, s->var), bytes);
    else
        v = bytes == 8 ? row64(w, s->row)[lane] : row32(w, s->row)[lane];
    return v;
}

static void put_slot(struct warp *w, const struct slot *s, size_t bytes, unsigned lane,
                     uint32_t base, uint64_t v) {
    if (s->var) {
        uint64_t at = stack_offset(w, lane, base, s->var);
        memcpy(w->block->local.host + at, &v, bytes);
        shadow_mark(&w->block->local, at, bytes, true);
    } else if (bytes == 8) {
        row64(w, s->row)[lane] = v;
    } else {
        row32(w, s->row)[lane] = bytes == 2 ? (uint16_t)v : (uint32_t)v;
    }
}

/* From variable to variable, with what the shadow knows of every byte. */
static void copy_slot(struct warp *w, const struct slot *to, uint32_t to_base,
                      const struct slot *from, uint32_t from_base, size_t bytes, unsigned lane) {
    struct region *r = &w->block->local;
    uint64_t d = stack_offset(w, lane, to_base, to->var);
    uint64_t s = stack_offset(w, lane, from_base, from->var);
    memmove(r->host + d, r->host + s, bytes);
    for (size_t i = 0; r->written && i < bytes; i++)
        shadow_mark(r, d + i, 1, r->written[(s + i) / 4] >> ((s + i) & 3) & 1);
}

/* One parameter or result of all lanes on its way: what goes through registers waits here. */
struct transfer {
    struct slot from, to;
    size_t bytes;
    uint64_t value[LANES];
};

#define MAX_TRANSFERS 64

static bool through_memory(const struct transfer *t) {
    return t->from.var && t->to.var;
}

static void take(struct transfer *t, const struct warp *w, uint32_t lanes) {
    if (through_memory(t))
        return;
    FOR_LANES(lane, lanes)
    t->value[lane] = get_slot(w, &t->from, t->bytes, lane, w->stack[lane]);
}

static void give(const struct transfer *t, struct warp *w, uint32_t lanes,
                 const uint32_t from_base[LANES]) {
    FOR_LANES(lane, lanes) {
        if (through_memory(t))
            copy_slot(w, &t->to, w->stack[lane], &t->from, from_base[lane], t->bytes, lane);
        else
            put_slot(w, &t->to, t->bytes, lane, w->stack[lane], t->value[lane]);
    }
}

/* ---- call ------------------------------------------------------------------------------------ */

/* The text at a generic address, cut to room - 1 characters. */
static void read_text(char *out, size_t room, const struct warp *w, uint64_t address) {
    const struct region *r = mem_find(w, address);
    size_t n = 0;
    while (r && n + 1 < room && address - r->lo < r->size && r->host[address - r->lo]) {
        uint8_t c = r->host[address++ - r->lo];
        out[n++] = c >= ' ' && c < 0x7f ? (char)c : '?';
    }
    out[n] = '\0';
}

static void report_assertion(struct warp *w, const struct xinsn *x, const struct xfunc *caller,
                             unsigned lane) {
    uint64_t arg[3] = {0, 0, 0}; /* message, file, line */
    char message[48], file[48];
    for (unsigned i = 0; i < 3; i++) {
        struct slot s = actual_slot(caller, &x->insn->opnd[x->insn->first[2] + i]);
        size_t bytes = callee_of(x->insn)->func->args[i].bytes;
        arg[i] = get_slot(w, &s, bytes < 8 ? bytes : 8, lane, w->stack[lane]);
    }
    read_text(message, sizeof message, w, arg[0]);
    read_text(file, sizeof file, w, arg[1]);
    fault_record(w, x, lane, FAULT_TRAP, 0, "fails the assertion '%s' at %s:%u", message, file,
                 (unsigned)arg[2]);
}

static bool overflow(struct warp *w, const struct xinsn *x, unsigned lane,
                     const struct xfunc *callee) {
    fault_record(w, x, lane, FAULT_OUT_OF_BOUNDS, 0,
                 "calls '%s' so deep that its stack of %zu bytes is full", callee->func->name,
                 w->launch->program->stack_bytes);
    return false;
}

static void enter_frame(struct warp *w, uint32_t index, const struct xinsn *x,
                        const struct xfunc *callee, uint32_t lanes, const uint32_t base[LANES]) {
    const struct program *p = w->launch->program;
    struct frame *f = &w->frame[index];
    struct region *local = &w->block->local;
    f->call = x;
    f->callee = callee;
    f->mask = lanes;
    FOR_LANES(lane, lanes) {
        f->caller[lane] = w->in_frame[lane];
        f->stack[lane] = w->stack[lane];
        f->alloca_top[lane] = w->alloca_top[lane];
        w->in_frame[lane] = index;
        w->stack[lane] = base[lane];
        uint64_t at = (w->index * LANES + lane) * (uint64_t)p->local_bytes + base[lane];
        memset(local->host + at, 0xff, callee->func->local_bytes); /* poison, as in every block */
        shadow_mark(local, at, callee->func->local_bytes, false);
    }
    for (size_t i = callee->start_first; i < callee->start_end; i++)
        FOR_LANES(lane, lanes) {
            const struct row_start *s = &p->starts[i];
            unsigned width = s->bytes / LANES;
            memset(w->file + s->row + (size_t)lane * width, 0xff, width);
            if (s->narrow)
                row32(w, s->row)[lane] = 0xffff;
        }
    place_rows(w, callee, lanes);
    launch_charge(w->launch, callee->func->local_bytes / 8);
}

static bool enter(struct warp *w, const struct xinsn *x, const struct xfunc *callee,
                  uint32_t lanes) {
    const struct xfunc *caller = function_of(w, lowest(lanes));
    const struct ptx_insn *in = x->insn;
    static _Thread_local struct transfer moves[MAX_TRANSFERS];
    size_t count = callee->func->arg_count;
    uint32_t base[LANES] = {0}, before[LANES];
    memcpy(before, w->stack, sizeof before);
    FOR_LANES(lane, lanes) {
        uint64_t at = size_align(w->stack[lane] + frame_bytes(caller), 16);
        if (at + frame_bytes(callee) > w->launch->program->stack_bytes)
            return overflow(w, x, lane, callee);
        base[lane] = (uint32_t)at;
    }
    for (size_t i = 0; i < count; i++) {
        moves[i].from = actual_slot(caller, &in->opnd[in->first[2] + i]);
        moves[i].to = formal_slot(callee, &callee->func->args[i]);
        moves[i].bytes = callee->func->args[i].bytes;
        take(&moves[i], w, lanes);
    }
    uint32_t index = new_frame(w);
    if (!index)
        return overflow(w, x, lowest(lanes), callee);
    if (callee->cyclic) {
        struct frame *f = &w->frame[index];
        f->saved_bytes = callee->row_end - callee->row_first +
                         (size_t)(callee->pred_end - callee->pred_first) * 4 + 1;
        f->saved = f->saved_bytes <= w->launch->stack_left ? malloc(f->saved_bytes) : NULL;
        if (!f->saved) {
            f->saved_bytes = 0;
            free_frame(w, index);
            return overflow(w, x, lowest(lanes), callee);
        }
        w->launch->stack_left -= f->saved_bytes;
        memset(f->saved, 0, f->saved_bytes);
        move_rows(w, callee, f->saved, lanes, true);
    }
    enter_frame(w, index, x, callee, lanes, base);
    for (size_t i = 0; i < count; i++)
        give(&moves[i], w, lanes, before);
    return true;
}

/* The function that the lane calls; NULL: a fault is recorded. */
static const struct xfunc *callee_at(struct warp *w, const struct xinsn *x, unsigned lane) {
    const struct program *p = w->launch->program;
    const struct ptx_operand *callee = callee_of(x->insn);
    if (callee->kind == OPND_FUNC)
        return &p->xfuncs[p->xfunc_of[callee->func->index]];
    uint64_t address = row64(w, x->a)[lane], index = (address - WINDOW_CODE) / 16;
    uint32_t known = NONE;
    if (address >= WINDOW_CODE && address % 16 == 0 && index < p->module->callee_count)
        known = p->xfunc_of[index];
    const struct ptx_table *t = x->insn->opnd[x->insn->first[3]].table;
    bool listed = t->any;
    for (size_t i = 0; i < t->count; i++)
        listed |= t->funcs[i]->index == index;
    if (known != NONE && listed &&
        call_fits(function_of(w, lane)->func, x->insn, p->xfuncs[known].func))
        return &p->xfuncs[known];
    fault_record(w, x, lane, FAULT_OUT_OF_BOUNDS, address,
                 "calls 0x%llx, which is no function that it may call here",
                 (unsigned long long)address);
    return NULL;
}

const struct xinsn *call_enter(struct warp *w, const struct xinsn *x, uint32_t m) {
    const struct ptx_operand *callee = callee_of(x->insn);
    const struct xinsn *target = NULL;
    if (callee->kind == OPND_FUNC && is_assertion(callee->func)) {
        report_assertion(w, x, function_of(w, lowest(m)), lowest(m));
        return leave(w, LEAVE_FAULT, x, x + 1);
    }
    if (w->mask & ~m)
        warp_split(w, w->mask & ~m, x + 1);
    unsigned depth = w->path[w->current].depth + 1;
    for (uint32_t left = m, lanes; left; left &= ~lanes) {
        lanes = callee->kind == OPND_FUNC ? left : 0;
        FOR_LANES(lane, lanes ? 0 : left)
        if (row64(w, x->a)[lane] == row64(w, x->a)[lowest(left)])
            lanes |= 1u << lane;
        const struct xfunc *f = callee_at(w, x, lowest(lanes));
        if (!f || !enter(w, x, f, lanes))
            return leave(w, LEAVE_FAULT, x, x + 1);
        if (lanes == left) /* the last ones stay on this path */
            target = f->code;
        else
            warp_split(w, lanes, f->code)->depth = depth;
    }
    w->path[w->current].depth = depth;
    return leave(w, LEAVE_AGAIN, target, x + 1);
}

/* ---- ret ------------------------------------------------------------------------------------- */

/* The lanes leave their frame; where they go on. */
static const struct xinsn *leave_frame(struct warp *w, uint32_t index, uint32_t lanes) {
    static _Thread_local struct transfer moves[MAX_TRANSFERS];
    struct frame *f = &w->frame[index];
    const struct xinsn *call = f->call;
    const struct ptx_insn *in = call->insn;
    const struct xfunc *callee = f->callee;
    uint32_t caller_frame = f->caller[lowest(lanes)];
    const struct xfunc *caller =
        caller_frame ? w->frame[caller_frame].callee : w->launch->program->xfuncs;
    uint32_t before[LANES];
    memcpy(before, w->stack, sizeof before);
    for (size_t i = 0; i < callee->func->ret_count; i++) {
        moves[i].from = formal_slot(callee, &callee->func->rets[i]);
        moves[i].to = actual_slot(caller, &in->opnd[in->first[0] + i]);
        moves[i].bytes = callee->func->rets[i].bytes;
        take(&moves[i], w, lanes);
    }
    if (f->saved)
        move_rows(w, callee, f->saved, lanes, false);
    FOR_LANES(lane, lanes) {
        w->in_frame[lane] = f->caller[lane];
        w->stack[lane] = f->stack[lane];
        w->alloca_top[lane] = f->alloca_top[lane];
    }
    for (size_t i = 0; i < callee->func->ret_count; i++)
        give(&moves[i], w, lanes, before);
    if (caller->cyclic)
        place_rows(w, caller, lanes);
    f->mask &= ~lanes;
    if (!f->mask)
        free_frame(w, index);
    return call + 1;
}

const struct xinsn *call_return(struct warp *w, const struct xinsn *x, uint32_t m) {
    const struct xinsn *target = NULL;
    if (w->mask & ~m)
        warp_split(w, w->mask & ~m, x + 1);
    unsigned depth = w->path[w->current].depth;
    depth -= depth > 0;
    for (uint32_t left = m, lanes; left; left &= ~lanes) {
        uint32_t index = w->in_frame[lowest(left)];
        lanes = 0;
        FOR_LANES(lane, left)
        lanes |= w->in_frame[lane] == index ? 1u << lane : 0;
        const struct xinsn *next = leave_frame(w, index, lanes);
        if (lanes == left)
            target = next;
        else
            warp_split(w, lanes, next)->depth = depth;
    }
    w->path[w->current].depth = depth;
    return leave(w, LEAVE_AGAIN, target, x + 1);
}

/* ---- alloca: PTX ISA 9.7.17 ------------------------------------------------------------------ */

bool call_alloca(uint64_t *at, struct warp *w, unsigned lane, uint64_t bytes, uint64_t align) {
    const struct program *p = w->launch->program;
    uint64_t first = size_align(w->alloca_top[lane], align);
    if (first > p->local_bytes || bytes > p->local_bytes - first)
        return false;
    uint64_t place = (w->index * LANES + lane) * (uint64_t)p->local_bytes + first;
    memset(w->block->local.host + place, 0xff, bytes);
    shadow_mark(&w->block->local, place, bytes, false);
    launch_charge(w->launch, bytes / 8);
    w->alloca_top[lane] = (uint32_t)(first + bytes);
    *at = first;
    return true;
}

bool call_alloca_restore(struct warp *w, unsigned lane, uint64_t at) {
    uint32_t frame = w->in_frame[lane];
    uint64_t begin = frame ? w->frame[frame].alloca_top[lane] : alloca_begin(w->launch->program);
    if (at < begin || at > w->alloca_top[lane])
        return false;
    w->alloca_top[lane] = (uint32_t)at;
    return true;
}
