/*
 * tests/oracle/test_rope.c - rope: enclosures against Arb, exact and special rows, properties;
 * budgets against correct kernels, and against wrong ones.
 */
#include "oracle_test.h"

#include <math.h>

#include "ball.h"
#include "judge.h"
#include "oracle/oracle.h"
#include "oracle/rope.h"

enum { DIM = 128, PREC = 400 };

static void make_row(double *x, size_t n, const struct dtype *dt, struct rng *rng) {
    for (size_t i = 0; i < n; i++)
        x[i] = round_to(dt, scaled_unit(rng, -0.5, -3, 6));
}

static void enclose(struct enclosure *out, const struct rope_row *row) {
    assert_int_equal(rope_enclose(out, row), OK);
}

/* ---- enclosures ------------------------------------------------------------------------------ */

/* The pair (a, b) at frequency i, by Arb's own power, sine and cosine. */
static void rotate_by_arb(arb_t first, arb_t second, const struct rope_row *row, size_t i, double a,
                          double b) {
    arb_t angle, sine, cosine, t;
    arb_init(angle);
    arb_init(sine);
    arb_init(cosine);
    arb_init(t);
    arb_set_d(angle, row->base);
    arb_set_ui(t, 2 * i);
    arb_div_ui(t, t, row->rotary_dim, PREC);
    arb_neg(t, t);
    arb_pow(angle, angle, t, PREC);
    if (row->freq != NULL)
        arb_set_d(angle, row->freq[i]);
    arb_set_d(t, row->position);
    arb_mul(angle, angle, t, PREC);
    arb_sin_cos(sine, cosine, angle, PREC);
    arb_set_d(t, a);
    arb_mul(first, t, cosine, PREC);
    arb_mul(second, t, sine, PREC);
    arb_set_d(t, b);
    arb_submul(first, t, sine, PREC);
    arb_addmul(second, t, cosine, PREC);
    arb_clear(angle);
    arb_clear(sine);
    arb_clear(cosine);
    arb_clear(t);
}

static void check_against_arb(const struct rope_row *row) {
    struct enclosure got[DIM];
    enclose(got, row);
    arb_t first, second;
    arb_init(first);
    arb_init(second);
    size_t half = row->rotary_dim / 2;
    for (size_t i = 0; i < half; i++) {
        bool split = row->layout == ROPE_HALF_SPLIT;
        size_t at = split ? i : 2 * i, and = split ? i + half : 2 * i + 1;
        rotate_by_arb(first, second, row, i, row->x[at], row->x[and]);
        CHECK(meets(got[at], first) && meets(got[and], second),
              "position %g, base %g, pair %zu: [%a, %a], [%a, %a]", row->position, row->base, i,
              got[at].lo, got[at].hi, got[and].lo, got[and].hi);
        CHECK(got[at].hi - got[at].lo <= 0x1p-40 * fabs(got[at].lo), "pair %zu is wide", i);
    }
    for (size_t j = row->rotary_dim; j < row->head_dim; j++)
        assert_true(is_exactly(got[j], row->x[j]));
    arb_clear(first);
    arb_clear(second);
}

static void test_arb(void **state) {
    (void)state;
    static const double positions[] = {1, 2, 7, 255, 4097, 131071, 1048575, 16777217, -3, 0.5};
    static const double bases[] = {10000, 500000, 1e6, 2, 0.5};
    struct rng rng = rng_from_seed(70);
    double x[DIM], freq[DIM / 2];
    for (size_t i = 0; i < times(100); i++) {
        make_row(x, DIM, &dtypes[DT_F32], &rng);
        for (size_t j = 0; j < DIM / 2; j++)
            freq[j] = (float)exp(-8 * rng_unit(&rng));
        struct rope_row row = {.x = x,
                               .head_dim = DIM,
                               .rotary_dim = 2 * (size_t)rng_below(&rng, DIM / 2 + 1),
                               .layout = (enum rope_layout)(i % 2),
                               .position = positions[i % 10],
                               .base = bases[rng_below(&rng, 5)],
                               .freq = i % 3 == 0 ? freq : NULL};
        check_against_arb(&row);
    }
}

/* The double nearest to a multiple of pi/2 (Kahan): the hardest range reduction there is. */
static void test_hard_angle(void **state) {
    (void)state;
    double x[2] = {1, 0}, freq[1] = {ldexp(6381956970095103, 797)};
    struct rope_row row = {
        .x = x, .head_dim = 2, .rotary_dim = 2, .position = 1, .base = 1, .freq = freq};
    struct enclosure got[2];
    enclose(got, &row);
    /* cos = -4.6871659242546277e-19: Muller, Elementary Functions, section 11.1 */
    assert_true(fabs(got[0].lo / -4.6871659242546277e-19 - 1) < 1e-15);
}

static void test_special(void **state) {
    (void)state;
    const double inf = INFINITY;
    double x[4] = {1, 2, 3, 4};
    struct rope_row row = {.x = x, .head_dim = 4, .rotary_dim = 4, .base = 10000};
    struct enclosure got[4];
    enclose(got, &row); /* position 0 */
    for (size_t j = 0; j < 4; j++)
        assert_true(is_exactly(got[j], x[j]));
    row.position = 1; /* sine and cosine positive */
    static const struct {
        double a, b, first, second;
    } table[] = {{NAN, 1, NAN, NAN},
                 {1, NAN, NAN, NAN},
                 {INFINITY, 1, INFINITY, INFINITY},
                 {1, INFINITY, -INFINITY, INFINITY},
                 {INFINITY, INFINITY, NAN, INFINITY},
                 {0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        x[0] = table[i].a;
        x[1] = table[i].b;
        enclose(got, &row);
        CHECK(is_exactly(got[0], table[i].first) && is_exactly(got[1], table[i].second),
              "{%g, %g}: [%g, %g], [%g, %g]", x[0], x[1], got[0].lo, got[0].hi, got[1].lo,
              got[1].hi);
        assert_true(isfinite(got[2].lo)); /* the other pair is untouched */
    }
    row.position = 0;
    x[0] = inf;
    x[1] = 1;
    enclose(got, &row); /* Inf * sin 0 */
    assert_true(is_exactly(got[0], inf) && enclosure_is_nan(got[1]));

    row.rotary_dim = 3;
    assert_int_equal(rope_enclose(got, &row), ERR_USAGE);
    row.rotary_dim = 6;
    assert_int_equal(rope_enclose(got, &row), ERR_USAGE);
    row.rotary_dim = 4;
    row.base = 0;
    assert_int_equal(rope_enclose(got, &row), ERR_USAGE);
    row.base = 2;
    row.position = NAN;
    assert_int_equal(rope_enclose(got, &row), ERR_USAGE);
}

/* Incident O34: cos 15962 = -0.908; the first frequency is 1 whatever the base. */
static void test_published(void **state) {
    (void)state;
    double x[2] = {1, 0};
    struct rope_row row = {
        .x = x, .head_dim = 2, .rotary_dim = 2, .position = 15962, .base = 10000};
    struct enclosure got[2];
    enclose(got, &row);
    assert_true(fabs(got[0].lo + 0.908) < 0.0005);
}

/* Rotations keep the norm, and the two layouts are one rotation on permuted entries. */
static void test_properties(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(71);
    double x[DIM], permuted[DIM];
    struct enclosure a[DIM], b[DIM];
    for (size_t i = 0; i < times(100); i++) {
        make_row(x, DIM, &dtypes[DT_BF16], &rng);
        double position = (double)rng_below(&rng, 1 << 20);
        struct rope_row row = {
            .x = x, .head_dim = DIM, .rotary_dim = DIM, .position = position, .base = 10000};
        enclose(a, &row);
        for (size_t j = 0; j < DIM; j += 2) {
            double before = x[j] * x[j] + x[j + 1] * x[j + 1];
            double after = a[j].lo * a[j].lo + a[j + 1].lo * a[j + 1].lo;
            assert_true(fabs(after - before) <= 0x1p-49 * before);
            permuted[j / 2] = x[j];
            permuted[j / 2 + DIM / 2] = x[j + 1];
        }
        row.x = permuted;
        row.layout = ROPE_HALF_SPLIT;
        enclose(b, &row);
        for (size_t j = 0; j < DIM; j += 2)
            assert_true(a[j].lo == b[j / 2].lo && a[j + 1].hi == b[j / 2 + DIM / 2].hi);
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

enum fault {
    FAULT_NONE,
    FAULT_BF16_POSITION, /* O34 */
    FAULT_LAYOUT,        /* the other one */
    FAULT_SIGN,          /* rotated backwards */
    FAULT_F32_ANGLE,     /* position * frequency in f32, unreduced: O35 */
    FAULT_TRUNCATE,
};

struct kernel {
    const char *name;
    enum trig_variant trig;
    enum dtype_id type;
    enum dtype_id table;
    bool f32_angle; /* the angle is a f32 product of a f32 frequency; else double, then f32 */
};

static const struct kernel kernels[] = {
    {"f32, angle in f32", TRIG_SINCOSF, DT_F32, DT_F32, true},
    {"f32, angle reduced in double", TRIG_SINCOSF, DT_F32, DT_F32, false},
    {"f32, fast, angle reduced in double", TRIG_FAST, DT_F32, DT_F32, false},
    {"bf16, angle reduced in double", TRIG_SINCOSF, DT_BF16, DT_F32, false},
    {"f16, f32 table", TRIG_TABLE, DT_F16, DT_F32, false},
    {"bf16, bf16 table", TRIG_TABLE, DT_BF16, DT_BF16, false},
};

static struct numerics numerics_of(const struct kernel *k) {
    /* f32 frequency and product: 2 u.  Reduced: 2^-50 in double, then pi rounded to f32's step. */
    bool table = k->trig == TRIG_TABLE;
    return (struct numerics){.in = &dtypes[k->type],
                             .acc = &dtypes[DT_F32],
                             .out = &dtypes[k->type],
                             .trig = k->trig,
                             .angle_rel = k->f32_angle ? 0x1.001p-23 : 0x1p-50,
                             .angle_abs = k->f32_angle || table ? 0 : 0x1p-23,
                             .table = &dtypes[k->table]};
}

/* Sine or cosine as the kernel gets it: the truth moved within what the variant may do. */
static float trig(const struct kernel *k, double value, struct rng *rng) {
    double off = 2 * rng_unit(rng) - 1;
    switch (k->trig) {
    case TRIG_NONE:
        break;
    case TRIG_SINCOSF: /* the correctly rounded, or a neighbour */
        return off > 0.5    ? nextafterf((float)value, 2)
               : off < -0.5 ? nextafterf((float)value, -2)
                            : (float)value;
    case TRIG_FAST:
        return (float)(value + off * 0x1.7fp-22); /* 2^-21.41 and a rounding stay within 2^-21.19 */
    case TRIG_TABLE:
        return (float)round_to(&dtypes[k->table], value);
    }
    return NAN;
}

static void simulate(float *y, const struct rope_row *row, const struct kernel *k, enum fault fault,
                     struct rng *rng) {
    const struct dtype *dt = &dtypes[k->type];
    size_t half = row->rotary_dim / 2;
    bool split = (row->layout == ROPE_HALF_SPLIT) != (fault == FAULT_LAYOUT);
    double position =
        fault == FAULT_BF16_POSITION ? round_to(&dtypes[DT_BF16], row->position) : row->position;
    for (size_t i = 0; i < half; i++) {
        double freq = pow(row->base, -(double)(2 * i) / (double)row->rotary_dim), angle;
        if (k->f32_angle || fault == FAULT_F32_ANGLE)
            angle = (float)position * (float)freq;
        else
            angle = position * freq;
        if (k->trig != TRIG_TABLE && !k->f32_angle)
            angle = (float)remainder(angle, 2 * M_PI);
        float s = trig(k, sin(angle), rng), c = trig(k, cos(angle), rng);
        if (fault == FAULT_SIGN)
            s = -s;
        size_t at = split ? i : 2 * i, and = split ? i + half : 2 * i + 1;
        float a = (float)row->x[at], b = (float)row->x[and];
        float first = a * c - b * s, second = fmaf(a, s, b * c);
        enum rounding how = fault == FAULT_TRUNCATE ? ROUND_ZERO : ROUND_NEAREST;
        y[at] = (float)dtype_to_double(dt, dtype_from_double(dt, first, how));
        y[and] = (float)dtype_to_double(dt, dtype_from_double(dt, second, how));
    }
    for (size_t j = row->rotary_dim; j < row->head_dim; j++)
        y[j] = (float)row->x[j];
}

static double worst_rho(const struct rope_row *row, const struct kernel *k, enum fault fault,
                        struct rng *rng) {
    struct enclosure want[DIM];
    double budget[DIM], worst = 0;
    float y[DIM];
    struct numerics nu = numerics_of(k);
    const struct dtype *dt = &dtypes[k->type];
    enclose(want, row);
    assert_int_equal(rope_budget(budget, row, want, &nu), OK);
    simulate(y, row, k, fault, rng);
    for (size_t j = 0; j < row->head_dim; j++) {
        double r = fault == FAULT_NONE ? rho_of(dt, y[j], want[j], budget[j])
                                       : rho_at_least(dt, y[j], want[j], budget[j]);
        worst = fmax(worst, r);
    }
    return worst;
}

static struct rope_row make_case(double *x, const struct kernel *k, double position, size_t i,
                                 struct rng *rng) {
    make_row(x, DIM, &dtypes[k->type], rng);
    return (struct rope_row){.x = x,
                             .head_dim = DIM,
                             .rotary_dim = i % 3 == 0 ? DIM / 2 : DIM,
                             .layout = (enum rope_layout)(i % 2),
                             .position = position,
                             .base = i % 4 ? 10000 : 500000};
}

static void test_budgets(void **state) {
    (void)state;
    double x[DIM];
    for (size_t a = 0; a < sizeof kernels / sizeof kernels[0]; a++) {
        struct rng rng = rng_from_seed(72 + a);
        double worst = 0;
        for (size_t i = 0; i < times(150); i++) {
            double position = (double)rng_below(&rng, (uint64_t)1 << rng_below(&rng, 21));
            struct rope_row row = make_case(x, &kernels[a], position, i, &rng);
            double r = worst_rho(&row, &kernels[a], FAULT_NONE, &rng);
            CHECK(r <= 1, "%s at position %g: rho %g", kernels[a].name, position, r);
            worst = fmax(worst, r);
        }
        print_message("rope %s: worst rho %.3f\n", kernels[a].name, worst);
        assert_true(worst >= 0.3);
    }
}

/* Inf times a sine or cosine that the kernel may have with the other sign, or as 0. */
static void test_infinities(void **state) {
    (void)state;
    static const double right_angle[] = {M_PI_2}, slant[] = {0.7}, none[] = {0};
    double x[2] = {INFINITY, 1}, budget[2];
    struct enclosure want[2];
    struct rope_row row = {.x = x, .head_dim = 2, .rotary_dim = 2, .position = 1};
    const struct numerics nu = numerics_of(&kernels[0]);
    static const struct {
        const double *freq;
        double a, b, first, second;
    } table[] = {{right_angle, INFINITY, 1, INFINITY, 0}, /* cosine 6e-17 */
                 {right_angle, 1, -INFINITY, 0, INFINITY},
                 {slant, INFINITY, 1, 0, 0},
                 {slant, INFINITY, -INFINITY, 0, 0},
                 {none, INFINITY, 1, 0, 0}, /* a sine of exactly 0 */
                 {right_angle, NAN, 1, 0, 0}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        row.freq = table[i].freq;
        x[0] = table[i].a;
        x[1] = table[i].b;
        enclose(want, &row);
        assert_int_equal(rope_budget(budget, &row, want, &nu), OK);
        CHECK(budget[0] == table[i].first && budget[1] == table[i].second, "%zu: budgets %g and %g",
              i, budget[0], budget[1]);
    }
}

static void test_faults(void **state) {
    (void)state;
    static const struct {
        enum fault fault;
        size_t kernel;
        double position;
    } planted[] = {
        {FAULT_BF16_POSITION, 0, 15962},
        {FAULT_BF16_POSITION, 1, 257},
        {FAULT_BF16_POSITION, 3, 15962},
        {FAULT_BF16_POSITION, 5, 1001},
        {FAULT_LAYOUT, 0, 3},
        {FAULT_LAYOUT, 5, 3},
        {FAULT_SIGN, 1, 1},
        {FAULT_SIGN, 4, 100},
        {FAULT_F32_ANGLE, 1, 131071},
        {FAULT_F32_ANGLE, 2, 131071},
        {FAULT_F32_ANGLE, 3, 1048575},
        {FAULT_TRUNCATE, 3, 100},
        {FAULT_TRUNCATE, 4, 100},
    };
    struct rng rng = rng_from_seed(80);
    double x[DIM];
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        const struct kernel *k = &kernels[planted[i].kernel];
        struct rope_row row = make_case(x, k, planted[i].position, 1, &rng);
        double r = worst_rho(&row, k, planted[i].fault, &rng);
        CHECK(r > 1, "%s with fault %d at %g goes unseen: rho %g", k->name, planted[i].fault,
              planted[i].position, r);
    }
}

static void test_refusals(void **state) {
    (void)state;
    double x[2] = {1, 2}, budget[2];
    struct rope_row row = {.x = x, .head_dim = 2, .rotary_dim = 2, .base = 10000, .position = 3};
    struct enclosure want[2];
    enclose(want, &row);
    struct numerics nu = numerics_of(&kernels[0]);
    nu.trig = TRIG_NONE;
    assert_int_equal(rope_budget(budget, &row, want, &nu), ERR_UNSUPPORTED);
    nu.trig = TRIG_TABLE;
    nu.table = NULL;
    assert_int_equal(rope_budget(budget, &row, want, &nu), ERR_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arb),        cmocka_unit_test(test_hard_angle),
        cmocka_unit_test(test_special),    cmocka_unit_test(test_published),
        cmocka_unit_test(test_properties), cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_infinities), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_refusals),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    flint_cleanup();
    oracle_thread_done();
    return failed;
}
