/*
 * tests/oracle/test_attention.c - attention: enclosures against Arb and exact rationals, masks and
 * special values, properties; budgets against correct kernels, and against wrong ones.
 */
#include "oracle_test.h"

#include <float.h>
#include <gmp.h>
#include <math.h>
#include <time.h>

#include "attention_kernels.h"
#include "ball.h"
#include "judge.h"
#include "oracle/attention.h"
#include "oracle/oracle.h"

enum { MAX_KEYS = 600, MAX_DIM = 128, PREC = 500 };

/* A row and everything it points to. */
struct sample {
    double q[MAX_DIM], k[MAX_KEYS * MAX_DIM], v[MAX_KEYS * MAX_DIM], bias[MAX_KEYS], sink;
    unsigned char mask[MAX_KEYS];
    struct attention_row row;
    struct enclosure o[MAX_DIM], lse;
};

enum kind {
    KIND_NORMAL,
    KIND_SHARP,    /* large logits */
    KIND_LATE,     /* one dominant key near the end */
    KIND_RISING,   /* every key's logit above the last one's */
    KIND_EQUAL,    /* the same k everywhere, v of one sign: tied maxima */
    KIND_CONSTANT, /* v is the same everywhere */
    KIND_CANCEL,   /* v in pairs of opposite sign */
    KIND_LOW,      /* all logits far below 0 */
    KIND_KINDS
};

static double gauss(struct rng *rng) {
    double sum = 0;
    for (size_t i = 0; i < 6; i++)
        sum += rng_unit(rng) - 0.5;
    return sum * M_SQRT2;
}

static void make(struct sample *s, size_t keys, size_t dim, enum kind kind, const struct dtype *dt,
                 struct rng *rng) {
    s->row = (struct attention_row){.q = s->q,
                                    .k = s->k,
                                    .v = s->v,
                                    .k_stride = dim,
                                    .v_stride = dim,
                                    .head_dim = dim,
                                    .value_dim = dim,
                                    .keys = keys,
                                    .keys_used = keys,
                                    .query = 0,
                                    .queries = 1,
                                    .scale = (float)(1 / sqrt((double)dim))};
    double sharp = kind == KIND_SHARP ? 12 : 1;
    for (size_t i = 0; i < dim; i++)
        s->q[i] = round_to(dt, gauss(rng) * sharp);
    for (size_t j = 0; j < keys; j++) {
        for (size_t i = 0; i < dim; i++) {
            double k = gauss(rng), v = gauss(rng);
            double along = s->q[i] / sqrt((double)dim);
            if (kind == KIND_LATE && j == keys - 1 - keys / 10)
                k = 14 * along;
            if (kind == KIND_RISING)
                k = along * 40 * (double)j / (double)keys + 0.01 * k;
            if (kind == KIND_LOW)
                k = -400 * along + 0.05 * k;
            if (kind == KIND_EQUAL) {
                k = j == 0 ? k : s->k[i];
                v = fabs(v);
            }
            if (kind == KIND_CONSTANT)
                v = j == 0 ? v : s->v[i];
            if (kind == KIND_CANCEL && j % 2 == 1)
                v = -s->v[(j - 1) * dim + i];
            s->k[j * dim + i] = round_to(dt, k);
            s->v[j * dim + i] = round_to(dt, v);
        }
        s->bias[j] = round_to(dt, gauss(rng));
        if (rng_below(rng, 8) == 0) /* a mask by a finite number, as many write it */
            s->bias[j] = rng_below(rng, 2) ? -dtype_max(dt) : -10000;
        s->mask[j] = rng_below(rng, 3) > 0;
    }
    s->sink = (float)gauss(rng);
}

/* Turns some options on, by the bits of `which`. */
static void choose(struct sample *s, size_t which, struct rng *rng) {
    struct attention_row *row = &s->row;
    row->queries = 1 + (size_t)rng_below(rng, 2 * row->keys);
    row->query = (size_t)rng_below(rng, row->queries);
    if (which & 1)
        row->causal = true;
    if (which & 2) {
        row->windowed = true;
        row->window_left = (size_t)rng_below(rng, row->keys);
        row->window_right = (size_t)rng_below(rng, 3);
        row->window_sinks = (size_t)rng_below(rng, 3);
    }
    if (which & 4)
        row->bias = s->bias;
    if (which & 8)
        row->mask = s->mask;
    if (which & 16)
        row->softcap = (float)ldexp(1 + rng_unit(rng), (int)rng_below(rng, 6));
    if (which & 32)
        row->alibi_slope = 0.0625;
    if (which & 64)
        row->sink = &s->sink;
    if (which & 128)
        row->keys_used = row->keys - (size_t)rng_below(rng, row->keys);
}

static void enclose(struct sample *s) {
    assert_int_equal(attention_enclose(s->o, &s->lse, &s->row), OK);
}

static bool empty(const struct sample *s) {
    return s->lse.lo == -INFINITY;
}

/* ---- enclosures ------------------------------------------------------------------------------ */

/* The rule of the header once more, with signed numbers. */
static bool sees(const struct attention_row *row, long j) {
    long at = (long)row->query + (long)row->keys_used - (long)row->queries;
    if (j >= (long)row->keys_used || (row->causal && j > at))
        return false;
    if (row->windowed && j >= (long)row->window_sinks &&
        (j < at - (long)row->window_left || j > at + (long)row->window_right))
        return false;
    return (row->mask == NULL || row->mask[j]) && (row->bias == NULL || row->bias[j] != -INFINITY);
}

static void logit_by_arb(arb_t z, const struct attention_row *row, size_t j) {
    arb_t a, b;
    arb_init(a);
    arb_init(b);
    arb_zero(z);
    for (size_t i = 0; i < row->head_dim; i++) {
        arb_set_d(a, row->q[i]);
        arb_set_d(b, row->k[j * row->k_stride + i]);
        arb_addmul(z, a, b, PREC);
    }
    arb_set_d(a, row->scale);
    arb_mul(z, z, a, PREC);
    if (row->softcap > 0) {
        arb_set_d(a, row->softcap);
        arb_div(z, z, a, PREC);
        arb_tanh(z, z, PREC);
        arb_mul(z, z, a, PREC);
    }
    if (row->bias != NULL) {
        arb_set_d(a, row->bias[j]);
        arb_add(z, z, a, PREC);
    }
    double far = (double)row->query + (double)row->keys_used - (double)row->queries - (double)j;
    arb_set_d(a, row->alibi_slope);
    arb_set_d(b, fabs(far));
    arb_submul(z, a, b, PREC);
    arb_clear(a);
    arb_clear(b);
}

/* o and lse without any shift: balls do not overflow. */
static void check_against_arb(const struct sample *s, size_t which) {
    const struct attention_row *row = &s->row;
    arb_ptr o = _arb_vec_init((slong)row->value_dim);
    arb_t sum, w, v;
    arb_init(sum);
    arb_init(w);
    arb_init(v);
    for (size_t j = 0; j < row->keys; j++) {
        if (!sees(row, (long)j))
            continue;
        logit_by_arb(w, row, j);
        arb_exp(w, w, PREC);
        arb_add(sum, sum, w, PREC);
        for (size_t c = 0; c < row->value_dim; c++) {
            arb_set_d(v, row->v[j * row->v_stride + c]);
            arb_addmul(o + c, w, v, PREC);
        }
    }
    if (row->sink != NULL) {
        arb_set_d(w, *row->sink);
        arb_exp(w, w, PREC);
        arb_add(sum, sum, w, PREC);
    }
    if (arb_is_zero(sum)) {
        assert_true(empty(s));
        for (size_t c = 0; c < row->value_dim; c++)
            assert_true(is_exactly(s->o[c], 0));
    } else {
        for (size_t c = 0; c < row->value_dim; c++) {
            arb_div(w, o + c, sum, PREC);
            CHECK(meets(s->o[c], w), "options %zu: o[%zu] is not in [%a, %a]", which, c, s->o[c].lo,
                  s->o[c].hi);
            CHECK(s->o[c].hi - s->o[c].lo <= 0x1p-40 * fabs(s->o[c].lo) + 0x1p-78,
                  "options %zu: o[%zu] is wide", which, c);
        }
        arb_log(w, sum, PREC);
        CHECK(meets(s->lse, w), "options %zu: lse is not in [%a, %a]", which, s->lse.lo, s->lse.hi);
        assert_true(s->lse.hi - s->lse.lo <= 0x1p-40 * fabs(s->lse.lo));
    }
    _arb_vec_clear(o, (slong)row->value_dim);
    arb_clear(sum);
    arb_clear(w);
    arb_clear(v);
}

static void test_arb(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(90);
    size_t empties = 0;
    for (size_t which = 0; which < times(256); which++) {
        size_t keys = 1 + (size_t)rng_below(&rng, 40), dim = 1 + (size_t)rng_below(&rng, 12);
        make(&s, keys, dim, (enum kind)(which % KIND_KINDS), &dtypes[which % DT_COUNT], &rng);
        choose(&s, which, &rng);
        if (which % 5 == 0) /* products that no integer of 126 bits holds */
            for (size_t i = 0; i < dim; i++)
                s.k[i] = ldexp(s.k[i], -80 * (int)(i % 3));
        enclose(&s);
        check_against_arb(&s, which);
        empties += empty(&s);
    }
    assert_true(empties > 5 && empties < times(100));
}

/* Equal logits: o is the mean of the visible v, exactly rational. */
static void test_rational(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(91);
    mpq_t mean, t;
    mpq_inits(mean, t, NULL);
    for (size_t i = 0; i < times(60); i++) {
        make(&s, 1 + (size_t)rng_below(&rng, 60), 4, i % 2 ? KIND_EQUAL : KIND_CANCEL,
             &dtypes[DT_F32], &rng);
        choose(&s, i & 11, &rng);
        for (size_t c = 0; c < 4; c++)
            s.q[c] = 0;
        enclose(&s);
        for (size_t c = 0; c < 4 && !empty(&s); c++) {
            size_t count = 0;
            mpq_set_ui(mean, 0, 1);
            for (size_t j = 0; j < s.row.keys; j++)
                if (sees(&s.row, (long)j)) {
                    mpq_set_d(t, s.v[j * 4 + c]);
                    mpq_add(mean, mean, t);
                    count++;
                }
            mpq_set_ui(t, count, 1);
            mpq_div(mean, mean, t);
            mpq_set_d(t, s.o[c].lo);
            assert_true(mpq_cmp(t, mean) <= 0);
            mpq_set_d(t, s.o[c].hi);
            assert_true(mpq_cmp(t, mean) >= 0);
            assert_true(s.lse.lo <= log((double)count) + 1e-15 &&
                        s.lse.hi >= log((double)count) - 1e-15);
        }
    }
    mpq_clears(mean, t, NULL);
}

/* Two keys, one dimension: logits k, values v. */
static void test_special(void **state) {
    (void)state;
    const double inf = INFINITY;
    static const struct {
        double q, k[2], v[2], bias[2], cap;
        unsigned char mask[2];
        double o, lse; /* NaN, or exact */
    } table[] = {
        {1, {0, NAN}, {5, 7}, {0, 0}, 0, {1, 0}, 5, 0},           /* NaN where nothing is seen */
        {1, {0, 3}, {5, NAN}, {0, 0}, 0, {1, 0}, 5, 0},           /* O18 */
        {1, {0, NAN}, {5, NAN}, {0, -INFINITY}, 0, {1, 1}, 5, 0}, /* -Inf in the bias masks */
        {1, {0, NAN}, {5, 7}, {0, 0}, 0, {1, 1}, NAN, NAN},
        {1, {0, INFINITY}, {5, 7}, {0, 0}, 0, {1, 1}, NAN, INFINITY},
        {1, {0, -INFINITY}, {5, 7}, {0, 0}, 0, {1, 1}, 5, 0},
        {1, {0, -INFINITY}, {5, INFINITY}, {0, 0}, 0, {1, 1}, NAN, 0}, /* 0 Inf */
        {0, {0, INFINITY}, {5, 7}, {0, 0}, 0, {1, 1}, NAN, NAN},       /* 0 Inf in the logit */
        {1, {0, 0}, {5, INFINITY}, {0, -1}, 0, {1, 1}, INFINITY, .25},
        {1, {0, 0}, {INFINITY, -INFINITY}, {0, 0}, 0, {1, 1}, NAN, .25},
        {1, {0, 0}, {5, NAN}, {0, 0}, 0, {1, 1}, NAN, .25},
        {1, {0, 0}, {5, 7}, {0, 0}, 0, {0, 0}, 0, -INFINITY}, /* empty: O05 */
        {1, {NAN, NAN}, {NAN, NAN}, {0, 0}, 0, {0, 0}, 0, -INFINITY},
        {1, {-INFINITY, -INFINITY}, {5, 7}, {0, 0}, 0, {1, 1}, 0, -INFINITY},
        {1, {0, 0}, {5, 7}, {-INFINITY, -INFINITY}, 0, {1, 1}, 0, -INFINITY},
        {1, {0, 0}, {5, 7}, {0, INFINITY}, 0, {1, 1}, NAN, INFINITY},
        {1, {-2.45e5, 0}, {1, 7}, {0, 0}, 0, {1, 0}, 1, -2.45e5}, /* O06 */
        {133120,
         {133120, 0},
         {133120, 0},
         {0, 0},
         0,
         {1, 0},
         133120,
         0x1.0800000000000p34},                                 /* O10 */
        {1, {0, 0}, {5, 7}, {0, 0}, 1, {1, 0}, 5, 0},           /* O28 */
        {1, {0, -INFINITY}, {5, 5}, {0, 0}, 1, {1, 1}, 5, .25}, /* capped: -1, not masked */
        {1, {INFINITY, -INFINITY}, {5, 5}, {0, 0}, 2, {1, 1}, 5, .25},
        {1, {2000, 1999}, {0, 0}, {0, 0}, 0, {1, 1}, 0, .25},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct attention_row row = {.q = &table[i].q,
                                    .k = table[i].k,
                                    .v = table[i].v,
                                    .k_stride = 1,
                                    .v_stride = 1,
                                    .head_dim = 1,
                                    .value_dim = 1,
                                    .keys = 2,
                                    .keys_used = 2,
                                    .queries = 1,
                                    .scale = 1,
                                    .softcap = table[i].cap,
                                    .bias = table[i].bias,
                                    .mask = table[i].mask};
        struct enclosure o, lse;
        assert_int_equal(attention_enclose(&o, &lse, &row), OK);
        double width = 0x1p-50 * fabs(table[i].o);
        bool ok = is_exactly(o, table[i].o) ||
                  (o.lo <= table[i].o && o.hi >= table[i].o && o.hi - o.lo <= width);
        CHECK(ok, "%zu: o in [%a, %a]", i, o.lo, o.hi);
        if (i == 17) { /* 133120^2 */
            assert_true(is_exactly(lse, 133120.0 * 133120.0));
            continue;
        }
        /* .25 in the table: some finite number */
        CHECK(table[i].lse == .25 ? isfinite(lse.lo) : is_exactly(lse, table[i].lse),
              "%zu: lse in [%a, %a]", i, lse.lo, lse.hi);
    }
    (void)inf;
}

static void test_usage(void **state) {
    (void)state;
    double x[2] = {1, 1}, bad = NAN;
    struct enclosure o, lse;
    struct attention_row good = {.q = x,
                                 .k = x,
                                 .v = x,
                                 .k_stride = 1,
                                 .v_stride = 1,
                                 .head_dim = 1,
                                 .value_dim = 1,
                                 .keys = 2,
                                 .keys_used = 2,
                                 .queries = 1,
                                 .scale = 1},
                         row;
    assert_int_equal(attention_enclose(&o, &lse, &good), OK);
    row = good;
    row.keys_used = 3;
    assert_int_equal(attention_enclose(&o, &lse, &row), ERR_USAGE);
    row = good;
    row.query = 1;
    assert_int_equal(attention_enclose(&o, &lse, &row), ERR_USAGE);
    row = good;
    row.softcap = -1;
    assert_int_equal(attention_enclose(&o, &lse, &row), ERR_USAGE);
    row = good;
    row.scale = INFINITY;
    assert_int_equal(attention_enclose(&o, &lse, &row), ERR_USAGE);
    row = good;
    row.sink = &bad;
    assert_int_equal(attention_enclose(&o, &lse, &row), ERR_USAGE);
    row = good;
    row.keys = row.keys_used = 0; /* no keys at all */
    assert_int_equal(attention_enclose(&o, &lse, &row), OK);
    assert_true(is_exactly(o, 0) && is_exactly(lse, -INFINITY));
}

static void test_properties(void **state) {
    (void)state;
    static struct sample s, t;
    struct rng rng = rng_from_seed(92);
    for (size_t i = 0; i < times(40); i++) {
        /* v constant: o is that constant */
        make(&s, 1 + (size_t)rng_below(&rng, 200), 8, KIND_CONSTANT, &dtypes[DT_BF16], &rng);
        choose(&s, i & 63, &rng);
        enclose(&s);
        for (size_t c = 0; c < 8 && !empty(&s); c++) {
            assert_true(s.o[c].lo <= s.v[c] && s.o[c].hi >= s.v[c]);
            assert_true(s.o[c].hi - s.o[c].lo <= 0x1p-51 * fabs(s.v[c]));
        }
        /* causal, first query of as many as keys: key 0 alone */
        make(&s, 30, 8, KIND_NORMAL, &dtypes[DT_F16], &rng);
        s.row.queries = 30;
        s.row.causal = true;
        enclose(&s);
        for (size_t c = 0; c < 8; c++)
            assert_true(is_exactly(s.o[c], s.v[c]));
        /* the last query sees all, as without the mask */
        s.row.query = 29;
        enclose(&s);
        t = s;
        t.row.causal = false;
        assert_int_equal(attention_enclose(t.o, &t.lse, &t.row), OK);
        assert_true(s.o[3].lo == t.o[3].lo && s.lse.hi == t.lse.hi);
        /* a constant on all logits moves lse and not o */
        make(&s, 50, 8, KIND_NORMAL, &dtypes[DT_F16], &rng);
        enclose(&s);
        t = s;
        for (size_t j = 0; j < 50; j++)
            t.bias[j] = 1024;
        t.row.q = t.q, t.row.k = t.k, t.row.v = t.v, t.row.bias = t.bias;
        enclose(&t);
        for (size_t c = 0; c < 8; c++)
            assert_true(overlap(s.o[c], t.o[c]));
        assert_true(t.lse.lo <= s.lse.hi + 1024 + 0x1p-40 && t.lse.hi >= s.lse.lo + 1024 - 0x1p-40);
        /* keys in another order */
        t = s;
        t.row.k = t.k, t.row.v = t.v;
        for (size_t j = 0; j < 50; j++)
            for (size_t c = 0; c < 8; c++) {
                t.k[j * 8 + c] = s.k[(49 - j) * 8 + c];
                t.v[j * 8 + c] = s.v[(49 - j) * 8 + c];
            }
        enclose(&t);
        for (size_t c = 0; c < 8; c++)
            assert_true(overlap(s.o[c], t.o[c]));
        assert_true(overlap(s.lse, t.lse));
        /* what is not seen does not matter: NaN in every slot past keys_used and under the mask */
        t = s;
        t.row.q = t.q, t.row.k = t.k, t.row.v = t.v;
        t.row.keys_used = 40;
        t.row.mask = t.mask;
        t.mask[7] = 1;
        enclose(&t);
        struct enclosure before = t.o[2], lse = t.lse;
        for (size_t j = 0; j < 50; j++)
            for (size_t c = 0; c < 8 && (j >= 40 || t.mask[j] == 0); c++)
                t.k[j * 8 + c] = t.v[j * 8 + c] = NAN;
        enclose(&t);
        assert_true(t.o[2].lo == before.lo && t.o[2].hi == before.hi && t.lse.lo == lse.lo);
    }
}

/* The oldest key in a window counts (O29), and the first ones stay if asked for. */
static void test_window(void **state) {
    (void)state;
    struct attention_row row = {.keys = 5000,
                                .keys_used = 5000,
                                .query = 0,
                                .queries = 1,
                                .causal = true,
                                .windowed = true,
                                .window_left = 4095};
    assert_true(attention_visible(&row, 904) && !attention_visible(&row, 903));
    assert_true(attention_visible(&row, 4999) && !attention_visible(&row, 3));
    struct attention_row plain = {.keys = 10, .keys_used = 9, .queries = 1};
    assert_true(attention_visible(&plain, 8) && !attention_visible(&plain, 9));
    row.window_sinks = 4;
    assert_true(attention_visible(&row, 3) && !attention_visible(&row, 4));
    row.queries = 6000; /* more queries than keys: the first 1000 see nothing, not even these */
    assert_true(!attention_visible(&row, 0));
    row.query = 1000;
    assert_true(attention_visible(&row, 0) && !attention_visible(&row, 1));
}

/* One query of a long context: time, and memory by the keys. */
static void test_long(void **state) {
    (void)state;
    enum { KEYS = 16384, DIM = 128 };
    struct rng rng = rng_from_seed(93);
    double *k = malloc(sizeof *k * KEYS * DIM), *v = malloc(sizeof *v * KEYS * DIM), q[DIM];
    assert_true(k != NULL && v != NULL);
    for (size_t i = 0; i < DIM; i++)
        q[i] = round_to(&dtypes[DT_BF16], gauss(&rng));
    for (size_t i = 0; i < (size_t)KEYS * DIM; i++) {
        k[i] = round_to(&dtypes[DT_BF16], gauss(&rng));
        v[i] = i % DIM == 0 ? 3 : round_to(&dtypes[DT_BF16], gauss(&rng));
    }
    struct attention_row row = {.q = q,
                                .k = k,
                                .v = v,
                                .k_stride = DIM,
                                .v_stride = DIM,
                                .head_dim = DIM,
                                .value_dim = DIM,
                                .keys = KEYS,
                                .keys_used = KEYS,
                                .queries = 1,
                                .scale = 0x1.6a09e6p-4};
    struct enclosure o[DIM], lse;
    clock_t begin = clock();
    assert_int_equal(attention_enclose(o, &lse, &row), OK);
    print_message("attention: %d keys of %d in %.2f s\n", KEYS, DIM,
                  (double)(clock() - begin) / CLOCKS_PER_SEC);
    assert_true(o[0].lo <= 3 && o[0].hi >= 3 && o[0].hi - o[0].lo <= 0x1p-50);
    free(k);
    free(v);
}

/* ---- budgets --------------------------------------------------------------------------------- */

static const struct attention_kernel kernels[] = {
    {"f32 three steps", DT_F32, EXP_EXPF, DIVIDE_IEEE, 0, 0, 0, DT_F32, false, 0},
    {"f32 tiles", DT_F32, EXP_EXPF, DIVIDE_IEEE, 32, 0, 0, DT_F32, false, 0},
    {"f32 tiles, __expf", DT_F32, EXP_FAST, DIVIDE_RECIPROCAL, 32, 0, 0, DT_F32, false, 0},
    {"f32 tiles, folded", DT_F32, EXP_EX2_FOLDED, DIVIDE_IEEE, 16, 0, 0, DT_F32, false, 0},
    {"f32 tiles, folded, lazy", DT_F32, EXP_EX2_FOLDED, DIVIDE_IEEE, 16, 0, 0, DT_F32, false, 8},
    {"bf16 three steps", DT_BF16, EXP_EXPF, DIVIDE_IEEE, 0, 0, 0, DT_BF16, false, 0},
    {"bf16 Hopper", DT_BF16, EXP_EX2_FOLDED, DIVIDE_RECIPROCAL, 64, 16, 25, DT_BF16, false, 0},
    {"f16 Hopper", DT_F16, EXP_EX2_FOLDED, DIVIDE_RECIPROCAL, 64, 16, 25, DT_F16, false, 0},
    {"f16 Ampere, lazy", DT_F16, EXP_EX2_FOLDED, DIVIDE_IEEE, 64, 8, 24, DT_F16, false, 8},
    {"bf16 Hopper, sum of rounded P", DT_BF16, EXP_EX2_FOLDED, DIVIDE_IEEE, 64, 16, 25, DT_BF16,
     true, 0},
};

struct rhos {
    double o, lse, acc; /* acc: o before it is stored, against the budget of an f32 result */
    size_t void_rows;
};

static struct rhos judge(struct sample *s, const struct attention_kernel *k,
                         enum attention_fault fault) {
    double o_budget[MAX_DIM], acc_budget[MAX_DIM], lse_budget;
    float o[MAX_DIM], lse;
    struct numerics nu = attention_kernel_numerics(k, &s->row), acc = nu;
    acc.out = acc.acc;
    enclose(s);
    assert_int_equal(attention_budget(o_budget, &lse_budget, &s->row, s->o, &s->lse, &nu), OK);
    assert_int_equal(attention_budget(acc_budget, &lse_budget, &s->row, s->o, &s->lse, &acc), OK);
    attention_kernel_run(o, &lse, &s->row, k, fault);
    double (*rho)(const struct dtype *, float, struct enclosure, double) =
        fault == FAULT_NONE ? rho_of : rho_at_least;
    struct rhos r = {.lse = rho(&dtypes[DT_F32], lse, s->lse, lse_budget)};
    for (size_t c = 0; c < s->row.value_dim; c++) {
        r.o = fmax(r.o, rho(nu.out, o[c], s->o[c], o_budget[c]));
        r.acc = fmax(r.acc, rho(nu.acc, o[c], s->o[c], acc_budget[c]));
        r.void_rows += isinf(o_budget[c]) && c == 0;
    }
    return r;
}

static void test_budgets(void **state) {
    (void)state;
    static struct sample s;
    static const size_t sizes[] = {1, 2, 3, 5, 17, 64, 127, 129, 300};
    for (size_t a = 0; a < sizeof kernels / sizeof kernels[0]; a++) {
        const struct attention_kernel *k = &kernels[a];
        struct rng rng = rng_from_seed(94 + a);
        struct rhos worst = {0};
        for (size_t i = 0; i < times(720); i++) {
            static const size_t dims[] = {1, 2, 4, 16, 64};
            size_t keys = sizes[i % 9], dim = dims[rng_below(&rng, keys > 100 ? 4 : 5)];
            enum kind kind = (enum kind)(i / 9 % KIND_KINDS);
            make(&s, keys, dim, kind, &dtypes[k->type], &rng);
            if (i % 4 > 0)
                choose(&s, (size_t)rng_below(&rng, 256) & ~(size_t)64, &rng);
            if (i % 8 == 1 && k->tile > 0 && k->exp == EXP_EXPF)
                s.row.sink = &s.sink;
            for (size_t j = 0; k->exp == EXP_EX2_FOLDED && j < keys; j++)
                s.bias[j] = fmax(s.bias[j], -65504); /* times log2(e), the lowest overflows */
            struct rhos r = judge(&s, k, FAULT_NONE);
            CHECK(r.o <= 1 && r.lse <= 1 && r.acc <= 1,
                  "%s, row %zu: kind %d, %zu keys of %zu: rho %g, lse %g, acc %g", k->name, i, kind,
                  keys, dim, r.o, r.lse, r.acc);
            worst.o = fmax(worst.o, r.o);
            worst.acc = fmax(worst.acc, r.acc);
            worst.lse = fmax(worst.lse, r.lse);
            if (s.lse.lo > -1e5) /* not where the finite mask hides every key */
                worst.void_rows += r.void_rows;
        }
        print_message("attention %s: worst rho %.3f, before the store %.3f, lse %.3f, %zu void\n",
                      k->name, worst.o, worst.acc, worst.lse, worst.void_rows);
        /* the logit of a tensor core may be off by far more than it is: lse shows that in full */
        assert_int_equal(worst.void_rows, 0);
        assert_true(worst.o >= 0.3 && worst.lse >= (k->block > 0 ? 0.1 : 0.2));
    }
}

/* Weights just below a datum of bf16 above 1/2: truncation takes a whole step of each. */
static void make_truncatable(struct sample *s) {
    for (size_t j = 0; j < s->row.keys; j++) {
        s->k[j] = j == 0 ? 0 : -1;
        s->v[j] = 1.9375; /* so that the store rounds by little */
    }
    s->q[0] = 1;
    s->row.scale = (float)-log(0.5 * (1 + 0x1p-7) * (1 - 0x1p-13));
}

static void plant(struct sample *s, enum attention_fault fault) {
    struct attention_row *row = &s->row;
    switch (fault) {
    case FAULT_MAX_STUCK_AT_ZERO: /* the first tile is masked */
        row->mask = s->mask;
        for (size_t j = 0; j < row->keys; j++)
            s->mask[j] = j >= 64;
        break;
    case FAULT_SENTINEL: /* logits far below -5e4 */
        for (size_t i = 0; i < row->head_dim; i++)
            s->q[i] *= 256;
        break;
    case FAULT_SOFTCAP_LAST:
        row->softcap = 1;
        row->mask = s->mask;
        break;
    case FAULT_P_TRUNCATED:
        make_truncatable(s);
        break;
    case FAULT_WINDOW_SHORT:
        row->causal = row->windowed = true;
        row->window_left = 40;
        break;
    case FAULT_TOP_LEFT:
        row->causal = true;
        row->queries = 20;
        row->query = 5;
        break;
    case FAULT_ALIBI_SIGN:
        row->alibi_slope = 0.25;
        break;
    case FAULT_NO_SINK:
        row->sink = &s->sink;
        break;
    case FAULT_UNIFORM:
        row->causal = true;
        row->queries = 2 * row->keys;
        break;
    case FAULT_NONE:
    case FAULT_TAIL:
    case FAULT_NO_RESCALE:
    case FAULT_LSE_BASE_2:
    case FAULT_F16_SCORES:
    case FAULT_COUNT:
        break;
    }
}

/* Each fault breaks the budget of the kernel it is planted in; without it the same row passes. */
static void test_faults(void **state) {
    (void)state;
    static struct sample s;
    static const struct {
        enum attention_fault fault;
        size_t kernel, keys, dim;
        enum kind kind;
    } planted[] = {
        {FAULT_MAX_STUCK_AT_ZERO, 1, 160, 16, KIND_LOW},
        {FAULT_MAX_STUCK_AT_ZERO, 7, 160, 16, KIND_LOW},
        {FAULT_SENTINEL, 1, 20, 16, KIND_LOW},
        {FAULT_SENTINEL, 6, 20, 16, KIND_LOW},
        {FAULT_TAIL, 1, 129, 16, KIND_NORMAL},
        {FAULT_TAIL, 6, 129, 16, KIND_NORMAL},
        {FAULT_SOFTCAP_LAST, 1, 40, 16, KIND_NORMAL},
        {FAULT_SOFTCAP_LAST, 7, 40, 16, KIND_NORMAL},
        {FAULT_NO_RESCALE, 1, 129, 16, KIND_RISING},
        {FAULT_NO_RESCALE, 6, 129, 16, KIND_RISING},
        {FAULT_LSE_BASE_2, 3, 40, 16, KIND_NORMAL},
        {FAULT_P_TRUNCATED, 6, 65, 1, KIND_NORMAL},
        {FAULT_WINDOW_SHORT, 1, 160, 16, KIND_NORMAL},
        {FAULT_WINDOW_SHORT, 6, 160, 16, KIND_NORMAL},
        {FAULT_TOP_LEFT, 1, 40, 16, KIND_NORMAL},
        {FAULT_TOP_LEFT, 8, 40, 16, KIND_NORMAL},
        {FAULT_ALIBI_SIGN, 1, 40, 16, KIND_NORMAL},
        {FAULT_ALIBI_SIGN, 6, 40, 16, KIND_NORMAL},
        {FAULT_NO_SINK, 1, 40, 16, KIND_NORMAL},
        {FAULT_UNIFORM, 1, 40, 16, KIND_NORMAL},
        {FAULT_UNIFORM, 6, 40, 16, KIND_NORMAL},
        {FAULT_F16_SCORES, 6, 40, 16, KIND_SHARP},
        {FAULT_F16_SCORES, 1, 40, 16, KIND_NORMAL},
    };
    bool seen[FAULT_COUNT] = {false};
    struct rng rng = rng_from_seed(110);
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        const struct attention_kernel *k = &kernels[planted[i].kernel];
        make(&s, planted[i].keys, planted[i].dim, planted[i].kind, &dtypes[k->type], &rng);
        plant(&s, planted[i].fault);
        struct rhos clean = judge(&s, k, FAULT_NONE), r = judge(&s, k, planted[i].fault);
        CHECK(clean.o <= 1 && clean.lse <= 1, "%s, row %zu: rho %g, lse %g", k->name, i, clean.o,
              clean.lse);
        CHECK(r.o > 1 || r.lse > 1, "%s with fault %d goes unseen: rho %g, lse %g", k->name,
              planted[i].fault, r.o, r.lse);
        seen[planted[i].fault] = true;
    }
    for (int f = FAULT_NONE + 1; f < FAULT_COUNT; f++)
        assert_true(seen[f]);
}

/* The sentinel shows in the lse of an empty row as well (O05). */
static void test_empty_row(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(111);
    make(&s, 40, 16, KIND_NORMAL, &dtypes[DT_BF16], &rng);
    plant(&s, FAULT_UNIFORM);
    struct rhos clean = judge(&s, &kernels[6], FAULT_NONE);
    assert_true(clean.o == 0 && clean.lse == 0);
    assert_true(isinf(judge(&s, &kernels[6], FAULT_SENTINEL).lse));
}

/* Logits so large that a first try loses the bias: the precision must rise. */
static void test_huge_logits(void **state) {
    (void)state;
    double q = 0x1p50, k[] = {0x1p50, 0x1p50}, v[] = {1, -1}, bias[] = {0.3, 0.1};
    struct attention_row row = {.q = &q,
                                .k = k,
                                .v = v,
                                .k_stride = 1,
                                .v_stride = 1,
                                .head_dim = 1,
                                .value_dim = 1,
                                .keys = 2,
                                .keys_used = 2,
                                .queries = 1,
                                .scale = 1,
                                .bias = bias};
    struct enclosure o, lse;
    assert_int_equal(attention_enclose(&o, &lse, &row), OK);
    assert_true(o.hi - o.lo <= 0x1p-50 && fabs(o.lo - tanh(0.1)) <= 0x1p-50);

    /* sums beyond 127 bits: the largest integers there are, sixteen times */
    double wide[16], one = 1;
    for (size_t i = 0; i < 16; i++)
        wide[i] = i == 15 ? 1 : 0x1.fffffffffffffp61;
    row = (struct attention_row){.q = wide,
                                 .k = wide,
                                 .v = &one,
                                 .head_dim = 16,
                                 .value_dim = 1,
                                 .keys = 1,
                                 .keys_used = 1,
                                 .queries = 1,
                                 .scale = 1};
    assert_int_equal(attention_enclose(&o, &lse, &row), OK);
    assert_true(lse.lo > 0x1.dp127 && lse.hi < 0x1.ep127);
}

/* Two keys whose only error is one exponential, where ex2 is at its worst. */
static void test_worst_exponential(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(114);
    double worst = 0;
    make(&s, 2, 1, KIND_NORMAL, &dtypes[DT_F32], &rng);
    s.q[0] = s.row.scale = 1;
    s.k[0] = s.v[0] = 0;
    s.v[1] = 1;
    for (size_t i = 0; i < times(3000); i++) {
        s.k[1] = (float)-(0.02 + 0.06 * rng_unit(&rng));
        struct rhos r = judge(&s, &kernels[1], FAULT_NONE);
        assert_true(r.o <= 1 && r.lse <= 1);
        worst = fmax(worst, r.o);
    }
    print_message("attention, worst exponential: rho %.3f\n", worst);
    assert_true(worst > 0.25);

    /* and what the certified 2 ulp would do at a significand of 1 is in the budget, too */
    double budget, lse, p = 1 / (1 + exp(-s.k[1])), u = 0x1p-24;
    struct numerics nu = attention_kernel_numerics(&kernels[1], &s.row);
    assert_int_equal(attention_budget(&budget, &lse, &s.row, s.o, &s.lse, &nu), OK);
    assert_true(budget > 4 * u * p * (1 - p) + 2.6 * u * p); /* beside the sums' and the division */
}

/* Products that a tensor core cuts as much as it can: just under two steps of 2^-25 each. */
static void test_worst_truncation(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(115);
    make(&s, 1, 64, KIND_NORMAL, &dtypes[DT_BF16], &rng);
    s.row.scale = 1;
    for (size_t i = 0; i < 64; i++) {
        s.q[i] = 1;
        s.k[i] = i == 0 ? 1 : 0x1.fep-25;
    }
    struct rhos r = judge(&s, &kernels[6], FAULT_NONE);
    print_message("attention, worst truncation: rho of lse %.3f\n", r.lse);
    assert_true(r.lse > 0.4 && r.lse <= 1);
}

/* A key whose logit is -Inf without a mask has weight 0 and costs no budget. */
static void test_infinite_key(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(113);
    make(&s, 40, 1, KIND_NORMAL, &dtypes[DT_F32], &rng);
    s.q[0] = 1;
    s.k[7] = -INFINITY;
    struct rhos r = judge(&s, &kernels[1], FAULT_NONE);
    assert_true(r.o > 0 && r.o <= 1 && r.lse <= 1 && r.void_rows == 0);
    s.row.softcap = 2; /* tanh makes it -2 */
    r = judge(&s, &kernels[1], FAULT_NONE);
    assert_true(r.o > 0 && r.o <= 1 && r.lse <= 1 && r.void_rows == 0);
}

static void test_refusals(void **state) {
    (void)state;
    static struct sample s;
    struct rng rng = rng_from_seed(112);
    double o[MAX_DIM], lse;
    make(&s, 40, 16, KIND_NORMAL, &dtypes[DT_F32], &rng);
    s.row.softcap = 2;
    enclose(&s);
    const struct numerics good = attention_kernel_numerics(&kernels[1], &s.row);
    struct numerics nu = good;
    assert_int_equal(attention_budget(o, &lse, &s.row, s.o, &s.lse, &nu), OK);
    nu.tanh = TANH_NONE;
    assert_int_equal(attention_budget(o, &lse, &s.row, s.o, &s.lse, &nu), ERR_UNSUPPORTED);
    nu = good;
    nu.exp = EXP_NONE;
    assert_int_equal(attention_budget(o, &lse, &s.row, s.o, &s.lse, &nu), ERR_UNSUPPORTED);
    nu = good;
    nu.divide = DIVIDE_NONE;
    assert_int_equal(attention_budget(o, &lse, &s.row, s.o, &s.lse, &nu), ERR_UNSUPPORTED);
    nu = good;
    nu.log = LOG_NONE;
    assert_int_equal(attention_budget(o, &lse, &s.row, s.o, &s.lse, &nu), ERR_UNSUPPORTED);
    nu = good;
    nu.acc = nu.out = nu.in = &dtypes[DT_F16];
    assert_int_equal(attention_budget(o, &lse, &s.row, s.o, &s.lse, &nu), ERR_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arb),
        cmocka_unit_test(test_rational),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_empty_row),
        cmocka_unit_test(test_infinite_key),
        cmocka_unit_test(test_huge_logits),
        cmocka_unit_test(test_worst_exponential),
        cmocka_unit_test(test_worst_truncation),
        cmocka_unit_test(test_refusals),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    flint_cleanup();
    oracle_thread_done();
    return failed;
}
