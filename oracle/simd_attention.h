/*
 * oracle/simd_attention.h - attention's loops in double for rows that share k and v: products of
 * panels, logits, weights.  Compiled once per x86-64 level.  Bounds: docs/oracle.md, "Attention".
 */
#ifndef ORACLE_SIMD_ATTENTION_H
#define ORACLE_SIMD_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>

/* What makes logits of dot products, for one row; keys from `used` on are invisible. */
struct logit_terms {
    double scale, softcap, alibi_slope;
    const double *bias;        /* or NULL */
    size_t keys;               /* slots with a dot product; the sink comes behind them */
    double used, at;           /* at: the key on the diagonal, query + keys_used - queries */
    double left, right, sinks; /* the window about it, and keys that it always shows */
    bool causal, windowed;
    const unsigned char *mask; /* keys flags, or NULL */
    double dot_error;          /* of a dot product, relative to the sum of magnitudes */
};

/* What a kernel may be off, from below; all relative but `once`, each without its roundings up. */
struct weight_terms {
    double qk;           /* of a dot product */
    double tanh;         /* of softcap's tanh */
    bool scale_rounds;   /* the scaled product is rounded once more */
    double slope, ulps;  /* exp: per unit of its argument; one call */
    double p_rounding;   /* P to p_type, but for a maximum's */
    double alone;        /* of a term of P V beside that: accumulation, division */
    bool maximum_rounds; /* exp is called for the maximum, too; its P is rounded */
    bool sum_rounded;    /* P's rounding is in the sum as well */
};

/* The largest logit, NaN if one is NaN or +Inf; and how many keys are visible. */
struct logits_found {
    double top;
    size_t visible;
};

/* Of a row's weights e_j ~ e^(z_j - top). */
struct weight_sums {
    double size;  /* sum e_j */
    double own;   /* sum e_j eps_j: what ours is off */
    double eta;   /* sum e_j eta_j: what a kernel's may be off, from below */
    double worst; /* the largest eps_j; +Inf if a logit is off by so much that 0 may be wrong */
    double chain; /* roundings of each sum */
};

/* Of n columns: enclosures of the results and their sizes; sums. */
struct column_terms {
    const double *lo, *hi, *size;
    double *moved, *noise, *largest;
};

struct attention_simd {
    size_t width; /* columns of a panel: b[i width + column] */
    size_t rows;  /* of a block of products */
    /*
     * c1[r][.] (+)= sum_i a1[r][i] b[i][.], c2[r][.] (+)= sum_i a2[r][i] |b[i][.]| for one panel b and
     * any number of rows; fresh: c is written, else added to.
     */
    void (*products)(double *c1, double *c2, size_t c_stride, const double *a1, const double *a2,
                     size_t a_stride, const double *b, size_t rows, size_t inner, bool fresh);
    /*
     * z[0 .. n-1]: dot products become logits, -Inf where invisible; size: their sums of magnitudes
     * become bounds on the logits' errors.  own != NULL: own[j] becomes D_j, no more than a kernel's
     * logit may be off.
     */
    struct logits_found (*logits)(double *z, double *size, double *own, size_t n,
                                  const struct logit_terms *t, const struct weight_terms *w);
    /*
     * z becomes the weights.  error becomes, for w == NULL, e_j (eps_j + gamma), eps_j the weight's
     * own relative error; else e_j (eta_j + alone), from below, by own[j] = D_j.
     */
    struct weight_sums (*weights)(double *z, double *error, const double *own, size_t n, double top,
                                  double gamma, const struct weight_terms *w);
    /*
     * One key of weight p in attention_budget's columns: t->moved[c] += common max(|v_c - lo_c|,
     * |v_c - hi_c|), t->noise[c] += weight |v_c| alone + floor (|v_c| + size_c), t->largest[c] the
     * larger of itself and |v_c|; columns where v_c is not finite stay.  The same bits at every level.
     */
    void (*grant)(const struct column_terms *t, const double *v, size_t n, double common,
                  double weight, double alone, double floor);
};

extern const struct attention_simd attention_simd_v2, attention_simd_v3, attention_simd_v4;

const struct attention_simd *attention_simd(void); /* of row_simd()'s level */

#endif
