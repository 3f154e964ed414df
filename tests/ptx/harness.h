/*
 * tests/ptx/harness.h - run a few lines of PTX and look at what they did.
 *
 * The body of a kernel is wrapped in an entry `k` with parameters out, in (u64) and n (u32) and
 * registers %p0-9, %h0-9 (16 bits), %r0-29, %d0-19 (64), %f0-9 (f32).  %d0 holds out, %d1 in, %r0
 * n, %r1 the thread's number in its block, %r2 in the grid, %d2 the address of out[grid thread]
 * (u32).
 */
#ifndef TESTS_PTX_HARNESS_H
#define TESTS_PTX_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "tests/ptx/elsewhere.h"

struct job {
    const char *declare; /* variables inside the entry, or NULL */
    const char *module;  /* module-scope declarations, or NULL */
    const char *body;
    const char *target;       /* "sm_100a", on the emulator; NULL: sm_90 */
    unsigned blocks, threads; /* 0: 1 */
    unsigned cluster;         /* blocks of a cluster, along x; 0: none is named */
    size_t dynamic_shared;
    uint32_t n;
    const uint32_t *in;
    size_t in_words, out_words;
    size_t in_written; /* words of `in` that are written; the rest stays poison */
    bool shadow;
    uint64_t seed, insn_budget, memory_budget;
};

#define OUT_WORDS 4096

extern const char *job_device;  /* where jobs run: "cpu", or what use_device found */
extern struct dev_run run;      /* of the last job */
extern uint32_t out[OUT_WORDS]; /* its output; unwritten words are 0xffffffff */
extern unsigned failures, checks;

/* Schedules under which a result must be the same; a GPU has one, its own. */
extern const uint64_t job_seeds[];
size_t job_seed_count(void);

/* Is the command line `--device NAME`?  Then that is job_device, and what has a result is to run there,
 * nothing else.  Ends the program as skipped if there is no such GPU. */
bool use_device(int argc, char **argv);

/* The x86-64 levels of the emulator's loops: use_level(0 .. LEVEL_COUNT - 1) makes devices that are
 * opened from now on run that one's; false where this machine has not got it. */
enum { LEVEL_COUNT = 3 };
bool use_level(int level);

/*
 * The device of one job.  The emulator's is new each time; a GPU's is the same for all jobs, as each
 * start takes 0.2 s: after a fault it goes on in a new process (docs/gpu.md), and the fault is that
 * job's alone.  The options are those of the first job there.
 */
status_t job_open(struct device **dev, const char *name, const struct device_options *options);
void job_close(struct device *dev);

status_t job_run(const struct job *j);
/*
 * Run and expect a clean end.  If it is not, the reason is printed, and the checks that follow fail
 * without a line of their own until the next job: they look at what never came to be.
 */
void job_clean(const char *name, const struct job *j);
/* Run and expect a fault of this kind (first of its records). */
void job_fault(const char *name, const struct job *j, enum dev_fault_kind kind);

#define CHECK_EQ(got, want, name) \
    check_eq((unsigned long long)(got), (unsigned long long)(want), name, __FILE__, __LINE__)
void check_eq(unsigned long long got, unsigned long long want, const char *name, const char *file,
              int line);
/* A test's own kernel, which it runs and looks at: its instructions count as run. */
void harness_note(const char *text, size_t size);
/* Each row that elsewhere.h leaves to this test was in the body of a job that ran as expected. */
void check_elsewhere(enum elsewhere_test test);
int report(void); /* prints the count; the exit code */

#endif
