/* oracle/attention_impl.h - what attention.c and its tiers share. */
#ifndef ORACLE_ATTENTION_IMPL_H
#define ORACLE_ATTENTION_IMPL_H

#include "oracle/attention.h"

/* ERR_USAGE for options that make no sense. */
MUST_CHECK status_t attention_check(const struct attention_row *row);

#endif
