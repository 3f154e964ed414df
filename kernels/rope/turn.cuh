/*
 * Angles as fractions of a turn, in fixed point.
 *
 * A pair turns by position * freq radians, freq = base^(-2i / rotary_dim).  That product in f32 is
 * off by 2^-24 of itself: a sixteenth of a radian at position 10^6.  But whole turns do not count,
 * and an integer in units of 2^-64 turns drops them by itself when it overflows: with step = freq /
 * 2 pi in that unit, step * position is the reduced angle, with no error but the step's.
 */
#ifndef KERNELS_ROPE_TURN_CUH
#define KERNELS_ROPE_TURN_CUH

#define TURN_UNITS 18446744073709551616.0 /* 2^64 */
#define TWO_PI 6.28318530717958647692

/* 2 pi / 2^32 as a sum of two floats */
#define RADIANS_HI 1.46291812e-9f
#define RADIANS_LO (-4.0709404e-17f)

/*
 * Cosine (x) and sine (y) of a fraction of a turn.  Quarter turns are taken off exactly; the rest is
 * at most an eighth of a turn, t radians, off by at most 5.6e-8: 2^-32 turns cut off, 29 bits
 * rounded to 24, t rounded.  The polynomials are those of Cephes' sinf and cosf (Moshier), for
 * |t| <= pi/4.  tests/kernels/test_turn.c bounds both errors.
 */
static inline __device__ float2 turn_cos_sin(unsigned long long turn) {
    const unsigned eighths = (unsigned)(turn >> 32) + 0x20000000u;
    const float rest = (float)((int)(eighths & 0x3fffffffu) - 0x20000000);
    const float t = fmaf(rest, RADIANS_HI, rest * RADIANS_LO), z = t * t;

    float sine = fmaf(z, -1.9515295891e-4f, 8.3321608736e-3f);
    sine = fmaf(z, sine, -1.6666654611e-1f);
    sine = fmaf(z * t, sine, t);
    float cosine = fmaf(z, 2.443315711809948e-5f, -1.388731625493765e-3f);
    cosine = fmaf(z, cosine, 4.166664568298827e-2f);
    cosine = fmaf(z * z, cosine, fmaf(z, -0.5f, 1.0f));

    const unsigned quarter = eighths >> 30;
    const float c = quarter & 1 ? sine : cosine, s = quarter & 1 ? cosine : sine;
    return make_float2(quarter == 1 || quarter == 2 ? -c : c, quarter & 2 ? -s : s);
}

#endif
