/* oracle/tier_rope.c - rope in double: frequencies by MPFR once, angles in double-double. */
#include <math.h>
#include <stdlib.h>

#include "oracle/rope_impl.h"
#include "oracle/simd_norm.h"
#include "oracle/tier_impl.h"
#include "oracle/tier_norm.h"

#define MAX_ENTRY 0x1p300

/* Pairs side by side; one block of memory. */
struct turns {
    double *hi, *lo, *a, *b, *y, *z; /* pairs each */
    size_t pairs;
    const struct rope_row *of; /* whose frequencies hi + lo are; NULL: nobody's */
    double largest;            /* of them */
};

/* freq_i to 2^-105, but for i = 0 and frequencies that are given: exact. */
static void make_frequencies(struct turns *t, const struct rope_row *row) {
    mpfr_t log, f;
    mpfr_init2(log, 160);
    mpfr_init2(f, 160);
    mpfr_set_d(log, row->base, MPFR_RNDN);
    mpfr_log(log, log, MPFR_RNDN);
    t->largest = 0;
    for (size_t i = 0; i < t->pairs; i++) {
        mpfr_mul_ui(f, log, 2 * i, MPFR_RNDN);
        mpfr_div_ui(f, f, row->rotary_dim, MPFR_RNDN);
        mpfr_neg(f, f, MPFR_RNDN);
        mpfr_exp(f, f, MPFR_RNDN);
        if (row->freq)
            mpfr_set_d(f, row->freq[i], MPFR_RNDN);
        t->hi[i] = mpfr_get_d(f, MPFR_RNDN);
        mpfr_sub_d(f, f, t->hi[i], MPFR_RNDN);
        t->lo[i] = mpfr_get_d(f, MPFR_RNDN);
        t->largest = fmax(t->largest, fabs(t->hi[i]));
    }
    mpfr_clear(log);
    mpfr_clear(f);
    t->of = row;
}

static bool same_frequencies(const struct rope_row *a, const struct rope_row *b) {
    return a && a->base == b->base && a->rotary_dim == b->rotary_dim && a->freq == b->freq;
}

static bool enclose(struct enclosure *out, struct turns *t, const struct rope_row *row) {
    t->pairs = row->rotary_dim / 2;
    for (size_t i = 0; i < t->pairs; i++) {
        struct rope_pair at = rope_pair_at(row, i);
        t->a[i] = row->x[at.first];
        t->b[i] = row->x[at.second];
        if (!(fabs(t->a[i]) <= MAX_ENTRY && fabs(t->b[i]) <= MAX_ENTRY))
            return false;
    }
    if (!same_frequencies(t->of, row))
        make_frequencies(t, row);
    if (!(t->largest * fabs(row->position) <= TURN_LIMIT * (1 - 0x1p-20)))
        return false;
    norm_simd()->turn(t->y, t->z, t->a, t->b, t->hi, t->lo, row->position, t->pairs);
    for (size_t i = 0; i < t->pairs; i++) {
        struct rope_pair at = rope_pair_at(row, i);
        double half = (fabs(t->a[i]) + fabs(t->b[i])) * TURN_ERROR * (1 + 0x1p-20);
        half += half > 0 ? 0x1p-1000 : 0; /* underflow */
        out[at.first] = (struct enclosure){t->y[i] - half, t->y[i] + half};
        out[at.second] = (struct enclosure){t->z[i] - half, t->z[i] + half};
    }
    for (size_t j = row->rotary_dim; j < row->head_dim; j++)
        out[j] = enclosure_exact(row->x[j]);
    return true;
}

/* What rope_enclose refuses, it is to refuse itself. */
static bool sound(const struct rope_row *row) {
    for (size_t i = 0; row->freq && i < row->rotary_dim / 2; i++)
        if (!isfinite(row->freq[i]))
            return false;
    return row->rotary_dim % 2 == 0 && row->rotary_dim <= row->head_dim &&
           isfinite(row->position) && (row->freq || (row->base > 0 && isfinite(row->base)));
}

status_t rope_tier_enclose(struct enclosure *out, enum tier *tier, const struct rope_row *rows,
                           size_t count) {
    if (count == 0)
        return OK;
    const size_t most = rows->head_dim / 2 + 1;
    struct turns t = {.hi = calloc(most, 6 * sizeof(double))};
    status_t st = OK;
    if (!t.hi)
        return FAIL(ERR_NOMEM, "rope: no memory for a head of %zu", rows->head_dim);
    t.lo = t.hi + most;
    t.a = t.lo + most;
    t.b = t.a + most;
    t.y = t.b + most;
    t.z = t.y + most;
    for (size_t r = 0; r < count; r++) {
        struct enclosure *own = out + r * rows->head_dim;
        if (tier[r] == TIER_F64 && sound(&rows[r]) && enclose(own, &t, &rows[r]))
            continue;
        tier[r] = TIER_MPFR;
        TRY(rope_enclose(own, &rows[r]));
    }
done:
    free(t.hi);
    return st;
}
