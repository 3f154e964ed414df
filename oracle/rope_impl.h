/* oracle/rope_impl.h - what rope.c and bounds_rope.c share. */
#ifndef ORACLE_ROPE_IMPL_H
#define ORACLE_ROPE_IMPL_H

#include "oracle/rope.h"

/* Where the entries of pair i lie. */
struct rope_pair {
    size_t first, second;
};

struct rope_pair rope_pair_at(const struct rope_row *row, size_t i);

#endif
