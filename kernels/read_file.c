/* A whole file in memory. */
#include "kernels/read_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

status_t read_file(char **out, size_t *size, const char *path, size_t limit) {
    status_t st = OK;
    char *text = NULL;
    struct stat info;
    *out = NULL;
    *size = 0;

    FILE *file = fopen(path, "rb");
    if (!file)
        return FAIL(ERR_IO, "%s: %s", path, strerror(errno));
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode))
        TRY(FAIL(ERR_IO, "%s: not a regular file", path));
    if ((size_t)info.st_size > limit)
        TRY(FAIL(ERR_IO, "%s: %zu bytes, at most %zu are read", path, (size_t)info.st_size, limit));
    text = malloc((size_t)info.st_size + 1);
    if (!text)
        TRY(FAIL(ERR_NOMEM, "%s: no memory for %zu bytes", path, (size_t)info.st_size));
    *size = fread(text, 1, (size_t)info.st_size, file);
    if (*size != (size_t)info.st_size)
        TRY(FAIL(ERR_IO, "%s: cut short while reading", path));
    text[*size] = '\0';
    *out = text;
    text = NULL;
done:
    free(text);
    fclose(file);
    return st;
}
