/*
 * base/status.h - whether a function could do its job, and in words why not.
 *
 * Three things are kept apart in Assay.  A status_t says if a function did its job.  A verdict
 * (gate/verdict.h) says what a check found.  An assert marks a fault of Assay itself and is never
 * used for input, files or devices.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

typedef enum status {
    OK = 0,
    ERR_USAGE,       /* bad command line or bad argument */
    ERR_IO,          /* a file is missing, unreadable or cut short */
    ERR_SYNTAX,      /* a file's content is not what its format says */
    ERR_UNSUPPORTED, /* well formed, but outside what Assay does */
    ERR_TARGET,      /* an image for other devices than the one at hand */
    ERR_NOMEM,       /* no memory, or a memory budget is spent */
    ERR_DEVICE,      /* the device cannot be opened or broke down */
    ERR_UNDECIDED,   /* an oracle reached its precision limit */
    ERR_SELF,        /* two parts of Assay contradict each other: neither is to be believed */
} status_t;

/*
 * Record this thread's message: what was expected, what was found and where, in one line (PTX text
 * that does not parse adds the line it stands on and a caret).  Later calls replace earlier ones.
 */
void status_record(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The message of this thread's last failure; "" if there was none.  Valid until the next one. */
const char *status_message(void);

/* The process exit code that a status stands for: 0 done, 2 bad usage or input, 3 could not run. */
int status_exit_code(status_t code);

/* Record a message and give `code`, seen by the compiler: a failure is never OK. */
#define FAIL(code, ...) (status_record(__VA_ARGS__), (code))

/* Store the status of `expr` in the local `st`; on failure leave through the label `done`. */
#define TRY(expr)                                                                        \
    do {                                                                                 \
        st = (expr);                                                                     \
        if (st != OK)                                                                    \
            goto done;                                                                   \
    } while (0)

#define MUST_CHECK __attribute__((warn_unused_result))

#endif
