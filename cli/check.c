/* cli/check.c - assay check: one kernel on one case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "gate/ensemble.h"
#include "gate/locate.h"
#include "gate/run.h"

struct check_args {
    struct cli_args common;
    const char *kernel, *device, *twin;
    const char *fill;                      /* a fill's name, or "help" */
    struct case_file files[OP_MAX_INPUTS]; /* names are owned */
    size_t file_count;
    bool has_seed, has_rows, json;
    enum check check;
    const char *shape; /* "4x33" or "rows=4,heads=2,..." */
    uint64_t seed;
    size_t first_row, row_count;
    uint64_t threads;
};

enum {
    KEY_FILL = CLI_KEY_FIRST,
    KEY_SHAPE,
    KEY_SEED,
    KEY_ROWS,
    KEY_ORDER,
    KEY_ENSEMBLE,
    KEY_TWIN,
    KEY_JSON
};

static const struct argp_option options[] = {
    {"fill", KEY_FILL, "NAME", 0, "Make the input by this rule; `--fill help` lists the rules", 1},
    {"shape", KEY_SHAPE, "SHAPE", 0,
     "Rows and columns of a fill, RxC, or any dimensions of the op: rows=5,heads=2,head_dim=64", 1},
    {"seed", KEY_SEED, "N", 0, "Seed of a fill (default 1)", 1},
    {"input", 'i', "NAME=FILE", 0,
     "Take the input NAME (x, or q, k, v, ...) from an .npy file, or from several with commas "
     "between, a head each; may be repeated", 2},
    {"rows", KEY_ROWS, "FIRST:COUNT", 0,
     "Only these rows of the file (attention: these tokens of the files of one head)", 2},
    {"order", KEY_ORDER, NULL, 0,
     "Check instead that the result does not depend on order, schedule and neighbours", 3},
    {"ensemble", KEY_ENSEMBLE, NULL, 0,
     "Check instead that the errors of many random rows have no bias and no unlikely spread", 3},
    {"twin", KEY_TWIN, "DEVICE", OPTION_ARG_OPTIONAL,
     "Check instead that DEVICE (default cuda:0) gives the same bits", 3},
    {"device", 'd', "DEVICE", 0, "cpu (default), cpu:sm_80, cuda:0", 3},
    {"jobs", 'j', "N", 0, "Threads that judge the rows (default: one per processor)", 3},
    {"json", KEY_JSON, NULL, 0, "Print the kernel's object of results.json", 3},
    CLI_COMMON_OPTIONS,
    {0},
};

static status_t parse_input(struct check_args *args, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || equals[1] == '\0')
        return FAIL(ERR_USAGE, "-i '%s': expected NAME=FILE.npy, such as x=FILE.npy", text);
    if (args->file_count == OP_MAX_INPUTS)
        return FAIL(ERR_USAGE, "-i '%s': no op has more than %d inputs", text, OP_MAX_INPUTS);
    struct case_file *file = &args->files[args->file_count];
    file->name = strndup(text, (size_t)(equals - text));
    if (!file->name)
        return FAIL(ERR_NOMEM, "no memory for arguments");
    for (size_t i = 0; i < args->file_count; i++)
        if (strcmp(args->files[i].name, file->name) == 0) {
            free((char *)file->name);
            return FAIL(ERR_USAGE, "-i '%s': %s is given twice", text, args->files[i].name);
        }
    file->path = equals + 1;
    args->file_count++;
    return OK;
}

static status_t set_check(struct check_args *args, enum check check) {
    if (args->check != CHECK_BOUND && args->check != check)
        return FAIL(ERR_USAGE, "--order, --ensemble and --twin are three checks: give one of them");
    args->check = check;
    return OK;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    struct check_args *args = state->input;
    switch (key) {
    case KEY_FILL:
        args->fill = arg;
        return 0;
    case KEY_SHAPE:
        args->shape = arg;
        return 0;
    case KEY_SEED:
        args->has_seed = true;
        return cli_stop(state, cli_number(&args->seed, "--seed", arg, 0, UINT64_MAX));
    case KEY_ROWS:
        args->has_rows = true;
        return cli_stop(state, cli_pair(&args->first_row, &args->row_count, "--rows", arg, ':'));
    case KEY_ORDER:
        return cli_stop(state, set_check(args, CHECK_ORDER));
    case KEY_ENSEMBLE:
        return cli_stop(state, set_check(args, CHECK_ENSEMBLE));
    case KEY_TWIN:
        args->twin = arg ? arg : CLI_TWIN_DEVICE;
        return cli_stop(state, set_check(args, CHECK_TWIN));
    case KEY_JSON:
        args->json = true;
        return 0;
    case 'i':
        return cli_stop(state, parse_input(args, arg));
    case 'd':
        args->device = arg;
        return 0;
    case 'j':
        return cli_stop(state, cli_number(&args->threads, "-j", arg, 1, CLI_MAX_THREADS));
    case ARGP_KEY_ARG:
        if (args->kernel)
            return cli_other_key(key, arg, state);
        args->kernel = arg;
        return 0;
    default:
        return cli_other_key(key, arg, state);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .help_filter = cli_help_filter,
    .args_doc = "KERNEL",
    .doc =
        "Run one kernel on one case, judge it and print max ulp, max rel, max rho, the verdict and "
        "the worst element.\v"
        "A case is a fill (--fill NAME --shape RxC --seed N), the same bits on every machine, or a "
        "file (-i x=FILE.npy).  A budget ratio rho above 1 is a failure.  Exit code 1 unless the "
        "verdict is PASS.",
};

static void list_of(const struct op *op, const char *title) {
    printf("%s%s:\n", op_is_matrix(op) ? "" : "\n", title);
    for (const struct fill *f = fills_of(op); f->name; f++)
        printf("%-16s %s\n%-16s %s\n", f->name, f->values, "", f->purpose);
}

static void list_fills(void) {
    list_of(op_find("sum"), "sum, max, softmax, log_softmax, lse");
    list_of(op_find("layernorm"), "layernorm, rmsnorm");
    list_of(op_find("rope"), "rope");
    list_of(op_find("attention"), "attention");
    list_of(op_find("attention_combine"), "attention_combine");
}

/* What the options say together: exactly one source of input. */
static status_t check_usage(const struct check_args *args) {
    if (!args->kernel)
        return FAIL(ERR_USAGE, "check: no kernel named (see assay list)");
    if (!args->fill == !args->file_count)
        return FAIL(ERR_USAGE, "check: expected either --fill NAME --shape RxC or -i x=FILE.npy");
    if (args->fill && !args->shape)
        return FAIL(ERR_USAGE, "check: --fill needs --shape");
    if (args->fill && args->has_rows)
        return FAIL(ERR_USAGE, "check: --rows goes with -i, not with --fill");
    if (args->has_rows && args->row_count == 0)
        return FAIL(ERR_USAGE, "check: --rows with a count of 0");
    if (args->file_count && args->check == CHECK_ENSEMBLE)
        return FAIL(ERR_USAGE, "check: --ensemble: %s", ensemble_refuses(NULL));
    if (args->file_count && args->has_seed)
        return FAIL(ERR_USAGE, "check: --seed goes with --fill, not with -i");
    return OK;
}

/* --rows: a piece of one matrix, or of attention's files of one head, which case_from_files tells. */
static status_t make_from_files(struct test_case *out, const struct check_args *args,
                                const struct kernel *kernel) {
    const struct op *op = kernel->op;
    struct case_dims dims = {0};
    status_t st = OK;
    if (args->file_count == 1 && !args->shape && op->dims[1] == DIM_COLS &&
        op->dims[2] == DIM_NONE) {
        if (strcmp(args->files[0].name, op->inputs[0].name) != 0)
            return FAIL(ERR_USAGE, "-i '%s=%s': expected x=FILE.npy, as the input of a row op is x",
                        args->files[0].name, args->files[0].path);
        return case_from_npy(out, args->files[0].path, kernel, args->first_row, args->row_count);
    }
    if (args->has_rows && op->dims[0] != DIM_BATCH)
        return FAIL(ERR_USAGE, "check: --rows goes with a single matrix x, or with attention's files "
                               "of one head");
    struct case_file files[OP_MAX_INPUTS];
    for (size_t i = 0; i < args->file_count; i++) {
        files[i] = args->files[i];
        files[i].first_row = args->first_row;
        files[i].rows = args->row_count;
    }
    if (op_is_matrix(op) && args->shape)
        return FAIL(ERR_USAGE, "check: --shape goes with --fill, not with -i");
    if (args->shape)
        st = cli_shape_given(&dims, op, args->shape);
    return st != OK ? st : case_from_files(out, kernel, files, args->file_count, dims);
}

static status_t make_case(struct test_case *out, const struct check_args *args,
                          const struct kernel *kernel) {
    if (args->file_count)
        return make_from_files(out, args, kernel);
    struct case_dims dims;
    const struct fill *fill = fill_of(kernel->op, args->fill);
    if (!fill)
        return FAIL(ERR_USAGE, "--fill '%s': there is no such fill for op %s (see --fill help)",
                    args->fill, kernel->op->name);
    status_t st = cli_shape(&dims, kernel->op, args->shape);
    if (st != OK)
        return st;
    if (args->check == CHECK_ENSEMBLE && ensemble_refuses(fill))
        return FAIL(ERR_USAGE, "--fill %s: %s", args->fill, ensemble_refuses(fill));
    return case_make(out, fill, kernel, dims, args->seed);
}

/* The report of a gate with one case.  unfit: why a device cannot run the kernel; "" if all can. */
static status_t check_case(struct kernel_report *report, struct loaded_kernel *lk,
                           struct loaded_kernel *twin, const char *unfit,
                           const struct check_args *args, const struct test_case *c) {
    const enum check check = args->check;
    struct outcome outcome = {.judgement = judgement_of(VERDICT_SKIP, "%s", unfit)};
    struct threads threads;
    struct progress progress;
    const struct work_options work = {&threads, progress_step, &progress};
    char line[CASE_LINE_SIZE];
    status_t st = OK;
    check_line(line, sizeof line, check, c);
    TRY(file_sha256(report->image_sha256, report->kernel->image));
    TRY(plain_find(&report->plain, report->kernel));
    threads_init(&threads, (unsigned)args->threads, oracle_thread_done);
    progress_begin(&progress);
    if (!unfit[0])
        st = gate_check(&outcome, lk, twin, check, c, &work);
    progress_end(&progress);
    TRY(st);
    TRY(kernel_report_add(report, check, line, &outcome));
    TRY(kernel_report_finish(report));
done:
    return st;
}

/* After a difference between twins: where it was born. */
static status_t locate(const struct check_args *args, const struct kernel *kernel,
                       struct device *device, struct device *twin, const struct test_case *c) {
    struct difference d;
    char text[1024];
    status_t st = twin_locate(&d, kernel, device, twin, c);
    if (st != OK)
        return st;
    text_of_difference(text, sizeof text, &d, kernel, args->device, args->twin);
    fputs(text, stdout);
    return OK;
}

static status_t check(const struct check_args *args, bool *passed) {
    struct catalogue *cat = NULL;
    struct device *device = NULL, *twin_device = NULL;
    struct loaded_kernel *lk = NULL, *twin = NULL;
    struct test_case c = {0};
    struct kernel_report report = {0};
    status_t st = OK;
    char unfit[REASON_SIZE] = "";
    TRY(check_usage(args));
    TRY(cli_catalogue(&cat, &args->common));
    const struct kernel *kernel = catalogue_find(cat, args->kernel);
    if (!kernel)
        TRY(FAIL(ERR_USAGE, "there is no kernel '%s' among %zu (see assay list)", args->kernel,
                 catalogue_count(cat)));
    kernel_report_init(&report, kernel);
    TRY(make_case(&c, args, kernel));
    size_t elements = case_work(&c);
    TRY(gate_device(&device, args->device, elements));
    TRY(gate_load(&lk, unfit, device, kernel));
    if (args->twin && lk) {
        TRY(gate_device(&twin_device, args->twin, elements));
        TRY(gate_load(&twin, unfit, twin_device, kernel));
    }
    TRY(check_case(&report, lk, twin, unfit, args, &c));
    if (args->json)
        TRY(report_check_json(stdout, &report));
    else
        report_check(stdout, &report);
    if (args->twin && !args->json && report.verdict == VERDICT_FAIL)
        TRY(locate(args, kernel, device, twin_device, &c));
    *passed = report.verdict == VERDICT_PASS;
done:
    if (lk)
        kernel_unload(lk);
    if (twin)
        kernel_unload(twin);
    device_close(device);
    device_close(twin_device);
    kernel_report_clear(&report);
    case_clear(&c);
    catalogue_free(cat);
    oracle_thread_done();
    return st;
}

int verb_check(int argc, char **argv) {
    struct check_args args = {.device = "cpu", .seed = 1, .threads = cli_processors()};
    bool passed = true;
    status_t st = cli_parse(&argp, argc, argv, &args);
    if (st == OK && !args.common.help) {
        if (args.fill && strcmp(args.fill, "help") == 0)
            list_fills();
        else
            st = check(&args, &passed);
    }
    for (size_t i = 0; i < args.file_count; i++)
        free((char *)args.files[i].name);
    cli_args_clear(&args.common);
    return st != OK ? cli_error(st) : passed ? EXIT_PASSED : EXIT_CHECK_FAILED;
}
