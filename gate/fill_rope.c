/* gate/fill_rope.c - the fills of rope: rows of x, and positions. */
#include "gate/fill_impl.h"

enum { IN_POSITIONS = 1 };

/* Positions from a list, then at random below 2^20. */
static void positions_from(const struct op_case *c, uint64_t seed, const double *list,
                           size_t count) {
    struct rng rng = rng_from_seed(seed);
    for (size_t i = 0; i < c->in[IN_POSITIONS].count; i++) {
        double random = (double)rng_below(&rng, 1 << 20);
        tensor_set(&c->in[IN_POSITIONS], i, i < count ? list[i] : random);
    }
}

static void far_positions(const struct op_case *c, uint64_t seed) {
    static const double list[] = {1000000, 1048575, 131072, 65537, 32768, 2048, 1, 0};
    positions_from(c, seed, list, sizeof list / sizeof list[0]);
}

static void zero_positions(const struct op_case *c, uint64_t seed) {
    (void)seed;
    for (size_t i = 0; i < c->in[IN_POSITIONS].count; i++)
        tensor_set(&c->in[IN_POSITIONS], i, 0);
}

static void row_ones(ROW_ARGS) {
    struct line l = LINE_BEGIN;
    for (size_t j = 0; j < l.cols; j++)
        put(&l, j, l.variant % 2 ? 1 : (double)(j % 2)); /* the cosines and sines themselves */
}

const struct fill rope_fills[] = {
    {.name = "normal",
     .values = "x N(0, s^2); positions in order from 0, 1 or at random",
     .purpose = "The everyday case.",
     .row = row_normal},
    {.name = "far",
     .values = "x N(0, s^2); positions up to 2^20",
     .purpose = "Large angles: a sine without range reduction, an angle kept in 16 bits.",
     .row = row_normal,
     .others = far_positions},
    {.name = "unit",
     .values = "x of ones, or 0, 1, 0, 1, ...; positions up to 2^20",
     .purpose = "Results are sine and cosine themselves; swapped halves or pairs show.",
     .row = row_ones,
     .others = far_positions},
    {.name = "origin",
     .values = "x of 15 binades; position 0 throughout",
     .purpose = "The result is x, bit for bit.",
     .row = row_mixed_signs,
     .others = zero_positions},
    {.name = "huge",
     .values = "x around +-1e4 to 3e4 and far beyond; positions as in `normal`",
     .purpose = "Products near the format's end.",
     .row = row_huge},
    {.name = "subnormal",
     .values = "x below 2^emin and around it",
     .purpose = "Flushing to zero.",
     .row = row_subnormal},
    {.name = "plus_inf",
     .values = "+Inf once, several times, or beside a -Inf",
     .purpose = "An infinity stays in its pair.",
     .row = row_plus_inf},
    {.name = "one_nan",
     .values = "one NaN: first, last, anywhere",
     .purpose = "A NaN stays in its pair.",
     .row = row_one_nan},
    {NULL},
};
