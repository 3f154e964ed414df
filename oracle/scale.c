/* oracle/scale.c - the sizes of what a result is the sum of.  In double: no bound rests on them. */
#include <math.h>

#include "oracle/op_impl.h"
#include "oracle/rope_impl.h"

static double or_zero(double x) {
    return isfinite(x) ? x : 0;
}

static struct result_scale entries(const struct oracle_row *row) {
    struct result_scale s = {0};
    for (size_t i = 0; i < row->cols; i++) {
        s.term = fmax(s.term, fabs(or_zero(row->x[i])));
        s.plain += fabs(or_zero(row->x[i]));
    }
    return s;
}

void sum_scale(struct result_scale *scale, const struct oracle_row *row) {
    *scale = entries(row);
}

void max_scale(struct result_scale *scale, const struct oracle_row *row) {
    *scale = entries(row);
    scale->plain = scale->term;
}

/* x_j / s, mean / s and b_j, s = sqrt(variance + eps). */
static void norm_scale(struct result_scale *scale, const struct norm_row *row, bool centred) {
    double sum = 0, squares = 0, n = (double)row->cols;
    for (size_t i = 0; i < row->cols; i++)
        sum += row->x[i];
    double mean = centred ? sum / n : 0;
    for (size_t i = 0; i < row->cols; i++)
        squares += (row->x[i] - mean) * (row->x[i] - mean);
    double root = sqrt(squares / n + row->eps);
    for (size_t j = 0; j < row->cols; j++) {
        double w = row->weight ? fabs(row->weight[j]) : 1, b = row->bias ? fabs(row->bias[j]) : 0;
        double x = or_zero(fabs(row->x[j]) / root * w), m = or_zero(fabs(mean) / root * w);
        b = or_zero(b);
        scale[j] = (struct result_scale){fmax(fmax(x, m), b), x + m + b};
    }
}

void layernorm_scale(struct result_scale *scale, const struct oracle_row *row) {
    norm_scale(scale, row->norm, true);
}

void rmsnorm_scale(struct result_scale *scale, const struct oracle_row *row) {
    norm_scale(scale, row->norm, false);
}

/* a cos t and b sin t, no larger than a and b. */
void rope_scale(struct result_scale *scale, const struct oracle_row *row) {
    const struct rope_row *r = row->rope;
    for (size_t j = 0; j < r->head_dim; j++)
        scale[j] = (struct result_scale){0};
    for (size_t i = 0; i < r->rotary_dim / 2; i++) {
        struct rope_pair at = rope_pair_at(r, i);
        double a = fabs(or_zero(r->x[at.first])), b = fabs(or_zero(r->x[at.second]));
        scale[at.first] = scale[at.second] = (struct result_scale){fmax(a, b), a + b};
    }
}

/* P v is no larger than the column's largest visible |v|; lse is a logarithm, its scale is 1. */
void attention_scale(struct result_scale *scale, const struct oracle_row *row) {
    const struct attention_row *r = row->attention;
    for (size_t c = 0; c < r->value_dim; c++)
        scale[c] = (struct result_scale){0};
    for (size_t j = 0; j < r->keys_used; j++) {
        if (!attention_visible(r, j))
            continue;
        const double *v = r->v + j * r->v_stride;
        for (size_t c = 0; c < r->value_dim; c++)
            scale[c].term = fabs(v[c]) > scale[c].term && isfinite(v[c]) ? fabs(v[c]) : scale[c].term;
    }
    for (size_t c = 0; c < r->value_dim; c++)
        scale[c].plain = scale[c].term;
    scale[r->value_dim] = (struct result_scale){1, 1};
}
