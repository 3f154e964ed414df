/* gate/bench_report.c - what a bench found, as a table and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "gate/bench.h"
#include "gate/file.h"
#include "gate/json.h"

/* ---- figures of another program -------------------------------------------------------------- */

struct beside {
    json_t *rows; /* of objects {op, variant, dtype, shape, seconds} */
};

status_t beside_read(struct beside **out, const char *path) {
    json_error_t e;
    json_t *json = json_load_file(path, 0, &e), *rows = json_object_get(json, "rows");
    status_t st = OK;
    struct beside *b = calloc(1, sizeof *b);
    if (!b)
        TRY(FAIL(ERR_NOMEM, "no memory for %s", path));
    if (!json)
        TRY(FAIL(e.line < 0 ? ERR_IO : ERR_SYNTAX, "%s:%d: %s", path, e.line < 0 ? 0 : e.line,
                 e.text));
    if (!json_is_array(rows))
        TRY(FAIL(ERR_SYNTAX, "%s: expected an object with an array `rows`", path));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *op, *dtype, *shape, *variant;
        double seconds;
        if (json_unpack_ex(json_array_get(rows, i), &e, 0, "{s:s, s:s, s:s, s:F, s?:s}", "op", &op,
                           "dtype", &dtype, "shape", &shape, "seconds", &seconds, "variant",
                           &variant) != 0)
            TRY(FAIL(ERR_SYNTAX, "%s: rows[%zu]: %s", path, i, e.text));
    }
    b->rows = json_incref(rows);
    *out = b;
    b = NULL;
done:
    json_decref(json);
    free(b);
    return st;
}

void beside_free(struct beside *b) {
    if (!b)
        return;
    json_decref(b->rows);
    free(b);
}

static void text_of_shape(char out[SHAPE_SIZE], const struct bench_row *row) {
    dims_shape(out, SHAPE_SIZE, row->kernel->op->dims, &row->dims);
}

double beside_seconds(const struct beside *b, const struct bench_row *row) {
    char dtype[32], own[SHAPE_SIZE];
    text_of_dtype(dtype, sizeof dtype, row->kernel);
    text_of_shape(own, row);
    for (size_t i = 0; b && i < json_array_size(b->rows); i++) {
        const char *op, *dt, *shape, *variant = "";
        double seconds;
        json_unpack(json_array_get(b->rows, i), "{s:s, s:s, s:s, s:F, s?:s}", "op", &op, "dtype",
                    &dt, "shape", &shape, "seconds", &seconds, "variant", &variant);
        if (strcmp(variant, row->variant) == 0 && strcmp(op, row->kernel->op->name) == 0 &&
            strcmp(dt, dtype) == 0 && strcmp(shape, own) == 0)
            return seconds;
    }
    return 0;
}

/* ---- table ----------------------------------------------------------------------------------- */

struct widths {
    int name, shape;
};

static struct widths widths_of(const struct bench_report *r) {
    struct widths w = {(int)strlen("kernel"), (int)strlen("shape")};
    for (size_t i = 0; i < r->count; i++) {
        char shape[SHAPE_SIZE];
        text_of_shape(shape, &r->rows[i]);
        int name = (int)strlen(r->rows[i].kernel->name), length = (int)strlen(shape);
        w.name = name > w.name ? name : w.name;
        w.shape = length > w.shape ? length : w.shape;
    }
    return w;
}

static double per(uint64_t a, double b) {
    return b > 0 ? (double)a / b : 0;
}

static void counted_line(FILE *to, const struct bench_row *row) {
    fprintf(to, "  %10llu  %12llu  %8.2f  %10.2f\n", (unsigned long long)row->warp_insns,
            (unsigned long long)row->lane_insns, per(row->lane_insns, (double)row->results),
            per(row->bytes_read + row->bytes_written, (double)row->bytes));
}

static void timed_line(FILE *to, const struct bench_report *r, const struct bench_row *row,
                       const struct beside *beside) {
    fprintf(to, "  %9.1f  %6.0f  %5.3f  %5.1f", row->median * 1e6, bench_rate(row) * 1e-9,
            bench_fraction(r, row), 100 * (row->high - row->low) / row->median);
    const double other = beside_seconds(beside, row);
    if (other > 0)
        fprintf(to, "  %6.0f  %6.2f", (double)row->bytes / other * 1e-9, other / row->median);
    if (row->flops > 0)
        fprintf(to, "  %.1f TFLOP/s", row->flops / row->median * 1e-12);
    fputc('\n', to);
}

void bench_text(FILE *to, const struct bench_report *r, const struct beside *beside) {
    const struct widths w = widths_of(r);
    fprintf(to, "%-*s  %*s  %10s", w.name, "kernel", w.shape, "shape", "bytes");
    if (r->device.timed)
        fprintf(to, "  %9s  %6s  %5s  %5s%s\n", "median us", "GB/s", "/copy", "+-%",
                beside ? "  beside  faster" : "");
    else
        fprintf(to, "  %10s  %12s  %8s  %10s\n", "warp insns", "lane insns", "/result",
                "moved/byte");
    for (size_t i = 0; i < r->count; i++) {
        const struct bench_row *row = &r->rows[i];
        char shape[SHAPE_SIZE];
        text_of_shape(shape, row);
        fprintf(to, "%-*s  %*s", w.name, row->kernel->name, w.shape, shape);
        if (row->reason[0]) {
            fprintf(to, "  %s: %s\n", row->failed ? "FAIL" : "SKIP", row->reason);
            continue;
        }
        fprintf(to, "  %10zu", row->bytes);
        if (r->device.timed)
            timed_line(to, r, row, beside);
        else
            counted_line(to, row);
    }
    if (r->device.timed)
        fprintf(to, "%s, %s: %s moves %.0f GB/s (%.1f us before, %.1f us after)\n", r->device.name,
                r->device.driver, r->copy.entry, bench_copy_rate(r) * 1e-9, r->copy.before * 1e6,
                r->copy.after * 1e6);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* clang-format off */
static json_t *json_of_row(const struct bench_report *r, const struct bench_row *row,
                           const struct beside *beside) {
    char shape[SHAPE_SIZE];
    text_of_shape(shape, row);
    if (row->reason[0])
        return json_pack("{s:s, s:b, s:s}", "shape", shape, "failed", (int)row->failed,
                         "reason", row->reason);
    if (!r->device.timed)
        return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "shape", shape,
                         "bytes", (json_int_t)row->bytes,
                         "warp_insns", (json_int_t)row->warp_insns,
                         "lane_insns", (json_int_t)row->lane_insns,
                         "bytes_read", (json_int_t)row->bytes_read,
                         "bytes_written", (json_int_t)row->bytes_written);
    json_t *json = json_pack("{s:s, s:I, s:I, s:f, s:f, s:[f, f], s:f, s:f}", "shape", shape,
                             "bytes", (json_int_t)row->bytes,
                             "samples", (json_int_t)row->samples,
                             "seconds", row->median,
                             "min", row->min,
                             "quartiles", row->low, row->high,
                             "rate", bench_rate(row),
                             "of_copy", bench_fraction(r, row));
    const double other = beside_seconds(beside, row);
    if (json && other > 0)
        json_object_set_new(json, "beside", json_real(other));
    if (json && row->flops > 0)
        json_object_set_new(json, "flops", json_real(row->flops));
    if (json && row->variant[0])
        json_object_set_new(json, "variant", json_string(row->variant));
    return json;
}
/* clang-format on */

/* The rows of one kernel, from *i on; *i moves behind them. */
static json_t *json_of_rows(const struct bench_report *r, size_t *i, const struct beside *beside) {
    const struct kernel *k = r->rows[*i].kernel;
    json_t *rows = json_array();
    for (; *i < r->count && r->rows[*i].kernel == k; ++*i)
        json_array_append_new(rows, json_of_row(r, &r->rows[*i], beside));
    return rows;
}

static json_t *json_of_copy(const struct bench_report *r) {
    if (!r->device.timed)
        return json_null();
    return json_pack("{s:s, s:I, s:f, s:f, s:f}", "entry", r->copy.entry, "bytes",
                     (json_int_t)r->copy.bytes, "before", r->copy.before, "after", r->copy.after,
                     "rate", bench_copy_rate(r));
}

/* The outline of results.json, without kernels. */
static json_t *json_outline(const struct bench_report *r) {
    return json_pack("{s:s, s:{s:s, s:s, s:s}, s:I, s:o, s:[]}", "assay", ASSAY_VERSION, "device",
                     "name", r->device.name, "arch", r->device.arch, "driver", r->device.driver,
                     "seed", (json_int_t)r->seed, "copy", json_of_copy(r), "kernels");
}

/* The kernel's object among `kernels`, added if it is not there or is of another image. */
static status_t kernel_object(json_t **out, json_t *kernels, const struct kernel *k) {
    char sha256[DIGEST_SIZE], dtype[32];
    status_t st = file_sha256(sha256, k->image);
    if (st != OK)
        return st;
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        *out = json_array_get(kernels, i);
        const char *name = json_string_value(json_object_get(*out, "name"));
        const char *image = json_string_value(json_object_get(*out, "image_sha256"));
        if (!name || strcmp(name, k->name) != 0)
            continue;
        if (image && strcmp(image, sha256) == 0)
            return OK;
        return FAIL(ERR_USAGE,
                    "results.json has %s of another image: gate it again first, or "
                    "choose another folder",
                    k->name);
    }
    text_of_dtype(dtype, sizeof dtype, k);
    *out = json_pack("{s:s, s:s, s:s, s:s}", "name", k->name, "op", k->op->name, "dtype", dtype,
                     "image_sha256", sha256);
    return json_array_append_new(kernels, *out) == 0 ? OK
                                                     : FAIL(ERR_NOMEM, "no memory for a report");
}

static status_t add_kernels(json_t *json, const struct bench_report *r,
                            const struct beside *beside) {
    status_t st = OK;
    json_t *kernels = json_object_get(json, "kernels");
    for (size_t i = 0; i < r->count;) {
        json_t *object;
        TRY(kernel_object(&object, kernels, r->rows[i].kernel));
        if (json_object_set_new(object, "bench", json_of_rows(r, &i, beside)) != 0)
            TRY(FAIL(ERR_NOMEM, "no memory for a report"));
    }
done:
    return st;
}

static status_t dump(FILE *to, const json_t *json) {
    if (json_dumpf(json, to, JSON_INDENT(2)) != 0 || fputc('\n', to) == EOF)
        return FAIL(ERR_IO, "cannot write a report in JSON");
    return OK;
}

status_t bench_json(FILE *to, const struct bench_report *r, const struct beside *beside) {
    json_t *json = json_outline(r);
    status_t st = json ? add_kernels(json, r, beside) : FAIL(ERR_NOMEM, "no memory for a report");
    if (st == OK)
        st = dump(to, json);
    json_decref(json);
    return st;
}

status_t bench_write(const char *dir, const struct bench_report *r, const struct beside *beside) {
    char path[4096];
    FILE *file = NULL;
    json_error_t e;
    json_t *json = NULL;
    status_t st = OK;
    TRY(file_make_folder(dir));
    snprintf(path, sizeof path, "%s/results.json", dir);
    file = fopen(path, "r");
    if (file) {
        json = json_loadf(file, 0, &e);
        fclose(file);
        file = NULL;
        if (!json_is_array(json_object_get(json, "kernels")))
            TRY(FAIL(ERR_SYNTAX, "%s: expected an object with an array `kernels`", path));
    } else {
        json = json_outline(r);
    }
    TRY(add_kernels(json, r, beside));
    json_object_set_new(json, "copy", json_of_copy(r));
    file = fopen(path, "w");
    if (!file)
        TRY(FAIL(ERR_IO, "cannot write %s", path));
    TRY(dump(file, json));
done:
    if (file && fclose(file) != 0 && st == OK)
        st = FAIL(ERR_IO, "cannot write %s", path);
    json_decref(json);
    return st;
}
