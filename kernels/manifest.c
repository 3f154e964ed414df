/* Reading a manifest, and libcyaml's log of a mistake turned into one line. */
#include "kernels/manifest.h"

#include <ctype.h>
#include <cyaml/cyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/place.h"
#include "kernels/read_file.h"
#include "kernels/schema.h"

#define MAX_FILE 1000000 /* bytes */

/* ---- libcyaml's log as one line -------------------------------------------------------------- */

/*
 * On an error libcyaml logs what is wrong, then where, innermost first:
 *     Load: Unexpected key: oops
 *     Load: Backtrace:
 *       in mapping (line: 3, column: 9)
 *       in sequence entry '1' (line: 2, column: 5)
 *       in mapping field 'kernels' (line: 2, column: 3)
 */
struct log {
    char what[256];
    char field[64];         /* innermost field */
    struct place places[2]; /* the two innermost */
    unsigned place_count;
};

/* A quoted part of a manifest may hold line ends and worse; a message is one line of text. */
static void flatten(char *text) {
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            *text = ' ';
}

static void take_log(cyaml_log_t level, void *ctx, const char *format, va_list args) {
    struct log *log = ctx;
    char line[512];
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = '\0'; /* libcyaml's own */
    flatten(line);
    if (level < CYAML_LOG_ERROR)
        return;
    if (strncmp(line, "Load: ", 6) == 0) {
        if (log->what[0] == '\0' && strncmp(line, "Load: Backtrace", 15) != 0)
            snprintf(log->what, sizeof log->what, "%.*s", (int)sizeof log->what - 1, line + 6);
        return;
    }
    struct place at;
    const char *where = strstr(line, "(line: ");
    if (where && log->place_count < 2 &&
        sscanf(where, "(line: %zu, column: %zu)", &at.line, &at.column) == 2)
        log->places[log->place_count++] = at;
    if (log->field[0] == '\0')
        sscanf(line, "  in mapping field '%63[^']'", log->field);
}

/* Where the thing that libcyaml complains about stands, given its backtrace. */
enum where { AT_VALUE, AT_KEY, AT_MAPPING };

static const struct wording {
    const char *theirs, *ours;
    enum where where;
} wordings[] = {
    {"Unexpected key: ", "unknown key", AT_KEY}, /* reported at the value before it */
    {"Mapping field already seen: ", "key given twice:", AT_KEY},
    {"Missing required mapping field: ", "missing key", AT_MAPPING}, /* at the mapping's last key */
    {"Invalid ENUM value: ", "unknown word", AT_VALUE},
};

static struct place find_place(const struct manifest_file *file, const struct log *log,
                               enum where where, const char *name) {
    if (log->place_count == 0)
        return place_of_value(file->text, file->size, ""); /* the document itself */
    struct place at = log->places[where == AT_MAPPING ? log->place_count - 1 : 0];
    struct place key = {0, 0};
    if (where == AT_KEY)
        key = place_of_key(file->text, file->size, name, at);
    return key.line > 0 ? key : at;
}

static status_t refuse_form(const struct manifest_file *file, const struct log *log,
                            cyaml_err_t error) {
    char words[128];
    const char *what = log->what[0] ? log->what : cyaml_strerror(error);

    if (error == CYAML_ERR_OOM)
        return FAIL(ERR_NOMEM, "%s: no memory for it", file->path);
    schema_words(words, sizeof words, log->field);
    for (size_t i = 0; i < CYAML_ARRAY_LEN(wordings); i++) {
        const struct wording *w = &wordings[i];
        const char *name = what + strlen(w->theirs);
        if (strncmp(what, w->theirs, strlen(w->theirs)) != 0)
            continue;
        size_t line = find_place(file, log, w->where, name).line;
        if (w->where == AT_VALUE)
            return FAIL(ERR_SYNTAX, "%s:%zu: %s: %s `%s`: expected one of%s", file->path, line,
                        log->field, w->ours, name, words);
        return FAIL(ERR_SYNTAX, "%s:%zu: %s `%s`", file->path, line, w->ours, name);
    }
    return FAIL(ERR_SYNTAX, "%s:%zu: %s%s%s", file->path, find_place(file, log, AT_VALUE, "").line,
                log->field, log->field[0] ? ": " : "", what);
}

/* ---- reading --------------------------------------------------------------------------------- */

static const cyaml_config_t config_template = {
    .log_fn = take_log,
    .mem_fn = cyaml_mem,
    .log_level = CYAML_LOG_ERROR,
};

status_t manifest_read(struct manifest_file **out, const char *path) {
    status_t st = OK;
    struct manifest_file *file = calloc(1, sizeof *file);
    struct log log = {0};
    cyaml_config_t config = config_template;
    cyaml_err_t error;
    *out = NULL;

    if (!file || !(file->path = strdup(path)))
        TRY(FAIL(ERR_NOMEM, "%s: no memory for it", path));
    TRY(read_file(&file->text, &file->size, path, MAX_FILE));
    TRY(place_check_yaml(path, file->text, file->size));
    config.log_ctx = &log;
    error = cyaml_load_data((const uint8_t *)file->text, file->size, &config, &manifest_schema,
                            (cyaml_data_t **)&file->manifest, NULL);
    if (error != CYAML_OK)
        TRY(refuse_form(file, &log, error));
    if (!file->manifest)
        TRY(FAIL(ERR_SYNTAX, "%s:1: empty: expected `kernels:`", path));
    *out = file;
    file = NULL;
done:
    manifest_free(file);
    return st;
}

void manifest_free(struct manifest_file *file) {
    if (!file)
        return;
    cyaml_free(&config_template, &manifest_schema, file->manifest, 0);
    free(file->text);
    free(file->path);
    free(file);
}

status_t manifest_at(status_t st, const struct manifest_file *file, size_t index,
                     const char *place_format, ...) {
    char place[64], route[96], message[768];
    va_list args;
    if (st == OK)
        return OK;
    va_start(args, place_format);
    vsnprintf(place, sizeof place, place_format, args);
    va_end(args);
    snprintf(route, sizeof route, "kernels[%zu].%s", index, place);
    snprintf(message, sizeof message, "%s: %s: %s", file->manifest->kernels[index].name, place,
             status_message());
    flatten(message);
    return FAIL(st, "%s:%zu: %s", file->path, place_of_value(file->text, file->size, route).line,
                message);
}
