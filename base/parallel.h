/*
 * base/parallel.h - loops whose items are shared out to threads.
 *
 * A struct threads counts the threads that nobody uses at the moment.  A loop takes them as they
 * come free, in its middle, too, and gives each back as soon as there are no more items.  So loops
 * may be nested: when a long outer loop comes to its last items, their inner loops get the threads.
 */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/status.h"

struct threads {
    unsigned count;     /* that may run at a time, the caller's own among them; for a moment one
                           more, when a loop that waited for its helpers goes on */
    atomic_int spare;   /* of them, without work */
    void (*done)(void); /* called by each thread before it ends; NULL: nothing to do */
};

void threads_init(struct threads *t, unsigned count, void (*done)(void)); /* count >= 1 */

/* worker: 0 .. threads->count - 1; of one loop no two items at a time have the same. */
typedef status_t item_fn(void *context, unsigned worker, size_t item);

/*
 * item(context, worker, i) for i = 0 .. count-1, begun in this order; the caller is worker 0.
 * threads NULL: on the caller's thread alone.  After a failure no item begins; what is returned, with
 * its message, is the failure of the first item that failed.
 */
MUST_CHECK status_t parallel_for(struct threads *threads, size_t count, item_fn *item,
                                 void *context);

#endif
