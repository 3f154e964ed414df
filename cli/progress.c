/* cli/progress.c - a bar for whoever waits at a terminal; a pipe or a log gets nothing. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define BAR_WIDTH 40
#define REDRAW_SECONDS 0.1

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(struct progress *p) {
    *p = (struct progress){.shown = isatty(STDERR_FILENO), .start = now()};
}

void progress_step(void *progress, size_t done, size_t total) {
    struct progress *p = progress;
    double t = p->shown ? now() : 0;
    if (!p->shown || total == 0 || (t - p->drawn < REDRAW_SECONDS && done < total))
        return;
    p->drawn = t;
    int full = (int)(BAR_WIDTH * done / total);
    fprintf(stderr, "\r[");
    for (int i = 0; i < BAR_WIDTH; i++)
        fputc(i < full ? '#' : '.', stderr);
    fprintf(stderr, "] %zu/%zu  %.0f s ", done, total, t - p->start);
    fflush(stderr);
}

void progress_end(struct progress *p) {
    if (p->shown)
        fprintf(stderr, "\r\033[K");
}
