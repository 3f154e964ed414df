/*
 * oracle/oracle.h - the truth: enclosures of each op's real result, from the exact input values.
 *
 * An op works on one unit at a time, an output row and all that it depends on (units are
 * independent), so callers may share them out to threads. MPFR is the judge, at rising precision
 * until the enclosure is tight.  Conventions for NaN, +-Inf, empty rows and signed zero:
 * docs/numerics.md.
 */
#ifndef ORACLE_ORACLE_H
#define ORACLE_ORACLE_H

#include "base/status.h"
#include "oracle/attention.h"
#include "oracle/bounds.h"
#include "oracle/enclosure.h"
#include "oracle/norm.h"
#include "oracle/rope.h"
#include "oracle/row.h"
#include "oracle/tensor.h"
#include "oracle/topk.h"

/* ---- what a kernel is told ------------------------------------------------------------------- */

/* The manifest's `options:` at one shape: what the op is, beside its tensors. */
struct op_options {
    double eps;                  /* norms */
    enum norm_contract contract; /* norms */
    const struct dtype *rounded; /* norms: NORM_ROUND_FIRST */
    double base;                 /* rope */
    size_t rotary_dim;           /* rope */
    enum rope_layout layout;     /* rope */
    double scale, softcap;       /* attention: scale as the kernel gets it, in f32 */
    bool causal;   /* attention; softmax and its like: row i ends at i + cols - rows */
    bool windowed; /* attention */
    size_t window_left, window_right, window_sinks;
    bool renormalise; /* softmax_topk */
    size_t ld;        /* elements from row to row of a matrix of real numbers; 0: dense */
};

#define OP_MAX_INPUTS 9
#define OP_MAX_OUTPUTS 2

/* One case as an op sees it. */
struct op_case {
    struct case_dims dims;
    struct op_options options;
    enum empty_row empty_row;
    struct tensor in[OP_MAX_INPUTS]; /* in the order of op->inputs */
};

/* A tensor that an op takes or gives. */
struct op_tensor {
    const char *name; /* "x", as in manifests */
    enum tensor_kind kind;
    bool optional; /* a kernel may do without */
    enum dim shape[MAX_DIMS];
};

/* ---- ops ------------------------------------------------------------------------------------- */

enum op_result { OP_PER_ROW, OP_PER_ELEMENT }; /* 1 result per unit, or row->cols of them */

struct op_unit;

/*
 * Sizes that may stand for a result which cancelled, 0 for none: the largest of what was added up
 * (what a lost one would show), and their sum (on which scale plain errors are measured).
 */
struct result_scale {
    double term, plain;
};

struct op {
    const char *name; /* "softmax" */
    const char *formula;
    enum op_result result;
    /*
     * out[0 .. n-1], n = 1 or cols: enclosures no wider than 2^-40 relative to the result, or
     * 2^-1074 absolute.  ERR_NOMEM; ERR_UNDECIDED at the precision limit.
     */
    status_t (*enclose)(struct enclosure *out, const struct oracle_row *row);
    /*
     * budget[0 .. n-1]: upper bounds on |got - real result| for a correct kernel with these
     * declared numerics on this very row (rounded up; +Inf where a correct kernel may overflow on
     * the way and so no bound holds).  0 where only the class counts (NaN, infinities) and where
     * the result is exact.  want: what enclose gave.  ERR_UNSUPPORTED if the numerics lack what the
     * op needs. Derivations: docs/bounds.md.
     */
    status_t (*budget)(double *budget, const struct oracle_row *row, const struct enclosure *want,
                       const struct numerics *numerics);
    /*
     * NULL: the op's entries have their places, there are no orders.
     * spread[0 .. n-1]: upper bounds on |got_A - got_B| for one correct kernel that sees this row
     * in two orders (spread[j] is for entry j of the row, wherever each order put it).  Never above
     * twice the budget, and below it where the orders share rounded values.
     */
    status_t (*spread)(double *spread, const struct oracle_row *row, const struct enclosure *want,
                       const struct numerics *numerics);
    void (*scale)(struct result_scale *scale, const struct oracle_row *row); /* NULL: all 0 */
    /*
     * For the results of a unit in outputs of whole numbers, got[0 .. n-1]: *wrong is the first one
     * that a correct kernel cannot give, or n.  NULL: there are no such outputs.
     */
    status_t (*judge_whole)(size_t *wrong, const struct oracle_row *row, const size_t *got,
                            const struct numerics *numerics);
    enum dim dims[MAX_DIMS]; /* of a case, in the order in which they are shown */
    struct op_tensor inputs[OP_MAX_INPUTS], outputs[OP_MAX_OUTPUTS]; /* ended by name NULL */
    enum dim pool[MAX_DIMS]; /* beside a block table: the shape of inputs with key-value heads */
    size_t unit_dims; /* the first dimensions of every output count the units */
    /* Doubles that unit needs room for, and one unit made of a case: u->row (see op_unit_at). */
    size_t (*unit_room)(const struct op_case *c);
    void (*unit)(struct op_unit *u, size_t index);
    /* How many neighbouring units share a part (attention: k and v), the first ones from 0 on, and
     * the doubles that the part needs.  NULL: none do. */
    size_t (*sharers)(const struct case_dims *dims);
    size_t (*shared_room)(const struct op_case *c);
    /* See op_refuses; NULL: nothing to say. */
    const char *(*refuses)(const struct case_dims *dims, const struct op_options *options);
};

/* All ops, ended by a row with name NULL. */
extern const struct op ops[];

const struct op *op_find(const char *name);

/* What its rows are long in: DIM_COLS, or DIM_HEAD_DIM. */
enum dim op_row_length(const struct op *op);

/* Does it take one matrix and nothing else, with entries in any order? */
bool op_is_matrix(const struct op *op);

/* The inputs or outputs there are: those before name NULL. */
size_t op_input_count(const struct op *op);
size_t op_output_count(const struct op *op);

/* The input that is a block table; OP_MAX_INPUTS: the op has none.  Where a kernel takes it, keys and
 * values are pages of a pool. */
size_t op_block_table(const struct op *op);

/* Extents of one of its tensors; paged: beside a block table. */
const enum dim *op_tensor_shape(const struct op *op, const struct op_tensor *t, bool paged);

/* Elements of a tensor of this shape, false if they are more than a size_t. */
bool op_tensor_count(size_t *out, const enum dim *shape, const struct case_dims *dims);

/*
 * Where key `key` of a sequence stands, as an index of rows of head_dim in k and v for its head; false:
 * nowhere, as its page is not of the pool.  Without a block table keys stand side by side.
 */
bool attention_key_row(size_t *row, const struct op_case *c, size_t batch, size_t kv_head,
                       size_t key);

/* Keys of this sequence that are real: all, or as many as it is long. */
size_t attention_keys_used(const struct op_case *c, size_t batch);

/* Units of a case, and results of one over all outputs.  False if they are more than a size_t. */
bool op_unit_count(size_t *out, const struct op *op, const struct case_dims *dims);
size_t op_result_count(const struct op *op, const struct case_dims *dims);

/* Result r of a unit: which output it stands in, and at which element. */
struct op_place {
    size_t output, element;
};
struct op_place op_place_of(const struct op *op, const struct case_dims *dims, size_t unit,
                            size_t r);

/* The unit to which alone element i of an input belongs; SIZE_MAX: several share it. */
size_t op_unit_of(const struct op *op, size_t input, const struct case_dims *dims, size_t i);

/* NULL if the dimensions and options go together, else why not; static until the next call on this
 * thread. */
const char *op_refuses(const struct op *op, const struct case_dims *dims,
                       const struct op_options *options);

/* What neighbouring units have in common. */
struct op_shared {
    size_t loaded; /* which part it holds; SIZE_MAX: none */
    double values[];
};

/* One unit at a time of a case, as exact values. */
struct op_unit {
    const struct op *op;
    struct op_case c;
    struct oracle_row row;
    union {
        struct norm_row norm;
        struct rope_row rope;
        struct attention_row attention;
        struct topk_row topk;
    } own;          /* what row points to */
    double *memory;           /* owned */
    struct op_shared *shared; /* NULL: the op has none; owned, unless another unit lends it */
    bool borrowed;
};

/* The data that c's tensors point to must outlive it.  ERR_NOMEM. */
MUST_CHECK status_t op_unit_init(struct op_unit *u, const struct op *op, const struct op_case *c);
void op_unit_at(struct op_unit *u, size_t index); /* u->row is this unit until the next call */
void op_unit_clear(struct op_unit *u);            /* safe on a zeroed struct, and twice */

/* Neighbouring units of a case at once, with one copy of what they share. */
struct op_units {
    size_t room;
    struct op_unit *unit; /* room; owned */
};

/* Units of a case that a loop over them is to take at a time: those of one call share their part. */
size_t op_sharers(const struct op *op, const struct case_dims *dims); /* 1: nothing is shared */

/* ERR_NOMEM. */
MUST_CHECK status_t op_units_init(struct op_units *u, size_t room, const struct op *op,
                                  const struct op_case *c);
/* u->unit[i].row is unit first + i, i < n <= room; all of one part: floor(index / sharers). */
void op_units_at(struct op_units *u, size_t first, size_t n);
void op_units_clear(struct op_units *u); /* safe on a zeroed struct, and twice */

/* Free what MPFR caches for this thread; call it before a thread ends. */
void oracle_thread_done(void);

#endif
