/* fuzz/mutate.c - see mutate.h. */
#include "fuzz/mutate.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "fuzz/grammar.h"
#include "oracle/dtype.h"

#define F32 (&dtypes[DT_F32])

static size_t below(struct rng *r, size_t bound) {
    return (size_t)rng_below(r, bound);
}

static bool one_in(struct rng *r, size_t n) {
    return below(r, n) == 0;
}

#define PICK(r, array) ((array)[below((r), sizeof(array) / sizeof *(array))])

/* ---- floats ---------------------------------------------------------------------------------- */

/* Where a kernel's behaviour changes.  The logarithms are RN32; neighbours come by ulp steps. */
/* clang-format off */
static const uint32_t special_bits[] = {
    0x00000000, 0x80000000, /* zeros */
    0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, /* subnormal, least normal */
    0x7f7fffff, 0xff7fffff, 0xfeffffff, /* FLT_MAX, -FLT_MAX, -FLT_MAX/2 */
    0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, /* infinities, NaNs */
    0x3f800000, 0xbf800000, 0x4b800000, 0x33800000, /* 1, -1, 2^24, 2^-24 */
    0x42b17218, 0xc2b17218, /* 88.72: exp(x) overflows from here on */
    0x42aeac50, 0xc2aeac50, /* 87.34: exp(-x) is subnormal */
    0x42cff1b5, 0xc2cff1b5, /* 103.97: exp(-x) rounds to 0 */
    0xc61c4000, 0xc7435000, 0xc77fe000, 0xf149f2ca, /* stand-ins for -Inf: -1e4 -5e4 -65504 -1e30 */
    0x40b17218, 0x3f317218, /* 8 log 2 (a threshold of lazy rescaling), log 2 */
    0x4cbebc20, 0xccbebc20, 0x7f000000, 0xff000000, /* +-1e8, +-2^127 */
};
/* clang-format on */

static uint32_t rounded(double x) {
    return dtype_from_double(F32, x, ROUND_NEAREST);
}

static double uniform(struct rng *r, double from, double to) {
    return from + (to - from) * rng_unit(r);
}

/* `steps` neighbours further; NaN stays. */
static uint32_t neighbour(uint32_t bits, int64_t steps) {
    if (dtype_classify(F32, bits) == CLASS_NAN)
        return bits;
    int64_t last = 0x7f800000, o = dtype_ordinal(F32, bits) + steps;
    return dtype_from_ordinal(F32, o > last ? last : o < -last ? -last : o);
}

static int64_t small_step(struct rng *r) {
    int64_t step = (int64_t)1 << (one_in(r, 2) ? 0 : below(r, 12));
    return one_in(r, 2) ? step : -step;
}

static uint32_t fresh_float(struct rng *r) {
    switch (below(r, 6)) {
    case 0:
        return PICK(r, special_bits);
    case 1:
        return neighbour(PICK(r, special_bits), small_step(r));
    case 2:
        return rounded((double)below(r, 33) - 16);
    case 3: /* as far as exp reaches */
        return rounded(uniform(r, -110, 110));
    case 4:
        return rounded(uniform(r, -2, 2));
    default:
        return (uint32_t)rng_u64(r);
    }
}

static uint32_t changed_float(struct rng *r, uint32_t bits) {
    double x = dtype_to_double(F32, bits);
    switch (below(r, 8)) {
    case 0:
        return neighbour(bits, small_step(r));
    case 1: /* whole binades */
        return rounded(ldexp(x, (int)below(r, 7) - 3));
    case 2:
        return bits ^ UINT32_C(0x80000000);
    case 3:
        return (bits & UINT32_C(0xff800000)) | (uint32_t)(rng_u64(r) & 0x7fffff);
    case 4: /* to a nearby number of few bits */
        return bits & ~((UINT32_C(1) << below(r, 24)) - 1);
    case 5:
        return rounded(x + uniform(r, -1, 1) * ldexp(1, -(int)below(r, 12)));
    case 6:
        return bits ^ UINT32_C(1) << below(r, 32);
    default:
        return fresh_float(r);
    }
}

/* ---- lengths --------------------------------------------------------------------------------- */

/* Around vectors, warps, blocks.  Mostly short: the oracle's work grows with the row. */
static size_t fresh_length(struct rng *r) {
    static const uint16_t edges[] = {1, 4, 8, 32, 64, 128, 256};
    static const uint16_t long_edges[] = {512, 1024, 2048};
    size_t length = one_in(r, 24) ? PICK(r, long_edges) : one_in(r, 2) ? PICK(r, edges) : 0;
    if (length == 0)
        return 1 + below(r, one_in(r, 2) ? 16 : 300);
    return length + below(r, 3) - 1;
}

static uint16_t changed_length(struct rng *r, uint16_t length, size_t max) {
    size_t n = length;
    switch (below(r, 5)) {
    case 0:
        n = length + 1u;
        break;
    case 1:
        n = length ? length - 1u : 0;
        break;
    case 2:
        n = length / 2u;
        break;
    case 3:
        n = 0;
        break;
    default:
        n = fresh_length(r);
        break;
    }
    return (uint16_t)(n > max ? max : n);
}

static uint16_t fresh_cols(struct rng *r) {
    size_t n = fresh_length(r);
    return (uint16_t)(n == 0 ? 1 : n > ROWS_MAX_COLS ? ROWS_MAX_COLS : n);
}

static void change_shape(struct rng *r, struct rows_program *p) {
    switch (below(r, 5)) {
    case 0: /* what hurts one kernel may hurt another */
    case 1:
        p->kernel = (uint8_t)rng_u64(r);
        break;
    case 2:
        p->rows = (uint16_t)(1 + (one_in(r, 2) ? 0 : below(r, ROWS_MAX_ROWS)));
        break;
    case 3:
        p->cols = fresh_cols(r);
        break;
    default:
        p->cols = changed_length(r, p->cols, ROWS_MAX_COLS);
        if (p->cols == 0)
            p->cols = 1;
        break;
    }
    size_t room = (size_t)p->rows * p->cols;
    if (p->datum_count > room)
        p->datum_count = room;
}

/* ---- operations ------------------------------------------------------------------------------ */

static struct rows_op fresh_op(struct rng *r) {
    struct rows_op op = {.kind = (enum rows_op_kind)below(r, ROWS_OP_COUNT)};
    op.n = one_in(r, 3) ? 0 : (uint16_t)fresh_length(r);
    op.seed = (uint16_t)rng_u64(r);
    op.count = (uint8_t)below(r, op.kind == ROWS_LIST ? ROWS_MAX_LIST : one_in(r, 2) ? 8 : 256);
    op.steps = (int8_t)(one_in(r, 3)   ? -24 /* what one rounding of an f32 may lose */
                        : one_in(r, 4) ? (int)below(r, 256) - 128
                                       : (int)below(r, 9) - 4);
    op.a = fresh_float(r);
    op.b = fresh_float(r);
    for (size_t i = 0; i < ROWS_MAX_LIST; i++)
        op.list[i] = fresh_float(r);
    return op;
}

static void change_op(struct rng *r, struct rows_op *op) {
    const char *operands = rows_op_infos[op->kind].operands;
    size_t count = strlen(operands);
    switch (count ? operands[below(r, count)] : '\0') {
    case 'n':
    case 'p':
        op->n = changed_length(r, op->n, ROWS_MAX_COLS);
        break;
    case 's':
        op->seed = (uint16_t)rng_u64(r);
        break;
    case 'c':
        op->count = (uint8_t)(changed_length(r, op->count, 255));
        break;
    case 'e':
        op->steps = (int8_t)(op->steps + (int)below(r, 9) - 4);
        break;
    case 'a':
        op->a = changed_float(r, op->a);
        break;
    case 'b':
        op->b = changed_float(r, op->b);
        break;
    case 'l': {
        size_t i = below(r, (size_t)op->count + 1);
        op->list[i] = changed_float(r, op->list[i]);
        if (one_in(r, 4))
            op->count = (uint8_t)below(r, ROWS_MAX_LIST);
        break;
    }
    default:
        *op = fresh_op(r);
        break;
    }
}

static void insert_op(struct rows_program *p, size_t at, const struct rows_op *op) {
    if (p->op_count == ROWS_MAX_OPS)
        return;
    memmove(p->ops + at + 1, p->ops + at, (p->op_count - at) * sizeof *p->ops);
    p->ops[at] = *op;
    p->op_count++;
}

static void change_ops(struct rng *r, struct rows_program *p) {
    size_t n = p->op_count;
    if (n == 0 || one_in(r, 6)) {
        const struct rows_op op = fresh_op(r);
        insert_op(p, below(r, n + 1), &op);
        return;
    }
    size_t i = below(r, n), j = below(r, n);
    struct rows_op op = p->ops[i];
    switch (below(r, 8)) {
    case 0:
        memmove(p->ops + i, p->ops + i + 1, (n - i - 1) * sizeof *p->ops);
        p->op_count--;
        break;
    case 1:
        p->ops[i] = p->ops[j];
        p->ops[j] = op;
        break;
    case 2:
        insert_op(p, j, &op);
        break;
    case 3: /* the same operands for another operation */
        p->ops[i].kind = (enum rows_op_kind)below(r, ROWS_OP_COUNT);
        p->ops[i].count %= ROWS_MAX_LIST;
        break;
    default:
        change_op(r, &p->ops[i]);
        break;
    }
}

/* ---- raw data -------------------------------------------------------------------------------- */

static void change_all(struct rng *r, struct rows_program *p) {
    double shift = uniform(r, -1, 1) * ldexp(1, (int)below(r, 16) - 8);
    int e = (int)below(r, 5) - 2;
    bool scale = one_in(r, 2);
    for (size_t i = 0; i < p->datum_count; i++) {
        double x = dtype_to_double(F32, p->data[i]);
        p->data[i] = rounded(scale ? ldexp(x, e) : x + shift);
    }
}

static void change_data(struct rng *r, struct rows_program *p) {
    size_t n = p->datum_count, room = (size_t)p->rows * p->cols;
    if (n == 0 || (n < room && one_in(r, 16))) {
        p->data[p->datum_count++] = fresh_float(r);
        return;
    }
    size_t i = below(r, n), j = below(r, n);
    uint32_t x = p->data[i];
    switch (below(r, 10)) {
    case 0: /* a tie, or nearly */
        p->data[j] = one_in(r, 2) ? x : neighbour(x, small_step(r));
        break;
    case 1: /* a pair that cancels */
        p->data[j] = x ^ UINT32_C(0x80000000);
        break;
    case 2:
        p->data[i] = p->data[j];
        p->data[j] = x;
        break;
    case 3: /* a run of one value */
        for (size_t k = i, end = k + below(r, 33) + 1; k < end && k < n; k++)
            p->data[k] = x;
        break;
    case 4: /* every other element a little different */
        for (size_t k = i; k < n; k += 1 + below(r, 4))
            p->data[k] = neighbour(p->data[k], small_step(r));
        break;
    case 5:
        if (one_in(r, 4))
            p->datum_count = 1 + i;
        else if (one_in(r, 4))
            change_all(r, p);
        break;
    default:
        for (size_t count = 1 + below(r, 4); count > 0; count--, i = below(r, n))
            p->data[i] = changed_float(r, p->data[i]);
        break;
    }
}

/* The matrix itself instead of the program that makes it, where the bytes allow that. */
static void make_raw(struct rows_program *p, size_t max_size) {
    size_t count = (size_t)p->rows * p->cols;
    if (ROWS_HEADER + 4 * count > max_size)
        return;
    rows_render(p->data, p);
    p->raw = true;
    p->datum_count = count;
}

/* ---- whole inputs ---------------------------------------------------------------------------- */

static void start_afresh(struct rng *r, struct rows_program *p) {
    *p = (struct rows_program){.kernel = (uint8_t)rng_u64(r), .rows = 1, .cols = fresh_cols(r)};
    for (size_t count = 1 + below(r, 4); count > 0; count--)
        p->ops[p->op_count++] = fresh_op(r);
}

size_t rows_mutate(uint8_t *bytes, size_t size, size_t max_size, unsigned seed) {
    if (max_size < ROWS_HEADER)
        return size < max_size ? size : max_size;
    struct rng r = rng_from_seed(seed);
    struct rows_program p;
    if (!rows_decode(&p, bytes, size) || one_in(&r, 256)) {
        start_afresh(&r, &p);
    } else {
        do {
            if (one_in(&r, 6))
                change_shape(&r, &p);
            else if (!p.raw && one_in(&r, 12))
                make_raw(&p, max_size);
            else if (p.raw)
                change_data(&r, &p);
            else
                change_ops(&r, &p);
        } while (one_in(&r, 2));
    }
    return rows_encode(bytes, max_size, &p);
}

static void cross_programs(struct rng *r, struct rows_program *p, const struct rows_program *q) {
    size_t keep = below(r, p->op_count + 1), from = below(r, q->op_count + 1);
    p->op_count = keep;
    for (size_t i = from; i < q->op_count; i++)
        insert_op(p, p->op_count, &q->ops[i]);
}

/* Some of q's data, at their own places or in one block. */
static void cross_data(struct rng *r, struct rows_program *p, const struct rows_program *q) {
    size_t n = p->datum_count < q->datum_count ? p->datum_count : q->datum_count;
    if (n == 0)
        return;
    size_t begin = below(r, n), end = begin + 1 + below(r, n - begin), every = 1 + below(r, 3);
    for (size_t i = begin; i < end; i += every)
        p->data[i] = q->data[i];
}

size_t rows_cross(uint8_t *out, size_t max_size, const uint8_t *a, size_t a_size, const uint8_t *b,
                  size_t b_size, unsigned seed) {
    struct rng r = rng_from_seed(seed);
    struct rows_program p, q;
    bool p_ok = rows_decode(&p, a, a_size), q_ok = rows_decode(&q, b, b_size);
    if (max_size < ROWS_HEADER || (!p_ok && !q_ok))
        return 0;
    if (!p_ok)
        p = q;
    if (p_ok && q_ok && p.raw == q.raw) {
        if (p.raw)
            cross_data(&r, &p, &q);
        else
            cross_programs(&r, &p, &q);
    } else if (q_ok) { /* nothing to splice: the one's data for the other's kernel and shape */
        p.kernel = q.kernel;
    }
    return rows_encode(out, max_size, &p);
}
