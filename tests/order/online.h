/*
 * tests/order/online.h - the (m, l) combine of online softmax on the host, for property tests.
 *
 * A mirror of online_join and online_push in kernels/softmax/online.cuh, operation by operation in
 * float; only expf is a parameter.  What this means for the kernels themselves, on a device, is the
 * gate's order check.
 */
#ifndef TESTS_ORDER_ONLINE_H
#define TESTS_ORDER_ONLINE_H

struct online {
    float m, l; /* the maximum of a set of entries; the sum of exp(x - m) over it */
};

typedef float exp_fn(float x);
typedef struct online join_fn(struct online a, struct online b, exp_fn *exp);

struct online online_empty(void);
join_fn online_join;
struct online online_push(struct online s, float x, exp_fn *exp);

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
