/* kernels/place.h - where in a YAML text something is written (libyaml). */
#ifndef KERNELS_PLACE_H
#define KERNELS_PLACE_H

#include <stddef.h>

#include "base/status.h"

struct place {
    size_t line, column; /* from 1; 0: nowhere */
};

/* ERR_SYNTAX with path:line:column unless text is exactly one YAML document. */
MUST_CHECK status_t place_check_yaml(const char *path, const char *text, size_t size);

/*
 * The value at a route such as "kernels[2].launches[0].entry"; where the route ends early in the
 * text, the value it got to.  Indices count from 0.
 */
struct place place_of_value(const char *text, size_t size, const char *route);

/* The first mapping key of this name at or behind `from`. */
struct place place_of_key(const char *text, size_t size, const char *key, struct place from);

#endif
