/* fuzz/words.c - see words.h. */
#include "fuzz/words.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle/dtype.h"

#define F32 (&dtypes[DT_F32])

/* ---- to text --------------------------------------------------------------------------------- */

struct text {
    char *out;
    size_t size, at;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->out + t->at, t->size - t->at, format, args);
    va_end(args);
    if (n > 0)
        t->at = t->at + (size_t)n < t->size ? t->at + (size_t)n : t->size - 1;
}

static void say_float(struct text *t, const char *name, uint32_t bits) {
    double x = dtype_to_double(F32, bits);
    if (isnan(x))
        say(t, " %snan(0x%08x)", name, (unsigned)bits);
    else
        say(t, fabs(x) < 1e6 && x == floor(x) ? " %s%.0f" : " %s%a", name, x);
}

static void say_op(struct text *t, const struct rows_op *op) {
    say(t, " %s", rows_op_infos[op->kind].name);
    for (const char *o = rows_op_infos[op->kind].operands; *o; o++) {
        if (*o == 'n' || *o == 'p')
            say(t, " %c=%u", *o, op->n);
        else if (*o == 's')
            say(t, " s=%u", op->seed);
        else if (*o == 'c')
            say(t, " c=%u", op->count + 1u);
        else if (*o == 'e')
            say(t, " e=%d", op->steps);
        else if (*o == 'l')
            for (unsigned i = 0; i <= op->count; i++)
                say_float(t, "", op->list[i]);
        else
            say_float(t, *o == 'a' ? "a=" : "b=", *o == 'a' ? op->a : op->b);
    }
    say(t, ";");
}

void rows_print(char *out, size_t size, const struct rows_program *p) {
    struct text t = {.out = out, .size = size};
    say(&t, "%ux%u", p->rows, p->cols);
    if (p->kernel)
        say(&t, " k=%u", p->kernel);
    if (p->raw)
        say(&t, " raw");
    for (size_t i = 0; p->raw && i < p->datum_count; i++)
        say_float(&t, "", p->data[i]);
    for (size_t i = 0; !p->raw && i < p->op_count; i++)
        say_op(&t, &p->ops[i]);
}

/* ---- from text ------------------------------------------------------------------------------- */

struct scan {
    const char *at;
};

static bool at_end(struct scan *s) {
    while (isspace((unsigned char)*s->at))
        s->at++;
    return *s->at == '\0';
}

static bool accept(struct scan *s, const char *word) {
    size_t n = strlen(word);
    if (at_end(s) || strncmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

static status_t expected(struct scan *s, const char *what) {
    return at_end(s) ? FAIL(ERR_SYNTAX, "expected %s, found the end", what)
                     : FAIL(ERR_SYNTAX, "expected %s, found '%.20s'", what, s->at);
}

static status_t scan_integer(long *out, struct scan *s, long min, long max, const char *what) {
    char *end;
    *out = strtol(s->at, &end, 10);
    if (end == s->at || *out < min || *out > max)
        return expected(s, what);
    s->at = end;
    return OK;
}

static status_t scan_float(uint32_t *out, struct scan *s) {
    char *end;
    if (accept(s, "nan(0x")) {
        *out = (uint32_t)strtoul(s->at, &end, 16);
        if (end == s->at || *end != ')' || dtype_classify(F32, *out) != CLASS_NAN)
            return expected(s, "the bits of a NaN");
        s->at = end + 1;
        return OK;
    }
    double x = strtod(s->at, &end);
    if (end == s->at || isnan(x))
        return expected(s, "a float");
    *out = dtype_from_double(F32, x, ROUND_NEAREST);
    s->at = end;
    return OK;
}

static bool at_float(struct scan *s) {
    return !at_end(s) && (isdigit((unsigned char)*s->at) || strchr("+-.in", *s->at));
}

/* "n=3" and the like: the operand o of the operation. */
static status_t scan_operand(struct rows_op *op, struct scan *s, char o) {
    status_t st = OK;
    long v = 0;
    char name[] = {o, '=', '\0'};
    if (!accept(s, name))
        return OK;
    switch (o) {
    case 'n':
    case 'p':
        TRY(scan_integer(&v, s, 0, UINT16_MAX, "0 .. 65535"));
        op->n = (uint16_t)v;
        break;
    case 's':
        TRY(scan_integer(&v, s, 0, UINT16_MAX, "0 .. 65535"));
        op->seed = (uint16_t)v;
        break;
    case 'c':
        TRY(scan_integer(&v, s, 1, 256, "1 .. 256"));
        op->count = (uint8_t)(v - 1);
        break;
    case 'e':
        TRY(scan_integer(&v, s, INT8_MIN, INT8_MAX, "-128 .. 127"));
        op->steps = (int8_t)v;
        break;
    default:
        TRY(scan_float(o == 'a' ? &op->a : &op->b, s));
        break;
    }
done:
    return st;
}

static status_t scan_op(struct rows_op *op, struct scan *s) {
    status_t st = OK;
    size_t kind = 0;
    while (kind < ROWS_OP_COUNT && !accept(s, rows_op_infos[kind].name))
        kind++;
    if (kind == ROWS_OP_COUNT)
        return expected(s, "an operation");
    *op = (struct rows_op){.kind = (enum rows_op_kind)kind};
    for (const char *o = rows_op_infos[kind].operands; *o && *o != 'l'; o++)
        TRY(scan_operand(op, s, *o));
    for (unsigned i = 0; op->kind == ROWS_LIST && i < ROWS_MAX_LIST && at_float(s); i++) {
        TRY(scan_float(&op->list[i], s));
        op->count = (uint8_t)i;
    }
    if (!at_end(s) && !accept(s, ";"))
        return expected(s, "';'");
done:
    return st;
}

static status_t scan_shape(struct rows_program *p, struct scan *s) {
    status_t st = OK;
    long rows, cols, kernel = 0;
    TRY(scan_integer(&rows, s, 1, ROWS_MAX_ROWS, "1 .. 4 rows"));
    if (!accept(s, "x"))
        return expected(s, "'x'");
    TRY(scan_integer(&cols, s, 1, ROWS_MAX_COLS, "1 .. 2048 cols"));
    if (accept(s, "k="))
        TRY(scan_integer(&kernel, s, 0, UINT8_MAX, "a kernel's index"));
    p->rows = (uint16_t)rows;
    p->cols = (uint16_t)cols;
    p->kernel = (uint8_t)kernel;
done:
    return st;
}

status_t rows_parse(struct rows_program *out, const char *text) {
    status_t st = OK;
    struct scan s = {text};
    *out = (struct rows_program){.rows = 1, .cols = 1};
    TRY(scan_shape(out, &s));
    out->raw = accept(&s, "raw");
    while (!at_end(&s)) {
        size_t room = out->raw ? (size_t)out->rows * out->cols : ROWS_MAX_OPS;
        if ((out->raw ? out->datum_count : out->op_count) == room)
            return FAIL(ERR_SYNTAX, "more than %zu %s", room, out->raw ? "data" : "operations");
        if (out->raw)
            TRY(scan_float(&out->data[out->datum_count++], &s));
        else
            TRY(scan_op(&out->ops[out->op_count++], &s));
    }
done:
    return st;
}
