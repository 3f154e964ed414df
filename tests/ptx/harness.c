/* harness.c - see harness.h. */
#include "tests/ptx/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/gpu.h"

const char *job_device = "cpu";
struct dev_run run;
uint32_t out[OUT_WORDS];
unsigned failures, checks;
static bool lost;      /* the last job failed and has said why */
static unsigned unsaid; /* checks that failed with it */

void check_eq(unsigned long long got, unsigned long long want, const char *name, const char *file,
              int line) {
    checks++;
    if (got == want)
        return;
    failures++;
    if (lost)
        unsaid++;
    else
        printf("FAIL %s:%d %s: got 0x%llx, want 0x%llx\n", file, line, name, got, want);
}

/* ---- where jobs run ---------------------------------------------------------------------------- */

const uint64_t job_seeds[] = {0, 1, 2, 5, 77};

size_t job_seed_count(void) {
    return strcmp(job_device, "cpu") == 0 ? sizeof job_seeds / sizeof *job_seeds : 1;
}

bool use_device(int argc, char **argv) {
    if (argc != 3 || strcmp(argv[1], "--device") != 0)
        return false;
    if (gpu_is_missing(argv[2]))
        exit(EXIT_SKIPPED);
    job_device = argv[2];
    return true;
}

static struct device *gpu; /* that of all jobs there; NULL: none yet */

status_t job_open(struct device **dev, const char *name, const struct device_options *options) {
    if (strncmp(name, "cpu", 3) == 0)
        return device_open(dev, name, options);
    status_t st = gpu ? OK : device_open(&gpu, name, options);
    *dev = gpu;
    return st;
}

void job_close(struct device *dev) {
    if (dev != gpu)
        device_close(dev);
}

int report(void) {
    device_close(gpu);
    gpu = NULL;
    printf("%u checks, %u failed\n", checks, failures);
    if (unsaid)
        printf("%u of them look at what a job that failed should have written\n", unsaid);
    return failures != 0;
}

bool use_level(int level) {
    static const char *const names[LEVEL_COUNT] = {"v2", "v3", "v4"};
    struct device *dev;
    setenv("ASSAY_ISA", names[level], 1);
    if (device_open(&dev, "cpu", NULL) != OK)
        return false;
    device_close(dev);
    return true;
}

/* ---- jobs -------------------------------------------------------------------------------------- */

static size_t make_text(char *text, size_t room, const struct job *j) {
    return (size_t)snprintf(
        text, room,
        ".version 8.6\n.target %s\n.address_size 64\n%s\n"
        ".visible .entry k(.param .u64 p_out, .param .u64 p_in, .param .u32 p_n)\n{\n"
        ".reg .pred %%p<10>;\n.reg .b16 %%h<10>;\n.reg .b32 %%r<30>;\n.reg .b64 %%d<20>;\n"
        ".reg .f32 %%f<10>;\n%s\n"
        "ld.param.u64 %%d0, [p_out];\nld.param.u64 %%d1, [p_in];\nld.param.u32 %%r0, [p_n];\n"
        "mov.u32 %%r1, %%tid.x;\nmov.u32 %%r2, %%ctaid.x;\nmov.u32 %%r3, %%ntid.x;\n"
        "mad.lo.u32 %%r2, %%r2, %%r3, %%r1;\nmul.wide.u32 %%d2, %%r2, 4;\nadd.u64 %%d2, %%d2, "
        "%%d0;\n"
        "%s\nret;\n}\n",
        j->target ? j->target : "sm_90", j->module ? j->module : "", j->declare ? j->declare : "",
        j->body);
}

status_t job_run(const struct job *j) {
    status_t st = OK;
    struct device *dev = NULL;
    struct dev_image *image = NULL;
    struct dev_buf *b_out = NULL, *b_in = NULL;
    static char text[65536];
    struct device_options options = {
        .shadow = j->shadow, .insn_budget = j->insn_budget, .memory_budget = j->memory_budget};
    size_t out_words = j->out_words ? j->out_words : OUT_WORDS;
    lost = false;
    run = (struct dev_run){0};
    memset(out, 0xff, sizeof out);
    char name[16] = "cpu:";
    if (j->target) /* "sm_100" of "sm_100a" */
        snprintf(name, sizeof name, "cpu:%.*s", (int)strcspn(j->target, "a"), j->target);
    TRY(job_open(&dev, j->target ? name : job_device, &options));
    TRY(device_load(&image, dev, "test", text, make_text(text, sizeof text, j)));
    TRY(device_alloc(&b_out, dev, out_words * 4));
    TRY(device_alloc(&b_in, dev, j->in_words * 4));
    TRY(buffer_write(b_in, j->in, (j->in_written ? j->in_written : j->in_words) * 4));
    uint64_t a_out = buffer_address(b_out), a_in = buffer_address(b_in);
    const void *args[] = {&a_out, &a_in, &j->n};
    struct dev_launch launch = {.image = image,
                                .entry = "k",
                                .args = args,
                                .arg_count = 3,
                                .grid = {j->blocks ? j->blocks : 1, 1, 1},
                                .block = {j->threads ? j->threads : 1, 1, 1},
                                .dynamic_shared = j->dynamic_shared,
                                .cluster = {j->cluster, j->cluster > 0, j->cluster > 0},
                                .schedule_seed = j->seed};
    TRY(device_launch(&run, dev, &launch));
    if (run.completed) /* a GPU's buffers end with the fault */
        TRY(buffer_read(out, b_out, (out_words < OUT_WORDS ? out_words : OUT_WORDS) * 4));
done:
    buffer_free(b_out);
    buffer_free(b_in);
    image_unload(image);
    job_close(dev);
    return st;
}

/* ---- which rows of opcodes.def have run ------------------------------------------------------- */

static bool ran[PTX_OP_COUNT];

static unsigned lines_before(const char *text, const char *end) {
    unsigned n = 1;
    for (; text < end; text++)
        n += *text == '\n';
    return n;
}

/* The job did what was expected: its body's instructions count, what is around them does not. */
static void note_rows(const struct job *j) {
    static char text[65536];
    size_t size = make_text(text, sizeof text, j), len = strlen(j->body);
    const char *body = text + size - len - strlen("\nret;\n}\n");
    unsigned first = lines_before(text, body), last = lines_before(text, body + len);
    struct ptx_module *m;
    if (ptx_module_parse(&m, "test", text, size) != OK)
        return;
    const struct ptx_func *f = &m->funcs[0];
    for (size_t i = 0; i < f->insn_count; i++)
        if (f->insns[i].line >= first && f->insns[i].line <= last)
            ran[f->insns[i].op] = true;
    ptx_module_free(m);
}

void harness_note(const char *text, size_t size) {
    struct ptx_module *m;
    if (ptx_module_parse(&m, "test", text, size) != OK)
        return;
    for (size_t i = 0; i < m->funcs[0].insn_count; i++)
        ran[m->funcs[0].insns[i].op] = true;
    ptx_module_free(m);
}

void check_elsewhere(enum elsewhere_test test) {
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        if (elsewhere[i].test != test)
            continue;
        checks++;
        if (ran[elsewhere[i].op])
            continue;
        printf("FAIL elsewhere.h: no job of this test ran row %d of opcodes.def (%s: %s)\n",
               elsewhere[i].op, ptx_opcodes[elsewhere[i].op].name,
               ptx_opcodes[elsewhere[i].op].what);
        failures++;
    }
}

static void job_failed(void) {
    failures++;
    lost = true;
}

void job_clean(const char *name, const struct job *j) {
    checks++;
    if (job_run(j) != OK) {
        printf("FAIL %s: %s\n", name, status_message());
        job_failed();
    } else if (!run.completed || run.fault_total) {
        printf("FAIL %s: unexpected fault (%s): %s\n", name, dev_fault_name(run.faults[0].kind),
               run.faults[0].text);
        job_failed();
    } else {
        note_rows(j);
    }
}

void job_fault(const char *name, const struct job *j, enum dev_fault_kind kind) {
    checks++;
    if (job_run(j) != OK) {
        printf("FAIL %s: %s\n", name, status_message());
        job_failed();
    } else if (!run.fault_count || run.faults[0].kind != kind) {
        printf("FAIL %s: want a fault '%s', got %s%s\n", name, dev_fault_name(kind),
               run.fault_count ? run.faults[0].text : "none",
               run.fault_count ? dev_fault_name(run.faults[0].kind) : "");
        job_failed();
    } else {
        note_rows(j);
    }
}
