/*
 * The angles of rope (kernels/rope/turn.cuh), which its manifest's claims rest on: of every 509th of
 * all 2^32 fractions of a turn, how far the angle that reaches sine and cosine is off, and how far
 * these are off in units in the last place.  Host and device round alike: fma and int to f32 are IEEE's.
 */
#include <math.h>
#include <stdio.h>

#define __device__
typedef struct {
    float x, y;
} float2;
static inline float2 make_float2(float x, float y) {
    return (float2){x, y};
}
#include "kernels/rope/turn.cuh"

#define ANGLE_ABS 5.6e-8 /* what the manifest declares, without the step's own error */
#define ULPS 2.0         /* what `trig: sincosf` grants against the correctly rounded */
#define STRIDE 509

static double ulps_off(float got, double want) {
    return fabs((double)got - want) / ldexp(1, ilogb(fmax(fabs(want), 0x1p-60)) - 23);
}

int main(void) {
    double angle = 0, sine = 0, cosine = 0;
    for (unsigned long long k = 0; k < 1ull << 32; k += STRIDE) {
        const unsigned long long turn = k << 32 | 0xffffffffu; /* as much cut off as can be */
        const unsigned eighths = (unsigned)k + 0x20000000u;
        const double units = (double)((int)(eighths & 0x3fffffffu) - 0x20000000);
        const float t = fmaf((float)units, RADIANS_HI, (float)units * RADIANS_LO);
        const float2 got = turn_cos_sin(turn);
        const double s = sin((double)t), c = cos((double)t);
        const double want_s[4] = {s, c, -s, -c}, want_c[4] = {c, -s, -c, s};
        angle = fmax(angle, fabs((units + 1) * (TWO_PI / 4294967296.0) - (double)t));
        angle = fmax(angle, fabs(units * (TWO_PI / 4294967296.0) - (double)t));
        sine = fmax(sine, ulps_off(got.y, want_s[eighths >> 30]));
        cosine = fmax(cosine, ulps_off(got.x, want_c[eighths >> 30]));
    }
    printf("angle %.3g (claimed %.3g), sine %.3f ulp, cosine %.3f ulp (claimed %.1f)\n", angle,
           ANGLE_ABS, sine, cosine, ULPS);
    return !(angle <= ANGLE_ABS && sine <= ULPS && cosine <= ULPS);
}
