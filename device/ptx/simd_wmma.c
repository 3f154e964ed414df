/*
 * simd_wmma.c - wmma: matrices of 16 x 16, 32 x 8 or 8 x 32 with opaque fragments.
 * PTX ISA 9.7.14.4.
 *
 * The ISA leaves open which element is where in a fragment.  Here a fragment is those of mma.sync,
 * tile by tile of m16n8: registers in the order tile of 16 rows (a, c, d), 8 columns (b, c, d),
 * 16 bytes of k (a, b), 8 rows, then c and d's two columns.  m8n32 is kept as b^T a^T, of m32n8.
 * Fragments of f16 have 8 registers: those that are over repeat the ones before, so that what a
 * program does to every element of a fragment it does to the repetitions too.
 */
#include "device/ptx/half.h"
#include "device/ptx/simd_await.h"
#include "device/ptx/simd_tensor.h"
#include "device/ptx/tensor_form.h"

/* m8n32: rows and columns change places, and a and b. */
static bool is_turned(const struct ptx_insn *in) {
    return in->mods.m == 8 && in->mods.n == 32;
}

/* ---- where elements are ---------------------------------------------------------------------- */

/* A matrix as it lies in memory and in a fragment; element (i, j) is in register reg of lane. */
struct matrix {
    enum ptx_op op;      /* what loads or stores it */
    unsigned rows, cols; /* in the fragment: for a and b, cols is k */
    unsigned bytes;      /* of an element */
    bool by_columns;     /* memory: element (i, j) at j * stride + i, else at i * stride + j */
    bool left;           /* tiles of 16 rows; else of 8: the right factor */
    bool accumulator;
    unsigned registers; /* distinct ones */
};

static struct matrix matrix_of(const struct ptx_insn *in) {
    bool turned = is_turned(in), col = in->mods.layout == 2;
    unsigned m = turned ? in->mods.n : in->mods.m, n = turned ? in->mods.m : in->mods.n;
    struct matrix x = {.op = in->op, .bytes = tensor_element_bytes(in->type)};
    bool is_a = in->op == PTX_OP_WMMA_LOAD_A, is_b = in->op == PTX_OP_WMMA_LOAD_B;
    x.accumulator = !is_a && !is_b;
    x.left = is_a != turned;
    x.rows = x.accumulator || x.left ? m : n;
    x.cols = x.accumulator ? n : in->mods.k;
    /* The fragment's rows run along m of a, along n of b; turned ones along the other. */
    x.by_columns = x.accumulator ? col != turned : is_b ? !col : col;
    x.registers = x.rows * x.cols * x.bytes / (x.bytes == 8 ? 256 : 128);
    return x;
}

/* A register of a lane: `count` elements (i, j), (i, j + 1), ... */
struct spot {
    unsigned i, j, count;
};

static struct spot spot_of(const struct matrix *x, unsigned reg, unsigned lane) {
    unsigned g = lane / 4, t = lane % 4;
    if (x->bytes == 8) /* m8n8k4: a and b as b is, c and d by pairs of columns */
        return (struct spot){g, x->accumulator ? 2 * t + reg : t, 1};
    if (x->accumulator) {
        unsigned per = x->bytes == 2 ? 1 : 2, tile = x->cols / 8 * 2 * per;
        unsigned in_tile = reg % tile, half = in_tile / per % 2;
        return (struct spot){reg / tile * 16 + half * 8 + g,
                             in_tile / (2 * per) * 8 + 2 * t + (per == 2 ? in_tile % 2 : 0),
                             x->bytes == 2 ? 2 : 1};
    }
    unsigned per = 4 / x->bytes, chunks = x->cols * x->bytes / 16, block, chunk;
    if (x->left) {
        block = reg / (2 * chunks) * 2 + reg % 2;
        chunk = reg / 2 % chunks;
    } else {
        block = reg / chunks;
        chunk = reg % chunks;
    }
    return (struct spot){block * 8 + g, chunk * (16 / x->bytes) + t * per, per};
}

/* ---- wmma.load, wmma.store ------------------------------------------------------------------- */

/* The stride in elements; without one, that of a matrix without gaps. */
static uint64_t stride_of(const struct warp *w, const struct xinsn *x, const struct matrix *m,
                          bool given) {
    if (given)
        return row32(w, x->b)[0];
    return m->by_columns ? m->rows : m->cols;
}

/* All lanes must name the same matrix, else what they do is undefined. */
static bool agree(struct warp *w, const struct xinsn *x, bool given) {
    for (unsigned lane = 1; lane < LANES; lane++) {
        bool same = x->flags & X_ADDR64 ? row64(w, x->a)[lane] == row64(w, x->a)[0]
                                        : row32(w, x->a)[lane] == row32(w, x->a)[0];
        if (same && (!given || row32(w, x->b)[lane] == row32(w, x->b)[0]))
            continue;
        fault_record(w, x, lane, FAULT_DIVERGENT_BARRIER, 0,
                     "%s with another address or stride than lane 0 has",
                     ptx_opcodes[x->insn->op].name);
        return false;
    }
    return true;
}

/*
 * PTX ISA 9.7.14.4.2: every row (column) begins at a multiple of the fragment's bytes, else the
 * access is undefined.  Of the stride only 16 bytes are asked: the ISA's own default strides of
 * m8n32k16 are no more, and the CUDA C++ guide allows every multiple of 16 bytes.
 */
static bool aligned(struct warp *w, const struct xinsn *x, const struct matrix *m, uint64_t base,
                    uint64_t stride, bool write) {
    const uint8_t *first = x->insn->first + write;
    unsigned fragment = (first[1] - first[0]) * (m->bytes == 8 ? 8u : 4u);
    unsigned step = fragment < 16 ? fragment : 16;
    if (base % fragment == 0 && stride * m->bytes % step == 0)
        return true;
    const char *name = ptx_opcodes[x->insn->op].name;
    if (base % fragment)
        fault_record(w, x, 0, FAULT_MISALIGNED, base,
                     "%s of a matrix at 0x%llx, which is no multiple of its fragment's %u bytes",
                     name, (unsigned long long)base, fragment);
    else
        fault_record(w, x, 0, FAULT_MISALIGNED, base,
                     "%s with a stride of %llu bytes, which is no multiple of %u", name,
                     (unsigned long long)(stride * m->bytes), step);
    return false;
}

/* Move one register's elements between memory and `data`. */
static bool move(struct warp *w, const struct xinsn *x, const struct matrix *m, struct spot s,
                 unsigned lane, uint64_t base, uint64_t stride, uint8_t *data, bool write) {
    enum ptx_space space = (enum ptx_space)x->space;
    uint64_t step = m->by_columns ? stride : 1;
    uint64_t first = m->by_columns ? s.j * stride + s.i : s.i * stride + s.j;
    uint64_t at = base + first * m->bytes;
    if (step == 1)
        return mem_copy_at(w, x, lane, space, at, s.count * m->bytes, data, write);
    for (unsigned e = 0; e < s.count; e++)
        if (!mem_copy_at(w, x, lane, space, at + e * step * m->bytes, m->bytes,
                         data + (size_t)e * m->bytes, write))
            return false;
    return true;
}

ALWAYS const struct xinsn *fragment_move(struct warp *w, const struct xinsn *x, bool masked,
                                         bool write) {
    AWAIT(x->e);
    const struct matrix of = matrix_of(x->insn);
    bool given = x->insn->group_count > 2;
    if (!agree(w, x, given))
        return leave(w, LEAVE_FAULT, x, x + 1);
    uint64_t base = x->flags & X_ADDR64
                        ? row64(w, x->a)[0] + (x->flags & X_UNIFORM ? 0 : x->imm)
                        : (uint32_t)(row32(w, x->a)[0] + (uint32_t)x->imm);
    uint64_t stride = stride_of(w, x, &of, given);
    if (!aligned(w, x, &of, base, stride, write))
        return leave(w, LEAVE_FAULT, x, x + 1);
    /* An ordinary access has one element for each lane, this one so many. */
    launch_charge(w->launch, of.registers * (of.by_columns ? spot_of(&of, 0, 0).count : 1) - 1u);
    for (unsigned reg = 0; reg < of.registers; reg++)
        for (unsigned lane = 0; lane < LANES; lane++) {
            unsigned width = of.bytes == 8 ? 8 : 4;
            uint8_t *data = w->file + x->list[reg] + (size_t)lane * width;
            if (!move(w, x, &of, spot_of(&of, reg, lane), lane, base, stride, data, write))
                return leave(w, LEAVE_FAULT, x, x + 1);
        }
    for (unsigned reg = of.registers; !write && !of.accumulator && reg < x->vec; reg++)
        if (x->list[reg] != x->list[reg % of.registers])
            memcpy(w->file + x->list[reg], w->file + x->list[reg % of.registers], ROW32);
    return x + 1;
}
VARIANTS(fragment_move, _load, false)
VARIANTS(fragment_move, _store, true)

static bool in_memory(const struct ptx_insn *in) {
    enum ptx_space s = in->mods.space;
    return s == SPACE_GENERIC || s == SPACE_GLOBAL || s == SPACE_SHARED;
}
DECLARE_BIND(wmma_load) {
    x->vec = (uint8_t)(in->first[1] - in->first[0]);
    return in_memory(in) && USE(x, fragment_move_load);
}
DECLARE_BIND(wmma_store) {
    return in_memory(in) && USE(x, fragment_move_store);
}

/* ---- wmma.mma -------------------------------------------------------------------------------- */

#define MAX_ROWS 32
#define MAX_REGISTERS 8

/* c as the registers that the arithmetic takes: widened where c is f16 and d is f32. */
static void widen(uint32_t wide[MAX_REGISTERS][LANES], const struct warp *w, const uint32_t *c,
                  unsigned count) {
    for (unsigned r = 0; r < count; r++) /* a register of f16 is two of f32: columns 2 t, 2 t + 1 */
        for (unsigned lane = 0; lane < LANES; lane++) {
            uint32_t pair = row32(w, c[r])[lane];
            wide[2 * r][lane] = f16_to_f32(pair & 0xffff);
            wide[2 * r + 1][lane] = f16_to_f32(pair >> 16);
        }
}

/* c and d of f32 while one of them is f16: scratch rows. */
static void mixed(struct warp *w, const struct xinsn *x, const uint32_t *const list[4],
                  uint32_t acc[MAX_REGISTERS]) {
    uint32_t wide[MAX_REGISTERS][LANES];
    unsigned c_count = x->insn->first[4] - x->insn->first[3];
    if (x->insn->type2 == PTX_F16)
        widen(wide, w, list[3], c_count);
    for (unsigned r = 0; r < MAX_REGISTERS; r++) {
        acc[r] = x->d + r * ROW32;
        memcpy(w->file + acc[r], x->insn->type2 == PTX_F16 ? (const uint8_t *)wide[r]
                                                           : w->file + list[3][r], ROW32);
    }
}

static void narrow(struct warp *w, const uint32_t *d, const uint32_t acc[MAX_REGISTERS],
                   unsigned count) {
    for (unsigned r = 0; r < count; r++)
        for (unsigned lane = 0; lane < LANES; lane++)
            row32(w, d[r])[lane] = f32_to_f16(row32(w, acc[2 * r])[lane]) |
                                   f32_to_f16(row32(w, acc[2 * r + 1])[lane]) << 16;
}

ALWAYS const struct xinsn *wmma(struct warp *w, const struct xinsn *x, bool masked) {
    AWAIT(x->e);
    const struct ptx_insn *in = x->insn;
    const struct ptx_insn as_mma = tensor_form_as_mma(in);
    struct xinsn y = *x;
    const uint32_t *list[4]; /* d, a, b, c */
    for (int g = 0; g < 4; g++)
        list[g] = x->list + (in->first[g] - in->first[0]);
    y.insn = &as_mma;
    if (in->type == PTX_F64) {
        ISA_NAME(tensor_doubles)(w, &y, x->list);
        return x + 1;
    }
    const uint32_t *left = is_turned(in) ? list[2] : list[1];
    const uint32_t *right = is_turned(in) ? list[1] : list[2];
    const uint32_t *c = list[3], *d = list[0];
    unsigned tiles = in->mods.m == 16 ? 1 : 2;
    unsigned chunks = as_mma.mods.k * tensor_element_bytes(as_mma.type2) / 16;
    unsigned each = as_mma.mods.n / 8u * (as_mma.type == PTX_F16 ? 2 : 4); /* registers of a tile */
    uint32_t acc[MAX_REGISTERS];
    bool mix = in->op == PTX_OP_WMMA_F16 && in->type != in->type2;
    if (mix) {
        mixed(w, x, list, acc);
        c = d = acc;
    } else if (ISA_NAME(tensor_crossed)(acc, w, x, c, d, in->first[1] - in->first[0])) {
        c = acc;
    }
    struct factors f[2];
    /* Everything is read before anything is written: d may share registers with a and b. */
    for (unsigned t = 0; t < tiles; t++) {
        ISA_NAME(tensor_gather)(f[t].a, w, left + t * 2 * chunks, 2 * chunks, 2);
        for (unsigned j = 0; j < as_mma.mods.n / 8u; j++)
            ISA_NAME(tensor_gather)(f[t].b + 8 * j, w, right + j * chunks, chunks, 1);
    }
    for (unsigned t = 0; t < tiles; t++)
        ISA_NAME(tensor_multiply)(w, &y, &f[t],
                                  &(struct accumulators){.c = c + t * each, .d = d + t * each});
    if (mix && in->type == PTX_F16)
        narrow(w, list[0], acc, in->first[1] - in->first[0]);
    else if (mix)
        for (unsigned r = 0; r < MAX_REGISTERS; r++)
            memcpy(w->file + list[0][r], w->file + acc[r], ROW32);
    return x + 1;
}
VARIANTS(wmma, )
DECLARE_BIND(wmma) {
    (void)in;
    return USE(x, wmma);
}
