/* tests/ptx/gpu.h - tests that run on the device that the command line names. */
#ifndef TESTS_PTX_GPU_H
#define TESTS_PTX_GPU_H

#include <stdio.h>
#include <string.h>

#include "device/device.h"

#define EXIT_SKIPPED 77 /* CTest's SKIP_RETURN_CODE */

/* No driver or no GPU: the test is skipped.  A GPU that cannot be opened for another reason is not. */
static inline bool gpu_is_missing(const char *name) {
    static const char *const reasons[] = {"no CUDA driver",
                                          "cuInit failed with error 100", /* CUDA_ERROR_NO_DEVICE */
                                          "cuda: no device"};
    struct device *dev;
    if (device_open(&dev, name, NULL) == OK) {
        device_close(dev);
        return false;
    }
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(status_message(), reasons[i])) {
            printf("skipped: %s\n", status_message());
            return true;
        }
    return false;
}

#endif
