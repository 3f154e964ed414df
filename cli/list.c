/* cli/list.c - assay list: the kernels, one line each, or as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "gate/report.h"

struct list_args {
    struct cli_args common;
    const char *op;
    bool json;
};

enum { KEY_OP = CLI_KEY_FIRST, KEY_JSON };

static const struct argp_option options[] = {
    {"op", KEY_OP, "OP", 0, "Only kernels of this op (sum, max, softmax, ...)", 1},
    {"json", KEY_JSON, NULL, 0, "Print an array of objects", 1},
    CLI_COMMON_OPTIONS,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    struct list_args *args = state->input;
    switch (key) {
    case KEY_OP:
        args->op = arg;
        return 0;
    case KEY_JSON:
        args->json = true;
        return 0;
    default:
        return cli_other_key(key, arg, state);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .help_filter = cli_help_filter,
    .doc = "Show the kernels that gate and check know: name, op, dtype and what each one is.",
};

static void print_lines(const struct kernel *const *kernels, size_t count) {
    size_t width = 0;
    for (size_t i = 0; i < count; i++)
        if (strlen(kernels[i]->name) > width)
            width = strlen(kernels[i]->name);
    for (size_t i = 0; i < count; i++) {
        const struct kernel *k = kernels[i];
        char dtype[32];
        text_of_dtype(dtype, sizeof dtype, k);
        printf("%-*s  %-12s  %-9s  %s", (int)width, k->name, k->op->name, dtype,
               k->summary ? k->summary : "");
        if (k->recommended)
            printf(" (recommended: %s %s)", dim_name(op_row_length(k->op)), k->recommended);
        if (k->fault)
            printf(" (planted fault: %s)", k->fault);
        putchar('\n');
    }
}

static status_t print_json(const struct kernel *const *kernels, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct kernel *k = kernels[i];
        char dtype[32];
        text_of_dtype(dtype, sizeof dtype, k);
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:s, s:s?, s:b, s:s?, s:s?, s:s, s:s}", "name",
                                        k->name, "op", k->op->name, "dtype", dtype, "summary",
                                        k->summary, "deterministic", (int)k->deterministic,
                                        "recommended", k->recommended, "fault",
                                        k->fault, "manifest", k->manifest, "image", k->image));
    }
    int rc = array ? json_dumpf(array, stdout, JSON_INDENT(2)) : -1;
    json_decref(array);
    putchar('\n');
    return rc == 0 ? OK : FAIL(ERR_NOMEM, "no memory for a list in JSON");
}

static status_t select_kernels(const struct kernel **out, size_t *count,
                               const struct catalogue *cat, const char *op) {
    *count = 0;
    if (op && !op_find(op))
        return FAIL(ERR_USAGE, "--op '%s': there is no such op", op);
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        if (!op || strcmp(k->op->name, op) == 0)
            out[(*count)++] = k;
    }
    return OK;
}

static status_t list(const struct list_args *args) {
    struct catalogue *cat = NULL;
    const struct kernel **kernels = NULL;
    size_t count;
    status_t st = OK;
    TRY(cli_catalogue(&cat, &args->common));
    kernels = calloc(catalogue_count(cat) + 1, sizeof *kernels);
    if (!kernels)
        TRY(FAIL(ERR_NOMEM, "no memory for a list of kernels"));
    TRY(select_kernels(kernels, &count, cat, args->op));
    if (args->json)
        TRY(print_json(kernels, count));
    else
        print_lines(kernels, count);
done:
    free(kernels);
    catalogue_free(cat);
    return st;
}

int verb_list(int argc, char **argv) {
    struct list_args args = {0};
    status_t st = cli_parse(&argp, argc, argv, &args);
    if (st == OK && !args.common.help)
        st = list(&args);
    cli_args_clear(&args.common);
    return st == OK ? EXIT_PASSED : cli_error(st);
}
