/* kernels/schema.h - the form of a manifest as a libcyaml schema. */
#ifndef KERNELS_SCHEMA_H
#define KERNELS_SCHEMA_H

#include <cyaml/cyaml.h>
#include <stddef.h>

/* Reads into a struct manifest (manifest.h). */
extern const cyaml_schema_value_t manifest_schema;

/* The words that a field takes, each with a space in front; "" for a field without a list. */
void schema_words(char *out, size_t size, const char *field);

#endif
