/*
 * cli/args.c - arguments, with argp kept silent: its own complaints take two lines and exit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

int cli_error(status_t st) {
    /* One line: what follows the first one (the quoted source of a syntax error) is for a screen. */
    const char *message = status_message();
    fflush(stdout);
    fprintf(stderr, "assay: %.*s\n", (int)strcspn(message, "\n"), message);
    return status_exit_code(st);
}

status_t strings_add(struct strings *s, const char *item) {
    const char **items = realloc(s->items, (s->count + 1) * sizeof *items);
    if (!items)
        return FAIL(ERR_NOMEM, "no memory for arguments");
    s->items = items;
    items[s->count++] = item;
    return OK;
}

void strings_clear(struct strings *s) {
    free(s->items);
    *s = (struct strings){0};
}

void cli_args_clear(struct cli_args *args) {
    strings_clear(&args->manifests);
}

error_t cli_stop(struct argp_state *state, status_t st) {
    struct cli_args *args = state->input;
    args->st = st;
    return st == OK ? 0 : EINVAL;
}

error_t cli_other_key(int key, char *arg, struct argp_state *state) {
    struct cli_args *args = state->input;
    switch (key) {
    case CLI_KEY_MANIFEST:
        return cli_stop(state, strings_add(&args->manifests, arg));
    case '?':
        args->help = true;
        return 0;
    case ARGP_KEY_ARG:
        return cli_stop(state, FAIL(ERR_USAGE, "%s: unexpected argument '%s' (see assay %s --help)",
                                    state->name, arg, state->name));
    case ARGP_KEY_ERROR: /* an option that is unknown, or lacks its value, or has one too many */
        if (args->st == OK)
            cli_stop(state, FAIL(ERR_USAGE,
                                 "%s: unknown option, or a value missing or too many, at "
                                 "'%s' (see assay %s --help)",
                                 state->name, state->argv[state->next > 1 ? state->next - 1 : 1],
                                 state->name));
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

char *cli_help_filter(int key, const char *text, void *input) {
    (void)input;
    return key == ARGP_KEY_HELP_DUP_ARGS_NOTE ? NULL : (char *)text;
}

status_t cli_parse(const struct argp *argp, int argc, char **argv, void *input) {
    struct cli_args *args = input;
    error_t rc =
        argp_parse(argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, args);
    if (args->help) {
        char name[64];
        snprintf(name, sizeof name, "assay %s", argv[0]);
        argp_help(argp, stdout, ARGP_HELP_USAGE | ARGP_HELP_DOC | ARGP_HELP_LONG, name);
        return OK;
    }
    if (args->st != OK)
        return args->st;
    return rc == 0 ? OK
                   : FAIL(ERR_USAGE, "%s: cannot read its arguments: %s", argv[0], strerror(rc));
}

/* Digits only; *end = what follows them.  false: no digit, or beyond 2^64. */
static bool read_digits(uint64_t *out, const char *text, const char **end) {
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    *out = value;
    *end = at;
    return at != text;
}

uint64_t cli_processors(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > CLI_MAX_THREADS ? CLI_MAX_THREADS : (uint64_t)n;
}

status_t cli_number(uint64_t *out, const char *option, const char *text, uint64_t min,
                    uint64_t max) {
    const char *end;
    uint64_t value;
    if (!read_digits(&value, text, &end) || *end || value < min || value > max)
        return FAIL(ERR_USAGE, "%s '%s': expected a whole number from %llu to %llu", option, text,
                    (unsigned long long)min, (unsigned long long)max);
    *out = value;
    return OK;
}

status_t cli_pair(size_t *a, size_t *b, const char *option, const char *text, char separator) {
    const char *end;
    uint64_t first, second;
    if (!read_digits(&first, text, &end) || *end != separator ||
        !read_digits(&second, end + 1, &end) || *end)
        return FAIL(ERR_USAGE, "%s '%s': expected two numbers such as 4%c33", option, text,
                    separator);
    *a = first;
    *b = second;
    return OK;
}

static bool has_dim(const struct op *op, enum dim dim) {
    for (size_t i = 0; dim != DIM_NONE && op->dims[i] != DIM_NONE; i++)
        if (op->dims[i] == dim)
            return true;
    return false;
}

status_t cli_shape_given(struct case_dims *out, const struct op *op, const char *text) {
    *out = (struct case_dims){0};
    if (op->dims[0] == DIM_ROWS && op->dims[1] == DIM_COLS && !strchr(text, '='))
        return cli_pair(&out->rows, &out->cols, "--shape", text, 'x');
    for (const char *at = text, *end;; at = end + 1) {
        uint64_t value;
        size_t length = strcspn(at, "=");
        enum dim dim = dim_find(at, length);
        if (at[length] != '=' || !has_dim(op, dim) || !read_digits(&value, at + length + 1, &end) ||
            (*end && *end != ',')) {
            char shape[SHAPE_SIZE];
            struct case_dims example = {0}; /* a shape worth a check; all 1 would pass anything */
            for (size_t i = 0; op->dims[i] != DIM_NONE; i++)
                dim_set(&example, op->dims[i], op->dims[i] == DIM_HEAD_DIM ? 64 : 4);
            dims_shape(shape, sizeof shape, op->dims, &example);
            return FAIL(ERR_USAGE, "--shape '%s': expected dimensions of op %s, such as %s", text,
                        op->name, shape);
        }
        dim_set(out, dim, value);
        if (!*end)
            return OK;
    }
}

status_t cli_shape(struct case_dims *out, const struct op *op, const char *text) {
    status_t st = cli_shape_given(out, op, text);
    bool pair = !strchr(text, '=');
    for (size_t i = 0; st == OK && !pair && op->dims[i] != DIM_NONE; i++)
        if (dim_get(out, op->dims[i]) == 0) /* each head has its own keys and values */
            dim_set(out, op->dims[i], op->dims[i] == DIM_KV_HEADS ? out->heads : 1);
    if (st == OK && pair && op->dims[2] != DIM_NONE)
        dim_set(out, op->dims[2], 1);
    return st;
}

status_t cli_catalogue(struct catalogue **out, const struct cli_args *args) {
    struct catalogue *cat = NULL;
    status_t st = OK;
    TRY(catalogue_new(&cat));
    if (args->manifests.count == 0)
        TRY(catalogue_add_builtin(cat));
    for (size_t i = 0; i < args->manifests.count; i++)
        TRY(catalogue_add(cat, args->manifests.items[i]));
    *out = cat;
    cat = NULL;
done:
    catalogue_free(cat);
    return st;
}
