/* isa.c - which of the compiled handler sets this machine runs. */
#include <stdlib.h>
#include <string.h>

#include "device/ptx/exec.h"

static bool has_v2(void) {
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}

static bool has_v3(void) {
    return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool has_v4(void) {
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

status_t isa_pick(const struct isa **out) {
    const struct {
        const struct isa *isa;
        bool has;
    } all[] = {{&isa_v4, has_v4()}, {&isa_v3, has_v3()}, {&isa_v2, has_v2()}};
    const char *wanted = getenv("ASSAY_ISA");
    for (int i = 0; i < 3; i++) {
        if (wanted ? strcmp(wanted, all[i].isa->name) != 0 : !all[i].has)
            continue;
        if (!all[i].has)
            return FAIL(ERR_DEVICE, "ASSAY_ISA=%s: this processor does not have x86-64-%s", wanted,
                        wanted);
        *out = all[i].isa;
        return OK;
    }
    if (wanted)
        return FAIL(ERR_USAGE, "ASSAY_ISA=%s: v2, v3 or v4 was expected", wanted);
    return FAIL(ERR_DEVICE, "the emulator needs an x86-64-v2 processor (SSE4.2)");
}
