/*
 * tests/order/online.h - the (m, l) combine of online softmax on the host, for property tests.
 *
 * A mirror of online_join and online_push in kernels/softmax/online.cuh, operation by operation in
 * float; only expf is a parameter.  test_online_device.c holds it to what the device computes.
 */
#ifndef TESTS_ORDER_ONLINE_H
#define TESTS_ORDER_ONLINE_H

#include <stdbool.h>

#include "base/rng.h"

struct online {
    float m, l; /* the maximum of a set of entries; the sum of exp(x - m) over it */
};

typedef float exp_fn(float x);
typedef struct online join_fn(struct online a, struct online b, exp_fn *exp);

struct online online_empty(void);
join_fn online_join;
struct online online_push(struct online s, float x, exp_fn *exp);

/* ---- states ---------------------------------------------------------------------------------- */

#define ONLINE_SPECIALS 13
extern const struct online online_special[ONLINE_SPECIALS];

/* An entry: a special one, one equal, next to or far below `near`, or an everyday one. */
float online_random_maximum(struct rng *r, float near);
/* One entry, or the state of up to 2^20 entries; one in eight is empty. */
struct online online_random(struct rng *r, float near);

bool online_same(struct online a, struct online b); /* bit for bit, but any NaN is any NaN */

/* ---- two exponentials that are their own truth (MPFR) ---------------------------------------- */

exp_fn exp_nearest; /* correctly rounded */
exp_fn
    exp_neighbour; /* that or, decided by the argument, a float next to it; exact at 0 and -Inf */

/* ---- combines with one planted mistake each -------------------------------------------------- */

join_fn join_no_guard;       /* -Inf minus -Inf */
join_fn join_swapped;        /* the larger maximum is taken for the smaller one */
join_fn join_no_rescale;     /* sums are added as they are */
join_fn join_first_maximum;  /* the first one's maximum is kept, whichever is larger */
join_fn join_nan_dropped;    /* a sum that is NaN counts as 0 */
join_fn join_rescaled_twice; /* the smaller side is rescaled twice */

#endif
