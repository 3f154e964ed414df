/*
 * gate/case.h - one set of inputs, and the line that names it for ever.
 *
 * A case is either a fill, a shape and a seed ("--fill cancel --shape 4x33 --seed 17"), the same
 * bits on every machine, or a file.  docs/cases.md lists the fills and what each one is for.
 */
#ifndef GATE_CASE_H
#define GATE_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "gate/fill.h"
#include "kernels/catalogue.h"
#include "oracle/dtype.h"

/* What one case's input may hold; the CPU device gives as much to all buffers together. */
#define CASE_MAX_BYTES ((size_t)4 << 30)
#define CASE_LINE_SIZE 1024

struct test_case {
    const struct op *op;       /* whose inputs these are */
    const struct dtype *dtype; /* of the first input */
    struct case_dims dims;
    struct op_options options;
    void *x;                         /* the block of inputs (kernels/catalogue.h); owned */
    struct tensor in[OP_MAX_INPUTS]; /* its tensors, in the order of op->inputs */
    const struct fill *fill;         /* NULL: not from a fill */
    uint64_t seed;
    char *path;       /* the file; NULL: not from a file; owned */
    size_t first_row; /* rows taken from the file start here */
    bool part;        /* not all rows of the file */
    char *line;       /* from several files: the options that name them; else NULL; owned */
};

/*
 * A file for one of an op's inputs, or several, with commas between: as many of the tensor's innermost
 * dimension that the files do not have.  Dimensions that no file has are otherwise 1: three files of
 * tokens x 64 are q of one sequence and three heads.  A text that is the path of a file is no list.
 */
struct case_file {
    const char *name, *path; /* "q", "q.npy", "h6.npy,h7.npy,h8.npy" */
    size_t first_row, rows;  /* of such files, only these rows; rows 0: all.  Others are taken whole */
};

/* For a kernel: its op's inputs with its types, and its options at these dimensions. */
MUST_CHECK status_t case_make(struct test_case *out, const struct fill *fill,
                              const struct kernel *kernel, struct case_dims dims, uint64_t seed);
/*
 * The first input from a 2-d .npy (gate/npy.h) that fits; rows [first, first + count), count 0: to
 * the end.  Other inputs are as fill_others makes them for seed 1.
 * ERR_UNSUPPORTED for another dtype, ERR_USAGE for rows that the file does not have.
 */
MUST_CHECK status_t case_from_npy(struct test_case *out, const char *path,
                                  const struct kernel *kernel, size_t first, size_t count);
/*
 * Inputs by name from .npy files, each with its tensor's dimensions; `dims` has those that no file
 * tells (0: not known).  Tensors without a file are as fill_others makes them for seed 1, but the
 * first, and k and v, must be there.  ERR_USAGE for names, shapes and dimensions that do not go
 * together, and for rows where no file is one that has some; ERR_UNSUPPORTED for another element type.
 */
MUST_CHECK status_t case_from_files(struct test_case *out, const struct kernel *kernel,
                                    const struct case_file *files, size_t count,
                                    struct case_dims dims);
/*
 * The line of such a case: "-i q=a.npy -i k=b.npy --shape ..."; --rows where the first file has some, which
 * then is meant for all.  "" if it is longer than size.
 */
void case_files_line(char *out, size_t size, const struct op *op, const struct case_file *files,
                     size_t count, const struct case_dims *dims);
/* A matrix of format dt, from a fill or from data in memory (copied), for the ops of one. */
MUST_CHECK status_t case_from_fill(struct test_case *out, const struct fill *fill,
                                   const struct dtype *dt, struct case_dims dims, uint64_t seed);
MUST_CHECK status_t case_from_data(struct test_case *out, const void *x, const struct dtype *dt,
                                   struct case_dims dims);
void case_clear(struct test_case *c); /* safe on a zeroed struct, and twice */

/* The case as an op sees it; it is to outlive what is returned. */
struct op_case case_for_op(const struct test_case *c, enum empty_row empty_row);

/* How much there is to compute, for an instruction budget: elements of inputs and outputs. */
size_t case_work(const struct test_case *c);

/* May the entries of a row change places?  Not where a mask or another input goes with them. */
bool case_permutes(const struct kernel *kernel);

/* Do these two kernels take the same cases, with the same truth? */
bool case_same(const struct kernel *a, const struct kernel *b);

/*
 * The options that rerun this case: "--fill cancel --shape 4x33 --seed 17", "-i x=PATH" or
 * "-i x=PATH --rows 16:8"; a path is quoted for the shell where needed.  "(data in memory)" if
 * neither.
 */
void case_line(char *out, size_t size, const struct test_case *c);

/* The word as a shell takes it back, in quotes where it needs them. */
void shell_word(char *out, size_t size, const char *word);

#endif
