/* base/status.c - the per-thread message slot behind FAIL. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[1024];

void status_record(const char *format, ...) {
    va_list args;
    va_start(args, format);
    /* A message may quote the previous one (adding context), so build it apart. */
    char text[sizeof message];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(message, sizeof message, "%s", text);
}

const char *status_message(void) {
    return message;
}

int status_exit_code(status_t code) {
    switch (code) {
    case OK:
        return 0;
    case ERR_USAGE:
    case ERR_IO:
    case ERR_SYNTAX:
    case ERR_UNSUPPORTED:
    case ERR_TARGET:
        return 2;
    case ERR_NOMEM:
    case ERR_DEVICE:
    case ERR_UNDECIDED:
    case ERR_SELF:
        return 3;
    }
    return 3;
}
