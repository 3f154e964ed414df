/*
 * gate/plan.h - which cases a suite is made of.
 *
 *   quick   every fill at the shapes where tails hurt, samples of the real input, a few order
 *           checks, small ensembles
 *   full    more seeds, longer rows, all of the real input, order checks of every fill, larger
 *           ensembles
 *
 * docs/cases.md says what each shape is there for.
 */
#ifndef GATE_PLAN_H
#define GATE_PLAN_H

#include "gate/case.h"

enum suite { SUITE_QUICK, SUITE_FULL };
const char *suite_name(enum suite s);
MUST_CHECK status_t suite_find(enum suite *out, const char *name); /* ERR_USAGE */

enum check { CHECK_BOUND, CHECK_ORDER, CHECK_ENSEMBLE, CHECK_TWIN };

#define PLAN_FILES 3 /* q, k, v */

struct plan_item {
    enum check check;
    const struct op *op;
    const struct fill *fill; /* NULL: rows [first_row, first_row + dims.rows) of `path` */
    struct case_dims dims;
    uint64_t seed;
    const char *path; /* the plan's own */
    size_t first_row;
    bool part; /* not all rows of the file */
    size_t file_count; /* several files in the place of `path` */
    struct case_file files[PLAN_FILES]; /* paths are the plan's own */
};

struct plan {
    size_t count, room;
    struct plan_item *items;
    size_t path_count;
    char **paths;
};

/*
 * The cases of a suite for a kernel, smallest first within each fill; a shape that it does not accept
 * gives way to the nearest that it does.  real_dir: the folder with real inputs, or NULL; its
 * logits_*.npy go to every op of a matrix, its other files to those with one result per row, its
 * q_*.npy with the k and v of the same tokens to attention; a file of another dtype is left out, a
 * broken one is an error.  ERR_IO, ERR_NOMEM.
 */
MUST_CHECK status_t plan_init(struct plan *out, const struct kernel *kernel, enum suite suite,
                              uint64_t seed, const char *real_dir);
/* The same cases in the same order. */
bool plan_equal(const struct plan *a, const struct plan *b);
void plan_clear(struct plan *p); /* safe on a zeroed struct, and twice */

/* A CHECK_TWIN item for every CHECK_BOUND item that is there.  ERR_NOMEM. */
MUST_CHECK status_t plan_add_twins(struct plan *p);

MUST_CHECK status_t plan_case(struct test_case *out, const struct plan_item *item,
                              const struct kernel *kernel);

/*
 * The options that rerun one check of a case: case_line (gate/case.h), with "--order ", "--ensemble "
 * or "--twin " in front where that is what is checked.
 */
void check_line(char *out, size_t size, enum check check, const struct test_case *c);
void plan_line(char *out, size_t size, const struct plan_item *item);

#endif
