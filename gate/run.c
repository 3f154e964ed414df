/*
 * gate/run.c - the run.
 *
 * Kernels of one op, with the same input formats, options, empty-row rule and plan of cases, form a
 * group: they share the truth.  One job is one case of one group; its truth is computed once, every kernel of the group
 * runs on it, and it is dropped.  So memory stays small, threads never wait for each other's truth,
 * and outcomes land in a table by (kernel, case), whatever the order they come in.
 */
#include "gate/run.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate/ensemble.h"
#include "gate/journal.h"
#include "gate/order.h"
#include "gate/twin.h"

/* Warp instructions of one launch: far above what the suites' largest cases take, and half a second
 * to a few for a kernel that never ends. */
#define LAUNCH_INSNS ((uint64_t)1 << 26)

struct group {
    const struct kernel *kernel; /* its first: the others take the same cases */
    struct plan plan;
    size_t first_job; /* number of its first case among all jobs */
};

/* A kernel and its outcomes, by case of its group. */
struct subject {
    const struct kernel *kernel;
    size_t group;
    char image_sha256[DIGEST_SIZE];
    char key[DIGEST_SIZE];
    unsigned ambiguous;
    char unfit[REASON_SIZE], twin_unfit[REASON_SIZE]; /* why that device cannot run it; "" if it can */
    struct plain plain;
    struct outcome *outcomes; /* owned */
    bool *have;               /* owned */
};

struct worker;

struct run {
    const struct gate_options *opt;
    size_t subject_count, group_count, job_count;
    struct subject *subjects;
    struct group *groups;
    size_t *load_order;     /* subjects */
    struct worker *workers; /* threads.count */
    struct threads threads; /* jobs are shared out to them, and at the end a job's rows */
    atomic_bool stop;
    status_t status; /* and message: once all threads have ended */
    char message[1024];
    /* Below: under the lock. */
    pthread_mutex_t lock;
    struct journal *journal;
    size_t done, total; /* outcomes */
};

/* A thread's own device and kernels. */
struct worker {
    struct run *run;
    struct device *device, *twin; /* twin: NULL without one */
    struct loaded_kernel **loaded, **loaded_twin; /* by subject; NULL: not yet */
};

status_t gate_device(struct device **out, const char *name, size_t elements) {
    const struct device_options opt = {.shadow = true, .insn_budget = LAUNCH_INSNS + 256 * elements};
    return device_open(out, name, &opt);
}

/* MPFR judges one row in 64 again, and every case's worst row: docs/oracle.md. */
static struct audit audit_of(uint64_t seed) {
    return (struct audit){.share = 1.0 / 64, .seed = seed, .worst = true};
}

status_t gate_load(struct loaded_kernel **out, char reason[static REASON_SIZE], struct device *dev,
                   const struct kernel *kernel) {
    status_t st = kernel_load(out, dev, kernel);
    reason[0] = '\0';
    if (st != ERR_TARGET)
        return st;
    snprintf(reason, REASON_SIZE, "%s", status_message());
    return OK;
}

/* ---- one check ------------------------------------------------------------------------------- */

static void undecided(struct outcome *o) {
    o->judgement = judgement_of(VERDICT_UNSURE, "%s", status_message());
}

static status_t check_with(struct outcome *out, struct loaded_kernel *lk,
                           struct loaded_kernel *twin, enum check check, const struct test_case *c,
                           struct truth *truth) {
    struct kernel_result result;
    status_t st = OK;
    *out = (struct outcome){0};
    switch (check) {
    case CHECK_BOUND:
        st = judge_kernel(&out->judgement, &result, lk, c, truth);
        break;
    case CHECK_ORDER:
        st = order_check(&out->judgement, &out->saw_order, &result, lk, c, truth);
        break;
    case CHECK_ENSEMBLE:
        st = ensemble_kernel(&out->judgement, &result, lk, c, truth);
        break;
    case CHECK_TWIN:
        st = twin_check(&out->judgement, &out->compared, &result, lk, twin, c);
        break;
    }
    if (st == ERR_UNDECIDED) {
        undecided(out);
        return OK;
    }
    for (size_t i = 0; st == OK && i < result.run_count && i < KERNEL_MAX_LAUNCHES; i++) {
        const struct dev_events *e = &result.runs[i].events;
        out->events.nan_born += e->nan_born;
        out->events.inf_born += e->inf_born;
        out->events.subnormal_flushed += e->subnormal_flushed;
    }
    return st;
}

status_t gate_check(struct outcome *out, struct loaded_kernel *lk, struct loaded_kernel *twin,
                    enum check check, const struct test_case *c, const struct work_options *work) {
    const struct kernel *kernel = loaded_kernel_of(lk);
    struct truth truth = {0};
    status_t st = truth_init(&truth, kernel->op, c, kernel->empty_row);
    truth.audit = audit_of(c->seed);
    truth.work = *work;
    if (st == ERR_UNDECIDED) {
        *out = (struct outcome){0};
        undecided(out);
        st = OK;
    } else if (st == OK) {
        st = check_with(out, lk, twin, check, c, &truth);
    }
    truth_clear(&truth);
    return st;
}

/* ---- threads --------------------------------------------------------------------------------- */

static status_t load(struct worker *w, size_t subject) {
    struct subject *s = &w->run->subjects[subject];
    char reason[REASON_SIZE]; /* the same as at the first load */
    status_t st = OK;
    if (!w->loaded[subject])
        st = gate_load(&w->loaded[subject], reason, w->device, s->kernel);
    if (st == OK && w->twin && !s->twin_unfit[0] && !w->loaded_twin[subject])
        st = gate_load(&w->loaded_twin[subject], reason, w->twin, s->kernel);
    return st;
}

/* The first one of a kernel, before any case runs: can its devices run it at all? */
static status_t first_load(struct worker *w, size_t subject) {
    struct subject *s = &w->run->subjects[subject];
    status_t st = gate_load(&w->loaded[subject], s->unfit, w->device, s->kernel);
    if (st == OK && w->twin)
        st = gate_load(&w->loaded_twin[subject], s->twin_unfit, w->twin, s->kernel);
    if (st == OK && w->loaded[subject])
        s->ambiguous = kernel_ambiguous(w->loaded[subject]);
    return st;
}

/* Store one outcome; add it to the journal unless it came from there. */
static status_t deliver(struct run *run, struct subject *s, size_t item, const char *name,
                        const struct outcome *o, bool recorded) {
    status_t st = OK;
    pthread_mutex_lock(&run->lock);
    s->outcomes[item] = *o;
    s->have[item] = true;
    run->done++;
    if (run->journal && !recorded)
        st = journal_add(run->journal, s->key, name, o);
    if (run->opt->progress)
        run->opt->progress(run->opt->context, run->done, run->total);
    pthread_mutex_unlock(&run->lock);
    return st;
}

/* Outcomes that need no run: already in the journal, no device for it, or a shape that the kernel
 * refuses. */
static status_t deliver_known(struct run *run, struct subject *s, size_t item, const char *name,
                              enum check check, struct case_dims dims) {
    struct outcome o = {0};
    bool recorded = false;
    if (run->journal) {
        pthread_mutex_lock(&run->lock);
        recorded = journal_find(&o, run->journal, s->key, name);
        pthread_mutex_unlock(&run->lock);
    }
    if (recorded)
        return deliver(run, s, item, name, &o, true);
    const char *refusal = s->unfit[0]                                ? s->unfit
                          : check == CHECK_TWIN && s->twin_unfit[0] ? s->twin_unfit
                                                                    : kernel_refuses(s->kernel, dims);
    if (!refusal)
        return OK;
    o.judgement = judgement_of(VERDICT_SKIP, "%s", refusal);
    return deliver(run, s, item, name, &o, false);
}

static status_t run_subjects(struct worker *w, size_t group, size_t item, const char *name,
                             const struct test_case *c) {
    struct run *run = w->run;
    const struct group *g = &run->groups[group];
    struct truth truth = {0};
    bool tried = false;
    status_t st = OK, truth_status = OK;
    for (size_t i = 0; i < run->subject_count && !atomic_load(&run->stop); i++) {
        struct subject *s = &run->subjects[i];
        if (s->group != group || s->have[item])
            continue;
        struct outcome o = {0};
        if (!tried) { /* the truth is asked for only once some kernel needs it */
            tried = true;
            truth_status = truth_init(&truth, g->kernel->op, c, g->kernel->empty_row);
            truth.audit = audit_of(run->opt->seed ^ c->seed);
            truth.work.threads = &run->threads;
        }
        if (truth_status == ERR_UNDECIDED) {
            undecided(&o);
        } else {
            TRY(truth_status);
            TRY(load(w, i));
            TRY(check_with(&o, w->loaded[i], w->loaded_twin[i], g->plan.items[item].check, c,
                           &truth));
        }
        TRY(deliver(run, s, item, name, &o, false));
    }
done:
    truth_clear(&truth);
    return st;
}

static status_t run_job(struct worker *w, size_t job) {
    struct run *run = w->run;
    size_t group = 0;
    while (group + 1 < run->group_count && run->groups[group + 1].first_job <= job)
        group++;
    const struct group *g = &run->groups[group];
    size_t item = job - g->first_job;
    char line[CASE_LINE_SIZE], name[JOURNAL_NAME_SIZE] = "";
    struct test_case c = {0};
    status_t st = OK;
    TRY(plan_case(&c, &g->plan.items[item], g->kernel));
    check_line(line, sizeof line, g->plan.items[item].check, &c);
    if (run->journal)
        journal_name(name, &c, line);
    for (size_t i = 0; i < run->subject_count; i++)
        if (run->subjects[i].group == group)
            TRY(deliver_known(run, &run->subjects[i], item, name, g->plan.items[item].check,
                              c.dims));
    TRY(run_subjects(w, group, item, name, &c));
done:
    case_clear(&c);
    return st;
}

static status_t open_devices(struct worker *w) {
    status_t st = gate_device(&w->device, w->run->opt->device, 0);
    if (st == OK && w->run->opt->twin)
        st = gate_device(&w->twin, w->run->opt->twin, 0);
    return st;
}

static status_t load_job(void *context, unsigned worker, size_t job) {
    struct run *run = context;
    struct worker *w = &run->workers[worker];
    status_t st = w->device ? OK : open_devices(w);
    return st == OK ? first_load(w, run->load_order[job]) : st;
}

static status_t do_job(void *context, unsigned worker, size_t job) {
    struct run *run = context;
    struct worker *w = &run->workers[worker];
    status_t st = OK;
    if (!w->device)
        TRY(open_devices(w));
    TRY(run_job(w, job));
done:
    if (st != OK)
        atomic_store(&run->stop, true); /* other jobs need not come to their end */
    return st;
}

static status_t worker_init(struct worker *w, struct run *run) {
    *w = (struct worker){.run = run};
    w->loaded = calloc(run->subject_count, sizeof(struct loaded_kernel *));
    w->loaded_twin = calloc(run->subject_count, sizeof(struct loaded_kernel *));
    return w->loaded && w->loaded_twin ? OK : FAIL(ERR_NOMEM, "no memory for a thread's kernels");
}

static void unload_all(struct loaded_kernel **loaded, size_t count) {
    for (size_t i = 0; loaded && i < count; i++)
        if (loaded[i])
            kernel_unload(loaded[i]);
    free(loaded);
}

static void worker_clear(struct worker *w) {
    unload_all(w->loaded, w->run->subject_count);
    unload_all(w->loaded_twin, w->run->subject_count);
    device_close(w->device);
    device_close(w->twin);
}

/* ---- before and after ------------------------------------------------------------------------ */

static status_t join_group(struct run *run, struct subject *s) {
    const struct kernel *k = s->kernel;
    struct plan plan;
    status_t st = plan_init(&plan, k, run->opt->suite, run->opt->seed, run->opt->real_dir);
    if (st == OK && run->opt->twin)
        st = plan_add_twins(&plan);
    for (s->group = 0; st == OK && s->group < run->group_count; s->group++) {
        const struct group *g = &run->groups[s->group];
        if (case_same(g->kernel, k) && plan_equal(&g->plan, &plan))
            break;
    }
    if (st != OK || s->group < run->group_count) {
        plan_clear(&plan);
        return st;
    }
    run->groups[run->group_count++] =
        (struct group){.kernel = k, .plan = plan};
    return OK;
}

static status_t subject_init(struct run *run, struct subject *s, const struct kernel *kernel,
                             const struct worker *first) {
    status_t st = OK;
    s->kernel = kernel;
    TRY(file_sha256(s->image_sha256, kernel->image));
    TRY(plain_find(&s->plain, kernel));
    if (run->opt->dir)
        TRY(journal_key(s->key, kernel, s->image_sha256, device_info(first->device),
                        first->twin ? device_info(first->twin) : NULL));
    TRY(join_group(run, s));
    size_t count = run->groups[s->group].plan.count;
    s->outcomes = calloc(count, sizeof *s->outcomes);
    s->have = calloc(count, sizeof *s->have);
    if (!s->outcomes || !s->have)
        TRY(FAIL(ERR_NOMEM, "no memory for %zu outcomes", count));
    run->total += count;
done:
    return st;
}

/*
 * One kernel of each image, then the others: a driver compiles an image where it is first loaded, which
 * takes seconds, and threads that load different ones share that out.
 */
static void order_loads(struct run *run) {
    size_t n = 0;
    for (int later = 0; later < 2; later++)
        for (size_t i = 0; i < run->subject_count; i++) {
            size_t k = 0;
            while (strcmp(run->subjects[k].kernel->image, run->subjects[i].kernel->image) != 0)
                k++;
            if ((k < i) == later)
                run->load_order[n++] = i;
        }
}

static status_t run_init(struct run *run, struct worker *first, const struct kernel *const *kernels,
                         size_t count) {
    status_t st = OK;
    run->subjects = calloc(count, sizeof *run->subjects);
    run->groups = calloc(count, sizeof *run->groups);
    run->load_order = calloc(count, sizeof *run->load_order);
    if (!run->subjects || !run->groups || !run->load_order)
        TRY(FAIL(ERR_NOMEM, "no memory for %zu kernels", count));
    run->subject_count = count;
    TRY(worker_init(first, run));
    TRY(open_devices(first));
    for (size_t i = 0; i < count; i++)
        TRY(subject_init(run, &run->subjects[i], kernels[i], first));
    order_loads(run);
    for (size_t i = 0; i < run->group_count; i++) {
        run->groups[i].first_job = run->job_count;
        run->job_count += run->groups[i].plan.count;
    }
    if (run->opt->dir)
        TRY(journal_open(&run->journal, run->opt->dir));
done:
    return st;
}

static void run_clear(struct run *run) {
    for (size_t i = 0; i < run->subject_count; i++) {
        free(run->subjects[i].outcomes);
        free(run->subjects[i].have);
    }
    for (size_t i = 0; i < run->group_count; i++)
        plan_clear(&run->groups[i].plan);
    free(run->subjects);
    free(run->groups);
    free(run->load_order);
    journal_close(run->journal);
    pthread_mutex_destroy(&run->lock);
}

static status_t report_subject(struct kernel_report *r, const struct run *run,
                               const struct subject *s) {
    const struct group *g = &run->groups[s->group];
    char line[CASE_LINE_SIZE];
    size_t missing = 0, first_missing = 0;
    status_t st = OK;
    kernel_report_init(r, s->kernel);
    r->device = run->opt->device;
    r->twin = run->opt->twin;
    snprintf(r->image_sha256, sizeof r->image_sha256, "%s", s->image_sha256);
    r->plain = s->plain;
    memcpy(r->twin_unfit, s->twin_unfit, sizeof r->twin_unfit);
    r->ambiguous = s->ambiguous;
    for (size_t i = 0; i < g->plan.count; i++) {
        if (!s->have[i]) {
            first_missing = missing++ ? first_missing : i;
            continue;
        }
        plan_line(line, sizeof line, &g->plan.items[i]);
        TRY(kernel_report_add(r, g->plan.items[i].check, line, &s->outcomes[i]));
    }
    if (missing) {
        const struct outcome o = {
            .judgement =
                judgement_of(VERDICT_UNSURE, "%zu cases did not run: %s", missing, run->message)};
        plan_line(line, sizeof line, &g->plan.items[first_missing]);
        TRY(kernel_report_add(r, CHECK_BOUND, line, &o));
    }
    TRY(kernel_report_finish(r));
done:
    return st;
}

static status_t report_run(struct gate_report *out, const struct run *run,
                           const struct device_info *device, const struct device_info *twin,
                           double seconds) {
    out->device = *device;
    if (twin)
        out->twin = *twin;
    out->suite = suite_name(run->opt->suite);
    out->seed = run->opt->seed;
    out->seconds = seconds;
    out->complete = run->status == OK;
    for (size_t i = 0; i < run->group_count; i++)
        out->real_input |= run->groups[i].plan.path_count > 0;
    out->kernels = calloc(run->subject_count, sizeof *out->kernels);
    if (!out->kernels)
        return FAIL(ERR_NOMEM, "no memory for a report");
    for (size_t i = 0; i < run->subject_count; i++) {
        out->count++;
        status_t st = report_subject(&out->kernels[i], run, &run->subjects[i]);
        if (st != OK)
            return st;
    }
    return OK;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

status_t gate_run(struct gate_report *out, const struct kernel *const *kernels, size_t count,
                  const struct gate_options *opt) {
    *out = (struct gate_report){0};
    double start = now();
    const unsigned threads = opt->threads ? opt->threads : 1;
    struct worker *workers = calloc(threads, sizeof *workers);
    struct run run = {.opt = opt, .workers = workers, .lock = PTHREAD_MUTEX_INITIALIZER};
    status_t st = OK, run_status = OK;
    if (!workers)
        TRY(FAIL(ERR_NOMEM, "no memory for %u threads", threads));
    threads_init(&run.threads, threads, oracle_thread_done);
    TRY(run_init(&run, &workers[0], kernels, count));
    for (unsigned i = 1; i < threads; i++)
        TRY(worker_init(&workers[i], &run));
    TRY(parallel_for(&run.threads, count, load_job, &run));
    run_status = run.status = parallel_for(&run.threads, run.job_count, do_job, &run);
    if (run_status != OK)
        snprintf(run.message, sizeof run.message, "%s", status_message());
    TRY(report_run(out, &run, device_info(workers[0].device),
                   workers[0].twin ? device_info(workers[0].twin) : NULL, now() - start));
    if (run_status != OK)
        TRY(FAIL(run_status, "%s", run.message));
done:
    for (unsigned i = 0; workers && i < threads; i++)
        if (workers[i].run)
            worker_clear(&workers[i]);
    free(workers);
    run_clear(&run);
    oracle_thread_done();
    return st;
}
