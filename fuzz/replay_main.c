/*
 * fuzz/replay_main.c - a fuzz target without libFuzzer: run it on files and all files in folders.
 *
 *   fuzz_rows [--expect-fail] PATH...
 *
 * Each input runs in a child process, so that one that aborts is counted and the rest still run.
 * Exit: 0 all inputs passed (with --expect-fail: every one of them aborted), 1 not so, 2 bad usage,
 * a missing path, or no input at all: a replay of nothing shows nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz/target.h"

#define INPUT_LIMIT_S 60
#define INPUT_LIMIT_BYTES ((size_t)1 << 20)

#pragma weak LLVMFuzzerInitialize /* not every target has one */

struct tally {
    size_t inputs, aborted, broken; /* broken: unreadable, timed out, or ended in another way */
};

static bool run_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    uint8_t *data = malloc(INPUT_LIMIT_BYTES);
    size_t size = data ? fread(data, 1, INPUT_LIMIT_BYTES, f) : 0;
    bool read = data && !ferror(f) && feof(f);
    fclose(f);
    if (read) {
        /* of its exact size, so that a sanitizer sees a read behind the end */
        uint8_t *exact = malloc(size ? size : 1);
        if (exact) {
            memcpy(exact, data, size);
            LLVMFuzzerTestOneInput(exact, size);
        }
        free(exact);
    }
    free(data);
    return read;
}

static void replay_file(struct tally *tally, const char *path) {
    tally->inputs++;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(INPUT_LIMIT_S);
        bool read = run_file(path);
        fflush(NULL);
        _exit(read ? 0 : 2);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        fprintf(stderr, "replay: %s: no child process: %s\n", path, strerror(errno));
        tally->broken++;
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) {
        fprintf(stderr, "replay: %s: aborted\n", path);
        tally->aborted++;
    } else if (WIFSIGNALED(status)) {
        fprintf(stderr, "replay: %s: killed by signal %d (%s)\n", path, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
        tally->broken++;
    } else if (WEXITSTATUS(status) != 0) {
        fprintf(stderr, "replay: %s: exit %d\n", path, WEXITSTATUS(status));
        tally->broken++;
    }
}

static bool replay(struct tally *tally, const char *path);

static bool replay_folder(struct tally *tally, const char *path) {
    struct dirent **names;
    int count = scandir(path, &names, NULL, alphasort);
    if (count < 0) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return false;
    }
    bool ok = true;
    for (int i = 0; i < count; i++) {
        char *full = NULL;
        if (names[i]->d_name[0] != '.' && asprintf(&full, "%s/%s", path, names[i]->d_name) > 0)
            ok &= replay(tally, full);
        free(full);
        free(names[i]);
    }
    free(names);
    return ok;
}

/* False if there is no such path. */
static bool replay(struct tally *tally, const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return false;
    }
    if (S_ISDIR(info.st_mode))
        return replay_folder(tally, path);
    replay_file(tally, path);
    return true;
}

int main(int argc, char **argv) {
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    bool expect_fail = argc > 1 && strcmp(argv[1], "--expect-fail") == 0;
    int first = expect_fail ? 2 : 1;
    if (first >= argc || argv[first][0] == '-') {
        fprintf(stderr, "usage: %s [--expect-fail] FILE|FOLDER...\n", argv[0]);
        return 2;
    }
    struct tally tally = {0};
    bool found = true;
    for (int i = first; i < argc; i++)
        found &= replay(&tally, argv[i]);
    printf("replay: %zu inputs, %zu aborted, %zu broken\n", tally.inputs, tally.aborted,
           tally.broken);
    if (!found || tally.inputs == 0)
        return 2;
    size_t wanted = expect_fail ? tally.inputs : 0;
    return tally.aborted == wanted && tally.broken == 0 ? 0 : 1;
}
