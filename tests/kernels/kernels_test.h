/* tests/kernels/kernels_test.h - cmocka and what every test here needs. */
#ifndef TESTS_KERNELS_KERNELS_TEST_H
#define TESTS_KERNELS_KERNELS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

/* Fail with a message of its own. */
#define CHECK(condition, ...)           \
    do {                                \
        if (!(condition)) {             \
            print_error(__VA_ARGS__);   \
            print_error("\n");          \
            fail_msg("%s", #condition); \
        }                               \
    } while (0)

#endif
