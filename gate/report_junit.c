/*
 * gate/report_junit.c - junit.xml, which every CI reads: one test case per kernel.
 *
 * FAIL, UNSURE and MISTRUSTED are failures with the verdict as their type; SKIP is skipped.
 */
#include "gate/markup.h"
#include "gate/report.h"

static void failure(FILE *to, const struct kernel_report *r) {
    char text[RERUN_SIZE];
    markup_print(to, "    <failure type=\"%s\" message=\"%s\">", verdict_name(r->verdict),
                 r->reason);
    for (size_t i = 0; i < r->finding_count; i++) {
        const struct finding *f = &r->findings[i];
        text_of_rerun(text, sizeof text, r, f->line);
        markup_print(to, "%s: %s\n    %s\n", verdict_name(f->judgement.verdict),
                     f->judgement.reason, text);
    }
    fprintf(to, "</failure>\n");
}

static void test_case(FILE *to, const struct kernel_report *r) {
    markup_print(to, "  <testcase classname=\"%s\" name=\"%s\">\n", r->kernel->op->name,
                 r->kernel->name);
    if (r->verdict == VERDICT_SKIP)
        markup_print(to, "    <skipped message=\"%s\"/>\n", r->reason);
    else if (r->verdict != VERDICT_PASS)
        failure(to, r);
    fprintf(to, "  </testcase>\n");
}

status_t report_junit(FILE *to, const struct gate_report *r) {
    size_t t[VERDICT_COUNT];
    gate_report_totals(t, r);
    fprintf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    fprintf(to,
            "<testsuite name=\"assay gate\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"%zu\" time=\"%.3f\">\n",
            r->count, t[VERDICT_FAIL] + t[VERDICT_UNSURE] + t[VERDICT_MISTRUSTED], t[VERDICT_SKIP],
            r->seconds);
    for (size_t i = 0; i < r->count; i++)
        test_case(to, &r->kernels[i]);
    fprintf(to, "</testsuite>\n");
    return ferror(to) ? FAIL(ERR_IO, "cannot write junit.xml") : OK;
}
