/*
 * fuzz_ptx_run.c - any bytes as a whole PTX program: parse it and run every entry on the emulator.
 *
 * Whatever the program does ends in results or in fault records: no crash, no hang (the instruction
 * budget is small), nothing outside its buffers, and the same again when it is run again.
 */
#include <string.h>

#include "device/device.h"
#include "fuzz/target.h"

#define BUFFER_BYTES 512
#define MAX_PARAMS 16
#define MAX_PARAM_BYTES 256
#define MAX_ENTRIES 4

FUZZ_FAIL(silent_refusal)    /* an error without a message */
FUZZ_FAIL(guard_touched)     /* a write outside a buffer went through */
FUZZ_FAIL(silent_fault)      /* not completed, without a record; or a record without words */
FUZZ_FAIL(over_budget)       /* more instructions than the budget allows */
FUZZ_FAIL(not_deterministic) /* a second run gave something else */

#define INSN_BUDGET 20000

static struct device *device;
static struct dev_buf *buffer; /* one, so that a program that stores its address is the same again */
static uint8_t tensor_map[DEV_TENSOR_MAP_BYTES];

static void close_device(void) {
    buffer_free(buffer);
    device_close(device);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    const struct device_options options = {
        .shadow = true,
        .insn_budget = INSN_BUDGET,
        .memory_budget = UINT64_C(1) << 26,
    };
    struct dev_tensor_map map = {.type = DEV_TENSOR_F32,
                                 .rank = 2,
                                 .dims = {16, 8},
                                 .strides = {64},
                                 .box = {8, 4},
                                 .element_strides = {1, 1},
                                 .swizzle = 32};
    bool ready = device_open(&device, "cpu", &options) == OK &&
                 device_alloc(&buffer, device, BUFFER_BYTES) == OK;
    map.address = ready ? buffer_address(buffer) : 0;
    if (!ready || dev_tensor_map_encode(tensor_map, device, &map) != OK) {
        fprintf(stderr, "fuzz_ptx_run: %s\n", status_message());
        exit(3);
    }
    atexit(close_device);
    return 0;
}

struct outcome {
    bool launched;
    struct dev_run run;
    uint8_t bytes[BUFFER_BYTES];
};

static void must(status_t st) {
    if (st != OK && status_message()[0] == '\0')
        fuzz_fail_silent_refusal();
}

/*
 * Every 8-byte parameter is the buffer's address, every one of 128 bytes a tensor map of it; every
 * other one begins with a small number.
 */
static void launch(struct outcome *out, const struct dev_image *image,
                   const struct dev_entry *entry, uint64_t seed) {
    static uint8_t params[MAX_PARAMS][MAX_PARAM_BYTES];
    const void *args[MAX_PARAMS];
    uint64_t address = buffer_address(buffer);
    memset(params, 0, sizeof params);
    for (size_t i = 0; i < entry->param_count; i++) {
        params[i][0] = 37;
        if (entry->params[i].size == sizeof address)
            memcpy(params[i], &address, sizeof address);
        if (entry->params[i].size == sizeof tensor_map)
            memcpy(params[i], tensor_map, sizeof tensor_map);
        args[i] = params[i];
    }
    const struct dev_launch what = {
        .image = image,
        .entry = entry->name,
        .grid = {2, 1, 1},
        .block = {34, 1, 1}, /* a whole warp and a part of one */
        .dynamic_shared = 256,
        .args = args,
        .arg_count = entry->param_count,
        .schedule_seed = seed,
    };
    status_t st = device_launch(&out->run, device, &what);
    must(st);
    out->launched = st == OK;
}

/* A straight run of instructions, once begun, is finished beyond the budget: as long as the text. */
static void check_run(const struct dev_run *run, size_t text_size) {
    if (run->fault_count > DEV_MAX_FAULTS || run->fault_total < run->fault_count ||
        (!run->completed && run->fault_count == 0))
        fuzz_fail_silent_fault();
    for (size_t i = 0; i < run->fault_count; i++)
        if (run->faults[i].text[0] == '\0' || !dev_fault_name(run->faults[i].kind))
            fuzz_fail_silent_fault();
    if (run->warp_insns > INSN_BUDGET + text_size)
        fuzz_fail_over_budget();
}

static void run_entry(struct outcome *out, const struct dev_image *image,
                      const struct dev_entry *entry, size_t text_size, uint64_t seed) {
    uint8_t input[BUFFER_BYTES];
    bool intact = true;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sizeof input; i++)
        input[i] = (uint8_t)(i * 37);
    must(buffer_poison(buffer));
    must(buffer_write(buffer, input, sizeof input));
    launch(out, image, entry, seed);
    must(buffer_guards(&intact, buffer));
    if (!intact)
        fuzz_fail_guard_touched();
    must(buffer_read(out->bytes, buffer, BUFFER_BYTES));
    if (out->launched)
        check_run(&out->run, text_size);
}

static bool fits(const struct dev_entry *entry) {
    for (size_t i = 0; i < entry->param_count && i < MAX_PARAMS; i++)
        if (entry->params[i].size > MAX_PARAM_BYTES)
            return false;
    return entry->param_count <= MAX_PARAMS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct outcome first, second; /* run_entry clears them; fault records are large */
    struct dev_image *image = NULL;
    status_t st = device_load(&image, device, "fuzz.ptx", data, size);
    must(st);
    if (st != OK)
        return 0;
    for (size_t i = 0; i < image_entry_count(image) && i < MAX_ENTRIES; i++) {
        const struct dev_entry *entry = image_entry(image, i);
        if (!fits(entry))
            continue;
        run_entry(&first, image, entry, size, 0);
        run_entry(&second, image, entry, size, 0);
        if (first.launched != second.launched || first.run.completed != second.run.completed ||
            first.run.fault_total != second.run.fault_total ||
            first.run.warp_insns != second.run.warp_insns ||
            memcmp(first.bytes, second.bytes, BUFFER_BYTES) != 0)
            fuzz_fail_not_deterministic();
        run_entry(&second, image, entry, size, 1 + size);
    }
    image_unload(image);
    return 0;
}
