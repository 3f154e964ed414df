/*
 * tests/gate/test_tiers.c - the verdict of the tiers is MPFR's, element by element.
 *
 *   test_gate_tiers [ELEMENTS]
 *
 * Every fill, op and kind of arithmetic; outputs that are honest, that lie within a few data of the
 * edge of their budget on either side, or that are special values.  judge_output with everything
 * audited compares each element's verdict by the tiers with that by MPFR alone, and each enclosure;
 * the verdict of the row, which the common path may give without looking at elements, is compared
 * with a judgement that only ever asked MPFR.
 */
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "gate/judge.h"
#include "oracle/ulp.h"
#include "tests/gate/fake.h"

static size_t wanted_elements = 200000;

static const struct {
    enum exp_variant exp;
    enum rescale_variant rescale;
    enum divide_variant divide;
    bool flush;
} arithmetic[] = {
    {EXP_EXPF, RESCALE_NONE, DIVIDE_IEEE, false},
    {EXP_EXPF, RESCALE_NONE, DIVIDE_RECIPROCAL, true},
    {EXP_FAST, RESCALE_NONE, DIVIDE_APPROX, false},
    {EXP_FAST, RESCALE_NONE, DIVIDE_APPROX, true},
    {EXP_EX2_FOLDED, RESCALE_NONE, DIVIDE_IEEE, false},
    {EXP_EXPF, RESCALE_ONLINE, DIVIDE_IEEE, false},
    {EXP_EX2_FOLDED, RESCALE_ONLINE, DIVIDE_RECIPROCAL, true},
};

/* How the output of a row is made from the truth. */
enum manner { HONEST, NEAREST, ONE_AT_EDGE, MANY_AT_EDGE, SPECIAL, MANNERS };

struct trial {
    struct fake fake;
    struct test_case c;
    struct truth truth; /* by MPFR alone */
    double *budget;
    void *y;
    size_t judged, failed;
    struct tally tally; /* who decided */
};

static uint32_t nearest(const struct dtype *dt, double v) {
    return dtype_from_double(dt, v, ROUND_NEAREST);
}

/* A datum within three of want +- budget. */
static uint32_t at_edge(const struct dtype *dt, struct enclosure want, double budget,
                        struct rng *rng) {
    bool up = rng_below(rng, 2);
    double edge = up ? want.hi + budget : want.lo - budget;
    uint32_t bits = nearest(dt, edge);
    if (dtype_classify(dt, bits) == CLASS_NAN)
        return bits;
    int64_t top = dtype_ordinal(dt, nearest(dt, INFINITY));
    int64_t ordinal = dtype_ordinal(dt, bits) + (int64_t)rng_below(rng, 7) - 3;
    ordinal = ordinal > top ? top : ordinal < -top ? -top : ordinal;
    return dtype_from_ordinal(dt, ordinal);
}

static void make_output(struct trial *t, enum manner manner, struct rng *rng) {
    const struct dtype *dt = t->fake.kernel.out;
    const size_t n = t->truth.count;
    for (size_t i = 0; i < n; i++) {
        struct enclosure want = t->truth.want[i];
        dtype_store(dt, t->y, i, nearest(dt, want.lo / 2 + want.hi / 2));
    }
    if (manner == HONEST && strcmp(t->fake.kernel.op->name, "softmax") == 0 && dt->id == DT_F32 &&
        t->c.dtype->id == DT_F32)
        fake_softmax(t->y, t->c.x, t->c.dims, 0, NULL);
    if (manner == ONE_AT_EDGE && n > 0) {
        size_t i = rng_below(rng, n);
        dtype_store(dt, t->y, i, at_edge(dt, t->truth.want[i], t->budget[i], rng));
    }
    for (size_t i = 0; manner == MANY_AT_EDGE && i < n; i++)
        if (rng_below(rng, 3) == 0)
            dtype_store(dt, t->y, i, at_edge(dt, t->truth.want[i], t->budget[i], rng));
    const uint32_t special[] = {dt->nan, nearest(dt, INFINITY), nearest(dt, -INFINITY),
                                0,       nearest(dt, 1),        UINT32_MAX >> (32 - dt->bits)};
    for (size_t k = 0; manner == SPECIAL && n > 0 && k < 2; k++)
        dtype_store(dt, t->y, rng_below(rng, n), special[rng_below(rng, 6)]);
}

/* One row, in one manner, judged both ways. */
static void compare_verdicts(struct trial *t, const char *what) {
    struct judgement quick, slow;
    struct truth tiers;
    CHECK_OK(truth_init(&tiers, t->fake.kernel.op, &t->c, t->fake.kernel.empty_row));
    tiers.audit.share = 1;
    CHECK_OK(judge_output(&quick, &t->fake.kernel, &t->c, &tiers, t->y));
    CHECK_OK(judge_output(&slow, &t->fake.kernel, &t->c, &t->truth, t->y));
    /* A row that passed at one look has a lower bound for its budget: half of it beside a power of
     * two, where a rounding's step may be the one below.  Its errors are good to 2^-41 of a result,
     * which is 2^-16 of the least budget that a rounded result can have. */
    double over = quick.verdict == VERDICT_PASS ? 2.01 : 1.001;
    bool rho_agrees = quick.max_rho >= slow.max_rho * (1 - 1e-9) &&
                      quick.max_rho <= slow.max_rho * over + 0x1p-15;
    if (quick.verdict != slow.verdict || !rho_agrees) {
        print_error("%s: the tiers say %s, rho %.12g (%s), MPFR %s, rho %.12g (%s)\n", what,
                    verdict_name(quick.verdict), quick.max_rho, quick.reason,
                    verdict_name(slow.verdict), slow.max_rho, slow.reason);
        fail();
    }
    t->judged += t->truth.count;
    t->failed += slow.verdict == VERDICT_FAIL;
    tally_add(&t->tally, &quick.tally);
    truth_clear(&tiers);
}

static void try_row(struct trial *t, const struct op *op, const struct fill *fill, size_t number,
                    struct rng *rng) {
    static const size_t sizes[] = {1, 2, 7, 33, 130, 300};
    const size_t a = number % (sizeof arithmetic / sizeof *arithmetic);
    struct case_dims dims = {1, sizes[rng_below(rng, sizeof sizes / sizeof *sizes)]};
    char what[CASE_LINE_SIZE + 64], line[CASE_LINE_SIZE];
    t->fake = fake_kernel("fake", op->name, fake_softmax);
    struct kernel *k = &t->fake.kernel;
    struct numerics *nu = &t->fake.numerics;
    k->in = nu->in = &dtypes[rng_below(rng, DT_COUNT)];
    k->out = nu->out = &dtypes[rng_below(rng, 2) ? DT_F32 : rng_below(rng, DT_COUNT)];
    /* log_softmax has no budget with log2(e) folded */
    bool folded = arithmetic[a].exp == EXP_EX2_FOLDED && strcmp(op->name, "log_softmax") == 0;
    nu->exp = folded ? EXP_FAST : arithmetic[a].exp;
    nu->rescale = arithmetic[a].rescale;
    nu->rescales = nu->rescale == RESCALE_ONLINE ? 6 : 0;
    nu->divide = arithmetic[a].divide;
    nu->flush = arithmetic[a].flush;
    nu->log = number % 2 ? LOG_LOGF : LOG_FAST;
    nu->sum_height = (double)(1 + rng_below(rng, dims.cols));
    k->empty_row = (enum empty_row)rng_below(rng, 3);
    CHECK_OK(case_from_fill(&t->c, fill, k->in, dims, rng_u64(rng)));
    CHECK_OK(truth_init(&t->truth, op, &t->c, k->empty_row));
    t->truth.first = TIER_MPFR;
    CHECK_OK(budgets_make(&t->budget, k, &t->c, &t->truth));
    t->y = calloc(t->truth.count + 1, sizeof(uint32_t));
    enum manner manner = (enum manner)rng_below(rng, MANNERS);
    make_output(t, manner, rng);
    case_line(line, sizeof line, &t->c);
    snprintf(what, sizeof what, "%s %s->%s, arithmetic %zu, manner %d, %s", op->name, k->in->name,
             k->out->name, a, (int)manner, line);
    compare_verdicts(t, what);
    free(t->budget);
    free(t->y);
    truth_clear(&t->truth);
    case_clear(&t->c);
}

static void verdicts_are_those_of_mpfr(void **state) {
    (void)state;
    struct trial t = {0};
    struct rng rng = rng_from_seed(1);
    size_t rows = 0;
    while (t.judged < wanted_elements)
        for (const struct fill *fill = fills; fill->name; fill++)
            for (const struct op *op = ops; op_is_matrix(op); op++)
                /* an element of softmax or log_softmax is where the work and the doubts are */
                for (int k = 0; k < (op->result == OP_PER_ROW ? 1 : 3); k++)
                    try_row(&t, op, fill, rows++, &rng);
    print_message("%zu elements of %zu rows, %zu rows FAIL: the same verdict each time\ndecided by",
                  t.judged, rows, t.failed);
    for (enum tier tier = TIER_F64; tier < TIER_COUNT; tier++)
        print_message("  %s %llu (%.3g)", tier_name(tier),
                      (unsigned long long)t.tally.decided[tier],
                      (double)t.tally.decided[tier] / (double)t.judged);
    print_message("\n");
    assert_true(t.failed > rows / 20 && t.failed < rows * 19 / 20);
}

/* What an op whose budget is ours to choose gives for the only row. */
static double chosen[300];

static status_t chosen_budget(double *budget, const struct oracle_row *row,
                              const struct enclosure *want, const struct numerics *n) {
    (void)want, (void)n;
    memcpy(budget, chosen, row->cols * sizeof *budget);
    return OK;
}

/*
 * No datum falls into the 2^-25 of a budget that tier 0 leaves open, so here the budget is put there:
 * at MPFR's own distance, between its two bounds, next to either, and a few steps of double away.
 */
static void edges_within_the_enclosure(void **state) {
    (void)state;
    static const char *const names[] = {"softmax", "log_softmax"};
    struct rng rng = rng_from_seed(3);
    size_t seen[VERDICT_COUNT] = {0};
    struct tally tally = {0};
    for (size_t k = 0; k < 300; k++) {
        struct trial t = {.fake = fake_kernel("fake", names[k % 2], fake_softmax)};
        struct op op = *t.fake.kernel.op;
        struct truth tiers;
        struct judgement quick, slow;
        op.budget = chosen_budget;
        t.fake.kernel.op = &op;
        CHECK_OK(case_from_fill(&t.c, fill_find("normal"), &dtypes[DT_F32],
                                (struct case_dims){1, 20}, k));
        CHECK_OK(truth_init(&t.truth, &op, &t.c, EMPTY_NAN));
        t.truth.first = TIER_MPFR;
        CHECK_OK(truth_fill(&t.truth));
        t.y = calloc(20, sizeof(float));
        for (size_t j = 0; j < 20; j++) {
            struct enclosure want = t.truth.want[j];
            uint32_t bits = nearest(&dtypes[DT_F32], want.lo * (1 + 0x1p-22));
            struct ulp_error e = ulp_error(&dtypes[DT_F32], bits, want);
            dtype_store(&dtypes[DT_F32], t.y, j, bits);
            chosen[j] = 2 * e.abs_hi;
        }
        size_t j = rng_below(&rng, 20);
        struct ulp_error e =
            ulp_error(&dtypes[DT_F32], dtype_load(&dtypes[DT_F32], t.y, j), t.truth.want[j]);
        const double near =
            3 * 0x1p-52 * fabs(t.truth.want[j].hi); /* inside tier f64's enclosure */
        const double edges[] = {e.abs_hi,        nextafter(e.abs_lo, 0), (e.abs_lo + e.abs_hi) / 2,
                                e.abs_hi + near, e.abs_lo - near,        nextafter(e.abs_hi, 1),
                                e.abs_lo};
        chosen[j] = edges[k % 7];
        CHECK_OK(truth_init(&tiers, &op, &t.c, EMPTY_NAN));
        tiers.audit.share = 1;
        CHECK_OK(judge_output(&quick, &t.fake.kernel, &t.c, &tiers, t.y));
        CHECK_OK(judge_output(&slow, &t.fake.kernel, &t.c, &t.truth, t.y));
        CHECK(quick.verdict == slow.verdict, "row %zu: the tiers say %s, MPFR %s", k,
              verdict_name(quick.verdict), verdict_name(slow.verdict));
        seen[slow.verdict]++;
        tally_add(&tally, &quick.tally);
        free(t.y);
        truth_clear(&tiers);
        truth_clear(&t.truth);
        case_clear(&t.c);
    }
    const size_t dd = tally.decided[TIER_DD], mpfr = tally.decided[TIER_MPFR];
    print_message("%zu PASS, %zu FAIL, %zu UNSURE; %zu elements by dd, %zu by MPFR\n",
                  seen[VERDICT_PASS], seen[VERDICT_FAIL], seen[VERDICT_UNSURE], dd, mpfr);
    assert_true(seen[VERDICT_PASS] > 50 && seen[VERDICT_FAIL] > 30 && dd > 30 && mpfr > 50);
}

/* A truth that MPFR contradicts is a fault of Assay, and not a verdict on the kernel. */
static void a_wrong_tier_is_found_out(void **state) {
    (void)state;
    struct fake fake = fake_kernel("fake", "sum", fake_sum);
    const float x[] = {1, 2, 4};
    float y = 7;
    struct test_case c;
    struct truth truth;
    struct judgement j;
    CHECK_OK(case_from_data(&c, x, &dtypes[DT_F32], (struct case_dims){1, 3}));
    CHECK_OK(truth_init(&truth, fake.kernel.op, &c, EMPTY_NAN));
    CHECK_OK(truth_fill(&truth));
    truth.want[0] = (struct enclosure){7.0000001, 7.0000002};
    truth.audit.worst = true;
    assert_int_equal(judge_output(&j, &fake.kernel, &c, &truth, &y), ERR_SELF);
    CHECK_CONTAINS(status_message(), "a fault of Assay");
    truth.want[0] = (struct enclosure){7, 7};
    CHECK_OK(judge_output(&j, &fake.kernel, &c, &truth, &y));
    assert_int_equal(j.verdict, VERDICT_PASS);
    assert_int_equal(j.tally.audited, 1);
    truth_clear(&truth);
    case_clear(&c);
}

int main(int argc, char **argv) {
    if (argc > 1)
        wanted_elements = strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_those_of_mpfr),
        cmocka_unit_test(edges_within_the_enclosure),
        cmocka_unit_test(a_wrong_tier_is_found_out),
    };
    int failed = cmocka_run_group_tests_name("tiers", tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
