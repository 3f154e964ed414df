/*
 * exhaust_mma.c - tensor-core instructions: the emulator against a device, over many operands.
 *
 *   exhaust_mma DEVICE [TILES [WORD...]]     cuda:0, cpu:sm_80, ...; TILES warps per instruction and
 *                                            family of operands; with WORDs: instructions whose name
 *                                            contains one of them
 *
 * Prints per instruction and family how many outputs of `cpu` and DEVICE differ in any bit, and on an
 * eighth of them how many differ from tensor_dot() with other parameters: what the test can tell.
 * VECTORS=FILE keeps some of the device's results: lines for tests/ptx/mma_vectors.tsv.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/mma_tiles.h"

#define MAX_THREADS 16

/* ---- other models ---------------------------------------------------------------------------- */

static const struct rival {
    const char *name;
    uint8_t block, fraction;
    int8_t above; /* floor, less that of F = 25 */
    uint8_t end;  /* of f32 results */
    bool through_f16;
} rivals[] = {
    {"L16 F25", 16, 25, 0, TENSOR_RZ_F32, false},
    {"L8", 8, 25, 0, TENSOR_RZ_F32, false},
    {"L4", 4, 25, 0, TENSOR_RZ_F32, false},
    {"F24", 16, 24, 0, TENSOR_RZ_F32, false},
    {"F26", 16, 26, 0, TENSOR_RZ_F32, false},
    {"floor-1", 16, 25, -1, TENSOR_RZ_F32, false},
    {"floor+1", 16, 25, 1, TENSOR_RZ_F32, false},
    {"L8 F24", 8, 24, 1, TENSOR_RZ_F32, false},
    {"L32 F13", 32, 13, 0, TENSOR_RZ_E8M13, false},
    {"L32 F13 floor+12", 32, 13, 12, TENSOR_RZ_E8M13, false},
    {"L16 F13", 16, 13, 0, TENSOR_RZ_E8M13, false},
    {"through f16", 16, 25, 0, TENSOR_RZ_F32, true},
};

static uint32_t rival_dot(const struct rival *r, const struct mma_insn *in, const uint32_t *a,
                          const uint32_t *b, uint32_t c) {
    const struct tensor_model m = {.block = r->block,
                                   .fraction = r->fraction,
                                   .floor = (int16_t)((in->f16_out ? -21 : -133) + r->above),
                                   .end = in->f16_out ? TENSOR_RNE_F16 : r->end,
                                   .through_f16 = r->through_f16 && in->per == 4};
    return tensor_dot(&m, (enum tensor_type[2]){in->type, in->type}, a, b, in->k, c);
}

/* Bit r: rival r gives something else than d. */
static unsigned rivals_differ(const struct mma_insn *in, const struct mma_tile *t, unsigned i,
                              unsigned j, uint64_t d) {
    uint32_t a[32], b[32];
    unsigned differ = 0;
    for (unsigned k = 0; k < in->k; k++) {
        a[k] = (uint32_t)t->a[i][k];
        b[k] = (uint32_t)t->b[j][k];
    }
    for (unsigned r = 0; r < COUNT(rivals); r++)
        differ |= (unsigned)(rival_dot(&rivals[r], in, a, b, (uint32_t)t->c[i][j]) != d) << r;
    return differ;
}

/* ---- vectors to keep: the instruction, the family, d, c, then a and b in turn ---------------- */

static FILE *vectors;

static void keep(const struct mma_insn *in, enum mma_family family, const uint8_t *d,
                 unsigned tiles) {
    static struct mma_tile t;
    unsigned plain = 0, telling = 0;
    for (unsigned n = 0; vectors && n < 256 && n < tiles && (plain < 2 || telling < 3); n++) {
        unsigned i = n * 5 % in->m, j = n % 8;
        mma_fill(&t, in, family, n);
        uint64_t got = mma_result(in, d + n * mma_bytes_c(in), i, j);
        unsigned all = (1u << COUNT(rivals)) - 1;
        unsigned differ = in->kind == MMA_FLOAT ? rivals_differ(in, &t, i, j, got) : all;
        bool tells = differ && (differ & 7) != 7;
        if (tells ? telling++ >= 3 : plain++ >= 2)
            continue;
        fprintf(vectors, "%s\t%s\t%llx\t%llx", in->name, mma_family_names[family],
                (unsigned long long)got, (unsigned long long)t.c[i][j]);
        for (unsigned k = 0; k < in->k; k++)
            fprintf(vectors, "\t%llx\t%llx", (unsigned long long)t.a[i][k],
                    (unsigned long long)t.b[j][k]);
        fprintf(vectors, "\n");
    }
}

/* ---- threads: each makes its tiles, runs them on an emulator of its own, compares ------------ */

struct share {
    const struct mma_insn *in;
    enum mma_family family;
    unsigned begin, end;
    uint8_t *a, *b, *c;
    const uint8_t *d; /* NULL: make operands; else check */
    status_t st;
    char message[256];
    uint64_t outputs, differ, rival[COUNT(rivals)];
    unsigned tile, i, j; /* the first that differs */
    uint64_t got, want;
};

static size_t kernel_text(char *text, size_t room, const struct mma_insn *in) {
    return mma_kernel(text, room, in,
                      mma_is_group(in) ? "sm_90a"
                      : in->least < 80 ? "sm_75"
                      : in->least < 89 ? "sm_80"
                      : in->least < 90 ? "sm_89"
                                       : "sm_90");
}

static void check_tile(struct share *s, const uint8_t *d, const uint8_t *want, unsigned number) {
    const struct mma_insn *in = s->in;
    struct mma_tile t;
    bool rivalled = in->kind == MMA_FLOAT && number % 8 == 0;
    if (rivalled)
        mma_fill(&t, in, s->family, number);
    for (unsigned i = 0; i < in->m; i++)
        for (unsigned j = 0; j < 8; j++, s->outputs++) {
            uint64_t g = mma_result(in, d, i, j), w = mma_result(in, want, i, j);
            if (rivalled) {
                unsigned differ = rivals_differ(in, &t, i, j, g);
                for (unsigned r = 0; r < COUNT(rivals); r++)
                    s->rival[r] += differ >> r & 1;
            }
            if (g == w || s->differ++)
                continue;
            s->tile = number;
            s->i = i;
            s->j = j;
            s->got = g;
            s->want = w;
        }
}

static status_t check(struct share *s) {
    status_t st = OK;
    struct device *dev = NULL;
    struct dev_image *image = NULL;
    char text[16384];
    const struct mma_insn *in = s->in;
    unsigned count = s->end - s->begin;
    size_t size = mma_bytes_c(in), a = mma_bytes_a(in), b = mma_bytes_b(in);
    uint8_t *want = malloc(count * size + 1);
    if (!want)
        TRY(FAIL(ERR_NOMEM, "no memory"));
    TRY(device_open(&dev, "cpu", NULL));
    TRY(device_load(&image, dev, in->name, text, kernel_text(text, sizeof text, in)));
    if (count)
        TRY(mma_run(want, NULL, dev, image, in, count, s->a + s->begin * a, s->b + s->begin * b,
                    s->c + s->begin * size));
    for (unsigned n = 0; n < count; n++)
        check_tile(s, s->d + (s->begin + n) * size, want + n * size, s->begin + n);
done:
    free(want);
    image_unload(image);
    device_close(dev);
    return st;
}

static void *work(void *context) {
    struct share *s = context;
    struct mma_tile t;
    const struct mma_insn *in = s->in;
    for (unsigned n = s->begin; !s->d && n < s->end; n++) {
        mma_fill(&t, in, s->family, n);
        mma_registers(s->a + n * mma_bytes_a(in), s->b + n * mma_bytes_b(in),
                      s->c + n * mma_bytes_c(in), in, &t);
    }
    s->st = s->d ? check(s) : OK;
    if (s->st != OK)
        snprintf(s->message, sizeof s->message, "%s", status_message());
    return NULL;
}

static unsigned thread_count;

static status_t in_threads(const struct share *all, struct share *share, unsigned tiles) {
    pthread_t thread[MAX_THREADS];
    for (unsigned i = 0; i < thread_count; i++) {
        share[i] = *all;
        share[i].begin = (unsigned)((uint64_t)tiles * i / thread_count);
        share[i].end = (unsigned)((uint64_t)tiles * (i + 1) / thread_count);
        pthread_create(&thread[i], NULL, work, &share[i]);
    }
    for (unsigned i = 0; i < thread_count; i++)
        pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < thread_count; i++)
        if (share[i].st != OK)
            return FAIL(share[i].st, "%s", share[i].message);
    return OK;
}

/* ---- one instruction, one family ------------------------------------------------------------- */

static uint64_t total_outputs, total_differ;

static void show(const struct share *s) {
    struct mma_tile t;
    mma_fill(&t, s->in, s->family, s->tile);
    printf("    first: tile %u (%u, %u): device %llx, emulator %llx; c %llx; a*b", s->tile, s->i,
           s->j, (unsigned long long)s->got, (unsigned long long)s->want,
           (unsigned long long)t.c[s->i][s->j]);
    for (unsigned k = 0; k < s->in->k; k++)
        printf(" %llx*%llx", (unsigned long long)t.a[s->i][k], (unsigned long long)t.b[s->j][k]);
    printf("\n");
}

static void report(const struct share *share) {
    const struct mma_insn *in = share[0].in;
    const struct share *first = NULL;
    uint64_t outputs = 0, differ = 0;
    for (unsigned i = 0; i < thread_count; i++) {
        if (share[i].differ && !first)
            first = &share[i];
        outputs += share[i].outputs;
        differ += share[i].differ;
    }
    total_outputs += outputs;
    total_differ += differ;
    printf("  %-14s %9llu outputs, %llu differ", mma_family_names[share[0].family],
           (unsigned long long)outputs, (unsigned long long)differ);
    for (size_t r = 0; in->kind == MMA_FLOAT && r < COUNT(rivals); r++) {
        uint64_t n = 0;
        for (unsigned i = 0; i < thread_count; i++)
            n += share[i].rival[r];
        printf("%s %s %llu", r ? "," : "; an eighth with", rivals[r].name, (unsigned long long)n);
    }
    printf("\n");
    if (first)
        show(first);
    fflush(stdout);
}

static status_t run_family(struct device *dev, struct dev_image *image, const struct mma_insn *in,
                           enum mma_family family, unsigned tiles) {
    status_t st = OK;
    static struct share share[MAX_THREADS];
    uint8_t *a = malloc(tiles * mma_bytes_a(in)), *b = malloc(tiles * mma_bytes_b(in));
    uint8_t *c = malloc(tiles * mma_bytes_c(in)), *d = malloc(tiles * mma_bytes_c(in));
    struct share all = {.in = in, .family = family, .a = a, .b = b, .c = c};
    if (!a || !b || !c || !d)
        TRY(FAIL(ERR_NOMEM, "no memory"));
    TRY(in_threads(&all, share, tiles));
    TRY(mma_run(d, NULL, dev, image, in, tiles, a, b, c));
    keep(in, family, d, tiles);
    all.d = d;
    TRY(in_threads(&all, share, tiles));
    report(share);
done:
    free(a);
    free(b);
    free(c);
    free(d);
    return st;
}

static status_t run_instruction(struct device *dev, const struct mma_insn *in, unsigned tiles) {
    status_t st = OK;
    static char text[16384];
    struct dev_image *image = NULL;
    printf("%s\n", in->name);
    TRY(device_load(&image, dev, in->name, text, kernel_text(text, sizeof text, in)));
    for (int f = 0; f < MMA_FAMILIES; f++)
        TRY(run_family(dev, image, in, (enum mma_family)f, mma_is_group(in) ? tiles / 4 : tiles));
done:
    image_unload(image);
    return st;
}

static bool wanted(const struct mma_insn *in, int argc, char **argv) {
    for (int i = 3; i < argc; i++)
        if (strstr(in->name, argv[i]))
            return true;
    return argc <= 3;
}

int main(int argc, char **argv) {
    struct device *dev;
    if (argc < 2) {
        fprintf(stderr, "usage: exhaust_mma DEVICE [TILES [WORD...]]\n");
        return 2;
    }
    unsigned tiles = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8192;
    const char *threads = getenv("THREADS"), *file = getenv("VECTORS");
    thread_count = threads ? (unsigned)strtoul(threads, NULL, 10) : MAX_THREADS;
    if (thread_count < 1 || thread_count > MAX_THREADS)
        thread_count = MAX_THREADS;
    if (tiles < 256)
        tiles = 256;
    if (device_open(&dev, argv[1], NULL) != OK) {
        fprintf(stderr, "exhaust_mma: %s\n", status_message());
        return 3;
    }
    vectors = file ? fopen(file, "w") : NULL;
    bool failed = false;
    for (size_t i = 0; i < mma_insn_count; i++)
        if (wanted(&mma_insns[i], argc, argv) && run_instruction(dev, &mma_insns[i], tiles) != OK) {
            printf("  could not run: %s\n", status_message());
            failed = true;
        }
    printf("%llu outputs, %llu differ\n", (unsigned long long)total_outputs,
           (unsigned long long)total_differ);
    if (vectors)
        fclose(vectors);
    device_close(dev);
    return failed ? 3 : total_differ != 0;
}
