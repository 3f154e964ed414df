/* What an op is told about a kernel. */
#include "kernels/options.h"

#include <string.h>

/* One option that is a number, and so of use to all expressions that are no options. */
static const struct number {
    const char *name;
    size_t written;       /* offset in struct manifest_options */
    const char *ops;      /* that have it */
    const char *fallback; /* where it is not written; NULL: not there */
    bool required;
} numbers[] = {
#define AT(member) #member, offsetof(struct manifest_options, member)
    {AT(eps), "layernorm rmsnorm", NULL, true},
    {AT(base), "rope", NULL, true},
    {AT(rotary_dim), "rope", "head_dim", false},
    {AT(scale), "attention", "1/sqrt(head_dim)", false},
    {AT(softcap), "attention", NULL, false},
    {AT(ld), "sum max softmax log_softmax lse softmax_topk layernorm rmsnorm", NULL, false},
    {AT(window_left), "attention", NULL, false},
    {AT(window_right), "attention", NULL, false},
    {AT(window_sinks), "attention", NULL, false},
#undef AT
};

#define NUMBERS (sizeof numbers / sizeof numbers[0])

static const char *text_of(const struct manifest_options *m, const struct number *n) {
    const char *text;
    memcpy(&text, (const char *)m + n->written, sizeof text);
    return text;
}

/* Is `name` one of the blank-separated words? */
static bool has_word(const char *words, const char *name) {
    size_t length = strlen(name);
    for (const char *at = strstr(words, name); at; at = strstr(at + 1, name))
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static status_t refuse(const struct kernel_detail *d, const struct op *op, const char *name) {
    return manifest_at(FAIL(ERR_SYNTAX, "op %s has no such option", op->name), d->file, d->index,
                       "options.%s", name);
}

static status_t add_number(struct kernel_detail *d, const struct op *op, const struct number *n) {
    const char *text = text_of(d->options, n);
    if (!has_word(n->ops, op->name))
        return text ? refuse(d, op, n->name) : OK;
    if (!text && n->required)
        return manifest_at(
            FAIL(ERR_SYNTAX, "missing: op %s has the option `%s`", op->name, n->name), d->file,
            d->index, "options");
    text = text ? text : n->fallback;
    if (!text)
        return OK;
    struct expr_name *to = &d->scope.names[d->scope.name_count];
    status_t st = manifest_at(expr_new(&to->value, text, &d->numbers), d->file, d->index,
                              "options.%s", n->name);
    if (st != OK)
        return st;
    to->name = n->name;
    d->scope.name_count++;
    return OK;
}

status_t options_compile(struct kernel_detail *d, const struct op *op) {
    const struct manifest_options *m = &d->file->manifest->kernels[d->index].options;
    status_t st = OK;
    d->options = m;
    memcpy(d->numbers.dims, op->dims, sizeof d->numbers.dims);
    memcpy(d->scope.dims, op->dims, sizeof d->scope.dims);
    for (size_t i = 0; i < NUMBERS; i++)
        TRY(add_number(d, op, &numbers[i]));
    if (m->round_to && !has_word("layernorm rmsnorm", op->name))
        TRY(refuse(d, op, "round_to"));
    if (m->layout && !has_word("rope", op->name))
        TRY(refuse(d, op, "layout"));
    if (m->causal && !has_word("attention softmax log_softmax lse", op->name))
        TRY(refuse(d, op, "causal"));
    if (m->renormalise && !has_word("softmax_topk", op->name))
        TRY(refuse(d, op, "renormalise"));
    if (m->round_to)
        TRY(manifest_at(find_dtype(&d->round_to, m->round_to), d->file, d->index,
                        "options.round_to"));
done:
    return st;
}

/* ---- at one shape ---------------------------------------------------------------------------- */

/* `otherwise` where the kernel does not have the number. */
static status_t number_of(double *out, const struct kernel_detail *d, const char *name,
                          struct case_dims dims, double otherwise) {
    for (size_t i = 0; i < d->scope.name_count; i++)
        if (strcmp(d->scope.names[i].name, name) == 0)
            return expr_real(out, d->scope.names[i].value, dims);
    *out = otherwise;
    return OK;
}

static status_t size_of(size_t *out, const struct kernel_detail *d, const char *name,
                        struct case_dims dims, size_t otherwise) {
    for (size_t i = 0; i < d->scope.name_count; i++)
        if (strcmp(d->scope.names[i].name, name) == 0)
            return expr_size(out, d->scope.names[i].value, dims);
    *out = otherwise;
    return OK;
}

/* An option that the kernel gets as an argument in f32. */
static double as_f32(double x) {
    const struct dtype *f32 = &dtypes[DT_F32];
    return dtype_to_double(f32, dtype_from_double(f32, x, ROUND_NEAREST));
}

status_t kernel_options(struct op_options *out, const struct kernel *kernel,
                        struct case_dims dims) {
    const struct kernel_detail *d = kernel->detail;
    const size_t unlimited = SIZE_MAX / 4;
    status_t st = OK;
    *out = (struct op_options){.contract = d->round_to ? NORM_ROUND_FIRST : NORM_ROUND_LAST,
                               .rounded = d->round_to,
                               .layout = d->options->layout,
                               .causal = d->options->causal,
                               .renormalise = d->options->renormalise,
                               .windowed = d->options->window_left || d->options->window_right};
    TRY(number_of(&out->eps, d, "eps", dims, 0));
    TRY(number_of(&out->base, d, "base", dims, 0));
    TRY(size_of(&out->rotary_dim, d, "rotary_dim", dims, 0));
    TRY(number_of(&out->scale, d, "scale", dims, 0));
    TRY(number_of(&out->softcap, d, "softcap", dims, 0));
    TRY(size_of(&out->ld, d, "ld", dims, 0));
    TRY(size_of(&out->window_left, d, "window_left", dims, unlimited));
    TRY(size_of(&out->window_right, d, "window_right", dims, unlimited));
    TRY(size_of(&out->window_sinks, d, "window_sinks", dims, 0));
    out->eps = as_f32(out->eps);
    out->scale = as_f32(out->scale);
    out->softcap = as_f32(out->softcap);
done:
    return st;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool kernel_same_options(const struct kernel *a, const struct kernel *b) {
    const struct manifest_options *x = a->detail->options, *y = b->detail->options;
    for (size_t i = 0; i < NUMBERS; i++)
        if (!same_text(text_of(x, &numbers[i]), text_of(y, &numbers[i])))
            return false;
    return same_text(x->round_to, y->round_to) && x->layout == y->layout &&
           x->causal == y->causal && x->renormalise == y->renormalise;
}
