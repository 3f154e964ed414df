/* cli/gate.c - assay gate: kernels through a suite. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "gate/journal.h"
#include "gate/run.h"

struct gate_args {
    struct cli_args common;
    struct strings globs;
    const char *device, *twin, *dir;
    enum suite suite;
    uint64_t seed, threads;
    bool propose;
};

enum { KEY_SUITE = CLI_KEY_FIRST, KEY_SEED, KEY_TWIN, KEY_PROPOSE };

static const struct argp_option options[] = {
    {"kernel", 'k', "GLOB", 0,
     "Only kernels whose name matches; may be repeated.  A planted fault is chosen by a GLOB that "
     "matches no honest kernel, such as '*faulty*'",
     1},
    {"device", 'd', "DEVICE", 0, "cpu (default), cpu:sm_80, cuda:0", 1},
    {"twin", KEY_TWIN, "DEVICE", OPTION_ARG_OPTIONAL,
     "Also run each case on DEVICE (default cuda:0) and ask for the same bits", 1},
    {"suite", KEY_SUITE, "NAME", 0, "quick (default) or full", 1},
    {"seed", KEY_SEED, "N", 0, "Seed of the first case of each fill (default 1)", 1},
    {"propose-budgets", KEY_PROPOSE, NULL, 0,
     "Print in the end what rows of budgets.txt were measured; writes nothing", 1},
    {"jobs", 'j', "N", 0, "Threads (default: one per processor)", 1},
    {"output", 'o', "DIR", 0,
     "Write results.json, junit.xml and index.html there; a killed run goes on from there", 1},
    CLI_COMMON_OPTIONS,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    struct gate_args *args = state->input;
    switch (key) {
    case 'k':
        return cli_stop(state, strings_add(&args->globs, arg));
    case 'd':
        args->device = arg;
        return 0;
    case 'o':
        args->dir = arg;
        return 0;
    case 'j':
        return cli_stop(state, cli_number(&args->threads, "-j", arg, 1, CLI_MAX_THREADS));
    case KEY_TWIN:
        args->twin = arg ? arg : CLI_TWIN_DEVICE;
        return 0;
    case KEY_SUITE:
        return cli_stop(state, suite_find(&args->suite, arg));
    case KEY_PROPOSE:
        args->propose = true;
        return 0;
    case KEY_SEED:
        return cli_stop(state, cli_number(&args->seed, "--seed", arg, 0, INT64_MAX));
    default:
        return cli_other_key(key, arg, state);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .help_filter = cli_help_filter,
    .doc =
        "Run kernels on every case of a suite and judge each result against the oracle.  Prints "
        "one "
        "line per kernel and, for each failure, the bits, the enclosure, the budget and the line "
        "that reruns it.\v"
        "Only PASS is a pass: exit code 1 if any kernel is FAIL, UNSURE, MISTRUSTED or SKIP.",
};

/* Run, print, write; *passed = every kernel passed. */
static status_t gate_kernels(const struct gate_args *args, const struct kernel *const *kernels,
                             size_t count, bool *passed) {
    char real_dir[PATH_MAX];
    struct progress progress;
    struct gate_report report;
    const struct gate_options opt = {
        .device = args->device,
        .twin = args->twin,
        .suite = args->suite,
        .seed = args->seed,
        .threads = (unsigned)args->threads,
        .dir = args->dir,
        .real_dir = file_beside_program(real_dir, sizeof real_dir, "corpus/real") ? real_dir : NULL,
        .progress = progress_step,
        .context = &progress,
    };
    progress_begin(&progress);
    status_t st = gate_run(&report, kernels, count, &opt), written = OK;
    progress_end(&progress);
    /* Also of a run that broke down: what is known is kept.  Not of one that was asked wrongly. */
    if (report.count > 0 && status_exit_code(st) != 2) {
        char why[1024];
        snprintf(why, sizeof why, "%s", status_message());
        report_text(stdout, &report);
        if (args->propose)
            report_proposals(stdout, &report);
        if (args->dir)
            written = report_write(args->dir, &report);
        if (args->dir && written == OK && report.complete)
            journal_remove(args->dir);
        if (st != OK)
            st = FAIL(st, "%s", why);
    }
    *passed = gate_report_passed(&report);
    gate_report_clear(&report);
    return st != OK ? st : written;
}

static status_t gate(const struct gate_args *args, bool *passed) {
    struct catalogue *cat = NULL;
    const struct kernel **kernels = NULL;
    size_t count;
    status_t st = OK;
    TRY(cli_catalogue(&cat, &args->common));
    TRY(cli_select(&kernels, &count, cat, &args->globs));
    TRY(gate_kernels(args, kernels, count, passed));
done:
    free(kernels);
    catalogue_free(cat);
    return st;
}

int verb_gate(int argc, char **argv) {
    struct gate_args args = {.device = "cpu", .seed = 1, .threads = cli_processors()};
    bool passed = true;
    status_t st = cli_parse(&argp, argc, argv, &args);
    if (st == OK && !args.common.help)
        st = gate(&args, &passed);
    strings_clear(&args.globs);
    cli_args_clear(&args.common);
    return st != OK ? cli_error(st) : passed ? EXIT_PASSED : EXIT_CHECK_FAILED;
}
