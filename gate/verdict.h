/* gate/verdict.h - what a check found.  Only PASS is a pass; every verdict carries a reason. */
#ifndef GATE_VERDICT_H
#define GATE_VERDICT_H

/* From what counts least in a sum of verdicts to what counts most. */
enum verdict {
    VERDICT_SKIP, /* the kernel does not accept the shape, or its image is for other devices */
    VERDICT_PASS,
    VERDICT_MISTRUSTED, /* the check could not have failed, e.g. a budget wider than the result */
    VERDICT_UNSURE,     /* the oracle could not decide */
    VERDICT_FAIL,
};
#define VERDICT_COUNT (VERDICT_FAIL + 1)

const char *verdict_name(enum verdict v); /* "PASS" */

/*
 * The verdict of a whole from those of its parts: the worst one; SKIP only if all are.  A whole
 * without parts is SKIP: VERDICT_SKIP is where a sum starts.
 */
enum verdict verdict_worse(enum verdict a, enum verdict b);

#endif
