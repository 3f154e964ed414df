/*
 * gate/bench.h - how fast a kernel is: device time on a GPU, counts on the emulator.
 *
 * Time is that of all launches of a kernel on random normal data, by device events, the median of
 * many.  It is judged by useful bytes: each input read once and each output written once, whatever
 * the kernel really moves, over the median; and that as a fraction of what a copy kernel reaches on
 * the same device in the same run.  The emulator does not pretend to know times: there the executed
 * instructions and the bytes asked of memory are counted.  Method: docs/bench.md.
 */
#ifndef GATE_BENCH_H
#define GATE_BENCH_H

#include <stdio.h>

#include "gate/judge.h"
#include "kernels/catalogue.h"

/* What to measure: a kernel at one shape, or at all of its op's list (gate/bench_suite.h). */
struct bench_job {
    const struct kernel *kernel;
    bool suite;
    bool recommended;      /* of the suite's shapes only those for which the kernel is recommended */
    struct case_dims dims; /* unless suite */
};

struct bench_options {
    const char *device;
    uint64_t seed;
    /* Called after each row; NULL: not. */
    void (*progress)(void *context, size_t done, size_t total);
    void *context;
};

/* One kernel at one shape. */
struct bench_row {
    const struct kernel *kernel;
    struct case_dims dims;
    char reason[REASON_SIZE]; /* why there are no figures; "" if there are */
    bool failed;              /* the kernel faulted */
    size_t bytes;             /* useful ones */
    size_t results;           /* elements of all outputs */
    double flops;             /* operations, where the op is measured by them; else 0 */
    const char *variant;      /* of the op: gate/bench_suite.h */
    /* On a timed device: seconds of one run. */
    size_t samples;
    double min, low, median, high; /* low, high: the quartiles */
    /* On the emulator: of one run. */
    uint64_t warp_insns, lane_insns, bytes_read, bytes_written;
};

/* The kernel everything is compared with. */
struct bench_copy {
    char entry[32]; /* the fastest of the variants */
    size_t bytes;   /* read and written */
    double before,
        after; /* medians in seconds, at the begin and the end of the run; 0: not timed */
};

struct bench_report {
    struct device_info device;
    uint64_t seed;
    struct bench_copy copy;
    size_t count;
    struct bench_row *rows; /* in the order of the jobs; owned */
};

/*
 * Of a suite, shapes that the kernel does not accept are left out.  ERR_USAGE, ERR_DEVICE, ERR_NOMEM;
 * out is to be cleared in every case.
 */
MUST_CHECK status_t bench_run(struct bench_report *out, const struct bench_job *jobs, size_t count,
                              const struct bench_options *opt);
void bench_report_clear(struct bench_report *r); /* safe on a zeroed struct, and twice */

/* Every row has figures, a shape that its kernel does not accept, or a kernel for other devices. */
bool bench_report_passed(const struct bench_report *r);

/* Useful bytes per second; that of the copy; their ratio.  0 where nothing was timed. */
double bench_rate(const struct bench_row *row);
double bench_copy_rate(const struct bench_report *r);
double bench_fraction(const struct bench_report *r, const struct bench_row *row);

/* Seconds that another program took for (op, dtype, shape); see docs/bench.md for the file. */
struct beside;
MUST_CHECK status_t beside_read(struct beside **out, const char *path); /* ERR_IO, ERR_SYNTAX */
void beside_free(struct beside *b);                                     /* NULL is fine */
/* 0 if the file does not have it. */
double beside_seconds(const struct beside *b, const struct bench_row *row);

/* A table; beside may be NULL. */
void bench_text(FILE *to, const struct bench_report *r, const struct beside *beside);
/* The whole report as one object.  ERR_NOMEM, ERR_IO. */
MUST_CHECK status_t bench_json(FILE *to, const struct bench_report *r, const struct beside *beside);
/*
 * Into DIR/results.json: each kernel's `bench`.  A file that is there keeps all else, if it is of the
 * same images; kernels that it lacks are added.  ERR_IO, ERR_SYNTAX, ERR_NOMEM.
 */
MUST_CHECK status_t bench_write(const char *dir, const struct bench_report *r,
                                const struct beside *beside);

#endif
