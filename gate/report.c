/* gate/report.c - outcomes added up, and the words that all forms of a report share. */
#include "gate/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void kernel_report_init(struct kernel_report *r, const struct kernel *kernel) {
    *r = (struct kernel_report){.kernel = kernel, .verdict = VERDICT_SKIP};
}

void kernel_report_clear(struct kernel_report *r) {
    free(r->findings);
    *r = (struct kernel_report){0};
}

static void set_finding(struct finding *f, enum check check, const char *line,
                        const struct judgement *j) {
    *f = (struct finding){.check = check, .judgement = *j};
    snprintf(f->line, sizeof f->line, "%s", line);
}

/* "--fill huge ...", "-i x=a.npy ...": the same up to the second blank; all order checks are one. */
static bool same_kind(const struct finding *a, const struct finding *b) {
    size_t n = strcspn(a->line, " ");
    n += a->line[n] ? 1 + strcspn(a->line + n + 1, " ") : 0;
    return a->check == b->check && a->judgement.verdict == b->judgement.verdict &&
           strncmp(a->line, b->line, n + 1) == 0;
}

static status_t keep_finding(struct kernel_report *r, enum check check, const char *line,
                             const struct judgement *j) {
    struct finding f;
    set_finding(&f, check, line, j);
    for (size_t i = 0; i < r->finding_count; i++)
        if (same_kind(&f, &r->findings[i]))
            return OK;
    if (r->finding_count == r->finding_room) {
        size_t room = r->finding_room ? 2 * r->finding_room : 4;
        struct finding *findings = realloc(r->findings, room * sizeof *findings);
        if (!findings)
            return FAIL(ERR_NOMEM, "no memory for the findings on %s", r->kernel->name);
        r->findings = findings;
        r->finding_room = room;
    }
    r->findings[r->finding_count++] = f;
    return OK;
}

/* Worse verdict first, then larger rho; the first of equals stays, as it is the smallest case. */
static bool is_worse(const struct judgement *a, const struct judgement *b) {
    return a->verdict != b->verdict ? a->verdict > b->verdict : a->max_rho > b->max_rho;
}

status_t kernel_report_add(struct kernel_report *r, enum check check, const char *line,
                           const struct outcome *o) {
    struct judgement held = o->judgement;
    const struct judgement *j = &held;
    if (check == CHECK_BOUND)
        plain_judge(&held, &r->plain);
    r->verdicts[j->verdict]++;
    if (j->verdict ==
        VERDICT_MISTRUSTED) { /* says nothing, good or bad: see kernel_report_finish */
        if (r->vacuous.line[0] == '\0')
            set_finding(&r->vacuous, check, line, j);
        r->cases++;
        return OK;
    }
    if (r->worst.line[0] == '\0' || is_worse(j, &r->worst.judgement))
        set_finding(&r->worst, check, line, j);
    r->verdict = verdict_worse(r->verdict, j->verdict);
    if (j->verdict == VERDICT_SKIP)
        return OK;
    r->cases++;
    if (check == CHECK_ORDER) {
        if (r->order_cases++ == 0)
            snprintf(r->order_line, sizeof r->order_line, "%s", line);
        r->order_saw += o->saw_order;
    }
    r->twin_outputs += o->compared;
    r->max_ulp = fmax(r->max_ulp, j->max_ulp); /* none is NaN: judge.c makes a NaN a FAIL */
    r->max_rel = fmax(r->max_rel, j->max_rel);
    r->max_rho = fmax(r->max_rho, j->max_rho);
    tally_add(&r->tally, &j->tally);
    r->events.nan_born += o->events.nan_born;
    r->events.inf_born += o->events.inf_born;
    r->events.subnormal_flushed += o->events.subnormal_flushed;
    return j->verdict == VERDICT_PASS ? OK : keep_finding(r, check, line, j);
}

/* The kernel as a whole could not have failed, in this respect. */
static status_t mistrust(struct kernel_report *r, const char *line, const struct judgement *j) {
    char of[CASE_LINE_SIZE]; /* line may be the worst finding's own */
    const struct judgement judgement = *j;
    snprintf(of, sizeof of, "%s", line);
    r->verdict = VERDICT_MISTRUSTED;
    set_finding(&r->worst, CHECK_BOUND, of, &judgement);
    return keep_finding(r, CHECK_BOUND, of, &judgement);
}

status_t kernel_report_finish(struct kernel_report *r) {
    struct judgement j;
    status_t st = OK;
    if (r->verdict == VERDICT_SKIP && r->verdicts[VERDICT_MISTRUSTED])
        TRY(mistrust(r, r->vacuous.line, &r->vacuous.judgement));
    if (r->order_cases && !r->order_saw && r->verdict == VERDICT_PASS) {
        j = judgement_of(VERDICT_MISTRUSTED, "order: permuting columns changed no bit in %zu cases",
                         r->order_cases);
        TRY(mistrust(r, r->order_line, &j));
    }
    if (r->twin && !r->twin_outputs && r->verdict == VERDICT_PASS) {
        j = judgement_of(VERDICT_MISTRUSTED, "twin: no output was compared: %s",
                         !r->kernel->deterministic ? "not declared deterministic"
                         : r->ambiguous            ? "unsuffixed mul + add pairs fix no bits"
                         : r->twin_unfit[0]        ? r->twin_unfit
                                                   : "no case ran on both devices");
        TRY(mistrust(r, r->worst.line, &j));
    }
    if (r->verdict == VERDICT_PASS)
        snprintf(r->reason, sizeof r->reason, "all %zu cases within budget",
                 r->verdicts[VERDICT_PASS]);
    else if (r->worst.line[0] == '\0')
        snprintf(r->reason, sizeof r->reason, "no case ran");
    else
        snprintf(r->reason, sizeof r->reason, "%s", r->worst.judgement.reason);
done:
    return st;
}

size_t kernel_report_bad(const struct kernel_report *r) {
    size_t vacuous = r->verdict == VERDICT_MISTRUSTED ? r->verdicts[VERDICT_MISTRUSTED] : 0;
    return vacuous + r->verdicts[VERDICT_UNSURE] + r->verdicts[VERDICT_FAIL];
}

void gate_report_clear(struct gate_report *r) {
    for (size_t i = 0; i < r->count; i++)
        kernel_report_clear(&r->kernels[i]);
    free(r->kernels);
    *r = (struct gate_report){0};
}

void gate_report_totals(size_t totals[static VERDICT_COUNT], const struct gate_report *r) {
    for (int v = 0; v < VERDICT_COUNT; v++)
        totals[v] = 0;
    for (size_t i = 0; i < r->count; i++)
        totals[r->kernels[i].verdict]++;
}

bool gate_report_passed(const struct gate_report *r) {
    size_t totals[VERDICT_COUNT];
    gate_report_totals(totals, r);
    return r->complete && r->count > 0 && totals[VERDICT_PASS] == r->count;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void text_of_number(char *out, size_t size, double v, int digits) {
    if (isnan(v))
        snprintf(out, size, "NaN");
    else if (isinf(v))
        snprintf(out, size, "%cInf", v > 0 ? '+' : '-');
    else
        snprintf(out, size, "%.*g", digits, v);
}

void text_of_bits(char *out, size_t size, const struct dtype *dt, uint32_t bits) {
    char value[40];
    text_of_number(value, sizeof value, dtype_to_double(dt, bits), 9);
    snprintf(out, size, "0x%0*x (%s)", (int)(dt->bits / 4), (unsigned)bits, value);
}

void text_of_got(char *out, size_t size, const struct kernel *kernel, const struct worst *w) {
    const struct tensor_type *type = kernel_output(kernel, w->output);
    if (type->dtype)
        text_of_bits(out, size, type->dtype, w->got);
    else
        snprintf(out, size, "%d", (int)w->got);
}

void text_of_enclosure(char *out, size_t size, struct enclosure e) {
    char lo[40], hi[40];
    if (e.lo == e.hi || enclosure_is_nan(e)) {
        text_of_number(out, size, enclosure_is_nan(e) ? (double)NAN : e.lo, 17);
        return;
    }
    text_of_number(lo, sizeof lo, e.lo, 17);
    text_of_number(hi, sizeof hi, e.hi, 17);
    snprintf(out, size, "[%s, %s]", lo, hi);
}

void text_of_rerun(char *out, size_t size, const struct kernel_report *r, const char *line) {
    bool twin = strncmp(line, "--twin ", 7) == 0 && r->twin;
    bool device = r->device && strcmp(r->device, "cpu") != 0;
    char manifest[RERUN_SIZE] = "";
    if (!r->kernel->builtin)
        shell_word(manifest, sizeof manifest, r->kernel->manifest);
    snprintf(out, size, "assay check %s %s%s%s%s%s%s%s", r->kernel->name, twin ? "--twin=" : "",
             twin ? r->twin : "", twin ? line + 6 : line, device ? " -d " : "",
             device ? r->device : "", r->kernel->builtin ? "" : " --manifest ", manifest);
}

void text_of_dtype(char *out, size_t size, const struct kernel *kernel) {
    if (kernel->in == kernel->out)
        snprintf(out, size, "%s", kernel->in->name);
    else
        snprintf(out, size, "%s->%s", kernel->in->name, kernel->out->name);
}

/* ---- files ----------------------------------------------------------------------------------- */

static status_t write_one(const char *dir, const char *name,
                          status_t (*write)(FILE *, const struct gate_report *),
                          const struct gate_report *r) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return FAIL(ERR_IO, "%s: the path is too long", dir);
    FILE *file = fopen(path, "w");
    if (!file)
        return FAIL(ERR_IO, "cannot write %s: %s", path, strerror(errno));
    status_t st = write(file, r);
    if ((ferror(file) | fclose(file)) && st == OK)
        st = FAIL(ERR_IO, "cannot write %s: %s", path, strerror(errno));
    return st;
}

status_t report_write(const char *dir, const struct gate_report *r) {
    status_t st = OK;
    TRY(file_make_folder(dir));
    TRY(write_one(dir, "results.json", report_json, r));
    TRY(write_one(dir, "junit.xml", report_junit, r));
    TRY(write_one(dir, "index.html", report_html, r));
done:
    return st;
}

void text_of_tally(char *out, size_t size, const struct tally *t) {
    uint64_t all = 0;
    for (int tier = 0; tier < TIER_COUNT; tier++)
        all += t->decided[tier];
    out[0] = '\0';
    if (all == 0)
        return;
    int at = snprintf(out, size, "%llu results:", (unsigned long long)all);
    for (int tier = 0; tier < TIER_COUNT && at >= 0 && (size_t)at < size; tier++)
        at += snprintf(out + at, size - (size_t)at, "%s %s %llu (%.3g %%)", tier ? "," : "",
                       tier_name((enum tier)tier), (unsigned long long)t->decided[tier],
                       100.0 * (double)t->decided[tier] / (double)all);
    if (at >= 0 && (size_t)at < size)
        snprintf(out + at, size - (size_t)at, "; %llu judged again by MPFR",
                 (unsigned long long)t->audited);
}
