/* target_letters.c - for the tests of replay_main.c: the first letter says how the input ends. */
#include <signal.h>

#include "fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int inputs;
    if (++inputs > 1) /* each input must have a process of its own */
        exit(9);
    if (size > 0 && data[0] == 'A')
        abort();
    if (size > 0 && data[0] == 'E')
        exit(3);
    if (size > 0 && data[0] == 'K')
        raise(SIGKILL);
    return 0;
}
