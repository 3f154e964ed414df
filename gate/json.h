/* gate/json.h - the JSON forms that results.json and the journal share (jansson). */
#ifndef GATE_JSON_H
#define GATE_JSON_H

#include <jansson.h>

#include "gate/report.h"

/* A finite double as a number, else "inf", "-inf" or "nan": JSON has no numbers for them. */
json_t *json_of_double(double v);
/* The inverse; false if it is neither. */
bool json_to_double(double *out, const json_t *json);

json_t *json_of_events(const struct dev_events *e);
bool json_to_events(struct dev_events *out, const json_t *json);

/* {"f64": results decided by it, ..., "mpfr": ..., "audited": ...} */
json_t *json_of_tally(const struct tally *t);
bool json_to_tally(struct tally *out, const json_t *json);

/* One kernel's object of results.json; NULL if there is no memory. */
json_t *json_of_kernel(const struct kernel_report *r);

#endif
