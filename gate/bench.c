/* gate/bench.c - kernels timed, or counted.  The method and why: docs/bench.md. */
#include "gate/bench.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/size.h"
#include "gate/bench_suite.h"
#include "gate/fill.h"
#include "gate/run.h"
#include "kernels/bind.h"

#define WARM_UP 3
#define SAMPLES_MAX 51 /* odd, and so are all between: median and quartiles are samples */
#define SAMPLES_MIN 5
#define SAMPLE_SECONDS 0.3
#define CACHE_MULTIPLE 4               /* what a run of samples touches, in last-level caches */
#define COPY_BYTES ((size_t)512 << 20) /* read and written */
#define RANDOM_BLOCK ((size_t)1 << 20) /* elements, repeated to fill a buffer */
#define COPY_THREADS 256
#define ARENA_COPY 0 /* the first input's: the copy kernel works inside it */

/* One buffer number of all kernels: room for the largest need. */
struct arena {
    size_t bytes;
    struct dev_buf *buffer;
    const struct dtype *filled; /* what random data it holds; NULL: something else */
};

struct bench {
    const struct bench_options *opt;
    struct bench_report *report;
    struct device *dev;
    struct dev_image *copy;
    struct arena arenas[KERNEL_MAX_BUFFERS];
};

/* ---- plan ------------------------------------------------------------------------------------ */

/* Useful bytes, and results, of a kernel at this shape. */
static status_t sizes_at(size_t *bytes, size_t *results, const struct kernel *k,
                         struct case_dims dims) {
    struct kernel_buffer buffers[KERNEL_MAX_BUFFERS];
    status_t st = kernel_buffers(buffers, k, dims);
    *bytes = *results = 0;
    for (size_t i = 0; st == OK && i < BUFFER_SCRATCH; i++) {
        *bytes += buffers[i].bytes; /* no overflow: each is below SIZE_MAX / 64 */
        if (i >= BUFFER_OUTPUTS && buffers[i].name)
            *results += buffers[i].bytes / buffers[i].type->size;
    }
    return st;
}

/* Buffer sets that the samples go round, so that none finds its data in a cache. */
static size_t set_count(const struct bench *b, size_t useful) {
    size_t wanted = CACHE_MULTIPLE * device_info(b->dev)->cache_bytes / (useful + 1) + 1;
    return wanted < WARM_UP + SAMPLES_MAX ? wanted : WARM_UP + SAMPLES_MAX;
}

/* Bytes from one set's buffer to the next one's. */
static size_t stride_of(const struct kernel_buffer *buffer) {
    return size_align(buffer->bytes, DEVICE_GUARD_BYTES);
}

static status_t add_row(struct bench *b, const struct kernel *k, struct case_dims dims,
                        const char *refusal) {
    status_t st = OK;
    struct bench_report *r = b->report;
    struct kernel_buffer buffers[KERNEL_MAX_BUFFERS];
    struct bench_row *rows = realloc(r->rows, (r->count + 1) * sizeof *rows);
    if (!rows)
        return FAIL(ERR_NOMEM, "no memory for a report");
    r->rows = rows;
    struct bench_row *row = &rows[r->count++];
    *row = (struct bench_row){.kernel = k, .dims = dims, .variant = ""};
    if (refusal) {
        snprintf(row->reason, sizeof row->reason, "%s", refusal);
        return OK;
    }
    struct op_options options;
    TRY(kernel_options(&options, k, dims));
    row->flops = bench_flops(k->op, &dims, &options);
    row->variant = bench_variant(k, &options);
    TRY(sizes_at(&row->bytes, &row->results, k, dims));
    TRY(kernel_buffers(buffers, k, dims));
    for (size_t i = 0; i < KERNEL_MAX_BUFFERS; i++) {
        size_t need;
        if (!size_mul(&need, stride_of(&buffers[i]), set_count(b, row->bytes)))
            return FAIL(ERR_NOMEM, "%s: its buffers are larger than any memory", k->name);
        if (need > b->arenas[i].bytes)
            b->arenas[i].bytes = need;
    }
done:
    return st;
}

/* Rows of which each takes what the second one adds: not the weights, which all share. */
static status_t fit_rows(struct case_dims *dims, const struct bench *b, const struct kernel *k) {
    status_t st = OK;
    size_t bytes, more_bytes, results;
    if (dims->rows == 0) /* the op has none */
        return OK;
    TRY(sizes_at(&bytes, &results, k, *dims));
    dims->rows = 2;
    TRY(sizes_at(&more_bytes, &results, k, *dims));
    dims->rows = bench_suite_rows(more_bytes - bytes, device_info(b->dev)->timed);
done:
    return st;
}

/* The op's own list, fitted to this kernel's formats; what the kernel refuses is no row. */
static status_t plan_suite(struct bench *b, const struct kernel *k, bool recommended) {
    status_t st = OK;
    const char *refusal = "its op has no list of shapes: name one with --shape";
    size_t first = b->report->count;
    struct case_dims dims = {0};
    for (size_t i = 0; bench_suite_shape(&dims, k->op, i, device_info(b->dev)->timed); i++) {
        TRY(fit_rows(&dims, b, k));
        refusal = recommended && !kernel_recommended(k, dims)
                      ? "recommended for no shape of its op's list: name one with --shape"
                      : kernel_refuses(k, dims);
        if (!refusal)
            TRY(add_row(b, k, dims, NULL));
    }
    if (b->report->count == first)
        TRY(add_row(b, k, dims, refusal));
done:
    return st;
}

static status_t plan(struct bench *b, const struct bench_job *jobs, size_t count) {
    status_t st = OK;
    for (size_t i = 0; i < count; i++) {
        const struct bench_job *job = &jobs[i];
        if (job->suite)
            TRY(plan_suite(b, job->kernel, job->recommended));
        else
            TRY(add_row(b, job->kernel, job->dims, kernel_refuses(job->kernel, job->dims)));
    }
done:
    return st;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Standard normal (Box and Muller); a run of zeros would be faster than data are (docs/bench.md). */
static double normal(struct rng *rng) {
    double radius = sqrt(-2 * log(1 - rng_unit(rng)));
    return radius * cos(6.283185307179586 * rng_unit(rng));
}

/* Into all of `bytes`: a block of random elements, over and over. */
static void random_data(uint8_t *data, const struct dtype *dt, size_t bytes, uint64_t seed) {
    struct rng rng = rng_from_seed(seed);
    const size_t size = dtype_size(dt), most = RANDOM_BLOCK * size;
    const size_t block = bytes < most ? bytes : most;
    for (size_t at = 0; at + size <= block; at += size) {
        uint32_t bits = dtype_from_double(dt, normal(&rng), ROUND_NEAREST);
        memcpy(data + at, &bits, size); /* little-endian */
    }
    for (size_t at = block; at < bytes; at += block)
        memcpy(data + at, data, bytes - at < block ? bytes - at : block);
}

static status_t fill_random(struct bench *b, size_t i, const struct dtype *dt) {
    struct arena *arena = &b->arenas[i];
    if (arena->filled == dt)
        return OK;
    uint8_t *data = malloc(arena->bytes + 1);
    if (!data)
        return FAIL(ERR_NOMEM, "no memory for %zu bytes of input", arena->bytes);
    random_data(data, dt, arena->bytes, b->opt->seed + i);
    status_t st = buffer_write(arena->buffer, data, arena->bytes);
    free(data);
    arena->filled = dt;
    return st;
}

/* Inputs that are no numbers to compute with, such as positions, are the gate's everyday ones. */
static void everyday_data(uint8_t *data, const struct kernel *k, struct case_dims dims, size_t i,
                          const struct kernel_buffer *buffer) {
    struct op_case c = {.dims = dims};
    c.in[i] = (struct tensor){
        .type = buffer->type, .count = buffer->bytes / buffer->type->size, .data = data};
    fill_others(k->op, &c, 0);
}

static status_t fill_everyday(struct bench *b, const struct bench_row *row, size_t i,
                              const struct kernel_buffer *buffer, size_t sets) {
    struct arena *arena = &b->arenas[i];
    const size_t stride = stride_of(buffer);
    uint8_t *data = calloc(sets, stride + 1);
    if (!data)
        return FAIL(ERR_NOMEM, "no memory for %zu bytes of input", sets * stride);
    everyday_data(data, row->kernel, row->dims, i, buffer);
    for (size_t s = 1; s < sets; s++)
        memcpy(data + s * stride, data, buffer->bytes);
    status_t st = buffer_write(arena->buffer, data, sets * stride);
    free(data);
    arena->filled = NULL;
    return st;
}

static status_t fill_inputs(struct bench *b, const struct bench_row *row,
                            const struct kernel_buffer *buffers, size_t sets) {
    status_t st = OK;
    for (size_t i = 0; i < BUFFER_OUTPUTS; i++) {
        if (!buffers[i].name)
            continue;
        if (buffers[i].type->kind == TENSOR_REAL)
            TRY(fill_random(b, i, buffers[i].type->dtype));
        else
            TRY(fill_everyday(b, row, i, &buffers[i], sets));
    }
done:
    return st;
}

/* ---- time ------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * Samples of a sequence of `group` launches: run k takes launches[k % sets * group ..].  Fewer than
 * SAMPLES_MAX if they would take longer than SAMPLE_SECONDS.  seconds[] comes back sorted.
 */
static status_t take_samples(double seconds[SAMPLES_MAX], size_t *count, struct bench *b,
                             const struct dev_launch *launches, size_t group, size_t sets) {
    status_t st = OK;
    double warm[WARM_UP];
    struct dev_launch *queue = calloc((WARM_UP + SAMPLES_MAX) * group, sizeof *queue);
    if (!queue)
        return FAIL(ERR_NOMEM, "no memory for a queue of launches");
    for (size_t k = 0; k < WARM_UP + SAMPLES_MAX; k++)
        memcpy(&queue[k * group], &launches[k % sets * group], group * sizeof *queue);
    TRY(device_time(warm, b->dev, queue, WARM_UP * group, group));
    double fit = SAMPLE_SECONDS / fmax(warm[WARM_UP - 1], 1e-9);
    *count = fit >= SAMPLES_MAX ? SAMPLES_MAX : fit <= SAMPLES_MIN ? SAMPLES_MIN : (size_t)fit | 1;
    TRY(device_time(seconds, b->dev, queue + WARM_UP * group, *count * group, group));
    qsort(seconds, *count, sizeof *seconds, by_value);
done:
    free(queue);
    return st;
}

/* One launch of a copy variant over the front half of x's arena to its back half. */
struct copy_args {
    uint64_t from, to;
    int count;
    const void *pointers[3];
};

static struct dev_launch copy_launch(struct copy_args *args, const struct bench *b,
                                     const struct bench_copy_variant *v) {
    const size_t per_block = (size_t)COPY_THREADS * v->each;
    args->from = buffer_address(b->arenas[ARENA_COPY].buffer);
    args->to = args->from + COPY_BYTES / 2;
    args->count = COPY_BYTES / 2 / 16;
    args->pointers[0] = &args->from;
    args->pointers[1] = &args->to;
    args->pointers[2] = &args->count;
    return (struct dev_launch){
        .image = b->copy,
        .entry = v->entry,
        .grid = {(unsigned)(((size_t)args->count + per_block - 1) / per_block), 1, 1},
        .block = {COPY_THREADS, 1, 1},
        .args = args->pointers,
        .arg_count = 3,
    };
}

/* The best variant's median.  entry: its name. */
static status_t time_copy(double *median, char entry[32], struct bench *b) {
    status_t st = OK;
    *median = INFINITY;
    for (const struct bench_copy_variant *v = bench_copy_variants; v->entry; v++) {
        double seconds[SAMPLES_MAX];
        size_t count;
        struct copy_args args;
        struct dev_launch launch = copy_launch(&args, b, v);
        TRY(take_samples(seconds, &count, b, &launch, 1, 1));
        if (seconds[count / 2] < *median) {
            *median = seconds[count / 2];
            snprintf(entry, 32, "%s", v->entry);
        }
    }
done:
    return st;
}

/* A kernel that faults has no speed. */
static status_t try_once(struct bench *b, const struct bound_kernel *bound) {
    status_t st = OK;
    for (size_t i = 0; i < bound->launch_count; i++) {
        struct dev_run run;
        TRY(device_launch(&run, b->dev, &bound->launches[i]));
        if (!run.completed || run.fault_total)
            return FAIL(ERR_DEVICE, "%s", run.fault_count ? run.faults[0].text : "a fault");
    }
done:
    return st;
}

/* The kernel's launches on each set of buffers; *launches has them one after another. */
static status_t bind_sets(struct bound_kernel *bound, struct dev_launch *launches,
                          const struct bench *b, const struct bench_row *row,
                          const struct loaded_kernel *lk, const struct kernel_buffer *buffers,
                          size_t sets) {
    status_t st = OK;
    for (size_t s = 0; s < sets; s++) {
        uint64_t addresses[KERNEL_MAX_BUFFERS] = {0};
        for (size_t i = 0; i < KERNEL_MAX_BUFFERS; i++)
            if (buffers[i].bytes)
                addresses[i] = buffer_address(b->arenas[i].buffer) + s * stride_of(&buffers[i]);
        TRY(kernel_bind(&bound[s], lk, row->dims, addresses));
        memcpy(&launches[s * bound[s].launch_count], bound[s].launches,
               bound[s].launch_count * sizeof *launches);
    }
done:
    return st;
}

static status_t time_row(struct bench *b, struct bench_row *row, const struct loaded_kernel *lk) {
    status_t st = OK;
    struct kernel_buffer buffers[KERNEL_MAX_BUFFERS];
    const size_t sets = set_count(b, row->bytes);
    double seconds[SAMPLES_MAX], swept[1];
    struct copy_args args;
    struct bound_kernel *bound = calloc(sets, sizeof *bound);
    struct dev_launch *launches = calloc(sets * KERNEL_MAX_LAUNCHES, sizeof *launches);
    if (!bound || !launches)
        TRY(FAIL(ERR_NOMEM, "no memory to time %s", row->kernel->name));
    TRY(kernel_buffers(buffers, row->kernel, row->dims));
    TRY(fill_inputs(b, row, buffers, sets));
    st = bind_sets(bound, launches, b, row, lk, buffers, sets);
    row->failed = st == ERR_USAGE; /* no tensor map at this shape: others may have figures */
    if (row->failed) {
        snprintf(row->reason, sizeof row->reason, "%s", status_message());
        st = OK;
        goto done;
    }
    TRY(st);
    TRY(try_once(b, &bound[0]));
    struct dev_launch sweep = copy_launch(&args, b, bench_copy_variants); /* through the cache */
    TRY(device_time(swept, b->dev, &sweep, 1, 1));
    TRY(take_samples(seconds, &row->samples, b, launches, bound[0].launch_count, sets));
    row->min = seconds[0];
    row->low = seconds[row->samples / 4];
    row->median = seconds[row->samples / 2];
    row->high = seconds[row->samples - 1 - row->samples / 4];
done:
    for (size_t s = 0; bound && s < sets; s++)
        bound_kernel_clear(&bound[s]);
    free(bound);
    free(launches);
    return st;
}

/* ---- count ----------------------------------------------------------------------------------- */

/* All inputs of a kernel in one block; its owner frees it. */
static status_t make_inputs(void **out, const struct bench *b, const struct bench_row *row) {
    status_t st = OK;
    struct tensor_block block;
    struct kernel_buffer buffers[KERNEL_MAX_BUFFERS];
    *out = NULL;
    TRY(kernel_buffers(buffers, row->kernel, row->dims));
    TRY(kernel_inputs(&block, row->kernel, row->dims, NULL));
    *out = malloc(block.bytes + 1);
    if (!*out)
        TRY(FAIL(ERR_NOMEM, "no memory to run %s", row->kernel->name));
    TRY(kernel_inputs(&block, row->kernel, row->dims, *out));
    for (size_t i = 0; i < BUFFER_OUTPUTS; i++) {
        uint8_t *data = block.tensors[i].data;
        if (!buffers[i].name)
            continue;
        if (buffers[i].type->kind == TENSOR_REAL)
            random_data(data, buffers[i].type->dtype, buffers[i].bytes, b->opt->seed + i);
        else
            everyday_data(data, row->kernel, row->dims, i, &buffers[i]);
    }
done:
    return st;
}

static status_t count_row(struct bench *b, struct bench_row *row, struct loaded_kernel *lk) {
    status_t st = OK;
    struct tensor_block block;
    struct kernel_result result;
    void *x = NULL, *y = NULL;
    TRY(make_inputs(&x, b, row));
    TRY(kernel_outputs(&block, row->kernel, row->dims, NULL));
    y = malloc(block.bytes + 1);
    if (!y)
        TRY(FAIL(ERR_NOMEM, "no memory to run %s", row->kernel->name));
    TRY(kernel_run(&result, lk, &(struct kernel_io){.dims = row->dims, .x = x, .y = y}));
    const struct dev_fault *fault = kernel_result_fault(&result);
    row->failed = !kernel_result_clean(&result);
    if (row->failed)
        snprintf(row->reason, sizeof row->reason, "%s", fault ? fault->text : "a fault");
    for (size_t i = 0; i < result.run_count; i++) {
        row->warp_insns += result.runs[i].warp_insns;
        row->lane_insns += result.runs[i].lane_insns;
        row->bytes_read += result.runs[i].bytes_read;
        row->bytes_written += result.runs[i].bytes_written;
    }
done:
    free(x);
    free(y);
    return st;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Rows in the order of their input's format, so that the large random input is made once for each. */
static status_t measure(struct bench *b) {
    status_t st = OK;
    struct bench_report *r = b->report;
    const bool timed = r->device.timed;
    struct loaded_kernel *lk = NULL;
    size_t done = 0;
    for (int dt = 0; dt < DT_COUNT; dt++) {
        for (size_t i = 0; i < r->count; i++) {
            struct bench_row *row = &r->rows[i];
            if (row->kernel->in != &dtypes[dt])
                continue;
            if (row->reason[0] == '\0') {
                if (lk && loaded_kernel_of(lk) != row->kernel) {
                    kernel_unload(lk);
                    lk = NULL;
                }
                if (!lk)
                    TRY(gate_load(&lk, row->reason, b->dev, row->kernel));
                if (lk)
                    TRY(timed ? time_row(b, row, lk) : count_row(b, row, lk));
            }
            if (b->opt->progress)
                b->opt->progress(b->opt->context, ++done, r->count);
        }
    }
done:
    kernel_unload(lk);
    return st;
}

static status_t prepare_arenas(struct bench *b) {
    status_t st = OK;
    if (b->arenas[ARENA_COPY].bytes < COPY_BYTES)
        b->arenas[ARENA_COPY].bytes = COPY_BYTES;
    for (size_t i = 0; i < KERNEL_MAX_BUFFERS; i++)
        if (b->arenas[i].bytes)
            TRY(device_alloc(&b->arenas[i].buffer, b->dev, b->arenas[i].bytes));
    TRY(fill_random(b, ARENA_COPY, &dtypes[DT_F32]));
done:
    return st;
}

status_t bench_run(struct bench_report *out, const struct bench_job *jobs, size_t count,
                   const struct bench_options *opt) {
    status_t st = OK;
    struct bench b = {.opt = opt, .report = out};
    *out = (struct bench_report){.seed = opt->seed, .copy.bytes = COPY_BYTES};
    TRY(device_open(&b.dev, opt->device, NULL));
    out->device = *device_info(b.dev);
    TRY(plan(&b, jobs, count));
    if (out->device.timed) {
        TRY(builtin_image(&b.copy, b.dev, "bench/copy.ptx"));
        TRY(prepare_arenas(&b));
        TRY(time_copy(&out->copy.before, out->copy.entry, &b));
    }
    TRY(measure(&b));
    if (out->device.timed)
        TRY(time_copy(&out->copy.after, out->copy.entry, &b));
done:
    for (size_t i = 0; i < KERNEL_MAX_BUFFERS; i++)
        buffer_free(b.arenas[i].buffer);
    image_unload(b.copy);
    device_close(b.dev);
    return st;
}

void bench_report_clear(struct bench_report *r) {
    free(r->rows);
    *r = (struct bench_report){0};
}

bool bench_report_passed(const struct bench_report *r) {
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].failed)
            return false;
    return true;
}

double bench_rate(const struct bench_row *row) {
    return row->median > 0 ? (double)row->bytes / row->median : 0;
}

double bench_copy_rate(const struct bench_report *r) {
    const double best = r->copy.after > 0 ? fmin(r->copy.before, r->copy.after) : r->copy.before;
    return best > 0 ? (double)r->copy.bytes / best : 0;
}

double bench_fraction(const struct bench_report *r, const struct bench_row *row) {
    const double copy = bench_copy_rate(r);
    return copy > 0 ? bench_rate(row) / copy : 0;
}
