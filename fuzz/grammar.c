/* fuzz/grammar.c - decode, encode and render; see grammar.h for the format. */
#include "fuzz/grammar.h"

#include <assert.h>
#include <math.h>

#include "base/rng.h"
#include "oracle/dtype.h"

#define F32 (&dtypes[DT_F32])
#define NEG_INF_BITS UINT32_C(0xff800000)

const struct rows_op_info rows_op_infos[ROWS_OP_COUNT] = {
#define OP(id, operands, what) {#id, operands, what},
    ROWS_OP_LIST(OP)
#undef OP
};

/* ---- bytes in and out ------------------------------------------------------------------------ */

struct reader {
    const uint8_t *at, *end;
};

/* `bytes` bytes, little-endian; those behind the end are zero. */
static uint32_t take(struct reader *r, unsigned bytes) {
    uint32_t v = 0;
    for (unsigned i = 0; i < bytes && r->at < r->end; i++)
        v |= (uint32_t)*r->at++ << (8 * i);
    return v;
}

static void decode_op(struct rows_op *op, struct reader *r) {
    *op = (struct rows_op){.kind = (enum rows_op_kind)(take(r, 1) % ROWS_OP_COUNT)};
    for (const char *o = rows_op_infos[op->kind].operands; *o; o++) {
        switch (*o) {
        case 'n':
        case 'p':
            op->n = (uint16_t)take(r, 2);
            break;
        case 's':
            op->seed = (uint16_t)take(r, 2);
            break;
        case 'c':
            op->count = (uint8_t)take(r, 1);
            break;
        case 'e':
            op->steps = (int8_t)take(r, 1);
            break;
        case 'a':
            op->a = take(r, 4);
            break;
        case 'b':
            op->b = take(r, 4);
            break;
        case 'l':
            op->count = (uint8_t)(take(r, 1) % ROWS_MAX_LIST);
            for (unsigned i = 0; i <= op->count; i++)
                op->list[i] = take(r, 4);
            break;
        }
    }
}

bool rows_decode(struct rows_program *out, const uint8_t *bytes, size_t size) {
    *out = (struct rows_program){.rows = 1, .cols = 1};
    if (size == 0 || bytes[0] != ROWS_VERSION)
        return false;
    struct reader r = {.at = bytes + 1, .end = bytes + size};
    out->kernel = (uint8_t)take(&r, 1);
    uint32_t shape = take(&r, 1);
    out->rows = (uint16_t)(1 + shape % ROWS_MAX_ROWS);
    out->raw = shape & 0x80;
    out->cols = (uint16_t)(1 + take(&r, 2) % ROWS_MAX_COLS);
    if (out->raw) {
        size_t room = (size_t)out->rows * out->cols;
        while (r.at < r.end && out->datum_count < room)
            out->data[out->datum_count++] = take(&r, 4);
    } else {
        while (r.at < r.end && out->op_count < ROWS_MAX_OPS)
            decode_op(&out->ops[out->op_count++], &r);
    }
    return true;
}

struct writer {
    uint8_t *bytes;
    size_t size, at;
};

static void give(struct writer *w, uint32_t v, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++, w->at++)
        if (w->at < w->size)
            w->bytes[w->at] = (uint8_t)(v >> (8 * i));
}

static void encode_op(struct writer *w, const struct rows_op *op) {
    give(w, op->kind, 1);
    for (const char *o = rows_op_infos[op->kind].operands; *o; o++) {
        switch (*o) {
        case 'n':
        case 'p':
            give(w, op->n, 2);
            break;
        case 's':
            give(w, op->seed, 2);
            break;
        case 'c':
            give(w, op->count, 1);
            break;
        case 'e':
            give(w, (uint8_t)op->steps, 1);
            break;
        case 'a':
            give(w, op->a, 4);
            break;
        case 'b':
            give(w, op->b, 4);
            break;
        case 'l':
            give(w, op->count, 1);
            for (unsigned i = 0; i <= op->count; i++)
                give(w, op->list[i], 4);
            break;
        }
    }
}

size_t rows_encode(uint8_t *bytes, size_t size, const struct rows_program *p) {
    struct writer w = {.bytes = bytes, .size = size};
    give(&w, ROWS_VERSION, 1);
    give(&w, p->kernel, 1);
    give(&w, (uint32_t)(p->rows - 1) | (p->raw ? 0x80 : 0), 1);
    give(&w, (uint32_t)p->cols - 1, 2);
    if (w.at > size)
        return size;
    size_t whole = w.at, count = p->raw ? p->datum_count : p->op_count;
    for (size_t i = 0; i < count; i++, whole = w.at) {
        if (p->raw)
            give(&w, p->data[i], 4);
        else
            encode_op(&w, &p->ops[i]);
        if (w.at > size)
            break;
    }
    return whole;
}

/* ---- rendering ------------------------------------------------------------------------------- */

/* One row while it is being written: x[0 .. at-1] is done. */
struct canvas {
    uint32_t *x;
    size_t cols, at;
};

static double value(uint32_t bits) {
    return dtype_to_double(F32, bits);
}

static uint32_t rounded(double x) {
    return dtype_from_double(F32, x, ROUND_NEAREST);
}

/* The largest finite number so far; 0 if there is none. */
static double largest(const struct canvas *c) {
    double max = -INFINITY;
    for (size_t i = 0; i < c->at; i++) {
        double x = value(c->x[i]);
        if (isfinite(x) && x > max)
            max = x;
    }
    return isfinite(max) ? max : 0;
}

static uint32_t moved(double x, int steps) {
    int64_t ordinal = dtype_ordinal(F32, rounded(x)) + steps, last = 0x7f800000;
    return dtype_from_ordinal(F32, ordinal > last ? last : ordinal < -last ? -last : ordinal);
}

static void fill(struct canvas *c, size_t n, uint32_t bits) {
    for (size_t i = 0; i < n; i++)
        c->x[c->at++] = bits;
}

/* The last `period` elements over and over. */
static void repeat(struct canvas *c, size_t n, size_t period) {
    if (c->at == 0)
        return;
    size_t back = period < c->at ? period : c->at;
    for (size_t i = 0; i < n; i++, c->at++)
        c->x[c->at] = c->x[c->at - back];
}

static void shuffle(struct canvas *c, uint16_t seed) {
    struct rng rng = rng_from_seed(seed);
    for (size_t i = c->at; i > 1; i--) {
        size_t j = (size_t)rng_below(&rng, i);
        uint32_t t = c->x[i - 1];
        c->x[i - 1] = c->x[j];
        c->x[j] = t;
    }
}

/*
 * Element i of a staircase whose steps a reduction tree adds to the first element one at a time, all
 * steps being of the same size a 2^e: with e = -prec each is lost, and the error of the sum comes
 * close to its bound.  In index order for trees that join neighbours first (c odd), in bit-reversed
 * order for those that join halves first.
 */
static double stair(const struct rows_op *op, size_t i, size_t n) {
    if (op->count % 2) {
        size_t reversed = 0;
        for (size_t width = 1; width < n; width *= 2)
            reversed = reversed * 2 + (i / width) % 2;
        i = reversed;
    }
    int level = 0;
    for (size_t rest = i; rest > 1; rest /= 2)
        level++;
    double a = value(op->a);
    return i == 0 ? a : ldexp(a, op->steps - level);
}

static void render_op(struct canvas *c, const struct rows_op *op) {
    size_t left = c->cols - c->at, n = op->n && op->n < left ? op->n : left;
    size_t back = op->n && op->n < c->at ? op->n : c->at;
    double a = value(op->a), b = value(op->b);
    struct rng rng = rng_from_seed(op->seed);
    switch (op->kind) {
    case ROWS_FILL:
        fill(c, n, op->a);
        break;
    case ROWS_RAMP:
        for (size_t i = 0; i < n; i++)
            c->x[c->at++] = rounded(a + (double)i * b);
        break;
    case ROWS_NOISE:
        for (size_t i = 0; i < n; i++)
            c->x[c->at++] = rounded(a + b * (2 * rng_unit(&rng) - 1));
        break;
    case ROWS_LIST:
        for (size_t i = 0; i <= op->count && c->at < c->cols; i++)
            c->x[c->at++] = op->list[i];
        break;
    case ROWS_NINF:
        fill(c, n, NEG_INF_BITS);
        break;
    case ROWS_TIES:
        fill(c, n, moved(largest(c), op->steps));
        break;
    case ROWS_JUMP:
        fill(c, n, rounded(largest(c) + a));
        break;
    case ROWS_REPEAT:
        repeat(c, n, (size_t)op->count + 1);
        break;
    case ROWS_MIRROR:
        for (size_t i = 0, from = c->at; i < back && c->at < c->cols; i++)
            c->x[c->at++] = c->x[from - 1 - i] ^ UINT32_C(0x80000000);
        break;
    case ROWS_STAIRS:
        for (size_t i = 0; i < n; i++)
            c->x[c->at++] = rounded(stair(op, i, n));
        break;
    case ROWS_PUT:
        assert(c->cols > 0);
        c->x[op->n % c->cols] = op->a;
        break;
    case ROWS_SCALE:
        for (size_t i = 0; i < back; i++)
            c->x[c->at - 1 - i] = rounded(ldexp(value(c->x[c->at - 1 - i]), op->steps));
        break;
    case ROWS_SHUFFLE:
        shuffle(c, op->seed);
        break;
    case ROWS_NEXT:
    case ROWS_OP_COUNT:
        break;
    }
}

/* PUTs come last, as they may write where the cursor has not been. */
static void finish_row(struct canvas *c, const uint32_t *above, const struct rows_op *from,
                       const struct rows_op *to) {
    if (c->at == 0) {
        for (; c->at < c->cols; c->at++)
            c->x[c->at] = above ? above[c->at] : 0;
    } else {
        repeat(c, c->cols - c->at, c->at);
    }
    for (const struct rows_op *op = from; op < to; op++)
        if (op->kind == ROWS_PUT)
            render_op(c, op);
}

void rows_render(uint32_t *bits, const struct rows_program *p) {
    if (p->raw) {
        struct canvas all = {.x = bits, .cols = (size_t)p->rows * p->cols};
        for (; all.at < p->datum_count; all.at++)
            bits[all.at] = p->data[all.at];
        finish_row(&all, NULL, NULL, NULL);
        return;
    }
    const struct rows_op *op = p->ops, *end = p->ops + p->op_count;
    for (size_t row = 0; row < p->rows; row++) {
        struct canvas c = {.x = bits + row * p->cols, .cols = p->cols};
        const struct rows_op *first = op;
        for (; op < end && op->kind != ROWS_NEXT; op++)
            if (op->kind != ROWS_PUT)
                render_op(&c, op);
        finish_row(&c, row ? c.x - p->cols : NULL, first, op);
        if (op < end)
            op++;
    }
}
