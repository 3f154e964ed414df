/*
 * oracle/dtype.c - bits to exact value and back, by integer arithmetic only.
 *
 * Every format here is IEEE-like: sign, biased exponent, p-1 fraction bits; an all-ones exponent
 * holds infinity (fraction 0) and NaN.  Nothing depends on the host's rounding mode.
 */
#include "oracle/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "oracle/simd_row.h"

/* clang-format off */
const struct dtype dtypes[DT_COUNT] = {
    [DT_F32] = {.name = "f32", .id = DT_F32, .bits = 32, .prec = 24, .emin = -126, .emax = 127,
                .nan = 0x7fc00000},
    [DT_F16] = {.name = "f16", .id = DT_F16, .bits = 16, .prec = 11, .emin = -14, .emax = 15,
                .nan = 0x7e00},
    [DT_BF16] = {.name = "bf16", .id = DT_BF16, .bits = 16, .prec = 8, .emin = -126, .emax = 127,
                 .nan = 0x7fc0},
};
/* clang-format on */

const struct dtype *dtype_find(const char *name) {
    for (size_t i = 0; i < DT_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static uint32_t sign_bit(const struct dtype *dt) {
    return (uint32_t)1 << (dt->bits - 1);
}

/* The bits of +Inf: exponent field all ones.  Smaller magnitudes are finite, larger ones NaN. */
static uint32_t inf_bits(const struct dtype *dt) {
    return sign_bit(dt) - ((uint32_t)1 << (dt->prec - 1));
}

static uint32_t fraction_mask(const struct dtype *dt) {
    return ((uint32_t)1 << (dt->prec - 1)) - 1;
}

enum dtype_class dtype_classify(const struct dtype *dt, uint32_t bits) {
    uint32_t magnitude = bits & ~sign_bit(dt);
    if (magnitude > inf_bits(dt))
        return CLASS_NAN;
    if (magnitude == inf_bits(dt))
        return CLASS_INF;
    if (magnitude > fraction_mask(dt))
        return CLASS_NORMAL;
    return magnitude != 0 ? CLASS_SUBNORMAL : CLASS_ZERO;
}

bool dtype_sign(const struct dtype *dt, uint32_t bits) {
    return (bits & sign_bit(dt)) != 0;
}

/* ---- to and from double ---------------------------------------------------------------------- */

static double double_from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

double dtype_to_double(const struct dtype *dt, uint32_t bits) {
    uint64_t sign = (uint64_t)dtype_sign(dt, bits) << 63;
    uint64_t exponent = (bits & ~sign_bit(dt)) >> (dt->prec - 1);
    uint64_t fraction = bits & fraction_mask(dt);
    switch (dtype_classify(dt, bits)) {
    case CLASS_NAN:
        return NAN;
    case CLASS_INF:
        return double_from_bits(sign | (uint64_t)0x7ff << 52);
    case CLASS_NORMAL: /* another bias (emax here, 1023 there) and a longer fraction */
        return double_from_bits(sign | (exponent - (uint64_t)dt->emax + 1023) << 52 |
                                fraction << (53 - dt->prec));
    case CLASS_SUBNORMAL:
    case CLASS_ZERO:
        break;
    }
    double magnitude = ldexp((double)fraction, dt->emin - (int)dt->prec + 1);
    return sign != 0 ? -magnitude : magnitude;
}

/*
 * Does a magnitude between the datum m and the next one up go up?  `rest` is the discarded part and
 * `half` the middle, both in the same unit; rest < 2 half.
 */
static bool rounds_up(uint64_t m, uint64_t rest, uint64_t half, bool negative,
                      enum rounding rounding) {
    switch (rounding) {
    case ROUND_NEAREST:
        return rest > half || (rest == half && (m & 1) != 0);
    case ROUND_ZERO:
        return false;
    case ROUND_UP:
        return rest != 0 && !negative;
    case ROUND_DOWN:
        return rest != 0 && negative;
    }
    return false;
}

static uint64_t double_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

uint32_t dtype_from_double(const struct dtype *dt, double x, enum rounding rounding) {
    uint64_t xbits = double_bits(x);
    bool negative = xbits >> 63 != 0;
    uint32_t sign = negative ? sign_bit(dt) : 0;
    if (isnan(x))
        return dt->nan;
    if (isinf(x))
        return sign | inf_bits(dt);
    if (x == 0)
        return sign;

    /* |x| = m 2^e with 2^52 <= m < 2^53; a subnormal double is tiny for every format here. */
    uint64_t m = xbits & 0x000fffffffffffff;
    int field = (int)(xbits >> 52 & 0x7ff);
    int e = (field != 0 ? field : 1) - 1075;
    if (field != 0)
        m |= (uint64_t)1 << 52;

    /* Unit of the result: 2^unit is the spacing of the format around x. */
    int binade = e + 52;
    int normal_unit = binade - (int)dt->prec + 1;
    int least_unit = dt->emin - (int)dt->prec + 1;
    int unit = normal_unit > least_unit ? normal_unit : least_unit;
    int drop = unit - e; /* >= 53 - p > 0 */

    uint64_t kept, rest, half;
    if (drop <= 53) {
        kept = m >> drop;
        rest = m & (((uint64_t)1 << drop) - 1);
        half = (uint64_t)1 << (drop - 1);
    } else { /* |x| < 2^(e+53) <= half a unit: any rest that compares below half will do */
        kept = 0;
        rest = 1;
        half = 2;
    }
    if (rounds_up(kept, rest, half, negative, rounding))
        kept++;

    /*
     * The encoding is monotone, so a carry out of the significand lands in the exponent field by
     * itself, from subnormal to normal as well.  kept < 2^(p-1) only where unit = least_unit.
     */
    uint64_t field_minus_one = (uint64_t)(unit - least_unit); /* for normal results */
    uint64_t magnitude = (field_minus_one << (dt->prec - 1)) + kept;
    if (magnitude < inf_bits(dt))
        return sign | (uint32_t)magnitude;

    bool to_inf = rounding == ROUND_NEAREST || (rounding == ROUND_UP && !negative) ||
                  (rounding == ROUND_DOWN && negative);
    return sign | (inf_bits(dt) - (to_inf ? 0 : 1));
}

/* ---- order ----------------------------------------------------------------------------------- */

int64_t dtype_ordinal(const struct dtype *dt, uint32_t bits) {
    assert(dtype_classify(dt, bits) != CLASS_NAN);
    int64_t magnitude = bits & ~sign_bit(dt);
    return dtype_sign(dt, bits) ? -magnitude : magnitude;
}

uint32_t dtype_from_ordinal(const struct dtype *dt, int64_t ordinal) {
    int64_t magnitude = ordinal < 0 ? -ordinal : ordinal;
    assert(magnitude <= inf_bits(dt));
    return (ordinal < 0 ? sign_bit(dt) : 0) | (uint32_t)magnitude;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

uint32_t dtype_load(const struct dtype *dt, const void *data, size_t i) {
    uint32_t bits = 0; /* little endian, as every host and device of Assay */
    size_t size = dtype_size(dt);
    memcpy(&bits, (const unsigned char *)data + i * size, size);
    return bits;
}

void dtype_row(double *out, const struct dtype *dt, const void *data, size_t first, size_t n) {
    if (dt->id == DT_F32) /* the host's own float */
        row_simd()->widen(out, (const unsigned char *)data + first * sizeof(float), n);
    else
        for (size_t j = 0; j < n; j++)
            out[j] = dtype_to_double(dt, dtype_load(dt, data, first + j));
}

void dtype_store(const struct dtype *dt, void *data, size_t i, uint32_t bits) {
    size_t size = dtype_size(dt);
    memcpy((unsigned char *)data + i * size, &bits, size);
}

/* ---- range ----------------------------------------------------------------------------------- */

double dtype_max(const struct dtype *dt) {
    return dtype_to_double(dt, inf_bits(dt) - 1);
}

double dtype_min_normal(const struct dtype *dt) {
    return ldexp(1.0, dt->emin);
}
