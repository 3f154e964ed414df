/*
 * gate/twin.h - one case on two devices: the same bits, or which element differs first.
 *
 * This is what the CPU device rests on: a verdict reached on `cpu` holds for a GPU exactly as far as
 * the two give the same bits.
 */
#ifndef GATE_TWIN_H
#define GATE_TWIN_H

#include "gate/judge.h"

/*
 * Run the kernel on c on both devices and compare every output bit for bit, NaN payloads and signs
 * of zero included.  FAIL on the first difference: `got` holds the twin's bits, `want` this device's
 * value, the budget is 0.  SKIP where no bits are promised: a shape that the kernel refuses, a kernel
 * that is not declared deterministic, an image with ambiguous contraction.
 * *compared: outputs that were compared.  *result: the run on the first device.
 */
MUST_CHECK status_t twin_check(struct judgement *out, size_t *compared,
                               struct kernel_result *result, struct loaded_kernel *lk,
                               struct loaded_kernel *twin, const struct test_case *c);

#endif
