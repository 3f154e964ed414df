/* tests/times.h - how often a loop of a test runs. */
#ifndef TESTS_TIMES_H
#define TESTS_TIMES_H

#include <stddef.h>
#include <stdlib.h>

/* n times ASSAY_TEST_MULT (default 1), at least 1: 10 for a thorough run; 0.15 under the
 * sanitizers, where it matters that a step is taken, not how often. */
static inline size_t times(size_t n) {
    const char *mult = getenv("ASSAY_TEST_MULT");
    double wanted = mult ? (double)n * strtod(mult, NULL) : (double)n;
    return wanted > 1 ? (size_t)wanted : 1;
}

#endif
