/*
 * Expressions through muParser's C interface.  It reports errors through buffers that all parsers
 * share, and an evaluation reads the variables bound to its parser: hence one lock around every
 * use.  Kept compiled, an evaluation takes well under a microsecond.
 */
#include "kernels/expr.h"

#include <math.h>
#include <muParserDLL.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 256 /* characters */
#define MAX_WHOLE 0x1p53

struct expr {
    char *text;
    muParserHandle_t parser;
    const struct expr_scope *scope;
    double dims[MAX_DIMS], names[EXPR_MAX_NAMES]; /* the variables that the parser reads */
};

static pthread_mutex_t muparser = PTHREAD_MUTEX_INITIALIZER;

/* muParser's `=` assigns; of a manifest's expression that is a slip for `==`. */
static const char *find_assignment(const char *text) {
    for (const char *p = strchr(text, '='); p; p = strchr(p + 1, '=')) {
        if (p[1] == '=')
            p++;
        else if (p == text || !strchr("<>!", p[-1]))
            return p;
    }
    return NULL;
}

/* With the lock held. */
static status_t evaluate(double *out, struct expr *e) {
    int count = 0;
    const double *values = mupEvalMulti(e->parser, &count);
    if (mupError(e->parser)) {
        status_t st =
            FAIL(ERR_SYNTAX, "bad expression `%s`: %s", e->text, mupGetErrorMsg(e->parser));
        mupErrorReset(e->parser);
        return st;
    }
    if (!values || count != 1)
        return FAIL(ERR_SYNTAX, "bad expression `%s`: expected one value, found %d", e->text,
                    count);
    *out = values[0];
    return OK;
}

/* With the lock held. */
static status_t compile(struct expr *e) {
    double at_one;
    e->parser = mupCreate(muBASETYPE_FLOAT);
    if (!e->parser)
        return FAIL(ERR_NOMEM, "no memory for an expression");
    for (size_t i = 0; i < MAX_DIMS && e->scope->dims[i] != DIM_NONE; i++)
        mupDefineVar(e->parser, dim_name(e->scope->dims[i]), &e->dims[i]);
    for (size_t i = 0; i < e->scope->name_count; i++)
        mupDefineVar(e->parser, e->scope->names[i].name, &e->names[i]);
    mupDefineFun1(e->parser, "ceil", ceil, 1);
    mupDefineFun1(e->parser, "floor", floor, 1);
    mupSetExpr(e->parser, e->text);
    return evaluate(&at_one, e);
}

status_t expr_new(struct expr **out, const char *text, const struct expr_scope *scope) {
    status_t st = OK;
    struct expr *e = NULL;
    *out = NULL;

    if (strlen(text) > MAX_TEXT)
        return FAIL(ERR_SYNTAX, "bad expression: %zu characters, at most %d are read", strlen(text),
                    MAX_TEXT);
    if (find_assignment(text))
        return FAIL(ERR_SYNTAX, "bad expression `%s`: `=` assigns; equality is `==`", text);
    e = calloc(1, sizeof *e);
    if (!e || !(e->text = strdup(text)))
        TRY(FAIL(ERR_NOMEM, "no memory for an expression"));
    e->scope = scope;
    for (size_t i = 0; i < MAX_DIMS; i++)
        e->dims[i] = 1;
    for (size_t i = 0; i < EXPR_MAX_NAMES; i++)
        e->names[i] = 1;
    pthread_mutex_lock(&muparser);
    st = compile(e);
    pthread_mutex_unlock(&muparser);
    TRY(st);
    *out = e;
    e = NULL;
done:
    expr_free(e);
    return st;
}

void expr_free(struct expr *e) {
    if (!e)
        return;
    if (e->parser) {
        pthread_mutex_lock(&muparser);
        mupRelease(e->parser);
        pthread_mutex_unlock(&muparser);
    }
    free(e->text);
    free(e);
}

/* With the lock held. */
static status_t evaluate_in(double *out, struct expr *e, const struct case_dims *dims) {
    for (size_t i = 0; i < MAX_DIMS && e->scope->dims[i] != DIM_NONE; i++)
        e->dims[i] = (double)dim_get(dims, e->scope->dims[i]);
    for (size_t i = 0; i < e->scope->name_count; i++) {
        status_t st = evaluate_in(&e->names[i], e->scope->names[i].value, dims);
        if (st != OK)
            return st;
    }
    return evaluate(out, e);
}

static status_t evaluate_at(double *out, struct expr *e, struct case_dims dims) {
    pthread_mutex_lock(&muparser);
    status_t st = evaluate_in(out, e, &dims);
    pthread_mutex_unlock(&muparser);
    return st;
}

void expr_at(char *out, size_t size, const struct expr *e, struct case_dims dims) {
    dims_text(out, size, e->scope->dims, &dims);
}

static status_t refuse(const struct expr *e, double value, struct case_dims dims,
                       const char *expected) {
    char at[SHAPE_SIZE];
    expr_at(at, sizeof at, e, dims);
    return FAIL(ERR_SYNTAX, "`%s` = %.10g at %s: expected %s", e->text, value, at, expected);
}

status_t expr_real(double *out, struct expr *e, struct case_dims dims) {
    status_t st = evaluate_at(out, e, dims);
    if (st == OK && !isfinite(*out))
        return refuse(e, *out, dims, "a finite number");
    return st;
}

status_t expr_number(double *out, struct expr *e, struct case_dims dims) {
    status_t st = evaluate_at(out, e, dims);
    if (st == OK && !(*out >= 0 && *out < INFINITY))
        return refuse(e, *out, dims, "a finite number >= 0");
    return st;
}

status_t expr_integer(int64_t *out, struct expr *e, struct case_dims dims) {
    double value = 0;
    status_t st = evaluate_at(&value, e, dims);
    if (st != OK)
        return st;
    if (!(fabs(value) <= MAX_WHOLE && value == floor(value)))
        return refuse(e, value, dims, "a whole number");
    *out = (int64_t)value;
    return OK;
}

status_t expr_size(size_t *out, struct expr *e, struct case_dims dims) {
    int64_t value = 0;
    status_t st = expr_integer(&value, e, dims);
    if (st != OK)
        return st;
    if (value < 0)
        return refuse(e, (double)value, dims, "a whole number >= 0");
    *out = (size_t)value;
    return OK;
}
