/*
 * tests/ptx/mma_tiles.h - matrices for mma and wgmma: operands by families, registers, a kernel that
 * runs one instruction over many tiles.
 *
 * mma: a tile is the work of one warp.  wgmma: of one warpgroup, n = 8, a and b in shared memory
 * without swizzle, rows of 32 bytes of k as core matrices of 8 rows of 16 bytes.
 */
#ifndef TESTS_PTX_MMA_TILES_H
#define TESTS_PTX_MMA_TILES_H

#include "device/device.h"
#include "device/ptx/tensor.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum mma_kind { MMA_FLOAT, MMA_F64, MMA_S8, MMA_U8 };

struct mma_insn {
    const char *name;   /* without its operands */
    unsigned m, k, per; /* n is 8; elements of a and b in one register */
    enum mma_kind kind;
    enum tensor_type type;
    bool f16_out;
    unsigned least; /* the first target that has it */
};

extern const struct mma_insn mma_insns[];
extern const size_t mma_insn_count;

bool mma_is_group(const struct mma_insn *in);

/* How operands are drawn. */
enum mma_family {
    MMA_ANY,
    MMA_NEAR_ONE,
    MMA_TINY,
    MMA_SPARSE,
    MMA_CANCEL,
    MMA_SPREAD,
    MMA_SPECIAL,
    MMA_HUGE,
    MMA_TIES,
    MMA_STEPS,
    MMA_FAMILIES
};
extern const char *const mma_family_names[MMA_FAMILIES];

struct mma_tile {
    uint64_t a[64][32], b[8][32], c[64][8]; /* bit patterns; b by column */
};

void mma_fill(struct mma_tile *t, const struct mma_insn *in, enum mma_family f, uint64_t number);

/* Bytes of one tile in the buffers of a, b, and c or d. */
size_t mma_bytes_a(const struct mma_insn *in);
size_t mma_bytes_b(const struct mma_insn *in);
size_t mma_bytes_c(const struct mma_insn *in);
void mma_registers(uint8_t *a, uint8_t *b, uint8_t *c, const struct mma_insn *in,
                   const struct mma_tile *t);
uint64_t mma_result(const struct mma_insn *in, const uint8_t *d, unsigned i, unsigned j);

/* The kernel's text, entry "tile"; target such as "sm_90a".  Its length. */
size_t mma_kernel(char *text, size_t room, const struct mma_insn *in, const char *target);
/* Run it over `tiles` tiles; events may be NULL.  ERR_DEVICE with the fault's text; ERR_NOMEM. */
MUST_CHECK status_t mma_run(uint8_t *d, struct dev_events *events, struct device *dev,
                            const struct dev_image *image, const struct mma_insn *in,
                            unsigned tiles, const uint8_t *a, const uint8_t *b, const uint8_t *c);

#endif
