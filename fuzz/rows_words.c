/*
 * rows_words.c - fuzz inputs to text and back, for reading a find and for writing a seed.
 *
 *   rows_words print FILE...          each input in words (words.h)
 *   rows_words make FOLDER < LINES    per line "name words": FOLDER/name; # starts a comment
 *   rows_words npy FILE OUT.npy       the matrix that the input stands for, for assay check -i x=
 *
 * Exit: 0 done, 2 bad usage or bad input.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/words.h"
#include "gate/npy.h"

static struct rows_program program;
static uint8_t bytes[ROWS_MAX_BYTES];
static uint32_t bits[ROWS_MAX_ROWS * ROWS_MAX_COLS];

static status_t read_input(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return FAIL(ERR_IO, "%s: %s", path, strerror(errno));
    size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    if (!rows_decode(&program, bytes, size))
        return FAIL(ERR_SYNTAX, "%s: does not begin with the version byte %d", path, ROWS_VERSION);
    return OK;
}

static status_t print(int count, char **paths) {
    status_t st = OK;
    static char text[1 << 20];
    for (int i = 0; i < count; i++) {
        TRY(read_input(paths[i]));
        rows_print(text, sizeof text, &program);
        printf("%s\t%s\n", paths[i], text);
    }
done:
    return st;
}

static status_t write_input(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    size_t size = rows_encode(bytes, sizeof bytes, &program);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0)
        return FAIL(ERR_IO, "%s: %s", path, strerror(errno));
    return OK;
}

static status_t make(const char *folder) {
    status_t st = OK;
    char *line = NULL;
    size_t room = 0, number = 0;
    while (getline(&line, &room, stdin) > 0) {
        number++;
        char *name = strtok(line, " \t\n"), *words = strtok(NULL, "\n");
        if (!name || name[0] == '#')
            continue;
        if (rows_parse(&program, words ? words : "") != OK)
            TRY(FAIL(ERR_SYNTAX, "line %zu: %s: %s", number, name, status_message()));
        TRY(write_input(folder, name));
    }
done:
    free(line);
    return st;
}

static status_t npy(const char *path, const char *out) {
    status_t st = OK;
    TRY(read_input(path));
    rows_render(bits, &program);
    TRY(npy_write(out, &dtypes[DT_F32], program.rows, program.cols, bits));
done:
    return st;
}

int main(int argc, char **argv) {
    status_t st;
    if (argc >= 3 && strcmp(argv[1], "print") == 0)
        st = print(argc - 2, argv + 2);
    else if (argc == 3 && strcmp(argv[1], "make") == 0)
        st = make(argv[2]);
    else if (argc == 4 && strcmp(argv[1], "npy") == 0)
        st = npy(argv[2], argv[3]);
    else
        st = FAIL(ERR_USAGE, "usage: rows_words print FILE... | make FOLDER | npy FILE OUT.npy");
    if (st != OK)
        fprintf(stderr, "rows_words: %s\n", status_message());
    return status_exit_code(st);
}
