/*
 * tests/oracle/test_tier_verdict.c - attention, norms, rope: element by element the verdict of the
 * tiers is MPFR's.
 *
 *   test_tier_verdict [ELEMENTS]    of each op; 12000 unless told
 *
 * Outputs are honest, or data within three of an edge of their budget, or special values; or the
 * budget itself is put where only a tight enclosure can tell.  The comparison is that of
 * gate/judge.c, for the ops that the gate's own test (tests/gate/test_tiers.c) does not have.
 */
#include "tests/oracle/oracle_test.h"

#include <string.h>

#include "oracle/oracle.h"
#include "oracle/tier.h"
#include "oracle/tier_attention.h"
#include "oracle/tier_norm.h"
#include "oracle/ulp.h"

enum { MAX = 48, MAX_KEYS = 40 };

static size_t wanted_elements = 12000;

/* ---- one element: as gate/judge.c ---------------------------------------------------------------- */

enum state { WITHIN, BEYOND, OPEN, WRONG_CLASS };

static bool too_loose(const struct dtype *dt, struct enclosure want) {
    if (want.lo == want.hi || enclosure_is_nan(want))
        return false;
    double outer = fmax(fabs(want.lo), fabs(want.hi)), inner = fmin(fabs(want.lo), fabs(want.hi));
    if (want.lo < 0 && want.hi > 0)
        inner = 0;
    return !(outer < dtype_max(dt)) || !(want.hi - want.lo <= 0x1p-20 * ulp_size(dt, inner));
}

static enum state compare(const struct dtype *dt, uint32_t got, struct enclosure want, double lo,
                          double hi, bool final) {
    struct ulp_error e = ulp_error(dt, got, want);
    if (lo == INFINITY)
        return WITHIN; /* nothing is claimed */
    if (!final && (!(hi <= lo * (1 + 0x1p-30)) || too_loose(dt, want)))
        return OPEN;
    if (e.outcome == ULP_CLASS_MISMATCH)
        return WRONG_CLASS;
    if (e.outcome == ULP_CLASS_MATCH)
        return WITHIN;
    return !(e.abs_lo <= hi) ? BEYOND : !(e.abs_hi <= lo) ? OPEN : WITHIN;
}

/* ---- an op --------------------------------------------------------------------------------------- */

/* One row, its results one after another. */
struct row {
    size_t n;
    struct numerics nu;
    const struct dtype *out[MAX]; /* of each result */
    double x[MAX], k[MAX_KEYS * MAX], v[MAX_KEYS * MAX], bias[MAX_KEYS];
    struct attention_row attention;
    struct norm_row norm;
    struct rope_row rope;
    bool centred;
};

struct subject {
    const char *name;
    void (*make)(struct row *r, size_t number, struct rng *rng);
    status_t (*enclose)(struct enclosure *out, enum tier *tier, const struct row *r);
    status_t (*budget)(double *out, const struct row *r, const struct enclosure *want);
    status_t (*budgets)(double *lo, double *hi, const struct row *r, const struct enclosure *want);
};

static double gauss(struct rng *rng) {
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += rng_unit(rng) - 0.5;
    return (float)(sum * M_SQRT2);
}

static void begin(struct row *r, struct rng *rng) {
    memset(r, 0, sizeof *r);
    r->nu = (struct numerics){.in = &dtypes[DT_F32],
                              .acc = &dtypes[DT_F32],
                              .out = &dtypes[rng_below(rng, DT_COUNT)],
                              .flush = rng_below(rng, 2)};
    for (size_t i = 0; i < MAX; i++)
        r->out[i] = r->nu.out;
}

static void make_attention(struct row *r, size_t number, struct rng *rng) {
    const size_t dim = 1 + rng_below(rng, 12), keys = 1 + rng_below(rng, MAX_KEYS);
    begin(r, rng);
    r->n = dim + 1;
    r->out[dim] = r->nu.acc;
    r->nu.exp = (enum exp_variant)(1 + rng_below(rng, 4));
    r->nu.divide = (enum divide_variant)(1 + rng_below(rng, 3));
    r->nu.log = LOG_LOGF;
    r->nu.tanh = TANH_TANHF;
    r->nu.rescales = (double)rng_below(rng, 5);
    r->nu.sum_height = (double)(1 + rng_below(rng, keys));
    r->nu.qk = number % 2 ? (struct accumulation){.block = 8, .bits = 25}
                          : (struct accumulation){.height = (double)dim};
    r->nu.pv = number % 2 ? r->nu.qk : (struct accumulation){.height = (double)keys};
    r->nu.p_type = number % 3 ? NULL : &dtypes[DT_BF16];
    for (size_t i = 0; i < dim; i++)
        r->x[i] = gauss(rng) * (number % 7 == 0 ? 20 : 1);
    for (size_t i = 0; i < keys * dim; i++) {
        r->k[i] = gauss(rng);
        r->v[i] = gauss(rng) * (number % 5 == 0 ? 0x1p-135 : number % 5 == 1 ? 0x1p126 : 1);
    }
    for (size_t j = 0; j < keys; j++)
        r->bias[j] = rng_below(rng, 6) ? gauss(rng) : rng_below(rng, 2) ? -INFINITY : -10000;
    if (number % 31 == 0)
        r->k[rng_below(rng, keys * dim)] = NAN;
    if (number % 37 == 0)
        r->v[rng_below(rng, keys * dim)] = INFINITY;
    r->attention = (struct attention_row){.q = r->x,
                                          .k = r->k,
                                          .v = r->v,
                                          .k_stride = dim,
                                          .v_stride = dim,
                                          .head_dim = dim,
                                          .value_dim = dim,
                                          .keys = keys,
                                          .keys_used = keys,
                                          .query = rng_below(rng, keys),
                                          .queries = keys,
                                          .scale = (float)(1 / sqrt((double)dim)),
                                          .causal = number % 4 == 1,
                                          .softcap = number % 6 == 0 ? 20 : 0,
                                          .alibi_slope = number % 8 == 0 ? 0.25 : 0,
                                          .bias = number % 3 == 0 ? r->bias : NULL};
}

static status_t enclose_attention(struct enclosure *out, enum tier *tier, const struct row *r) {
    return attention_tier_enclose(out, out + r->n - 1, tier, &r->attention, 1);
}

static status_t budget_attention(double *out, const struct row *r, const struct enclosure *want) {
    return attention_budget(out, out + r->n - 1, &r->attention, want, want + r->n - 1, &r->nu);
}

static status_t budgets_attention(double *lo, double *hi, const struct row *r,
                                  const struct enclosure *want) {
    const struct oracle_row row = {.attention = &r->attention};
    return tier_budgets(lo, hi, op_find("attention"), &row, want, &r->nu);
}

static void make_norm(struct row *r, size_t number, struct rng *rng) {
    begin(r, rng);
    r->n = 1 + rng_below(rng, MAX);
    r->centred = number % 2;
    r->nu.variance = (enum variance_variant)(1 + rng_below(rng, 3));
    r->nu.rsqrt = (enum rsqrt_variant)(1 + rng_below(rng, 2));
    r->nu.sum_height = (double)(1 + rng_below(rng, r->n));
    double centre = number % 5 == 0 ? 4000 : 0;
    for (size_t i = 0; i < r->n; i++) {
        r->x[i] = (float)(centre + gauss(rng) * (number % 7 == 0 ? 0x1p-70 : 1));
        r->k[i] = gauss(rng) * (number % 11 == 0 ? 60000 : 1);
        r->v[i] = gauss(rng);
    }
    if (number % 31 == 0)
        r->x[0] = INFINITY;
    r->norm = (struct norm_row){.x = r->x,
                                .cols = r->n,
                                .weight = number % 3 ? r->k : NULL,
                                .bias = number % 4 ? NULL : r->v,
                                .eps = number % 2 ? 1e-5 : 1e-12,
                                .contract = number % 9 == 0 ? NORM_ROUND_FIRST : NORM_ROUND_LAST,
                                .rounded = &dtypes[rng_below(rng, DT_COUNT)]};
}

static status_t enclose_norm(struct enclosure *out, enum tier *tier, const struct row *r) {
    return r->centred ? layernorm_tier_enclose(out, tier, &r->norm)
                      : rmsnorm_tier_enclose(out, tier, &r->norm);
}

static status_t budget_norm(double *out, const struct row *r, const struct enclosure *want) {
    return r->centred ? layernorm_budget(out, &r->norm, want, &r->nu)
                      : rmsnorm_budget(out, &r->norm, want, &r->nu);
}

static void make_rope(struct row *r, size_t number, struct rng *rng) {
    begin(r, rng);
    r->n = 2 * (1 + rng_below(rng, MAX / 2));
    r->nu.trig = number % 2 ? TRIG_SINCOSF : TRIG_FAST;
    r->nu.angle_rel = 0x1p-23;
    for (size_t i = 0; i < r->n; i++)
        r->x[i] = gauss(rng) * (number % 7 == 0 ? 60000 : number % 7 == 1 ? 0x1p-130 : 1);
    if (number % 31 == 0)
        r->x[0] = NAN;
    r->rope = (struct rope_row){.x = r->x,
                                .head_dim = r->n,
                                .rotary_dim = r->n,
                                .layout = number % 2 ? ROPE_INTERLEAVED : ROPE_HALF_SPLIT,
                                .position = (double)rng_below(rng, number % 3 ? 100 : 100000),
                                .base = 10000};
}

static status_t enclose_rope(struct enclosure *out, enum tier *tier, const struct row *r) {
    return rope_tier_enclose(out, tier, &r->rope, 1);
}

static status_t budget_rope(double *out, const struct row *r, const struct enclosure *want) {
    return rope_budget(out, &r->rope, want, &r->nu);
}

/* Where a budget looks at the size of its own result only: at both ends, as tier_budgets. */
static status_t budgets_at_ends(const struct subject *s, double *lo, double *hi,
                                const struct row *r, const struct enclosure *want) {
    struct enclosure end[MAX];
    if (s->budgets)
        return s->budgets(lo, hi, r, want);
    for (size_t j = 0; j < r->n; j++)
        end[j] = (struct enclosure){want[j].lo, want[j].lo};
    assert_int_equal(s->budget(lo, r, end), OK);
    for (size_t j = 0; j < r->n; j++)
        end[j] = (struct enclosure){want[j].hi, want[j].hi};
    assert_int_equal(s->budget(hi, r, end), OK);
    for (size_t j = 0; j < r->n; j++) {
        double least = fmin(lo[j], hi[j]), most = fmax(lo[j], hi[j]);
        bool exact = want[j].lo == want[j].hi || enclosure_is_nan(want[j]);
        lo[j] = exact ? least : least * (1 - 0x1p-40);
        hi[j] = exact ? most : most * (1 + 0x1p-40);
    }
    return OK;
}

/* ---- a row, judged both ways --------------------------------------------------------------------- */

struct trial {
    struct row row;
    struct enclosure slow[MAX];
    double budget[MAX]; /* for it */
    size_t chosen;      /* the result whose budget is put at an edge, or MAX */
    uint32_t got[MAX];
    enum state state[MAX];
    size_t judged, failed, decided[TIER_COUNT];
};

static uint32_t nearest(const struct dtype *dt, double v) {
    return dtype_from_double(dt, v, ROUND_NEAREST);
}

static void make_outputs(struct trial *t, size_t number, struct rng *rng) {
    const double special[] = {NAN, INFINITY, -INFINITY, 0, 1};
    for (size_t j = 0; j < t->row.n; j++) {
        const struct dtype *dt = t->row.out[j];
        struct enclosure want = t->slow[j];
        double edge = want.hi + t->budget[j] * (rng_below(rng, 2) ? 1 : -1);
        t->got[j] = nearest(dt, want.lo);
        if (number % 4 == 1 || (number % 4 == 2 && rng_below(rng, 8) == 0)) {
            uint32_t bits = nearest(dt, edge);
            int64_t top = dtype_ordinal(dt, nearest(dt, INFINITY));
            int64_t moved = (int64_t)rng_below(rng, 7) - 3;
            if (dtype_classify(dt, bits) != CLASS_NAN && llabs(dtype_ordinal(dt, bits)) < top - 3)
                bits = dtype_from_ordinal(dt, dtype_ordinal(dt, bits) + moved);
            t->got[j] = bits;
        }
        if (number % 16 == 3 && rng_below(rng, 10) == 0)
            t->got[j] = nearest(dt, special[rng_below(rng, 5)]);
    }
}

/* A budget that ends within MPFR's enclosure, next to it, or a step or two of double away. */
static void put_at_edge(struct trial *t, size_t number, struct rng *rng) {
    size_t j = rng_below(rng, t->row.n);
    const struct dtype *dt = t->row.out[j];
    struct enclosure want = t->slow[j];
    t->chosen = MAX;
    if (number % 4 != 0 || !isfinite(want.lo) || !isfinite(want.hi) || want.lo == want.hi ||
        !(fabs(want.hi) < dtype_max(dt) / 2))
        return;
    t->got[j] = nearest(dt, want.lo * (1 + 0x1p-9) + 0x1p-60);
    struct ulp_error e = ulp_error(dt, t->got[j], want);
    const double near = 2 * 0x1p-52 * fmax(fabs(want.lo), e.abs_hi);
    const double edges[] = {e.abs_hi,        e.abs_lo,        (e.abs_lo + e.abs_hi) / 2,
                            e.abs_hi + near, e.abs_lo - near, e.abs_hi + 512 * near};
    t->budget[j] = edges[rng_below(rng, 6)];
    t->chosen = t->budget[j] > 0 ? j : MAX;
}

static void judge(struct trial *t, const struct subject *s, enum tier first) {
    struct enclosure want[MAX];
    double lo[MAX], hi[MAX];
    const struct row *r = &t->row;
    for (size_t j = 0; j < r->n; j++)
        t->state[j] = OPEN;
    for (enum tier tier = first; tier < TIER_COUNT; tier++) {
        bool open = false;
        assert_int_equal(s->enclose(want, &tier, r), OK);
        if (tier == TIER_MPFR) {
            assert_int_equal(s->budget(lo, r, want), OK);
            memcpy(hi, lo, sizeof hi);
        } else {
            assert_int_equal(budgets_at_ends(s, lo, hi, r, want), OK);
        }
        if (t->chosen < MAX)
            lo[t->chosen] = hi[t->chosen] = t->budget[t->chosen];
        for (size_t j = 0; j < r->n; j++) {
            if (t->state[j] == OPEN) {
                t->state[j] =
                    compare(r->out[j], t->got[j], want[j], lo[j], hi[j], tier == TIER_MPFR);
                t->decided[tier] += first == TIER_F64 && (t->state[j] != OPEN || tier == TIER_MPFR);
            }
            open |= t->state[j] == OPEN;
        }
        if (!open)
            break;
    }
}

/* The common look may say only what is so. */
static void check_within(const struct trial *t, const enum state *state, const char *what) {
    const struct row *r = &t->row;
    struct tier_extremes e;
    double o[MAX];
    if (t->chosen < MAX)
        return;
    for (size_t j = 0; j < r->n; j++)
        o[j] = dtype_to_double(r->out[j], t->got[j]);
    assert_int_equal(attention_within(&e, &r->attention, 1, o, &o[r->n - 1], &r->nu), OK);
    for (size_t j = 0; j < r->n && e.within; j++)
        CHECK(state[j] == WITHIN, "%s: all is within, and [%zu] is not", what, j);
}

static void verdicts_agree(const struct subject *s, uint64_t seed) {
    static struct trial t;
    enum state slow[MAX];
    struct rng rng = rng_from_seed(seed);
    memset(&t, 0, sizeof t);
    for (size_t number = 0; t.judged < times(wanted_elements); number++) {
        enum tier last = TIER_MPFR;
        s->make(&t.row, number, &rng);
        assert_int_equal(s->enclose(t.slow, &last, &t.row), OK);
        assert_int_equal(s->budget(t.budget, &t.row, t.slow), OK);
        make_outputs(&t, number, &rng);
        put_at_edge(&t, number, &rng);
        judge(&t, s, TIER_MPFR);
        memcpy(slow, t.state, sizeof slow);
        judge(&t, s, TIER_F64);
        for (size_t j = 0; j < t.row.n; j++) {
            CHECK(t.state[j] == slow[j],
                  "%s, row %zu, [%zu] of %zu: the tiers say %d, MPFR %d; want [%a, %a], budget %a",
                  s->name, number, j, t.row.n, t.state[j], slow[j], t.slow[j].lo, t.slow[j].hi,
                  t.budget[j]);
            t.failed += slow[j] == BEYOND || slow[j] == WRONG_CLASS;
        }
        t.judged += t.row.n;
        if (s->budgets)
            check_within(&t, slow, s->name);
    }
    print_message("%s: %zu elements, %zu FAIL: the same verdict each time\ndecided by", s->name,
                  t.judged, t.failed);
    for (enum tier tier = TIER_F64; tier < TIER_COUNT; tier++)
        print_message("  %s %zu (%.3g)", tier_name(tier), t.decided[tier],
                      (double)t.decided[tier] / (double)t.judged);
    print_message("\n");
    assert_true(t.failed > t.judged / 50 && t.failed < t.judged / 2);
}

static const struct subject attention = {"attention", make_attention, enclose_attention,
                                         budget_attention, budgets_attention};
static const struct subject norms = {"norms", make_norm, enclose_norm, budget_norm, NULL};
static const struct subject rope = {"rope", make_rope, enclose_rope, budget_rope, NULL};

static void attention_agrees(void **state) {
    (void)state;
    verdicts_agree(&attention, 1);
}

static void norms_agree(void **state) {
    (void)state;
    verdicts_agree(&norms, 2);
}

static void rope_agrees(void **state) {
    (void)state;
    verdicts_agree(&rope, 3);
}

int main(int argc, char **argv) {
    if (argc > 1)
        wanted_elements = strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_agrees),
        cmocka_unit_test(norms_agree),
        cmocka_unit_test(rope_agrees),
    };
    int failed = cmocka_run_group_tests_name("tier_verdict", tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
