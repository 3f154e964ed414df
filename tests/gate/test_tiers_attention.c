/*
 * tests/gate/test_tiers_attention.c - as test_tiers.c, for attention: rows that share k and v, judged
 * side by side.
 *
 *   test_gate_tiers_attention [ELEMENTS]
 *
 * Outputs are honest, or lie within a few data of the edge of their budget on either side, or are
 * special values; lse is there or not.  The verdict, the largest rho and the largest ulp of a case
 * are compared with those of a judgement that only ever asked MPFR, and the audit of all rows
 * compares element by element.
 */
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "gate/judge.h"
#include "oracle/ulp.h"
#include "tests/gate/fake.h"

static size_t wanted_elements = 12000;

enum manner { HONEST, ONE_AT_EDGE, MANY_AT_EDGE, LSE_AT_EDGE, SPECIAL, MANNERS };

struct trial {
    struct fake fake;
    struct test_case c;
    struct truth truth; /* by MPFR alone */
    double *budget;
    void *y;
    size_t judged, passed, failed;
    struct tally tally;
};

static void choose_kernel(struct fake *fake, size_t number, struct case_dims d, struct rng *rng) {
    *fake = fake_kernel("fake", "attention", fake_sum);
    struct kernel *k = &fake->kernel;
    struct numerics *nu = &fake->numerics;
    k->in = nu->in = &dtypes[rng_below(rng, DT_COUNT)];
    k->out = nu->out = rng_below(rng, 2) ? &dtypes[DT_F32] : k->in;
    k->more_in[1] = k->more_in[2] = tensor_type_of(k->in);
    k->more_in[3] = number % 3 == 0 ? tensor_type_find("i32") : NULL; /* lengths */
    k->more_in[4] = number % 5 == 0 ? tensor_type_of(k->in) : NULL;   /* bias */
    k->more_in[5] = number % 7 == 0 ? tensor_type_find("u8") : NULL;  /* mask */
    k->more_in[6] = NULL;
    k->more_in[7] = number % 11 == 0 ? tensor_type_of(k->in) : NULL; /* sinks */
    k->more_out[1] = number % 4 ? tensor_type_find("f32") : NULL;    /* lse */
    fake->options = (struct op_options){.scale = (float)(1 / sqrt((double)d.head_dim)),
                                        .causal = rng_below(rng, 2),
                                        .windowed = number % 9 == 0,
                                        .window_left = 7};
    nu->exp = (enum exp_variant)(1 + rng_below(rng, 4));
    nu->divide = (enum divide_variant)(1 + rng_below(rng, 3));
    nu->log = LOG_LOGF;
    nu->rescales = (double)rng_below(rng, 4);
    nu->sum_height = (double)(1 + rng_below(rng, d.keys));
    nu->qk = number % 2 ? (struct accumulation){.block = 16, .bits = 25}
                        : (struct accumulation){.height = (double)d.head_dim};
    nu->pv = number % 2 ? nu->qk : (struct accumulation){.height = (double)d.keys};
    nu->p_type = number % 2 && k->in->id != DT_F32 ? k->in : NULL;
}

/* Which output result i stands in, and where; *dt = NULL: the kernel has none. */
static size_t place(const struct trial *t, size_t i, const struct tensor_block *y,
                    const struct dtype **dt, void **data) {
    const struct op_place at = op_place_of(t->fake.kernel.op, &t->c.dims, i / t->truth.step,
                                           i % t->truth.step);
    const struct tensor *out = &y->tensors[at.output];
    *dt = out->type ? out->type->dtype : NULL;
    *data = out->data;
    return at.element;
}

static uint32_t at_edge(const struct dtype *dt, struct enclosure want, double budget,
                        struct rng *rng) {
    double edge = rng_below(rng, 2) ? want.hi + budget : want.lo - budget;
    uint32_t bits = dtype_from_double(dt, edge, ROUND_NEAREST);
    if (dtype_classify(dt, bits) == CLASS_NAN)
        return bits;
    int64_t top = dtype_ordinal(dt, dtype_from_double(dt, INFINITY, ROUND_NEAREST));
    int64_t ordinal = dtype_ordinal(dt, bits) + (int64_t)rng_below(rng, 7) - 3;
    ordinal = ordinal > top ? top : ordinal < -top ? -top : ordinal;
    return dtype_from_ordinal(dt, ordinal);
}

static void make_output(struct trial *t, enum manner manner, struct rng *rng) {
    const double special[] = {NAN, INFINITY, 0, 1};
    struct tensor_block y;
    CHECK_OK(kernel_outputs(&y, &t->fake.kernel, t->c.dims, t->y));
    const size_t n = t->truth.count, step = t->truth.step;
    const size_t one = manner == LSE_AT_EDGE ? rng_below(rng, n / step) * step + step - 1
                                             : rng_below(rng, n);
    for (size_t i = 0; i < n; i++) {
        const struct dtype *dt;
        void *data;
        size_t element = place(t, i, &y, &dt, &data);
        struct enclosure want = t->truth.want[i];
        if (!dt)
            continue;
        uint32_t bits = dtype_from_double(dt, want.lo / 2 + want.hi / 2, ROUND_NEAREST);
        bool chosen = manner == MANY_AT_EDGE ? rng_below(rng, 3) == 0
                                             : manner != HONEST && i == one;
        if (chosen && manner == SPECIAL)
            bits = dtype_from_double(dt, special[rng_below(rng, 4)], ROUND_NEAREST);
        else if (chosen)
            bits = at_edge(dt, want, t->budget[i], rng);
        dtype_store(dt, data, element, bits);
    }
}

/* a is an upper bound of b that is not far above. */
static bool agree(double a, double b, double over, double more) {
    return a == b || (a >= b * (1 - 1e-9) && a <= b * over + more);
}

static double unit_of(const struct dtype *dt) {
    return ldexp(1, -(int)dt->prec);
}

static void compare_verdicts(struct trial *t, const char *what) {
    struct judgement quick, slow, shared;
    struct threads threads;
    struct truth tiers;
    const struct kernel *k = &t->fake.kernel;
    threads_init(&threads, 3, oracle_thread_done);
    CHECK_OK(truth_init(&tiers, k->op, &t->c, k->empty_row));
    tiers.audit.share = 1;
    CHECK_OK(judge_output(&quick, k, &t->c, &tiers, t->y));
    CHECK_OK(judge_output(&slow, k, &t->c, &t->truth, t->y));
    /* The common look has errors to 2^-6 ulp, and the ulp of the binade below beside a power of
     * two; the largest rho is from a closer look: docs/oracle.md. */
    if (quick.verdict != slow.verdict || !agree(quick.max_rho, slow.max_rho, 1.001, 0x1p-20) ||
        !agree(quick.max_ulp, slow.max_ulp, 2.01, 0x1p-6) ||
        !agree(quick.max_rel, slow.max_rel, 1.001, 0x1p-6 * 2 * unit_of(k->out))) {
        print_error("%s: the tiers say %s, rho %.12g, %.12g ulp, rel %.12g (%s), MPFR %s, rho "
                    "%.12g, %.12g ulp, rel %.12g (%s)\n",
                    what, verdict_name(quick.verdict), quick.max_rho, quick.max_ulp, quick.max_rel,
                    quick.reason, verdict_name(slow.verdict), slow.max_rho, slow.max_ulp,
                    slow.max_rel, slow.reason);
        fail();
    }
    truth_clear(&tiers);
    CHECK_OK(truth_init(&tiers, k->op, &t->c, k->empty_row)); /* as by one thread, so by three */
    tiers.work.threads = &threads;
    CHECK_OK(judge_output(&shared, k, &t->c, &tiers, t->y));
    quick.tally.audited = 0;
    CHECK(shared.verdict == quick.verdict && shared.max_rho == quick.max_rho &&
              shared.max_ulp == quick.max_ulp && shared.max_rel == quick.max_rel &&
              shared.worst.row == quick.worst.row && shared.worst.col == quick.worst.col &&
              strcmp(shared.reason, quick.reason) == 0 &&
              memcmp(&shared.tally, &quick.tally, sizeof shared.tally) == 0,
          "%s: three threads come to something else than one", what);
    truth_clear(&tiers);
    t->judged += t->truth.count;
    t->passed += slow.verdict == VERDICT_PASS;
    t->failed += slow.verdict == VERDICT_FAIL;
    tally_add(&t->tally, &quick.tally);
}

static void try_case(struct trial *t, const struct fill *fill, size_t number, struct rng *rng) {
    static const struct case_dims shapes[] = {
        {.batch = 1, .heads = 2, .kv_heads = 1, .queries = 37, .keys = 40, .head_dim = 2},
        {.batch = 2, .heads = 2, .kv_heads = 2, .queries = 3, .keys = 17, .head_dim = 8},
        {.batch = 1, .heads = 4, .kv_heads = 2, .queries = 5, .keys = 70, .head_dim = 5},
        {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 70, .keys = 9, .head_dim = 3},
        {.batch = 3, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 33, .head_dim = 16},
    };
    const struct case_dims dims = shapes[number % (sizeof shapes / sizeof *shapes)];
    char what[CASE_LINE_SIZE + 64], line[CASE_LINE_SIZE];
    choose_kernel(&t->fake, number, dims, rng);
    const struct kernel *k = &t->fake.kernel;
    struct tensor_block layout;
    CHECK_OK(case_make(&t->c, fill, k, dims, rng_u64(rng)));
    CHECK_OK(truth_init(&t->truth, k->op, &t->c, k->empty_row));
    t->truth.first = TIER_MPFR;
    CHECK_OK(budgets_make(&t->budget, k, &t->c, &t->truth));
    CHECK_OK(kernel_outputs(&layout, k, dims, NULL));
    t->y = calloc(layout.bytes + 1, 1);
    enum manner manner = (enum manner)rng_below(rng, MANNERS);
    make_output(t, manner, rng);
    case_line(line, sizeof line, &t->c);
    snprintf(what, sizeof what, "%s->%s, number %zu, manner %d, %s", k->in->name, k->out->name,
             number, (int)manner, line);
    compare_verdicts(t, what);
    free(t->budget);
    free(t->y);
    truth_clear(&t->truth);
    case_clear(&t->c);
}

static void verdicts_are_those_of_mpfr(void **state) {
    (void)state;
    static struct trial t;
    struct rng rng = rng_from_seed(5);
    size_t cases = 0;
    while (t.judged < wanted_elements)
        for (const struct fill *fill = fills_of(op_find("attention"));
             fill->name && t.judged < wanted_elements; fill++)
            try_case(&t, fill, cases++, &rng);
    print_message("%zu elements of %zu cases, %zu PASS, %zu FAIL: the same verdict each time\n"
                  "decided by",
                  t.judged, cases, t.passed, t.failed);
    for (enum tier tier = TIER_F64; tier < TIER_COUNT; tier++)
        print_message("  %s %llu (%.3g)", tier_name(tier),
                      (unsigned long long)t.tally.decided[tier],
                      (double)t.tally.decided[tier] / (double)t.judged);
    print_message("\n");
    assert_true(t.passed > cases / 5 && t.failed > cases / 10);
}

int main(int argc, char **argv) {
    if (argc > 1)
        wanted_elements = strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_those_of_mpfr),
    };
    int failed = cmocka_run_group_tests_name("tiers_attention", tests, NULL, NULL);
    oracle_thread_done();
    return failed;
}
