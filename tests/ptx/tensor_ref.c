/* tensor_ref.c - see tensor_ref.h. */
#include <gmp.h>

#include "tests/ptx/tensor_ref.h"

static const struct ref_layout {
    unsigned bits, fraction, dropped; /* dropped: low bits of the register that do not count */
    int least;                        /* the least exponent */
    bool infinity;
} layouts[] = {
    [REF_F16] = {16, 10, 0, -14, true},    [REF_BF16] = {16, 7, 0, -126, true},
    [REF_TF32] = {19, 10, 13, -126, true}, [REF_E4M3] = {8, 3, 0, -6, false},
    [REF_E5M2] = {8, 2, 0, -14, true},     [REF_F32] = {32, 23, 0, -126, true},
};

struct ref_number {
    mpq_t value;
    bool nan;
    int infinite; /* -1, 0, 1 */
    int exponent; /* of a value that is not zero */
};

/* q = sign * 2^e */
static void set_power(mpq_t q, int e) {
    mpq_set_ui(q, 1, 1);
    if (e >= 0)
        mpq_mul_2exp(q, q, (mp_bitcnt_t)e);
    else
        mpq_div_2exp(q, q, (mp_bitcnt_t)-e);
}

/* floor(log2 |q|), q != 0, but not below `least`. */
static int exponent_of(const mpq_t q, int least) {
    mpq_t size, power;
    mpq_inits(size, power, NULL);
    mpq_abs(size, q);
    int e = (int)mpz_sizeinbase(mpq_numref(q), 2) - (int)mpz_sizeinbase(mpq_denref(q), 2);
    set_power(power, e);
    if (mpq_cmp(power, size) > 0)
        e--;
    mpq_clears(size, power, NULL);
    return e > least ? e : least;
}

static void decode(struct ref_number *x, enum ref_type type, uint64_t bits) {
    const struct ref_layout *l = &layouts[type];
    bits >>= l->dropped;
    unsigned exponent_bits = l->bits - 1 - l->fraction;
    uint64_t field = bits >> l->fraction & ((1u << exponent_bits) - 1);
    uint64_t low = bits & ((1u << l->fraction) - 1), ones = (1u << exponent_bits) - 1;
    int sign = bits >> (l->bits - 1) & 1 ? -1 : 1;
    x->nan = field == ones && (l->infinity ? low != 0 : low == (1u << l->fraction) - 1);
    x->infinite = field == ones && l->infinity && !low ? sign : 0;
    int e = (field ? (int)field - 1 : 0) + l->least - (int)l->fraction;
    uint64_t significand = field ? low | 1u << l->fraction : low;
    mpq_t power;
    mpq_init(power);
    set_power(power, e);
    mpq_set_si(x->value, sign * (long)significand, 1);
    mpq_mul(x->value, x->value, power);
    mpq_clear(power);
    x->exponent = mpq_sgn(x->value) ? exponent_of(x->value, l->least) : 0;
}

/* q to a multiple of 2^(exponent - fraction), toward zero or to nearest even; then its bits. */
static uint32_t encode(const mpq_t q, enum ref_type type, unsigned fraction, bool nearest) {
    const struct ref_layout *l = &layouts[type];
    if (!mpq_sgn(q))
        return 0;
    uint32_t sign = mpq_sgn(q) < 0 ? UINT32_C(1) << (l->bits - 1) : 0;
    int last = exponent_of(q, l->least) - (int)fraction;
    mpq_t units, power;
    mpz_t whole, rest, twice;
    mpq_inits(units, power, NULL);
    mpz_inits(whole, rest, twice, NULL);
    set_power(power, -last);
    mpq_mul(units, q, power);
    mpq_abs(units, units);
    mpz_tdiv_qr(whole, rest, mpq_numref(units), mpq_denref(units));
    mpz_mul_2exp(twice, rest, 1);
    int half = mpz_cmp(twice, mpq_denref(units));
    if (nearest && (half > 0 || (half == 0 && mpz_odd_p(whole))))
        mpz_add_ui(whole, whole, 1);
    uint64_t n = mpz_get_ui(whole);
    mpq_clears(units, power, NULL);
    mpz_clears(whole, rest, twice, NULL);
    if (!n)
        return 0; /* +0, also of a negative sum */
    if (n >> (fraction + 1)) {
        n >>= 1;
        last++;
    }
    int field = n >> fraction ? last + (int)fraction - l->least + 1 : 0;
    int ones = (1 << (l->bits - 1 - l->fraction)) - 1;
    if (field >= ones)
        return sign | (uint32_t)ones << l->fraction;
    uint64_t low = n & ((UINT64_C(1) << fraction) - 1);
    return sign | (uint32_t)field << l->fraction | (uint32_t)(low << (l->fraction - fraction));
}

static uint32_t not_finite(enum ref_type type, bool nan, bool negative) {
    if (type == REF_F16)
        return nan ? 0x7fff : negative ? 0xfc00 : 0x7c00;
    return nan ? 0x7fffffff : negative ? 0xff800000 : 0x7f800000;
}

#define MAX_TERMS 33

static uint32_t one_block(const struct ref_core *core, enum ref_type type, const uint64_t *a,
                          const uint64_t *b, unsigned count, uint32_t c) {
    enum ref_type out = core->end == REF_NEAREST_F16 ? REF_F16 : REF_F32;
    struct ref_number term[MAX_TERMS], x, y;
    mpq_t unit, quotient;
    mpz_t cut, sum;
    bool nan = false, up = false, down = false;
    int top = core->floor;
    uint32_t result;
    mpq_inits(unit, quotient, x.value, y.value, NULL);
    mpz_inits(cut, sum, NULL);
    for (unsigned i = 0; i <= count; i++) {
        struct ref_number *t = &term[i];
        mpq_init(t->value);
        if (i < count) {
            decode(&x, type, a[i]);
            decode(&y, type, b[i]);
            mpq_mul(t->value, x.value, y.value);
            t->exponent = x.exponent + y.exponent;
            bool x_zero = !x.infinite && !x.nan && !mpq_sgn(x.value);
            bool y_zero = !y.infinite && !y.nan && !mpq_sgn(y.value);
            t->nan = x.nan || y.nan || (x.infinite && y_zero) || (y.infinite && x_zero);
            int sx = x.infinite ? x.infinite : mpq_sgn(x.value);
            int sy = y.infinite ? y.infinite : mpq_sgn(y.value);
            t->infinite = x.infinite || y.infinite ? sx * sy : 0;
        } else {
            decode(t, out, c);
        }
        nan |= t->nan;
        up |= !t->nan && t->infinite > 0;
        down |= !t->nan && t->infinite < 0;
        if (!t->nan && !t->infinite && mpq_sgn(t->value) && t->exponent > top)
            top = t->exponent;
    }
    if (nan || up || down) {
        result = not_finite(out, nan || (up && down), down);
    } else {
        set_power(unit, top - core->fraction);
        for (unsigned i = 0; i <= count; i++) {
            mpq_div(quotient, term[i].value, unit);
            mpz_tdiv_q(cut, mpq_numref(quotient), mpq_denref(quotient));
            mpz_add(sum, sum, cut);
        }
        mpq_set_z(quotient, sum);
        mpq_mul(quotient, quotient, unit);
        result = encode(quotient, out, core->end == REF_CUT_E8M13 ? 13 : layouts[out].fraction,
                        core->end == REF_NEAREST_F16);
    }
    for (unsigned i = 0; i <= count; i++)
        mpq_clear(term[i].value);
    mpq_clears(unit, quotient, x.value, y.value, NULL);
    mpz_clears(cut, sum, NULL);
    return result;
}

/* a + b rounded once, to nearest. */
static uint32_t add(enum ref_type type, uint32_t a, uint32_t b) {
    struct ref_number x, y;
    uint32_t result;
    mpq_inits(x.value, y.value, NULL);
    decode(&x, type, a);
    decode(&y, type, b);
    bool nan = x.nan || y.nan || x.infinite * y.infinite < 0;
    if (nan || x.infinite || y.infinite) {
        result = not_finite(type, nan, x.infinite + y.infinite < 0);
    } else {
        mpq_add(x.value, x.value, y.value);
        result = encode(x.value, type, layouts[type].fraction, true);
    }
    mpq_clears(x.value, y.value, NULL);
    return result;
}

/* An 8-bit float as f16. */
static uint64_t converted(enum ref_type type, uint64_t bits) {
    struct ref_number x;
    mpq_init(x.value);
    decode(&x, type, bits);
    uint64_t h = x.nan || x.infinite ? not_finite(REF_F16, x.nan, x.infinite < 0)
                                     : encode(x.value, REF_F16, 10, true);
    mpq_clear(x.value);
    return h;
}

uint32_t ref_tensor_dot(const struct ref_core *core, enum ref_type type, const uint64_t *a,
                        const uint64_t *b, unsigned k, uint32_t c) {
    uint64_t wide_a[MAX_TERMS], wide_b[MAX_TERMS];
    uint32_t sum = core->converted ? 0 : c;
    unsigned n = 0;
    for (unsigned pass = 0; core->converted && pass < 2; pass++)
        for (unsigned i = 2 * pass; i < k; i += i % 2 ? 3 : 1) {
            wide_a[n] = converted(type, a[i]);
            wide_b[n++] = converted(type, b[i]);
        }
    unsigned block = core->converted ? k / 2 : core->block;
    for (unsigned i = 0; i < k; i += block) {
        unsigned count = k - i < block ? k - i : block;
        sum = core->converted ? one_block(core, REF_F16, wide_a + i, wide_b + i, count, sum)
                              : one_block(core, type, a + i, b + i, count, sum);
    }
    if (core->converted)
        return add(core->end == REF_NEAREST_F16 ? REF_F16 : REF_F32, sum, c);
    return sum;
}
