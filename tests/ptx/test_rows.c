/*
 * test_rows.c - every arithmetic row of opcodes.def against references that are not the emulator.
 *
 *   test_rows              on the emulator, on every x86-64 level of this machine
 *   test_rows --device D [N]   on device D (cuda:0: is the reference what the hardware does?);
 *                          show up to N differences of each case; 77 if there is no such GPU
 *   test_rows --twin D M [WORD]   the emulator against device D, M times 65536 operand tuples for
 *                          each 16-bit case and div.approx, div.full; with WORD: each case that
 *                          contains it
 *
 * Also: every row has a case here or is named in elsewhere.h with a test that checks that it runs
 * the row, and each case is indeed parsed as its row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/device.h"
#include "tests/ptx/elsewhere.h"
#include "tests/ptx/gpu.h"
#include "tests/ptx/rows.h"
#include "tests/times.h"

static const struct row_list *const lists[] = {&rows_f32,  &rows_f64,     &rows_int,
                                               &rows_bits, &rows_cvt,     &rows_compare,
                                               &rows_half, &rows_half_cvt, &rows_extra,
                                               &rows_sm100};

static unsigned failures, checks, show = 3;

/* ---- operands -------------------------------------------------------------------------------- */

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const uint32_t special_f32[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
    0x00400000, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0x3f000000, 0xbf000000, 0x3fc00000,
    0x40200000, 0xc0200000, 0x40600000, 0x40000000, 0x4b000000, 0x4b000001, 0x4b7fffff, 0x4b800000,
    0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5f000000, 0x5f800000,
    0xdf000000, 0x7f7fffff, 0xff7fffff, 0x7f000000, 0x7f800000, 0xff800000, 0x7fffffff, 0x7fc12345,
    0xffc00001, 0x7f800001, 0xff812345, 0x40490fdb, 0x3eaaaaab, 0x34000000, 0x33800000, 0x33800001,
    0x7e800000, 0x7e800001, 0x1a800000, 0x0c000000, 0x437f8000, 0x43000000, 0x42fe0000, 0xc2fc0000,
    0xc3150000, 0x46fffe00};

static const uint64_t special_f64[] = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800fffffffffffff,
    0x0010000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x3ff0000000000001,
    0x3fefffffffffffff, 0x3fe0000000000000, 0xbfe0000000000000, 0x3ff8000000000000,
    0x4004000000000000, 0xc004000000000000, 0x4330000000000000, 0x4340000000000000,
    0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000200000, 0x41efffffffe00000,
    0x41f0000000000000, 0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000,
    0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
    0x7fffffffffffffff, 0x7ff8000000012345, 0x7ff0000000000001, 0xfff4000000000001,
    0x47efffffe0000000, 0x47effffff0000000, 0x3810000000000000, 0x380fffffffffffff,
    0x36a0000000000000, 0x3690000000000000, 0x3690000000000001, 0x406fe00000000000};

static const uint64_t special_int[] = {0,
                                       1,
                                       2,
                                       3,
                                       7,
                                       0x7f,
                                       0x80,
                                       0xff,
                                       0x100,
                                       0x7fff,
                                       0x8000,
                                       0x8001,
                                       0xffff,
                                       0x10000,
                                       0x7fffffff,
                                       0x80000000,
                                       0x80000001,
                                       0xffffffff,
                                       0x100000000,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0x8000000000000001,
                                       0xffffffffffffffff,
                                       0xfffffffffffffffe,
                                       0xffffffff80000000,
                                       0xffffffff7fffffff,
                                       0xffffffffffff8000,
                                       0xffffffffffffff80,
                                       0x0123456789abcdef,
                                       0x1000001,
                                       0x1ffffff,
                                       0x20000000000001,
                                       0x3fffffffffffff,
                                       0xffffff7fffffffff,
                                       0x8000008000000000};

static const uint64_t special_f16[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x0200, 0x0401, 0x3c00,
    0xbc00, 0x3c01, 0x3bff, 0x3800, 0xb800, 0x3e00, 0x4100, 0xc100, 0x4000, 0x6400, 0x6401,
    0x6800, 0x7800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7fff, 0x7e12, 0xfe01, 0x7c01, 0xfd23,
    0x1400, 0x1000, 0x07ff, 0x1c07, 0x1c08, 0x4800, 0x0c00, 0x2fff, 0x5bff, 0x58ff, 0xd800};

static const uint64_t special_bf16[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080, 0x0040, 0x0081, 0x3f80,
    0xbf80, 0x3f81, 0x3f7f, 0x3f00, 0xbf00, 0x3fc0, 0x4020, 0xc020, 0x4000, 0x4300, 0x4301,
    0x4380, 0x7f00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fff, 0x7fc1, 0xffd2, 0x7f81, 0xffa3,
    0x3b80, 0x3b81, 0x4100, 0x1a80, 0x2000, 0x5f80, 0x00ff, 0x477f, 0x4f00, 0xcf00, 0x5f00};

static const uint64_t small[] = {0,  1,  2,  7,  8,  15, 16,  17,  31,  32,  33,  40,
                                 47, 48, 63, 64, 65, 96, 127, 128, 200, 255, 256, 0xffffffff};

static size_t special_count(char kind) {
    switch (kind) {
    case 'f':
    case 'G': return COUNT(special_f32);
    case 'F': return COUNT(special_f64);
    case 'e':
    case 'E': return COUNT(special_f16);
    case 'b':
    case 'B': return COUNT(special_bf16);
    case 's': return COUNT(small);
    case 'p': return 2;
    default: return COUNT(special_int);
    }
}

static uint64_t special(char kind, size_t i) {
    switch (kind) {
    case 'f': return special_f32[i];
    case 'G':
        return special_f32[i] | (uint64_t)special_f32[(i * 7 + 3) % COUNT(special_f32)] << 32;
    case 'F': return special_f64[i];
    case 'e': return special_f16[i];
    case 'E': return special_f16[i] | special_f16[(i * 7 + 3) % COUNT(special_f16)] << 16;
    case 'b': return special_bf16[i];
    case 'B': return special_bf16[i] | special_bf16[(i * 7 + 3) % COUNT(special_bf16)] << 16;
    case 's': return small[i];
    case 'p': return i;
    default: return special_int[i];
    }
}

/* Biased: half of the time near the specials, else any bits; floats with close exponents. */
static uint64_t random_operand(char kind, struct rng *rng, uint64_t near) {
    uint64_t any = rng_u64(rng);
    switch (rng_below(rng, 4)) {
    case 0: return special(kind, rng_below(rng, special_count(kind)));
    case 1: /* the neighbourhood of the operand before */
        if (kind == 'f')
            return (uint32_t)near ^ (any & 0x80ffffffu);
        if (kind == 'G')
            return near ^ (any & 0x80ffffff80ffffffu);
        if (kind == 'F')
            return near ^ (any & 0x801fffffffffffffu);
        if (strchr("eEbB", kind))
            return near ^ (any & (kind == 'e' || kind == 'E' ? 0x87ff87ffu : 0x80ff80ffu));
        return kind == 's' ? any % 70 : any >> (any % 64);
    default:
        if (kind == 's')
            return any % 70;
        return kind == 'f' ? (uint32_t)any : kind == 'p' ? any & 1 : any;
    }
}

#define RANDOM_VECTORS 2048
#define MAX_VECTORS 65536

struct vectors {
    size_t count;
    uint64_t in[4][MAX_VECTORS];
};

static void make_vectors(struct vectors *v, const struct row_case *c, uint64_t seed,
                         size_t random) {
    struct rng rng = rng_from_seed(seed);
    size_t inputs = strlen(c->in), product = 1;
    for (size_t k = 0; k < inputs && k < 2; k++)
        product *= special_count(c->in[k]);
    v->count = 0;
    if (inputs == 1 && strchr("eEbB", c->in[0])) {
        for (; v->count < 65536; v->count++)
            v->in[0][v->count] = v->count | (v->count * 40503 & 0xffff) << 16;
        return;
    }
    for (size_t i = 0; i < product + random && v->count < MAX_VECTORS; i++, v->count++) {
        size_t rest = i;
        for (size_t k = 0; k < 4; k++) {
            char kind = k < inputs ? c->in[k] : 'd';
            uint64_t x = random_operand(kind, &rng, k ? v->in[k - 1][v->count] : 0x3f800000u);
            if (k < inputs && k < 2 && i < product) {
                x = special(kind, rest % special_count(kind));
                rest /= special_count(kind);
            }
            v->in[k][v->count] = x;
        }
    }
}

/* ---- the kernel around the instruction ------------------------------------------------------- */

static const char *const head =
    ".visible .entry row(.param .u64 out, .param .u64 in0, .param .u64 in1, .param .u64 in2,\n"
    "                    .param .u64 in3, .param .u32 count)\n{\n"
    ".reg .pred %p<4>, %pr, %qr, %skip;\n.reg .b16 %h<4>, %hr;\n.reg .b32 %w<4>, %wr, %t<4>;\n"
    ".reg .b64 %d<4>, %dr, %at, %from, %z;\n"
    "mov.u32 %t0, %ctaid.x;\nmov.u32 %t1, %ntid.x;\nmov.u32 %t2, %tid.x;\n"
    "mad.lo.u32 %t0, %t0, %t1, %t2;\nld.param.u32 %t1, [count];\n"
    "setp.ge.u32 %skip, %t0, %t1;\n@%skip bra done;\nmul.wide.u32 %at, %t0, 8;\n";

static const char *const load =
    "ld.param.u64 %%from, [in%d];\nadd.u64 %%from, %%from, %%at;\nld.global.u64 %%d%d, [%%from];\n"
    "cvt.u32.u64 %%w%d, %%d%d;\ncvt.u16.u64 %%h%d, %%d%d;\nand.b64 %%z, %%d%d, 1;\n"
    "setp.ne.u64 %%p%d, %%z, 0;\n";

static const char *result(char out) {
    switch (out) {
    case 'w': return "cvt.u64.u32 %dr, %wr;\n";
    case 'h': return "cvt.u64.u16 %dr, %hr;\n";
    case 'p': return "selp.u64 %dr, 1, 0, %pr;\n";
    case 'q': return "selp.u64 %dr, 1, 0, %pr;\nselp.u64 %z, 2, 0, %qr;\nor.b64 %dr, %dr, %z;\n";
    default: return "";
    }
}

static bool is_newer(const struct row_case *c) {
    return c >= rows_sm100.cases && c < rows_sm100.cases + rows_sm100.count;
}

static size_t make_kernel(char *text, size_t room, const struct row_case *c) {
    int n = snprintf(text, room, ".version 8.8\n.target sm_%d\n.address_size 64\n%s",
                     is_newer(c) ? 100 : 90, head);
    for (int k = 0; k < 4; k++)
        n += snprintf(text + n, room - (size_t)n, load, k, k, k, k, k, k, k, k);
    n += snprintf(text + n, room - (size_t)n,
                  "%s\n%sld.param.u64 %%from, [out];\nadd.u64 %%from, %%from, %%at;\n"
                  "st.global.u64 [%%from], %%dr;\ndone:\nret;\n}\n",
                  c->insn, result(c->out[0]));
    return (size_t)n;
}

static status_t load_kernel(struct dev_image **image, struct device *dev,
                            const struct row_case *c) {
    char text[8192];
    return device_load(image, dev, c->insn, text, make_kernel(text, sizeof text, c));
}

static status_t run_kernel(uint64_t *got, struct device *dev, struct dev_image *image,
                           const struct vectors *v) {
    status_t st = OK;
    struct dev_buf *buf[5] = {0};
    uint64_t address[5];
    uint32_t count = (uint32_t)v->count;
    const void *args[6] = {&address[0], &address[1], &address[2], &address[3], &address[4], &count};
    struct dev_run run;
    for (int k = 0; k < 5; k++) {
        TRY(device_alloc(&buf[k], dev, v->count * 8));
        address[k] = buffer_address(buf[k]);
        if (k)
            TRY(buffer_write(buf[k], v->in[k - 1], v->count * 8));
    }
    struct dev_launch launch = {.image = image,
                                .entry = "row",
                                .grid = {(count + 127) / 128, 1, 1},
                                .block = {128, 1, 1},
                                .args = args,
                                .arg_count = 6};
    TRY(device_launch(&run, dev, &launch));
    if (!run.completed || run.fault_total)
        TRY(FAIL(ERR_DEVICE, "%s", run.faults[0].text));
    TRY(buffer_read(got, buf[0], v->count * 8));
done:
    for (int k = 0; k < 5; k++)
        buffer_free(buf[k]);
    return st;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* A part of them, if loops are to be shorter.  The step, a prime, divides no number of special
 * values, so that each of those comes as each operand. */
#define THIN 13
_Static_assert(COUNT(special_f32) * COUNT(special_f64) * COUNT(special_int) * COUNT(special_f16) *
                       COUNT(special_bf16) * COUNT(small) % THIN !=
                   0,
               "choose another prime");

static void thin_out(struct vectors *v) {
    const size_t step = times(THIN) < THIN ? THIN : 1;
    size_t n = 0;
    for (size_t i = 0; i < v->count; i += step, n++)
        for (size_t k = 0; k < 4; k++)
            v->in[k][n] = v->in[k][i];
    v->count = n;
}

static struct vectors vectors;
static uint64_t got[MAX_VECTORS];

static void check_case(struct device *dev, const char *where, const struct row_case *c) {
    unsigned wrong = 0;
    make_vectors(&vectors, c, 1, RANDOM_VECTORS);
    thin_out(&vectors);
    checks++;
    struct dev_image *image = NULL;
    bool ran = load_kernel(&image, dev, c) == OK && run_kernel(got, dev, image, &vectors) == OK;
    image_unload(image);
    if (!ran) {
        printf("FAIL %s %s: %s\n", where, c->insn, status_message());
        failures++;
        return;
    }
    for (size_t i = 0; i < vectors.count; i++) {
        uint64_t in[4] = {vectors.in[0][i], vectors.in[1][i], vectors.in[2][i], vectors.in[3][i]};
        uint64_t want = c->ref(c, in);
        if (got[i] == want)
            continue;
        if (wrong++ < show)
            printf("FAIL %s %s: operands %llx %llx %llx %llx: got %llx, want %llx\n", where,
                   c->insn, (unsigned long long)in[0], (unsigned long long)in[1],
                   (unsigned long long)in[2], (unsigned long long)in[3], (unsigned long long)got[i],
                   (unsigned long long)want);
    }
    if (wrong)
        printf("FAIL %s %s: %u of %zu differ\n", where, c->insn, wrong, vectors.count);
    failures += wrong > 0;
}

static bool parses_as(const struct row_case *c) {
    char text[8192];
    struct ptx_module *m;
    bool found = false;
    if (ptx_module_parse(&m, c->insn, text, make_kernel(text, sizeof text, c)) != OK)
        return false;
    for (size_t i = 0; i < m->funcs[0].insn_count; i++)
        found |= m->funcs[0].insns[i].op == c->op;
    ptx_module_free(m);
    return found;
}

static void check_coverage(void) {
    bool covered[PTX_OP_COUNT] = {false};
    for (size_t l = 0; l < COUNT(lists); l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            const struct row_case *c = &lists[l]->cases[i];
            covered[c->op] = true;
            if (parses_as(c))
                continue;
            printf("FAIL '%s' is not parsed as the row it tests: %s\n", c->insn, status_message());
            failures++;
        }
    for (size_t i = 0; i < COUNT(elsewhere); i++)
        covered[elsewhere[i].op] = true;
    for (int op = 0; op < PTX_OP_COUNT; op++)
        if (!covered[op]) {
            printf("FAIL row %d of opcodes.def (%s: %s) has no test\n", op, ptx_opcodes[op].name,
                   ptx_opcodes[op].what);
            failures++;
        }
}

static void check_device(const char *name, const char *where) {
    struct device *dev;
    if (device_open(&dev, name, NULL) != OK) {
        printf("%s: %s\n", where, status_message());
        failures += strcmp(where, name) == 0; /* a level that this machine lacks is no failure */
        return;
    }
    bool emulated = strcmp(name, "cpu") == 0;
    struct device *newer = NULL; /* for cases that need another architecture */
    for (size_t l = 0; l < COUNT(lists); l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            const struct row_case *c = &lists[l]->cases[i];
            if (!is_newer(c))
                check_case(dev, where, c);
            else if (emulated && (newer || device_open(&newer, "cpu:sm_100", NULL) == OK))
                check_case(newer, where, c);
            else if (emulated)
                failures++;
        }
    device_close(newer);
    device_close(dev);
}

/* ---- the emulator against a device ----------------------------------------------------------- */

static uint64_t got_twin[MAX_VECTORS];

static status_t run_twins(struct device *dev[2], const struct row_case *c, unsigned rounds,
                          size_t *wrong, size_t *total) {
    status_t st = OK;
    struct dev_image *image[2] = {NULL, NULL};
    bool exhaustive = strlen(c->in) == 1 && strchr("eEbB", c->in[0]);
    for (int k = 0; k < 2; k++)
        TRY(load_kernel(&image[k], dev[k], c));
    for (unsigned r = 0; r < (exhaustive ? 1 : rounds); r++) {
        make_vectors(&vectors, c, r + 1, MAX_VECTORS);
        TRY(run_kernel(got, dev[0], image[0], &vectors));
        TRY(run_kernel(got_twin, dev[1], image[1], &vectors));
        *total += vectors.count;
        for (size_t i = 0; i < vectors.count; i++)
            if (got[i] != got_twin[i] && (*wrong)++ < show)
                printf("  %s: operands %llx %llx %llx %llx: cpu %llx, device %llx\n", c->insn,
                       (unsigned long long)vectors.in[0][i], (unsigned long long)vectors.in[1][i],
                       (unsigned long long)vectors.in[2][i], (unsigned long long)vectors.in[3][i],
                       (unsigned long long)got[i], (unsigned long long)got_twin[i]);
    }
done:
    image_unload(image[0]);
    image_unload(image[1]);
    return st;
}

static void check_twin(struct device *dev[2], const struct row_case *c, unsigned rounds) {
    size_t wrong = 0, total = 0;
    checks++;
    if (run_twins(dev, c, rounds, &wrong, &total) != OK) {
        printf("FAIL %s: %s\n", c->insn, status_message());
        failures++;
        return;
    }
    failures += wrong > 0;
    printf("%s %s: %zu of %zu differ\n", wrong ? "FAIL" : "ok  ", c->insn, wrong, total);
    fflush(stdout);
}

static void check_twins(const char *name, unsigned rounds, const char *word) {
    struct device *dev[2];
    if (device_open(&dev[0], "cpu", NULL) != OK || device_open(&dev[1], name, NULL) != OK) {
        printf("FAIL %s: %s\n", name, status_message());
        failures++;
        return;
    }
    for (size_t l = 0; l < COUNT(lists); l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            const struct row_case *c = &lists[l]->cases[i];
            bool half = lists[l] == &rows_half || lists[l] == &rows_half_cvt ||
                        c->op == PTX_OP_DIV_APPROX_F32 || c->op == PTX_OP_DIV_FULL_F32;
            if (word ? strstr(c->insn, word) != NULL : half)
                check_twin(dev, c, rounds);
        }
    device_close(dev[1]);
    device_close(dev[0]);
}

int main(int argc, char **argv) {
    static const char *const levels[] = {"v2", "v3", "v4"};
    if (argc >= 3 && strcmp(argv[1], "--device") == 0) {
        if (gpu_is_missing(argv[2]))
            return EXIT_SKIPPED;
        show = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : show;
        check_device(argv[2], argv[2]);
    } else if (argc >= 4 && strcmp(argv[1], "--twin") == 0) {
        check_twins(argv[2], (unsigned)strtoul(argv[3], NULL, 10), argc > 4 ? argv[4] : NULL);
    } else {
        check_coverage();
        for (int i = 0; i < 3; i++) {
            setenv("ASSAY_ISA", levels[i], 1);
            check_device("cpu", levels[i]);
        }
    }
    ref_free();
    printf("%u cases, %u failed\n", checks, failures);
    return failures != 0;
}
