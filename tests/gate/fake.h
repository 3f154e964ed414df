/*
 * tests/gate/fake.h - kernels made of C functions, in the place of kernels/ and device/.
 *
 * Linking fake.c replaces the loader, the launcher and the device, so that the gate can be tested
 * with kernels that are wrong in exactly one way.  Oracle and budgets are the real ones.
 */
#ifndef TESTS_GATE_FAKE_H
#define TESTS_GATE_FAKE_H

#include "kernels/catalogue.h"

/* What a fake computes; it may look at everything a kernel sees.  Set a fault in *run if any. */
typedef void fake_fn(float *y, const float *x, struct case_dims dims, uint64_t schedule_seed,
                     struct dev_run *run);

struct fake {
    struct kernel kernel; /* first: a struct kernel * of a fake is a struct fake * */
    fake_fn *compute;
    struct numerics numerics;
    struct op_options options;
    size_t max_cols; /* 0: any */
};

/* An f32 kernel of this op with numerics that suit the honest fakes below. */
struct fake fake_kernel(const char *name, const char *op, fake_fn *compute);

/* Honest ones: serial sum and softmax in float arithmetic, and max. */
fake_fn fake_sum, fake_max, fake_softmax;

/* How often kernel_run was called; after fail_after calls (0: never) it returns ERR_DEVICE. */
extern size_t fake_runs, fake_fail_after;

/* A loaded fake. */
struct loaded_kernel *fake_load(const struct fake *fake);

#endif
