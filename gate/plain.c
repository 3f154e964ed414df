/* gate/plain.c - budgets.txt read, and a judgement held against a row of it. */
#include "gate/plain.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 512

/* budgets.txt beside the manifest. */
static status_t path_of(char *out, size_t size, const struct kernel *kernel) {
    const char *slash = strrchr(kernel->manifest, '/');
    int folder = slash ? (int)(slash + 1 - kernel->manifest) : 0;
    if (snprintf(out, size, "%.*sbudgets.txt", folder, kernel->manifest) >= (int)size)
        return FAIL(ERR_IO, "%s: the path is too long", kernel->manifest);
    return OK;
}

/* The next word of *text, ended by NUL; *text moves behind it.  NULL: there is none. */
static char *next_word(char **text) {
    static const char blanks[] = " \t\r\n";
    char *word = *text + strspn(*text, blanks);
    if (*word == '\0')
        return NULL;
    char *end = word + strcspn(word, blanks);
    *text = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

static bool number(double *out, const char *word) {
    char *end;
    if (!word)
        return false;
    *out = strtod(word, &end);
    return *end == '\0' && isfinite(*out) && *out >= 0;
}

/* One line that is not blank and no comment; *name points into it. */
static status_t parse(char **name, struct plain *row, char *text, const char *path) {
    *name = next_word(&text);
    if (!number(&row->max_ulp, next_word(&text)) || !number(&row->max_rel, next_word(&text)))
        return FAIL(ERR_SYNTAX, "%s:%d: expected NAME MAX_ULP MAX_REL WHY, numbers not negative",
                    path, row->line);
    if (!next_word(&text))
        return FAIL(ERR_SYNTAX, "%s:%d: %s: expected the reason for these numbers behind them",
                    path, row->line, *name);
    return OK;
}

static status_t read_rows(struct plain *out, FILE *file, const char *path, const char *wanted) {
    char text[LINE_SIZE];
    for (int line = 1; fgets(text, sizeof text, file); line++) {
        if (!strchr(text, '\n') && !feof(file))
            return FAIL(ERR_SYNTAX, "%s:%d: the line is longer than %d bytes", path, line,
                        LINE_SIZE - 2);
        if (text[strspn(text, " \t\r\n")] == '\0' || text[0] == '#')
            continue;
        struct plain row = {.known = true, .line = line};
        char *name;
        status_t st = parse(&name, &row, text, path);
        if (st != OK)
            return st;
        if (strcmp(name, wanted) != 0)
            continue;
        if (out->known)
            return FAIL(ERR_SYNTAX, "%s:%d: %s has a row in line %d already", path, line, name,
                        out->line);
        *out = row;
    }
    return ferror(file) ? FAIL(ERR_IO, "cannot read %s", path) : OK;
}

status_t plain_find(struct plain *out, const struct kernel *kernel) {
    char path[4096];
    *out = (struct plain){0};
    status_t st = path_of(path, sizeof path, kernel);
    if (st != OK)
        return st;
    FILE *file = fopen(path, "r");
    if (!file && (errno == ENOENT || errno == ENOTDIR)) /* a user's own kernels */
        return OK;
    if (!file)
        return FAIL(ERR_IO, "cannot read %s: %s", path, strerror(errno));
    st = read_rows(out, file, path, kernel->name);
    fclose(file);
    return st;
}

void plain_judge(struct judgement *j, const struct plain *plain) {
    if (!plain->known || j->verdict == VERDICT_FAIL || j->verdict == VERDICT_SKIP)
        return;
    bool ulp = !(j->max_ulp <= plain->max_ulp), rel = !(j->max_rel <= plain->max_rel);
    if (!ulp && !rel)
        return;
    j->verdict = VERDICT_FAIL;
    snprintf(j->reason, sizeof j->reason,
             "plain budget: the largest %s error is %.6g, budgets.txt:%d allows %.6g",
             ulp ? "ulp" : "relative", ulp ? j->max_ulp : j->max_rel, plain->line,
             ulp ? plain->max_ulp : plain->max_rel);
}
