/*
 * device/rewrite.h - PTX texts changed before a device sees them.
 *
 * All keep every line where it is, so that messages and `.loc` still fit the text that was given.
 */
#ifndef DEVICE_REWRITE_H
#define DEVICE_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/*
 * Write `.rn` onto every floating-point add, sub and mul without a rounding modifier (f32, f32x2,
 * f64, f16, f16x2, bf16, bf16x2; also with .ftz and .sat).  Round to nearest even is what they mean
 * anyway, "but mul/add sequences with no rounding modifiers may be optimized to use fused-multiply-
 * add", while one with a modifier is "treated conservatively by the code optimizer" (PTX ISA,
 * Floating Point Instructions: add, mul): then the text alone fixes the bits.
 *
 * *out: the new text, NUL-terminated, of *out_size bytes, the caller's; *changed: instructions.
 * ERR_UNSUPPORTED for what is no PTX text; ERR_NOMEM.
 */
MUST_CHECK status_t ptx_write_rn(char **out, size_t *out_size, unsigned *changed, const char *label,
                                 const char *text, size_t size);

/* ---- probes: texts that also write down what they do ------------------------------------------- */

/* What a probe is put into and where it writes; the address is burnt into the text. */
struct probe {
    const char *entry;
    uint64_t notes;        /* device address of the buffer that the text writes to */
    unsigned block[3];     /* trace: the block whose threads are traced */
    uint64_t first, count; /* trace: records [first, first + count) of each thread are kept */
};

/*
 * A store, reduction or atomic of `entry` to global memory that covers the address in the first 8
 * bytes of `notes` leaves a struct probe_writer behind them; the last one stays.
 */
#define PROBE_WRITER_OFFSET 16

struct probe_writer {
    uint32_t block[3], line;
};

MUST_CHECK status_t ptx_probe_writers(char **out, size_t *out_size, const char *text, size_t size,
                                      const struct probe *probe);

/*
 * Each thread of the block writes down what its instructions give: `count` records for thread 0 (x
 * fastest), then those of thread 1, and so on.  Bits above the width keep what the buffer held.  Not
 * written down: addresses and what is computed from them (they differ between devices by right),
 * clocks and the like, atomics, and registers that wgmma still fills (they follow at
 * wgmma.wait_group).
 */
struct probe_record {
    uint32_t line;  /* of the instruction; what is not written keeps what the buffer held */
    uint32_t width; /* in bits: 1, 16, 32, 64 */
    uint64_t bits;
};

MUST_CHECK status_t ptx_probe_trace(char **out, size_t *out_size, const char *text, size_t size,
                                    const struct probe *probe);

/* An instruction by its line. */
struct ptx_place {
    char text[96];   /* as written, white space and what does not fit left out */
    char source[96]; /* file and line of the last .loc before it; "", 0 without one */
    unsigned source_line;
    bool foreign; /* its value comes from elsewhere: a load, a shuffle, a vote */
};

void ptx_place(struct ptx_place *out, const char *text, size_t size, unsigned line);

#endif
