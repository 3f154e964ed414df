/* gate/file.c - digests (libmd), folders, paths. */
#include "gate/file.h"

#include <errno.h>
#include <limits.h>
#include <sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(DIGEST_SIZE == SHA256_DIGEST_STRING_LENGTH, "hex digits and NUL");

status_t file_sha256(char digest[static DIGEST_SIZE], const char *path) {
    if (!SHA256File(path, digest))
        return FAIL(ERR_IO, "%s: %s", path, strerror(errno));
    return OK;
}

void text_sha256(char digest[static DIGEST_SIZE], const char *text) {
    data_sha256(digest, text, strlen(text));
}

void data_sha256(char digest[static DIGEST_SIZE], const void *data, size_t size) {
    SHA256Data(data, size, digest);
}

const char *file_shorten(const char *path) {
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here))
        return path;
    size_t n = strlen(here);
    if (strncmp(path, here, n) != 0 || path[n] != '/' || path[n + 1] == '\0')
        return path;
    return path + n + 1;
}

bool file_beside_program(char *out, size_t size, const char *name) {
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return false;
    program[n] = '\0';
    *strrchr(program, '/') = '\0';
    int length = snprintf(out, size, "%s/%s", program, name);
    return length > 0 && (size_t)length < size && access(out, R_OK) == 0;
}

status_t file_make_folder(const char *path) {
    char part[PATH_MAX];
    struct stat info;
    if (strlen(path) >= sizeof part || *path == '\0')
        return FAIL(ERR_IO, "'%s' is no name for a folder", path);
    strcpy(part, path);
    for (char *at = part + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char end = *at;
        *at = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return FAIL(ERR_IO, "cannot make the folder %s: %s", part, strerror(errno));
        *at = end;
        if (end == '\0')
            break;
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return FAIL(ERR_IO, "%s: not a folder", path);
    return OK;
}
