/* cli/exhaust.c - assay exhaust: a special function over every input there is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "gate/exhaust.h"

#define MAX_SHARDS 4096

struct exhaust_args {
    struct cli_args common;
    const char *target, *device;
    size_t shard, shards;
    uint64_t threads;
    bool bits, hashes;
};

enum { KEY_SHARD = CLI_KEY_FIRST, KEY_BITS, KEY_HASHES };

static const struct argp_option options[] = {
    {"device", 'd', "DEVICE", 0,
     "Also run every input on DEVICE (cuda:0) and ask for the same bits", 1},
    {"shard", KEY_SHARD, "I/N", 0, "Only part I of N (1/4 to 4/4)", 1},
    {"bits", KEY_BITS, NULL, 0,
     "Only ask for the bits: measure no errors, which takes most of the time", 1},
    {"hashes", KEY_HASHES, NULL, 0, "Print the hashes as gate/exhaust_sm90.def keeps them", 1},
    {"jobs", 'j', "N", 0, "Threads (default: one per processor)", 1},
    {"help", '?', NULL, 0, "Show this help", 20}, /* and no --manifest: no kernels are read */
    {0},
};

static status_t set_shard(struct exhaust_args *args, const char *text) {
    status_t st = cli_pair(&args->shard, &args->shards, "--shard", text, '/');
    if (st != OK)
        return st;
    if (args->shard < 1 || args->shard > args->shards || args->shards > MAX_SHARDS)
        return FAIL(ERR_USAGE, "--shard '%s': expected I/N with I from 1 to N, and N up to %d",
                    text, MAX_SHARDS);
    return OK;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    struct exhaust_args *args = state->input;
    switch (key) {
    case 'd':
        args->device = arg;
        return 0;
    case 'j':
        return cli_stop(state, cli_number(&args->threads, "-j", arg, 1, CLI_MAX_THREADS));
    case KEY_SHARD:
        return cli_stop(state, set_shard(args, arg));
    case KEY_BITS:
        args->bits = true;
        return 0;
    case KEY_HASHES:
        args->hashes = true;
        return 0;
    case ARGP_KEY_ARG:
        if (args->target)
            return cli_other_key(key, arg, state);
        args->target = arg;
        return 0;
    default:
        return cli_other_key(key, arg, state);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .help_filter = cli_help_filter,
    .args_doc = "TARGET",
    .doc =
        "Run a special function on the CPU device over all its inputs: 2^32 of f32 and of f64's "
        "high "
        "word, 2^16 of f16 and bf16.  Compare the bits with the hashes of what an H200 gave and "
        "with "
        "another device, and the values with MPFR.\v"
        "TARGET is mufu (all functions), an operation (ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh) "
        "or "
        "one instruction (ex2.approx.ftz.f32).  Exit code 1 if a bit differs or an error is beyond "
        "what the PTX ISA promises.",
};

static void print_worst(const struct exhaust_report *r, size_t promise) {
    static const char *const unit[] = {"ulp", "relative", "absolute"};
    const struct exhaust_worst *w = &r->worst[promise];
    const struct exhaust_promise *p = &r->function->promises[promise];
    char where[64] = "";
    if (w->error < 0)
        return;
    if (p->lo > 0 || isfinite(p->hi))
        snprintf(where, sizeof where, " %s (%.5g, %.5g)", p->outside ? "outside" : "in",
                 p->lo > 0 ? p->lo : -p->hi, p->hi);
    if (p->metric == METRIC_ULP)
        printf("  worst error     %.6f ulp", w->error);
    else
        printf("  worst error     2^%.4f %s", log2(w->error), unit[p->metric]);
    printf("%s at 0x%08x (%.9g), got 0x%08x", where, w->x, exhaust_value(r->function, w->x),
           w->got);
    const char *verdict = !(w->error > p->bound) ? "within" : "BEYOND";
    if (p->bound > 0 && p->metric == METRIC_ULP)
        printf(": %s %.5g", verdict, p->bound);
    else if (p->bound > 0)
        printf(": %s 2^%.5g", verdict, log2(p->bound));
    if (p->bound > 0 && w->error > p->bound && exhaust_promise_kept(r, promise))
        printf(", as known of an H200");
    putchar('\n');
}

static void print_report(const struct exhaust_report *r, const char *device) {
    printf("%s  %s\n", r->function->name, exhaust_passed(r) ? "PASS" : "FAIL");
    printf("  inputs          %llu\n", (unsigned long long)r->inputs);
    if (r->hashed)
        printf("  hashes          %u of %u as on an H200\n", r->hashed - r->unlike, r->hashed);
    else
        printf("  hashes          none are known\n");
    for (unsigned c = 0, shown = 0; r->unlike && c < EXHAUST_CHUNKS && shown < 8; c++)
        if (exhaust_chunk_unlike(r, c)) {
            printf("    unlike from 0x%08x\n", c << EXHAUST_CHUNK_BITS);
            shown++;
        }
    if (device)
        printf("  %-15s %llu differ\n", device, (unsigned long long)r->differ);
    for (size_t i = 0; i < r->sample_count; i++)
        printf("    0x%08x: 0x%08x here, 0x%08x there\n", r->samples[i].x, r->samples[i].here,
               r->samples[i].there);
    if (r->wrong_class)
        printf("  NaN or not      %llu wrong, as at 0x%08x\n", (unsigned long long)r->wrong_class,
               r->wrong_class_x);
    for (size_t p = 0; p < r->function->promise_count; p++)
        print_worst(r, p);
}

static void print_hashes(const struct exhaust_report *r) {
    printf("EXHAUST_HASHES(\"%s\"", r->function->name);
    for (unsigned c = 0; c < EXHAUST_CHUNKS && r->ran[c]; c++)
        printf(",%s0x%016llx", c % 4 ? " " : "\n    ", (unsigned long long)r->hashes[c]);
    printf(")\n");
}

static status_t exhaust(const struct exhaust_args *args, bool *passed) {
    struct progress progress;
    struct exhaust_report *reports = NULL;
    size_t count = 0;
    if (!args->target)
        return FAIL(ERR_USAGE, "exhaust: no target named (see assay exhaust --help)");
    const struct exhaust_options opt = {
        .target = args->target,
        .twin = args->device,
        .error = !args->bits && !args->hashes,
        .shard = args->shards ? args->shard - 1 : 0,
        .shards = args->shards ? args->shards : 1,
        .threads = (unsigned)(args->threads ? args->threads : cli_processors()),
        .progress = progress_step,
        .context = &progress,
    };
    progress_begin(&progress);
    status_t st = exhaust_run(&reports, &count, &opt);
    progress_end(&progress);
    for (size_t i = 0; st == OK && i < count; i++) {
        if (args->hashes)
            print_hashes(&reports[i]);
        else if (reports[i].chunks)
            print_report(&reports[i], args->device);
        *passed &= args->hashes || !reports[i].chunks || exhaust_passed(&reports[i]);
    }
    free(reports);
    return st;
}

int verb_exhaust(int argc, char **argv) {
    struct exhaust_args args = {0};
    bool passed = true;
    status_t st = cli_parse(&argp, argc, argv, &args);
    if (st == OK && !args.common.help)
        st = exhaust(&args, &passed);
    cli_args_clear(&args.common);
    return st != OK ? cli_error(st) : passed ? EXIT_PASSED : EXIT_CHECK_FAILED;
}
