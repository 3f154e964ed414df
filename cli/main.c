/* cli/main.c - the program: picks the verb, and makes sure that what it printed arrived. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct verb {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"list", "show the kernels", verb_list},
    {"gate", "check kernels against the oracle, case by case of a suite", verb_gate},
    {"check", "check one kernel on one case, or on a tensor of your own", verb_check},
    {"bench", "time kernels on a GPU, or count their instructions on the CPU", verb_bench},
    {"exhaust", "check a special function on every input there is", verb_exhaust},
};
#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

static void show_help(void) {
    printf("Usage: assay VERB [OPTION...]\n"
           "Assay proves or breaks the numerics of GPU kernels: it runs a compiled kernel, on a "
           "GPU or on\n"
           "the CPU from its PTX, and judges every result against an arbitrary-precision oracle, "
           "with an\n"
           "error budget derived from the kernel's declared arithmetic.\n\n"
           "Verbs:\n");
    for (size_t i = 0; i < VERB_COUNT; i++)
        printf("  %-8s %s\n", verbs[i].name, verbs[i].summary);
    printf("\n`assay VERB --help` shows a verb's options, `assay --version` the version.\n\n"
           "Examples:\n"
           "  assay gate                               all kernels, the quick suite, on the CPU\n"
           "  assay gate -k 'softmax*' -o out          some of them, with reports in out/\n"
           "  assay gate --manifest mine.yaml          your own kernels (docs/manifest.md)\n"
           "  assay check softmax_online_f32 -i x=logits.npy\n\n"
           "Exit codes: 0 passed, 1 a check failed, 2 bad usage or bad input, 3 could not run.\n");
}

static int run_verb(int argc, char **argv) {
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    return cli_error(FAIL(ERR_USAGE,
                          "unknown verb '%s': expected list, gate, check, bench or exhaust "
                          "(see assay --help)",
                          argv[1]));
}

static int run(int argc, char **argv) {
    if (argc < 2)
        return cli_error(
            FAIL(ERR_USAGE, "no verb: expected list, gate, check, bench or exhaust (see assay --help)"));
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0 ||
        strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        show_help();
        return EXIT_PASSED;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("assay " ASSAY_VERSION "\n");
        return EXIT_PASSED;
    }
    return run_verb(argc, argv);
}

int main(int argc, char **argv) {
    int code = run(argc, argv);
    bool lost = ferror(stdout);
    if ((fclose(stdout) != 0 || lost) && code <= EXIT_CHECK_FAILED) /* a verdict nobody can read */
        code = cli_error(FAIL(ERR_DEVICE, "cannot write to stdout: %s", strerror(errno)));
    return code;
}
