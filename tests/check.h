/* tests/check.h - cmocka with what it needs before it, and checks that say what was wrong. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Fail with a message of its own; the row or the bits belong into it. */
#define CHECK(condition, ...)           \
    do {                                \
        if (!(condition)) {             \
            print_error(__VA_ARGS__);   \
            print_error("\n");          \
            fail_msg("%s", #condition); \
        }                               \
    } while (0)

#define CHECK_OK(expr)                                                           \
    do {                                                                         \
        status_t check_status = (expr);                                          \
        CHECK(check_status == OK, "%s: status %d: %s", #expr, (int)check_status, \
              status_message());                                                 \
    } while (0)

#define CHECK_CONTAINS(text, wanted) \
    CHECK(strstr((text), (wanted)) != NULL, "\"%s\" does not contain \"%s\"", (text), (wanted))

#endif
