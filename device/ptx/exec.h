/*
 * device/ptx/exec.h - the executor's own structures.
 *
 *   lower.c, rows.c   a resolved function -> struct program: one xinsn per PTX instruction
 *   simd_*.c          the handlers, compiled once per x86-64 level
 *   warp.c            which path of a warp runs next; waiting, merging, slices
 *   block.c           barriers, the warps of a block
 *   cluster.c         the blocks of a cluster and their barrier
 *   launch.c          the clusters of a launch
 *   mem.c, shadow.c   addresses -> bytes, and what may go wrong there
 *   fault.c           fault records
 *   cpu.c             the back end: regions, images, launches
 *
 * A value register is a row of the warp's register file: 32 lanes side by side, 4 bytes each (types
 * of up to 32 bits, zero-extended), 8 bytes (64-bit types) or 16 (b128: low halves, then high
 * ones). A predicate is one 32-bit mask.  Immediates, addresses and special registers are rows too,
 * so a handler never asks what kind its operands are.
 */
#ifndef DEVICE_PTX_EXEC_H
#define DEVICE_PTX_EXEC_H

#include "base/rng.h"
#include "device/device_impl.h"
#include "device/ptx/ptx.h"

#define LANES 32
#define MAX_WARPS 32 /* of a block: 1024 threads */
#define ROW32 ((uint32_t)(LANES * 4))
#define ROW64 ((uint32_t)(LANES * 8))
#define ROW128 ((uint32_t)(LANES * 16))
#define PRED_TRUE 0 /* predicate 0 of every warp is constant */

/* Generic addresses: each space but global has a window of 2^40 bytes. */
#define WINDOW_PARAM 0x7b0000000000u
#define WINDOW_LOCAL 0x7c0000000000u
#define WINDOW_SHARED 0x7d0000000000u
#define WINDOW_GLOBAL 0x7f0000000000u
#define WINDOW_BYTES 0x10000000000u

struct warp;
struct xinsn;

/* Run one instruction on the warp's active lanes; the next one, or leave(). */
typedef const struct xinsn *(*exec_fn)(struct warp *w, const struct xinsn *x);

/* ---- programs: lower.c ----------------------------------------------------------------------- */

enum {
    X_SIGNED = 1 << 0,   /* loads extend the sign */
    X_ADDR64 = 1 << 1,   /* the address row has 64-bit lanes */
    X_UNIFORM = 1 << 2,  /* the address is the same in every lane */
    X_VOLATILE = 1 << 3, /* in global memory a strong access: no data race with another one */
    X_RELEASE = 1 << 5,  /* orders what came before it: a fence and a strong access */
    X_SOURCE64 = 1 << 7, /* X_ADDR64 for row b: the source of a copy */
    X_OBJECT64 = 1 << 8, /* likewise for row e: an mbarrier object */
    X_ORDERED = 1 << 6,  /* .relaxed and stronger: a message in shared memory too */
    X_RESULT = 1 << 4,   /* an atom has a destination, red has none */
};

/* One executable instruction.  Which fields mean something is the handler's affair. */
struct xinsn {
    exec_fn full, masked;        /* all 32 lanes active and no guard; anything else */
    uint32_t guard, gneg;        /* guard predicate, XORed with gneg (0 or ~0) */
    uint32_t d, d2;              /* destination: row, or predicate number; second one */
    uint32_t a, b, c, e;         /* source rows in operand order */
    uint32_t p, pneg, p2, p2neg; /* source predicates */
    uint32_t slot;               /* of a memory instruction: its number in warp.hits */
    uint8_t esize, vec;          /* bytes of an element; elements */
    uint8_t abits, dbits;        /* register bits of source a and of the destination (16, 32, 64) */
    uint16_t flags;
    uint16_t space; /* enum ptx_space */
    uint64_t imm;   /* displacement, lookup table, struct tensor_model, ... */
    union {
        const struct xinsn *target; /* bra */
        const uint32_t *list;       /* rows of a vector operand */
    };
    const struct ptx_insn *insn; /* what it was made from */
    const struct inner *inner;   /* shadow: what the event counter wraps */
};

struct inner {
    exec_fn full, masked;
    uint8_t sources;
    bool ftz;
};

struct row_const {
    uint32_t row;
    bool wide;   /* 64-bit lanes */
    bool shared; /* an address in the block's shared memory: its base is added */
    uint64_t value;
};

struct row_sreg {
    uint32_t row;
    bool wide;
    unsigned bits;
    enum ptx_sreg sreg;
};

/*
 * Registers that may be read before they are written start at all ones: a NaN in every float type.
 * Zero, the likeliest right value, would let `float s; for (...) s += x[i];` pass.
 */
struct row_start {
    uint32_t row, bytes;
    bool narrow; /* 16 bits in a 32-bit lane, zero-extended */
};

/* A row that holds the address of something in the lane's frame of a function. */
struct row_frame {
    uint32_t row;
    bool wide;
    uint64_t offset;
};

/* A function of a program; the first one is the entry. */
struct xfunc {
    const struct ptx_func *func;
    const struct xinsn *code;
    uint64_t shared_base;          /* its shared variables begin here */
    uint32_t row_first, row_end;   /* its registers */
    uint32_t pred_first, pred_end; /* its predicates */
    size_t frame_first, frame_end; /* in frames */
    size_t start_first, start_end; /* in starts */
    const uint32_t *row;           /* by register number */
    bool cyclic;                   /* it may be called again before it has returned */
};

/* One execution of a function, of the lanes that were called together: call.c. */
struct frame;

struct program {
    const struct ptx_module *module;
    const struct ptx_func *func;
    size_t count;
    struct xinsn *code;
    size_t xfunc_count;
    struct xfunc *xfuncs;
    uint32_t *xfunc_of;   /* by index in module->callees; UINT32_MAX: not in this program */
    uint32_t **maps;      /* xfuncs[].row */
    size_t static_shared; /* of the entry and of all it calls */
    size_t stack_bytes;   /* per thread: the entry's variables and the deepest stack of calls */
    size_t local_bytes;   /* per thread: that, and what alloca takes from */
    size_t frame_count;
    struct row_frame *frames;
    size_t file_bytes, pred_count, slot_count;
    size_t const_count, sreg_count, start_count;
    struct row_const *consts;
    struct row_sreg *sregs;
    struct row_start *starts;
    size_t list_count;
    uint32_t *lists;
    struct inner *inners;
};

struct lower_env {
    const struct isa *isa;
    unsigned arch;                    /* 90 */
    uint64_t global_base, const_base; /* addresses of the module's variables */
    bool count_events;
};

MUST_CHECK status_t program_lower(struct program **out, const struct ptx_module *m,
                                  const struct ptx_func *f, const struct lower_env *env);
void program_free(struct program *p);

/* ---- register rows: rows.c ------------------------------------------------------------------- */

struct row_map {
    uint32_t *row; /* by register number; only referenced value registers have one */
    bool *live_in; /* may be read before it is written */
    uint32_t next; /* first byte after the registers */
};

MUST_CHECK status_t rows_assign(struct row_map *map, const struct ptx_func *f, uint32_t first_row);
void rows_clear(struct row_map *map);
/* The pattern letter of group g of an instruction. */
char operand_letter(const struct ptx_insn *in, unsigned g);
bool operand_is_dest(char letter);
uint32_t row_bytes(enum ptx_type type);

/* ---- handlers: simd_*.c ---------------------------------------------------------------------- */

/* Choose the handlers of one instruction; false if the form is not there. */
typedef bool (*bind_fn)(struct xinsn *x, const struct ptx_insn *in);

struct isa {
    const char *name;     /* "v3" */
    const bind_fn *binds; /* by enum ptx_op */
    /*
     * Wrap a bound instruction so that it counts struct dev_events; false if it has none to
     * count.
     */
    bool (*count_events)(struct xinsn *x, struct inner *inner);
};

extern const struct isa isa_v2, isa_v3, isa_v4;
/* The best that this machine has, or the one that ASSAY_ISA names.  ERR_DEVICE, ERR_USAGE. */
MUST_CHECK status_t isa_pick(const struct isa **out);

/* ---- memory: mem.c --------------------------------------------------------------------------- */

struct barrier;
struct cell;

/* A run of bytes that a kernel may touch. */
struct region {
    uint64_t lo, size; /* addresses [lo, lo + size) */
    uint8_t *host;
    struct block *owner; /* whose shared or local memory it is; NULL: everybody's */
    uint8_t *written;    /* shadow: per 4 bytes, a mask of the bytes ever written; or NULL */
    struct cell *cells;  /* shadow: per 4 bytes, who touched it; or NULL */
    bool constant;       /* stores are out of bounds */
};

struct place {
    struct region *region;
    uint64_t at;
};

/* Where lane's access of `bytes` (a power of two) lies.  false: a fault is recorded. */
bool mem_locate(struct place *out, struct warp *w, const struct xinsn *x, unsigned lane,
                uint64_t bytes, bool write);
/* The same for an address of a space, of x only the slot counts. */
bool mem_locate_at(struct place *out, struct warp *w, const struct xinsn *x, unsigned lane,
                   enum ptx_space space, uint64_t address, uint64_t bytes, bool write);
/*
 * Copy to or from `bytes` bytes there (a power of two, at most 16), with every check and the shadow.
 * false: a fault is recorded.
 */
bool mem_copy_at(struct warp *w, const struct xinsn *x, unsigned lane, enum ptx_space space,
                 uint64_t address, unsigned bytes, uint8_t *data, bool write);
bool mem_is_heap(const struct warp *w, const struct region *r);
/* Shadow: a message to other threads, by an atomic or a strong access. */
void mem_message(struct warp *w, const struct xinsn *x);
/*
 * Load or store lane by lane, with every check.  false: a fault was recorded that stops the
 * launch.
 */
bool mem_load_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes);
bool mem_store_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes);
/* bytes[lane] bytes of each lane, at most 16, to and from a buffer of its own. */
bool mem_read_rows(struct warp *w, const struct xinsn *x, uint32_t lanes,
                   const unsigned bytes[LANES], uint8_t out[LANES][16]);
bool mem_write_rows(struct warp *w, const struct xinsn *x, uint32_t lanes,
                    const unsigned bytes[LANES], uint8_t in[LANES][16]);
/* Copy n * 16 bytes from source's to x's address of the lane. */
bool mem_copy_bulk(struct warp *w, const struct xinsn *x, const struct xinsn *source, unsigned lane,
                   uint32_t n);
/* 16 aligned bytes of shared memory. */
bool mem_read_shared(struct warp *w, const struct xinsn *x, uint32_t address, uint8_t out[16]);
/* The region that holds the generic or global address, or NULL. */
struct region *mem_find(const struct warp *w, uint64_t address);

/* ---- atomics: atomic.c ----------------------------------------------------------------------- */

/*
 * Read, modify, write.  x->list: the rows of the operands' elements, in front of them those of the
 * results (X_RESULT).
 */
bool mem_atomic_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes);
/* What op leaves where `old` was: bits in the low bytes.  global: in global memory. */
uint64_t mem_atomic_value(enum ptx_type type, enum ptx_atom op, uint64_t old, uint64_t operand,
                          bool global);

/* ---- bulk reductions and tensor copies: tensor_map.c ------------------------------------------ */

/* One lane's cp.reduce.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk.tensor.  false: a fault. */
bool bulk_reduce_lane(struct warp *w, const struct xinsn *x, unsigned lane);
bool tensor_copy_lane(struct warp *w, const struct xinsn *x, unsigned lane);
/* Is there such a bulk reduction to global memory, else to the shared memory of a cluster? */
bool bulk_reduces(enum ptx_type type, enum ptx_atom op, bool global);
/* The 128 bytes of a map without a problem (device_impl.h). */
void tensor_map_pack(uint8_t out[DEV_TENSOR_MAP_BYTES], const struct dev_tensor_map *map);

/* ---- mbarrier objects: mbarrier.c ------------------------------------------------------------ */

/* false: a fault is recorded. */
bool mbar_run(struct warp *w, const struct xinsn *x, uint32_t lanes);
/* complete_tx of `bytes` at the mbarrier object that x->e and `object` name. */
bool mbar_complete(struct warp *w, const struct xinsn *x, unsigned lane,
                   const struct ptx_operand *object, uint32_t bytes);

uint32_t mbar_pending(uint64_t state); /* of a state that an arrival gave */

/* ---- shadow: shadow.c ------------------------------------------------------------------------ */

enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC, ACCESS_STRONG_READ, ACCESS_STRONG_WRITE };

/*
 * Lane's access of `size` bytes at offset `at` of a region with shadow, before it happens.  value:
 * the bytes that a write stores.  Records faults; false when there are too many to go on.
 */
bool shadow_access(struct warp *w, const struct xinsn *x, unsigned lane, struct region *r,
                   uint64_t at, unsigned size, enum access kind, const uint8_t *value);
/*
 * The same for plain loads and stores of all lanes inside one region with cells: 4-byte words.  A
 * store is checked before any lane has stored.
 */
bool shadow_load_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes, struct region *r,
                       const uint64_t off[LANES], unsigned size);
bool shadow_store_lanes(struct warp *w, const struct xinsn *x, uint32_t lanes, struct region *r,
                        const uint64_t off[LANES], unsigned size);
void shadow_warp_sync(struct warp *w, uint32_t lanes); /* bar.warp.sync among them */
void shadow_fence(struct warp *w);
void shadow_strong(struct warp *w); /* an atomic or volatile access: releases and acquires */
void shadow_barrier_arrive(struct barrier *bar, struct warp *w);
void shadow_barrier_leave(const struct barrier *bar, struct warp *w, uint32_t lanes);
/* All lanes of the cluster have arrived at its barrier and `lanes` waited for it. */
void shadow_cluster_leave(struct warp *w, uint32_t lanes);
void shadow_warp_begin(struct warp *w);
/* Give a region its shadow (races: also who touched it).  ERR_NOMEM. */
MUST_CHECK status_t shadow_attach(struct region *r, bool races);
void shadow_detach(struct region *r);
size_t shadow_bytes(uint64_t size); /* what a region's shadow costs */
void shadow_mark(struct region *r, uint64_t at, uint64_t size, bool written);
void shadow_forget(struct region *r); /* who touched it; not whether it was written */

/* Releases (fence, then an atomic or volatile access) of all blocks of a launch. */
struct release_log;
struct release_log *release_log_new(void); /* NULL: no memory */
void release_log_free(struct release_log *log);

/* ---- warps: warp.c --------------------------------------------------------------------------- */

enum leave {
    LEAVE_STOP,  /* reached the instruction where another path waits, or the end of a slice */
    LEAVE_AGAIN, /* paths changed: choose again */
    LEAVE_YIELD, /* nanosleep, or a slice is used up */
    LEAVE_SYNC,  /* a .sync instruction waits for other lanes */
    LEAVE_BAR,   /* waits at a block barrier */
    LEAVE_FAULT,
};

enum path_state { PATH_READY, PATH_SYNC, PATH_BAR, PATH_CLUSTER };

struct path {
    const struct xinsn *pc;
    uint32_t mask;
    enum path_state state;
    uint32_t member;   /* PATH_SYNC: lanes waited for */
    unsigned barrier;  /* PATH_BAR */
    uint64_t last_run; /* for fairness: when it ran last */
    uint64_t favour;   /* it goes first until the warp's clock says so */
    unsigned depth;    /* of calls; the deepest go first, so that lanes meet after a call */
};

/* Times are counts of synchronisation events; see shadow.c. */
struct warp_shadow {
    uint32_t knows[MAX_WARPS];   /* accesses of warp v up to this time come before mine */
    uint32_t acquired;           /* releases up to this time come before mine */
    uint32_t fenced;             /* time of the last fence that no release has used; 0: none */
    uint32_t sync_all;           /* accesses of all my lanes up to this time come before mine */
    uint32_t floor;              /* accesses of the whole block up to this time do */
    uint32_t cluster_phase;      /* what came before this many cluster barriers does */
    uint32_t pair[LANES][LANES]; /* likewise lane j's before lane i's: pair[i][j] */
};

struct warp {
    uint8_t *file; /* register rows, 64-byte aligned */
    uint32_t *pred;
    uint32_t mask;        /* active lanes of the running path */
    uint32_t alive;       /* lanes that have not exited */
    struct region **hits; /* by slot: the region that an instruction hit last */
    struct block *block;
    struct launch *launch;
    const struct xinsn *run_start; /* since when instructions are not yet counted */
    uint64_t insns;                /* executed in this slice */
    uint64_t slice;                /* of them it may execute */
    const struct xinsn *pc;        /* set by leave() */
    enum leave why;
    unsigned index;   /* within the block */
    unsigned current; /* path that runs */
    unsigned path_count;
    struct path path[LANES];
    uint64_t turn;               /* counts path choices */
    uint64_t turn_began;         /* clock when a path was last set aside */
    uint64_t clock;              /* instructions executed before this slice */
    bool gave_way;               /* the last slice ended by nanosleep or a wait that was in vain */
    uint32_t carry;              /* of each lane: CC.CF */
    uint32_t cluster_arrived[2]; /* by parity of the cluster barrier's phase: lanes to wait */
    uint64_t wgmma_trace;        /* which wgmma instructions it has executed */
    struct warp_shadow *shadow;
    /* calls: by lane, the frame that it is in (0: the entry's) and where its stack memory begins */
    struct frame *frame; /* all of this warp's; NULL until something is called */
    size_t frame_room;
    uint32_t free_frame; /* list of unused ones */
    uint32_t in_frame[LANES], stack[LANES];
    uint32_t alloca_top[LANES]; /* the first byte that alloca has not given away */
};

/* Leave the handler loop: the path goes on at `pc`; instructions before `counted` were executed. */
const struct xinsn *leave(struct warp *w, enum leave why, const struct xinsn *pc,
                          const struct xinsn *counted);
/* Count what ran since run_start, up to but without `end`. */
void warp_count(struct warp *w, const struct xinsn *end);
/* Split `lanes` off the running path; they continue at pc.  The new path. */
struct path *warp_split(struct warp *w, uint32_t lanes, const struct xinsn *pc);
/* The lanes exit. */
void warp_exit(struct warp *w, uint32_t lanes);
/* Run until every path waits, has exited or the slice is used.  false: the launch stops. */
bool warp_run(struct warp *w, uint64_t slice);
bool warp_done(const struct warp *w);

/* ---- calls: call.c --------------------------------------------------------------------------- */

/* The functions that an entry reaches, their place in shared memory, and how deep they nest. */
MUST_CHECK status_t program_functions(struct program *p);
/* Code addresses are WINDOW_CODE + 16 * index in module->callees. */
#define WINDOW_CODE 0x7a0000000000u
/*
 * The lanes of the running path that execute x call; the others go on behind it.  What leave()
 * returns.
 */
const struct xinsn *call_enter(struct warp *w, const struct xinsn *x, uint32_t m);
const struct xinsn *call_return(struct warp *w, const struct xinsn *x, uint32_t m);
/* `bytes` more for the lane, aligned: *at; false: there is no room. */
bool call_alloca(uint64_t *at, struct warp *w, unsigned lane, uint64_t bytes, uint64_t align);
/* Give back what alloca gave since its top was at `at`; false: that was no top of this function. */
bool call_alloca_restore(struct warp *w, unsigned lane, uint64_t at);
void call_exit(struct warp *w, uint32_t lanes); /* they leave all their frames */
void call_begin(struct warp *w);
void call_end(struct warp *w); /* free what the warp holds */

/* ---- blocks: block.c ------------------------------------------------------------------------- */

#define BARRIERS 16

struct barrier {
    unsigned arrived;  /* threads */
    unsigned expected; /* 0: all threads of the block that have not exited */
    unsigned waiting;  /* threads that will be released */
    uint32_t popc;     /* bar.red */
    bool all, any;
    uint32_t knows[MAX_WARPS]; /* shadow: joined over those that arrived */
    uint32_t acquired, cluster_phase;
};

struct block {
    struct launch *launch;
    struct cluster *cluster;
    unsigned rank; /* in the cluster */
    uint64_t linear;
    unsigned index[3];
    unsigned threads, warps;
    unsigned live;               /* threads that have not exited */
    struct region shared, local; /* local: all threads', one after the other */
    struct barrier barrier[BARRIERS];
    uint32_t began; /* shadow: time when it started */
    uint64_t used;  /* warp instructions in this slice */
    bool changed;   /* threads arrived or exited: look at the barriers */
    struct warp *warp;
    void *memory;
};

/*
 * `lanes` (all of the running path of w) arrive at barrier `id` of `expected` threads (0: all that
 * have not exited), and wait there if `wait`.
 */
void block_arrive(struct warp *w, unsigned id, unsigned expected, uint32_t lanes, bool wait);
/* After arrivals and exits: complete what is complete.  false: a fault stops the launch. */
bool block_check_barriers(struct block *b);

struct block_plan { /* bytes and offsets of a block's state in one allocation */
    size_t warps, files, preds, shared, local, shadows, total;
    unsigned threads, warp_count;
    size_t shared_bytes, local_bytes;
};

MUST_CHECK status_t block_plan(struct block_plan *plan, const struct launch *l);
MUST_CHECK status_t block_new(struct block **out, struct launch *l, const struct block_plan *plan);
void block_free(struct block *b);
/* Begin block `index` of the grid. */
void block_begin(struct block *b, const unsigned index[3]);
/* BLOCK_WAITS: nothing in it can run before something outside happens. */
enum block_end { BLOCK_DONE, BLOCK_MORE, BLOCK_WAITS, BLOCK_FAULT };
/* Run about `slice` warp instructions. */
enum block_end block_run(struct block *b, uint64_t slice);
/* Record that what waits in the block waits for ever. */
void block_report_deadlock(struct block *b);

/* ---- clusters: cluster.c --------------------------------------------------------------------- */

/*
 * Blocks that run at the same time and see each other's shared memory.  In a 32-bit shared address
 * the bits from CLUSTER_SHIFT on are the rank of the block, as on the hardware: a shared::cta
 * address is a shared::cluster address too.  A launch without clusters has clusters of one block.
 */
#define CLUSTER_SHIFT 24

struct cluster {
    struct launch *launch;
    unsigned size, blocks_left;
    struct block *block[PTX_MAX_CLUSTER];
    bool done[PTX_MAX_CLUSTER];
    unsigned live, arrived; /* threads: not exited; at the barrier of this phase */
    uint32_t phase;         /* cluster barriers that are complete */
    bool changed;           /* threads arrived or exited */
    /* shadow: when each warp arrived, in this phase and the two before */
    uint32_t knows[3][PTX_MAX_CLUSTER * MAX_WARPS];
};

MUST_CHECK status_t cluster_new(struct cluster **out, struct launch *l,
                                const struct block_plan *plan);
void cluster_free(struct cluster *c);
void cluster_begin(struct cluster *c, uint64_t linear);
enum block_end cluster_run(struct cluster *c, uint64_t slice);
/* false: a fault; the lanes arrive without waiting.  relaxed: it orders no memory. */
bool cluster_arrive(struct warp *w, const struct xinsn *x, uint32_t lanes, bool relaxed);
/* The lanes of m that have to wait, the others are past the barrier; false: a fault. */
bool cluster_wait(uint32_t *waiting, struct warp *w, const struct xinsn *x, uint32_t m);
void cluster_exit(struct warp *w, uint32_t lanes);
/* After arrivals and exits: complete the barrier if it is complete. */
void cluster_check_barrier(struct cluster *c);
/* The shared memory of the block that the address names; NULL: of none. */
struct region *cluster_shared(const struct cluster *c, uint64_t address);

/* ---- launches -------------------------------------------------------------------------------- */

struct launch {
    const struct program *program;
    const struct dev_launch *call;
    struct dev_run *run;
    struct region param;
    struct region **regions; /* ascending addresses */
    size_t region_count;
    unsigned max_faults;
    bool shadow;
    uint64_t budget_left; /* warp instructions */
    uint64_t stack_left;  /* bytes that frames of calls may still take */
    struct rng rng;       /* of a seeded schedule */
    uint64_t seed;
    uint64_t clusters;
    uint32_t *now;           /* shadow: a device's clock of synchronisation events */
    uint32_t began;          /* time when the launch started */
    struct release_log *log; /* shadow: releases of finished blocks */
    struct region **hits;    /* by slot of the program */
};

/* What an instruction moves beyond a row for each lane counts against the launch's budget. */
static inline void launch_charge(struct launch *l, uint64_t insns) {
    l->budget_left -= insns < l->budget_left ? insns : l->budget_left;
}

/* Run every block.  ERR_NOMEM. */
MUST_CHECK status_t launch_run(struct launch *l, uint64_t memory_left);

/* ---- faults: fault.c ------------------------------------------------------------------------- */

/* Record a fault of `lane` at instruction x.  text: one sentence without the place. */
void fault_record(struct warp *w, const struct xinsn *x, unsigned lane, enum dev_fault_kind kind,
                  uint64_t address, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* ---- small helpers --------------------------------------------------------------------------- */

typedef uint32_t u32a __attribute__((may_alias));
typedef int32_t s32a __attribute__((may_alias));
typedef uint64_t u64a __attribute__((may_alias));
typedef int64_t s64a __attribute__((may_alias));
typedef double f64a __attribute__((may_alias));
typedef float f32a __attribute__((may_alias));

static inline u32a *row32(const struct warp *w, uint32_t row) {
    return (u32a *)__builtin_assume_aligned(w->file + row, 64);
}

static inline u64a *row64(const struct warp *w, uint32_t row) {
    return (u64a *)__builtin_assume_aligned(w->file + row, 64);
}

/* The lanes that execute x. */
static inline uint32_t active(const struct warp *w, const struct xinsn *x) {
    return w->mask & (w->pred[x->guard] ^ x->gneg);
}

static inline unsigned lowest(uint32_t lanes) {
    return (unsigned)__builtin_ctz(lanes);
}

/* Loop over the lanes of a mask. */
#define FOR_LANES(lane, mask)                                                \
    for (uint32_t rest_##lane = (mask), lane = 0;                            \
         rest_##lane && (lane = (uint32_t)__builtin_ctz(rest_##lane), true); \
         rest_##lane &= rest_##lane - 1)

#endif
