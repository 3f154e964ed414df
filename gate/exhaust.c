/* gate/exhaust.c - see exhaust.h. */
#include "gate/exhaust.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "oracle/dtype.h"

#define BLOCK 256

/* ---- hashes ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint64_t hashes[EXHAUST_CHUNKS];
} known[] = {
#define EXHAUST_HASHES(name, ...) {name, {__VA_ARGS__}},
#include "gate/exhaust_sm90.def"
};

static const uint64_t *hashes_of(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].hashes;
    return NULL;
}

static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t hash_of(const uint32_t *results, uint32_t first, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += mix((uint64_t)(first + (uint32_t)i) << 32 | results[i]);
    return sum;
}

/* ---- errors ---------------------------------------------------------------------------------- */

struct format {
    int prec, emin, emax;
};

static struct format format_of(enum exhaust_operand operand) {
    static const enum dtype_id id[] = {DT_F32, DT_F16, DT_BF16};
    if (operand == OPERAND_F64_HIGH)
        return (struct format){21, -1022, 1023};
    const struct dtype *dt = &dtypes[id[operand]];
    return (struct format){(int)dt->prec, dt->emin, dt->emax};
}

/* 2^floor(log2 |x|) of a normal number. */
static double binade(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    bits &= 0x7ff0000000000000u;
    memcpy(&x, &bits, 8);
    return x;
}

static double measure(enum exhaust_metric metric, double got, double want, double units) {
    double error = fabs(got - want);
    switch (metric) {
    case METRIC_ULP:
        return error / binade(want) * units;
    case METRIC_REL:
        return error / fabs(want);
    default:
        return error;
    }
}

static bool covers(const struct exhaust_promise *p, double x) {
    double magnitude = fabs(x);
    return (magnitude > p->lo && magnitude < p->hi) != p->outside;
}

struct range {
    double tiny, huge; /* the smallest and the largest normal number */
    double units;      /* ulps in a binade: 2^(p - 1) */
};

static void measure_one(struct exhaust_report *r, const struct range *range, uint32_t x,
                        uint32_t got_bits) {
    const struct exhaust_function *f = r->function;
    double tiny = range->tiny;
    double v = exhaust_value(f, x), got = exhaust_value(f, got_bits);
    if (f->ftz && fabs(v) < tiny)
        v = copysign(0, v);
    double want = f->fast(v);
    if ((want != want) != (got != got)) {
        if (!r->wrong_class++)
            r->wrong_class_x = x;
        return;
    }
    double magnitude = fabs(want);
    bool absolute = f->promises[0].metric == METRIC_ABS;
    if (!(magnitude < range->huge) || (magnitude < tiny && !absolute))
        return;
    for (size_t p = 0; p < f->promise_count; p++) {
        struct exhaust_worst *w = &r->worst[p];
        const struct exhaust_promise *promise = &f->promises[p];
        if (!covers(promise, v) || (magnitude < tiny && promise->metric != METRIC_ABS))
            continue;
        double error = measure(promise->metric, got, want, range->units);
        /* equal errors: the first input, whatever the number of threads */
        if (error > w->error || (error == w->error && x < w->x))
            *w = (struct exhaust_worst){.error = error, .x = x, .got = got_bits};
    }
}

static void measure_piece(struct exhaust_report *r, const uint32_t *results, uint32_t first,
                          size_t count) {
    struct format format = format_of(r->function->operand);
    const struct range range = {ldexp(1, format.emin),
                                ldexp(2 - ldexp(1, 1 - format.prec), format.emax),
                                ldexp(1, format.prec - 1)};
    for (size_t i = 0; i < count; i++)
        measure_one(r, &range, first + (uint32_t)i, results[i]);
}

/* The C library chose the input; what the error is there, MPFR says. */
static void judge(struct exhaust_report *r) {
    const struct exhaust_function *f = r->function;
    struct format format = format_of(f->operand);
    mpfr_t x, want, error;
    mpfr_inits2(200, x, want, error, (mpfr_ptr)0);
    for (size_t p = 0; p < f->promise_count; p++) {
        struct exhaust_worst *w = &r->worst[p];
        if (!(w->error > 0) || isinf(w->error))
            continue;
        mpfr_set_d(x, exhaust_value(f, w->x), MPFR_RNDN);
        f->exact(want, x, MPFR_RNDN);
        mpfr_sub_d(error, want, exhaust_value(f, w->got), MPFR_RNDN);
        mpfr_abs(error, error, MPFR_RNDN);
        if (f->promises[p].metric == METRIC_ULP)
            mpfr_mul_2si(error, error, format.prec - (long)mpfr_get_exp(want), MPFR_RNDN);
        else if (f->promises[p].metric == METRIC_REL)
            mpfr_div(error, error, want, MPFR_RNDN);
        w->error = fabs(mpfr_get_d(error, MPFR_RNDU));
    }
    mpfr_clears(x, want, error, (mpfr_ptr)0);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct job {
    size_t report;
    unsigned chunk;
};

struct exhaust {
    const struct exhaust_options *opt;
    struct exhaust_report *reports;
    size_t report_count, job_count;
    struct job *jobs; /* owned */
    atomic_size_t next;
    atomic_bool stop;
    /* Below: under the lock. */
    pthread_mutex_t lock;
    size_t done;
    status_t status;
    char message[1024];
};

/* One device's part of a thread. */
struct side {
    struct device *device;
    struct dev_buf *out;
    struct dev_image *image;
    const struct exhaust_function *loaded;
    uint32_t *results; /* a piece's, owned */
};

struct worker {
    struct exhaust *run;
    pthread_t thread;
    struct side here, there;
};

static status_t side_open(struct side *s, const char *name) {
    const struct device_options opt = {.shadow = false};
    status_t st = device_open(&s->device, name, &opt);
    if (st == OK)
        st = device_alloc(&s->out, s->device, (size_t)EXHAUST_PIECE * 4);
    s->results = malloc((size_t)EXHAUST_PIECE * 4);
    return st != OK || s->results ? st : FAIL(ERR_NOMEM, "no memory for results");
}

static void side_close(struct side *s) {
    image_unload(s->image);
    buffer_free(s->out);
    device_close(s->device);
    free(s->results);
}

static status_t side_load(struct side *s, const struct exhaust_function *f) {
    char text[EXHAUST_PTX_SIZE];
    if (s->loaded == f)
        return OK;
    image_unload(s->image);
    s->image = NULL;
    s->loaded = NULL;
    size_t length = exhaust_ptx(text, sizeof text, f);
    status_t st = device_load(&s->image, s->device, f->name, text, length);
    if (st == OK)
        s->loaded = f;
    return st;
}

static status_t side_run(struct side *s, uint32_t first, size_t count) {
    uint64_t address = buffer_address(s->out);
    const void *args[] = {&address, &first};
    const struct dev_launch launch = {.image = s->image,
                                      .entry = "all",
                                      .grid = {(unsigned)(count / EXHAUST_UNROLL / BLOCK), 1, 1},
                                      .block = {BLOCK, 1, 1},
                                      .args = args,
                                      .arg_count = 2};
    struct dev_run run;
    status_t st = device_launch(&run, s->device, &launch);
    if (st == OK && !run.completed)
        st = FAIL(ERR_DEVICE, "%s", run.faults[0].text);
    return st == OK ? buffer_read(s->results, s->out, count * 4) : st;
}

static void compare(struct exhaust_report *r, const struct worker *w, uint32_t first,
                    size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (w->here.results[i] == w->there.results[i])
            continue;
        r->differ++;
        if (r->sample_count < EXHAUST_SAMPLES)
            r->samples[r->sample_count++] = (struct exhaust_sample){
                first + (uint32_t)i, w->here.results[i], w->there.results[i]};
    }
}

/* Add what was found in one chunk to the function's report; the order of calls does not matter. */
static void merge(struct exhaust_report *to, const struct exhaust_report *from, unsigned chunk,
                  uint64_t hash) {
    to->inputs += from->inputs;
    to->compared += from->compared;
    to->differ += from->differ;
    for (size_t i = 0; i < from->sample_count && to->sample_count < EXHAUST_SAMPLES; i++)
        to->samples[to->sample_count++] = from->samples[i];
    if (from->wrong_class && (!to->wrong_class || from->wrong_class_x < to->wrong_class_x))
        to->wrong_class_x = from->wrong_class_x;
    to->wrong_class += from->wrong_class;
    for (size_t p = 0; p < EXHAUST_PROMISES; p++) {
        struct exhaust_worst a = to->worst[p], b = from->worst[p];
        if (b.error > a.error || (b.error == a.error && b.x < a.x))
            to->worst[p] = b;
    }
    to->chunks++;
    to->ran[chunk] = true;
    to->hashes[chunk] = hash;
    to->hashed += hashes_of(to->function->name) != NULL;
    to->unlike += exhaust_chunk_unlike(to, chunk);
}

static void report_init(struct exhaust_report *r, const struct exhaust_function *f) {
    *r = (struct exhaust_report){.function = f};
    for (size_t p = 0; p < EXHAUST_PROMISES; p++)
        r->worst[p].error = -1;
}

static status_t run_job(struct worker *w, const struct job *job) {
    struct exhaust *run = w->run;
    const struct exhaust_function *f = run->reports[job->report].function;
    struct exhaust_report found;
    uint64_t hash = 0, inputs = exhaust_input_count(f);
    uint64_t chunk =
        inputs < (uint64_t)1 << EXHAUST_CHUNK_BITS ? inputs : (uint64_t)1 << EXHAUST_CHUNK_BITS;
    size_t piece = exhaust_piece(f);
    status_t st = OK;
    report_init(&found, f);
    TRY(side_load(&w->here, f));
    if (w->there.device)
        TRY(side_load(&w->there, f));
    for (uint64_t at = 0; at < chunk && !atomic_load(&run->stop); at += piece) {
        uint32_t first = (uint32_t)(job->chunk * chunk + at);
        TRY(side_run(&w->here, first, piece));
        hash += hash_of(w->here.results, first, piece);
        found.inputs += piece;
        if (run->opt->error)
            measure_piece(&found, w->here.results, first, piece);
        if (w->there.device) {
            TRY(side_run(&w->there, first, piece));
            compare(&found, w, first, piece);
            found.compared += piece;
        }
    }
    pthread_mutex_lock(&run->lock);
    merge(&run->reports[job->report], &found, job->chunk, hash);
    run->done++;
    if (run->opt->progress)
        run->opt->progress(run->opt->context, run->done, run->job_count);
    pthread_mutex_unlock(&run->lock);
done:
    return st;
}

static void give_up(struct exhaust *run, status_t st) {
    atomic_store(&run->stop, true);
    pthread_mutex_lock(&run->lock);
    if (run->status == OK) {
        run->status = st;
        snprintf(run->message, sizeof run->message, "%s", status_message());
    }
    pthread_mutex_unlock(&run->lock);
}

static void *work(void *argument) {
    struct worker *w = argument;
    struct exhaust *run = w->run;
    status_t st = side_open(&w->here, "cpu");
    if (st == OK && run->opt->twin)
        st = side_open(&w->there, run->opt->twin);
    while (st == OK && !atomic_load(&run->stop)) {
        size_t job = atomic_fetch_add(&run->next, 1);
        if (job >= run->job_count)
            break;
        st = run_job(w, &run->jobs[job]);
    }
    if (st != OK)
        give_up(run, st);
    side_close(&w->here);
    side_close(&w->there);
    mpfr_free_cache();
    return NULL;
}

static status_t run_workers(struct exhaust *run) {
    unsigned count = run->opt->threads ? run->opt->threads : 1, started = 1;
    struct worker *workers = calloc(count, sizeof *workers);
    if (!workers)
        return FAIL(ERR_NOMEM, "no memory for %u threads", count);
    for (unsigned i = 0; i < count; i++)
        workers[i].run = run;
    for (; started < count; started++)
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0) {
            give_up(run, FAIL(ERR_NOMEM, "cannot start thread %u of %u", started + 1, count));
            break;
        }
    work(&workers[0]);
    for (unsigned i = 1; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    free(workers);
    return run->status == OK ? OK : FAIL(run->status, "%s", run->message);
}

/* ---- the run --------------------------------------------------------------------------------- */

static unsigned chunks_of(const struct exhaust_function *f) {
    return exhaust_input_count(f) >> 32 ? EXHAUST_CHUNKS : 1;
}

static status_t plan(struct exhaust *run) {
    const struct exhaust_options *opt = run->opt;
    run->reports = calloc(exhaust_function_count, sizeof *run->reports);
    run->jobs = calloc(exhaust_function_count * EXHAUST_CHUNKS, sizeof *run->jobs);
    if (!run->reports || !run->jobs)
        return FAIL(ERR_NOMEM, "no memory for a plan");
    size_t number = 0;
    for (size_t i = 0; i < exhaust_function_count; i++) {
        const struct exhaust_function *f = &exhaust_functions[i];
        if (!exhaust_selects(opt->target, f))
            continue;
        report_init(&run->reports[run->report_count], f);
        for (unsigned c = 0; c < chunks_of(f); c++, number++)
            if (opt->shards < 2 || number % opt->shards == opt->shard)
                run->jobs[run->job_count++] = (struct job){run->report_count, c};
        run->report_count++;
    }
    return run->report_count
               ? OK
               : FAIL(ERR_USAGE,
                      "'%s': expected mufu (all), an operation such as ex2, or a whole "
                      "instruction such as ex2.approx.ftz.f32",
                      opt->target);
}

status_t exhaust_run(struct exhaust_report **out, size_t *count,
                     const struct exhaust_options *opt) {
    struct exhaust run = {.opt = opt, .status = OK};
    status_t st = OK;
    pthread_mutex_init(&run.lock, NULL);
    TRY(plan(&run));
    TRY(run_workers(&run));
    for (size_t i = 0; i < run.report_count; i++)
        judge(&run.reports[i]);
    mpfr_free_cache();
    *out = run.reports;
    *count = run.report_count;
    run.reports = NULL;
done:
    free(run.reports);
    free(run.jobs);
    pthread_mutex_destroy(&run.lock);
    return st;
}

bool exhaust_chunk_unlike(const struct exhaust_report *r, unsigned chunk) {
    const uint64_t *want = hashes_of(r->function->name);
    return want && r->ran[chunk] && want[chunk] != r->hashes[chunk];
}

bool exhaust_promise_kept(const struct exhaust_report *r, size_t promise) {
    const struct exhaust_promise *p = &r->function->promises[promise];
    const struct exhaust_worst *w = &r->worst[promise];
    return p->bound == 0 || !(w->error > p->bound) || (p->known && w->x == p->known);
}

bool exhaust_passed(const struct exhaust_report *r) {
    for (size_t p = 0; p < r->function->promise_count; p++)
        if (!exhaust_promise_kept(r, p))
            return false;
    bool asked = r->hashed == r->chunks || r->compared == r->inputs;
    return r->chunks && asked && r->differ == 0 && r->unlike == 0 && r->wrong_class == 0;
}
