/* cli/bench.c - assay bench: how fast kernels are. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "gate/bench.h"

struct bench_args {
    struct cli_args common;
    struct strings globs, shapes;
    const char *device, *dir, *beside;
    uint64_t seed;
    bool json, recommended;
};

enum { KEY_SHAPE = CLI_KEY_FIRST, KEY_SEED, KEY_JSON, KEY_BESIDE, KEY_RECOMMENDED };

static const struct argp_option options[] = {
    {"kernel", 'k', "GLOB", 0, "Only kernels whose name matches; may be repeated", 1},
    {"recommended", KEY_RECOMMENDED, NULL, 0,
     "Only the kernels that `assay list` recommends, at shapes for which it does", 1},
    {"device", 'd', "DEVICE", 0, "cpu (default: counts), cuda:0 (times)", 1},
    {"shape", KEY_SHAPE, "SHAPE", 0,
     "Measure at this shape (4x33, or rows=8,heads=2,...) instead of the op's own list; may be "
     "repeated", 1},
    {"seed", KEY_SEED, "N", 0, "Seed of the random inputs (default 1)", 1},
    {"json", KEY_JSON, NULL, 0, "Print one object instead of the table", 1},
    {"output", 'o', "DIR", 0, "Put the figures into DIR/results.json as well", 1},
    {"beside", KEY_BESIDE, "FILE", 0,
     "Show another program's times (docs/bench.md) beside each kernel's", 1},
    CLI_COMMON_OPTIONS,
    {0},
};

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
        return cli_stop(state, strings_add(&args->shapes, arg));
    case KEY_SEED:
        return cli_stop(state, cli_number(&args->seed, "--seed", arg, 0, INT64_MAX));
    case KEY_JSON:
        args->json = true;
        return 0;
    case KEY_RECOMMENDED:
        args->recommended = true;
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

struct jobs {
    size_t count;
    struct bench_job *items; /* owned */
};

/* Kernels of several ops may be chosen: a shape is for those whose op has its dimensions. */
static status_t make_jobs(struct jobs *out, const struct bench_args *args,
                          const struct kernel *const *kernels, size_t count) {
    status_t st = OK;
    bool *fits = calloc(args->shapes.count + 1, sizeof *fits);
    out->items = calloc(count * (args->shapes.count + 1), sizeof *out->items);
    if (!fits || !out->items)
        TRY(FAIL(ERR_NOMEM, "no memory for arguments"));
    for (size_t i = 0; i < count; i++) {
        struct bench_job job = {.kernel = kernels[i],
                                .suite = args->shapes.count == 0,
                                .recommended = args->recommended};
        if (job.suite && (!args->recommended || kernels[i]->recommended))
            out->items[out->count++] = job;
        for (size_t s = 0; s < args->shapes.count; s++) {
            if (cli_shape(&job.dims, kernels[i]->op, args->shapes.items[s]) != OK)
                continue;
            fits[s] = true;
            if (!args->recommended || kernel_recommended(kernels[i], job.dims))
                out->items[out->count++] = job;
        }
    }
    for (size_t s = 0; s < args->shapes.count; s++)
        if (!fits[s])
            TRY(cli_shape(&(struct case_dims){0}, kernels[0]->op, args->shapes.items[s]));
    if (out->count == 0)
        TRY(FAIL(ERR_USAGE, "--recommended: none of the kernels is%s (see assay list)",
                 args->shapes.count ? " at these shapes" : ""));
done:
    free(fits);
    return st;
}

static status_t measure(const struct bench_args *args, const struct jobs *jobs,
                        const struct beside *beside, bool *passed) {
    struct progress progress;
    struct bench_report report;
    const struct bench_options opt = {
        .device = args->device,
        .seed = args->seed,
        .progress = progress_step,
        .context = &progress,
    };
    progress_begin(&progress);
    status_t st = bench_run(&report, jobs->items, jobs->count, &opt);
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
    struct jobs jobs = {0};
    size_t count;
    status_t st = OK;
    if (args->beside)
        TRY(beside_read(&beside, args->beside));
    TRY(cli_catalogue(&cat, &args->common));
    TRY(cli_select(&kernels, &count, cat, &args->globs));
    TRY(make_jobs(&jobs, args, kernels, count));
    TRY(measure(args, &jobs, beside, passed));
done:
    free(jobs.items);
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
    strings_clear(&args.shapes);
    cli_args_clear(&args.common);
    return st != OK ? cli_error(st) : passed ? EXIT_PASSED : EXIT_CHECK_FAILED;
}
