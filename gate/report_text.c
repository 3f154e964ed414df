/* gate/report_text.c - the report on stdout: plain lines, the same in a pipe as on a terminal. */
#include <math.h>
#include <string.h>

#include "gate/report.h"

#define SHOWN_FINDINGS 3 /* blocks per kernel */

static void finding_block(FILE *to, const struct kernel_report *r, const struct finding *f) {
    const struct judgement *j = &f->judgement;
    char text[RERUN_SIZE];
    fprintf(to, "\n%s %s: %s\n", verdict_name(j->verdict), r->kernel->name, j->reason);
    if (j->worst.known) {
        worst_place(text, sizeof text, r->kernel->op, &j->worst);
        fprintf(to, "    where   %s\n", text);
        text_of_got(text, sizeof text, r->kernel, &j->worst);
        fprintf(to, "    got     %s\n", text);
        text_of_enclosure(text, sizeof text, j->worst.want);
        fprintf(to, "    want    %s\n", text);
        fprintf(to, "    budget  %.3g\n", j->worst.budget);
    }
    text_of_rerun(text, sizeof text, r, f->line);
    fprintf(to, "    rerun   %s\n", text);
}

static void findings(FILE *to, const struct kernel_report *r) {
    size_t shown = 0, bad = kernel_report_bad(r);
    for (int v = VERDICT_FAIL; v > VERDICT_PASS; v--)
        for (size_t i = 0; i < r->finding_count && shown < SHOWN_FINDINGS; i++)
            if (r->findings[i].judgement.verdict == (enum verdict)v) {
                finding_block(to, r, &r->findings[i]);
                shown++;
            }
    if (bad > shown)
        fprintf(to, "    and %zu more of its %zu cases\n", bad - shown, r->cases);
}

static int name_width(const struct gate_report *r) {
    size_t width = 0;
    for (size_t i = 0; i < r->count; i++)
        if (strlen(r->kernels[i].kernel->name) > width)
            width = strlen(r->kernels[i].kernel->name);
    return (int)width;
}

static void kernel_line(FILE *to, const struct kernel_report *r, int width) {
    fprintf(to, "%-10s  %-*s", verdict_name(r->verdict), width, r->kernel->name);
    if (r->cases == 0) {
        fprintf(to, "  %s\n", r->reason);
        return;
    }
    char ulp[32] = ">1e9"; /* so wrong that digits say nothing */
    if (r->max_ulp < 1e9)
        snprintf(ulp, sizeof ulp, "%.3g", r->max_ulp);
    fprintf(to, "  %4zu cases  max ulp %-8s  rho %-6.3g  worst %s", r->cases, ulp, r->max_rho,
            r->worst.line);
    if (r->verdict == VERDICT_PASS && r->verdicts[VERDICT_MISTRUSTED])
        fprintf(to, "  (%zu cases could not have failed)", r->verdicts[VERDICT_MISTRUSTED]);
    fprintf(to, "\n");
}

static void twin_line(FILE *to, const struct gate_report *r) {
    size_t outputs = 0;
    if (!r->twin.name[0])
        return;
    for (size_t i = 0; i < r->count; i++)
        outputs += r->kernels[i].twin_outputs;
    fprintf(to, "\ntwin %s (%s%s%s): %zu outputs compared bit for bit\n", r->twin.name,
            r->twin.arch, r->twin.driver[0] ? ", driver " : "", r->twin.driver, outputs);
}

/* What was gated is not what a GPU's assembler would make of the image. */
static void rounding_note(FILE *to, const struct gate_report *r) {
    bool any = false;
    for (size_t i = 0; i < r->count; i++) {
        if (r->kernels[i].kernel->rounding != ROUNDING_RN)
            continue;
        fprintf(to, "%s %s",
                any ? "" : "\nnote: `.rn` was written onto add, sub and mul without a rounding of:",
                r->kernels[i].kernel->name);
        any = true;
    }
    if (any)
        fputc('\n', to);
}

void report_text(FILE *to, const struct gate_report *r) {
    size_t t[VERDICT_COUNT];
    gate_report_totals(t, r);
    int width = name_width(r);
    for (size_t i = 0; i < r->count; i++)
        kernel_line(to, &r->kernels[i], width);
    for (size_t i = 0; i < r->count; i++)
        findings(to, &r->kernels[i]);
    for (size_t i = 0; i < r->count; i++)
        if (r->kernels[i].ambiguous)
            fprintf(to,
                    "\nnote: %s: %u unsuffixed mul + add pairs may or may not be fused: its bits "
                    "hold for this device only\n",
                    r->kernels[i].kernel->name, r->kernels[i].ambiguous);
    rounding_note(to, r);
    struct tally tally = {0};
    char decided[256];
    for (size_t i = 0; i < r->count; i++)
        tally_add(&tally, &r->kernels[i].tally);
    text_of_tally(decided, sizeof decided, &tally);
    if (decided[0])
        fprintf(to, "\noracle: %s\n", decided);
    if (!r->real_input)
        fprintf(to, "\nnote: no real input was found beside the program (corpus/real)\n");
    twin_line(to, r);
    fprintf(to,
            "\n%zu kernel%s on %s (%s%s%s), suite %s, seed %llu, %.1f s: %zu pass, %zu fail, "
            "%zu unsure, %zu mistrusted, %zu skip%s\n",
            r->count, r->count == 1 ? "" : "s", r->device.name, r->device.arch,
            r->device.driver[0] ? ", driver " : "", r->device.driver, r->suite,
            (unsigned long long)r->seed, r->seconds, t[VERDICT_PASS], t[VERDICT_FAIL],
            t[VERDICT_UNSURE], t[VERDICT_MISTRUSTED], t[VERDICT_SKIP],
            r->complete ? "" : " - the run did not finish");
}

void report_check(FILE *to, const struct kernel_report *r) {
    const struct worst *w = &r->worst.judgement.worst;
    char text[256];
    fprintf(to, "kernel    %s\n", r->kernel->name);
    fprintf(to, "case      %s\n", r->worst.line);
    fprintf(to, "verdict   %s\n", verdict_name(r->verdict));
    if (r->verdict != VERDICT_PASS)
        fprintf(to, "reason    %s\n", r->reason);
    if (r->cases == 0)
        return;
    if (r->worst.check == CHECK_BOUND && w->known) {
        fprintf(to, "max ulp   %.4g\n", r->max_ulp);
        fprintf(to, "max rel   %.4g\n", r->max_rel);
    }
    if (w->known) {
        fprintf(to, "max rho   %.4g\n", r->max_rho);
        worst_place(text, sizeof text, r->kernel->op, w);
        fprintf(to, "worst     %s\n", text);
        text_of_got(text, sizeof text, r->kernel, w);
        fprintf(to, "  got     %s\n", text);
        text_of_enclosure(text, sizeof text, w->want);
        fprintf(to, "  want    %s\n", text);
        fprintf(to, "  budget  %.4g\n", w->budget);
    }
    text_of_tally(text, sizeof text, &r->tally);
    if (text[0])
        fprintf(to, "oracle    %s\n", text);
    fprintf(to, "events    NaN born %llu, Inf born %llu, subnormals flushed %llu\n",
            (unsigned long long)r->events.nan_born, (unsigned long long)r->events.inf_born,
            (unsigned long long)r->events.subnormal_flushed);
}

/* Up to two significant digits, upwards. */
static double round_up(double v) {
    if (!(v > 0) || !isfinite(v))
        return v;
    double unit = pow(10, floor(log10(v)) - 1);
    return ceil(v / unit * (1 - 1e-12)) * unit;
}

void report_proposals(FILE *to, const struct gate_report *r) {
    int width = name_width(r);
    fprintf(to,
            "# measured: suite %s, seed %llu, %s.  A row needs a reason; a raise needs a review.\n",
            r->suite, (unsigned long long)r->seed, r->device.name);
    for (size_t i = 0; i < r->count; i++) {
        const struct kernel_report *k = &r->kernels[i];
        if (k->cases)
            fprintf(to, "%-*s  %-7.2g  %-8.2g  measured %.4g and %.3g\n", width, k->kernel->name,
                    round_up(k->max_ulp), round_up(k->max_rel), k->max_ulp, k->max_rel);
    }
}
