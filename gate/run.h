/* gate/run.h - a suite over many kernels, shared out to threads. */
#ifndef GATE_RUN_H
#define GATE_RUN_H

#include "gate/report.h"

struct gate_options {
    const char *device; /* "cpu" */
    const char *twin;   /* a device that has to give the same bits, "cuda:0"; NULL: none */
    enum suite suite;
    uint64_t seed;
    unsigned threads;     /* each opens its own device; at least 1.  Where cases are fewer, the rows
                             of one are shared out */
    const char *dir;      /* keep a journal there and go on from it; NULL: none */
    const char *real_dir; /* folder with real inputs; NULL: none */
    /* Called now and then, from any thread but never from two at once; NULL: not. */
    void (*progress)(void *context, size_t done, size_t total);
    void *context;
};

/*
 * kernel_load, but an image that is compiled for other devices is no failure: *out is then NULL, and
 * reason says why.  The kernel is a SKIP on this device.
 */
MUST_CHECK status_t gate_load(struct loaded_kernel **out, char reason[static REASON_SIZE],
                              struct device *dev, const struct kernel *kernel);

/*
 * Run every kernel on every case of its suite.  The report does not depend on the number of threads.
 * All images are loaded before the first case runs, so a broken one ends the run at once.  One that is
 * compiled for other devices is SKIP in all cases, or, where only the twin cannot run it, in those
 * that compare with the twin.
 * A failure later leaves in *out what was found until then, with complete = false; what did not run
 * is UNSURE with the reason.  out is to be cleared in every case.
 */
MUST_CHECK status_t gate_run(struct gate_report *out, const struct kernel *const *kernels,
                             size_t count, const struct gate_options *opt);

/*
 * One kernel on one case.  work: made use of by a bound check.  twin: the kernel on the other device
 * for CHECK_TWIN, else NULL.  An oracle that cannot decide is UNSURE; ERR_* when it could not be run.
 */
MUST_CHECK status_t gate_check(struct outcome *out, struct loaded_kernel *lk,
                               struct loaded_kernel *twin, enum check check,
                               const struct test_case *c, const struct work_options *work);

/*
 * The device as the gate opens it: with the shadow on, and an instruction budget for launches on cases
 * of the suites' sizes, or of `elements` if that is more.
 */
MUST_CHECK status_t gate_device(struct device **out, const char *name, size_t elements);

#endif
