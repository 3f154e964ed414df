/* gate/file.h - digests of files, folders, and where Assay's own data lie. */
#ifndef GATE_FILE_H
#define GATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define DIGEST_SIZE 65 /* 64 hex digits and NUL */

/* SHA-256 of a file's content, of a string and of data, in lower-case hex.  ERR_IO. */
MUST_CHECK status_t file_sha256(char digest[static DIGEST_SIZE], const char *path);
void text_sha256(char digest[static DIGEST_SIZE], const char *text);
void data_sha256(char digest[static DIGEST_SIZE], const void *data, size_t size);

/* `path` as seen from the current folder if it lies below it, else `path` itself. */
const char *file_shorten(const char *path);

/* The path of `name` beside the running program ("corpus/real"); false if there is none. */
bool file_beside_program(char *out, size_t size, const char *name);

/* Make a folder and the folders above it, where they are not there yet.  ERR_IO. */
MUST_CHECK status_t file_make_folder(const char *path);

#endif
