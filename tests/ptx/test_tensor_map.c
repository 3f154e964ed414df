/*
 * test_tensor_map.c - tensor maps and what copies by them: boxes of every rank, type, swizzle and
 * element stride, partly outside the tensor, against a copy element by element; reductions; bulk
 * reductions; multicast; what is refused, and maps that are none.
 *
 *   ptx_tensor_map [--device cuda:0]
 */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/ptx/gpu.h"
#include "tests/ptx/harness.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SHARED_BYTES 16384 /* of s in the kernels: 4096 words go out */
#define TENSOR_BYTES 65536
#define FILL 0x5a5a5a5au

static uint8_t tensor[TENSOR_BYTES], after[TENSOR_BYTES];
static struct dev_tensor_map map;

struct copy {
    int32_t at[5];
    unsigned base; /* of the box in s */
    const char *insn;
    unsigned blocks;       /* of a cluster; 0: none */
    uint8_t *map_bytes;    /* instead of the map: for hostile ones */
    size_t tensor_bytes;   /* 0: TENSOR_BYTES */
    size_t tensor_written; /* bytes; the rest stays poison */
    size_t map_offset;
    bool shadow;
    uint64_t budget; /* 0: 2^20 */
};

/*
 * %r10: s + base, %r11: mbarrier, %r20 ..: coordinates, %d4: generic address of the map, %d5: that
 * of its copy in global memory, %d6: a cache policy, %h1: a mask, %d1: the tensor.
 */
static size_t make_text(char *text, size_t room, const struct copy *c, uint64_t bytes) {
    size_t n = (size_t)snprintf(
        text, room,
        ".version 8.6\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p_out, .param .u64 p_in, .param .align 64 .b8 p_map[128],\n"
        "                  .param .u64 p_global)\n{\n"
        ".reg .pred %%p<10>;\n.reg .b16 %%h<4>;\n.reg .b32 %%r<30>;\n.reg .b64 %%d<20>;\n"
        ".shared .align 1024 .b8 s[16384];\n.shared .align 8 .b8 m[8];\n"
        "ld.param.u64 %%d0, [p_out];\nld.param.u64 %%d1, [p_in];\nld.param.u64 %%d5, [p_global];\n"
        "add.u64 %%d5, %%d5, %zu;\nmov.b64 %%d3, p_map;\ncvta.param.u64 %%d4, %%d3;\n"
        "add.u64 %%d4, %%d4, %zu;\nmov.u32 %%r1, %%tid.x;\n"
        "mov.u32 %%r2, %%ctaid.x;\nmul.wide.u32 %%d2, %%r2, 16384;\nadd.u64 %%d2, %%d2, %%d0;\n"
        "mov.u32 %%r9, s;\nadd.u32 %%r10, %%r9, %u;\nmov.u32 %%r11, m;\n"
        "createpolicy.fractional.L2::evict_first.b64 %%d6, 1.0;\nmov.u16 %%h1, 3;\n"
        /* fill s: words FILL + their number */
        "mov.u32 %%r3, %%r1;\nfill:\nshl.b32 %%r4, %%r3, 2;\nadd.u32 %%r4, %%r4, %%r9;\n"
        "add.u32 %%r5, %%r3, %u;\nst.shared.u32 [%%r4], %%r5;\nadd.u32 %%r3, %%r3, 32;\n"
        "setp.lt.u32 %%p0, %%r3, 4096;\n@%%p0 bra fill;\n"
        "setp.eq.u32 %%p1, %%r1, 0;\n@%%p1 mbarrier.init.shared::cta.b64 [m], 1;\n"
        "@%%p1 fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n",
        c->map_offset, c->map_offset, c->base, FILL);
    for (int i = 0; i < 5; i++)
        n += (size_t)snprintf(text + n, room - n, "mov.s32 %%r%d, %d;\n", 20 + i, (int)c->at[i]);
    n += (size_t)snprintf(
        text + n, room - n,
        "@%%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], %u;\n%s"
        "mov.u32 %%r6, %%r2;\nsetp.eq.and.u32 %%p2, %%r6, 0, %%p1;\n"
        "fence.proxy.alias;\nprefetch.tensormap [%%d4];\n"
        "fence.proxy.tensormap::generic.acquire.gpu [%%d5], 128;\n%s"
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n",
        strstr(c->insn, "complete_tx") ? (unsigned)bytes : 0,
        c->blocks ? "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" : "",
        c->insn);
    n += (size_t)snprintf(
        text + n, room - n,
        "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %%p3, [m], 0;\n@!%%p3 bra wait;\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nbar.sync 0;\n"
        "mov.u32 %%r3, %%r1;\nback:\nshl.b32 %%r4, %%r3, 2;\ncvt.u64.u32 %%d7, %%r4;\n"
        "add.u32 %%r4, %%r4, %%r9;\nadd.u64 %%d7, %%d7, %%d2;\nld.shared.u32 %%r5, [%%r4];\n"
        "st.global.u32 [%%d7], %%r5;\nadd.u32 %%r3, %%r3, 32;\nsetp.lt.u32 %%p0, %%r3, 4096;\n"
        "@%%p0 bra back;\n%sret;\n}\n",
        c->blocks ? "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" : "");
    return n;
}

static uint64_t box_bytes(void) {
    uint64_t n = dev_tensor_type_bytes(map.type);
    for (unsigned i = 0; i < map.rank; i++)
        n *= (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
    return n;
}

/* Bytes of a row of the box, and from one row to the next in shared memory: the swizzle's at least. */
static unsigned row_bytes(void) {
    return map.box[0] * (unsigned)dev_tensor_type_bytes(map.type);
}
static unsigned row_pitch(void) {
    return map.swizzle ? map.swizzle : row_bytes();
}

static uint32_t image[2][4096]; /* s of each block afterwards */

/* Run; the tensor goes back to `after`. */
static status_t run_copy(const struct copy *c) {
    status_t st = OK;
    struct device *dev = NULL;
    struct dev_image *loaded = NULL;
    struct dev_buf *b_out = NULL, *b_in = NULL, *b_map = NULL;
    static char text[16384];
    uint8_t bytes[2 * DEV_TENSOR_MAP_BYTES] = {0};
    struct device_options options = {.shadow = c->shadow, .insn_budget = c->budget ? c->budget : 1 << 20};
    size_t size = make_text(text, sizeof text, c, box_bytes());
    unsigned blocks = c->blocks ? c->blocks : 1;
    size_t room = c->tensor_bytes ? c->tensor_bytes : TENSOR_BYTES;
    run = (struct dev_run){0};
    TRY(job_open(&dev, job_device, &options));
    TRY(device_load(&loaded, dev, "test", text, size));
    TRY(device_alloc(&b_out, dev, 2 * SHARED_BYTES));
    TRY(device_alloc(&b_in, dev, room));
    TRY(device_alloc(&b_map, dev, sizeof bytes));
    TRY(buffer_write(b_in, tensor, c->tensor_written ? c->tensor_written : room));
    map.address = buffer_address(b_in);
    TRY(dev_tensor_map_encode(bytes + c->map_offset, dev, &map));
    if (c->map_bytes)
        memcpy(bytes, c->map_bytes, DEV_TENSOR_MAP_BYTES);
    TRY(buffer_write(b_map, bytes, sizeof bytes));
    uint64_t a_out = buffer_address(b_out), a_in = map.address, a_map = buffer_address(b_map);
    const void *args[] = {&a_out, &a_in, bytes, &a_map};
    struct dev_launch launch = {.image = loaded,
                                .entry = "k",
                                .args = args,
                                .arg_count = 4,
                                .grid = {blocks, 1, 1},
                                .block = {32, 1, 1},
                                .cluster = {c->blocks, c->blocks > 0, c->blocks > 0}};
    TRY(device_launch(&run, dev, &launch));
    if (run.completed) {
        TRY(buffer_read(image, b_out, sizeof image));
        TRY(buffer_read(after, b_in, room));
    }
    harness_note(text, size);
done:
    buffer_free(b_out);
    buffer_free(b_in);
    buffer_free(b_map);
    image_unload(loaded);
    job_close(dev);
    return st;
}

static bool clean(const struct copy *c) {
    checks++;
    if (run_copy(c) == OK && run.completed && !run.fault_total)
        return true;
    failures++;
    printf("FAIL %s: %s\n", c->insn, run.fault_total ? run.faults[0].text : status_message());
    return false;
}

static void faulty(const char *name, const struct copy *c, enum dev_fault_kind kind) {
    checks++;
    if (run_copy(c) == OK && run.fault_count && run.faults[0].kind == kind)
        return;
    failures++;
    printf("FAIL %s: want a fault '%s', got '%s' %s\n", name, dev_fault_name(kind),
           run.fault_count ? run.faults[0].text : "none", status_message());
}

/* ---- boxes by their definition --------------------------------------------------------------- */

/* Where byte `at` of the box, rows one after the other, lies in s. */
static unsigned in_shared(const struct copy *c, unsigned at) {
    unsigned address = c->base + at / row_bytes() * row_pitch() + at % row_bytes();
    unsigned line = address / 128 % 8, chunk = address / 16 % 8;
    switch (map.swizzle) {
    case 32:
        return address - chunk * 16 + (chunk ^ line % 2) * 16; /* line % 2: bit 7 */
    case 64:
        return address - chunk * 16 + (chunk ^ line % 4) * 16;
    case 128:
        return address - chunk * 16 + (chunk ^ line) * 16;
    default:
        return address;
    }
}

/*
 * The byte of `tensor` where element `index` of the box begins; -1: outside.  For a store dimension 0
 * ends at a multiple of 16 bytes, as on an H200.
 */
static long in_tensor(const struct copy *c, uint64_t index, bool store) {
    size_t each = dev_tensor_type_bytes(map.type);
    long at = 0, unit = (long)(16 / each);
    bool inside = true;
    for (unsigned i = 0; i < map.rank; i++) {
        unsigned count = (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
        long x = c->at[i] + (long)(index % count) * (long)map.element_strides[i];
        index /= count;
        long end = (long)map.dims[i];
        if (store && i == 0)
            end = (end + unit - 1) / unit * unit;
        inside = inside && x >= 0 && x < end;
        at += x * (long)(i ? map.strides[i - 1] : each);
    }
    return inside ? at : -1;
}

static void expect_load(const struct copy *c, unsigned block) {
    static uint8_t want[SHARED_BYTES];
    size_t each = dev_tensor_type_bytes(map.type);
    for (uint32_t i = 0; i < 4096; i++) {
        uint32_t word = FILL + i;
        memcpy(want + 4 * i, &word, 4);
    }
    for (uint64_t e = 0; e < box_bytes() / each; e++)
        for (size_t k = 0; k < each; k++) {
            long at = in_tensor(c, e, false);
            want[in_shared(c, (unsigned)(e * each + k))] = at < 0 ? 0 : tensor[at + (long)k];
        }
    CHECK_EQ(memcmp(want, image[block], sizeof want), 0, c->insn);
    CHECK_EQ(memcmp(tensor, after, sizeof tensor), 0, "the tensor is as it was");
}

static void expect_store(const struct copy *c) {
    static uint8_t want[TENSOR_BYTES], s[SHARED_BYTES];
    size_t each = dev_tensor_type_bytes(map.type);
    for (uint32_t i = 0; i < 4096; i++) {
        uint32_t word = FILL + i;
        memcpy(s + 4 * i, &word, 4);
    }
    memcpy(want, tensor, sizeof want);
    for (uint64_t e = 0; e < box_bytes() / each; e++) {
        long at = in_tensor(c, e, true);
        for (size_t k = 0; at >= 0 && k < each; k++)
            want[at + (long)k] = s[in_shared(c, (unsigned)(e * each + k))];
    }
    CHECK_EQ(memcmp(want, after, sizeof want), 0, c->insn);
}

/* ---- random boxes ---------------------------------------------------------------------------- */

static void draw_map(struct rng *rng, unsigned rank) {
    map = (struct dev_tensor_map){.type = (enum dev_tensor_type)rng_below(rng, DEV_TENSOR_TYPES),
                                  .rank = rank};
    size_t each = dev_tensor_type_bytes(map.type);
    unsigned unit = (unsigned)(16 / each), chunks = 1 + (unsigned)rng_below(rng, 8);
    map.swizzle = 16u << rng_below(rng, 4);
    if (map.swizzle == 16)
        map.swizzle = 0;
    else
        chunks = 1 + (chunks - 1) % (map.swizzle / 16);
    map.box[0] = unit * chunks;
    map.dims[0] = 1 + rng_below(rng, 2 * map.box[0]);
    map.element_strides[0] = 1;
    uint64_t stride = (map.dims[0] * each + 15) / 16 * 16;
    for (unsigned i = 1; i < rank; i++) {
        map.dims[i] = 1 + rng_below(rng, 5);
        map.box[i] = 1 + (unsigned)rng_below(rng, 5);
        map.element_strides[i] = rng_below(rng, 3) ? 1 : 1 + (unsigned)rng_below(rng, 3);
        map.strides[i - 1] = stride += 16 * rng_below(rng, 2);
        stride *= map.dims[i];
    }
    if (stride > TENSOR_BYTES || box_bytes() / row_bytes() * row_pitch() > 8192)
        draw_map(rng, rank);
}

/* The instruction for `rank`, guarded by thread 0 of block 0. */
static const char *instruction(unsigned rank, unsigned form) {
    static char text[400];
    static const char *const coordinates[] = {
        "{%r20}", "{%r20, %r21}", "{%r20, %r21, %r22}", "{%r20, %r21, %r22, %r23}",
        "{%r20, %r21, %r22, %r23, %r24}"};
    static const char *const forms[] = {
        "cp.async.bulk.tensor.%ud.shared::cluster.global.mbarrier::complete_tx::bytes [%%r10], "
        "[%%d4, %s], [%%r11];\n",
        "cp.async.bulk.tensor.%ud.shared::cta.global.tile.mbarrier::complete_tx::bytes."
        "L2::cache_hint [%%r10], [%%d5, %s], [%%r11], %%d6;\n",
        "cp.async.bulk.tensor.%ud.global.shared::cta.bulk_group [%%d4, %s], [%%r10];\n",
        "cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group.L2::cache_hint [%%d5, %s], "
        "[%%r10], %%d6;\n",
        "cp.async.bulk.prefetch.tensor.%ud.L2.global [%%d4, %s];\n",
        "cp.async.bulk.tensor.%ud.shared::cluster.global.mbarrier::complete_tx::bytes."
        "multicast::cluster [%%r10], [%%d4, %s], [%%r11], %%h1;\n",
        "cp.async.bulk.tensor.%ud.shared::cluster.global.mbarrier::complete_tx::bytes."
        "multicast::cluster.L2::cache_hint [%%r10], [%%d4, %s], [%%r11], %%h1, %%d6;\n",
        "cp.reduce.async.bulk.tensor.%ud.global.shared::cta.add.bulk_group [%%d4, %s], [%%r10];\n",
        "cp.reduce.async.bulk.tensor.%ud.global.shared::cta.min.tile.bulk_group.L2::cache_hint "
        "[%%d5, %s], [%%r10], %%d6;\n",
        "cp.reduce.async.bulk.tensor.%ud.global.shared::cta.xor.tile.bulk_group [%%d4, %s], "
        "[%%r10];\n"};
    size_t n = (size_t)snprintf(text, sizeof text, "@%%p2 ");
    snprintf(text + n, sizeof text - n, forms[form], rank, coordinates[rank - 1]);
    return text;
}

/*
 * Where a box may begin: in dimension 0 at a multiple of 16 bytes, and outside the tensor on the near
 * side only if it is loaded.
 */
static void draw_place(struct copy *c, struct rng *rng, bool loads) {
    int32_t unit = (int32_t)(16 / dev_tensor_type_bytes(map.type)), before = loads ? 3 : 0;
    c->base = 128 * (unsigned)rng_below(rng, 16);
    for (unsigned i = 0; i < map.rank; i++)
        c->at[i] = (int32_t)rng_below(rng, map.dims[i] + 6) - before;
    c->at[0] = (c->at[0] + 3 * unit) / unit * unit - 3 * unit; /* rounded down */
    if (rng_below(rng, 3) == 0)
        c->at[0] = 0;
}

static void test_boxes(struct rng *rng, unsigned count) {
    for (unsigned n = 0; n < count; n++) {
        struct copy c = {.shadow = n % 2};
        draw_map(rng, 1 + n % 5);
        draw_place(&c, rng, n % 4 < 2);
        c.insn = instruction(map.rank, n % 4);
        for (size_t i = 0; i < sizeof tensor; i++)
            tensor[i] = (uint8_t)rng_u64(rng);
        if (clean(&c))
            n % 4 < 2 ? expect_load(&c, 0) : expect_store(&c);
        if (failures > 20)
            return;
    }
    struct copy p = {.insn = instruction(map.rank, 4)};
    clean(&p);
}

static void test_multicast(struct rng *rng) {
    for (unsigned n = 0; n < 4; n++) {
        struct copy c = {.blocks = 2, .shadow = n % 2};
        draw_map(rng, 1 + n);
        draw_place(&c, rng, true);
        c.insn = instruction(map.rank, 5 + n % 2);
        if (clean(&c)) {
            expect_load(&c, 0);
            expect_load(&c, 1);
        }
    }
}

/* Reductions on whole numbers: any order gives one result. */
static void test_reductions(struct rng *rng) {
    for (unsigned n = 0; n < 30; n++) {
        static uint8_t want[TENSOR_BYTES];
        struct copy c = {.shadow = n % 2, .insn = ""};
        draw_map(rng, 1 + n % 5);
        size_t each = 4;
        unsigned op = n % 3;
        map.type = op == 2 ? DEV_TENSOR_U32 : n & 1 ? DEV_TENSOR_S32 : DEV_TENSOR_U32;
        map.box[0] = 4;
        map.dims[0] = 1 + rng_below(rng, 6);
        map.swizzle = 0;
        if (map.dims[0] * 4 > 16)
            for (unsigned i = 1; i < map.rank; i++)
                map.strides[i - 1] *= 4;
        if (map.rank > 1 && map.strides[map.rank - 2] * map.dims[map.rank - 1] > TENSOR_BYTES)
            continue;
        draw_place(&c, rng, false);
        c.insn = instruction(map.rank, 7 + op);
        memcpy(want, tensor, sizeof want);
        for (uint64_t e = 0; e < box_bytes() / each; e++) {
            long at = in_tensor(&c, e, true);
            uint32_t old, b = FILL + in_shared(&c, (unsigned)(e * each)) / 4;
            if (at < 0)
                continue;
            memcpy(&old, want + at, 4);
            bool less = map.type == DEV_TENSOR_S32 ? (int32_t)b < (int32_t)old : b < old;
            old = op == 0 ? old + b : op == 1 ? (less ? b : old) : old ^ b;
            memcpy(want + at, &old, 4);
        }
        if (clean(&c))
            CHECK_EQ(memcmp(want, after, sizeof want), 0, c.insn);
    }
}

/* ---- bulk reductions ------------------------------------------------------------------------- */

static void test_bulk_reduce(void) {
    static uint32_t words[64];
    for (uint32_t i = 0; i < 64; i++) {
        float x = (float)i - 20;
        memcpy(&words[i], &x, 4);
    }
    /* out[0..31] = in[0..31] + 3 in f32; out[32..] = max(in, -5) as s32; a shared counter + lane */
    struct job j = {
        .threads = 32,
        .shadow = true,
        .in = words,
        .in_words = 64,
        .declare = ".shared .align 128 .b8 s[512];\n.shared .align 8 .b8 m[8];",
        .body = "mov.u32 %r4, s;\nmad.lo.u32 %r5, %r1, 4, %r4;\nst.shared.f32 [%r5], 0f40400000;\n"
                "st.shared.s32 [%r5+128], -5;\nst.shared.u32 [%r5+256], %r1;\n"
                "st.shared.u32 [%r5+384], 100;\nmul.wide.u32 %d3, %r1, 4;\nadd.u64 %d4, %d1, %d3;\n"
                "ld.global.u32 %r6, [%d4];\nst.global.u32 [%d2], %r6;\n"
                "sub.s32 %r6, %r1, 20;\n"
                "st.global.u32 [%d2+128], %r6;\nsetp.eq.u32 %p0, %r1, 0;\n"
                "@%p0 mbarrier.init.shared::cta.b64 [m], 1;\nfence.proxy.async;\nbar.sync 0;\n"
                "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], 128;\n"
                "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d0], [%r4], 128;\n"
                "createpolicy.fractional.L2::evict_last.b64 %d5, 1.0;\n"
                "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.max.s32 "
                "[%d0+128], [%r4+128], 128, %d5;\n"
                "@%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes."
                "add.u32 [%r4+384], [%r4+256], 128, [m];\n"
                "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [m], 0;\n@!%p1 bra wait;\n"
                "ld.shared.u32 %r7, [%r5+384];\nst.global.u32 [%d2+256], %r7;\n"
                "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"};
    job_clean("bulk reductions", &j);
    for (uint32_t i = 0; i < 32; i++) {
        float want = (float)i - 20 + 3;
        uint32_t bits;
        memcpy(&bits, &want, 4);
        CHECK_EQ(out[i], bits, "add.f32");
        int32_t most = (int32_t)i - 20 > -5 ? (int32_t)i - 20 : -5;
        CHECK_EQ(out[32 + i], (uint32_t)most, "max.s32");
        CHECK_EQ(out[64 + i], 100 + i, "add.u32 in shared memory");
    }
    struct job odd = {.threads = 1,
                      .declare = ".shared .align 128 .b8 s[512];",
                      .body = "mov.u32 %r4, s;\ncp.reduce.async.bulk.global.shared::cta.bulk_group."
                              "add.u32 [%d0], [%r4], 24;\n"};
    job_fault("24 bytes", &odd, FAULT_MISALIGNED);
}

/* Every operation with every type, to both spaces, against the ISA's table. */
static void test_bulk_forms(void) {
    static const struct {
        const char *op, *global, *shared;
    } forms[] = {
        {"add", " u32 s32 u64 f32 f64 ", " u32 s32 u64 "},
        {"add.noftz", " f16 bf16 ", " "},
        {"min", " u32 s32 u64 s64 f16 bf16 ", " u32 s32 "},
        {"max", " u32 s32 u64 s64 f16 bf16 ", " u32 s32 "},
        {"max.noftz", " ", " "},
        {"inc", " u32 ", " u32 "},
        {"dec", " u32 ", " u32 "},
        {"and", " b32 b64 ", " b32 "},
        {"or", " b32 b64 ", " b32 "},
        {"xor", " b32 b64 ", " b32 "},
        {"exch", " ", " "},
    };
    static const char *const types[] = {"b32", "u32", "s32", "b64", "u64",
                                        "s64", "f16", "bf16", "f32", "f64"};
    for (size_t f = 0; f < COUNT(forms); f++)
        for (size_t t = 0; t < COUNT(types); t++)
            for (int shared = 0; shared < 2; shared++) {
                char body[320], word[8];
                snprintf(word, sizeof word, " %s ", types[t]);
                snprintf(body, sizeof body,
                         shared ? "@%%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::"
                                  "complete_tx::bytes.%s.%s [%%r4], [%%r4], 16, [%%r4];\n"
                                : "@%%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.%s.%s "
                                  "[%%d0], [%%r4], 16;\n",
                         forms[f].op, types[t]);
                char whole[400];
                snprintf(whole, sizeof whole, "setp.eq.u32 %%p0, %%r1, 99;\nmov.u32 %%r4, 0;\n%s",
                         body);
                struct job j = {.threads = 1, .body = whole};
                bool there = strstr(shared ? forms[f].shared : forms[f].global, word) != NULL;
                CHECK_EQ(job_run(&j) == OK, there, body);
            }
}

#define LOOP(n, insn)                                                                             \
    "mov.u32 %r6, 0;\nagain:\n@%p2 " insn ";\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p3, %r6, " n ";\n" \
    "@%p3 bra again;\n"

/* What is copied element by element, or to two blocks, is charged as often. */
static void test_budget(void) {
    static const struct {
        const char *name, *insn;
        enum dev_tensor_type type;
        unsigned box, blocks;
        int32_t at;
        uint64_t budget; /* more than the loop has instructions and copies of 16 bytes */
    } cases[] = {
        {"bytes", LOOP("8192", "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::"
                               "bytes [%r10], [%d4, {%r20}], [%r11]"),
         DEV_TENSOR_U8, 64, 0, 992, 100000}, /* 8 bytes inside */
        {"reductions", LOOP("8192", "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group "
                                    "[%d4, {%r20}], [%r10]"),
         DEV_TENSOR_F16, 32, 0, 0, 200000},
        {"two blocks", LOOP("4096", "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::"
                                    "complete_tx::bytes.multicast::cluster [%r10], [%d4, {%r20}], "
                                    "[%r11], %h1"),
         DEV_TENSOR_U8, 240, 2, 0, 110000},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        map = (struct dev_tensor_map){.type = cases[i].type,
                                      .rank = 1,
                                      .dims = {1000},
                                      .box = {cases[i].box},
                                      .element_strides = {1}};
        struct copy c = {.insn = cases[i].insn,
                         .at = {cases[i].at},
                         .blocks = cases[i].blocks,
                         .budget = cases[i].budget};
        faulty(cases[i].name, &c, FAULT_INSN_BUDGET);
    }
}

/* ---- what is wrong --------------------------------------------------------------------------- */

static void plain_map(void) {
    map = (struct dev_tensor_map){.type = DEV_TENSOR_F32,
                                  .rank = 2,
                                  .dims = {64, 16},
                                  .strides = {256},
                                  .box = {32, 8},
                                  .element_strides = {1, 1}};
}

/* 3 words of a buffer that has no fourth: what leaves for them takes 16 bytes, a load 12. */
static void test_edge_of_buffer(void) {
    static const struct {
        unsigned form, bytes;
        bool fault;
    } cases[] = {{2, 12, true}, {2, 16, false}, {7, 12, true}, {7, 16, false}, {0, 12, false}};
    map = (struct dev_tensor_map){
        .type = DEV_TENSOR_U32, .rank = 1, .dims = {3}, .box = {4}, .element_strides = {1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct copy c = {.insn = instruction(1, cases[i].form),
                         .tensor_bytes = cases[i].bytes,
                         .shadow = i % 2};
        if (cases[i].fault)
            faulty("the fourth of three words", &c, FAULT_OUT_OF_BOUNDS);
        else
            clean(&c);
    }
}

static void test_prefetch(void) {
    static const struct {
        int32_t x, y;
        bool fault;
    } cases[] = {{4, 1, false},  {2, 0, true},     {-2, 0, true},  {-4, 0, false}, {0, -1, false},
                 {400, 0, false}, {402, 0, true}, {0, 400, false}};
    plain_map();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct copy c = {.insn = instruction(2, 4), .at = {cases[i].x, cases[i].y}};
        if (cases[i].fault)
            faulty("a prefetch at no multiple of 16 bytes", &c, FAULT_MISALIGNED);
        else
            clean(&c);
    }
    uint8_t zeros[DEV_TENSOR_MAP_BYTES] = {0};
    struct copy c = {.insn = instruction(2, 4), .map_bytes = zeros};
    faulty("a prefetch without a map", &c, FAULT_OUT_OF_BOUNDS);
    c = (struct copy){.insn = "@%p2 cp.async.bulk.prefetch.tensor.2d.L2.global.L2::cache_hint [%d5, "
                              "{%r20, %r21}], %d6;\n"};
    clean(&c);
}

static void test_faults(struct rng *rng) {
    const char *load = "@%p2 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
                       "bytes [%r10], [%d4, {%r20, %r21}], [%r11];\n";
    plain_map();
    struct copy c = {.insn = load, .base = 64};
    faulty("shared memory at a multiple of 64", &c, FAULT_MISALIGNED);
    c = (struct copy){.insn = load, .map_offset = 16};
    faulty("a map at a multiple of 16", &c, FAULT_MISALIGNED);
    c = (struct copy){.insn = load, .base = 15872};
    faulty("past shared memory", &c, FAULT_OUT_OF_BOUNDS);
    c = (struct copy){.insn = load, .shadow = true, .tensor_written = 1024};
    faulty("a tensor that is not written", &c, FAULT_UNWRITTEN);
    c = (struct copy){.insn = load, .at = {-6, 0}};
    faulty("a box that begins at 24 bytes before a row", &c, FAULT_MISALIGNED);
    c = (struct copy){.insn = load, .at = {4, -1}};
    clean(&c);
    static const unsigned leave[] = {2, 7}; /* a store, a reduction */
    for (size_t i = 0; i < COUNT(leave); i++) {
        map.type = leave[i] == 7 ? DEV_TENSOR_U32 : DEV_TENSOR_F32;
        c = (struct copy){.insn = instruction(2, leave[i]), .at = {-4, 0}};
        faulty("stored 16 bytes before a row", &c, FAULT_OUT_OF_BOUNDS);
        c.at[0] = 0;
        c.at[1] = -1;
        faulty("stored a row before the first", &c, FAULT_OUT_OF_BOUNDS);
        c.at[0] = 2;
        c.at[1] = 0;
        faulty("stored at 8 bytes", &c, FAULT_MISALIGNED);
        c.at[0] = 4;
        clean(&c);
    }
    test_edge_of_buffer();
    test_prefetch();
    plain_map();
    c = (struct copy){.insn = "@%p2 cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::"
                              "complete_tx::bytes [%r10], [%d4, {%r20, %r21, %r22}], [%r11];\n"};
    faulty("three coordinates for two dimensions", &c, FAULT_OUT_OF_BOUNDS);
    c = (struct copy){.insn = "@%p2 cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group "
                              "[%d4, {%r20, %r21}], [%r10];\n"};
    faulty("and of f32", &c, FAULT_OUT_OF_BOUNDS);
    static const struct {
        const char *name, *op;
        enum dev_tensor_type type;
    } reductions[] = {{"add of f64", "add", DEV_TENSOR_F64}, {"add of s64", "add", DEV_TENSOR_S64},
                      {"min of f32", "min", DEV_TENSOR_F32}, {"inc of s32", "inc", DEV_TENSOR_S32},
                      {"or of u16", "or", DEV_TENSOR_U16},   {"add of u8", "add", DEV_TENSOR_U8}};
    for (size_t i = 0; i < COUNT(reductions); i++) {
        char insn[160];
        snprintf(insn, sizeof insn, "@%%p2 cp.reduce.async.bulk.tensor.2d.global.shared::cta.%s."
                                    "bulk_group [%%d4, {%%r20, %%r21}], [%%r10];\n",
                 reductions[i].op);
        map.type = reductions[i].type;
        map.box[0] = 16;
        c = (struct copy){.insn = insn};
        faulty(reductions[i].name, &c, FAULT_OUT_OF_BOUNDS);
    }
    plain_map();
    map.dims[1] = 100000;
    c = (struct copy){.insn = load, .at = {0, 99990}};
    faulty("a tensor larger than its buffer", &c, FAULT_OUT_OF_BOUNDS);
    plain_map();
    map.box[0] = map.box[1] = 256;
    c = (struct copy){.insn = "@%p2 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
                              "[%d4, {%r20, %r21}], [%r10];\n"};
    faulty("a box larger than shared memory", &c, FAULT_OUT_OF_BOUNDS);
    uint8_t zeros[DEV_TENSOR_MAP_BYTES] = {0};
    plain_map();
    c = (struct copy){.insn = load, .map_bytes = zeros};
    faulty("zeros instead of a map", &c, FAULT_OUT_OF_BOUNDS);
    struct device *dev;
    uint8_t good[DEV_TENSOR_MAP_BYTES], bad[DEV_TENSOR_MAP_BYTES];
    CHECK_EQ(device_open(&dev, "cpu", NULL), OK, "cpu");
    CHECK_EQ(dev_tensor_map_encode(good, dev, &map), OK, "encode");
    device_close(dev);
    /* Maps that dev_tensor_map_encode would not make: tensor_map.c says where their fields are. */
    static const struct {
        const char *name;
        uint8_t at, value;
    } outside[] = {{"another mark", 3, 'b'},      {"no such type", 8, DEV_TENSOR_TYPES},
                   {"six dimensions", 9, 6},      {"swizzle of 8 bytes", 10, 3},
                   {"a row of 4 bytes", 12, 0},   {"every third of dimension 0", 17, 3},
                   {"every 0th of dimension 1", 18, 0}, {"an odd address", 24, 1},
                   {"an odd stride", 56, 1}};
    for (size_t i = 0; i < COUNT(outside); i++) {
        memcpy(bad, good, sizeof bad);
        bad[outside[i].at] = outside[i].value;
        c = (struct copy){.insn = load, .map_bytes = bad};
        faulty(outside[i].name, &c, FAULT_OUT_OF_BOUNDS);
        CHECK_EQ(strstr(run.faults[0].text, "no tensor map") != NULL, 1, run.faults[0].text);
    }
    /* Maps with any changed byte: whatever happens, it is said. */
    for (unsigned n = 0; n < 200; n++) {
        memcpy(bad, good, sizeof bad);
        bad[rng_below(rng, 96)] = (uint8_t)rng_u64(rng);
        c = (struct copy){.insn = instruction(2, n % 2 ? 0 : 2), .map_bytes = bad, .shadow = n & 2};
        CHECK_EQ(run_copy(&c), OK, status_message());
        CHECK_EQ(run.completed || run.fault_count, 1, "ends or says why not");
    }
}

static void test_refused_maps(void) {
    static const struct {
        enum dev_tensor_type type;
        unsigned rank;
        uint64_t address, stride, dims[2];
        unsigned box[2], element_strides[2], swizzle;
        const char *says;
    } cases[] = {
        {DEV_TENSOR_F32, 0, 0, 256, {64, 16}, {32, 8}, {1, 1}, 0, "1 to 5 dimensions"},
        {DEV_TENSOR_F32, 6, 0, 256, {64, 16}, {32, 8}, {1, 1}, 0, "1 to 5 dimensions"},
        {DEV_TENSOR_TYPES, 2, 0, 256, {64, 16}, {32, 8}, {1, 1}, 0, "type"},
        {DEV_TENSOR_F32, 2, 8, 256, {64, 16}, {32, 8}, {1, 1}, 0, "address"},
        {DEV_TENSOR_F32, 2, 0, 260, {64, 16}, {32, 8}, {1, 1}, 0, "stride"},
        {DEV_TENSOR_F32, 2, 0, UINT64_C(1) << 40, {64, 16}, {32, 8}, {1, 1}, 0, "stride"},
        {DEV_TENSOR_F32, 2, 0, 256, {0, 16}, {32, 8}, {1, 1}, 0, "dimension"},
        {DEV_TENSOR_F32, 2, 0, 256, {64, (UINT64_C(1) << 32) + 1}, {32, 8}, {1, 1}, 0, "dimension"},
        {DEV_TENSOR_F32, 2, 0, 256, {64, 16}, {257, 8}, {1, 1}, 0, "box"},
        {DEV_TENSOR_F32, 2, 0, 256, {64, 16}, {32, 0}, {1, 1}, 0, "box"},
        {DEV_TENSOR_F32, 2, 0, 256, {64, 16}, {3, 8}, {1, 1}, 0, "multiple of 16 bytes"},
        {DEV_TENSOR_F32, 2, 0, 256, {64, 16}, {32, 8}, {1, 9}, 0, "element stride"},
        {DEV_TENSOR_F32, 2, 0, 256, {64, 16}, {32, 8}, {2, 1}, 0, "element stride"},
        {DEV_TENSOR_F32, 2, 0, 256, {64, 16}, {4, 8}, {1, 1}, 16, "swizzle"},
        {DEV_TENSOR_F32, 2, 0, 256, {64, 16}, {32, 8}, {1, 1}, 64, "larger than the swizzle"},
    };
    struct device *dev, *old;
    uint8_t bytes[DEV_TENSOR_MAP_BYTES];
    CHECK_EQ(device_open(&dev, "cpu", NULL), OK, "cpu");
    for (size_t i = 0; i < COUNT(cases); i++) {
        map = (struct dev_tensor_map){.type = cases[i].type,
                                      .rank = cases[i].rank,
                                      .address = cases[i].address,
                                      .dims = {cases[i].dims[0], cases[i].dims[1]},
                                      .strides = {cases[i].stride},
                                      .box = {cases[i].box[0], cases[i].box[1]},
                                      .element_strides = {cases[i].element_strides[0],
                                                          cases[i].element_strides[1]},
                                      .swizzle = cases[i].swizzle};
        CHECK_EQ(dev_tensor_map_encode(bytes, dev, &map), ERR_USAGE, cases[i].says);
        CHECK_EQ(strstr(status_message(), cases[i].says) != NULL, 1, status_message());
    }
    device_close(dev);
    plain_map();
    CHECK_EQ(device_open(&old, "cpu:sm_80", NULL), OK, "cpu:sm_80");
    CHECK_EQ(dev_tensor_map_encode(bytes, old, &map), ERR_UNSUPPORTED, "sm_80");
    device_close(old);
}

int main(int argc, char **argv) {
    struct rng rng = rng_from_seed(3);
    bool gpu = use_device(argc, argv);
    test_boxes(&rng, gpu ? 400 : 160);
    test_multicast(&rng);
    test_reductions(&rng);
    if (gpu)
        return report();
    test_bulk_reduce();
    test_bulk_forms();
    test_budget();
    test_faults(&rng);
    test_refused_maps();
    check_elsewhere(TEST_TENSOR_MAP);
    return report();
}
