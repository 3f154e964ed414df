/*
 * base/rng.h - the one source of pseudo-random bits: splitmix64 (Steele, Lea, Flood 2014).
 *
 * A case is named by a seed, so the stream is part of Assay's contract: the same seed gives the
 * same bits on every machine and in every version.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline struct rng rng_from_seed(uint64_t seed) {
    return (struct rng){.state = seed};
}

static inline uint64_t rng_u64(struct rng *rng) {
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform on 0 .. bound-1; bound > 0.  The bias is below bound / 2^64. */
static inline uint64_t rng_below(struct rng *rng, uint64_t bound) {
    return (uint64_t)(((unsigned __int128)rng_u64(rng) * bound) >> 64);
}

/* Uniform on the multiples of 2^-53 in [0, 1). */
static inline double rng_unit(struct rng *rng) {
    return (double)(rng_u64(rng) >> 11) * 0x1p-53;
}

#endif
