/*
 * gate/ensemble.h - what one result cannot show: a bias, or errors that are always near the worst.
 *
 * Two tests over the independent random rows of a case (docs/bounds.md, "Ensembles"), both with a
 * probability of a false alarm below 1e-13 whatever the distribution of the errors:
 *
 *   bias     E = (got - want) / budget, averaged over a row, must scatter around 0; tested as it is
 *            (rounding up or down) and times the sign of the result (rounding to or from zero).  With a
 *            last rounding to a format below acc, want is the datum that is right.
 *   spread   the mean square of (got - want) / S, S the budget with sqrt(height) for height
 *            (Higham and Mary 2019), must not exceed 1.
 *
 * Rows with errors beyond their budget, wrong classes and so on are the bound check's business: here
 * elements that are no numbers, subnormal, or without a budget are passed over.
 */
#ifndef GATE_ENSEMBLE_H
#define GATE_ENSEMBLE_H

#include "gate/judge.h"

/*
 * NULL if the rows of the fill are independent and random, as the tests assume; else why not.  A
 * case that is not from a fill (fill NULL) has rows that nobody drew at random.
 */
const char *ensemble_refuses(const struct fill *fill);

/*
 * Judge y (data of kernel->out) as an ensemble.  PASS; FAIL; SKIP where the declared arithmetic
 * gives neither test anything to hold the kernel to; MISTRUSTED where this case could not have
 * shown even errors of the whole budget (too few rows, no numbers).  max_ulp, max_rel and max_rho
 * stay 0.  ERR_NOMEM, ERR_UNSUPPORTED as budgets_make.
 */
MUST_CHECK status_t ensemble_output(struct judgement *out, const struct kernel *kernel,
                                    const struct test_case *c, struct truth *truth,
                                    const void *y);

/* Run the kernel and judge its output so; as judge_kernel otherwise. */
MUST_CHECK status_t ensemble_kernel(struct judgement *out, struct kernel_result *result,
                                    struct loaded_kernel *lk, const struct test_case *c,
                                    struct truth *truth);

#endif
