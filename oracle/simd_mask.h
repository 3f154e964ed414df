/* oracle/simd_mask.h - which keys a row of attention sees, side by side: as attention_visible, but for
 * flags and biases. */
#ifndef ORACLE_SIMD_MASK_H
#define ORACLE_SIMD_MASK_H

#include "oracle/simd.h"
#include "oracle/simd_attention.h"

INLINE vm visible(vd j, const struct logit_terms *t) {
    vm shown = is_above(all(t->used), j);
    vd past = j - all(t->at); /* how far behind the diagonal */
    if (t->causal)
        shown &= is_least(all(0), past);
    if (t->windowed)
        shown &= (is_least(all(t->right), past) & is_least(all(t->left), all(0) - past)) |
                 is_above(all(t->sinks), j);
    return shown;
}

INLINE vd hidden(vm shown, vd z) {
#if defined __AVX512F__
    return (vd)_mm512_mask_mov_pd((__m512d)all(-INFINITY), shown, (__m512d)z);
#else
    return pick(shown, z, all(-INFINITY));
#endif
}

#endif
