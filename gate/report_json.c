/* gate/report_json.c - results.json, as docs/cases.md lays it out. */
#include <math.h>
#include <string.h>

#include "gate/json.h"

json_t *json_of_double(double v) {
    if (isnan(v))
        return json_string("nan");
    if (isinf(v))
        return json_string(v > 0 ? "inf" : "-inf");
    return json_real(v);
}

bool json_to_double(double *out, const json_t *json) {
    const char *text = json_string_value(json);
    if (json_is_number(json))
        *out = json_number_value(json);
    else if (text && strcmp(text, "inf") == 0)
        *out = INFINITY;
    else if (text && strcmp(text, "-inf") == 0)
        *out = -INFINITY;
    else if (text && strcmp(text, "nan") == 0)
        *out = NAN;
    else
        return false;
    return true;
}

json_t *json_of_events(const struct dev_events *e) {
    return json_pack("{s:I, s:I, s:I}", "nan_born", (json_int_t)e->nan_born, "inf_born",
                     (json_int_t)e->inf_born, "subnormal_flushed",
                     (json_int_t)e->subnormal_flushed);
}

bool json_to_events(struct dev_events *out, const json_t *json) {
    json_int_t nan, inf, flushed;
    if (json_unpack((json_t *)json, "{s:I, s:I, s:I}", "nan_born", &nan, "inf_born", &inf,
                    "subnormal_flushed", &flushed) != 0)
        return false;
    *out = (struct dev_events){(uint64_t)nan, (uint64_t)inf, (uint64_t)flushed};
    return true;
}

json_t *json_of_tally(const struct tally *t) {
    json_t *json = json_pack("{s:I}", "audited", (json_int_t)t->audited);
    for (int tier = 0; json && tier < TIER_COUNT; tier++)
        json_object_set_new(json, tier_name((enum tier)tier),
                            json_integer((json_int_t)t->decided[tier]));
    return json;
}

bool json_to_tally(struct tally *out, const json_t *json) {
    *out =
        (struct tally){.audited = (uint64_t)json_integer_value(json_object_get(json, "audited"))};
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        const json_t *decided = json_object_get(json, tier_name((enum tier)tier));
        if (!json_is_integer(decided))
            return false;
        out->decided[tier] = (uint64_t)json_integer_value(decided);
    }
    return json_is_integer(json_object_get(json, "audited"));
}

/* null where no element was compared: a fault, or nothing ran. */
static json_t *json_of_worst(const struct finding *f, const struct kernel *kernel) {
    const struct worst *w = &f->judgement.worst;
    if (f->line[0] == '\0')
        return json_null();
    if (!w->known)
        return json_pack("{s:s, s:n, s:n, s:n, s:n}", "case", f->line, "index", "got_bits", "want",
                         "budget");
    char bits[16];
    snprintf(bits, sizeof bits, "0x%0*x", (int)kernel_output(kernel, w->output)->size * 2,
             (unsigned)w->got);
    json_t *index = w->per_row ? json_pack("[I]", (json_int_t)w->row)
                               : json_pack("[I, I]", (json_int_t)w->row, (json_int_t)w->col);
    return json_pack("{s:s, s:o, s:s, s:[o, o], s:o}", "case", f->line, "index", index, "got_bits",
                     bits, "want", json_of_double(w->want.lo), json_of_double(w->want.hi), "budget",
                     json_of_double(w->budget));
}

/* clang-format off */
json_t *json_of_kernel(const struct kernel_report *r) {
    char dtype[32];
    text_of_dtype(dtype, sizeof dtype, r->kernel);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:n}",
                     "name", r->kernel->name,
                     "op", r->kernel->op->name,
                     "dtype", dtype,
                     "image_sha256", r->image_sha256,
                     "rounding", r->kernel->rounding == ROUNDING_RN ? "rn" : "as_written",
                     "verdict", verdict_name(r->verdict),
                     "reason", r->reason,
                     "cases", (json_int_t)r->cases,
                     "max_ulp", json_of_double(r->max_ulp),
                     "max_rel", json_of_double(r->max_rel),
                     "max_rho", json_of_double(r->max_rho),
                     "worst", json_of_worst(&r->worst, r->kernel),
                     "events", json_of_events(&r->events),
                     "twin_outputs", (json_int_t)r->twin_outputs,
                     "oracle", json_of_tally(&r->tally),
                     "bench");
}

static json_t *json_of_device(const struct device_info *d) {
    return json_pack("{s:s, s:s, s:s}", "name", d->name, "arch", d->arch, "driver", d->driver);
}

static json_t *json_of_report(const struct gate_report *r) {
    size_t t[VERDICT_COUNT];
    gate_report_totals(t, r);
    json_t *kernels = json_array();
    for (size_t i = 0; i < r->count; i++)
        json_array_append_new(kernels, json_of_kernel(&r->kernels[i]));
    return json_pack("{s:s, s:o, s:o, s:s, s:I, s:f, s:{s:I, s:I, s:I, s:I, s:I}, s:o}",
                     "assay", ASSAY_VERSION,
                     "device", json_of_device(&r->device),
                     "twin", r->twin.name[0] ? json_of_device(&r->twin) : json_null(),
                     "suite", r->suite,
                     "seed", (json_int_t)r->seed,
                     "seconds", r->seconds,
                     "totals",
                         "pass", (json_int_t)t[VERDICT_PASS],
                         "fail", (json_int_t)t[VERDICT_FAIL],
                         "unsure", (json_int_t)t[VERDICT_UNSURE],
                         "mistrusted", (json_int_t)t[VERDICT_MISTRUSTED],
                         "skip", (json_int_t)t[VERDICT_SKIP],
                     "kernels", kernels);
}
/* clang-format on */

/* Writes and frees it. */
static status_t dump(FILE *to, json_t *json) {
    if (!json)
        return FAIL(ERR_NOMEM, "no memory for a report in JSON");
    int rc = json_dumpf(json, to, JSON_INDENT(2));
    json_decref(json);
    if (rc != 0 || fputc('\n', to) == EOF)
        return FAIL(ERR_IO, "cannot write a report in JSON");
    return OK;
}

status_t report_json(FILE *to, const struct gate_report *r) {
    return dump(to, json_of_report(r));
}

status_t report_check_json(FILE *to, const struct kernel_report *r) {
    return dump(to, json_of_kernel(r));
}
