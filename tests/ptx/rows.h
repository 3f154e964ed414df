/*
 * tests/ptx/rows.h - one instruction, many operands, an independent reference.
 *
 * A row case is the text of an instruction over fixed register names and a function that knows its
 * result from MPFR, from 128-bit integers or from first principles; never from the emulator.
 */
#ifndef TESTS_PTX_ROWS_H
#define TESTS_PTX_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpfr.h>

#include "device/ptx/ptx.h"

struct row_case;

/* The bits that the case's result must have for the operands in[0..]. */
typedef uint64_t reference_fn(const struct row_case *c, const uint64_t in[4]);

/*
 * insn: text over %w0..%w3 (32 bits), %d0..%d3 (64), %h0..%h3 (16), %p0..%p3 (predicates: operand
 *       is odd) and the results %wr, %dr, %hr, %pr, %qr.
 * out:  w, d, h or p (pr), q (pr + 2 qr).
 * in:   what operands to try: f, F single, double; G a pair of single; e, E f16, a pair of them; b, B bf16 likewise;
 *       w, d, h integers; s small numbers; p predicates.  One operand of e, E, b or B: all of them.
 */
struct row_case {
    enum ptx_op op;
    const char *insn;
    const char *out;
    const char *in;
    reference_fn *ref;
    int a, b, c; /* for the reference: what varies among the cases that share it */
};

/* Each file's cases. */
struct row_list {
    const struct row_case *cases;
    size_t count;
};
extern const struct row_list rows_f32, rows_f64, rows_int, rows_bits, rows_cvt, rows_compare,
    rows_half, rows_half_cvt, rows_extra;
extern const struct row_list rows_sm100; /* for .target sm_100 */

/* ---- shared by references: rows_ref.c -------------------------------------------------------- */

enum { REF_RN, REF_RZ, REF_RM, REF_RP };
enum { REF_ADD, REF_SUB, REF_MUL, REF_FMA, REF_DIV, REF_RCP, REF_SQRT };

uint32_t ref_flush(uint32_t f32);
bool ref_is_nan32(uint64_t bits);
bool ref_is_nan64(uint64_t bits);
/* a op b op c rounded once to f32 (NaN: 0x7fffffff) or f64 by MPFR. */
uint32_t ref_f32(int op, uint32_t a, uint32_t b, uint32_t c, int rnd);
uint64_t ref_f64(int op, uint64_t a, uint64_t b, uint64_t c, int rnd);
/* Is the f32 result, rounded to 24 bits with any exponent, below 2^-126? */
bool ref_is_tiny(int op, uint32_t a, uint32_t b, uint32_t c, int rnd);

/* A format of at most 64 bits; last: exponent of the last place of subnormals. */
struct ref_format {
    int bits, fraction, last;
    uint64_t infinity;
};
extern const struct ref_format ref_f16, ref_bf16, ref_tf32, ref_binary32, ref_binary64;
enum { REF_RNA = 4 }; /* after REF_RP: to nearest, ties away from zero */
void ref_set(mpfr_ptr x, const struct ref_format *f, uint64_t bits);
/* x, which is exact and not NaN, rounded once. */
uint64_t ref_round(mpfr_srcptr x, const struct ref_format *f, int rnd);
bool ref_is_nan(const struct ref_format *f, uint64_t bits);
/* Integer types of PTX, and the widths of all types. */
int ref_bits(int type);
bool ref_is_signed(int type);
/* x, which is not NaN, to an integer (REF_RN to REF_RP), and then to the nearest one of the type; x
 * is changed. */
uint64_t ref_to_int(mpfr_ptr x, int type, int rnd);
#define REF_PRECISION 700 /* bits that hold any sum of products of bf16 */

void ref_free(void); /* MPFR's caches */

#endif
