/*
 * cli/cli.h - what the verbs of the command line share.
 *
 * A verb is one file and one row of the table in main.c.  It returns the exit code: 0 passed, 1 a
 * check failed, or cli_error() for a status that is not OK: one line on stderr and 2 (bad usage or
 * input) or 3 (could not run).  Results go to stdout, everything else to stderr.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/catalogue.h"

#define EXIT_PASSED 0
#define EXIT_CHECK_FAILED 1

int verb_list(int argc, char **argv);
int verb_gate(int argc, char **argv);
int verb_check(int argc, char **argv);
int verb_bench(int argc, char **argv);
int verb_exhaust(int argc, char **argv);

/* Print "assay: MESSAGE" for the last failure; the exit code for st. */
int cli_error(status_t st);

/* ---- arguments ------------------------------------------------------------------------------- */

/* The values of an option that may be given several times; they point into argv. */
struct strings {
    size_t count;
    const char **items; /* owned */
};
MUST_CHECK status_t strings_add(struct strings *s, const char *item);
void strings_clear(struct strings *s);

/* What every verb's arguments begin with; a parser's state->input points to it. */
struct cli_args {
    status_t st; /* why parsing stopped */
    bool help;   /* --help was given and shown: nothing is to be done */
    struct strings manifests;
};

#define CLI_KEY_MANIFEST 0x100 /* keys above the characters have no short option */
#define CLI_KEY_FIRST 0x110    /* a verb's own begin here */
#define CLI_COMMON_OPTIONS                                                              \
    {"manifest",                                                                        \
     CLI_KEY_MANIFEST,                                                                  \
     "FILE",                                                                            \
     0,                                                                                 \
     "Take the kernels of this manifest instead of the built-in ones; may be repeated", \
     10},                                                                               \
    {                                                                                   \
        "help", '?', NULL, 0, "Show this help", 20                                      \
    }

/*
 * Parse a verb's arguments into args, which begins with a struct cli_args.  argv[0] is the verb.
 * On ERR_USAGE the message names the verb and the argument.
 */
MUST_CHECK status_t cli_parse(const struct argp *argp, int argc, char **argv, void *args);
void cli_args_clear(struct cli_args *args);

/* What a verb's argp parser returns for a key that is not its own, and for a status. */
error_t cli_other_key(int key, char *arg, struct argp_state *state);
error_t cli_stop(struct argp_state *state, status_t st);

/* For argp's help: leaves out its note on arguments of short options. */
char *cli_help_filter(int key, const char *text, void *input);

/* What -j takes at most, and what it is unless given: one thread per processor. */
#define CLI_MAX_THREADS 256
uint64_t cli_processors(void);

/* A decimal number in [min, max].  ERR_USAGE with the option's name. */
MUST_CHECK status_t cli_number(uint64_t *out, const char *option, const char *text, uint64_t min,
                               uint64_t max);
/* Two numbers: "4x33" for separator 'x', "16:8" for ':'. */
MUST_CHECK status_t cli_pair(size_t *a, size_t *b, const char *option, const char *text,
                             char separator);

/*
 * An op's dimensions: "4x33" for rows and cols, or "rows=5,heads=2,head_dim=64" in any order.  What
 * is not named is 0; with cli_shape 1, and kv_heads is heads.
 */
MUST_CHECK status_t cli_shape_given(struct case_dims *out, const struct op *op, const char *text);
MUST_CHECK status_t cli_shape(struct case_dims *out, const struct op *op, const char *text);

/* The manifests' kernels, or the built-in ones if none is named. */
MUST_CHECK status_t cli_catalogue(struct catalogue **out, const struct cli_args *args);

/*
 * The kernels that the globs of -k match, none standing for all honest ones; a planted fault is chosen
 * by a glob that matches no honest kernel.  The caller frees *out.  ERR_USAGE for a glob that matches
 * nothing, ERR_NOMEM.
 */
MUST_CHECK status_t cli_select(const struct kernel ***out, size_t *count,
                               const struct catalogue *cat, const struct strings *globs);

/* The device that --twin means when it names none. */
#define CLI_TWIN_DEVICE "cuda:0"

/* ---- progress -------------------------------------------------------------------------------- */

/* A bar on stderr if that is a terminal, else nothing at all. */
struct progress {
    bool shown;
    double start, drawn; /* seconds */
};
void progress_begin(struct progress *p);
void progress_step(void *progress, size_t done, size_t total); /* as struct gate_options wants it */
void progress_end(struct progress *p);                         /* wipes the bar */

#endif
