/*
 * gate/locate.h - where two devices part: the launch, the element, the first instruction.
 *
 * A difference in the output says little about where it was born.  Three more pairs of runs do: the
 * first keeps every buffer after every launch, so that the first launch and element that differ are
 * known; the second, with a text that notes who stores there, gives the block; the third, with a text
 * that notes what every instruction of that block's threads gives (device/rewrite.h), the first result
 * that differs.  The texts run on hardware as well as on the emulator.
 */
#ifndef GATE_LOCATE_H
#define GATE_LOCATE_H

#include "device/rewrite.h"
#include "gate/case.h"

struct difference {
    bool launch_known;           /* some buffer differs after this launch, and none before */
    size_t launch, launch_count; /* from 0 on */
    char entry[128];
    size_t buffer;   /* in order of allocation: x, y, then scratch */
    uint64_t offset; /* of the first byte that differs */

    bool insn_known;
    unsigned block[3], thread[3];
    unsigned line; /* in the image */
    struct ptx_place place;
    uint64_t before; /* results that this thread gave before */
    unsigned width;  /* of the result, in bits */
    uint64_t here,
        there; /* its values; the other device's instruction is another if lines differ */
    unsigned there_line;
    char reason[192]; /* why no more is known; "" if all is */
};

/*
 * Of several threads that differ the one counts whose first difference is an instruction's own, not
 * one that was loaded or came from another lane; then the one with the fewest results before.
 * No difference is no failure: launch_known is false.  ERR_DEVICE, ERR_NOMEM and what kernel_run gives.
 */
MUST_CHECK status_t twin_locate(struct difference *out, const struct kernel *kernel,
                                struct device *here, struct device *there,
                                const struct test_case *c);

/* In words: one or two lines, each with a newline; the devices by name. */
void text_of_difference(char *out, size_t size, const struct difference *d,
                        const struct kernel *kernel, const char *here, const char *there);

#endif
