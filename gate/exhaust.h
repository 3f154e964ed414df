/*
 * gate/exhaust.h - an instruction of one operand over every input there is.
 *
 * The special functions have so few operands that nothing need be sampled: 2^32 of f32, 2^16 of f16
 * and bf16, 2^32 high words of f64 (the low word is not read and comes out 0).  Three questions are
 * asked of each result of the `cpu` device:
 *
 *   twin     does another device give the same bits
 *   hashes   are they the bits that an H200 gave, known by one hash for each 2^26 inputs
 *            (exhaust_sm90.def, so no GPU is needed)
 *   error    how far from the true value, against what the PTX ISA promises
 *
 * hash of a chunk: the sum over its inputs x of mix(x << 32 | result) modulo 2^64, with mix the
 * finaliser of splitmix64 (Steele, Lea, Flood 2014).  A sum: chunks may be computed in any order.
 */
#ifndef GATE_EXHAUST_H
#define GATE_EXHAUST_H

#include <mpfr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define EXHAUST_CHUNK_BITS 26
#define EXHAUST_CHUNKS 64   /* of a function with 2^32 inputs */
#define EXHAUST_PROMISES 2
#define EXHAUST_SAMPLES 8
#define EXHAUST_PIECE (1u << 20)
#define EXHAUST_UNROLL 16
#define EXHAUST_PTX_SIZE 8192

enum exhaust_operand { OPERAND_F32, OPERAND_F16, OPERAND_BF16, OPERAND_F64_HIGH };

enum exhaust_metric {
    METRIC_ULP, /* |got - want| / ulp(want), ulp(w) = 2^(floor(log2 |w|) - p + 1) */
    METRIC_REL, /* |got - want| / |want| */
    METRIC_ABS
};

/* The error wherever lo < |x| < hi (or not, if outside) and the true value is a normal number. */
struct exhaust_promise {
    enum exhaust_metric metric;
    bool outside;
    double lo, hi;
    double bound;   /* 0: none is given */
    uint32_t known; /* not 0: where an H200 itself is beyond the bound, and nowhere further */
};

struct exhaust_function {
    const char *name; /* the instruction: "ex2.approx.ftz.f32" */
    enum exhaust_operand operand;
    bool ftz;                /* a subnormal operand counts as zero */
    double (*fast)(double);  /* of the C library, to about one ulp of binary64 */
    int (*exact)(mpfr_t, const mpfr_t, mpfr_rnd_t);
    size_t promise_count;
    const struct exhaust_promise *promises; /* at most EXHAUST_PROMISES; PTX ISA 9.1, 9.7.3, 9.7.4 */
};

extern const struct exhaust_function exhaust_functions[];
extern const size_t exhaust_function_count;

uint64_t exhaust_input_count(const struct exhaust_function *f);
/* "mufu": all; "ex2": all of that operation; else a whole name. */
bool exhaust_selects(const char *target, const struct exhaust_function *f);
/* Inputs of one launch: few enough that their results stay in a cache. */
size_t exhaust_piece(const struct exhaust_function *f);
/*
 * The length of a module with the entry `all(.u64 out, .u32 first)`: launched with as many threads
 * as a piece has inputs / EXHAUST_UNROLL, it writes f(first + i) for each i of it, one word each.
 */
size_t exhaust_ptx(char *text, size_t size, const struct exhaust_function *f);
/* The value of an operand's or a result's bits. */
double exhaust_value(const struct exhaust_function *f, uint32_t bits);

/* The largest error found under a promise. */
struct exhaust_worst {
    double error; /* -1: none was measured */
    uint32_t x, got;
};

struct exhaust_options {
    const char *target;
    const char *twin;      /* a device that is to give the same bits; NULL: none */
    bool error;            /* measure errors */
    uint64_t shard, shards; /* only chunks whose number modulo shards is shard */
    unsigned threads;
    void (*progress)(void *context, size_t done, size_t total);
    void *context;
};

struct exhaust_report {
    const struct exhaust_function *function;
    uint64_t inputs;                    /* that were run */
    unsigned chunks, hashed, unlike;    /* chunks run, those with a known hash, those that differ */
    uint64_t hashes[EXHAUST_CHUNKS];
    bool ran[EXHAUST_CHUNKS];
    uint64_t compared, differ;          /* with the twin's results; those that it gives otherwise */
    size_t sample_count;
    struct exhaust_sample {
        uint32_t x, here, there;
    } samples[EXHAUST_SAMPLES];         /* some of them */
    uint64_t wrong_class;               /* NaN for a number or a number for NaN */
    uint32_t wrong_class_x;
    struct exhaust_worst worst[EXHAUST_PROMISES]; /* re-judged by MPFR */
};

/*
 * What a report means: nothing differs, all chunks are as hashed, no promise is broken.  A report
 * with neither a known hash nor a twin could not have failed, and has not passed.
 */
bool exhaust_passed(const struct exhaust_report *r);
/* A chunk that ran and is not as hashed. */
bool exhaust_chunk_unlike(const struct exhaust_report *r, unsigned chunk);
/* Within the bound, or beyond it only as an H200 is known to be. */
bool exhaust_promise_kept(const struct exhaust_report *r, size_t promise);

/*
 * One report for each function that the target selects, in the table's order; *out is owned by the
 * caller (free).  ERR_USAGE if the target selects none.
 */
MUST_CHECK status_t exhaust_run(struct exhaust_report **out, size_t *count,
                                const struct exhaust_options *opt);

#endif
