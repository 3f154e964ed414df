/*
 * simd_mufu.c - the special functions that go lane by lane through mufu.c; ex2.f32, the one that
 * kernels lean on, is vectorised in simd_f32.c.
 */
#include "device/ptx/mufu.h"
#include "device/ptx/simd.h"

#define MUFU_LANES(name, function)                                                        \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) { \
        const u32a *a = row32(w, x->a);                                                   \
        u32a *d = row32(w, x->d);                                                         \
        FOR_LANES(i, MASK_OF(w, x, masked))                                               \
        d[i] = function(a[i]);                                                            \
        return x + 1;                                                                     \
    }                                                                                     \
    VARIANTS(name, )
MUFU_LANES(lg2_ftz, mufu_lg2)
MUFU_LANES(lg2_all, mufu_lg2_subnormal)
MUFU_LANES(rcp_ftz, mufu_rcp)
MUFU_LANES(rcp_all, mufu_rcp_subnormal)
MUFU_LANES(rsqrt_ftz, mufu_rsqrt)
MUFU_LANES(rsqrt_all, mufu_rsqrt_subnormal)
MUFU_LANES(sqrt_ftz, mufu_sqrt)
MUFU_LANES(sqrt_all, mufu_sqrt_subnormal)
MUFU_LANES(sine, mufu_sin)
MUFU_LANES(cosine, mufu_cos)
MUFU_LANES(tangent, mufu_tanh)

DECLARE_BIND(lg2_f32) {
    return in->mods.ftz ? USE(x, lg2_ftz) : USE(x, lg2_all);
}
DECLARE_BIND(rcp_approx_f32) {
    return in->mods.ftz ? USE(x, rcp_ftz) : USE(x, rcp_all);
}
DECLARE_BIND(rsqrt_f32) {
    return in->mods.ftz ? USE(x, rsqrt_ftz) : USE(x, rsqrt_all);
}
DECLARE_BIND(sqrt_approx_f32) {
    return in->mods.ftz ? USE(x, sqrt_ftz) : USE(x, sqrt_all);
}
DECLARE_BIND(sin_f32) {
    (void)in;
    return USE(x, sine);
}
DECLARE_BIND(cos_f32) {
    (void)in;
    return USE(x, cosine);
}
DECLARE_BIND(tanh_f32) {
    (void)in;
    return USE(x, tangent);
}

/* f64: the high word goes in and comes out, the low word of the result is 0. */
#define MUFU_LANES_64(name, function)                                                     \
    ALWAYS const struct xinsn *name(struct warp *w, const struct xinsn *x, bool masked) { \
        const u64a *a = row64(w, x->a);                                                   \
        u64a *d = row64(w, x->d);                                                         \
        FOR_LANES(i, MASK_OF(w, x, masked))                                               \
        d[i] = (uint64_t)function((uint32_t)(a[i] >> 32)) << 32;                          \
        return x + 1;                                                                     \
    }                                                                                     \
    VARIANTS(name, )
MUFU_LANES_64(rcp_high, mufu_rcp64h)
MUFU_LANES_64(rsqrt_high, mufu_rsqrt64h)

DECLARE_BIND(rcp_approx_f64) {
    (void)in;
    return USE(x, rcp_high);
}
DECLARE_BIND(rsqrt_approx_f64) {
    (void)in;
    return USE(x, rsqrt_high);
}
