/* kernels/read_file.h - a whole file in memory. */
#ifndef KERNELS_READ_FILE_H
#define KERNELS_READ_FILE_H

#include <stddef.h>

#include "base/status.h"

#define IMAGE_MAX_BYTES ((size_t)256 << 20)

/*
 * *out = the file's bytes and a NUL behind them; the caller frees it.  ERR_IO if it cannot be
 * read or is no regular file of at most `limit` bytes; ERR_NOMEM.
 */
MUST_CHECK status_t read_file(char **out, size_t *size, const char *path, size_t limit);

#endif
