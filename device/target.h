/* device/target.h - the target that PTX was compiled for ("sm_90a"), and the devices that run it. */
#ifndef DEVICE_TARGET_H
#define DEVICE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

/* "sm_80" -> 80, "sm_90a" -> 90; 0 if it is no target. */
unsigned target_number(const char *name);

/*
 * PTX runs on its target and on newer ones, sm_90a's on sm_90 only (PTX ISA, "PTX Module Directives:
 * .target").  False also where one of the two is no target.
 */
bool target_runs_on(const char *target, const char *device);

/* The first .target of a text; "" if there is none, as in a cubin, or it does not fit. */
void target_of(char out[16], const char *text, size_t size);

#endif
