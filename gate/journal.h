/*
 * gate/journal.h - outcomes kept on disk while a gate runs, so that a killed run can go on.
 *
 * One line of JSON per (kernel, case), written as soon as it is known.  A record is found again only
 * under the same key: the digest of the kernel's image and manifest, the program and the device, and
 * the case's name.
 * Not for several threads at once; gate/run.c holds a lock.
 */
#ifndef GATE_JOURNAL_H
#define GATE_JOURNAL_H

#include "gate/report.h"

struct journal;

/* Open DIR/journal.jsonl and read what it holds; lines that are no records are passed over. */
MUST_CHECK status_t journal_open(struct journal **out, const char *dir);
void journal_close(struct journal *j); /* NULL is fine */

/* The key under which a kernel's outcomes on a device (and its twin, or NULL) are kept.  ERR_IO. */
MUST_CHECK status_t journal_key(char key[static DIGEST_SIZE], const struct kernel *kernel,
                                const char *image_sha256, const struct device_info *device,
                                const struct device_info *twin);

/*
 * A case's name among a kernel's outcomes: the line that reruns its check, and for a case from a file
 * the digest of the data in front, for a path does not say what the file held.
 */
#define JOURNAL_NAME_SIZE (DIGEST_SIZE + CASE_LINE_SIZE)
void journal_name(char name[static JOURNAL_NAME_SIZE], const struct test_case *c, const char *line);

bool journal_find(struct outcome *out, const struct journal *j, const char *key, const char *name);
MUST_CHECK status_t journal_add(struct journal *j, const char *key, const char *name,
                                const struct outcome *o);

/* Remove DIR's journal: the run is over and its reports are written. */
void journal_remove(const char *dir);

#endif
