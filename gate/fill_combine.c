/*
 * gate/fill_combine.c - the fills of attention_combine: the lse of each part by a rule, and its o.
 *
 * Rows of a case take the rule's variants in turn.  A part of lse -Inf holds NaN in o wherever there is
 * one: it is the neutral element, whatever its o is.
 */
#include "gate/fill_impl.h"

enum { IN_O_P, IN_LSE_P };

/* One fill's case while it is written. */
struct parts {
    const struct tensor *o_p, *lse_p;
    size_t parts, rows, head_dim;
    uint64_t seed;
    struct rng rng;
};

static struct parts begin(const struct op_case *c, uint64_t seed) {
    return (struct parts){.o_p = &c->in[IN_O_P],
                          .lse_p = &c->in[IN_LSE_P],
                          .parts = c->dims.parts,
                          .rows = c->dims.rows,
                          .head_dim = c->dims.head_dim,
                          .seed = seed,
                          .rng = rng_from_seed(seed)};
}

static size_t lse_at(const struct parts *f, size_t row, size_t part) {
    return part * f->rows + row;
}

static size_t o_at(const struct parts *f, size_t row, size_t part, size_t c) {
    return lse_at(f, row, part) * f->head_dim + c;
}

/* lse of a part; variant: row + seed. */
typedef double rule(struct parts *f, size_t part, uint64_t variant);

static void set_lse(struct parts *f, rule *of) {
    for (size_t row = 0; row < f->rows; row++)
        for (size_t p = 0; p < f->parts; p++)
            set_finite(f->lse_p, lse_at(f, row, p), of(f, p, row + f->seed));
}

/* N(0, scale^2) where the part has a weight, NaN elsewhere. */
static void set_o(struct parts *f, double scale) {
    for (size_t row = 0; row < f->rows; row++)
        for (size_t p = 0; p < f->parts; p++)
            for (size_t c = 0; c < f->head_dim; c++) {
                bool none = tensor_get(f->lse_p, lse_at(f, row, p)) == -INFINITY;
                set_finite(f->o_p, o_at(f, row, p, c),
                           none ? (double)NAN : scale * everyday(&f->rng));
            }
}

static void by_rule(const struct op_case *c, uint64_t seed, rule *of, double scale) {
    struct parts f = begin(c, seed);
    set_lse(&f, of);
    set_o(&f, scale);
}

static double spread(struct parts *f, double from, double to) {
    return from + (to - from) * rng_unit(&f->rng);
}

/* ---- the fills ------------------------------------------------------------------------------- */

static double normal_lse(struct parts *f, size_t part, uint64_t variant) {
    static const double scales[] = {1, 4, 0.25};
    (void)part;
    return scales[variant % 3] * everyday(&f->rng);
}

static void normals(const struct op_case *c, uint64_t seed) {
    by_rule(c, seed, normal_lse, 1);
}

static double equal_lse(struct parts *f, size_t part, uint64_t variant) {
    static const double levels[] = {0, 7.5, -300};
    (void)f, (void)part;
    return levels[variant % 3];
}

static void equal(const struct op_case *c, uint64_t seed) {
    by_rule(c, seed, equal_lse, 1);
}

/* exp(-87.34) is the last normal f32, exp(-103.97) the last non-zero one. */
static double dominant_lse(struct parts *f, size_t part, uint64_t variant) {
    static const double heights[] = {20, 88, 95, 110};
    bool dominant = part == (variant / 4 % 2 ? 0 : f->parts - 1);
    return dominant ? heights[variant % 4] : spread(f, -1, 1);
}

static void dominant(const struct op_case *c, uint64_t seed) {
    by_rule(c, seed, dominant_lse, 1);
}

static double rising_lse(struct parts *f, size_t part, uint64_t variant) {
    static const double steps[] = {0x1p-3, 5.5, 30};
    return steps[variant % 3] * (double)part - spread(f, 0, 0.125);
}

static void rising(const struct op_case *c, uint64_t seed) {
    by_rule(c, seed, rising_lse, 1);
}

/* All parts, all but one, the first half, every second one. */
static double empty_lse(struct parts *f, size_t part, uint64_t variant) {
    const size_t kept = (size_t)(variant / 4 % f->parts);
    const bool empty[] = {true, part != kept, part < f->parts / 2, part % 2 == 0};
    return empty[variant % 4] ? -INFINITY : everyday(&f->rng);
}

static void empty(const struct op_case *c, uint64_t seed) {
    by_rule(c, seed, empty_lse, 1);
}

/* Where f32 has steps of 2^-10 up to 2^77, and differences overflow. */
static double large_lse_of(struct parts *f, size_t part, uint64_t variant) {
    static const double sizes[] = {1.5e4, -1.5e4, 1e30, -1e30};
    if (variant % 5 == 4) /* beside everyday ones */
        return part % 2 ? everyday(&f->rng) : -3e38;
    return sizes[variant % 5] * (fabs(sizes[variant % 5]) > 1e20 ? 1 : spread(f, 1, 1.0001));
}

static void large_lse(const struct op_case *c, uint64_t seed) {
    by_rule(c, seed, large_lse_of, 1);
}

/* Equal weights, and values that add up to 0 or to the last one. */
static void cancelling_o(const struct op_case *c, uint64_t seed) {
    struct parts f = begin(c, seed);
    set_lse(&f, equal_lse);
    for (size_t row = 0; row < f.rows; row++)
        for (size_t p = 0; p < f.parts; p++)
            for (size_t col = 0; col < f.head_dim; col++) {
                double size = 1 + (double)((p / 2 * 7 + col + row) % 13);
                set_finite(f.o_p, o_at(&f, row, p, col), p % 2 ? -size : size);
            }
}

/* Every part has the same o: so has the result, whatever the weights. */
static void constant_o(const struct op_case *c, uint64_t seed) {
    struct parts f = begin(c, seed);
    set_lse(&f, normal_lse);
    for (size_t row = 0; row < f.rows; row++)
        for (size_t col = 0; col < f.head_dim; col++) {
            double value = everyday(&f.rng);
            for (size_t p = 0; p < f.parts; p++)
                set_finite(f.o_p, o_at(&f, row, p, col), value);
        }
}

static void tiny_o(const struct op_case *c, uint64_t seed) {
    double least = dtype_min_normal(c->in[IN_O_P].type->dtype);
    by_rule(c, seed, normal_lse, least * (seed % 2 ? 1 : 0x1p8));
}

static void special_lse(const struct op_case *c, uint64_t seed) {
    struct parts f = begin(c, seed);
    static const double specials[] = {NAN, INFINITY};
    normals(c, seed);
    for (size_t row = 0; row < f.rows; row += 1 + row % 2) /* not every row */
        set_finite(f.lse_p, lse_at(&f, row, (size_t)rng_below(&f.rng, f.parts)),
            specials[(row + seed) % 2]);
}

/* Under a weight that is not small. */
static void special_o(const struct op_case *c, uint64_t seed) {
    struct parts f = begin(c, seed);
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    normals(c, seed);
    for (size_t row = 0; row < f.rows; row += 1 + row % 2) {
        size_t part = (size_t)rng_below(&f.rng, f.parts);
        set_finite(f.o_p, o_at(&f, row, part, (size_t)rng_below(&f.rng, f.head_dim)),
            specials[(row + seed) % 3]);
    }
}

const struct fill combine_fills[] = {
    {.name = "normal",
     .values = "o_p N(0, 1), lse_p N(0, s^2), s = 1, 4, 1/4",
     .purpose = "The everyday case: what the other fills are compared with.",
     .others = normals},
    {.name = "equal",
     .values = "all lse_p 0, 7.5 or -300",
     .purpose = "Equal weights: the sum is the number of parts.",
     .others = equal},
    {.name = "dominant",
     .values = "the first or last part 20, 88, 95 or 110 above the others",
     .purpose = "Weights that are subnormal or 0 beside one of 1.",
     .others = dominant},
    {.name = "rising",
     .values = "lse_p rises by 1/8, 5.5 or 30 from part to part",
     .purpose = "A maximum that is found late; weights of all sizes.",
     .others = rising},
    {.name = "empty",
     .values = "lse_p -Inf and o_p NaN in all parts, all but one, the first half, every second",
     .purpose = "A part without keys takes no part: 0 NaN is NaN, -Inf - -Inf too.",
     .others = empty},
    {.name = "large_lse",
     .values = "lse_p around +-1.5e4, +-1e30, or -3e38 beside everyday ones",
     .purpose = "exp without the maximum overflows; differences overflow; a stand-in for -Inf.",
     .others = large_lse},
    {.name = "cancelling_o",
     .values = "equal weights, values that cancel in pairs",
     .purpose = "A part that is lost or counted twice shows against a result of 0.",
     .others = cancelling_o},
    {.name = "constant_o",
     .values = "every part has the same o",
     .purpose = "o is that value: weights that do not add up to 1 show at once.",
     .others = constant_o},
    {.name = "tiny_o",
     .values = "o_p about 2^emin of its format",
     .purpose = "Products near the smallest number.",
     .others = tiny_o},
    {.name = "special_lse",
     .values = "one NaN or +Inf among lse_p of some rows",
     .purpose = "They reach o and lse of their row, and no other.",
     .others = special_lse},
    {.name = "special_o",
     .values = "one NaN, +Inf or -Inf in o_p of some rows",
     .purpose = "It stays in its column and row.",
     .others = special_o},
    {NULL},
};
