/* fuzz/target.h - what libFuzzer calls in a target, and how a target says what is wrong. */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* NOLINTBEGIN(readability-identifier-naming) libFuzzer's names */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned seed);
/* NOLINTEND(readability-identifier-naming) */

/*
 * fuzz_fail_CLASS(): end the process as a crash whose stack names what went wrong, so that crash
 * reports group by class.  The line it prints keeps a linker from folding two of them into one.
 */
#define FUZZ_FAIL(class)                                                      \
    __attribute__((noinline, noreturn)) static void fuzz_fail_##class(void) { \
        fputs("  class: " #class "\n", stderr);                               \
        abort();                                                              \
    }

#endif
