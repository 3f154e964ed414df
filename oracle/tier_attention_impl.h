/* oracle/tier_attention_impl.h - a batch of attention rows in double: what enclosures and verdicts
 * share. */
#ifndef ORACLE_TIER_ATTENTION_IMPL_H
#define ORACLE_TIER_ATTENTION_IMPL_H

#include "oracle/bounds_impl.h"
#include "oracle/simd_attention.h"
#include "oracle/tier_attention.h"
#include "oracle/tier_impl.h"

#define U 0x1p-53
#define LOST_WEIGHT 0x1p-800 /* a weight below FAR, whatever its logit is off: simd_attention.h */

#define GROUP ((size_t)16) /* rows at a time */

struct batch {
    const struct attention_simd *simd;
    const struct attention_row *rows;
    size_t count, keys,
        padded; /* keys: the most that a row uses; padded: one more, and full panels */
    size_t dim, value_dim, columns; /* columns: value_dim in full panels */
    double *k, *v;                  /* panels */
    double *q, *q_size;             /* GROUP x dim */
    double *z, *error;              /* GROUP x padded: logits, then weights */
    double *own;                    /* padded */
    double *o, *size;               /* GROUP x columns */
    double *o_part, *size_part;     /* of some of the keys */
    size_t *odd, odd_count;         /* keys with an entry that the tier does not take */
    double largest;                 /* |v| */
    void *memory;
};

/* What a row's weights came to; taken = false: the tier does not answer for it. */
struct found {
    bool taken, empty;
    double top;
    size_t visible;
    struct weight_sums sums;
    double off, low; /* |sum - real sum|, and a lower bound of the real one */
    double gamma;    /* denominator's roundings, in a kernel */
    double alone;    /* the least relative budget of a term of P V */
};

status_t batch_init(struct batch *b, const struct attention_row *rows, size_t count);
void batch_clear(struct batch *b);

/*
 * Rows first .. first + n - 1, n <= GROUP: found[0 .. n-1] and b->o, unnormalised; b->size: our own
 * error (nu == NULL), or what a kernel's may be, from below.
 */
void batch_group(struct found *found, struct batch *b, size_t first, size_t n,
                 const struct numerics *nu);

/* Of a sum of weights times values: roundings on its longest chain, times 2^-53. */
double batch_gamma(const struct batch *b);

/* lse of a row that is taken and not empty. */
struct enclosure attention_lse_of(const struct found *f);

/* ---- tier_attention_within.c ------------------------------------------------------------------ */

/* What the kernel's logits, and then its weights of `visible` keys, may be off at least. */
void weight_terms_logits(struct weight_terms *w, const struct attention_row *row,
                         const struct numerics *nu);
void weight_terms_sums(struct weight_terms *w, const struct attention_row *row,
                       const struct numerics *nu, double visible);

#endif
