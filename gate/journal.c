/* gate/journal.c - lines of JSON in, lines of JSON out. */
#include "gate/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/json.h"

struct journal {
    FILE *file;      /* open for appending */
    json_t *records; /* "key line" -> record */
};

static bool path_of(char *out, size_t size, const char *dir) {
    return snprintf(out, size, "%s/journal.jsonl", dir) < (int)size;
}

#define RECORD_SIZE (DIGEST_SIZE + JOURNAL_NAME_SIZE)

static void record_key(char out[static RECORD_SIZE], const char *key, const char *name) {
    snprintf(out, RECORD_SIZE, "%s %s", key, name);
}

/* ---- records --------------------------------------------------------------------------------- */

/* clang-format off */
static json_t *json_of_outcome(const struct outcome *o) {
    const struct judgement *j = &o->judgement;
    const struct worst *w = &j->worst;
    return json_pack("{s:i, s:s, s:o, s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:I, s:o}",
                     "verdict", (int)j->verdict,
                     "reason", j->reason,
                     "max_ulp", json_of_double(j->max_ulp),
                     "max_rel", json_of_double(j->max_rel),
                     "max_rho", json_of_double(j->max_rho),
                     "known", (int)w->known,
                     "per_row", (int)w->per_row,
                     "output", (json_int_t)w->output,
                     "row", (json_int_t)w->row,
                     "col", (json_int_t)w->col,
                     "got", (json_int_t)w->got,
                     "lo", json_of_double(w->want.lo),
                     "hi", json_of_double(w->want.hi),
                     "budget", json_of_double(w->budget),
                     "events", json_of_events(&o->events),
                     "saw", (int)o->saw_order,
                     "compared", (json_int_t)o->compared,
                     "oracle", json_of_tally(&j->tally));
}
/* clang-format on */

static bool json_to_outcome(struct outcome *out, const json_t *json) {
    struct outcome o = {0};
    struct judgement *j = &o.judgement;
    int verdict, known, per_row, saw;
    const char *reason;
    json_int_t output, row, col, got, compared;
    json_t *ulp, *rel, *rho, *lo, *hi, *budget, *events, *tally;
    if (json_unpack((json_t *)json,
                    "{s:i, s:s, s:o, s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, "
                    "s:b, s:I, s:o}",
                    "verdict", &verdict, "reason", &reason, "max_ulp", &ulp, "max_rel", &rel,
                    "max_rho", &rho, "known", &known, "per_row", &per_row, "output", &output, "row", &row, "col", &col,
                    "got", &got, "lo", &lo, "hi", &hi, "budget", &budget, "events", &events, "saw",
                    &saw, "compared", &compared, "oracle", &tally) != 0)
        return false;
    if (verdict < 0 || verdict >= VERDICT_COUNT || !json_to_double(&j->max_ulp, ulp) ||
        !json_to_double(&j->max_rel, rel) || !json_to_double(&j->max_rho, rho) ||
        !json_to_double(&j->worst.want.lo, lo) || !json_to_double(&j->worst.want.hi, hi) ||
        !json_to_double(&j->worst.budget, budget) || !json_to_events(&o.events, events) ||
        !json_to_tally(&j->tally, tally))
        return false;
    j->verdict = (enum verdict)verdict;
    snprintf(j->reason, sizeof j->reason, "%s", reason);
    j->worst.known = known;
    j->worst.per_row = per_row;
    if (output < 0 || output >= OP_MAX_OUTPUTS)
        return false;
    j->worst.output = (size_t)output;
    j->worst.row = (size_t)row;
    j->worst.col = (size_t)col;
    j->worst.got = (uint32_t)got;
    o.saw_order = saw;
    o.compared = (size_t)compared;
    *out = o;
    return true;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* A killed run may leave half a line at the end: it is no JSON, and a newline then ends it. */
static void read_records(struct journal *j, FILE *file, bool *ends_whole) {
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    *ends_whole = true;
    while ((n = getline(&line, &room, file)) > 0) {
        *ends_whole = line[n - 1] == '\n';
        json_t *record = json_loads(line, 0, NULL);
        const char *key = json_string_value(json_object_get(record, "key"));
        if (key && json_is_object(json_object_get(record, "outcome")))
            json_object_set(j->records, key, json_object_get(record, "outcome"));
        json_decref(record);
    }
    free(line);
}

status_t journal_open(struct journal **out, const char *dir) {
    char path[4096];
    struct journal *j = calloc(1, sizeof *j);
    bool ends_whole = true;
    status_t st = OK;
    if (!j || !(j->records = json_object()))
        TRY(FAIL(ERR_NOMEM, "no memory for a journal"));
    TRY(file_make_folder(dir));
    if (!path_of(path, sizeof path, dir))
        TRY(FAIL(ERR_IO, "%s: the path is too long", dir));
    FILE *old = fopen(path, "r");
    if (old) {
        read_records(j, old, &ends_whole);
        fclose(old);
    }
    j->file = fopen(path, "a");
    if (!j->file || (!ends_whole && fputc('\n', j->file) == EOF))
        TRY(FAIL(ERR_IO, "cannot write %s: %s", path, strerror(errno)));
    *out = j;
    j = NULL;
done:
    journal_close(j);
    return st;
}

void journal_close(struct journal *j) {
    if (!j)
        return;
    if (j->file)
        fclose(j->file);
    json_decref(j->records);
    free(j);
}

status_t journal_key(char key[static DIGEST_SIZE], const struct kernel *kernel,
                     const char *image_sha256, const struct device_info *device,
                     const struct device_info *twin) {
    static const struct device_info none;
    const struct device_info *t = twin ? twin : &none;
    char manifest[DIGEST_SIZE], program[DIGEST_SIZE], text[1024];
    status_t st = OK;
    TRY(file_sha256(manifest, kernel->manifest));
    TRY(file_sha256(program, "/proc/self/exe"));
    snprintf(text, sizeof text, "%s %s %s %s %s %s %s %s %s %s", kernel->name, image_sha256,
             manifest, program, device->name, device->arch, device->driver, t->name, t->arch,
             t->driver);
    text_sha256(key, text);
done:
    return st;
}

void journal_name(char name[static JOURNAL_NAME_SIZE], const struct test_case *c, const char *line) {
    char digest[DIGEST_SIZE] = "", all[OP_MAX_INPUTS * DIGEST_SIZE] = "";
    bool from_file = c->path || c->line;
    for (size_t i = 0; from_file && i < OP_MAX_INPUTS; i++) {
        const struct tensor *t = &c->in[i];
        if (!t->type)
            continue;
        data_sha256(digest, t->data, t->count * t->type->size);
        strcat(all, digest); /* of 64 digits, into room for 65 each */
    }
    if (from_file)
        text_sha256(digest, all);
    snprintf(name, JOURNAL_NAME_SIZE, "%s%s%s", digest, from_file ? " " : "", line);
}

bool journal_find(struct outcome *out, const struct journal *j, const char *key, const char *name) {
    char record_name[RECORD_SIZE];
    record_key(record_name, key, name);
    const json_t *record = json_object_get(j->records, record_name);
    return record && json_to_outcome(out, record);
}

status_t journal_add(struct journal *j, const char *key, const char *name,
                     const struct outcome *o) {
    char record_name[RECORD_SIZE];
    record_key(record_name, key, name);
    json_t *record = json_pack("{s:s, s:o}", "key", record_name, "outcome", json_of_outcome(o));
    if (!record)
        return FAIL(ERR_NOMEM, "no memory for a record");
    int rc = json_dumpf(record, j->file, JSON_COMPACT);
    json_decref(record);
    if (rc != 0 || fputc('\n', j->file) == EOF || fflush(j->file) != 0)
        return FAIL(ERR_IO, "cannot write the journal: %s", strerror(errno));
    return OK;
}

void journal_remove(const char *dir) {
    char path[4096];
    if (path_of(path, sizeof path, dir))
        unlink(path);
}
