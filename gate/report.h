/*
 * gate/report.h - what a run found, kernel by kernel, and the forms it is written in.
 *
 * Nothing here decides anything: verdicts come from judge.c and order.c, a kernel's verdict is the
 * worst of its cases'.
 */
#ifndef GATE_REPORT_H
#define GATE_REPORT_H

#include <stdio.h>

#include "gate/file.h"
#include "gate/judge.h"
#include "gate/plain.h"
#include "gate/plan.h"

/* What one check of one kernel on one case gave. */
struct outcome {
    struct judgement judgement;
    struct dev_events events; /* of the first run */
    bool saw_order;           /* CHECK_ORDER: see gate/order.h */
    size_t compared;          /* CHECK_TWIN: outputs whose bits were compared */
};

/* An outcome and the options that rerun it, "--order --fill normal --shape 3x1025 --seed 3". */
struct finding {
    enum check check;
    char line[CASE_LINE_SIZE];
    struct judgement judgement;
};

struct kernel_report {
    const struct kernel *kernel;
    const char *device, *twin; /* as the run was asked for them; NULL: cpu, and none */
    char image_sha256[DIGEST_SIZE];
    char twin_unfit[REASON_SIZE]; /* why the twin cannot run the kernel; "": it can */
    unsigned ambiguous; /* unsuffixed mul + add pairs: their bits are not fixed */
    enum verdict verdict;
    char reason[REASON_SIZE];
    size_t cases;                    /* that ran: all but the skipped */
    size_t verdicts[VERDICT_COUNT];  /* cases by verdict */
    size_t order_cases, order_saw;   /* order checks that ran; that could see something */
    char order_line[CASE_LINE_SIZE]; /* the first of them */
    size_t twin_outputs;             /* compared bit for bit with the twin device */
    double max_ulp, max_rel, max_rho;
    struct finding vacuous; /* the first case that could not have failed; line "" if none */
    struct plain plain;   /* what max_ulp and max_rel may be; set by the caller, else none */
    struct finding worst; /* the worst verdict's largest rho; line "" if nothing ran */
    size_t finding_count, finding_room;
    struct finding *findings; /* neither PASS nor SKIP, in plan order; owned */
    struct dev_events events; /* over all cases */
    struct tally tally;       /* likewise */
};

struct gate_report {
    struct device_info device;
    struct device_info twin; /* name "": there was none */
    const char *suite; /* "quick" */
    uint64_t seed;
    double seconds;
    bool complete;   /* false: the run broke down before its end */
    bool real_input; /* cases from corpus/real are among them */
    size_t count;
    struct kernel_report *kernels; /* owned */
};

void kernel_report_init(struct kernel_report *r, const struct kernel *kernel);
void kernel_report_clear(struct kernel_report *r);
/* Take one more outcome into account; call it in plan order.  ERR_NOMEM. */
MUST_CHECK status_t kernel_report_add(struct kernel_report *r, enum check check, const char *line,
                                      const struct outcome *o);
/*
 * After the last outcome: the verdict and its reason.  A case that could not have failed counts for
 * nothing; the kernel is MISTRUSTED if it has no other, if no order check saw anything, or if a twin
 * was asked for and nothing was compared with it.
 */
MUST_CHECK status_t kernel_report_finish(struct kernel_report *r);

/* Cases that neither passed nor were skipped. */
size_t kernel_report_bad(const struct kernel_report *r);

void gate_report_clear(struct gate_report *r); /* safe on a zeroed struct, and twice */
/* Kernels by verdict: totals[VERDICT_FAIL] of them failed. */
void gate_report_totals(size_t totals[static VERDICT_COUNT], const struct gate_report *r);
/* Every kernel passed, and there is at least one. */
bool gate_report_passed(const struct gate_report *r);

/* "0x7fffffff (NaN)"; "1.5" or "[1.5, 1.5000001]". */
void text_of_bits(char *out, size_t size, const struct dtype *dt, uint32_t bits);
/* text_of_bits of what stands at the worst element, in its output's format. */
void text_of_got(char *out, size_t size, const struct kernel *kernel, const struct worst *w);
void text_of_enclosure(char *out, size_t size, struct enclosure e);
#define RERUN_SIZE (CASE_LINE_SIZE + 4096)
/* "assay check KERNEL --fill cancel --shape 4x33 --seed 17", with -d and --manifest where needed */
void text_of_rerun(char *out, size_t size, const struct kernel_report *r, const char *line);
/*
 * "10000 results: f64 9990 (99.9 %), mpfr 10 (0.1 %); 128 judged again by MPFR"; "" for none.
 */
void text_of_tally(char *out, size_t size, const struct tally *t);
/* "f32", or "f16->f32" where output and input differ. */
void text_of_dtype(char *out, size_t size, const struct kernel *kernel);

/* One line per kernel, a block per failure, a last line with the totals. */
void report_text(FILE *to, const struct gate_report *r);
/* One kernel on one case, as `assay check` shows it. */
void report_check(FILE *to, const struct kernel_report *r);

/* results.json, junit.xml and index.html.  ERR_IO, ERR_NOMEM. */
MUST_CHECK status_t report_json(FILE *to, const struct gate_report *r);
MUST_CHECK status_t report_junit(FILE *to, const struct gate_report *r);
MUST_CHECK status_t report_html(FILE *to, const struct gate_report *r);
/* One kernel's object of results.json. */
MUST_CHECK status_t report_check_json(FILE *to, const struct kernel_report *r);

/*
 * The rows of budgets.txt (gate/plain.h) as this run measured them, rounded up to two digits, for a
 * person to weigh and to copy by hand: no tool raises a budget.
 */
void report_proposals(FILE *to, const struct gate_report *r);

/* All three as files in `dir`, which is made if it is not there. */
MUST_CHECK status_t report_write(const char *dir, const struct gate_report *r);

#endif
