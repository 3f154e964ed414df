/* gate/report_html.c - index.html: one file, no script, readable on a phone and on paper. */
#include "gate/markup.h"
#include "gate/report.h"

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;"
    "color:#1c2430;background:#fff}\n"
    "h1{font-size:1.4rem;margin-bottom:0}p.sub{color:#5b6675;margin-top:.2rem}\n"
    "table{border-collapse:collapse;width:100%;margin:1rem 0}\n"
    "th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #e2e6ec;"
    "vertical-align:top}\n"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f5f7fa;padding:.7rem;"
    "overflow-x:auto}\n"
    ".v{font-weight:600}.PASS{color:#1a7f37}.FAIL{color:#c62828}.UNSURE,.MISTRUSTED{color:#9a6700}"
    ".SKIP{color:#5b6675}\n"
    "@media(prefers-color-scheme:dark){body{color:#dfe5ec;background:#12161c}"
    "th,td{border-color:#2a323d}pre{background:#1a2029}p.sub,.SKIP{color:#93a0b0}"
    ".PASS{color:#4cc36a}.FAIL{color:#ff6b6b}.UNSURE,.MISTRUSTED{color:#d9a62e}}\n";

static void head(FILE *to, const struct gate_report *r) {
    size_t t[VERDICT_COUNT];
    gate_report_totals(t, r);
    const char *state = gate_report_passed(r) ? "passed" : "did not pass";
    fprintf(to, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    markup_print(to, "<title>Assay gate: %s</title>\n<style>\n", state);
    fputs(style, to);
    markup_print(to, "</style>\n</head>\n<body>\n<h1>Assay gate: %s</h1>\n", state);
    markup_print(to, "<p class=\"sub\">%s (%s%s%s), suite %s", r->device.name, r->device.arch,
                 r->device.driver[0] ? ", driver " : "", r->device.driver, r->suite);
    fprintf(to, ", seed %llu, %.1f s, Assay " ASSAY_VERSION "%s</p>\n", (unsigned long long)r->seed,
            r->seconds, r->complete ? "" : ", <b>the run did not finish</b>");
    fprintf(to, "<p>%zu kernels: %zu pass, %zu fail, %zu unsure, %zu mistrusted, %zu skip.</p>\n",
            r->count, t[VERDICT_PASS], t[VERDICT_FAIL], t[VERDICT_UNSURE], t[VERDICT_MISTRUSTED],
            t[VERDICT_SKIP]);
}

static void row(FILE *to, const struct kernel_report *r) {
    char dtype[32];
    text_of_dtype(dtype, sizeof dtype, r->kernel);
    const char *verdict = verdict_name(r->verdict);
    markup_print(to, "<tr><td class=\"v %s\">%s</td><td><code>%s</code></td><td>%s</td><td>%s</td>",
                 verdict, verdict, r->kernel->name, r->kernel->op->name, dtype);
    if (r->cases)
        fprintf(to,
                "<td class=\"n\">%zu</td><td class=\"n\">%.3g</td><td class=\"n\">%.3g</td>"
                "<td class=\"n\">%.3g</td>",
                r->cases, r->max_ulp, r->max_rel, r->max_rho);
    else
        fprintf(to, "<td class=\"n\">0</td><td></td><td></td><td></td>");
    markup_print(to, "<td><code>%s</code></td></tr>\n", r->cases ? r->worst.line : r->reason);
}

static void finding(FILE *to, const struct kernel_report *r, const struct finding *f) {
    char text[RERUN_SIZE];
    const struct judgement *j = &f->judgement;
    markup_print(to, "<p><span class=\"v %s\">%s</span> %s</p>\n<pre>", verdict_name(j->verdict),
                 verdict_name(j->verdict), j->reason);
    if (j->worst.known) {
        text_of_got(text, sizeof text, r->kernel, &j->worst);
        markup_print(to, "got     %s\n", text);
        text_of_enclosure(text, sizeof text, j->worst.want);
        markup_print(to, "want    %s\n", text);
        fprintf(to, "budget  %.3g\n", j->worst.budget);
    }
    text_of_rerun(text, sizeof text, r, f->line);
    markup_print(to, "rerun   %s</pre>\n", text);
}

static void findings(FILE *to, const struct kernel_report *r) {
    size_t bad = kernel_report_bad(r);
    if (bad == 0)
        return;
    markup_print(to, "<details open><summary><code>%s</code>", r->kernel->name);
    fprintf(to, ": %zu of %zu cases; image sha256 <code>%s</code></summary>\n", bad, r->cases,
            r->image_sha256);
    for (size_t i = 0; i < r->finding_count; i++)
        finding(to, r, &r->findings[i]);
    if (bad > r->finding_count)
        fprintf(to, "<p>and %zu more of the same fills.</p>\n", bad - r->finding_count);
    fprintf(to, "</details>\n");
}

status_t report_html(FILE *to, const struct gate_report *r) {
    head(to, r);
    fprintf(to, "<table>\n<tr><th>verdict</th><th>kernel</th><th>op</th><th>dtype</th>"
                "<th>cases</th><th>max ulp</th><th>max rel</th><th>max rho</th>"
                "<th>worst case</th></tr>\n");
    for (size_t i = 0; i < r->count; i++)
        row(to, &r->kernels[i]);
    fprintf(to, "</table>\n");
    for (size_t i = 0; i < r->count; i++)
        findings(to, &r->kernels[i]);
    fprintf(to, "</body>\n</html>\n");
    return ferror(to) ? FAIL(ERR_IO, "cannot write index.html") : OK;
}
