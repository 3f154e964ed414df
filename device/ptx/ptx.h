/*
 * device/ptx/ptx.h - a PTX module in memory: what the front end makes and the executor runs.
 *
 *   lex.c      text -> tokens
 *   parse.c    tokens -> directives and instructions, each checked against its row of opcodes.def
 *   resolve.c  names -> register numbers, variable offsets, branch targets; layout of every space
 *   exec*.c    resolved functions -> results
 *
 * Everything in a module lives in its arena and is dropped at once.  The front end never computes
 * a floating-point result; the executor never looks at text.
 */
#ifndef DEVICE_PTX_PTX_H
#define DEVICE_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* ---- types ----------------------------------------------------------------------------------- */

/* TYPE(id, name, bits).  The order is that of the bits in a ptx_types set. */
#define PTX_TYPE_LIST(TYPE)                                                                        \
    TYPE(PRED, "pred", 1)                                                                          \
    TYPE(B8, "b8", 8) TYPE(B16, "b16", 16) TYPE(B32, "b32", 32) TYPE(B64, "b64", 64)               \
    TYPE(B128, "b128", 128)                                                                        \
    TYPE(U8, "u8", 8) TYPE(U16, "u16", 16) TYPE(U32, "u32", 32) TYPE(U64, "u64", 64)               \
    TYPE(S8, "s8", 8) TYPE(S16, "s16", 16) TYPE(S32, "s32", 32) TYPE(S64, "s64", 64)               \
    TYPE(F16, "f16", 16) TYPE(F16X2, "f16x2", 32) TYPE(BF16, "bf16", 16)                           \
    TYPE(BF16X2, "bf16x2", 32) TYPE(F32, "f32", 32) TYPE(F64, "f64", 64)        \
    TYPE(TF32, "tf32", 32) TYPE(E4M3, "e4m3", 8) TYPE(E5M2, "e5m2", 8) TYPE(U16X2, "u16x2", 32) \
    TYPE(S16X2, "s16x2", 32) TYPE(F32X2, "f32x2", 64)                                             \
    TYPE(E4M3X2, "e4m3x2", 16) TYPE(E5M2X2, "e5m2x2", 16)

enum ptx_type {
#define TYPE(id, name, bits) PTX_##id,
    PTX_TYPE_LIST(TYPE)
#undef TYPE
    PTX_TYPE_COUNT,
    PTX_NOTYPE = PTX_TYPE_COUNT
};

typedef uint32_t ptx_types; /* a set of types: bit i is enum ptx_type i */

const char *ptx_type_name(enum ptx_type t);
unsigned ptx_type_bits(enum ptx_type t);

/* ---- modifiers -------------------------------------------------------------------------------- */

enum ptx_rnd { RND_NONE, RND_RN, RND_RZ, RND_RM, RND_RP, RND_RNI, RND_RZI, RND_RMI, RND_RPI,
    RND_RNA };
enum ptx_cmp {
    CMP_NONE, CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_LO, CMP_LS, CMP_HI, CMP_HS,
    CMP_EQU, CMP_NEU, CMP_LTU, CMP_LEU, CMP_GTU, CMP_GEU, CMP_NUM, CMP_NAN
};
enum ptx_bool { BOOL_NONE, BOOL_AND, BOOL_OR, BOOL_XOR };
enum ptx_space {
    SPACE_GENERIC, SPACE_REG, SPACE_PARAM, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_CONST,
    SPACE_CLUSTER /* .shared::cluster: the shared memory of every block of the cluster */
};
enum ptx_half { HALF_NONE, HALF_LO, HALF_HI, HALF_WIDE };
enum ptx_mode { /* shfl, vote, match, shf, testp: what kind */
    MODE_NONE, MODE_UP, MODE_DOWN, MODE_BFLY, MODE_IDX, MODE_ALL, MODE_ANY, MODE_UNI, MODE_BALLOT,
    MODE_L, MODE_R, MODE_CLAMP_L, MODE_WRAP_L, MODE_CLAMP_R, MODE_WRAP_R, MODE_FINITE,
    MODE_INFINITE, MODE_NUMBER, MODE_NOTANUMBER, MODE_NORMAL, MODE_SUBNORMAL, MODE_F4E, MODE_B4E,
    MODE_RC8, MODE_ECL, MODE_ECR, MODE_RC16
};
enum ptx_atom { ATOM_NONE, ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_EXCH, ATOM_CAS, ATOM_INC, ATOM_DEC,
    ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_POPC
};
enum ptx_bar { BAR_NONE, BAR_SYNC, BAR_ARRIVE, BAR_RED };

enum ptx_order { ORDER_NONE, ORDER_WEAK, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL,
    ORDER_SC };

struct ptx_mods {
    enum ptx_rnd rnd;
    enum ptx_cmp cmp;
    enum ptx_bool boolop;
    enum ptx_space space;
    enum ptx_half half;
    enum ptx_mode mode;
    enum ptx_atom atom; /* also the operation of redux and bar.red */
    enum ptx_bar bar;
    enum ptx_order order;
    bool ftz, sat, approx, full, nan, to, volatile_, relu, satfinite, xorsign, trans;
    bool noinc, hint, multicast, cc, wrap, abs;
    uint8_t vec; /* 1, 2, 4, 8: elements of ld/st; matrices */
    uint16_t m, n, k; /* .m16n8k16 */
    uint8_t layout;   /* wmma: 2 bits for each of .row (1) and .col (2), the last one lowest */
    uint8_t dim;      /* .1d to .5d: of a tensor copy */
    bool noftz;       /* of a bulk reduction */
};

/* ---- opcodes ----------------------------------------------------------------------------------- */

enum ptx_op {
#define INSN(id, name, types, types2, operands, allow, require, handler, what) PTX_OP_##id,
#include "device/ptx/opcodes.def"
#undef INSN
    PTX_OP_COUNT
};

/* One row of opcodes.def. */
struct ptx_opcode {
    const char *name;       /* "fma" */
    ptx_types types;        /* legal first types; 0: the instruction has none */
    ptx_types types2;       /* legal second types (cvt, set, slct); 0: none */
    const char *operands;   /* pattern, see opcodes.def */
    uint64_t allow, require; /* modifier kinds, PTX_MOD_* */
    const char *handler;    /* the executor's bind function */
    const char *what;       /* one line for docs/ptx-coverage.md */
};

extern const struct ptx_opcode ptx_opcodes[PTX_OP_COUNT];

struct ptx_insn;
/* The first architecture that has the instruction (legal.c): 90 for sm_90; 0: every one. */
unsigned ptx_op_sm(enum ptx_op op);
unsigned ptx_insn_sm(const struct ptx_insn *in);

#define PTX_MAX_CLUSTER 16 /* blocks; more than 8 need a launch attribute on a GPU */

/* ---- functions ----------------------------------------------------------------------------------- */

enum ptx_sreg { /* special registers; .x .y .z are consecutive */
    SREG_TID_X, SREG_TID_Y, SREG_TID_Z, SREG_NTID_X, SREG_NTID_Y, SREG_NTID_Z,
    SREG_CTAID_X, SREG_CTAID_Y, SREG_CTAID_Z, SREG_NCTAID_X, SREG_NCTAID_Y, SREG_NCTAID_Z,
    SREG_CLUSTERID_X, SREG_CLUSTERID_Y, SREG_CLUSTERID_Z,
    SREG_NCLUSTERID_X, SREG_NCLUSTERID_Y, SREG_NCLUSTERID_Z,
    SREG_CLUSTER_CTAID_X, SREG_CLUSTER_CTAID_Y, SREG_CLUSTER_CTAID_Z,
    SREG_CLUSTER_NCTAID_X, SREG_CLUSTER_NCTAID_Y, SREG_CLUSTER_NCTAID_Z,
    SREG_CLUSTER_CTARANK, SREG_CLUSTER_NCTARANK,
    SREG_LANEID, SREG_WARPID, SREG_NWARPID, SREG_SMID, SREG_NSMID, SREG_GRIDID,
    SREG_LANEMASK_EQ, SREG_LANEMASK_LE, SREG_LANEMASK_LT, SREG_LANEMASK_GE, SREG_LANEMASK_GT,
    SREG_CLOCK, SREG_CLOCK64, SREG_CLOCK_HI, SREG_GLOBALTIMER, SREG_DYNAMIC_SMEM_SIZE,
    SREG_TOTAL_SMEM_SIZE, SREG_GLOBALTIMER_LO, SREG_GLOBALTIMER_HI, SREG_ENVREG, SREG_COUNT
};

struct ptx_var { /* a variable of the global, const, shared, local or param space */
    const char *name;
    enum ptx_space space;
    size_t size, align;
    size_t offset;       /* within its space, laid out by resolve.c; see struct ptx_func */
    bool dynamic;        /* extern shared []: begins where the static shared memory ends */
    bool frame;          /* param: of a call or of a .func, in the thread's own stack */
    const struct ptx_var *origin; /* shared: the module's variable that this one stands for */
    const uint8_t *init; /* size bytes, or NULL for zeros (global, const) */
};

enum ptx_operand_kind {
    OPND_REG,   /* a value register */
    OPND_PRED,  /* a predicate register, perhaps negated */
    OPND_IMM,   /* bits of an immediate, already of the operand's type */
    OPND_SREG,  /* a special register */
    OPND_VAR,   /* the address of a variable (+ offset) */
    OPND_MEM,   /* [base + offset]: base is a register (reg), a variable (var) or nothing */
    OPND_LABEL, /* target: an instruction index */
    OPND_FUNC,  /* a function: called, or its address */
    OPND_TABLE, /* where brx.idx may jump, or an indirect call may go */
    OPND_SINK,  /* "_": a destination thrown away */
};

#define PTX_NOREG UINT32_MAX

struct ptx_operand {
    enum ptx_operand_kind kind;
    enum ptx_type type;      /* what the instruction reads or writes here */
    bool negate;             /* !%p */
    uint32_t reg;            /* index in func->regs, or PTX_NOREG (OPND_MEM without register) */
    uint64_t imm;            /* OPND_IMM: bits, zero-extended from type's width */
    int64_t offset;          /* OPND_MEM, OPND_VAR */
    const struct ptx_var *var;
    enum ptx_sreg sreg;
    uint32_t target;         /* OPND_LABEL */
    struct ptx_func *func;
    const struct ptx_table *table;
};

/* .branchtargets, .calltargets or .callprototype. */
struct ptx_table {
    size_t count;
    uint32_t *targets;       /* .branchtargets: instruction indices */
    struct ptx_func **funcs; /* .calltargets */
    bool any;                /* .callprototype: every function whose address is taken */
};

/* A parameter or result of a .func: a register or a variable of its frame. */
struct ptx_formal {
    const struct ptx_var *var; /* NULL: reg */
    uint32_t reg;
    size_t bytes;
};

#define PTX_MAX_GROUPS 8
#define PTX_MAX_TYPES 4 /* mma: of d, a, b, c */

struct ptx_insn {
    enum ptx_op op;
    enum ptx_type type, type2, type3, type4; /* the last two: mma, wgmma */
    struct ptx_mods mods;
    uint32_t guard;          /* predicate register of @%p, or PTX_NOREG */
    bool guard_negate;
    /* Operands in source order; group g of the pattern is opnd[first[g]] .. opnd[first[g+1]-1]. */
    struct ptx_operand *opnd;
    uint8_t group_count;
    uint8_t first[PTX_MAX_GROUPS + 1];
    unsigned line;           /* in the PTX text */
    unsigned file, source_line; /* of the last .loc; file 0: none */
};

struct ptx_reg {
    const char *name; /* "%f12" */
    enum ptx_type type;
};

struct ptx_func {
    const char *name;
    size_t param_count;
    struct ptx_var *params;  /* offset: in the parameter block, as the driver lays it out */
    size_t param_bytes;
    size_t reg_count;
    struct ptx_reg *regs;    /* value and predicate registers together */
    size_t insn_count;
    struct ptx_insn *insns;  /* the last one always leaves the function (ret is added if need be) */
    size_t static_shared;    /* bytes; dynamic shared begins at size_align(static_shared, 16) */
    size_t local_bytes;      /* per thread */
    unsigned max_threads;    /* from .maxntid or .reqntid; 0: not declared */
    unsigned cluster[3];     /* .reqnctapercluster; 0: not declared */
    bool explicit_cluster;   /* .explicitcluster: a launch has to name its cluster */
    unsigned ambiguous, ambiguous_line; /* see struct dev_entry */
    /* .func only */
    bool is_func, defined, address_taken;
    size_t index;            /* in module->callees */
    size_t ret_count, arg_count;
    struct ptx_formal *rets, *args;
};

/* Stack that a thread has beside one frame of each function: for recursion, and for alloca. */
#define PTX_RECURSION_BYTES 16384u
#define PTX_ALLOCA_BYTES 16384u

struct ptx_module {
    const char *label;
    unsigned version_major, version_minor;
    char target[16];         /* ".target" as written: "sm_75" */
    size_t func_count;
    struct ptx_func *funcs;  /* entries, in source order */
    size_t callee_count;
    struct ptx_func **callees; /* .func, declared or defined */
    size_t var_count;
    struct ptx_var **vars;   /* module-scope global and const variables; offset: within the space */
    size_t global_bytes, const_bytes;
    size_t file_count;
    const char **files;      /* by .file number; NULL where there is none */
    struct ptx_arena *arena;
};

/*
 * Parse and resolve `size` bytes of text (no NUL needed; not kept).
 * ERR_SYNTAX for text that is not PTX, ERR_UNSUPPORTED for PTX that the emulator does not have:
 * "label:line:col: what", then the source line and a caret.  ERR_NOMEM.
 */
MUST_CHECK status_t ptx_module_parse(struct ptx_module **out, const char *label, const char *text,
                                     size_t size);
void ptx_module_free(struct ptx_module *m);

#endif
