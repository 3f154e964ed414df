/* gate/fill_others.c - inputs beside the first, as an everyday call has them. */
#include <assert.h>
#include <string.h>

#include "gate/fill_impl.h"

static double everyday(struct rng *rng) {
    double sum = -6; /* nearly N(0, 1), see normal() */
    for (int i = 0; i < 12; i++)
        sum += rng_unit(rng);
    return sum;
}

/* Weights around 1, one of them 0; biases around 0. */
static void norm_vector(const struct tensor *t, struct rng *rng, double centre) {
    for (size_t j = 0; j < t->count; j++)
        tensor_set(t, j, centre + everyday(rng) / 4);
    if (centre != 0 && t->count > 2)
        tensor_set(t, (size_t)rng_below(rng, t->count), 0);
}

/* 0, 1, 2, ... from 0 or from a random start, or at random below 4096. */
static void positions(const struct tensor *t, struct rng *rng, uint64_t seed) {
    double start = seed % 3 == 1 ? (double)rng_below(rng, 4096) : 0;
    for (size_t i = 0; i < t->count; i++) {
        double random = (double)rng_below(rng, 4096);
        tensor_set(t, i, seed % 3 == 2 ? random : start + (double)i);
    }
}

void fill_others(const struct op *op, const struct op_case *c, uint64_t seed) {
    for (size_t i = 1; i < op_input_count(op); i++) {
        const char *name = op->inputs[i].name;
        const struct tensor *t = &c->in[i];
        struct rng rng = rng_from_seed(seed * OP_MAX_INPUTS + i);
        if (!t->type)
            continue;
        if (strcmp(name, "w") == 0)
            norm_vector(t, &rng, 1);
        else if (strcmp(name, "b") == 0)
            norm_vector(t, &rng, 0);
        else if (strcmp(name, "positions") == 0)
            positions(t, &rng, seed);
        else
            assert(!"every tensor of every op has a rule");
    }
}
