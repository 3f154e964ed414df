/*
 * gate/fill_attention.c - the fills of attention.
 *
 * Most of them prescribe the logits: q has one entry a, and key j the entry z_j / (scale a) in its
 * place, so that q . k_j is one product and the rest adds zeros.  Rows differ by a's sign or size only
 * where that keeps the logits' order.
 */
#include "gate/fill_impl.h"

enum { IN_Q, IN_K, IN_V, IN_LENGTHS };

/* One fill's case while it is written. */
struct heads {
    const struct op_case *c;
    uint64_t seed;
    struct rng rng;
    size_t keys, head_dim, kv_heads; /* kv_heads: over all batches */
    bool paged;
};

/* Of a pool, what no key of a sequence is written to holds NaN: no result may depend on it. */
static void poison_pool(const struct op_case *c) {
    for (size_t input = IN_K; input <= IN_V; input++)
        for (size_t i = 0; i < c->in[input].count; i++)
            tensor_set(&c->in[input], i, NAN);
}

static struct heads begin(const struct op_case *c, uint64_t seed) {
    const bool paged = c->in[op_block_table(op_find("attention"))].type;
    if (paged)
        poison_pool(c);
    return (struct heads){.c = c,
                          .seed = seed,
                          .rng = rng_from_seed(seed),
                          .keys = c->dims.keys,
                          .head_dim = c->dims.head_dim,
                          .kv_heads = c->dims.batch * c->dims.kv_heads,
                          .paged = paged};
}

/* kv_head: over all batches.  A key behind its sequence's length has no place in a pool. */
static void set_key(struct heads *h, size_t input, size_t kv_head, size_t key, size_t c, double x) {
    const size_t heads = h->c->dims.kv_heads, batch = kv_head / heads;
    size_t row;
    if (h->paged && key >= attention_keys_used(h->c, batch))
        return;
    if (attention_key_row(&row, h->c, batch, kv_head % heads, key))
        set_finite(&h->c->in[input], row * h->head_dim + c, x);
}

static void set_normal(struct heads *h, size_t input, double scale) {
    const struct tensor *t = &h->c->in[input];
    if (input == IN_Q) {
        for (size_t i = 0; i < t->count; i++)
            set_finite(t, i, scale * everyday(&h->rng));
        return;
    }
    for (size_t head = 0; head < h->kv_heads; head++)
        for (size_t key = 0; key < h->keys; key++)
            for (size_t c = 0; c < h->head_dim; c++)
                set_key(h, input, head, key, c, scale * everyday(&h->rng));
}

/* The place where q is not 0, another one in each case. */
static size_t place(const struct heads *h) {
    return h->seed % h->head_dim;
}

/* q = a at its place, 0 elsewhere; a = 2^5, where |z| / (scale a) fits f16 up to z = 2e5. */
#define Q_ENTRY 32.0
static void set_queries(struct heads *h, double a) {
    const struct tensor *q = &h->c->in[IN_Q];
    for (size_t i = 0; i < q->count; i++)
        set_finite(q, i, i % h->head_dim == place(h) ? a : 0);
}

/* Other entries of k are noise that meets only zeros. */
static void set_logit(struct heads *h, size_t kv_head, size_t key, double z) {
    double scale = h->c->options.scale != 0 ? h->c->options.scale : 1;
    set_key(h, IN_K, kv_head, key, place(h), z / (scale * Q_ENTRY));
}

/* Logits of all heads by a rule. */
static void set_logits(struct heads *h, double (*rule)(struct heads *h, size_t key)) {
    set_queries(h, Q_ENTRY);
    set_normal(h, IN_K, 1);
    for (size_t head = 0; head < h->kv_heads; head++)
        for (size_t j = 0; j < h->keys; j++)
            set_logit(h, head, j, rule(h, j));
}

static size_t tile_of(const struct heads *h) {
    static const size_t tiles[] = {32, 64, 128, 16};
    return tiles[h->seed % 4];
}

static double spread(struct heads *h, double from, double to) {
    return from + (to - from) * rng_unit(&h->rng);
}

/* ---- the fills ------------------------------------------------------------------------------- */

static void normals(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    static const double scales[] = {1, 3, 0.25};
    set_normal(&h, IN_Q, scales[seed % 3]);
    set_normal(&h, IN_K, 1);
    set_normal(&h, IN_V, 1);
}

/* 8 log 2 = 5.545: the threshold of lazy rescaling. */
static double rising(struct heads *h, size_t key) {
    double step = h->seed / 4 % 2 ? 8.1 * LN2 : 7.9 * LN2;
    return step * (double)(key / tile_of(h)) - spread(h, 0, 0.5);
}

static void rising_tiles(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    set_logits(&h, rising);
    set_normal(&h, IN_V, 1);
}

static double late(struct heads *h, size_t key) {
    static const double heights[] = {20, 95, 110};
    bool dominant = key + 1 + h->seed % 2 == h->keys;
    return dominant ? heights[h->seed % 3] : spread(h, -1, 1);
}

static void late_key(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    set_logits(&h, late);
    set_normal(&h, IN_V, 1);
}

/* The first tile has weight 0, and all others lie far below 0. */
static double deep(struct heads *h, size_t key) {
    static const double depths[] = {-60, -300, -2e4};
    if (key < tile_of(h) && key + 1 < h->keys)
        return -INFINITY;
    return depths[h->seed % 3] - spread(h, 0, 4);
}

static void far_below(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    set_logits(&h, deep);
    set_normal(&h, IN_V, 1);
}

/* Below -1e4, -5e4 and -1e5, which stand for -Inf here and there. */
static double beyond_sentinel(struct heads *h, size_t key) {
    static const double sentinels[] = {-1.5e4, -6e4, -1.2e5};
    (void)key;
    return sentinels[h->seed % 3] - spread(h, 0, 2);
}

static void sentinels(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    set_logits(&h, beyond_sentinel);
    set_normal(&h, IN_V, 1);
}

/* Every column of v is one value: so is o, whatever the weights. */
static void constant_v(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    set_normal(&h, IN_Q, seed % 2 ? 4 : 1);
    set_normal(&h, IN_K, 1);
    for (size_t head = 0; head < h.kv_heads; head++)
        for (size_t col = 0; col < h.head_dim; col++) {
            double value = everyday(&h.rng);
            for (size_t j = 0; j < h.keys; j++)
                set_key(&h, IN_V, head, j, col, value);
        }
}

/* Equal weights, and values that add up to 0 or nearly so. */
static double level(struct heads *h, size_t key) {
    (void)key;
    return h->seed % 2 ? 0 : 7.5;
}

static void cancelling_v(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    set_logits(&h, level);
    for (size_t head = 0; head < h.kv_heads; head++)
        for (size_t j = 0; j < h.keys; j++)
            for (size_t col = 0; col < h.head_dim; col++) {
                double size = 1 + (double)((j / 2 * 7 + col) % 13);
                set_key(&h, IN_V, head, j, col, j % 2 ? -size : size);
            }
}

/* Several equal maxima and values of one sign: roundings of P that do not average out. */
static double tied(struct heads *h, size_t key) {
    size_t every = 2 + h->seed % 5;
    return key % every == 0 ? 3.5 : 3.5 - spread(h, 0.25, 8);
}

static void ties(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    set_logits(&h, tied);
    for (size_t head = 0; head < h.kv_heads; head++)
        for (size_t j = 0; j < h.keys; j++)
            for (size_t col = 0; col < h.head_dim; col++)
                set_key(&h, IN_V, head, j, col, spread(&h, 1, 2));
}

/* Logits of hundreds: P is one-hot, or 0 but for a few keys. */
static void large(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    set_normal(&h, IN_Q, 16);
    set_normal(&h, IN_K, 16);
    set_normal(&h, IN_V, 100);
}

static void tiny(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    double scale = dtype_min_normal(c->in[IN_V].type->dtype) * (seed % 2 ? 1 : 0x1p8);
    set_normal(&h, IN_Q, 0x1p-10);
    set_normal(&h, IN_K, seed % 3 ? 1 : 0x1p-12);
    set_normal(&h, IN_V, scale);
}

/* Slots behind a sequence's length hold NaN; no result may change. */
static void unused(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    static const double lengths[] = {1, 127, 128, 129, 0};
    const struct tensor *t = &c->in[IN_LENGTHS];
    for (size_t b = 0; t->type && b < t->count; b++) {
        double length = lengths[(b + seed) % 5];
        tensor_set(t, b, length > (double)h.keys ? (double)h.keys - 1 : length);
    }
    fill_block_table(c, seed, 0); /* for these lengths */
    normals(c, seed);
    for (size_t b = 0; t->type && b < t->count; b++) {
        for (size_t head = 0; head < c->dims.kv_heads; head++)
            for (size_t j = attention_keys_used(c, b); j < h.keys; j++)
                for (size_t col = 0; col < h.head_dim; col++) {
                    set_key(&h, IN_K, b * c->dims.kv_heads + head, j, col, NAN);
                    set_key(&h, IN_V, b * c->dims.kv_heads + head, j, col, NAN);
                }
    }
}

/* Sequences that begin with the same keys hold them once; all but the first may be shorter. */
static void shared_prefix(const struct op_case *c, uint64_t seed) {
    const struct tensor *t = &c->in[IN_LENGTHS];
    for (size_t b = 0; t->type && b < t->count; b++) {
        size_t less = b == 0 ? 0 : (b * 7 + seed % 5) % c->dims.keys;
        tensor_set(t, b, (double)(c->dims.keys - less));
    }
    fill_block_table(c, seed, 1 + seed % 4);
    normals(c, seed);
}

/* One entry of a key: its logit is NaN, +Inf or -Inf for every query that sees it. */
static void special_key(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    normals(c, seed);
    set_queries(&h, Q_ENTRY);
    for (size_t head = 0; head < h.kv_heads; head++)
        set_key(&h, IN_K, head, (size_t)rng_below(&h.rng, h.keys), place(&h), specials[seed % 3]);
}

/*
 * One entry of a value, under a weight that is not small.  With a causal mask it is that of the first
 * key, which every query sees: 0 times NaN for a hidden one is NaN in every tensor core.
 */
static void special_value(const struct op_case *c, uint64_t seed) {
    struct heads h = begin(c, seed);
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    normals(c, seed);
    set_logits(&h, level);
    if (c->options.causal && c->dims.queries > h.keys) /* some see nothing */
        return;
    for (size_t head = 0; head < h.kv_heads; head++) {
        size_t key = c->options.causal ? 0 : (size_t)rng_below(&h.rng, h.keys);
        set_key(&h, IN_V, head, key, (size_t)rng_below(&h.rng, h.head_dim), specials[seed % 3]);
    }
}

const struct fill attention_fills[] = {
    {.name = "normal",
     .values = "q, k, v N(0, 1), q also N(0, 9) and N(0, 1/16)",
     .purpose = "The everyday case: what the other fills are compared with.",
     .others = normals},
    {.name = "rising_tiles",
     .values = "the maximum rises by 7.9 or 8.1 log 2 per tile of 16, 32, 64 or 128 keys",
     .purpose = "Rescaling at every tile, and just under and over the threshold of a lazy one.",
     .others = rising_tiles},
    {.name = "late_key",
     .values = "one key among the last two is 20, 95 or 110 above all others",
     .purpose = "All that was summed before must be rescaled, by a subnormal factor or by 0.",
     .others = late_key},
    {.name = "far_below",
     .values = "the first tile has logits of -Inf, the others lie at -60, -300 or -2e4",
     .purpose = "A maximum stuck at 0 or at a sentinel after a tile without weight: 0 / 0.",
     .others = far_below},
    {.name = "sentinels",
     .values = "all logits below -1.5e4, -6e4 or -1.2e5",
     .purpose = "A finite stand-in for -Inf beats real logits.",
     .others = sentinels},
    {.name = "constant_v",
     .values = "every column of v is one value",
     .purpose = "o is that value: weights that do not add up to 1 show at once.",
     .others = constant_v},
    {.name = "cancelling_v",
     .values = "equal logits, values that cancel in pairs",
     .purpose = "A key that is lost or counted twice shows against a result of 0.",
     .others = cancelling_v},
    {.name = "ties",
     .values = "every second to sixth key has the maximum, v in 1 .. 2",
     .purpose = "Equal maxima, and roundings of P to one side under values of one sign.",
     .others = ties},
    {.name = "large",
     .values = "q, k N(0, 256), v N(0, 1e4)",
     .purpose = "Logits of hundreds: one-hot weights, exponentials that underflow.",
     .others = large},
    {.name = "tiny",
     .values = "q about 2^-10, v about 2^emin",
     .purpose = "Equal weights of results near the smallest number.",
     .others = tiny},
    {.name = "unused",
     .values = "lengths 1, 127, 128, 129, 0; NaN in all slots behind them",
     .purpose = "A slot that is not in use must not change a bit.",
     .others = unused},
    {.name = "special_key",
     .values = "one NaN, +Inf or -Inf in a key",
     .purpose = "NaN and +Inf reach o and lse of the queries that see it; -Inf is weight 0.",
     .others = special_key},
    {.name = "special_value",
     .values = "equal logits, one NaN, +Inf or -Inf in v",
     .purpose = "It stays in its column, and reaches every query that sees its key.",
     .others = special_value},
    {.name = "shared_prefix",
     .values = "as `normal`, the first one to four pages of all sequences are the same ones",
     .purpose = "A page read by the wrong sequence's table, a page that is taken for one sequence's own.",
     .needs = "block_table",
     .others = shared_prefix},
    {NULL},
};
