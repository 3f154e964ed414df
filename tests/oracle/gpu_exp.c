/*
 * tests/oracle/gpu_exp.c - see gpu_exp.h.
 *
 * Rows: quadratic interpolation of 2^f on 64 segments, recovered from an exhaustive dump of
 * ex2.approx.ftz.f32 on an H200 (shared/data/mufu_sm90.tsv, 2026-11-29).  Structure and squarer:
 * envytools' G80 model.
 */
#include "gpu_exp.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const struct {
    uint32_t a;
    uint16_t b, c;
} ex2_rows[64] = {
    {33554432, 22713, 494}, {33919815, 22960, 501}, {34289179, 23210, 506}, {34662562, 23463, 511},
    {35040015, 23718, 518}, {35421574, 23977, 521}, {35807289, 24238, 527}, {36197206, 24502, 532},
    {36591369, 24768, 541}, {36989822, 25038, 546}, {37392613, 25311, 551}, {37799794, 25586, 559},
    {38211406, 25865, 564}, {38627501, 26147, 568}, {39048128, 26431, 577}, {39473334, 26719, 583},
    {39903170, 27010, 589}, {40337687, 27304, 596}, {40776934, 27602, 600}, {41220967, 27902, 609},
    {41669833, 28206, 615}, {42123589, 28513, 622}, {42582283, 28824, 627}, {43045974, 29138, 633},
    {43514714, 29455, 641}, {43988558, 29776, 647}, {44467562, 30100, 655}, {44951783, 30428, 661},
    {45441275, 30759, 670}, {45936098, 31094, 677}, {46436311, 31432, 686}, {46941968, 31775, 691},
    {47453132, 32121, 699}, {47969864, 32471, 705}, {48492222, 32824, 715}, {49020266, 33182, 721},
    {49554062, 33543, 730}, {50093671, 33908, 739}, {50639156, 34277, 748}, {51190579, 34651, 753},
    {51748008, 35028, 763}, {52311507, 35409, 773}, {52881143, 35795, 779}, {53456980, 36185, 787},
    {54039088, 36579, 796}, {54627535, 36977, 806}, {55222390, 37380, 813}, {55823722, 37787, 822},
    {56431604, 38198, 833}, {57046103, 38614, 842}, {57667294, 39035, 849}, {58295251, 39460, 858},
    {58930045, 39889, 870}, {59571751, 40324, 877}, {60220444, 40763, 887}, {60876202, 41207, 896},
    {61539101, 41655, 909}, {62209217, 42109, 917}, {62886631, 42568, 925}, {63571421, 43031, 938},
    {64263669, 43500, 946}, {64963455, 43973, 959}, {65670860, 44452, 969}, {66385969, 44936, 980},
};

static uint32_t f32_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float f32_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* r^2 / 2^19 as the hardware's squarer truncates it: each partial product on its own. */
static uint64_t truncated_square(uint32_t r) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < 17; i++)
        if (r >> i & 1)
            sum += r >> (18 - i);
    return sum >> 1;
}

float gpu_ex2_approx_ftz(float x) {
    if (isnan(x))
        return NAN;
    if (x >= 128)
        return INFINITY;
    if (x <= -127) /* the exponent field would be 0 or less: flushed */
        return 0;
    if (fabsf(x) < 0x1p-126f)
        return 1;

    uint32_t fixed = (uint32_t)(fabsf(x) * 0x1p23f); /* |x| truncated to 23 fraction bits */
    int integer = (int)(fixed >> 23);
    uint32_t fraction = fixed & 0x7fffff;
    if (x < 0) {
        integer = -integer;
        if (fraction != 0) { /* one's complement, so 2^-23 off the negation */
            integer--;
            fraction ^= 0x7fffff;
        }
    }
    uint32_t row = fraction >> 17, r = fraction & 0x1ffff;
    uint64_t significand = (((uint64_t)ex2_rows[row].a << 13) + (uint64_t)ex2_rows[row].b * r +
                            ex2_rows[row].c * truncated_square(r) + 0x77e2) >>
                           15;
    int exponent = integer + 127 + (int)(significand >> 24);
    if (exponent <= 0)
        return 0;
    return f32_from_bits(((uint32_t)exponent << 23) | ((uint32_t)significand & 0x7fffff));
}

/* nvcc 13's expf, instruction by instruction: what `nvcc -ptx` makes of expf(x). */
float gpu_expf(float x) {
    float t = fmaf(x, f32_from_bits(0x3bbb989d), 0.5f);
    t = t < 0 ? 0 : t > 1 ? 1 : t; /* .sat; NaN goes to 0 */
    if (isnan(t))
        t = 0;
    /* fma.rm(t, 252, 12582913): the sum lies in a binade whose step is 1, so rm is floor. */
    float j = (float)(floor((double)t * 252) + 12582913);
    float k = j - 12583039.0f;
    float q = fmaf(x, f32_from_bits(0x3fb8aa3b), -k);
    q = fmaf(x, f32_from_bits(0x32a57060), q);
    return gpu_ex2_approx_ftz(q) * f32_from_bits(f32_bits(j) << 23);
}

float gpu_expf_fast(float x) {
    return gpu_ex2_approx_ftz(x * f32_from_bits(0x3fb8aa3b));
}
