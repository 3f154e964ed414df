/* oracle/max.c - max_i x_i: exact; NaN if any entry is NaN (docs/numerics.md#nan). */
#include <math.h>

#include "oracle/oracle_impl.h"

status_t max_enclose(struct enclosure *out, const struct oracle_row *row) {
    struct row_facts facts = row_examine(row);
    if (facts.nan > 0)
        *out = enclosure_exact(NAN);
    else if (facts.plus_inf > 0)
        *out = enclosure_exact(INFINITY);
    else
        *out = enclosure_exact(facts.max); /* -Inf where nothing is finite */
    return OK;
}
