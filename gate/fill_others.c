/* gate/fill_others.c - inputs beside the first, as an everyday call has them. */
#include <assert.h>
#include <string.h>

#include "gate/fill_impl.h"

#define SEEDS_APART 8 /* of one case's tensors; fixed, as a case's bits are */

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

/* All keys, or a random number of them. */
static void lengths(const struct tensor *t, struct rng *rng, size_t keys) {
    for (size_t i = 0; i < t->count; i++) {
        size_t length = (size_t)rng_below(rng, keys + 1);
        tensor_set(t, i, (double)(i % 2 ? keys : length));
    }
}

/* One key in eight is hidden. */
static void mask(const struct tensor *t, struct rng *rng) {
    for (size_t i = 0; i < t->count; i++)
        tensor_set(t, i, rng_below(rng, 8) != 0);
}

/* An additive mask: half of it 0, the rest what callers hide with, and a bias to learn from. */
static void additive_mask(const struct tensor *t, struct rng *rng) {
    for (size_t i = 0; i < t->count; i++) {
        const uint64_t kind = rng_below(rng, 8);
        const double bias = 4 * everyday(rng);
        tensor_set(t, i, kind < 4 ? 0 : kind == 4 ? -INFINITY : kind == 5 ? -1e9 : bias);
    }
}

/* ALiBi's: 2^(-8 (h + 1) / heads) for powers of two, and something like it otherwise. */
static void slopes(const struct tensor *t) {
    for (size_t h = 0; h < t->count; h++)
        tensor_set(t, h, ldexp(1, -(int)(8 * (h + 1) / t->count)));
}

static size_t common_divisor(size_t a, size_t b) {
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * Page i of all is page (step i + start) of the pool, modulo its size, step and size having no common
 * divisor; those that no key needs are -1.  shared: of all sequences, so many first pages are those of the
 * first one, as far as both fill them.
 */
void fill_block_table(const struct op_case *c, uint64_t seed, size_t shared) {
    const struct tensor *t = &c->in[op_block_table(op_find("attention"))];
    const size_t pages = dim_get(&c->dims, DIM_PAGES), pool = dim_get(&c->dims, DIM_POOL);
    struct rng rng = rng_from_seed(seed);
    size_t start = (size_t)rng_below(&rng, pool), step = 1 + (size_t)rng_below(&rng, pool);
    if (!t->type)
        return;
    while (common_divisor(step, pool) != 1)
        step++;
    for (size_t i = 0; i < t->count; i++) {
        const size_t batch = i / pages, page = i % pages, end = (page + 1) * PAGE_KEYS;
        const size_t used = attention_keys_used(c, batch), first = attention_keys_used(c, 0);
        double value = (double)((step * i + start) % pool);
        if (page * PAGE_KEYS >= used)
            value = -1;
        else if (batch > 0 && page < shared && end <= used && end <= first)
            value = tensor_get(t, page);
        tensor_set(t, i, value);
    }
}

void fill_others(const struct op *op, const struct op_case *c, uint64_t seed) {
    for (size_t i = 1; i < op_input_count(op); i++) {
        const char *name = op->inputs[i].name;
        const struct tensor *t = &c->in[i];
        struct rng rng = rng_from_seed(seed * SEEDS_APART + i);
        if (!t->type)
            continue;
        if (strcmp(name, "w") == 0)
            norm_vector(t, &rng, 1);
        else if (strcmp(name, "b") == 0)
            norm_vector(t, &rng, 0);
        else if (strcmp(name, "positions") == 0)
            positions(t, &rng, seed);
        else if (strcmp(name, "lengths") == 0)
            lengths(t, &rng, c->dims.keys);
        else if (strcmp(name, "mask") == 0)
            mask(t, &rng);
        else if (strcmp(name, "bias") == 0 && op_is_matrix(op))
            additive_mask(t, &rng);
        else if (strcmp(name, "bias") == 0 || strcmp(name, "sinks") == 0)
            norm_vector(t, &rng, 0);
        else if (strcmp(name, "block_table") == 0)
            fill_block_table(c, seed * SEEDS_APART + i, 0);
        else if (strcmp(name, "slopes") == 0)
            slopes(t);
        else if (strcmp(name, "k") != 0 && strcmp(name, "v") != 0 &&
                 strcmp(name, "lse_p") != 0) /* which their fills write */
            assert(!"every tensor of every op has a rule");
    }
}
