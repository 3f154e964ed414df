/* fault.c - what went wrong, where, in words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device/ptx/exec.h"

const char *dev_fault_name(enum dev_fault_kind kind) {
    switch (kind) {
    case FAULT_OUT_OF_BOUNDS: return "out of bounds";
    case FAULT_MISALIGNED: return "misaligned";
    case FAULT_UNWRITTEN: return "unwritten";
    case FAULT_RACE: return "race";
    case FAULT_DIVERGENT_BARRIER: return "divergent barrier";
    case FAULT_BAD_SHUFFLE: return "bad shuffle";
    case FAULT_INSN_BUDGET: return "instruction budget";
    case FAULT_TRAP: return "trap";
    case FAULT_GUARD: return "guard";
    case FAULT_INPUT: return "input changed";
    case FAULT_TENSOR_MAP: return "tensor map";
    case FAULT_DEVICE: return "device";
    }
    return "unknown";
}

/*
 * One loop gives thousands of equal faults: one record per kind and instruction, all are counted.
 */
static bool is_repeated(const struct dev_run *run, enum dev_fault_kind kind, unsigned line) {
    for (size_t i = 0; i < run->fault_count; i++)
        if (run->faults[i].kind == kind && run->faults[i].ptx_line == line)
            return true;
    return false;
}

static void place(struct dev_fault *f, const struct warp *w, const struct xinsn *x, unsigned lane) {
    const struct launch *l = w->launch;
    const struct ptx_module *m = l->program->module;
    const unsigned *size = l->call->block;
    unsigned thread = w->index * LANES + lane;
    snprintf(f->kernel, sizeof f->kernel, "%s", l->program->func->name);
    memcpy(f->block, w->block->index, sizeof f->block);
    f->thread[0] = thread % size[0];
    f->thread[1] = thread / size[0] % size[1];
    f->thread[2] = thread / size[0] / size[1];
    f->ptx_line = x->insn->line;
    if (x->insn->file && x->insn->file < m->file_count && m->files[x->insn->file]) {
        snprintf(f->source, sizeof f->source, "%s", m->files[x->insn->file]);
        f->source_line = x->insn->source_line;
    }
}

static void coordinates(char *out, size_t room, const unsigned at[3]) {
    if (at[1] || at[2])
        snprintf(out, room, "(%u,%u,%u)", at[0], at[1], at[2]);
    else
        snprintf(out, room, "%u", at[0]);
}

void fault_record(struct warp *w, const struct xinsn *x, unsigned lane, enum dev_fault_kind kind,
                  uint64_t address, const char *format, ...) {
    struct dev_run *run = w->launch->run;
    run->fault_total++;
    if (run->fault_count >= w->launch->max_faults || is_repeated(run, kind, x->insn->line))
        return;
    struct dev_fault *f = &run->faults[run->fault_count++];
    *f = (struct dev_fault){.kind = kind, .address = address};
    place(f, w, x, lane);
    char what[112], block[36], thread[36], source[56] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    coordinates(block, sizeof block, f->block);
    coordinates(thread, sizeof thread, f->thread);
    if (f->source_line) {
        const char *name = strrchr(f->source, '/');
        snprintf(source, sizeof source, " (%.40s:%u)", name ? name + 1 : f->source, f->source_line);
    }
    char text[512]; /* longer than f->text only with absurd coordinates: then it is cut */
    snprintf(text, sizeof text, "%s: block %s thread %s %s, PTX line %u%s", f->kernel, block,
             thread, what, f->ptx_line, source);
    snprintf(f->text, sizeof f->text, "%.*s", (int)sizeof f->text - 1, text);
}
