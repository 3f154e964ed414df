/* cli/bench.c - assay bench: how fast kernels are. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "gate/bench.h"

struct bench_args {
    struct cli_args common;
    struct strings globs;
    const char *device, *dir, *beside;
    struct case_dims *shapes; /* owned; NULL: none named */
    size_t shape_count;
    uint64_t seed;
    bool json;
};

enum { KEY_SHAPE = CLI_KEY_FIRST, KEY_SEED, KEY_JSON, KEY_BESIDE };

static const struct argp_option options[] = {
    {"kernel", 'k', "GLOB", 0, "Only kernels whose name matches; may be repeated", 1},
    {"device", 'd', "DEVICE", 0, "cpu (default: counts), cuda:0 (times)", 1},
    {"shape", KEY_SHAPE, "RxC", 0,
     "Measure at this shape instead of the op's own list; may be repeated", 1},
    {"seed", KEY_SEED, "N", 0, "Seed of the random inputs (default 1)", 1},
    {"json", KEY_JSON, NULL, 0, "Print one object instead of the table", 1},
    {"output", 'o', "DIR", 0, "Put the figures into DIR/results.json as well", 1},
    {"beside", KEY_BESIDE, "FILE", 0,
     "Show another program's times (docs/bench.md) beside each kernel's", 1},
    CLI_COMMON_OPTIONS,
    {0},
};

static status_t add_shape(struct bench_args *args, const char *text) {
    struct case_dims *shapes = realloc(args->shapes, (args->shape_count + 1) * sizeof *shapes);
    if (!shapes)
        return FAIL(ERR_NOMEM, "no memory for arguments");
    args->shapes = shapes;
    struct case_dims *dims = &shapes[args->shape_count++];
    status_t st = cli_pair(&dims->rows, &dims->cols, "--shape", text, 'x');
    if (st == OK && (dims->rows == 0 || dims->cols == 0))
        st = FAIL(ERR_USAGE, "--shape '%s': nothing to measure", text);
    return st;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    struct bench_args *args = state->input;
    switch (key) {
    case 'k':
        return cli_stop(state, strings_add(&args->globs, arg));
    case 'd':
        args->device = arg;
        return 0;
    case 'o':
        args->dir = arg;
        return 0;
    case KEY_SHAPE:
        return cli_stop(state, add_shape(args, arg));
    case KEY_SEED:
        return cli_stop(state, cli_number(&args->seed, "--seed", arg, 0, INT64_MAX));
    case KEY_JSON:
        args->json = true;
        return 0;
    case KEY_BESIDE:
        args->beside = arg;
        return 0;
    default:
        return cli_other_key(key, arg, state);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .help_filter = cli_help_filter,
    .doc =
        "Measure kernels on random data.  On a GPU: the median time of a run by device events, and "
        "useful bytes (inputs once, outputs once) per second, also as a fraction of what a copy "
        "kernel reaches on the same device.  On the CPU, whose times say nothing about a GPU's: "
        "executed instructions and bytes moved.\v"
        "The method: docs/bench.md.  Exit code 1 if a kernel faults.",
};

static status_t measure(const struct bench_args *args, const struct kernel *const *kernels,
                        size_t count, const struct beside *beside, bool *passed) {
    struct progress progress;
    struct bench_report report;
    const struct bench_options opt = {
        .device = args->device,
        .shapes = args->shapes,
        .shape_count = args->shape_count,
        .seed = args->seed,
        .progress = progress_step,
        .context = &progress,
    };
    progress_begin(&progress);
    status_t st = bench_run(&report, kernels, count, &opt);
    progress_end(&progress);
    if (st == OK && args->dir)
        st = bench_write(args->dir, &report, beside);
    if (st == OK && args->json)
        st = bench_json(stdout, &report, beside);
    else if (st == OK)
        bench_text(stdout, &report, beside);
    *passed = bench_report_passed(&report);
    bench_report_clear(&report);
    return st;
}

static status_t bench(const struct bench_args *args, bool *passed) {
    struct catalogue *cat = NULL;
    const struct kernel **kernels = NULL;
    struct beside *beside = NULL;
    size_t count;
    status_t st = OK;
    if (args->beside)
        TRY(beside_read(&beside, args->beside));
    TRY(cli_catalogue(&cat, &args->common));
    TRY(cli_select(&kernels, &count, cat, &args->globs));
    TRY(measure(args, kernels, count, beside, passed));
done:
    free(kernels);
    catalogue_free(cat);
    beside_free(beside);
    return st;
}

int verb_bench(int argc, char **argv) {
    struct bench_args args = {.device = "cpu", .seed = 1};
    bool passed = true;
    status_t st = cli_parse(&argp, argc, argv, &args);
    if (st == OK && !args.common.help)
        st = bench(&args, &passed);
    strings_clear(&args.globs);
    free(args.shapes);
    cli_args_clear(&args.common);
    return st != OK ? cli_error(st) : passed ? EXIT_PASSED : EXIT_CHECK_FAILED;
}
