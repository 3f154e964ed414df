/* oracle/row.c - a row examined once, and the loop that raises the precision until it is enough. */
#include <float.h>
#include <math.h>

#include "oracle/oracle_impl.h"

struct row_facts row_examine(const struct oracle_row *row) {
    struct row_facts facts = {.max = -INFINITY};
    for (size_t i = 0; i < row->cols; i++) {
        double x = row->x[i];
        if (isnan(x)) {
            facts.nan++;
        } else if (isinf(x)) {
            *(x > 0 ? &facts.plus_inf : &facts.minus_inf) += 1;
        } else {
            /* Rounding keeps the order of sums, but for making some equal. */
            if (facts.finite == 0 || x > facts.max ||
                (x == facts.max && row_low(row, i) > row_low(row, facts.argmax))) {
                facts.max = x;
                facts.argmax = i;
            }
            facts.finite++;
        }
    }
    return facts;
}

void enclosure_fill(struct enclosure *out, size_t n, struct enclosure value) {
    for (size_t i = 0; i < n; i++)
        out[i] = value;
}

/* No wider than 2^-40 relative, or one spacing of doubles: the smallest, or beyond the largest. */
static bool tight(struct enclosure e) {
    if (e.lo == e.hi || e.lo == DBL_MAX || e.hi == -DBL_MAX)
        return true;
    double width = e.hi - e.lo;
    return width <= 0x1p-40 * fmin(fabs(e.lo), fabs(e.hi)) || width <= 0x1p-1074;
}

status_t row_refine(struct enclosure *out, size_t n, const struct oracle_row *row,
                    const struct row_facts *facts, attempt_fn *attempt) {
    const mpfr_prec_t first = 96, limit = 6144;
    for (mpfr_prec_t prec = first; prec <= limit; prec *= 2) {
        status_t st = attempt(out, row, facts, prec);
        if (st != OK)
            return st;
        size_t i = 0;
        while (i < n && tight(out[i]))
            i++;
        if (i == n)
            return OK;
    }
    return FAIL(ERR_UNDECIDED, "oracle: still undecided at %ld bits (row of %zu)", (long)limit,
                row->cols);
}
