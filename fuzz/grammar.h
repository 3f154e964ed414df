/*
 * fuzz/grammar.h - how a fuzz input of a few bytes says what is in a matrix of thousands of floats.
 *
 *   byte 0      version: 1
 *   byte 1      kernel: index into the kernels at hand, modulo their number
 *   byte 2      bits 0-1: rows - 1; bit 7: raw mode; the others are ignored
 *   bytes 3-4   cols - 1, little-endian, modulo ROWS_MAX_COLS
 *   then        operations until the input ends, or in raw mode f32 data, row by row
 *
 * Every input whose first byte is the version decodes: an opcode counts modulo the number of
 * operations, and what is missing at the end is zero.  So libFuzzer may cut and splice as it likes,
 * and a find stays readable: words.h writes it in words.  docs/fuzzing.md has the operations.
 */
#ifndef FUZZ_GRAMMAR_H
#define FUZZ_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_VERSION 1
#define ROWS_MAX_ROWS 4
#define ROWS_MAX_COLS 2048
#define ROWS_MAX_OPS 64
#define ROWS_HEADER 5    /* bytes */
#define ROWS_MAX_LIST 8  /* floats that one LIST holds at most */
#define ROWS_OP_BYTES 34 /* the longest operation: LIST */
#define ROWS_MAX_BYTES (ROWS_HEADER + 4 * ROWS_MAX_ROWS * ROWS_MAX_COLS)

/*
 * OP(id, operands, what).  An operation fills elements from the cursor on and moves it behind them,
 * never past the row's end.  Operands, in the order in which they are stored:
 *   n  u16: how many elements; 0: all that are left      p  u16: a column, modulo cols
 *   c  u8: a count, less one                             s  u16: a seed
 *   e  s8: a number of steps                             a b  f32
 *   l  u8: a count modulo 8, less one, then that many f32
 */
/* clang-format off */
#define ROWS_OP_LIST(OP)                                                                           \
    OP(FILL, "na", "n times a")                                                                    \
    OP(RAMP, "nab", "a, a + b, a + 2b, ...")                                                       \
    OP(NOISE, "nabs", "a + b t, t uniform in [-1, 1) from the seed")                               \
    OP(LIST, "l", "these very floats")                                                             \
    OP(NINF, "n", "n times -Inf")                                                                  \
    OP(TIES, "ne", "n times the largest finite number of the row so far, moved by e ulps")         \
    OP(JUMP, "na", "n times that largest number + a")                                              \
    OP(REPEAT, "nc", "the last c elements over and over")                                          \
    OP(MIRROR, "n", "the last n elements backwards and negated")                                   \
    OP(STAIRS, "naec", "a, a 2^e, then 2 of half that, 4 of a quarter, ...: see stair()")          \
    OP(PUT, "pa", "column p becomes a, after all else in the row; the cursor stays")               \
    OP(SCALE, "ne", "the last n elements (0: all) times 2^e; the cursor stays")                    \
    OP(SHUFFLE, "s", "all before the cursor in a seeded order; the cursor stays")                  \
    OP(NEXT, "", "on to the next row; the rest of this one repeats what it has")
/* clang-format on */

enum rows_op_kind {
#define OP(id, operands, what) ROWS_##id,
    ROWS_OP_LIST(OP)
#undef OP
        ROWS_OP_COUNT
};

struct rows_op {
    enum rows_op_kind kind;
    uint16_t n;    /* n or p */
    uint16_t seed; /* s */
    uint8_t count; /* c as a count, 1 .. 256 stored less one; l: 1 .. 8 less one */
    int8_t steps;  /* e */
    uint32_t a, b; /* f32 bits */
    uint32_t list[ROWS_MAX_LIST];
};

struct rows_program {
    uint8_t kernel;
    uint16_t rows, cols;
    bool raw;
    size_t op_count;
    struct rows_op ops[ROWS_MAX_OPS];
    size_t datum_count; /* raw mode: at most rows * cols */
    uint32_t data[ROWS_MAX_ROWS * ROWS_MAX_COLS];
};

struct rows_op_info {
    const char *name, *operands, *what;
};

extern const struct rows_op_info rows_op_infos[ROWS_OP_COUNT];

/* False if the input does not begin with the version; *out is then an empty program of 1x1. */
bool rows_decode(struct rows_program *out, const uint8_t *bytes, size_t size);

/* The program's bytes, at most `size` of them: whole operations or data only. */
size_t rows_encode(uint8_t *bytes, size_t size, const struct rows_program *p);

/*
 * bits[0 .. rows*cols-1] = the matrix as f32 bit patterns, the same on every machine.  A row that
 * the program leaves unfinished repeats what it has; a row that it leaves empty is as the one
 * above, the first one zeros.  In raw mode likewise, with the data as one long row.
 */
void rows_render(uint32_t *bits, const struct rows_program *p);

#endif
