/*
 * oracle/oracle.h - the truth: enclosures of each op's real result, from the exact input values.
 *
 * An op works on one row at a time (rows are independent), so callers may share rows out to
 * threads. MPFR is the judge, at rising precision until the enclosure is tight.  Conventions for
 * NaN, +-Inf, empty rows and signed zero: docs/numerics.md.
 */
#ifndef ORACLE_ORACLE_H
#define ORACLE_ORACLE_H

#include "base/status.h"
#include "oracle/bounds.h"
#include "oracle/enclosure.h"

/* What a row without any finite or +Inf entry gives: the manifest's `empty_row`. */
enum empty_row { EMPTY_NAN, EMPTY_ZERO, EMPTY_UNIFORM };

/* One row of inputs.  x: cols exact values of the input dtype; cols may be 0. */
struct oracle_row {
    const double *x;
    size_t cols;
    enum empty_row empty_row;
};

enum op_result { OP_PER_ROW, OP_PER_ELEMENT }; /* 1 result per row, or cols of them */

struct op {
    const char *name; /* "softmax" */
    const char *formula;
    enum op_result result;
    /*
     * out[0 .. n-1], n = 1 or cols: enclosures no wider than 2^-40 relative to the result, or
     * 2^-1074 absolute.  ERR_NOMEM; ERR_UNDECIDED at the precision limit.
     */
    status_t (*enclose)(struct enclosure *out, const struct oracle_row *row);
    /*
     * budget[0 .. n-1]: upper bounds on |got - real result| for a correct kernel with these
     * declared numerics on this very row (rounded up; +Inf where a correct kernel may overflow on
     * the way and so no bound holds).  0 where only the class counts (NaN, infinities) and where
     * the result is exact.  want: what enclose gave.  ERR_UNSUPPORTED if the numerics lack what the
     * op needs. Derivations: docs/bounds.md.
     */
    status_t (*budget)(double *budget, const struct oracle_row *row, const struct enclosure *want,
                       const struct numerics *numerics);
    /*
     * spread[0 .. n-1]: upper bounds on |got_A - got_B| for one correct kernel that sees this row
     * in two orders (spread[j] is for entry j of the row, wherever each order put it).  Never above
     * twice the budget, and below it where the orders share rounded values.
     */
    status_t (*spread)(double *spread, const struct oracle_row *row, const struct enclosure *want,
                       const struct numerics *numerics);
};

/* All ops, ended by a row with name NULL. */
extern const struct op ops[];

const struct op *op_find(const char *name);

/* Free what MPFR caches for this thread; call it before a thread ends. */
void oracle_thread_done(void);

#endif
